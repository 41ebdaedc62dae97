//! Compiles the findings' pages of the user guide in, so that a binary without its docs can print them.

#![allow(clippy::print_stdout, reason = "cargo reads it")]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder =
        Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../docs/findings");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut pages = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if name != "README" && path.extension().is_some_and(|extension| extension == "md") {
            pages.push((name, fs::canonicalize(path)?));
        }
    }
    pages.sort();
    let mut table = String::from("&[\n");
    for (name, path) in pages {
        let path = path.display().to_string();
        let _ = writeln!(table, "({name:?}, include_str!({path:?})),");
    }
    table.push_str("]\n");
    fs::write(Path::new(&env::var_os("OUT_DIR").unwrap_or_default()).join("pages.rs"), table)
}
