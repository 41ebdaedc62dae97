//! A specification as its file has it: the name of a workload, and a table for each.

use kelvin_workload::{pgbench, scan, tproc_c, tproc_h};
use serde::{Deserialize, Serialize};

use crate::{
    Build, IoOptions, Load, Observe, Reset, ScriptOptions, Spec, TargetName, Work, WorkloadName, is_false,
};

/// The keys of the file, each checked by itself; one that is none is not written. `L` is its load: [`Load`] where it is
/// read, [`LoadTable`] where it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SpecFile<L = Load> {
    workload: WorkloadName,
    target: Option<TargetName>,
    label: Option<String>,
    build: Option<Build>,
    check: Option<bool>,
    #[serde(default, skip_serializing_if = "is_false")]
    accept_noise: bool,
    #[serde(default)]
    load: L,
    #[serde(default)]
    observe: Observe,
    reset: Option<Reset>,
    tproc_c: Option<tproc_c::Options>,
    tproc_h: Option<tproc_h::Options>,
    pgbench: Option<pgbench::Options>,
    script: Option<ScriptOptions>,
    scan: Option<scan::Options>,
    io: Option<IoOptions>,
}

/// The load as it is written: whole, or of I/O jobs, whose own text says how the load is put on, the seed.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum LoadTable<'a> {
    Whole(&'a Load),
    Seed {
        #[serde(with = "kelvin_measure::seed")]
        seed: u64,
    },
}

impl SpecFile {
    /// The specification with the table of its workload; an error names the table of another.
    pub(crate) fn into_spec(self) -> Result<Spec, String> {
        let given = [
            self.tproc_c.is_some(),
            self.tproc_h.is_some(),
            self.pgbench.is_some(),
            self.script.is_some(),
            self.scan.is_some(),
            self.io.is_some(),
        ];
        let given = WorkloadName::ALL.into_iter().zip(given).filter(|(_, given)| *given);
        if let Some((other, _)) = given.into_iter().find(|(name, _)| *name != self.workload) {
            let (other, workload) = (other.as_str(), self.workload.as_str());
            return Err(format!("[{other}] does not apply to the workload \"{workload}\""));
        }
        Ok(Spec {
            target: self.target.unwrap_or_else(|| self.workload.target()),
            label: self.label,
            build: self.build.unwrap_or_default(),
            check: self.check.unwrap_or_default(),
            accept_noise: self.accept_noise,
            load: self.load,
            observe: self.observe,
            reset: self.reset.unwrap_or_default(),
            work: match self.workload {
                WorkloadName::TprocC => Work::TprocC(self.tproc_c.unwrap_or_default()),
                WorkloadName::TprocH => Work::TprocH(self.tproc_h.unwrap_or_default()),
                WorkloadName::Pgbench => Work::Pgbench(self.pgbench.unwrap_or_default()),
                WorkloadName::Script => Work::Script(self.script.unwrap_or_default()),
                WorkloadName::Scan => Work::Scan(self.scan.unwrap_or_default()),
                WorkloadName::Io => Work::Io(self.io.unwrap_or_default()),
            },
        })
    }
}

impl<'a> SpecFile<LoadTable<'a>> {
    /// The file with the table of its own workload only, and of I/O jobs without what only a database has.
    pub(crate) fn from_spec(spec: &'a Spec) -> Self {
        let (io, seed) = (spec.is_io(), spec.load.seed);
        let mut file = Self {
            workload: spec.workload(),
            target: (!io).then(|| spec.target.clone()),
            label: spec.label.clone(),
            build: (!io).then_some(spec.build),
            check: (!io).then_some(spec.check),
            accept_noise: spec.accept_noise,
            load: if io { LoadTable::Seed { seed } } else { LoadTable::Whole(&spec.load) },
            observe: spec.observe.clone(),
            reset: Some(&spec.reset).filter(|reset| **reset != Reset::default()).cloned(),
            tproc_c: None,
            tproc_h: None,
            pgbench: None,
            script: None,
            scan: None,
            io: None,
        };
        match spec.work.clone() {
            Work::TprocC(options) => file.tproc_c = Some(options),
            Work::TprocH(options) => file.tproc_h = Some(options),
            Work::Pgbench(options) => file.pgbench = Some(options),
            Work::Script(options) => file.script = Some(options),
            Work::Scan(options) => file.scan = Some(options),
            Work::Io(options) => file.io = Some(options),
        }
        file
    }
}
