//! The report as one self-contained HTML file.

mod answer;
mod charts;
mod curves;
mod frame;
mod observed;
mod plot;
mod point;
mod trace;

use std::collections::BTreeMap;

use kelvin_diagnose::interference::{Interference, RelativeChange};
use kelvin_measure::Bounded;
use kelvin_measure::event::Phase;
use kelvin_measure::query_analysis::QueryAnalysis;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};

pub use charts::SecondColumns;
pub(crate) use charts::Seconds;
pub use frame::{Frame, Link, add_to as add_frame, policy, value as frame_value};
pub(crate) use observed::SeenCharts;

use crate::chart::escaped;
use crate::text::{
    FindingGroup, RankedFindings, SERVER_STATISTICS, change, change_interval, change_percent, describe_limit,
    describe_maximum_rate, effect, elasticity_interval, explained, interference_details,
    interference_sentence, interval, other_times, peak, plan_cells, squeezed, two_times, unanswered, waits,
};
use crate::{Finding, Result, RunReport};
use answer::Answer;
use charts::Charts;
use kelvin_measure::text::{
    bounded, coefficient, ms, one_decimal, rate, seconds, significant, significant_or_none, whole,
};
use point::PointView;

const TEMPLATES: [(&str, &str); 8] = [
    ("page.html", include_str!("page.html")),
    ("answer.html", include_str!("answer.html")),
    ("point.html", include_str!("point.html")),
    ("queries.html", include_str!("queries.html")),
    ("trace.html", include_str!("trace.html")),
    ("legend.html", include_str!("legend.html")),
    // For I/O jobs: in place of the table of users or rates, and within each point.
    ("io_phases.html", include_str!("io_phases.html")),
    ("io_jobs.html", include_str!("io_jobs.html")),
];
/// The style sheet of every page.
pub const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const UPLOT: &str = include_str!("../../vendor/uplot/uPlot.iife.min.js");
/// Every page contains a copy of uPlot, and its licence requires the notice in every copy.
const UPLOT_LICENSE: &str = include_str!("../../vendor/uplot/LICENSE");
const UPLOT_STYLE: &str = include_str!("../../vendor/uplot/uPlot.min.css");

/// The report of a run as one self-contained file.
///
/// # Errors
/// Fails if the template fails, which is a bug in it.
pub fn render(report: &RunReport) -> Result<String> {
    page(report, None)
}

/// Each finding with its points and its effect.
fn with_effects(findings: Vec<FindingGroup<'_>>) -> Vec<(&Finding, String, String)> {
    findings.into_iter().map(|one| (one.finding, one.about, effect(one.finding))).collect()
}

/// The page with a server's frame around it; the same as [`render`] without a frame.
///
/// # Errors
/// As [`render`].
pub fn page(report: &RunReport, frame: Option<&Frame>) -> Result<String> {
    let io = report.is_io();
    let environment = environment(io)?;
    let unit = TimeUnit::for_report(io);
    let charts: Vec<Charts> = report.points.iter().map(|p| Charts::new(report, p)).collect();
    let points: Vec<PointView<'_>> = report
        .points
        .iter()
        .zip(&charts)
        .enumerate()
        .map(|(index, (point, charts))| PointView::new(report, point, index, charts))
        .collect();
    let ranked = RankedFindings::new(report);
    let answer = Answer::new(report, &ranked);
    let ranked = ranked.all();
    let notes = ranked.counted();
    let mut facts = BTreeMap::new();
    crate::model::flatten("", &report.recipe.environment, &mut facts);
    let per = report.headline_per;
    let words = report.vocabulary();
    let data = serde_json::json!({
        "headline": report.headline, "total": report.total_name(), "per": per.word(), "points": charts,
        "words": words, "unit": unit.name, "scenario": report.is_scenario(), "best": points.iter().position(PointView::is_best),
    });
    let uplot = format!("/* {UPLOT_LICENSE} */\n{UPLOT}");
    let curve = |draw: fn(&RunReport) -> String| if io { String::new() } else { draw(report) };
    Ok(environment.get_template("page.html")?.render(context! {
        frame => frame_value(frame),
        policy => policy(&[&uplot, SCRIPT], frame),
        report => Value::from(Serde(report)),
        points => Value::from(Serde(&points)),
        answer => Value::from(Serde(&answer)),
        name => report.workload_name(),
        system => report.system(),
        words => Value::from(Serde(words)),
        unit => unit.name,
        io => io.then(|| point::io_labels(report)),
        first_closed => report.points.iter().position(|p| !p.open_loop),
        best_pace => report.best().filter(|_| !report.is_scenario()).map(|p| rate(p.headline(per))),
        started => report.started.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        has_total => report.has_total(),
        total => report.total_name(),
        per => per.word(),
        looked => report.evidence.is_some() || !report.findings.is_empty(),
        serious => Value::from(Serde(with_effects(ranked.first))),
        minor => Value::from(Serde(with_effects(ranked.minor))),
        notes,
        server_statistics => SERVER_STATISTICS,
        unanswered => report.points.iter().any(|p| !p.client_latency().at_least.is_empty()).then(|| unanswered(words)),
        two_times => two_times(words),
        throughput => curve(curves::throughput),
        response => curve(curves::response),
        scalability => curves::scalability(report),
        law => law(report),
        law_words => report.scalability.as_ref().map(|fit| [explained(fit), peak(fit)]),
        is_scenario => report.is_scenario(),
        scenario => scenario(report),
        steps => steps(report),
        squeeze => squeeze(report),
        queries => queries(report),
        trace => report.details.trace.as_ref().map(|found| Value::from(Serde(trace::TraceView::new(found)))),
        highest => report.maximum_rate.as_ref().map(describe_maximum_rate),
        checks => checks(report),
        facts,
        data => in_script(&serde_json::to_string(&data)?),
        style => format!("{UPLOT_STYLE}\n{STYLE}"),
        uplot,
        script => SCRIPT,
    })?)
}

/// The templates and their functions.
fn environment(io: bool) -> Result<Environment<'static>> {
    let mut environment = Environment::new();
    environment.add_filter("ms", |v: Option<f64>| ms(v));
    environment.add_filter("rate", |v: Option<f64>| rate(v));
    environment.add_filter("percent", |v: Option<f64>| one_decimal(v));
    environment.add_filter("whole", |v: u64| whole(v));
    environment.add_filter("cores", |v: Option<f64>| kelvin_measure::text::decimal(v));
    environment.add_filter("time_of", move |row: Value, name: &str| time_of(&row, name, io));
    environment.add_filter("figure", significant_or_none);
    environment.add_filter("code", |text: String| Value::from_safe_string(code(&text)));
    environment.add_filter("seconds", |v: f64| seconds(v));
    environment.add_filter("decimal", |v: f64| format!("{v:.1}"));
    environment.add_filter("capitalize_first", |text: String| {
        let mut letters = text.chars();
        letters
            .next()
            .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect::<String>())
    });
    environment.add_filter("ms_of_ms", |v: Option<f64>| ms(v.map(|v| v * 1e3)));
    environment.add_filter("two", |v: Option<f64>| kelvin_measure::text::decimal(v));
    environment.add_filter("significant", significant);
    environment.add_filter("amount", |v: f64| kelvin_measure::text::decimal_bytes(v));
    for (name, template) in TEMPLATES {
        environment.add_template(name, template)?;
    }
    add_frame(&mut environment)?;
    Ok(environment)
}

/// The steps of a scenario: seconds, number of the annotation in the charts, text.
fn steps(report: &RunReport) -> Value {
    let mut annotations = 0;
    let steps = report.scenario.iter().flat_map(|scenario| &scenario.steps);
    let row = |step: &kelvin_measure::event::Step| {
        annotations += usize::from(step.annotated);
        (step.at as f64 / 1e9, step.annotated.then_some(annotations), step.text.clone())
    };
    Value::from(Serde(steps.map(row).collect::<Vec<_>>()))
}

/// The rows of the table of tenants.
fn scenario(report: &RunReport) -> Value {
    let pair = |change: &RelativeChange, text: fn(Option<f64>) -> String| {
        format!("{} → {}", text(change.before), text(change.after))
    };
    let changed = |change: &RelativeChange| {
        let ends = change_interval(change).map_or_else(String::new, |ends| format!(" ({ends})"));
        format!("{}{ends}", change_percent(change.ratio))
    };
    let row = |one: &Interference| {
        [
            one.text.clone(),
            format!("{:.0} s", one.at_s),
            one.tenant.clone(),
            pair(&one.throughput, rate),
            changed(&one.throughput),
            pair(&one.p99_us, ms),
            changed(&one.p99_us),
            interference_sentence(one),
            interference_details(one).join("; "),
        ]
    };
    let found = report.scenario.as_ref();
    Value::from(Serde(found.map(|found| found.interference.iter().map(row).collect::<Vec<_>>())))
}

/// The table of queries and the plans.
fn queries(report: &RunReport) -> Value {
    let found = report.details.queries.as_ref().map(|found| {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| kelvin_measure::text::NONE.into());
        let row = |row: &crate::QueryRow| {
            serde_json::json!({
                "query": row.query, "power": or_none(row.power_s.map(significant)), "others": other_times(row),
                "rows": or_none(row.rows.map(whole)), "digest": or_none(row.digest.clone()),
                "plan": or_none(row.plan.clone()), "answer": row.answer(), "bad": !row.state.counts(),
            })
        };
        let analysis = |one: &QueryAnalysis| {
            let cells = plan_cells(one);
            serde_json::json!({ "query": one.query, "cells": cells, "spills": one.spills.join("; "), "plan": one.plan, "waits": waits(one) })
        };
        let mut plans: Vec<(&str, &str)> = Vec::new();
        for one in &found.executions {
            let Some(plan) = &one.plan else { continue };
            if plans.iter().all(|(query, _)| *query != one.query) {
                plans.push((&one.query, &plan.text));
            }
        }
        serde_json::json!({
            "sentence": found.describe(), "rows": found.rows.iter().map(row).collect::<Vec<_>>(), "plans": plans,
            "analyses": found.analyses.iter().map(analysis).collect::<Vec<_>>(),
        })
    });
    Value::from(Serde(found))
}

/// The rows of the squeeze table, and its summary sentence.
fn squeeze(report: &RunReport) -> Value {
    let found = report.squeeze.as_ref().map(|found| {
        let rows = found.resources.iter().map(|one| {
            let elasticity = kelvin_measure::text::decimal(Some(one.elasticity));
            let pairs = one.pairs.to_string();
            let interval = elasticity_interval(one);
            [&one.resource, &elasticity, &interval, &change(one), &pairs, &one.verdict, &describe_limit(one)]
                .map(Clone::clone)
        });
        (squeezed(found), rows.collect::<Vec<_>>())
    });
    Value::from(Serde(found))
}

/// The rows of the table of the scalability model.
fn law(report: &RunReport) -> Option<[[String; 4]; 3]> {
    let fit = report.scalability.as_ref()?;
    let row = |name: &str, e: &kelvin_measure::event::Estimate, words: &str| {
        [name.to_owned(), coefficient(e.value), interval(e), words.to_owned()]
    };
    Some([
        row("λ", &fit.lambda, "transactions per second of a single user"),
        row("σ", &fit.sigma, "contention: share of serialized work"),
        row("κ", &fit.kappa, "coherency: cost of each pair of users"),
    ])
}

/// The consistency conditions by phase, with the number that hold.
fn checks(report: &RunReport) -> Value {
    let groups = [("before the run", true), ("after the run", false)].map(|(when, first)| {
        let of = |check: &&crate::JudgedCheck| (check.phase == Phase::CheckBefore) == first;
        let checks: Vec<_> = report.checks.iter().filter(of).collect();
        let (holding, failing) =
            (checks.iter().filter(|c| c.holds).count(), checks.iter().filter(|c| c.fails()).count());
        (when, checks, holding, failing)
    });
    Value::from(Serde(groups))
}

/// A time in a row of the latency table, by field name.
fn time_of(row: &Value, name: &str, io: bool) -> std::result::Result<String, minijinja::Error> {
    let value = row.get_attr(name)?;
    let at_least = row.get_attr("at_least")?.try_iter()?.any(|bound| bound.as_str() == Some(name));
    let value = f64::try_from(value).ok().map(|value| Bounded { value, at_least });
    Ok(if io { bounded(value, significant_or_none) } else { bounded(value, ms) })
}

/// Converts text between backticks to code elements.
pub(crate) fn code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // A backtick without a partner is an ordinary character.
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

/// The unit of times in charts: an I/O of a microsecond would be 0.00 ms.
#[derive(Clone, Copy)]
struct TimeUnit {
    name: &'static str,
    us: f64,
}

impl TimeUnit {
    fn for_report(io: bool) -> Self {
        if io { Self { name: "µs", us: 1.0 } } else { Self { name: "ms", us: 1e3 } }
    }

    /// Microseconds in this unit, with two decimals.
    fn rounded(self, us: f64) -> f64 {
        (us / self.us * 100.0).round() / 100.0
    }
}

/// JSON for a script element: no `<` can end the element or open a comment.
fn in_script(json: &str) -> Value {
    Value::from_safe_string(
        json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"),
    )
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
