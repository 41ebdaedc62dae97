//! Did one transaction hold what many others waited for?
//!
//! A queue for a hot row has a new holder every few milliseconds. Here the same transaction holds its lock from one look at the
//! locks to the next: a forgotten session, a change of a table, an advisory lock. Whatever else such a window shows
//! (empty seconds, queues, failed transactions) follows from it.

use std::collections::BTreeSet;

use kelvin_measure::observation::Blocker;
use kelvin_measure::{Nanos, text};

use super::{FindingDefinition, effect};
use crate::engine::engine_advice;
use crate::noise::WANTED;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity, Span};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "lock-holder",
    question: "Did one transaction hold a lock that many sessions waited for?",
    find,
};

/// Seconds for which it must have held the lock: PostgreSQL reports a wait that lasts longer than `deadlock_timeout`, whose
/// default is one second (log_lock_waits).
const LEAST: f64 = 1.0;
/// And so many times as long as the load's own transactions take (95th percentile of the median second): those of a slow
/// load hold their rows for seconds, too.
const USUAL: f64 = 10.0;
/// Share of the users' time that was lost in the queue from which it is worth knowing.
const KNOWN: f64 = 0.01;

/// A transaction that was seen to hold a lock at several looks.
struct Held<'a> {
    span: Span,
    /// As it was seen when most waited.
    worst: &'a Blocker,
    /// When it was seen last, and how it was then.
    latest: (Nanos, &'a Blocker),
    /// Session-seconds that were waited for it.
    waited: f64,
}

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let window = evidence.window(point.point)?;
    let users = f64::from(point.users.max(1));
    let usual = usual_seconds(point).unwrap_or(0.0);
    let mut all = held(evidence, point.point, window, users);
    all.retain(|one| one.span.seconds() >= LEAST && one.span.seconds() >= USUAL * usual);
    all.sort_by(|a, b| b.waited.total_cmp(&a.waited));
    let worst = all.first()?;
    let waited: f64 = all.iter().map(|one| one.waited).sum();
    let share = (waited / (users * window.seconds())).min(1.0);
    if share < KNOWN {
        return None;
    }
    let spans: Vec<Span> = all.iter().map(|one| one.span).collect();
    let contrast = effect::on_throughput(evidence, point.point, &spans);
    let part = effect::covered(&spans) / window.seconds();
    let costly = contrast.is_some_and(|contrast| contrast.costly);
    let mut facts = of_holder(worst, window);
    if let Some(contrast) = contrast {
        facts.push(contrast.fact());
        let lost = (contrast.rest - contrast.during).max(0.0) * effect::covered(&spans);
        facts.push(EvidenceLine::new("transactions lost because of it", text::rounded(lost)));
    }
    facts.push(EvidenceLine::new("share of the users' time spent waiting for it", text::percent(share)));
    for other in all.iter().skip(1).take(2) {
        let one = other.worst;
        facts.push(EvidenceLine::new(
            format!("also held a lock: {}", who(one)),
            format!(
                "for {}, {} waited",
                lasted(other),
                text::count(one.number_waiting() as usize, "session")
            ),
        ));
    }
    let one = worst.worst;
    let lock = if one.lock.is_empty() { "a lock" } else { &one.lock };
    let waiting = one.number_waiting() as usize;
    let engine = engine_advice(evidence).sessions();
    let (before_pid, after_pid) = engine.end;
    Some(Finding {
        id: ABOUT.id,
        severity: if share >= WANTED || costly { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: format!(
            "Process {} ({}) held a lock for at least {} ({lock}): {} waited for it",
            one.pid,
            who(one),
            lasted(worst),
            text::count(waiting, "session")
        ),
        evidence: facts,
        effect: contrast.map_or_else(
            || Effect::up_to(share, EffectBasis::TransactionTime),
            |seen| effect::on_figure(Some(seen), part),
        ),
        below_precision: false,
        threshold: format!(
            "the same transaction held the lock in samples {LEAST:.0} s apart or more (PostgreSQL reports \
             waits longer than deadlock_timeout, 1 s), {USUAL:.0} times as long as the load's transactions \
             take; red if 10 % of the users' time was lost, or the throughput was significantly lower"
        ),
        next: format!(
            "Find out why this session does not end its transaction, and repeat the run without it: its \
             statement is above. It can be ended with {before_pid}{}{after_pid}; {}",
            one.pid,
            if one.doing == "Idle in transaction" {
                engine.idle
            } else {
                "keep DDL out of the measured window."
            }
        ),
    })
}

/// The 95th percentile of the transactions' times in the median second.
fn usual_seconds(point: &PointEvidence) -> Option<f64> {
    let mut times: Vec<Nanos> = point.seconds.values().filter_map(|second| second.p95).collect();
    times.sort_unstable();
    times.get(times.len() / 2).map(|time| *time as f64 / 1e9)
}

/// Transactions that were seen with others waiting for them, whoever they waited for being one of them left out. A process
/// with the same transaction at the next look is one: its age has grown by the time between them at least.
fn held(evidence: &Evidence, point: u32, window: Span, users: f64) -> Vec<Held<'_>> {
    let slack = engine_advice(evidence).sessions().age_error;
    let mut all: Vec<Held<'_>> = Vec::new();
    let looks = evidence.blockers(point);
    for (index, (at, blockers)) in looks.iter().enumerate() {
        let queued: BTreeSet<i64> = blockers.iter().flat_map(|one| one.waiting.iter().copied()).collect();
        // A look stands for the second after it, or for less where the next one comes earlier.
        let until = looks.get(index + 1).map_or(window.to, |(next, _)| *next).min(at + 1_000_000_000);
        let seconds = until.saturating_sub(*at) as f64 / 1e9;
        for one in blockers.iter().filter(|one| !queued.contains(&one.pid)) {
            let waited = f64::from(one.number_waiting()).min(users) * seconds;
            let same = |held: &&mut Held<'_>| {
                let since = at.saturating_sub(held.span.from) as f64 / 1e9;
                let age = one.transaction_ms.map(|ms| ms / 1e3);
                held.latest.1.pid == one.pid && age.is_some_and(|age| age + slack >= since)
            };
            if let Some(held) = all.iter_mut().find(same) {
                held.span.to = *at;
                held.latest = (*at, one);
                held.waited += waited;
                if one.number_waiting() > held.worst.number_waiting() {
                    held.worst = one;
                }
            } else {
                let span = Span { from: *at, to: *at };
                all.push(Held { span, worst: one, latest: (*at, one), waited });
            }
        }
    }
    all
}

fn who(one: &Blocker) -> String {
    let name = if one.application.is_empty() { "no application name" } else { &one.application };
    if one.doing.is_empty() { name.to_owned() } else { format!("{name}, {}", one.doing) }
}

fn lasted(held: &Held<'_>) -> String {
    text::short_seconds(held.span.seconds())
}

/// The tree: who held what since when, with which statement, and who waited.
fn of_holder(held: &Held<'_>, window: Span) -> Vec<EvidenceLine> {
    let one = held.worst;
    let whom: Vec<String> = one.waiting.iter().map(i64::to_string).collect();
    let more = one.number_waiting() as usize - whom.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let seconds = |at: Nanos| at.saturating_sub(window.from) as f64 / 1e9;
    let mut facts = vec![
        EvidenceLine::new(
            format!("process {} ({})", one.pid, who(one)),
            format!("blocked {}{more}", whom.join(", ")),
        ),
        EvidenceLine::new(
            "held, as sampled",
            format!("from {:.0} s to {:.0} s of the window", seconds(held.span.from), seconds(held.span.to)),
        ),
    ];
    if let Some(age) = held.latest.1.transaction_ms {
        facts.push(EvidenceLine::new("age of its transaction at that time", text::short_seconds(age / 1e3)));
    }
    if !one.lock.is_empty() {
        facts.push(EvidenceLine::new("what it held", one.lock.clone()));
    }
    for (what, statement) in
        [("its statement", &one.statement), ("statement waiting for it", &one.waiting_statement)]
    {
        if !statement.is_empty() {
            facts.push(EvidenceLine::new(what, text::statement(statement)));
        }
    }
    if let Some(waited) = held.latest.1.waited_ms {
        facts.push(EvidenceLine::new("longest wait in the last sample", text::short_seconds(waited / 1e3)));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn holder(pid: i64, age_s: f64, waiting: &[i64]) -> Blocker {
        Blocker {
            pid,
            application: "psql".into(),
            transaction_ms: Some(age_s * 1e3),
            doing: "Idle in transaction".into(),
            waiting: waiting.to_vec(),
            lock: "row of public.district".into(),
            statement: "update district set d_tax = ?".into(),
            waiting_statement: "update district set d_next_o_id = ?".into(),
            ..Blocker::default()
        }
    }

    /// Eight users; a session holds a row from the second `from` for `seconds` of the clock (the window opens at 6 s).
    fn held_for(from: u64, seconds: u64, waiting: &[i64], stalled: bool) -> Evidence {
        let during = from as i64 - 6..(from + seconds) as i64 - 6;
        let mut staged = Staged::new()
            .throughput(move |second| if stalled && during.contains(&second) { 0 } else { 1000 });
        for second in from..from + seconds {
            staged = staged.blocking(second, vec![holder(7, (second - from) as f64 + 0.5, waiting)]);
        }
        staged.done()
    }

    #[test]
    fn a_forgotten_transaction_is_red_and_named_with_both_statements() {
        let found = find(&held_for(10, 6, &[11, 12, 13, 14, 15, 16, 17, 18], true));
        assert_eq!((found.len(), found[0].severity), (1, Severity::Red));
        assert!(found[0].title.contains("Process 7 (psql, Idle in transaction)"), "{}", found[0].title);
        assert!(found[0].title.contains("row of public.district): 8 sessions waited"), "{}", found[0].title);
        let facts: Vec<String> =
            found[0].evidence.iter().map(|f| format!("{}: {}", f.what, f.found)).collect();
        for wanted in ["its statement: update district set d_tax", "transactions lost because of it: "] {
            assert!(facts.iter().any(|fact| fact.starts_with(wanted)), "{wanted}: {facts:#?}");
        }
        assert!(found[0].next.contains("pg_terminate_backend(7)"), "{}", found[0].next);
    }

    #[test]
    fn few_that_wait_are_amber_and_a_moment_is_nothing() {
        assert_eq!(find(&held_for(10, 6, &[11], false))[0].severity, Severity::Amber);
        assert!(find(&held_for(10, 1, &[11, 12, 13, 14], false)).is_empty());
        assert!(find(&held_for(40, 6, &[11, 12, 13, 14], false)).is_empty(), "after the window");
    }

    #[test]
    fn a_queue_whose_holders_change_is_none_and_neither_is_one_who_waits_itself() {
        // The same process, but each time with a new transaction.
        let mut queue = Staged::sized(16, 1);
        let mut behind = Staged::sized(16, 1);
        for second in 7..20 {
            queue = queue.blocking(second, vec![holder(7, 0.004, &[11, 12, 13])]);
            let root = holder(second as i64, 0.01, &[7, 11, 12]);
            behind = behind.blocking(second, vec![root, holder(7, second as f64 - 6.0, &[11, 12])]);
        }
        assert!(find(&queue.done()).is_empty());
        assert!(find(&behind.done()).is_empty());
    }
}
