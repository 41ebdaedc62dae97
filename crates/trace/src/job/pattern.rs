//! Where a stream's requests go, and how large they are, in fio's options.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::StreamJob;
use crate::{Operation, Request};

/// Sizes in a split.
const SIZES: usize = 16;
/// Zones of equal size.
const ZONES: usize = 10;
/// A zone with so many times its share makes the distribution a zoned one.
const UNEVEN: f64 = 1.5;
/// From this share of sequential bytes on a stream is only sequential.
const ALL_SEQUENTIAL: f64 = 0.97;
/// Where requests go, and how large they are.
pub(super) fn pattern(text: &mut String, stream: &StreamJob, sequential: f64) {
    let way = if stream.operation == Operation::Read { "read" } else { "write" };
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

#[cfg(test)]
mod tests {
    use kelvin_measure::Nanos;
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
    fn percents_are_a_hundred() {
        assert_eq!(percents(&[0.001, 0.999]), [1, 99]);
        assert_eq!(percents(&[1.0 / 3.0; 3]), [34, 33, 33]);
    }
}
