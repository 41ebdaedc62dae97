//! The check of the balances: every transaction adds the same amount to each of them.

use kelvin_database::{Result, Session};
use kelvin_measure::event::CheckLine;

/// Sums over the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sums {
    pub(crate) accounts: i64,
    pub(crate) tellers: i64,
    pub(crate) branches: i64,
    pub(crate) history: i64,
}

/// Reads all four sums in one snapshot.
pub(crate) fn sums(session: &mut dyn Session) -> Result<Sums> {
    let rows = session.query(
        "select (select coalesce(sum(abalance), 0) from pgbench_accounts), \
         (select coalesce(sum(tbalance), 0) from pgbench_tellers), \
         (select coalesce(sum(bbalance), 0) from pgbench_branches), \
         (select coalesce(sum(delta), 0) from pgbench_history)",
    )?;
    Ok(Sums {
        accounts: rows.int(0, 0)?,
        tellers: rows.int(0, 1)?,
        branches: rows.int(0, 2)?,
        history: rows.int(0, 3)?,
    })
}

/// Judges the sums. If `before` is known, the changes since then are compared: pgbench empties the history
/// when it starts, so the total sums need not agree in data that pgbench has used. `whole`: all transactions
/// that write also updated tellers and branches.
pub(crate) fn judge(now: Sums, before: Option<Sums>, whole: bool) -> Vec<CheckLine> {
    let since = before.unwrap_or_default();
    let change = |of: fn(&Sums) -> i64| of(&now) - of(&since);
    let of = if before.is_some() { "changes since the start of the run" } else { "sums" };
    let history = change(|sums| sums.history);
    let hint = if before.is_some() { "" } else { "; pgbench empties the history when it starts without -n" };
    let compare =
        |number, name: &str, (left, found): (&str, i64), (right, expected): (&str, i64), hint: &str| {
            let holds = found == expected;
            let hint = if holds { "" } else { hint };
            CheckLine {
                number,
                name: name.to_owned(),
                holds,
                detail: format!("{of}: {left} {found}, {right} {expected}{hint}"),
                exempt: None,
            }
        };
    let mut lines = vec![compare(
        1,
        "account balances sum to the history deltas",
        ("accounts", change(|sums| sums.accounts)),
        ("history", history),
        hint,
    )];
    let tellers = change(|sums| sums.tellers);
    let branches = change(|sums| sums.branches);
    lines.push(compare(
        2,
        "teller balances sum to the branch balances",
        ("tellers", tellers),
        ("branches", branches),
        "",
    ));
    if whole {
        lines.push(compare(
            3,
            "branch balances sum to the history deltas",
            ("branches", branches),
            ("history", history),
            hint,
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_update_is_found() {
        let good = Sums { accounts: 5, tellers: 5, branches: 5, history: 5 };
        assert!(judge(good, None, true).iter().all(|line| line.holds));
        let holds = |sums, whole| judge(sums, None, whole).iter().map(|line| line.holds).collect::<Vec<_>>();
        assert_eq!(holds(Sums { accounts: 4, ..good }, true), [false, true, true]);
        assert_eq!(holds(Sums { branches: 4, ..good }, true), [true, false, false]);
        assert_eq!(holds(Sums { tellers: 0, branches: 0, ..good }, false), [true, true]);
        let truncated = Sums { history: 0, ..good };
        assert!(judge(truncated, Some(truncated), true).iter().all(|line| line.holds));
    }
}
