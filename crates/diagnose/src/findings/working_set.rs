//! Does the load's working set fit in memory?
//!
//! A database of twice the memory may have a working set of a tenth of it, and a database that fits may not have been
//! read in yet. So the sizes are compared first; then the source of the pages missing in the buffers decides.

use kelvin_measure::text;
use kelvin_observe::metric;

use super::{FindingDefinition, buffers_too_small};
use crate::engine::{BufferPool, engine_advice};
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "working-set", question: "Does the load's working set fit in memory?", find };

/// Share of the pages from storage above which the result depends on the storage: at 100 µs per read against some µs of
/// work on a page, one in a hundred is a tenth of the time or more.
const MISSED: f64 = 0.01;
/// Pages per second below which reads do not matter.
const FEW: f64 = 100.0;
/// Share of the bytes that the device must have delivered to have answered (as in data-in-page-cache).
const ANSWERED: f64 = 0.5;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

/// Bytes of memory that the database may use, and their source: the host's memory, or the limit of kelvin's own control
/// group if that is lower, which a server on the same host is assumed to share.
fn memory(evidence: &Evidence) -> Option<(f64, &'static str)> {
    let host = buffers_too_small::memory(evidence)?;
    let limits = evidence.names(metric::CGROUP, ".memory.limit");
    let limit = limits.filter_map(|name| evidence.newest(name)).fold(f64::INFINITY, f64::min);
    Some(if limit > 0.0 && limit < host {
        (limit, "memory limit of kelvin's control group")
    } else {
        (host, "memory of the host")
    })
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let misses = Misses::read(evidence, point)?;
    let (severity, title, next) = misses.judge()?;
    Some(Finding {
        id: ABOUT.id,
        severity,
        point: Some(point),
        title,
        evidence: misses.facts(evidence),
        effect: Effect::up_to_or(
            buffers_too_small::waiting(evidence, point),
            EffectBasis::TransactionTime,
            "the sessions were not sampled",
        ),
        below_precision: false,
        threshold:
            "the database is larger than the memory; amber when the device delivered half or more of the \
            pages requested from the kernel, and 1 % or more of all pages came from the device"
                .into(),
        next: next.into(),
    })
}

/// The pages that were not found in the buffers, and their source.
struct Misses {
    /// Bytes of the database, and of the memory with its name.
    database: f64,
    memory: (f64, &'static str),
    pool: BufferPool,
    page_bytes: f64,
    /// Pages requested from the kernel per second, and their part of all.
    reads: f64,
    missed: f64,
    /// The device of the data, and the bytes per second that it delivered.
    delivered: Option<(String, f64)>,
}

impl Misses {
    fn read(evidence: &Evidence, point: u32) -> Option<Self> {
        let memory = memory(evidence)?;
        let database = buffers_too_small::database(evidence)?;
        let hits = evidence.mean_of_first_known(point, metric::BUFFER_HITS)?;
        let reads = evidence.mean_of_first_known(point, metric::BUFFER_READS)?;
        let missed = reads / (hits + reads);
        let device = evidence.file_location("data").and_then(|place| place.device.clone());
        let delivered = device.and_then(|device| {
            let kb = evidence.mean(point, &metric::disk(&device, "rkb_s"))?;
            Some((device, kb * 1024.0))
        });
        let pool = engine_advice(evidence).buffers();
        let page_bytes = pool.page_bytes(evidence);
        (!missed.is_nan()).then_some(Self { database, memory, pool, page_bytes, reads, missed, delivered })
    }

    /// The part of the requested pages that storage served.
    fn stored(&self) -> f64 {
        let asked = self.reads * self.page_bytes;
        self.delivered.as_ref().map_or(0.0, |(_, delivered)| (delivered / asked).min(1.0))
    }

    fn facts(&self, evidence: &Evidence) -> Vec<EvidenceLine> {
        let (memory, whose) = self.memory;
        let times = format!("{} ×", text::number(self.database / memory));
        let found = text::percent(1.0 - self.missed);
        let mut facts = vec![
            EvidenceLine::new("database", text::memory(self.database)),
            EvidenceLine::new(whose, text::memory(memory)),
            EvidenceLine::new("database / memory", times),
            EvidenceLine::new(format!("pages found in {}", self.pool.name), found),
        ];
        facts.extend(self.pool.size(evidence));
        let requested = format!("{} per second", text::rounded(self.reads));
        facts.push(EvidenceLine::new("pages requested from the kernel", requested));
        facts.extend(self.delivered.iter().map(|(device, bytes)| {
            EvidenceLine::new(format!("read from the data device {device}"), text::disk_rate(*bytes))
        }));
        let cached = evidence.newest(metric::MEMORY_CACHED);
        facts.extend(cached.map(|bytes| EvidenceLine::new("page cache", text::memory(bytes))));
        facts
    }

    /// Severity, title and remedy; `None` if the database fits and was in memory.
    fn judge(&self) -> Option<(Severity, String, &'static str)> {
        let (missed, stored) = (self.missed, self.stored());
        let (database, memory) = (text::memory(self.database), text::memory(self.memory.0));
        let from_storage = self.reads >= FEW && missed * stored >= MISSED && stored >= ANSWERED;
        Some(match (self.database <= self.memory.0, from_storage) {
            (false, true) => (
                Severity::Amber,
                format!(
                    "The working set does not fit in memory: {} of the pages came from storage (a database \
                    of {database} in {memory})",
                    text::percent(missed * stored)
                ),
                "State that the result also measures the storage, and compare it only with runs of the same \
                sizes; to make the CPU the limit, use a database of at most half the memory, so that it fits \
                in the buffers and in the page cache.",
            ),
            (true, true) => (
                Severity::Amber,
                format!(
                    "Storage served {} of the pages although the database ({database}) fits in memory \
                    ({memory}): it was not cached yet",
                    text::percent(missed * stored)
                ),
                "Use a longer ramp-up, or load the tables into memory before the window (pg_prewarm), unless \
                a cold start is intended.",
            ),
            // Enough pages were missed to matter, and their source is unknown, or the device served fewer than half.
            (false, false)
                if self.reads >= FEW
                    && missed >= MISSED
                    && self.delivered.as_ref().is_none_or(|_| missed * stored >= MISSED) =>
            {
                let served = match &self.delivered {
                    None => "whether the page cache or the storage served them is not known".to_owned(),
                    Some(_) => format!("the storage served {} of these", text::percent(stored)),
                };
                (
                    Severity::Note,
                    format!(
                        "The database ({database}) is larger than the memory ({memory}), and {} of the pages \
                        were requested from the kernel: {served}",
                        text::percent(missed)
                    ),
                    "State the sizes with the result: it may also measure the storage, and is valid only for \
                    the part of the data that the load uses.",
                )
            }
            (false, false) => (
                Severity::Note,
                format!(
                    "The database ({database}) is larger than the memory ({memory}), but the working set fits"
                ),
                "State how much of the data the load touches: the result is valid only for that part.",
            ),
            (true, false) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::CaptureTime;

    use super::super::staged::Staged;
    use super::*;

    const GB: f64 = 1_073_741_824.0;

    /// Pages per second from the buffers and from outside, and kB per second from the device.
    fn run(database: f64, hits: f64, reads: f64, device_kb: f64) -> Staged {
        Staged::new()
            .place("data", "vdb")
            .metric("host.memory.total", 4.0 * GB)
            .metric("postgres.blocks.hit", hits)
            .metric("postgres.blocks.read", reads)
            .metric("host.disk.vdb.rkb_s", device_kb)
            .relations(CaptureTime::After, Vec::new(), (database * GB) as u64)
    }

    fn found(staged: Staged) -> Option<(Severity, String)> {
        find(&staged.done()).first().map(|finding| (finding.severity, finding.title.clone()))
    }

    #[test]
    fn a_database_beyond_memory_that_is_read_from_storage_is_reported() {
        let (severity, title) = found(run(16.0, 80_000.0, 20_000.0, 150_000.0)).unwrap();
        assert_eq!(severity, Severity::Amber);
        assert!(
            title.contains("19 % of the pages came from storage (a database of 16 GB in 4.0 GB)"),
            "{title}"
        );
    }

    #[test]
    fn a_small_working_set_of_a_large_database_is_a_note() {
        assert_eq!(found(run(16.0, 99_990.0, 10.0, 80.0)).unwrap().0, Severity::Note);
    }

    #[test]
    fn what_works_on_more_than_is_known_is_not_said_to_fit() {
        let unseen = Staged::new()
            .place("data", "vdb")
            .metric("host.memory.total", 4.0 * GB)
            .metric("postgres.blocks.hit", 80_000.0)
            .metric("postgres.blocks.read", 20_000.0)
            .relations(CaptureTime::After, Vec::new(), (16.0 * GB) as u64);
        let (severity, title) = found(unseen).unwrap();
        assert!(severity == Severity::Note && title.contains("is not known"), "{title}");
        let (severity, title) = found(run(16.0, 80_000.0, 20_000.0, 48_000.0)).unwrap();
        assert!(severity == Severity::Note && title.contains("the storage served 30 % of these"), "{title}");
        let (_, title) = found(run(16.0, 80_000.0, 20_000.0, 80.0)).unwrap();
        assert!(title.contains("the working set fits"), "the page cache served: {title}");
    }

    #[test]
    fn a_database_that_fits_and_is_read_all_the_same_is_cold() {
        let (severity, title) = found(run(1.0, 80_000.0, 20_000.0, 150_000.0)).unwrap();
        assert!(severity == Severity::Amber && title.contains("was not cached yet"), "{title}");
        let (_, title) =
            found(run(3.0, 80_000.0, 20_000.0, 150_000.0).metric("host.cgroup.own.memory.limit", 2.0 * GB))
                .unwrap();
        assert!(title.contains("does not fit in memory"), "the group has 2 GB: {title}");
    }

    #[test]
    fn what_fits_or_is_not_known_is_nothing() {
        assert_eq!(found(run(1.0, 99_000.0, 1_000.0, 100.0)), None, "the page cache served");
        assert_eq!(found(run(1.0, 99_990.0, 10.0, 80.0)), None);
        assert_eq!(found(Staged::new().metric("host.memory.total", GB)), None);
    }
}
