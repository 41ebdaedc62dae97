//! Charts of host and database on the page, below those of the load and on the same time axis.

use std::collections::BTreeMap;

use kelvin_diagnose::Evidence;
use kelvin_measure::event::LoadPart;
use serde::Serialize;

use crate::model::{Chart, Grid, WAIT_CLASSES, timeline};
use crate::text::when;
use crate::{PointReport, RunReport};

/// Data that the page's script draws for a point, in addition to the load.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SeenCharts {
    /// Start, end, kind and text of occurrences; times in seconds since the window opened.
    bands: Vec<(f64, f64, &'static str, String)>,
    charts: Vec<SeenChart>,
}

#[derive(Debug, Clone, Serialize)]
struct SeenChart {
    title: String,
    unit: &'static str,
    stacked: bool,
    top: Option<f64>,
    names: Vec<String>,
    colours: Vec<usize>,
    columns: Vec<Vec<Option<f64>>>,
}

impl SeenCharts {
    /// For the drawn seconds of a point; `None` if nothing was observed.
    pub(super) fn new(report: &RunReport, point: &PointReport, seconds: &[i64]) -> Option<Self> {
        let (evidence, observed) = (report.evidence.as_deref()?, point.observed.as_ref()?);
        let (first, last) = (*seconds.first()?, *seconds.last()?);
        let count = usize::try_from(last - first + 1).ok()?;
        let grid = Grid::new(evidence, point.point, first, count)?;
        // Seconds in which no transaction ended may be missing from the columns of the load.
        let places: Vec<usize> = seconds.iter().filter_map(|s| usize::try_from(s - first).ok()).collect();
        let end = last as f64 + 1.0;
        let bands = observed.occurrences.iter().map(|row| {
            let kind = match row.kind.as_str() {
                "checkpoint" => "checkpoint",
                "autovacuum" | "autoanalyze" => "vacuum",
                _ => "other",
            };
            (row.from_s, row.to_s.unwrap_or(end), kind, format!("{} {}", row.label(), when(row)))
        });
        Some(Self {
            bands: bands.collect(),
            charts: timeline(evidence, &grid).into_iter().map(|chart| seen_chart(chart, &places)).collect(),
        })
    }

    /// The charts without occurrences, for the newest seconds of a run in progress.
    pub(crate) fn newest(evidence: &Evidence, point: u32, seconds: &[i64]) -> Option<Self> {
        let (first, last) = (*seconds.first()?, *seconds.last()?);
        let grid = Grid::new(evidence, point, first, usize::try_from(last - first + 1).ok()?)?;
        let places: Vec<usize> = seconds.iter().filter_map(|s| usize::try_from(s - first).ok()).collect();
        let charts = timeline(evidence, &grid).into_iter().map(|chart| seen_chart(chart, &places)).collect();
        Some(Self { bands: Vec::new(), charts })
    }

    pub(super) fn titles(&self) -> Vec<String> {
        self.charts.iter().map(|chart| chart.title.clone()).collect()
    }

    /// The colours of wait classes in the chart.
    pub(super) fn class_colours(&self) -> BTreeMap<&str, usize> {
        let chart = self.charts.iter().find(|chart| chart.title == WAIT_CLASSES);
        let colours = chart.into_iter().flat_map(|chart| chart.names.iter().zip(&chart.colours));
        colours.map(|(class, colour)| (class.as_str(), *colour)).collect()
    }

    /// Whether there was an occurrence of this kind.
    pub(super) fn has(&self, kind: &str) -> bool {
        self.bands.iter().any(|(_, _, found, _)| *found == kind)
    }
}

fn seen_chart(chart: Chart, places: &[usize]) -> SeenChart {
    let Chart { title, unit, stacked, top, columns } = chart;
    let (mut names, mut colours, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (name, colour, column) in columns {
        names.push(name);
        colours.push(colour);
        values.push(places.iter().map(|place| column.get(*place).copied().flatten().map(rounded)).collect());
    }
    SeenChart { title, unit, stacked, top, names, colours, columns: values }
}

/// Rounds to four significant digits. More would not be visible, but would be most of the page's size.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// The seconds that the charts of a point show.
pub(super) fn seconds(point: &PointReport) -> Vec<i64> {
    point.seconds.iter().filter(|s| s.part != LoadPart::Tail).map(|s| s.second).collect()
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn four_figures_are_kept() {
        let all = [0.0, 12_345.6, 0.012_345_6, -1.0, 99_999.0, f64::INFINITY].map(rounded);
        assert_eq!(all, [0.0, 12_350.0, 0.012_35, -1.0, 100_000.0, 0.0]);
    }
}
