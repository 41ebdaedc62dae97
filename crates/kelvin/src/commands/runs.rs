//! `kelvin runs`: the stored runs.

use std::collections::BTreeMap;

use anyhow::Result;
use kelvin_diagnose::{Evidence, Severity, judge};
use kelvin_measure::event::Status;
use kelvin_measure::words::{self, Words};
use kelvin_store::{Liveness, PointSummary, RunId, RunSummary, Store, StoredRun};
use serde::Serialize;

use crate::args::{Global, RunsArgs};
use crate::exit::Code;
use crate::live::grouped;
use crate::out;
use crate::place;

/// Lists them, the newest last.
pub(crate) fn runs(args: &RunsArgs, global: &Global) -> Result<Code> {
    let path = place::store(global.store.as_deref())?;
    if !path.exists() {
        return none(args, &path);
    }
    let store = Store::open_read_only(&path)?;
    let mut runs = store.runs()?;
    if runs.is_empty() {
        return none(args, &path);
    }
    let first = if args.findings { 0 } else { runs.len().saturating_sub(NEWEST) };
    let mut red = BTreeMap::new();
    for index in first..runs.len() {
        let (before, from) = runs.split_at_mut(index);
        let Some(run) = from.first_mut() else { break };
        red.extend(look(&store, run, before).map(|found| (run.id, found)));
    }
    if args.json {
        for run in &runs {
            out::line(&serde_json::to_string(&Line { run, red: red.get(&run.id) })?)?;
        }
    } else {
        out::write(&table(&runs, &red, first))?;
    }
    Ok(Code::Success)
}

fn none(args: &RunsArgs, path: &std::path::Path) -> Result<Code> {
    if !args.json {
        out::line(&format!("no runs yet in {}; start with: kelvin run tproc-c", path.display()))?;
    }
    Ok(Code::Success)
}

/// A run is read from end to end to find what is to be said of it: a list of hundreds would take its time.
const NEWEST: usize = 20;

/// The names of red findings, each once.
type Red = Vec<&'static str>;

/// A run's line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    run: &'a RunSummary,
    /// None where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    red: Option<&'a Red>,
}

/// Looks at a run and at the one before it as the report does, and judges it; none of a run that was not observed, is still
/// written, or cannot be read, of which `kelvin show` says why.
fn look(store: &Store, run: &mut RunSummary, before: &[RunSummary]) -> Option<Red> {
    if run.liveness == Liveness::Running {
        return None;
    }
    let stored = store.load(run.id).ok()?;
    let mut evidence = Evidence::of(&stored).ok()?;
    run.judgement = Some(judge(&stored, &evidence).ok()?.run);
    if !stored.has_evidence() {
        return None;
    }
    let same = |r: &&RunSummary| {
        r.status == Status::Complete && r.workload == run.workload && r.target == run.target
    };
    let earlier = before.iter().rev().find(same);
    let evidence_of = |id: RunId| {
        let stored = store.load(id).ok().filter(StoredRun::has_evidence)?;
        Evidence::of(&stored).ok()
    };
    evidence.earlier = earlier.and_then(|earlier| evidence_of(earlier.id)).map(Box::new);
    let mut red = Red::new();
    for finding in kelvin_diagnose::find(&evidence) {
        if finding.severity == Severity::Red && !red.contains(&finding.id) {
            red.push(finding.id);
        }
    }
    Some(red)
}

/// The words of the runs that are listed, each once, joined.
fn joined(runs: &[&RunSummary], joint: &str, word: fn(&Words) -> &'static str) -> String {
    let mut found: Vec<&str> = Vec::new();
    for run in runs {
        let word = word(Words::of(&run.workload));
        if !found.contains(&word) {
            found.push(word);
        }
    }
    found.join(joint)
}

/// The phases of a run of I/O jobs that has several: other jobs, so that none stands for the run.
fn phases(run: &RunSummary) -> &[PointSummary] {
    if run.workload == words::IO && run.points.len() > 1 { &run.points } else { &[] }
}

/// The list, for people. The figure is that of the best point.
fn table(runs: &[RunSummary], red: &BTreeMap<RunId, Red>, first: usize) -> String {
    let remarks: Vec<String> = runs.iter().map(|run| remarks(run, red.get(&run.id))).collect();
    let wide = remarks.iter().map(|text| text.chars().count()).max().unwrap_or(0).max("findings".len());
    let who = joined(&runs.iter().collect::<Vec<_>>(), "/", |words| words.who.many);
    let many = who.len().max(5);
    let mut text = format!(
        "{:>5}  {:<16}  {:<8}  {who:>many$}  {:>12}  {:<11}  {:<wide$}  {}\n",
        "run", "started (UTC)", "workload", "figure", "state", "findings", "target"
    );
    for (run, remarks) in runs.iter().zip(remarks) {
        let shown =
            |point: &PointSummary| format!("{} {}", figure(point.rate(run.headline_per)), run.headline);
        let phases = phases(run);
        let (users, figure) = match run.best() {
            None => ("–".into(), "–".into()),
            Some(_) if !phases.is_empty() => (String::new(), format!("{} phases", phases.len())),
            Some(best) => (best.users.to_string(), shown(best)),
        };
        let label = run.label.as_ref().map_or(String::new(), |label| format!("  \"{label}\""));
        text.push_str(&format!(
            "{:>5}  {:<16}  {:<8}  {users:>many$}  {figure:>12}  {:<11}  {remarks:<wide$}  {}{label}\n",
            run.id.0,
            run.started.strftime("%Y-%m-%d %H:%M").to_string(),
            run.workload,
            state(run),
            run.target,
        ));
        for point in phases {
            let name = format!("phase {}", point.point + 1);
            let line = format!("{:25}{name:<8}  {:>many$}  {:>12}\n", "", point.users, shown(point));
            text.push_str(&line);
        }
    }
    if runs.iter().any(|run| run.judgement.as_ref().is_some_and(|judged| !judged.counts())) {
        text.push_str("what is void, partial or failed does not count; kelvin show says why\n");
    }
    if runs.iter().any(|run| run.squeezed) {
        text.push_str("squeezed: resources were cut while it ran\n");
    }
    if first > 0 {
        text.push_str(&format!(
            "the {first} oldest were not looked at for findings: kelvin runs --findings\n"
        ));
    }
    text
}

/// "2 red, squeezed": red findings, one by its name; whether it runs, had errors, was squeezed. A dash where nothing is known.
fn remarks(run: &RunSummary, red: Option<&Red>) -> String {
    let mut words = Vec::new();
    match red.map(Vec::as_slice) {
        None | Some([]) => {}
        Some([one]) => words.push((*one).to_owned()),
        Some(several) => words.push(format!("{} red", several.len())),
    }
    if run.liveness == Liveness::Running {
        words.push("running".into());
    }
    if run.failed > 0 {
        words.push(format!("{} failed", grouped(run.failed)));
    }
    if run.squeezed {
        words.push("squeezed".into());
    }
    if words.is_empty() { if red.is_some() { "none red" } else { "–" }.into() } else { words.join(", ") }
}

/// A whole number; a small one, such as a few transactions a second, keeps a decimal.
fn figure(rate: f64) -> String {
    if rate < 100.0 && rate.fract() != 0.0 { format!("{rate:.1}") } else { grouped(rate.round() as u64) }
}

/// The word of its state; a dash where nobody has judged it.
fn state(run: &RunSummary) -> &'static str {
    run.judgement.as_ref().map_or("–", |judgement| judgement.state.word())
}

#[cfg(test)]
mod tests {
    use kelvin_store::Judgement;

    use super::*;

    fn run(id: i64, squeezed: bool) -> RunSummary {
        RunSummary {
            id: RunId(id),
            label: None,
            workload: "tproc-c".into(),
            target: "postgres://kelvin@db/w4".into(),
            started: jiff::Timestamp::from_second(1_795_000_000).unwrap(),
            status: Status::Complete,
            liveness: Liveness::Ended,
            headline: "NOPM".into(),
            headline_per: kelvin_measure::event::Per::Minute,
            points: Vec::new(),
            held: None,
            squeezed,
            errors: 0,
            failed: 0,
            judgement: Some(Judgement::of(Vec::new())),
        }
    }

    #[test]
    fn the_list_says_which_figures_not_to_believe() {
        let mut runs = [run(1, false), run(2, false), run(3, false), run(4, true)];
        runs[0].judgement = None;
        runs[2].judgement = Some(Judgement::of(vec!["it was not steady".into()]));
        let red = BTreeMap::from([
            (RunId(2), Red::new()),
            (RunId(3), vec!["not-steady"]),
            (RunId(4), vec!["fsync-off", "steal"]),
        ]);
        insta::assert_snapshot!("runs", table(&runs, &red, 1));
        let phase = |point: u32, per_second: f64| PointSummary {
            point,
            users: 2,
            asked_per_second: None,
            void: false,
            overloaded: false,
            per_minute: per_second * 60.0,
            per_second,
            seconds: 10.0,
        };
        let mut io = run(5, false);
        (io.workload, io.headline, io.target) = ("io".into(), "IOPS".into(), "/data/f".into());
        io.headline_per = kelvin_measure::event::Per::Second;
        io.points = vec![phase(0, 500.0), phase(1, 217_639.0)];
        let both = [run(1, false), io];
        insta::assert_snapshot!("runs_io", table(&both, &BTreeMap::new(), 0));
        let line = serde_json::to_value(Line { run: &runs[3], red: red.get(&RunId(4)) }).unwrap();
        assert_eq!((&line["red"][1], &line["squeezed"]), (&"steal".into(), &true.into()));
        let unseen = serde_json::to_value(Line { run: &runs[0], red: None }).unwrap();
        assert!(unseen.get("red").is_none() && unseen["id"] == 1, "{unseen}");
    }
}
