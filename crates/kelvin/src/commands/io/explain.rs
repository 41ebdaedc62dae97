//! `kelvin io explain`: explains results.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::io::ExplainArgs;
use crate::commands::io_explain;
use crate::out;

/// Columns of the text if the terminal's width is unknown.
const WIDTH: usize = 100;

/// Reads the results and explains them.
pub(super) fn explain(args: &ExplainArgs) -> Result<ExitCode> {
    out::write(&io_explain::explain(&args.files, width())?)?;
    Ok(ExitCode::SUCCESS)
}

/// The width of the terminal, within readable limits.
fn width() -> usize {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    asked.unwrap_or(WIDTH).clamp(60, WIDTH)
}
