//! What a counter did since the sample before.

/// A counter's last value, if it was read in the last interval.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counter(Option<u64>);

impl Counter {
    /// How much it rose; nothing where it fell, as iostat has it (the kernel's I/O wait, for one, may fall a little).
    /// None in the first interval, and in the one after a failed reading, which would otherwise span two.
    pub(super) fn rise(&mut self, now: Option<u64>) -> Option<u64> {
        let before = std::mem::replace(&mut self.0, now)?;
        Some(now?.saturating_sub(before))
    }

    /// How much it rose; none where it fell, because then another device, process or group bears the name.
    pub(super) fn strict(&mut self, now: Option<u64>) -> Option<u64> {
        let before = std::mem::replace(&mut self.0, now)?;
        now?.checked_sub(before)
    }
}

/// A rise as a figure; not a number where unknown.
pub(super) fn figure(value: Option<u64>) -> f64 {
    value.map_or(f64::NAN, |v| v as f64)
}

/// A part of a whole; not a number where there is no whole.
pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_not_counted_into_the_next_interval() {
        let mut counter = Counter::default();
        assert_eq!(counter.rise(Some(5)), None);
        assert_eq!(counter.rise(Some(8)), Some(3));
        assert_eq!(counter.rise(None), None);
        assert_eq!(counter.rise(Some(20)), None);
        assert_eq!(counter.rise(Some(19)), Some(0));
        assert_eq!(counter.strict(Some(18)), None);
        assert_eq!(counter.strict(Some(18)), Some(0));
        assert!(ratio(0.0, 0.0).is_nan());
    }
}
