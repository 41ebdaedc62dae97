//! What is printed and written of a result: fio's normal text, terse lines, JSON and JSON+, with what Kelvin adds to
//! them in places of its own; the status line; and reading such results again.
//!
//! Machine-readable texts contain nothing but what their format says.

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

/// What Kelvin calls itself where fio gives its version: the format's version first, as consumers look for it, then
/// who it was.
pub const VERSION: &str = concat!("fio-3.33-kelvin-", env!("CARGO_PKG_VERSION"));

/// How a result is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputOptions {
    /// `--terse-version=`: 2 to 5.
    pub terse_version: u8,
    /// When it is made, in milliseconds since 1970.
    pub now: i64,
    /// The run continues: what only its end shows is left out.
    pub partial: bool,
    /// The zone in which times are printed.
    pub zone: jiff::tz::TimeZone,
    /// What else there is to say of the run.
    pub remarks: Remarks,
}

/// What those who run the jobs know of the run beside its result. Of fio's forms JSON alone has a place for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Under which number it is kept.
    pub run: Option<i64>,
    /// What the stored run is good for ("counted", "void", "partial" or "failed"), with the reasons; none of what is not
    /// stored, and is judged by nobody.
    pub state: Option<(&'static str, Vec<String>)>,
    /// What makes the result another than it seems.
    pub findings: Vec<Remark>,
    /// How the jobs were read, where that may be another way than was meant.
    pub notes: Vec<String>,
}

/// A finding, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remark {
    /// By which it is known: `io-holes`.
    pub id: String,
    /// `red`, `amber` or `note`.
    pub severity: String,
    /// In a sentence.
    pub title: String,
    /// What shows it, each with its value.
    pub evidence: Vec<String>,
    /// What to do.
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
    /// Of fio's words, several apart by commas: `normal`, `terse` or `minimal`, `json`, `json+`.
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

    /// Whether a program reads it, so that nothing else may be in the stream.
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
