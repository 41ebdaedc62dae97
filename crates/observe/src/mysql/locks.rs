//! Who waits for rows, of which table, and who holds them.

use std::collections::BTreeSet;

use kelvin_database::{Error, Rows};
use kelvin_measure::observation::Blocker;

use super::link::Link;
use super::sessions::text;
use super::sql;
use crate::server::sessions::{NAMED, session_numbers, waiters};
use crate::server::shortened;

/// The number of reported holders, those with the most waiters.
const MOST: usize = 3;
/// A statement's text is cut after so many characters.
const LONGEST_TEXT: usize = 120;

/// How many wait for rows, by table.
pub(super) fn row_waiters(link: &mut Link) -> Result<Vec<(String, u32)>, String> {
    link.with(|session, server| waiters(&session.query(sql::row_waiters(server))?))
}

/// Who holds what others wait for.
pub(super) fn blockers(link: &mut Link) -> Result<Vec<Blocker>, String> {
    let blockers = link.with(|session, server| {
        let rows = session.query(sql::blockers(server))?;
        (0..rows.len()).map(|row| blocker(&rows, row)).collect()
    })?;
    Ok(first_of_queue(blockers))
}

/// Those who wait for nobody themselves.
fn first_of_queue(mut blockers: Vec<Blocker>) -> Vec<Blocker> {
    let waiting: BTreeSet<i64> = blockers.iter().flat_map(|one| one.waiting.iter().copied()).collect();
    blockers.retain(|one| !waiting.contains(&one.pid));
    blockers.truncate(MOST);
    for one in &mut blockers {
        one.waiting.truncate(NAMED);
    }
    blockers
}

fn blocker(rows: &Rows, row: usize) -> Result<Blocker, Error> {
    let (command, state, statement) = (text(rows, row, 3)?, text(rows, row, 4)?, text(rows, row, 5)?);
    let doing = match (command, statement) {
        ("Sleep", _) => "Idle in transaction".to_owned(),
        (_, "") => state.to_owned(),
        _ => format!("{state}: {}", without_values(statement)),
    };
    Ok(Blocker {
        pid: rows.int(row, 0)?,
        application: shortened(text(rows, row, 1)?),
        transaction_ms: rows.optional(row, 2, Rows::float)?,
        doing,
        waiting: session_numbers(text(rows, row, 6)?),
    })
}

/// A statement's text with a question mark for each of its values: they are the user's data and not the run's.
fn without_values(sql: &str) -> String {
    let mut text = String::new();
    let mut rest = sql.chars().peekable();
    let mut within_name = false;
    while let Some(c) = rest.next() {
        if text.len() >= LONGEST_TEXT {
            text.push('…');
            break;
        }
        match c {
            '\'' | '"' => {
                text.push('?');
                while let Some(inner) = rest.next() {
                    if inner == '\\' || inner == c && rest.peek() == Some(&c) {
                        rest.next();
                    } else if inner == c {
                        break;
                    }
                }
            }
            '0'..='9' if !within_name => {
                text.push('?');
                while rest.next_if(|next| next.is_ascii_alphanumeric() || *next == '.').is_some() {}
            }
            _ if c.is_whitespace() => {
                if !text.ends_with(' ') {
                    text.push(' ');
                }
            }
            _ => text.push(c),
        }
        within_name =
            matches!(c, '_' | '`' | '$') || c.is_alphanumeric() && (within_name || !c.is_ascii_digit());
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_statement_is_told_without_its_values() {
        for (sql, expected) in [
            ("update h set v=v+1 where id=17", "update h set v=v+? where id=?"),
            (
                "SELECT c_1 FROM t2 WHERE n = 'O\\'Brien' AND m = \"it''s\" ",
                "SELECT c_1 FROM t2 WHERE n = ? AND m = ? ",
            ),
            ("insert into `t9`\n  values (1.5e3, -2, 'a''b', 0xFF)", "insert into `t9` values (?, -?, ?, ?)"),
            ("select 'never ends", "select ?"),
        ] {
            assert_eq!(without_values(sql), expected);
        }
    }

    #[test]
    fn only_the_first_of_a_queue_are_told_of() {
        let one = |pid, waiting: &[i64]| Blocker { pid, waiting: waiting.to_vec(), ..Blocker::default() };
        let found = first_of_queue(vec![one(1, &[2, 3, 4]), one(2, &[3, 4]), one(3, &[4]), one(9, &[8])]);
        assert_eq!(found.iter().map(|one| one.pid).collect::<Vec<_>>(), [1, 9]);
    }

    proptest! {
        #[test]
        fn no_statement_makes_it_panic(sql: String) {
            prop_assert!(without_values(&sql).len() <= LONGEST_TEXT + 8);
        }
    }
}
