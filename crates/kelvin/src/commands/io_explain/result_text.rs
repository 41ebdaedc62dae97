//! One result in words: what was asked, what the figures mean, what speaks against them.

use std::fmt::Write as _;

use kelvin_report::figure::significant;
use kelvin_storage::output::read::{IoResult, JobResult, LineResult, ParsedStream, TimesResult};

use super::options::{ExplainedOptions, bytes};
use crate::out;

/// A median below this was not read from flash: the fastest devices take about 7 µs, and the kernel its part.
const FASTEST_MEDIA: f64 = 5_000.0;

/// From here on a worker's CPU was busy all the time.
const BUSY: f64 = 90.0;

pub(super) fn write_result(text: &mut String, name: &str, parsed: &ParsedStream, width: usize) {
    // What is written to a String cannot fail.
    let _ = writeln!(text, "{name}");
    for stray in &parsed.stray {
        let lines = if stray.lines == 1 {
            format!("line {} is no JSON and was left out", stray.line)
        } else {
            format!("lines {} to {} are no JSON and were left out", stray.line, stray.line + stray.lines - 1)
        };
        point(text, width, "stray", &format!("{lines}: {:?}", short(&stray.text)));
    }
    if parsed.results.len() > 1 {
        let words = format!(
            "{} results in one stream, as --status-interval writes them, each from the beginning on: the last one is told",
            parsed.results.len()
        );
        point(text, width, "dumps", &words);
    }
    let Some(result) = parsed.results.last() else { return };
    let jobs = result.jobs.len();
    let _ = writeln!(
        text,
        "  by {}, {}",
        if result.version.is_empty() { "an unknown version" } else { &result.version },
        if jobs == 1 { "1 job".into() } else { format!("{jobs} jobs or groups") }
    );
    for job in &result.jobs {
        one(text, result, job, width);
    }
    together(text, result, width);
    text.push('\n');
}

fn short(text: &str) -> String {
    if text.chars().count() > 70 { text.chars().take(69).chain(['…']).collect() } else { text.into() }
}

/// A paragraph with its subject before it.
fn point(text: &mut String, width: usize, subject: &str, words: &str) {
    out::wrapped(text, &format!("{subject:12}{words}"), 4, 16, width);
}

/// A time in microseconds: one unit for all of them.
fn us(nanos: f64) -> String {
    format!("{} µs", significant(nanos / 1e3))
}

fn one(text: &mut String, result: &IoResult, job: &JobResult, width: usize) {
    let asked = ExplainedOptions::from_job(job, result);
    let host = job.host.as_deref().map_or_else(String::new, |host| format!(" on {host}"));
    let _ = writeln!(text, "\n  {}{host}: {}", job.name, asked.describe());
    if job.error != 0 && job.errors == 0 {
        let words =
            format!("ended with error {} before its time: the figures are of what came before it", job.error);
        point(text, width, "error", &words);
    }
    if job.errors > 0 {
        let words = format!(
            "{} failed, the first with error {}, and the job went on; they are in no figure of time",
            ios(job.errors),
            job.error
        );
        point(text, width, "errors", &words);
    }
    if job.lines.is_empty() {
        point(text, width, "nothing", "no I/O was done: there is nothing to explain");
        return;
    }
    for (word, line) in &job.lines {
        if line.bytes == 0 {
            point(text, width, word, &format!("{} begun, nothing moved", ios(line.ios)));
            continue;
        }
        point(text, width, word, &brought(line));
        point(text, width, "", &latencies(line, &asked));
    }
    if job.lines.iter().all(|(_, line)| line.bytes == 0) {
        return;
    }
    point(text, width, "loop", &kind_of_loop(job, &asked));
    if let Some(words) = depth(job, &asked) {
        point(text, width, "depth", &words);
    }
    point(text, width, "cpu", &cpu(job, &asked));
    for words in suspicions(result, job, &asked) {
        point(text, width, "suspicion", &words);
    }
    for words in consistency(job) {
        point(text, width, "check", &words);
    }
    if let Some(kelvin) = &job.kelvin {
        if kelvin.targets.len() > 1 {
            for target in &kelvin.targets {
                let lines: Vec<String> = target
                    .lines
                    .iter()
                    .map(|(word, iops, rate, mean)| {
                        format!(
                            "{word} {} IOPS, {} MB/s, mean {}",
                            significant(*iops),
                            significant(rate / 1e6),
                            us(*mean)
                        )
                    })
                    .collect();
                let depth =
                    target.depth.map_or_else(String::new, |depth| format!(", depth {}", significant(depth)));
                point(text, width, "target", &format!("{}: {}{depth}", target.path, lines.join("; ")));
            }
        }
        for note in &kelvin.notes {
            point(text, width, "note", note);
        }
    }
    let missing = missing(job, &asked);
    if !missing.is_empty() {
        point(text, width, "to trust it", &format!("missing: {}", missing.join("; ")));
    }
}

/// "1 I/O", "8 I/Os".
fn ios(count: u64) -> String {
    format!("{} I/O{}", significant(count as f64), if count == 1 { "" } else { "s" })
}

/// I/Os, rate and size in the same units everywhere.
fn brought(line: &LineResult) -> String {
    let mean = line.bytes as f64 / line.ios.max(1) as f64;
    format!(
        "{} IOPS, {} MB/s ({} MiB/s): {} of {} KiB in the mean, {} MB in {} s",
        significant(line.iops),
        significant(line.bandwidth / 1e6),
        significant(line.bandwidth / f64::from(1 << 20)),
        ios(line.ios),
        significant(mean / 1024.0),
        significant(line.bytes as f64 / 1e6),
        significant(line.runtime as f64 / 1e3),
    )
}

/// The times that say most: total where there are, else completion.
pub(super) fn times(line: &LineResult) -> &TimesResult {
    if line.total.count > 0 { &line.total } else { &line.completion }
}

fn latencies(line: &LineResult, asked: &ExplainedOptions<'_>) -> String {
    let completion = &line.completion;
    if completion.count == 0 && line.total.count == 0 {
        return "latencies were not taken (gtod_reduce or disable_*)".into();
    }
    let mut words = if completion.count > 0 {
        let shown: Vec<String> = [50.0, 99.0, 99.9]
            .into_iter()
            .map(|percent| {
                let value = completion.percentile(percent).map_or_else(|| "–".into(), us);
                format!("p{percent} {value}")
            })
            .collect();
        format!(
            "completion: mean {}, {}, max {}",
            us(completion.mean),
            shown.join(", "),
            us(completion.greatest)
        )
    } else {
        format!("total: mean {}, max {}", us(line.total.mean), us(line.total.greatest))
    };
    let submission = &line.submission;
    if submission.count > 0 && line.total.count > 0 {
        let share = submission.mean / line.total.mean.max(1.0) * 100.0;
        let _ = write!(
            words,
            "; submission: mean {} ({} % of the total)",
            us(submission.mean),
            significant(share.round())
        );
        if asked.waits_in_submission() {
            words.push_str(
                ". Through the page cache libaio does an I/O while it is handed over: the submission is what it took, the \
                 completion is waiting for the others of the batch",
            );
        } else if share > 40.0 {
            words.push_str(
                ". The call that hands I/O over waits for it: it is not asynchronous here, and completion times leave out \
                 most of what an I/O took. Read the total times",
            );
        }
    } else if !asked.is_asynchronous() {
        words.push_str("; the engine does an I/O within its call, so that completion is all of it");
    }
    if completion.count > 0 && completion.percentiles.is_empty() {
        words.push_str("; percentiles were not asked for");
    }
    words
}

fn kind_of_loop(job: &JobResult, asked: &ExplainedOptions<'_>) -> String {
    let iops: f64 = job.lines.iter().map(|(_, line)| line.iops).sum();
    let mut words = match (&asked.rate, asked.think) {
        (Some((unit, value)), _) => {
            let reached = if *unit == "I/Os a second" {
                format!("{} IOPS", significant(iops))
            } else {
                let rate: f64 = job.lines.iter().map(|(_, line)| line.bandwidth).sum();
                format!("{} bytes a second", significant(rate))
            };
            let open = job.option(&["rate_process"]).is_some_and(|process| process.trim() == "poisson");
            format!(
                "limited to {} {unit} for each worker and direction{}; {reached} were reached. The figures tell how that \
                 rate is served, not what the device can do",
                by_direction(value),
                if open { ", with exponential gaps" } else { "" }
            )
        }
        (None, Some(think)) => {
            format!("closed, with a pause of {think} (thinktime): the pause limits the rate, not the device alone")
        }
        (None, None) => "closed: a worker starts the next I/O when one ends, so that a slower device is asked less; latency and \
             IOPS are two sides of one figure"
            .into(),
    };
    let responses = job.kelvin.as_ref().is_some_and(|kelvin| !kelvin.responses.is_empty());
    if asked.rate.is_some() || responses {
        match job.kelvin.as_ref().and_then(|kelvin| kelvin.responses.first()) {
            Some((_, response)) => {
                let _ = write!(
                    words,
                    ". From the intended start an I/O took {} in the mean{}",
                    us(response.mean),
                    response.percentile(99.0).map_or_else(String::new, |late| format!(", p99 {}", us(late)))
                );
            }
            None => words.push_str(
                ". Times are from the submission, not from the intended start: what waited for its turn is not in them",
            ),
        }
    }
    words
}

/// I/Os under way in the mean, by Little's law.
pub(super) fn reached(job: &JobResult) -> Option<f64> {
    if let Some(depth) = job.kelvin.as_ref().and_then(|kelvin| kelvin.depth) {
        return Some(depth);
    }
    let known: Vec<f64> = job
        .lines
        .iter()
        .filter(|(_, line)| times(line).count > 0)
        .map(|(_, line)| line.iops * times(line).mean / 1e9)
        .collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

/// Whether about as many I/Os were under way as were asked for.
fn is_full(job: &JobResult, asked: &ExplainedOptions<'_>) -> bool {
    let all = asked.depth.map_or(0, |depth| depth * asked.workers);
    reached(job).is_some_and(|reached| reached >= all as f64 * 0.7)
}

fn depth(job: &JobResult, asked: &ExplainedOptions<'_>) -> Option<String> {
    let reached = reached(job)?;
    let per_worker = asked.depth?;
    let all = per_worker * asked.workers;
    let mut words =
        format!("{} I/Os under way in the mean (IOPS × mean time) of {all} asked for", significant(reached));
    if per_worker > 1 && !asked.is_asynchronous() {
        let _ = write!(words, ": iodepth has no effect with {}, which does one I/O at a time", asked.engine);
    } else if !is_full(job, asked) && asked.rate.is_none() && asked.think.is_none() {
        words.push_str(
            ": the worker did not keep the queue full, so that this is not the device at that depth",
        );
    }
    Some(words)
}

fn cpu(job: &JobResult, asked: &ExplainedOptions<'_>) -> String {
    let (user, system) = job.cpu;
    let busy = user + system;
    let ios: u64 = job.lines.iter().map(|(_, line)| line.ios).sum();
    let mut words = format!("{} % user, {} % system of a CPU", significant(user), significant(system));
    if ios > 0 && job.runtime > 0 {
        let each = busy / 100.0 * job.runtime as f64 * 1e3 / ios as f64;
        let _ = write!(words, ", {} µs an I/O", significant(each));
    }
    let _ =
        write!(words, ", {} context switches an I/O", significant(job.switches as f64 / ios.max(1) as f64));
    let workers = asked.workers.max(1);
    if busy >= BUSY {
        words.push_str(". The generator was the limit: the device may do more");
    } else if busy < 60.0
        && asked.direct
        && job.runtime >= 500
        && asked.rate.is_none()
        && asked.think.is_none()
    {
        words.push_str(". The generator had CPU left: the device, or its queue, was the limit");
    }
    if let Some((kelvin, delay)) = job.kelvin.as_ref().and_then(|kelvin| Some((kelvin, kelvin.run_delay?))) {
        // Results of versions that do not say over how long it was counted.
        let counted = if kelvin.counted > 0 { kelvin.counted } else { job.runtime.max(1) * 1_000_000 };
        let share = delay as f64 / counted as f64 * 100.0;
        if share > 5.0 {
            let _ = write!(words, ". Workers waited {} % of the time for a CPU", significant(share));
        }
    }
    if workers > 1 {
        words.push_str(" (percentages are means over the workers)");
    }
    words
}

fn suspicions(result: &IoResult, job: &JobResult, asked: &ExplainedOptions<'_>) -> Vec<String> {
    let mut found = Vec::new();
    if asked.engine == "null" {
        found.push("the null engine does nothing: these are the generator's own costs".into());
        return found;
    }
    for (word, line) in job.lines.iter().filter(|(_, line)| line.bytes > 0) {
        let median = if asked.waits_in_submission() {
            line.submission.mean
        } else {
            line.completion.percentile(50.0).unwrap_or(times(line).mean)
        };
        let block = line.bytes as f64 / line.ios.max(1) as f64;
        // A large block takes its time in memory too: 10 GB/s.
        if times(line).count > 0 && median < FASTEST_MEDIA + block / 10.0 {
            let why = match (word.as_str(), asked.direct) {
                ("trim", _) => continue,
                (_, false) => {
                    "they ended in the page cache. Take direct=1, or a size of several times the memory"
                }
                ("read", true) => {
                    "no medium answers so fast: holes, blocks never written, or a cache of the host or the controller"
                }
                (_, true) => "no medium is so fast: a cache of the host or the controller took them",
            };
            found.push(if asked.waits_in_submission() {
                format!("a {word} took {} in the mean: {why}", us(median))
            } else {
                format!("half of the {word} I/Os took {} or less: {why}", us(median))
            });
        }
    }
    // Shorter runs end before the kernel's counters are brought up to date.
    let ios = |wanted: &str| -> u64 {
        job.lines.iter().filter(|(word, _)| word == wanted).map(|(_, line)| line.ios).sum()
    };
    if result.jobs.len() == 1 && job.elapsed >= 3 && !result.disks.is_empty() {
        let done = |figure: fn(&kelvin_storage::output::read::DiskResult) -> u64| -> u64 {
            result.disks.iter().map(figure).sum()
        };
        let pairs = [
            ("read", ios("read"), done(|disk| disk.reads + disk.merges.0)),
            ("write", ios("write"), done(|disk| disk.writes + disk.merges.1)),
        ];
        for (word, asked, did) in pairs {
            if asked > 1000 && (did as f64) < asked as f64 * 0.5 {
                found.push(format!(
                    "the disks did {} {word}s for the job's {}: the rest never reached them",
                    significant(did as f64),
                    significant(asked as f64)
                ));
            }
        }
    }
    found
}

/// Figures that should agree with each other.
fn consistency(job: &JobResult) -> Vec<String> {
    let mut found = Vec::new();
    let fixed = job.option(&["bs", "blocksize"]).and_then(bytes);
    for (word, line) in &job.lines {
        let mean = line.bytes as f64 / line.ios.max(1) as f64;
        if let Some(size) = fixed
            && word != "mixed"
            && (mean - size as f64).abs() > size as f64 * 0.01
            && line.short == 0
        {
            found.push(format!(
                "{word}: bytes by I/Os are {} KiB, not the {} KiB of bs",
                significant(mean / 1024.0),
                significant(size as f64 / 1024.0)
            ));
        }
        let derived = line.iops * mean;
        if line.bandwidth > 0.0 && (derived / line.bandwidth - 1.0).abs() > 0.02 {
            found.push(format!(
                "{word}: IOPS × mean size is {} MB/s, the bandwidth given is {} MB/s",
                significant(derived / 1e6),
                significant(line.bandwidth / 1e6)
            ));
        }
        let (mean, deviation, count) = line.iops_samples;
        if count > 1 && line.iops > 0.0 && (mean / line.iops - 1.0).abs() > 0.05 {
            found.push(format!(
                "{word}: the mean of the samples ({} IOPS) is not the mean of the run ({}): samples cover the whole run only \
                 roughly; take the run's",
                significant(mean),
                significant(line.iops)
            ));
        }
        if count > 2 && mean > 0.0 && deviation / mean > 0.2 {
            found.push(format!(
                "{word}: IOPS varied by {} % from sample to sample: the mean hides a course",
                significant((deviation / mean * 100.0).round())
            ));
        }
        if line.short > 0 || line.dropped > 0 {
            found.push(format!("{word}: {} I/Os were short, {} given up", line.short, line.dropped));
        }
    }
    let runtimes: Vec<u64> =
        job.lines.iter().map(|(_, line)| line.runtime).filter(|time| *time > 0).collect();
    if let (Some(least), Some(most)) = (runtimes.iter().min(), runtimes.iter().max())
        && (*most as f64) > *least as f64 * 1.1
    {
        found.push(format!(
            "directions ran {} and {} s: each rate is over its own time, their sum is of no time",
            significant(*least as f64 / 1e3),
            significant(*most as f64 / 1e3)
        ));
    }
    found
}

fn missing(job: &JobResult, asked: &ExplainedOptions<'_>) -> Vec<String> {
    let mut missing = Vec::new();
    let longest = job.lines.iter().map(|(_, line)| line.runtime).max().unwrap_or(0);
    if job.kelvin.as_ref().is_some_and(|kelvin| kelvin.partial) {
        missing.push("the end of the run".into());
    }
    if longest < 10_000 && job.error == 0 {
        missing.push(format!("time: {} s say little of a device", significant(longest as f64 / 1e3)));
    }
    for (word, line) in &job.lines {
        let few = line
            .completion
            .percentiles
            .iter()
            .find(|(percent, _)| *percent >= 99.0 && line.completion.percentile(*percent).is_none());
        if let Some((percent, _)) = few {
            missing.push(format!("more {word} I/Os: fewer than ten lie beyond p{percent}"));
        }
    }
    if job.option(&["ramp_time"]).is_none() && job.steady.is_none() {
        missing.push("a ramp_time, or a steady state".into());
    }
    if job.steady == Some(false) {
        missing.push("the steady state that was waited for".into());
    }
    let writes = job.lines.iter().any(|(word, _)| word == "write" || word == "mixed");
    let synced = job.syncs.count > 0
        || ["fsync", "fdatasync", "end_fsync", "sync", "sync_file_range", "fsync_on_close"]
            .iter()
            .any(|option| job.option(&[*option]).is_some_and(|value| value.trim() != "0"));
    if writes && !asked.direct && !synced {
        missing.push("a sync: buffered writes end in memory (end_fsync=1)".into());
    }
    let reads = job.lines.iter().any(|(word, _)| word == "read" || word == "mixed");
    if reads && asked.engine != "null" && job.kelvin.is_none() {
        missing.push("whether the blocks read were ever written: fio does not look".into());
    }
    missing.push("repeats: one run has no spread".into());
    missing
}

/// What concerns several jobs of one result.
fn together(text: &mut String, result: &IoResult, width: usize) {
    let mut groups: Vec<u64> = result.jobs.iter().map(|job| job.group).collect();
    groups.dedup();
    for group in groups {
        let members: Vec<&JobResult> = result.jobs.iter().filter(|job| job.group == group).collect();
        let runtimes: Vec<u64> = members
            .iter()
            .flat_map(|job| &job.lines)
            .map(|(_, line)| line.runtime)
            .filter(|t| *t > 0)
            .collect();
        if members.len() < 2 {
            continue;
        }
        if let (Some(least), Some(most)) = (runtimes.iter().min(), runtimes.iter().max())
            && (*most as f64) > *least as f64 * 1.1
        {
            let words = format!(
                "the jobs of group {group} ran {} to {} s: while the longer ones went on alone, they had the device for \
                 themselves, and the sum of the rates was never reached",
                significant(*least as f64 / 1e3),
                significant(*most as f64 / 1e3)
            );
            text.push('\n');
            point(text, width, "together", &words);
        }
    }
}

/// "500,200" as "500 (reads), 200 (writes)".
fn by_direction(value: &str) -> String {
    if !value.contains(',') {
        return value.to_owned();
    }
    let named = value.split(',').zip(["reads", "writes", "trims"]).filter(|(part, _)| !part.is_empty());
    named.map(|(part, of)| format!("{part} ({of})")).collect::<Vec<_>>().join(", ")
}
