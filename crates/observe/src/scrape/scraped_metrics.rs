//! From an exporter's counters to rates since the last scrape.

use std::collections::HashMap;

/// One figure under the name that the local samplers give it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
    /// Not a number where it is unknown, as all rates are at the first scrape.
    pub(super) value: f64,
}

/// What a scrape comes to, and the counters that the next one is compared with.
#[derive(Debug, Default)]
pub(super) struct ScrapedMetrics {
    before: HashMap<String, f64>,
    now: HashMap<String, f64>,
    seconds: f64,
    found: Vec<Figure>,
}

impl ScrapedMetrics {
    /// Begins a scrape, `seconds` after the one before (not a number at the first).
    pub(super) fn begin(&mut self, seconds: f64) {
        self.before = std::mem::take(&mut self.now);
        self.seconds = if seconds > 0.0 { seconds } else { f64::NAN };
        self.found.clear();
    }

    /// Ends it: what was found.
    pub(super) fn end(&mut self) -> Vec<Figure> {
        std::mem::take(&mut self.found)
    }

    /// Forgets the counters: the next scrape is a first one.
    pub(super) fn clear(&mut self) {
        self.now.clear();
    }

    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// How much a counter rose. Not a number at its first sight, and where it fell: its process or host was begun anew,
    /// and what it counted between is unknown.
    pub(super) fn rise(&mut self, counter: String, value: f64) -> f64 {
        let rise = self.before.get(&counter).map_or(f64::NAN, |before| value - before);
        self.now.insert(counter, value);
        if rise >= 0.0 { rise } else { f64::NAN }
    }

    /// A figure as it is.
    pub(super) fn level(
        &mut self,
        name: impl Into<String>,
        unit: &'static str,
        help: &'static str,
        value: f64,
    ) {
        self.found.push(Figure { name: name.into(), unit, help, value });
    }

    /// The rate of a counter in seconds of the interval, times a factor.
    pub(super) fn rate(
        &mut self,
        name: impl Into<String>,
        unit: &'static str,
        help: &'static str,
        counter: f64,
        factor: f64,
    ) {
        let name = name.into();
        let value = self.rise(name.clone(), counter) * factor / self.seconds;
        self.level(name, unit, help, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(figures: &mut ScrapedMetrics, seconds: f64, counter: Option<f64>) -> f64 {
        figures.begin(seconds);
        if let Some(counter) = counter {
            figures.rate("x", "1/s", "x", counter, 2.0);
        }
        figures.end().first().map_or(f64::NAN, |figure| figure.value)
    }

    #[test]
    fn a_fall_and_a_gap_are_unknown() {
        let mut figures = ScrapedMetrics::default();
        assert!(rate(&mut figures, f64::NAN, Some(100.0)).is_nan());
        assert_eq!(rate(&mut figures, 2.0, Some(110.0)), 10.0);
        assert!(rate(&mut figures, 1.0, Some(3.0)).is_nan(), "begun anew");
        assert_eq!(rate(&mut figures, 1.0, Some(4.0)), 2.0);
        assert!(rate(&mut figures, 1.0, None).is_nan());
        assert!(rate(&mut figures, 1.0, Some(9.0)).is_nan(), "the interval would be another than its own");
        figures.clear();
        assert!(rate(&mut figures, 1.0, Some(9.0)).is_nan());
    }
}
