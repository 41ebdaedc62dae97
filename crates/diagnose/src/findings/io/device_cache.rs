//! Whether the region is so small that it may fit in the device's own cache.

use kelvin_measure::text;
use kelvin_storage::probe::{LayerKind, StorageFacts};

use super::{IoFindingDefinition, device_of, share};
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-device-cache",
    question: "Is the region too large for the device's own caches?",
    find,
};

/// Share of the device. Caches of drives, controllers and hypervisors are a few thousandths to a few hundredths.
const SMALL: f64 = 0.1;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for device in &facts.devices {
        let memory =
            device.layers.iter().any(|layer| matches!(layer.kind, LayerKind::Zram | LayerKind::RamDisk));
        let targets = || {
            facts.targets.iter().filter(|target| {
                target.direct && device_of(facts, target).is_some_and(|its| its.name == device.name)
            })
        };
        let span: u64 = targets().map(kelvin_storage::probe::TargetFacts::span).sum();
        let part = share(span, device.size);
        if memory || device.size == 0 || span == 0 || part >= SMALL {
            continue;
        }
        let mut evidence = vec![
            EvidenceLine::new(format!("region on {}", device.name), text::storage(span as f64)),
            EvidenceLine::new(format!("size of {}", device.name), text::storage(device.size as f64)),
        ];
        evidence.extend(
            facts
                .host
                .memory
                .map(|memory| EvidenceLine::new("memory of the machine", text::storage(memory as f64))),
        );
        evidence.extend(
            device
                .queue
                .write_cache
                .as_ref()
                .map(|cache| EvidenceLine::new("write cache of the device", cache)),
        );
        found.push(Finding {
            id: ABOUT.id,
            severity: Severity::Note,
            point: None,
            title: format!(
                "The jobs use {} of the {} of {}: a cache in the device or hypervisor may hold this region",
                text::storage(span as f64),
                text::storage(device.size as f64),
                device.name
            ),
            evidence,
            effect: Effect::unknown("no counter shows the device's own caches"),
            below_precision: false,
            threshold: "a region smaller than 10 % of the device: no counter shows such caches".into(),
            next: "Use a region of at least 10 % of the device, and compare: if the result is the same, no \
                cache served the I/O."
                .into(),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::staged::{before, buffered, severities};
    use super::*;

    #[test]
    fn a_small_part_of_a_device_is_reported() {
        assert_eq!(severities(&ABOUT, &before()), []);
        let mut small = before();
        small.targets[0].region.1 = 1 << 30;
        assert_eq!(severities(&ABOUT, &small), [Severity::Note]);
        assert_eq!(severities(&ABOUT, &buffered(small)), []);
    }
}
