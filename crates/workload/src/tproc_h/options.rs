//! The options of TPROC-H.

use std::fmt;
use std::str::FromStr;

use kelvin_database::{Error, Result};
use serde::{Deserialize, Serialize};

use super::query::{QUERIES, streams_of_scale};
use crate::tproc_c::Profile;

/// Maximum number of streams, query sets and loaders.
const MOST: u32 = 1024;

/// Maximum pause of a trickle refresh in milliseconds.
const LONGEST_PAUSE: u32 = 1000;

/// The scale factor; 1 is about 1 GB. Written as a number with at most three decimal places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Scale(u32);

impl Scale {
    const SMALLEST: f64 = 0.01;
    const LARGEST: f64 = 1000.0;

    /// The scale factor as a number.
    pub fn factor(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl Default for Scale {
    fn default() -> Self {
        Self(1000)
    }
}

impl TryFrom<f64> for Scale {
    type Error = String;

    fn try_from(number: f64) -> std::result::Result<Self, String> {
        let thousandths = number * 1000.0;
        if !(Self::SMALLEST..=Self::LARGEST).contains(&number) {
            return Err(format!("the scale factor {number} is outside the range 0.01 to 1000"));
        }
        if (thousandths - thousandths.round()).abs() > 1e-6 {
            return Err(format!("the scale factor {number} has more than three digits after the point"));
        }
        Ok(Self(thousandths.round() as u32))
    }
}

impl From<Scale> for f64 {
    fn from(scale: Scale) -> Self {
        scale.factor()
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let number: f64 = text
            .trim()
            .parse()
            .map_err(|_| format!("\"{text}\" is not a valid scale factor; write 1 or 0.01"))?;
        number.try_into()
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.factor().fmt(f)
    }
}

/// The options of TPROC-H.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Options {
    /// The scale factor; `None` uses that of the database, or builds with 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// The rules of the run: the specification's power and throughput tests, or HammerDB's virtual users with
    /// query sets.
    pub profile: Profile,
    /// Streams of the throughput test; 0 runs only the power test. `None` uses the specification's number for
    /// the scale factor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// Query sets per virtual user, in the `hammerdb` profile. 0, for a tenant of a scenario: until the load
    /// is stopped.
    pub query_sets: u32,
    /// The queries to run; all 22 if empty.
    pub queries: Vec<u8>,
    /// Whether to omit the refresh functions.
    pub no_refresh: bool,
    /// Pause in milliseconds between the orders of the refresh functions that run during the queries, each
    /// order in a separate transaction. `None` inserts and deletes all orders of a refresh function in one
    /// transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trickle_refresh: Option<u32>,
    /// Whether to use the parameters of the validation run and to compare the answers with the published
    /// ones, if these exist (scale factor 1, data as loaded).
    pub validate: bool,
    /// Whether to omit the analysis of the queries' plans after the load.
    pub no_analyze: bool,
    /// Whether to build orders and lineitem with partitions by year.
    pub partition: bool,
    /// Whether to build columnstore tables.
    pub colstore: bool,
    /// Connections that load; `None` chooses by the engine and the number of cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loaders: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scale: None,
            profile: Profile::default(),
            streams: None,
            query_sets: 1,
            queries: Vec::new(),
            no_refresh: false,
            trickle_refresh: None,
            validate: false,
            no_analyze: false,
            partition: false,
            colstore: false,
            loaders: None,
        }
    }
}

impl Options {
    /// The scale factor to build if the options have none.
    pub fn scale_to_build(&self) -> Scale {
        self.scale.unwrap_or_default()
    }

    /// The queries to run, in ascending order.
    pub(crate) fn chosen(&self) -> Vec<u8> {
        let mut chosen = if self.queries.is_empty() { (1..=QUERIES).collect() } else { self.queries.clone() };
        chosen.sort_unstable();
        chosen
    }

    /// Whether the refresh functions run. They change the data, so that published answers no longer apply.
    pub(crate) fn refreshes(&self) -> bool {
        let has_refresh = self.profile == Profile::Spec || self.trickle_refresh.is_some();
        has_refresh && !self.no_refresh && !self.validate
    }

    /// Streams of the throughput test; 0 for no throughput test.
    pub(crate) fn streams(&self) -> u32 {
        self.streams.unwrap_or_else(|| streams_of_scale(self.scale_to_build().factor()))
    }

    /// The virtual users of each point of a run in the `spec` profile: one for the power test, then the
    /// streams of the throughput test plus, if there are refresh functions, the user that executes them.
    pub fn users(&self) -> Vec<u32> {
        match self.streams() {
            0 => vec![1],
            streams => vec![1, streams + u32::from(self.refreshes())],
        }
    }

    /// The number of transactions of the user with the most; 0 for query sets without end. With a trickle
    /// refresh, which lasts as long as the queries, it is a limit that is never reached.
    pub fn most_transactions(&self) -> u64 {
        if self.trickle_refresh.is_some() {
            return u64::from(u32::MAX);
        }
        let queries = self.chosen().len() as u64;
        match self.profile {
            Profile::Hammerdb => queries * u64::from(self.query_sets),
            Profile::Spec => (queries + 2).max(2 * u64::from(self.streams())),
        }
    }

    /// Refuses options that are out of range or conflict.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(Error::usage(message));
        if let Some(query) = self.queries.iter().find(|query| !(1..=QUERIES).contains(query)) {
            return refuse(format!("there is no query {query}; they are numbered 1 to {QUERIES}"));
        }
        if let Some((_, twice)) =
            self.queries.iter().enumerate().find(|(at, query)| self.queries[..*at].contains(query))
        {
            return refuse(format!("the query {twice} is given twice"));
        }
        let ranges = [
            ("streams", self.streams, 0),
            ("query sets", Some(self.query_sets), 0),
            ("loaders", self.loaders, 1),
        ];
        for (what, number, low) in ranges {
            if let Some(number) = number.filter(|number| !(low..=MOST).contains(number)) {
                return refuse(format!("{number} {what} are outside the range {low} to {MOST}"));
            }
        }
        if self.partition && self.colstore {
            return refuse("no engine supports both partitions and columnstore tables".into());
        }
        self.check_trickle()?;
        if self.streams == Some(1) {
            return refuse("a throughput test needs two streams or more; 0 runs the power test only".into());
        }
        if self.profile == Profile::Hammerdb && self.streams.is_some() {
            return refuse(
                "streams belong to the spec profile: in the hammerdb profile, each virtual user is one"
                    .into(),
            );
        }
        if self.profile == Profile::Spec && self.query_sets != 1 {
            return refuse("query sets belong to the hammerdb profile: a stream has one".into());
        }
        Ok(())
    }

    /// Refuses a trickle refresh unless there are queries during which it runs and for whose end it can wait.
    fn check_trickle(&self) -> Result<()> {
        let Some(pause) = self.trickle_refresh else { return Ok(()) };
        let refusal = if pause > LONGEST_PAUSE {
            format!("a pause of {pause} ms between orders is outside the range 0 to {LONGEST_PAUSE}")
        } else if self.no_refresh || self.validate {
            "a trickle refresh changes the data, which a run without refresh functions or with validation does not".into()
        } else if self.streams == Some(0) {
            "a trickle refresh needs the streams of a throughput test".into()
        } else if self.query_sets == 0 {
            "a trickle refresh ends with the queries, and these query sets do not end".into()
        } else {
            return Ok(());
        };
        Err(Error::usage(refusal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_read_as_it_is_printed_and_others_are_refused() {
        for text in ["0.01", "0.125", "1", "30", "1000"] {
            assert_eq!(text.parse::<Scale>().unwrap().to_string(), text);
        }
        for text in ["0", "0.001", "0.0101", "1001", "-1", "NaN", "inf", "x", ""] {
            assert!(text.parse::<Scale>().is_err(), "{text}");
        }
    }

    #[test]
    fn users_are_one_and_then_the_streams_with_the_one_that_refreshes() {
        let options = |streams, no_refresh| Options { streams, no_refresh, ..Options::default() };
        assert_eq!(options(None, false).users(), [1, 3]);
        assert_eq!(options(Some(0), false).users(), [1]);
        assert_eq!(options(Some(4), true).users(), [1, 4]);
        assert_eq!(options(Some(40), false).most_transactions(), 80);
        assert!(options(Some(1), false).check().is_err());
        assert!(Options { queries: vec![3, 23], ..Options::default() }.check().is_err());
        assert!(Options { queries: vec![3, 3], ..Options::default() }.check().is_err());
        assert!(options(Some(2), false).check().is_ok());
        let trickle = |streams, no_refresh, pause| {
            let options = Options { trickle_refresh: Some(pause), ..options(streams, no_refresh) };
            options.check().is_ok()
        };
        assert!(trickle(None, false, 0) && trickle(Some(2), false, LONGEST_PAUSE));
        assert!(
            !trickle(Some(0), false, 1)
                && !trickle(None, true, 1)
                && !trickle(None, false, LONGEST_PAUSE + 1)
        );
    }
}
