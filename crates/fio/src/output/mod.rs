//! The output of a result: fio's normal text, terse lines, JSON and JSON+, with Kelvin's additions in separate places;
//! the status line; and parsing such results.
//!
//! Machine-readable output contains nothing outside its format.

mod banner;
mod entry;
mod json;
mod latency;
mod normal;
pub mod read;
pub mod status;
mod terse;
mod tree;
mod unit;

pub use banner::{banner, starting};
pub use entry::{Line, RateSamples, ResultEntry, TargetTotals, merged};
pub use json::json;
pub use normal::normal;
pub use terse::terse;

use crate::result::JobsOutcome;
use crate::{Error, Result, error::Location};

/// The version in place of fio's: that of the format first, as consumers look for it, then Kelvin's.
pub const VERSION: &str = concat!("fio-3.33-kelvin-", env!("CARGO_PKG_VERSION"));

/// Options of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputOptions {
    /// `--terse-version=`: 2 to 5.
    pub terse_version: u8,
    /// Time of the output, in milliseconds since 1970.
    pub now: i64,
    /// The run is not over: values that only its end provides are left out.
    pub partial: bool,
    /// The zone in which times are printed.
    pub zone: jiff::tz::TimeZone,
    /// Further remarks about the run.
    pub remarks: Remarks,
}

/// Information about the run from the caller, in addition to its result. Of fio's formats only JSON has a place for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// The number under which it is stored.
    pub run: Option<i64>,
    /// The state of the stored run ("counted", "void", "partial" or "failed"), with the reasons; `None` if it is not
    /// stored and has no judgement.
    pub state: Option<(&'static str, Vec<String>)>,
    /// Findings that change the meaning of the result.
    pub findings: Vec<Remark>,
    /// Notes on the interpretation of the jobs, where it may differ from the intention.
    pub notes: Vec<String>,
}

/// A finding, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remark {
    /// Its identifier: `io-holes`.
    pub id: String,
    /// `red`, `amber` or `note`.
    pub severity: String,
    /// In a sentence.
    pub title: String,
    /// The evidence, each with its value.
    pub evidence: Vec<String>,
    /// The remedy.
    pub next: String,
}

impl OutputOptions {
    /// Terse version 3, now, in the machine's zone.
    pub fn new() -> Self {
        Self {
            terse_version: 3,
            partial: false,
            now: jiff::Timestamp::now().as_millisecond(),
            zone: jiff::tz::TimeZone::system(),
            remarks: Remarks::default(),
        }
    }

    /// A time as C's `ctime` writes it.
    pub(crate) fn time(&self, millis: i64) -> String {
        let time = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
        time.to_zoned(self.zone.clone()).strftime("%a %b %e %H:%M:%S %Y").to_string()
    }
}

impl Default for OutputOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// `--output-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For a person.
    Normal,
    /// A line of semicolons for each entry.
    Terse,
    /// JSON.
    Json,
    /// JSON with all bins of the histograms.
    JsonPlus,
}

impl Format {
    /// Parses fio's keywords, separated by commas: `normal`, `terse` or `minimal`, `json`, `json+`.
    pub fn parse(words: &str, place: &Location) -> Result<Vec<Self>> {
        words
            .split(',')
            .map(|word| match word.trim() {
                "normal" => Ok(Self::Normal),
                "terse" | "minimal" => Ok(Self::Terse),
                "json" => Ok(Self::Json),
                "json+" => Ok(Self::JsonPlus),
                other => Err(Error::Input {
                    place: place.clone(),
                    problem: format!("there is no output format {other:?}: use normal, terse, json or json+"),
                }),
            })
            .collect()
    }

    /// Whether it is machine-readable, so that the stream must contain nothing else.
    pub fn is_for_machines(self) -> bool {
        self != Self::Normal
    }
}

/// A result in one or several formats, in fio's order: terse, JSON, normal. The normal text is without the banner,
/// which is written before the run.
pub fn render_formats(outcome: &JobsOutcome, formats: &[Format], options: &OutputOptions) -> Result<String> {
    let mut text = String::new();
    if formats.contains(&Format::Terse) {
        text.push_str(&terse(outcome, options)?);
    }
    if formats.contains(&Format::JsonPlus) {
        text.push_str(&json(outcome, options, true));
    } else if formats.contains(&Format::Json) {
        text.push_str(&json(outcome, options, false));
    }
    if formats.contains(&Format::Normal) {
        text.push_str(&normal(outcome, options));
    }
    Ok(text)
}
