//! `kelvin io explain`: results in words.

use std::process::ExitCode;

use anyhow::{Context, Result};
use kelvin_storage::output;

use crate::args::io::ExplainArgs;
use crate::out;

/// Reads the results and says what they tell.
pub(super) fn explain(args: &ExplainArgs) -> Result<ExitCode> {
    let mut results = Vec::new();
    for file in &args.files {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let result = output::read::parse_json(&text, Some(file)).with_context(|| file.display().to_string())?;
        results.push((file.display().to_string(), result));
    }
    out::write(&output::explain(&results))?;
    Ok(ExitCode::SUCCESS)
}
