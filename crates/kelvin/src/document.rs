//! Results in the form that `--format` asks for: each is a [`Document`], and [`print`] is the one switch.

use anyhow::{Result, bail};
use kelvin_report::RunReport;
use kelvin_report::table::Table;
use kelvin_report::text::Options;
use serde_json::Value;

use crate::args::Format;
use crate::out;

/// Something that can be printed in every form.
pub(crate) trait Document {
    /// For people.
    fn text(&self) -> Result<String>;

    /// For programs: the records of a list, or the one document, each as JSON on one line.
    fn records(&self) -> Result<Vec<String>>;

    /// Whether the records are those of a list, however many there are.
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

    /// As Markdown.
    fn markdown(&self) -> Result<String> {
        Ok(self.table()?.markdown())
    }

    /// As CSV.
    fn csv(&self) -> Result<String> {
        Ok(self.table()?.csv())
    }

    /// The lines that pgbench ends with.
    fn pgbench(&self) -> Result<String> {
        bail!("--format pgbench prints the result of a run; name one: kelvin show RUN --format pgbench")
    }
}

/// Prints a document.
pub(crate) fn print(document: &dyn Document, format: Format) -> Result<()> {
    out::write(&render(document, format)?)
}

/// A document in a form.
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

/// A run. As text everything is printed, unless `brief` asks for one screen.
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

    // Its table has a row for each transaction type, written by `csv::summary`.
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
