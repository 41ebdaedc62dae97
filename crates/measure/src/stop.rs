//! Stop requests to long-running work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Asks long-running work, in any thread, to end early and keep its results.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicU8>);

impl Stop {
    /// No stop requested yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests a stop. The first request means "finish the work in progress", the second "now".
    pub fn request(&self) {
        // Saturates: a hundred impatient Ctrl-C are still "now".
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| Some(n.saturating_add(1)));
    }

    /// Forgets the requests so far: what they were about has ended, and something else begins.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Whether a stop was requested.
    #[inline]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }

    /// Whether a stop was requested twice: not even the transactions in flight are waited for.
    pub fn is_immediate(&self) -> bool {
        self.0.load(Ordering::Acquire) > 1
    }
}
