//! The settings that findings ask for, in one unit each.

use std::collections::BTreeMap;

use kelvin_database::{Result, Session};

/// Whether at their defaults or not.
const NAMES: &[&str] = &[
    "autovacuum",
    "autovacuum_analyze_scale_factor",
    "autovacuum_max_workers",
    "autovacuum_naptime",
    "autovacuum_vacuum_cost_delay",
    "autovacuum_vacuum_cost_limit",
    "autovacuum_vacuum_scale_factor",
    "backend_flush_after",
    "bgwriter_delay",
    "bgwriter_lru_maxpages",
    "bgwriter_lru_multiplier",
    "block_size",
    "checkpoint_completion_target",
    "checkpoint_flush_after",
    "checkpoint_timeout",
    "checkpoint_warning",
    "commit_delay",
    "commit_siblings",
    "compute_query_id",
    "data_checksums",
    "data_directory",
    "deadlock_timeout",
    "default_transaction_isolation",
    "effective_cache_size",
    "effective_io_concurrency",
    "fsync",
    "full_page_writes",
    "huge_page_size",
    "huge_pages",
    "huge_pages_status",
    "io_method",
    "io_workers",
    "jit",
    "log_checkpoints",
    "maintenance_work_mem",
    "max_connections",
    "max_parallel_workers",
    "max_parallel_workers_per_gather",
    "max_wal_size",
    "max_worker_processes",
    "min_wal_size",
    "plan_cache_mode",
    "random_page_cost",
    "seq_page_cost",
    "server_version",
    "server_version_num",
    "shared_buffers",
    "shared_memory_size",
    "shared_memory_size_in_huge_pages",
    "shared_preload_libraries",
    "synchronous_commit",
    "synchronous_standby_names",
    "temp_buffers",
    "track_activities",
    "track_counts",
    "track_io_timing",
    "track_wal_io_timing",
    "wal_buffers",
    "wal_compression",
    "wal_init_zero",
    "wal_level",
    "wal_log_hints",
    "wal_recycle",
    "wal_segment_size",
    "wal_sync_method",
    "wal_writer_delay",
    "work_mem",
];

/// Values by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub(super) values: BTreeMap<String, String>,
}

impl Settings {
    /// Whether a switch is on; one that is not known is not.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|value| value == "on")
    }
}

/// Asks for them. The session's own would be those that we set for ourselves, so what the role and the database have is
/// taken (`reset_val`).
pub(super) fn read(session: &mut dyn Session, _version: i64) -> Result<Settings> {
    let names: Vec<String> = NAMES.iter().map(|name| format!("'{name}'")).collect();
    let rows = session.query(&format!(
        "SELECT /* kelvin observer */ name, reset_val, coalesce(unit, '') FROM pg_settings \
         WHERE reset_val IS NOT NULL AND name IN ({})",
        names.join(", ")
    ))?;
    let mut values = BTreeMap::new();
    for row in 0..rows.len() {
        let (name, value, unit) = (rows.text(row, 0)?, rows.text(row, 1)?, rows.text(row, 2)?);
        values.insert(name.to_owned(), in_base_unit(value, unit));
    }
    Ok(Settings { values })
}

/// Sizes in bytes and times in milliseconds. A negative number is no amount but a word ("by itself", "never") and stays.
fn in_base_unit(value: &str, unit: &str) -> String {
    let factor = match unit {
        "ms" | "B" => 1.0,
        "us" => 0.001,
        "s" => 1000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => match size(unit) {
            Some(bytes) => bytes as f64,
            None => return value.to_owned(),
        },
    };
    match value.parse::<f64>() {
        Ok(number) if number >= 0.0 => (number * factor).to_string(),
        _ => value.to_owned(),
    }
}

/// "kB", "8kB", "16MB" in bytes.
fn size(unit: &str) -> Option<u64> {
    let digits = unit.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = unit.split_at(digits);
    let count: u64 = if count.is_empty() { 1 } else { count.parse().ok()? };
    let bytes = match unit {
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    count.checked_mul(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_become_bytes_and_milliseconds() {
        for (value, unit, expected) in [
            ("16384", "8kB", "134217728"),
            ("1024", "MB", "1073741824"),
            ("4096", "kB", "4194304"),
            ("16777216", "B", "16777216"),
            ("300", "s", "300000"),
            ("5", "min", "300000"),
            ("200", "ms", "200"),
            ("0.5", "ms", "0.5"),
            ("-1", "kB", "-1"),
            ("on", "", "on"),
            ("1.1", "", "1.1"),
            ("150018", "", "150018"),
        ] {
            assert_eq!(in_base_unit(value, unit), expected, "{value} {unit}");
        }
    }
}
