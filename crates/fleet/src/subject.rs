//! The NATS subjects of a fleet. All are below `kelvin.LAB`, so that several fleets can share a server. Names
//! chosen by users become parts of subjects and are checked first.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest name of an agent or a lab, in characters.
const LONGEST: usize = 63;

/// A name of an agent, a lab or a run: letters, digits, `-` and `_`. It is one token of a subject.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A name made from a host's name, with other characters replaced; `None` if nothing remains.
    pub fn of_host(host: &str) -> Option<Self> {
        let part = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
        host.chars().take(LONGEST).map(part).collect::<String>().parse().ok()
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if text.is_empty() || text.len() > LONGEST || !text.chars().all(allowed) {
            return Err(format!(
                "{text:?} is not a name: use 1 to {LONGEST} letters, digits, - and _ (a subject of NATS has no others)"
            ));
        }
        Ok(Self(text.into()))
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The subjects of one lab.
#[derive(Debug, Clone)]
pub(crate) struct Subjects {
    lab: Name,
}

impl Subjects {
    /// The subjects of this lab.
    pub(crate) fn for_lab(lab: &Name) -> Self {
        Self { lab: lab.clone() }
    }

    /// The lab.
    pub(crate) fn lab(&self) -> &Name {
        &self.lab
    }

    /// The beats of all agents.
    pub(crate) fn beats(&self) -> String {
        format!("kelvin.{}.agents.beat.*", self.lab)
    }

    /// The beats of an agent.
    pub(crate) fn beat(&self, agent: &Name) -> String {
        format!("kelvin.{}.agents.beat.{agent}", self.lab)
    }

    /// Requests a beat from all agents.
    pub(crate) fn hello(&self) -> String {
        format!("kelvin.{}.agents.hello", self.lab)
    }

    /// Commands to an agent, each of which is answered.
    pub(crate) fn command(&self, agent: &Name) -> String {
        format!("kelvin.{}.agent.{agent}.cmd", self.lab)
    }

    /// Clock requests to an agent.
    pub(crate) fn clock(&self, agent: &Name) -> String {
        format!("kelvin.{}.agent.{agent}.clock", self.lab)
    }

    /// The controller's beats of a run.
    pub(crate) fn controller(&self, run: &Name) -> String {
        format!("kelvin.{}.run.{run}.controller", self.lab)
    }

    /// The stored messages of an agent about a run.
    pub(crate) fn output(&self, run: &Name, agent: &Name) -> String {
        format!("kelvin.{}.run.{run}.out.{agent}", self.lab)
    }

    /// The stored messages of all agents about a run.
    pub(crate) fn outputs(&self, run: &Name) -> String {
        format!("kelvin.{}.run.{run}.out.*", self.lab)
    }

    /// The stream that stores a run.
    pub(crate) fn stream(&self, run: &Name) -> String {
        format!("{}{run}", self.streams())
    }

    /// The common prefix of the names of these streams.
    pub(crate) fn streams(&self) -> String {
        format!("KELVIN_{}_", self.lab)
    }

    /// The bucket of the object store for an agent's store of a run.
    pub(crate) fn bucket(&self, agent: &Name) -> String {
        format!("KELVIN_{}_of_{agent}", self.lab)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_subject() {
        for bad in ["", "a.b", "*", ">", "a b", "ä", &"x".repeat(64)] {
            assert!(bad.parse::<Name>().unwrap_err().contains("not a name"), "{bad}");
            assert!(serde_json::from_value::<Name>(bad.into()).is_err(), "{bad}");
        }
        let (lab, agent): (Name, Name) = ("lab".parse().unwrap(), "db-1".parse().unwrap());
        assert_eq!(Subjects::for_lab(&lab).command(&agent), "kelvin.lab.agent.db-1.cmd");
        assert_eq!(Name::of_host("db1.example.org").unwrap().as_str(), "db1-example-org");
        assert_eq!(Name::of_host(""), None);
    }
}
