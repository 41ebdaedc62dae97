//! The thread that applies and removes cuts on the run's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kelvin_measure::{Clock, Nanos, SECOND};

use super::meter::{Capacity, Counters};
use super::plan::Slice;
use super::throttle::Throttle;
use super::tree;
use crate::control_group::{Flow, Group};

/// The maximum delay until a stop request is noticed.
const TICK: Nanos = 20_000_000;

/// Number of recent readings without a cut from which a cut is computed. It is small because other load changes.
const RECENT: usize = 3;

/// A resource that can be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SqueezedResource {
    /// CPUs of the server.
    ServerCpu,
    /// CPUs of the load generator.
    ClientCpu,
    /// Requests and bytes of the server on its device.
    DeviceIo,
}

impl SqueezedResource {
    /// Its name in the results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ServerCpu => "server CPU",
            Self::ClientCpu => "client CPU",
            Self::DeviceIo => "server I/O",
        }
    }
}

/// The means of cutting, including the groups.
#[derive(Debug)]
pub(super) struct Valves {
    pub(super) server: Group,
    /// The means of cutting its CPU.
    pub(super) throttle: Throttle,
    /// The server's first process.
    pub(super) process: u32,
    /// None if the database is in this process.
    pub(super) client: Option<Group>,
    /// Kernel name and device number of the server's disk.
    pub(super) device: Option<(String, String)>,
    /// CPUs that the load generator could use.
    pub(super) client_cores: f64,
    /// The resources, in the order of their numbers in the plan.
    pub(super) resources: Vec<SqueezedResource>,
    /// The share of a resource that a cut removes.
    pub(super) cut: f64,
}

/// Record of the cuts.
#[derive(Debug, Default)]
pub(super) struct SqueezeRecord {
    /// The slices that ended as planned, each with its limit.
    pub(super) slices: Vec<(usize, Option<Cut>)>,
    /// The available capacity, averaged over all slices without a cut.
    pub(super) capacity: Option<Capacity>,
    /// CPUs that the server used in the slices with a CPU cut, and the limits in effect.
    pub(super) used: Vec<(f64, f64)>,
    /// Resources that could not be cut in a slice, and the first reason. Such a slice is missing from `slices`.
    pub(super) unknown: Vec<(SqueezedResource, String)>,
    /// Why it ended early.
    pub(super) error: Option<String>,
}

impl SqueezeRecord {
    fn refuse(&mut self, what: SqueezedResource, why: String) {
        if self.unknown.iter().all(|(known, _)| *known != what) {
            self.unknown.push((what, why));
        }
    }
}

/// The part of a resource that remains during a cut.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    Cores(f64),
    Flow(Flow),
}

/// A limit, and the share of the resource that it leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cut {
    bound: Bound,
    /// Within (0, 1).
    pub(super) left: f64,
}

impl Cut {
    /// The limit for a resource; an error gives the reason where the capacity is unknown.
    fn of(what: SqueezedResource, capacity: &Capacity, valves: &Valves) -> Result<Self, String> {
        let rest = 1.0 - valves.cut;
        let (bound, left) = match what {
            SqueezedResource::ServerCpu => {
                let (cores, left) = valves.throttle.leave(capacity, valves.cut)?;
                (Bound::Cores(cores), left)
            }
            SqueezedResource::ClientCpu => (Bound::Cores(valves.client_cores * rest), rest),
            SqueezedResource::DeviceIo => (Bound::Flow(flow(capacity, rest)?), rest),
        };
        Ok(Self { bound, left })
    }
}

/// The limit for the device under a cut that leaves the share `rest`.
fn flow(capacity: &Capacity, rest: f64) -> Result<Flow, String> {
    let flow = capacity.flow.ok_or(
        "the capacity of its device is not known: its counters cannot be read, or they show requests from \
        the server but no busy time",
    )?;
    // To a control group four zeros mean no limit.
    if flow.reads + flow.writes <= 0.0 {
        return Err("the server did not use the device: there is nothing to limit".into());
    }
    Ok(Flow {
        reads: flow.reads * rest,
        read_bytes: flow.read_bytes * rest,
        writes: flow.writes * rest,
        written_bytes: flow.written_bytes * rest,
    })
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.bound {
            Bound::Cores(cores) => write!(f, "{cores:.2} CPUs"),
            Bound::Flow(flow) => write!(f, "{:.0} reads/s, {:.0} writes/s", flow.reads, flow.writes),
        }
    }
}

impl Valves {
    /// Removes every limit.
    fn lift(&self) -> Result<(), String> {
        for what in &self.resources {
            match what {
                SqueezedResource::ServerCpu => self.throttle.bound(&self.server, None)?,
                SqueezedResource::ClientCpu => self.client().bound_cpu(None)?,
                SqueezedResource::DeviceIo => self.server.bound_io(self.number()?, None)?,
            }
        }
        Ok(())
    }

    /// Applies one cut.
    fn apply(&self, what: SqueezedResource, bound: Bound) -> Result<(), String> {
        match (what, bound) {
            (SqueezedResource::ClientCpu, Bound::Cores(cores)) => self.client().bound_cpu(Some(cores)),
            (_, Bound::Cores(cores)) => self.throttle.bound(&self.server, Some(cores)),
            (_, Bound::Flow(flow)) => self.server.bound_io(self.number()?, Some(flow)),
        }
    }

    fn client(&self) -> &Group {
        self.client.as_ref().unwrap_or(&self.server)
    }

    fn number(&self) -> Result<&str, String> {
        self.device
            .as_ref()
            .map(|(_, number)| number.as_str())
            .ok_or_else(|| "its device is not known".into())
    }

    fn read(&self) -> Counters {
        let processes = match &self.throttle {
            // The group contains all of them, even those with parents that have exited.
            Throttle::Group => self.server.processes(),
            Throttle::Affinity(_) | Throttle::RateCap(_) => tree::processes(self.process),
        };
        Counters::read(&self.server, &processes, self.client.is_none(), self.device.as_ref())
    }
}

/// Applies and removes cuts according to the plan, with seconds counted from `open`, until the plan ends or `stop` is
/// set. Every limit is removed at the end.
pub(super) fn work(
    valves: &Valves,
    plan: &[Slice],
    clock: &Clock,
    open: Nanos,
    stop: &Arc<AtomicBool>,
) -> SqueezeRecord {
    let mut done = SqueezeRecord::default();
    let mut free: Vec<Capacity> = Vec::new();
    let worked = follow(valves, plan, clock, open, stop, &mut free, &mut done);
    let lifted = valves.lift();
    done.error = worked.and(lifted).err();
    done.capacity = Capacity::mean(&free);
    done
}

fn follow(
    valves: &Valves,
    plan: &[Slice],
    clock: &Clock,
    open: Nanos,
    stop: &Arc<AtomicBool>,
    free: &mut Vec<Capacity>,
    done: &mut SqueezeRecord,
) -> Result<(), String> {
    let mut is_cut = false;
    for (index, slice) in plan.iter().enumerate() {
        if !wait(clock, open + slice.from * SECOND, stop) {
            return Ok(());
        }
        if is_cut {
            valves.lift()?;
        }
        let what = slice.resource.map(|resource| valves.resources[resource]);
        is_cut = false;
        let mut bound = None;
        if let Some(what) = what {
            let recent = Capacity::mean(&free[free.len().saturating_sub(RECENT)..]);
            let capacity = recent.ok_or("the pilot phase produced no measurements")?;
            match Cut::of(what, &capacity, valves) {
                Ok(cut) => {
                    // Set first: a failing cut may have been applied in part.
                    is_cut = true;
                    valves.apply(what, cut.bound)?;
                    bound = Some(cut);
                }
                // The slice runs without a cut and does not count.
                Err(why) => done.refuse(what, why),
            }
        }
        // Work that was delayed appears right after a cut is removed, so the first second is not counted here either.
        let settled = open + slice.from * SECOND + SECOND;
        let end = open + slice.to * SECOND;
        if !wait(clock, settled, stop) {
            return Ok(());
        }
        let before = valves.read();
        if !wait(clock, end - TICK, stop) {
            return Ok(());
        }
        let seen = valves.read().since(&before);
        match (what, bound) {
            (None, _) => free.push(seen),
            (Some(SqueezedResource::ServerCpu), Some(Cut { bound: Bound::Cores(cores), .. })) => {
                done.used.push((seen.used, cores));
            }
            _ => {}
        }
        if !wait(clock, end, stop) {
            return Ok(());
        }
        if what.is_none() || bound.is_some() {
            done.slices.push((index, bound));
        }
    }
    Ok(())
}

/// Waits until `until`; false if a stop was requested.
fn wait(clock: &Clock, until: Nanos, stop: &Arc<AtomicBool>) -> bool {
    loop {
        let now = clock.now();
        // In this order: the run requests the stop when the last slice has ended.
        if now >= until {
            return true;
        }
        if stop.load(Ordering::Acquire) {
            return false;
        }
        std::thread::sleep(Duration::from_nanos(TICK.min(until - now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_cut() {
        let capacity = |flow| Capacity { used: 1.0, cores: 2.0, others: 0.0, flow, device_busy: 0.5 };
        let valves = Valves {
            server: Group::none(),
            throttle: Throttle::Group,
            process: 0,
            client: None,
            device: None,
            client_cores: 4.0,
            resources: Vec::new(),
            cut: 0.2,
        };
        let of =
            |what, flow| Cut::of(what, &capacity(flow), &valves).map(|cut| (cut.bound, cut.left.to_string()));
        assert_eq!(of(SqueezedResource::ServerCpu, None), Ok((Bound::Cores(1.6), "0.8".into())));
        assert_eq!(of(SqueezedResource::ClientCpu, None), Ok((Bound::Cores(3.2), "0.8".into())));
        assert!(of(SqueezedResource::DeviceIo, None).unwrap_err().contains("not known"));
        assert!(
            of(SqueezedResource::DeviceIo, Some(Flow::default())).unwrap_err().contains("nothing to limit")
        );
        let writes = Flow { writes: 100.0, written_bytes: 1000.0, ..Flow::default() };
        let left = Flow { writes: 80.0, written_bytes: 800.0, ..Flow::default() };
        assert_eq!(of(SqueezedResource::DeviceIo, Some(writes)), Ok((Bound::Flow(left), "0.8".into())));
        let mut done = SqueezeRecord::default();
        done.refuse(SqueezedResource::DeviceIo, "a".into());
        done.refuse(SqueezedResource::DeviceIo, "b".into());
        assert_eq!(done.unknown, [(SqueezedResource::DeviceIo, "a".to_owned())]);
    }
}
