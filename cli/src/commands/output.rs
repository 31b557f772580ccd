//! Answers as a person reads them.

use serde_json::Value;

use super::{ApiArgs, CommandError};
use crate::client::Answer;

/// Prints a successful answer; a refusal becomes an error that repeats what the API said.
pub(super) fn show(args: &ApiArgs, answer: &Answer) -> Result<(), CommandError> {
    if !answer.ok() {
        return Err(refusal(answer));
    }
    if args.json {
        println!("{:#}", answer.body);
    } else {
        print!("{}", rows(&answer.body));
    }
    Ok(())
}

pub(super) fn refusal(answer: &Answer) -> CommandError {
    CommandError::Refused(format!(
        "the API refused ({} {}): {}",
        answer.status,
        answer.code(),
        answer.explanation()
    ))
}

/// A JSON document as one line per value, with the path to it: `unit_price.currency  CNY`.
fn rows(value: &Value) -> String {
    let rows = leaves(value);
    let names = rows.iter().map(|(name, _)| name.chars().count());
    let width = names.max().unwrap_or(0);
    let line = |(name, text): &(String, String)| format!("{name:<width$}  {text}\n");
    rows.iter().map(line).collect::<Vec<_>>().concat()
}

/// Every value of a document, with the path to it.
pub(super) fn leaves(value: &Value) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    flatten("", value, &mut rows);
    rows
}

fn flatten(path: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, field) in fields {
                flatten(&below(name), field, rows);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                flatten(&below(&index.to_string()), item, rows);
            }
        }
        _ => rows.push((path.to_owned(), plain(value))),
    }
}

/// A value without quotes.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Object(fields) if fields.is_empty() => "none".to_owned(),
        other => other.to_string(),
    }
}

/// A table with a header; each column as wide as its widest cell.
pub(super) fn table(header: &[&str], body: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = body.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(header[column].chars().count())
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    let mut text = line(header.to_vec());
    text.push_str(&line(rule.iter().map(String::as_str).collect()));
    for row in body {
        text.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_value_has_its_path() {
        let text = rows(
            &json!({"id": "s", "price": {"currency": "CNY"}, "shards": [{"stock": 3}], "x": []}),
        );
        let expected =
            "id              s\nprice.currency  CNY\nshards.0.stock  3\nx               none\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let text = table(&["a", "finding"], &[vec!["long".into(), "x".into()]]);
        assert_eq!(text, "a     finding\n────  ───────\nlong  x\n");
    }
}
