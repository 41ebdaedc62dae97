//! What a run on such a machine should know.

use serde::Serialize;

use super::Baseline;
use super::disturbance::OTHERS;

/// A sentence about one figure or fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The name of the figure or fact.
    pub about: String,
    /// Whether a run's figures would mislead: else it is only to be known.
    pub grave: bool,
    /// What it means and what to do.
    pub text: String,
}

/// Judges a baseline by itself, without one to compare it with.
pub fn judge(baseline: &Baseline) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut say = |about: &str, grave: bool, text: String| {
        remarks.push(Remark { about: about.into(), grave, text });
    };
    if baseline.build == "debug" {
        say("build", true, "kelvin is a debug build: its measurements do not reflect the machine".into());
    }
    processor(baseline, &mut say);
    memory(baseline, &mut say);
    devices(baseline, &mut say);
    database(baseline, &mut say);
    remarks
}

type Say<'a> = dyn FnMut(&str, bool, String) + 'a;

fn processor(baseline: &Baseline, say: &mut Say<'_>) {
    if let Some(governor) = baseline.fact("processor.governor")
        && governor
            .split(", ")
            .any(|one| matches!(one, "powersave" | "ondemand" | "conservative" | "schedutil"))
    {
        let text = format!(
            "{governor} scales the clock rate with the load, so light loads appear slower; set performance \
             (cpupower frequency-set -g performance)"
        );
        say("processor.governor", false, text);
    }
    if let Some(text) = baseline.fact("processor.mitigations")
        && text.contains("Vulnerable")
    {
        let text = "some mitigations are off: this host is faster than with all mitigations on";
        say("processor.mitigations", false, text.into());
    }
    let clock = baseline.figure("clock.read").filter(|cost| *cost > 150.0);
    if let Some(cost) = clock {
        let text = format!(
            "{cost:.0} ns per reading: the clock source needs a system call, which slows client and \
             database (EXPLAIN ANALYZE, track_io_timing); use tsc if the hardware supports it"
        );
        say("clock.read", true, text);
    }
    if let Some(late) = baseline.figure("timer.late.p99").filter(|late| *late > 1000.0) {
        say(
            "timer.late.p99",
            true,
            format!("open-loop transactions would start {:.1} ms late", late / 1000.0),
        );
    }
    if let Some(steal) = baseline.figure("host.steal").filter(|steal| *steal > 2.0) {
        let text =
            format!("{steal:.1} % of CPU time went to other VMs: they affect every result on this host");
        say("host.steal", true, text);
    }
    if let Some(others) = baseline.figure(OTHERS).filter(|others| *others > 0.2) {
        let text = format!("{others:.1} cores during the measurement; stop these processes before a run");
        say(OTHERS, true, text);
    }
    if let Some(limit) = baseline.fact("host.cpu-limit") {
        say("host.cpu-limit", false, format!("the cgroup allows {limit}: a run cannot use more"));
    }
}

fn memory(baseline: &Baseline, say: &mut Say<'_>) {
    if baseline.fact("memory.transparent-huge-pages") == Some("always") {
        let text = "always: the kernel may stall a process to build huge pages; database vendors recommend \
                    madvise";
        say("memory.transparent-huge-pages", false, text.into());
    }
}

fn devices(baseline: &Baseline, say: &mut Say<'_>) {
    let kind = baseline.fact("sync.file-system").and_then(|text| text.split(' ').next()).unwrap_or("");
    if matches!(kind, "tmpfs" | "ramfs") {
        say("sync.p50", true, format!("{kind} is in memory: no commit waits for a disk there"));
    } else if let Some(time) = baseline.figure("sync.p50").filter(|time| *time < 10.0) {
        let text = format!(
            "{time:.1} µs is faster than a disk can sync: something acknowledges data that it has not \
             written"
        );
        say("sync.p50", true, text);
    }
    if baseline.fact("disk.way").is_some_and(|way| way != "O_DIRECT") {
        say(
            "disk.way",
            true,
            "I/O went through the page cache: these results do not measure the disk".into(),
        );
    }
}

fn database(baseline: &Baseline, say: &mut Say<'_>) {
    let fact = |name: &str| baseline.fact(&format!("database.{name}"));
    if fact("fsync") == Some("off") {
        say(
            "database.fsync",
            true,
            "off: a crash can corrupt the database, and no commit waits for the disk".into(),
        );
    }
    if fact("synchronous_commit") == Some("off") {
        let text = "off: commits return before they are flushed to disk";
        say("database.synchronous_commit", true, text.into());
    }
    for fault in baseline.facts.iter().filter(|fact| fact.is_fault()) {
        say(&fault.name, true, format!("{}: {}", fault.label, fault.value));
    }
    if fact("full_page_writes") == Some("off") {
        let text = "off: a crash can leave torn pages; less WAL is written than usual";
        say("database.full_page_writes", true, text.into());
    }
    if fact("autovacuum") == Some("off") {
        say("database.autovacuum", false, "off: tables bloat over a long run".into());
    }
    if fact("shared_buffers") == Some("128MB") {
        let text = "the default, which is small: 25 % of memory is usual";
        say("database.shared_buffers", false, text.into());
    }
    if fact("max_wal_size") == Some("1GB") {
        let text = "the default: a write load will force checkpoints";
        say("database.max_wal_size", false, text.into());
    }
    if fact("track_io_timing") == Some("off") {
        say("database.track_io_timing", false, "off: the server does not time its reads and writes".into());
    }
    if let Some(active) =
        fact("active").and_then(|count| count.parse::<u64>().ok()).filter(|count| *count > 0)
    {
        say("database.active", true, format!("{active} other sessions are active: the server is not idle"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BaselineFact, BaselineMetricKind};
    use super::*;

    #[test]
    fn trial_b2_a_known_fault_of_the_server_is_a_grave_remark() {
        let mut baseline = Baseline::new();
        baseline.build = "release".into();
        for fault in kelvin_database::postgres::faults::known(180_001) {
            baseline.facts.push(BaselineFact::from_fault(&fault));
        }
        let remarks = judge(&baseline);
        assert_eq!(remarks.len(), 1);
        assert!(
            remarks[0].grave && remarks[0].text.starts_with("known fault: PostgreSQL 18.0 and 18.1: "),
            "{remarks:?}"
        );
        assert_eq!(remarks[0].text.matches("known fault").count(), 1, "{remarks:?}");
    }

    #[test]
    fn a_good_machine_has_no_grave_remark() {
        let mut baseline = Baseline::new();
        baseline.build = "release".into();
        baseline.add_fact("processor.governor", "", "performance");
        baseline.add_fact("processor.mitigations", "", "spectre_v2: Mitigation: Retpolines");
        baseline.add_fact("database.fsync", "", "on");
        baseline.put("clock.read", "", 25.0, "ns", BaselineMetricKind::Cost, 9);
        baseline.put("sync.p50", "", 200.0, "µs", BaselineMetricKind::Latency, 900);
        baseline.put("host.steal", "", 0.1, "%", BaselineMetricKind::Disturbance, 1);
        assert_eq!(judge(&baseline), []);
        baseline.facts[2].value = "off".into();
        baseline.figures[0].value = 900.0;
        baseline.figures[1].value = 2.0;
        baseline.figures[2].value = 2.5;
        baseline.add_fact("database.active", "", "3");
        let grave: Vec<_> =
            judge(&baseline).into_iter().filter(|one| one.grave).map(|one| one.about).collect();
        assert_eq!(grave, ["clock.read", "host.steal", "sync.p50", "database.fsync", "database.active"]);
    }
}
