//! How long-running work is asked to end early.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Asks long work, in any thread, to end early and keep what it has.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Nobody has asked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks. The first time it means "finish what you are in", the second time "now".
    pub fn request(&self) {
        // Saturates: a hundred impatient Ctrl-C are still "now".
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| Some(n.saturating_add(1)));
    }

    /// Whether somebody has asked.
    #[inline]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }

    /// Whether somebody has asked twice: not even the transactions under way are waited for.
    pub fn is_immediate(&self) -> bool {
        self.0.load(Ordering::Acquire) > 1
    }
}
