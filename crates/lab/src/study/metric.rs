//! The metrics that a study may use.

use kelvin_diagnose::metric::SOURCES;
use kelvin_run::Spec;

use crate::bench::key_figures;

/// Whether this is a key figure, and not an observed metric.
pub(super) fn is_key_figure(spec: &Spec, id: &str) -> bool {
    id == spec.workload().headline() || key_figures(spec).contains(&id)
}

/// Refuses a metric that no run of this workload can have.
pub(super) fn known(spec: &Spec, id: &str) -> Result<(), String> {
    let name = id.rsplit_once('/').map_or(id, |(_, name)| name);
    if is_key_figure(spec, id)
        || SOURCES.iter().any(|&begin| name.len() > begin.len() && name.starts_with(begin))
    {
        return Ok(());
    }
    Err(format!(
        "there is no metric \"{}\"; key figures of {} are {}, {}, and observed metrics have names such as \
         \"host.cpu.total.user\" or \"postgres.wal.bytes\"",
        id.escape_debug(),
        spec.workload().as_str(),
        spec.workload().headline(),
        key_figures(spec).join(", ")
    ))
}
