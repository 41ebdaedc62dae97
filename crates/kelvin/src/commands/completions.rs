//! `kelvin completions` and `kelvin man`: generated from the definition of the command line.

use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::Code;
use crate::out;

/// Prints the completions for a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Code> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kelvin", &mut script);
    out::write(&String::from_utf8_lossy(&script))?;
    Ok(Code::Success)
}

/// Writes one man page per subcommand into a directory.
pub(crate) fn man(directory: &Path) -> Result<Code> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    clap_mangen::generate_to(Cli::command(), directory)
        .with_context(|| format!("cannot write man pages into {}", directory.display()))?;
    Ok(Code::Success)
}
