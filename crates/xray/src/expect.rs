//! What a scenario expects of its results, as what decides an exit code, beside what X-Ray draws.

use crate::claim::{POINT, claims};
use crate::conversion::{Expectation, Tenant};
use crate::job::Arrivals;
use crate::result::{Aggregate, Band, ResultLine, ResultMeasure, ResultSubject};
use crate::scenario::{Scenario, Workload};

/// The results of a scenario that can be judged.
pub(crate) fn expectations(scenario: &Scenario, tenants: &[Tenant]) -> Vec<Expectation> {
    let mut found = Vec::new();
    for result in &scenario.results {
        for (index, tenant) in tenants.iter().enumerate().filter(|(_, tenant)| tenant.measured) {
            let workload = scenario.workloads.iter().find(|workload| workload.name == tenant.workload);
            let Some(workload) = workload.filter(|workload| is_about(result, workload)) else { continue };
            found.extend(expectation(result, index, tenant, workload));
        }
    }
    found
}

fn is_about(result: &ResultLine, workload: &Workload) -> bool {
    let masked = result.mask.as_ref().is_none_or(|mask| *mask == workload.name);
    masked
        && match &result.subject {
            ResultSubject::Group(group) => *group == workload.group,
            ResultSubject::Workload(name) => *name == workload.name,
            ResultSubject::Cluster(_) => false,
        }
}

fn expectation(
    result: &ResultLine,
    index: usize,
    tenant: &Tenant,
    workload: &Workload,
) -> Option<Expectation> {
    let no_errors =
        result.measure == ResultMeasure::Errors && result.scores.iter().any(|score| score == "AnyFail");
    let expected = result.expected.filter(|_| {
        matches!(result.measure, ResultMeasure::Iops | ResultMeasure::Bandwidth | ResultMeasure::Latency)
    });
    if expected.is_none() && !no_errors {
        return None;
    }
    let point = match &result.subject {
        ResultSubject::Workload(_) => workload.reporting_interval,
        _ => POINT,
    };
    let width = result.step.unwrap_or(point).min(tenant.runtime.unwrap_or(f64::INFINITY));
    let arrivals = workload.job.arrivals();
    // A sum is of all copies, anything else is of one.
    let summed = result.aggregate == Some(Aggregate::Sum);
    let copies = if summed { f64::from(tenant.copies) } else { 1.0 };
    let claims = expected.map_or_else(Vec::new, |expected| {
        claims(result.measure, expected, &result.bands, arrivals.as_ref(), width)
    });
    Some(Expectation {
        result: result.name.clone(),
        tenant: index,
        measure: result.measure,
        expected,
        summed,
        throughput: expected
            .and_then(|expected| throughput(result, expected / copies, copies, arrivals.as_ref(), width)),
        remark: expected
            .zip(arrivals)
            .and_then(|(expected, arrivals)| disagreement(result.measure, expected, copies, &arrivals)),
        claims,
        width,
        no_errors,
    })
}

/// The I/Os per second of one copy that its points should be between: the widest of the bands.
fn throughput(
    result: &ResultLine,
    expected: f64,
    copies: f64,
    arrivals: Option<&Arrivals>,
    width: f64,
) -> Option<(f64, f64)> {
    let widest = result.bands.iter().max_by(|a, b| (a.upper - a.lower).total_cmp(&(b.upper - b.lower)))?;
    let (rate, theirs) = match result.measure {
        ResultMeasure::Iops => (expected, Some((widest.lower / copies, widest.upper / copies))),
        // Kelvin judges I/Os: as many of them as the mean size makes of the bytes.
        ResultMeasure::Bandwidth => (expected / arrivals?.bytes * arrivals?.rate, None),
        _ => return None,
    };
    let band = Band { name: widest.name.clone(), lower: rate, upper: rate };
    let computed = claims(ResultMeasure::Iops, rate, std::slice::from_ref(&band), arrivals, width);
    computed.first().and_then(|claim| claim.computed).or(theirs)
}

/// Whether the job file schedules something else than the scenario expects of it.
fn disagreement(measure: ResultMeasure, expected: f64, copies: f64, arrivals: &Arrivals) -> Option<String> {
    let (scheduled, unit) = match measure {
        ResultMeasure::Iops => (arrivals.rate * copies, "I/Os"),
        ResultMeasure::Bandwidth => (arrivals.bytes * copies, "bytes"),
        _ => return None,
    };
    // What rounding leaves is no disagreement.
    let differs = (scheduled / expected - 1.0).abs() > 1e-4;
    differs.then(|| format!("the job file schedules {scheduled:.0} {unit} per second, not {expected:.0}"))
}
