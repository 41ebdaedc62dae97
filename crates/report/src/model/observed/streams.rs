//! Requests by stream, while a run's block requests are traced: charts of its seconds.

use kelvin_diagnose::Evidence;
use kelvin_diagnose::metric::{STREAM_BYTES, STREAM_DEPTH, STREAM_REQUESTS, STREAM_SEQUENTIAL, STREAMS};
use kelvin_trace::attribution::stream_label;

use super::grid::{Chart, Grid};

/// Streams that are drawn separately: those with the most bytes. The others are combined.
const DRAWN: usize = 7;
/// The colour of the combined streams.
const REST: usize = 8;

type Column = Vec<Option<f64>>;

/// Requests, bytes, sequential shares and depths of the streams; empty if no requests were traced.
pub(super) fn streams(evidence: &Evidence, grid: &Grid) -> Vec<Chart> {
    let suffix = format!(".{STREAM_BYTES}");
    let means = |id: &str, figure: &str| grid.means(evidence, &format!("{STREAMS}{id}.{figure}"));
    let mut found: Vec<(&str, f64)> = evidence
        .names(STREAMS, &suffix)
        .filter_map(|name| name.strip_prefix(STREAMS)?.strip_suffix(&suffix))
        .map(|id| (id, means(id, STREAM_BYTES).into_iter().flatten().sum()))
        .collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (drawn, rest) = found.split_at(found.len().min(DRAWN));
    let columns = |figure: &str, factor: f64| -> Vec<(String, usize, Column)> {
        let scaled = |id: &str| means(id, figure).into_iter().map(|value| Some(value? * factor)).collect();
        let each = drawn.iter().enumerate();
        each.map(|(colour, (id, _))| (stream_label(id), colour, scaled(id))).collect()
    };
    // These values are additive; a stream without any request so far has zero.
    let sums = |title: &str, unit: &'static str, figure: &str, factor: f64| {
        let mut columns = columns(figure, factor);
        let others = rest.iter().map(|(id, _)| means(id, figure));
        let others = others.reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| added(a, b)).collect());
        if let Some(others) = others {
            let others = others.into_iter().map(|value| Some(value? * factor)).collect();
            columns.push(("others".into(), REST, others));
        }
        let all: Vec<&Column> = columns.iter().map(|(_, _, column)| column).collect();
        let known: Vec<bool> = (0..all.first().map_or(0, |column| column.len()))
            .map(|second| all.iter().any(|column| column[second].is_some()))
            .collect();
        for (_, _, column) in &mut columns {
            for (value, is_known) in column.iter_mut().zip(&known) {
                *value = value.or(is_known.then_some(0.0));
            }
        }
        Chart { title: title.into(), unit, stacked: true, top: None, columns }
    };
    let means = |title: &str, unit: &'static str, top: Option<f64>, figure: &str, factor: f64| Chart {
        title: title.into(),
        unit,
        stacked: false,
        top,
        columns: columns(figure, factor),
    };
    let mut charts = vec![
        sums("Storage by stream, requests", "per second", STREAM_REQUESTS, 1.0),
        sums("Storage by stream, throughput", "MB/s", STREAM_BYTES, 1e-6),
        means("Storage by stream, sequential share of the bytes", "%", Some(100.0), STREAM_SEQUENTIAL, 100.0),
        means(
            "Storage by stream, depth: requests in flight at an arrival",
            "requests",
            None,
            STREAM_DEPTH,
            1.0,
        ),
    ];
    for chart in &mut charts {
        chart.columns.retain(|(_, _, column)| column.iter().any(Option::is_some));
    }
    charts.retain(|chart| !chart.columns.is_empty());
    charts
}

/// A sum in which an unknown value is zero, unless both are unknown.
fn added(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    if a.is_none() { b } else { a.map(|a| a + b.unwrap_or(0.0)) }
}
