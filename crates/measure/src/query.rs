//! Executions of the queries of TPROC-H with their answers, and the figures that follow from them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::json::number;

/// A test of which an execution is a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueryTest {
    /// One stream alone, between the two refresh functions.
    Power,
    /// Several streams at once, and one that refreshes.
    Throughput,
    /// Virtual users with query sets, as HammerDB runs them.
    QuerySets,
}

/// What is known of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerState {
    /// There is an answer, and none to compare it with but those of other runs.
    Unchecked,
    /// It equals the published one.
    Published,
    /// It differs from the published one.
    Differs,
    /// There is none: an error.
    Failed,
    /// There is none: it took longer than a statement may.
    TimedOut,
}

impl AnswerState {
    /// Whether figures count the execution.
    pub fn counts(self) -> bool {
        matches!(self, Self::Unchecked | Self::Published)
    }

    /// In a table.
    pub fn label(self) -> &'static str {
        match self {
            Self::Unchecked => "not compared",
            Self::Published => "as published",
            Self::Differs => "DIFFERS",
            Self::Failed => "FAILED",
            Self::TimedOut => "TIMED OUT",
        }
    }
}

/// One execution of a query or of a refresh function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryExecution {
    /// Which point of the run.
    #[serde(default)]
    pub point: u32,
    /// The test that it belongs to.
    pub test: QueryTest,
    /// The stream, 0 in the power test; of refresh functions of the throughput test the number of their pair.
    pub stream: u32,
    /// Its place in the stream, from 1.
    pub position: u32,
    /// "Q1" to "Q22", "RF1" or "RF2".
    pub query: String,
    /// Scale factor of the data.
    #[serde(deserialize_with = "number")]
    pub scale: f64,
    /// How the tables are stored: "partitioned by `l_shipdate`", "by columns"; empty of tables by rows in one piece.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub layout: String,
    /// When it began, since the window opened, in nanoseconds.
    pub at: Nanos,
    /// From sending it to having its answer, in nanoseconds; with the failed attempts before it if it was repeated.
    pub took: Nanos,
    /// Rows of the answer, or rows that a refresh function changed; none of a failed one.
    pub rows: Option<u64>,
    /// Digest of the answer's normalised rows; none of refresh functions and failed queries.
    pub digest: Option<String>,
    /// What is known of the answer.
    pub state: AnswerState,
    /// The error, the difference from the published answer, or "repeated after: " and the error of the last failed attempt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Its substitution parameters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parameters: String,
    /// The plan as the engine explained it before the load, with its digest; none where plans are not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<QueryPlan>,
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryPlan {
    /// Hash of its nodes, tables and indexes, without costs and values.
    pub digest: String,
    /// The engine's text, without costs.
    pub text: String,
}

impl QueryExecution {
    /// Whether it is a query, and no refresh function.
    pub fn is_query(&self) -> bool {
        self.query.starts_with('Q')
    }

    /// Its time in seconds.
    pub fn seconds(&self) -> f64 {
        self.took as f64 / 1e9
    }

    /// The place of its query among all: queries by their numbers, then the refresh functions.
    pub fn rank(&self) -> u32 {
        match self.query.strip_prefix('Q').and_then(|number| number.parse().ok()) {
            Some(number) => number,
            None if self.query == "RF1" => 101,
            None => 102,
        }
    }
}

/// TPROC-H's figures of a run (TPC-H clauses 5.4.1 to 5.4.3): no results of TPC-H.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct QueryFigures {
    /// Scale factor of the data.
    pub scale: f64,
    /// 3600 × scale / geometric mean of the times of the power test.
    pub power: Option<f64>,
    /// Queries an hour of the throughput test × scale.
    pub throughput: Option<f64>,
    /// √(power × throughput).
    pub composite: Option<f64>,
    /// Streams of the throughput test.
    pub streams: Option<u32>,
    /// Geometric mean of the queries' times, in seconds: of the power test, or of the query sets of a run with one point.
    pub geometric_mean: Option<f64>,
    /// Geometric means of the query sets of each point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub point_means: Vec<PointMeans>,
    /// What the figures leave out: "without the refresh functions".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// Why figures are void: executions that failed or whose answers are wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub void: Vec<String>,
}

/// Geometric means of the times of a point's query sets, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointMeans {
    /// Which point of the run.
    pub point: u32,
    /// Of all its queries.
    pub geometric_mean: f64,
    /// Each virtual user's number, and the mean of its queries.
    pub users: Vec<(u32, f64)>,
}

/// Queries of a complete stream.
const QUERIES: usize = 22;

/// A query's longest time is at most so many times the shortest in the power figure: shorter ones count as that
/// (clause 5.4.1.4, which leaves the refresh functions as they are).
const LARGEST_RATIO: f64 = 1000.0;

impl QueryFigures {
    /// Of the executions of a run; none if it has none.
    pub fn from_executions(executions: &[QueryExecution]) -> Option<Self> {
        let scale = executions.first()?.scale;
        let of = |test| executions.iter().filter(move |one| one.test == test);
        let mut figures = Self { scale, ..Self::default() };
        let (power, throughput): (Vec<_>, Vec<_>) =
            (of(QueryTest::Power).collect(), of(QueryTest::Throughput).collect());
        figures.limits = limits(&power, &throughput);
        if of(QueryTest::QuerySets).any(|one| !one.is_query()) {
            figures.limits.push("query sets during a trickle refresh".into());
        }
        figures.void = void(executions);
        let good = |list: &[&QueryExecution]| !list.is_empty() && list.iter().all(|one| one.state.counts());
        if good(&power) {
            let (queries, refreshes): (Vec<_>, Vec<_>) = power.iter().partition(|one| one.is_query());
            let queries: Vec<f64> = queries.into_iter().map(QueryExecution::seconds).collect();
            figures.geometric_mean = geometric_mean(&queries);
            let mut times = bounded(queries);
            times.extend(refreshes.into_iter().map(QueryExecution::seconds));
            figures.power = geometric_mean(&times).map(|mean| 3600.0 * scale / mean);
        }
        if good(&throughput) {
            let begin = throughput.iter().map(|one| one.at).min().unwrap_or_default();
            let end = throughput.iter().map(|one| one.at.saturating_add(one.took)).max().unwrap_or_default();
            let hours = end.saturating_sub(begin) as f64 / 3600e9;
            let queries: Vec<_> = throughput.iter().filter(|one| one.is_query()).collect();
            let mut streams: Vec<u32> = queries.iter().map(|one| one.stream).collect();
            streams.sort_unstable();
            streams.dedup();
            figures.streams = u32::try_from(streams.len()).ok();
            figures.throughput = (hours > 0.0).then(|| queries.len() as f64 / hours * scale);
        }
        figures.composite =
            figures.power.zip(figures.throughput).map(|(power, through)| (power * through).sqrt());
        let points = grouped(of(QueryTest::QuerySets), |one| one.point);
        figures.point_means = points
            .iter()
            .filter(|(_, list)| good(list))
            .filter_map(|(&point, list)| {
                let queries: Vec<_> = list.iter().copied().filter(|one| one.is_query()).collect();
                PointMeans::of_point(point, &queries)
            })
            .collect();
        if let ([only], 1) = (&figures.point_means[..], points.len()) {
            figures.geometric_mean = Some(only.geometric_mean);
        }
        Some(figures)
    }
}

/// Geometric mean of the times of a point's queries, in seconds; none if one of them has no answer or a wrong one.
pub fn point_mean(executions: &[QueryExecution], point: u32) -> Option<f64> {
    let queries = || executions.iter().filter(|one| one.point == point && one.is_query());
    let times: Vec<f64> = queries().map(QueryExecution::seconds).collect();
    geometric_mean(&times).filter(|_| queries().all(|one| one.state.counts()))
}

impl PointMeans {
    fn of_point(point: u32, executions: &[&QueryExecution]) -> Option<Self> {
        let mean = |list: &[&QueryExecution]| {
            geometric_mean(&list.iter().map(|one| one.seconds()).collect::<Vec<_>>())
        };
        let users = grouped(executions.iter().copied(), |one| one.stream);
        let users = users.iter().filter_map(|(&user, list)| Some((user, mean(list)?))).collect();
        Some(Self { point, geometric_mean: mean(executions)?, users })
    }
}

fn grouped<'a>(
    executions: impl Iterator<Item = &'a QueryExecution>,
    key: impl Fn(&QueryExecution) -> u32,
) -> BTreeMap<u32, Vec<&'a QueryExecution>> {
    let mut groups: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    for one in executions {
        groups.entry(key(one)).or_default().push(one);
    }
    groups
}

/// What the specification's tests have and these do not.
fn limits(power: &[&QueryExecution], throughput: &[&QueryExecution]) -> Vec<String> {
    let mut limits = Vec::new();
    for (test, list) in [("power test", power), ("throughput test", throughput)] {
        if list.is_empty() {
            continue;
        }
        let mut queries: Vec<u32> = list.iter().filter(|one| one.is_query()).map(|one| one.rank()).collect();
        queries.sort_unstable();
        queries.dedup();
        if queries.len() < QUERIES {
            let names: Vec<String> = queries.iter().map(u32::to_string).collect();
            limits.push(format!("{test} with queries {} only", names.join(", ")));
        }
        if list.iter().all(|one| one.is_query()) {
            limits.push(format!("{test} without the refresh functions"));
        }
    }
    limits
}

fn void(executions: &[QueryExecution]) -> Vec<String> {
    let bad = executions.iter().filter(|one| !one.state.counts());
    let line = |one: &QueryExecution| {
        let what = match one.state {
            AnswerState::Differs => "answered differently than published",
            AnswerState::TimedOut => "timed out",
            _ => "failed",
        };
        format!("{} of stream {} {what}: {}", one.query, one.stream, one.detail)
    };
    bad.map(line).collect()
}

/// Times of which none is less than the longest by more than [`LARGEST_RATIO`].
fn bounded(mut times: Vec<f64>) -> Vec<f64> {
    let least = times.iter().copied().fold(0.0, f64::max) / LARGEST_RATIO;
    for time in &mut times {
        *time = time.max(least);
    }
    times
}

/// None of an empty list, or of one with a value that is not positive.
fn geometric_mean(times: &[f64]) -> Option<f64> {
    let valid = !times.is_empty() && times.iter().all(|time| *time > 0.0);
    valid.then(|| (times.iter().map(|time| time.ln()).sum::<f64>() / times.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(test: QueryTest, stream: u32, query: &str, at: f64, took: f64) -> QueryExecution {
        QueryExecution {
            point: 0,
            test,
            stream,
            position: 1,
            query: query.into(),
            scale: 10.0,
            layout: String::new(),
            at: (at * 1e9) as u64,
            took: (took * 1e9) as u64,
            rows: Some(1),
            digest: Some("0".repeat(16)),
            state: AnswerState::Unchecked,
            detail: String::new(),
            parameters: String::new(),
            plan: None,
        }
    }

    fn run() -> Vec<QueryExecution> {
        let mut all = vec![execution(QueryTest::Power, 0, "RF1", 0.0, 2.0)];
        all.extend((1..=22).map(|query| execution(QueryTest::Power, 0, &format!("Q{query}"), 2.0, 2.0)));
        all.push(execution(QueryTest::Power, 0, "RF2", 46.0, 2.0));
        for stream in 1..=2 {
            all.extend((1..=22).map(|query| {
                execution(QueryTest::Throughput, stream, &format!("Q{query}"), f64::from(query), 1.0)
            }));
        }
        all.push(execution(QueryTest::Throughput, 1, "RF1", 1.0, 1.0));
        all.push(execution(QueryTest::Throughput, 1, "RF2", 35.0, 2.0));
        all
    }

    #[test]
    fn the_figures_are_those_of_the_formulas() {
        let figures = QueryFigures::from_executions(&run()).unwrap();
        let near = |found: Option<f64>, wanted: f64| (found.unwrap() / wanted - 1.0).abs() < 1e-9;
        // 24 times of 2 s at scale factor 10; 44 queries from second 1 to 37.
        assert!(near(figures.power, 18_000.0), "{figures:?}");
        assert!(near(figures.throughput, 44_000.0), "{figures:?}");
        assert!(near(figures.composite, (18_000.0_f64 * 44_000.0).sqrt()));
        assert!(near(figures.geometric_mean, 2.0));
        assert_eq!((figures.streams, figures.limits.len(), figures.void.len()), (Some(2), 0, 0));
        assert_eq!(QueryFigures::from_executions(&[]), None);
    }

    #[test]
    fn a_failed_query_voids_the_figures_that_it_is_in_and_is_named() {
        let mut all = run();
        all[5].state = AnswerState::TimedOut;
        all[5].detail = "canceled".into();
        let figures = QueryFigures::from_executions(&all).unwrap();
        assert_eq!((figures.power, figures.composite), (None, None));
        assert!(figures.throughput.is_some());
        assert_eq!(figures.void, ["Q5 of stream 0 timed out: canceled"]);
    }

    #[test]
    fn what_is_left_out_is_said_and_short_times_count_as_a_thousandth() {
        let mut all = vec![
            execution(QueryTest::Power, 0, "Q1", 0.0, 10.0),
            execution(QueryTest::Power, 0, "Q6", 10.0, 0.000_1),
        ];
        let figures = QueryFigures::from_executions(&all).unwrap();
        // 10 s and 0.01 s.
        assert!((figures.power.unwrap() / (36_000.0 / 0.1_f64.sqrt()) - 1.0).abs() < 1e-9, "{figures:?}");
        assert_eq!(
            figures.limits,
            ["power test with queries 1, 6 only", "power test without the refresh functions"]
        );
        assert_eq!(QueryFigures::from_executions(&all[..1]).unwrap().throughput, None);
        // Refresh functions neither are raised nor raise the queries: 10 s, 0.01 s, 0.001 s and 100 s.
        all.push(execution(QueryTest::Power, 0, "RF1", 11.0, 0.001));
        all.push(execution(QueryTest::Power, 0, "RF2", 12.0, 100.0));
        let power = QueryFigures::from_executions(&all).unwrap().power.unwrap();
        assert!((power / (36_000.0 / 0.01_f64.powf(0.25)) - 1.0).abs() < 1e-9, "{power}");
    }

    #[test]
    fn each_point_has_its_geometric_means() {
        let set = |point, stream, took| QueryExecution {
            point,
            ..execution(QueryTest::QuerySets, stream, "Q1", 0.0, took)
        };
        let mut all = vec![set(0, 1, 1.0), set(0, 1, 4.0), set(1, 1, 3.0), set(1, 2, 12.0)];
        let figures = QueryFigures::from_executions(&all).unwrap();
        let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 1e-9;
        let [alone, both] = &figures.point_means[..] else { panic!("{figures:?}") };
        assert!(near(alone.geometric_mean, 2.0) && near(both.geometric_mean, 6.0), "{figures:?}");
        assert!(near(alone.users[0].1, 2.0) && near(both.users[0].1, 3.0) && near(both.users[1].1, 12.0));
        assert_eq!((point_mean(&all, 0), point_mean(&all, 2)), (Some(alone.geometric_mean), None));
        // One mean of different loads says nothing.
        assert_eq!(figures.geometric_mean, None);
        assert!(near(QueryFigures::from_executions(&all[..2]).unwrap().geometric_mean.unwrap(), 2.0));
        all[3].state = AnswerState::Failed;
        let figures = QueryFigures::from_executions(&all).unwrap();
        assert_eq!((figures.point_means.len(), figures.geometric_mean), (1, None));
        assert_eq!(point_mean(&all, 1), None);
    }
}
