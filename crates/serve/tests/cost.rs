//! The cost of the endpoint for a run: `cargo test --release -p kelvin-serve --test cost -- --ignored
//! --nocapture`.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a measurement, printed")]

mod support;

use std::time::Instant;

use support::{Run, get};

#[test]
#[ignore = "a measurement"]
fn a_second_of_a_run_and_a_scrape() {
    let mut run = Run::start();
    let cpu = || {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        stat.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let (rounds, before) = (500, cpu());
    (0..rounds).for_each(|_| run.second());
    let second = (cpu() - before) / rounds;
    let began = Instant::now();
    let length = (0..100).map(|_| get(run.address(), "/metrics", "").len()).max().unwrap();
    let scrape = began.elapsed() / 100;
    eprintln!("a second of 5 series and {} metrics: {second} ns of CPU", run.metrics);
    eprintln!("a scrape of {length} bytes: {scrape:?}");
    // One per cent of a core is 10 ms a second.
    assert!(second < 5_000_000, "{second} ns");
}
