//! Whether the device takes writes anywhere.

use kelvin_storage::Direction;
use kelvin_storage::probe::{ProbedTargetKind, StorageFacts};

use super::{IoFindingDefinition, devices_of};
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-zoned",
    question: "Does the device accept writes anywhere, or only sequentially within each zone?",
    find,
};

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let mut found = Vec::new();
    for job in facts.jobs.iter().filter(|job| job.does[Direction::Write] && job.random) {
        let raw = job.targets.iter().any(|place| {
            facts.targets.get(*place).is_some_and(|target| target.kind == ProbedTargetKind::Block)
        });
        for device in devices_of(facts, job).filter(|_| raw) {
            let severity = match device.queue.zoned.as_deref() {
                Some("host-managed") => Severity::Red,
                Some("host-aware") => Severity::Amber,
                _ => continue,
            };
            let zone = device
                .queue
                .chunk
                .map_or_else(|| "unknown".into(), |bytes| super::text::storage(bytes as f64));
            found.push(Finding {
                id: ABOUT.id,
                severity,
                point: None,
                title: format!(
                    "Job {} writes at random to {}, whose zones must be written in order",
                    job.name, device.disk
                ),
                evidence: vec![
                    EvidenceLine::new(
                        format!("queue/zoned of {}", device.disk),
                        device.queue.zoned.clone().unwrap_or_default(),
                    ),
                    EvidenceLine::new("zone size", zone),
                ],
                effect: Effect::unknown(
                    "such writes are rejected, or reorganized inside the device, which reports nothing about \
                        it",
                ),
                below_precision: false,
                threshold: "queue/zoned: a host-managed device rejects such writes; a host-aware device \
                    accepts them but reorganizes the data later"
                    .into(),
                next:
                    "Write sequentially zone by zone (`rw=write`), or put a filesystem for zoned devices on \
                    it and measure that."
                        .into(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::staged::{before, severities};
    use super::*;

    #[test]
    fn random_writes_to_a_zoned_device_are_refused() {
        let with = |zoned: &str, kind| {
            let mut facts = before();
            facts.devices[0].queue.zoned = Some(zoned.into());
            facts.targets[0].kind = kind;
            severities(&ABOUT, &facts)
        };
        assert_eq!(with("none", ProbedTargetKind::Block), []);
        assert_eq!(with("host-managed", ProbedTargetKind::Block), [Severity::Red]);
        assert_eq!(with("host-aware", ProbedTargetKind::Block), [Severity::Amber]);
        assert_eq!(with("host-managed", ProbedTargetKind::File), [], "its filesystem knows");
    }
}
