//! Does the load's working set fit in memory?
//!
//! A database of twice the memory may have a working set of a tenth of it, and one that fits may not have been read in yet:
//! so the sizes are compared, and then who answered the pages that the buffers lacked decides.

use kelvin_measure::text;
use kelvin_observe::metric;

use super::{FindingDefinition, buffer_pool, buffers_too_small};
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "working-set", question: "Does the load's working set fit in memory?", look };

/// Share of the pages that come from the storage from which the figure is the storage's too: at 100 µs a read against
/// some µs of work on a page, one in a hundred is a tenth of the time or more.
const MISSED: f64 = 0.01;
/// Pages per second below which reads do not matter.
const FEW: f64 = 100.0;
/// Share of the bytes that the device must have delivered to have answered (as in data-in-page-cache).
const ANSWERED: f64 = 0.5;

fn look(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| at(evidence, point.point)).collect()
}

/// Bytes of memory that the database may use, and of what: the host's, or less where kelvin's own control group has less, which
/// a server on the same host is taken to share.
fn memory(evidence: &Evidence) -> Option<(f64, &'static str)> {
    let host = buffers_too_small::memory(evidence)?;
    let limits = evidence.names("host.cgroup.", ".memory.limit");
    let limit = limits.filter_map(|name| evidence.newest(name)).fold(f64::INFINITY, f64::min);
    Some(if limit > 0.0 && limit < host {
        (limit, "memory limit of kelvin's control group")
    } else {
        (host, "memory of the host")
    })
}

fn at(evidence: &Evidence, point: u32) -> Option<Finding> {
    let (memory, whose) = memory(evidence)?;
    let database = buffers_too_small::database(evidence)?;
    let hits = evidence.mean_of_first_known(point, metric::BUFFER_HITS)?;
    let reads = evidence.mean_of_first_known(point, metric::BUFFER_READS)?;
    let pool = buffer_pool::configured_pool(evidence);
    let missed = reads / (hits + reads);
    if missed.is_nan() {
        return None;
    }
    let asked = reads * pool.page;
    let device = evidence.file_location("data").and_then(|place| place.device.as_ref());
    let delivered = device
        .and_then(|device| evidence.mean(point, &format!("host.disk.{device}.rkb_s")))
        .map(|kb| kb * 1024.0);
    let stored = delivered.map_or(0.0, |delivered| (delivered / asked).min(1.0));
    let from_storage = reads >= FEW && missed * stored >= MISSED && stored >= ANSWERED;
    let fits = database <= memory;
    if fits && !from_storage {
        return None;
    }
    let mut facts = vec![
        EvidenceLine::new("database", text::memory(database)),
        EvidenceLine::new(whose, text::memory(memory)),
        EvidenceLine::new("database / memory", format!("{} ×", text::number(database / memory))),
        EvidenceLine::new(format!("pages found in {}", pool.name), text::percent(1.0 - missed)),
    ];
    facts.extend(pool.bytes.map(|size| EvidenceLine::new(pool.setting, text::memory(size))));
    facts.push(EvidenceLine::new(
        "pages requested from the kernel",
        format!("{} per second", text::rounded(reads)),
    ));
    facts.extend(delivered.zip(device).map(|(bytes, device)| {
        EvidenceLine::new(format!("read from the data device {device}"), text::disk_rate(bytes))
    }));
    facts.extend(
        evidence
            .newest("host.memory.cached")
            .map(|bytes| EvidenceLine::new("page cache", text::memory(bytes))),
    );
    let (severity, title, next) = match (fits, from_storage) {
        (false, true) => (
            Severity::Amber,
            format!(
                "The working set does not fit in memory: {} of the pages came from storage (a database of {} \
                in {})",
                text::percent(missed * stored),
                text::memory(database),
                text::memory(memory)
            ),
            "State that the result also measures the storage, and compare it only with runs of the same \
            sizes; to make the CPU the limit, use a database of at most half the memory, so that it fits in \
            the buffers and in the page cache.",
        ),
        (true, true) => (
            Severity::Amber,
            format!(
                "Storage served {} of the pages although the database ({}) fits in memory ({}): it was not \
                cached yet",
                text::percent(missed * stored),
                text::memory(database),
                text::memory(memory)
            ),
            "Use a longer ramp-up, or load the tables into memory before the window (pg_prewarm), unless a \
            cold start is intended.",
        ),
        // Enough pages were missed to matter, and it is not known what served them, or the device served fewer than half.
        (false, false)
            if reads >= FEW && missed >= MISSED && delivered.is_none_or(|_| missed * stored >= MISSED) =>
        {
            (
                Severity::Note,
                format!(
                    "The database ({}) is larger than the memory ({}), and {} of the pages were requested \
                    from the kernel: {}",
                    text::memory(database),
                    text::memory(memory),
                    text::percent(missed),
                    delivered.map_or_else(
                        || "whether the page cache or the storage served them is not known".to_owned(),
                        |_| format!("the storage served {} of these", text::percent(stored))
                    )
                ),
                "State the sizes with the result: it may also measure the storage, and is valid only for the \
                part of the data that the load uses.",
            )
        }
        (false, false) => (
            Severity::Note,
            format!(
                "The database ({}) is larger than the memory ({}), but the working set fits",
                text::memory(database),
                text::memory(memory)
            ),
            "State how much of the data the load touches: the result is valid only for that part.",
        ),
        (true, false) => return None,
    };
    Some(Finding {
        id: ABOUT.id,
        severity,
        point: Some(point),
        title,
        evidence: facts,
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
        look(&staged.done()).first().map(|finding| (finding.severity, finding.title.clone()))
    }

    #[test]
    fn a_database_beyond_memory_that_is_read_from_storage_is_told() {
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
