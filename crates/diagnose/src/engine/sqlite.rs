//! Advice for SQLite, which runs within the client: it has no sessions, and counts neither rows nor uses of indexes.

use super::{EngineAdvice, HostAdvice};

pub(super) struct Sqlite;

impl EngineAdvice for Sqlite {
    fn host(&self) -> HostAdvice {
        HostAdvice { memory: "cache_size × users", reads_page_cache: true, ..HostAdvice::NEUTRAL }
    }
}
