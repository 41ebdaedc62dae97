//! The server's counters: which ones exist in which version, their metric names, and what their
//! differences come to.

use super::sql::{MARK, V14, V16, V17, V18};
use crate::metric;

/// A counter reported as a rate.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counter {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
    /// How it is asked for.
    column: &'static str,
    /// Index of its view among [`Counters::views`]: it is reset with it.
    view: usize,
    /// A setting without which the server counts nothing.
    pub(super) needs: Option<&'static str>,
}

/// A view, or what is available of it.
#[derive(Debug, Clone, PartialEq)]
struct View {
    from: &'static str,
    /// When it was reset.
    reset: &'static str,
}

/// The counters of a version and the statement that reads them all.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counters {
    views: Vec<View>,
    pub(super) counters: Vec<Counter>,
}

type Row = (&'static str, &'static str, &'static str, &'static str);

const DATABASE: &[Row] = &[
    (
        metric::COMMITS[0],
        "1/s",
        "xact_commit",
        "transactions committed in this database by all clients (including about a dozen per second by the \
         observers)",
    ),
    ("postgres.transactions.rollback", "1/s", "xact_rollback", "transactions rolled back in this database"),
    (metric::BUFFER_HITS[0], "1/s", "blks_hit", "pages found in shared buffers"),
    (
        metric::BUFFER_READS[0],
        "1/s",
        "blks_read",
        "pages read from the operating system, possibly from its page cache",
    ),
    (
        metric::ROWS_SCANNED[0],
        "1/s",
        "tup_returned",
        "rows read by sequential scans and index entries read by index scans",
    ),
    ("postgres.tuples.fetched", "1/s", "tup_fetched", "rows fetched by index scans"),
    ("postgres.tuples.inserted", "1/s", "tup_inserted", "rows inserted"),
    ("postgres.tuples.updated", "1/s", "tup_updated", "rows updated"),
    ("postgres.tuples.deleted", "1/s", "tup_deleted", "rows deleted"),
    ("postgres.temp.bytes", "B/s", "temp_bytes", "bytes written to temporary files"),
    ("postgres.deadlocks", "1/s", "deadlocks", "deadlocks found"),
];

const BLOCK_TIMES: &[Row] = &[
    ("postgres.blocks.read_ms", "ms/s", "blk_read_time", "time backends spent reading pages"),
    ("postgres.blocks.write_ms", "ms/s", "blk_write_time", "time backends spent writing pages"),
];

/// The place that the log has come to: exact at any moment, where backends publish the bytes of `pg_stat_wal` up to a
/// second late and all at once when the load ends.
const WAL_PLACE: &[Row] = &[(
    metric::WAL_BYTES,
    "B/s",
    "pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END, '0/0')",
    "WAL generated, including page headers and padding",
)];

const WAL: &[Row] = &[
    (metric::WAL_RECORDS, "1/s", "wal_records", "WAL records"),
    (
        metric::FULL_PAGE_IMAGES,
        "1/s",
        "wal_fpi",
        "full-page images in the WAL: one at the first change of each page after a checkpoint",
    ),
    ("postgres.wal.buffers_full", "1/s", "wal_buffers_full", "WAL writes because the WAL buffers were full"),
];

const WAL_WRITES: &[Row] = &[
    ("postgres.wal.writes", "1/s", "wal_write", "WAL writes"),
    (metric::LOG_SYNCS[0], "1/s", "wal_sync", "WAL syncs"),
];

const WAL_TIMES: &[Row] = &[
    ("postgres.wal.write_ms", "ms/s", "wal_write_time", "time spent writing WAL"),
    ("postgres.wal.sync_ms", "ms/s", "wal_sync_time", "time spent syncing WAL"),
];

/// Since 18 log files are objects of `pg_stat_io`.
const WAL_IN_IO: &[Row] = &[
    ("postgres.wal.writes", "1/s", "sum(writes) FILTER (WHERE object = 'wal')", "WAL writes"),
    ("postgres.wal.syncs", "1/s", "sum(fsyncs) FILTER (WHERE object = 'wal')", "WAL syncs"),
];

const WAL_TIMES_IN_IO: &[Row] = &[
    (
        "postgres.wal.write_ms",
        "ms/s",
        "sum(write_time) FILTER (WHERE object = 'wal')",
        "time spent writing WAL",
    ),
    (
        "postgres.wal.sync_ms",
        "ms/s",
        "sum(fsync_time) FILTER (WHERE object = 'wal')",
        "time spent syncing WAL",
    ),
];

const WRITER: &[Row] = &[
    ("postgres.bgwriter.clean", "1/s", "buffers_clean", "pages written by the background writer"),
    (
        "postgres.bgwriter.maxwritten",
        "1/s",
        "maxwritten_clean",
        "background writer rounds stopped at bgwriter_lru_maxpages",
    ),
    ("postgres.bgwriter.alloc", "1/s", "buffers_alloc", "buffers allocated"),
];

const CHECKPOINTS_IN_WRITER: &[Row] = &[
    ("postgres.checkpoints.timed", "1/s", "checkpoints_timed", "checkpoints started by checkpoint_timeout"),
    (
        metric::REQUESTED_CHECKPOINTS,
        "1/s",
        "checkpoints_req",
        "checkpoints started by WAL size or on request",
    ),
    ("postgres.checkpoints.buffers", "1/s", "buffers_checkpoint", "pages written by checkpoints"),
    (
        "postgres.checkpoints.write_ms",
        "ms/s",
        "checkpoint_write_time",
        "checkpoint write time, counted when the checkpoint ends",
    ),
    (
        "postgres.checkpoints.sync_ms",
        "ms/s",
        "checkpoint_sync_time",
        "checkpoint sync time, counted when the checkpoint ends",
    ),
    (metric::BACKEND_WRITES, "1/s", "buffers_backend", "pages that backends wrote or extended themselves"),
    ("postgres.backend.fsyncs", "1/s", "buffers_backend_fsync", "files that backends synced themselves"),
];

const CHECKPOINTER: &[Row] = &[
    (
        "postgres.checkpoints.timed",
        "1/s",
        "num_timed",
        "checkpoints due by checkpoint_timeout, including skipped ones",
    ),
    (metric::REQUESTED_CHECKPOINTS, "1/s", "num_requested", "checkpoints started by WAL size or on request"),
    ("postgres.checkpoints.buffers", "1/s", "buffers_written", "pages written by checkpoints"),
    (
        "postgres.checkpoints.write_ms",
        "ms/s",
        "write_time",
        "checkpoint write time, counted when the checkpoint ends",
    ),
    (
        "postgres.checkpoints.sync_ms",
        "ms/s",
        "sync_time",
        "checkpoint sync time, counted when the checkpoint ends",
    ),
];

const BACKEND_IN_IO_17: &[Row] = &[
    (
        metric::BACKEND_WRITES,
        "1/s",
        "sum(coalesce(writes, 0) + coalesce(extends, 0)) FILTER (WHERE backend_type = 'client backend' AND object = 'relation')",
        "pages that backends wrote or extended themselves",
    ),
    (
        "postgres.backend.fsyncs",
        "1/s",
        "sum(fsyncs) FILTER (WHERE backend_type = 'client backend' AND object = 'relation')",
        "files that backends synced themselves",
    ),
];

const BACKEND_IN_IO_18: &[Row] = &[
    (
        metric::BACKEND_WRITES,
        "1/s",
        "sum(coalesce(write_bytes, 0) + coalesce(extend_bytes, 0)) FILTER (WHERE backend_type = 'client backend' AND object = 'relation') / current_setting('block_size')::int",
        "pages that backends wrote or extended themselves",
    ),
    (
        "postgres.backend.fsyncs",
        "1/s",
        "sum(fsyncs) FILTER (WHERE backend_type = 'client backend' AND object = 'relation')",
        "files that backends synced themselves",
    ),
];

const IO: &[Row] = &[
    (
        "postgres.io.reads",
        "1/s",
        "sum(reads) FILTER (WHERE object <> 'wal')",
        "reads of relation files by all processes",
    ),
    ("postgres.io.writes", "1/s", "sum(writes) FILTER (WHERE object <> 'wal')", "writes of relation files"),
    (
        "postgres.io.extends",
        "1/s",
        "sum(extends) FILTER (WHERE object <> 'wal')",
        "extends of relation files",
    ),
    ("postgres.io.hits", "1/s", "sum(hits) FILTER (WHERE object <> 'wal')", "pages found in shared buffers"),
    (
        "postgres.io.evictions",
        "1/s",
        "sum(evictions) FILTER (WHERE object <> 'wal')",
        "pages evicted from shared buffers",
    ),
    ("postgres.io.fsyncs", "1/s", "sum(fsyncs) FILTER (WHERE object <> 'wal')", "syncs of relation files"),
    (
        "postgres.io.client.reads",
        "1/s",
        "sum(reads) FILTER (WHERE backend_type = 'client backend' AND object <> 'wal')",
        "reads by client backends",
    ),
    (
        "postgres.io.client.writes",
        "1/s",
        "sum(writes) FILTER (WHERE backend_type = 'client backend' AND object <> 'wal')",
        "writes by client backends",
    ),
    (
        "postgres.io.checkpointer.writes",
        "1/s",
        "sum(writes) FILTER (WHERE backend_type = 'checkpointer' AND object <> 'wal')",
        "writes by the checkpointer",
    ),
    (
        "postgres.io.bgwriter.writes",
        "1/s",
        "sum(writes) FILTER (WHERE backend_type = 'background writer' AND object <> 'wal')",
        "writes by the background writer",
    ),
    (
        "postgres.io.autovacuum.reads",
        "1/s",
        "sum(reads) FILTER (WHERE backend_type = 'autovacuum worker' AND object <> 'wal')",
        "reads by autovacuum",
    ),
    (
        "postgres.io.autovacuum.writes",
        "1/s",
        "sum(writes) FILTER (WHERE backend_type = 'autovacuum worker' AND object <> 'wal')",
        "writes by autovacuum",
    ),
];

const IO_TIMES: &[Row] = &[
    (
        "postgres.io.read_ms",
        "ms/s",
        "sum(read_time) FILTER (WHERE object <> 'wal')",
        "time spent reading relation files",
    ),
    (
        "postgres.io.write_ms",
        "ms/s",
        "sum(write_time) FILTER (WHERE object <> 'wal')",
        "time spent writing relation files",
    ),
    (
        "postgres.io.fsync_ms",
        "ms/s",
        "sum(fsync_time) FILTER (WHERE object <> 'wal')",
        "time spent syncing relation files",
    ),
];

/// Until 17 every operation has the size `op_bytes`.
const IO_BYTES_16: &[Row] = &[
    ("postgres.io.read_bytes", "B/s", "sum(reads * op_bytes)", "bytes read from relation files"),
    ("postgres.io.write_bytes", "B/s", "sum(writes * op_bytes)", "bytes written to relation files"),
];

const IO_BYTES_18: &[Row] = &[
    (
        "postgres.io.read_bytes",
        "B/s",
        "sum(read_bytes) FILTER (WHERE object <> 'wal')",
        "bytes read from relation files",
    ),
    (
        "postgres.io.write_bytes",
        "B/s",
        "sum(write_bytes) FILTER (WHERE object <> 'wal')",
        "bytes written to relation files",
    ),
];

const IO_TIMING: Option<&str> = Some("track_io_timing");
const WAL_TIMING: Option<&str> = Some("track_wal_io_timing");

impl Counters {
    /// Those of a version (`server_version_num`).
    pub(super) fn of(version: i64) -> Self {
        let mut all = Self { views: Vec::new(), counters: Vec::new() };
        all.view(
            "pg_stat_database WHERE datname = current_database()",
            &[(DATABASE, None), (BLOCK_TIMES, IO_TIMING)],
        );
        if version >= V18 {
            all.view("pg_stat_wal", &[(WAL, None)]);
        } else if version >= V14 {
            all.view("pg_stat_wal", &[(WAL, None), (WAL_WRITES, None), (WAL_TIMES, WAL_TIMING)]);
        }
        all.view("(SELECT NULL::timestamptz AS stats_reset) AS none", &[(WAL_PLACE, None)]);
        if version >= V17 {
            all.view("pg_stat_checkpointer", &[(CHECKPOINTER, None)]);
            all.view("pg_stat_bgwriter", &[(WRITER, None)]);
        } else {
            all.view("pg_stat_bgwriter", &[(CHECKPOINTS_IN_WRITER, None), (WRITER, None)]);
        }
        if version >= V18 {
            all.sums(&[
                (IO, None),
                (IO_BYTES_18, None),
                (BACKEND_IN_IO_18, None),
                (WAL_IN_IO, None),
                (IO_TIMES, IO_TIMING),
                (WAL_TIMES_IN_IO, WAL_TIMING),
            ]);
        } else if version >= V17 {
            all.sums(&[(IO, None), (IO_BYTES_16, None), (BACKEND_IN_IO_17, None), (IO_TIMES, IO_TIMING)]);
        } else if version >= V16 {
            all.sums(&[(IO, None), (IO_BYTES_16, None), (IO_TIMES, IO_TIMING)]);
        }
        all
    }

    fn view(&mut self, from: &'static str, rows: &[(&[Row], Option<&'static str>)]) {
        self.add(from, "stats_reset", rows);
    }

    fn sums(&mut self, rows: &[(&[Row], Option<&'static str>)]) {
        self.add("pg_stat_io", "max(stats_reset)", rows);
    }

    fn add(&mut self, from: &'static str, reset: &'static str, rows: &[(&[Row], Option<&'static str>)]) {
        let view = self.views.len();
        self.views.push(View { from, reset });
        for (rows, needs) in rows {
            self.counters.extend(rows.iter().map(|&(name, unit, column, help)| Counter {
                name,
                unit,
                help,
                column,
                view,
                needs: *needs,
            }));
        }
    }

    /// One row: the times of the views' resets, then the counters; all of them double precision.
    pub(super) fn sql(&self) -> String {
        let mut columns = Vec::new();
        let mut sources = Vec::new();
        for (view, source) in self.views.iter().enumerate() {
            columns.push(format!("v{view}.r"));
            let mut inner = vec![format!("extract(epoch FROM {})::float8 AS r", source.reset)];
            for (index, counter) in self.counters.iter().enumerate().filter(|(_, one)| one.view == view) {
                inner.push(format!("({})::float8 AS c{index}", counter.column));
            }
            sources.push(format!("(SELECT {} FROM {}) AS v{view}", inner.join(", "), source.from));
        }
        for (index, counter) in self.counters.iter().enumerate() {
            columns.push(format!("v{}.c{index}", counter.view));
        }
        format!("{MARK} SELECT {} FROM {}", columns.join(", "), sources.join(", "))
    }

    /// Values in a row of [`Counters::sql`].
    pub(super) fn width(&self) -> usize {
        self.views.len() + self.counters.len()
    }

    /// Values a second from two rows (NaN for NULL) `seconds` apart; NaN for what was reset between them or went
    /// backwards, and for what `is_on` says is not counted.
    pub(super) fn rates(
        &self,
        before: &[f64],
        after: &[f64],
        seconds: f64,
        is_on: impl Fn(&str) -> bool,
    ) -> Vec<f32> {
        let resets = self.views.len();
        let rate = |(index, counter): (usize, &Counter)| {
            let (Some(old), Some(new)) = (before.get(resets + index), after.get(resets + index)) else {
                return f32::NAN;
            };
            // Never reset is NULL on both sides.
            let was_reset = match (before.get(counter.view), after.get(counter.view)) {
                (Some(old), Some(new)) => old != new && !(old.is_nan() && new.is_nan()),
                _ => true,
            };
            let unknown = was_reset || counter.needs.is_some_and(|setting| !is_on(setting)) || seconds <= 0.0;
            let rate = (new - old) / seconds;
            if unknown || rate < 0.0 { f32::NAN } else { rate as f32 }
        };
        self.counters.iter().enumerate().map(rate).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(version: i64) -> BTreeSet<&'static str> {
        Counters::of(version).counters.iter().map(|counter| counter.name).collect()
    }

    #[test]
    fn every_version_has_its_own_views_and_the_same_names() {
        let common = names(130_000);
        for version in [140_000, 150_000, 160_000, 170_000, 180_000] {
            let counters = Counters::of(version);
            assert_eq!(names(version).len(), counters.counters.len(), "a name twice in {version}");
            assert!(common.is_subset(&names(version)), "{version}");
            let sql = counters.sql();
            assert_eq!(sql.contains("pg_stat_io"), version >= V16, "{version}");
            assert_eq!(sql.contains("pg_stat_checkpointer"), version >= V17, "{version}");
            assert_eq!(sql.contains("checkpoints_req"), version < V17, "{version}");
            assert_eq!(sql.contains("buffers_backend"), version < V17, "{version}");
            assert_eq!(sql.contains("wal_sync_time"), version < V18, "{version}");
            assert_eq!(sql.contains("op_bytes"), (V16..V18).contains(&version), "{version}");
            assert_eq!(sql.contains("read_bytes"), version >= V18, "{version}");
        }
        assert!(!Counters::of(130_000).sql().contains("pg_stat_wal"));
        assert!(names(140_000).is_subset(&names(180_000)));
        assert!(
            names(180_000).contains("postgres.wal.sync_ms") && names(130_000).contains("postgres.wal.bytes")
        );
    }

    #[test]
    fn resets_and_steps_back_give_nothing_rather_than_a_negative_rate() {
        let counters = Counters::of(150_000);
        let mut before = vec![100.0; counters.width()];
        let mut after = before.iter().map(|value| value + 10.0).collect::<Vec<f64>>();
        let views = counters.views.len();
        after[..views].copy_from_slice(&before[..views]);
        let rates = counters.rates(&before, &after, 2.0, |_| true);
        assert!(rates.iter().all(|rate| *rate == 5.0), "{rates:?}");
        // Without their settings the times are not counted.
        let rates = counters.rates(&before, &after, 2.0, |_| false);
        assert_eq!(rates.iter().filter(|rate| rate.is_nan()).count(), 4);
        // One view's reset makes its counters unknown and no others.
        after[1] += 1.0;
        let rates = counters.rates(&before, &after, 2.0, |_| true);
        for (counter, rate) in counters.counters.iter().zip(&rates) {
            assert_eq!(rate.is_nan(), counter.view == 1, "{}", counter.name);
        }
        // Never reset, and one that steps back.
        (before[1], after[1]) = (f64::NAN, f64::NAN);
        after[views] = 99.0;
        let rates = counters.rates(&before, &after, 2.0, |_| true);
        assert!(rates[0].is_nan() && rates[1..].iter().all(|rate| *rate == 5.0));
        assert!(counters.rates(&before, &after, 0.0, |_| true).iter().all(|rate| rate.is_nan()));
        assert!(counters.rates(&[], &after, 1.0, |_| true).iter().all(|rate| rate.is_nan()));
    }
}
