//! Writes reports of synthetic runs into a directory, to look at: `cargo run -p kelvin-report --example render -- DIR`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{GOOD, Shape, stored};
use kelvin_report::{html, text};

fn main() {
    let dir =
        std::path::PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "/tmp/kelvin-render".into()));
    std::fs::create_dir_all(&dir).unwrap();
    let store = dir.join("kelvin.db");
    let long = Shape { seconds: 600, ramp_up: 60, ..GOOD };
    let shapes = [
        ("long", long),
        ("bad", Shape { errors: true, valid: false, seconds: 120, ramp_up: 20, ..GOOD }),
        ("points", Shape { users: &[1, 2, 4, 8, 16], seconds: 30, ramp_up: 5, ..GOOD }),
        ("partial", Shape { finished: false, ..GOOD }),
    ];
    for (name, shape) in shapes {
        let report = stored(&store, shape, Some(name));
        let page = html::render(&report).unwrap();
        println!("{name}: {} bytes of HTML", page.len());
        std::fs::write(dir.join(format!("{name}.html")), page).unwrap();
        std::fs::write(dir.join(format!("{name}.txt")), text::render(&report, text::Options::default()))
            .unwrap();
    }
    println!("store: {} bytes", std::fs::metadata(store).unwrap().len());
}
