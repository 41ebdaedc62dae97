//! Tables and indexes: how large, how often scanned, whether the planner knows them, and how much air is in them.

use kelvin_database::{Result, Rows, Session};
use kelvin_measure::observation::{Relation, TableWrites};

/// Bytes of a page's header.
const PAGE_HEADER: f64 = 24.0;
/// Bytes of the pointer to a row within its page.
const LINE_POINTER: f64 = 4.0;
/// Bytes of a row's header without its bitmap of NULLs.
const ROW_HEADER: f64 = 23.0;
/// Bytes of an index entry's header.
const ENTRY_HEADER: f64 = 8.0;
/// Bytes at the end of a B-tree's page.
const BTREE_SPECIAL: f64 = 16.0;

/// The 200 largest: name, kind, table, bytes, bytes of the main fork, live and dead rows by the server's count, rows by
/// the catalogue, sequential and index scans, fillfactor, then for the estimate: columns, columns with
/// statistics, whether there are NULLs, average bytes of a row's or entry's values, columns whose bytes are known (those of
/// fixed length and char(n), which is padded, without statistics too); whether the table can be read, whether a B-tree's columns are all plain; block size;
/// of an index its definition, if that says all of it (it is valid, no partition's, and in the database's tablespace), and whether
/// it enforces a constraint; rows inserted, updated, and updated without a change of the indexes; rows inserted into its TOAST table;
/// rows changed since ANALYZE, by whomever, and the seconds since then.
const RELATIONS: &str = "WITH /* kelvin observer */ largest AS ( \
     SELECT c.oid, nspname, relname, relkind, reltuples, reltoastrelid, relnatts, relispartition, reltablespace, indisvalid, indisclustered, indrelid, indkey, indpred, amname, \
      pg_relation_size(c.oid) AS main, \
      coalesce((SELECT option_value::float8 FROM pg_options_to_table(reloptions) WHERE option_name = 'fillfactor'), \
       CASE WHEN relkind = 'i' THEN 90 ELSE 100 END) AS fillfactor \
     FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace LEFT JOIN pg_index i ON indexrelid = c.oid \
     LEFT JOIN pg_am a ON a.oid = relam \
     WHERE relkind IN ('r', 'm', 'i') AND relpersistence <> 't' AND nspname NOT IN ('pg_catalog', 'information_schema') \
      AND nspname !~ '^pg_(toast|temp)' ORDER BY main DESC, nspname, relname LIMIT 200) \
     SELECT nspname || '.' || relname, relkind = 'i', \
      (SELECT tn.nspname || '.' || t.relname FROM pg_class t JOIN pg_namespace tn ON tn.oid = t.relnamespace \
       WHERE t.oid = indrelid), \
      main + CASE WHEN reltoastrelid <> 0 THEN coalesce(pg_total_relation_size(reltoastrelid), 0) ELSE 0 END, main, \
      pg_stat_get_live_tuples(coalesce(indrelid, l.oid)), pg_stat_get_dead_tuples(coalesce(indrelid, l.oid)), \
      CASE WHEN indpred IS NULL AND relkind = 'i' THEN \
       (SELECT reltuples FROM pg_class t WHERE t.oid = indrelid)::float8 ELSE reltuples::float8 END, \
      CASE WHEN relkind = 'i' THEN NULL ELSE pg_stat_get_numscans(l.oid) END, \
      CASE WHEN relkind = 'i' THEN pg_stat_get_numscans(l.oid) \
       ELSE (SELECT sum(pg_stat_get_numscans(indexrelid))::int8 FROM pg_index x WHERE x.indrelid = l.oid) END, \
      fillfactor, columns, known, nulls, width, measured, \
      has_table_privilege(coalesce(indrelid, l.oid), 'SELECT') AND NOT row_security_active(coalesce(indrelid, l.oid)), \
      relkind <> 'i' OR (amname = 'btree' AND NOT (0 = ANY (indkey)) AND indpred IS NULL), \
      current_setting('block_size')::float8, \
      CASE WHEN indisvalid AND NOT indisclustered AND NOT relispartition AND reltablespace = 0 THEN pg_get_indexdef(l.oid) END, \
      CASE WHEN relkind = 'i' THEN (SELECT indisunique OR EXISTS (SELECT FROM pg_constraint WHERE conindid = l.oid) \
       FROM pg_index x WHERE x.indexrelid = l.oid) END, \
      pg_stat_get_tuples_inserted(l.oid), pg_stat_get_tuples_updated(l.oid), pg_stat_get_tuples_hot_updated(l.oid), \
      CASE WHEN reltoastrelid <> 0 THEN pg_stat_get_tuples_inserted(reltoastrelid) END, \
      CASE WHEN relkind <> 'i' THEN pg_stat_get_mod_since_analyze(l.oid) END, \
      extract(epoch FROM clock_timestamp() - greatest(pg_stat_get_last_analyze_time(l.oid), \
       pg_stat_get_last_autoanalyze_time(l.oid)))::float8 \
     FROM largest l, LATERAL (SELECT count(*) AS columns, count(avg_width) AS known, coalesce(bool_or(null_frac > 0), false) AS nulls, \
      count(bytes) AS measured, sum(bytes)::float8 AS width \
      FROM pg_attribute JOIN pg_class t ON t.oid = attrelid \
      LEFT JOIN pg_stats s ON s.schemaname = l.nspname AND s.tablename = t.relname AND s.attname = pg_attribute.attname \
       AND NOT s.inherited, \
      LATERAL (SELECT coalesce((1 - null_frac) * avg_width, CASE WHEN attlen > 0 THEN attlen \
       WHEN atttypid = 'bpchar'::regtype AND atttypmod BETWEEN 5 AND 129 THEN atttypmod - 3 END) AS bytes) AS one \
      WHERE attrelid = coalesce(indrelid, l.oid) AND attnum > 0 AND NOT attisdropped \
       AND (l.relkind <> 'i' OR attnum = ANY (indkey))) AS shape \
     ORDER BY main DESC, 1";

/// Reads the largest relations and the size of the database in bytes.
pub(super) fn read(session: &mut dyn Session, _version: i64) -> Result<(Vec<Relation>, u64)> {
    let rows = session.query(RELATIONS)?;
    let relations = (0..rows.len()).map(|row| relation(&rows, row)).collect::<Result<_>>()?;
    let size = session.query("SELECT /* kelvin observer */ pg_database_size(current_database())")?;
    Ok((relations, count(size.int(0, 0)?)))
}

fn count(value: i64) -> u64 {
    value.max(0).unsigned_abs()
}

fn relation(rows: &Rows, row: usize) -> Result<Relation> {
    let number = |column| Ok::<_, kelvin_database::Error>(rows.optional(row, column, Rows::int)?.map(count));
    let is_index = rows.int(row, 1)? == 1;
    let (live, estimated) = (rows.int(row, 5)?, rows.float(row, 7)?);
    // The server's count is lost with a crash; the catalogue's is as old as the last VACUUM or ANALYZE.
    let live = if live > 0 { Some(count(live)) } else { (estimated >= 0.0).then_some(estimated as u64) };
    let known = rows.int(row, 12)?;
    let readable = rows.int(row, 16)? == 1;
    let shape = Shape {
        bytes: rows.float(row, 4)?,
        rows: live.map_or(f64::NAN, |live| live as f64),
        fillfactor: rows.float(row, 10)? / 100.0,
        columns: rows.int(row, 11)? as f64,
        has_nulls: rows.int(row, 13)? == 1,
        width: rows.optional(row, 14, Rows::float)?.unwrap_or(f64::NAN),
        block: rows.float(row, 18)?,
    };
    let can_be_estimated = rows.int(row, 15)? == rows.int(row, 11)? && rows.int(row, 17)? == 1;
    let bloat = if !can_be_estimated {
        None
    } else if is_index {
        shape.btree_bloat()
    } else {
        shape.table_bloat()
    };
    Ok(Relation {
        name: rows.text(row, 0)?.to_owned(),
        kind: if is_index { "index" } else { "table" }.into(),
        table: rows.optional(row, 2, |rows, row, column| rows.text(row, column).map(str::to_owned))?,
        bytes: count(rows.int(row, 3)?),
        rows: if is_index { None } else { live },
        dead_rows: if is_index { None } else { number(6)? },
        sequential_scans: number(8)?,
        index_scans: number(9)?,
        analyzed: match (is_index, known > 0, readable) {
            (true, ..) | (false, false, false) => None,
            (false, known, _) => Some(known),
        },
        bloat,
        definition: rows.optional(row, 19, |rows, row, column| rows.text(row, column).map(str::to_owned))?,
        enforces: rows.optional(row, 20, Rows::int)?.map(|enforces| enforces == 1),
        writes: if is_index {
            None
        } else {
            Some(TableWrites {
                inserted: count(rows.int(row, 21)?),
                updated: count(rows.int(row, 22)?),
                updated_in_page: count(rows.int(row, 23)?),
                fillfactor: rows.float(row, 10)? as u32,
            })
        },
        pieces: number(24)?,
        changed_since_analyze: number(25)?,
        analyzed_ago: rows.optional(row, 26, Rows::float)?,
    })
}

/// What the space of a relation follows from.
#[derive(Debug, Clone, Copy)]
struct Shape {
    bytes: f64,
    rows: f64,
    fillfactor: f64,
    columns: f64,
    has_nulls: bool,
    /// Average bytes of the values of a row, NULLs without any.
    width: f64,
    block: f64,
}

fn aligned(bytes: f64) -> f64 {
    (bytes / 8.0).ceil() * 8.0
}

impl Shape {
    /// Of a table: pages of rows packed to the fillfactor, each with header, bitmap of NULLs and pointer
    /// (PostgreSQL's "Database Page Layout"), against the pages that there are. Padding between columns is not
    /// counted, so a few per cent are none.
    fn table_bloat(&self) -> Option<f64> {
        let bitmap = if self.has_nulls { (self.columns / 8.0).ceil() } else { 0.0 };
        let row = aligned(ROW_HEADER + bitmap) + aligned(self.width) + LINE_POINTER;
        self.bloat(((self.block - PAGE_HEADER) * self.fillfactor / row).floor(), 0.0)
    }

    /// Of a B-tree: its leaves packed to the fillfactor. The pages above them are left out (less than one in a hundred), and so is
    /// deduplication, so the size is underestimated for many equal keys.
    fn btree_bloat(&self) -> Option<f64> {
        let entry = ENTRY_HEADER + aligned(self.width) + LINE_POINTER;
        self.bloat(((self.block - PAGE_HEADER - BTREE_SPECIAL) * self.fillfactor / entry).floor(), 1.0)
    }

    fn bloat(&self, per_page: f64, more_pages: f64) -> Option<f64> {
        // Small ones are mostly rounding.
        if !(self.rows >= 0.0 && per_page >= 1.0 && self.bytes >= 16.0 * self.block) {
            return None;
        }
        let needed = ((self.rows / per_page).ceil() + more_pages) * self.block;
        Some((1.0 - needed / self.bytes).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        bytes: 8192.0 * 1000.0,
        rows: 0.0,
        fillfactor: 1.0,
        columns: 2.0,
        has_nulls: false,
        width: 8.0,
        block: 8192.0,
    };

    #[test]
    fn packed_pages_have_no_air_and_half_as_many_rows_leave_half() {
        // Two integers: 24 + 8 + 4 bytes a row, 226 rows a page, as the server packs them.
        let full = Shape { rows: 226_000.0, ..SHAPE };
        assert_eq!(full.table_bloat(), Some(0.0));
        assert_eq!(Shape { rows: 113_000.0, ..SHAPE }.table_bloat(), Some(0.5));
        assert_eq!(Shape { rows: 999_999.0, ..SHAPE }.table_bloat(), Some(0.0));
        // A bitmap of NULLs needs eight bytes more when aligned.
        assert!(Shape { has_nulls: true, columns: 9.0, ..full }.table_bloat() == Some(0.0));
        let index = Shape { rows: 366_000.0, fillfactor: 0.9, ..SHAPE };
        let bloat = index.btree_bloat().unwrap();
        assert!(bloat < 0.01, "{bloat}");
    }

    #[test]
    fn what_cannot_be_estimated_is_none() {
        for shape in [
            Shape { bytes: 8192.0, ..SHAPE },
            Shape { rows: f64::NAN, ..SHAPE },
            Shape { width: f64::NAN, ..SHAPE },
            Shape { width: 20_000.0, ..SHAPE },
        ] {
            assert_eq!(shape.table_bloat(), None, "{shape:?}");
        }
    }
}
