//! Did a checkpoint fall within the measured window, and what did it do to the log and the throughput?
//!
//! SQLite moves its log into the database many times a second by its nature; only long ones are reported, and they are never
//! red. A storm that the WAL forced is reported by `wal-forced-checkpoint`: if that is red, this one is amber.

use super::{FindingDefinition, effect, wal_forced_checkpoint};
use crate::{Evidence, EvidenceLine, Finding, Severity};
use kelvin_measure::text;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "checkpoint-in-window",
    question: "Did a checkpoint fall within the measured window, and what did it cost?",
    find,
};

/// This many in one window are not timed: the shortest `checkpoint_timeout` is 30 s, so something must have requested
/// them.
const STORM: f64 = 3.0;
/// The shortest `checkpoint_timeout` that PostgreSQL accepts, in seconds.
const SHORTEST: f64 = 30.0;

/// SQL Server's recovery target, in milliseconds.
pub(super) const RECOVERY_TARGET: &str = "target_recovery_time_in_seconds";

/// Name of SQLite's checkpoints.
const SQLITE: &str = "wal";

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let window = evidence.window(point)?;
    let checkpoints: Vec<_> = evidence.occurrences("checkpoint", window).collect();
    let spans = effect::spans(checkpoints.iter().copied(), window);
    if spans.is_empty() {
        return None;
    }
    let effect = effect::on_throughput(evidence, point, &spans);
    let number = checkpoints.iter().map(|one| effect::checkpoints(one)).sum::<f64>() as usize;
    let own = checkpoints.iter().all(|one| one.subject == SQLITE);
    let storm = number as f64 >= STORM && window.seconds() / (number as f64) < SHORTEST;
    let explained = wal_forced_checkpoint::severity(evidence, point) == Some(Severity::Red);
    let costly = effect.is_some_and(|effect| effect.costly);
    let severity = match (own, costly || storm && !own) {
        (true, false) => Severity::Note,
        (false, true) if !explained => Severity::Red,
        _ => Severity::Amber,
    };
    let mut facts: Vec<EvidenceLine> = checkpoints.iter().take(5).map(|o| one(o, window.from)).collect();
    if checkpoints.len() > 5 {
        facts.push(EvidenceLine::new("further checkpoints", format!("{}", checkpoints.len() - 5)));
    }
    let covered = effect::covered(&spans);
    facts.push(EvidenceLine::new(
        "part of the window",
        format!(
            "{} of {} ({})",
            text::short_seconds(covered),
            text::short_seconds(window.seconds()),
            text::percent(covered / window.seconds())
        ),
    ));
    facts.extend(effect.map(effect::Contrast::fact));
    facts.extend(evidence.setting(RECOVERY_TARGET).map(|ms| {
        EvidenceLine::new("recovery target (0: all dirty pages are written in one burst)", format!("{ms} ms"))
    }));
    facts.extend(effect::on_log_device(evidence, window, &spans));
    let next = if own {
        "SQLite writes pages to the database file with such checkpoints; if they cost throughput, a smaller \
        wal_autocheckpoint makes them shorter and more frequent."
    } else if explained {
        "These checkpoints are a consequence of max_wal_size: see wal-forced-checkpoint."
    } else if evidence.setting(RECOVERY_TARGET).is_some() {
        "Let the background writer write continuously instead of in one burst: `ALTER DATABASE … SET \
        TARGET_RECOVERY_TIME = 60 SECONDS` (240 s removed the swings in one study), compared with the present \
        setting as an A/B; or measure over several complete checkpoints and state this with the result."
    } else {
        "Run `checkpoint` just before the load and set checkpoint_timeout and max_wal_size high enough to \
        last through ramp-up and window; or measure over several complete checkpoints and state this with \
        the result; checkpoint_completion_target = 0.9 spreads their writes."
    };
    Some(Finding {
        id: ABOUT.id,
        severity,
        point: Some(point),
        title: format!(
            "{} fell within the measured window{}",
            text::count(number, if own { "long checkpoint" } else { "checkpoint" }),
            effect.filter(|effect| effect.costly).map_or(String::new(), |effect| format!(
                ": {} transactions per second during it, {} otherwise",
                text::number(effect.during),
                text::number(effect.rest)
            ))
        ),
        evidence: facts,
        effect: effect::on_figure(effect, covered / window.seconds()),
        below_precision: false,
        threshold:
            "red when throughput during checkpoints was lower than the ±10 % of a steady state allows \
            (99 % confidence, SNIA PTS), or when three checkpoints occurred less than 30 s apart (the \
            shortest checkpoint_timeout)"
                .into(),
        next: next.into(),
    })
}

fn one(checkpoint: &kelvin_measure::observation::Occurrence, open: u64) -> EvidenceLine {
    let start = checkpoint.from as f64 / 1e9 - open as f64 / 1e9;
    let length = checkpoint.to.map_or("unfinished".into(), |to| {
        text::short_seconds(to.saturating_sub(checkpoint.from) as f64 / 1e9)
    });
    let buffers = checkpoint.figures.get("buffers").map(|n| format!(", {} pages written", text::rounded(*n)));
    let found = format!("at {start:+.1} s, {length}{}", buffers.unwrap_or_default());
    EvidenceLine::new(format!("{} checkpoint", checkpoint.subject), found)
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn severity(staged: Staged) -> Option<Severity> {
        let found = find(&staged.done());
        assert!(found.len() < 2);
        found.first().map(|finding| finding.severity)
    }

    fn slow(from: i64, to: i64) -> impl Fn(i64) -> u64 {
        move |second| {
            1000 + (second * 7).rem_euclid(5) as u64 * 20 - if (from..to).contains(&second) { 600 } else { 0 }
        }
    }

    #[test]
    fn it_is_red_only_when_it_cost_something() {
        let with = || Staged::new().occurrence("checkpoint", "timed", 12.0, 17.0);
        assert_eq!(severity(with()), Some(Severity::Amber));
        assert_eq!(severity(with().throughput(slow(6, 11))), Some(Severity::Red));
        // Slow elsewhere is not the checkpoint's doing.
        assert_eq!(severity(with().throughput(slow(0, 5))), Some(Severity::Amber));
    }

    #[test]
    fn outside_of_the_window_it_does_not_matter() {
        assert_eq!(severity(Staged::new().occurrence("checkpoint", "requested", 2.0, 5.9)), None);
        assert_eq!(severity(Staged::new().occurrence("checkpoint", "requested", 26.5, 28.0)), None);
        assert_eq!(severity(Staged::new().occurrence("autovacuum", "public.stock", 8.0, 9.0)), None);
        assert_eq!(severity(Staged::new()), None);
    }

    #[test]
    fn a_storm_that_the_log_does_not_explain_is_red_here_and_else_there() {
        let storm = || {
            (7..20).fold(Staged::new(), |s, t| {
                s.occurrence("checkpoint", "requested", f64::from(t), f64::from(t) + 0.6)
            })
        };
        assert_eq!(severity(storm()), Some(Severity::Red));
        let explained = storm().setting("max_wal_size", "67108864").metric("postgres.wal.bytes", 60e6);
        assert_eq!(severity(explained), Some(Severity::Amber));
    }

    #[test]
    fn sqlites_own_are_a_note() {
        let long = || {
            (7..20).fold(Staged::new(), |s, t| {
                s.occurrence("checkpoint", "wal", f64::from(t), f64::from(t) + 0.6)
            })
        };
        assert_eq!(severity(long()), Some(Severity::Note));
        assert_eq!(severity(long().throughput(slow(1, 14))), Some(Severity::Amber));
    }

    #[test]
    fn the_log_devices_await_is_beside_it() {
        let staged = Staged::new()
            .place("wal", "vdb")
            .metric("host.disk.vdb.w_s", 100.0)
            .metric_by("host.disk.vdb.w_await", |t| if (13..18).contains(&t) { 9.0 } else { 1.0 })
            .occurrence("checkpoint", "timed", 12.0, 17.0);
        let found = find(&staged.done());
        let fact = found[0].evidence.iter().find(|fact| fact.what.contains("vdb")).unwrap();
        assert_eq!(fact.found, "9 ms against 1 ms");
    }
}
