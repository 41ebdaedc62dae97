//! `cargo xtask documents`: runs every command line of the documents, as a reader would type it.

use std::process::ExitCode;

use anyhow::Result;

use crate::{packages, test};

/// The test of crates/kelvin/tests/documents.rs, which takes longer than CI has.
pub(crate) fn run() -> Result<ExitCode> {
    packages::ensure()?;
    let words = ["test", "--workspace", "-j2", "--test", "documents", "--", "--ignored", "--nocapture"];
    let status = test::cargo().args(words).current_dir(test::top()?).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
