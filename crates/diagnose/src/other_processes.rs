//! Who else used this host: the five programs that took most of its CPUs, its memory, and its devices, each with its share.

use kelvin_measure::observation::OtherProcess;
use kelvin_measure::text;

use crate::load::cpus;
use crate::{Evidence, EvidenceLine};

/// Programs that are named for each resource.
const MOST: usize = 5;

/// A resource of a host.
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

    fn of(self, one: &OtherProcess) -> f64 {
        match self {
            Self::Cpu => one.cpus,
            Self::Memory => one.resident as f64,
            Self::Io => one.read + one.written,
        }
    }

    /// How much of it the host had (CPUs, bytes) or moved (bytes a second) in a point's window; none where that was not observed.
    fn whole(self, evidence: &Evidence, point: u32) -> Option<f64> {
        let whole = match self {
            Self::Cpu => cpus(evidence),
            Self::Memory => evidence.newest("host.memory.total"),
            Self::Io => {
                // What lies on other devices would be counted twice.
                let is_own = |name: &&str| !["dm-", "md", "loop"].iter().any(|of| name.starts_with(of));
                let names = evidence.names("host.disk.", ".w_s");
                let devices = names.filter_map(|name| name.strip_prefix("host.disk.")?.strip_suffix(".w_s"));
                let moved = |device: &str| {
                    let kilobytes = |what: &str| evidence.mean(point, &format!("host.disk.{device}.{what}"));
                    Some((kilobytes("rkb_s")? + kilobytes("wkb_s")?) * 1e3)
                };
                Some(devices.filter(is_own).filter_map(moved).sum())
            }
        };
        whole.filter(|whole| *whole > 0.0)
    }

    /// Below which a program is not named: the granularity of what is counted, and what the system's own services take.
    fn least(self) -> f64 {
        match self {
            Self::Cpu => 0.01,
            Self::Memory => 1e8,
            Self::Io => 1e5,
        }
    }
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
        let bytes = HostResource::Io.of(process);
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
    all.retain(|one| resource.of(one) >= resource.least());
    all.sort_by(|a, b| resource.of(b).total_cmp(&resource.of(a)));
    let shares = |process| {
        let share = |(one, whole): (HostResource, Option<f64>)| Some((one.of(process) / whole?).min(1.0));
        ProcessUse { process, shares: wholes.map(share) }
    };
    all.into_iter().take(MOST).map(shares).collect()
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
            one("backup", 0.1, 1_000_000, 3e6),
            one("java", 0.001, 4_000_000_000, 0.0),
        ];
        let staged = ["sda.rkb_s", "sda.wkb_s", "sda.w_s", "dm-0.rkb_s", "dm-0.wkb_s", "dm-0.w_s"]
            .iter()
            .fold(Staged::new(), |staged, name| staged.metric(&format!("host.disk.{name}"), 3000.0))
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
