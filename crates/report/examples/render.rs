//! Writes reports of synthetic runs into a directory, for inspection: `cargo run -p kelvin-report --example
//! render -- DIR`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::pgbench::{self, Plan};
use common::{GOOD, Shape, stored};
use kelvin_report::compare::{self, Run, Side};
use kelvin_report::{history, html, text};
use kelvin_store::{RunId, Store};

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
        .chain([("scenario", common::scenario::stored(&store))])
        .chain(plans.into_iter().map(|(name, plan)| (name, pgbench::stored(&store, &plan))));
    for (name, report) in reports {
        let page = html::render(&report).unwrap();
        println!("{name}: {} bytes of HTML", page.len());
        std::fs::write(dir.join(format!("{name}.html")), page).unwrap();
        std::fs::write(dir.join(format!("{name}.txt")), text::render(&report, text::Options::default()))
            .unwrap();
    }
    several(&dir);
    println!("store: {} bytes", std::fs::metadata(store).unwrap().len());
}

/// A branch that became slower and then faster, and a comparison of before and after.
fn several(dir: &std::path::Path) {
    let path = dir.join("branch.db");
    let store = Store::open(&path).unwrap();
    for number in 0..36 {
        let shape = Shape { seconds: 10, ramp_up: 1, seed: 1000 + number, ..GOOD };
        let shape = match number {
            0..14 => shape,
            14..27 => Shape { new_orders: 180, ramp_up: 2, ..shape },
            _ => Shape { new_orders: 210, ramp_up: 2, ..shape },
        };
        let run = RunId(stored(&path, shape, (number % 9 == 0).then_some("nightly")).run);
        store.enter_history(run, "main", "rack-7").unwrap();
    }
    let asked = history::HistoryQuery { newest: 200, ..Default::default() };
    let found = history::load(&store, &asked, &mut |_, _| {}).unwrap();
    std::fs::write(dir.join("history.html"), history::html(&found, &|_| None).unwrap()).unwrap();
    std::fs::write(
        dir.join("history.txt"),
        history::text(&found, text::Options { colour: true, all: false }),
    )
    .unwrap();
    let runs = |from: i64| {
        (from..from + 6).map(|run| Run::load(&store, RunId(run), &[]).unwrap()).collect::<Vec<_>>()
    };
    let (a, b) = (runs(3), runs(20));
    let (a, b) = (Side::new("3..8", &a, Vec::new()), Side::new("20..25", &b, Vec::new()));
    let found = compare::compare_sides(&a, &b, compare::NOISE).unwrap();
    std::fs::write(dir.join("compare.html"), compare::html(&found).unwrap()).unwrap();
    std::fs::write(
        dir.join("compare.txt"),
        compare::render(&found, text::Options { colour: true, all: false }),
    )
    .unwrap();
}
