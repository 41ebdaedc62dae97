//! The seconds of a point as columns, and charts of them.

use std::collections::BTreeMap;

use kelvin_diagnose::{Evidence, Span, SpanValue, is_client};
use kelvin_measure::{Nanos, SECOND};

/// One chart of the seconds of a point.
#[derive(Debug)]
pub(crate) struct Chart {
    /// Its heading.
    pub(crate) title: String,
    /// Unit of the vertical axis.
    pub(crate) unit: &'static str,
    /// Whether the columns are stacked.
    pub(crate) stacked: bool,
    /// Upper limit of the axis; none for the largest value.
    pub(crate) top: Option<f64>,
    /// Name, colour and values.
    pub(crate) columns: Vec<(String, usize, Vec<Option<f64>>)>,
}

/// The requested seconds, on the run's clock.
pub(crate) struct Grid {
    open: Nanos,
    first: i64,
    count: usize,
}

impl Grid {
    /// For a point, from its second `first` to before `first + count`, both since the window opened.
    pub(crate) fn new(evidence: &Evidence, point: u32, first: i64, count: usize) -> Option<Self> {
        Some(Self { open: evidence.window(point)?.from, first, count })
    }

    fn start(&self) -> Nanos {
        self.open.saturating_add_signed(self.first.saturating_mul(SECOND as i64))
    }

    pub(super) fn span(&self) -> Span {
        let from = self.start();
        Span { from, to: from.saturating_add((self.count as u64).saturating_mul(SECOND)) }
    }

    /// The mean of a metric over each second; `None` where it is unknown.
    pub(crate) fn means(&self, evidence: &Evidence, name: &str) -> Vec<Option<f64>> {
        self.means_of(evidence.values_within(name, self.span()))
    }

    /// The mean of these values over each second; `None` if unknown.
    pub(super) fn means_of(&self, values: Vec<SpanValue>) -> Vec<Option<f64>> {
        let (mut sums, mut known) = (vec![0.0; self.count], vec![0.0; self.count]);
        let start = self.start();
        for seen in values {
            let mut from = seen.from;
            while from < seen.to {
                let second = ((from - start) / SECOND) as usize;
                let to = seen.to.min(start + (second as u64 + 1) * SECOND);
                let seconds = (to - from) as f64 / 1e9;
                if let (Some(sum), Some(time)) = (sums.get_mut(second), known.get_mut(second)) {
                    *sum += seen.value * seconds;
                    *time += seconds;
                }
                from = to;
            }
        }
        sums.into_iter().zip(known).map(|(sum, time)| (time > 0.0).then(|| sum / time)).collect()
    }

    /// Average client sessions by class. Each sampled interval belongs to the second that contains most of
    /// it.
    pub(crate) fn classes(&self, evidence: &Evidence) -> BTreeMap<String, Vec<Option<f64>>> {
        let span = self.span();
        // A sum, and the number of intervals in the second.
        let mut stretches = vec![0_u32; self.count];
        let mut sums: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let mut before: Option<Nanos> = None;
        for (at, groups) in evidence.sessions_over_time() {
            let middle = before.map_or(at, |before| before + at.saturating_sub(before) / 2);
            before = Some(at);
            if middle < span.from || middle >= span.to {
                continue;
            }
            let second = ((middle - span.from) / SECOND) as usize;
            stretches[second] += 1;
            for (group, sessions) in groups.into_iter().filter(|(group, _)| is_client(group)) {
                let column = sums.entry(group.class.clone()).or_insert_with(|| vec![0.0; self.count]);
                column[second] += sessions;
            }
        }
        let mean = |column: Vec<f64>| {
            let each = column.into_iter().zip(&stretches);
            each.map(|(sum, n)| (*n > 0).then(|| sum / f64::from(*n))).collect()
        };
        sums.into_iter().map(|(class, column)| (class, mean(column))).collect()
    }
}
