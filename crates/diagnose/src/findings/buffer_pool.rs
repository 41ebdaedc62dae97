//! The database's own buffers, under the engine's name for them.

use crate::Evidence;

/// Buffers of pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pool {
    /// The engine's name.
    pub(super) name: &'static str,
    /// The setting of their size …
    pub(super) setting: &'static str,
    /// … and its value in bytes.
    pub(super) bytes: Option<f64>,
    /// Bytes of a page.
    pub(super) page: f64,
    /// Share of the memory with which the engine's documentation begins (PostgreSQL, "Resource Consumption": 25 %; MySQL,
    /// "Configuring InnoDB Buffer Pool Size": 50 to 75 %).
    pub(super) share: f64,
}

/// Those of the run's engine.
pub(super) fn configured_pool(evidence: &Evidence) -> Pool {
    let (name, setting, page, usual, share) = if evidence.setting("innodb_buffer_pool_size").is_some() {
        ("the buffer pool", "innodb_buffer_pool_size", "innodb_page_size", 16_384.0, 0.5)
    } else {
        ("the shared buffers", "shared_buffers", "block_size", 8192.0, 0.25)
    };
    let page = evidence.setting_number(page).unwrap_or(usual);
    Pool { name, setting, bytes: evidence.setting_number(setting), page, share }
}
