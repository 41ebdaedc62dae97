//! Tries changes: each is compared with the changes accepted before it, from the same data, and all are undone at the end.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use kelvin_database::Error;
use kelvin_database::managed::Manager;
use kelvin_database::snapshot::SnapshotInfo;
use kelvin_diagnose::{Change, HostSetting, Remedy};
use kelvin_lab::ab::{self, AbPlan, AbSummary};
use kelvin_lab::advise::{
    AdviceOrigin, Comparison, ConditionedBench, Proof, ProofVerdict, factor, present_host_value,
};
use kelvin_lab::factor::{Access, Applier, Consent, check_factors, recover};
use kelvin_lab::live::Live;
use kelvin_lab::open::{self, Opened, Purpose};
use kelvin_lab::repeat::RepeatEnd;
use kelvin_lab::{bench as benches, directories};
use kelvin_measure::text::{self, count, plain_percent};
use kelvin_observe::engine::locate_server;
use kelvin_report::{ComparedMeans, RunReport, TriedChange};
use kelvin_run::Spec;
use kelvin_run::spec::{Build, Reset, ResetMethod, Span};
use kelvin_store::{GroupId, GroupKind, NewGroup, RunId, Store};
use kelvin_workload::Stop;

use super::{Advice, TRY, answer, candidates, gain};
use crate::args::{AdviseArgs, Global, Tried};
use crate::commands::{confirm, repeat, snapshot};
use crate::exit::{Code, describe};
use crate::group::{self, Group};
use crate::measure::{bench, open as open_target, prompt};
use crate::{out, paths, signal};

/// Maximum number of blocks for one change with a budget. 40 blocks detect an effect a third as large as
/// six blocks do.
const BLOCKS_IN_BUDGET: u32 = 40;

/// Default for the maximum number of blocks. A single change is tried until the result is clear or its budget is used up.
pub(super) fn most_blocks(alone: bool, has_budget: bool) -> u32 {
    match (alone, has_budget) {
        (true, true) => BLOCKS_IN_BUDGET,
        (true, false) => AbPlan::UNTIL_CLEAR,
        (false, _) => AbPlan::BLOCKS,
    }
}

/// Seconds of rest before each run: a restored database has little background work left.
const IDLE_WAIT: u64 = 5;

/// A change that was tried.
pub(super) struct Step {
    pub(super) title: String,
    pub(super) bound: Option<f64>,
    pub(super) outcome: TrialResult,
}

pub(super) enum TrialResult {
    Compared { group: GroupId, summary: Box<AbSummary>, proof: Proof, waits: Vec<String>, kept: bool },
    Failed(String),
}

/// Tries changes and prints the results. Settings, statements and data are restored, however it ends.
pub(super) fn prove(
    args: &AdviseArgs,
    global: &Global,
    run: RunId,
    advice: &Advice,
    tried: &Tried,
) -> Result<Code> {
    let stop = signal::listen()?;
    let mut live = kelvin_live::for_run(global.quiet, false);
    let path = paths::store(global.store.as_deref())?;
    let store = Store::open(&path)?;
    let mut spec = spec_of(&store, run, args)?;
    let journal = directories::settings_journal(&spec.target.target()?, directories::ADVICE)?;
    for change in recover(&journal, &access()?, &mut |text| live.message(text))?.changes {
        live.message(&format!("reverted, because an earlier command was killed: {change}"));
    }
    let all: Vec<Remedy> = advice.lines.iter().map(|line| line.remedy.clone()).collect();
    let pending: VecDeque<Remedy> = match tried {
        Tried::All => all.iter().filter(|one| can_be_tried(one)).cloned().collect(),
        Tried::Some(numbers) => numbers.iter().filter_map(|number| all.get(*number).cloned()).collect(),
    };
    if let (false, Some(one)) = (pending.iter().any(can_be_tried), pending.front()) {
        factor("change", &one.change)?;
    }
    if pending.is_empty() {
        bail!(
            "run {run}: kelvin cannot try any of its changes; kelvin advise {run} describes how to make \
            them"
        );
    }
    let agreed = consent(&spec, args, &pending, &mut *live)?;
    let saved = save(&mut spec, args, &mut *live, &stop)?;
    let mut session = Session {
        args,
        run,
        store: &store,
        journal,
        spec,
        agreed,
        alone: *tried != Tried::All && pending.len() == 1,
        stop: &stop,
        until: args.budget.map(|budget| Instant::now() + budget.duration()),
        accepted: Vec::new(),
        steps: Vec::new(),
    };
    let ended = session.try_all(pending, *tried == Tried::All, &mut *live);
    let steps = std::mem::take(&mut session.steps);
    let put_back = saved.map_or(Ok(()), |saved| saved.restore(&mut *live));
    // A failed restore is reported before a failed write of the answer.
    let written = out::write(&render(run, &steps, &paths::kelvin_command(&path)));
    let code = outcome(ended, put_back, &steps, &mut *live)?;
    written.map(|()| code)
}

/// Whether Kelvin can make and undo the change. Other changes are made by the user.
fn can_be_tried(remedy: &Remedy) -> bool {
    !matches!(remedy.change, Change::Manual { .. })
}

/// The exit code. If there are two errors, the second one is printed here.
fn outcome(ended: Result<Code>, put_back: Result<()>, steps: &[Step], live: &mut dyn Live) -> Result<Code> {
    match (ended, put_back) {
        (Err(first), Err(error)) => {
            live.message(&describe(&error));
            Err(first)
        }
        (Err(error), Ok(())) | (Ok(_), Err(error)) => Err(error),
        // Some changes failed, so not everything that the user asked for was tried.
        (Ok(Code::Success), Ok(())) if steps.iter().any(Step::failed) => Ok(Code::Aborted),
        (Ok(code), Ok(())) => Ok(code),
    }
}

/// The changes of this host that the user agreed to; `None` if `--yes` accepted all of them.
type AgreedHostChanges = Option<Vec<(HostSetting, String)>>;

/// Asks for consent before a server that Kelvin does not manage, or this host, is changed.
fn consent(
    spec: &Spec,
    args: &AdviseArgs,
    pending: &VecDeque<Remedy>,
    live: &mut dyn Live,
) -> Result<AgreedHostChanges> {
    if args.yes {
        return Ok(None);
    }
    let mut agreed = Vec::new();
    let mut titles = Vec::new();
    for one in pending {
        if let Change::Host { what, value, .. } = &one.change {
            agreed.push((what.clone(), value.clone()));
            titles.push(one.title.as_str());
        }
    }
    if !titles.is_empty() {
        confirm(&format!("change settings of this host while runs need them: {}", titles.join("; ")))?;
    }
    let opened = opened(spec, live)?;
    if !opened.place.is_managed() {
        let data = if args.no_reset { "" } else { " and replace its data before each run and at the end" };
        confirm(&format!("change {}{data}", opened.engine.describe()))?;
    }
    Ok(Some(agreed))
}

impl Step {
    fn failed(&self) -> bool {
        matches!(self.outcome, TrialResult::Failed(_))
    }
}

/// A change could not be undone. Nothing more is tried, because both sides would have it.
#[derive(Debug, thiserror::Error)]
#[error("the changes could not be reverted")]
struct NotPutBack;

struct Session<'a> {
    args: &'a AdviseArgs,
    run: RunId,
    store: &'a Store,
    journal: PathBuf,
    spec: Spec,
    agreed: AgreedHostChanges,
    /// Whether only a single change is tried.
    alone: bool,
    stop: &'a Stop,
    until: Option<Instant>,
    accepted: Vec<Remedy>,
    steps: Vec<Step>,
}

impl Session<'_> {
    /// Tries the changes one after another. If all remedies are to be tried, a confirmed one is followed by the remedies for
    /// the runs with it.
    fn try_all(&mut self, mut pending: VecDeque<Remedy>, again: bool, live: &mut dyn Live) -> Result<Code> {
        while let Some(mut next) = pending.pop_front() {
            if self.stop.requested() {
                return Ok(Code::Interrupted);
            }
            if self.until.is_some_and(|until| Instant::now() >= until) {
                let left = count(pending.len() + 1, "change");
                live.message(&format!("the budget is used up: {left} not tried"));
                return Ok(Code::Success);
            }
            live.message(&format!("trying: {} ({})", next.title, gain(next.gain())));
            let bound = next.gain();
            let compared = self
                .refuse(&next, live)
                .and_then(|()| present_value(&self.spec, &mut next, live))
                .and_then(|()| self.compare(&next, live));
            let (outcome, ended) = match compared {
                Ok(compared) => compared,
                Err(error) if self.stop.requested() || error.is::<NotPutBack>() => return Err(error),
                // A change that cannot be tried is reported, and the others are tried.
                Err(error) => (TrialResult::Failed(format!("{error:#}")), RepeatEnd::Done),
            };
            if let (TrialResult::Compared { group, kept: true, .. }, true) = (&outcome, again) {
                pending = self.diagnosed_again(*group, &next, pending, live)?;
            }
            if let TrialResult::Compared { kept: true, .. } = &outcome {
                self.accepted.push(next.clone());
            }
            self.steps.push(Step { title: next.title, bound, outcome });
            if matches!(ended, RepeatEnd::Interrupted) && self.stop.requested() {
                return Ok(Code::Interrupted);
            }
        }
        Ok(Code::Success)
    }

    /// Refuses changes without consent, and those whose effect a comparison cannot show.
    fn refuse(&self, next: &Remedy, live: &mut dyn Live) -> Result<()> {
        match &next.change {
            Change::Host { what, value, .. } => {
                let asked = (what.clone(), value.clone());
                if self.agreed.as_ref().is_some_and(|agreed| !agreed.contains(&asked)) {
                    bail!("it changes this host and was not confirmed: allow it with --yes");
                }
                let opened = opened(&self.spec, live)?;
                let mut session = opened.engine.connect()?;
                let here = opened.engine.capabilities().embedded
                    || locate_server(&*opened.engine, session.as_mut()).server.is_some();
                if !here {
                    bail!(
                        "it is a setting of this host, but {} is not known to run here",
                        opened.engine.describe()
                    );
                }
                Ok(())
            }
            Change::Statements { undo, .. } if undo.is_empty() && self.args.no_reset => {
                bail!("only a reset of the data undoes it: omit --no-reset")
            }
            _ => Ok(()),
        }
    }

    /// Compares the accepted changes with the same plus this change.
    fn compare(&mut self, next: &Remedy, live: &mut dyn Live) -> Result<(TrialResult, RepeatEnd)> {
        let began = Instant::now();
        let comparison = Comparison::new(&self.accepted, next)?;
        check_factors(comparison.factors(), &self.spec)?;
        let plan = self.plan(next);
        let group = self.store.begin_group(&NewGroup {
            kind: GroupKind::Ab,
            name: Some(format!("advice for run {}: {}", self.run, next.title)),
            created: jiff::Timestamp::now(),
            body: serde_json::to_value(&plan)?,
        })?;
        let most = if plan.stop_early { " at most, fewer once it is clear" } else { "" };
        let runs = plan.treatments().len();
        live.message(&format!("group {group}: {} blocks of {runs} runs{most}", plan.blocks));
        let consent = Consent { commands: true, settings: self.args.allow_settings };
        let mut applier = Applier::new(comparison.factors().to_vec(), &self.journal, access()?, consent)?
            .with_progress(out::note);
        let specs = [self.spec.clone(), self.spec.clone()];
        let words = |progress: &ab::AbEvent<'_>| group::describe_progress(progress, &plan);
        let mut runs = bench(self.store, live, self.stop);
        let mut conditioned = ConditionedBench::new(&mut runs, &mut applier, comparison.cells(), self.until);
        let ran = ab::run(&plan, &specs, group, &mut conditioned, &words);
        let late = conditioned.is_late();
        drop(runs);
        let restored = applier.restore_all().context(NotPutBack);
        let ended = repeat::end_or_error(ran.map(|ran| ran.ended));
        match (&restored, &ended) {
            (Err(_), Err(first)) => live.message(&describe(first)),
            (Err(_), Ok(RepeatEnd::Failed(first))) => live.message(&first.to_string()),
            _ => {}
        }
        for change in restored?.left {
            live.message(&change);
        }
        let ended = ended?;
        if late {
            live.message("the budget is used up: this comparison ends before its last block");
        }
        if let RepeatEnd::Failed(error) = ended {
            bail!(anyhow!(error));
        }
        let stored = group::find_again(self.store, group)?;
        let shown = Group::new(self.store, &stored);
        let summary = Box::new(AbSummary::from_runs(&plan, shown.rows()?));
        let proof = Proof::from_summary(&summary);
        let confirmed = proof.verdict == ProofVerdict::Confirmed;
        let kept = confirmed && next.is_allowed();
        let tried = TriedChange {
            group: group.0,
            finding: next.finding.into(),
            title: next.title.clone(),
            bound: gain(next.gain()),
            figures: summary.compared_means().map(|(before, after)| ComparedMeans {
                figure: summary.figure.name.clone(),
                before,
                after,
            }),
            decided: proof.verdict.is_decided(),
            kept,
            answer: answer(&proof),
            others: side_effects(&summary),
            waits: group::waits_that_changed(self.store, &plan, &summary)?,
            cost: format!(
                "{} in {}",
                text::count(self.store.members(group)?.len(), "run"),
                text::short_seconds(began.elapsed().as_secs_f64())
            ),
        };
        self.store.set_answer(group, &serde_json::to_value(&tried)?)?;
        live.message(&format!("{}: {} ({})", next.title, tried.answer, tried.cost));
        if confirmed && !kept {
            live.message("it is not within the rules: the next changes are tried without it");
        }
        Ok((TrialResult::Compared { group, summary, proof, waits: tried.waits, kept }, ended))
    }

    fn plan(&self, next: &Remedy) -> AbPlan {
        let before = if self.accepted.is_empty() { "as it is" } else { "with the changes accepted before" };
        let mut plan =
            AbPlan::new(&[(before.into(), self.spec.clone()), (next.title.clone(), self.spec.clone())]);
        plan.blocks = self.args.blocks.unwrap_or(most_blocks(self.alone, self.until.is_some()));
        plan.stop_early = plan.blocks > AbPlan::BLOCKS;
        plan.replace = plan.replacements(plan.blocks);
        plan.advice = Some(AdviceOrigin {
            run: self.run.0,
            finding: next.finding.into(),
            title: next.title.clone(),
            bound: next.gain(),
            accepted: self.accepted.iter().map(|one| one.title.clone()).collect(),
        });
        plan
    }

    /// The remedies for the last run with the accepted change, without those already tried, plus the settings of the user.
    /// Without such a run, the remaining remedies.
    fn diagnosed_again(
        &self,
        group: GroupId,
        accepted: &Remedy,
        left: VecDeque<Remedy>,
        live: &mut dyn Live,
    ) -> Result<VecDeque<Remedy>> {
        let members = self.store.members(group)?;
        let Some(last) = members.iter().rev().find(|one| one.slot.treatment.starts_with('B')) else {
            return Ok(left);
        };
        let mut next = candidates(&RunReport::load(self.store, last.run)?);
        if self.args.within_rules {
            next.retain(Remedy::is_allowed);
        }
        let tried = |one: &Remedy| {
            one.change == accepted.change || self.steps.iter().any(|step| step.title == one.title)
        };
        next.retain(|one| !tried(one) && can_be_tried(one));
        next.extend(left.into_iter().filter(|one| one.finding == TRY));
        live.message(&format!(
            "with it, run {} has {} to try: {}",
            last.run,
            count(next.len(), "change"),
            next.iter().map(|one| one.title.as_str()).collect::<Vec<_>>().join("; ")
        ));
        Ok(next.into())
    }
}

/// The specification of the run, adapted for comparison.
fn spec_of(store: &Store, run: RunId, args: &AdviseArgs) -> Result<Spec> {
    let written = store.load(run)?.info.spec_toml;
    let mut spec = Spec::parse(&written, "the stored specification")?;
    if spec.is_io() {
        bail!("run {run} is one of I/O jobs: there is no database to change");
    }
    benches::suits(&spec).map_err(|why| anyhow!("run {run}: {why}"))?;
    spec.label = None;
    // Both sides accept the same noise, as in `kelvin ab`.
    spec.accept_noise = true;
    spec.load.duration = args.duration.unwrap_or(spec.load.duration);
    spec.load.ramp_up = args.ramp_up.unwrap_or(spec.load.ramp_up);
    spec.validate()?;
    Ok(spec)
}

fn access() -> Result<Access> {
    let login =
        |target| open::with_password(target, prompt).map_err(|error| Error::usage(format!("{error:#}")));
    Ok(Access::new(Manager::new(directories::servers()?)).with_login(login))
}

/// Reads the present value from the server or its host: side A runs with it.
fn present_value(spec: &Spec, next: &mut Remedy, live: &mut dyn Live) -> Result<()> {
    if let Change::Host { what, before, .. } = &mut next.change
        && let Some(now) = present_host_value(what)?
    {
        *before = now;
    }
    let Change::Setting { name, before, .. } = &mut next.change else { return Ok(()) };
    let opened = open_target(&spec.target, Purpose::Existing, &mut |text| live.message(text))?;
    let settings =
        opened.engine.settings().with_context(|| format!("{} has no settings", opened.engine.describe()))?;
    let present = settings.read(opened.engine.connect()?.as_mut(), &[name.as_str()])?;
    if let Some(now) = present.first() {
        before.clone_from(&now.value);
    }
    Ok(())
}

/// The saved data, to be restored at the end.
struct SavedData {
    spec: Spec,
    about: SnapshotInfo,
}

/// Saves the present data, unless the user says otherwise. Each run begins with this data, or with the data that the run's
/// own reset creates.
fn save(spec: &mut Spec, args: &AdviseArgs, live: &mut dyn Live, stop: &Stop) -> Result<Option<SavedData>> {
    if args.no_reset {
        spec.reset = Reset { how: ResetMethod::None, snapshot: None, idle_wait: None, ..spec.reset.clone() };
        return Ok(None);
    }
    let opened = opened(spec, live)?;
    let name = format!("advice-{}-{}", std::process::id(), jiff::Timestamp::now().as_second());
    let (about, why) = snapshot::save_present(&opened, &name, ResetMethod::Auto, live, stop)
        .context("the data cannot be saved; --no-reset compares without it")?;
    let own = spec.reset.how != ResetMethod::None;
    live.message(&format!(
        "saved the data as snapshot {name} by {} ({why}), {:.0} MB: {}",
        about.way,
        about.bytes as f64 / 1e6,
        if own { "each run begins with its own reset" } else { "each run begins with them" }
    ));
    if !own {
        spec.build = Build::Never;
        spec.reset = Reset {
            how: ResetMethod::Auto,
            snapshot: Some(name),
            idle_wait: Some(Span::seconds(IDLE_WAIT)),
            ..spec.reset.clone()
        };
    }
    Ok(Some(SavedData { spec: spec.clone(), about }))
}

impl SavedData {
    /// Restores the data and removes the snapshot. Ctrl-C does not interrupt it.
    fn restore(self, live: &mut dyn Live) -> Result<()> {
        let name = &self.about.name;
        let restored = opened(&self.spec, live)
            .and_then(|opened| snapshot::restore_and_remove(&opened, &self.about, live));
        restored.with_context(|| {
            format!(
                "the data could not be restored: kelvin snapshot restore {name} --target {}",
                self.spec.target
            )
        })?;
        live.message("the data are as they were before");
        Ok(())
    }
}

fn opened(spec: &Spec, live: &mut dyn Live) -> Result<Opened> {
    open_target(&spec.target, Purpose::Existing, &mut |text| live.message(text))
}

/// Text with the steps in their order: each change with its bound, its effect, and whether that is significant.
pub(super) fn render(run: RunId, steps: &[Step], kelvin: &str) -> String {
    let mut text = format!("\nrun {run}: {} tried\n\n", count(steps.len(), "change"));
    for (number, Step { title, bound, outcome }) in (1..).zip(steps) {
        let _ = writeln!(text, "{number:>3}  {title}  {}", gain(*bound));
        let mut say = |words: &str| out::wrapped(&mut text, words, 5, 7, super::WIDTH);
        match outcome {
            TrialResult::Failed(why) => say(&format!("could not be tried: {why}")),
            TrialResult::Compared { group, summary, proof, waits, kept } => {
                let kept = if *kept { "; kept for the next changes" } else { "" };
                say(&format!("{}{kept}", answer(proof)));
                let shown = summary.comparisons.first().map_or(f64::NAN, |one| one.confidence);
                say(&format!(
                    "statistically decided: {} ({} of {} blocks, {} interval); kelvin groups {group}",
                    if proof.verdict.is_decided() { "yes" } else { "no" },
                    summary.complete,
                    summary.course.blocks,
                    plain_percent(shown)
                ));
                for void in summary.void.iter().filter(|_| !summary.is_complete()) {
                    say(&format!("does not count: {}", group::describe_void(void)));
                }
                let aside = side_effects(summary);
                if !aside.is_empty() {
                    say(&format!("other metrics: {aside}"));
                }
                for wait in waits {
                    say(wait);
                }
            }
        }
    }
    let _ = writeln!(text, "\nAgain:  {kelvin} advise {run}");
    text
}

/// Other metrics that differ (5 % over all of them, Holm).
fn side_effects(summary: &AbSummary) -> String {
    let differing = summary.exploratory.iter().filter(|one| one.adjusted < 0.05);
    let each: Vec<String> =
        differing.map(|one| format!("{} {}", one.figure.name, group::change(one.ratio - 1.0))).collect();
    each.join(", ")
}
