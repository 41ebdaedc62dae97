//! The values of the metrics.

use std::collections::HashMap;

use kelvin_measure::observation::{Metric, Observer, Reading};
use kelvin_measure::{Nanos, declare};

use super::Span;

/// A value and the stretch of time that it covers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpanValue {
    /// From here, on the run's clock.
    pub from: Nanos,
    /// To here: when it was read.
    pub to: Nanos,
    /// The value.
    pub value: f64,
}

impl SpanValue {
    /// Its duration in seconds.
    pub fn seconds(&self) -> f64 {
        Span { from: self.from, to: self.to }.seconds()
    }
}

/// Metrics and their readings.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// Each with its observer's first.
    metrics: Vec<Option<(Metric, u32)>>,
    places: HashMap<String, usize>,
    /// Of each observer by its first metric: the readings in their order.
    readings: HashMap<u32, Vec<Reading>>,
}

impl Values {
    pub(super) fn declare(&mut self, observer: &Observer) {
        let new: Vec<_> =
            observer.metrics.iter().map(|metric| Some((metric.clone(), observer.first))).collect();
        declare(&mut self.metrics, observer.first, &new);
        let names = observer.metrics.iter().map(|metric| metric.name.clone());
        self.places.extend(names.zip(observer.first as usize..));
    }

    pub(super) fn reading(&mut self, reading: &Reading) {
        self.readings.entry(reading.first).or_default().push(reading.clone());
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.metrics.iter().flatten().map(|(metric, _)| metric.name.as_str())
    }

    pub(super) fn metric(&self, name: &str) -> Option<&Metric> {
        self.metrics.get(*self.places.get(name)?)?.as_ref().map(|(metric, _)| metric)
    }

    fn column(&self, name: &str) -> Option<(&[Reading], usize)> {
        let index = *self.places.get(name)?;
        let (_, first) = self.metrics.get(index)?.as_ref()?;
        Some((self.readings.get(first)?, index - *first as usize))
    }

    pub(super) fn values_within(&self, name: &str, span: Span) -> Vec<SpanValue> {
        let Some((readings, column)) = self.column(name) else { return Vec::new() };
        let covered = readings.windows(2).filter_map(|pair| {
            let (from, to) = (pair[0].at.max(span.from), pair[1].at.min(span.to));
            let value = f64::from(*pair[1].values.get(column)?);
            (from < to && !value.is_nan()).then_some(SpanValue { from, to, value })
        });
        covered.collect()
    }

    /// Whether the last reading that covers a part of the span was taken after it.
    pub(super) fn reaches_beyond(&self, name: &str, span: Span) -> bool {
        let Some((readings, _)) = self.column(name) else { return false };
        let last = readings.windows(2).rev().find(|pair| pair[0].at < span.to);
        last.is_some_and(|pair| pair[1].at > span.to)
    }

    pub(super) fn newest(&self, name: &str) -> Option<f64> {
        let (readings, column) = self.column(name)?;
        let known = |reading: &Reading| {
            reading.values.get(column).map(|value| f64::from(*value)).filter(|value| !value.is_nan())
        };
        readings.iter().rev().find_map(known)
    }
}
