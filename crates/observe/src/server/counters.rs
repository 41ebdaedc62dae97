//! Figures made of a server's counters: each the sum of some named values less others, as it is or as its growth a second.

use std::collections::BTreeMap;

use kelvin_measure::observation::Metric;

/// Values by name.
pub(crate) type Table = BTreeMap<String, f64>;

/// How a value becomes a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its growth a second.
    Rate,
    /// Itself.
    Gauge,
}

/// A figure: the sum of some of the table's values less others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counter {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) help: &'static str,
    pub(crate) plus: &'static [&'static str],
    pub(crate) minus: &'static [&'static str],
    pub(crate) kind: Kind,
}

/// The growth a second of a sum.
pub(crate) const fn rate(
    name: &'static str,
    unit: &'static str,
    of: &'static [&'static str],
    help: &'static str,
) -> Counter {
    Counter { name, unit, help, plus: of, minus: &[], kind: Kind::Rate }
}

/// A sum as it is.
pub(crate) const fn gauge(
    name: &'static str,
    unit: &'static str,
    of: &'static [&'static str],
    help: &'static str,
) -> Counter {
    Counter { name, unit, help, plus: of, minus: &[], kind: Kind::Gauge }
}

/// What a server has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    pub(crate) counters: Vec<Counter>,
}

impl Counters {
    /// Those of `known` for which a first reading has values. Of several with one name the first that the server has is the one.
    pub(crate) fn present_in(known: &[Counter], table: &Table) -> Self {
        let mut counters: Vec<Counter> = Vec::new();
        for counter in known {
            let has = |name: &&str| table.contains_key(*name);
            let known = counter.plus.iter().all(has) && counter.minus.iter().all(has);
            if known && counters.iter().all(|other| other.name != counter.name) {
                counters.push(*counter);
            }
        }
        Self { counters }
    }

    /// As metrics, in the order of their values.
    pub(crate) fn metrics(&self) -> impl Iterator<Item = Metric> {
        self.counters.iter().map(|counter| Metric {
            name: counter.name.into(),
            unit: counter.unit.into(),
            help: counter.help.into(),
        })
    }

    /// Values from two readings `seconds` apart; NaN for what is missing or went backwards.
    pub(crate) fn values(&self, before: &Table, after: &Table, seconds: f64) -> Vec<f32> {
        let of = |counter: &Counter, table: &Table| {
            let sum =
                |names: &[&str]| names.iter().map(|name| table.get(*name).copied()).sum::<Option<f64>>();
            Some(sum(counter.plus)? - sum(counter.minus)?)
        };
        let one = |counter: &Counter| {
            let new = of(counter, after)?;
            if counter.kind == Kind::Gauge {
                return Some(new.max(0.0));
            }
            let rate = (new - of(counter, before)?) / seconds;
            (seconds > 0.0 && rate >= 0.0).then_some(rate)
        };
        self.counters.iter().map(|counter| one(counter).map_or(f32::NAN, |value| value as f32)).collect()
    }
}
