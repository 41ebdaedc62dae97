//! Whether the workers run where the device is attached.

use kelvin_storage::probe::{DeviceFacts, JobFacts, StorageFacts};

use super::{IoFindingDefinition, devices_of, is_null};
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-numa",
    question: "Do the workers run on the NUMA node that the device is attached to?",
    find,
};

fn find(facts: &StorageFacts) -> Vec<Finding> {
    if facts.host.nodes < 2 {
        return Vec::new();
    }
    let jobs = facts.jobs.iter().filter(|job| !is_null(job));
    jobs.filter_map(|job| devices_of(facts, job).find_map(|device| of_device(facts, job, device))).collect()
}

fn of_device(facts: &StorageFacts, job: &JobFacts, device: &DeviceFacts) -> Option<Finding> {
    let node = device.node?;
    let (severity, title) = if job.nodes.is_empty() {
        (
            Severity::Note,
            format!("Job {} may run on any NUMA node; {} is attached to node {node}", job.name, device.disk),
        )
    } else if job.nodes == [node] {
        return None;
    } else {
        (
            Severity::Amber,
            format!(
                "Job {} does not run on NUMA node {node}, to which {} is attached",
                job.name, device.disk
            ),
        )
    };
    let nodes: Vec<String> = job.nodes.iter().map(ToString::to_string).collect();
    let bound = if nodes.is_empty() { "none".into() } else { nodes.join(", ") };
    Some(Finding {
        id: ABOUT.id,
        severity,
        point: None,
        title,
        evidence: vec![
            EvidenceLine::new("NUMA nodes of the machine", facts.host.nodes.to_string()),
            EvidenceLine::new(format!("NUMA node of {}", device.disk), node.to_string()),
            EvidenceLine::new("NUMA nodes that the job is bound to", bound),
        ],
        effect: Effect::unknown("the time that the path between NUMA nodes takes is not measured separately"),
        below_precision: false,
        threshold: "the NUMA node of the device (device/numa_node in sysfs) differs from the nodes of the \
            job's CPUs"
            .into(),
        next: format!("Bind the job with `numa_cpu_nodes={node}`, and compare."),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::{before, severities};
    use super::*;

    #[test]
    fn nodes_matter_where_there_are_several() {
        let with = |nodes, bound: &[u32]| {
            let mut facts = before();
            (facts.host.nodes, facts.devices[0].node, facts.jobs[0].nodes) = (nodes, Some(1), bound.to_vec());
            severities(&ABOUT, &facts)
        };
        assert_eq!(with(1, &[]), []);
        assert_eq!(with(2, &[]), [Severity::Note]);
        assert_eq!(with(2, &[1]), []);
        assert_eq!(with(2, &[0]), [Severity::Amber]);
    }
}
