//! Did commits wait for the binary log rather than for the redo log?

use kelvin_measure::observation::{WaitGroup, WaitKind};
use kelvin_measure::text;
use kelvin_observe::metric;

use super::FindingDefinition;
use crate::{Class, Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "binlog-sync",
    question: "Did commits wait for the binary log to reach its device?",
    find,
};

/// Share of the time from which a class limits (the verdict's bound): one session at a time syncs the log, so that it is the
/// share of the window in which one does.
const SHARE: f64 = 0.4;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

/// Parts of the window in which the binary log and the redo log were being synced: by the server's clock, else by the sessions
/// that were seen in it.
fn syncing(evidence: &Evidence, point: u32) -> Option<(f64, f64, &'static str)> {
    let clock = |name: Option<&str>| name.and_then(|name| evidence.mean(point, name)).map(|ms| ms / 1e3);
    if let Some(binlog) = clock(Some(metric::BINLOG_SYNC_MS)) {
        let redo = clock(evidence.first_known_metric(metric::LOG_SYNC_MS)).unwrap_or(0.0);
        return Some((binlog, redo, "by the server's clock"));
    }
    let of = |event: &'static str| {
        move |group: &WaitGroup| group.kind == WaitKind::LogFlush && group.event == event
    };
    let seen = |event| evidence.active(point, of(event)).sessions();
    let (binlog, redo) = (seen("binlog sync"), seen("redo sync"));
    (binlog + redo > 0.0).then_some((binlog, redo, "from sampled sessions"))
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let (binlog, redo, how) = syncing(evidence, point)?;
    if binlog < SHARE || binlog <= redo {
        return None;
    }
    let model = crate::verdict::time::model(evidence, evidence.point(point)?)?;
    let log = model.share(Class::Log)?;
    if log.share < SHARE {
        return None;
    }
    let mut facts = vec![
        EvidenceLine::new(
            "part of the window in which the binary log was being synced",
            format!("{} {how}", text::percent(binlog)),
        ),
        EvidenceLine::new("the same for the redo log", text::percent(redo)),
        EvidenceLine::new("transaction time spent waiting for the logs", text::percent(log.share)),
    ];
    let rate = |name: &str, what: &str| {
        evidence.mean(point, name).map(|rate| EvidenceLine::new(what, text::number(rate)))
    };
    facts.extend(rate(metric::BINLOG_SYNCS, "binary log syncs per second"));
    facts.extend(
        evidence
            .mean_of_first_known(point, metric::COMMITS)
            .map(|rate| EvidenceLine::new("commits per second", text::number(rate))),
    );
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: Some(point),
        title: format!(
            "Commits waited for the binary log: it was being synced for {} of the window, the redo log for {}",
            text::percent(binlog),
            text::percent(redo)
        ),
        evidence: facts,
        effect: Effect::up_to(log.share, EffectBasis::TransactionTime),
        below_precision: false,
        threshold:
            "the binary log synced for 40 % of the window and for longer than the redo log, with 40 % of the \
            transactions' time spent waiting for the logs (the verdict's own threshold)"
                .into(),
        next: "Put the binary log on a separate device, or let more commits share a sync (more users; \
            binlog_group_commit_sync_delay); if nothing replicates or restores from it, measure with \
            skip_log_bin and state it with the result."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    fn scene(binlog_ms: f32, redo_ms: f32) -> Evidence {
        let mut scene = Scene::healthy()
            .metric("host.cpu.total.busy", 0.4)
            .metric("mysql.binlog.sync_ms", binlog_ms)
            .metric("mysql.redo.sync_ms", redo_ms);
        scene.sessions = vec![("IO", "WALSync", 2.6), ("CPU", "", 0.5)];
        scene.client_delay = 0.05;
        scene.evidence()
    }

    #[test]
    fn the_binary_log_is_named_when_it_is_the_one() {
        let found = find(&scene(600.0, 200.0));
        assert_eq!((found.len(), found[0].severity), (1, Severity::Amber));
        assert!(found[0].title.contains("60 %") && found[0].title.contains("20 %"), "{}", found[0].title);
    }

    #[test]
    fn the_redo_log_and_little_of_either_are_nothing() {
        assert_eq!(find(&scene(300.0, 200.0)), []);
        assert_eq!(find(&scene(500.0, 600.0)), []);
        assert_eq!(find(&Scene::healthy().evidence()), []);
    }
}
