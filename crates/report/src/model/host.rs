//! The hosts of a fleet in a point: resource use of their generators, and how simultaneously they started.

use std::collections::BTreeMap;

use kelvin_measure::event::{HostLoad, HostSkew};
use kelvin_measure::{Machine, Nanos, labels};
use kelvin_store::StoredRun;
use serde::Serialize;

/// What one host of a fleet did in a point.
#[derive(Debug, Clone, Serialize)]
pub struct HostReport {
    /// Its name.
    pub host: String,
    /// The number of its first user, from 0.
    pub first_user: u32,
    /// Its number of users.
    pub users: u32,
    /// The first host on the same machine, if this is not it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_machine_as: Option<String>,
    /// Its machine.
    #[serde(skip)]
    pub(super) machine: Option<Machine>,
    /// Headline transactions in the window, as counted by this host.
    pub headline_count: u64,
    /// CPU time of its generator per second of the window.
    pub cpu_cores: Option<f64>,
    /// The same, in per cent of the CPUs that it may use.
    pub cpu_host_percent: Option<f64>,
    /// CPUs that its generator may use.
    pub cpus: f64,
    /// When its first user started, after the ordered moment; accurate to `start_bound_us`.
    pub start_us: Option<f64>,
    /// Error bound of `start_us`.
    pub start_bound_us: Option<f64>,
    /// When its window closed, after the ordered moment; accurate to `end_bound_us`. None without a planned
    /// end.
    pub end_us: Option<f64>,
    /// Error bound of `end_us`.
    pub end_bound_us: Option<f64>,
    /// The part of the delay caused by the host itself: from the moment for which the start was set until the
    /// first user started.
    pub late_us: Option<f64>,
    /// Its clock minus the controller's when the load began.
    pub clock_offset_us: Option<f64>,
    /// Drift of that offset, in parts per million.
    pub clock_drift_ppm: Option<f64>,
    /// What the host reports about its clock synchronisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synchronisation: Option<String>,
    /// Why the host was lost; none if it stayed to the end.
    pub lost: Option<String>,
}

/// How far apart the hosts of a fleet started, or closed their windows.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SkewReport {
    /// From the first host to the last.
    pub skew_us: f64,
    /// The same, including the error bounds of all clocks.
    pub at_most_us: f64,
}

impl HostReport {
    /// The hosts of a point with a window of this length, and how far apart they started and closed their
    /// windows; empty for a run without a fleet.
    pub(super) fn all(run: &StoredRun, point: u32, elapsed: Nanos) -> (Vec<Self>, [Option<SkewReport>; 2]) {
        let loads = run.host_loads(point);
        let each = || loads.iter().map(|(_, load)| *load);
        // Tenants of a scenario start according to its timeline.
        let together = loads.len() > 1 && run.info.workload != labels::SCENARIO;
        let skews = [HostSkew::of_starts(each()), HostSkew::of_ends(each())].map(|skew| {
            skew.filter(|_| together).map(|skew| SkewReport {
                skew_us: skew.skew as f64 / 1e3,
                at_most_us: skew.at_most as f64 / 1e3,
            })
        });
        let mut hosts: Vec<Self> =
            loads.into_iter().map(|(host, load)| Self::of(host, load, elapsed)).collect();
        let known: BTreeMap<&str, &Machine> = run
            .sources()
            .filter_map(|(_, source)| Some((source.host.as_deref()?, source.machine.as_ref()?)))
            .collect();
        let mut firsts = BTreeMap::new();
        for host in &mut hosts {
            host.machine = known.get(host.host.as_str()).map(|machine| Machine::clone(machine));
            let Some(machine) = &host.machine else { continue };
            let first = firsts.entry(machine.boot.clone()).or_insert_with(|| host.host.clone());
            host.same_machine_as = Some(first.clone()).filter(|first| *first != host.host);
        }
        (hosts, skews)
    }

    /// The number of CPUs that the generators of these hosts may use. Each machine counts once.
    pub(super) fn all_cpus(hosts: &[Self]) -> f64 {
        let mut machines: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        let mut cpus = 0.0;
        for host in hosts {
            match &host.machine {
                None => cpus += host.cpus,
                Some(machine) => {
                    machines.entry(&machine.boot).or_insert((0.0, f64::from(machine.cpus))).0 += host.cpus;
                }
            }
        }
        cpus + machines.into_values().map(|(sum, all)| sum.min(all)).sum::<f64>()
    }

    fn of(host: String, load: &HostLoad, elapsed: Nanos) -> Self {
        let clock = load.clock.as_ref();
        let share = load.cpu_share(elapsed);
        Self {
            host,
            first_user: load.first_user,
            users: load.users,
            same_machine_as: None,
            machine: None,
            headline_count: load.client_headline,
            cpu_cores: share.map(|share| share * load.cpus),
            cpu_host_percent: share.map(|share| share * 100.0),
            cpus: load.cpus,
            start_us: load.started().map(|nanos| nanos as f64 / 1e3),
            start_bound_us: clock.map(|clock| clock.bound as f64 / 1e3),
            end_us: clock.and_then(|clock| Some(clock.end?.error as f64 / 1e3)),
            end_bound_us: clock.and_then(|clock| Some(clock.end?.bound as f64 / 1e3)),
            late_us: load.late.map(|late| late as f64 / 1e3),
            clock_offset_us: clock.map(|clock| clock.offset as f64 / 1e3),
            clock_drift_ppm: clock.map(|clock| clock.drift_ppb as f64 / 1e3),
            synchronisation: clock.and_then(|clock| clock.synchronisation.clone()),
            lost: load.lost.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_a_machine_count_once() {
        let host = |cpus: f64, machine: Option<(&str, u32)>| {
            let load = HostLoad {
                point: 0,
                first_user: 0,
                users: 1,
                client_headline: 0,
                times: None,
                client_cpu: None,
                cpus,
                late: None,
                clock: None,
                lost: None,
                elapsed: None,
            };
            let machine = machine.map(|(boot, cpus)| Machine { boot: boot.into(), cpus });
            HostReport { machine, ..HostReport::of("g".into(), &load, 1) }
        };
        assert_eq!(HostReport::all_cpus(&[host(4.0, None), host(4.0, None)]), 8.0, "not known to be one");
        let (one, two) = (Some(("one", 4)), Some(("two", 4)));
        assert_eq!(HostReport::all_cpus(&[host(4.0, one), host(4.0, one), host(4.0, two)]), 8.0);
        // Agents pinned to separate CPUs use all of them.
        assert_eq!(HostReport::all_cpus(&[host(1.0, one), host(2.0, one)]), 3.0);
    }
}
