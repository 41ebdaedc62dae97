//! What a scenario expects of its tenants: it decides the exit code.

use kelvin_diagnose::tenants::{TenantSeries, TenantSums};
use kelvin_measure::text::{number, whole};
use kelvin_run::spec::{Slo, SloFigures};
use serde::{Deserialize, Serialize};

use crate::document::{self, Names, Value};
use crate::error::Refusal;
use crate::tenant::Tenants;

/// An expectation of one tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// Of whom, by name.
    pub tenant: String,
    /// Only of the seconds in which one of these is at work.
    pub during: Vec<String>,
    /// Only of the seconds in which none of these is.
    pub without: Vec<String>,
    /// Response times and errors.
    pub slo: Option<Slo>,
    /// Share of the scheduled arrivals that must be completed, in per cent.
    pub rate_held: Option<f64>,
    /// Completed transactions a second, at least.
    pub throughput_min: Option<f64>,
    /// The same at most.
    pub throughput_max: Option<f64>,
}

/// What came of one part of an expectation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExpectationResult {
    /// What was expected, of whom and when.
    pub expected: String,
    /// What was measured.
    pub measured: String,
    /// Whether it holds; what cannot be measured does not.
    pub holds: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    tenant: String,
    during: Option<String>,
    without: Option<String>,
    slo: Option<Slo>,
    rate_held: Option<String>,
    throughput_min: Option<f64>,
    throughput_max: Option<f64>,
}

/// Reads `[[expect]]`; one for each copy of a tenant.
pub(crate) fn read<'a>(
    items: Vec<Value<'a>>,
    names: &Names<'a>,
    tenants: &Tenants,
) -> Result<Vec<Expectation>, Refusal> {
    let mut found = Vec::new();
    for mut item in items {
        let span = item.span();
        names.put_into(&mut item)?;
        let table: Table = document::read(item)?;
        let refuse = |why: String| -> Refusal { (span.clone(), why) };
        let find = |name: &str| -> Result<Vec<String>, Refusal> {
            let found = tenants.find(name).map_err(refuse)?;
            Ok(found.iter().map(|&tenant| tenants.all[tenant].name.clone()).collect())
        };
        let others = |name: &Option<String>| name.as_deref().map_or(Ok(Vec::new()), find);
        let rate_held = table.rate_held.as_deref().map(percent).transpose().map_err(refuse)?;
        let limits = [table.throughput_min, table.throughput_max];
        if limits.iter().flatten().any(|limit| !limit.is_finite() || *limit < 0.0) {
            return Err(refuse("a throughput must be 0 or more".into()));
        }
        if table.slo.is_none() && rate_held.is_none() && limits == [None, None] {
            let why = "an expectation needs slo, rate-held, throughput-min or throughput-max";
            return Err(refuse(why.into()));
        }
        for &tenant in tenants.find(&table.tenant).map_err(refuse)? {
            let spec = &tenants.all[tenant].spec;
            if rate_held.is_some() && !spec.is_open_loop() {
                return Err(refuse(format!("rate-held: {} has no rate", tenants.all[tenant].name)));
            }
            found.push(Expectation {
                tenant: tenants.all[tenant].name.clone(),
                during: others(&table.during)?,
                without: others(&table.without)?,
                slo: table.slo.clone(),
                rate_held,
                throughput_min: table.throughput_min,
                throughput_max: table.throughput_max,
            });
        }
    }
    Ok(found)
}

/// What the errors of an objective are: " (12 failed, 3,402 were still waiting)".
fn unanswered_parts(sums: &TenantSums) -> String {
    let parts =
        [(sums.failed, "failed"), (sums.refused, "refused"), (sums.queued, "still waiting at the end")];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, what)| format!("{} {what}", whole(*count))).collect();
    format!(" ({})", parts.join(", "))
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    number
        .filter(|number| (0.0..=100.0).contains(number))
        .ok_or_else(|| format!("\"{text}\" is not a share; write for example 99%"))
}

impl Expectation {
    /// Each part of it against what was measured.
    pub fn judge(&self, tenants: &[TenantSeries]) -> Vec<ExpectationResult> {
        let sums = self.seconds(tenants);
        let (of, seconds) = (self.label(), sums.seconds as f64);
        let mut found = Vec::new();
        let mut add = |expected: String, measured: String, holds: bool| {
            found.push(ExpectationResult { expected: format!("{of}: {expected}"), measured, holds });
        };
        if let Some(slo) = &self.slo {
            let figures =
                SloFigures { responses: &sums.times, arrivals: sums.arrivals(), errors: sums.unanswered() };
            for term in slo.judge(&figures) {
                let of_errors = term.term.starts_with("errors") && sums.unanswered() > 0;
                let parts = if of_errors { unanswered_parts(&sums) } else { String::new() };
                add(term.term, format!("{}{parts}", term.value), term.holds == Some(true));
            }
        }
        let measured = |value: Option<f64>, unit: &str| {
            value.map_or_else(|| "no such second".to_owned(), |value| format!("{}{unit}", number(value)))
        };
        if let Some(held) = self.rate_held {
            let share = sums.held().map(|share| share * 100.0);
            add(
                format!("rate held to {held}%"),
                measured(share, "%"),
                share.is_some_and(|share| share >= held),
            );
        }
        let rate = (seconds > 0.0).then(|| sums.good as f64 / seconds);
        if let Some(min) = self.throughput_min {
            add(format!("at least {min}/s"), measured(rate, "/s"), rate.is_some_and(|rate| rate >= min));
        }
        if let Some(max) = self.throughput_max {
            add(format!("at most {max}/s"), measured(rate, "/s"), rate.is_some_and(|rate| rate <= max));
        }
        found
    }

    /// The sums of the seconds that it is about.
    fn seconds(&self, tenants: &[TenantSeries]) -> TenantSums {
        let Some(own) = tenants.iter().find(|tenant| tenant.name == self.tenant) else {
            return TenantSums::default();
        };
        let of = |names: &[String]| -> Vec<&TenantSeries> {
            tenants.iter().filter(|tenant| names.contains(&tenant.name)).collect()
        };
        let (during, without) = (of(&self.during), of(&self.without));
        own.sums(|second| {
            (self.during.is_empty() || during.iter().any(|other| other.is_at_work(second)))
                && !without.iter().any(|other| other.touches(second))
        })
    }

    fn label(&self) -> String {
        let mut text = self.tenant.clone();
        if !self.during.is_empty() {
            text.push_str(&format!(" during {}", self.during.join(", ")));
        }
        if !self.without.is_empty() {
            text.push_str(&format!(" without {}", self.without.join(", ")));
        }
        text
    }
}

impl std::fmt::Display for Expectation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let slo = self.slo.as_ref().map(ToString::to_string);
        let held = self.rate_held.map(|held| format!("rate held to {held}%"));
        let least = self.throughput_min.map(|min| format!("at least {min}/s"));
        let most = self.throughput_max.map(|max| format!("at most {max}/s"));
        let parts: Vec<String> = [slo, held, least, most].into_iter().flatten().collect();
        write!(f, "{}: {}", self.label(), parts.join(", "))
    }
}
