//! A point on a fleet whose hosts are threads of the test, each with its own clock. They communicate in JSON.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use kelvin_measure::Machine;
use kelvin_measure::event::HostClock;
use kelvin_measure::invariant::{GENERATOR_RAN, HOSTS_ADD_UP, HOSTS_STAYED, HOSTS_TOGETHER};
use serde_json::json;

use super::*;
use crate::arrivals::Process;
use crate::fleet::{
    ControllerLink, Fleet, FleetPoint, GeneratorAssignment, GeneratorMessage, RemoteGenerators,
};

/// The fault of the host "beta".
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// It becomes silent after its first events, and is given up.
    Lost,
    /// One of its seconds is missing.
    SecondMissing,
    /// It did not run for part of the window.
    HeldUp,
    /// Its report has other series.
    OtherSeries,
    /// It closed its window early.
    Early,
    /// Its clock turns out to have been far off.
    Late,
    /// The numbers at this place in its report have their largest value.
    Extreme(usize),
    /// Its seconds have the largest possible number.
    EndOfTime,
}

struct Threads {
    hosts: Vec<&'static str>,
    engine: Arc<dyn Engine>,
    workload: Arc<dyn Workload>,
    fault: Fault,
}

struct HostThread {
    /// Its clock minus the point's.
    offset: i128,
    start: Sender<LoadTimes>,
    order: Arc<EndOrder>,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

struct Armed {
    hosts: Vec<HostThread>,
    messages: Receiver<(usize, GeneratorMessage)>,
    fault: Fault,
    events_of_beta: usize,
}

struct Link {
    index: usize,
    armed: Sender<usize>,
    start: Receiver<LoadTimes>,
    messages: Sender<(usize, GeneratorMessage)>,
}

fn through_json<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

impl Sink for Link {
    fn event_from(&mut self, source: SourceId, event: &Event) -> Result<(), SinkError> {
        assert!(source.is_local());
        Ok(self.messages.send((self.index, GeneratorMessage::Event(through_json(event))))?)
    }
}

impl ControllerLink for Link {
    fn armed(&mut self) -> Result<LoadTimes, RunError> {
        self.armed.send(self.index).unwrap();
        self.start.recv().map_err(|_| RunError::Interrupted)
    }
}

impl Threads {
    fn host(
        &self,
        (index, assignment): (usize, &GeneratorAssignment),
        armed: Sender<usize>,
        messages: Sender<(usize, GeneratorMessage)>,
        point: &Clock,
    ) -> HostThread {
        // Its origin is now, which differs from that of every other clock.
        let clock = Clock::real();
        let offset = i128::from(clock.now()) - i128::from(point.now());
        let (start, started) = channel();
        let mut link = Link { index, armed, start: started, messages };
        let (order, stop) = (Arc::new(EndOrder::new()), Stop::new());
        let assignment: GeneratorAssignment = through_json(assignment);
        let (engine, workload) = (Arc::clone(&self.engine), Arc::clone(&self.workload));
        let (of_thread, stops) = (Arc::clone(&order), stop.clone());
        let thread = std::thread::spawn(move || {
            let done = generate(&assignment, &engine, &workload, &clock, &stops, &of_thread, &mut link);
            let message = match done {
                Ok(report) => GeneratorMessage::Ended(Box::new(through_json(&report))),
                Err(error) => GeneratorMessage::Failed(error.to_string()),
            };
            // A test that has seen enough no longer receives.
            let _sent = link.messages.send((link.index, message));
        });
        HostThread { offset, start, order, stop, thread: Some(thread) }
    }
}

impl Fleet for Threads {
    fn hosts(&self) -> Vec<String> {
        self.hosts.iter().map(|&name| name.to_owned()).collect()
    }

    fn arm<'a>(
        &'a self,
        point: &FleetPoint<'_>,
        connected: &mut dyn FnMut(u64) -> Result<(), RunError>,
    ) -> Result<Box<dyn RemoteGenerators + 'a>, RunError> {
        let (messages, received) = channel();
        let (armed, ready) = channel();
        let each = point.assignments.iter().enumerate();
        let hosts = each.map(|one| self.host(one, armed.clone(), messages.clone(), point.clock));
        let hosts: Vec<HostThread> = hosts.collect();
        for _ in &hosts {
            ready.recv_timeout(Duration::from_mins(1)).unwrap();
        }
        connected(u64::from(point.assignments[0].range.total()))?;
        Ok(Box::new(Armed { hosts, messages: received, fault: self.fault, events_of_beta: 0 }))
    }
}

impl RemoteGenerators for Armed {
    fn notice(&self) -> Duration {
        Duration::from_millis(200)
    }

    fn start(&mut self, times: LoadTimes) -> Result<(), RunError> {
        for host in &self.hosts {
            host.start.send(times.shifted(host.offset)).unwrap();
        }
        Ok(())
    }

    fn end_at(&mut self, times: LoadTimes) {
        self.hosts.iter().for_each(|host| host.order.give(times.shifted(host.offset)));
    }

    fn abort(&mut self) {
        for host in &self.hosts {
            host.stop.request();
            host.stop.request();
        }
    }

    fn poll(&mut self) -> Vec<(usize, GeneratorMessage)> {
        let mut all = Vec::new();
        while let Ok((index, message)) = self.messages.try_recv() {
            if index != 1 || self.fault == Fault::None {
                all.push((index, message));
                continue;
            }
            match (self.fault, message) {
                (Fault::Lost, message) => {
                    self.events_of_beta += 1;
                    match self.events_of_beta {
                        1..=2 => all.push((1, message)),
                        3 => all.push((1, GeneratorMessage::Lost("no beat for 10 s".into()))),
                        _ => {}
                    }
                }
                (Fault::SecondMissing, GeneratorMessage::Event(Event::Second(_))) => {}
                (Fault::HeldUp, GeneratorMessage::Ended(report)) => {
                    let mut report = serde_json::to_value(&*report).unwrap();
                    let open = report["open"].as_u64().unwrap();
                    report["gaps"] =
                        json!([{ "from": open, "to": open + 60_000_000_000_u64, "why": "stopped" }]);
                    all.push((1, GeneratorMessage::Ended(serde_json::from_value(report).unwrap())));
                }
                (Fault::Early, GeneratorMessage::Ended(report)) => {
                    let mut report = serde_json::to_value(&*report).unwrap();
                    report["close"] = json!(report["open"].as_u64().unwrap() + 1);
                    all.push((1, GeneratorMessage::Ended(serde_json::from_value(report).unwrap())));
                }
                (Fault::OtherSeries, GeneratorMessage::Ended(report)) => {
                    let mut report = serde_json::to_value(&*report).unwrap();
                    report["totals"]["roles"].as_array_mut().unwrap().push(json!("lag"));
                    all.push((1, GeneratorMessage::Ended(serde_json::from_value(report).unwrap())));
                }
                (Fault::EndOfTime, GeneratorMessage::Event(Event::Second(second))) => {
                    let second = kelvin_measure::event::Second { second: i64::MAX, ..second };
                    all.push((1, GeneratorMessage::Event(Event::Second(second))));
                }
                (Fault::Extreme(which), GeneratorMessage::Ended(report)) => {
                    all.push((1, GeneratorMessage::Ended(Box::new(with_extreme(*report, which)))));
                }
                (_, message) => all.push((1, message)),
            }
        }
        all
    }

    fn clocks(&mut self) -> Vec<Option<HostClock>> {
        let late = |index| self.fault == Fault::Late && index == 1;
        let each = self.hosts.iter().enumerate().map(|(index, host)| {
            Some(HostClock {
                offset: host.offset as i64,
                bound: 20_000,
                drift_ppb: 0,
                start_error: if late(index) { 3_000_000_000 } else { 0 },
                end: None,
                exchanges: 1,
                round_trip: 40_000,
                synchronisation: None,
            })
        });
        each.collect()
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.abort();
        for host in &mut self.hosts {
            // A host that still waits for its start learns that there will be none.
            host.start = channel().0;
            host.thread.take().unwrap().join().unwrap();
        }
    }
}

/// Upper limit of the number of places with numbers in a report; the numbers of a list are one place.
const PLACES: usize = 60;

/// The numbers of a report by their path.
fn numbers<'a>(
    value: &'a mut serde_json::Value,
    path: &str,
    found: &mut BTreeMap<String, Vec<&'a mut serde_json::Value>>,
) {
    match value {
        serde_json::Value::Array(list) => list.iter_mut().for_each(|one| numbers(one, path, found)),
        serde_json::Value::Object(map) => {
            map.iter_mut().for_each(|(key, one)| numbers(one, &format!("{path}.{key}"), found));
        }
        number if number.is_number() => found.entry(path.into()).or_default().push(number),
        _ => {}
    }
}

/// A report in which the numbers at place `which` have the largest value of their type; unchanged beyond the
/// last place.
fn with_extreme(report: GeneratorReport, which: usize) -> GeneratorReport {
    let largest = [u64::MAX, i64::MAX as u64, u32::MAX.into(), u16::MAX.into()];
    let changed = |largest: &u64| {
        let (mut value, mut found) = (serde_json::to_value(&report).unwrap(), BTreeMap::new());
        numbers(&mut value, "", &mut found);
        assert!((20..PLACES).contains(&found.len()), "{:?}", found.keys());
        found.into_values().nth(which)?.into_iter().for_each(|number| *number = json!(largest));
        serde_json::from_value(value).ok()
    };
    largest.iter().find_map(changed).unwrap_or(report)
}

/// Runs a point of eight users on these hosts. Returns each user's values, the result and the events.
fn run_fleet(
    hosts: &[&'static str],
    fault: Fault,
    (load, rate): (&Load, Option<f64>),
    stop: &Stop,
) -> (Drawn, PointResult, Vec<(SourceId, Event)>) {
    let bench = Bench::new();
    let (engine, workload) = (Arc::clone(&bench.engine), Arc::clone(&bench.workload));
    let fleet = Threads { hosts: hosts.to_vec(), engine, workload, fault };
    let clock = Clock::real();
    let share = FleetShare { fleet: &fleet, hosts: hosts.len() as u32 };
    let point = Point { fleet: Some(share), rate, ..point(load, &clock, stop) };
    let mut kept = Kept::default();
    let result = point.run(&bench.engine, &bench.workload, &mut kept).unwrap();
    (bench.drawn(), result, kept.0)
}

fn invariant<'a>(result: &'a PointResult, name: &str) -> &'a Invariant {
    result.invariants.iter().find(|invariant| invariant.name == name).unwrap()
}

#[test]
fn users_draw_the_same_on_one_two_and_four_hosts_and_their_counts_add_up() {
    let (whole, _, _) = run(&[(0, 8)]);
    for hosts in [&["alpha"][..], &["alpha", "beta"], &["alpha", "beta", "gamma", "delta"]] {
        let (drawn, result, events) = run_fleet(hosts, Fault::None, (&by_count(), None), &Stop::new());
        assert_eq!(drawn, whole, "{hosts:?}");
        assert_eq!((result.totals.samples, result.totals.all[0].committed, result.window.users), (80, 80, 8));
        // Simultaneous starts and available CPUs depend on the machine.
        let judged = result.invariants.iter().filter(|one| !one.name.contains("generator"));
        let broken: Vec<_> = judged.filter(|one| !one.holds && one.name != HOSTS_TOGETHER).collect();
        assert!(broken.is_empty(), "{broken:?}");
        assert!(invariant(&result, HOSTS_ADD_UP).evidence.starts_with(&format!("of {} hosts", hosts.len())));
        let loads: Vec<_> = events
            .iter()
            .filter_map(|(source, event)| match event {
                Event::HostLoad(load) => Some((source.0, load.first_user, load.users)),
                _ => None,
            })
            .collect();
        let each = 8 / hosts.len() as u32;
        let expected: Vec<_> = (0..hosts.len() as u16).map(|i| (i + 1, u32::from(i) * each, each)).collect();
        assert_eq!(loads, expected);
        let good = |(source, event): &(SourceId, Event)| match event {
            Event::Second(second) => Some((source.0, second.kinds.iter().map(KindCounts::good).sum::<u64>())),
            _ => None,
        };
        let mut by_host = vec![0; hosts.len()];
        events.iter().filter_map(good).for_each(|(source, good)| by_host[usize::from(source) - 1] += good);
        assert_eq!(by_host, vec![80 / hosts.len() as u64; hosts.len()]);
    }
}

#[test]
fn the_arrivals_of_an_open_loop_are_the_same_on_two_hosts() {
    for process in [Process::Poisson, Process::Uniform] {
        let load = Load {
            arrivals: process,
            duration: Span::from_duration(Duration::from_millis(1200)),
            ramp_up: Span::from_duration(Duration::from_millis(100)),
            seed: 7,
            ..Load::default()
        };
        let due = |fleet: &[&'static str]| {
            let (stop, rate) = (Stop::new(), Some(300.0));
            let result = if fleet.is_empty() {
                let (bench, clock) = (Bench::new(), Clock::real());
                let point = Point { rate, ..point(&load, &clock, &stop) };
                point.run(&bench.engine, &bench.workload, &mut Kept::default()).unwrap()
            } else {
                run_fleet(fleet, Fault::None, (&load, rate), &stop).1
            };
            let name = "every arrival in the window completed, failed, was refused, waited, or was cut off at the end";
            assert!(invariant(&result, name).holds, "{:?}", invariant(&result, name));
            let schedule = result.window.schedule.unwrap();
            (schedule.due, schedule.rate)
        };
        let one = due(&[]);
        assert_eq!((due(&["alpha", "beta"]), due(&["alpha", "beta", "gamma"])), (one, one), "{process:?}");
    }
}

#[test]
fn a_host_that_is_lost_or_reports_something_else_voids_the_point_and_is_named() {
    let judged = |fault, name: &str| {
        let (_, result, events) = run_fleet(&["alpha", "beta"], fault, (&by_count(), None), &Stop::new());
        (invariant(&result, name).clone(), result, events)
    };
    let (stayed, result, events) = judged(Fault::Lost, HOSTS_STAYED);
    assert!(!stayed.holds && stayed.evidence == "beta: no beat for 10 s", "{stayed:?}");
    assert!(result.totals.all[0].committed >= 40, "what the other did is kept");
    let lost = events.iter().find_map(|(_, event)| match event {
        Event::HostLoad(load) => load.lost.clone(),
        _ => None,
    });
    assert_eq!(lost.as_deref(), Some("no beat for 10 s"));
    let (add_up, ..) = judged(Fault::SecondMissing, HOSTS_ADD_UP);
    assert!(
        !add_up.holds && add_up.evidence.starts_with("beta: 0 transactions in its seconds, 40"),
        "{add_up:?}"
    );
    let (ran, ..) = judged(Fault::HeldUp, GENERATOR_RAN);
    assert!(!ran.holds && ran.evidence.contains("beta: it did not run for"), "{ran:?}");
    let (other, ..) = judged(Fault::OtherSeries, HOSTS_STAYED);
    assert!(!other.holds && other.evidence == "beta: its report contains other series", "{other:?}");
    let (early, ..) = judged(Fault::Early, HOSTS_STAYED);
    assert!(!early.holds && early.evidence.starts_with("beta: it ended its load before"), "{early:?}");
    let (late, ..) = judged(Fault::Late, HOSTS_TOGETHER);
    assert!(!late.holds && late.evidence.contains("10 ms allowed"), "{late:?}");
}

#[test]
fn a_host_that_sends_impossible_numbers_breaks_nothing_but_itself() {
    let judged = |fault| run_fleet(&["alpha", "beta"], fault, (&by_count(), None), &Stop::new()).1;
    let stayed = invariant(&judged(Fault::EndOfTime), HOSTS_STAYED).clone();
    assert!(!stayed.holds && stayed.evidence.starts_with("beta: it sent events of second 9"), "{stayed:?}");
    let mut refused = 0;
    for which in 0..PLACES {
        let result = judged(Fault::Extreme(which));
        let stayed = invariant(&result, HOSTS_STAYED);
        assert!(stayed.holds || stayed.evidence.starts_with("beta: "), "{which}: {stayed:?}");
        assert!(result.totals.all[0].committed >= 40, "{which}: what the other did is kept");
        let refusals = ["an impossible number", "a time in the future"];
        refused += u32::from(refusals.iter().any(|refusal| stayed.evidence.contains(refusal)));
        assert!(result.window.elapsed < 600 * kelvin_measure::SECOND, "{which}: {:?}", result.window);
    }
    assert!(refused >= 10, "{refused} reports were refused");
}

#[test]
fn a_run_that_is_stopped_ends_at_one_moment_on_all_hosts() {
    let load = Load {
        duration: Span::seconds(600),
        ramp_up: Span::from_duration(Duration::ZERO),
        ..Load::default()
    };
    let stop = Stop::new();
    let asked = stop.clone();
    let asking = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        asked.request();
    });
    let (_, result, _) = run_fleet(&["alpha", "beta"], Fault::None, (&load, None), &stop);
    asking.join().unwrap();
    assert!(result.interrupted && result.window.elapsed < 60_000_000_000, "{:?}", result.window);
    for name in [HOSTS_STAYED, HOSTS_ADD_UP, "all users ended normally"] {
        assert!(invariant(&result, name).holds, "{:?}", invariant(&result, name));
    }
}

/// Three silent hosts, the first two on one machine.
struct Sharing;

impl Fleet for Sharing {
    fn hosts(&self) -> Vec<String> {
        ["alpha", "beta", "gamma"].map(str::to_owned).to_vec()
    }

    fn machines(&self) -> Vec<Option<Machine>> {
        ["one", "one", "two"].map(|boot| Some(Machine { boot: boot.into(), cpus: 2 })).to_vec()
    }

    fn arm<'a>(
        &'a self,
        _point: &FleetPoint<'_>,
        _connected: &mut dyn FnMut(u64) -> Result<(), RunError>,
    ) -> Result<Box<dyn RemoteGenerators + 'a>, RunError> {
        Ok(Box::new(Armed {
            hosts: Vec::new(),
            messages: channel().1,
            fault: Fault::None,
            events_of_beta: 0,
        }))
    }
}

#[test]
fn generators_that_share_a_machine_are_judged_together_too() {
    let range = |host| kelvin_workload::UserRange::share(3, host, 3).unwrap();
    let assignments: Vec<GeneratorAssignment> = (0..3)
        .map(|host| GeneratorAssignment {
            point: 0,
            range: range(host),
            most_users: 3,
            rate: None,
            load: Load::default(),
            accept_noise: false,
            series: Vec::new(),
        })
        .collect();
    let (clock, stop) = (Clock::real(), Stop::new());
    let asked = FleetPoint { assignments: &assignments, clock: &clock, stop: &stop };
    let mut sink = Kept::default();
    let remote = remote::RemoteLoad::arm_assigned(&Sharing, &asked, 0, "users connected", &mut sink).unwrap();
    let (silent, books) = remote.finish(0, &mut sink).unwrap();
    assert_eq!(books.first_on_machine(), [0, 0, 2]);
    let second = 1_000_000_000;
    let generators = |used: [u64; 3]| -> Vec<GeneratorReport> {
        let each = silent.iter().zip(used).map(|(report, time)| {
            let cpu = client_cpu::ClientCpu { time: Some(time), between: second, threads: None };
            GeneratorReport { cpus: 2.0, cpu: Some(cpu), ..report.clone() }
        });
        each.collect()
    };
    let judged = |generators: &[GeneratorReport]| {
        let closing = accounting::PointAccounting {
            point: 0,
            users: 3,
            headline: &[],
            embedded: false,
            open: 0,
            rate: None,
            generators,
            hosts: Some(&books),
            totals: &Totals::new(Vec::new()),
            server: None,
            accept_noise: false,
        };
        closing.saturated_machines(second)
    };
    // Each used about half of the two CPUs that it may use, but together they used nearly all of them.
    let busy = generators([950_000_000, 950_000_000, 950_000_000]);
    assert!(busy.iter().all(|one| one.saturation(second, false).unwrap().holds));
    let [found] = &judged(&busy)[..] else { panic!("one machine is shared") };
    assert!(
        !found.holds && found.evidence.starts_with("alpha and beta on one machine: 1.90 of 2 CPUs"),
        "{found:?}"
    );
    assert!(judged(&generators([400_000_000; 3])).iter().all(|found| found.holds));
    assert!(judged(&generators([0, 950_000_000, 0])).is_empty(), "of one it is not known");
}
