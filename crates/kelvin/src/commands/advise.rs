//! `kelvin advise`: changes that may help a stored run, ordered by the upper bound of their gain, and their
//! proofs.

mod hypothetical;
mod prove;
mod server;

use std::fmt::Write as _;

use anyhow::Result;
use kelvin_diagnose::{
    Change, Effect, Evidence, HostSetting, LARGE_GAIN, Remedy, Rules, findings_for, not_explained, remedies,
    rules_of_setting,
};
use kelvin_lab::ab::{AbPlan, AbSummary};
use kelvin_lab::advise::{AdviceOrigin, Proof};
use kelvin_measure::text::{ends, trimmed_percent};
use kelvin_report::RunReport;
use kelvin_report::table::Table;
use kelvin_store::{GroupKind, RunId, Store, StoredGroup};
use serde_json::{Value, json};

use crate::args::{AdviseArgs, Global};
use crate::document::{self, Document};
use crate::exit::Code;
use crate::group::{self, Group, change};
use crate::{out, paths};

const WIDTH: usize = 100;
/// The name that stands for a finding where settings were given with --try.
const TRY: &str = "try";

/// Lists the changes, or tries some of them.
pub(crate) fn advise(args: &AdviseArgs, global: &Global) -> Result<Code> {
    let settings = args.settings()?;
    if let Some(target) = &args.target {
        let seen = server::watch(target, args.duration, args.explain.map(Into::into), global)?;
        let mut changes = remedies(&seen.evidence, &findings_for(&seen.evidence));
        hypothetical::check(&*seen.engine, &seen.evidence, &mut changes);
        let advice = Advice::new(None, seen.what, changes, Some(&seen.evidence), args, &settings, &[]);
        document::print(&advice, args.format.format())?;
        return Ok(if seen.interrupted { Code::Interrupted } else { Code::Success });
    }
    let path = paths::store(global.store.as_deref())?;
    let store = Store::open_read_only(&path)?;
    let run = store.find(&args.run)?;
    let advice = Advice::read(&store, run, args, &settings)?;
    let findings: Vec<&str> = advice.lines.iter().map(|line| line.remedy.finding).collect();
    if let Some(tried) = args.proved(&findings)? {
        return prove::prove(args, global, run, &advice, &tried);
    }
    document::print(&advice, args.format.format())?;
    Ok(Code::Success)
}

/// The changes for a run, or for a server.
struct Advice {
    /// The run.
    run: Option<RunId>,
    /// "tproc-c on PostgreSQL …".
    what: String,
    lines: Vec<Line>,
    /// Number of changes that the rules forbid; they are left out.
    forbidden: usize,
    /// Statements whose plans were wanted but which were not executed, with the reasons.
    not_explained: Vec<String>,
}

/// A change, and its latest proof.
struct Line {
    remedy: Remedy,
    proof: Option<(i64, Proof)>,
}

impl Advice {
    fn read(store: &Store, run: RunId, args: &AdviseArgs, settings: &[(String, String)]) -> Result<Self> {
        let report = RunReport::load(store, run)?;
        let what = format!("{} on {}", report.workload, report.target);
        let proofs = proofs(store, run)?;
        Ok(Self::new(Some(run), what, candidates(&report), report.evidence(), args, settings, &proofs))
    }

    /// These changes and the settings that the user wants to try, each with its proof if there is one.
    fn new(
        run: Option<RunId>,
        what: String,
        mut all: Vec<Remedy>,
        seen: Option<&Evidence>,
        args: &AdviseArgs,
        settings: &[(String, String)],
        proofs: &[(i64, AdviceOrigin, Proof)],
    ) -> Self {
        let not_explained = seen.map_or_else(Vec::new, not_explained).into_iter();
        let not_explained = not_explained.map(|one| format!("{}: {}", one.what, one.why)).collect();
        all.extend(settings.iter().map(|(name, value)| chosen_setting(seen, name, value)));
        let before = all.len();
        if args.within_rules {
            all.retain(Remedy::is_allowed);
        }
        let forbidden = before - all.len();
        let line = |remedy: Remedy| {
            // The latest one.
            let of_it = proofs.iter().rev().find(|(_, origin, _)| origin.title == remedy.title);
            Line { proof: of_it.map(|(group, _, proof)| (*group, *proof)), remedy }
        };
        Self { run, what, lines: all.into_iter().map(line).collect(), forbidden, not_explained }
    }
}

/// The changes for a run, ordered by their bound; empty if the run was not observed.
fn candidates(report: &RunReport) -> Vec<Remedy> {
    report.evidence().map_or_else(Vec::new, |evidence| remedies(evidence, &report.findings))
}

/// A setting that the user wants to try.
fn chosen_setting(evidence: Option<&Evidence>, name: &str, value: &str) -> Remedy {
    let change = if name.starts_with("/sys/") {
        // Its present value is read before the trial.
        Change::Host { what: HostSetting::Kernel(name.into()), before: String::new(), value: value.into() }
    } else {
        let before = evidence.and_then(|seen| seen.setting(name)).unwrap_or_default().into();
        Change::Setting { name: name.into(), before, value: value.into() }
    };
    Remedy {
        finding: TRY,
        title: format!("{name} = {value}"),
        change,
        reason: "asked for with --try".into(),
        effect: Effect::unknown("no bound is known"),
        rules: rules_of_setting(name, value),
    }
}

/// The comparisons that prove changes for a run.
fn proofs(store: &Store, run: RunId) -> Result<Vec<(i64, AdviceOrigin, Proof)>> {
    let mut found = Vec::new();
    for group in store.groups_of_advice(run)?.into_iter().filter(|group| group.info.kind == GroupKind::Ab) {
        let Some((origin, summary)) = proof_of(store, &group)? else { continue };
        found.push((group.id.0, origin, Proof::from_summary(&summary)));
    }
    Ok(found)
}

/// The advice that a comparison proves, and its summary; `None` if the comparison has another purpose.
fn proof_of(store: &Store, group: &StoredGroup) -> Result<Option<(AdviceOrigin, AbSummary)>> {
    let plan: AbPlan = group::plan(group)?;
    let Some(origin) = plan.advice.clone() else { return Ok(None) };
    let shown = Group::new(store, group);
    let summary = AbSummary::from_runs(&plan, shown.rows()?);
    Ok(Some((origin, summary)))
}

/// "up to +25 %", "up to +1000 % or more", or "not bounded".
fn gain(bound: Option<f64>) -> String {
    match bound {
        None => "not bounded".into(),
        Some(gain) if gain > LARGE_GAIN => format!("up to +{} or more", trimmed_percent(LARGE_GAIN)),
        Some(gain) => format!("up to +{}", trimmed_percent(gain)),
    }
}

/// "confirmed, +25 % (+20 % to +30 %)".
fn answer(proof: &Proof) -> String {
    let Proof { verdict, ratio, low, high, blocks } = proof;
    let figures = match (ratio, low, high) {
        (Some(ratio), Some(low), Some(high)) => {
            format!(", {} ({})", change(ratio - 1.0), ends(*low, *high, |ratio| change(ratio - 1.0)))
        }
        _ => format!(", {blocks} complete blocks"),
    };
    format!("{}{figures}", verdict.label())
}

impl Document for Advice {
    fn text(&self) -> Result<String> {
        let run = self.run.map_or(String::new(), |run| format!("run {run}: "));
        let mut text = format!("{run}{}\n\n", self.what);
        if self.lines.is_empty() {
            text.push_str("No change is proposed: neither the findings nor the waits suggest one.\n");
        }
        for (number, Line { remedy, proof }) in (1..).zip(&self.lines) {
            let _ = writeln!(text, "{number:>3}  {}  {}", remedy.title, gain(remedy.gain()));
            let mut say = |words: &str| out::wrapped(&mut text, words, 5, 7, WIDTH);
            say(&format!("{}: {}", remedy.finding, remedy.reason));
            if let Effect::Unknown { why } = &remedy.effect {
                say(&format!("not bounded: {why}"));
            }
            if let Rules::Forbidden { why } = remedy.rules {
                say(&format!("not within the rules: {why}"));
            }
            if let Change::Manual { how } = &remedy.change {
                say(&format!("not tried by --prove: {how}"));
            }
            if let Some((group, proof)) = proof {
                say(&format!("tried in group {group}: {}", answer(proof)));
            }
        }
        if self.forbidden > 0 {
            let _ = writeln!(text, "\n{} omitted: not within the rules", self.forbidden);
        }
        if !self.not_explained.is_empty() {
            text.push_str("\nnot explained:\n");
            for one in &self.not_explained {
                out::wrapped(&mut text, one, 2, 4, WIDTH);
            }
        }
        if !self.lines.is_empty() {
            let how = self.run.map_or_else(
                || "a run of this load can prove it: kelvin advise RUN --prove 1".into(),
                |run| format!("kelvin advise {run} --prove 1"),
            );
            let _ = writeln!(
                text,
                "\nA bound counts only the time named; other waits may shrink with it, or take its place: {how}"
            );
        }
        Ok(text)
    }

    fn records(&self) -> Result<Vec<String>> {
        let line = |(number, Line { remedy, proof }): (i32, &Line)| -> Result<Value> {
            let mut value = serde_json::to_value(remedy)?;
            if let Some(object) = value.as_object_mut() {
                object.insert("number".into(), number.into());
                object.insert("gain".into(), json!(remedy.gain()));
                let proof = proof.map(|(group, proof)| json!({ "group": group, "proof": proof }));
                object.insert("tried".into(), json!(proof));
            }
            Ok(value)
        };
        let lines = (1..).zip(&self.lines).map(line).collect::<Result<Vec<_>>>()?;
        Ok(vec![
            json!({ "event": "advice", "run": self.run.map(|run| run.0), "of": self.what, "changes": lines, "not_explained": self.not_explained })
                .to_string(),
        ])
    }

    fn table(&self) -> Result<Table> {
        let mut table = Table::new("number,change,finding,gain,allowed,tried");
        for (number, Line { remedy, proof }) in (1..).zip(&self.lines) {
            table.rows.push(vec![
                number.to_string(),
                remedy.title.clone(),
                remedy.finding.into(),
                gain(remedy.gain()),
                remedy.is_allowed().to_string(),
                proof.as_ref().map(|(_, proof)| answer(proof)).unwrap_or_default(),
            ]);
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests;
