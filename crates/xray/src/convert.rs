//! A scenario of X-Ray's as tenants and steps of Kelvin's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::background::{Background, interleave};
use crate::binding::Bindings;
use crate::cluster::{Copies, cluster};
use crate::conversion::{Conversion, ConvertedAction, ConvertedStep, Tenant};
use crate::expect::expectations;
use crate::fault::{Fault, Faults, Location};
use crate::job::{Changes, literal, size_scale};
use crate::scenario::{Scenario, Workload};
use crate::size::SizeScale;
use crate::step::{Action, Phase, Start, Step};
use crate::target::{Assignment, Targets, slug};

/// Seconds that X-Ray waits for a workload beyond its runtime, where the scenario does not say it.
const GRACE: f64 = 300.0;
/// Seconds that a job without a runtime may take that nobody waits for and that ends by its size: a week.
const UNTIL_DONE: f64 = 7.0 * 86_400.0;

/// How a scenario is converted.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// Commands for steps, as `STEP=COMMAND`.
    pub bindings: &'a [Assignment],
    /// Files and devices for those of the machines.
    pub maps: &'a [Assignment],
    /// Where the files of devices are that no map places.
    pub directory: &'a Path,
    /// Nodes of the imitated cluster; none for as few as the scenario allows.
    pub nodes: Option<u32>,
    /// The factor of times.
    pub time: f64,
    /// The factor of sizes.
    pub size: f64,
}

/// Converts a scenario.
///
/// # Errors
///
/// Steps that need a hypervisor and are bound to no command, all of them with their lines; and what is wrong in the
/// flags or contradicts itself in the scenario.
pub fn convert(scenario: &Scenario, settings: &Settings<'_>) -> Result<Conversion, Faults> {
    let bindings = Bindings::new(settings.bindings)?;
    bindings.require(scenario)?;
    let nodes = cluster(scenario, settings.nodes)?;
    let copies = Copies::new(scenario, nodes)?;
    let targets = Targets::new(scenario, settings.directory, settings.maps)?;
    targets.check(&|group| copies.most(group))?;
    let sizes = size_scale(scenario.workloads.iter().map(|workload| &workload.job), settings.size);
    let mut converter = Converter {
        scenario,
        settings,
        bindings,
        copies,
        targets,
        sizes,
        fills: Vec::new(),
        last: BTreeMap::new(),
        running: BTreeSet::new(),
        without: BTreeSet::new(),
        background: Vec::new(),
        output: Conversion {
            nodes,
            tenants: Vec::new(),
            steps: Vec::new(),
            expectations: Vec::new(),
            bytes: 0,
            notes: Vec::new(),
            warnings: scenario.remarks.clone(),
        },
    };
    for index in 0..scenario.steps.len() {
        converter.step(index)?;
    }
    Ok(converter.finish())
}

struct Converter<'a> {
    scenario: &'a Scenario,
    settings: &'a Settings<'a>,
    bindings: Bindings<'a>,
    copies: Copies,
    targets: Targets,
    sizes: SizeScale,
    /// Workloads whose data are made before, with the lines that ask for it.
    fills: Vec<(&'a Workload, &'a Step)>,
    /// The tenant that a workload was last started as.
    last: BTreeMap<&'a str, usize>,
    running: BTreeSet<usize>,
    /// Steps that do nothing without a hypervisor.
    without: BTreeSet<&'static str>,
    /// Snapshots that go on beside later steps.
    background: Vec<Background>,
    output: Conversion,
}

impl<'a> Converter<'a> {
    fn fault(&self, step: &Step, message: impl Into<String>) -> Fault {
        Fault {
            location: Location { file: self.scenario.file.clone(), line: step.line },
            message: message.into(),
        }
    }

    fn emit(&mut self, step: &Step, action: ConvertedAction) {
        self.output.steps.push(ConvertedStep { source: step.name, line: step.line, action });
    }

    fn step(&mut self, index: usize) -> Result<(), Fault> {
        let scenario: &'a Scenario = self.scenario;
        let step = &scenario.steps[index];
        if index > 0
            && step.phase == Phase::Run
            && scenario.steps[index - 1].phase < Phase::Run
            && !self.last.is_empty()
        {
            self.emit(step, ConvertedAction::Mark("the measured part begins".into()));
        }
        if self.bindings.command(step.name).is_some() {
            self.command(step)?;
        }
        match &step.action {
            Action::External | Action::Done => {}
            Action::Nothing => {
                self.without.insert(step.name);
            }
            Action::PowerOnGroup => self.power_on(step),
            Action::PowerOffGroup { group } => self.power_off(step, group),
            Action::Grow { group, .. } => self.grow(index, step, group),
            Action::Prefill { workload } => {
                self.fills.push((self.workload(workload), step));
            }
            Action::Start(start) => self.start(index, step, start)?,
            Action::Wait { workload, timeout } => {
                let tenant = self.started(step, workload)?;
                self.wait_for(step, tenant, *timeout);
            }
            Action::Stop { workload } => {
                let tenant = self.started(step, workload)?;
                self.running.remove(&tenant);
                self.emit(step, ConvertedAction::Stop(tenant));
            }
            Action::Pause { seconds } => {
                self.emit(step, ConvertedAction::Pause(seconds * self.settings.time));
            }
            Action::Snapshots { count, interval, background } => {
                self.snapshots(step, *count, *interval, *background)?;
            }
        }
        Ok(())
    }

    /// A workload that the parser has found defined.
    fn workload(&self, name: &str) -> &'a Workload {
        let scenario: &'a Scenario = self.scenario;
        let found = scenario.workloads.iter().find(|workload| workload.name == name);
        found.unwrap_or(&scenario.workloads[0])
    }

    fn started(&self, step: &Step, workload: &str) -> Result<usize, Fault> {
        let tenant = self.last.get(workload).copied();
        tenant.ok_or_else(|| self.fault(step, format!("the workload {workload} was not started before")))
    }

    fn power_on(&mut self, step: &Step) {
        if step.phase == Phase::Run && self.bindings.command(step.name).is_none() {
            let group = step.argument("vm_group_name").unwrap_or_default();
            self.warn(
                step,
                &format!("the machines of {group} do not start: their load on the storage is missing"),
            );
            self.emit(step, ConvertedAction::Mark(format!("{group}: machines would start")));
        } else {
            self.without.insert(step.name);
        }
    }

    /// What runs on machines ends with them.
    fn power_off(&mut self, step: &Step, group: &str) {
        self.without.insert(step.name);
        let ended: Vec<usize> = self
            .running
            .iter()
            .copied()
            .filter(|tenant| self.output.tenants[*tenant].group == group)
            .collect();
        for tenant in ended {
            self.running.remove(&tenant);
            self.emit(step, ConvertedAction::Stop(tenant));
        }
    }

    fn grow(&mut self, index: usize, step: &Step, group: &str) {
        let copies = self.copies.count_at(group, index);
        if self.bindings.command(step.name).is_none() {
            let own = format!("{group} has {copies} copies from this step on, which use separate files");
            self.warn(step, &format!("no machines are cloned: {own}"));
            if step.phase == Phase::Run {
                self.emit(step, ConvertedAction::Mark(format!("{group}: {copies} machines would be cloned")));
            }
        }
    }

    /// The tenant of a workload with the copies that there are at a step.
    fn tenant(&mut self, workload: &'a Workload, index: usize, start: &Start) -> Result<usize, Fault> {
        let copies = self.copies.count_at(&workload.group, index);
        let seed = start.seed;
        // What is not bound by time ends by its size, or by its own clock.
        let ended_by_step = workload.job.is_time_based();
        let most = if start.background { UNTIL_DONE } else { start.timeout.unwrap_or(GRACE) + GRACE };
        let runtime = start.runtime.map_or(most, |seconds| seconds * self.settings.time);
        let runtime = Some(runtime).filter(|_| !ended_by_step);
        let by_itself = runtime.map(|seconds| (seconds * 1000.0) as u64);
        let known = self.output.tenants.iter().position(|tenant| {
            let same = (&tenant.workload, tenant.copies, tenant.seed) == (&workload.name, copies, seed);
            same && tenant.by_itself == by_itself
        });
        if let Some(tenant) = known {
            return Ok(tenant);
        }
        let copy = if copies > 1 { "${copy}" } else { "1" };
        let (job, job_lines) = workload.job.render(&Changes {
            target: &|device| {
                // Only the number of the copy is for the scenario to put in.
                let target = self.targets.target(&workload.group, device, "\u{0}");
                literal(&target).replace('\u{0}', copy)
            },
            sizes: &self.sizes,
            time: self.settings.time,
            ended_by_step,
            runtime,
        })?;
        self.output.tenants.push(Tenant {
            name: self.free_name(&short_slug(&workload.name), copies),
            workload: workload.name.clone(),
            group: workload.group.clone(),
            copies,
            job,
            agents: Vec::new(),
            job_lines,
            seed,
            runtime: None,
            measured: false,
            by_itself,
        });
        Ok(self.output.tenants.len() - 1)
    }

    /// A name that no tenant and no copy of one has.
    fn free_name(&self, wanted: &str, copies: u32) -> String {
        let names_of = |name: &str, copies: u32| -> BTreeSet<String> {
            let copies = (1..=if copies > 1 { copies } else { 0 }).map(|copy| format!("{name}-{copy}"));
            copies.chain([name.to_owned()]).collect()
        };
        let taken: BTreeSet<String> =
            self.output.tenants.iter().flat_map(|tenant| names_of(&tenant.name, tenant.copies)).collect();
        let suffixes = (0u32..).map(|attempt| match attempt {
            0 => wanted.to_owned(),
            _ => format!("{wanted}-x{attempt}"),
        });
        suffixes
            .take(usize::from(u16::MAX))
            .find(|name| names_of(name, copies).is_disjoint(&taken))
            .unwrap_or_else(|| wanted.to_owned())
    }

    fn start(&mut self, index: usize, step: &Step, start: &Start) -> Result<(), Fault> {
        let workload = self.workload(&start.workload);
        let tenant = self.tenant(workload, index, start)?;
        let time = self.settings.time;
        let entry = &mut self.output.tenants[tenant];
        entry.measured |= step.phase == Phase::Run;
        let runtime = start.runtime.map(|seconds| seconds * time);
        entry.runtime = [entry.runtime, runtime].into_iter().flatten().reduce(f64::max);
        let by_itself = entry.by_itself.is_some();
        let stagger = Some(start.stagger * time).filter(|span| *span > 0.0 && entry.copies > 1);
        self.last.insert(&workload.name, tenant);
        self.running.insert(tenant);
        let runtime = runtime.filter(|_| !by_itself);
        self.emit(step, ConvertedAction::Start { tenant, runtime, stagger });
        if !start.background {
            self.wait_for(step, tenant, start.timeout);
        }
        Ok(())
    }

    /// Waits as long as X-Ray would: for the runtime, and then for what is granted beyond it.
    fn wait_for(&mut self, step: &Step, tenant: usize, timeout: Option<f64>) {
        let grace = timeout.unwrap_or(GRACE);
        let runtime = self.output.tenants[tenant].runtime.unwrap_or(0.0);
        self.running.remove(&tenant);
        self.emit(step, ConvertedAction::WaitFor(tenant, runtime + grace));
    }

    fn command(&mut self, step: &Step) -> Result<(), Fault> {
        if matches!(step.action, Action::Snapshots { .. }) {
            return Ok(());
        }
        let command = self.bindings.fill_in(step, None).map_err(|message| self.fault(step, message))?;
        let seconds = |name: &str| step.argument(name).and_then(|text| text.parse::<f64>().ok());
        let timeout =
            seconds("timeout_secs").or_else(|| seconds("wait_secs")).filter(|seconds| *seconds > 0.0);
        let may_fail = step.argument("fail_on_error").is_some_and(|text| text.eq_ignore_ascii_case("false"));
        self.emit(step, ConvertedAction::Run { command, timeout, may_fail });
        Ok(())
    }

    fn snapshots(&mut self, step: &Step, count: u32, interval: f64, background: bool) -> Result<(), Fault> {
        let fill_in = |round: &str| {
            self.bindings.fill_in(step, Some(round)).map_err(|message| self.fault(step, message))
        };
        if background {
            let snapshot = |number: u32| {
                let command = fill_in(&number.to_string())?;
                let action = ConvertedAction::Run { command, timeout: None, may_fail: false };
                Ok(ConvertedStep { source: step.name, line: step.line, action })
            };
            let snapshots = (1..=count).map(snapshot).collect::<Result<_, Fault>>()?;
            let interval = interval * self.settings.time;
            self.background.push(Background { position: self.output.steps.len(), snapshots, interval });
            return Ok(());
        }
        let (each, last) = (fill_in("${round}")?, fill_in(&count.to_string())?);
        // X-Ray waits between two snapshots, and not after the last.
        if count > 1 {
            let interval = interval * self.settings.time;
            self.emit(step, ConvertedAction::Repeat { count: count - 1, command: each, interval });
        }
        self.emit(step, ConvertedAction::Run { command: last, timeout: None, may_fail: false });
        Ok(())
    }

    /// Makes all data before the first start: X-Ray makes some while another workload runs, which would be a load that no
    /// figure shows. What no started workload uses is left out.
    fn insert_fills(&mut self) {
        let mut found: Vec<(usize, &'a Step)> = Vec::new();
        for (workload, step) in std::mem::take(&mut self.fills) {
            let tenants = || self.output.tenants.iter().enumerate();
            let mut filled: Vec<usize> = tenants()
                .filter(|(_, tenant)| tenant.workload == workload.name)
                .map(|(index, _)| index)
                .collect();
            if filled.is_empty() {
                // Another workload of the group uses the same devices.
                filled.extend(
                    tenants().find(|(_, tenant)| tenant.group == workload.group).map(|(index, _)| index),
                );
            }
            if filled.is_empty() {
                self.output.notes.push(format!(
                    "omitted, because no workload uses the data: {} of {} (line {})",
                    step.name, workload.name, step.line
                ));
            }
            for tenant in filled {
                if !found.iter().any(|(known, _)| *known == tenant) {
                    found.push((tenant, step));
                }
            }
        }
        let starts = |step: &ConvertedStep| matches!(step.action, ConvertedAction::Start { .. });
        let first = self.output.steps.iter().position(starts).unwrap_or(self.output.steps.len());
        let fills = found.into_iter().map(|(tenant, step)| ConvertedStep {
            source: step.name,
            line: step.line,
            action: ConvertedAction::Fill(tenant),
        });
        self.output.steps.splice(first..first, fills);
    }

    fn warn(&mut self, step: &Step, message: &str) {
        let fault = self.fault(step, format!("{}: {message}", step.name));
        self.output.warnings.push(fault);
    }

    fn finish(mut self) -> Conversion {
        let steps = std::mem::take(&mut self.output.steps);
        let (steps, late) = interleave(steps, std::mem::take(&mut self.background), &self.output.tenants);
        self.output.steps = steps;
        if late > 0 {
            self.output
                .notes
                .push(format!("omitted, because they are due after the last step: {late} snapshots"));
        }
        self.insert_fills();
        if !self.without.is_empty() {
            let names: Vec<&str> = self.without.iter().copied().collect();
            self.output.notes.push(format!("omitted, because there is no hypervisor: {}", names.join(", ")));
        }
        for name in self.bindings.unused(self.scenario) {
            self.output.notes.push(format!("--bind {name} is not used: the scenario has no such step"));
        }
        let mut places: BTreeMap<String, u64> = BTreeMap::new();
        for tenant in &self.output.tenants {
            let workload = self.workload(&tenant.workload);
            for device in workload.job.devices() {
                let bytes = workload.job.extent(&device, &self.sizes).unwrap_or(0);
                for copy in 1..=tenant.copies {
                    let place = self.targets.target(&tenant.group, &device, &copy.to_string());
                    let known = places.entry(place).or_default();
                    *known = bytes.max(*known);
                }
            }
        }
        self.output.bytes = places.values().fold(0, |sum, bytes| sum.saturating_add(*bytes));
        self.output.expectations = expectations(self.scenario, &self.output.tenants);
        self.output
    }
}

/// A tenant's name: a scenario allows 32 letters, and a number may follow.
fn short_slug(name: &str) -> String {
    let slug = slug(name);
    slug.get(..26).map_or(slug.clone(), |short| short.trim_end_matches('-').to_owned())
}
