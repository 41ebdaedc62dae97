//! A run of I/O jobs on the hosts of a fleet: every host runs every job on its own files and devices, or its
//! share of the workers. All start together, and their results are added up.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use kelvin_measure::event::{ArrivalSchedule, Event, HostLoad, Phase, Series, Status, Window};
use kelvin_measure::invariant::{Invariant, counts_agree};
use kelvin_measure::storage::JobLine;
use kelvin_measure::{Clock, Nanos, Sink, SourceId, Stop, Totals, text};
use kelvin_spec::plan;
use kelvin_storage::job::Jobs;
use kelvin_workload::UserRange;
use serde_json::{Value, json};

use super::describe;
use crate::control::LoadControl;
use crate::driver::{GeneratorReport, LoadTimes, RemoteAccounting, RemoteLoad, sum_columns};
use crate::error::RunError;
use crate::fleet::{self, Fleet, FleetPoint, GeneratorAssignment};
use crate::spec::{Spec, Work};
use kelvin_storage::SeriesLayout;

/// How often received messages are emitted.
const TICK: Duration = Duration::from_millis(50);

/// How far ahead an early end is scheduled, so that all hosts have received the order by then.
const NOTICE_OF_END: Nanos = 500_000_000;

/// How long hosts may take to report after an order to stop immediately.
const PATIENCE: Nanos = 20_000_000_000;

/// The largest number of workers on all hosts.
const MOST_WORKERS: u32 = 100_000;

/// I/O jobs that the hosts of a fleet run.
pub struct FleetIoRun<'a> {
    spec: &'a Spec,
    jobs: Jobs,
    fleet: &'a dyn Fleet,
    layout: SeriesLayout,
    /// Workers of all hosts.
    workers: u32,
    /// Whether the workers are divided among the hosts, each worker on one host by its number.
    split: bool,
    /// The timeline that orders the start.
    control: Option<Arc<LoadControl>>,
}

/// Refuses jobs whose workers cannot be on different hosts.
fn check_split(jobs: &Jobs, hosts: u64) -> Result<(), String> {
    if jobs.workers() < hosts {
        let workers = jobs.workers();
        let noun = text::plural(workers, "worker", "workers");
        return Err(format!(
            "{workers} {noun} cannot be divided among {hosts} hosts: name fewer hosts, or omit --split-workers"
        ));
    }
    for job in &jobs.jobs {
        let option = if job.course.wait_for.is_some() { "wait_for" } else { "flow" };
        if job.course.wait_for.is_some() || job.flow.is_some() {
            return Err(format!(
                "job {}: with --split-workers, {option}= would wait for workers of another host",
                job.name
            ));
        }
    }
    Ok(())
}

/// The results of all hosts.
struct HostResults<'a> {
    reports: &'a [GeneratorReport],
    books: &'a RemoteAccounting,
    totals: &'a Totals,
}

impl<'a> FleetIoRun<'a> {
    /// The jobs of a specification, for the hosts of a fleet.
    ///
    /// # Errors
    /// When they have several phases, since only the first would start simultaneously; when there are too
    /// many workers, or workers that cannot be divided.
    pub fn new(spec: &'a Spec, fleet: &'a dyn Fleet) -> Result<Self, RunError> {
        let Work::Io(options) = &spec.work else {
            return Err(RunError::Start("only I/O jobs run on every host".into()));
        };
        let jobs = options.jobs(spec.load.seed)?;
        if options.phases() > 1 {
            let why = "jobs with stonewall do not run on a fleet: only the first phase would begin on all hosts \
                       together; run the phases one after the other with --section";
            return Err(RunError::Start(why.into()));
        }
        let hosts = fleet.hosts().len() as u64;
        let split = options.split_workers;
        let all = jobs.workers().saturating_mul(if split { 1 } else { hosts });
        if all == 0 || all > u64::from(MOST_WORKERS) {
            return Err(RunError::Start(format!("{all} workers; at most {MOST_WORKERS} are supported")));
        }
        if split {
            check_split(&jobs, hosts).map_err(RunError::Start)?;
        }
        let layout = SeriesLayout::of_jobs(&jobs);
        Ok(Self { spec, jobs, fleet, layout, workers: all as u32, split, control: None })
    }

    /// The same run, started by a timeline.
    #[must_use]
    pub fn controlled(mut self, control: Arc<LoadControl>) -> Self {
        self.control = Some(control);
        self
    }

    /// The series of its seconds.
    pub fn series(&self) -> Vec<Series> {
        self.layout.series.clone()
    }

    /// Names of its counters: bytes by series.
    pub fn counters(&self) -> Vec<String> {
        self.layout.counters()
    }

    /// A brief description of what it reads and writes.
    pub fn target(&self) -> String {
        let hosts = self.fleet.hosts();
        let files = self.jobs.jobs.iter().flat_map(|job| {
            let given = job.targets.filenames.iter().chain(&job.targets.directories);
            given.map(|path| path.display().to_string())
        });
        let mut files: Vec<String> = files.collect();
        files.sort();
        files.dedup();
        let count = hosts.len();
        format!("{} on each of {count} host{}", text::few(files, 3), if count == 1 { "" } else { "s" })
    }

    /// Notes that belong to the result.
    pub fn notes(&self) -> Vec<String> {
        let how = self.jobs.jobs.iter().map(|job| {
            let files = job.targets.filenames.len().max(job.targets.files as usize);
            kelvin_measure::storage::describe_job(&job.name, &describe::describe_job(job, files))
        });
        how.chain(self.jobs.notes.iter().cloned()).chain([self.division()]).collect()
    }

    /// Describes which workers each host has.
    fn division(&self) -> String {
        let hosts = self.fleet.hosts();
        if !self.split {
            return format!("every job ran on every host: {}", hosts.join(", "));
        }
        let shares = (0..).map_while(|host| UserRange::share(self.workers, host, hosts.len() as u32));
        let each = hosts.iter().zip(shares).map(|(host, share)| match share.count() {
            1 => format!("{host} {}", share.first() + 1),
            count => format!("{host} {} to {}", share.first() + 1, share.first() + count),
        });
        let each: Vec<String> = each.collect();
        format!("each of the {} workers ran on one host: {}", self.workers, each.join(", "))
    }

    /// Runs the jobs on all hosts. The last event is [`Event::Finished`], unless the sink failed.
    ///
    /// # Errors
    /// When the jobs could not start, or an event could not be stored.
    pub fn execute(
        &self,
        clock: &Clock,
        stop: &Stop,
        sink: &mut dyn Sink,
    ) -> Result<(Status, Totals), RunError> {
        let done = fleet::declare(self.fleet, sink).and_then(|()| self.load(clock, stop, sink));
        let (status, error) = match &done {
            Err(RunError::Sink(_)) => return done.map(|(_, _, totals)| (Status::Failed, totals)),
            Err(RunError::Interrupted) => (Status::Interrupted, Some("interrupted".to_owned())),
            Err(error) => (Status::Failed, Some(error.to_string())),
            Ok((status, error, _)) => (*status, error.clone()),
        };
        sink.event(&Event::Finished { status, error })?;
        done.map(|(status, _, totals)| (status, totals))
    }

    fn load(
        &self,
        clock: &Clock,
        stop: &Stop,
        sink: &mut dyn Sink,
    ) -> Result<(Status, Option<String>, Totals), RunError> {
        let hosts = self.fleet.hosts();
        let count = hosts.len() as u32;
        let users = self.workers;
        let phase = |phase, at, planned| Event::Phase { point: 0, phase, at, users, planned };
        sink.event(&phase(Phase::Connect, clock.now(), None))?;
        let share = |host| UserRange::share(users, host, count);
        let assignments: Vec<GeneratorAssignment> = (0..count)
            .filter_map(share)
            .map(|range| GeneratorAssignment {
                point: 0,
                range,
                most_users: users,
                rate: None,
                load: self.spec.load.clone(),
                accept_noise: self.spec.accept_noise,
                series: self.series(),
            })
            .collect();
        let asked = FleetPoint { assignments: &assignments, clock, stop };
        let mut remote =
            RemoteLoad::arm_assigned(self.fleet, &asked, self.layout.kinds, "workers ready", sink)?;
        let notice = remote.notice();
        let begin = match &self.control {
            None => clock.now() + notice.as_nanos() as Nanos,
            Some(control) => control.wait_to_begin(clock, notice, stop).ok_or(RunError::Interrupted)?,
        };
        remote.start(LoadTimes { begin, open: begin, close: Nanos::MAX, end: Nanos::MAX })?;
        let ramp = self.jobs.jobs.iter().map(|job| job.course.ramp).max().unwrap_or(0);
        if ramp > 0 {
            sink.event(&phase(Phase::RampUp, begin, Some(ramp)))?;
        }
        let planned = plan::planned_measure(&self.jobs, 0).map(|planned| planned.as_nanos() as Nanos);
        sink.event(&phase(Phase::Measure, begin + ramp, planned))?;
        if let Err(error) = follow(&mut remote, begin, (clock, stop), sink) {
            remote.abort();
            return Err(error);
        }
        sink.event(&phase(Phase::Stop, clock.now(), None))?;
        let (reports, books) = remote.finish(clock.now(), sink)?;
        let mut totals = Totals::new(self.layout.series.iter().map(|series| series.role).collect());
        for report in &reports {
            totals.merge(report.totals());
        }
        let interrupted = stop.requested();
        let results = HostResults { reports: &reports, books: &books, totals: &totals };
        Self::close(&results, users, sink)?;
        let broken = hosts.iter().zip(&reports).find_map(|(host, report)| {
            let why = report.broken()?;
            Some(format!("{host}: {}", text::printable(why)))
        });
        let status = match &broken {
            _ if interrupted => Status::Interrupted,
            Some(_) => Status::Failed,
            None => Status::Complete,
        };
        Ok((status, broken, totals))
    }

    /// Emits the final results: the window, each host's share, the invariants, the jobs' lines.
    fn close(results: &HostResults<'_>, users: u32, sink: &mut dyn Sink) -> Result<(), RunError> {
        let HostResults { reports, books, .. } = results;
        let values = sum_columns(reports.iter().map(|report| report.counters().to_vec()));
        sink.event(&Event::Counters { point: 0, values })?;
        let windows: Vec<Option<&Window>> = books.job_events().map(|(_, events)| window_of(events)).collect();
        let window = results.window(&windows, users);
        sink.event(&Event::Window(window.clone()))?;
        let mut loads = books.loads((0, window.elapsed), reports, ios);
        for ((_, load), own) in loads.iter_mut().zip(&windows) {
            load.client_cpu = own.map(|own| own.client_cpu);
        }
        for (source, load) in &loads {
            sink.event_from(*source, &Event::HostLoad(Box::new(load.clone())))?;
        }
        for invariant in results.invariants(&loads, &windows) {
            sink.event(&Event::Invariant { point: 0, invariant })?;
        }
        let (lines, jobs, disks) = results.job_results();
        let firsts = books.first_on_machine();
        let names: Vec<&str> = books.job_events().map(|(host, _)| host).collect();
        for (number, ((source, _), host)) in loads.iter().zip(&names).enumerate() {
            if firsts[number] != number {
                let first = names[firsts[number]];
                let text = format!(
                    "{host} is on the machine of {first}: the I/Os of its disks are counted there for all \
                        agents"
                );
                sink.event_from(*source, &Event::Note { point: 0, second: 0, text })?;
            }
            for text in disks.iter().filter(|disk| disk["hostname"] == **host).map(describe_disk) {
                sink.event_from(*source, &Event::Note { point: 0, second: 0, text })?;
            }
        }
        let body = serde_json::to_value(lines).map_err(|error| RunError::Sink(error.into()))?;
        sink.event(&Event::Storage { what: "jobs".into(), body })?;
        // fio's client has its servers' results in this form.
        let body = json!({ "client_stats": jobs, "disk_util": disks });
        sink.event(&Event::Storage { what: "result".into(), body })?;
        sink.event(&Event::Audit { point: 0, lines: Vec::new() })?;
        Ok(())
    }
}

/// Emits what the hosts send until all have ended, and ends them early when a stop is requested.
fn follow(
    remote: &mut RemoteLoad<'_>,
    begin: Nanos,
    (clock, stop): (&Clock, &Stop),
    sink: &mut dyn Sink,
) -> Result<(), RunError> {
    let (mut ordered, mut aborted, mut all) = (None, None, true);
    while !remote.all_ended() {
        std::thread::sleep(TICK);
        let now = clock.now();
        // A host with a hanging device may never end, although it still responds.
        let is_over = all && ordered.is_some_and(|close: Nanos| now > close + PATIENCE);
        if (stop.is_immediate() || is_over) && aborted.is_none() {
            aborted = Some(now);
            remote.abort();
        } else if stop.requested() && ordered.is_none() {
            let close = now.max(begin) + NOTICE_OF_END;
            ordered = Some(close);
            remote.end_at(LoadTimes { begin, open: begin, close, end: close });
        }
        all = remote.emit(now, sink)?;
        if (all || stop.is_immediate()) && aborted.is_some_and(|since| now > since + PATIENCE) {
            break;
        }
    }
    Ok(())
}

/// I/Os of a host within its window.
fn ios(report: &GeneratorReport) -> u64 {
    let totals = report.totals();
    totals.transactions(&totals.measured).map(|kind| kind.committed).sum()
}

fn window_of(events: &[Event]) -> Option<&Window> {
    events.iter().find_map(|event| if let Event::Window(window) = event { Some(window) } else { None })
}

impl HostResults<'_> {
    /// The window from the common start to the end of the last host.
    fn window(&self, windows: &[Option<&Window>], users: u32) -> Window {
        let known = || windows.iter().copied().flatten();
        let sum = |of: fn(&Window) -> u64| known().map(of).fold(0, u64::saturating_add);
        Window {
            point: 0,
            users,
            elapsed: known().map(|window| window.elapsed).max().unwrap_or(0),
            idle: 0,
            client_headline: self.totals.transactions(&self.totals.measured).map(|kind| kind.committed).sum(),
            server_headline: None,
            server_transactions: None,
            client_cpu: sum(|window| window.client_cpu),
            client_run_delay: known()
                .try_fold(0_u64, |sum, window| Some(sum.saturating_add(window.client_run_delay?))),
            schedule: schedule(windows),
        }
    }

    /// The invariants of the hosts together, and those that each host has checked.
    fn invariants(&self, loads: &[(SourceId, HostLoad)], windows: &[Option<&Window>]) -> Vec<Invariant> {
        let stayed = self.books.stayed();
        let mut found = vec![stayed];
        if !found[0].holds {
            return found;
        }
        found.extend(self.books.agree(loads));
        let counted = windows.iter().copied().flatten().map(|window| window.client_headline);
        found.push(counts_agree(
            "the sum of the hosts is the result: I/Os",
            ("counted by the hosts", counted.fold(0, u64::saturating_add)),
            ("in the seconds of all hosts", self.reports.iter().map(ios).sum()),
            0,
        ));
        let each = self.books.job_events().flat_map(|(host, events)| {
            let own = events.iter().filter_map(|event| match event {
                Event::Invariant { invariant, .. } => Some(invariant),
                _ => None,
            });
            own.map(move |own| label_invariant(host, own))
        });
        let mut worst: Vec<Invariant> = Vec::new();
        for own in each {
            match worst.iter_mut().find(|one| one.name == own.name) {
                Some(one) if rank(&own) < rank(one) => *one = own,
                Some(_) => {}
                None => worst.push(own),
            }
        }
        found.extend(worst);
        found
    }

    /// The job lines of all hosts, and their results and disks in fio's form, with the host's name.
    fn job_results(&self) -> (Vec<JobLine>, Vec<Value>, Vec<Value>) {
        let (mut lines, mut jobs, mut disks) = (Vec::new(), Vec::new(), Vec::new());
        // Agents on one machine see the same disks, since the kernel counts the I/Os of all.
        let mut counted = HashSet::new();
        for ((host, events), machine) in self.books.job_events().zip(self.books.first_on_machine()) {
            let named = |found: &mut Vec<Value>, list: &Value| {
                for one in list.as_array().into_iter().flatten() {
                    let mut one = one.clone();
                    if let Some(fields) = one.as_object_mut() {
                        fields.insert("hostname".into(), host.into());
                        found.push(one);
                    }
                }
            };
            for event in events {
                match event {
                    Event::Storage { what, body } if what == "jobs" => {
                        let own: Vec<JobLine> = serde_json::from_value(body.clone()).unwrap_or_default();
                        lines.extend(own.into_iter().map(|line| label_line(host, line)));
                    }
                    Event::Storage { what, body } if what == "result" => {
                        named(&mut jobs, &body["jobs"]);
                        let mut own = Vec::new();
                        named(&mut own, &body["disk_util"]);
                        own.retain(|disk| counted.insert((machine, disk["name"].to_string())));
                        disks.append(&mut own);
                    }
                    _ => {}
                }
            }
        }
        (lines, jobs, disks)
    }
}

/// The sort key of an invariant: failed ones first, then those not evaluated.
fn rank(invariant: &Invariant) -> (bool, bool) {
    (invariant.holds, invariant.not_judged.is_none())
}

/// A host's invariant, labelled with its name.
fn label_invariant(host: &str, own: &Invariant) -> Invariant {
    let named = |words: &String| format!("{host}: {}", text::printable(words));
    Invariant {
        name: text::printable(&own.name),
        holds: own.holds,
        evidence: named(&own.evidence),
        not_judged: own.not_judged.as_ref().map(named),
    }
}

/// A host's job line, labelled with its name.
fn label_line(host: &str, mut line: JobLine) -> JobLine {
    line.job = format!("{host}: {}", text::printable(&line.job));
    line.how = text::printable(&line.how);
    line.point = 0;
    for target in &mut line.targets {
        target.path = text::printable(&target.path);
        target.device = target.device.as_deref().map(text::printable);
        target.direction = text::printable(&target.direction);
    }
    line
}

/// Describes what a host's disk did, from fio's fields.
fn describe_disk(disk: &Value) -> String {
    let count = |field: &str| disk[field].as_u64().unwrap_or(0);
    let name = text::printable(disk["name"].as_str().unwrap_or("?"));
    format!(
        "disk {name}: {} reads and {} writes in all, busy {:.1} % of the time",
        count("read_ios"),
        count("write_ios"),
        disk["util"].as_f64().unwrap_or(0.0)
    )
}

/// What became of the rates requested on all hosts; `None` if a host has no rate.
fn schedule(windows: &[Option<&Window>]) -> Option<ArrivalSchedule> {
    let each = windows.iter().copied().flatten().map(|window| window.schedule);
    each.reduce(|sum, one| Some(sum?.with(one?)))?
}
