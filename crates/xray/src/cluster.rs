//! The cluster that is imitated: how many nodes it has, and how many machines of each group.

use std::collections::BTreeMap;

use crate::fault::{Fault, Location};
use crate::nodes;
use crate::scenario::{Group, Scenario};
use crate::step::{Action, Count};

/// Machines of a group: more cannot be imitated by one host.
const MOST_COPIES: u32 = 1000;

/// The number of nodes: the given one, or the smallest in which every selection names a node.
pub(crate) fn cluster(scenario: &Scenario, given: Option<u32>) -> Result<u32, Fault> {
    let of_steps = scenario.steps.iter().flat_map(|step| {
        let selections = step.arguments.iter();
        let selections =
            selections.filter(|(name, _)| matches!(name.as_str(), "nodes" | "from_node" | "to_node"));
        selections.map(|(_, value)| (step.line, value.as_str()))
    });
    let of_groups = scenario.groups.iter().map(|group| (group.nodes_line, group.nodes.as_str()));
    let selections: Vec<(u32, &str)> = of_groups.chain(of_steps).collect();
    let fault = |line: u32, message: String| Fault {
        location: Location { file: scenario.file.clone(), line },
        message,
    };
    for (line, text) in &selections {
        // A wrong expression is wrong in every cluster; one that asks for more nodes is not.
        if let Err(reason) = nodes::select(text, nodes::LARGEST_CLUSTER) {
            return Err(fault(*line, reason));
        }
    }
    let Some(count) = given else {
        let texts: Vec<&str> = selections.iter().map(|(_, text)| *text).collect();
        return nodes::smallest_cluster(&texts).ok_or_else(|| {
            fault(0, format!("selects nodes that no cluster of up to {} nodes has", nodes::LARGEST_CLUSTER))
        });
    };
    for (line, text) in selections {
        nodes::select(text, count).map_err(|reason| fault(line, reason))?;
    }
    Ok(count)
}

/// How many copies of each group there are, and since which step.
pub(crate) struct Copies(BTreeMap<String, Vec<(usize, u32)>>);

impl Copies {
    pub(crate) fn new(scenario: &Scenario, nodes: u32) -> Result<Self, Fault> {
        let mut counts = BTreeMap::new();
        for group in &scenario.groups {
            let count = match (group.per_cluster, group.per_node) {
                (Some(count), _) => Count::PerCluster(count),
                (None, count) => Count::PerNode(count.unwrap_or(1)),
            };
            counts.insert(group.name.clone(), vec![(0, number(scenario, group, count, nodes, group.line)?)]);
        }
        for (index, step) in scenario.steps.iter().enumerate() {
            let Action::Grow { group, count } = &step.action else { continue };
            let Some(definition) = scenario.groups.iter().find(|known| known.name == *group) else {
                continue;
            };
            let after = number(scenario, definition, *count, nodes, step.line)?;
            let known = counts.entry(group.clone()).or_default();
            let before = known.last().map_or(0, |(_, count)| *count);
            if after <= before {
                return Err(Fault {
                    location: Location { file: scenario.file.clone(), line: step.line },
                    message: format!("{group} has {before} machines already, and cannot grow to {after}"),
                });
            }
            known.push((index, after));
        }
        Ok(Self(counts))
    }

    /// The number at a step.
    pub(crate) fn count_at(&self, group: &str, step: usize) -> u32 {
        let known = self.0.get(group).map_or(&[][..], Vec::as_slice);
        known.iter().rev().find(|(since, _)| *since <= step).map_or(1, |(_, count)| *count)
    }

    /// The largest number.
    pub(crate) fn most(&self, group: &str) -> u32 {
        self.count_at(group, usize::MAX)
    }
}

fn number(scenario: &Scenario, group: &Group, count: Count, nodes: u32, line: u32) -> Result<u32, Fault> {
    let fault = |message: String| Fault { location: Location { file: scenario.file.clone(), line }, message };
    let selected = nodes::select(&group.nodes, nodes).map_err(fault)?.len() as u32;
    let count = match count {
        Count::PerCluster(count) => count,
        Count::PerNode(count) => count.saturating_mul(selected),
    };
    if (1..=MOST_COPIES).contains(&count) {
        Ok(count)
    } else {
        Err(fault(format!(
            "{} has {count} machines in a cluster of {nodes} nodes; 1 to {MOST_COPIES} are possible",
            group.name
        )))
    }
}
