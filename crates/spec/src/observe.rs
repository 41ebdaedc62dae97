//! What is watched beside the load.

use kelvin_observe::engine::ExplainSample;
use kelvin_observe::scrape::ScrapeWatcher;
use serde::{Deserialize, Serialize};

use crate::{Span, is_true};

/// What is watched beside the load, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Observe {
    /// Watch host and database.
    pub enabled: bool,
    /// Time between two readings of the host and of the database's counters.
    pub interval: Span,
    /// Samples of the database's sessions per second. The key is the one of studies that are locked already: another would show
    /// as a deviation of theirs.
    #[serde(rename = "looks")]
    pub sample_rate: u32,
    /// Statements that are named, those that took the most time.
    pub statements: u32,
    /// Switch on the server's instruments that are off by default, for the run (MySQL and MariaDB).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deep: bool,
    /// Record the block requests of this host during the run, which needs root.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trace: bool,
    /// Sample after such a run how many of the blocks that were read are zeros: it ends some seconds later.
    #[serde(skip_serializing_if = "is_true")]
    pub trace_zeros: bool,
    /// Execute the statements with the most time once more after the window, for the rows of their plans (PostgreSQL).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<ExplainSample>,
    /// Prometheus endpoints of other hosts to read as well, such as "http://db1:9100/metrics".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scrape: Vec<String>,
}

impl Default for Observe {
    fn default() -> Self {
        Self {
            enabled: true,
            interval: Span::seconds(1),
            sample_rate: 10,
            statements: 10,
            deep: false,
            trace: false,
            trace_zeros: true,
            explain: None,
            scrape: Vec::new(),
        }
    }
}

impl Observe {
    /// Refuses what cannot be done.
    pub fn validate(&self) -> Result<(), String> {
        let interval = self.interval.duration();
        if !(100..=60_000).contains(&interval.as_millis()) {
            return Err("the observation interval must be between 100ms and 1m".into());
        }
        if !(1..=100).contains(&self.sample_rate) {
            return Err("sessions can be sampled 1 to 100 times per second".into());
        }
        if self.deep && !self.enabled {
            return Err("deep observation needs observation: it cannot be turned off".into());
        }
        if self.explain.is_some() && !self.enabled {
            return Err("statements are explained for the observation: it cannot be turned off".into());
        }
        if !self.trace_zeros && !self.trace {
            return Err("--no-trace-zeros applies to a trace: add --trace".into());
        }
        if self.statements > 100 {
            return Err("at most 100 statements can be listed".into());
        }
        if self.scrape.len() > 16 {
            return Err("at most 16 endpoints can be scraped".into());
        }
        let mut addresses = Vec::new();
        for url in &self.scrape {
            let watcher = ScrapeWatcher::new(url, interval).map_err(|error| error.to_string())?;
            let address = watcher.address().to_ascii_lowercase();
            // Host and port stand before the names of the figures: those of two would be taken for one's.
            if addresses.contains(&address) {
                return Err(format!(
                    "--scrape: {address} is given twice, and its metrics would have the same names; give \
                     each host and port once"
                ));
            }
            addresses.push(address);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(scrape: &[&str]) -> Option<String> {
        let scrape = scrape.iter().map(|&url| url.to_owned()).collect();
        Observe { scrape, ..Observe::default() }.validate().err()
    }

    #[test]
    fn the_sample_of_zeros_is_left_out_of_a_trace_only() {
        let read = |text: &str| toml::from_str::<Observe>(text).unwrap();
        let without = read("trace = true\ntrace-zeros = false");
        assert_eq!((without.trace_zeros, without.validate()), (false, Ok(())));
        assert!(toml::to_string(&without).unwrap().contains("trace-zeros = false"));
        assert!(!toml::to_string(&read("trace = true")).unwrap().contains("trace-zeros"));
        let error = read("trace-zeros = false").validate().unwrap_err();
        assert!(error.contains("add --trace"), "{error}");
    }

    #[test]
    fn an_address_is_scraped_once() {
        assert_eq!(refused(&["db1:9100", "db1:9187", "db2:9100"]), None);
        let error = refused(&["db1:9100", "http://DB1:9100/other"]).unwrap();
        assert!(error.contains("db1:9100 is given twice") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn a_url_with_a_secret_that_would_be_stored_is_refused() {
        for url in ["admin:secret@db1:9100", "http://db1:9100/metrics?token=secret"] {
            let error = refused(&[url]).unwrap();
            assert!(!error.contains("secret") && error.matches("scrape: ").count() == 1, "{error}");
        }
    }
}
