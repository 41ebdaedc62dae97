//! Did sessions queue for the latches of InnoDB's adaptive hash index?

use kelvin_measure::observation::{WaitGroup, WaitKind};

use super::{FindingDefinition, setting};
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity, is_client};
use kelvin_measure::text;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "adaptive-hash-latch",
    question: "Did sessions queue for the latches of InnoDB's adaptive hash index?",
    find,
};

/// Share of the active sessions from which a class is the limit (METHOD B6), and from which it should be known.
const LIMIT: f64 = 0.4;
const KNOWN: f64 = 0.1;

fn find(evidence: &Evidence) -> Vec<Finding> {
    let on = setting::setting_value(evidence, "innodb_adaptive_hash_index")
        .is_some_and(|value| value.eq_ignore_ascii_case("on") || value == "1");
    if !on {
        return Vec::new();
    }
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

/// As both servers call it: `wait/synch/sxlock/innodb/btr_search_latch`, `wait/synch/rwlock/innodb/btr_search_latch`.
fn is_of_hash_index(group: &WaitGroup) -> bool {
    group.kind == WaitKind::Latch && group.event.contains("/btr_search")
}

/// A latch of which the server's thread shows nothing but that it waits.
fn is_unnamed(group: &WaitGroup) -> bool {
    group.kind == WaitKind::Latch && !group.event.contains('/')
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let active = evidence.active(point, is_client);
    let share_of = |which: fn(&WaitGroup) -> bool| {
        let waiting: f64 = active.groups.iter().filter(|(group, _)| which(group)).map(|(_, s)| s).sum();
        (waiting, waiting / active.sessions())
    };
    let (waiting, share) = share_of(is_of_hash_index);
    let (unnamed, unnamed_share) = share_of(is_unnamed);
    let named = share >= KNOWN && waiting >= 0.5;
    // Which latch it is has not been seen: only where latches are the limit is it worth a try.
    let possible = unnamed_share >= LIMIT && unnamed >= 1.0;
    if !named && !possible {
        return None;
    }
    let (waiting, share) = if named { (waiting, share) } else { (unnamed, unnamed_share) };
    let what = if named {
        "sessions waiting for the adaptive hash index"
    } else {
        "sessions waiting for a latch with an unknown name"
    };
    Some(Finding {
        id: ABOUT.id,
        severity: if named && share >= LIMIT && waiting >= 1.0 { Severity::Red } else { Severity::Amber },
        point: Some(point),
        title: if named {
            format!(
                "Sessions queued for the adaptive hash index: {} of their active time",
                text::percent(share)
            )
        } else {
            format!(
                "Sessions queued for latches ({} of their active time), and the adaptive hash index is on",
                text::percent(share)
            )
        },
        evidence: vec![
            EvidenceLine::of_active(what, waiting, active.sessions()),
            EvidenceLine::new("innodb_adaptive_hash_index", "on"),
        ],
        effect: Effect::up_to(share, EffectBasis::TransactionTime),
        below_precision: false,
        threshold: "amber from 10 % of the active sessions, red from 40 % (the verdict's own threshold); where \
        the names of latches are not recorded, amber when latch waits in total reach 40 %"
            .into(),
        next: if named {
            "Set innodb_adaptive_hash_index = OFF (it can be changed while the server runs) and measure again."
        } else {
            "Run again with --observe deep, which shows the latches by name, or set \
             innodb_adaptive_hash_index = OFF and compare."
        }
        .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn severity(setting: &str, latch: &str, sessions: f64) -> Option<Severity> {
        let groups = [("client backend", "Wait", latch, sessions), ("client backend", "CPU", "", 4.0)];
        let mut staged = Staged::new().setting("innodb_adaptive_hash_index", setting);
        staged = staged.mysql_sessions(&groups);
        find(&staged.done()).first().map(|finding| finding.severity)
    }

    #[test]
    fn the_hash_index_is_named_where_it_is_the_one() {
        let latch = "wait/synch/sxlock/innodb/btr_search_latch";
        assert_eq!(severity("on", latch, 4.0), Some(Severity::Red));
        assert_eq!(severity("on", latch, 0.8), Some(Severity::Amber));
        assert_eq!(severity("on", latch, 0.2), None);
        assert_eq!(severity("off", latch, 4.0), None);
        assert_eq!(severity("on", "wait/synch/mutex/innodb/trx_sys_mutex", 6.0), None);
    }

    #[test]
    fn without_names_it_is_no_more_than_possible() {
        assert_eq!(severity("on", "futex", 4.0), Some(Severity::Amber));
        assert_eq!(severity("on", "futex", 1.5), None);
        assert_eq!(severity("off", "futex", 4.0), None);
    }
}
