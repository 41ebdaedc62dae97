//! A service level objective: what response times and errors are good enough.

use kelvin_measure::text::{small_percent, three_figures, time_unit};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kelvin_measure::{Bounded, CensoredTimes, Histogram, Nanos};
use serde::{Deserialize, Serialize};

/// A longer limit is a mistake.
const LONGEST: Nanos = Duration::from_hours(1).as_nanos() as Nanos;

/// Terms that must all hold, as `p99<20ms,errors<0.1%`.
///
/// A term is a percentile (`p50`, `p99.9`), `mean` (or `average`) or `max` of the response times against a time
/// in us, µs, ms or s, or `errors` against a percentage of all arrivals; `<` or `<=`.
///
/// The errors are what failed, timed out, was refused or was never begun. With an `errors` term the response
/// times are those of the good transactions. Without one, a transaction that had no answer took for ever: it
/// counts at the upper end of a percentile, and `mean` and `max` do not hold. Otherwise a system that refuses
/// half of its load would be the faster for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slo(Vec<Term>);

#[derive(Debug, Clone, Copy, PartialEq)]
struct Term {
    figure: Figure,
    /// `<=` rather than `<`.
    or_equal: bool,
    /// Nanoseconds, or percent for errors.
    limit: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    Percentile(f64),
    Mean,
    Max,
    Errors,
}

/// What a point of a run is judged by.
#[derive(Debug, Clone, Copy)]
pub struct SloFigures<'a> {
    /// Response times of the good transactions, from the intended start.
    pub responses: &'a Histogram,
    /// All arrivals of the measured window.
    pub arrivals: u64,
    /// Those of them that were not good: failed, timed out, refused, or never begun.
    pub errors: u64,
}

/// What came of one term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SloTermResult {
    /// The term, as `p99<20ms`.
    pub term: String,
    /// The measured value, or why there is none.
    pub value: String,
    /// Whether it holds; none where the response times are too few to say.
    pub holds: Option<bool>,
}

impl Slo {
    /// A verdict for each term, in their order. The objective is met when all of them hold.
    pub fn judge(&self, figures: &SloFigures) -> Vec<SloTermResult> {
        let tolerant = self.0.iter().any(|term| term.figure == Figure::Errors);
        let unanswered = if tolerant { 0 } else { figures.errors };
        let verdict = |term: &Term| {
            let (value, holds) = match measure(term.figure, figures, unanswered) {
                Ok(value) if term.figure == Figure::Errors => (small_percent(value), Some(term.holds(value))),
                // The tables beside it count what had no answer as longest.
                Ok(value) if tolerant && figures.errors > 0 => {
                    (format!("{} for answered arrivals", time(value)), Some(term.holds(value)))
                }
                Ok(value) => (time(value), Some(term.holds(value))),
                Err(Unmeasured::TooFew { count, needed }) => {
                    (format!("too few samples ({count} of {needed})"), None)
                }
                Err(Unmeasured::Endless(why)) => (why, Some(false)),
            };
            SloTermResult { term: term.to_string(), value, holds }
        };
        self.0.iter().map(verdict).collect()
    }
}

impl Slo {
    /// Response times that the percentiles of the terms take: ten beyond each. 0 where there is no percentile.
    pub fn responses_needed(&self) -> u64 {
        let each = self.0.iter().map(|term| match term.figure {
            Figure::Percentile(percentile) => responses_for(percentile),
            Figure::Mean | Figure::Max | Figure::Errors => 0,
        });
        each.max().unwrap_or(0)
    }

    /// Arrivals that a window has to expect so that they are enough for [`Self::responses_needed`]: four standard
    /// deviations of a Poisson count more, so that chance leaves too few in one of 30,000 windows.
    pub fn arrivals_to_expect(&self) -> f64 {
        let needed = self.responses_needed() as f64;
        // The mean m of which m − 4√m is what is needed.
        (2.0 + (4.0 + needed).sqrt()).powi(2) * f64::from(u8::from(needed > 0.0))
    }

    /// The shortest window in which arrivals at `rate` a second are enough for the percentiles of the terms.
    pub fn shortest_window(&self, rate: f64) -> Duration {
        Duration::try_from_secs_f64((self.arrivals_to_expect() / rate).ceil()).unwrap_or(Duration::MAX)
    }
}

/// Response times of which ten lie beyond a percentile.
fn responses_for(percentile: f64) -> u64 {
    // Forgives the rounding of 1 − 0.999.
    (10.0 / (1.0 - percentile / 100.0) - 1e-6).ceil() as u64
}

impl Term {
    fn holds(&self, value: f64) -> bool {
        if self.or_equal { value <= self.limit } else { value < self.limit }
    }
}

/// Why a figure has no value.
enum Unmeasured {
    /// So many response times, of so many that it takes.
    TooFew { count: u64, needed: u64 },
    /// It is longer than all that was measured, as text.
    Endless(String),
}

/// The value of a figure, or why there is none.
fn measure(figure: Figure, figures: &SloFigures, unanswered: u64) -> Result<f64, Unmeasured> {
    let times = CensoredTimes::with_unanswered(figures.responses, unanswered as f64);
    let nothing = || Unmeasured::TooFew { count: 0, needed: 1 };
    // What is known from below only holds no limit.
    let known = |value: Option<Bounded>| match value {
        Some(value) if !value.at_least => Ok(value.value),
        _ if unanswered > 0 => {
            Err(Unmeasured::Endless(format!("{unanswered} of {} were not answered", figures.arrivals)))
        }
        _ => Err(nothing()),
    };
    match figure {
        Figure::Errors if figures.arrivals == 0 => Err(nothing()),
        Figure::Errors => Ok(figures.errors as f64 / figures.arrivals as f64 * 100.0),
        Figure::Mean => known(times.mean()),
        Figure::Max => known(times.max()),
        Figure::Percentile(percentile) if times.too_few(percentile) => {
            let count = figures.responses.count() + unanswered;
            Err(Unmeasured::TooFew { count, needed: responses_for(percentile) })
        }
        Figure::Percentile(percentile) => known(times.percentile(percentile)),
    }
}

impl FromStr for Slo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("an objective needs at least one term; write p99<20ms,errors<0.1%".into());
        }
        let terms: Vec<Term> = text.split(',').map(term).collect::<Result<_, _>>()?;
        match terms.iter().enumerate().find(|(i, t)| terms[..*i].iter().any(|other| other.figure == t.figure))
        {
            Some((_, twice)) => Err(format!("{} is given twice", twice.figure)),
            None => Ok(Self(terms)),
        }
    }
}

fn term(text: &str) -> Result<Term, String> {
    let text = text.trim();
    let (name, limit) = text.split_once('<').ok_or_else(|| {
        format!("\"{text}\" is not a valid term of an objective; write p99<20ms or errors<0.1%")
    })?;
    let (or_equal, limit) = match limit.strip_prefix('=') {
        Some(limit) => (true, limit.trim()),
        None => (false, limit.trim()),
    };
    let figure = figure(name.trim())?;
    let limit = if figure == Figure::Errors { percentage(limit)? } else { nanoseconds(limit)? };
    if limit == 0.0 && !or_equal {
        return Err(format!("{name}<0 can never hold; write {}<=0%", name.trim()));
    }
    Ok(Term { figure, or_equal, limit })
}

fn figure(name: &str) -> Result<Figure, String> {
    match name {
        "mean" | "average" => Ok(Figure::Mean),
        "max" => Ok(Figure::Max),
        "errors" => Ok(Figure::Errors),
        _ => match name.strip_prefix('p').and_then(number) {
            Some(percentile) if percentile > 0.0 && percentile < 100.0 => Ok(Figure::Percentile(percentile)),
            Some(percentile) => {
                Err(format!("p{percentile} is not a valid percentile; give one between 0 and 100, or max"))
            }
            None => Err(format!(
                "\"{name}\" is not a valid metric for an objective; use p50 to p99.999, mean, max or errors"
            )),
        },
    }
}

/// Digits with at most one point: `f64` alone would also take "inf", "nan", signs and exponents.
fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse().ok().filter(|number: &f64| plain && number.is_finite())
}

fn percentage(text: &str) -> Result<f64, String> {
    let value = text.strip_suffix('%').map(str::trim_end).and_then(number);
    match value {
        Some(value) if value <= 100.0 => Ok(value),
        Some(value) => Err(format!("{value}% of errors is more than 100%; write errors<0.1%")),
        None => Err(format!("\"{text}\" is not a valid percentage; write errors<0.1%")),
    }
}

fn nanoseconds(text: &str) -> Result<f64, String> {
    let units = [("us", 1e3), ("µs", 1e3), ("\u{3bc}s", 1e3), ("ms", 1e6), ("ns", 1.0), ("s", 1e9)];
    let found = units.iter().find_map(|(unit, nanos)| Some((text.strip_suffix(unit)?.trim_end(), nanos)));
    let value = found.and_then(|(value, nanos)| Some((number(value)? * nanos).round()));
    match value {
        Some(value) if value < 1.0 => Err(format!("a limit of \"{text}\" is not possible; give more than 0")),
        Some(value) if value > LONGEST as f64 => Err(format!("\"{text}\" is more than an hour")),
        Some(value) => Ok(value),
        None if number(text).is_some() => Err(format!("\"{text}\" has no unit; write {text}ms or {text}s")),
        None => Err(format!("\"{text}\" is not a valid time; write 20ms, 500us or 1.5s")),
    }
}

/// Exactly, in the largest unit in which it is at least 1.
fn exact_time(nanos: f64) -> String {
    let (value, unit) = time_unit(nanos);
    format!("{value}{}", if unit == "µs" { "us" } else { unit })
}

/// A measured time to three digits.
fn time(nanos: f64) -> String {
    let (value, unit) = time_unit(nanos);
    format!("{} {unit}", three_figures(value))
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percentile(percentile) => write!(f, "p{percentile}"),
            Self::Mean => f.write_str("mean"),
            Self::Max => f.write_str("max"),
            Self::Errors => f.write_str("errors"),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.or_equal { "<=" } else { "<" };
        match self.figure {
            Figure::Errors => write!(f, "errors{sign}{}%", self.limit),
            figure => write!(f, "{figure}{sign}{}", exact_time(self.limit)),
        }
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<String> = self.0.iter().map(Term::to_string).collect();
        f.write_str(&terms.join(","))
    }
}

impl TryFrom<String> for Slo {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Slo> for String {
    fn from(slo: Slo) -> Self {
        slo.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `count` responses, the i-th of i milliseconds.
    fn rising(count: u64) -> Histogram {
        let mut histogram = Histogram::new();
        (1..=count).for_each(|i| histogram.record(i * 1_000_000));
        histogram
    }

    fn judge(slo: &str, responses: &Histogram, errors: u64) -> Vec<SloTermResult> {
        let arrivals = responses.count() + errors;
        slo.parse::<Slo>().unwrap().judge(&SloFigures { responses, arrivals, errors })
    }

    fn holds(slo: &str, responses: &Histogram, errors: u64) -> bool {
        judge(slo, responses, errors).iter().all(|v| v.holds == Some(true))
    }

    /// Of a search that took "too few to say" for "too slow", and went down to 0.1 arrivals a second.
    #[test]
    fn trial_d1_the_window_is_as_long_as_the_percentiles_take() {
        let slo: Slo = "p99<20ms,errors<0.1%".parse().unwrap();
        assert_eq!(slo.responses_needed(), 1000);
        for rate in [0.5, 100.0, 30_000.0] {
            let expected = slo.shortest_window(rate).as_secs_f64() * rate;
            assert!(expected - 4.0 * expected.sqrt() >= 999.999, "{expected} at {rate}");
        }
        assert_eq!(slo.shortest_window(100.0), Duration::from_secs(12));
        let slo: Slo = "mean<20ms,max<1s".parse().unwrap();
        assert_eq!((slo.responses_needed(), slo.shortest_window(100.0)), (0, Duration::ZERO));
    }

    #[test]
    fn each_term_is_judged_by_its_own_figure() {
        let responses = rising(1000);
        for (slo, expected) in [
            ("p99<995ms", true),
            ("p99<985ms", false),
            ("p50<=502ms,p90<905ms", true),
            ("p50<=495ms,p90<905ms", false),
            ("mean<501ms", true),
            ("average<500ms", false),
            ("max<1.1s", true),
            ("max<1s", false),
            ("errors<=0%", true),
            ("errors<0.1%", true),
        ] {
            assert_eq!(holds(slo, &responses, 0), expected, "{slo}");
        }
        assert!(!holds("errors<0.1%", &rising(999), 1), "0.1 % is not below 0.1 %");
        assert!(holds("errors<=0.1%", &rising(999), 1));
        let verdicts = judge("p99<20ms,errors<1%", &responses, 2);
        assert_eq!(verdicts[0].term, "p99<20ms");
        assert!(
            verdicts[0].value.starts_with("99") && verdicts[0].value.ends_with(" ms for answered arrivals"),
            "{verdicts:?}"
        );
        assert!(judge("p99<20ms,errors<1%", &responses, 0)[0].value.ends_with(" ms"));
        assert_eq!((verdicts[1].value.as_str(), verdicts[1].holds), ("0.20 %", Some(true)));
    }

    #[test]
    fn too_few_responses_hold_nothing() {
        assert!(holds("p99<10s", &rising(1000), 0));
        let verdict = judge("p99<10s", &rising(999), 0).remove(0);
        assert!(verdict.holds.is_none() && verdict.value.ends_with(" of 1000)"), "{verdict:?}");
        assert_eq!(judge("p99.9<10s", &rising(9999), 0)[0].value, "too few samples (9999 of 10000)");
        for slo in ["mean<1s", "max<1s", "p50<1s", "errors<1%"] {
            assert!(!holds(slo, &Histogram::new(), 0), "{slo}");
        }
    }

    #[test]
    fn what_had_no_answer_took_for_ever_unless_errors_are_allowed() {
        let responses = rising(1000);
        // 12 of 1012 are more than one in a hundred: the 99th percentile is among them.
        let verdict = judge("p99<1000s", &responses, 12);
        assert!(verdict[0].holds == Some(false), "{verdict:?}");
        assert_eq!(verdict[0].value, "12 of 1012 were not answered");
        // With 5, it moves from the 990th of 1000 to the 995th of 1005.
        assert!(!holds("p99<993ms", &responses, 5) && holds("p99<993ms", &responses, 0));
        assert!(holds("p99<1s", &responses, 5));
        assert!(!holds("mean<1000s", &responses, 1) && !holds("max<1000s", &responses, 1));
        assert!(holds("mean<1000s,errors<1%", &responses, 1));
        assert!(holds("p99<993ms,errors<5%", &responses, 12));
        assert!(!holds("p99<993ms,errors<1%", &responses, 12));
    }

    #[test]
    fn refusals_say_what_to_write() {
        for (text, expected) in [
            ("", "at least one term"),
            ("p99", "write p99<20ms"),
            ("p99>20ms", "write p99<20ms"),
            ("p99<20", "has no unit; write 20ms"),
            ("p99<-1ms", "is not a valid time"),
            ("p99<0ms", "more than 0"),
            ("p99<2h", "is not a valid time"),
            ("p99<4000s", "more than an hour"),
            ("p0<20ms", "between 0 and 100"),
            ("p100<20ms", "between 0 and 100"),
            ("pinf<20ms", "not a valid metric"),
            ("p99<20ms,", "not a valid term"),
            ("latency<20ms", "not a valid metric"),
            ("errors<0.1", "not a valid percentage"),
            ("errors<5ms", "not a valid percentage"),
            ("errors<101%", "more than 100%"),
            ("errors<0%", "write errors<=0%"),
            ("p99<20ms,p99.0<30ms", "p99 is given twice"),
        ] {
            let error = text.parse::<Slo>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn it_prints_as_it_is_written() {
        for text in ["p99<20ms,errors<0.1%", "p99.9<=1.5s,mean<500us,max<2s", "p50<750ns", "errors<=0%"] {
            assert_eq!(text.parse::<Slo>().unwrap().to_string(), text);
        }
        let spaced: Slo = " p99 <= 20 ms , average < 1500µs ".parse().unwrap();
        assert_eq!(spaced.to_string(), "p99<=20ms,mean<1.5ms");
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_printed_is_read_again(
            text in prop_oneof![
                ".{0,30}",
                "(p[0-9]{1,2}(\\.[0-9]{1,3})?|mean|max)<=?[0-9]{1,4}(\\.[0-9]{1,9})?(ns|us|µs|ms|s)(,errors<=?[0-9]{1,2}(\\.[0-9]{1,5})?%)?",
            ],
            errors in 0_u64..2000,
        ) {
            if let Ok(slo) = text.parse::<Slo>() {
                prop_assert_eq!(&slo.to_string().parse::<Slo>().unwrap(), &slo);
                let responses = rising(500);
                let figures = SloFigures { responses: &responses, arrivals: 500 + errors, errors };
                prop_assert_eq!(slo.judge(&figures).len(), text.split(',').count());
            }
        }
    }
}
