//! Do all of the server's workers run on one node while the others are idle?
//!
//! Short-lived connections between the lasting ones can do it: a server that deals its connections out to nodes in turn
//! then gives every lasting one to the same node.

use kelvin_observe::metric;

use super::FindingDefinition;
use super::numa_remote::SKEW;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity};
use kelvin_measure::text;

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "numa-skew", question: "Is the work spread evenly over the NUMA nodes?", find };

/// With less to do on the busiest node there is nothing to spread: a few users fit on one.
const BUSY: f64 = 0.6;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    // Where the host is not seen, the nodes as the server counts them.
    let of_host = crate::load::server_metric_name(evidence, metric::NODES);
    let of_host = of_host.filter(|name| evidence.names(name, ".busy").next().is_some());
    let by_server = of_host.is_none();
    let name = of_host.unwrap_or_else(|| metric::NUMA.to_owned());
    let mut nodes: Vec<(&str, f64)> = evidence
        .names(&name, ".busy")
        .filter_map(|full| {
            let node = full.strip_prefix(&name)?.strip_suffix(".busy")?;
            Some((node, evidence.mean(point, full)?))
        })
        .collect();
    nodes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (busiest, busy) = *nodes.first()?;
    let mean = nodes.iter().map(|(_, busy)| busy).sum::<f64>() / nodes.len() as f64;
    if nodes.len() < 2 || busy < BUSY || busy <= SKEW * mean {
        return None;
    }
    let mut facts: Vec<EvidenceLine> = nodes
        .iter()
        .map(|(node, busy)| EvidenceLine::new(format!("CPUs of NUMA node {node} busy"), text::percent(*busy)))
        .collect();
    facts.push(EvidenceLine::new(
        "busiest node, relative to the mean",
        format!("{} ×", text::number(busy / mean)),
    ));
    if by_server {
        facts.extend(nodes.iter().filter_map(|(node, _)| {
            let connections = evidence.mean(point, &format!("{name}{node}.connections"))?;
            Some(EvidenceLine::new(
                format!("connections of the load on NUMA node {node}"),
                text::number(connections),
            ))
        }));
    }
    let remote = evidence.mean(point, &format!("{name}total.remote_ratio"));
    facts.extend(remote.map(|share| {
        EvidenceLine::new("memory allocated for CPUs of another NUMA node", text::percent(share))
    }));
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: Some(point),
        title: format!(
            "The work was not spread over the NUMA nodes: node {busiest} was {} busy, all nodes {} on \
                average",
            text::percent(busy),
            text::percent(mean)
        ),
        evidence: facts,
        effect: Effect::up_to(1.0 - mean / busy, EffectBasis::Throughput),
        below_precision: false,
        threshold:
            "a NUMA node whose CPUs are 60 % busy or more, and more than 1.3 × as busy as the mean of \
            all nodes"
                .into(),
        next: "Check what binds the server to the node (numactl, a service's CPUAffinity, a cpuset). If the \
            server assigns connections to nodes in turn, check whether short-lived monitoring connections \
            disturb the order; if the skew is intended, state it with the result."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn nodes(busy: &[f64]) -> Staged {
        busy.iter()
            .enumerate()
            .fold(Staged::new().metric("host.process.server.threads", 9.0), |staged, (node, busy)| {
                staged.metric(&format!("host.numa.{node}.busy"), *busy)
            })
    }

    fn title(staged: Staged) -> Option<String> {
        let found = find(&staged.done());
        assert!(found.iter().all(|finding| finding.severity == Severity::Amber));
        found.first().map(|finding| finding.title.clone())
    }

    #[test]
    fn all_workers_on_one_node_of_two_are_reported() {
        let found = title(nodes(&[0.07, 0.95])).unwrap();
        assert!(found.contains("node 1 was 95 % busy, all nodes 51 %"), "{found}");
        assert!(title(nodes(&[0.9, 0.9, 0.9, 0.1])).is_none(), "0.9 is 1.29 × the mean");
    }

    #[test]
    fn nodes_by_the_servers_count_come_with_the_loads_connections() {
        let staged = Staged::new()
            .metric("sqlserver.numa.0.busy", 0.05)
            .metric("sqlserver.numa.1.busy", 0.9)
            .metric("sqlserver.numa.0.connections", 0.0)
            .metric("sqlserver.numa.1.connections", 64.0);
        let found = find(&staged.done());
        assert!(found[0].title.contains("node 1 was 90 % busy"), "{}", found[0].title);
        assert!(found[0].evidence.iter().any(|fact| fact.what.contains("connections") && fact.found == "64"));
    }

    #[test]
    fn even_idle_or_single_nodes_are_nothing() {
        for busy in [&[0.9, 0.8][..], &[0.3, 0.0], &[1.0], &[]] {
            assert_eq!(title(nodes(busy)), None, "{busy:?}");
        }
    }
}
