//! Runs jobs given as fio's flags and prints the cost of an I/O for each worker:
//! `cargo run --release -p kelvin-storage --example job -- --name=a --ioengine=null --size=1g --rw=randread`.
#![allow(clippy::print_stdout, reason = "it is a command")]

use kelvin_measure::Stop;
use kelvin_storage::control::{RunOptions, prepare, run};
use kelvin_storage::event::{IoEvent, IoWatcher};
use kelvin_storage::{Result, jobfile};

struct Nobody;

impl IoWatcher for Nobody {
    fn event(&mut self, _event: &IoEvent<'_>) {}
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let jobs = jobfile::parse_arguments(&words)?.jobs;
    let options = RunOptions::default();
    let outcome = run(prepare(&jobs, &options)?, &options, &Stop::new(), &mut Nobody)?;
    for worker in &outcome.workers {
        let ios: u64 = worker.targets.iter().flat_map(|target| &target.directions.0).map(|one| one.ios).sum();
        let each = |nanos: u64| nanos as f64 / ios.max(1) as f64 / 1e3;
        let (user, system) = (each(worker.cpu.0), each(worker.cpu.1));
        println!("{ios} I/Os, {:.3} µs of CPU each ({user:.3} user, {system:.3} system)", user + system);
        if let Some((_, message)) = &worker.error {
            println!("{message}");
        }
    }
    Ok(())
}
