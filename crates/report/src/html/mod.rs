//! The report as one HTML file that needs nothing else: no network, no other file.

mod curves;
mod observed;
mod plot;

pub(crate) use plot::{decades, escaped, number, ticks};

use std::collections::BTreeMap;

use kelvin_measure::Bounded;
use kelvin_measure::event::{Part, Phase};
use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};
use serde::Serialize;

use crate::figure::{NONE, bounded, bounds, coefficient, ms, percent, rate, seconds, significant, whole};
use observed::SeenCharts;

use crate::text::{
    SERVER_STATISTICS, TOO_SHORT, change, counted, effect, elasticity_interval, explained, footnotes,
    generator, grouped, highest, how, interval, is_minor, loop_words, of_p99, peak, squeezed, times_of,
    two_times, unanswered, when,
};
use crate::{OpenSecond, PointReport, Report, Result, SecondReport};

const TEMPLATE: &str = include_str!("page.html");
/// What the page of I/O jobs has instead of the table of users or rates, and beside each point.
const IO_PARTS: [(&str, &str); 2] =
    [("io_phases.html", include_str!("io_phases.html")), ("io_jobs.html", include_str!("io_jobs.html"))];
pub(crate) const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const UPLOT: &str = include_str!("../../vendor/uplot/uPlot.iife.min.js");
/// Every page holds a copy of uPlot, and its licence asks for the notice in every copy.
const UPLOT_LICENSE: &str = include_str!("../../vendor/uplot/LICENSE");
const UPLOT_STYLE: &str = include_str!("../../vendor/uplot/uPlot.min.css");

/// What the page's charts draw of one point; columns, since they compress and parse better than rows.
#[derive(Serialize)]
struct Charts {
    t: Vec<i64>,
    /// Where the axis of time ends: with the window, or with the last second when it is still open.
    end: f64,
    headline: Vec<Option<f64>>,
    /// All transactions, where some do not count for the headline.
    all: Option<Vec<Option<f64>>>,
    /// What an open loop adds.
    open: Option<OpenCharts>,
    p50: Vec<Option<f64>>,
    p95: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
    max: Vec<Option<f64>>,
    /// Second, class of mark, text.
    marks: Vec<(f64, &'static str, String)>,
    distributions: Vec<(String, Vec<(f64, f64)>)>,
    /// What was seen of host and database.
    seen: Option<SeenCharts>,
    /// Of I/O jobs each direction alone: a mean of reads and writes is of nothing.
    directions: Option<Vec<DirectionCharts>>,
}

/// The columns of a direction.
#[derive(Serialize)]
struct DirectionCharts {
    name: String,
    rate: Vec<Option<f64>>,
    p50: Vec<Option<f64>>,
    p95: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
    max: Vec<Option<f64>>,
    service_p99: Vec<Option<f64>>,
}

/// The columns of an open loop; the latencies beside them are then response times.
#[derive(Serialize)]
struct OpenCharts {
    due: Vec<Option<f64>>,
    refused: Vec<Option<u64>>,
    waiting: Vec<Option<u64>>,
    service_p99: Vec<Option<f64>>,
    lag_max: Vec<Option<f64>>,
}

/// The whole page.
///
/// # Errors
/// When the template fails, which is a mistake in it.
pub fn render(report: &Report) -> Result<String> {
    let mut environment = Environment::new();
    environment.add_filter("ms", |v: Option<f64>| ms(v));
    environment.add_filter("rate", |v: Option<f64>| rate(v));
    environment.add_filter("percent", |v: Option<f64>| percent(v));
    environment.add_filter("whole", |v: u64| whole(v));
    environment.add_filter("cores", |v: Option<f64>| crate::figure::decimal(v));
    let io = report.is_io();
    environment.add_filter("time_of", move |row: Value, name: &str| time_of(&row, name, io));
    environment.add_filter("figure", figure);
    environment.add_filter("code", |text: String| Value::from_safe_string(code(&text)));
    environment.add_filter("seconds", |v: f64| seconds(v));
    environment.add_filter("decimal", |v: f64| format!("{v:.1}"));
    environment.add_filter("capitalize_first", |text: String| {
        let mut letters = text.chars();
        letters
            .next()
            .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect::<String>())
    });
    environment.add_template("page.html", TEMPLATE)?;
    for (name, part) in IO_PARTS {
        environment.add_template(name, part)?;
    }
    environment.add_filter("ms_of_ms", |v: Option<f64>| ms(v.map(|v| v * 1e3)));
    environment.add_filter("two", |v: Option<f64>| crate::figure::decimal(v));
    environment.add_filter("significant", significant);
    environment.add_filter("amount", |v: f64| crate::figure::amount(v));
    environment.add_filter("class_colour", |class: String| observed::class_colour(&class));
    let (words, unit) = (report.words(), TimeUnit::of(report));
    let charts: Vec<Charts> = report.points.iter().map(|p| charts(report, p, unit)).collect();
    let mut facts = BTreeMap::new();
    crate::model::flatten("", &report.environment, &mut facts);
    let audits: Vec<Vec<String>> =
        report.points.iter().map(|p| p.audit.iter().map(bounds).collect()).collect();
    let errors: u64 = report.points.iter().flat_map(|p| &p.errors).map(|e| e.count).sum();
    let before: Vec<_> = report.checks.iter().filter(|c| c.phase == Phase::CheckBefore).collect();
    let after: Vec<_> = report.checks.iter().filter(|c| c.phase != Phase::CheckBefore).collect();
    let per = report.headline_per;
    let data = serde_json::json!({
        "headline": report.headline, "total": report.total_name(), "per": per.word(), "points": charts,
        "words": words, "unit": unit.name,
    });
    // Of every point: headline, all transactions, and those by the server, in the headline's unit.
    let paces: Vec<_> = report
        .points
        .iter()
        .map(|p| (p.headline(per), p.transactions(per), p.server_transactions(per)))
        .collect();
    let seen_titles: Vec<Vec<String>> =
        charts.iter().map(|c| c.seen.as_ref().map(SeenCharts::titles).unwrap_or_default()).collect();
    let bands = ["checkpoint", "vacuum", "other"]
        .map(|kind| charts.iter().any(|c| c.seen.as_ref().is_some_and(|seen| seen.has(kind))));
    let (minor, serious): (Vec<_>, Vec<_>) = grouped(report)
        .into_iter()
        .map(|one| (one.finding, one.about, effect(one.finding)))
        .partition(|(finding, ..)| is_minor(finding));
    let notes = counted(minor.iter().map(|(finding, ..)| *finding));
    let squeeze = report.squeeze.as_ref().map(|found| {
        let rows = found.resources.iter().map(|one| {
            let elasticity = crate::figure::decimal(Some(one.elasticity));
            let pairs = one.pairs.to_string();
            [
                &one.resource,
                &elasticity,
                &elasticity_interval(one),
                &change(one),
                &pairs,
                &one.verdict,
                &how(one),
            ]
            .map(Clone::clone)
        });
        (squeezed(found), rows.collect::<Vec<_>>())
    });
    let occurrences: Vec<Vec<(String, String)>> = report
        .points
        .iter()
        .map(|p| p.observed.iter().flat_map(|o| &o.occurrences).map(|o| (o.words(), when(o))).collect())
        .collect();
    let generators: Vec<String> =
        report.points.iter().map(|p| generator(&p.generator, words).join("; ")).collect();
    let footnotes: Vec<[Vec<String>; 2]> = report
        .points
        .iter()
        .map(|p| {
            [footnotes(p.response.iter().chain(&p.response_all), words), footnotes(p.latency.iter(), words)]
        })
        .collect();
    let drawn: Vec<bool> = charts.iter().map(|chart| chart.t.len() > 1).collect();
    let names: Vec<String> = report.points.iter().map(PointReport::name).collect();
    let page = environment.get_template("page.html")?.render(context! {
        report => Value::from(Serde(report)),
        name => report.workload_name(),
        words => Value::from(Serde(words)),
        unit => unit.name,
        io => io.then(|| of_io(report)),
        users => report.points.iter().map(PointReport::users).collect::<Vec<_>>(),
        drawn => drawn,
        first_closed => report.points.iter().position(|p| !p.open_loop),
        best => Value::from(Serde(report.best())),
        started => report.started.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        audits,
        io_charts => report.points.iter().map(|p| io_charts(report, p)).collect::<Vec<_>>(),
        directions => charts.iter().map(directions_of).collect::<Vec<_>>(),
        errors,
        best_pace => report.best().map(|p| (p.headline(per), p.transactions(per))),
        has_total => report.has_total(),
        total => report.total_name(),
        per => per.word(),
        paces,
        names,
        seen_titles,
        bands,
        looked => report.evidence.is_some() || !report.findings.is_empty(),
        serious => Value::from(Serde(serious)),
        minor => Value::from(Serde(minor)),
        notes,
        occurrences,
        generators,
        footnotes,
        too_short => report.points.iter().map(PointReport::too_short).collect::<Vec<_>>(),
        too_short_words => TOO_SHORT,
        p99_words => report.points.iter().map(p99_words).collect::<Vec<_>>(),
        server_statistics => SERVER_STATISTICS,
        unanswered => report.points.iter().any(|p| !p.seen().at_least.is_empty()).then(|| unanswered(words)),
        two_times => two_times(words),
        throughput => svg(if io { String::new() } else { curves::throughput(report) }),
        response => svg(if io { String::new() } else { curves::response(report) }),
        scalability => svg(curves::scalability(report)),
        law => report.scalability.as_ref().map(|fit| {
            let row = |name: &str, e, words: &str| [name.to_owned(), coefficient(value(e)), interval(e), words.to_owned()];
            [
                row("λ", &fit.lambda, "transactions a second of one user alone"),
                row("σ", &fit.sigma, "contention: share of the work done one after another"),
                row("κ", &fit.kappa, "coherency: cost of each pair of users"),
            ]
        }),
        law_words => report.scalability.as_ref().map(|fit| [explained(fit), peak(fit)]),
        squeeze => Value::from(Serde(squeeze)),
        highest => report.maximum_rate.as_ref().map(highest),
        checks => Value::from(Serde([("before the run", before), ("after the run", after)])),
        facts,
        data => in_script(&serde_json::to_string(&data)?),
        style => Value::from_safe_string(format!("{UPLOT_STYLE}\n{STYLE}")),
        uplot => Value::from_safe_string(format!("/* {UPLOT_LICENSE} */\n{UPLOT}")),
        script => Value::from_safe_string(SCRIPT.to_owned()),
    })?;
    Ok(page)
}

/// The interval of a point's p99, where the text has it.
fn p99_words(point: &PointReport) -> Option<String> {
    let interval = point.p99_within_run.filter(|_| point.open_loop)?;
    Some(of_p99(&interval, point.words))
}

/// A time of a row of the latency table, by its name.
fn time_of(row: &Value, name: &str, io: bool) -> std::result::Result<String, minijinja::Error> {
    let value = row.get_attr(name)?;
    let at_least = row.get_attr("at_least")?.try_iter()?.any(|bound| bound.as_str() == Some(name));
    let value = f64::try_from(value).ok().map(|value| Bounded { value, at_least });
    Ok(if io { bounded(value, figure) } else { bounded(value, ms) })
}

/// What the page of I/O jobs has of its own, one of `points` for each point.
fn of_io(report: &Report) -> Value {
    let point = |p: &PointReport| {
        let names: Vec<String> = report.jobs_of(p).map(|job| job.job.clone()).collect();
        context! { names, mebibytes => report.mebibytes_of(p), loop => loop_words(p) }
    };
    context! { times => times_of(report), points => report.points.iter().map(point).collect::<Vec<_>>() }
}

/// The pictures of a point of I/O jobs.
fn io_charts(report: &Report, point: &PointReport) -> Value {
    let drawn = crate::plot::PointCharts::of(report, point);
    context! {
        time => drawn.time.map(svg),
        written => drawn.written.map(svg),
        histograms => drawn.histograms.into_iter().map(svg).collect::<Vec<_>>(),
    }
}

/// The directions that have a chart of latency; none of other workloads.
fn directions_of(charts: &Charts) -> Vec<String> {
    charts.directions.iter().flatten().map(|one| one.name.clone()).collect()
}

/// A figure of any size, or a dash.
fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.into(), significant)
}

/// What stands between backticks as code.
pub(crate) fn code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // One without a partner is a character as any other.
    let pairs = (parts.len() - 1) / 2 * 2;
    let mut page = String::new();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            page.push_str(match index % 2 {
                _ if index > pairs => "`",
                1 => "<code>",
                _ => "</code>",
            });
        }
        page.push_str(&escaped(part));
    }
    page
}

/// What times are drawn in: an I/O that takes a microsecond would be 0.00 ms.
#[derive(Clone, Copy)]
struct TimeUnit {
    name: &'static str,
    us: f64,
}

impl TimeUnit {
    fn of(report: &Report) -> Self {
        if report.is_io() { Self { name: "µs", us: 1.0 } } else { Self { name: "ms", us: 1e3 } }
    }

    /// Microseconds in this unit, with two decimals.
    fn rounded(self, us: f64) -> f64 {
        (us / self.us * 100.0).round() / 100.0
    }
}

/// JSON that can stand in a script element: no `<` can end it or open a comment.
fn in_script(json: &str) -> Value {
    Value::from_safe_string(
        json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"),
    )
}

fn svg(text: String) -> Value {
    Value::from_safe_string(text)
}

fn value(estimate: &kelvin_measure::event::Estimate) -> f64 {
    estimate.value
}

fn charts(report: &Report, point: &PointReport, unit: TimeUnit) -> Charts {
    // The tail is in no figure and its first second would double the window's last.
    let rows: Vec<_> = point.seconds.iter().filter(|s| s.part != Part::Tail).collect();
    let per = report.headline_per;
    let latency = |pick: fn(&SecondReport) -> Option<f64>, response: fn(&OpenSecond) -> Option<f64>| {
        let us = |s: &SecondReport| s.open.as_ref().map_or_else(|| pick(s), response);
        rows.iter().map(|s| us(s).map(|us| unit.rounded(us))).collect()
    };
    // The pace of a sliver of a second is noise.
    let pace = |pick: &dyn Fn(&SecondReport) -> Option<f64>| -> Vec<Option<f64>> {
        rows.iter().map(|s| pick(s).filter(|_| s.width > 0.2).map(|v| (v * 10.0).round() / 10.0)).collect()
    };
    let due = |s: &SecondReport| Some(s.open?.due? as f64 * per.seconds() / s.width);
    let directions = report.is_io().then(|| {
        let each = point.directions.iter().enumerate().filter_map(|(at, name)| {
            let kinds: Vec<usize> = report.kinds_of_direction(name).collect();
            let ended = |s: &SecondReport| kinds.iter().filter_map(|kind| s.good.get(*kind)).sum::<u64>();
            // The series of I/O jobs are those of all phases: of a direction that this one has not nothing is drawn.
            rows.iter().find(|s| ended(s) > 0)?;
            let time = |which: usize| -> Vec<Option<f64>> {
                rows.iter().map(|s| Some(unit.rounded(s.directions.get(at)?[which]?))).collect()
            };
            Some(DirectionCharts {
                name: name.clone(),
                rate: pace(&|s| Some(ended(s) as f64 * per.seconds() / s.width)),
                p50: time(0),
                p95: time(1),
                p99: time(2),
                max: time(3),
                service_p99: time(4),
            })
        });
        each.collect()
    });
    let open = point.open_loop.then(|| OpenCharts {
        due: pace(&due),
        refused: rows.iter().map(|s| s.open?.refused).collect(),
        waiting: rows.iter().map(|s| s.open?.waiting).collect(),
        service_p99: rows.iter().map(|s| s.p99_us.map(|us| unit.rounded(us))).collect(),
        lag_max: rows.iter().map(|s| Some(unit.rounded(s.open?.lag_max_us?))).collect(),
    });
    let mut marks: Vec<(f64, &'static str, String)> = vec![(0.0, "phase", "measured window opens".into())];
    if point.closed {
        marks.push((point.window_s, "phase", "measured window closes".into()));
    }
    for s in point.seconds.iter().filter(|s| s.errors > 0) {
        marks.push((
            s.second as f64,
            "error",
            format!("{} error{}", s.errors, if s.errors == 1 { "" } else { "s" }),
        ));
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
        end: rows.last().map_or(0.0, |last| last.second as f64 + last.width).max(point.window_s),
        headline: pace(&|s| Some(s.headline(per))),
        all: report.has_total().then(|| pace(&|s| Some(s.transactions(per)))),
        open,
        p50: latency(|s| s.p50_us, |o| o.response_p50_us),
        p95: latency(|s| s.p95_us, |o| o.response_p95_us),
        p99: latency(|s| s.p99_us, |o| o.response_p99_us),
        max: latency(|s| s.max_us, |o| o.response_max_us),
        marks,
        directions,
        seen: SeenCharts::of(report, point, &observed::seconds(point)),
        distributions: point
            .distributions
            .iter()
            .map(|d| {
                let round = |(p, us): &(f64, f64)| ((p * 1e4).round() / 1e4, unit.rounded(*us));
                (d.kind.clone(), d.points.iter().map(round).collect())
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn what_stands_between_backticks_is_code_and_nothing_else_gets_into_the_page() {
        assert_eq!(code("`direct=1`, or `a<b`"), "<code>direct=1</code>, or <code>a&lt;b</code>");
        assert_eq!(code("one ` alone & `x`"), "one <code> alone &amp; </code>x`");
        assert_eq!(code("none"), "none");
    }
}
