//! Explains one result: what was requested, what the metrics mean, and what makes them doubtful.

use std::fmt::Write as _;

use kelvin_measure::text::{cut, plural, significant};
use kelvin_storage::output::read::{IoResult, JobResult, LineResult, ParsedStream, TimesResult};

use super::options::{ExplainedOptions, bytes};
use crate::out;

/// A lower median, in ns, was not read from flash: the fastest devices take about 7 µs, plus the kernel's
/// time.
const FASTEST_MEDIA: f64 = 5_000.0;

/// Percentage of CPU time from which a worker's CPU counts as always busy.
const BUSY: f64 = 90.0;

pub(super) fn write_result(text: &mut String, name: &str, parsed: &ParsedStream, width: usize) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{name}");
    for stray in &parsed.stray {
        let lines = if stray.lines == 1 {
            format!("line {} is not JSON and was skipped", stray.line)
        } else {
            format!("lines {} to {} are not JSON and were skipped", stray.line, stray.line + stray.lines - 1)
        };
        point(text, width, "stray", &format!("{lines}: {:?}", cut(&stray.text, 70)));
    }
    if parsed.results.len() > 1 {
        let words = format!(
            "{} cumulative results in one stream, as --status-interval writes them: the last one is \
             explained",
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
    write_job_groups(text, result, width);
    text.push('\n');
}

/// A paragraph that begins with its subject.
fn point(text: &mut String, width: usize, subject: &str, words: &str) {
    out::wrapped(text, &format!("{subject:12}{words}"), 4, 16, width);
}

/// A time in microseconds, the only unit of the text.
fn us(nanos: f64) -> String {
    format!("{} µs", significant(nanos / 1e3))
}

fn one(text: &mut String, result: &IoResult, job: &JobResult, width: usize) {
    let asked = ExplainedOptions::from_job(job, result);
    let host = job.host.as_deref().map_or_else(String::new, |host| format!(" on {host}"));
    let _ = writeln!(text, "\n  {}{host}: {}", job.name, asked.describe());
    if job.error != 0 && job.errors == 0 {
        let words = format!("ended early with error {}: the results cover the time before it", job.error);
        point(text, width, "error", &words);
    }
    if job.errors > 0 {
        let words = format!(
            "{} failed, the first with error {}, and the job continued; their times are not counted",
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
            point(text, width, word, &format!("{} started, no data transferred", ios(line.ios)));
            continue;
        }
        point(text, width, word, &describe_amounts(line));
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
        point(text, width, "missing", &missing.join("; "));
    }
}

/// "1 I/O", "8 I/Os".
fn ios(count: u64) -> String {
    format!("{} I/O{}", significant(count as f64), plural(count, "", "s"))
}

/// Number, rate and size of the I/Os, always in the same units.
fn describe_amounts(line: &LineResult) -> String {
    let mean = line.bytes as f64 / line.ios.max(1) as f64;
    format!(
        "{} IOPS, {} MB/s ({} MiB/s): {} of {} KiB on average, {} MB in {} s",
        significant(line.iops),
        significant(line.bandwidth / 1e6),
        significant(line.bandwidth / f64::from(1 << 20)),
        ios(line.ios),
        significant(mean / 1024.0),
        significant(line.bytes as f64 / 1e6),
        significant(line.runtime as f64 / 1e3),
    )
}

/// The most informative times: total times if available, otherwise completion times.
pub(super) fn times(line: &LineResult) -> &TimesResult {
    if line.total.count > 0 { &line.total } else { &line.completion }
}

fn latencies(line: &LineResult, asked: &ExplainedOptions<'_>) -> String {
    let completion = &line.completion;
    if completion.count == 0 && line.total.count == 0 {
        return "latencies were not measured (gtod_reduce or disable_*)".into();
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
                ". Through the page cache libaio does an I/O during its submission: the submission time is \
                 its duration, the completion time is the wait for the rest of the batch",
            );
        } else if share > 40.0 {
            words.push_str(
                ". The submission call waits for the I/O: it is not asynchronous here, and completion times \
                 omit most of the duration of an I/O. Use the total times",
            );
        }
    } else if !asked.is_asynchronous() {
        words.push_str("; the engine is synchronous, so the completion time is the total time");
    }
    if completion.count > 0 && completion.percentiles.is_empty() {
        words.push_str("; percentiles were not requested");
    }
    words
}

fn kind_of_loop(job: &JobResult, asked: &ExplainedOptions<'_>) -> String {
    let iops: f64 = job.lines.iter().map(|(_, line)| line.iops).sum();
    let mut words = match (&asked.rate, asked.think) {
        (Some((unit, value)), _) => {
            let reached = if *unit == "I/Os per second" {
                format!("{} IOPS", significant(iops))
            } else {
                let rate: f64 = job.lines.iter().map(|(_, line)| line.bandwidth).sum();
                format!("{} bytes per second", significant(rate))
            };
            let open = job.option(&["rate_process"]).is_some_and(|process| process.trim() == "poisson");
            format!(
                "limited to {} {unit} for each worker and direction{}; {reached} were reached. The results \
                 show how that rate is served, not what the device can do",
                by_direction(value),
                if open { ", with exponential gaps" } else { "" }
            )
        }
        (None, Some(think)) => {
            format!(
                "closed, with a pause of {think} (thinktime): the pause limits the rate, not the device alone"
            )
        }
        (None, None) => "closed: a worker starts the next I/O when one ends, so a slower device receives \
             fewer; IOPS and latency determine each other"
            .into(),
    };
    let responses = job.kelvin.as_ref().is_some_and(|kelvin| !kelvin.responses.is_empty());
    if asked.rate.is_some() || responses {
        match job.kelvin.as_ref().and_then(|kelvin| kelvin.responses.first()) {
            Some((_, response)) => {
                let _ = write!(
                    words,
                    ". From the scheduled start an I/O took {} on average{}",
                    us(response.mean),
                    response.percentile(99.0).map_or_else(String::new, |late| format!(", p99 {}", us(late)))
                );
            }
            None => words.push_str(
                ". Times start at the submission, not at the scheduled start: waiting before the submission \
                 is not included",
            ),
        }
    }
    words
}

/// Mean number of I/Os in flight, by Little's law.
pub(super) fn mean_depth(job: &JobResult) -> Option<f64> {
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

/// Whether about as many I/Os were in flight as requested.
fn is_full(job: &JobResult, asked: &ExplainedOptions<'_>) -> bool {
    let all = asked.depth.map_or(0, |depth| depth * asked.workers);
    mean_depth(job).is_some_and(|reached| reached >= all as f64 * 0.7)
}

fn depth(job: &JobResult, asked: &ExplainedOptions<'_>) -> Option<String> {
    let reached = mean_depth(job)?;
    let per_worker = asked.depth?;
    let all = per_worker * asked.workers;
    let mut words =
        format!("{} I/Os in flight on average (IOPS × mean time) of {all} requested", significant(reached));
    if per_worker > 1 && !asked.is_asynchronous() {
        let _ = write!(words, ": iodepth has no effect with {}, which does one I/O at a time", asked.engine);
    } else if !is_full(job, asked) && asked.rate.is_none() && asked.think.is_none() {
        words.push_str(
            ": the worker did not keep the queue full, so this does not show the device at that depth",
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
        let _ = write!(words, ", {} µs per I/O", significant(each));
    }
    let _ =
        write!(words, ", {} context switches per I/O", significant(job.switches as f64 / ios.max(1) as f64));
    let workers = asked.workers.max(1);
    if busy >= BUSY {
        words.push_str(". The generator was the limit: the device may be faster");
    } else if busy < 60.0
        && asked.direct
        && job.runtime >= 500
        && asked.rate.is_none()
        && asked.think.is_none()
    {
        words.push_str(". The generator had CPU left: the device, or its queue, was the limit");
    }
    if let Some((kelvin, delay)) = job.kelvin.as_ref().and_then(|kelvin| Some((kelvin, kelvin.run_delay?))) {
        // Results of older versions do not contain the counted time.
        let counted = if kelvin.counted > 0 { kelvin.counted } else { job.runtime.max(1) * 1_000_000 };
        let share = delay as f64 / counted as f64 * 100.0;
        if share > 5.0 {
            let _ = write!(words, ". Workers waited {} % of the time for a CPU", significant(share));
        }
    }
    if workers > 1 {
        words.push_str(" (percentages are averages over the workers)");
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
        // A large block takes time in memory, too: 10 GB/s.
        if times(line).count > 0 && median < FASTEST_MEDIA + block / 10.0 {
            let why = match (word.as_str(), asked.direct) {
                ("trim", _) => continue,
                (_, false) => {
                    "they were served by the page cache. Use direct=1, or a size of several times the memory"
                }
                ("read", true) => {
                    "no medium is this fast: holes, blocks never written, or a cache in the host or the \
                     controller"
                }
                (_, true) => "no medium is this fast: a cache in the host or the controller absorbed them",
            };
            found.push(if asked.waits_in_submission() {
                format!("a {word} took {} on average: {why}", us(median))
            } else {
                format!("half of the {word} I/Os took {} or less: {why}", us(median))
            });
        }
    }
    // In shorter runs, the kernel's counters are not updated before the end.
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
                    "the disks did {} {word}s of the job's {}: the rest never reached them",
                    significant(did as f64),
                    significant(asked as f64)
                ));
            }
        }
    }
    found
}

/// Contradictions between metrics that should agree.
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
                "{word}: the mean I/O size is {} KiB, not the {} KiB of bs",
                significant(mean / 1024.0),
                significant(size as f64 / 1024.0)
            ));
        }
        let derived = line.iops * mean;
        if line.bandwidth > 0.0 && (derived / line.bandwidth - 1.0).abs() > 0.02 {
            found.push(format!(
                "{word}: IOPS × mean size is {} MB/s, the reported bandwidth is {} MB/s",
                significant(derived / 1e6),
                significant(line.bandwidth / 1e6)
            ));
        }
        let (mean, deviation, count) = line.iops_samples;
        if count > 1 && line.iops > 0.0 && (mean / line.iops - 1.0).abs() > 0.05 {
            found.push(format!(
                "{word}: the mean of the samples ({} IOPS) is not the mean of the run ({}): samples cover \
                 the run only roughly; use the mean of the run",
                significant(mean),
                significant(line.iops)
            ));
        }
        if count > 2 && mean > 0.0 && deviation / mean > 0.2 {
            found.push(format!(
                "{word}: IOPS varied by {} % from sample to sample: the mean hides variation over time",
                significant((deviation / mean * 100.0).round())
            ));
        }
        if line.short > 0 || line.dropped > 0 {
            found.push(format!("{word}: {} short I/Os, {} dropped", line.short, line.dropped));
        }
    }
    let runtimes: Vec<u64> =
        job.lines.iter().map(|(_, line)| line.runtime).filter(|time| *time > 0).collect();
    if let (Some(least), Some(most)) = (runtimes.iter().min(), runtimes.iter().max())
        && (*most as f64) > *least as f64 * 1.1
    {
        found.push(format!(
            "directions ran for {} and {} s: each rate covers only its own time, so their sum was never \
             reached",
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
        missing.push(format!("time: {} s is too short to judge a device", significant(longest as f64 / 1e3)));
    }
    for (word, line) in &job.lines {
        let few = line
            .completion
            .percentiles
            .iter()
            .find(|(percent, _)| *percent >= 99.0 && line.completion.percentile(*percent).is_none());
        if let Some((percent, _)) = few {
            missing.push(format!("more {word} I/Os: fewer than ten exceed p{percent}"));
        }
    }
    if job.option(&["ramp_time"]).is_none() && job.steady.is_none() {
        missing.push("a ramp_time, or a steady state".into());
    }
    if job.steady == Some(false) {
        missing.push("the requested steady state".into());
    }
    let writes = job.lines.iter().any(|(word, _)| word == "write" || word == "mixed");
    let synced = job.syncs.count > 0
        || ["fsync", "fdatasync", "end_fsync", "sync", "sync_file_range", "fsync_on_close"]
            .iter()
            .any(|option| job.option(&[*option]).is_some_and(|value| value.trim() != "0"));
    if writes && !asked.direct && !synced {
        missing.push("a sync: buffered writes stay in memory (end_fsync=1)".into());
    }
    let reads = job.lines.iter().any(|(word, _)| word == "read" || word == "mixed");
    if reads && asked.engine != "null" && job.kelvin.is_none() {
        missing.push("a check that the blocks read had ever been written: fio does not do it".into());
    }
    missing.push("repeats: a single run shows no variation".into());
    missing
}

/// Remarks on several jobs of one result.
fn write_job_groups(text: &mut String, result: &IoResult, width: usize) {
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
                "the jobs of group {group} ran for {} to {} s: the longer ones then had the device to \
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
