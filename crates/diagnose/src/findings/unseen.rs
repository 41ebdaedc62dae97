//! What was unavailable, and which questions that leaves open.

use kelvin_measure::observation::UnavailableMetrics;
use kelvin_observe::metric;

use super::FindingDefinition;
use crate::engine::advice_by_name;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "unseen",
    question: "What could not be observed, and what stopped reporting during the run?",
    find,
};

/// What is not known without a source, by the prefix of its name.
const OPEN: &[(&str, &str)] = &[
    (metric::INTERRUPT_PRESSURE, "how much time interrupts took"),
    (metric::PRESSURE, "whether tasks waited for CPU, memory or devices"),
    (metric::RUN_QUEUE, "how long tasks waited for a CPU"),
    (metric::CPU_FREQUENCY, "whether the CPUs were slowed down"),
    (metric::CPU_THROTTLED, "whether the CPUs were slowed down"),
    (metric::CPU, "what the CPUs were busy with"),
    (metric::DISK, "device activity: log stalls, and what served the reads"),
    (metric::HOST_NUMA, "whether memory was remote"),
    (metric::HARDWARE, "instructions and cache misses"),
    (metric::MEMORY_BANDWIDTH, "whether memory bandwidth was the limit"),
    (metric::SERVER_PROCESS, "the CPU use of the server, and therefore of other processes"),
    (metric::CGROUP, "whether a limit throttled the work"),
    (metric::BLOCK_READ_MS, "how long reads took"),
    (metric::CHECKPOINTS, "how many checkpoints there were, and what they wrote"),
    (metric::WAL, "how long WAL writes took, and how much of the WAL was full-page images"),
    (metric::BACKEND_IO, "which kind of process read and wrote"),
    ("tables and indexes of pages", "the tables of the pages that sessions waited for"),
    ("data reads and latches of sessions", "how much of the sessions' apparent CPU time was waiting"),
    ("latches by name", "which latch sessions waited for"),
    ("age of the checkpoint", "whether the redo log is too small"),
    ("syncs of the redo log", "how long a flush of the redo log took"),
    ("times of reads, writes and syncs of files", "how long file I/O took, and which statements it delayed"),
    (
        "reasons for checkpoints",
        "which checkpoints were forced by WAL size (estimated from the WAL written instead)",
    ),
    ("states of sessions", "what sessions waited for, and therefore the verdict"),
    ("sessions of other roles", "what the server's own processes and other roles' sessions did"),
    ("statements of sessions", "which statements the waiting sessions ran"),
    ("statements within functions", "which statement of a function took the time"),
    ("statements", "which statement took the time, and whether a plan changed"),
    ("sizes of tables", "how large the tables are, and therefore whether they fit in memory"),
    ("settings", "some of the settings"),
];

fn find(evidence: &Evidence) -> Vec<Finding> {
    let mut found = Vec::new();
    if !evidence.lost().is_empty() {
        let names: Vec<&str> = evidence.lost().iter().take(3).map(|lost| lost.what.as_str()).collect();
        found.push(Finding {
            id: ABOUT.id,
            severity: Severity::Amber,
            point: None,
            title: format!("Stopped reporting during the run: {}", names.join(", ")),
            evidence: facts(evidence.lost()),
            effect: Effect::unknown("what was not observed cannot be quantified"),
            below_precision: false,
            threshold:
                "any source that was available when the run began and not until its end: a finding may be \
                missing for that reason"
                    .into(),
            next: "Find out why it stopped, and run again if part of the window was not observed.".into(),
        });
    }
    if !evidence.absent().is_empty() {
        let facts = facts(evidence.absent());
        found.push(Finding {
            id: ABOUT.id,
            severity: Severity::Note,
            point: None,
            title: match facts.len() {
                1 => "One source was unavailable".into(),
                number => format!("{number} sources were unavailable"),
            },
            evidence: facts,
            effect: Effect::unknown("what was not observed cannot be quantified"),
            below_precision: false,
            threshold: "no threshold: every unavailable source is listed with its reason".into(),
            next: "If you need one of these sources, see the remedy listed with it.".into(),
        });
    }
    found
}

/// What is not known without this source: a watcher of an engine has the engine's name before what it reads.
fn open(what: &str) -> Option<&'static str> {
    match what.split_once(' ') {
        Some((engine, "figures")) => Some(advice_by_name(engine, "").sessions().figures),
        Some((_, "sessions")) => Some("what sessions waited for, and therefore the verdict"),
        _ => OPEN.iter().find(|(prefix, _)| what.starts_with(prefix)).map(|(_, open)| *open),
    }
}

/// Each source once, with its reason and what is not known without it.
fn facts(absent: &[UnavailableMetrics]) -> Vec<EvidenceLine> {
    let mut facts: Vec<EvidenceLine> = Vec::new();
    for one in absent {
        let found =
            open(&one.what).map_or_else(|| one.why.clone(), |open| format!("{}; not known: {open}", one.why));
        let fact = EvidenceLine::new(one.what.clone(), found);
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    #[test]
    fn what_is_absent_is_a_note_and_what_was_lost_is_amber() {
        let evidence =
            Staged::new().absent("host.hardware").absent("host.hardware").lost("postgres sessions").done();
        let found = find(&evidence);
        let severities: Vec<_> = found.iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [Severity::Amber, Severity::Note]);
        assert_eq!(found[1].evidence.len(), 1);
        assert!(found[1].evidence[0].found.contains("not known: instructions"));
    }

    /// The names as crates/observe declares them.
    #[test]
    fn what_is_absent_leaves_open_what_it_would_have_shown() {
        for (what, open) in [
            ("states of sessions", "the verdict"),
            ("statements of sessions", "the waiting sessions"),
            ("statements within functions", "of a function"),
            ("statements", "a plan changed"),
            ("reasons for checkpoints", "forced by WAL size"),
            ("settings data_directory, shared_preload_libraries and others", "some of the settings"),
            ("postgres.blocks.read_ms, .write_ms", "how long reads took"),
            ("postgres.wal, except .bytes", "how long WAL writes took"),
        ] {
            let found = find(&Staged::new().absent(what).done());
            assert!(found[0].evidence[0].found.contains(open), "{what}: {found:?}");
        }
    }

    #[test]
    fn where_all_was_seen_there_is_nothing() {
        assert!(find(&Staged::new().done()).is_empty());
    }
}
