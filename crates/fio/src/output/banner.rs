//! What is said before a run: what each job will do.

use kelvin_measure::text::count;
use std::fmt::Write as _;

use super::VERSION;
use super::unit::{Unit, scaled};
use crate::job::{Job, Jobs, Pattern};
use crate::{Direction, PerDirection};

/// A line for each job, then the version, as fio prints them before it begins.
pub fn banner(jobs: &Jobs) -> String {
    let mut text = String::new();
    // Groups are separated here as when they run: by stonewalls and by `new_group`.
    let mut group = 0;
    for (number, job) in jobs.jobs.iter().enumerate() {
        if number > 0 && (job.course.stonewall || job.course.new_group) {
            group += 1;
        }
        // What is written to a String cannot fail.
        let _ = writeln!(
            text,
            "{}: (g={group}): rw={}, bs={}, ioengine={}, iodepth={}",
            job.name,
            pattern_word(&job.pattern),
            block_sizes(job),
            job.engine.given,
            job.depth.depth
        );
        if job.clones > 1 {
            text.push_str("...\n");
        }
    }
    let _ = writeln!(text, "{VERSION}");
    text
}

/// "Starting 4 threads": workers are always threads.
pub fn starting(jobs: &Jobs) -> String {
    let workers: u64 = jobs.jobs.iter().map(|job| u64::from(job.clones)).sum();
    format!("Starting {}\n", count(workers, "thread"))
}

/// `rw=` as fio writes it.
pub(super) fn pattern_word(pattern: &Pattern) -> String {
    let mix = match (pattern.reads, pattern.writes, pattern.trims) {
        _ if pattern.trim_then_write => "trimwrite",
        (true, true, _) => "rw",
        (_, true, true) => "trimwrite",
        (true, false, _) => "read",
        (false, true, _) => "write",
        (false, false, _) => "trim",
    };
    format!("{}{mix}", if pattern.random { "rand" } else { "" })
}

/// The smallest and the largest block of each direction.
fn block_sizes(job: &Job) -> String {
    let size = |bytes: u32| scaled(f64::from(bytes), 4, true, Unit::Bytes);
    let marks = PerDirection(["(R)", "(W)", "(T)"]);
    let parts: Vec<String> = Direction::ALL
        .into_iter()
        .map(|direction| {
            let sizes = &job.blocks.sizes[direction];
            format!("{} {}-{}", marks[direction], size(sizes.smallest()), size(sizes.largest()))
        })
        .collect();
    parts.join(", ")
}
