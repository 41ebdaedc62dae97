//! Tables as CSV or Markdown, and text escaped for Markdown.

use kelvin_measure::text::printable;

use crate::csv;

/// A table of text. Every row has one field per column.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Names of the columns, with their units.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows. `columns` are the column names, separated by commas.
    pub fn new(columns: &str) -> Self {
        Self { columns: columns.split(',').map(Into::into).collect(), rows: Vec::new() }
    }

    /// As CSV (RFC 4180), the column names first.
    pub fn csv(&self) -> String {
        let mut out = String::new();
        csv::line(&mut out, &self.columns);
        for row in &self.rows {
            csv::line(&mut out, row);
        }
        out
    }

    /// As a Markdown table.
    pub fn markdown(&self) -> String {
        let line = |fields: &[String]| {
            let fields: Vec<String> = fields.iter().map(|field| escaped(field)).collect();
            format!("| {} |\n", fields.join(" | "))
        };
        let rule = "|---".repeat(self.columns.len()) + "|\n";
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        line(&self.columns) + &rule + &rows
    }
}

/// Escapes text for Markdown: text from users or files must not create headings, tables, links, mentions or
/// HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '~' | '#' | '@' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A number for programs; empty if unknown.
pub fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_can_hold_anything() {
        let mut table = Table::new("run,label");
        table.rows.push(vec!["1".into(), "a|b, \"c\"".into()]);
        assert_eq!(table.csv(), "run,label\r\n1,\"a|b, \"\"c\"\"\"\r\n");
        assert_eq!(table.markdown(), "| run | label |\n|---|---|\n| 1 | a\\|b, \"c\" |\n");
        assert_eq!([number(Some(1.5)), number(None)], ["1.5", ""]);
    }
}
