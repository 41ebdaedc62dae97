//! Counts the history's rows on PostgreSQL at a moment when this must not disturb the run.
//!
//! `count(*)` reads the whole table: for 10 million rows this takes most of a second, at both edges of the
//! window. The first count, before the load, therefore also finds the stretches of blocks that are packed,
//! that is, too full for another of pgbench's rows. These cannot change any more (history rows are never
//! updated or deleted). Later counts read only the rest: blocks that had room, wherever they are, and blocks
//! that were added.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use kelvin_database::{Error, Result, Session};

/// Blocks per stretch. Smaller stretches exclude less for each block with room, but each costs the start of a
/// scan.
const STRETCH: i64 = 128;
/// More stretches would make the statement too long; larger tables have longer stretches.
const MOST_STRETCHES: i64 = 4096;
/// With more gaps than this between packed stretches, a plain count is as fast.
const MOST_GAPS: usize = 256;
/// Bytes of a block's header, and of a row with its line pointer: 24 bytes of header, and tid, bid, aid,
/// delta and mtime (a bigint aid and its padding take 8 more). A filler would only make rows longer.
const HEADER: i64 = 24;
const ROW: i64 = 24 + 24 + 4;
const ROW_WITH_BIGINT: i64 = ROW + 8;

/// Packed stretches found by the first count.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    known: Mutex<Option<Known>>,
}

#[derive(Debug)]
struct Known {
    /// The table's filenode, which changes with TRUNCATE or a new table.
    file: i64,
    /// Rows in the packed stretches.
    packed: i64,
    /// The query that counts the remaining rows and returns the filenode; `None` if nothing is packed.
    rest: Option<String>,
    /// Another search would find nothing packed either.
    hopeless: bool,
}

impl Counter {
    /// The number of rows visible to `session`.
    pub(crate) fn count(&self, session: &mut dyn Session) -> Result<u64> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Known { file, packed, rest: Some(rest), .. }) = known.as_ref() {
            let rows = session.query(rest)?;
            if !rows.is_empty() && rows.int(0, 1)? == *file {
                let count = packed + rows.int(0, 0)?;
                if count > 2 * packed {
                    // Most of the table is now after the packed stretches: the next count searches again.
                    *known = None;
                }
                return not_negative(count);
            }
            *known = None;
        }
        if known.as_ref().is_some_and(|known| known.hopeless) {
            return count_all(session);
        }
        let (count, learnt) = first(session)?;
        *known = Some(learnt);
        not_negative(count)
    }
}

/// The number of rows by a plain `count(*)`.
pub(crate) fn count_all(session: &mut dyn Session) -> Result<u64> {
    plain(session).and_then(not_negative)
}

fn not_negative(count: i64) -> Result<u64> {
    u64::try_from(count).map_err(|_| Error::protocol("the server reports a negative row count"))
}

fn plain(session: &mut dyn Session) -> Result<i64> {
    session.query("select count(*) from pgbench_history")?.int(0, 0)
}

/// Counts all rows by stretches of blocks, and returns the packed stretches.
fn first(session: &mut dyn Session) -> Result<(i64, Known)> {
    let shape = session.query(
        "select coalesce(pg_relation_filenode(c.oid), 0)::bigint, current_setting('block_size')::bigint, \
         pg_relation_size(c.oid)::bigint, (a.atttypid = 'bigint'::regtype)::int, \
         current_setting('server_version_num')::bigint \
         from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'aid' \
         where c.oid = 'pgbench_history'::regclass and c.relkind = 'r'",
    )?;
    let unknown = |file, hopeless| Known { file, packed: 0, rest: None, hopeless };
    if shape.is_empty() {
        return Ok((plain(session)?, unknown(0, true)));
    }
    let (file, block, size) = (shape.int(0, 0)?, shape.int(0, 1)?.max(1), shape.int(0, 2)?);
    let row = if shape.int(0, 3)? == 1 { ROW_WITH_BIGINT } else { ROW };
    let blocks = size / block;
    // Before version 14 a scan cannot be limited to a range of blocks.
    let hopeless = file == 0 || shape.int(0, 4)? < 140_000;
    if hopeless || blocks < 2 * STRETCH {
        return Ok((plain(session)?, unknown(file, hopeless)));
    }
    let stretch = STRETCH.max(blocks / MOST_STRETCHES + 1);
    // The last stretch has no end, so that it includes rows that were added since the size was read.
    let last = blocks / stretch * stretch;
    let rows = session.query(&format!(
        "select (select count(*) from pgbench_history where ctid >= ('(' || b || ',0)')::tid and ctid < \
         (case when b = {last} then '(4294967295,0)' else '(' || b + {stretch} || ',0)' end)::tid) \
         from generate_series(0, {last}, {stretch}) as b order by b",
    ))?;
    let full = (block - HEADER) / row * stretch;
    let mut counts = Vec::with_capacity(rows.len());
    for row in 0..rows.len() {
        counts.push(rows.int(row, 0)?);
    }
    let all = counts.iter().sum();
    let (packed, gaps) = gaps(&counts, full, stretch);
    let rest = (packed > 0 && gaps.len() <= MOST_GAPS).then(|| gap_count_sql(&gaps));
    Ok((all, Known { file, packed, hopeless: rest.is_none(), rest }))
}

/// The number of rows in packed stretches, and the ranges of blocks between them; the last range has no end.
fn gaps(counts: &[i64], full: i64, stretch: i64) -> (i64, Vec<(i64, Option<i64>)>) {
    let mut packed = 0;
    let mut gaps: Vec<(i64, Option<i64>)> = Vec::new();
    let (mut start, mut at) = (None, 0);
    for (index, &count) in counts.iter().enumerate() {
        if count == full && index + 1 < counts.len() {
            packed += count;
            if let Some(start) = start.take() {
                gaps.push((start, Some(at)));
            }
        } else if start.is_none() {
            start = Some(at);
        }
        at += stretch;
    }
    gaps.push((start.unwrap_or(at), None));
    (packed, gaps)
}

/// The statement that counts the rows in the gaps.
fn gap_count_sql(gaps: &[(i64, Option<i64>)]) -> String {
    let mut sql = String::from("select (0");
    for (start, end) in gaps {
        // Writing to a String does not fail.
        let _ = write!(sql, " + (select count(*) from pgbench_history where ctid >= '({start},0)'");
        if let Some(end) = end {
            let _ = write!(sql, " and ctid < '({end},0)'");
        }
        sql.push(')');
    }
    sql.push_str(")::bigint, coalesce(pg_relation_filenode('pgbench_history'), 0)::bigint");
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_lie_between_packed_stretches_and_the_end_is_always_open() {
        assert_eq!(gaps(&[10, 10, 3], 10, 5), (20, vec![(10, None)]));
        assert_eq!(
            gaps(&[9, 10, 10, 4, 7, 10, 0], 10, 5),
            (30, vec![(0, Some(5)), (15, Some(25)), (30, None)])
        );
        // The last stretch is open even when it is full, because it has no end.
        assert_eq!(gaps(&[10, 10], 10, 5), (10, vec![(5, None)]));
        assert_eq!(gaps(&[1, 1, 1], 10, 5), (0, vec![(0, None)]));
        assert_eq!(
            gap_count_sql(&[(0, Some(5)), (15, None)]),
            "select (0 + (select count(*) from pgbench_history where ctid >= '(0,0)' and ctid < '(5,0)') \
             + (select count(*) from pgbench_history where ctid >= '(15,0)'))::bigint, \
             coalesce(pg_relation_filenode('pgbench_history'), 0)::bigint"
        );
    }
}
