//! What was wrong with an environment.

use std::fmt;

/// One fault: which variable, what was wrong, what would be right. Never contains a secret's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The variable.
    pub variable: &'static str,
    /// What was wrong.
    pub problem: String,
    /// What would be right.
    pub expected: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            variable,
            problem,
            expected,
        } = self;
        write!(f, "{variable}: {problem}; expected {expected}")
    }
}

/// Every fault of an environment, in the order in which the variables are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// At least one.
    pub faults: Vec<Fault>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the environment is not usable: ")?;
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                f.write_str(" | ")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
