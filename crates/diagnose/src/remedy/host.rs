//! Settings of the server's host: I/O scheduler, read-ahead, frequency governor, huge pages, and where its memory lies. Only of this host,
//! whose settings the run recorded: the server's files must lie on it.

use std::collections::BTreeMap;

use kelvin_measure::observation::{DiskQueue, WaitKind};
use kelvin_measure::text;
use kelvin_observe::metric;

use super::{HOST, Remedy, Rules, finding, waited_share};
use crate::engine::engine_advice;
use crate::findings::numa_remote::SKEW;
use crate::load::process_cores;
use crate::{Change, Effect, EffectBasis, Evidence, Finding, HostSetting};

/// Reads of this size and more are sequential ones, which are as long as the kernel reads ahead: a page of the database is smaller.
const SEQUENTIAL: f64 = 65_536.0;
/// The read-ahead to try.
const READ_AHEAD: u64 = 4 << 20;

pub(super) fn remedies(evidence: &Evidence, found: &[Finding]) -> Vec<Remedy> {
    if evidence.file_location("data").is_none() {
        return Vec::new();
    }
    let others = [governor(evidence), huge_pages(evidence, found), memory_node(evidence, found)];
    disks(evidence, found).into_iter().chain(others.into_iter().flatten()).collect()
}

fn remedy(title: String, what: HostSetting, values: [String; 2], reason: String, effect: Effect) -> Remedy {
    let [before, value] = values;
    let change = Change::Host { what, before, value };
    Remedy { finding: HOST, title, change, reason, effect, rules: Rules::Allowed }
}

/// The disks of data and log, with the waits for what lies on them.
fn disks(evidence: &Evidence, found: &[Finding]) -> Vec<Remedy> {
    let cached = reads_through_page_cache(evidence, found);
    let mut by_disk: BTreeMap<&str, (&DiskQueue, Vec<WaitKind>)> = BTreeMap::new();
    let mut all = Vec::new();
    for place in evidence.file_locations() {
        let (Some(queue), Some(device)) = (&place.queue, &place.device) else { continue };
        let (_, kinds) = by_disk.entry(&queue.disk).or_insert((queue, Vec::new()));
        if place.role == "wal" {
            kinds.extend([WaitKind::Log, WaitKind::LogFlush]);
        } else {
            kinds.extend([WaitKind::DataRead, WaitKind::DataWrite]);
            all.extend(read_ahead(evidence, queue, device).filter(|_| cached));
        }
    }
    all.extend(by_disk.values().filter_map(|(queue, kinds)| scheduler(evidence, queue, kinds)));
    all
}

/// Whether the kernel reads ahead for the server: not where its reads bypass the page cache.
fn reads_through_page_cache(evidence: &Evidence, found: &[Finding]) -> bool {
    engine_advice(evidence).host().reads_page_cache || finding(found, "flush-method").is_some()
}

/// Devices without moving heads order their requests better than the kernel does.
fn scheduler(evidence: &Evidence, queue: &DiskQueue, kinds: &[WaitKind]) -> Option<Remedy> {
    const NONE: &str = "none";
    let now = queue.scheduler.as_deref().filter(|now| *now != NONE)?;
    let virtual_machine = evidence.context.environment("/client_host/cpu/virtual_machine")?.as_bool()?;
    let heads = queue.rotational? && !virtual_machine;
    if heads || !queue.schedulers.iter().any(|choice| choice == NONE) {
        return None;
    }
    let waits = waited_share(evidence, kinds)?;
    let disk = &queue.disk;
    Some(remedy(
        format!("I/O scheduler of {disk} = {NONE} (now {now})"),
        HostSetting::Kernel(format!("/sys/block/{disk}/queue/scheduler")),
        [now.into(), NONE.into()],
        format!("sessions waited for I/O of {disk} for {} of their time", text::percent(waits)),
        Effect::up_to(waits, EffectBasis::TransactionTime),
    ))
}

/// Where sessions wait for reads that are as long as sequential ones.
fn read_ahead(evidence: &Evidence, queue: &DiskQueue, device: &str) -> Option<Remedy> {
    let now = queue.read_ahead.filter(|now| *now < READ_AHEAD)?;
    let disk = &queue.disk;
    let size = |point: u32| {
        let of = |column: &str| evidence.mean(point, &metric::disk(device, column));
        Some(of("rkb_s")? * 1024.0 / of("r_s").filter(|reads| *reads > 0.0)?)
    };
    let size = evidence.points().filter_map(|point| size(point.point)).reduce(f64::max)?;
    let waits = waited_share(evidence, &[WaitKind::DataRead])?;
    (size >= SEQUENTIAL).then(|| {
        remedy(
            format!("read-ahead of {disk} = {} (now {})", text::memory(READ_AHEAD as f64), text::memory(now as f64)),
            HostSetting::Kernel(format!("/sys/block/{disk}/queue/read_ahead_kb")),
            [(now / 1024).to_string(), (READ_AHEAD / 1024).to_string()],
            format!(
                "sessions waited for reads of data files for {} of their time; the mean read of {disk} had {}",
                text::percent(waits),
                text::memory(size)
            ),
            Effect::up_to(waits, EffectBasis::TransactionTime),
        )
    })
}

/// One governor for all CPUs: where they differ, somebody chose them.
fn governor(evidence: &Evidence) -> Option<Remedy> {
    const PERFORMANCE: &str = "performance";
    let all = evidence.context.environment("/client_host/cpu/governors")?.as_array()?;
    let [now] = &all[..] else { return None };
    let now = now.as_str().filter(|now| *now != PERFORMANCE)?;
    Some(remedy(
        format!("CPU frequency governor = {PERFORMANCE} (now {now})"),
        HostSetting::Kernel("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor".into()),
        [now.into(), PERFORMANCE.into()],
        format!("{now} scales the clock rate with the load"),
        Effect::unknown("how much faster the CPUs would have run is not measured"),
    ))
}

fn huge_pages(evidence: &Evidence, found: &[Finding]) -> Option<Remedy> {
    const MEGABYTES_2: f64 = 2_097_152.0;
    const GIGABYTE: f64 = 1_073_741_824.0;
    let from = finding(found, "huge-pages-off")?;
    let whose = engine_advice(evidence).host().huge_pages?;
    // Other sizes than these two are not tried.
    let value = match evidence.newest(metric::HUGE_PAGE_SIZE)? {
        size if size == MEGABYTES_2 => "2M",
        size if size == GIGABYTE => "1G",
        _ => return None,
    };
    let of_host = remedy(
        format!("huge pages of {value}B for {whose} (now off)"),
        HostSetting::HugePages,
        ["off".into(), value.into()],
        from.title.clone(),
        from.effect.clone(),
    );
    Some(Remedy { finding: from.id, ..of_host })
}

/// Memory beside the CPUs that use it, where these are mostly those of one node. The nodes' CPU use is the host's: where the client has much of
/// it, the node may be the client's.
fn memory_node(evidence: &Evidence, found: &[Finding]) -> Option<Remedy> {
    /// CPUs that are lost in the server's own.
    const LITTLE: f64 = 0.2;
    let from = finding(found, "numa-remote")?;
    let point = from.point?;
    let cpus = |process: &str| process_cores(evidence, point, process);
    if cpus("client")? > LITTLE * cpus("server")? {
        return None;
    }
    let nodes: Vec<(u32, f64)> = evidence
        .names(metric::NODES, ".busy")
        .filter_map(|name| {
            let node = name.strip_prefix(metric::NODES)?.strip_suffix(".busy")?.parse().ok()?;
            Some((node, evidence.mean(point, name)?))
        })
        .collect();
    let mean = nodes.iter().map(|(_, busy)| busy).sum::<f64>() / nodes.len() as f64;
    let (node, busy) = *nodes.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (nodes.len() > 1 && busy > SKEW * mean).then(|| Remedy {
        finding: from.id,
        title: format!("the server's memory on NUMA node {node}, whose CPUs do most of the work"),
        change: Change::Manual {
            how: format!(
                "start a server with numactl --membind={node} and another without it, and compare them with \
                kelvin ab: memory that has moved to a node stays there while the server runs"
            ),
        },
        reason: from.title.clone(),
        effect: from.effect.clone(),
        rules: Rules::Allowed,
    })
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::{DatabaseDirectory, Observation, Observer};
    use serde_json::json;

    use super::*;
    use crate::findings::staged::Staged;

    fn queue() -> DiskQueue {
        DiskQueue {
            disk: "nvme0n1".into(),
            scheduler: Some("mq-deadline".into()),
            schedulers: vec!["none".into(), "mq-deadline".into()],
            read_ahead: Some(128 << 10),
            rotational: Some(false),
        }
    }

    /// Data on a partition; sessions that read for three quarters of their time, 128 kB each.
    fn reading(queue: DiskQueue) -> Staged {
        let place = DatabaseDirectory {
            role: "data".into(),
            path: "/srv/data".into(),
            device: Some("nvme0n1p1".into()),
            mount: "/srv".into(),
            filesystem: "ext4".into(),
            queue: Some(queue),
        };
        Staged::new()
            .seen(Observation::Observer(Observer { places: vec![place], ..Observer::default() }))
            .environment(json!({ "client_host": { "cpu": { "virtual_machine": false, "governors": ["performance"] } } }))
            .sessions(&[("client backend", "IO", "DataFileRead", 3.0), ("client backend", "CPU", "", 1.0)], &[])
            .metric("host.disk.nvme0n1p1.r_s", 1000.0)
            .metric("host.disk.nvme0n1p1.rkb_s", 128_000.0)
    }

    fn of(staged: Staged) -> Vec<(String, Change)> {
        remedies(&staged.done(), &[]).into_iter().map(|one| (one.title, one.change)).collect()
    }

    #[test]
    fn sessions_that_wait_for_a_disk_ask_for_its_scheduler_and_read_ahead() {
        let evidence = reading(queue()).done();
        let all = remedies(&evidence, &[]);
        let titles: Vec<&str> = all.iter().map(|one| one.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "read-ahead of nvme0n1 = 4.0 MB (now 128 kB)",
                "I/O scheduler of nvme0n1 = none (now mq-deadline)"
            ]
        );
        assert!(
            (all[1].gain().unwrap() - 3.0).abs() < 0.1,
            "three quarters of the time: {:?}",
            all[1].effect
        );
        let what = HostSetting::Kernel("/sys/block/nvme0n1/queue/read_ahead_kb".into());
        assert_eq!(all[0].change, Change::Host { what, before: "128".into(), value: "4096".into() });
        let json = serde_json::to_value(&all[0].change).unwrap();
        assert_eq!(json["kind"], "host");
        assert_eq!(json["what"]["kernel"], "/sys/block/nvme0n1/queue/read_ahead_kb");
    }

    #[test]
    fn what_is_so_already_or_not_known_is_not_proposed() {
        let titles =
            |queue: DiskQueue| of(reading(queue)).into_iter().map(|(title, _)| title).collect::<Vec<_>>();
        let heads = titles(DiskQueue { rotational: Some(true), ..queue() });
        assert_eq!(heads.len(), 1, "a scheduler helps moving heads: {heads:?}");
        let none = DiskQueue { scheduler: Some("none".into()), read_ahead: Some(8 << 20), ..queue() };
        assert!(titles(none).is_empty());
        assert!(titles(DiskQueue { disk: "nvme0n1".into(), ..DiskQueue::default() }).is_empty());
        // Reads of single pages are not read ahead.
        let random = reading(queue()).metric("host.disk.nvme0n1p1.rkb_s", 8000.0);
        assert_eq!(of(random).len(), 1);
        // Nothing is known of another host.
        assert!(
            of(Staged::new()
                .environment(json!({ "client_host": { "cpu": { "governors": ["powersave"] } } })))
            .is_empty()
        );
    }

    #[test]
    fn a_governor_that_saves_power_and_memory_of_the_wrong_node_have_no_bound() {
        let saving = json!({ "client_host": { "cpu": { "governors": ["powersave"] } } });
        let all = remedies(&Staged::new().place("data", "vda").environment(saving).done(), &[]);
        assert_eq!(all[0].title, "CPU frequency governor = performance (now powersave)");
        assert_eq!(all[0].effect.high(), None);
        let nodes = || {
            Staged::new()
                .place("data", "vda")
                .metric("host.numa.total.remote_ratio", 0.4)
                .metric("host.numa.0.busy", 0.1)
                .metric("host.numa.1.busy", 0.9)
                .metric("host.process.server.cpu.user", 6.0)
                .metric("host.process.server.cpu.system", 2.0)
                .metric("host.process.client.cpu.system", 0.0)
        };
        let of = |client: f64| {
            let evidence = nodes().metric("host.process.client.cpu.user", client).done();
            remedies(&evidence, &crate::findings_for(&evidence))
        };
        let all = of(0.5);
        assert_eq!(all[0].title, "the server's memory on NUMA node 1, whose CPUs do most of the work");
        assert!(matches!(&all[0].change, Change::Manual { how } if how.contains("--membind=1")), "{all:?}");
        assert_eq!(all[0].effect.high(), None);
        assert!(of(4.0).is_empty(), "the node may be the client's");
    }
}
