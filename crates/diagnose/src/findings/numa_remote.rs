//! Is memory on one node and the work on another?

use super::FindingDefinition;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};
use kelvin_measure::text;
use kelvin_observe::metric;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "numa-remote",
    question: "Is memory local to the CPUs that use it, and evenly spread?",
    find,
};

/// Share of remote allocations, and the fullest node against the mean (METHOD B6).
const REMOTE: f64 = 0.2;
pub(crate) const SKEW: f64 = 1.3;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

/// The nodes with their share of the server's memory.
fn placement(evidence: &Evidence) -> Vec<(String, f64)> {
    let node =
        |name: &str| Some((name.strip_prefix(metric::SERVER_NODES)?.to_owned(), evidence.newest(name)?));
    evidence.names(metric::SERVER_NODES, "").filter_map(node).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let remote = evidence.mean(point, metric::REMOTE_MEMORY);
    let nodes = placement(evidence);
    let mean = nodes.iter().map(|(_, share)| share).sum::<f64>() / nodes.len().max(1) as f64;
    let fullest = nodes.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let skew = fullest.filter(|_| nodes.len() > 1 && mean > 0.0).map(|(_, share)| share / mean);
    let (is_remote, is_skewed) = (remote.is_some_and(|r| r > REMOTE), skew.is_some_and(|skew| skew > SKEW));
    if !is_remote && !is_skewed {
        return None;
    }
    let mut facts = Vec::new();
    facts.extend(remote.map(|remote| {
        EvidenceLine::new("pages allocated for CPUs of another NUMA node", text::percent(remote))
    }));
    facts.extend(nodes.iter().map(|(node, share)| {
        EvidenceLine::new(format!("server's memory on NUMA node {node}"), text::percent(*share))
    }));
    facts.extend(skew.map(|skew| {
        EvidenceLine::new("fullest node, relative to the mean", format!("{} ×", text::number(skew)))
    }));
    let title = if is_remote {
        format!(
            "{} of the memory was allocated for CPUs of another NUMA node",
            text::percent(remote.unwrap_or(0.0))
        )
    } else {
        format!(
            "The server's memory is spread unevenly: the fullest NUMA node has {} × the mean",
            text::number(skew.unwrap_or(0.0))
        )
    };
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: Some(point),
        title,
        evidence: facts,
        effect: Effect::unknown(
            "the time of remote accesses is not measured; other studies found 4.5 to 7 % of the throughput",
        ),
        below_precision: false,
        threshold: "more than 20 % of the pages remote, or a NUMA node with more than 1.3 × the mean (the \
            verdict's own threshold); remote memory cost 4.5 to 7 % of the throughput in a study "
            .into(),
        next: "Start the server with `numactl --interleave=all`, or bind the server and its memory to one \
            NUMA node, and state which with the result."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn title(staged: Staged) -> Option<String> {
        let found = find(&staged.done());
        assert!(found.iter().all(|finding| finding.severity == Severity::Amber));
        found.first().map(|finding| finding.title.clone())
    }

    #[test]
    fn remote_or_uneven_memory_is_reported() {
        assert!(title(Staged::new().metric("host.numa.total.remote_ratio", 0.35)).unwrap().contains("35 %"));
        let uneven =
            Staged::new().metric("host.process.server.numa.0", 0.9).metric("host.process.server.numa.1", 0.1);
        assert!(title(uneven).unwrap().contains("1.80 ×"));
    }

    #[test]
    fn even_local_or_unknown_memory_is_nothing() {
        let even = Staged::new()
            .metric("host.process.server.numa.0", 0.55)
            .metric("host.process.server.numa.1", 0.45);
        assert_eq!(title(even.metric("host.numa.total.remote_ratio", 0.02)), None);
        assert_eq!(title(Staged::new().metric("host.process.server.numa.0", 1.0)), None);
        assert_eq!(title(Staged::new()), None);
    }
}
