//! `flow=`: workers of one flow keep their I/Os in the proportion of their weights.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::job::Flow;

/// How far a worker may be ahead of its share: less would make workers that submit in batches wait for each other.
const AHEAD: i64 = 8;

/// The sums of the workers of one flow that still run.
#[derive(Debug, Default)]
struct Group {
    issued: AtomicI64,
    weights: AtomicI64,
}

/// The flows of a run.
#[derive(Debug, Default)]
pub struct FlowGroups(Vec<Option<(i64, Arc<Group>)>>);

impl FlowGroups {
    /// Of workers with these options, in the order of their numbers.
    pub fn new(flows: &[Option<Flow>]) -> Self {
        let mut groups: Vec<(i64, Arc<Group>)> = Vec::new();
        let members = flows.iter().map(|flow| {
            let flow = (*flow)?;
            let known = groups.iter().find(|(id, _)| *id == flow.id).map(|(_, group)| Arc::clone(group));
            let group = known.unwrap_or_else(|| {
                let group = Arc::new(Group::default());
                groups.push((flow.id, Arc::clone(&group)));
                group
            });
            Some((flow.weight.max(1), group))
        });
        Self(members.collect())
    }

    /// The share of a worker, which counts in its flow from now on; none when it has no flow.
    pub(crate) fn join(&self, worker: u32) -> Option<Share> {
        let (weight, group) = self.0.get(worker as usize)?.as_ref()?;
        // One who joins later has not missed its share: it begins where the others are.
        let others = group.weights.fetch_add(*weight, Ordering::AcqRel);
        let issued = if others > 0 { group.issued.load(Ordering::Acquire) * weight / others } else { 0 };
        group.issued.fetch_add(issued, Ordering::AcqRel);
        Some(Share { weight: *weight, group: Arc::clone(group), issued })
    }
}

/// A worker's part in its flow.
#[derive(Debug)]
pub(crate) struct Share {
    weight: i64,
    group: Arc<Group>,
    issued: i64,
}

impl Share {
    /// Whether the worker has to wait for the others.
    #[inline]
    pub(crate) fn is_ahead(&self) -> bool {
        let (issued, weights) =
            (self.group.issued.load(Ordering::Relaxed), self.group.weights.load(Ordering::Relaxed));
        (self.issued - AHEAD) * weights > issued * self.weight
    }

    /// Counts an I/O.
    #[inline]
    pub(crate) fn count(&mut self) {
        self.issued += 1;
        self.group.issued.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Share {
    /// Those who go on share among themselves.
    fn drop(&mut self) {
        self.group.weights.fetch_sub(self.weight, Ordering::AcqRel);
        self.group.issued.fetch_sub(self.issued, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_weights_and_the_last_runs_free() {
        let flow = |weight| Some(Flow { id: 7, weight, sleep: 0 });
        let groups = FlowGroups::new(&[flow(3), None, flow(1)]);
        assert!(groups.join(1).is_none());
        let (mut three, mut one) = (groups.join(0).unwrap(), groups.join(2).unwrap());
        for _ in 0..10_000 {
            if !three.is_ahead() {
                three.count();
            }
            if !one.is_ahead() {
                one.count();
            }
        }
        let ratio = three.issued as f64 / one.issued as f64;
        assert!((ratio - 3.0).abs() < 0.05, "{ratio}");
        drop(three);
        for _ in 0..10_000 {
            assert!(!one.is_ahead());
            one.count();
        }
    }
}
