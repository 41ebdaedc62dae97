//! Settings that take effect at the server's start.

/// Settings that PostgreSQL reads only at startup (`pg_settings.context` is "postmaster") in versions 13 to 18,
/// limited to those that a study may vary.
const AT_START: &str = "\
    archive_mode autovacuum_freeze_max_age autovacuum_max_workers autovacuum_multixact_freeze_max_age \
    autovacuum_worker_slots bonjour bonjour_name cluster_name debug_io_direct dynamic_shared_memory_type \
    event_source external_pid_file hot_standby huge_page_size huge_pages ignore_invalid_pages \
    io_max_concurrency io_method jit_provider listen_addresses logging_collector \
    max_active_replication_origins max_connections max_files_per_process max_locks_per_transaction \
    max_logical_replication_workers max_notify_queue_pages max_pred_locks_per_transaction \
    max_prepared_transactions max_replication_slots max_wal_senders max_worker_processes \
    min_dynamic_shared_memory multixact_member_buffers multixact_offset_buffers old_snapshot_threshold \
    reserved_connections shared_buffers shared_memory_type shared_preload_libraries subtransaction_buffers \
    superuser_reserved_connections track_activity_query_size track_commit_timestamp transaction_buffers \
    wal_buffers wal_decode_buffer_size wal_level";

/// Whether the server reads this setting only at startup. A later version may differ: this is for plans, which are made
/// without connecting to a server.
pub fn is_read_at_start(name: &str) -> bool {
    AT_START.split(' ').any(|one| one.eq_ignore_ascii_case(name))
}
