//! The use of server, client and device without a limit. A cut is a share of the capacity, not of the current use:
//! otherwise every resource that is used at all would seem to be a limit.

use kelvin_host::disk::DiskCounters;
use std::fs;
use std::time::Instant;

use kelvin_host::{ProcessStat, SystemTree, Ticks};

use crate::control_group::{Flow, Group};

/// Counters at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counters {
    at: Instant,
    /// CPU seconds of the server's processes.
    server: f64,
    /// CPU seconds of this process, where the server is a separate one.
    client: f64,
    /// Idle CPU seconds, over all CPUs.
    idle: f64,
    /// The I/O of the server and of all processes on its device.
    own: Option<Flow>,
    all: Option<Flow>,
    /// Seconds in which the device had a request in flight.
    busy: f64,
}

/// The available capacity per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Capacity {
    /// CPUs that the server uses.
    pub(super) used: f64,
    /// CPUs that it could use in addition, because they were idle. Together with `used`, these are the CPUs that
    /// other processes left.
    pub(super) cores: f64,
    /// CPUs that other processes used, neither the server nor the client.
    pub(super) others: f64,
    /// Requests and bytes that the device could serve for the server; none where they are unknown.
    pub(super) flow: Option<Flow>,
    /// Share of the time in which the device was busy.
    pub(super) device_busy: f64,
}

impl Counters {
    /// Reads the counters of the server's processes. `embedded` means that the server is this process; the device is
    /// "vda" and "254:0".
    pub(super) fn read(
        group: &Group,
        processes: &[u32],
        embedded: bool,
        device: Option<&(String, String)>,
    ) -> Self {
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let server = if embedded {
            kelvin_observe::cpu_time().as_secs_f64()
        } else {
            let used = |process: &u32| Some(ProcessStat::read(*process)?.ticks());
            processes.iter().filter_map(used).sum::<u64>() as f64 / ticks
        };
        let idle = Ticks::read(&SystemTree::default());
        let stat =
            device.and_then(|(name, _)| fs::read_to_string(format!("/sys/class/block/{name}/stat")).ok());
        let stat = stat.and_then(|text| device_of(&text));
        Self {
            at: Instant::now(),
            server,
            client: if embedded { 0.0 } else { kelvin_observe::cpu_time().as_secs_f64() },
            idle: idle.map_or(0, Ticks::idle) as f64 / ticks,
            own: device.and_then(|(_, number)| group.io(number)),
            all: stat.map(|(flow, _)| flow),
            busy: stat.map_or(0.0, |(_, busy)| busy),
        }
    }

    /// The capacity that was available between two readings.
    ///
    /// The CPUs are those that the server used and the idle ones. A device is assumed to serve one request after
    /// another: its capacity is then its throughput divided by the share of time in which it was busy (utilisation law;
    /// Denning and Buzen 1978), and the server's capacity is its own throughput plus the unused remainder. A kind of
    /// request that the server does not make, such as reads, has no bound.
    pub(super) fn since(&self, before: &Self) -> Capacity {
        let seconds = self.at.saturating_duration_since(before.at).as_secs_f64().max(1e-3);
        let used = (self.server - before.server).max(0.0) / seconds;
        let idle = (self.idle - before.idle).max(0.0) / seconds;
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get) as f64;
        let others = (cpus - used - idle - (self.client - before.client) / seconds).max(0.0);
        let device_busy = ((self.busy - before.busy) / seconds).clamp(0.0, 1.0);
        let flow = self.all.zip(before.all).and_then(|(now, then)| {
            let all = now.minus(then);
            let own = self.own.zip(before.own).map_or(all, |(now, then)| now.minus(then));
            // Requests within no busy time: the remaining capacity of the device is unknown, and not zero.
            if device_busy <= 0.0 && own.reads + own.writes > 0.0 {
                return None;
            }
            let requests = free(all.reads + all.writes, device_busy) / seconds;
            let bytes = free(all.read_bytes + all.written_bytes, device_busy) / seconds;
            let of = |own: f64, free: f64| if own > 0.0 { own / seconds + free } else { 0.0 };
            Some(Flow {
                reads: of(own.reads, requests),
                read_bytes: of(own.read_bytes, bytes),
                writes: of(own.writes, requests),
                written_bytes: of(own.written_bytes, bytes),
            })
        });
        Capacity { used, cores: used + idle, others, flow, device_busy }
    }
}

/// The additional capacity of a device whose throughput was `all` and which was busy for this share of the time.
fn free(all: f64, busy: f64) -> f64 {
    if busy > 0.0 { all / busy - all } else { 0.0 }
}

impl Capacity {
    /// The mean of several capacities; none of an empty list.
    pub(super) fn mean(all: &[Self]) -> Option<Self> {
        let n = all.len() as f64;
        let mean = |of: &dyn Fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / n;
        if all.is_empty() {
            return None;
        }
        let flow = |of: &dyn Fn(Flow) -> f64| mean(&|one| one.flow.map_or(0.0, of));
        Some(Self {
            used: mean(&|one| one.used),
            cores: mean(&|one| one.cores),
            others: mean(&|one| one.others),
            flow: all.iter().all(|one| one.flow.is_some()).then(|| Flow {
                reads: flow(&|f| f.reads),
                read_bytes: flow(&|f| f.read_bytes),
                writes: flow(&|f| f.writes),
                written_bytes: flow(&|f| f.written_bytes),
            }),
            device_busy: mean(&|one| one.device_busy),
        })
    }
}

/// Requests and bytes of a device, and its busy seconds, in `/sys/class/block/NAME/stat`.
fn device_of(text: &str) -> Option<(Flow, f64)> {
    let done = DiskCounters::parse_stat(text.as_bytes())?.since(&DiskCounters::ZERO);
    let bytes = |direction: usize| done.sectors[direction] as f64 * 512.0;
    let flow = Flow {
        reads: done.ios[0] as f64,
        read_bytes: bytes(0),
        writes: done.ios[1] as f64,
        written_bytes: bytes(1),
    };
    Some((flow, done.busy as f64 / 1000.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_kernels_lines_are_read() {
        let (flow, busy) = device_of("  10 1 80 5 20 2 160 7 0 1500 12 0 0 0 0 3 4\n").unwrap();
        assert_eq!(
            (flow.reads, flow.read_bytes, flow.writes, flow.written_bytes),
            (10.0, 40960.0, 20.0, 81920.0)
        );
        assert_eq!(busy, 1.5);
    }

    #[test]
    fn there_is_more_to_use_of_what_is_idle() {
        assert_eq!((free(100.0, 1.0), free(100.0, 0.1), free(0.0, 0.0)), (0.0, 900.0, 0.0));
        let one = |used, cores| Capacity { used, cores, others: 0.0, flow: None, device_busy: 0.0 };
        assert_eq!(Capacity::mean(&[one(1.0, 2.0), one(2.0, 2.0)]), Some(one(1.5, 2.0)));
        assert_eq!(Capacity::mean(&[]), None);
    }

    #[test]
    fn a_device_that_was_never_busy_has_no_known_capacity() {
        let at = Instant::now();
        let of = |seconds, writes, busy| Counters {
            at: at + std::time::Duration::from_secs(seconds),
            server: 0.0,
            client: 0.0,
            idle: 0.0,
            own: Some(Flow { writes, ..Flow::default() }),
            all: Some(Flow { writes, ..Flow::default() }),
            busy,
        };
        let flow = |writes, busy| of(1, writes, busy).since(&of(0, 0.0, 0.0)).flow;
        assert_eq!(flow(100.0, 0.0), None);
        assert_eq!(flow(100.0, 0.5).map(|flow| flow.writes), Some(200.0));
        assert_eq!(flow(0.0, 0.0), Some(Flow::default()));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([0-9]{1,20} ?){0,20}\\PC{0,9}") {
            let _ = device_of(&text);
        }
    }
}
