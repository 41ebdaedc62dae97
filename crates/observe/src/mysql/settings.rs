//! The settings that findings ask for: sizes in bytes, times in milliseconds, switches "on" or "off".

use std::collections::BTreeMap;

use kelvin_database::{Result, Session};

/// Asked for whether at their defaults or not; what a product or version does not have is not in its answer.
const NAMES: &[&str] = &[
    "binlog_format",
    "binlog_row_image",
    "datadir",
    "default_storage_engine",
    "innodb_adaptive_flushing",
    "innodb_adaptive_hash_index",
    "innodb_buffer_pool_instances",
    "innodb_buffer_pool_size",
    "innodb_data_file_buffering",
    "innodb_doublewrite",
    "innodb_file_per_table",
    "innodb_flush_log_at_timeout",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_flush_sync",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_lock_wait_timeout",
    "innodb_log_buffer_size",
    "innodb_log_file_buffering",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_lru_scan_depth",
    "innodb_max_dirty_pages_pct",
    "innodb_max_purge_lag",
    "innodb_page_size",
    "innodb_purge_threads",
    "innodb_read_io_threads",
    CAPACITY,
    "innodb_use_native_aio",
    "innodb_write_io_threads",
    "internal_tmp_mem_storage_engine",
    "large_pages",
    "log_bin",
    "max_connections",
    "max_heap_table_size",
    "performance_schema",
    "query_cache_type",
    "rpl_semi_sync_master_enabled",
    "rpl_semi_sync_source_enabled",
    "skip_log_bin",
    "sort_buffer_size",
    "sync_binlog",
    "table_open_cache",
    "temptable_max_ram",
    "thread_cache_size",
    "thread_handling",
    "tmp_table_size",
    "transaction_isolation",
    "tx_isolation",
    "version",
    "version_comment",
];

const CAPACITY: &str = "innodb_redo_log_capacity";

/// Times in seconds.
const SECONDS: &[&str] = &["innodb_flush_log_at_timeout", "innodb_lock_wait_timeout"];

/// Values by name.
pub(super) fn read(session: &mut dyn Session) -> Result<BTreeMap<String, String>> {
    let names: Vec<String> = NAMES.iter().map(|name| format!("'{name}'")).collect();
    let rows =
        session.query(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})", names.join(", ")))?;
    let one = |row| {
        let name = rows.text(row, 0)?.to_lowercase();
        let value = in_base_unit(&name, rows.text(row, 1)?);
        Ok((name, value))
    };
    let mut settings: BTreeMap<_, _> = (0..rows.len()).map(one).collect::<Result<_>>()?;
    // MySQL makes the log as large as innodb_log_file_size × innodb_log_files_in_group says if these are set and the capacity is
    // not, whose variable shows the unused default then: the server's status has the size in force.
    if let Some(capacity) = settings.get_mut(CAPACITY) {
        let rows = session.query("SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_capacity_resized'")?;
        if rows.len() == 1 {
            rows.text(0, 1)?.clone_into(capacity);
        }
    }
    Ok(settings)
}

fn in_base_unit(name: &str, value: &str) -> String {
    match value {
        "ON" | "OFF" => value.to_lowercase(),
        _ if SECONDS.contains(&name) => {
            value.parse().map_or(value.to_owned(), |s: f64| (s * 1e3).to_string())
        }
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_words_and_times_milliseconds() {
        assert_eq!(in_base_unit("log_bin", "ON"), "on");
        assert_eq!(in_base_unit("innodb_lock_wait_timeout", "50"), "50000");
        assert_eq!(in_base_unit("innodb_buffer_pool_size", "134217728"), "134217728");
        assert_eq!(in_base_unit("innodb_flush_method", "O_DIRECT"), "O_DIRECT");
    }
}
