//! The output of HammerDB's `job` command, rendered from Kelvin's report of the run.

use serde_json::{Map, Value, json};

use crate::settings::System;

/// Kelvin's transaction types under HammerDB's names.
const PROCEDURES: [(&str, &str); 5] = [
    ("New-Order", "NEWORD"),
    ("Payment", "PAYMENT"),
    ("Delivery", "DELIVERY"),
    ("Stock-Level", "SLEV"),
    ("Order-Status", "OSTAT"),
];

/// Seconds between two samples of HammerDB's transaction counter.
const INTERVAL: usize = 10;

/// The part of a job that is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobPart {
    /// The results of the run: NOPM and TPM, or the query sets.
    Result,
    /// Service times of each transaction type.
    Timing,
    /// Transactions per minute over time.
    Counts,
}

impl JobPart {
    /// Parses WORD of `job ID WORD`; `None` for an unknown one.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "result" => Some(Self::Result),
            "timing" => Some(Self::Timing),
            "tcount" => Some(Self::Counts),
            _ => None,
        }
    }
}

/// Renders one part of a job as indented JSON with HammerDB's keys. `report` is Kelvin's report of the run as
/// JSON (`kelvin show ID --format json`). Times are in ms, as strings, as HammerDB has them.
pub fn render(report: &Value, job: &str, part: JobPart) -> String {
    let system = system(report);
    let point = &report["points"][0];
    let value = match part {
        JobPart::Result => result(report, point, job, system),
        JobPart::Timing => timing(point),
        JobPart::Counts => counts(point, system),
    };
    format!("{value:#}\n")
}

/// The database system of a run, from the server's version string.
fn system(report: &Value) -> System {
    let version = report["environment"]["database"]["version"].as_str().unwrap_or_default();
    let named =
        [("PostgreSQL", System::Postgres), ("MariaDB", System::Mariadb), ("SQL Server", System::SqlServer)];
    named.into_iter().find(|(name, _)| version.contains(name)).map_or(System::Mysql, |(_, system)| system)
}

/// NOPM counted by the client; TPM counted by the server like HammerDB's where available, otherwise by the
/// client.
fn result(report: &Value, point: &Value, job: &str, system: System) -> Value {
    let whole = |value: &Value| value.as_f64().map(|value| format!("{value:.0}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let users = point["users"].as_u64().unwrap_or(0);
    let server = whole(&point["server_transactions_per_minute"]);
    let tpm = server.or_else(|| whole(&point["transactions_per_minute"]));
    let mut lines =
        vec![job.to_owned(), text(&report["started"]), format!("{users} Active Virtual Users configured")];
    let queries = query_sets(report);
    match (whole(&point["headline_per_minute"]), tpm) {
        _ if !queries.is_empty() => lines.extend(queries),
        (Some(nopm), Some(tpm)) => {
            lines.push(format!("TEST RESULT : System achieved {nopm} NOPM from {tpm} {} TPM", system.name()));
        }
        _ => lines.push("TEST RESULT : none; the run measured nothing".to_owned()),
    }
    let state = text(&report["state"]);
    if state != "counted" {
        let reasons: Vec<_> = report["reasons"].as_array().into_iter().flatten().map(text).collect();
        let why = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
        lines.push(format!("DO NOT USE : Kelvin judged the run {state}{why}"));
    }
    json!(lines)
}

/// A line for each virtual user of TPROC-H: its number of queries, and the seconds from the start of its
/// first query to the end of its last. Then the geometric mean of the query times. Empty for other workloads.
fn query_sets(report: &Value) -> Vec<String> {
    let queries = &report["queries"];
    let all: Vec<&Value> = queries["executions"].as_array().into_iter().flatten().collect();
    let nanos = |one: &Value, key: &str| one[key].as_u64().unwrap_or(0);
    let is_query = |one: &&&Value| one["query"].as_str().is_some_and(|name| name.starts_with('Q'));
    let mut users: Vec<u64> = all.iter().filter(is_query).map(|one| nanos(one, "stream")).collect();
    users.sort_unstable();
    users.dedup();
    let mut lines = Vec::new();
    for (number, user) in (1..).zip(users) {
        let own = || all.iter().filter(is_query).filter(move |one| nanos(one, "stream") == user);
        let begin = own().map(|one| nanos(one, "at")).min().unwrap_or(0);
        let end = own().map(|one| nanos(one, "at") + nanos(one, "took")).max().unwrap_or(0);
        let (count, seconds) = (own().count(), end.saturating_sub(begin) as f64 / 1e9);
        lines.push(format!("Vuser {number}:Completed {count} queries in {seconds:.0} seconds"));
    }
    let mean = queries["geometric_mean"].as_f64();
    lines.extend(mean.map(|mean| format!("Geometric mean of query times is {mean:.5}")));
    lines
}

fn timing(point: &Value) -> Value {
    let ms =
        |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), |us| format!("{:.3}", us / 1000.0));
    let rows = || point["latency"].as_array().into_iter().flatten();
    let calls =
        |row: &Value| row["committed"].as_u64().unwrap_or(0) + row["rolled_back"].as_u64().unwrap_or(0);
    let total_of = |row: &Value| row["mean_us"].as_f64().unwrap_or(0.0) * calls(row) as f64 / 1000.0;
    let total: f64 = rows().map(total_of).sum();
    let mut procedures = Map::new();
    for row in rows() {
        let known = PROCEDURES.iter().find(|(kind, _)| row["kind"] == **kind).map(|(_, name)| *name);
        let query = || row["kind"].as_str().filter(|kind| kind.starts_with(['Q', 'R']));
        let Some(name) = known.or_else(query) else { continue };
        let share = if total > 0.0 { 100.0 * total_of(row) / total } else { 0.0 };
        let elapsed = point["window_s"].as_f64().unwrap_or(0.0) * 1000.0;
        procedures.insert(
            name.to_owned(),
            json!({
                "elapsed_ms": format!("{elapsed:.1}"),
                "calls": calls(row).to_string(),
                "avg_ms": ms(&row["mean_us"]),
                "max_ms": ms(&row["max_us"]),
                "total_ms": format!("{:.3}", total_of(row)),
                "p99_ms": ms(&row["p99_us"]),
                "p95_ms": ms(&row["p95_us"]),
                "p50_ms": ms(&row["p50_us"]),
                "sd": ms(&row["stddev_us"]),
                "ratio_pct": format!("{share:.3}"),
            }),
        );
    }
    Value::Object(procedures)
}

/// Transactions per minute as the mean of each ten seconds of the window, counted by the client.
fn counts(point: &Value, system: System) -> Value {
    let measured: Vec<f64> = point["seconds"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|second| second["second"].as_i64().is_some_and(|second| second >= 0))
        .filter_map(|second| second["transactions_per_minute"].as_f64())
        .collect();
    let mut times = Map::new();
    for (index, part) in measured.chunks(INTERVAL).enumerate() {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        times.insert(format!("{}s", index * INTERVAL + part.len()), json!(format!("{mean:.0}")));
    }
    json!({ format!("{} tpm", system.name()): times })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Value {
        let row = |kind: &str, committed: u64, mean: f64| {
            json!({"kind": kind, "committed": committed, "rolled_back": 0, "mean_us": mean, "p50_us": 900.0, "p95_us": 2000.0,
                "p99_us": null, "max_us": 9000.0, "stddev_us": 10.0})
        };
        let seconds: Vec<_> = (-2..12)
            .map(|second| json!({"second": second, "transactions_per_minute": if second < 10 { 600.0 } else { 300.0 }}))
            .collect();
        json!({"environment": {"database": {"version": "PostgreSQL 15.18"}}, "started": "2026-11-23T09:00:00Z", "state": "counted", "reasons": [], "points": [{
            "users": 4, "window_s": 12.0, "headline_per_minute": 250.4, "transactions_per_minute": 550.0,
            "server_transactions_per_minute": 560.6, "latency": [row("New-Order", 30, 3000.0), row("Payment", 10, 1000.0)],
            "seconds": seconds,
        }]})
    }

    #[test]
    fn results_are_those_of_the_report() {
        let text = render(&report(), "AB12", JobPart::Result);
        assert!(text.contains("TEST RESULT : System achieved 250 NOPM from 561 PostgreSQL TPM"), "{text}");
        assert!(text.contains("4 Active Virtual Users configured"), "{text}");
        let timing = render(&report(), "AB12", JobPart::Timing);
        let timing: Value = serde_json::from_str(&timing).unwrap();
        assert_eq!(timing["NEWORD"]["calls"], "30");
        assert_eq!(timing["NEWORD"]["avg_ms"], "3.000");
        assert_eq!(timing["NEWORD"]["ratio_pct"], "90.000");
        assert_eq!(timing["NEWORD"]["p99_ms"], "-");
        assert_eq!(timing["PAYMENT"]["total_ms"], "10.000");
        let counts: Value = serde_json::from_str(&render(&report(), "AB12", JobPart::Counts)).unwrap();
        assert_eq!(counts, json!({"PostgreSQL tpm": {"10s": "600", "12s": "300"}}));
    }

    #[test]
    fn query_sets_have_their_users_times_and_one_mean() {
        let execution = |query: &str, stream: u64, at: u64, took: u64| json!({"query": query, "stream": stream, "at": at, "took": took});
        let second = 1_000_000_000_u64;
        let executions = [
            execution("Q1", 1, 0, 2 * second),
            execution("Q2", 2, second, second),
            execution("Q2", 1, 2 * second, second),
            execution("RF1", 0, 0, second),
        ];
        let report = json!({"state": "counted", "points": [{"users": 2}],
            "queries": {"geometric_mean": 1.259_921, "executions": executions}});
        let lines: Vec<String> = serde_json::from_str(&render(&report, "AB12", JobPart::Result)).unwrap();
        assert_eq!(
            lines[3..],
            [
                "Vuser 1:Completed 2 queries in 3 seconds",
                "Vuser 2:Completed 1 queries in 1 seconds",
                "Geometric mean of query times is 1.25992"
            ]
        );
    }

    #[test]
    fn a_run_that_does_not_count_says_so() {
        let mut void = report();
        void["state"] = json!("void");
        void["reasons"] = json!(["the load generator was short of CPU"]);
        let text = render(&void, "AB12", JobPart::Result);
        assert!(
            text.contains("DO NOT USE : Kelvin judged the run void: the load generator was short of CPU"),
            "{text}"
        );
        let nothing = render(&json!({"state": "failed"}), "AB12", JobPart::Result);
        assert!(nothing.contains("none; the run measured nothing"), "{nothing}");
    }
}
