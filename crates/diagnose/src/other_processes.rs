//! Who else used this host: the five programs that took most of its CPUs, its memory, and its devices, each with its share.

use kelvin_measure::observation::OtherProcess;
use kelvin_measure::text;
use kelvin_observe::metric;

use crate::load::cpus;
use crate::{Evidence, EvidenceLine};

/// A resource of a host, in the order of [`OtherProcess::used`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostResource {
    /// Its CPUs.
    Cpu,
    /// Its memory.
    Memory,
    /// The bytes that its devices move.
    Io,
}

impl HostResource {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Memory, Self::Io];

    fn used_by(self, one: &OtherProcess) -> f64 {
        one.used()[self as usize]
    }

    /// How much of it the host had (CPUs, bytes) or moved (bytes a second) in a point's window; none where that was not observed.
    fn whole(self, evidence: &Evidence, point: u32) -> Option<f64> {
        let whole = match self {
            Self::Cpu => cpus(evidence),
            Self::Memory => evidence.newest(metric::MEMORY_TOTAL),
            Self::Io => {
                let names = evidence.names(metric::DISK, ".w_s");
                let of_here =
                    names.filter_map(|name| metric::split_disk(name).filter(|(host, _)| host.is_empty()));
                let devices: Vec<&str> = of_here.filter_map(|(_, rest)| rest.strip_suffix(".w_s")).collect();
                let moved = |device: &&str| {
                    let kibibytes = |what: &str| evidence.mean(point, &metric::disk(device, what));
                    Some((kibibytes("rkb_s")? + kibibytes("wkb_s")?) * 1024.0)
                };
                Some(devices.iter().filter(|device| is_disk(device, &devices)).filter_map(moved).sum())
            }
        };
        whole.filter(|whole| *whole > 0.0)
    }

    /// Below which a program is not named.
    fn least(self) -> f64 {
        OtherProcess::LEAST[self as usize]
    }
}

/// Whether a device is a disk, and not what lies on others of them, whose bytes would count twice: a partition or a combined device.
fn is_disk(name: &str, all: &[&str]) -> bool {
    let is_part = |disk: &&str| {
        let part = name.strip_prefix(disk).map(|part| part.strip_prefix('p').unwrap_or(part));
        part.is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    !["dm-", "md", "loop"].iter().any(|of| name.starts_with(of)) && !all.iter().any(is_part)
}

/// A program's use of a host, with its shares of what the host has; the shares are none where that was not observed.
#[derive(Debug, Clone)]
pub struct ProcessUse<'a> {
    /// The program.
    pub process: &'a OtherProcess,
    /// Of all CPUs, of the memory, and of the bytes that the devices moved, at most 1. Bytes that a program writes reach a device later, or never.
    pub shares: [Option<f64>; 3],
}

impl ProcessUse<'_> {
    /// "0.62 CPUs (31 % of all), 3 processes, 1.2 GB of memory (15 %), 30 MB/s of I/O (90 %)".
    pub(crate) fn line(&self) -> EvidenceLine {
        let Self { process, shares: [cpu, memory, io] } = self;
        let of = |share: &Option<f64>, more: &str| {
            share.map_or_else(String::new, |share| format!(" ({}{more})", text::percent(share)))
        };
        let processes =
            if process.processes > 1 { format!(", {} processes", process.processes) } else { String::new() };
        let bytes = HostResource::Io.used_by(process);
        let devices = if bytes >= HostResource::Io.least() {
            format!(", {} of I/O{}", text::disk_rate(bytes), of(io, ""))
        } else {
            String::new()
        };
        EvidenceLine::new(
            format!("used by {}", process.name),
            format!(
                "{:.2} CPUs{}{processes}, {} of memory{}{devices}",
                process.cpus,
                of(cpu, " of all"),
                text::memory(process.resident as f64),
                of(memory, "")
            ),
        )
    }
}

/// The programs besides load generator and server that took most of a resource in a point's window, the first ones first.
pub fn top_processes(evidence: &Evidence, point: u32, resource: HostResource) -> Vec<ProcessUse<'_>> {
    let wholes = HostResource::ALL.map(|one| (one, one.whole(evidence, point)));
    let mut all: Vec<&OtherProcess> = evidence.other_processes(point).iter().collect();
    all.retain(|one| resource.used_by(one) >= resource.least());
    all.sort_by(|a, b| resource.used_by(b).total_cmp(&resource.used_by(a)));
    let shares = |process| {
        let share =
            |(one, whole): (HostResource, Option<f64>)| Some((one.used_by(process) / whole?).min(1.0));
        ProcessUse { process, shares: wholes.map(share) }
    };
    all.into_iter().take(OtherProcess::MOST).map(shares).collect()
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::Observation;

    use super::*;
    use crate::findings::staged::Staged;

    #[test]
    fn each_resource_has_its_programs_with_their_shares() {
        let one = |name: &str, cpus, resident, written| OtherProcess {
            name: name.into(),
            processes: 1,
            cpus,
            resident,
            written,
            ..OtherProcess::default()
        };
        let processes = vec![
            one("cc1plus", 0.5, 200_000_000, 0.0),
            one("backup", 0.1, 1_000_000, 3_072_000.0),
            one("java", 0.001, 4_000_000_000, 0.0),
        ];
        let staged = ["sda", "sda1", "dm-0"]
            .iter()
            .flat_map(|device| ["rkb_s", "wkb_s", "w_s"].map(|column| format!("host.disk.{device}.{column}")))
            .fold(Staged::new(), |staged, name| staged.metric(&name, 3000.0))
            .metric("host.memory.total", 8e9)
            .environment(serde_json::json!({ "client_host": { "cpu": { "threads": 2 } } }))
            .seen(Observation::OtherProcesses { point: 0, processes });
        let evidence = staged.done();
        let top = |resource| {
            let found = top_processes(&evidence, 0, resource);
            found.iter().map(|one| (one.process.name.clone(), one.shares)).collect::<Vec<_>>()
        };
        let (cc1plus, backup, java) = (
            ("cc1plus".to_owned(), [Some(0.25), Some(0.025), Some(0.0)]),
            ("backup".to_owned(), [Some(0.05), Some(0.000_125), Some(0.5)]),
            ("java".to_owned(), [Some(0.0005), Some(0.5), Some(0.0)]),
        );
        assert_eq!(top(HostResource::Cpu), [cc1plus.clone(), backup.clone()]);
        assert_eq!(top(HostResource::Memory), [java, cc1plus]);
        assert_eq!(top(HostResource::Io), [backup]);
        let line = top_processes(&evidence, 0, HostResource::Io)[0].line();
        assert!(line.found.ends_with("of I/O (50 %)") && line.what == "used by backup", "{line:?}");
    }

    #[test]
    fn what_a_host_has_need_not_be_known() {
        let processes = vec![OtherProcess { name: "cc".into(), cpus: 1.0, ..OtherProcess::default() }];
        let evidence = Staged::new().seen(Observation::OtherProcesses { point: 0, processes }).done();
        let found = top_processes(&evidence, 0, HostResource::Cpu);
        assert_eq!(found[0].shares, [None; 3]);
        assert!(found[0].line().found.starts_with("1.00 CPUs, "), "{:?}", found[0].line());
    }
}
