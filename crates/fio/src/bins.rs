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
#[inline]
pub fn middle(bin: usize) -> u64 {
    if bin < 2 * A_GROUP {
        return bin as u64;
    }
    let lost = (bin >> BITS) - 1;
    let base = 1_u64 << (lost as u32 + BITS);
    base + (bin as u64 % A_GROUP as u64) * (1 << lost) + (1_u64 << lost) / 2
}

/// The counts of the bins that share a power of two.
type Group<T> = Option<Box<[T; A_GROUP]>>;

/// Groups of bins, each made with its first count: times lie within a few of them, and a job has bins for each of its
/// files, which may be thousands.
#[derive(Clone, PartialEq, Eq)]
struct Groups<T>([Group<T>; GROUPS]);

impl<T: Copy + Default + Into<u64>> Groups<T> {
    const fn none() -> Self {
        Self([const { None }; GROUPS])
    }

    /// The count of a bin, which is below [`BINS`].
    #[inline]
    fn count(&mut self, bin: usize) -> &mut T {
        match &mut self.0[bin >> BITS] {
            Some(group) => &mut group[bin & (A_GROUP - 1)],
            empty => Self::made(empty, bin),
        }
    }

    #[cold]
    fn made(group: &mut Group<T>, bin: usize) -> &mut T {
        &mut group.insert(Box::new([T::default(); A_GROUP]))[bin & (A_GROUP - 1)]
    }

    /// Those with something in them: index and count, ascending.
    #[inline]
    fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        let groups = self.0.iter().enumerate().filter_map(|(at, group)| Some((at, group.as_ref()?)));
        groups
            .flat_map(|(at, group)| {
                group.iter().enumerate().map(move |(bin, count)| ((at << BITS) + bin, (*count).into()))
            })
            .filter(|(_, count)| *count > 0)
    }
}

/// Counts of times by bin.
#[derive(Clone, PartialEq, Eq)]
pub struct Bins(Groups<u32>);

impl Default for Bins {
    fn default() -> Self {
        Self(Groups::none())
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
        self.record_many(nanos, 1);
    }

    /// Counts so many that are all the same.
    #[inline]
    pub fn record_many(&mut self, nanos: u64, many: u32) {
        let count = self.0.count(bin(nanos));
        *count = count.saturating_add(many);
    }

    /// The bins with something in them: index and count, ascending.
    #[inline]
    pub fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.filled()
    }

    /// Counts nothing any more.
    #[inline]
    pub fn clear(&mut self) {
        self.0.0.iter_mut().flatten().for_each(|group| group.fill(0));
    }
}

/// Sums of [`Bins`] over a run: wide counts.
///
/// Nothing is made before the first count: a result has a dozen for every file, and of 10,000 files most stay empty.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct BinSums(Option<Box<Groups<u64>>>);

impl std::fmt::Debug for BinSums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.filled()).finish()
    }
}

impl BinSums {
    /// Adds what was counted in an interval.
    #[inline]
    pub fn add(&mut self, bins: &Bins) {
        for (bin, count) in bins.filled() {
            self.add_to(bin, count);
        }
    }

    /// Adds another sum.
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        for (bin, count) in other.filled() {
            self.add_to(bin, count);
        }
    }

    /// Adds to a bin. What lies beyond the last bin is in the last. Adding nothing makes none, so that equal sums are
    /// equal in memory.
    #[inline]
    pub fn add_to(&mut self, bin: usize, count: u64) {
        if count > 0 {
            let groups = self.0.get_or_insert_with(|| Box::new(Groups::none()));
            *groups.count(bin.min(BINS - 1)) += count;
        }
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.filled().map(|(_, count)| count).sum()
    }

    /// The bins with something in them: index and count, ascending.
    #[inline]
    pub fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter().flat_map(|groups| groups.filled())
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
