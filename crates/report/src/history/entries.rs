//! The entries of a history, read from the store.

use std::collections::{BTreeMap, BTreeSet};

use kelvin_diagnose::{Evidence, KeyFigure, NoisePrice, TenantFigures, judge};
use kelvin_measure::labels;
use kelvin_store::{GroupMember, RunId, Store, StoredRun};

use super::{History, HistoryEntry};
use crate::compare::{FactMap, facts};
use crate::{Error, Result};

/// Selects the runs and the measure of a history.
#[derive(Debug, Clone, Default)]
pub struct HistoryQuery {
    /// The branch; none for the only one, or for that of the newest run.
    pub branch: Option<String>,
    /// The testbed; none for that of the branch's newest run.
    pub testbed: Option<String>,
    /// The workload; none for that of the newest run.
    pub workload: Option<String>,
    /// Id of the measure, such as "p99". None for the headline, or, if the newest run has a fixed rate, p99
    /// of the response time.
    pub measure: Option<String>,
    /// The tenant of a scenario; none for other workloads.
    pub tenant: Option<String>,
    /// Read at most this many of the newest runs.
    pub newest: usize,
}

/// The runs of one group and treatment, or a single run without a group.
struct Bundle {
    member: Option<GroupMember>,
    runs: Vec<RunId>,
}

/// Reads a history. For scenarios, reads one per tenant, or only the selected one, because the loads of
/// tenants have no common sum. `progress` receives the number of runs read so far and their total.
///
/// # Errors
/// As [`load`].
pub fn load_each(
    store: &Store,
    asked: &HistoryQuery,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<History>> {
    if asked.tenant.is_some() {
        return Ok(vec![load(store, asked, progress)?]);
    }
    let (branch, testbed, _) = branch_and_testbed(&store.history()?, asked)?;
    let (workload, runs) =
        runs_of_workload(store, asked, &store.history()?, (&branch, &testbed), &mut Vec::new())?;
    if workload != labels::SCENARIO {
        return Ok(vec![load(store, asked, progress)?]);
    }
    let mut of_runs: Vec<_> = store.runs()?.into_iter().filter(|run| runs.contains(&run.id)).collect();
    of_runs.reverse();
    let mut tenants: Vec<String> = Vec::new();
    for tenant in of_runs.into_iter().flat_map(|run| run.tenants) {
        if !tenants.contains(&tenant.name) {
            tenants.push(tenant.name);
        }
    }
    let all = tenants.len();
    let mut found = Vec::new();
    for (index, tenant) in tenants.into_iter().enumerate() {
        let asked = HistoryQuery { tenant: Some(tenant), ..asked.clone() };
        found.push(load(store, &asked, &mut |read, of| progress(index * of + read, all * of))?);
    }
    if found.is_empty() {
        return Err(Error::Compare(format!("no tenant of the scenarios on branch {branch} has results")));
    }
    Ok(found)
}

/// Reads a history of one workload, or of one tenant of scenarios. `progress` receives the number of runs
/// read so far and their total.
///
/// # Errors
/// Fails if there is no such branch, testbed, workload, tenant or measure, or if a run is damaged.
pub fn load(store: &Store, asked: &HistoryQuery, progress: &mut dyn FnMut(usize, usize)) -> Result<History> {
    let all = store.history()?;
    let (branch, testbed, mut notes) = branch_and_testbed(&all, asked)?;
    let (workload, runs) = runs_of_workload(store, asked, &all, (&branch, &testbed), &mut notes)?;
    let measure = match (&asked.measure, &asked.tenant, runs.last()) {
        (None, Some(tenant), _) => default_measure_of_tenant(store, &runs, tenant)?,
        (None, None, Some(newest)) => default_measure(&store.load(*newest)?)?,
        _ => asked.measure.clone(),
    };
    let mut history = History {
        branch,
        testbed,
        workload,
        tenant: asked.tenant.clone(),
        measure: String::new(),
        name: String::new(),
        unit: String::new(),
        better: None,
        entries: Vec::new(),
        changes: Vec::new(),
        noise_phi: None,
        noise_lag1: None,
        notes,
    };
    let (mut read, total) = (0, runs.len());
    let mut no_such: Option<Vec<String>> = None;
    let mut accepted: Vec<(RunId, Option<NoisePrice>)> = Vec::new();
    for bundle in bundles(store, &runs)? {
        let mut entry: Option<HistoryEntry> = None;
        let (mut values, mut bounds) = (Vec::new(), Vec::new());
        for run in bundle.runs {
            let stored = store.load(run)?;
            let evidence = Evidence::from_run(&stored)?;
            read += 1;
            progress(read, total);
            let judged = judge(&stored, &evidence)?.run;
            if !judged.counts() {
                history.notes.push(format!("run {run} is left out, {}", judged.describe()));
                continue;
            }
            let failed = stored.failed();
            if failed > 0 {
                history.notes.push(format!(
                    "run {run} counts, but {failed} of its transactions failed permanently: these are not \
                     part of any figure"
                ));
            }
            let point = stored.best_point().unwrap_or(0);
            let Some(figures) = figures_of(&stored, &evidence, asked)? else {
                history.notes.push(format!("run {run} is left out: it does not have this tenant"));
                continue;
            };
            let Some(figure) = wanted(&figures, measure.as_deref()) else {
                no_such = Some(figures.into_iter().map(|figure| figure.id).collect());
                continue;
            };
            let Some(value) = figure.value.filter(|value| value.is_finite()) else {
                history.notes.push(format!("run {run} is left out: its {} is not known", figure.name));
                continue;
            };
            (history.measure, history.name) = (figure.id.clone(), figure.name.clone());
            (history.unit, history.better) = (figure.unit.clone(), figure.better);
            values.push(value);
            bounds.extend(figure.at_least.then_some(value));
            if kelvin_diagnose::is_noise_accepted(&evidence) {
                accepted.push((run, kelvin_diagnose::noise(&evidence, point)));
            }
            let entry = entry.get_or_insert_with(|| new_entry(&stored, bundle.member.as_ref()));
            entry.runs.push(run.0);
            entry.facts.push(facts_of(&stored));
        }
        if let (Some(mut entry), Some(median)) = (entry, kelvin_stats::rank::median(&values)) {
            entry.value = median;
            // A lower bound above the median does not affect it: the true value is above the median as well.
            entry.at_least = bounds.iter().any(|bound| *bound <= median);
            let low = values.iter().copied().fold(median, f64::min);
            entry.range = (low, values.iter().copied().fold(median, f64::max));
            history.entries.push(entry);
        }
    }
    if history.entries.is_empty() {
        return Err(Error::Compare(match no_such {
            Some(known) => format!(
                "the runs have no measure {:?}; they have {}",
                measure.as_deref().unwrap_or_default(),
                known.join(", ")
            ),
            None => format!("no counted run on branch {}: {}", history.branch, history.notes.join("; ")),
        }));
    }
    history.notes.extend(accepted_noise(&accepted));
    history.notes.extend(unlike(&history.entries));
    history.notes.extend(bounds_words(&history));
    history.find_changes();
    Ok(history)
}

/// The key figures of a run, or of the selected tenant; none if the run does not have that tenant.
fn figures_of(run: &StoredRun, evidence: &Evidence, asked: &HistoryQuery) -> Result<Option<Vec<KeyFigure>>> {
    let (point, metrics) = (run.best_point().unwrap_or(0), metric(asked));
    let Some(tenant) = &asked.tenant else {
        return Ok(Some(kelvin_diagnose::key_figures(run, evidence, point, &metrics)?));
    };
    let tenants = TenantFigures::all(run, evidence, point, &metrics)?;
    Ok(tenants.into_iter().find(|one| one.tenant == *tenant).map(|one| one.figures))
}

/// The default measure of a tenant: it depends on whether the newest run with this tenant is an open loop.
fn default_measure_of_tenant(store: &Store, runs: &[RunId], tenant: &str) -> Result<Option<String>> {
    for run in runs.iter().rev() {
        let stored = store.load(*run)?;
        let sources = stored.source_statistics(stored.best_point().unwrap_or(0), |one| one)?;
        if let Some(one) = sources.into_iter().find(|one| one.source.tenant.as_deref() == Some(tenant)) {
            return Ok(one.figures.open_loop.then(|| "p99".to_owned()));
        }
    }
    Err(Error::Compare(format!("no run of this branch has a tenant {tenant:?}; kelvin runs lists them")))
}

/// The selected workload and the newest of its runs on this branch and testbed, in ascending order.
fn runs_of_workload(
    store: &Store,
    asked: &HistoryQuery,
    all: &[(RunId, String, String)],
    (branch, testbed): (&str, &str),
    notes: &mut Vec<String>,
) -> Result<(String, Vec<RunId>)> {
    let here = all.iter().filter(|(_, b, t)| b == branch && t == testbed);
    let workloads: BTreeMap<RunId, String> =
        store.runs()?.into_iter().map(|run| (run.id, run.workload)).collect();
    let of: Vec<(RunId, &String)> = here.filter_map(|(run, ..)| Some((*run, workloads.get(run)?))).collect();
    let workload = match &asked.workload {
        Some(wanted) => wanted.clone(),
        None => of.last().map(|(_, workload)| (*workload).clone()).unwrap_or_default(),
    };
    let others: BTreeSet<&String> = of.iter().map(|(_, w)| *w).filter(|w| **w != workload).collect();
    let mut runs: Vec<RunId> = of.iter().filter(|(_, w)| **w == workload).map(|(run, _)| *run).collect();
    if runs.is_empty() {
        return Err(Error::Compare(format!(
            "branch {branch} has no run of {workload} on {testbed}; it has runs of {}",
            names(others)
        )));
    }
    if !others.is_empty() {
        notes.push(format!("the branch also has runs of {}: --workload shows them", names(others)));
    }
    if let Some(older) = runs.len().checked_sub(asked.newest).filter(|older| *older > 0) {
        runs.drain(..older);
        notes.push(format!("{older} older runs are not shown: --last shows more"));
    }
    Ok((workload, runs))
}

/// A note, if percentiles lie among arrivals without an answer.
fn bounds_words(history: &History) -> Option<String> {
    let bounds = history.entries.iter().filter(|entry| entry.at_least).count();
    (bounds > 0).then(|| {
        format!(
            "{} of {bounds} of the entries is only a lower bound (≥), because too many arrivals were \
             unanswered; levels use the bound, so a rise may be larger than shown",
            history.name
        )
    })
}

/// A note on the runs that count despite CPU time lost to other processes, with the largest effect.
fn accepted_noise(runs: &[(RunId, Option<NoisePrice>)]) -> Option<String> {
    let number = runs.len();
    let are = match number {
        0 => return None,
        1 => "run counts",
        _ => "runs count",
    };
    let known = runs.iter().filter_map(|(run, price)| Some((run, (*price)?)));
    let cost = known.max_by(|a, b| a.1.high.total_cmp(&b.1.high)).map_or_else(
        || "its cost is not known".to_owned(),
        |(dearest, price)| format!("foreign CPU explains {} of the result of run {dearest}", price.share()),
    );
    Some(format!("{number} {are} with noise (--accept-noise): {cost}"))
}

/// A warning, if entries contain very different numbers of runs. The median of six runs scatters half as much
/// as a single run, but the t test between two levels treats all entries alike.
fn unlike(entries: &[HistoryEntry]) -> Option<String> {
    let runs = || entries.iter().map(|entry| entry.runs.len());
    let (fewest, most) = (runs().min()?, runs().max()?);
    (most > 2 * fewest).then(|| {
        format!(
            "entries have {fewest} to {most} runs: those with few runs scatter more, so a change based on \
             them is less certain than its p suggests"
        )
    })
}

/// Branch and testbed.
fn branch_and_testbed(
    all: &[(RunId, String, String)],
    asked: &HistoryQuery,
) -> Result<(String, String, Vec<String>)> {
    let refused = |why: String| Error::Compare(why);
    let branches: BTreeSet<&String> = all.iter().map(|(_, branch, _)| branch).collect();
    let Some((_, newest, _)) = all.last() else {
        let why = "no run belongs to a branch yet; `kelvin run … --branch NAME` assigns it to one";
        return Err(refused(why.into()));
    };
    let branch = asked.branch.as_ref().unwrap_or(newest);
    let mut notes = Vec::new();
    if !branches.contains(branch) {
        return Err(refused(format!(
            "there is no branch {branch:?}; existing branches: {}",
            names(branches)
        )));
    }
    if asked.branch.is_none() && branches.len() > 1 {
        let others = branches.into_iter().filter(|other| *other != branch);
        notes.push(format!("other branches: {}", names(others)));
    }
    let testbeds: BTreeSet<&String> = all.iter().filter(|(_, b, _)| b == branch).map(|(.., on)| on).collect();
    let newest = all.iter().rev().find(|(_, b, _)| b == branch).map(|(.., on)| on);
    let Some(testbed) = asked.testbed.as_ref().or(newest) else {
        return Err(refused(format!("branch {branch} has no run")));
    };
    if !testbeds.contains(testbed) {
        return Err(refused(format!(
            "branch {branch} has no run on the testbed {testbed:?}; it has runs on {}",
            names(testbeds)
        )));
    }
    if asked.testbed.is_none() && testbeds.len() > 1 {
        let others = testbeds.into_iter().filter(|other| *other != testbed);
        notes.push(format!("the branch has runs on other testbeds: {}; --testbed shows them", names(others)));
    }
    Ok((branch.clone(), testbed.clone(), notes))
}

fn names<'a>(all: impl IntoIterator<Item = &'a String>) -> String {
    all.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The entries as bundles of runs, in the order of their first runs.
fn bundles(store: &Store, runs: &[RunId]) -> Result<Vec<Bundle>> {
    let mut bundles: Vec<Bundle> = Vec::new();
    for run in runs {
        let member = store.membership(*run)?;
        let same = |bundle: &&mut Bundle| match (&bundle.member, &member) {
            (Some(one), Some(other)) => {
                one.group == other.group && one.slot.treatment == other.slot.treatment
            }
            _ => false,
        };
        match bundles.iter_mut().find(same) {
            Some(bundle) => bundle.runs.push(*run),
            None => bundles.push(Bundle { member, runs: vec![*run] }),
        }
    }
    Ok(bundles)
}

/// At a fixed rate the throughput says nothing about the response times, so p99 is the default. None for the
/// headline.
fn default_measure(run: &StoredRun) -> Result<Option<String>> {
    let open_loop = run.point_statistics(run.best_point().unwrap_or(0))?.open_loop;
    Ok(open_loop.then(|| "p99".to_owned()))
}

/// The id of the measure, if it is a metric and not a key figure.
fn metric(asked: &HistoryQuery) -> Vec<String> {
    asked.measure.iter().filter(|measure| measure.contains('.')).cloned().collect()
}

fn wanted<'a>(figures: &'a [KeyFigure], measure: Option<&str>) -> Option<&'a KeyFigure> {
    match measure {
        Some(id) => figures.iter().find(|figure| figure.id.eq_ignore_ascii_case(id)),
        None => figures.first(),
    }
}

fn new_entry(run: &StoredRun, member: Option<&GroupMember>) -> HistoryEntry {
    HistoryEntry {
        runs: Vec::new(),
        group: member.map(|member| member.group.0),
        treatment: member.map(|member| member.slot.treatment.clone()).filter(|t| !t.is_empty()),
        started: run.info.started,
        label: run.info.label.clone(),
        value: 0.0,
        at_least: false,
        range: (0.0, 0.0),
        facts: Vec::new(),
    }
}

fn facts_of(run: &StoredRun) -> FactMap {
    let info = &run.info;
    facts(&info.spec_toml, &info.environment, [("kelvin version", info.kelvin_version.clone())])
}
