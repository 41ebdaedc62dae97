//! `cargo xtask documents`: runs every command line of the documents, as a reader would type it.

use std::process::ExitCode;

use anyhow::Result;

use crate::{packages, test};

/// Runs the test of crates/kelvin/tests/documents.rs, which takes too long for CI.
pub(crate) fn run() -> Result<ExitCode> {
    packages::ensure()?;
    let words = ["test", "--workspace", "-j2", "--test", "documents", "--", "--ignored", "--nocapture"];
    let status = test::cargo().args(words).current_dir(test::top()?).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::path::Path;

    /// Expands `a/{b,c}/d.rs` to its files.
    fn expanded(name: &str) -> Vec<String> {
        match name.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
            Some((before, (parts, after))) => {
                parts.split(',').map(|part| format!("{before}{part}{after}")).collect()
            }
            None => vec![name.to_owned()],
        }
    }

    #[test]
    fn what_a_newcomer_has_to_change_is_there_and_little() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = std::fs::read_to_string(top.join("CONTRIBUTING.md")).unwrap();
        for (task, most) in [("engine", 12), ("finding", 3), ("format", 3)] {
            let list = text.split(&format!("\n- {task}")).nth(1).unwrap();
            let list = list.split("\n\n").next().unwrap().split("\n- ").next().unwrap();
            let names =
                list.split('`').skip(1).step_by(2).filter(|name| Path::new(name).extension().is_some());
            let files: Vec<String> = names.flat_map(expanded).collect();
            assert!((1..=most).contains(&files.len()), "{task}: {files:?}");
            for file in files {
                assert!(top.join("crates").join(&file).is_file(), "{task}: {file}");
            }
        }
    }
}
