//! fio's job files and command line.
//!
//! Text becomes sections (`lines`), whose options are looked up in one table (`table`) and read into a draft of a job
//! (`draft`); when all are known, what depends on several is resolved (`finish`), and what contradicts itself is
//! refused (`check`). Nothing is ignored in silence: an option is read, or noted to have no effect, or an error that
//! names it and its place.

mod build;
mod check;
mod command_line;
mod draft;
mod finish;
mod guess;
mod help;
mod lines;
mod lists;
mod number;
mod render;
mod run_flags;
mod special;
mod table;
mod value;
mod variables;

use std::path::Path;

pub use command_line::{ParsedCommandLine, flags_help, parse_arguments};
pub use help::{command_help, engine_help};
pub use render::{render_command_line, shown_words, without_order};
pub use run_flags::{EtaFlag, InfoRequest, OutputFormat, RunFlags};

use crate::error::{Location, Result};
use crate::job::Jobs;

/// The name that fio's results have for an option, of its several; the name itself where it is no option's.
pub(crate) fn first_name(name: &str) -> &str {
    table::find(name).map_or(name, |entry| entry.name)
}

/// Reads a job file; `-` is standard input. Of its jobs, those named in `sections` are taken, all when that is empty.
///
/// # Errors
///
/// A file that cannot be read; anything in it that is wrong, with its line.
pub fn parse_file(path: &Path, sections: &[String]) -> Result<Jobs> {
    parse_text(&lines::text_of(path)?, Some(path), sections)
}

/// Reads a job file's text. `path` is where it came from: for the places in errors, and for included files.
///
/// # Errors
///
/// Anything in it that is wrong, with its line.
pub fn parse_text(text: &str, path: Option<&Path>, sections: &[String]) -> Result<Jobs> {
    let mut builder = build::Builder::new();
    builder.file(lines::sections(text, path)?, sections)?;
    let jobs = builder.finish()?;
    require_jobs(&jobs, sections, path)?;
    Ok(jobs)
}

/// A run without jobs is a mistake.
fn require_jobs(jobs: &Jobs, sections: &[String], path: Option<&Path>) -> Result<()> {
    if !jobs.jobs.is_empty() {
        return Ok(());
    }
    let place =
        path.map_or_else(Location::default, |path| Location { file: Some(path.into()), line: 1, column: 0 });
    let text = if sections.is_empty() {
        "there is no job: start one with [name] in a file or with --name=".to_owned()
    } else {
        format!("there is no job named {}", sections.join(" or "))
    };
    Err(lines::problem(&place, text))
}
