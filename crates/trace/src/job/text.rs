//! Streams as a job file, and as iologs.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use kelvin_measure::Nanos;
use kelvin_measure::text::{percent, three_figures};
use kelvin_storage::stream::replay::IologWriter;
use kelvin_storage::{Direction, Io};

use super::{StreamJob, TraceJobs};
use crate::stream::{ArrivalCategory, Profile};
use crate::{Operation, Request};

/// Sizes in a split.
const SIZES: usize = 16;
/// Zones of equal size.
const ZONES: usize = 10;
/// A zone with so many times its share makes the distribution a zoned one.
const UNEVEN: f64 = 1.5;
/// From this share of sequential bytes on a stream is only sequential.
const ALL_SEQUENTIAL: f64 = 0.97;
/// Below this rate a second a stream's requests are paced by the time between them.
const SLOW: f64 = 20.0;
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
        let _ = writeln!(text, "\n; {}\n[{}]", stream.profile.category.evidence, stream.job_name());
        let _ = writeln!(text, "filename={}\nsize={}", stream.file_name(), stream.file_bytes);
        match form {
            JobForm::Figures => figures(&mut text, stream, jobs.lasts),
            JobForm::Replay => {
                let (log, file) = (iolog_name(stream), stream.file_name());
                let _ = writeln!(text, "read_iolog={log}\nreplay_redirect={file}\niodepth={DEEPEST}");
                let way = if stream.operation == Operation::Read { "randread" } else { "randwrite" };
                let _ = writeln!(text, "rw={way}");
            }
        }
    }
    text
}

fn figures(text: &mut String, stream: &StreamJob, lasts: Nanos) {
    let profile = &stream.profile;
    let way = if stream.operation == Operation::Read { "read" } else { "write" };
    let sequential = profile.sequence.sequential;
    if sequential >= ALL_SEQUENTIAL {
        let _ = writeln!(text, "rw={way}");
    } else {
        let random = (random_share(sequential) * 100.0).round();
        let _ = writeln!(text, "rw=rand{way}");
        if random < 100.0 {
            let _ = writeln!(text, "percentage_random={random:.0}");
        }
        if let Some(zones) = zones(&stream.requests, stream.file_bytes) {
            let _ = writeln!(text, "random_distribution=zoned:{zones}");
        }
    }
    match sizes(&stream.requests).as_slice() {
        [(size, _)] => {
            let _ = writeln!(text, "bs={size}");
        }
        sizes => {
            let split: Vec<String> = sizes.iter().map(|(size, share)| format!("{size}/{share}")).collect();
            let _ = writeln!(text, "bssplit={}", split.join(":"));
        }
    }
    let is_paced =
        requests_per_second(stream, lasts) < SLOW && profile.category.arrivals != ArrivalCategory::Bursty;
    let depth = profile.depth.map_or(32, |depth| (depth.p99 + 1).clamp(1, DEEPEST));
    let depth = if is_paced { 1 } else { depth };
    let _ = writeln!(text, "iodepth={depth}");
    arrivals(text, profile, &stream.requests, lasts);
}

fn requests_per_second(stream: &StreamJob, lasts: Nanos) -> f64 {
    stream.requests.len() as f64 / (lasts as f64 / 1e9)
}

/// The rate, evenly, at random, or in bursts.
fn arrivals(text: &mut String, profile: &Profile, requests: &[Request], lasts: Nanos) {
    let mean = requests.len() as f64 / (lasts as f64 / 1e9);
    if profile.category.arrivals == ArrivalCategory::Bursty
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
    if mean < SLOW {
        // A whole number a second would be too coarse: the time between is one of microseconds.
        let response = profile.operations.first().and_then(|one| one.response).map_or(0.0, |one| one.mean);
        let pause = (1e6 / mean - response / 1e3).max(0.0);
        let _ = writeln!(text, "thinktime_blocks=1\nthinktime={pause:.0}us");
        return;
    }
    let _ = writeln!(text, "rate_iops={mean:.0}");
    let is_random = profile.arrivals.dispersion.iter().any(|one| one.index >= 0.5);
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

/// The probability that a request goes elsewhere, if runs of at least three requests are to have this share. A run has a
/// geometric length: of its requests, those in runs of one or two are `p² (3 - 2 p)`.
fn random_share(sequential: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if middle * middle * (3.0 - 2.0 * middle) < 1.0 - sequential { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Sizes with their shares in percent, which are 100 together. Of many sizes near ones become one of their mean, so that
/// the mean of all remains.
fn sizes(requests: &[Request]) -> Vec<(u64, u32)> {
    let unit = if requests.iter().all(|one| one.length.is_multiple_of(4096)) { 4096.0 } else { 512.0 };
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for request in requests {
        *counts.entry(request.length).or_insert(0) += 1;
    }
    let mut groups: Vec<(f64, u64)> =
        counts.into_iter().map(|(size, count)| (f64::from(size), count)).collect();
    groups.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut groups = binned(groups);
    let all = requests.len() as f64;
    // The pair that is cheapest to join: near in size, and rare.
    let cost = |pair: &[(f64, u64)]| (pair[1].0 / pair[0].0).ln() * pair[0].1.min(pair[1].1) as f64;
    let is_rare = |groups: &[(f64, u64)]| groups.iter().any(|(_, count)| (*count as f64) < all * 0.01);
    while groups.len() > 1 && (groups.len() > SIZES || is_rare(&groups)) {
        let pairs = groups.windows(2).enumerate();
        let Some((at, _)) = pairs.min_by(|a, b| cost(a.1).total_cmp(&cost(b.1))) else { break };
        let (second, first) = (groups.remove(at + 1), groups[at]);
        groups[at] = joined(first, second);
    }
    let shares = percents(&groups.iter().map(|(_, count)| *count as f64 / all).collect::<Vec<_>>());
    let rounded = |size: f64| ((size / unit).round().max(1.0) * unit) as u64;
    groups.iter().zip(shares).map(|((size, _), share)| (rounded(*size), share)).collect()
}

/// Two sizes as one of their mean.
fn joined(first: (f64, u64), second: (f64, u64)) -> (f64, u64) {
    let count = first.1 + second.1;
    ((first.0 * first.1 as f64 + second.0 * second.1 as f64) / count as f64, count)
}

/// Of very many sizes in ascending order those within 1 % of each other as one: joining pairs takes the square of their
/// number.
fn binned(groups: Vec<(f64, u64)>) -> Vec<(f64, u64)> {
    const MANY: usize = 2048;
    if groups.len() <= MANY {
        return groups;
    }
    let mut bins: Vec<(f64, u64)> = Vec::new();
    let mut begin = 0.0;
    for group in groups {
        match bins.last_mut() {
            Some(last) if group.0 <= begin * 1.01 => *last = joined(*last, group),
            _ => {
                begin = group.0;
                bins.push(group);
            }
        }
    }
    bins
}

/// Whole percents of shares, at least 1 each and 100 together: the largest remainders get what is left.
fn percents(shares: &[f64]) -> Vec<u32> {
    let mut whole: Vec<u32> = shares.iter().map(|share| ((share * 100.0).floor() as u32).max(1)).collect();
    let sum: u32 = whole.iter().sum();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    let remainder = |at: &usize| shares[*at] * 100.0 - (shares[*at] * 100.0).floor();
    order.sort_by(|a, b| remainder(b).total_cmp(&remainder(a)));
    for at in order.iter().cycle().take(100_usize.saturating_sub(sum as usize)) {
        whole[*at] += 1;
    }
    // What the small ones were given beyond their share.
    for _ in 100..sum {
        if let Some(most) = whole.iter_mut().max() {
            *most -= 1;
        }
    }
    whole
}

/// Accesses by tenths of the file, in percent, where they are uneven.
fn zones(requests: &[Request], file_bytes: u64) -> Option<String> {
    let mut counts = [0_u64; ZONES];
    for request in requests {
        let zone = (u128::from(request.offset) * ZONES as u128 / u128::from(file_bytes.max(1))) as usize;
        counts[zone.min(ZONES - 1)] += 1;
    }
    let shares: Vec<f64> = counts.iter().map(|count| *count as f64 / requests.len().max(1) as f64).collect();
    let most = shares.iter().copied().fold(0.0, f64::max);
    if most < UNEVEN / ZONES as f64 {
        return None;
    }
    let zones: Vec<String> =
        percents(&shares).iter().map(|share| format!("{share}/{}", 100 / ZONES)).collect();
    Some(zones.join(":"))
}

/// Writes a stream as an iolog of version 3, whose I/Os go to `file`.
///
/// # Errors
/// When it cannot be written.
pub fn write_iolog(stream: &StreamJob, file: &Path, out: impl Write) -> io::Result<()> {
    let mut writer = IologWriter::new(out, vec![file.to_owned()])?;
    let direction = if stream.operation == Operation::Read { Direction::Read } else { Direction::Write };
    for request in &stream.requests {
        let io = Io { direction, target: 0, offset: request.offset, length: request.length };
        writer.issued(request.at, &io)?;
    }
    let end = stream.requests.last().map_or(0, |last| last.at);
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
    use proptest::prelude::*;

    use super::*;
    use crate::Flags;

    fn request(at: Nanos, offset: u64, length: u32) -> Request {
        let (device, process, file, flags, took) = (0, 0, 0, Flags::default(), 1000);
        Request { at, offset, length, device, process, file, operation: Operation::Write, flags, took }
    }

    proptest! {
        #[test]
        fn sizes_keep_their_mean_and_are_a_hundred_percent(lengths in prop::collection::vec((1..300_u32, 1..60_usize), 1..60)) {
            let requests: Vec<Request> = lengths
                .iter()
                .flat_map(|(pages, count)| std::iter::repeat_n(request(0, 0, pages * 4096), *count))
                .collect();
            let sizes = sizes(&requests);
            prop_assert!(sizes.len() <= SIZES);
            prop_assert_eq!(sizes.iter().map(|(_, share)| share).sum::<u32>(), 100);
            let mean = requests.iter().map(|one| f64::from(one.length)).sum::<f64>() / requests.len() as f64;
            let found = sizes.iter().map(|(size, share)| *size as f64 * f64::from(*share) / 100.0).sum::<f64>();
            // A percent is the unit, and the largest size 300 pages.
            prop_assert!((found - mean).abs() <= 0.05 * mean + 32.0 * 4096.0, "{} {}", found, mean);
        }
    }

    #[test]
    fn the_share_of_random_requests_gives_the_share_in_runs() {
        assert!(random_share(0.0) > 0.999 && random_share(1.0) < 0.001);
        let p = random_share(0.5);
        assert!((p - 0.5).abs() < 1e-9, "half of the requests are in runs of one or two at 1/2: {p}");
    }

    #[test]
    fn very_many_sizes_become_few_and_keep_their_mean() {
        let requests: Vec<Request> = (1..=200_000).map(|n| request(n, 0, n as u32 * 512)).collect();
        let sizes = sizes(&requests);
        let mean = sizes.iter().map(|(size, share)| *size as f64 * f64::from(*share) / 100.0).sum::<f64>();
        assert!(sizes.len() <= SIZES && (mean / (100_000.5 * 512.0) - 1.0).abs() < 0.05, "{sizes:?}");
    }

    #[test]
    fn slow_streams_keep_their_rate() {
        // 25 requests in 10 s, answered after 1 ms: whole numbers of a second would be 2 or 3.
        let requests: Vec<Request> =
            (0..25).map(|n| Request { took: 1_000_000, ..request(n * 400_000_000, n << 30, 4096) }).collect();
        let profile = crate::stream::profile_of(&requests, 10_000_000_000);
        let (name, operation, file_bytes) = ("slow".to_owned(), Operation::Write, 25 << 30);
        let stream = StreamJob { name, operation, requests, file_bytes, profile };
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
        assert_eq!(percents(&[0.001, 0.999]), [1, 99]);
        assert_eq!(percents(&[1.0 / 3.0; 3]), [34, 33, 33]);
    }
}
