//! Writes reports of synthetic runs into a directory, to look at: `cargo run -p kelvin-report --example render -- DIR`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::pgbench::{self, Plan};
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
    let steps: Vec<f64> = (1..=8).map(|i| f64::from(i) * 300.0).collect();
    let mirrored: Vec<f64> = steps.iter().chain(steps.iter().rev().skip(1)).copied().collect();
    let users = [1, 2, 4, 8, 16];
    let plans = [
        ("open", Plan { seconds: 60, stall: Some(20), ..Plan::rates(8, &[1200.0]) }),
        ("overload", Plan { seconds: 30, ..Plan::rates(8, &[2800.0]) }),
        ("rates", Plan { seconds: 10, ..Plan::rates(8, &steps) }),
        ("mirrored", Plan { seconds: 10, ..Plan::rates(8, &mirrored) }),
        ("sweep", Plan { concluded: vec![pgbench::fitted(&users)], ..Plan::closed(&users) }),
        ("statements", Plan { timed: true, seconds: 20, ..Plan::closed(&[4]) }),
        ("failing", Plan { failing: true, ..Plan::closed(&[4]) }),
        ("short", Plan { seconds: 1, ..Plan::rates(8, &[2800.0]) }),
        (
            "search",
            Plan { concluded: vec![pgbench::found()], ..Plan::rates(8, &[1000.0, 2000.0, 1500.0, 1750.0]) },
        ),
    ];
    let seen = [("seen", long), ("seen-short", GOOD)]
        .map(|(name, shape)| (name, common::observed::judged(common::observed(&store, shape, Some(name)))));
    let reports = shapes
        .into_iter()
        .map(|(name, shape)| (name, stored(&store, shape, Some(name))))
        .chain(seen)
        .chain(plans.into_iter().map(|(name, plan)| (name, pgbench::stored(&store, &plan))));
    for (name, report) in reports {
        let page = html::render(&report).unwrap();
        println!("{name}: {} bytes of HTML", page.len());
        std::fs::write(dir.join(format!("{name}.html")), page).unwrap();
        std::fs::write(dir.join(format!("{name}.txt")), text::render(&report, text::Options::default()))
            .unwrap();
    }
    println!("store: {} bytes", std::fs::metadata(store).unwrap().len());
}
