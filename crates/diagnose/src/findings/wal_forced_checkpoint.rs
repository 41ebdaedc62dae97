//! Did the WAL reach `max_wal_size`, so that PostgreSQL had to make a checkpoint during the load?
//!
//! PostgreSQL requests a checkpoint once the WAL since the last one reaches `max_wal_size` / (1 +
//! `checkpoint_completion_target`), in whole segments less one (`CalculateCheckpointSegments`, `XLogCheckpointNeeded`):
//! the rest is for WAL written during that checkpoint.
//!
//! This is *the* red finding of a checkpoint storm: `checkpoint-in-window` is never red together with it.

use kelvin_measure::observation::Occurrence;
use kelvin_measure::text;
use kelvin_observe::metric;

use super::{FindingDefinition, effect};
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity, Span};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "wal-forced-checkpoint",
    question: "Did the WAL fill max_wal_size and force checkpoints during the load?",
    find,
};

/// The minimum interval of checkpoints forced by the WAL: PostgreSQL's own bound, the default of `checkpoint_warning`,
/// in seconds.
const WARNING: f64 = 30.0;
/// The default of `wal_segment_size`.
const SEGMENT: f64 = 16_777_216.0;
/// The minimum amount of WAL between two checkpoints, relative to the amount that forces one: they are seen up to a
/// second late.
const NEAR: f64 = 0.7;
/// On top of the size computed, because the log's rate varies.
const MARGIN: f64 = 1.2;

/// The checkpoints of a load that the log forced.
struct Forced {
    load: Span,
    /// Their number in ramp-up and window.
    number: f64,
    /// Mean WAL rate over the load, in bytes per second.
    rate: f64,
    limit: f64,
    target: f64,
    /// Whether the server's log reports it; otherwise it follows from the WAL written.
    certain: bool,
    window: Vec<Span>,
}

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

/// The checkpoints that were requested and not timed, if the WAL written explains them.
fn forced(evidence: &Evidence, point: u32) -> Option<Forced> {
    let window = evidence.window(point)?;
    let from = evidence.ramp_up(point).map_or(window.from, |ramp| ramp.from);
    let load = Span { from, to: window.to };
    let limit = evidence.setting_number("max_wal_size")?;
    let target = evidence.setting_number("checkpoint_completion_target").unwrap_or(0.9);
    let segment = evidence.setting_number("wal_segment_size").unwrap_or(SEGMENT);
    let rate = evidence.mean_over(metric::WAL_BYTES, load)?;
    let recorded = evidence.occurrences("checkpoint", load).any(is_recorded);
    // A checkpoint with another cause in the server's log was requested explicitly; one still in progress has no log
    // entry yet.
    let requested = || {
        evidence
            .occurrences("checkpoint", load)
            .filter(|o| o.subject == "requested" && o.from >= load.from && (is_forced(o) || !is_recorded(o)))
    };
    let seen: f64 = requested().map(effect::checkpoints).sum();
    // Short ones are missed by samples: the server's counter has all of them. The server's log lists each one.
    let counted = || effect::total(evidence, metric::REQUESTED_CHECKPOINTS, load).unwrap_or(0.0).round();
    let number = if recorded { seen } else { counted().max(seen) };
    let trigger = ((limit / segment / (1.0 + target)).floor() - 1.0).max(1.0) * segment;
    let before =
        |to: u64| evidence.occurrences("checkpoint", Span { from: 0, to }).map(|o| o.from).max().unwrap_or(0);
    let written = match requested().next() {
        // With a single one: the WAL since the last one, or since the start of the observation.
        Some(one) if number < 1.5 => {
            let since = Span { from: before(one.from), to: one.from };
            evidence.values_within(metric::WAL_BYTES, since).iter().map(|s| s.value * s.seconds()).sum()
        }
        _ => rate * load.seconds() / (number - 1.0).max(1.0),
    };
    let certain = requested().any(is_forced);
    let in_window = effect::total(evidence, metric::REQUESTED_CHECKPOINTS, window).unwrap_or(0.0);
    let spans = effect::spans(requested(), window);
    let within = !spans.is_empty() || (!recorded && in_window >= 0.5);
    (within && number >= 1.0 && (certain || written >= NEAR * trigger)).then_some(Forced {
        load,
        number,
        rate,
        limit,
        target,
        certain,
        window: spans,
    })
}

/// Whether the server's log states that the amount of WAL forced it …
fn is_forced(checkpoint: &Occurrence) -> bool {
    checkpoint.figures.get("forced_by_log_size").is_some_and(|forced| *forced > 0.0)
}

/// … or states any cause.
fn is_recorded(checkpoint: &Occurrence) -> bool {
    is_forced(checkpoint) || checkpoint.figures.contains_key("log_bytes")
}

/// Whether a point has this finding, and how severe.
pub(super) fn severity(evidence: &Evidence, point: u32) -> Option<Severity> {
    of_point(evidence, point).map(|finding| finding.severity)
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let forced = forced(evidence, point)?;
    let window = evidence.window(point)?;
    let warning = evidence.setting_number("checkpoint_warning").map(|ms| ms / 1e3).filter(|s| *s > 0.0);
    let warning = warning.unwrap_or(WARNING);
    let interval = forced.load.seconds() / forced.number;
    let storm = forced.number >= 2.0 && interval < warning;
    let effect = effect::on_throughput(evidence, point, &forced.window);
    let costly = effect.is_some_and(|effect| effect.costly);
    let seconds = load_seconds(evidence, point, window);
    let log = forced.rate * seconds;
    let needed = setting(log * (1.0 + forced.target) * MARGIN);
    let number = text::count(forced.number as usize, "checkpoint");
    let mut facts = vec![
        EvidenceLine::new(
            "checkpoints forced in ramp-up and window",
            format!("{}, one every {}", forced.number, text::short_seconds(interval)),
        ),
        EvidenceLine::new("max_wal_size", text::memory(forced.limit)),
        EvidenceLine::new("WAL written", format!("{} on average", text::disk_rate(forced.rate))),
        EvidenceLine::new(
            "WAL of ramp-up and window without a checkpoint",
            format!(
                "{} × {} = {}",
                text::disk_rate(forced.rate),
                text::short_seconds(seconds),
                text::memory(log)
            ),
        ),
    ];
    let how = if forced.certain { "the server's log" } else { "the WAL written between them" };
    facts.push(EvidenceLine::new("how the cause (WAL size) is known", how));
    facts.extend(images(evidence, point));
    facts.extend(effect.map(effect::Contrast::fact));
    facts.extend(effect::on_log_device(evidence, window, &forced.window));
    Some(Finding {
        id: ABOUT.id,
        severity: if storm || costly { Severity::Red } else { Severity::Amber },
        point: Some(point),
        title: format!(
            "The WAL filled max_wal_size ({}) and forced {number} during the load",
            text::memory(forced.limit)
        ),
        evidence: facts,
        effect: if forced.window.is_empty() {
            Effect::unknown("the times of these checkpoints were not observed")
        } else {
            effect::on_figure(effect, effect::covered(&forced.window) / window.seconds())
        },
        below_precision: false,
        threshold: format!(
            "red when forced checkpoints come within {} s of each other (checkpoint_warning, PostgreSQL's \
            own threshold), or when throughput during them was lower than the ±10 % of a steady state allows \
            (99 % confidence, SNIA PTS)",
            text::number(warning)
        ),
        next: format!(
            "Set max_wal_size = {needed} (WAL rate × (ramp-up + duration), × {} because a checkpoint begins \
            at max_wal_size / (1 + checkpoint_completion_target), plus 20 %), run `checkpoint` just before \
            the load, and measure again; frequent checkpoints fill the WAL with full-page images, so a \
            smaller value may be enough.",
            text::number(1.0 + forced.target)
        ),
    })
}

/// Seconds of ramp-up and window, as planned.
fn load_seconds(evidence: &Evidence, point: u32, window: Span) -> f64 {
    let planned = evidence.point(point).and_then(|p| p.planned).map_or(window.seconds(), |p| p as f64 / 1e9);
    evidence.ramp_up(point).map_or(0.0, Span::seconds) + planned
}

/// The `max_wal_size` in bytes with which no checkpoint would have been forced, as the finding recommends it.
pub(crate) fn needed(evidence: &Evidence, point: u32) -> Option<f64> {
    let forced = forced(evidence, point)?;
    let log = forced.rate * load_seconds(evidence, point, evidence.window(point)?);
    Some(usual(log * (1.0 + forced.target) * MARGIN))
}

fn images(evidence: &Evidence, point: u32) -> Option<EvidenceLine> {
    let images = evidence.mean(point, metric::FULL_PAGE_IMAGES)?;
    let records = evidence.mean(point, metric::WAL_RECORDS).filter(|records| *records > 0.0)?;
    let found = format!(
        "{} per second, one in {} WAL records",
        text::number(images),
        text::number(records / images.max(1e-9))
    );
    (images > 0.0).then(|| {
        EvidenceLine::new("full-page images in the WAL (each first change after a checkpoint)", found)
    })
}

const MB: f64 = 1_048_576.0;

/// Rounded up to a usual value in postgresql.conf: whole gigabytes from 4 GB on, else a multiple of 256 MB.
fn usual(bytes: f64) -> f64 {
    let step = if bytes > 4096.0 * MB { 1024.0 * MB } else { 256.0 * MB };
    (bytes / step).ceil().max(1.0) * step
}

/// The same as it is written there.
fn setting(bytes: f64) -> String {
    let bytes = usual(bytes);
    if bytes > 4096.0 * MB { format!("{:.0}GB", bytes / MB / 1024.0) } else { format!("{:.0}MB", bytes / MB) }
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn server(max_wal_size: &str, wal: f64) -> Staged {
        Staged::new()
            .setting("max_wal_size", max_wal_size)
            .setting("checkpoint_completion_target", "0.9")
            .metric("postgres.wal.bytes", wal)
    }

    /// As seen of PostgreSQL 15 with max_wal_size 64 MB: 61 MB/s of log, a checkpoint every 0.6 s.
    #[test]
    fn a_storm_is_red_and_says_the_size() {
        let mut staged = server("67108864", 61e6).metric("postgres.checkpoints.requested", 1.7);
        for start in 1..26 {
            staged =
                staged.occurrence("checkpoint", "requested", f64::from(start) + 0.1, f64::from(start) + 0.7);
        }
        let found = find(&staged.done());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Red);
        // 61 MB/s × 25 s × 1.9 × 1.2 = 3.48 GB = 3316 MiB
        assert!(found[0].next.contains("max_wal_size = 3328MB"), "{}", found[0].next);
        assert!(found[0].title.contains("64 MB"), "{}", found[0].title);
    }

    #[test]
    fn one_that_cost_nothing_is_amber_and_one_that_cost_is_red() {
        // 4 GB force one at 133 segments, 2231 MB: 150 MB/s for 15 s amount to that.
        let staged = || server("4294967296", 150e6).occurrence("checkpoint", "requested", 16.0, 22.0);
        let found = find(&staged().done());
        assert_eq!((found.len(), found[0].severity), (1, Severity::Amber));
        let slow = |second: i64| {
            if (10..16).contains(&second) {
                500 + second.unsigned_abs()
            } else {
                1000 + second.unsigned_abs()
            }
        };
        assert_eq!(find(&staged().throughput(slow).done())[0].severity, Severity::Red);
    }

    #[test]
    fn a_checkpoint_that_somebody_asked_for_is_none_of_it() {
        let staged = server("4294967296", 13e6).occurrence("checkpoint", "requested", 10.0, 12.0);
        assert!(find(&staged.done()).is_empty());
        let timed = server("67108864", 61e6).occurrence("checkpoint", "timed", 10.0, 12.0);
        assert!(find(&timed.done()).is_empty());
        let in_ramp_up = server("67108864", 61e6).occurrence("checkpoint", "requested", 4.0, 5.0);
        assert!(find(&in_ramp_up.done()).is_empty());
    }

    #[test]
    fn the_servers_log_decides_where_it_was_read() {
        // So little WAL that the estimate would detect nothing, and so much that it would.
        let forced = [("log_bytes", 5e7), ("forced_by_log_size", 1.0)];
        let by_hand = &forced[..1];
        let one =
            |wal, figures| server("67108864", wal).reported("checkpoint", "requested", 10.0, 12.0, figures);
        assert_eq!(find(&one(1e5, &forced).done()).len(), 1);
        let many = || one(61e6, by_hand).metric("postgres.checkpoints.requested", 1.7);
        assert_eq!(find(&many().done()), [], "a command asked for it");
        assert_eq!(find(&many().reported("checkpoint", "requested", 14.0, 15.0, &forced).done()).len(), 1);
        let storm = (1..26).fold(server("67108864", 61e6), |staged, second| {
            let at = f64::from(second);
            staged.reported("checkpoint", "requested", at + 0.1, at + 0.7, &forced)
        });
        assert_eq!(find(&storm.done())[0].severity, Severity::Red);
    }

    #[test]
    fn without_evidence_there_is_nothing() {
        assert!(find(&Staged::new().done()).is_empty());
        let no_log =
            Staged::new().setting("max_wal_size", "67108864").occurrence("checkpoint", "requested", 8.0, 9.0);
        assert!(find(&no_log.done()).is_empty());
    }
}
