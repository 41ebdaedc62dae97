//! The file of a scenario, read and checked as a whole.

use std::path::{Path, PathBuf};

use kelvin_run::spec::{Observe, Work};
use serde::Deserialize;
use toml::de::{DeTable, DeValue};

use crate::document::{self, Names};
use crate::error::{Refusal, ScenarioError};
use crate::expectation::{self, Expectation};
use crate::parameter::{self, NOWHERE, Parameter};
use crate::step::{self, Action, Step};
use crate::tenant::{Tenant, Tenants};
use crate::timeline::Timeline;

/// A file longer than this is not a scenario.
const LONGEST_FILE: u64 = 16 << 20;

/// A scenario that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub description: Option<String>,
    /// A name to find its run by.
    pub label: Option<String>,
    /// Decides every random value.
    pub seed: u64,
    /// Whether a run counts although other work on the machine may explain much of its figures.
    pub accept_noise: bool,
    /// What is watched beside the loads.
    pub observe: Observe,
    /// What may be chosen, with its values.
    pub parameters: Vec<Parameter>,
    /// The loads.
    pub tenants: Vec<Tenant>,
    /// What is done, in its order.
    pub steps: Vec<Step>,
    /// What decides the exit code.
    pub expect: Vec<Expectation>,
    /// When the steps are planned.
    pub timeline: Timeline,
    /// Where commands are run.
    pub directory: PathBuf,
    /// The file's text.
    pub text: String,
}

/// The keys at the top that are no tables of their own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Head {
    scenario: String,
    description: Option<String>,
    label: Option<String>,
    #[serde(default = "one")]
    seed: u64,
    #[serde(default)]
    accept_noise: bool,
    #[serde(default)]
    observe: Observe,
}

fn one() -> u64 {
    1
}

/// Whether a file's text is that of a scenario and not of a specification.
pub fn is_scenario(text: &str) -> bool {
    // Of a text with a mistake the part that can be read decides who names the mistake.
    let (root, _) = DeTable::parse_recoverable(text);
    root.get_ref().contains_key("scenario")
}

impl Scenario {
    /// Reads a file. `chosen` are parameters by name, as the command line has them.
    ///
    /// # Errors
    /// When anything in it is wrong: with line and column.
    pub fn read(path: &Path, chosen: &[(String, String)]) -> Result<Self, ScenarioError> {
        let name = path.display().to_string();
        let refuse =
            |error: std::io::Error| ScenarioError::of_file(&name, format!("cannot be read: {error}"));
        let length = std::fs::metadata(path).map_err(refuse)?.len();
        if length > LONGEST_FILE {
            let why = format!("{length} bytes are too many for a scenario ({LONGEST_FILE} allowed)");
            return Err(ScenarioError::of_file(&name, why));
        }
        let text = std::fs::read_to_string(path).map_err(refuse)?;
        Self::parse(&text, &name, path.parent().unwrap_or(Path::new("")), chosen)
    }

    /// Parses the text of a file in `directory`; `name` is in the errors.
    ///
    /// # Errors
    /// Those of [`Scenario::read`].
    pub fn parse(
        text: &str,
        name: &str,
        directory: &Path,
        chosen: &[(String, String)],
    ) -> Result<Self, ScenarioError> {
        parse(text, directory, chosen).map_err(|(span, message)| {
            if span == NOWHERE {
                ScenarioError::of_file(name, message)
            } else {
                ScenarioError::at_span(name, text, (span, message))
            }
        })
    }
}

fn parse(text: &str, directory: &Path, chosen: &[(String, String)]) -> Result<Scenario, Refusal> {
    let parameters = parameters(text, chosen)?;
    let values: Vec<(&str, &str)> =
        parameters.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect();
    let mut names = Names::default();
    for (name, value) in values {
        let value = DeValue::parse(value).map_err(|error| document::refusal(&error, NOWHERE))?;
        names = names.with(name, value.into_inner());
    }
    let mut root = table(text)?;
    root.remove("parameters");
    let tenants = document::take_table(&mut root, "tenants")?;
    let steps = document::take_list(&mut root, "steps")?;
    let expect = document::take_list(&mut root, "expect")?;
    let head: Head = {
        let mut rest = toml::Spanned::new(0..0, DeValue::Table(root));
        names.put_into(&mut rest)?;
        document::read(rest)?
    };
    head.observe.validate().map_err(|why| (NOWHERE, why))?;
    if head.observe.deep {
        return Err((NOWHERE, "deep observation is not supported in a scenario".into()));
    }
    let (_, tenants) =
        tenants.ok_or((NOWHERE, "there is no tenant: a scenario needs [tenants.NAME]".into()))?;
    let mut tenants = Tenants::read(tenants, &names, directory, head.seed)?;
    let steps = step::read(steps, &names, &tenants)?;
    let expect = expectation::read(expect, &names, &tenants)?;
    for step in &steps {
        for &tenant in step.action.tenants() {
            let tenant = &mut tenants.all[tenant];
            match (&step.action, &mut tenant.spec.work) {
                (Action::Rate(..) | Action::Users(..), _) if tenant.host.is_some() => {
                    let why = "an agent does not change its load: set is for tenants on this host";
                    return Err((step.place..step.place + 1, format!("{}: {why}", tenant.name)));
                }
                (Action::Users(_, users), _) => tenant.users = tenant.users.max(*users),
                // The agent fills what is its own.
                (Action::Fill(_), Work::Io(io)) => io.prepare |= tenant.host.is_some(),
                _ => {}
            }
        }
    }
    if head.scenario.trim().is_empty() {
        return Err((NOWHERE, "scenario = \"\" is not a valid name".into()));
    }
    let timeline = Timeline::plan(&tenants.all, &steps)
        .map_err(|(place, why)| (place..place + usize::from(place > 0), why))?;
    Ok(Scenario {
        name: head.scenario,
        description: head.description,
        label: head.label,
        seed: head.seed,
        accept_noise: head.accept_noise,
        observe: head.observe,
        parameters,
        tenants: tenants.all,
        steps,
        expect,
        timeline,
        directory: directory.to_owned(),
        text: text.to_owned(),
    })
}

fn table(text: &str) -> Result<DeTable<'_>, Refusal> {
    Ok(DeTable::parse(text).map_err(|error| document::refusal(&error, NOWHERE))?.into_inner())
}

/// The parameters with their values.
fn parameters(text: &str, chosen: &[(String, String)]) -> Result<Vec<Parameter>, Refusal> {
    let mut found = Vec::new();
    if let Some((_, tables)) = document::take_table(&mut table(text)?, "parameters")? {
        for (name, value) in tables {
            let name = name.into_inner();
            if ["copy", "each", "round"].contains(&name.as_ref()) {
                return Err((value.span(), format!("\"{name}\" is reserved for copies and rounds")));
            }
            let chosen =
                chosen.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
            found.push(Parameter::read(&name, value, chosen)?);
        }
    }
    match chosen.iter().find(|(name, _)| found.iter().all(|one| one.name != *name)) {
        Some((name, _)) => Err((NOWHERE, parameter::unknown(name, &found))),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests;
