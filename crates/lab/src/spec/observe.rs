//! What is watched beside the load.

use kelvin_observe::scrape::ScrapeWatcher;
use serde::{Deserialize, Serialize};

use super::Span;

/// What is watched beside the load, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Observe {
    /// Watch host and database.
    pub enabled: bool,
    /// Time between two readings of the host and of the database's counters.
    pub interval: Span,
    /// Looks a second at what the database's sessions are doing.
    pub looks: u32,
    /// Statements that are named, those that took the most time.
    pub statements: u32,
    /// Prometheus endpoints of other hosts to read as well, such as "http://db1:9100/metrics".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scrape: Vec<String>,
}

impl Default for Observe {
    fn default() -> Self {
        Self { enabled: true, interval: Span::seconds(1), looks: 10, statements: 10, scrape: Vec::new() }
    }
}

impl Observe {
    /// Refuses what cannot be done.
    pub fn validate(&self) -> Result<(), String> {
        let interval = self.interval.duration();
        if !(100..=60_000).contains(&interval.as_millis()) {
            return Err("the interval of observation lies between 100ms and 1m".into());
        }
        if !(1..=100).contains(&self.looks) {
            return Err("sessions are looked at 1 to 100 times a second".into());
        }
        if self.statements > 100 {
            return Err("at most 100 statements are named".into());
        }
        if self.scrape.len() > 16 {
            return Err("at most 16 endpoints are scraped".into());
        }
        for url in &self.scrape {
            ScrapeWatcher::new(url, interval).map_err(|error| format!("scrape: {error}"))?;
        }
        Ok(())
    }
}
