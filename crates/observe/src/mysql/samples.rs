//! Statements as clients sent them, values and all, kept to be explained. They are not shown, saved or logged.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::sql::LONGEST_SAMPLE;

/// Statements that are kept.
const MOST: usize = 1000;

/// One sample of each statement, shared by who samples the sessions and who explains.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples(Arc<Mutex<HashMap<i64, String>>>);

impl Samples {
    /// Keeps the first of a statement, unless the server gave only its beginning.
    pub(super) fn keep(&self, query: Option<i64>, text: &str) {
        let Some(query) = query.filter(|_| !text.is_empty() && text.chars().count() < LONGEST_SAMPLE) else {
            return;
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST && !kept.contains_key(&query) {
            kept.insert(query, text.to_owned());
        }
    }

    /// A statement as a client sent it.
    pub(super) fn get(&self, query: i64) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&query).cloned()
    }
}
