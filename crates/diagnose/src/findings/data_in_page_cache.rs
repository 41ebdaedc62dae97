//! Did the storage serve the reads, or the kernel's page cache?
//!
//! If a database is larger than its buffers and the kernel's cache serves its pages, the figure measures memory, not storage.

use kelvin_measure::text;
use kelvin_observe::metric;

use super::{FindingDefinition, buffers_too_small};
use crate::engine::engine_advice;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "data-in-page-cache",
    question: "Did the storage serve the reads, or the kernel's page cache?",
    find,
};

/// Pages per second below which reads do not matter.
const FEW: f64 = 100.0;
/// Share of all pages that must be missed for reads to be part of the load.
const MISSED: f64 = 0.01;
/// Share of the bytes from which the device counts as the source of the reads.
const ANSWERED: f64 = 0.5;
/// Share of the sessions' time from which reads are the limit (METHOD B6).
const LIMIT: f64 = 0.4;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let device = evidence.file_location("data")?.device.as_ref()?;
    let pages = evidence.mean_of_first_known(point, metric::BUFFER_READS)?;
    let hits = evidence.mean_of_first_known(point, metric::BUFFER_HITS).unwrap_or(0.0);
    let pool = engine_advice(evidence).buffers();
    if pages < FEW || pages / (pages + hits) < MISSED {
        return None;
    }
    let asked = pages * pool.page_bytes(evidence);
    let delivered = evidence.mean(point, &metric::disk(device, "rkb_s"))? * 1024.0;
    if delivered >= ANSWERED * asked {
        return None;
    }
    let database = buffers_too_small::database(evidence);
    // A database within its buffers is only filling them.
    let buffers = pool.bytes(evidence);
    if database.zip(buffers).is_some_and(|(bytes, buffers)| bytes <= buffers) {
        return None;
    }
    let waiting = buffers_too_small::waiting(evidence, point);
    let dominate = waiting.is_some_and(|waiting| waiting >= LIMIT);
    let explained = buffers_too_small::is_red(evidence, point);
    let memory = buffers_too_small::memory(evidence);
    let mut facts = vec![
        EvidenceLine::new(
            "pages requested from the kernel",
            format!("{} per second, {}", text::rounded(pages), text::disk_rate(asked)),
        ),
        EvidenceLine::new(format!("read from the data device {device}"), text::disk_rate(delivered)),
    ];
    facts.extend(database.map(|bytes| EvidenceLine::new("database", text::memory(bytes))));
    facts.extend(memory.map(|bytes| EvidenceLine::new("memory of the host", text::memory(bytes))));
    facts.extend(waiting.map(|waiting| {
        EvidenceLine::new("session time spent waiting for data files", text::percent(waiting))
    }));
    Some(Finding {
        id: ABOUT.id,
        severity: if dominate && !explained { Severity::Red } else { Severity::Amber },
        point: Some(point),
        title: format!(
            "The kernel's page cache served {} of the reads: the storage was not measured",
            text::percent(1.0 - delivered / asked)
        ),
        evidence: facts,
        effect: Effect::unknown("how long the storage would have taken was not measured"),
        below_precision: false,
        threshold: "the device delivered less than half of the bytes that the database requested, with 100 \
            or more pages per second and 1 % of all pages requested from the kernel; red when waits for \
            these reads take 40 % of the sessions' time (the verdict's own threshold)"
            .into(),
        next: "To measure the storage, use a database of at least twice the memory, or limit the memory (a \
            control group); otherwise make the buffers large enough for the database, so that no page has to \
            be copied."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::CaptureTime;

    use super::super::staged::Staged;
    use super::*;

    fn reading(device_kb: f64) -> Staged {
        Staged::new()
            .place("data", "vdb")
            .metric("postgres.blocks.read", 20_000.0)
            .metric("postgres.blocks.hit", 80_000.0)
            .metric("host.disk.vdb.rkb_s", device_kb)
    }

    fn severity(staged: Staged) -> Option<Severity> {
        find(&staged.done()).first().map(|finding| finding.severity)
    }

    #[test]
    fn a_device_that_is_hardly_read_did_not_answer() {
        assert_eq!(severity(reading(500.0)), Some(Severity::Amber));
        let dominated = reading(500.0).sessions(
            &[("client backend", "IO", "DataFileRead", 5.0), ("client backend", "CPU", "", 2.0)],
            &[],
        );
        assert_eq!(severity(dominated), Some(Severity::Red));
    }

    #[test]
    fn a_device_that_answers_few_reads_and_the_unknown_are_nothing() {
        assert_eq!(severity(reading(155_000.0)), None);
        assert_eq!(
            severity(Staged::new().place("data", "vdb").metric("postgres.blocks.read", 20_000.0)),
            None
        );
        let few = Staged::new()
            .place("data", "vdb")
            .metric("postgres.blocks.read", 50.0)
            .metric("host.disk.vdb.rkb_s", 0.0);
        assert_eq!(severity(few), None);
        let filling = reading(500.0).setting("shared_buffers", "6442450944").relations(
            CaptureTime::After,
            Vec::new(),
            500 << 20,
        );
        assert_eq!(severity(filling), None);
        let warming = Staged::new()
            .place("data", "vdb")
            .metric("postgres.blocks.read", 1250.0)
            .metric("postgres.blocks.hit", 270_000.0)
            .metric("host.disk.vdb.rkb_s", 0.0);
        assert_eq!(severity(warming), None);
    }
}
