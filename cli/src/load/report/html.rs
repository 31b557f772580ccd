//! The same report as a page: no script, no font, no picture from elsewhere.

use std::fmt::Write;

use super::{
    page::{Section, TITLE, Table},
    svg,
};

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5b6675; --paper: #ffffff; --edge: #d9dee6;
  --s0: #1463b8; --s1: #c2410c; --s2: #15803d; --s3: #7c3aed; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ef; --soft: #9aa5b4; --paper: #14181f; --edge: #333b47;
    --s0: #6cb2ff; --s1: #ff9e6d; --s2: #6ee7a0; --s3: #c4a5ff; } }
body { margin: 0 auto; padding: 2rem 1rem; max-width: 60rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--edge); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { color: var(--soft); font-weight: 600; }
figure { margin: 1.5rem 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; } svg text { fill: var(--soft); font-size: 11px; }
.grid { stroke: var(--edge); } .line { fill: none; stroke-width: 2; }
.s0 { stroke: var(--s0); } .s1 { stroke: var(--s1); } .s2 { stroke: var(--s2); } .s3 { stroke: var(--s3); }
.key { font-weight: 400; margin-right: 1rem; white-space: nowrap; }
.key::before { content: ''; display: inline-block; width: 1.2em; height: 3px; margin-right: .4em; vertical-align: middle; }
.k0::before { background: var(--s0); } .k1::before { background: var(--s1); }
.k2::before { background: var(--s2); } .k3::before { background: var(--s3); }
";

/// Text as HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A paragraph with the little Markdown that the report uses: `code` and **weight**.
fn paragraph(text: &str) -> String {
    let mut out = String::new();
    for (number, part) in escape(text).split('`').enumerate() {
        if number % 2 == 1 {
            // Writing to a string does not fail.
            write!(out, "<code>{part}</code>").ok();
            continue;
        }
        for (number, piece) in part.split("**").enumerate() {
            if number % 2 == 1 {
                write!(out, "<strong>{piece}</strong>").ok();
            } else {
                out += piece;
            }
        }
    }
    format!("<p>{out}</p>\n")
}

fn table(table: &Table) -> String {
    let row = |cells: &[String], tag: &str| {
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)))
            .collect();
        format!("<tr>{}</tr>\n", cells.concat())
    };
    let head: Vec<String> = table.head.iter().map(|&name| name.to_owned()).collect();
    let rows: String = table.rows.iter().map(|cells| row(cells, "td")).collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead>{}</thead>\n<tbody>{rows}</tbody>\n</table></div>\n",
        row(&head, "th")
    )
}

fn section(section: &Section) -> String {
    let mut out = format!("<section>\n<h2>{}</h2>\n", escape(section.title));
    for text in &section.text {
        out += &paragraph(text);
    }
    if let Some(found) = &section.table {
        out += &table(found);
    }
    for plot in &section.plots {
        let keys: Vec<String> = plot
            .lines
            .iter()
            .enumerate()
            .map(|(at, line)| format!("<span class=\"key k{at}\">{}</span>", escape(line.name)))
            .collect();
        write!(
            out,
            "<figure>\n<figcaption>{}, {}<br>{}</figcaption>\n{}</figure>\n",
            escape(&plot.title),
            escape(plot.y),
            keys.concat(),
            svg::draw(plot)
        )
        .ok();
    }
    for note in &section.notes {
        out += &paragraph(note);
    }
    out + "</section>\n"
}

/// The page.
pub(super) fn page(sections: &[Section]) -> String {
    let body: String = sections.iter().map(section).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{TITLE}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{TITLE}</h1>\n{body}</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::paragraph;

    #[test]
    fn code_and_weight_are_shown_and_the_rest_is_text() {
        assert_eq!(
            paragraph("a <b> `c**d` **e**"),
            "<p>a &lt;b&gt; <code>c**d</code> <strong>e</strong></p>\n"
        );
    }
}
