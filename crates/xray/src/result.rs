//! What a scenario shows, and what it claims of it.

use crate::fault::{Problem, hint};
use crate::yaml::Node;

/// A result of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultLine {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub line: u32,
    /// What it is about.
    pub subject: ResultSubject,
    /// What is shown of it.
    pub measure: ResultMeasure,
    /// One number of all machines instead of one for each.
    pub aggregate: Option<Aggregate>,
    /// Only while this workload runs.
    pub mask: Option<String>,
    /// Seconds between two points, where the scenario says so.
    pub step: Option<f64>,
    /// What every point is expected to be near.
    pub expected: Option<f64>,
    /// Where the points are expected to be.
    pub bands: Vec<Band>,
    /// How it is scored: Median, Variability, AnyFail, …
    pub scores: Vec<String>,
}

/// What a result is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultSubject {
    /// The machines of a group.
    Group(String),
    /// A workload.
    Workload(String),
    /// A metric of the whole cluster.
    Cluster(String),
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultMeasure {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean response time, in microseconds.
    Latency,
    /// A query to Prometheus.
    Generic,
    /// I/O errors.
    Errors,
    /// Whether the workload runs.
    Active,
    /// A metric of the cluster.
    Metric,
}

/// One number of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// Their sum.
    Sum,
    /// The smallest.
    Min,
    /// Their mean.
    Mean,
    /// Their median.
    Median,
    /// The largest.
    Max,
}

/// A range in which the points of a result should be.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// Its name, mostly the share of the points: 95%.
    pub name: String,
    /// Its lower end.
    pub lower: f64,
    /// Its upper end.
    pub upper: f64,
}

const MEASURES: &[(&str, ResultMeasure)] = &[
    ("iops", ResultMeasure::Iops),
    ("bandwidth", ResultMeasure::Bandwidth),
    ("latency", ResultMeasure::Latency),
    ("generic", ResultMeasure::Generic),
    ("errors", ResultMeasure::Errors),
    ("active", ResultMeasure::Active),
];

const AGGREGATES: &[(&str, Aggregate)] = &[
    ("sum", Aggregate::Sum),
    ("min", Aggregate::Min),
    ("mean", Aggregate::Mean),
    ("median", Aggregate::Median),
    ("max", Aggregate::Max),
];

/// Reads a result. `groups` and `workloads` are the names that it may refer to.
pub(crate) fn result_line(
    name: &str,
    line: u32,
    definition: &Node,
    groups: &[&str],
    workloads: &[&str],
) -> Result<ResultLine, Problem> {
    definition.expect_entries(name)?;
    let named = |key: &str, what: &str, known: &[&str]| match definition.get(key) {
        None => Ok(None),
        Some(node) => {
            let text = node.expect_text(key)?;
            if known.contains(&text) {
                Ok(Some(text.to_owned()))
            } else {
                let hint = hint(text, known.iter().copied());
                Err(Problem::new(node.line, format!("there is no {what} {text:?}{hint}")))
            }
        }
    };
    let (group, workload) =
        (named("vm_group", "VM group", groups)?, named("workload_name", "workload", workloads)?);
    let metric = definition.get("metric").map(|node| node.expect_text("metric")).transpose()?;
    let subject = match (group, workload, metric) {
        (Some(group), ..) => ResultSubject::Group(group),
        (None, Some(workload), _) => ResultSubject::Workload(workload),
        (None, None, Some(metric)) => ResultSubject::Cluster(metric.to_owned()),
        (None, None, None) => {
            return Err(Problem::new(line, format!("{name} needs vm_group, workload_name or metric")));
        }
    };
    let measure = match (&subject, definition.get("result_type")) {
        (ResultSubject::Cluster(_), _) => ResultMeasure::Metric,
        (_, None) => return Err(Problem::new(line, format!("{name} needs result_type"))),
        (_, Some(node)) => word(node, "result_type", MEASURES)?,
    };
    let scores = match definition.get("report_metrics") {
        None => Vec::new(),
        Some(list) => list
            .expect_items("report_metrics")?
            .iter()
            .map(|item| item.expect_text("a report metric").map(ToOwned::to_owned))
            .collect::<Result<_, _>>()?,
    };
    Ok(ResultLine {
        name: name.to_owned(),
        line,
        subject,
        measure,
        aggregate: definition.get("aggregate").map(|node| word(node, "aggregate", AGGREGATES)).transpose()?,
        mask: named("workload_mask", "workload", workloads)?,
        step: definition.get("step").map(step_width).transpose()?,
        expected: definition
            .get("result_expected_value")
            .map(|node| node.expect_number("result_expected_value"))
            .transpose()?,
        bands: bands(definition)?,
        scores,
    })
}

fn word<T: Copy>(node: &Node, key: &str, known: &[(&str, T)]) -> Result<T, Problem> {
    let text = node.expect_text(key)?;
    let found = known.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Problem::new(node.line, format!("{key} must be one of {}, not {text:?}", names.join(", ")))
    })
}

fn bands(definition: &Node) -> Result<Vec<Band>, Problem> {
    let Some(list) = definition.get("result_value_bands") else { return Ok(Vec::new()) };
    let band = |item: &Node| {
        let part = |key: &str| {
            item.get(key)
                .ok_or_else(|| Problem::new(item.line, format!("a band of result_value_bands needs {key}")))
        };
        let (lower, upper) = (part("lower")?.expect_number("lower")?, part("upper")?.expect_number("upper")?);
        if lower > upper {
            return Err(Problem::new(
                item.line,
                format!("a band's lower end {lower} is above its upper end {upper}"),
            ));
        }
        Ok(Band { name: part("name")?.expect_text("name")?.to_owned(), lower, upper })
    };
    list.expect_items("result_value_bands")?.iter().map(band).collect()
}

/// Seconds, from a duration as Prometheus writes it: 30s, 1m, 500ms.
fn step_width(node: &Node) -> Result<f64, Problem> {
    let text = node.expect_text("step")?;
    let (digits, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let factor = match unit {
        "ms" => Some(0.001),
        "" | "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    match (digits.parse::<f64>(), factor) {
        (Ok(value), Some(factor)) if value > 0.0 && value < 1e6 => Ok(value * factor),
        _ => Err(Problem::new(node.line, format!("step must be a time such as 30s, not {text:?}"))),
    }
}
