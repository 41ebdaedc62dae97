//! Results in the formats of `--format`: each result is a [`Document`], and [`print`] selects the format.

use std::io::IsTerminal;

use anyhow::{Result, bail};
use kelvin_report::RunReport;
use kelvin_report::table::Table;
use kelvin_report::text::Options;
use serde_json::Value;

use crate::args::Format;
use crate::out;

/// A result that can be printed in every format.
pub(crate) trait Document {
    /// Text for people.
    fn text(&self) -> Result<String>;

    /// One JSON document per line: the records of a list, or the only document.
    fn records(&self) -> Result<Vec<String>>;

    /// Whether the result is a list, which may also be empty or have one record.
    fn is_list(&self) -> bool {
        false
    }

    /// One indented document.
    fn json(&self) -> Result<String> {
        let records = self.records()?;
        if self.is_list() {
            return Ok(format!("[\n{}\n]\n", records.join(",\n")));
        }
        let value: Value = serde_json::from_str(&records.concat())?;
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }

    /// Rows and columns.
    fn table(&self) -> Result<Table>;

    /// The table as Markdown.
    fn markdown(&self) -> Result<String> {
        Ok(self.table()?.markdown())
    }

    /// The table as CSV.
    fn csv(&self) -> Result<String> {
        Ok(self.table()?.csv())
    }

    /// The summary lines that pgbench prints.
    fn pgbench(&self) -> Result<String> {
        bail!("--format pgbench prints the result of a run; name one: kelvin show RUN --format pgbench")
    }
}

/// Options of the text: colours on a terminal, unless NO_COLOR is set (no-color.org).
pub(crate) fn text_options(all: bool) -> Options {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Options { colour: std::io::stdout().is_terminal() && !refused, all }
}

/// Prints a document.
pub(crate) fn print(document: &dyn Document, format: Format) -> Result<()> {
    out::write(&render(document, format)?)
}

/// Renders a document in a format.
pub(crate) fn render(document: &dyn Document, format: Format) -> Result<String> {
    Ok(match format {
        Format::Text => document.text()?,
        Format::Json => document.json()?,
        Format::Jsonl => document.records()?.into_iter().map(|record| record + "\n").collect(),
        Format::Csv => document.csv()?,
        Format::Markdown => document.markdown()?,
        Format::Pgbench => document.pgbench()?,
    })
}

/// A run. Its text is complete, or fits one screen if `brief` is set.
pub(crate) struct RunDocument<'a> {
    pub(crate) report: &'a RunReport,
    pub(crate) options: Options,
    pub(crate) brief: bool,
}

impl Document for RunDocument<'_> {
    fn text(&self) -> Result<String> {
        let render = if self.brief { kelvin_report::text::brief } else { kelvin_report::text::render };
        Ok(render(self.report, self.options))
    }

    fn records(&self) -> Result<Vec<String>> {
        Ok(vec![serde_json::to_string(self.report)?])
    }

    fn json(&self) -> Result<String> {
        Ok(kelvin_report::json::render(self.report)?)
    }

    // CSV is not made from a table: `csv::summary` writes a row for each transaction type.
    fn table(&self) -> Result<Table> {
        bail!("a run has more than one table")
    }

    fn csv(&self) -> Result<String> {
        Ok(kelvin_report::csv::summary(self.report))
    }

    fn markdown(&self) -> Result<String> {
        Ok(kelvin_report::markdown::render(self.report, self.options.all))
    }

    fn pgbench(&self) -> Result<String> {
        if self.report.is_io() {
            bail!("--format pgbench: run {} is of I/O jobs and has no transactions", self.report.run);
        }
        Ok(kelvin_report::pgbench::render(self.report))
    }
}
