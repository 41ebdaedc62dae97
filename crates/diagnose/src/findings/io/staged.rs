//! Facts as a healthy run has them, which a test changes in one thing.

use kelvin_storage::PerDirection;
use kelvin_storage::probe::*;

use super::IoFindingDefinition;
use crate::Severity;

const GIB: u64 = 1 << 30;

/// Before the run: one job reads and overwrites a fully written file of 8 GiB on an NVMe disk of 64 GiB at random, past
/// the page cache, eight at a time.
pub(super) fn before() -> StorageFacts {
    let sample =
        Content { blocks: 64, block: 4096, zero: 0, distinct: 64, compressed: 1.0, ..Content::default() };
    StorageFacts {
        host: HostFacts {
            kernel: "6.18.0".into(),
            cpus: 4,
            nodes: 1,
            clock_source: Some("tsc".into()),
            timer_floor: Some(22.0),
            ring_floor: Some(400.0),
            memory: Some(16 * GIB),
            memory_available: Some(12 * GIB),
            ..HostFacts::default()
        },
        jobs: vec![JobFacts {
            name: "mixed".into(),
            workers: 1,
            engine: "io_uring".into(),
            asynchronous: true,
            depth: 8,
            direct: true,
            does: PerDirection([true, true, false]),
            random: true,
            block: PerDirection([(4096, 4096), (4096, 4096), (0, 0)]),
            aligned: 4096,
            targets: vec![0],
            worker_targets: 1,
            worker_devices: vec!["nvme0n1".into()],
            same_bytes: 1,
            repeats: true,
            buffers: Some(sample.clone()),
            percentiles: vec![50.0, 99.0, 99.9],
            ..JobFacts::default()
        }],
        targets: vec![TargetFacts {
            path: "/data/file".into(),
            region: (0, 8 * GIB),
            size: Some(8 * GIB),
            read: true,
            written: true,
            direct: true,
            device: Some("nvme0n1".into()),
            filesystem: Some(Filesystem { kind: "ext4".into(), point: "/data".into(), options: vec![] }),
            alignment: Some(Alignment { memory: 512, offset: 512, source: "statx".into() }),
            coverage: Some(Coverage {
                bytes: 8 * GIB,
                extents: 70,
                synced: true,
                by: "fiemap".into(),
                ..Coverage::default()
            }),
            cached: Some(Cached::default()),
            sample: Some(sample),
            ..TargetFacts::default()
        }],
        devices: vec![DeviceFacts {
            name: "nvme0n1".into(),
            number: "259:0".into(),
            disk: "nvme0n1".into(),
            leaves: vec!["nvme0n1".into()],
            counted: vec!["nvme0n1".into()],
            size: 64 * GIB,
            queue: Queue {
                scheduler: Some("none".into()),
                longest: Some(1 << 20),
                logical: Some(512),
                physical: Some(512),
                write_cache: Some("write back".into()),
                rotational: Some(false),
                zoned: Some("none".into()),
                write_back_throttle: Some(2000),
                ..Queue::default()
            },
            ..DeviceFacts::default()
        }],
        ..StorageFacts::default()
    }
}

/// The same after a run of a minute: 100,000 I/Os a second, half of them reads, 80 µs each.
pub(super) fn after() -> StorageFacts {
    let mut facts = before();
    let (ios, bytes) = (3_000_000, 3_000_000 * 4096);
    let per = |value: u64| PerDirection([value, value, 0]);
    let times = TimeSummary { count: ios, mean: 79_000.0, median: 75_000, p99: Some(150_000) };
    facts.run = Some(RunFacts {
        seconds: 60.0,
        claimed: per(bytes),
        ios: per(ios),
        process: Some((bytes, bytes)),
        devices: vec![DeviceRun {
            name: "nvme0n1".into(),
            ios: per(ios + 500),
            bytes: per(bytes + (4 << 20)),
            busy: 60_000,
            ..DeviceRun::default()
        }],
        others: vec![OtherProcess { name: "journald".into(), process: 400, read: 0, written: 1 << 20 }],
        cpu: CpuRun { busy: Some(0.2), steal: Some(0.0), throttled: Some(0.0) },
        jobs: vec![JobRun {
            workers: 1,
            seconds: 60.0,
            ios: per(ios),
            bytes: per(bytes),
            depth: Some(7.9),
            latency: Some(80_000.0),
            issued_depth: Some(7.8),
            cpu: 0.4,
            cpu_per_io: Some(4000.0),
            run_delay: Some(0.001),
            completion: PerDirection([Some(times), Some(times), None]),
            // Scatters by 2 % without a trend.
            series: (0..60).map(|i| 409.6e6 * (1.0 + 0.02 * ((i * 37 % 11) as f64 / 5.0 - 1.0))).collect(),
            step: 1.0,
            ..JobRun::default()
        }],
        ..RunFacts::default()
    });
    facts.targets[0].after = Some(TargetAfter {
        size: 8 * GIB,
        cached: Some(Cached::default()),
        moved: PerDirection([bytes, bytes, 0]),
        ..TargetAfter::default()
    });
    facts
}

/// The run of [`after`], to be changed.
pub(super) fn run(facts: &mut StorageFacts) -> &mut RunFacts {
    facts.run.as_mut().unwrap()
}

/// The same through the page cache.
pub(super) fn buffered(mut facts: StorageFacts) -> StorageFacts {
    facts.jobs[0].direct = false;
    (facts.targets[0].direct, facts.targets[0].buffered) = (false, true);
    facts
}

/// The same with reads only.
pub(super) fn reading(mut facts: StorageFacts) -> StorageFacts {
    facts.jobs[0].does.0[1] = false;
    facts.targets[0].written = false;
    if let Some(run) = &mut facts.run {
        (run.claimed.0[1], run.ios.0[1]) = (0, 0);
        (run.devices[0].bytes.0[1], run.devices[0].ios.0[1]) = (0, 0);
        run.process = run.process.map(|process| (process.0, 0));
        (run.jobs[0].bytes.0[1], run.jobs[0].ios.0[1]) = (0, 0);
    }
    facts
}

/// The same with writes only.
pub(super) fn writing(mut facts: StorageFacts) -> StorageFacts {
    facts.jobs[0].does.0[0] = false;
    facts.targets[0].read = false;
    if let Some(run) = &mut facts.run {
        (run.claimed.0[0], run.ios.0[0]) = (0, 0);
        (run.devices[0].bytes.0[0], run.devices[0].ios.0[0]) = (0, 0);
        run.process = run.process.map(|process| (0, process.1));
        (run.jobs[0].bytes.0[0], run.jobs[0].ios.0[0]) = (0, 0);
    }
    facts
}

/// How severe what a finding says of these facts is; looks at its words as well.
pub(super) fn severities(about: &IoFindingDefinition, facts: &StorageFacts) -> Vec<Severity> {
    let found = (about.find)(facts);
    let small =
        |text: &str| text.is_empty() || text.starts_with(|first: char| first.is_lowercase() || first == '`');
    for finding in &found {
        assert_eq!(finding.id, about.id);
        crate::effect::check(finding);
        assert!(!small(&finding.title) && !finding.title.ends_with('.'), "title: {}", finding.title);
        assert!(!small(&finding.next) && finding.next.ends_with('.'), "next: {}", finding.next);
        assert!(!finding.evidence.is_empty() && !finding.threshold.is_empty(), "{finding:?}");
    }
    found.iter().map(|finding| finding.severity).collect()
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    #[test]
    fn a_healthy_run_has_no_finding_but_notes() {
        for facts in [before(), after(), reading(after()), writing(after())] {
            let grave: Vec<_> =
                find(&facts).into_iter().filter(|one| one.severity != Severity::Note).collect();
            assert_eq!(grave, []);
        }
        assert_eq!(find(&StorageFacts::default()), []);
    }

    #[test]
    fn facts_come_back_from_their_text_with_the_same_findings() {
        let mut facts = after();
        facts.targets[0].coverage.as_mut().unwrap().hole = 4 * GIB;
        let text = serde_json::to_string(&facts).unwrap();
        assert!(text.len() < 8000, "{}", text.len());
        let back: StorageFacts = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        assert_eq!(find(&back), find(&facts));
        // What an older version did not see is not there.
        let older: StorageFacts = serde_json::from_str("{\"jobs\":[{\"name\":\"a\"}]}").unwrap();
        assert_eq!(find(&older), []);
    }

    /// Everything that can be wrong at once, as a reader sees it.
    #[test]
    fn the_words_of_all_findings() {
        let mut facts = after();
        let gib = |gib: u64| gib << 30;
        let target = &mut facts.targets[0];
        let coverage = target.coverage.as_mut().unwrap();
        (coverage.hole, coverage.unwritten, coverage.shared) = (gib(2), gib(1), gib(1));
        (target.compressed, target.filesystem.as_mut().unwrap().options) = (true, vec!["discard".into()]);
        let sample = target.sample.as_mut().unwrap();
        (sample.zero, sample.compressed, sample.distinct) = (60, 0.4, 3);
        target.after.as_mut().unwrap().cached = Some(Cached { bytes: gib(3), dirty: 0 });
        // A second file, through the page cache, by a second job over two devices.
        let mut other = before();
        let mut job = other.jobs.remove(0);
        (job.name, job.direct, job.targets) = ("cached".into(), false, vec![1]);
        (job.engine, job.asynchronous, job.same_bytes) = ("psync".into(), false, 4);
        job.worker_devices.push("sdb".into());
        job.rate.0[0] = Some(400 << 20);
        let mut target = other.targets.remove(0);
        (target.path, target.buffered, target.direct) = ("/tmp/file".into(), true, false);
        target.filesystem.as_mut().unwrap().kind = "tmpfs".into();
        facts.jobs.push(job);
        facts.targets.push(target);
        facts.jobs[0].aligned = 256;
        (facts.host.nodes, facts.host.timer_floor, facts.host.clock_source) =
            (2, Some(800.0), Some("hpet".into()));
        let device = &mut facts.devices[0];
        (device.node, device.queue.zoned, device.lent) = (Some(1), Some("host-managed".into()), true);
        device.layers =
            vec![Layer { device: "dm-1".into(), kind: LayerKind::Thin, detail: "group-pool".into() }];
        (device.size, device.model) = (gib(2000), Some("Disk 9000".into()));
        let limit = |kind, value| Limit {
            device: Some("nvme0n1".into()),
            kind,
            value,
            place: "/sys/fs/cgroup/job/io.max".into(),
        };
        facts.limits = vec![limit(LimitKind::ReadIos, 50_000), limit(LimitKind::WriteBytes, gib(9))];
        let run = facts.run.as_mut().unwrap();
        (run.cpu.steal, run.io_workers) = (Some(0.07), 3);
        let device = &mut run.devices[0];
        (device.ios.0[2], device.bytes.0[2], device.bytes.0[0]) = (40, gib(6), device.bytes.0[0] + gib(5));
        let mut second = run.jobs[0].clone();
        second.ios = PerDirection([900, 0, 0]);
        second.completion.0[0] = Some(TimeSummary { count: 900, mean: 9e4, median: 80_000, p99: None });
        run.jobs[0].series =
            (0..60).map(|i| if i < 20 { 800e6 } else { 200e6 + (i % 7) as f64 * 1e6 }).collect();
        (run.jobs[0].cpu, run.jobs[0].depth) = (0.95, Some(2.0));
        run.jobs.push(second);
        let mut text = String::new();
        for finding in find(&facts) {
            text.push_str(&format!("{} {}: {}\n", finding.severity.word(), finding.id, finding.title));
            for fact in &finding.evidence {
                text.push_str(&format!("    {}: {}\n", fact.what, fact.found));
            }
            text.push_str(&format!("    effect: {}\n", finding.effect.describe()));
            text.push_str(&format!("  > {}\n", finding.next));
        }
        insta::assert_snapshot!(text);
    }
}
