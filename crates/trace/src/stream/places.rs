//! Where requests go: what is touched again, how much is touched, hot ranges, alignment.

use std::collections::{HashMap, HashSet};

use kelvin_measure::Nanos;
use serde::Serialize;

use crate::Request;
use crate::cache::{BlockHash, blocks};

/// Windows of the working set over time.
const WINDOWS: u64 = 20;
/// Ranges that are listed.
const HOTTEST: usize = 5;
/// Touched blocks beyond these would cost too much memory: then blocks are larger.
const MOST_TOUCHES: u64 = 100_000_000;
const SMALLEST_BLOCK: u64 = 4096;

/// Places of a stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Places {
    /// Bytes of a block, in which the following are counted.
    pub block: u64,
    /// Bytes of different blocks.
    pub unique: u64,
    /// The share of the touched blocks that had been touched before.
    pub touched_again: f64,
    /// The same of reads of blocks that had been written before: a reread of own writes.
    pub read_after_write: f64,
    /// Bytes of different blocks in each window, from the beginning to the end.
    pub working_set: Vec<u64>,
    /// Seconds of such a window.
    pub window: f64,
    /// The share of all touches that went to the hottest hundredth of the touched blocks.
    pub hottest_hundredth: f64,
    /// The same of the hottest tenth.
    pub hottest_tenth: f64,
    /// The ranges with the most touches.
    pub hot_ranges: Vec<HotRange>,
    /// The largest power of two that offset and length of 95 % of the requests are multiples of.
    pub alignment: u64,
    /// From the lowest to the highest byte.
    pub span: (u64, u64),
}

/// A range with many touches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HotRange {
    /// The device, by its place.
    pub device: u16,
    /// The first byte.
    pub begin: u64,
    /// How many bytes.
    pub length: u64,
    /// The share of all touches.
    pub share: f64,
}

/// The places of requests that move data.
pub(super) fn places(requests: &[&Request], begin: Nanos, lasts: Nanos) -> Places {
    let Some(low) = requests.iter().map(|request| request.offset).min() else { return Places::default() };
    let high = requests.iter().map(|request| request.end()).max().unwrap_or(low);
    let mut block = SMALLEST_BLOCK;
    let touches =
        |block: u64| -> u64 { requests.iter().map(|request| u64::from(request.length) / block + 1).sum() };
    // Each request touches a block, however large these are.
    while touches(block) > MOST_TOUCHES.max(2 * requests.len() as u64) {
        block *= 2;
    }
    let width = (lasts / WINDOWS).max(1);
    let mut found = Places { block, window: width as f64 / 1e9, span: (low, high), ..Places::default() };
    // How often each block was touched, and whether it was written.
    let mut touched: HashMap<u64, (u32, bool), BlockHash> = HashMap::default();
    let mut now: HashSet<u64, BlockHash> = HashSet::default();
    let (mut all, mut again, mut own) = (0_u64, 0_u64, 0_u64);
    for request in requests {
        let window = (request.at.saturating_sub(begin) / width).min(WINDOWS - 1);
        while (found.working_set.len() as u64) < window {
            found.working_set.push(now.len() as u64 * block);
            now.clear();
        }
        let is_write = request.operation == crate::Operation::Write;
        for place in blocks(request, block) {
            all += 1;
            now.insert(place);
            let (count, written) = touched.entry(place).or_insert((0, false));
            again += u64::from(*count > 0);
            own += u64::from(*written && !is_write);
            *count = count.saturating_add(1);
            *written |= is_write;
        }
    }
    found.working_set.push(now.len() as u64 * block);
    // Windows behind the last request, as those before the first.
    found.working_set.resize(WINDOWS as usize, 0);
    found.unique = touched.len() as u64 * block;
    let share = |part: u64| part as f64 / all.max(1) as f64;
    found.touched_again = share(again);
    found.read_after_write = share(own);
    let mut counts: Vec<u32> = touched.values().map(|(count, _)| *count).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let hottest = |part: usize| -> u64 {
        counts.iter().take(counts.len().div_ceil(part)).map(|count| u64::from(*count)).sum()
    };
    found.hottest_hundredth = share(hottest(100));
    found.hottest_tenth = share(hottest(10));
    found.hot_ranges = hot_ranges(&touched, block, all);
    found.alignment = alignment(requests);
    found
}

/// A range is a 64th of the span of each device's touched blocks, rounded up to a power of two.
fn hot_ranges(touched: &HashMap<u64, (u32, bool), BlockHash>, block: u64, all: u64) -> Vec<HotRange> {
    const DEVICE_SHIFT: u32 = 48;
    const PLACE: u64 = (1 << DEVICE_SHIFT) - 1;
    let low = touched.keys().map(|key| key & PLACE).min().unwrap_or(0);
    let high = touched.keys().map(|key| key & PLACE).max().unwrap_or(0);
    let width = ((high - low) / 64).max(1).next_power_of_two();
    let mut sums: HashMap<u64, u64, BlockHash> = HashMap::default();
    for (key, (count, _)) in touched {
        let range = (key & !PLACE) | ((key & PLACE) / width);
        *sums.entry(range).or_insert(0) += u64::from(*count);
    }
    let mut ranges: Vec<(u64, u64)> = sums.into_iter().collect();
    ranges.sort_unstable_by_key(|(range, sum)| (std::cmp::Reverse(*sum), *range));
    let one = |(range, sum): (u64, u64)| HotRange {
        device: (range >> DEVICE_SHIFT) as u16,
        begin: (range & PLACE) * width * block,
        length: width * block,
        share: sum as f64 / all.max(1) as f64,
    };
    ranges.into_iter().take(HOTTEST).map(one).collect()
}

fn alignment(requests: &[&Request]) -> u64 {
    let mut of = [0_u64; 65];
    for request in requests {
        let bits = (request.offset | u64::from(request.length)).trailing_zeros();
        of[bits as usize] += 1;
    }
    let mut left = requests.len() as f64 * 0.05;
    for (bits, count) in of.iter().enumerate() {
        left -= *count as f64;
        if left < 0.0 {
            return 1 << bits.min(20);
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Operation};

    fn request(at: Nanos, offset: u64, length: u32, operation: Operation) -> Request {
        let (device, process, file, flags, took) = (0, 0, 0, Flags::default(), Request::UNKNOWN);
        Request { at, offset, length, device, process, file, operation, flags, took }
    }

    #[test]
    fn touches_are_counted_by_block() {
        let (read, write) = (Operation::Read, Operation::Write);
        // Blocks 0, 1 written; 1 read; 2 read, not aligned; 0 written again.
        let all = [
            request(0, 0, 8192, write),
            request(1, 4096, 4096, read),
            request(2, 8192 + 512, 512, read),
            request(1999, 0, 4096, write),
        ];
        let found = places(&all.iter().collect::<Vec<_>>(), 0, 2000);
        assert_eq!((found.unique, found.block), (3 * 4096, 4096));
        assert!((found.touched_again - 2.0 / 5.0).abs() < 1e-9, "{found:?}");
        assert!((found.read_after_write - 1.0 / 5.0).abs() < 1e-9);
        assert_eq!(
            (found.working_set.len(), found.working_set[0], found.working_set[19]),
            (20, 3 * 4096, 4096)
        );
        assert_eq!((found.alignment, found.span), (512, (0, 8192 + 1024)));
        assert!((found.hot_ranges[0].share - 2.0 / 5.0).abs() < 1e-9);
        // A stream that ended at half of the trace, and a request at the very end of it.
        let early = places(&all[..3].iter().collect::<Vec<_>>(), 0, 2000).working_set;
        assert_eq!((early.len(), early.iter().sum::<u64>()), (20, 3 * 4096));
        let late = places(&[&request(2000, 0, 4096, read)], 0, 2000).working_set;
        assert_eq!((late.len(), late[19]), (20, 4096));
    }

    #[test]
    fn nothing_has_no_places() {
        assert_eq!(places(&[], 0, 10), Places::default());
    }
}
