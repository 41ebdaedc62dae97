//! Commands for steps that need a hypervisor.

use crate::fault::{Fault, Faults, Location, hint};
use crate::job::literal;
use crate::scenario::Scenario;
use crate::step::{self, Action, Step};
use crate::target::{Assignment, flag_fault};

/// The flags `--bind`, by the names of steps.
#[derive(Debug)]
pub(crate) struct Bindings<'a>(Vec<&'a Assignment>);

impl<'a> Bindings<'a> {
    /// Refuses names that are no steps, and steps that Kelvin does itself.
    pub(crate) fn new(bindings: &'a [Assignment]) -> Result<Self, Fault> {
        for (index, binding) in bindings.iter().enumerate() {
            let fault = |message: String| Err(flag_fault("--bind", binding, message));
            let name = binding.subject.as_str();
            if name.is_empty() || binding.value.trim().is_empty() {
                return fault("must be STEP=COMMAND, as nodes.PowerOff='virsh destroy node{nodes}'".into());
            }
            if !step::names().any(|known| known == name) {
                return fault(format!("there is no step {name}{}", hint(name, step::names())));
            }
            if name.starts_with("workload.") || name == "test.Wait" {
                return fault(format!("{name} needs no command: Kelvin does it itself"));
            }
            if bindings[..index].iter().any(|earlier| earlier.subject == name) {
                return fault(format!("{name} is bound twice"));
            }
        }
        Ok(Self(bindings.iter().collect()))
    }

    /// The command of a step.
    pub(crate) fn command(&self, step: &str) -> Option<&'a str> {
        self.0.iter().find(|binding| binding.subject == step).map(|binding| binding.value.as_str())
    }

    /// Refuses a scenario with steps that need a command and have none: all of them, before anything starts.
    pub(crate) fn require(&self, scenario: &Scenario) -> Result<(), Faults> {
        let needs = |step: &&Step| {
            matches!(step.action, Action::External | Action::Snapshots { .. })
                && self.command(step.name).is_none()
        };
        let faults: Vec<Fault> = scenario
            .steps
            .iter()
            .filter(needs)
            .map(|step| Fault {
                location: Location { file: scenario.file.clone(), line: step.line },
                message: refusal(step),
            })
            .collect();
        if faults.is_empty() { Ok(()) } else { Err(Faults(faults)) }
    }

    /// The names that are bound and are no steps of the scenario.
    pub(crate) fn unused(&self, scenario: &Scenario) -> Vec<&'a str> {
        let names = self.0.iter().map(|binding| binding.subject.as_str());
        names.filter(|name| !scenario.steps.iter().any(|step| step.name == *name)).collect()
    }

    /// A step's command with its arguments in it, quoted for the shell; for a scenario, in which `${` is doubled. `round`
    /// is the number of the snapshot, or what stands for it.
    pub(crate) fn fill_in(&self, step: &Step, round: Option<&str>) -> Result<String, String> {
        let mut rest = self.command(step.name).unwrap_or_default();
        let mut text = String::new();
        while let Some(position) = rest.find('{') {
            let (before, opened) = rest.split_at(position);
            text.push_str(&literal(before));
            let end = opened.find('}').unwrap_or(0);
            let name = opened.get(1..end).unwrap_or_default();
            let known =
                || step::arguments_of(step.name).is_some_and(|mut names| names.any(|known| known == name));
            let value = match (name, round) {
                // The shell's own braces.
                _ if before.ends_with('$') => None,
                ("snapshot", Some(round)) => Some(round.to_owned()),
                _ if known() => {
                    let value = step.argument(name);
                    let missing = || {
                        format!("the command for {} uses {{{name}}}, which the step does not have", step.name)
                    };
                    Some(literal(&quoted(value.ok_or_else(missing)?)))
                }
                _ => None,
            };
            if let Some(value) = value {
                text.push_str(&value);
                rest = &opened[end + 1..];
            } else {
                // A brace that begins what the scenario would replace is doubled.
                if text.ends_with('$') {
                    text.push('$');
                }
                text.push('{');
                rest = &opened[1..];
            }
        }
        text.push_str(&literal(rest));
        Ok(text)
    }
}

/// Why a step cannot be done, and what to do.
fn refusal(step: &Step) -> String {
    let name = step.name;
    let how = |command: &str| format!("bind it to a command: --bind {name}='{command}'");
    match name {
        "vm_group.RunCommand" => format!(
            "{name} runs a command on machines that do not exist; {} runs it on this host",
            how("sh -c {command}")
        ),
        "experimental.Shell" => {
            format!("{name} runs a command on X-Ray's host; {} runs it on this one", how("sh -c {cmd}"))
        }
        "playbook.Run" => format!(
            "{name} runs an Ansible playbook on machines that do not exist; {} (scripts of HammerDB are run by kelvin \
             hammerdb run)",
            how("ansible-playbook {filename}")
        ),
        "vm_group.CreatePeriodicSnapshots" => {
            format!("{name} needs a hypervisor; {}", how("lvcreate -s -n snap{snapshot} VOLUME"))
        }
        "vm_group.MigrateGroup" => {
            format!("{name} needs a hypervisor; {}", how("migrate {from_node} {to_node}"))
        }
        "meta.RollingUpgrade" => format!("{name} needs a hypervisor; {}", how("COMMAND")),
        name if name.starts_with("nodes.") => {
            format!("{name} needs a hypervisor; {}", how("COMMAND {nodes}"))
        }
        _ => format!("{name} needs a hypervisor; {}", how("COMMAND")),
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
