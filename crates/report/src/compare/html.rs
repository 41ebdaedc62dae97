//! The comparison as one self-contained HTML file.

use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};

use super::text::{factor, format_value, titled};
use super::{ComparedPoint, Comparison, Difference, join_runs, share};
use crate::chart::{self, dot, text};
use crate::html::{Frame, code};
use crate::{Result, Severity};
use kelvin_measure::text::{NONE, bounded, ends};

const TEMPLATE: &str = include_str!("page.html");

/// The page.
///
/// # Errors
/// Fails if the template fails, which is a bug in it.
pub fn render(comparison: &Comparison) -> Result<String> {
    page(comparison, None)
}

/// The page with a server's frame around it.
///
/// # Errors
/// As [`render`].
pub fn page(comparison: &Comparison, frame: Option<&Frame>) -> Result<String> {
    let mut environment = Environment::new();
    crate::html::add_frame(&mut environment)?;
    environment.add_template("page.html", TEMPLATE)?;
    environment.add_filter("code", |text: String| Value::from_safe_string(code(&text)));
    let points: Vec<_> = comparison
        .points
        .iter()
        .map(|point| {
            let rows: Vec<_> = point
                .figures
                .iter()
                .map(|f| {
                    let interval = f.interval.map_or_else(String::new, |(l, h)| ends(l, h, factor));
                    let p = f.p.map_or_else(String::new, |p| {
                        if p < 0.001 { "<.001".into() } else { format!("{p:.3}") }
                    });
                    let ratio = f.exact_ratio().map_or_else(|| NONE.into(), factor);
                    let [a, b] = f.bounded().map(|value| bounded(value, |value| format_value(f, value)));
                    (titled(f), a, b, ratio, interval, p)
                })
                .collect();
            (point.name(), point.verdict, point.words.clone(), rows, point.paired, point.runs)
        })
        .collect();
    let forests: Vec<Value> =
        comparison.points.iter().map(|p| Value::from_safe_string(forest(p, comparison.noise))).collect();
    let differences: Vec<_> = comparison
        .differences
        .iter()
        .map(|d| {
            (d.name.clone(), Difference::describe_values(&d.a), Difference::describe_values(&d.b), d.matters)
        })
        .collect();
    let findings: Vec<_> = comparison.findings.iter().filter(|f| f.severity != Severity::Note).collect();
    let own: Vec<String> = comparison.own.iter().map(super::SideFinding::describe).collect();
    Ok(environment.get_template("page.html")?.render(context! {
        frame => crate::html::frame_value(frame),
        policy => crate::html::policy(&[], frame),
        comparison => Value::from(Serde(comparison)),
        runs => [join_runs(&comparison.a), join_runs(&comparison.b)],
        points => Value::from(Serde(points)),
        forests,
        differences => Value::from(Serde(differences)),
        findings => Value::from(Serde(findings)),
        own,
        noise => share(comparison.noise),
        confidence => share(comparison.confidence),
        version => env!("CARGO_PKG_VERSION"),
        style => Value::from_safe_string(crate::html::STYLE.to_owned()),
    })?)
}

const ROW: f64 = 22.0;

/// Every ratio with its interval on a logarithmic axis; a band around 1 shows the noise. Empty if no metric
/// has an interval.
fn forest(point: &ComparedPoint, noise: f64) -> String {
    use std::fmt::Write;
    // Metrics whose values are lower bounds are only in the table.
    let exact = point.figures.iter().filter(|f| f.exact_ratio().is_some());
    let rows: Vec<_> = exact.filter_map(|f| Some((f, f.ratio?, f.interval?))).collect();
    let widest =
        rows.iter().flat_map(|(_, _, (l, h))| [l.ln().abs(), h.ln().abs()]).fold(noise, f64::max) * 1.1;
    if rows.is_empty() || !widest.is_finite() || widest <= 0.0 {
        return String::new();
    }
    let height = ROW * rows.len() as f64 + 52.0;
    let frame = chart::Frame { width: 960.0, height, left: 240.0, right: 30.0, top: 12.0, bottom: 34.0 };
    let x = |ratio: f64| frame.x(f64::midpoint(ratio.ln() / widest, 1.0));
    let row = |index: usize| frame.top + ROW * (index as f64 + 0.5);
    let mut out = frame.begin("ratios with their intervals; see the table below for the values");
    let (least, most) = (x(1.0 / (1.0 + noise)), x(1.0 + noise));
    let _ = write!(
        out,
        "<rect class=\"noise\" x=\"{least:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{:.1}\"/><g class=\"axes\">",
        frame.top,
        most - least,
        frame.foot() - frame.top
    );
    let end = widest.exp();
    let mut ticks = vec![1.0 / end.powf(0.9), 1.0 / end.powf(0.45), 1.0, end.powf(0.45), end.powf(0.9)];
    ticks.dedup();
    for tick in ticks {
        frame.upright(&mut out, x(tick));
        frame.below(&mut out, x(tick), &format!("{tick:.3}"));
    }
    for (index, (figure, ..)) in rows.iter().enumerate() {
        text(&mut out, (frame.left - 10.0, row(index) + 4.0), "end", &titled(figure));
    }
    text(&mut out, (frame.x(0.5), height - 3.0), "middle", "B/A (1 = no difference), logarithmic");
    out.push_str("</g>");
    for (index, (figure, ratio, (low, high))) in rows.iter().enumerate() {
        let y = row(index);
        let class = if figure.exploratory { "exploratory" } else { "judged" };
        let (from, to) = (x(*low), x(*high));
        let _ = write!(
            out,
            "<g class=\"{class}\"><line x1=\"{from:.1}\" y1=\"{y:.1}\" x2=\"{to:.1}\" y2=\"{y:.1}\"/>"
        );
        dot(
            &mut out,
            "",
            (x(*ratio), y),
            4.5,
            &format!("{}: {ratio:.3} ({low:.3} to {high:.3})", figure.name),
        );
        out.push_str("</g>");
    }
    out.push_str("</svg>");
    out
}
