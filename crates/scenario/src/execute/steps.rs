//! The timeline's thread: does the steps at their times.
//!
//! Loads begin, change and end at whole seconds of the scenario's clock, so that no second is of two kinds. A step that follows
//! a wait has its time before the wait is over, and so have those that follow it without another wait; one that follows
//! something that takes as long as it takes comes at the next whole second.

use std::sync::mpsc::Sender;
use std::time::Duration;

use kelvin_measure::event::{Step as StepEvent, StepKind};
use kelvin_measure::{Nanos, SECOND};
use kelvin_run::control::{Change, LoadControl};

use super::{Message, Stage, Turn, command};
use crate::step::{Action, Step};
use crate::timeline::gap;

/// How long before its time a step is begun.
const LEAD: Nanos = 2 * LoadControl::NOTICE.as_nanos() as Nanos;

/// The same where an agent of a fleet has to hear of it, and its clock has to be known.
const LEAD_OF_AGENTS: Nanos = 3 * SECOND;

/// The least notice with which a load does what a step says at its time.
const LEAST_NOTICE: Nanos = 100_000_000;

/// How often what cannot be waited for is looked at.
const TICK: Duration = Duration::from_millis(10);

/// Why the timeline ends.
enum End {
    /// Somebody asked to stop, or another thread has failed.
    Stopped,
    /// A step failed.
    Failed(String),
}

/// Does the steps from the first start on.
pub(super) fn run(stage: &Stage<'_>, sender: &Sender<Message>) {
    let has_agents = stage.scenario.tenants.iter().any(|tenant| tenant.host.is_some());
    let lead = if has_agents { LEAD_OF_AGENTS } else { LEAD };
    let steps = Steps { stage, sender, lead, origin: 0, at: 0, turn: vec![None; stage.turns.len()] };
    if let Err(End::Failed(why)) = steps.run() {
        // Nobody listens only when the run is lost.
        let _ = sender.send(Message::Failed(why));
    }
    stage.end_all();
}

struct Steps<'a> {
    stage: &'a Stage<'a>,
    sender: &'a Sender<Message>,
    /// How long before its time a step is begun.
    lead: Nanos,
    /// When the clock began.
    origin: Nanos,
    /// When the last step was done, or the wait after it is over.
    at: Nanos,
    /// The turn that each tenant is in.
    turn: Vec<Option<usize>>,
}

impl Steps<'_> {
    fn run(mut self) -> Result<(), End> {
        self.wait_until_armed()?;
        self.origin = self.now() + self.lead;
        self.at = self.origin;
        self.send(Message::Opened(self.origin))?;
        let scenario = self.stage.scenario;
        let first = scenario.steps.iter().position(|step| matches!(step.action, Action::Start { .. }));
        let mut steps = (1..).zip(&scenario.steps);
        for (number, step) in steps.by_ref().take(first.unwrap_or(0)) {
            // The rest of them was done before the clock began; a mark among them is on the charts, which begin with it.
            if let Action::Mark(_) = step.action {
                let text = self.text_of(step);
                self.send_step(number, self.origin, StepKind::Mark, &[], text, step.annotated)?;
            }
        }
        for (number, step) in steps {
            self.step(number, step)?;
        }
        let left: Vec<usize> = (0..self.turn.len()).filter(|&tenant| self.is_at_work(tenant)).collect();
        let number = scenario.steps.len() as u32 + 1;
        if left.is_empty() {
            return self.sleep_until(self.at);
        }
        self.stop(number, &left, "the end".into(), false)
    }

    fn step(&mut self, number: u32, step: &Step) -> Result<(), End> {
        let text = self.text_of(step);
        let shown = step.annotated;
        match &step.action {
            Action::Start { tenants, stagger, .. } => {
                self.start(number, tenants, gap(*stagger, tenants.len()), &text, shown)
            }
            Action::Stop(tenants) => self.stop(number, tenants, text, shown),
            Action::Rate(tenants, rate) => self.change(number, tenants, Change::Rate(*rate), text, shown),
            Action::Users(tenants, users) => self.change(number, tenants, Change::Users(*users), text, shown),
            Action::Wait(span) => {
                self.at += span.nanos();
                Ok(())
            }
            Action::WaitFor { tenants, timeout } => {
                let until = timeout.map(|timeout| self.now().max(self.at).saturating_add(timeout.nanos()));
                self.wait_for(tenants, until)
            }
            Action::Run { command, timeout, may_fail } => {
                self.sleep_until(self.at)?;
                self.send_step(number, self.now(), StepKind::Run, &[], text, shown)?;
                let stage = self.stage;
                let done = command::run(command, &stage.scenario.directory, timeout.duration(), stage.stop);
                self.at = self.at.max(self.now());
                match done {
                    _ if stage.stop.requested() => Err(End::Stopped),
                    Ok(()) => Ok(()),
                    Err(why) if *may_fail => {
                        let text = format!("{command}: {why}");
                        self.send_step(number, self.now(), StepKind::Mark, &[], text, false)
                    }
                    Err(why) => Err(End::Failed(format!("step {number}, {command}: {why}"))),
                }
            }
            Action::Mark(_) => {
                self.sleep_until(self.at)?;
                self.send_step(number, self.at, StepKind::Mark, &[], text, shown)
            }
            // Done before the clock began.
            Action::Prepare(_) | Action::Fill(_) => Ok(()),
        }
    }

    /// Begins the next turns of tenants, so far apart.
    fn start(
        &mut self,
        number: u32,
        tenants: &[usize],
        apart: Duration,
        text: &str,
        shown: bool,
    ) -> Result<(), End> {
        let first = self.due()?;
        let mut together: Vec<usize> = Vec::new();
        let mut last = first;
        for (place, &tenant) in (0_u32..).zip(tenants) {
            let wanted = self.whole(first + (apart * place).as_nanos() as Nanos);
            if wanted > last {
                self.begun(number, &std::mem::take(&mut together), text, shown)?;
                self.sleep_until(wanted.saturating_sub(self.lead))?;
                last = wanted;
            }
            let turn = self.turn[tenant].map_or(0, |turn| turn + 1);
            self.turn[tenant] = Some(turn);
            if let Some(turn) = self.turn(tenant) {
                turn.control.begin_at(wanted);
            }
            together.push(tenant);
        }
        self.begun(number, &together, text, shown)
    }

    /// Waits until the turns of tenants that are to begin together have begun.
    fn begun(&mut self, number: u32, tenants: &[usize], text: &str, shown: bool) -> Result<(), End> {
        let mut found: Vec<(Nanos, usize)> = Vec::with_capacity(tenants.len());
        for &tenant in tenants {
            let Some(turn) = self.turn(tenant) else { continue };
            self.wait(None, || turn.control.begun().is_some() || turn.control.is_ended())?;
            let begun = turn.control.begun().ok_or_else(|| {
                End::Failed(format!("{} could not begin", self.stage.scenario.tenants[tenant].name))
            })?;
            found.push((begun, tenant));
        }
        found.sort_unstable();
        for same in found.chunk_by(|one, other| one.0 == other.0) {
            let (at, names): (Nanos, Vec<usize>) = (same[0].0, same.iter().map(|one| one.1).collect());
            self.send_step(number, at, StepKind::Start, &names, text.to_owned(), shown)?;
            self.at = self.at.max(at);
        }
        Ok(())
    }

    /// Changes the loads of tenants that are at work.
    fn change(
        &mut self,
        number: u32,
        tenants: &[usize],
        change: Change,
        text: String,
        shown: bool,
    ) -> Result<(), End> {
        let at = self.due()?;
        for &tenant in tenants.iter().filter(|&&tenant| self.is_at_work(tenant)) {
            if let Some(turn) = self.turn(tenant) {
                turn.control.change_at(at, change);
            }
        }
        self.at = at;
        self.send_step(number, at, StepKind::Change, tenants, text, shown)
    }

    /// Ends the loads of tenants, and waits for that.
    fn stop(&mut self, number: u32, tenants: &[usize], text: String, shown: bool) -> Result<(), End> {
        let at = self.due()?;
        let left: Vec<usize> = tenants.iter().copied().filter(|&tenant| self.is_at_work(tenant)).collect();
        let (jobs, databases): (Vec<usize>, Vec<usize>) =
            left.iter().partition(|&&tenant| self.stage.scenario.tenants[tenant].spec.is_io());
        for turn in databases.iter().filter_map(|&tenant| self.turn(tenant)) {
            turn.control.change_at(at, Change::Close);
        }
        self.sleep_until(at)?;
        for turn in jobs.iter().filter_map(|&tenant| self.turn(tenant)) {
            turn.stop.request();
        }
        self.at = at;
        self.send_step(number, at, StepKind::Stop, &left, text, shown)?;
        self.wait_for(&left, None)?;
        // The wait behind it counts from the end of the load.
        self.at = at;
        Ok(())
    }

    /// Waits until the turns of tenants have ended.
    fn wait_for(&mut self, tenants: &[usize], until: Option<Nanos>) -> Result<(), End> {
        for &tenant in tenants {
            if let Some(turn) = self.turn(tenant) {
                self.wait(until, || turn.control.is_ended()).map_err(|end| match end {
                    End::Failed(why) => {
                        End::Failed(format!("wait-for {}: {why}", self.stage.scenario.tenants[tenant].name))
                    }
                    end @ End::Stopped => end,
                })?;
            }
        }
        self.at = self.at.max(self.now());
        Ok(())
    }

    fn text_of(&self, step: &Step) -> String {
        step.text(&self.stage.scenario.tenants)
    }

    fn turn(&self, tenant: usize) -> Option<&Turn> {
        self.stage.turns[tenant].get(self.turn[tenant]?)
    }

    fn is_at_work(&self, tenant: usize) -> bool {
        self.turn(tenant).is_some_and(|turn| !turn.control.is_ended())
    }

    /// Every tenant's first turn is ready, or has failed.
    fn wait_until_armed(&self) -> Result<(), End> {
        let first = |turns: &Vec<Turn>| turns.first().is_none_or(|turn| turn.control.is_armed());
        self.wait(None, || self.stage.turns.iter().all(first))
    }

    /// The time of a step that changes a load: when the wait before it is over, or else the next whole second.
    fn due(&self) -> Result<Nanos, End> {
        self.sleep_until(self.at.saturating_sub(self.lead))?;
        let now = self.now();
        let at = self.whole(self.at);
        Ok(if at >= now + LEAST_NOTICE { at } else { self.whole(now + LEAST_NOTICE) })
    }

    /// A whole second of the clock, at or after a time.
    fn whole(&self, at: Nanos) -> Nanos {
        self.origin + at.saturating_sub(self.origin).div_ceil(SECOND) * SECOND
    }

    fn now(&self) -> Nanos {
        self.stage.clock.now()
    }

    fn sleep_until(&self, at: Nanos) -> Result<(), End> {
        loop {
            let now = self.now();
            if self.is_over() {
                return Err(End::Stopped);
            }
            if now >= at {
                return Ok(());
            }
            std::thread::sleep(Duration::from_nanos(at - now).min(TICK * 5));
        }
    }

    /// Waits for something that happens elsewhere.
    fn wait(&self, until: Option<Nanos>, happened: impl Fn() -> bool) -> Result<(), End> {
        while !happened() {
            if self.is_over() {
                return Err(End::Stopped);
            }
            if until.is_some_and(|until| self.now() >= until) {
                return Err(End::Failed("it took longer than its timeout".into()));
            }
            std::thread::sleep(TICK);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.stage.stop.requested() || self.stage.is_abandoned()
    }

    fn send_step(
        &self,
        number: u32,
        at: Nanos,
        kind: StepKind,
        tenants: &[usize],
        text: String,
        annotated: bool,
    ) -> Result<(), End> {
        let names = tenants.iter().map(|&tenant| self.stage.scenario.tenants[tenant].name.clone()).collect();
        let at = at.saturating_sub(self.origin);
        self.send(Message::Step(StepEvent { point: 0, number, at, kind, tenants: names, text, annotated }))
    }

    fn send(&self, message: Message) -> Result<(), End> {
        self.sender.send(message).map_err(|_| End::Stopped)
    }
}
