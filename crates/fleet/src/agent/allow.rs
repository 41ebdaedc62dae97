//! What an agent does for a controller: load on the targets of the agent's own lists, and nothing else.

use std::path::Path;

use kelvin_database::target::Target;
use kelvin_run::Spec;
use kelvin_run::io::IoRun;
use kelvin_run::spec::{Build, Observe, Reset};

use super::allow_io::AllowedIo;
use crate::error::FleetError;

/// The allowed databases, files and devices.
#[derive(Debug, Clone)]
pub struct AllowedTargets {
    databases: Vec<String>,
    io: AllowedIo,
}

impl AllowedTargets {
    /// Databases as in `--target`, and the allowed I/O.
    ///
    /// # Errors
    /// When a text is not a target, or a target that agents cannot share.
    pub fn parse(texts: &[String], io: AllowedIo) -> Result<Self, FleetError> {
        let databases = texts.iter().map(|text| shared_target(text)).collect::<Result<_, _>>()?;
        Ok(Self { databases, io })
    }

    /// Checks a specification and removes what only the controller does: resets, builds, checks, observation,
    /// files.
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

    /// Opens the files and devices of a checked specification's I/O jobs; `None` for a database load.
    pub(super) fn open_jobs(
        &self,
        spec: &Spec,
        host: (u32, u32),
        aux: &Path,
    ) -> Result<Option<IoRun>, FleetError> {
        if spec.is_io() { self.io.open(spec, host, aux).map(Some) } else { Ok(None) }
    }
}

/// The normalised text of a target, without a password. Only targets that are the same for every agent are
/// accepted.
fn shared_target(text: &str) -> Result<String, FleetError> {
    let target = Target::parse(text).map_err(|error| FleetError::Refused(error.to_string()))?;
    if target.is_managed() || target.is_temporary() {
        return Err(FleetError::Refused(format!("{text}: the agents of a fleet need the URL of a server")));
    }
    Ok(target.to_string())
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
