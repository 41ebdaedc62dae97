//! The report as one HTML file that needs nothing else: no network, no other file.

use std::collections::BTreeMap;

use kelvin_measure::event::{Part, Phase};
use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};
use serde::Serialize;

use crate::figure::{bounds, ms, rate, seconds, users, whole};
use crate::{PointReport, Report, Result};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const UPLOT: &str = include_str!("../../vendor/uplot/uPlot.iife.min.js");
/// Every page holds a copy of uPlot, and its licence asks for the notice in every copy.
const UPLOT_LICENSE: &str = include_str!("../../vendor/uplot/LICENSE");
const UPLOT_STYLE: &str = include_str!("../../vendor/uplot/uPlot.min.css");

/// What the page's charts draw of one point; columns, since they compress and parse better than rows.
#[derive(Serialize)]
struct Charts {
    t: Vec<i64>,
    headline: Vec<Option<i64>>,
    all: Vec<Option<i64>>,
    p50: Vec<Option<f64>>,
    p95: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
    max: Vec<Option<f64>>,
    /// Second, class of mark, text.
    marks: Vec<(f64, &'static str, String)>,
    distributions: Vec<(String, Vec<(f64, f64)>)>,
}

/// The whole page.
///
/// # Errors
/// When the template fails, which is a mistake in it.
pub fn render(report: &Report) -> Result<String> {
    let mut environment = Environment::new();
    environment.add_filter("ms", |v: Option<f64>| ms(v));
    environment.add_filter("rate", |v: Option<f64>| rate(v));
    environment.add_filter("whole", |v: u64| whole(v));
    environment.add_filter("users", |v: u32| users(v));
    environment.add_filter("seconds", |v: f64| seconds(v));
    environment.add_filter("decimal", |v: f64| format!("{v:.1}"));
    environment.add_template("page.html", TEMPLATE)?;
    let charts: Vec<Charts> = report.points.iter().map(charts).collect();
    let mut facts = BTreeMap::new();
    crate::model::flatten("", &report.environment, &mut facts);
    let audits: Vec<Vec<String>> =
        report.points.iter().map(|p| p.audit.iter().map(bounds).collect()).collect();
    let errors: u64 = report.points.iter().flat_map(|p| &p.errors).map(|e| e.count).sum();
    let before: Vec<_> = report.checks.iter().filter(|c| c.phase == Phase::CheckBefore).collect();
    let after: Vec<_> = report.checks.iter().filter(|c| c.phase != Phase::CheckBefore).collect();
    let data = serde_json::json!({ "headline": report.headline, "points": charts, "curve": curve(report) });
    let page = environment.get_template("page.html")?.render(context! {
        report => Value::from(Serde(report)),
        name => report.workload_name(),
        best => Value::from(Serde(report.best())),
        started => report.started.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        audits,
        errors,
        checks => Value::from(Serde([("before the run", before), ("after the run", after)])),
        facts,
        data => in_script(&serde_json::to_string(&data)?),
        style => Value::from_safe_string(format!("{UPLOT_STYLE}\n{STYLE}")),
        uplot => Value::from_safe_string(format!("/* {UPLOT_LICENSE} */\n{UPLOT}")),
        script => Value::from_safe_string(SCRIPT.to_owned()),
    })?;
    Ok(page)
}

/// JSON that can stand in a script element: no `<` can end it or open a comment.
fn in_script(json: &str) -> Value {
    Value::from_safe_string(
        json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"),
    )
}

fn curve(report: &Report) -> Vec<(u32, Option<f64>)> {
    report.points.iter().map(|p| (p.users, p.headline_per_minute.map(f64::round))).collect()
}

fn charts(point: &PointReport) -> Charts {
    // The tail is in no figure and its first second would double the window's last.
    let rows: Vec<_> = point.seconds.iter().filter(|s| s.part != Part::Tail).collect();
    let latency = |pick: fn(&crate::SecondReport) -> Option<f64>| {
        rows.iter().map(|s| pick(s).map(|us| (us / 10.0).round() / 100.0)).collect()
    };
    // The pace of a sliver of a second is noise.
    let pace = |pick: fn(&crate::SecondReport) -> f64| {
        rows.iter().map(|s| (s.width > 0.2).then(|| pick(s).round() as i64)).collect()
    };
    let mut marks: Vec<(f64, &'static str, String)> = vec![(0.0, "phase", "measured window opens".into())];
    if point.closed {
        marks.push((point.window_s, "phase", "measured window closes".into()));
    }
    for s in point.seconds.iter().filter(|s| s.errors > 0) {
        marks.push((s.second as f64, "error", format!("{} errors", s.errors)));
    }
    for error in &point.errors {
        // Seconds with errors in which nothing ended have no row before the window.
        if !point.seconds.iter().any(|s| s.second == error.first_s) {
            marks.push((error.first_s as f64, "error", format!("{} {}", error.class, error.code)));
        }
    }
    marks.extend(point.timeline.iter().map(|(s, text)| (*s as f64, "note", text.clone())));
    Charts {
        t: rows.iter().map(|s| s.second).collect(),
        headline: pace(|s| s.headline_per_minute),
        all: pace(|s| s.transactions_per_minute),
        p50: latency(|s| s.p50_us),
        p95: latency(|s| s.p95_us),
        p99: latency(|s| s.p99_us),
        max: latency(|s| s.max_us),
        marks,
        distributions: point
            .distributions
            .iter()
            .map(|d| {
                let round = |(p, us): &(f64, f64)| ((p * 1e4).round() / 1e4, (us / 10.0).round() / 100.0);
                (d.kind.clone(), d.points.iter().map(round).collect())
            })
            .collect(),
    }
}
