//! An agent: waits for a controller's commands, and generates its share of a run's load on targets of its own
//! list.

mod allow;
mod allow_io;
mod host_clock;
mod job;
mod opened;
mod outbox;
mod share;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use kelvin_database::{confine_sessions, process_sessions};
use kelvin_host::{SystemTree, online_cpus};
use kelvin_measure::{Clock, Machine};
use kelvin_run::io::IoRun;
use kelvin_store::Store;
use kelvin_workload::Stop;
use tokio::sync::Notify;

use crate::bus::{Bus, Connection, Incoming, Task};
use crate::error::FleetError;
use crate::message::{AgentState, Answer, Beat, ClockAnswer, Command, clean, decode, encode};
use crate::subject::{Name, Subjects};
pub use allow::AllowedTargets;
pub use allow_io::AllowedIo;
pub use host_clock::ClockTestHook;
use job::{Job, JobEnd};
use opened::OpenedLoad;

type Result<T> = std::result::Result<T, FleetError>;

/// Interval of the beats.
const BEAT: Duration = Duration::from_secs(1);

/// How often the agent checks whether its load has ended or has lost its controller.
const TICK: Duration = Duration::from_millis(50);

/// An agent stops its load after this time without a message from the controller.
pub const ALONE: Duration = Duration::from_secs(15);

/// An agent's identity, its connection and its permissions.
pub struct AgentOptions {
    /// Its name in the fleet.
    pub name: Name,
    /// The fleet's lab.
    pub lab: Name,
    /// The connection to NATS.
    pub connection: Connection,
    /// The only databases, files and devices that it puts load on.
    pub targets: AllowedTargets,
    /// The store of its own runs.
    pub store: PathBuf,
    /// How long it continues without a controller.
    pub alone: Duration,
    /// Whether it ends after its first run.
    pub once: bool,
    /// The clock's test hook.
    pub clock: ClockTestHook,
}

/// Why an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentEnd {
    /// It was asked to end, or its only run is over.
    Ended,
    /// It lost the controller of its only run.
    Alone,
}

/// The content of the beats, updated by the parts of the agent.
pub(crate) struct Status {
    beat: Mutex<Beat>,
    changed: Notify,
}

impl Status {
    /// Changes the agent's state.
    pub(crate) fn set(&self, state: AgentState) {
        self.beat().state = state;
        self.changed.notify_one();
    }

    fn set_run(&self, run: Option<Name>, state: AgentState) {
        let mut beat = self.beat();
        (beat.run, beat.state) = (run, state);
        drop(beat);
        self.changed.notify_one();
    }

    fn beat(&self) -> MutexGuard<'_, Beat> {
        self.beat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves until `stop` is requested, or with `once` until the first run is over. Progress messages go to
/// `report`.
pub fn serve(options: &AgentOptions, stop: &Stop, report: &mut dyn FnMut(&str)) -> Result<AgentEnd> {
    // The controller provides the statements of scripts; they must only use the target's file.
    confine_sessions();
    let inbox = format!("_INBOX_{}", options.name);
    let bus = Bus::connect(&options.connection, &format!("kelvin agent {}", options.name), Some(&inbox))?;
    let bus = Arc::new(bus);
    let subjects = Subjects::for_lab(&options.lab);
    let clock = Clock::real();
    let status = Arc::new(Status { beat: Mutex::new(first_beat(options)), changed: Notify::new() });
    let (hook, shown) = (options.clock, clock.clone());
    let _clock = bus.serve(&subjects.clock(&options.name), move || {
        let t1 = hook.shown_at(shown.now());
        let answer = ClockAnswer { t1, t2: hook.shown_at(shown.now()) };
        encode(&answer).unwrap_or_default()
    })?;
    let (sender, commands) = mpsc::channel();
    let _commands = bus.subscribe(&subjects.command(&options.name), move |incoming| {
        // Fails only when the agent is ending.
        let _gone = sender.send(incoming);
    })?;
    let asked = Arc::clone(&status);
    let _hello = bus.subscribe(&subjects.hello(), move |_| asked.changed.notify_one())?;
    let _beats = send_beats(&bus, subjects.beat(&options.name), &status);
    report(&format!(
        "agent {} of lab {} waits for a run at {}",
        options.name, options.lab, options.connection.url
    ));
    let stop = stop.clone();
    let mut agent = Agent { options, bus, subjects, clock, status, job: None, ended: None, stop, report };
    agent.work(&commands)
}

fn first_beat(options: &AgentOptions) -> Beat {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Beat {
        agent: options.name.clone(),
        host,
        cpus: std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get) as u32,
        machine: this_machine(),
        kelvin: env!("CARGO_PKG_VERSION").into(),
        process: u64::from(std::process::id()),
        run: None,
        state: AgentState::Idle,
        connections: BTreeSet::new(),
    }
}

/// The machine of this process; `None` where the kernel does not identify it.
fn this_machine() -> Option<Machine> {
    let tree = SystemTree::default();
    Some(Machine { boot: tree.boot_id()?, cpus: online_cpus(&tree)? as u32 })
}

/// Sends a beat every second and whenever the status changes.
fn send_beats(bus: &Bus, subject: String, status: &Arc<Status>) -> Task {
    let (client, status) = (bus.client(), Arc::clone(status));
    bus.spawn(async move {
        let mut seen = 0;
        loop {
            let beat = {
                let mut beat = status.beat();
                if let Some(open) = process_sessions::changed_connections(&mut seen) {
                    beat.connections = open;
                }
                encode(&*beat).unwrap_or_default()
            };
            // Without a connection a beat would be outdated when it arrives.
            if client.connection_state() == async_nats::connection::State::Connected {
                let _lost = client.publish(subject.clone(), beat.into()).await;
            }
            let _due = tokio::time::timeout(BEAT, status.changed.notified()).await;
        }
    })
}

struct Agent<'a> {
    options: &'a AgentOptions,
    bus: Arc<Bus>,
    subjects: Subjects,
    clock: Clock,
    status: Arc<Status>,
    job: Option<Job>,
    /// How the last job ended, until it is handled.
    ended: Option<JobEnd>,
    stop: Stop,
    report: &'a mut dyn FnMut(&str),
}

impl Agent<'_> {
    fn work(&mut self, commands: &mpsc::Receiver<Incoming>) -> Result<AgentEnd> {
        loop {
            match commands.recv_timeout(TICK) {
                Ok(incoming) => self.handle_command(&incoming),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(FleetError::Nats("the connection has ended".into()));
                }
            }
            for refusal in self.bus.take_refusals() {
                (self.report)(&format!(
                    "the NATS server denied permission: {refusal}; is the key that of agent {} of lab {}?",
                    self.options.name, self.options.lab
                ));
            }
            if let Some(job) = &mut self.job {
                job.check_load();
            }
            if self.stop.requested() {
                self.leave();
                return Ok(AgentEnd::Ended);
            }
            if let Some(end) = self.job.as_ref().and_then(Job::is_over) {
                self.end_job(end);
            }
            if let Some(end) = self.ended.take().filter(|_| self.options.once) {
                let alone = end == JobEnd::Alone;
                return Ok(if alone { AgentEnd::Alone } else { AgentEnd::Ended });
            }
        }
    }

    /// Ends the load before the process ends.
    fn leave(&mut self) {
        let Some(job) = &mut self.job else { return };
        job.abort();
        let since = Instant::now();
        while !job.is_idle() && !self.stop.is_immediate() && since.elapsed() < ALONE {
            std::thread::sleep(TICK);
            job.check_load();
        }
        self.end_job(JobEnd::Aborted);
    }

    fn end_job(&mut self, end: JobEnd) {
        let Some(job) = self.job.take() else { return };
        let run = job.run().clone();
        match job.finish(end, &self.stop) {
            Ok(text) => (self.report)(&format!("run {run}: {text}")),
            Err(error) => (self.report)(&format!("run {run}: {error}")),
        }
        self.status.set_run(None, AgentState::Idle);
        self.ended = Some(end);
    }

    fn handle_command(&mut self, incoming: &Incoming) {
        let answer = match decode::<Command>(&incoming.payload) {
            Ok(command) => self.follow(command),
            Err(error) => Err(error),
        };
        let answer = answer.unwrap_or_else(|error| Answer::Refused(error.to_string()));
        if let Answer::Refused(why) = &answer {
            (self.report)(&format!("refused: {}", clean(why)));
        }
        // Without an answer the controller repeats the command or gives up.
        let _lost = self.bus.answer(incoming, &answer);
    }

    fn follow(&mut self, command: Command) -> Result<Answer> {
        match command {
            Command::Prepare(prepare) => {
                if let Some(job) = &self.job {
                    return Ok(Answer::Refused(format!("it is busy with run {}", job.run())));
                }
                let mut spec = self.options.targets.check(&prepare.spec)?;
                // Other agents on this host have their own directories.
                let aux = self.options.store.with_extension("verify");
                std::fs::create_dir_all(&aux).map_err(FleetError::file(&aux))?;
                let jobs = self.options.targets.open_jobs(&spec, prepare.host, &aux)?;
                let what = jobs.as_ref().map_or_else(|| spec.target.to_string(), IoRun::target);
                (self.report)(&format!("run {}: opening {what}", prepare.run));
                self.status.set_run(Some(prepare.run.clone()), AgentState::Preparing);
                let store = Store::open(&self.options.store)
                    .map_err(|error| FleetError::Refused(format!("its store: {error}")));
                let limit = self.options.alone;
                let alone =
                    Duration::try_from_secs_f64(prepare.alone).map_or(limit, |alone| alone.min(limit));
                let stop = &self.stop;
                let load = store.and_then(|store| Ok((store, OpenedLoad::open(&mut spec, jobs, stop)?)));
                let job = load.and_then(|(store, load)| {
                    Job::prepare(
                        (prepare.run, spec, load),
                        &store,
                        alone,
                        job::AgentContext {
                            agent: self.options.name.clone(),
                            bus: Arc::clone(&self.bus),
                            subjects: self.subjects.clone(),
                            clock: self.clock.clone(),
                            hook: self.options.clock,
                            status: Arc::clone(&self.status),
                        },
                    )
                });
                match job {
                    Ok(job) => {
                        self.status.set(AgentState::Prepared);
                        self.job = Some(job);
                        Ok(Answer::Prepared { synchronisation: host_clock::synchronisation() })
                    }
                    Err(error) => {
                        self.status.set_run(None, AgentState::Idle);
                        Err(error)
                    }
                }
            }
            Command::Arm(arm) => self.job(&arm.run)?.arm(arm.assignment).map(|()| Answer::Accepted),
            Command::Start { run, point, times } => {
                let at = self.job(&run)?.start(point, times)?;
                (self.report)(&format!("run {run}: point {point} starts at {at} ns of the monotonic clock"));
                Ok(Answer::Accepted)
            }
            Command::EndAt { run, point, times } => {
                self.job(&run)?.end_at(point, times).map(|()| Answer::Accepted)
            }
            Command::Abort { run } => {
                self.job(&run)?.abort();
                Ok(Answer::Accepted)
            }
            Command::Share { run } => {
                if let Some(job) = &self.job {
                    return Ok(Answer::Refused(format!("it is busy with run {}", job.run())));
                }
                share::send(self.options, &self.bus, &self.subjects, &run)?;
                (self.report)(&format!("run {run}: its file was sent to the controller"));
                Ok(Answer::Accepted)
            }
            Command::End { run } => {
                // A repeated command whose first answer was lost.
                let Ok(job) = self.job(&run) else { return Ok(Answer::Accepted) };
                job.end();
                job.check_load();
                let Some(end) = job.is_over() else {
                    return Ok(Answer::Refused("its load is still being stopped".into()));
                };
                self.end_job(end);
                Ok(Answer::Accepted)
            }
        }
    }

    /// The job of this run. A command shows that the controller is alive.
    fn job(&mut self, run: &Name) -> Result<&mut Job> {
        let job = self.job.as_mut().filter(|job| job.run() == run);
        let job = job.ok_or_else(|| FleetError::Refused(format!("it is not part of run {run}")))?;
        job.note_contact();
        Ok(job)
    }
}
