//! A report's parts, and the same as Markdown.

use std::fmt::Write;

/// The report's name.
pub(super) const TITLE: &str = "Load test";

/// One part of the report.
#[derive(Debug, Clone, Default)]
pub(super) struct Section {
    pub title: &'static str,
    /// Before the table.
    pub text: Vec<String>,
    pub table: Option<Table>,
    pub plots: Vec<Plot>,
    /// Behind the table.
    pub notes: Vec<String>,
}

/// A table; its first column is words, the others are numbers.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub head: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

/// A picture: lines over one axis.
#[derive(Debug, Clone)]
pub(super) struct Plot {
    pub title: String,
    pub x: &'static str,
    pub y: &'static str,
    /// Whether each step to the right doubles.
    pub doubling: bool,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone)]
pub(super) struct Line {
    pub name: &'static str,
    pub points: Vec<(f64, f64)>,
}

/// All of it but the pictures.
pub(super) fn markdown(sections: &[Section]) -> String {
    let mut text = format!("# {TITLE}\n");
    for section in sections {
        // Writing to a string does not fail.
        writeln!(text, "\n## {}", section.title).ok();
        for paragraph in &section.text {
            writeln!(text, "\n{paragraph}").ok();
        }
        if let Some(table) = &section.table {
            let rule: Vec<&str> = (0..table.head.len())
                .map(|column| if column == 0 { "---" } else { "---:" })
                .collect();
            writeln!(
                text,
                "\n| {} |\n|{}|",
                table.head.join(" | "),
                rule.join("|")
            )
            .ok();
            for row in &table.rows {
                writeln!(text, "| {} |", row.join(" | ")).ok();
            }
        }
        for note in &section.notes {
            writeln!(text, "\n{note}").ok();
        }
    }
    text
}
