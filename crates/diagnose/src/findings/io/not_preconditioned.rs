//! Whether an SSD was written enough for its figure to last.

use kelvin_measure::text;
use kelvin_storage::Direction;
use kelvin_storage::probe::{LayerKind, StorageFacts};

use super::{IoFindingDefinition, devices_of, doing};
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-not-preconditioned",
    question: "Was the SSD preconditioned enough for a sustained result?",
    find,
};

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for job in doing(facts, Direction::Write).filter(|job| job.direct && job.random) {
        for device in devices_of(facts, job) {
            let memory =
                device.layers.iter().any(|layer| matches!(layer.kind, LayerKind::Zram | LayerKind::RamDisk));
            let written = facts.run.as_ref().map_or(0, |run| run.claimed[Direction::Write]);
            let title = format!(
                "Random writes to {}, an SSD, without known preconditioning: the rate may fall later",
                device.disk
            );
            if device.queue.rotational != Some(false)
                || memory
                || device.size == 0
                || written >= device.size
                || found.iter().any(|known| known.title == title)
            {
                continue;
            }
            let mut evidence = vec![EvidenceLine::new(
                format!("size of {}", device.name),
                text::storage(device.size as f64),
            )];
            if facts.run.is_some() {
                evidence.push(EvidenceLine::new("written in this run", text::storage(written as f64)));
            }
            evidence.extend(device.model.as_ref().map(|model| EvidenceLine::new("model", model)));
            found.push(Finding {
                id: ABOUT.id,
                severity: Severity::Note,
                point: None,
                title,
                evidence,
                effect: Effect::unknown("the speed of the fully written device was not measured"),
                below_precision: false,
                threshold: "fewer bytes written in this run than the device holds; earlier writes are not \
                    known. SNIA's Performance Test Specification writes twice the capacity, and then until \
                    five rounds agree"
                    .into(),
                next: "For a sustained result, write the whole device twice sequentially, then at random \
                    until the rate is steady (`steadystate=`)."
                    .into(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, before, reading, run, severities};
    use super::*;

    #[test]
    fn writes_to_an_ssd_are_noted_until_it_was_written_over() {
        assert_eq!(severities(&ABOUT, &before()), [Severity::Note]);
        assert_eq!(severities(&ABOUT, &after()), [Severity::Note]);
        assert_eq!(severities(&ABOUT, &reading(before())), []);
        let mut disk = before();
        disk.devices[0].queue.rotational = Some(true);
        assert_eq!(severities(&ABOUT, &disk), []);
        let mut long = after();
        run(&mut long).claimed.0[1] = 65 << 30;
        assert_eq!(severities(&ABOUT, &long), []);
    }
}
