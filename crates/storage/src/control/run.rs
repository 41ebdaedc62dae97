//! The run itself: one loop that starts workers, receives messages and decides.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use kelvin_measure::{Clock, Nanos, Stop};

use super::account::{self, Account};
use super::collect::Collected;
use super::disks::Disks;
use super::iologs::Iologs;
use super::lay_out::{self, QUIET};
use super::schedule::{Exit, Stage, Turn, WorkerSchedule};
use super::scheduler::Schedulers;
use super::steady::Watch;
use super::thread;
use super::{Prepared, RunOptions, WorkerIo};
use crate::event::{IoEvent, IoWatcher, WorkerState};
use crate::layout;
use crate::log::LogWriter;
use crate::message::Message;
use crate::result::JobsOutcome;
use crate::worker::Shared;
use crate::{Direction, PerDirection, Result};
use kelvin_host::SystemTree;

const MILLI: Nanos = 1_000_000;

/// As [`super::run`], with another implementation of the workers' I/O.
///
/// # Errors
/// As [`super::run`].
pub fn run_with(
    work: Arc<dyn WorkerIo>,
    mut prepared: Prepared,
    options: &RunOptions,
    stop: &Stop,
    watcher: &mut dyn IoWatcher,
) -> Result<JobsOutcome> {
    for worker in 0..prepared.workers.len() as u32 {
        watcher.event(&IoEvent::State { worker, state: WorkerState::Planned });
    }
    lay_out::lay_out(&mut prepared, stop, watcher)?;
    let tree = SystemTree::default();
    let mut schedulers = Schedulers::default();
    for worker in &prepared.workers {
        let Some(name) = &prepared.job(worker).process.scheduler else { continue };
        for device in worker.targets.iter().filter_map(|target| target.device.as_deref()) {
            if let Some(note) = schedulers.choose(&tree, device, name)? {
                watcher.event(&IoEvent::Note(&note));
            }
        }
    }
    let before = (Disks::now(&tree), Account::now());
    let mut run = Run::new(work, prepared, options, stop, watcher)?;
    run.go()?;
    drop(schedulers);
    run.outcome(&tree, &before.0, before.1)
}

struct Run<'a> {
    work: Arc<dyn WorkerIo>,
    prepared: Prepared,
    directory: PathBuf,
    aux_directory: Option<PathBuf>,
    stop: &'a Stop,
    watcher: &'a mut dyn IoWatcher,
    shared: Arc<Shared>,
    messages: Receiver<Message>,
    logs: LogWriter,
    iologs: Iologs,
    schedule: WorkerSchedule,
    threads: Vec<Option<JoinHandle<()>>>,
    collected: Vec<Collected>,
    watches: Vec<Watch>,
    /// The clock's zero in milliseconds since 1970.
    origin: i64,
    /// When the jobs began, on the clock.
    begun: Nanos,
    interrupted: bool,
    /// When the watcher was last called.
    heard: Instant,
}

impl<'a> Run<'a> {
    fn new(
        work: Arc<dyn WorkerIo>,
        prepared: Prepared,
        options: &RunOptions,
        stop: &'a Stop,
        watcher: &'a mut dyn IoWatcher,
    ) -> Result<Self> {
        let (sender, messages) = channel();
        let flows: Vec<_> = prepared.workers.iter().map(|worker| prepared.job(worker).flow).collect();
        let clock = options.clock.clone().unwrap_or_else(Clock::real);
        let begun = clock.now();
        let shared = Shared::new(clock, stop.clone(), sender, &flows);
        let shared = Arc::new(Shared { rates: Arc::clone(&options.rates), ..shared });
        let collected = prepared.workers.iter().enumerate();
        let collected = collected
            .map(|(number, worker)| Collected::new(number as u32, worker.clone(), prepared.job(worker)))
            .collect();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let origin = since.as_millis() as i64 - (begun / MILLI) as i64;
        let directory = options.log_directory.clone().unwrap_or_default();
        Ok(Self {
            logs: LogWriter::new(&prepared.jobs, options.log_directory.as_deref(), origin)?,
            iologs: Iologs::new(&prepared, &directory)?,
            work,
            directory,
            aux_directory: options.aux_directory.clone(),
            stop,
            watcher,
            shared,
            messages,
            schedule: schedule(&prepared),
            threads: prepared.workers.iter().map(|_| None).collect(),
            collected,
            watches: watches(&prepared),
            origin,
            begun,
            interrupted: false,
            heard: Instant::now(),
            prepared,
        })
    }

    fn go(&mut self) -> Result<()> {
        loop {
            if self.stop.requested() && !self.schedule.is_over() {
                self.interrupted = true;
                self.schedule.cancel_all();
            }
            let ready: Vec<usize> = self.schedule.ready(self.time());
            self.shared.flow.expect(&ready);
            for worker in ready {
                self.begin(worker);
            }
            if self.schedule.is_over() {
                return Ok(());
            }
            if self.stop.is_immediate() {
                self.give_up()?;
                return Ok(());
            }
            let wait = self.patience();
            self.listen(wait)?;
            self.reap()?;
            // The last worker may have seen the request, and ended, before it is checked above.
            self.interrupted |= self.stop.requested();
        }
    }

    /// Time since the jobs began.
    fn time(&self) -> Nanos {
        self.shared.clock.now().saturating_sub(self.begun)
    }

    /// How long to wait for messages before other work is due.
    fn patience(&self) -> Duration {
        // A thread whose worker has ended is about to end, too.
        let ending = self.threads.iter().zip(&self.collected).any(|(t, c)| t.is_some() && c.has_ended());
        if ending {
            return Duration::from_millis(1);
        }
        let now = self.time();
        let next = self.schedule.next_start().map(|at| Duration::from_nanos(at.saturating_sub(now)));
        next.map_or(QUIET / 2, |next| next.min(QUIET / 2))
    }

    fn begin(&mut self, worker: usize) {
        let Some(planned) = self.prepared.workers.get(worker) else { return };
        let job = Arc::clone(self.prepared.job(planned));
        if job.targets.create_only {
            // Its files are laid out: there is nothing else to do.
            self.shared.flow.absent(worker as u32);
            self.stage(worker, Stage::Over);
            return self.report_state(worker, WorkerState::Ended);
        }
        let plan = planned.plan(worker as u32, &job, self.aux_directory.as_deref());
        self.report_state(worker, WorkerState::Created);
        let started =
            thread::start(Arc::clone(&self.work), plan, Arc::clone(&self.shared), self.directory.clone());
        match started {
            Ok(handle) => {
                self.stage(worker, Stage::Running);
                if let Some(slot) = self.threads.get_mut(worker) {
                    *slot = Some(handle);
                }
            }
            Err(cause) => {
                self.shared.flow.absent(worker as u32);
                let number = cause.raw_os_error().unwrap_or(libc::EAGAIN);
                if let Some(collected) = self.collected.get_mut(worker) {
                    collected.fail(number, format!("cannot start the worker's thread: {cause}"));
                }
                self.report_state(worker, WorkerState::Failed);
                self.over(worker);
            }
        }
    }

    fn stage(&mut self, worker: usize, stage: Stage) {
        if let Some(turn) = self.schedule.0.get_mut(worker) {
            turn.stage = stage;
        }
    }

    fn report_state(&mut self, worker: usize, state: WorkerState) {
        self.watcher.event(&IoEvent::State { worker: worker as u32, state });
        self.heard = Instant::now();
    }

    /// Receives messages for a while, and then all that are available.
    fn listen(&mut self, wait: Duration) -> Result<()> {
        match self.messages.recv_timeout(wait) {
            Ok(message) => self.message(message)?,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        while let Ok(message) = self.messages.try_recv() {
            self.message(message)?;
        }
        if self.heard.elapsed() >= QUIET / 2 {
            self.watcher.idle();
            self.heard = Instant::now();
        }
        Ok(())
    }

    fn message(&mut self, message: Message) -> Result<()> {
        match message {
            Message::State(worker, state) => self.report_state(worker as usize, state),
            Message::Tick(tick) => {
                let Some(collected) = self.collected.get_mut(tick.worker as usize) else { return Ok(()) };
                collected.tick(&tick)?;
                self.watcher.event(&IoEvent::Tick(&tick));
                self.heard = Instant::now();
                for watch in &mut self.watches {
                    if watch.tick(&tick) {
                        watch.workers().for_each(|worker| self.shared.end_worker(worker));
                    }
                }
                self.shared.spare.give(tick);
            }
            Message::Log(worker, chunk) => {
                self.logs.chunk(worker, &chunk)?;
                self.iologs.chunk(worker, &chunk)?;
            }
            Message::Note(worker, note) => {
                self.watcher.event(&IoEvent::Note(&note));
                if let Some(collected) = self.collected.get_mut(worker as usize) {
                    collected.note(note);
                }
            }
            Message::Layout { worker, what, done, total } => {
                self.watcher.event(&IoEvent::Layout { worker, what: &what, done, total });
                self.heard = Instant::now();
            }
            Message::End(end) => {
                for watch in &mut self.watches {
                    watch.over(end.worker);
                }
                if let Some(collected) = self.collected.get_mut(end.worker as usize) {
                    collected.end(*end);
                }
            }
        }
        Ok(())
    }

    /// Processes threads that have ended.
    fn reap(&mut self) -> Result<()> {
        let is_finished =
            |thread: &Option<JoinHandle<()>>| thread.as_ref().is_some_and(JoinHandle::is_finished);
        let threads = self.threads.iter().enumerate();
        let finished: Vec<usize> =
            threads.filter(|(_, t)| is_finished(t)).map(|(worker, _)| worker).collect();
        if finished.is_empty() {
            return Ok(());
        }
        // Their last messages are in the channel by now.
        while let Ok(message) = self.messages.try_recv() {
            self.message(message)?;
        }
        for worker in finished {
            if let Some(slot) = self.threads.get_mut(worker) {
                *slot = None;
            }
            if let Some(collected) = self.collected.get_mut(worker)
                && !collected.has_ended()
            {
                collected.fail(libc::EFAULT, "the worker's thread ended without a result".into());
            }
            self.over(worker);
            self.delete(worker)?;
        }
        Ok(())
    }

    /// A worker has ended: other workers may have to end as well.
    fn over(&mut self, worker: usize) {
        let failed = self.collected.get(worker).is_some_and(Collected::failed);
        for other in self.schedule.ended(worker, failed) {
            self.shared.end_worker(other as u32);
        }
    }

    /// `unlink=`: deletes a worker's files if no other worker uses or will use them.
    fn delete(&mut self, worker: usize) -> Result<()> {
        let Some(planned) = self.prepared.workers.get(worker) else { return Ok(()) };
        let targets = &self.prepared.job(planned).targets;
        if !targets.unlink {
            return Ok(());
        }
        let others = self.prepared.workers.iter().zip(&self.schedule.0);
        let others: Vec<_> = others
            .filter(|(_, turn)| matches!(turn.stage, Stage::Waiting | Stage::Running))
            .flat_map(|(other, _)| &other.targets)
            .map(|target| &target.path)
            .collect();
        let mine = planned.targets.iter().filter(|target| !others.contains(&&target.path));
        let mine: Vec<_> = mine.cloned().collect();
        let stop = self.stop;
        let mut problem = None;
        let deleted = lay_out::run_in_thread(
            stop,
            move || layout::unlink(&mine),
            |_| problem = problem.take().or(self.listen(Duration::from_millis(1)).err()),
        )?;
        if let Some(problem) = problem {
            return Err(problem);
        }
        if let (Some(Err(cause)), Some(collected)) = (deleted, self.collected.get_mut(worker)) {
            collected.note(format!("its files could not all be deleted (unlink=1): {cause}"));
        }
        Ok(())
    }

    /// After a second stop request: running workers are abandoned, with the results they have sent so far.
    fn give_up(&mut self) -> Result<()> {
        self.listen(Duration::ZERO)?;
        self.reap()?;
        let now = self.shared.clock.now();
        for worker in 0..self.threads.len() {
            if self.threads.get_mut(worker).and_then(Option::take).is_none() {
                continue;
            }
            let under_way = self.shared.under_way.get(worker).and_then(crate::worker::UnderWay::current_call);
            let problem = match under_way {
                Some((since, io)) => {
                    let targets = self.prepared.workers.get(worker).map(|planned| &planned.targets);
                    let target = targets.and_then(|targets| targets.get(io.target as usize));
                    let path = target.map(|target| target.path.display().to_string()).unwrap_or_default();
                    format!(
                        "abandoned: a {} of {} bytes at offset {} of {path} has been in flight for {:.1} s",
                        io.direction,
                        io.length,
                        io.offset,
                        now.saturating_sub(since) as f64 / 1e9
                    )
                }
                None => "abandoned: it had not ended after two requests to stop".to_owned(),
            };
            if let Some(collected) = self.collected.get_mut(worker) {
                collected.fail(libc::EINTR, problem);
            }
            self.report_state(worker, WorkerState::Failed);
        }
        Ok(())
    }

    fn outcome(self, tree: &SystemTree, disks: &Disks, account: Option<Account>) -> Result<JobsOutcome> {
        let millis = self.time() / MILLI;
        self.iologs.finish()?;
        for note in self.logs.finish()? {
            self.watcher.event(&IoEvent::Note(&note));
        }
        let courses = || self.collected.iter().filter_map(Collected::course);
        let first = courses().map(|course| course.0).min();
        let last = courses().map(|course| course.1).max();
        let elapsed = last.zip(first).map_or(0, |(last, first)| last.saturating_sub(first));
        let mut claimed: PerDirection<u64> = PerDirection::default();
        for (collected, planned) in self.collected.iter().zip(&self.prepared.workers) {
            if account::is_counted(self.prepared.job(planned).engine.name) {
                for direction in Direction::ALL {
                    claimed[direction] += collected.moved()[direction];
                }
            }
        }
        if let (Some(before), Some(now)) = (account, Account::now()) {
            before.check(now, &claimed)?;
        }
        let workers = || self.prepared.workers.iter();
        let shown = workers().filter(|worker| self.prepared.job(worker).report.disk_use);
        let devices = shown.flat_map(|worker| &worker.targets).filter_map(|target| target.device.as_deref());
        let disks = disks.until(&Disks::now(tree), tree, devices, millis);
        let watches = &self.watches;
        let outcomes = self.collected.into_iter().enumerate().map(|(number, collected)| {
            let watch = watches.iter().find(|watch| watch.workers().any(|worker| worker as usize == number));
            collected.outcome(self.origin, watch.map(Watch::outcome))
        });
        Ok(JobsOutcome {
            workers: outcomes.collect::<Result<_>>()?,
            jobs: self.prepared.jobs,
            started: self.origin + (self.begun / MILLI) as i64,
            elapsed,
            disks,
            interrupted: self.interrupted,
        })
    }
}

fn schedule(prepared: &Prepared) -> WorkerSchedule {
    let turn = |worker: &super::PlannedWorker| {
        let job = prepared.job(worker);
        let course = &job.course;
        let exit = (course.exit_all || job.errors.exit_all)
            .then_some(Exit { what: course.exit_what, only_on_error: !course.exit_all });
        let waited_for =
            |other: &&super::PlannedWorker| Some(&prepared.job(other).name) == course.wait_for.as_ref();
        let workers = prepared.workers.iter().enumerate();
        let after = workers.filter(|(_, other)| waited_for(other)).map(|(number, _)| number).collect();
        Turn {
            stage: Stage::Waiting,
            wall: worker.wall,
            group: worker.group,
            delay: worker.delay,
            after,
            exit,
        }
    };
    WorkerSchedule(prepared.workers.iter().map(turn).collect())
}

/// The groups that are watched for a steady state: workers that are reported as a group together, others separately.
fn watches(prepared: &Prepared) -> Vec<Watch> {
    let mut watches: Vec<(Option<u32>, Watch)> = Vec::new();
    let workers = prepared.workers.iter().enumerate();
    let in_group = |group: u32| {
        let workers = prepared.workers.iter().enumerate();
        workers.filter(move |(_, other)| other.group == group).map(|(number, _)| number as u32)
    };
    for (number, worker) in workers {
        let job = prepared.job(worker);
        let Some(rule) = job.steady else { continue };
        if !job.course.group_reporting {
            watches.push((None, Watch::new(rule, [number as u32])));
        } else if watches.iter().all(|(group, _)| *group != Some(worker.group)) {
            watches.push((Some(worker.group), Watch::new(rule, in_group(worker.group))));
        }
    }
    watches.into_iter().map(|(_, watch)| watch).collect()
}
