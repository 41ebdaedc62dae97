//! The effect of limiting each resource on the throughput.

use kelvin_measure::event::{Elasticity, Squeeze};

use super::Page;
use crate::RunReport;
use kelvin_measure::text::{decimal, fixed_change};

impl Page {
    /// The elasticities, and the resources that were not limited.
    pub(super) fn squeeze(&mut self, report: &RunReport) {
        let Some(found) = &report.squeeze else { return };
        self.line("");
        self.wrapped("", &headline(found));
        self.line(&format!(
            "  {:<12}{:>10}  {:>15}{:>12}{:>7}  verdict",
            "resource", "elasticity", "95 % interval", "throughput", "pairs"
        ));
        for one in &found.resources {
            let lead = format!(
                "  {:<12}{:>10}  {:>15}{:>12}{:>7}  ",
                one.resource,
                decimal(Some(one.elasticity)),
                elasticity_interval(one),
                change(one),
                one.pairs
            );
            self.wrapped(&lead, &one.verdict);
        }
        for one in &found.resources {
            self.wrapped("  ", &format!("{}: {}", one.resource, describe_limit(one)));
        }
        for one in &found.not_cut {
            self.wrapped("  ", &format!("{} was not reduced: {}", one.what, one.why));
        }
    }
}

/// The result for each resource, in one sentence each.
pub(crate) fn elasticities(found: &Squeeze) -> Vec<String> {
    let sentence = |one: &Elasticity| {
        format!(
            "{}: elasticity {} ({}, 95 %), {}",
            one.resource,
            decimal(Some(one.elasticity)),
            elasticity_interval(one),
            one.verdict
        )
    };
    found.resources.iter().map(sentence).collect()
}

/// What was done, in one sentence.
pub(crate) fn headline(found: &Squeeze) -> String {
    format!(
        "Squeeze: response of the throughput to {:.0} % less of one resource at a time. Elasticity 1: \
         throughput falls in proportion; 0: not at all. The run's own results are those of a throttled \
         database.",
        found.cut * 100.0
    )
}

/// "0.85 to 1.07".
pub(crate) fn elasticity_interval(one: &Elasticity) -> String {
    format!("{:.2} to {:.2}", one.low, one.high)
}

/// "-19.3 %".
pub(crate) fn change(one: &Elasticity) -> String {
    fixed_change(one.throughput_ratio, 1)
}

/// How the resource was limited, and by how much.
pub(crate) fn describe_limit(one: &Elasticity) -> String {
    if one.means.is_empty() { one.how.clone() } else { format!("by {}: {}", one.means, one.how) }
}
