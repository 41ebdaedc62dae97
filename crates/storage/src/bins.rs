//! A histogram of times with the bins of fio's results: 64 a doubling, so that a value is known to better than 1 %.

/// Bins that share a power of two.
const BITS: u32 = 6;
const A_GROUP: usize = 1 << BITS;
const GROUPS: usize = 29;

/// How many bins there are: those of fio's `clat_hist` logs and of `bins` in its JSON+.
pub const BINS: usize = GROUPS * A_GROUP;

/// The bin of a time in nanoseconds. What is longer than the last bin's 17 s is in the last one.
#[inline]
pub fn bin(nanos: u64) -> usize {
    // The position of the highest bit, at least that of the first group.
    let high = (nanos | (A_GROUP as u64 - 1)).ilog2();
    if high <= BITS {
        return nanos as usize;
    }
    let lost = high - BITS;
    let within = (nanos >> lost) as usize & (A_GROUP - 1);
    (((lost as usize + 1) << BITS) + within).min(BINS - 1)
}

/// The time in nanoseconds that stands for a bin: its middle, as fio prints it.
pub fn middle(bin: usize) -> u64 {
    if bin < 2 * A_GROUP {
        return bin as u64;
    }
    let lost = (bin >> BITS) - 1;
    let base = 1_u64 << (lost as u32 + BITS);
    base + (bin as u64 % A_GROUP as u64) * (1 << lost) + (1_u64 << lost) / 2
}

/// Counts of times by bin.
#[derive(Clone, PartialEq, Eq)]
pub struct Bins(Box<[u32; BINS]>);

impl Default for Bins {
    fn default() -> Self {
        Self(Box::new([0; BINS]))
    }
}

impl std::fmt::Debug for Bins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.filled()).finish()
    }
}

impl Bins {
    /// Counts a time in nanoseconds.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        // `bin` is below BINS by its last line.
        let count = &mut self.0[bin(nanos)];
        *count = count.saturating_add(1);
    }

    /// Counts so many that are all the same.
    #[inline]
    pub fn record_many(&mut self, nanos: u64, many: u32) {
        let count = &mut self.0[bin(nanos)];
        *count = count.saturating_add(many);
    }

    /// The bins with something in them: index and count, ascending.
    pub fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(bin, count)| (bin, u64::from(*count)))
    }

    /// Counts nothing any more.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }
}

/// Sums of [`Bins`] over a run: wide counts.
///
/// The bins are made with the first count: a result has a dozen for every file, and of 10,000 files most stay empty.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct BinSums(Option<Box<[u64; BINS]>>);

impl std::fmt::Debug for BinSums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.filled()).finish()
    }
}

impl BinSums {
    /// Adds what was counted in an interval.
    pub fn add(&mut self, bins: &Bins) {
        let mut filled = bins.filled().peekable();
        if filled.peek().is_none() {
            return;
        }
        let sums = self.made();
        for (bin, count) in filled {
            sums[bin] += count;
        }
    }

    /// The bins; only for who has a count to put into them, so that equal sums are equal in memory.
    fn made(&mut self) -> &mut [u64; BINS] {
        self.0.get_or_insert_with(|| Box::new([0; BINS]))
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        let Some(more) = &other.0 else { return };
        for (sum, more) in self.made().iter_mut().zip(&**more) {
            *sum += more;
        }
    }

    /// Adds to a bin; for readers of stored results. What lies beyond the last bin is in the last.
    pub fn add_to(&mut self, bin: usize, count: u64) {
        if count > 0 {
            self.made()[bin.min(BINS - 1)] += count;
        }
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.0.iter().flat_map(|bins| bins.iter()).sum()
    }

    /// The bins with something in them: index and count, ascending.
    pub fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        let bins = self.0.iter().flat_map(|bins| bins.iter());
        bins.enumerate().filter(|(_, count)| **count > 0).map(|(bin, count)| (bin, *count))
    }

    /// The time in nanoseconds that `percent` of the counted do not exceed: the middle of its bin; none when there are
    /// none.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = ((percent / 100.0 * count as f64).ceil() as u64).clamp(1, count);
        let mut seen = 0;
        self.filled().find_map(|(bin, here)| {
            seen += here;
            (seen >= rank).then(|| middle(bin))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bins_cover_every_time_without_a_gap_and_to_better_than_a_hundredth() {
        let mut last = 0;
        let mut nanos = 0_u64;
        while nanos < 17_000_000_000 {
            let here = bin(nanos);
            assert!(here == last || here == last + 1, "{nanos}: {here} after {last}");
            let off = middle(here).abs_diff(nanos) as f64;
            assert!(off <= nanos as f64 * 0.008, "{nanos}: {}", middle(here));
            last = here;
            nanos += 1 + nanos / 300;
        }
        assert_eq!(bin(u64::MAX), BINS - 1);
        assert_eq!(bin(63), 63);
        assert_eq!(bin(64), 64);
        assert_eq!(bin(127), 127);
        assert_eq!(bin(128), 128);
        assert_eq!(bin(129), 128);
        assert_eq!(middle(128), 129);
    }

    #[test]
    fn a_percentile_is_the_bin_of_its_rank() {
        let mut bins = Bins::default();
        for nanos in 1..=100 {
            bins.record(nanos);
        }
        let mut sums = BinSums::default();
        assert_eq!(sums.percentile(50.0), None);
        sums.add(&bins);
        assert_eq!(sums.percentile(50.0), Some(50));
        assert_eq!(sums.percentile(99.0), Some(99));
        assert_eq!(sums.percentile(100.0), Some(100));
        assert_eq!(sums.count(), 100);
    }

    #[test]
    fn sums_of_nothing_have_no_bins() {
        let (mut sums, mut other) = (BinSums::default(), BinSums::default());
        sums.add(&Bins::default());
        sums.merge(&other);
        sums.add_to(7, 0);
        assert!(sums.0.is_none() && sums.count() == 0 && sums.filled().next().is_none());
        other.add_to(7, 2);
        sums.merge(&other);
        assert_eq!(sums, other);
        assert_eq!(sums.filled().collect::<Vec<_>>(), [(7, 2)]);
    }
}
