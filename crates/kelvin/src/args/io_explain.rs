//! The flags of `kelvin io explain`.

use std::path::PathBuf;

use clap::Args;

/// `kelvin io explain`.
#[derive(Debug, Args)]
#[command(
    after_help = "Reads fio's JSON or JSON+ (version 2 or 3, also with its stray lines around it) and Kelvin's. Of several \
    results the options that differ come first, then the figures in the same units.\n\n\
    Examples:\n  kelvin io explain result.json\n  fio --output-format=json job.fio | kelvin io explain -\n  \
    kelvin io explain before.json after.json"
)]
pub(crate) struct IoExplainArgs {
    /// The results; - is standard input
    #[arg(required = true, value_name = "OUTPUT.json")]
    pub(crate) files: Vec<PathBuf>,
}
