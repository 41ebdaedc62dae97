//! Streams as a job file, and as iologs.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use kelvin_measure::Nanos;
use kelvin_measure::text::{percent, three_figures};
use kelvin_storage::stream::replay::IologWriter;
use kelvin_storage::{Direction, Io, SyncCall};

use super::pattern::pattern;
use super::{StreamJob, TraceJobs};
use crate::stream::{ArrivalCategory, Profile, mean_depth};
use crate::{Operation, Request};

/// Below this rate a second a stream's requests are paced by the time between them.
const SLOW: f64 = 20.0;
/// Phases of a bursty stream.
const MOST_PHASES: usize = 24;
/// From this share of requests on that came at once with the one before, a stream comes in batches.
const BATCHED: f64 = 0.3;
/// With this share of bytes in runs and more a stream does not come in batches: merged, they are few large requests.
const MOST_BATCHED: f64 = 0.5;
/// From this share on the runs among batches are a section of their own.
const LEAST_APART: f64 = 0.005;
/// Requests of a phase, on average: fewer say nothing about it.
const PHASE: usize = 100;
/// Most requests in flight.
const DEEPEST: u64 = 256;

/// How streams are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobForm {
    /// By their figures.
    Figures,
    /// By iologs beside the job file.
    Replay,
}

/// Requests that follow the one before within this time came at once: the kernel issues what it has collected in less than
/// a microsecond each, and separate calls take longer.
const AT_ONCE: Nanos = 20_000;
/// As long as this after the first at most.
const LONGEST_BATCH: Nanos = 200_000;

/// Whether each request waits for the one before, as a log's do.
fn is_one_by_one(profile: &Profile) -> bool {
    profile.depth.is_some_and(|depth| depth.p99 == 0)
}

/// When each request is part of a batch that was issued at once, the time of its first.
fn batch_times(requests: &[Request]) -> impl Iterator<Item = Nanos> {
    let (mut first, mut last) = (None::<Nanos>, 0);
    requests.iter().map(move |request| {
        let begin = first.filter(|begin| {
            request.at.saturating_sub(last) <= AT_ONCE && request.at.saturating_sub(*begin) <= LONGEST_BATCH
        });
        last = request.at;
        *first.insert(begin.unwrap_or(request.at))
    })
}

/// The name of a stream's iolog.
pub fn iolog_name(stream: &StreamJob) -> String {
    format!("{}.iolog", stream.job_name())
}

/// The job file of streams, with a comment that says where they are from.
pub fn job_file(jobs: &TraceJobs, form: JobForm, origin: &str) -> String {
    let seconds = jobs.lasts.div_ceil(1_000_000_000);
    let mut text = format!(
        "; made by kelvin trace to-fio from {}\n[global]\nioengine=libaio\ndirect=1\nthread=1\n",
        origin.replace(['\n', '\r'], " ")
    );
    if form == JobForm::Figures {
        let _ = writeln!(text, "time_based=1\nruntime={seconds}s\nnorandommap=1");
    }
    for stream in &jobs.streams {
        let _ = writeln!(text, "\n; {}", stream.profile.category.evidence);
        match form {
            JobForm::Figures => figures(&mut text, stream, jobs.lasts),
            JobForm::Replay => replay(&mut text, stream),
        }
    }
    text
}

/// The beginning of a stream's section.
fn section(text: &mut String, name: &str, stream: &StreamJob) {
    let _ = writeln!(text, "[{name}]\nfilename={}\nsize={}", stream.file_name(), stream.file_bytes);
}

fn replay(text: &mut String, stream: &StreamJob) {
    section(text, &stream.job_name(), stream);
    let (log, file) = (iolog_name(stream), stream.file_name());
    // No deeper than the trace was, also on a slower device: there the rest of a burst waits, as writes back do.
    let deepest = stream.profile.depth.map_or(DEEPEST, |depth| (depth.max + 1).min(DEEPEST));
    let depth = if is_one_by_one(&stream.profile) { 1 } else { deepest };
    let _ = writeln!(text, "read_iolog={log}\nreplay_redirect={file}\niodepth={depth}");
    if depth > 1 {
        // What came at once is handed over in one call.
        let _ = writeln!(text, "iodepth_batch={depth}\niodepth_batch_complete_min=1");
    }
    let way = if stream.operation == Operation::Read { "randread" } else { "randwrite" };
    let _ = writeln!(text, "rw={way}");
}

/// A section for the stream, or one for each of its phases.
fn figures(text: &mut String, stream: &StreamJob, lasts: Nanos) {
    let phases = phases(stream, lasts);
    let sequential = stream.profile.sequence.sequential;
    let batches: Vec<Option<u64>> =
        phases.iter().map(|phase| batch(phase.requests).filter(|_| sequential < MOST_BATCHED)).collect();
    // What of the stream is in runs gets a section of its own: of a batch the block layer merges adjacent requests.
    let apart = if batches.iter().any(Option::is_some) { sequential } else { 0.0 };
    let mut like = String::new();
    pattern(&mut like, stream, if apart > 0.0 { 0.0 } else { sequential });
    if phases.len() > 1 {
        let _ = writeln!(text, "; {} phases, each with the requests of its time", phases.len());
    }
    for ((number, phase), batch) in (1..).zip(&phases).zip(batches) {
        let name = if number == 1 { stream.job_name() } else { format!("{}-{number}", stream.job_name()) };
        section(text, &name, stream);
        text.push_str(&like);
        if phases.len() > 1 {
            // The number of requests ends it, and not the time.
            let count = ((phase.requests.len() as f64 * (1.0 - apart)).round() as u64).max(1);
            let bytes = count * u64::from(phase.requests.iter().map(|one| one.length).max().unwrap_or(0));
            let _ = writeln!(
                text,
                "startdelay={}ms\ntime_based=0\nio_size={bytes}\nnumber_ios={count}",
                phase.begin / 1_000_000
            );
        }
        match batch {
            Some(size) => in_batches(text, phase, size, apart),
            None => one_by_one(text, stream, phase, phases.len() > 1),
        }
    }
    if apart >= LEAST_APART {
        section(text, &format!("{}-runs", stream.job_name()), stream);
        pattern(text, stream, 1.0);
        text.push_str("iodepth=1\n");
        at_rate(text, requests_per_second(&stream.requests, lasts) * apart, 0.0, true);
    }
}

/// Requests that come by themselves, or so many times faster in bursts.
fn one_by_one(text: &mut String, stream: &StreamJob, phase: &Phase<'_>, is_part: bool) {
    let profile = &stream.profile;
    let is_paced = requests_per_second(phase.requests, phase.lasts) < SLOW
        && (is_part || profile.category.arrivals != ArrivalCategory::Bursty);
    let depth = profile.depth.map_or(32, |depth| (depth.p99 + 1).clamp(1, DEEPEST));
    let depth = if is_paced { 1 } else { depth };
    if depth == 1 && !stream.flushes.is_empty() {
        // Its flush comes when the write has ended, and the next write when the flush has.
        text.push_str("ioengine=psync\n");
    }
    let _ = writeln!(text, "iodepth={depth}");
    if !stream.flushes.is_empty() {
        let each = (stream.requests.len() as f64 / stream.flushes.len() as f64).round().max(1.0);
        let _ = writeln!(text, "fdatasync={each:.0}");
    }
    arrivals(text, profile, phase, is_part);
}

/// A part of a stream's time with a rate of its own.
#[derive(Debug, Clone, Copy)]
struct Phase<'a> {
    begin: Nanos,
    lasts: Nanos,
    requests: &'a [Request],
}

/// The times in which a bursty stream has more and less than its mean rate; the whole time for a steady one, and where there
/// would be too many.
fn phases(stream: &StreamJob, lasts: Nanos) -> Vec<Phase<'_>> {
    let whole = vec![Phase { begin: 0, lasts, requests: &stream.requests }];
    let Some(window) = stream.profile.arrivals.peak_window.map(|millis| millis * 1_000_000) else {
        return whole;
    };
    if stream.profile.category.arrivals != ArrivalCategory::Bursty || stream.flushes.len() > 1 {
        return whole;
    }
    let mean = stream.requests.len() as f64 / lasts.div_ceil(window).max(1) as f64;
    let mut found: Vec<(bool, Phase<'_>)> = Vec::new();
    let mut rest = stream.requests.as_slice();
    for begin in (0..lasts).step_by(window as usize) {
        let end = (begin + window).min(lasts);
        let count = rest.partition_point(|request| request.at < end);
        let is_high = count as f64 >= mean;
        let from = stream.requests.len() - rest.len();
        rest = &rest[count..];
        if let Some((_, phase)) = found.last_mut().filter(|(high, _)| *high == is_high) {
            phase.lasts = end - phase.begin;
            let first = from - phase.requests.len();
            phase.requests = &stream.requests[first..from + count];
        } else {
            let requests = &stream.requests[from..from + count];
            found.push((is_high, Phase { begin, lasts: end - begin, requests }));
        }
    }
    let found: Vec<Phase<'_>> =
        found.into_iter().map(|(_, phase)| phase).filter(|phase| !phase.requests.is_empty()).collect();
    let is_enough = found.len() * PHASE <= stream.requests.len();
    if found.len() <= MOST_PHASES && is_enough { found } else { whole }
}

/// How many requests come at once, if they come in batches: as many that each finds as many others in flight as in the
/// trace, of a batch of `n` on average `(n - 1) / 2`, however fast the device is.
fn batch(requests: &[Request]) -> Option<u64> {
    let joined = batch_times(requests).zip(requests).filter(|(begin, request)| *begin < request.at).count();
    if (joined as f64) < BATCHED * requests.len() as f64 {
        return None;
    }
    let found = mean_depth(requests)?;
    Some(((2.0 * found + 1.0).round() as u64).clamp(1, DEEPEST.min(requests.len() as u64)))
        .filter(|size| *size > 1)
}

/// Batches at even distances, of all requests but this share.
fn in_batches(text: &mut String, phase: &Phase<'_>, size: u64, apart: f64) {
    let mean = requests_per_second(phase.requests, phase.lasts) * (1.0 - apart);
    // Those that come apart find few others.
    let size = ((((size - 1) as f64 / (1.0 - apart)).round() as u64) + 1).min(DEEPEST);
    let responses: Vec<Nanos> = phase.requests.iter().filter_map(Request::response).collect();
    let response = responses.iter().sum::<u64>() as f64 / responses.len().max(1) as f64;
    // From the end of one to the beginning of the next.
    let pause = (size as f64 * 1e6 / mean - response / 1e3).max(0.0);
    let _ = writeln!(
        text,
        "iodepth={size}\niodepth_batch={size}\niodepth_batch_complete_min=1\n\
         thinktime_blocks={size}\nthinktime_blocks_type=issue\nthinktime={pause:.0}us"
    );
}

fn requests_per_second(requests: &[Request], lasts: Nanos) -> f64 {
    requests.len() as f64 / (lasts.max(1) as f64 / 1e9)
}

/// The rate, evenly, at random, or in bursts.
fn arrivals(text: &mut String, profile: &Profile, phase: &Phase<'_>, is_part: bool) {
    let Phase { lasts, requests, .. } = *phase;
    let mean = requests_per_second(requests, lasts);
    if profile.category.arrivals == ArrivalCategory::Bursty
        && !is_part
        && let (Some(peak), Some(window)) = (profile.arrivals.peak_to_mean, profile.arrivals.peak_window)
    {
        let bursts = bursts(requests, lasts, window * 1_000_000, peak).max(1);
        let each = (requests.len() as f64 / bursts as f64).max(1.0);
        // Whole numbers, as the rate is one.
        let rate = (mean * peak).round().max(1.0);
        let gap = (lasts as f64 / 1e9 / bursts as f64 - each / rate).max(0.0);
        let _ = writeln!(
            text,
            "; {bursts} bursts, the busiest {window} ms with {} times the mean\nrate_iops={rate:.0}\n\
             rate_ignore_thinktime=1\nthinktime_blocks={each:.0}\nthinktime={:.0}us",
            three_figures(peak),
            gap * 1e6
        );
        return;
    }
    let response = profile.operations.first().and_then(|one| one.response).map_or(0.0, |one| one.mean);
    let is_random = profile.arrivals.dispersion.iter().any(|one| one.index >= 0.5);
    at_rate(text, mean, response, is_random);
}

/// So many requests a second, which take so many nanoseconds each.
fn at_rate(text: &mut String, mean: f64, response: f64, is_random: bool) {
    if mean < SLOW {
        // A whole number a second would be too coarse: the time between is one of microseconds.
        let pause = (1e6 / mean - response / 1e3).max(0.0);
        let _ = writeln!(text, "thinktime_blocks=1\nthinktime={pause:.0}us");
        return;
    }
    let _ = writeln!(text, "rate_iops={mean:.0}");
    if is_random {
        let _ = writeln!(text, "rate_process=poisson");
    }
}

/// How often the rate rose above half of its peak.
fn bursts(requests: &[Request], lasts: Nanos, window: Nanos, peak: f64) -> usize {
    let windows = (lasts / window.max(1)).max(1) as usize;
    let mut counts = vec![0_u32; windows + 1];
    for request in requests {
        if let Some(count) = counts.get_mut((request.at / window.max(1)) as usize) {
            *count += 1;
        }
    }
    let limit = requests.len() as f64 / windows as f64 * peak / 2.0;
    let is_high: Vec<bool> = counts.iter().map(|count| f64::from(*count) >= limit).collect();
    let begins = is_high.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    begins + usize::from(is_high.first() == Some(&true))
}

/// Writes a stream as an iolog of version 3, whose I/Os go to `file`. Requests that were issued at once have one time.
///
/// # Errors
/// When it cannot be written.
pub fn write_iolog(stream: &StreamJob, file: &Path, out: impl Write) -> io::Result<()> {
    let mut writer = IologWriter::new(out, vec![file.to_owned()])?;
    let direction = if stream.operation == Operation::Read { Direction::Read } else { Direction::Write };
    let mut flushes = stream.flushes.iter().copied().peekable();
    for (request, at) in stream.requests.iter().zip(batch_times(&stream.requests)) {
        while let Some(flush) = flushes.next_if(|flush| *flush <= at) {
            writer.synced(flush, 0, SyncCall::Fdatasync)?;
        }
        let io = Io { direction, target: 0, offset: request.offset, length: request.length };
        writer.issued(at, &io)?;
    }
    let mut end = stream.requests.last().map_or(0, |last| last.at);
    for flush in flushes {
        end = end.max(flush);
        writer.synced(flush, 0, SyncCall::Fdatasync)?;
    }
    writer.finish(end)?.flush()
}

/// What a reader of the job file should know of a stream, in a line.
pub fn describe(stream: &StreamJob) -> String {
    let profile = &stream.profile;
    format!(
        "{}: {} requests/s, {} sequential, {}",
        stream.job_name(),
        three_figures(profile.arrivals.rate),
        percent(profile.sequence.sequential),
        profile.category.arrivals.name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flags;
    use crate::stream::profile_of;

    fn request(at: Nanos, offset: u64, length: u32) -> Request {
        let (device, process, file, flags, took) = (0, 0, 0, Flags::default(), 1000);
        Request { at, offset, length, device, process, file, operation: Operation::Write, flags, took }
    }

    #[test]
    fn slow_streams_keep_their_rate() {
        // 25 requests in 10 s, answered after 1 ms: whole numbers of a second would be 2 or 3.
        let requests: Vec<Request> =
            (0..25).map(|n| Request { took: 1_000_000, ..request(n * 400_000_000, n << 30, 4096) }).collect();
        let profile = crate::stream::profile_of(&requests, 10_000_000_000);
        let (name, operation, file_bytes) = ("slow".to_owned(), Operation::Write, 25 << 30);
        let flushes = Vec::new();
        let stream = StreamJob { name, operation, requests, flushes, file_bytes, profile };
        let mut text = String::new();
        figures(&mut text, &stream, 10_000_000_000);
        assert!(text.contains("iodepth=1\nthinktime_blocks=1\nthinktime=399000us\n"), "{text}");
        assert!(!text.contains("rate_iops"), "{text}");
    }

    #[test]
    fn bursts_are_counted() {
        // Three bursts of 100 in 30 s.
        let requests: Vec<Request> =
            (0..300).map(|n| request((n / 100) * 10_000_000_000 + n * 1_000_000, n * 4096, 4096)).collect();
        assert_eq!(bursts(&requests, 30_000_000_000, 1_000_000_000, 10.0), 3);
    }
    fn stream_of(requests: Vec<Request>, flushes: Vec<Nanos>, lasts: Nanos) -> StreamJob {
        let profile = profile_of(&requests, lasts);
        let (name, operation, file_bytes) = ("data".to_owned(), Operation::Write, 1 << 30);
        StreamJob { name, operation, requests, flushes, file_bytes, profile }
    }

    /// Two checkpoints of 3 s in a minute: batches of 25 writes within 5 µs, each batch answered after 0.5 ms.
    fn checkpoints() -> StreamJob {
        let batch = |begin: Nanos| {
            (0..25).map(move |n| Request { took: 500_000, ..request(begin + n * 200, 0, 8192) })
        };
        let begins = [5, 35]
            .into_iter()
            .flat_map(|second: u64| (0..1200).map(move |n| second * 1_000_000_000 + n * 2_500_000));
        let mut requests: Vec<Request> = begins.flat_map(batch).collect();
        let mut random = kelvin_measure::Random::part(2, 0, 0);
        for request in &mut requests {
            request.offset = random.range(0, 100_000) as u64 * 8192;
        }
        stream_of(requests, Vec::new(), 60_000_000_000)
    }

    #[test]
    fn checkpoints_become_phases_of_batches() {
        let stream = checkpoints();
        let mut text = String::new();
        figures(&mut text, &stream, 60_000_000_000);
        assert!(text.contains("[data-write]\n") && text.contains("[data-write-2]\n"), "{text}");
        assert_eq!(text.matches("number_ios=30000\n").count(), 2, "{text}");
        assert!(text.contains("startdelay=5000ms\n") && text.contains("startdelay=35000ms\n"), "{text}");
        // 25 requests every 2.5 ms, which take half of one.
        let batch = "iodepth=25\niodepth_batch=25\niodepth_batch_complete_min=1\nthinktime_blocks=25\n\
                     thinktime_blocks_type=issue\nthinktime=2000us\n";
        assert_eq!(text.matches(batch).count(), 2, "{text}");
    }

    #[test]
    fn a_replay_has_the_batches_and_the_flushes() {
        let mut stream = checkpoints();
        stream.requests.truncate(50);
        stream.flushes = vec![5_001_000_000, 5_010_000_000];
        let mut log = Vec::new();
        write_iolog(&stream, Path::new("f"), &mut log).unwrap();
        let log = String::from_utf8(log).unwrap();
        let at =
            |time: &str| log.lines().filter(|line| line.starts_with(time) && line.contains("write")).count();
        assert_eq!((at("5000000 "), at("5002500 ")), (25, 25), "{log}");
        let syncs: Vec<&str> = log.lines().filter(|line| line.contains("datasync")).collect();
        assert_eq!(syncs, ["5001000 f datasync 0 0", "5010000 f datasync 0 0"]);
        let place = log.lines().position(|line| line == syncs[0]).unwrap();
        assert_eq!(log.lines().take(place).filter(|line| line.contains("write")).count(), 25);
        let jobs = TraceJobs { streams: vec![stream], lasts: 60_000_000_000, notes: Vec::new() };
        let text = job_file(&jobs, JobForm::Replay, "x");
        assert!(text.contains("iodepth=25\niodepth_batch=25\n"), "{text}");
    }

    #[test]
    fn a_log_is_written_one_by_one_with_its_flushes() {
        let requests = (0..3000).map(|n| request(n * 1_000_000, n * 8192, 8192)).collect();
        let flushes = (0..3000).map(|n| n * 1_000_000 + 10_000).collect();
        let stream = stream_of(requests, flushes, 3_000_000_000);
        let mut text = String::new();
        figures(&mut text, &stream, 3_000_000_000);
        assert!(text.contains("ioengine=psync\niodepth=1\nfdatasync=1\nrate_iops=1000\n"), "{text}");
    }
}
