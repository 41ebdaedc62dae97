//! Did InnoDB's redo log come round so fast that pages had to be written in a hurry ("furious flushing")?
//!
//! The log is a ring: what its last checkpoint does not cover cannot be written over. When the checkpoint's age comes near the
//! log's size, InnoDB writes pages as fast as it can, and sessions wait when it does not get away.

use kelvin_measure::text;
use kelvin_observe::metric;

use super::{FindingDefinition, effect};
use crate::{Evidence, EvidenceLine, Finding, Severity, Span};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "redo-log-too-small",
    question: "Did the redo log fill up and force InnoDB into furious flushing?",
    find,
};

/// Part of the window from which it is the level that was measured.
const PART: f64 = 0.1;
/// On top of the size computed, because the log's rate varies.
const MARGIN: f64 = 1.2;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

/// The setting of the log's size, and its value in bytes.
fn size(evidence: &Evidence) -> Option<(&'static str, f64)> {
    let files = || evidence.setting_number("innodb_log_files_in_group").unwrap_or(1.0);
    let capacity = evidence.setting_number("innodb_redo_log_capacity");
    capacity.map(|bytes| ("innodb_redo_log_capacity", bytes)).or_else(|| {
        let each = evidence.setting_number("innodb_log_file_size")?;
        Some(("innodb_log_file_size", each * files()))
    })
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let window = evidence.window(point)?;
    let flushes: Vec<_> = evidence.occurrences("furious flush", window).collect();
    let spans = effect::spans(flushes.iter().copied(), window);
    if spans.is_empty() {
        return None;
    }
    let covered = effect::covered(&spans);
    let part = covered / window.seconds();
    let effect = effect::on_throughput(evidence, point, &spans);
    let costly = effect.is_some_and(|effect| effect.costly);
    let figure =
        |name: &str| flushes.iter().filter_map(|one| one.figures.get(name).copied()).reduce(f64::max);
    let (limit, oldest) = (figure("limit_bytes"), figure("age_bytes"));
    let size = size(evidence);
    let rate = evidence.mean_of_first_known(point, metric::LOG_BYTES);
    let mut facts = vec![EvidenceLine::new(
        "part of the window with furious flushing",
        format!(
            "{} of {} ({})",
            text::short_seconds(covered),
            text::short_seconds(window.seconds()),
            text::percent(part)
        ),
    )];
    facts.extend(size.map(|(name, bytes)| EvidenceLine::new(name, text::memory(bytes))));
    facts.extend(
        limit.map(|bytes| EvidenceLine::new("checkpoint age at which flushing begins", text::memory(bytes))),
    );
    facts.extend(oldest.map(|bytes| EvidenceLine::new("highest checkpoint age seen", text::memory(bytes))));
    facts.extend(
        rate.map(|rate| {
            EvidenceLine::new("redo log written", format!("{} on average", text::disk_rate(rate)))
        }),
    );
    facts.extend(effect.map(effect::Contrast::fact));
    let load = evidence.ramp_up(point).map_or(0.0, Span::seconds) + window.seconds();
    let share =
        limit.zip(size).map(|(limit, (_, size))| limit / size).filter(|share| *share > 0.0 && *share < 1.0);
    let needed = rate.zip(share).map(|(rate, share)| rate * load * MARGIN / share);
    let next = match (size, needed) {
        (Some((name, size)), Some(bytes)) if bytes <= size => format!(
            "What this run wrote fits into {name}, so it was nearly full when the run began: begin from a \
            checkpoint (--reset auto, or a pause), or set {name} to {} or more; a higher innodb_io_capacity \
            writes pages earlier.",
            text::memory(size * 2.0)
        ),
        (Some((name, _)), Some(bytes)) => format!(
            "Set {name} to {} or more (so that log rate × (ramp-up + duration) stays below the flushing \
            limit, plus 20 %) and measure again; a higher innodb_io_capacity writes pages earlier.",
            text::memory(bytes)
        ),
        _ => "Set the redo log to several times its current size and measure again; a higher \
            innodb_io_capacity writes pages earlier."
            .into(),
    };
    Some(Finding {
        id: ABOUT.id,
        severity: if costly || part >= PART { Severity::Red } else { Severity::Amber },
        point: Some(point),
        title: format!(
            "The redo log{} filled up: InnoDB wrote pages as fast as it could for {} of the window",
            size.map_or(String::new(), |(_, bytes)| format!(" ({})", text::memory(bytes))),
            text::percent(part)
        ),
        evidence: facts,
        effect: effect::on_figure(effect, part),
        below_precision: false,
        threshold: "red when furious flushing takes 10 % of the window or more, or throughput during it is \
            lower than the ±10 % of a steady state allows (99 % confidence, SNIA PTS); it begins at 7/8 of \
            MariaDB's Innodb_checkpoint_max_age, and at 73 % of MySQL's innodb_redo_log_capacity \
            (log_max_modified_age_async of 8.0.31)"
            .into(),
        next,
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    const LIMIT: f64 = 3_000_000.0;

    fn severity(staged: Staged) -> Option<Severity> {
        find(&staged.done()).first().map(|finding| finding.severity)
    }

    fn flush(staged: Staged, from: f64, to: f64) -> Staged {
        staged.reported(
            "furious flush",
            "redo log",
            from,
            to,
            &[("limit_bytes", LIMIT), ("age_bytes", 1.2 * LIMIT)],
        )
    }

    #[test]
    fn a_log_that_is_full_for_a_tenth_of_the_window_is_red_and_says_the_size() {
        let staged = flush(Staged::new(), 10.0, 20.0)
            .setting("innodb_log_file_size", "4194304")
            .metric("mysql.redo.bytes", 5e6);
        let found = find(&staged.done());
        assert_eq!((found.len(), found[0].severity), (1, Severity::Red));
        // 5 MB/s × 25 s × 1.2 / 0.715 = 210 MB
        assert!(found[0].next.contains("innodb_log_file_size to 200 MB"), "{}", found[0].next);
        assert!(found[0].title.contains("4.0 MB") && found[0].title.contains("50 %"), "{}", found[0].title);
    }

    #[test]
    fn a_log_that_was_full_before_is_not_to_be_made_smaller() {
        let staged = flush(Staged::new(), 8.0, 18.0)
            .setting("innodb_log_file_size", "4194304")
            .metric("mysql.redo.bytes", 5e4);
        let found = find(&staged.done());
        assert!(found[0].next.contains("nearly full when the run began"), "{}", found[0].next);
        assert!(found[0].next.contains("to 8.0 MB or more"), "{}", found[0].next);
    }

    #[test]
    fn a_moment_of_it_is_amber_and_one_outside_is_nothing() {
        assert_eq!(severity(flush(Staged::new(), 10.0, 11.0)), Some(Severity::Amber));
        assert_eq!(severity(flush(Staged::new(), 2.0, 5.0)), None);
        assert_eq!(severity(Staged::new()), None);
    }
}
