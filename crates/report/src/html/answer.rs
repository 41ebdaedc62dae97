//! The top of the page: what was measured, how precise it is, whether the run counts, what limited it, and
//! what to do.

use serde::Serialize;

use super::TimeUnit;
use super::point::p99_words;
use crate::text::{RankedFindings, describe_maximum_rate, elasticities, peak};
use crate::{BottleneckOutcome, PointReport, RunReport};
use kelvin_measure::text::{
    NONE, bounded, ms, one_decimal, plural, rate, seconds, significant_or_none, whole,
};

/// Largest number of phases of I/O jobs at the top.
const MOST_PHASES: usize = 6;

/// The top of the page.
#[derive(Serialize)]
pub(super) struct Answer {
    /// The headline; one per phase for I/O jobs with several phases; none before a window has opened.
    headlines: Vec<Tile>,
    /// Its precision.
    interval: Option<String>,
    /// The other main results.
    tiles: Vec<Tile>,
    /// What limited it, one sentence each.
    sentences: Vec<String>,
    /// What to do about it.
    next: Option<String>,
    /// CSS class of the verdict.
    outcome: &'static str,
    /// The first findings: severity, id, title and remedy.
    findings: Vec<TopFinding>,
    /// Number of further findings that affect the results.
    more: usize,
}

/// A value and its label.
#[derive(Serialize)]
struct Tile {
    class: &'static str,
    value: String,
    name: String,
}

#[derive(Serialize)]
struct TopFinding {
    severity: &'static str,
    id: &'static str,
    title: String,
    next: String,
}

impl Answer {
    pub(super) fn of(report: &RunReport, ranked: &RankedFindings<'_>) -> Self {
        let best = report.best();
        let verdict = best.and_then(|best| best.verdict.as_ref());
        let mut sentences: Vec<String> = Vec::new();
        sentences.extend(report.details.queries.as_ref().map(|queries| sentence(&queries.describe())));
        sentences.extend(report.maximum_rate.as_ref().map(|found| sentence(&describe_maximum_rate(found))));
        sentences.extend(report.scalability.as_ref().map(|fit| sentence(&peak(fit))));
        sentences.extend(report.squeeze.iter().flat_map(elasticities).map(|words| sentence(&words)));
        let of_point = verdict.map(|verdict| match best {
            Some(best) if report.points.len() > 1 => format!("At {}: {}", best.name(), verdict.sentence),
            _ => verdict.sentence.clone(),
        });
        sentences.extend(of_point.map(|words| sentence(&words)));
        Self {
            headlines: headlines(report, best),
            interval: best.and_then(|best| interval(report, best)),
            tiles: best.map(|best| tiles(report, best)).unwrap_or_default(),
            sentences,
            next: verdict.map(|verdict| verdict.next.clone()).filter(|next| !next.is_empty()),
            outcome: verdict.map_or("undetermined", |verdict| match verdict.outcome {
                BottleneckOutcome::Void { .. } => "void",
                BottleneckOutcome::Undetermined { .. } => "undetermined",
                BottleneckOutcome::Bound { .. } | BottleneckOutcome::Compound { .. } => "bound",
            }),
            findings: ranked
                .first
                .iter()
                .map(|one| TopFinding {
                    severity: one.finding.severity.word(),
                    id: one.finding.id,
                    title: format!("{}{}", one.finding.title, one.about),
                    next: one.finding.next.clone(),
                })
                .collect(),
            more: ranked.more.len(),
        }
    }
}

/// As a sentence: with a capital letter and a full stop.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if words.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

fn headlines(report: &RunReport, best: Option<&PointReport>) -> Vec<Tile> {
    let Some(best) = best else { return Vec::new() };
    let value = |point: &PointReport| rate(point.headline(report.headline_per));
    let name = &report.headline;
    if report.is_io() && report.points.len() > 1 {
        let phase =
            |p: &PointReport| Tile { class: "big", value: value(p), name: format!("{name}, {}", p.name()) };
        let mut phases: Vec<Tile> = report.points.iter().take(MOST_PHASES).map(phase).collect();
        let more = report.points.len().saturating_sub(MOST_PHASES);
        if more > 0 {
            phases.push(Tile { class: "", value: more.to_string(), name: "more phases below".into() });
        }
        return phases;
    }
    let held = report.maximum_rate.as_ref().is_some_and(|found| found.highest_held() == Some(best.point));
    let which = match report.points.len() {
        _ if held => ", at the highest sustained rate".into(),
        0 | 1 => String::new(),
        several => format!(", best of {several} {}", report.vocabulary().point.many),
    };
    vec![Tile { class: "big", value: value(best), name: format!("{name}{which}") }]
}

/// Precision of the headline within this run.
fn interval(report: &RunReport, best: &PointReport) -> Option<String> {
    if report.is_io() && report.points.len() > 1 {
        return None;
    }
    if let Some(words) = p99_words(best) {
        return Some(sentence(&words));
    }
    let value = best.headline(report.headline_per)?;
    let Some(precision) = best.within_run.filter(|_| !best.open_loop) else {
        return best.too_short().then(|| sentence(crate::text::TOO_SHORT));
    };
    let half = value * precision.half_width_percent / 100.0;
    Some(format!(
        "{} to {} within this run (95 %, ± {:.1} %, {:.0} effective seconds); the next run may differ by more.",
        rate(Some(value - half)),
        rate(Some(value + half)),
        precision.half_width_percent,
        precision.effective_seconds
    ))
}

fn tiles(report: &RunReport, best: &PointReport) -> Vec<Tile> {
    let plain = |value: String, name: String| Tile { class: "", value, name };
    let mut tiles = Vec::new();
    let one = !report.is_io() || report.points.len() == 1;
    if one {
        tiles.extend(best.schedule.as_ref().map(|schedule| Tile {
            class: if schedule.overloaded { "bad" } else { "" },
            value: rate(schedule.asked_per_second),
            name: format!(
                "per second requested, {}",
                schedule.achieved_ratio.map_or_else(
                    || "achieved share not known".into(),
                    |ratio| format!("{} achieved", one_decimal(Some(ratio * 100.0)))
                )
            ),
        }));
        tiles.push(latency(report, best));
        if best.schedule.is_none() && report.has_total() {
            let all = rate(best.transactions(report.headline_per));
            tiles.push(plain(all, format!("{}, commits and rollbacks", report.total_name())));
        }
        if let Some(reads) = &best.throughput.reads {
            tiles.push(plain(reads.describe(), "read by scans".into()));
        }
        tiles.push(plain(seconds(best.window_s), format!("measured, {}", best.users())));
    }
    let errors: u64 = report.points.iter().map(PointReport::error_count).sum();
    tiles.push(Tile {
        class: if errors > 0 { "warn" } else { "" },
        value: whole(errors),
        name: format!("error{}, whole run", plural(errors, "", "s")),
    });
    tiles
}

/// p99 as seen by the users.
fn latency(report: &RunReport, best: &PointReport) -> Tile {
    let unit = TimeUnit::of(report.is_io());
    let times = best.client_latency();
    let shown =
        if report.is_io() { bounded(times.p99_us, significant_or_none) } else { bounded(times.p99_us, ms) };
    let words = report.vocabulary();
    let time = if best.open_loop { "response time" } else { words.time };
    let unanswered = if times.at_least.is_empty() {
        String::new()
    } else {
        let of = if report.is_io() { "of the I/Os" } else { "of the arrivals" };
        format!("; {} {of} unanswered", one_decimal(Some(times.unanswered_percent)))
    };
    let value = if shown == NONE { shown } else { format!("{shown} {}", unit.name) };
    Tile { class: "", value, name: format!("p99 {time}{unanswered}") }
}
