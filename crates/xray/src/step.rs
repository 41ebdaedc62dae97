//! X-Ray's steps: which there are, what they take, and what they mean on a host without a hypervisor.

use crate::fault::{Problem, hint};
use crate::yaml::Node;

/// The part of a scenario that a step belongs to, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Before the setup.
    PreSetup,
    /// Preparation, which is not measured.
    Setup,
    /// What is measured.
    Run,
    /// Afterwards.
    Teardown,
}

impl Phase {
    pub(crate) const ALL: [Self; 4] = [Self::PreSetup, Self::Setup, Self::Run, Self::Teardown];

    /// Its key in the file.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::PreSetup => "pre_setup",
            Self::Setup => "setup",
            Self::Run => "run",
            Self::Teardown => "teardown",
        }
    }
}

/// A step of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// X-Ray's name for it.
    pub name: &'static str,
    /// Where it is written.
    pub line: u32,
    /// When it is done.
    pub phase: Phase,
    /// What it is given, as text, in the order of the file.
    pub arguments: Vec<(String, String)>,
    pub(crate) action: Action,
}

impl Step {
    /// The text of an argument.
    pub(crate) fn argument(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// How many copies of a group there shall be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    PerNode(u32),
    PerCluster(u32),
}

/// What a step means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// Nothing is done without a hypervisor, and nothing is lost by it.
    Nothing,
    /// The step before has done it.
    Done,
    /// The machines of a group begin.
    PowerOnGroup,
    /// The machines of a group end, with what runs on them.
    PowerOffGroup {
        group: String,
    },
    Grow {
        group: String,
        count: Count,
    },
    Prefill {
        workload: String,
    },
    Start(Start),
    Wait {
        workload: String,
        timeout: Option<f64>,
    },
    Stop {
        workload: String,
    },
    Pause {
        seconds: f64,
    },
    Snapshots {
        count: u32,
        interval: f64,
        background: bool,
    },
    /// Only a command of the user can do it.
    External,
}

/// `workload.Start`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Start {
    pub(crate) workload: String,
    /// Seconds.
    pub(crate) runtime: Option<f64>,
    /// Seconds beyond the runtime.
    pub(crate) timeout: Option<f64>,
    pub(crate) background: bool,
    /// Seconds over which the copies begin.
    pub(crate) stagger: f64,
    pub(crate) seed: Option<u32>,
}

/// What an argument must be.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Type {
    Number,
    Count,
    Boolean,
    Text,
    Anything,
}

/// A step that X-Ray knows.
#[derive(Debug)]
struct StepKind {
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
}

const fn step(
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
) -> StepKind {
    StepKind { name, required, optional }
}

const GROUP: &[&str] = &["vm_group_name"];
const WORKLOAD: &[&str] = &["workload_name"];
const NODES: &[&str] = &["nodes"];

/// Every step, with its arguments; `annotate` is one of all but experimental.WaitOplogEmpty, and is taken by all.
const KINDS: &[StepKind] = &[
    step("check.ClusterReady", &[], &[]),
    step("check.ClustersMatch", &[], &[]),
    step("check.HypervisorConnectivity", &["node_index"], &[]),
    step("check.NodePowerManagementConnectivity", &["node_index"], &[]),
    step("check.OobConfigured", &[], &[]),
    step("check.PrismConnectivity", &[], &[]),
    step("check.PrismDatastoreVisible", &["datastore_name", "node_index"], &[]),
    step("check.PrismHostInSameCluster", &["node_index"], &[]),
    step("check.VCenterConnectivity", &[], &[]),
    step("check.VSphereDatastoreVisible", &["datastore_name", "node_index"], &[]),
    step("cluster.CleanUp", &[], &[]),
    step("cluster.DeleteCurieVMs", &[], &[]),
    step("cluster.PowerOffCurieVMs", &[], &[]),
    step("experimental.Shell", &["cmd"], &[]),
    step("experimental.WaitOplogEmpty", &[], &["timeout"]),
    step("meta.RollingUpgrade", &[], &["node_count"]),
    step("nodes.PowerOff", NODES, &["wait_secs"]),
    step("nodes.PowerOn", NODES, &["wait_secs"]),
    step("nodes.Shutdown", NODES, &["wait_secs"]),
    step("nodes.WaitForPowerOff", NODES, &["wait_secs"]),
    step("nodes.WaitForPowerOn", NODES, &["wait_secs"]),
    step("playbook.Run", &["filename", "inventory", "remote_user", "remote_pass"], &["variables"]),
    step("test.Wait", &["duration_secs"], &[]),
    step("vm_group.CloneFromTemplate", GROUP, &["power_on", "linked_clone", "disable_drs", "disable_ha"]),
    step(
        "vm_group.CreatePeriodicSnapshots",
        &["vm_group_name", "num_snapshots", "interval_minutes"],
        &["async"],
    ),
    step("vm_group.DisableHA", GROUP, &[]),
    step("vm_group.EnableHA", GROUP, &[]),
    step("vm_group.Grow", GROUP, &["count_per_node", "count_per_cluster", "linked_clone"]),
    step("vm_group.MigrateGroup", &["vm_group_name", "from_node", "to_node"], &[]),
    step("vm_group.PowerOff", GROUP, &[]),
    step("vm_group.PowerOn", GROUP, &["max_concurrent"]),
    step("vm_group.RelocateGroupDatastore", &["vm_group_name", "dest_datastore_name"], &[]),
    step("vm_group.ResetGroupPlacement", GROUP, &[]),
    step("vm_group.RunCommand", &["vm_group_name", "command"], &["fail_on_error", "user", "timeout_secs"]),
    step("vm_group.WaitForPowerOn", GROUP, &["wait_secs"]),
    step("workload.PrefillRun", WORKLOAD, &["max_concurrent", "timeout_secs"]),
    step("workload.PrefillStart", WORKLOAD, &["async"]),
    step("workload.PrefillWait", WORKLOAD, &["timeout_secs"]),
    step("workload.Start", WORKLOAD, &["runtime_secs", "timeout_secs", "async", "stagger_secs", "seed"]),
    step("workload.Stop", WORKLOAD, &[]),
    step("workload.Wait", WORKLOAD, &["timeout_secs"]),
];

/// The names of all steps.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

/// The names of a step's arguments; none for an unknown step.
pub(crate) fn arguments_of(name: &str) -> Option<impl Iterator<Item = &'static str>> {
    let kind = KINDS.iter().find(|kind| kind.name == name)?;
    Some(kind.required.iter().chain(kind.optional).copied())
}

fn type_of(argument: &str) -> Type {
    match argument {
        "duration_secs" | "runtime_secs" | "timeout_secs" | "timeout" | "stagger_secs" | "wait_secs"
        | "interval_minutes" => Type::Number,
        "max_concurrent" | "node_count" | "num_snapshots" | "count_per_node" | "count_per_cluster"
        | "node_index" | "from_node" | "to_node" | "seed" => Type::Count,
        "annotate" | "async" | "power_on" | "linked_clone" | "disable_drs" | "disable_ha"
        | "fail_on_error" => Type::Boolean,
        "variables" | "inventory" => Type::Anything,
        _ => Type::Text,
    }
}

/// Reads `- module.Step: {…}`. `groups` and `workloads` are the names that it may refer to.
pub(crate) fn parse(node: &Node, phase: Phase, groups: &[&str], workloads: &[&str]) -> Result<Step, Problem> {
    let entries = node.expect_entries("a step")?;
    let [(key, given)] = entries else {
        return Err(Problem::new(node.line, "a step has one name, with its arguments below it"));
    };
    let written = key.expect_text("the name of a step")?;
    let line = key.line;
    let Some(kind) = KINDS.iter().find(|kind| kind.name == written) else {
        return Err(Problem::new(line, format!("there is no step {written}{}", hint(written, names()))));
    };
    let arguments = Arguments { kind, line, given };
    arguments.check(groups, workloads)?;
    let action = action(&arguments)?;
    Ok(Step { name: kind.name, line, phase, arguments: arguments.texts()?, action })
}

/// What a step is given.
struct Arguments<'a> {
    kind: &'static StepKind,
    line: u32,
    given: &'a Node,
}

impl Arguments<'_> {
    fn check(&self, groups: &[&str], workloads: &[&str]) -> Result<(), Problem> {
        let known = || self.kind.required.iter().chain(self.kind.optional).copied().chain(["annotate"]);
        let name = self.kind.name;
        for (key, value) in self.given.expect_entries(&format!("the arguments of {name}"))? {
            let written = key.expect_text("an argument")?;
            if !known().any(|known| known == written) {
                return Err(Problem::new(
                    key.line,
                    format!("{name} has no argument {written}{}", hint(written, known())),
                ));
            }
            if value.is_null() {
                continue;
            }
            match type_of(written) {
                Type::Number => value.expect_number(written).map(|_| ())?,
                Type::Count => value.expect_count(written).map(|_| ())?,
                Type::Boolean => value.expect_boolean(written).map(|_| ())?,
                Type::Text => value.expect_text(written).map(|_| ())?,
                Type::Anything => {}
            }
        }
        for required in self.kind.required {
            if self.given.get(required).is_none() {
                return Err(Problem::new(self.line, format!("{name} needs {required}")));
            }
        }
        for (argument, defined, what) in
            [("vm_group_name", groups, "VM group"), ("workload_name", workloads, "workload")]
        {
            let Some(value) = self.given.get(argument) else { continue };
            let text = value.expect_text(argument)?;
            if !defined.contains(&text) {
                return Err(Problem::new(
                    value.line,
                    format!("there is no {what} {text:?}{}", hint(text, defined.iter().copied())),
                ));
            }
        }
        Ok(())
    }

    fn texts(&self) -> Result<Vec<(String, String)>, Problem> {
        let entries = self.given.expect_entries("the arguments")?;
        Ok(entries
            .iter()
            .filter_map(|(key, value)| Some((key.text()?.to_owned(), value.text()?.to_owned())))
            .collect())
    }

    fn text(&self, name: &str) -> Result<String, Problem> {
        self.given
            .get(name)
            .map_or_else(|| Ok(String::new()), |node| node.expect_text(name).map(ToOwned::to_owned))
    }

    /// A number of seconds or minutes that is not negative.
    fn time(&self, name: &str) -> Result<Option<f64>, Problem> {
        let Some(node) = self.given.get(name) else { return Ok(None) };
        let value = node.expect_number(name)?;
        // Ten years: more is a mistake, and would overflow what is computed with it.
        if (0.0..=315_360_000.0).contains(&value) {
            Ok(Some(value))
        } else {
            Err(Problem::new(node.line, format!("{name} must be from 0 to ten years, not {value}")))
        }
    }

    fn count(&self, name: &str) -> Result<Option<u32>, Problem> {
        self.given.get(name).map(|node| node.expect_count(name)).transpose()
    }

    fn flag(&self, name: &str) -> Result<bool, Problem> {
        self.given.get(name).map_or(Ok(false), |node| node.expect_boolean(name))
    }
}

fn action(step: &Arguments<'_>) -> Result<Action, Problem> {
    let problem = |message: String| Problem::new(step.line, message);
    Ok(match step.kind.name {
        "vm_group.PowerOn" => Action::PowerOnGroup,
        "vm_group.PowerOff" => Action::PowerOffGroup { group: step.text("vm_group_name")? },
        "vm_group.Grow" => {
            let count = match (step.count("count_per_node")?, step.count("count_per_cluster")?) {
                (Some(count), None) => Count::PerNode(count),
                (None, Some(count)) => Count::PerCluster(count),
                _ => return Err(problem("vm_group.Grow needs count_per_node or count_per_cluster".into())),
            };
            Action::Grow { group: step.text("vm_group_name")?, count }
        }
        // A fill step is done when the next one begins: there is nothing left to wait for.
        "workload.PrefillRun" | "workload.PrefillStart" => {
            Action::Prefill { workload: step.text("workload_name")? }
        }
        "workload.Start" => {
            let start = Start {
                workload: step.text("workload_name")?,
                runtime: step.time("runtime_secs")?.filter(|seconds| *seconds > 0.0),
                timeout: step.time("timeout_secs")?,
                background: step.flag("async")?,
                stagger: step.time("stagger_secs")?.unwrap_or(0.0),
                seed: step.count("seed")?,
            };
            if let (true, Some(timeout)) = (start.background, step.given.get("timeout_secs")) {
                return Err(Problem::new(
                    timeout.line,
                    "timeout_secs has no effect on a workload that starts with async",
                ));
            }
            Action::Start(start)
        }
        "workload.Wait" => {
            Action::Wait { workload: step.text("workload_name")?, timeout: step.time("timeout_secs")? }
        }
        "workload.Stop" => Action::Stop { workload: step.text("workload_name")? },
        "test.Wait" => match step.time("duration_secs")? {
            Some(seconds) if seconds > 0.0 => Action::Pause { seconds },
            _ => return Err(problem("duration_secs must be greater than 0".into())),
        },
        "vm_group.CreatePeriodicSnapshots" => {
            let count = step.count("num_snapshots")?.unwrap_or(0);
            if !(1..=10_000).contains(&count) {
                return Err(problem(format!("num_snapshots must be from 1 to 10000, not {count}")));
            }
            let interval = step.time("interval_minutes")?.unwrap_or(0.0) * 60.0;
            Action::Snapshots { count, interval, background: step.flag("async")? }
        }
        "experimental.Shell"
        | "meta.RollingUpgrade"
        | "playbook.Run"
        | "vm_group.MigrateGroup"
        | "vm_group.RelocateGroupDatastore"
        | "vm_group.RunCommand" => Action::External,
        "workload.PrefillWait" => Action::Done,
        name if name.starts_with("nodes.") => Action::External,
        _ => Action::Nothing,
    })
}
