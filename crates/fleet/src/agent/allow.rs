//! What a controller may have an agent do: load on the targets of the agent's own lists, nothing else.

use std::path::Path;

use kelvin_database::target::Target;
use kelvin_run::Spec;
use kelvin_run::io::IoRun;
use kelvin_run::spec::{Build, Observe, Reset};

use super::allow_io::AllowedIo;
use crate::error::FleetError;

/// The databases, and the files and devices, that an agent puts load on.
#[derive(Debug, Clone)]
pub struct AllowedTargets {
    databases: Vec<String>,
    io: AllowedIo,
}

impl AllowedTargets {
    /// The databases of these texts, each as in `--target`, and what I/O jobs may do.
    ///
    /// # Errors
    /// When one is no target, or one that an agent cannot share with others.
    pub fn parse(texts: &[String], io: AllowedIo) -> Result<Self, FleetError> {
        let databases = texts.iter().map(|text| shared_target(text)).collect::<Result<_, _>>()?;
        Ok(Self { databases, io })
    }

    /// A specification that may be run, without what is the controller's alone: resets, builds, checks, observation, files.
    pub(super) fn check(&self, text: &str) -> Result<Spec, FleetError> {
        let mut spec = Spec::parse_received(text, "the run's specification")
            .map_err(|error| FleetError::Refused(error.to_string()))?;
        if spec.work.allows_shell() {
            return Err(FleetError::Refused("an agent runs no scripts with shell commands".into()));
        }
        if !spec.is_io() {
            let target = shared_target(spec.target.as_str())?;
            if !self.databases.contains(&target) {
                return Err(FleetError::Refused(format!(
                    "{target} is not an allowed target; start the agent with --allow-target {target}"
                )));
            }
        }
        spec.build = Build::Never;
        spec.check = false;
        spec.reset = Reset::default();
        spec.observe = Observe::default();
        spec.load.transaction_log = None;
        Ok(spec)
    }

    /// The I/O jobs of a checked specification, with their files and devices found; none of a database's.
    pub(super) fn open_jobs(
        &self,
        spec: &Spec,
        host: (u32, u32),
        aux: &Path,
    ) -> Result<Option<IoRun>, FleetError> {
        if spec.is_io() { self.io.open(spec, host, aux).map(Some) } else { Ok(None) }
    }
}

/// A target in its one spelling, without a password; a server or a file that is the same for every agent.
fn shared_target(text: &str) -> Result<String, FleetError> {
    let target = Target::parse(text).map_err(|error| FleetError::Refused(error.to_string()))?;
    match target {
        Target::ManagedPostgres { .. } | Target::ManagedMysql { .. } | Target::Sqlite { path: None } => {
            Err(FleetError::Refused(format!("{text}: the agents of a fleet need the URL of a server")))
        }
        target => Ok(target.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(target: &str) -> String {
        format!("workload = \"tproc-c\"\ntarget = \"{target}\"\n")
    }

    #[test]
    fn only_listed_targets_are_loaded() {
        let parse = |targets: &[String]| AllowedTargets::parse(targets, AllowedIo::default());
        let allowed = parse(&["postgres://u@db1:5432/tpcc".into()]).unwrap();
        let spec_found = allowed.check(&spec("postgres://u@db1/tpcc")).unwrap();
        assert_eq!(spec_found.build, Build::Never);
        for other in ["postgres://u@db1/other", "postgres://v@db1/tpcc", "postgres://u@db2/tpcc"] {
            let why = allowed.check(&spec(other)).unwrap_err().to_string();
            assert!(why.contains("--allow-target"), "{why}");
        }
        for unshared in ["postgres", "sqlite"] {
            assert!(parse(&[unshared.into()]).is_err());
            assert!(allowed.check(&spec(unshared)).unwrap_err().to_string().contains("URL"));
        }
        assert!(allowed.check("workload = 1").is_err());
    }
}
