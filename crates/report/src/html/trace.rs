//! Block requests on the page: their offsets over time, their sizes, gaps and depths, and the miss ratios of
//! caches.

use std::fmt::Write;

use kelvin_measure::text::{binary, nanos, three_figures, whole};
use kelvin_trace::summary::{Density, TraceSummary};
use serde::Serialize;

use super::plot::{FRAME, Line, svg};
use crate::chart::{Axis, text};
use crate::text::trace_rows;

/// Shades of a cell, each a factor of [`STEP`] in bytes below the next.
const SHADES: usize = 4;
const STEP: f64 = 8.0;

/// Values for the template.
#[derive(Debug, Serialize)]
pub(super) struct TraceView {
    sentence: String,
    rows: Vec<[String; 11]>,
    /// Title and SVG of each chart.
    charts: Vec<(String, String)>,
}

impl TraceView {
    pub(super) fn of(found: &TraceSummary) -> Self {
        let mut charts: Vec<(String, String)> = found
            .densities
            .iter()
            .map(|one| {
                (
                    format!("Offsets of {} over time: reads blue, writes orange", one.device),
                    density(one, found.seconds),
                )
            })
            .collect();
        let sizes = found.sizes.iter().map(|(size, reads, writes)| (binary(*size), [*reads, *writes]));
        charts.push((
            "Sizes of requests, up to".into(),
            bars(&["reads", "writes"], &sizes.collect::<Vec<_>>()),
        ));
        let gaps = found.gaps.iter().map(|(gap, count)| (nanos(*gap as f64), [*count, 0]));
        charts.push(("Time between arrivals, up to".into(), bars(&["requests"], &gaps.collect::<Vec<_>>())));
        let depths = found.depths.iter().map(|(depth, count)| (depth.to_string(), [*count, 0]));
        charts.push((
            "Requests in flight at an arrival".into(),
            bars(&["requests"], &depths.collect::<Vec<_>>()),
        ));
        charts.push(("Predicted miss ratio of an LRU cache below those of the system".into(), curve(found)));
        charts.retain(|(_, picture)| !picture.is_empty());
        let (sentence, rows) = trace_rows(found);
        Self { sentence, rows, charts }
    }
}

/// Cells are blue if more was read, orange if more was written; darker means more bytes.
fn density(found: &Density, seconds: f64) -> String {
    let most = found.cells.iter().map(|(_, read, written)| read + written).max().unwrap_or(0);
    if most == 0 || found.rows == 0 || found.columns == 0 {
        return String::new();
    }
    let mut out = FRAME.begin(&format!("offsets of {} over time", found.device));
    let (low, high) = (found.span.0 as f64, found.span.1 as f64);
    out.push_str("<g class=\"axes\">");
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        let y = FRAME.foot() - share * (FRAME.foot() - FRAME.top);
        text(&mut out, (FRAME.left - 8.0, y + 4.0), "end", &binary((low + share * (high - low)) as u64));
        FRAME.below(&mut out, FRAME.x(share), &three_figures(share * seconds));
    }
    FRAME.x_title(&mut out, "seconds of the window");
    out.push_str("</g>");
    let width = (FRAME.x(1.0) - FRAME.x(0.0)) / found.columns as f64;
    let height = (FRAME.foot() - FRAME.top) / found.rows as f64;
    let mut paths = vec![String::new(); 2 * SHADES];
    for (cell, read, written) in &found.cells {
        let (column, row) = (*cell as usize / found.rows, *cell as usize % found.rows);
        let steps = (most as f64 / (read + written).max(1) as f64).log(STEP) as usize;
        let path = &mut paths[usize::from(written > read) * SHADES + steps.min(SHADES - 1)];
        let (x, y) = (FRAME.x(0.0) + column as f64 * width, FRAME.foot() - (row + 1) as f64 * height);
        let _ = write!(path, "M{x:.0} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z");
    }
    for (at, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let (colour, shade) = (at / SHADES, 1.0 - (at % SHADES) as f64 / (SHADES as f64 + 1.0));
        let _ = write!(
            out,
            "<path class=\"c{colour}\" style=\"fill:var(--colour)\" fill-opacity=\"{shade:.2}\" d=\"{path}\"/>"
        );
    }
    out.push_str("</svg>");
    out
}

/// Counts by bin, with the bars of several kinds side by side.
fn bars(kinds: &[&str], bins: &[(String, [u64; 2])]) -> String {
    let most = bins.iter().flat_map(|(_, counts)| counts).max().copied().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let y = Axis::linear("requests").over([0.0, most as f64].into_iter());
    let mut out = FRAME.begin("requests by bin");
    out.push_str("<g class=\"axes\">");
    FRAME.y_axis(&mut out, &y, true);
    FRAME.column_names(&mut out, bins.len(), 12, |column| {
        bins.get(column).map_or("", |bin| &bin.0).to_owned()
    });
    out.push_str("</g>");
    let width = (FRAME.x(1.0) - FRAME.x(0.0)) / bins.len() as f64 * 0.8 / kinds.len() as f64;
    for (kind, name) in kinds.iter().enumerate() {
        let _ = write!(out, "<g class=\"c{kind}\">");
        for (column, (bin, counts)) in bins.iter().enumerate().filter(|(_, (_, counts))| counts[kind] > 0) {
            let middle = FRAME.column(column as f64, bins.len());
            let x = middle + (kind as f64 - kinds.len() as f64 / 2.0) * width;
            let top = FRAME.y(&y, counts[kind] as f64);
            let _ = write!(
                out,
                "<rect style=\"fill:var(--colour)\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\"><title>{bin}: {} {name}</title></rect>",
                FRAME.foot() - top,
                whole(counts[kind])
            );
        }
        out.push_str("</g>");
    }
    out.push_str("</svg>");
    if kinds.len() > 1 {
        crate::chart::legend(&mut out, kinds.iter().enumerate().map(|(at, name)| (at, false, *name)));
    }
    out
}

fn curve(found: &TraceSummary) -> String {
    let points = found.miss_ratios.iter().map(|(bytes, ratio)| {
        (*bytes as f64 / f64::from(1 << 20), *ratio, format!("{}: {ratio:.3}", binary(*bytes)))
    });
    let line = Line { name: "LRU".into(), colour: 0, fitted: false, points: points.collect() };
    let frame = super::plot::Frame {
        title: "predicted miss ratio by size of the cache",
        x: "MiB of cache",
        y: "miss ratio",
        log: false,
    };
    svg(&frame, &[line])
}

#[cfg(test)]
mod tests {
    use kelvin_trace::summary::StreamSummary;

    use super::*;

    #[test]
    fn a_summary_becomes_pictures_and_rows() {
        let found = TraceSummary {
            seconds: 10.0,
            requests: 3,
            streams: vec![StreamSummary { of: "all".into(), name: "all".into(), ..StreamSummary::default() }],
            densities: vec![Density {
                device: "<vda>".into(),
                span: (0, 1000),
                columns: 2,
                rows: 2,
                cells: vec![(0, 100, 0), (3, 0, 1)],
            }],
            sizes: vec![(4096, 1, 2)],
            miss_ratios: vec![(0, 1.0), (1 << 20, 0.5)],
            ..TraceSummary::default()
        };
        let view = TraceView::of(&found);
        assert_eq!(view.rows.len(), 1);
        // Without gaps and depths there are no charts for them.
        assert_eq!(view.charts.len(), 3, "{:?}", view.charts);
        let density = &view.charts[0].1;
        assert!(
            density.contains("&lt;vda&gt;")
                && density.contains("class=\"c0\"")
                && density.contains("class=\"c1\"")
        );
        assert_eq!(super::density(&Density::default(), 1.0), "");
    }
}
