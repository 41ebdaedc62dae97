//! `kelvin io explain`: explains results.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::io::ExplainArgs;
use crate::commands::io_explain;
use crate::out;

/// Limits of the text's width, within which it is easy to read.
const WIDTH: (usize, usize) = (60, 100);

/// Reads the results and explains them.
pub(super) fn explain(args: &ExplainArgs) -> Result<ExitCode> {
    out::write(&io_explain::explain(&args.files, out::width_within(WIDTH.0, WIDTH.1))?)?;
    Ok(ExitCode::SUCCESS)
}
