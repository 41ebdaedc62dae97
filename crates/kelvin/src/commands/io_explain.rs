//! `kelvin io explain`: explains results of I/O jobs, and compares several.

mod comparison;
mod options;
mod result_text;

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kelvin_storage::error::Location;
use kelvin_storage::output::read::{IoResult, JobResult, ParsedStream, parse_json};

/// A longer file is not a result.
const LONGEST: u64 = 1 << 30;

/// A job of a result, with the name that distinguishes it from the others.
pub(super) struct Side<'a> {
    name: String,
    result: &'a IoResult,
    job: &'a JobResult,
}

/// Explains the results in these files as text of `width` columns.
pub(crate) fn explain(paths: &[PathBuf], width: usize) -> Result<String> {
    let mut parsed = Vec::new();
    for path in paths {
        let text = read(path)?;
        let shown = (path.as_os_str() != "-").then_some(path.as_path());
        let found = parse_json(&text, shown)?;
        if let Some(last) = found.results.last().filter(|last| last.jobs.is_empty()) {
            let place = Location { file: Some(PathBuf::from(name(path))), line: last.line, column: 0 };
            let problem = "this result has no jobs: there is nothing to explain".into();
            return Err(kelvin_storage::Error::Input { place, problem }.into());
        }
        parsed.push((name(path), found));
    }
    Ok(explained(&parsed, width))
}

fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() }
}

fn read(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let source: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?)
    };
    source
        .take(LONGEST)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Explains each result; if there are several, their differences come first.
fn explained(parsed: &[(String, ParsedStream)], width: usize) -> String {
    let mut text = String::new();
    // The last dump of periodic dumps contains the earlier ones.
    let last: Vec<(&str, &IoResult)> =
        parsed.iter().filter_map(|(name, parsed)| Some((name.as_str(), parsed.results.last()?))).collect();
    if last.len() > 1 {
        text.push_str(&comparison::compare_results(&last));
        text.push('\n');
    }
    for (name, parsed) in parsed {
        result_text::write_result(&mut text, name, parsed, width);
    }
    text
}

#[cfg(test)]
mod tests;
