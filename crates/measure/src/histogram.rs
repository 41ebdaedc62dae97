//! Latency histograms: HdrHistogram of nanoseconds, three significant digits, 1 ns to 1 hour.

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

use crate::Nanos;

/// The longest latency that can be recorded, one hour. Longer ones are recorded as this and counted separately.
pub const MAX_LATENCY: Nanos = 3_600_000_000_000;

/// Significant digits of a value.
const DIGITS: u8 = 3;

/// The percentiles that every table shows, in per cent.
pub const PERCENTILES: [f64; 4] = [50.0, 95.0, 99.0, 99.9];

/// Why a stored histogram cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The bytes are not an HdrHistogram V2 blob.
    #[error("not an HdrHistogram V2 blob: {0}")]
    Decode(String),
    /// The histogram could not be written.
    #[error("histogram cannot be encoded: {0}")]
    Encode(String),
}

/// Latencies of one population. Values are nanoseconds; the relative error of a value is at most 0.1 %.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// `None` while nothing is counted: the buckets use 270 KB, and many series are empty in most seconds.
    counts: Option<Hdr<u64>>,
    exact: Exact,
}

/// Exact values that are not part of HdrHistogram's format: they are stored beside the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exact {
    /// Sum of the values in nanoseconds, since HdrHistogram's mean has the bucket error.
    pub sum: u128,
    /// The largest value in nanoseconds; 0 when there is none.
    pub max: Nanos,
    /// Values that were longer than [`MAX_LATENCY`].
    pub clamped: u64,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records one latency.
    pub fn record(&mut self, latency: Nanos) {
        self.counts.get_or_insert_with(buckets).saturating_record(latency.clamp(1, MAX_LATENCY));
        let clamped = u64::from(latency > MAX_LATENCY);
        self.exact.add(Exact { sum: latency.into(), max: latency, clamped });
    }

    /// Adds values that were counted in other bins: a value for each bin with its count, and the exact sum and maximum.
    pub fn add_counted(&mut self, values: impl IntoIterator<Item = (Nanos, u64)>, sum: u128, max: Nanos) {
        let mut clamped = 0;
        for (value, count) in values {
            // A bin's value may be beyond the longest that was counted in it.
            let value = value.min(max);
            if value > MAX_LATENCY {
                clamped += count;
            }
            let counts = self.counts.get_or_insert_with(buckets);
            counts.saturating_record_n(value.clamp(1, MAX_LATENCY), count);
        }
        self.exact.add(Exact { sum, max, clamped });
    }

    /// Adds all values of `other`.
    pub fn add(&mut self, other: &Self) {
        if let Some(counts) = &other.counts {
            // Both have the same bounds, so that nothing can be out of range.
            let _ = self.counts.get_or_insert_with(buckets).add(counts);
        }
        self.exact.add(other.exact);
    }

    /// Clears all values and keeps the memory.
    pub fn clear(&mut self) {
        if let Some(counts) = &mut self.counts {
            counts.clear();
        }
        self.exact = Exact::default();
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts.as_ref().map_or(0, Hdr::len)
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Exact sum of all values in nanoseconds.
    pub fn sum(&self) -> u128 {
        self.exact.sum
    }

    /// The values stored beside the encoded counts.
    pub fn exact(&self) -> Exact {
        self.exact
    }

    /// Values that were longer than [`MAX_LATENCY`].
    pub fn clamped(&self) -> u64 {
        self.exact.clamped
    }

    /// Exact mean in nanoseconds; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum() as f64 / self.count() as f64)
    }

    /// Largest value in nanoseconds, exact; `None` when empty.
    pub fn max(&self) -> Option<Nanos> {
        (!self.is_empty()).then_some(self.exact.max)
    }

    /// Smallest value in nanoseconds (to the histogram's precision); `None` when empty.
    pub fn min(&self) -> Option<Nanos> {
        self.filled().map(Hdr::min)
    }

    /// The value at a percentile (0-100), in nanoseconds. `None` when fewer than ten values lie beyond it, n·(1 − p) <
    /// 10: it would be determined by a handful of transactions.
    pub fn percentile(&self, percent: f64) -> Option<Nanos> {
        let beyond = self.count() as f64 * (1.0 - percent / 100.0);
        // 1e-9 forgives the rounding of 1 − 0.999.
        self.filled()
            .filter(|_| beyond + 1e-9 >= 10.0)
            .map(|counts| counts.value_at_quantile(percent / 100.0).min(self.exact.max))
    }

    /// The buckets, when there is something in them.
    fn filled(&self) -> Option<&Hdr<u64>> {
        self.counts.as_ref().filter(|counts| !counts.is_empty())
    }

    /// Occupied buckets in ascending order: the highest value of the bucket in nanoseconds, which is no more than the
    /// maximum, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let recorded = self.counts.iter().flat_map(|counts| counts.iter_recorded());
        recorded.map(|v| (v.value_iterated_to().min(self.exact.max.max(1)), v.count_at_value()))
    }

    /// The standard deviation in nanoseconds, to the width of the buckets; `None` where nothing was recorded.
    pub fn deviation(&self) -> Option<f64> {
        self.filled().map(Hdr::stdev)
    }

    /// The summary for tables.
    pub fn summary(&self) -> LatencySummary {
        LatencySummary {
            count: self.count(),
            mean: self.mean(),
            percentiles: PERCENTILES.map(|p| self.percentile(p)),
            min: self.min(),
            max: self.max(),
        }
    }

    /// Encodes as HdrHistogram's V2 format, which its tools in other languages read. The exact values
    /// ([`Histogram::exact`]) are not part of that format and are stored beside it.
    pub fn encode(&self) -> Result<Vec<u8>, HistogramError> {
        let mut bytes = Vec::with_capacity(256);
        let empty;
        let counts = if let Some(counts) = &self.counts {
            counts
        } else {
            empty = buckets();
            &empty
        };
        V2Serializer::new()
            .serialize(counts, &mut bytes)
            .map_err(|e| HistogramError::Encode(format!("{e:?}")))?;
        Ok(bytes)
    }

    /// Decodes a V2 blob with the values stored beside it.
    pub fn decode(bytes: &[u8], exact: Exact) -> Result<Self, HistogramError> {
        // The header says how much memory the counts take, before any of them is there.
        let digits = bytes
            .get(12..16)
            .map_or(0, |digits| digits.iter().fold(0, |all, &one| all << 8 | u32::from(one)));
        if digits > DIGITS.into() {
            return Err(HistogramError::Decode(format!(
                "{digits} significant digits; at most {DIGITS} are read"
            )));
        }
        let stored: Hdr<u64> = Deserializer::new()
            .deserialize(&mut std::io::Cursor::new(bytes))
            .map_err(|e| HistogramError::Decode(format!("{e:?}")))?;
        let mut counts = buckets();
        counts.add(&stored).map_err(|e| HistogramError::Decode(e.to_string()))?;
        Ok(Self { counts: Some(counts), exact })
    }
}

impl Exact {
    fn add(&mut self, other: Self) {
        // What another host sends holds any number.
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
        self.clamped = self.clamped.saturating_add(other.clamped);
    }
}

fn buckets() -> Hdr<u64> {
    // The bounds are constants that HdrHistogram accepts; every test records something.
    Hdr::new_with_bounds(1, MAX_LATENCY, DIGITS).unwrap_or_else(|_| unreachable!())
}

/// The row of a latency table. All latencies in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Number of values.
    pub count: u64,
    /// Exact mean; none when empty.
    pub mean: Option<f64>,
    /// Values at [`PERCENTILES`]; none where the samples are too few.
    pub percentiles: [Option<Nanos>; 4],
    /// Smallest; none when empty.
    pub min: Option<Nanos>,
    /// Largest; none when empty.
    pub max: Option<Nanos>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_with_too_few_samples_are_not_given() {
        let mut histogram = Histogram::new();
        for value in 1..=9_999 {
            histogram.record(value * 1000);
        }
        assert_eq!(histogram.percentile(99.9), None, "9.999 values lie beyond p99.9");
        histogram.record(10_000_000);
        let p999 = histogram.percentile(99.9).unwrap() as f64;
        assert!((p999 - 9_990_000.0).abs() / 9_990_000.0 < 0.001, "{p999}");
        assert_eq!(histogram.mean().unwrap(), 5_000_500.0, "the mean is exact");
    }

    #[test]
    fn what_was_counted_elsewhere_is_as_if_it_had_been_recorded() {
        let (mut one, mut other) = (Histogram::new(), Histogram::new());
        for (value, count) in [(0, 2_u64), (1000, 30), (MAX_LATENCY + 1, 1)] {
            (0..count).for_each(|_| one.record(value));
            other.add_counted([(value, count)], u128::from(value) * u128::from(count), value);
        }
        assert_eq!(one.summary(), other.summary());
        assert_eq!(one.exact(), other.exact());
        other.add_counted([], 0, 0);
        assert_eq!(other.count(), 33);
    }

    #[test]
    fn the_maximum_is_the_longest_value_and_no_percentile_is_beyond_it() {
        let mut histogram = Histogram::new();
        (0..1000).for_each(|_| histogram.record(1_234_567));
        assert_eq!((histogram.max(), histogram.percentile(99.0)), (Some(1_234_567), Some(1_234_567)));
        let mut sum = Histogram::new();
        sum.record(7_654_321);
        sum.add(&histogram);
        let back = Histogram::decode(&sum.encode().unwrap(), sum.exact()).unwrap();
        assert_eq!((sum.max(), back.max()), (Some(7_654_321), Some(7_654_321)));
        sum.clear();
        assert_eq!(sum.max(), None);
    }

    #[test]
    fn a_latency_over_an_hour_is_counted_as_clamped() {
        let mut histogram = Histogram::new();
        histogram.record(MAX_LATENCY * 2);
        histogram.record(0);
        assert_eq!((histogram.count(), histogram.clamped()), (2, 1));
    }

    #[test]
    fn the_blob_gives_back_what_went_in() {
        let mut histogram = Histogram::new();
        for value in [1, 999, 1_000_000, 123_456_789, MAX_LATENCY] {
            histogram.record(value);
        }
        let back = Histogram::decode(&histogram.encode().unwrap(), histogram.exact()).unwrap();
        assert_eq!(back.summary(), histogram.summary());
        assert!(back.buckets().eq(histogram.buckets()));
        assert!(Histogram::decode(b"nonsense", Exact::default()).is_err());
    }
}
