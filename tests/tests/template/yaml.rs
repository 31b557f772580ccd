//! Reading the template. Short intrinsics (`!Ref`, `!If`, …) are YAML tags.

use std::{fs, path::Path};

use serde_norway::Value;

/// The functions' folders, with their names in the template.
pub const FUNCTIONS: [(&str, &str); 8] = [
    ("deduct", "Deduct"),
    ("orders", "Orders"),
    ("admin", "Admin"),
    ("preheat", "Preheat"),
    ("settle", "Settle"),
    ("expire", "Expire"),
    ("reconcile", "Reconcile"),
    ("migrate", "Migrate"),
];

pub struct Template(Value);

impl Template {
    pub fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
        Self(serde_norway::from_str(&fs::read_to_string(path).unwrap()).unwrap())
    }

    pub fn top(&self, section: &str) -> &Value {
        &self.0[section]
    }

    pub fn resources(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0["Resources"]
            .as_mapping()
            .unwrap()
            .iter()
            .map(|(name, resource)| (name.as_str().unwrap(), resource))
    }

    pub fn of_type<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.resources()
            .filter(move |(_, resource)| resource["Type"] == kind)
            .map(|(name, resource)| (name, &resource["Properties"]))
    }

    pub fn properties(&self, name: &str) -> &Value {
        let properties = &self.0["Resources"][name]["Properties"];
        assert!(properties.is_mapping(), "no resource {name}");
        properties
    }

    pub fn function(&self, name: &str) -> &Value {
        self.properties(&format!("{name}Function"))
    }

    /// The default of a parameter.
    pub fn default(&self, parameter: &str) -> &Value {
        &self.0["Parameters"][parameter]["Default"]
    }
}

/// The content of an intrinsic such as `!Ref X`.
pub fn tagged<'a>(value: &'a Value, tag: &str) -> Option<&'a Value> {
    match value {
        Value::Tagged(tagged) if tagged.tag == tag => Some(&tagged.value),
        _ => None,
    }
}

/// The name in `!Ref NAME`.
pub fn reference(value: &Value) -> Option<&str> {
    tagged(value, "Ref")?.as_str()
}

/// The resource in `!GetAtt NAME.Arn`.
pub fn arn_of(value: &Value) -> Option<&str> {
    tagged(value, "GetAtt")?.as_str()?.strip_suffix(".Arn")
}

pub fn keys(mapping: &Value) -> Vec<&str> {
    mapping.as_mapping().map_or_else(Vec::new, |mapping| {
        mapping.keys().map(|key| key.as_str().unwrap()).collect()
    })
}

pub fn list(value: &Value) -> &[Value] {
    value.as_sequence().map_or(&[], Vec::as_slice)
}
