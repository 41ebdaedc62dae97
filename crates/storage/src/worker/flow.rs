//! `flow=`: workers of one flow keep the ratio of their I/Os equal to that of their weights.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::job::Flow;

/// The maximum lead of a worker over its share: less would make workers that submit in batches wait for each other.
const AHEAD: i64 = 8;

/// How long the share of an ended worker still limits the others. Workers that end together do not end in the same
/// microsecond, and the last one would run far ahead in its last milliseconds.
const GRACE: Duration = Duration::from_millis(100);

/// The sums of the workers of one flow that are running, or ended recently.
#[derive(Debug, Default)]
struct Group {
    issued: AtomicI64,
    weights: AtomicI64,
    /// Workers that were started and have neither joined nor failed yet.
    expected: AtomicI64,
    /// `gone` is not empty.
    some_gone: AtomicBool,
    /// The ended workers that are still in the sums: when they ended, their weights and I/Os.
    gone: Mutex<Vec<(Instant, i64, i64)>>,
}

impl Group {
    /// Removes workers that ended long enough ago from the sums.
    #[cold]
    fn forget_gone(&self) {
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.retain(|(since, weight, issued)| {
            let stays = since.elapsed() < GRACE;
            if !stays {
                self.weights.fetch_sub(*weight, Ordering::AcqRel);
                self.issued.fetch_sub(*issued, Ordering::AcqRel);
            }
            stays
        });
        self.some_gone.store(!gone.is_empty(), Ordering::Release);
    }
}

/// A worker that has a flow.
#[derive(Debug)]
struct Member {
    weight: i64,
    group: Arc<Group>,
    /// It was started, and neither joined nor failed yet.
    expected: AtomicBool,
}

impl Member {
    fn arrived(&self) {
        if self.expected.swap(false, Ordering::AcqRel) {
            self.group.expected.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// The flows of a run.
#[derive(Debug, Default)]
pub struct FlowGroups(Vec<Option<Member>>);

impl FlowGroups {
    /// For workers with these options, in the order of their numbers.
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
            Some(Member { weight: flow.weight.max(1), group, expected: AtomicBool::new(false) })
        });
        Self(members.collect())
    }

    fn member(&self, worker: u32) -> Option<&Member> {
        self.0.get(worker as usize)?.as_ref()
    }

    /// These workers are about to be started together: none of a flow begins before all of them have joined. A worker
    /// that began alone would permanently be ahead of its share.
    pub(crate) fn expect(&self, workers: &[usize]) {
        for member in workers.iter().filter_map(|worker| self.member(*worker as u32)) {
            if !member.expected.swap(true, Ordering::AcqRel) {
                member.group.expected.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    /// An expected worker has failed, or has nothing to do.
    pub(crate) fn absent(&self, worker: u32) {
        if let Some(member) = self.member(worker) {
            member.arrived();
        }
    }

    /// The share of a worker, which counts in its flow from now on; `None` if it has no flow.
    pub(crate) fn join(&self, worker: u32) -> Option<Share> {
        let member = self.member(worker)?;
        let Member { weight, group, .. } = member;
        // A worker that joins later has not missed its share: it begins where the others are.
        let others = group.weights.fetch_add(*weight, Ordering::AcqRel);
        let issued = if others > 0 { group.issued.load(Ordering::Acquire) * weight / others } else { 0 };
        group.issued.fetch_add(issued, Ordering::AcqRel);
        member.arrived();
        Some(Share { weight: *weight, group: Arc::clone(group), issued })
    }
}

/// A worker's share of its flow.
#[derive(Debug)]
pub(crate) struct Share {
    weight: i64,
    group: Arc<Group>,
    issued: i64,
}

impl Share {
    /// Whether all workers that were started together have joined.
    pub(crate) fn is_complete(&self) -> bool {
        self.group.expected.load(Ordering::Acquire) <= 0
    }

    /// Whether the worker has to wait for the others.
    #[inline]
    pub(crate) fn is_ahead(&self) -> bool {
        let ahead = || {
            let (issued, weights) =
                (self.group.issued.load(Ordering::Relaxed), self.group.weights.load(Ordering::Relaxed));
            (self.issued - AHEAD) * weights > issued * self.weight
        };
        if ahead() && self.group.some_gone.load(Ordering::Acquire) {
            self.group.forget_gone();
        }
        ahead()
    }

    /// Counts an I/O.
    #[inline]
    pub(crate) fn count(&mut self) {
        self.issued += 1;
        self.group.issued.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Share {
    /// The remaining workers share among themselves after a moment.
    fn drop(&mut self) {
        let mut gone = self.group.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.push((Instant::now(), self.weight, self.issued));
        self.group.some_gone.store(true, Ordering::Release);
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
        std::thread::sleep(GRACE);
        for _ in 0..10_000 {
            assert!(!one.is_ahead());
            one.count();
        }
    }

    #[test]
    fn weights_are_kept_to_a_percent_whoever_comes_first() {
        let flows = [3, 2, 1].map(|weight| Some(Flow { id: 1, weight, sleep: 0 }));
        let groups = FlowGroups::new(&flows);
        groups.expect(&[0, 1, 2]);
        let stop = AtomicBool::new(false);
        let (groups, stop) = (&groups, &stop);
        let counts: Vec<i64> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..3)
                .map(|worker| {
                    scope.spawn(move || {
                        // The worker with the greatest weight, which would be furthest ahead, joins first.
                        std::thread::sleep(std::time::Duration::from_millis(5 * u64::from(worker)));
                        let mut share = groups.join(worker).unwrap();
                        while !share.is_complete() {
                            std::thread::yield_now();
                        }
                        while !stop.load(Ordering::Relaxed) && share.issued < 60_000 {
                            if share.is_ahead() {
                                std::thread::yield_now();
                            } else {
                                share.count();
                            }
                        }
                        stop.store(true, Ordering::Relaxed);
                        share
                    })
                })
                .collect();
            // No worker is dropped before all have stopped.
            let shares: Vec<Share> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
            shares.iter().map(|share| share.issued).collect()
        });
        let all: i64 = counts.iter().sum();
        for (count, weight) in counts.iter().zip([3, 2, 1]) {
            let share = *count as f64 / all as f64 * 6.0 / f64::from(weight);
            assert!((share - 1.0).abs() < 0.01, "{counts:?}");
        }
    }

    #[test]
    fn nobody_waits_for_one_who_failed() {
        let flows = [Some(Flow { id: 1, weight: 1, sleep: 0 }); 2];
        let groups = FlowGroups::new(&flows);
        groups.expect(&[0, 1]);
        let share = groups.join(0).unwrap();
        assert!(!share.is_complete());
        groups.absent(1);
        groups.absent(1);
        assert!(share.is_complete());
    }
}
