//! The history for a terminal, 80 columns wide.

use kelvin_stats::dependence::effective_count;

use super::{History, HistoryEntry};
use crate::compare::chance;
use crate::text::{AMBER, BOLD, GREEN, Options, RED, painted, wrap_lines};
use kelvin_measure::text::{AT_LEAST, plural, printable, significant};

/// Width of the bars, in columns.
const BAR: usize = 22;

/// One line per entry, with the change points between them.
pub fn render(history: &History, options: Options) -> String {
    let mut out = String::new();
    let mut lines = |colour: &str, lines: Vec<String>| {
        for line in lines {
            out.push_str(painted(options.colour, colour, line.trim_end()).as_str());
            out.push('\n');
        }
    };
    let title = format!(
        "{} of {} on branch {}, testbed {}",
        history.title(),
        history.workload,
        history.branch,
        history.testbed
    );
    lines(BOLD, wrap_lines("", &title));
    lines(BOLD, wrap_lines("", &verdict(history)));
    for note in &history.notes {
        lines(AMBER, wrap_lines("note: ", note));
    }
    let (low, high) = bounds(history);
    lines("", vec![String::new()]);
    let head = format!("{:<14}{:<18}{:>12}  {:<BAR$}  label", "run", "started (UTC)", history.unit, "");
    lines("", vec![head]);
    for (index, entry) in history.entries.iter().enumerate() {
        if let Some(change) = history.changes.iter().find(|change| change.index == index) {
            let colour = match change.better {
                Some(true) => GREEN,
                Some(false) => RED,
                None => BOLD,
            };
            let lead = "── changed: ";
            let words = format!(
                "{} ({} → {}, {} at the selected change point); {}",
                change.describe(),
                significant(change.before),
                significant(change.after),
                crate::compare::chance(change.p),
                change.cause()
            );
            lines(colour, wrap_lines(lead, &words));
        }
        lines("", vec![line(entry, low, high)]);
    }
    lines("", vec![String::new()]);
    let scale = format!("the bars range from {} to {}, not from 0", significant(low), significant(high));
    lines("", wrap_lines("", &scale));
    if let Some(assumed) = assumption(history) {
        lines("", wrap_lines("", &assumed));
    }
    out
}

/// φ above which a level cannot be distinguished from a random walk. False alarms were simulated for φ up to
/// 0.8, and the estimate is conservative.
const WALK: f64 = 0.9;

/// The noise that the change points assume, in one sentence.
pub(super) fn assumption(history: &History) -> Option<String> {
    let (phi, entries) = (history.noise_phi?, history.entries.len());
    let tested = history.noise_lag1.map_or_else(String::new, |(lag1, p)| {
        format!("; lag-1 correlation around the levels {lag1:.2}, {}", chance(p))
    });
    Some(if phi > WALK {
        format!(
            "adjacent entries are so similar (φ = {phi:.2}{tested}) that a change of the level cannot be \
             distinguished from drift"
        )
    } else {
        format!(
            "correlation of successive entries is allowed for (φ = {phi:.2}, at which the {entries} entries \
             are equivalent to {} independent ones{tested}); if nothing changed, such noise shows a change \
             in at most 5 % of histories of 100 entries; a drift counts as a change",
            significant(effective_count(entries, phi))
        )
    })
}

/// The result of the change points, in one sentence.
pub(super) fn verdict(history: &History) -> String {
    let entries = history.entries.len();
    match history.changes.len() {
        0 if history.too_short() => format!(
            "{entries} {}: too few to find a change; at least {} are needed",
            plural(entries, "entry", "entries"),
            super::FEWEST
        ),
        0 => format!("no change of the level shown in {entries} entries"),
        1 => format!("the level changed once in {entries} entries"),
        n => format!("the level changed {n} times in {entries} entries"),
    }
}

fn line(entry: &HistoryEntry, low: f64, high: f64) -> String {
    let label = entry.label.as_deref().map(printable).unwrap_or_default();
    let label: String = label.chars().take(10).collect();
    format!(
        "{:<14}{:<18}{:>12}  {:<BAR$}  {label}",
        runs(entry),
        entry.started.strftime("%Y-%m-%d %H:%M").to_string(),
        format!("{}{}", if entry.at_least { AT_LEAST } else { "" }, significant(entry.value)),
        bar((entry.value - low) / (high - low)),
    )
}

/// "12", or "12-15 (4)" for a group.
fn runs(entry: &HistoryEntry) -> String {
    match (entry.runs.first(), entry.runs.last()) {
        (Some(first), Some(last)) if first != last => format!("{first}-{last} ({})", entry.runs.len()),
        (Some(first), _) => first.to_string(),
        _ => String::new(),
    }
}

/// A bar with a resolution of an eighth of a column.
fn bar(share: f64) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{rest}", "█".repeat(eighths / 8))
}

/// From a tenth of the range below the lowest value to the highest, so that changes of a few per cent are
/// visible.
pub(super) fn bounds(history: &History) -> (f64, f64) {
    let values = || history.entries.iter().flat_map(|entry| [entry.range.0, entry.range.1]);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let margin = ((high - low) * 0.1).max(high.abs() * 0.01).max(f64::MIN_POSITIVE);
    (low - margin, high + margin)
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_grow_by_eighths() {
        assert_eq!([bar(0.0), bar(0.5 / 22.0), bar(1.0 / 22.0)], ["", "▌", "█"]);
        assert_eq!((bar(7.0).chars().count(), bar(-1.0)), (22, String::new()));
    }
}
