//! Counters of the operating system that confirm or contradict a class, independently of the database.

use kelvin_observe::metric;

use super::IndependentCounter;
use super::time::Model;
use crate::load::{cpu_by_the_server, cpus, mean_of_server, server_is_here};
use crate::{Class, Evidence};
use kelvin_measure::text::percent;

/// Share of the CPUs from which on they are taken as used up.
pub(super) const BUSY: f64 = 0.90;
/// Share of the time that tasks which could run had to wait.
const DELAYED: f64 = 0.10;
/// Share of the time in which some task was held up for want of a CPU.
const PRESSED: f64 = 0.20;
/// Below this share of the CPUs in use, nothing waits for them for long.
const ROOM: f64 = 0.75;
/// Share of the time in which some task was held up by a device.
const HELD_UP: f64 = 0.10;
/// CPUs that a process whose transactions run one after another does not go beyond, with its own threads beside them.
const ONE_WRITER: f64 = 1.25;
/// A device is taken as the cause when the requests in it are so many, of the sessions that wait for it.
const IN_FLIGHT: f64 = 0.30;

/// The counters that confirm or contradict a class.
pub(super) fn counters_for(
    evidence: &Evidence,
    point: u32,
    class: Class,
    model: &Model,
) -> Vec<IndependentCounter> {
    let readings = Readings { evidence, point };
    let sessions = model.share(class).map_or(0.0, |share| share.sessions);
    let found = match class {
        Class::Cpu => vec![readings.busy(), readings.delayed(), readings.pressed()],
        Class::DataReads => vec![readings.requests("data", &["r"], sessions), readings.held_up()],
        Class::DataWrites => vec![readings.requests("data", &["w", "f"], sessions), readings.held_up()],
        Class::Log => vec![readings.requests("wal", &["w", "f"], sessions.min(1.0)), readings.held_up()],
        Class::Locks => vec![readings.rows(sessions), readings.room()],
        Class::Writer => vec![readings.one_at_a_time(), readings.room()],
        Class::Latch | Class::Memory | Class::Network | Class::Replication | Class::Other => {
            vec![readings.room(), readings.idle_devices()]
        }
        Class::Client => vec![readings.client()],
    };
    found.into_iter().flatten().collect()
}

struct Readings<'a> {
    evidence: &'a Evidence,
    point: u32,
}

impl Readings<'_> {
    fn mean(&self, name: &str) -> Option<f64> {
        mean_of_server(self.evidence, self.point, name)
    }

    /// By the host; where that is not seen, by the server, of the CPUs that it may use.
    fn cpus_in_use(&self) -> Option<(&'static str, f64)> {
        let of_server =
            || Some(("CPUs in use by the server's own count", cpu_by_the_server(self.evidence, self.point)?));
        self.mean(metric::CPU_BUSY).map(|busy| ("CPUs in use", busy)).or_else(of_server)
    }

    fn busy(&self) -> Option<IndependentCounter> {
        let (what, busy) = self.cpus_in_use()?;
        Some(counter(what, &format!("{}, threshold {}", percent(busy), percent(BUSY)), busy >= BUSY))
    }

    fn delayed(&self) -> Option<IndependentCounter> {
        let share = self.mean(metric::RUN_QUEUE_DELAY_SHARE)?;
        let found = format!("{} of running and waiting time, threshold {}", percent(share), percent(DELAYED));
        Some(counter("tasks waiting for a CPU", &found, share >= DELAYED))
    }

    fn pressed(&self) -> Option<IndependentCounter> {
        let share = self.mean(metric::CPU_PRESSURE)?;
        let found = format!("{} of the time, threshold {}", percent(share), percent(PRESSED));
        Some(counter("some task stalled for lack of a CPU", &found, share >= PRESSED))
    }

    fn held_up(&self) -> Option<IndependentCounter> {
        let share = self.mean(metric::IO_PRESSURE)?;
        let found = format!("{} of the time, threshold {}", percent(share), percent(HELD_UP));
        Some(counter("some task stalled by a device", &found, share >= HELD_UP))
    }

    /// Requests in a device by Little's law, against the sessions that wait for it.
    fn requests(&self, role: &str, kinds: &[&str], sessions: f64) -> Option<IndependentCounter> {
        let Some(device) = self.evidence.file_location(role).and_then(|place| place.device.as_deref()) else {
            return self.under_way(role, kinds, sessions);
        };
        let mut flight = 0.0;
        let mut known = false;
        for kind in kinds {
            let of = |column: &str| metric::disk(device, format_args!("{kind}_{column}"));
            let window = self.evidence.window(self.point)?;
            let rate = self.evidence.mean(self.point, &of("s"));
            // The requests' own mean: a second with few slow ones must not count for one with many fast ones.
            let each = self.evidence.mean_by_request(&of("await"), &of("s"), window);
            if let (Some(rate), Some(ms)) = (rate, each) {
                flight += rate * ms / 1e3;
                known = true;
            }
        }
        let found =
            format!("{flight:.2} requests in {device} on average, {sessions:.2} sessions waiting for it");
        known.then(|| counter("requests in the device", &found, flight >= IN_FLIGHT * sessions))
    }

    /// The same of the files by the times that the server measures from sending an I/O to its end.
    fn under_way(&self, role: &str, kinds: &[&str], sessions: f64) -> Option<IndependentCounter> {
        let names: &[&str] = match (role, kinds) {
            ("wal", _) => &metric::LOG_SYNC_MS[2..],
            (_, ["r"]) => &[metric::DATA_READ_MS],
            _ => &[metric::DATA_WRITE_MS],
        };
        let flight = self.evidence.mean_of_first_known(self.point, names)? / 1e3;
        let what = if role == "wal" { "log" } else { "data files" };
        let found =
            format!("{flight:.2} I/Os of the {what} on average, {sessions:.2} sessions waiting for them");
        Some(counter("pending I/Os by the server's own count", &found, flight >= IN_FLIGHT * sessions))
    }

    fn rows(&self, sessions: f64) -> Option<IndependentCounter> {
        let rows = self.evidence.row_waits(self.point);
        let (relation, most) = rows.first()?;
        let all: f64 = rows.iter().map(|(_, sessions)| sessions).sum();
        let found = format!("{all:.2} sessions waiting for a row, {most:.2} of them in {relation}");
        Some(counter("the database's lock table", &found, all >= sessions / 2.0))
    }

    /// By exclusion: there is CPU time available.
    fn room(&self) -> Option<IndependentCounter> {
        let (what, busy) = self.cpus_in_use()?;
        let found = format!("{}, spare capacity below {}", percent(busy), percent(ROOM));
        Some(counter(what, &found, busy < ROOM))
    }

    /// One writer at a time uses one CPU at most, and what runs beside it (Kelvin's own threads) little more.
    fn one_at_a_time(&self) -> Option<IndependentCounter> {
        let point = self.evidence.point(self.point)?;
        let (used, cpus) = (crate::load::client_cores(self.evidence, point)?, cpus(self.evidence)?);
        let found = format!("{used:.2} of {cpus} used by this process, threshold {ONE_WRITER}");
        Some(counter("CPUs of the process", &found, cpus > ONE_WRITER && used <= ONE_WRITER))
    }

    /// For the record: no device explains it either. It agrees with nothing by itself.
    fn idle_devices(&self) -> Option<IndependentCounter> {
        let share = self.mean(metric::IO_PRESSURE).filter(|share| *share >= HELD_UP)?;
        let found = format!("{} of the time, threshold {}", percent(share), percent(HELD_UP));
        Some(counter("some task stalled by a device", &found, false))
    }

    fn client(&self) -> Option<IndependentCounter> {
        let point = self.evidence.point(self.point)?;
        let (used, cpus) = (crate::load::client_cores(self.evidence, point)?, cpus(self.evidence)?);
        let found = format!("{used:.2} of {cpus} used by the load generator, threshold 80 %");
        let bound = !server_is_here(self.evidence) && used >= 0.8 * cpus;
        Some(counter("CPUs of the client's host", &found, bound))
    }
}

fn counter(what: &str, found: &str, agrees: bool) -> IndependentCounter {
    IndependentCounter { what: what.into(), found: found.into(), agrees }
}
