//! `kelvin runs`: lists the stored runs.

use kelvin_measure::text::{count, cut, rate, whole};
use std::collections::BTreeMap;

use anyhow::Result;
use kelvin_diagnose::{Evidence, Severity, judge};
use kelvin_measure::event::Status;
use kelvin_measure::labels;
use kelvin_report::table::{Table, number};
use kelvin_store::{Liveness, PointSummary, RunId, RunSummary, Store, StoredRun};
use serde::Serialize;

use crate::args::{Format, Global, RunsArgs};
use crate::document::{self, Document};
use crate::exit::Code;
use crate::out;
use crate::paths;

/// Lists the runs that match the filters, the newest last.
pub(crate) fn runs(args: &RunsArgs, global: &Global) -> Result<Code> {
    let path = paths::store(global.store.as_deref())?;
    let format = args.format.format();
    let store = if path.exists() { Some(Store::open_read_only(&path)?) } else { None };
    let all = store.as_ref().map(Store::runs).transpose()?.unwrap_or_default();
    let (Some(store), false) = (store, all.is_empty()) else {
        if format == Format::Text {
            out::line(&format!("no runs yet in {}; start with: kelvin run tproc-c", path.display()))?;
            return Ok(Code::Success);
        }
        document::print(&Listed::default(), format)?;
        return Ok(Code::Success);
    };
    let mut wanted: Vec<usize> = (0..all.len()).filter(|index| args.wants(&all[*index])).collect();
    if args.state.is_none() {
        limit(&mut wanted, args.limit);
    }
    let first = if args.findings { 0 } else { wanted.len().saturating_sub(NEWEST) };
    let mut listed = Listed { width: args.width(), ..Listed::default() };
    for (place, index) in wanted.into_iter().enumerate() {
        let mut run = all[index].clone();
        if place >= first {
            let found = most_severe(&store, &mut run, &all[..index]);
            listed.red.extend(found.map(|found| (run.id, found)));
        }
        if args.state.is_none_or(|state| state.is_of(&run)) {
            listed.runs.push(run);
        }
    }
    limit(&mut listed.runs, args.limit);
    listed.first = first;
    if listed.runs.is_empty() && format == Format::Text {
        out::line(&format!("none of the {} runs matches", all.len()))?;
        return Ok(Code::Success);
    }
    document::print(&listed, format)?;
    Ok(Code::Success)
}

/// Keeps the newest `most` entries.
fn limit<T>(all: &mut Vec<T>, most: Option<usize>) {
    if let Some(most) = most {
        all.drain(..all.len().saturating_sub(most));
    }
}

/// The list.
#[derive(Default)]
struct Listed {
    runs: Vec<RunSummary>,
    /// The red findings of the examined runs.
    red: BTreeMap<RunId, Red>,
    /// Number of the oldest runs, which were not examined.
    first: usize,
    /// Width of the text in columns.
    width: usize,
}

impl Document for Listed {
    fn text(&self) -> Result<String> {
        Ok(table(&self.runs, &self.red, self.first, self.width))
    }

    fn records(&self) -> Result<Vec<String>> {
        let line = |run| Ok(serde_json::to_string(&Line { run, red: self.red.get(&run.id) })?);
        self.runs.iter().map(line).collect()
    }

    fn is_list(&self) -> bool {
        true
    }

    fn table(&self) -> Result<Table> {
        let mut table =
            Table::new("run,started,workload,users,result,unit,state,failed,red,label,target,tenant");
        for run in &self.runs {
            let best = run.best();
            let row = |tenant: &str, result: Option<f64>, unit: &str| {
                vec![
                    run.id.to_string(),
                    run.started.to_string(),
                    run.workload.clone(),
                    best.map_or(String::new(), |best| best.users.to_string()),
                    number(result),
                    unit.to_owned(),
                    state(run).into(),
                    run.failed.to_string(),
                    self.red.get(&run.id).map_or(String::new(), |red| red.join(" ")),
                    run.label.clone().unwrap_or_default(),
                    run.target.clone(),
                    tenant.to_owned(),
                ]
            };
            if run.tenants.is_empty() {
                table.rows.push(row("", best.map(|best| best.rate(run.headline_per)), &run.headline));
            }
            table.rows.extend(run.tenants.iter().map(|one| row(&one.name, one.per_second, PER_SECOND)));
        }
        Ok(table)
    }
}

/// The unit of a tenant's throughput.
const PER_SECOND: &str = "per second";

/// Number of runs to examine. Examining a run requires reading it completely, which takes too long for a list of
/// hundreds.
const NEWEST: usize = 20;

/// The distinct names of red findings.
type Red = Vec<&'static str>;

/// A run's line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    run: &'a RunSummary,
    /// `None` if the run was not examined.
    #[serde(skip_serializing_if = "Option::is_none")]
    red: Option<&'a Red>,
}

/// The red findings of a run, examined with its predecessor and judged as in the report. `None` if the run was not
/// observed, is still running, or cannot be read; `kelvin show` prints the reason.
fn most_severe(store: &Store, run: &mut RunSummary, before: &[RunSummary]) -> Option<Red> {
    if run.liveness == Liveness::Running {
        return None;
    }
    let stored = store.load(run.id).ok()?;
    let mut evidence = Evidence::from_run(&stored).ok()?;
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
        Evidence::from_run(&stored).ok()
    };
    evidence.earlier = earlier.and_then(|earlier| evidence_of(earlier.id)).map(Box::new);
    let mut red = Red::new();
    for finding in kelvin_diagnose::findings_for(&evidence) {
        if finding.severity == Severity::Red && !red.contains(&finding.id) {
            red.push(finding.id);
        }
    }
    Some(red)
}

/// The phases of a run of I/O jobs with several phases; empty for other runs. Their jobs differ, so no phase
/// represents the run.
fn phases(run: &RunSummary) -> &[PointSummary] {
    if run.workload == labels::IO && run.points.len() > 1 { &run.points } else { &[] }
}

/// The list as text in lines of at most `width` columns. The result of a run is that of its best point.
fn table(runs: &[RunSummary], red: &BTreeMap<RunId, Red>, first: usize, width: usize) -> String {
    let mut text = format!(
        "{:>5}  {:<16}  {:<7}  {:>5}  {:>13}  {:<7}  notes\n",
        "run", "started (UTC)", "load", "users", "result", "state"
    );
    for run in runs {
        let shown =
            |point: &PointSummary| format!("{} {}", rate(Some(point.rate(run.headline_per))), run.headline);
        let phases = phases(run);
        let (users, figure) = match run.best() {
            None if !run.tenants.is_empty() => (String::new(), count(run.tenants.len() as u64, "tenant")),
            None => ("–".into(), "–".into()),
            Some(_) if !phases.is_empty() => (String::new(), format!("{} phases", phases.len())),
            Some(best) => (best.users.to_string(), shown(best)),
        };
        let label = run.label.as_ref().map(|label| format!("\"{label}\""));
        let remarks = Some(remarks(run, red.get(&run.id))).filter(|remarks| !remarks.is_empty());
        let rest: Vec<String> = label.into_iter().chain(remarks).chain([run.target.clone()]).collect();
        let line = format!(
            "{:>5}  {:<16}  {:<7}  {users:>5}  {figure:>13}  {:<7}  {}",
            run.id.0,
            run.started.strftime("%Y-%m-%d %H:%M").to_string(),
            run.workload,
            state(run),
            rest.join(" · "),
        );
        text.push_str(&cut(&line, width));
        text.push('\n');
        for point in phases {
            let name = format!("phase {}", point.point + 1);
            let line = format!("{:16}{name:>16}  {:>5}  {:>13}\n", "", point.users, shown(point));
            text.push_str(&line);
        }
        for tenant in &run.tenants {
            let result = format!("{} /s", rate(tenant.per_second));
            text.push_str(&format!("{:16}{:>23}  {result:>13}\n", "", cut(&tenant.name, 23)));
        }
    }
    if runs.iter().any(|run| run.judgement.as_ref().is_some_and(|judged| !judged.counts())) {
        text.push_str("void, partial and failed runs do not count; kelvin show RUN prints the reason\n");
    }
    if runs.iter().any(|run| run.squeezed) {
        text.push_str("squeezed: resources were reduced during the run\n");
    }
    if first > 0 {
        text.push_str(&format!(
            "findings of the {first} oldest runs are not listed: kelvin runs --findings\n"
        ));
    }
    text
}

/// "squeezed, 2 red": whether the run is running, had errors, was squeezed; the number of red findings, or the name
/// of a single one.
fn remarks(run: &RunSummary, red: Option<&Red>) -> String {
    let mut words: Vec<String> = Vec::new();
    if run.liveness == Liveness::Running {
        words.push("running".into());
    }
    if run.failed > 0 {
        words.push(format!("{} failed", whole(run.failed)));
    }
    if run.squeezed {
        words.push("squeezed".into());
    }
    match red.map(Vec::as_slice) {
        None | Some([]) => {}
        Some([one]) => words.push((*one).to_owned()),
        Some(several) => words.push(format!("{} red", several.len())),
    }
    words.join(", ")
}

/// The label of the run's state; a dash if it has not been judged.
fn state(run: &RunSummary) -> &'static str {
    run.judgement.as_ref().map_or("–", |judgement| judgement.state.word())
}

#[cfg(test)]
mod tests {
    use kelvin_store::{Judgement, TenantSummary};

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
            headline_per: kelvin_measure::event::RatePeriod::Minute,
            points: Vec::new(),
            tenants: Vec::new(),
            held: None,
            squeezed,
            errors: 0,
            failed: 0,
            judgement: Some(Judgement::from_reasons(Vec::new())),
        }
    }

    #[test]
    fn the_list_marks_results_that_do_not_count() {
        let mut runs = [run(1, false), run(2, false), run(3, false), run(4, true)];
        runs[0].judgement = None;
        runs[2].judgement = Some(Judgement::from_reasons(vec!["it was not steady".into()]));
        let red = BTreeMap::from([
            (RunId(2), Red::new()),
            (RunId(3), vec!["not-steady"]),
            (RunId(4), vec!["fsync-off", "steal"]),
        ]);
        insta::assert_snapshot!("runs", table(&runs, &red, 1, 120));
        let narrow = table(&runs, &red, 1, 80);
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
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
        io.headline_per = kelvin_measure::event::RatePeriod::Second;
        io.points = vec![phase(0, 500.0), phase(1, 217_639.0)];
        let mut scenario = run(6, false);
        (scenario.workload, scenario.target) =
            ("scenario".into(), "oltp: postgres://db/w4, dss: /data/f".into());
        let tenant = |name: &str, per_second| TenantSummary { name: name.into(), per_second };
        scenario.tenants =
            vec![tenant("oltp", Some(99.94)), tenant("dss", Some(217_639.0)), tenant("idle", None)];
        let line = serde_json::to_value(Line { run: &scenario, red: None }).unwrap();
        assert_eq!(
            (&line["tenants"][0]["per_second"], &line["points"]),
            (&serde_json::json!(99.94), &serde_json::json!([]))
        );
        let rows = Listed { runs: vec![scenario.clone()], ..Listed::default() }.table().unwrap().rows;
        let each: Vec<[&str; 3]> = rows.iter().map(|row| [&*row[11], &*row[4], &*row[5]]).collect();
        assert_eq!(
            each,
            [["oltp", "99.94", "per second"], ["dss", "217639", "per second"], ["idle", "", "per second"]]
        );
        let both = [run(1, false), io, scenario];
        insta::assert_snapshot!("runs_io", table(&both, &BTreeMap::new(), 0, 80));
        let line = serde_json::to_value(Line { run: &runs[3], red: red.get(&RunId(4)) }).unwrap();
        assert_eq!((&line["red"][1], &line["squeezed"]), (&"steal".into(), &true.into()));
        let unseen = serde_json::to_value(Line { run: &runs[0], red: None }).unwrap();
        assert!(unseen.get("red").is_none() && unseen["id"] == 1, "{unseen}");
    }
}
