//! What a controller may have an agent do: load on the targets of the agent's own list, nothing else.

use kelvin_database::target::Target;
use kelvin_run::Spec;
use kelvin_run::spec::{Build, Observe, Reset};

use crate::error::FleetError;

/// The databases that an agent puts load on.
#[derive(Debug, Clone)]
pub struct AllowedTargets(Vec<String>);

impl AllowedTargets {
    /// Those of these texts, each as in `--target`.
    ///
    /// # Errors
    /// When one is no target, or one that an agent cannot share with others.
    pub fn parse(texts: &[String]) -> Result<Self, FleetError> {
        texts.iter().map(|text| shared_target(text)).collect::<Result<_, _>>().map(Self)
    }

    /// A specification that may be run, without what is the controller's alone: resets, builds, checks, observation, files.
    pub(super) fn check(&self, text: &str) -> Result<Spec, FleetError> {
        let mut spec = Spec::parse(text, "the run's specification")
            .map_err(|error| FleetError::Refused(error.to_string()))?;
        let target = shared_target(spec.target.as_str())?;
        if !self.0.contains(&target) {
            return Err(FleetError::Refused(format!(
                "{target} is not a target that it may put load on; start it with --allow-target {target}"
            )));
        }
        if spec.is_io() || spec.work.allows_shell() {
            return Err(FleetError::Refused(
                "an agent runs no I/O jobs and no scripts with shell commands".into(),
            ));
        }
        spec.build = Build::Never;
        spec.check = false;
        spec.reset = Reset::default();
        spec.observe = Observe::default();
        spec.load.transaction_log = None;
        Ok(spec)
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
        let allowed = AllowedTargets::parse(&["postgres://u@db1:5432/tpcc".into()]).unwrap();
        let spec_found = allowed.check(&spec("postgres://u@db1/tpcc")).unwrap();
        assert_eq!(spec_found.build, Build::Never);
        for other in ["postgres://u@db1/other", "postgres://v@db1/tpcc", "postgres://u@db2/tpcc"] {
            let why = allowed.check(&spec(other)).unwrap_err().to_string();
            assert!(why.contains("--allow-target"), "{why}");
        }
        for unshared in ["postgres", "sqlite"] {
            assert!(AllowedTargets::parse(&[unshared.into()]).is_err());
            assert!(allowed.check(&spec(unshared)).unwrap_err().to_string().contains("URL"));
        }
        assert!(allowed.check("workload = 1").is_err());
    }
}
