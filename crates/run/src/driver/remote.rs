//! A point's view of its generators on other hosts: forwards their events to the sink and collects their
//! reports.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use kelvin_measure::event::{
    Arrivals, ErrorCount, HostClock, HostLoad, HostSkew, HostTimes, KindCounts, Second, SeriesRole,
};
use kelvin_measure::invariant::{HOSTS_ADD_UP, HOSTS_STAYED, HOSTS_TOGETHER, Invariant};
use kelvin_measure::{Event, Machine, Nanos, SECOND, Sink, SourceId, Totals, second_from, text};
use kelvin_workload::{UserRange, Workload};

use super::Point;
use super::fleet::{Fleet, FleetPoint, GeneratorAssignment, GeneratorMessage, RemoteGenerators, source_of};
use super::generator_report::GeneratorReport;
use super::load_times::LoadTimes;
use crate::error::RunError;
use crate::series::series;

/// How many hosts of a fleet generate the load of a point.
#[derive(Clone, Copy)]
pub struct FleetShare<'a> {
    /// The fleet.
    pub fleet: &'a dyn Fleet,
    /// The number of its hosts that are used, from the first.
    pub hosts: u32,
}

impl fmt::Debug for FleetShare<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetShare").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// How much earlier than ordered a host may close its window: tolerance for converted clocks and delayed
/// threads.
const CLOSES_WITHIN: Nanos = 100_000_000;

/// The largest distance of a second from the opening of its window: a month.
const MOST_SECONDS: u64 = 31 * 24 * 3600;

/// The most polls before the point checks the clock again.
const MOST_POLLS: usize = 16;

/// The most events about its I/O jobs that a host may send at their end: its window, its checks, its results.
const MOST_OF_JOBS: usize = 64;

/// One host.
struct Host {
    name: String,
    source: SourceId,
    machine: Option<Machine>,
    range: UserRange,
    /// The sums of the received seconds, to be compared with the report.
    seconds: Totals,
    counters: Vec<u64>,
    report: Option<GeneratorReport>,
    /// Where the received seconds and the report differ. It replaces the sums, since a fleet may have
    /// hundreds of hosts.
    difference: Option<String>,
    lost: Option<String>,
    /// Events about the host's own I/O jobs at their end.
    of_jobs: Vec<Event>,
}

impl Host {
    fn has_ended(&self) -> bool {
        self.report.is_some() || self.lost.is_some()
    }
}

/// The generators of all hosts.
pub(crate) struct RemoteLoad<'a> {
    point: u32,
    generators: Box<dyn RemoteGenerators + 'a>,
    hosts: Vec<Host>,
    /// Events received but not yet emitted.
    events: Vec<(SourceId, Event)>,
    times: LoadTimes,
    /// All hosts were ordered to stop immediately, so no end is too early.
    aborted: bool,
    /// Another process started the load: messages may be far older or newer than this process's clock
    /// suggests.
    resumed: bool,
    /// The maximum time between the hosts' starts.
    limit: Nanos,
}

impl<'a> RemoteLoad<'a> {
    /// Arms a point's generators on the hosts: connects their users.
    pub(super) fn arm(
        point: &Point<'_>,
        share: FleetShare<'a>,
        workload: &dyn Workload,
        sink: &mut dyn Sink,
    ) -> Result<Self, RunError> {
        let series = series(workload.kinds(), point.rate.is_some());
        let names = share.fleet.hosts();
        if names.len() < share.hosts as usize {
            let (asked, there) = (share.hosts, names.len());
            return Err(RunError::Start(format!("{asked} hosts were asked for, and the fleet has {there}")));
        }
        if share.hosts > point.users {
            let (users, hosts) = (point.users, share.hosts);
            return Err(RunError::Start(format!("{users} users cannot be divided among {hosts} hosts")));
        }
        let ranges = (0..share.hosts).filter_map(|host| UserRange::share(point.users, host, share.hosts));
        let assignments: Vec<GeneratorAssignment> = ranges
            .map(|range| GeneratorAssignment {
                point: point.index,
                range,
                most_users: point.most_users,
                rate: point.rate,
                load: point.load.clone(),
                accept_noise: point.accept_noise,
                series: series.clone(),
            })
            .collect();
        let asked = FleetPoint { assignments: &assignments, clock: point.clock, stop: point.stop };
        Self::arm_assigned(share.fleet, &asked, workload.counters().len(), "users connected", sink)
    }

    /// Arms these assignments, all of one point, on the fleet's hosts. Each generator has `counters` audit
    /// counters; `what` names what the progress counts.
    pub(crate) fn arm_assigned(
        fleet: &'a dyn Fleet,
        asked: &FleetPoint<'_>,
        counters: usize,
        what: &str,
        sink: &mut dyn Sink,
    ) -> Result<Self, RunError> {
        let Some(first) = asked.assignments.first() else {
            return Err(RunError::Start("no host has an assignment".into()));
        };
        let total = u64::from(first.range.total());
        let mut connected = |done: u64| -> Result<(), RunError> {
            sink.event(&Event::Progress { what: what.into(), done, total, rows: 0 })?;
            Ok(())
        };
        let generators = fleet.arm(asked, &mut connected)?;
        let roles: Vec<SeriesRole> = first.series.iter().map(|series| series.role).collect();
        let ranges = asked.assignments.iter().map(|assignment| assignment.range);
        let names = fleet.hosts().into_iter().zip(ranges).collect();
        let limit = first.load.start_skew.nanos();
        let mut load = Self::of_hosts(first.point, generators, (names, roles, counters), limit);
        for (host, machine) in load.hosts.iter_mut().zip(fleet.machines()) {
            host.machine = machine;
        }
        Ok(load)
    }

    /// The armed generators of these hosts, by name and range of users, for these series and this number of
    /// audit counters.
    pub(super) fn of_hosts(
        point: u32,
        generators: Box<dyn RemoteGenerators + 'a>,
        (names, roles, counters): (Vec<(String, UserRange)>, Vec<SeriesRole>, usize),
        limit: Nanos,
    ) -> Self {
        let hosts = (0_u16..).zip(names).map(|(number, (name, range))| Host {
            name,
            source: source_of(number),
            machine: None,
            range,
            seconds: Totals::new(roles.clone()),
            counters: vec![0; counters],
            report: None,
            difference: None,
            lost: None,
            of_jobs: Vec::new(),
        });
        let hosts = hosts.collect();
        let never = LoadTimes { begin: 0, open: 0, close: Nanos::MAX, end: Nanos::MAX };
        Self {
            point,
            generators,
            hosts,
            events: Vec::new(),
            times: never,
            aborted: false,
            resumed: false,
            limit,
        }
    }

    /// The same generators, started at `times` by another process.
    #[must_use]
    pub(super) fn started_at(mut self, times: LoadTimes) -> Self {
        (self.times, self.resumed) = (times, true);
        self
    }

    /// How long in advance the order to start must be given.
    pub(crate) fn notice(&self) -> std::time::Duration {
        self.generators.notice()
    }

    pub(crate) fn start(&mut self, times: LoadTimes) -> Result<(), RunError> {
        self.times = times;
        self.generators.start(times)
    }

    /// Ends window and load of all hosts at these times.
    pub(crate) fn end_at(&mut self, times: LoadTimes) {
        self.times = times;
        self.generators.end_at(times);
    }

    pub(crate) fn abort(&mut self) {
        self.aborted = true;
        self.generators.abort();
    }

    /// Whether no further message of any host is expected.
    pub(crate) fn all_ended(&self) -> bool {
        self.hosts.iter().all(Host::has_ended)
    }

    /// The sums of the audit counters of each host so far.
    pub(super) fn counters(&self) -> impl Iterator<Item = Vec<u64>> + '_ {
        self.hosts.iter().map(|host| host.counters.clone())
    }

    /// Emits received events in portions. Returns whether none is left: a host with unread messages is
    /// neither late nor lost.
    pub(crate) fn emit(&mut self, now: Nanos, sink: &mut dyn Sink) -> Result<bool, RunError> {
        for _ in 0..MOST_POLLS {
            let messages = self.generators.poll();
            if messages.is_empty() {
                return Ok(true);
            }
            self.take(messages, now);
            for (source, event) in self.events.drain(..) {
                sink.event_from(source, &event)?;
            }
        }
        Ok(false)
    }

    fn take(&mut self, messages: Vec<(usize, GeneratorMessage)>, now: Nanos) {
        for (index, message) in messages {
            let Some(host) = self.hosts.get_mut(index) else { continue };
            let mut note = |text: String| {
                let second = second_from(self.times.open, now);
                self.events.push((host.source, Event::Note { point: self.point, second, text }));
            };
            match message {
                GeneratorMessage::Event(event) => {
                    if let Some(event) = host.take_event(self.point, event) {
                        self.events.push((host.source, event));
                    }
                }
                GeneratorMessage::Ended(report) => match host.check(*report) {
                    Ok(report) => {
                        let report = report.on_clock_that_opened(self.times.open);
                        let latest = latest_end(self.times.open, (!self.resumed).then_some(now));
                        if report.latest() > latest {
                            host.lose("its report is for a time in the future".into());
                            continue;
                        }
                        if let Some(early) = early_end(&report, self.times.close).filter(|_| !self.aborted) {
                            host.lose(early);
                        }
                        host.difference = difference(&host.seconds, &report.totals);
                        host.seconds = Totals::new(std::mem::take(&mut host.seconds.roles));
                        host.report = Some(report);
                    }
                    Err(why) => host.lose(why),
                },
                GeneratorMessage::Suspect(why) => note(format!("{}: {why}", host.name)),
                GeneratorMessage::Failed(why) => {
                    note(format!("{} broke off: {why}", host.name));
                    host.lose(why);
                }
                GeneratorMessage::Lost(why) => {
                    note(format!("{} was lost: {why}", host.name));
                    host.lose(why);
                }
            }
        }
    }

    /// Emits the remaining events and returns the hosts' reports, and what is known of the hosts in addition.
    /// A host without a report counts as lost.
    pub(crate) fn finish(
        mut self,
        now: Nanos,
        sink: &mut dyn Sink,
    ) -> Result<(Vec<GeneratorReport>, RemoteBooks), RunError> {
        while !self.emit(now, sink)? {}
        let mut clocks = self.generators.clocks();
        clocks.resize(self.hosts.len(), None);
        let (mut reports, mut ends, mut sum) = (Vec::new(), Vec::new(), 0);
        for (mut host, clock) in self.hosts.into_iter().zip(clocks) {
            let report = host.report.take().unwrap_or_else(|| {
                host.lost.get_or_insert_with(|| "its report is missing".into());
                GeneratorReport::of_lost(self.times, host.seconds, host.counters)
            });
            // From here on, reports are added without checks for overflow; sums of the hosts' seconds and
            // counters saturate.
            let report = if let Some(with) = report.added_to(sum) {
                sum = with;
                report
            } else {
                host.lost = Some("the sum of its counts and those of the other hosts overflows".into());
                report.without_counts(self.times)
            };
            reports.push(report.of_host(host.source, &host.name));
            let Host { name, machine, range, lost, difference, of_jobs, .. } = host;
            ends.push(HostEnd { name, machine, range, clock, lost, difference, of_jobs });
        }
        Ok((reports, RemoteBooks { hosts: ends, limit: self.limit }))
    }
}

impl Host {
    fn lose(&mut self, why: String) {
        self.lost.get_or_insert(why);
    }

    /// Returns the event if it is to be emitted, and updates the host's sums. Other events are the point's to
    /// emit.
    fn take_event(&mut self, point: u32, event: Event) -> Option<Event> {
        match event {
            Event::Second(Second { point: of, .. })
            | Event::Arrivals(Arrivals { point: of, .. })
            | Event::Errors(ErrorCount { point: of, .. })
            | Event::Note { point: of, .. }
                if of != point =>
            {
                self.lose(format!("it sent events of point {of}"));
                None
            }
            Event::Second(Second { second, .. })
            | Event::Arrivals(Arrivals { second, .. })
            | Event::Errors(ErrorCount { second, .. })
            | Event::Note { second, .. }
                if second.unsigned_abs() > MOST_SECONDS =>
            {
                self.lose(format!("it sent events of second {second}"));
                None
            }
            Event::Second(second) if second.kinds.len() != self.seconds.roles.len() => {
                self.lose("it sent a second of other series".into());
                None
            }
            Event::Second(second) => {
                self.seconds.add(&second);
                Some(Event::Second(second))
            }
            Event::Counters { values, .. } => {
                if values.len() == self.counters.len() {
                    self.counters = values;
                }
                None
            }
            Event::Note { point, second, text } => {
                Some(Event::Note { point, second, text: text::printable(&text) })
            }
            Event::Errors(errors) => Some(Event::Errors(ErrorCount {
                class: text::printable(&errors.class),
                code: text::printable(&errors.code),
                message: text::printable(&errors.message),
                ..errors
            })),
            Event::Arrivals(_) | Event::Query(_) => Some(event),
            Event::Window(_) | Event::Invariant { .. } | Event::Storage { .. } => {
                if self.of_jobs.len() < MOST_OF_JOBS {
                    self.of_jobs.push(event);
                }
                None
            }
            _ => None,
        }
    }

    /// Refuses a report that does not match this host's users and series.
    fn check(&self, report: GeneratorReport) -> Result<GeneratorReport, String> {
        report.check(&self.seconds.roles, self.counters.len(), self.range.count())?;
        Ok(report)
    }
}

/// The error of a host that closed its window earlier than ordered, because it was stopped or stopped itself.
fn early_end(report: &GeneratorReport, ordered: Nanos) -> Option<String> {
    let by = ordered.saturating_sub(report.close?);
    (by > CLOSES_WITHIN).then(|| match ordered {
        Nanos::MAX => "it ended its load before its users had completed their transactions".into(),
        _ => format!("it ended its load {} before the end", text::short_seconds(by as f64 / 1e9)),
    })
}

/// The latest plausible end of a load whose window opened at `open`. With a known `now`, that is shortly
/// after it: clocks drift apart by less than a thousandth.
fn latest_end(open: Nanos, now: Option<Nanos>) -> Nanos {
    let month = open.saturating_add(MOST_SECONDS * SECOND);
    let by_now = |now: Nanos| now.saturating_add(10 * SECOND + now.saturating_sub(open) / 1000);
    now.map_or(month, |now| by_now(now).min(month))
}

/// Where the received seconds differ from the generator's counts; `None` if they agree.
fn difference(seconds: &Totals, reported: &Totals) -> Option<String> {
    let counts = |kind: &KindCounts| [kind.committed, kind.rolled_back, kind.failed, kind.retries];
    let equal = |(came, counted): (&KindCounts, &KindCounts)| {
        counts(came) == counts(counted)
            && came.latency.sum() == counted.latency.sum()
            && came.latency.buckets().eq(counted.latency.buckets())
    };
    if seconds.all.iter().zip(&reported.all).all(equal) {
        return None;
    }
    let sum = |totals: &Totals| -> u64 {
        let finished = totals.transactions(&totals.all).map(|kind| kind.good().saturating_add(kind.failed));
        finished.fold(0, u64::saturating_add)
    };
    Some(format!("{} transactions in its seconds, {} in its totals", sum(seconds), sum(reported)))
}

/// What is known of a host at the end in addition to its report.
struct HostEnd {
    name: String,
    machine: Option<Machine>,
    range: UserRange,
    clock: Option<HostClock>,
    lost: Option<String>,
    difference: Option<String>,
    of_jobs: Vec<Event>,
}

/// What is known of all hosts at the end in addition to their reports.
pub(crate) struct RemoteBooks {
    hosts: Vec<HostEnd>,
    limit: Nanos,
}

impl RemoteBooks {
    /// The events of each host about its own I/O jobs, with the host's name.
    pub(crate) fn of_jobs(&self) -> impl Iterator<Item = (&str, &[Event])> {
        self.hosts.iter().map(|host| (host.name.as_str(), host.of_jobs.as_slice()))
    }

    /// For each host the index of the first host on the same machine, which is its own if it shares none.
    pub(crate) fn first_on_machine(&self) -> Vec<usize> {
        let mut firsts = HashMap::new();
        let each = self.hosts.iter().enumerate().map(|(number, host)| match &host.machine {
            Some(machine) => *firsts.entry(&machine.boot).or_insert(number),
            None => number,
        });
        each.collect()
    }

    /// The groups of hosts that share a machine, by their indexes, each with the machine's CPUs.
    pub(super) fn shared_machines(&self) -> Vec<(Vec<usize>, u32)> {
        let mut machines: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, first) in self.first_on_machine().into_iter().enumerate() {
            machines.entry(first).or_default().push(number);
        }
        let shared = machines.into_values().filter(|hosts| hosts.len() > 1);
        shared
            .filter_map(|hosts| {
                let cpus = self.hosts[hosts[0]].machine.as_ref()?.cpus;
                Some((hosts, cpus))
            })
            .collect()
    }

    /// Each host's share of the load, with its source. `headline` counts the headline transactions of a
    /// report.
    pub(crate) fn loads(
        &self,
        (point, elapsed): (u32, Nanos),
        reports: &[GeneratorReport],
        headline: impl Fn(&GeneratorReport) -> u64,
    ) -> Vec<(SourceId, HostLoad)> {
        let each = self.hosts.iter().zip(reports).map(|(host, report)| {
            let load = HostLoad {
                point,
                first_user: host.range.first(),
                users: host.range.count(),
                client_headline: headline(report),
                times: HostTimes::from_histogram(&report.times()),
                client_cpu: Some(report.cpu_time(elapsed)).filter(|cpu| *cpu > 0),
                cpus: report.cpus,
                late: report.late(),
                clock: host.clock.clone(),
                lost: host.lost.clone(),
                elapsed: None,
            };
            (report.source, load)
        });
        each.collect()
    }

    /// The invariant that every host stayed to the end.
    pub(crate) fn stayed(&self) -> Invariant {
        let lost = self.hosts.iter().filter_map(|host| {
            let why = host.lost.as_ref()?;
            Some(format!("{}: {why}", host.name))
        });
        let lost: Vec<String> = lost.collect();
        let evidence = if lost.is_empty() { format!("{} hosts", self.hosts.len()) } else { lost.join("; ") };
        Invariant::new(HOSTS_STAYED, lost.is_empty(), evidence)
    }

    /// The invariants that each host's seconds match its totals, and that the hosts started together.
    pub(crate) fn agree(&self, loads: &[(SourceId, HostLoad)]) -> [Invariant; 2] {
        let differences = self.hosts.iter().filter_map(|host| {
            let difference = host.difference.as_ref()?;
            Some(format!("{}: {difference}", host.name))
        });
        let differences: Vec<String> = differences.collect();
        let evidence = if differences.is_empty() {
            format!("of {} hosts, bin by bin", self.hosts.len())
        } else {
            differences.join("; ")
        };
        let add_up = Invariant::new(HOSTS_ADD_UP, differences.is_empty(), evidence);
        let ms = |nanos: Nanos| nanos as f64 / 1e6;
        let together = match HostSkew::of_starts(loads.iter().map(|(_, load)| load)) {
            Some(found) => Invariant::new(
                HOSTS_TOGETHER,
                found.at_most <= self.limit,
                format!(
                    "{:.3} ms from the first to the last, at most {:.3} ms with the bounds of their clocks; {} ms \
                     allowed",
                    ms(found.skew),
                    ms(found.at_most),
                    ms(self.limit)
                ),
            ),
            None => Invariant::new(HOSTS_TOGETHER, false, "when a host started is not known"),
        };
        [add_up, together]
    }
}
