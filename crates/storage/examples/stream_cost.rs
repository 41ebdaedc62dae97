//! Measures the time to determine the next I/O: `cargo run --release -p kelvin-storage --example stream_cost`.

#![allow(clippy::print_stdout, reason = "a program for the console")]

use std::hint::black_box;
use std::path::PathBuf;

use kelvin_storage::stream::IoSource;
use kelvin_storage::{NextIo, Target, TargetKind, jobfile};

const CALLS: u32 = 5_000_000;

/// CPU time of this thread in nanoseconds, which is independent of other load.
fn cpu_time() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cases = [
        ("sequential, 4k of 8 GiB", "rw=read", 8 << 30),
        ("random with map, 4k of 8 GiB", "rw=randread", 8 << 30),
        ("random with map, 4k of 100 TB", "rw=randread", 100_000_000_000_000),
        ("random with map, 4k of 7.3 GB", "rw=randread", 7_300_000_000),
        ("random without map, 4k of 8 GiB", "rw=randread\nnorandommap=1", 8 << 30),
        ("mix 70:30 with map, 4k of 8 GiB", "rw=randrw\nrwmixread=70", 8 << 30),
        ("zipf:1.2, 4k of 8 GiB", "rw=randread\nrandom_distribution=zipf:1.2", 8 << 30),
        ("pareto:0.2, 4k of 8 GiB", "rw=randread\nrandom_distribution=pareto:0.2", 8 << 30),
        ("normal:20, 4k of 8 GiB", "rw=randread\nrandom_distribution=normal:20", 8 << 30),
        ("zoned, 4k of 8 GiB", "rw=randread\nrandom_distribution=zoned:60/10:30/20:10/70", 8 << 30),
        ("bssplit with map, 4k and 16k of 8 GiB", "rw=randread\nbssplit=4k/50:16k/50", 8 << 30),
    ];
    for (name, options, length) in cases {
        let text = format!("[j]\nioengine=null\nfilename=/x\nsize={length}\n{options}\n");
        let jobs = jobfile::parse_text(&text, None, &[])?;
        let target =
            Target { path: PathBuf::from("/x"), kind: TargetKind::None, begin: 0, length, device: None };
        let mut source = IoSource::new(&jobs.jobs[0], 0, &[target], 1)?;
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let began = cpu_time();
            for _ in 0..CALLS {
                if black_box(source.next()) == NextIo::End {
                    source.restart();
                }
            }
            best = best.min((cpu_time() - began) as f64 / f64::from(CALLS));
        }
        println!("{best:7.2} ns  {name}");
    }
    Ok(())
}
