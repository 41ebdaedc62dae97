//! The figures that a study may ask for.

use kelvin_diagnose::metric::SOURCES;
use kelvin_diagnose::{IO_FIGURES, KEY_FIGURES};

use kelvin_run::spec::{Spec, WorkloadName};

/// The id of a workload's headline figure.
pub(super) fn headline(spec: &Spec) -> &'static str {
    spec.workload.headline()
}

/// Whether it is one of the key figures, and not an observed metric.
pub(super) fn is_key_figure(spec: &Spec, id: &str) -> bool {
    id == headline(spec) || figures(spec).contains(&id)
}

/// The key figures of a workload beside its headline.
fn figures(spec: &Spec) -> &'static [&'static str] {
    if spec.workload == WorkloadName::Io { &IO_FIGURES } else { &KEY_FIGURES }
}

/// Refuses what no run of this workload can have.
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
        spec.workload.as_str(),
        headline(spec),
        figures(spec).join(", ")
    ))
}
