//! Describes a job in a sentence.

use kelvin_measure::text::binary;
use kelvin_storage::Direction;
use kelvin_storage::job::{BlockSizes, Distribution, Job, RateProcess};

/// A description such as "random reads of 4 KiB, direct, io_uring, depth 32 for each of 4 workers, closed
/// loop". `targets` is the number of files and devices of a worker.
pub(crate) fn describe_job(job: &Job, targets: usize) -> String {
    // The trace determines the sizes of its I/Os.
    let mut parts = match &job.replay {
        Some(_) => vec!["I/Os of a trace".to_owned()],
        None => vec![format!("{} of {}", pattern(job), sizes(job))],
    };
    parts.push(if job.sync.direct { "direct".into() } else { "through the page cache".to_owned() });
    let given = &job.engine.given;
    let word = job.engine.name.word();
    parts.push(if given.is_empty() || given == word {
        word.to_owned()
    } else {
        format!("{given} (as {word})")
    });
    parts.push(depth(job, targets));
    parts.push(pace(job));
    parts.join(", ")
}

fn pattern(job: &Job) -> String {
    let of = &job.pattern;
    let order = if !of.random {
        "sequential"
    } else if of.distribution.0.iter().any(|one| *one != Distribution::Uniform) {
        "skewed random"
    } else {
        "random"
    };
    let names: Vec<&str> = Direction::ALL
        .into_iter()
        .filter(|direction| of.has(*direction))
        .map(|direction| match direction {
            Direction::Read => "reads",
            Direction::Write => "writes",
            Direction::Trim => "trims",
        })
        .collect();
    let mix = if of.reads && of.writes { format!(" ({} % reads)", of.mix_read) } else { String::new() };
    format!("{order} {}{mix}", names.join(" and "))
}

fn sizes(job: &Job) -> String {
    let used = Direction::ALL.into_iter().filter(|direction| job.pattern.has(*direction));
    let mut words: Vec<String> = Vec::new();
    for direction in used {
        let word = match &job.blocks.sizes[direction] {
            BlockSizes::One(size) => binary(u64::from(*size)),
            sizes => {
                format!("{} to {}", binary(u64::from(sizes.smallest())), binary(u64::from(sizes.largest())))
            }
        };
        if words.last() != Some(&word) {
            words.push(word);
        }
    }
    words.join(" and ")
}

fn depth(job: &Job, targets: usize) -> String {
    let depth = if job.engine.name.is_asynchronous() { job.depth.depth } else { 1 };
    let each = if job.clones > 1 { format!(" for each of {} workers", job.clones) } else { String::new() };
    let shared = if targets > 1 && depth > 1 {
        format!(" shared by {targets} targets ({:.1} each)", f64::from(depth) / targets as f64)
    } else {
        String::new()
    };
    format!("depth {depth}{shared}{each}")
}

fn pace(job: &Job) -> String {
    if !job.rate.limits() {
        if job.is_open_loop() {
            return "open loop: at the times recorded in the trace".into();
        }
        let think = if job.thinking.is_some() { " with think time" } else { "" };
        return format!("closed loop{think}");
    }
    let process = match job.rate.process {
        RateProcess::Linear => "evenly",
        RateProcess::Poisson => "with random gaps",
    };
    let each = if job.clones > 1 { " for each worker" } else { "" };
    let mut limits = Vec::new();
    for direction in Direction::ALL.into_iter().filter(|direction| job.pattern.has(*direction)) {
        if let Some(ios) = job.rate.iops[direction] {
            limits.push(format!("{ios} {direction}s/s"));
        }
        if let Some(rate) = job.rate.bytes[direction] {
            limits.push(format!("{direction} {}/s", binary(rate)));
        }
    }
    format!("open loop: {}{each}, {process}", limits.join(" and "))
}
