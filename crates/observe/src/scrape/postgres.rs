//! postgres_exporter's figures under the names of the PostgreSQL watcher.
//!
//! Source: postgres_exporter's `collector/` (0.10 to 0.17): `pg_stat_database_*` by database, `pg_stat_bgwriter_*`,
//! `pg_stat_checkpointer_*` and `pg_stat_wal_*`; the columns' meaning in PostgreSQL's manual, "The Cumulative
//! Statistics System". Times are milliseconds, as in the views.

use super::page::Page;
use super::scraped_metrics::ScrapedMetrics;

/// Names there, of which the first that exists counts, the name here, unit and help.
type Counter = (&'static [&'static str], &'static str, &'static str, &'static str);

/// Of each database; added up.
const DATABASE: [Counter; 12] = [
    (&["pg_stat_database_xact_commit"], "transactions.commit", "1/s", "transactions committed"),
    (&["pg_stat_database_xact_rollback"], "transactions.rollback", "1/s", "transactions rolled back"),
    (&["pg_stat_database_blks_hit"], "blocks.hit", "1/s", "blocks found in shared buffers"),
    (&["pg_stat_database_blks_read"], "blocks.read", "1/s", "blocks read that were not in shared buffers"),
    (&["pg_stat_database_tup_returned"], "tuples.returned", "1/s", "rows read by scans"),
    (&["pg_stat_database_tup_fetched"], "tuples.fetched", "1/s", "rows fetched by index scans"),
    (&["pg_stat_database_tup_inserted"], "tuples.inserted", "1/s", "rows inserted"),
    (&["pg_stat_database_tup_updated"], "tuples.updated", "1/s", "rows updated"),
    (&["pg_stat_database_tup_deleted"], "tuples.deleted", "1/s", "rows deleted"),
    (&["pg_stat_database_temp_bytes"], "temp.bytes", "B/s", "written to temporary files"),
    (&["pg_stat_database_deadlocks"], "deadlocks", "1/s", "deadlocks"),
    (&["pg_stat_database_conflicts"], "conflicts", "1/s", "queries canceled by recovery conflicts"),
];

/// Of each database, and zero for ever when `track_io_timing` is off.
const TIMES: [Counter; 2] = [
    (&["pg_stat_database_blk_read_time"], "blocks.read_ms", "ms/s", "time all sessions spent reading blocks"),
    (
        &["pg_stat_database_blk_write_time"],
        "blocks.write_ms",
        "ms/s",
        "time all sessions spent writing blocks",
    ),
];

/// Of the server.
const SERVER: [Counter; 16] = [
    (
        &[
            "pg_stat_checkpointer_num_timed_total",
            "pg_stat_bgwriter_checkpoints_timed_total",
            "pg_stat_bgwriter_checkpoints_timed",
        ],
        "checkpoints.timed",
        "1/s",
        "checkpoints started by checkpoint_timeout",
    ),
    (
        &[
            "pg_stat_checkpointer_num_requested_total",
            "pg_stat_bgwriter_checkpoints_req_total",
            "pg_stat_bgwriter_checkpoints_req",
        ],
        "checkpoints.requested",
        "1/s",
        "checkpoints started on request, mostly by WAL size",
    ),
    (
        &[
            "pg_stat_checkpointer_buffers_written_total",
            "pg_stat_bgwriter_buffers_checkpoint_total",
            "pg_stat_bgwriter_buffers_checkpoint",
        ],
        "checkpoints.buffers",
        "1/s",
        "buffers written by checkpoints",
    ),
    (
        &[
            "pg_stat_checkpointer_write_time_total",
            "pg_stat_bgwriter_checkpoint_write_time_total",
            "pg_stat_bgwriter_checkpoint_write_time",
        ],
        "checkpoints.write_ms",
        "ms/s",
        "checkpoint write time, counted when the checkpoint ends",
    ),
    (
        &[
            "pg_stat_checkpointer_sync_time_total",
            "pg_stat_bgwriter_checkpoint_sync_time_total",
            "pg_stat_bgwriter_checkpoint_sync_time",
        ],
        "checkpoints.sync_ms",
        "ms/s",
        "checkpoint sync time, counted when the checkpoint ends",
    ),
    (
        &["pg_stat_bgwriter_buffers_clean_total", "pg_stat_bgwriter_buffers_clean"],
        "bgwriter.clean",
        "1/s",
        "buffers written by the background writer",
    ),
    (
        &["pg_stat_bgwriter_maxwritten_clean_total", "pg_stat_bgwriter_maxwritten_clean"],
        "bgwriter.maxwritten",
        "1/s",
        "background writer rounds stopped at bgwriter_lru_maxpages",
    ),
    (
        &["pg_stat_bgwriter_buffers_alloc_total", "pg_stat_bgwriter_buffers_alloc"],
        "bgwriter.alloc",
        "1/s",
        "buffers allocated",
    ),
    (
        &["pg_stat_bgwriter_buffers_backend_total", "pg_stat_bgwriter_buffers_backend"],
        "backend.writes",
        "1/s",
        "buffers written by backends themselves",
    ),
    (
        &["pg_stat_bgwriter_buffers_backend_fsync_total", "pg_stat_bgwriter_buffers_backend_fsync"],
        "backend.fsyncs",
        "1/s",
        "files synced by backends themselves",
    ),
    (&["pg_stat_wal_wal_records"], "wal.records", "1/s", "WAL records"),
    (&["pg_stat_wal_wal_fpi"], "wal.full_page_images", "1/s", "full-page images written to the WAL"),
    (&["pg_stat_wal_wal_bytes"], "wal.bytes", "B/s", "written to the WAL"),
    (
        &["pg_stat_wal_wal_buffers_full"],
        "wal.buffers_full",
        "1/s",
        "WAL writes because the WAL buffers were full",
    ),
    (&["pg_stat_wal_wal_write"], "wal.writes", "1/s", "WAL writes"),
    (&["pg_stat_wal_wal_sync"], "wal.syncs", "1/s", "WAL syncs"),
];

/// Of the server, and zero for ever when `track_wal_io_timing` is off.
const WAL_TIMES: [Counter; 2] = [
    (&["pg_stat_wal_wal_write_time"], "wal.write_ms", "ms/s", "time spent writing WAL"),
    (&["pg_stat_wal_wal_sync_time"], "wal.sync_ms", "ms/s", "time spent syncing WAL"),
];

pub(super) fn map(page: &Page<'_>, figures: &mut ScrapedMetrics) {
    for counter in DATABASE.iter().chain(&SERVER) {
        rate(page, figures, counter, false);
    }
    for (counters, setting) in
        [(&TIMES, "pg_settings_track_io_timing"), (&WAL_TIMES, "pg_settings_track_wal_io_timing")]
    {
        let measured = page.one(setting).is_some_and(|on| on > 0.0);
        for counter in counters {
            rate(page, figures, counter, !measured);
        }
    }
    // Older exporters do not show what sessions wait for, so that those waiting are among the active ones.
    let mut states = [None; 2];
    for sample in page.all("pg_stat_activity_count") {
        let slot = match sample.label("state") {
            "active" => 0,
            "idle in transaction" => 1,
            _ => continue,
        };
        states[slot] = Some(states[slot].unwrap_or(0.0) + sample.value);
    }
    for ((name, help), state) in [
        (
            "postgres.sessions.active",
            "sessions that run a statement or wait within one, including the exporter's",
        ),
        ("postgres.sessions.idle_in_transaction", "sessions idle in transaction"),
    ]
    .into_iter()
    .zip(states)
    {
        if let Some(value) = state {
            figures.level(name, "1", help, value);
        }
    }
}

/// The rate of a counter, added up over the databases that have it. One that may not be counting at all is unknown
/// while it stands at zero.
fn rate(page: &Page<'_>, figures: &mut ScrapedMetrics, counter: &Counter, may_be_off: bool) {
    let (names, here, unit, help) = counter;
    let Some(there) = names.iter().find(|name| page.all(name).next().is_some()) else { return };
    let (mut total, mut counted) = (f64::NAN, false);
    for sample in page.all(there) {
        let rise = figures
            .rise(format!("{here} {} {}", sample.label("server"), sample.label("datname")), sample.value);
        counted |= sample.value > 0.0;
        // A database made in this interval is not known yet; the others are.
        if rise.is_finite() {
            total = if total.is_nan() { rise } else { total + rise };
        }
    }
    if counted || !may_be_off {
        figures.level(format!("postgres.{here}"), unit, help, total / figures.seconds());
    }
}
