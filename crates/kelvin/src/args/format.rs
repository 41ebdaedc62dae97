//! `--format`, the same for every command that prints a result.

use clap::{Args, ValueEnum};

/// The output format of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// One JSON document, indented
    Json,
    /// JSON, one record per line
    Jsonl,
    /// Comma-separated values (RFC 4180) with a header line
    Csv,
    /// For pull requests and wikis
    Markdown,
    /// The final lines of pgbench: tps, latency average and stddev, transactions, connection time
    Pgbench,
}

/// How the result is printed.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FormatArgs {
    /// Output format: text, json, jsonl (one record per line), csv, markdown, or pgbench (pgbench's result lines; for
    /// runs only) [default: text]
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true, help_heading = "Output")]
    pub(super) format: Option<Format>,
    /// The same as --format jsonl
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub(super) json: bool,
}

impl FormatArgs {
    /// The format that the flags request.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Jsonl } else { self.format.unwrap_or_default() }
    }
}

/// What a run prints at its end.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OutputArgs {
    /// Output format: text, json (the report), jsonl (every event as it happens, then a summary), csv, markdown, or
    /// pgbench (pgbench's result lines) [default: text]
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true, help_heading = "Output")]
    format: Option<Format>,
    /// The same as --format jsonl
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    json: bool,
    /// Print everything that kelvin show prints instead of a one-screen summary
    #[arg(long, help_heading = "Output")]
    pub(crate) verbose: bool,
}

impl OutputArgs {
    /// The format that the flags request.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Jsonl } else { self.format.unwrap_or_default() }
    }

    /// Whether every event is printed as it happens.
    pub(crate) fn events(&self) -> bool {
        self.format() == Format::Jsonl
    }

    /// Whether a format was requested that fio does not have.
    pub(crate) fn names_format(&self) -> bool {
        self.format.is_some()
    }
}
