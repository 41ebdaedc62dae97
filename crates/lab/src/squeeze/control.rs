//! The thread that cuts and lifts on the run's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kelvin_measure::{Clock, Nanos};

use super::group::{Flow, Group};
use super::meter::{Capacity, Counters};
use super::plan::Slice;

const SECOND: Nanos = 1_000_000_000;

/// How soon somebody who asks to end is heard.
const TICK: Nanos = 20_000_000;

/// The newest readings without a cut that a cut is made from: what others do changes.
const RECENT: usize = 3;

/// What can be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// CPUs of the server.
    ServerCpu,
    /// CPUs of the load generator.
    ClientCpu,
    /// Requests and bytes of the server on its device.
    DeviceIo,
}

/// What is needed to cut: the groups go with it.
#[derive(Debug)]
pub(super) struct Valves {
    pub(super) server: Group,
    /// None where the database is in this process.
    pub(super) client: Option<Group>,
    /// Kernel's name and number of the server's device.
    pub(super) device: Option<(String, String)>,
    /// CPUs that the load generator could use.
    pub(super) client_cores: f64,
    /// The resources, in the order of the plan's numbers.
    pub(super) resources: Vec<What>,
    /// The share that is taken away.
    pub(super) cut: f64,
}

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// The slices that ended as planned, with the bound that held in each.
    pub(super) slices: Vec<(usize, String)>,
    /// What there was to use, over all slices without a cut.
    pub(super) capacity: Option<Capacity>,
    /// CPUs that the server used in the slices in which its CPUs were cut, and the bounds then.
    pub(super) used: Vec<(f64, f64)>,
    /// Why it ended early.
    pub(super) error: Option<String>,
}

impl Valves {
    /// Lifts every bound.
    fn lift(&self) -> Result<(), String> {
        for what in &self.resources {
            match what {
                What::ServerCpu => self.server.bound_cpu(None)?,
                What::ClientCpu => self.client().bound_cpu(None)?,
                What::DeviceIo => self.server.bound_io(self.number()?, None)?,
            }
        }
        Ok(())
    }

    /// Cuts one; the bound in words.
    fn apply(&self, what: What, capacity: &Capacity) -> Result<String, String> {
        let rest = 1.0 - self.cut;
        match what {
            What::ServerCpu => {
                let bound = capacity.cores * rest;
                self.server.bound_cpu(Some(bound))?;
                Ok(format!("{bound:.2} CPUs"))
            }
            What::ClientCpu => {
                let bound = self.client_cores * rest;
                self.client().bound_cpu(Some(bound))?;
                Ok(format!("{bound:.2} CPUs"))
            }
            What::DeviceIo => {
                let flow = capacity.flow.unwrap_or_default();
                let bound = Flow {
                    reads: flow.reads * rest,
                    read_bytes: flow.read_bytes * rest,
                    writes: flow.writes * rest,
                    written_bytes: flow.written_bytes * rest,
                };
                self.server.bound_io(self.number()?, Some(bound))?;
                let (reads, writes) = (bound.reads, bound.writes);
                Ok(format!("{reads:.0} reads/s, {writes:.0} writes/s"))
            }
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
        Counters::read(&self.server, self.client.is_none(), self.device.as_ref())
    }
}

/// Cuts and lifts by the plan, whose seconds count from `open`, until it ends or `stop` is set. Every bound is lifted at
/// the end.
pub(super) fn work(
    valves: &Valves,
    plan: &[Slice],
    clock: &Clock,
    open: Nanos,
    stop: &Arc<AtomicBool>,
) -> Done {
    let mut done = Done::default();
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
    done: &mut Done,
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
        is_cut = what.is_some();
        let mut cores = 0.0;
        let bound = match what {
            None => String::new(),
            Some(what) => {
                let recent = Capacity::mean(&free[free.len().saturating_sub(RECENT)..]);
                let capacity = recent.ok_or("the pilot has seen nothing")?;
                cores = capacity.cores * (1.0 - valves.cut);
                valves.apply(what, &capacity)?
            }
        };
        // What was held back shows at once when a cut is lifted: the first second is not counted here either.
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
        match what {
            None => free.push(seen),
            Some(What::ServerCpu) => done.used.push((seen.used, cores)),
            Some(_) => {}
        }
        if !wait(clock, end, stop) {
            return Ok(());
        }
        done.slices.push((index, bound));
    }
    Ok(())
}

/// Waits; whether nobody asked to end.
fn wait(clock: &Clock, until: Nanos, stop: &Arc<AtomicBool>) -> bool {
    loop {
        let now = clock.now();
        // In this order: the run asks to end when the last slice has.
        if now >= until {
            return true;
        }
        if stop.load(Ordering::Acquire) {
            return false;
        }
        std::thread::sleep(Duration::from_nanos(TICK.min(until - now)));
    }
}
