//! Comparison of the tenants of scenarios, by name: their loads have no common sum.

use std::collections::BTreeSet;

use serde::Serialize;

use super::side::{Run, Side};
use crate::RunReport;
use kelvin_diagnose::TENANT_THROUGHPUT;

/// A tenant that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UncomparedTenant {
    /// Its name.
    pub tenant: String,
    /// The reason.
    pub why: String,
}

impl UncomparedTenant {
    /// As a sentence.
    pub(super) fn describe(&self) -> String {
        format!("tenant {} is not compared: {}", self.tenant, self.why)
    }
}

/// The runs of a side, with a point per tenant instead of the combined one.
pub(super) fn runs_by_tenant(side: &Side<'_>) -> Vec<Run> {
    let by_tenant = |report: &RunReport| {
        let all = report.points.iter().flat_map(|point| point.sources.iter().map(|one| point.of_source(one)));
        let points = all.collect();
        let mut report = report.clone();
        (report.headline, report.points) = (TENANT_THROUGHPUT.into(), points);
        report
    };
    let run = |run: &&Run| Run {
        report: by_tenant(&run.report),
        key: run.key.clone(),
        block: run.block,
        origin: None,
    };
    side.runs.iter().map(run).collect()
}

/// The tenants that only one side has.
pub(super) fn on_one_side(a: &Side<'_>, b: &Side<'_>) -> Vec<UncomparedTenant> {
    let names = |side: &Side<'_>| -> BTreeSet<String> {
        let points = side.runs.iter().flat_map(|run| &run.report.points);
        points.filter_map(|point| point.tenant().map(ToOwned::to_owned)).collect()
    };
    let (of_a, of_b) = (names(a), names(b));
    let only = |tenant: &String| UncomparedTenant {
        tenant: tenant.clone(),
        why: format!("only {} has it", if of_a.contains(tenant) { "A" } else { "B" }),
    };
    of_a.symmetric_difference(&of_b).map(only).collect()
}
