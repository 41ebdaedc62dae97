//! Did sorts and hashes spill to temporary files?

use kelvin_measure::observation::StatementTotals;
use kelvin_measure::text;

use super::{FindingDefinition, buffers_too_small};
use crate::noise::WANTED;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "temporary-files",
    question: "Did sorts and hashes spill to temporary files?",
    find,
};

/// Bytes a second from which it is more than a report beside the load: PostgreSQL's own pages of 8 kB, 128 a second.
const RATE: f64 = 1_048_576.0;
/// Share of the statements' time in statements that spill from which a run's figure is more than what it may hide: writing and
/// merging take a third of such a statement or more.
const SHARE: f64 = 3.0 * WANTED;
/// Times the bytes of its file that a sort or hash takes in memory: rows have a header there and pointers to them.
const IN_MEMORY: f64 = 3.0;
/// Part of the host's memory that all users together may take for it.
const OF_HOST: f64 = 0.25;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let rate = evidence.mean(point.point, "postgres.temp.bytes").filter(|rate| *rate >= RATE)?;
    let (statements, total) = evidence.statements(point.point).unwrap_or((&[], 0.0));
    let mut spilled: Vec<&StatementTotals> =
        statements.iter().filter(|one| one.temporary_bytes.is_some_and(|bytes| bytes > 0)).collect();
    spilled.sort_by_key(|one| std::cmp::Reverse(one.temporary_bytes));
    let time: f64 = spilled.iter().map(|one| one.total_ms).sum();
    let share = (total > 0.0 && !spilled.is_empty()).then(|| time / total);
    let each = |one: &StatementTotals| one.temporary_bytes.unwrap_or(0) as f64 / one.calls.max(1) as f64;
    let needed = spilled.iter().map(|one| each(one)).fold(0.0, f64::max) * IN_MEMORY;
    let host = buffers_too_small::memory(evidence);
    let room = host.is_some_and(|host| needed * f64::from(point.users.max(1)) <= OF_HOST * host);
    let red = room && share.is_some_and(|share| share >= SHARE);
    let mut facts = vec![EvidenceLine::new("written to temporary files", text::disk_rate(rate))];
    if let Some(memory) = evidence.setting_number("work_mem") {
        facts.push(EvidenceLine::new("work_mem", text::memory(memory)));
    }
    facts.extend(spilled.iter().take(3).map(|one| {
        EvidenceLine::new(
            format!("statement that spilled: {}", text::statement(&one.text)),
            format!(
                "{} per call, {} calls, {} ms each",
                text::memory(each(one)),
                text::rounded(one.calls as f64),
                text::number(one.total_ms / one.calls.max(1) as f64)
            ),
        )
    }));
    Some(Finding {
        id: ABOUT.id,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: format!("Statements spilled {} to temporary files", text::disk_rate(rate)),
        evidence: facts,
        effect: Effect::up_to_or(
            share,
            EffectBasis::StatementTime,
            "which statements spilled is not known (pg_stat_statements)",
        ),
        below_precision: false,
        threshold: "1 MB/s of temporary files; red if the statements that spill take 30 % of the statements' time, and a \
            quarter of the host's memory would hold three times the bytes of their files for all users"
            .into(),
        next: "Raise work_mem for the statements that spill (it is taken by each sort and hash of each session), \
            or give them an index in the order that they need; `kelvin advise --prove` measures what it gains."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::{Staged, statement};
    use super::*;

    fn severity(rate: f64, spilling_ms: f64) -> Option<Severity> {
        let mut one = statement(1, spilling_ms, 10, "a", &[]);
        one.temporary_bytes = Some(10 << 20);
        let staged = Staged::new()
            .metric("postgres.temp.bytes", rate)
            .setting("work_mem", "65536")
            .statements(vec![one, statement(2, 100.0, 10, "b", &[])]);
        find(&staged.done()).first().map(|found| found.severity)
    }

    #[test]
    fn a_spill_that_memory_would_take_is_red_where_it_has_much_of_the_time() {
        let found = |memory: f64, spilling_ms: f64| {
            let mut one = statement(1, spilling_ms, 10, "a", &[]);
            one.temporary_bytes = Some(10 << 20);
            let staged = Staged::new().place("data", "vda").metric("host.memory.total", memory);
            let staged = staged.metric("postgres.temp.bytes", 11.6e6);
            let statements = vec![one, statement(2, 100.0, 10, "b", &[])];
            find(&staged.statements(statements).done())[0].severity
        };
        // A megabyte each, for eight users.
        assert_eq!(found(8e9, 900.0), Severity::Red);
        assert_eq!(found(8e9, 20.0), Severity::Amber, "a sixth of the time");
        assert_eq!(found(64e6, 900.0), Severity::Amber, "no memory for it");
    }

    #[test]
    fn spills_are_amber_from_a_rate() {
        assert_eq!(severity(11.6e6, 900.0), Some(Severity::Amber));
        assert_eq!(severity(11.6e6, 1.0), Some(Severity::Amber));
        assert_eq!(severity(0.0, 900.0), None);
        let unknown = find(&Staged::new().metric("postgres.temp.bytes", 5e6).done());
        assert_eq!(unknown[0].severity, Severity::Amber);
    }
}
