//! The list of the runs of all stores, kept in memory so that ten thousand runs are searched quickly.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use kelvin_measure::text::{few, significant};
use kelvin_store::{Liveness, Origin, RunId, RunSummary, Store};
use serde::Serialize;

use super::query::Query;

/// Number of runs on a page of the list.
const PAGE: usize = 100;

/// Number of tenants that a line of a scenario shows.
const TENANTS: usize = 4;

/// The runs of every store.
pub(super) struct Lists(Vec<Mutex<Listed>>);

struct Listed {
    path: PathBuf,
    store: Option<Store>,
    version: i64,
    runs: Vec<RunSummary>,
    origins: BTreeMap<RunId, Origin>,
}

/// A line of the list.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Line {
    store: usize,
    id: i64,
    label: Option<String>,
    workload: String,
    target: String,
    started: String,
    #[serde(skip)]
    since: jiff::Timestamp,
    state: &'static str,
    reasons: String,
    value: String,
    headline: String,
    users: Option<u32>,
    points: usize,
    failed: u64,
    squeezed: bool,
    /// The store that it was imported from.
    origin: Option<String>,
}

/// A page of the list, and the values of its filters.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    lines: Vec<Line>,
    matching: usize,
    total: usize,
    number: usize,
    pages: usize,
    workloads: Vec<String>,
    labels: Vec<String>,
    targets: Vec<String>,
    states: [&'static str; 5],
    /// Whether some of its lines were imported.
    imported: bool,
}

impl Lists {
    pub(super) fn new(stores: &[PathBuf]) -> Self {
        let listed = |path: &PathBuf| {
            Mutex::new(Listed {
                path: path.clone(),
                store: None,
                version: 0,
                runs: Vec::new(),
                origins: BTreeMap::new(),
            })
        };
        Self(stores.iter().map(listed).collect())
    }

    /// The lines that match a query, the newest first.
    pub(super) fn page(&self, query: &Query) -> kelvin_store::Result<Page> {
        let mut lines = Vec::new();
        for (place, listed) in self.0.iter().enumerate() {
            let mut listed = listed.lock().unwrap_or_else(PoisonError::into_inner);
            listed.refresh()?;
            lines.extend(listed.runs.iter().map(|run| line(place, run, listed.origins.get(&run.id))));
        }
        let total = lines.len();
        let names = |pick: fn(&Line) -> Option<&str>| -> Vec<String> {
            let found: std::collections::BTreeSet<&str> = lines.iter().filter_map(pick).collect();
            found.into_iter().take(200).map(str::to_owned).collect()
        };
        let (workloads, labels, targets) = (
            names(|line| Some(&line.workload)),
            names(|line| line.label.as_deref()),
            names(|line| Some(&line.target)),
        );
        lines.retain(|line| line.matches(query));
        lines.sort_by_key(|line| std::cmp::Reverse((line.since, line.store, line.id)));
        let (matching, pages) = (lines.len(), lines.len().div_ceil(PAGE).max(1));
        let number = query.get("page").and_then(|page| page.parse().ok()).unwrap_or(1_usize).clamp(1, pages);
        let lines: Vec<Line> = lines.into_iter().skip((number - 1) * PAGE).take(PAGE).collect();
        let imported = lines.iter().any(|line| line.origin.is_some());
        let states = ["counted", "void", "partial", "failed", "running"];
        Ok(Page { lines, matching, total, number, pages, workloads, labels, targets, states, imported })
    }
}

impl Listed {
    /// Reads changes since the last call.
    fn refresh(&mut self) -> kelvin_store::Result<()> {
        // A store without runs may not have a file yet.
        if self.store.is_none() && self.path.exists() {
            self.store = Some(Store::open_read_only(&self.path)?);
        }
        let Some(store) = &self.store else { return Ok(()) };
        let version = store.data_version()?;
        let is_running = self.runs.iter().any(|run| run.liveness == Liveness::Running);
        if version != self.version || is_running || self.runs.is_empty() {
            self.runs = store.runs_after(&self.runs)?;
            self.origins = store.origins()?;
            self.version = version;
        }
        Ok(())
    }
}

fn line(store: usize, run: &RunSummary, origin: Option<&Origin>) -> Line {
    let best = run.best();
    let judgement = run.judgement.as_ref();
    Line {
        store,
        id: run.id.0,
        label: run.label.clone(),
        workload: run.workload.clone(),
        target: without_user(&run.target),
        started: run.started.strftime("%Y-%m-%d %H:%M").to_string(),
        since: run.started,
        state: match run.liveness {
            Liveness::Running => "running",
            _ => judgement.map_or("–", |judgement| judgement.state.word()),
        },
        reasons: judgement.map_or_else(String::new, |judgement| judgement.reasons.join("; ")),
        value: value(run),
        headline: if run.tenants.is_empty() { run.headline.clone() } else { "per second".into() },
        users: best.map(|best| best.users),
        points: run.points.len(),
        failed: run.failed,
        squeezed: run.squeezed,
        origin: origin.map(Origin::describe),
    }
}

/// The run's result. For a scenario the result of each tenant, since their sum has no meaning.
fn value(run: &RunSummary) -> String {
    let each = run.tenants.iter().map(|tenant| {
        format!("{} {}", tenant.name, tenant.per_second.map_or_else(|| "–".into(), significant))
    });
    match run.best() {
        _ if !run.tenants.is_empty() => few(each, TENANTS),
        Some(best) => significant(best.rate(run.headline_per)),
        None => "–".into(),
    }
}

/// A target without its user name.
fn without_user(target: &str) -> String {
    match target.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let host = rest[..end].rfind('@').map_or(rest, |at| &rest[at + 1..]);
            format!("{scheme}://{host}")
        }
        None => target.to_owned(),
    }
}

impl Line {
    fn matches(&self, query: &Query) -> bool {
        let is = |name: &str, value: &str| query.get(name).is_none_or(|wanted| wanted == value);
        let text = format!(
            "{} {} {} {} {} {} {}",
            self.id,
            self.label.as_deref().unwrap_or_default(),
            self.workload,
            self.target,
            self.state,
            self.started,
            self.origin.as_deref().unwrap_or_default()
        )
        .to_lowercase();
        let has = |word: &str| text.contains(&word.to_lowercase());
        is("workload", &self.workload)
            && is("state", self.state)
            && is("label", self.label.as_deref().unwrap_or_default())
            && is("target", &self.target)
            && is("store", &self.store.to_string())
            && query.get("q").is_none_or(|words| words.split_whitespace().all(has))
    }
}

#[cfg(test)]
mod tests {
    use super::without_user;

    #[test]
    fn a_target_is_shown_without_its_user() {
        for (target, shown) in [
            ("postgres://joe@db:5432/tpcc", "postgres://db:5432/tpcc"),
            ("postgres://joe@/tpcc?host=/run/a@b", "postgres:///tpcc?host=/run/a@b"),
            ("postgres://db/x", "postgres://db/x"),
            ("sqlite:/tmp/a@b.db", "sqlite:/tmp/a@b.db"),
        ] {
            assert_eq!(without_user(target), shown);
        }
    }
}
