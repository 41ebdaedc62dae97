//! Cuts the server's CPU by stopping its processes once they have used their quota in a period, as the kernel's
//! bandwidth control does for a control group. For hosts without control groups and with too few CPUs for affinity.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kelvin_host::run_and_delay;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::tree;
use crate::cleanup_shell::{self, Guard};

/// The same as for the control group (`control_group.rs`).
const PERIOD: Duration = Duration::from_millis(20);

/// Searching for new processes costs more than a period allows.
const REFRESH: Duration = Duration::from_millis(250);

/// The kernel updates the time of a running process at its ticks, 1 to 10 ms apart: sampling more often is useless.
const LOOK: Duration = Duration::from_millis(1);

/// A cap on a process and its descendants.
#[derive(Debug)]
pub(super) struct RateCap {
    /// The limit in CPUs, as the bits of an `f64`; infinite without a cut.
    bound: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    failed: Arc<Mutex<Option<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl RateCap {
    /// Starts the thread that enforces the cap. It measures CPU time with and without a cap, so that all slices have
    /// the same overhead.
    pub(super) fn start(server: u32) -> Result<Self, String> {
        let pid = pid(server).ok_or("process 0 is not a valid process")?;
        test_kill_process(pid).map_err(|e| {
            format!("its processes cannot be stopped ({e}): run kelvin as its user or as root")
        })?;
        let mut held = Held::new(server, Guard::start(cleanup_shell::CONTINUE, &[])?);
        held.refresh()?;
        if held.processes.is_empty() {
            return Err(format!("/proc/{server}/schedstat, which counts its CPU time, cannot be read"));
        }
        let bound = Arc::new(AtomicU64::new(f64::INFINITY.to_bits()));
        let (stop, failed) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let (limit, asked, why) = (Arc::clone(&bound), Arc::clone(&stop), Arc::clone(&failed));
        let work = move || {
            if let Err(error) = held.work(&limit, &asked) {
                *why.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        };
        let thread = std::thread::Builder::new().name("squeeze cap".into()).spawn(work);
        let thread = Some(thread.map_err(|e| format!("cannot start its thread: {e}"))?);
        Ok(Self { bound, stop, failed, thread })
    }

    /// Limits the CPU time to that of so many CPUs; none removes the limit.
    pub(super) fn bound(&self, cores: Option<f64>) -> Result<(), String> {
        self.bound.store(cores.unwrap_or(f64::INFINITY).to_bits(), Ordering::Release);
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone().map_or(Ok(()), Err)
    }
}

impl Drop for RateCap {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// The processes, and the CPU time that each had used at the last sample.
#[derive(Debug)]
struct Held {
    server: u32,
    processes: BTreeMap<u32, (File, u64)>,
    guard: Guard,
    looked: Option<Instant>,
}

impl Held {
    fn new(server: u32, guard: Guard) -> Self {
        Self { server, processes: BTreeMap::new(), guard, looked: None }
    }

    fn work(&mut self, bound: &AtomicU64, stop: &AtomicBool) -> Result<(), String> {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get) as f64;
        // Nanoseconds of CPU used beyond what was allowed, returned from the next period.
        let mut debt = 0.0_f64;
        while !stop.load(Ordering::Acquire) {
            let began = Instant::now();
            self.refresh()?;
            let quota = f64::from_bits(bound.load(Ordering::Acquire)) * PERIOD.as_nanos() as f64;
            if quota.is_infinite() {
                debt = 0.0;
            }
            let mut used = debt + self.used();
            let mut stopped = false;
            while let Some(rest) = PERIOD.checked_sub(began.elapsed()).filter(|rest| !rest.is_zero()) {
                let left = quota - used;
                if left <= 0.0 && !stopped {
                    self.signal(Signal::STOP);
                    stopped = true;
                }
                // The quota cannot be used up sooner, even by all CPUs together.
                let soonest = Duration::from_nanos((left.max(0.0) / cpus).min(1e9) as u64);
                std::thread::sleep(if stopped { rest } else { rest.min(soonest.max(LOOK)) });
                used += self.used();
            }
            if stopped {
                self.signal(Signal::CONT);
            }
            debt = if quota.is_finite() { (used - quota).clamp(0.0, quota * 10.0) } else { 0.0 };
        }
        Ok(())
    }

    /// Adds new processes and drops those that have ended.
    fn refresh(&mut self) -> Result<(), String> {
        if self.looked.is_some_and(|at| at.elapsed() < REFRESH) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        let found = tree::processes(self.server);
        self.processes.retain(|process, _| found.contains(process));
        for process in found {
            if self.processes.contains_key(&process) {
                continue;
            }
            // A process that has ended meanwhile uses nothing.
            let Ok(file) = File::open(format!("/proc/{process}/schedstat")) else { continue };
            let Some(used) = on_cpu(&file) else { continue };
            // Announced to the guard before it can be stopped.
            self.guard.add_process(process)?;
            self.processes.insert(process, (file, used));
        }
        Ok(())
    }

    /// Nanoseconds of CPU used since the last sample.
    fn used(&mut self) -> f64 {
        let mut sum = 0;
        for (file, last) in self.processes.values_mut() {
            if let Some(now) = on_cpu(file) {
                sum += now.saturating_sub(std::mem::replace(last, now));
            }
        }
        sum as f64
    }

    fn signal(&self, signal: Signal) {
        for &process in self.processes.keys() {
            // A process that has ended receives no signal.
            let _ended = pid(process).map(|pid| kill_process(pid, signal));
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
    }
}

/// The first number of a schedstat: nanoseconds on a CPU.
fn on_cpu(file: &File) -> Option<u64> {
    let mut buffer = [0; 64];
    let length = file.read_at(&mut buffer, 0).ok()?;
    run_and_delay(&buffer[..length]).map(|(run, _)| run)
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(number.cast_signed())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// A process that keeps a CPU busy. Dropping it ends the process even if the test fails: otherwise the test
    /// runner would wait for its output.
    struct Spinner(Child);

    impl Drop for Spinner {
        fn drop(&mut self) {
            let _ended = self.0.kill();
            let _ended = self.0.wait();
        }
    }

    fn spinner() -> Spinner {
        Spinner(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }

    fn is_stopped(process: u32) -> bool {
        let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        text.rsplit_once(") ").unwrap().1.starts_with('T')
    }

    #[test]
    fn a_process_gets_no_more_than_its_cap_and_goes_on_afterwards() {
        let child = spinner();
        let process = child.0.id();
        let file = File::open(format!("/proc/{process}/schedstat")).unwrap();
        let cap = RateCap::start(process).unwrap();
        cap.bound(Some(0.25)).unwrap();
        std::thread::sleep(PERIOD * 2);
        let used = || {
            let (began, before) = (Instant::now(), on_cpu(&file).unwrap());
            std::thread::sleep(PERIOD * 30);
            (on_cpu(&file).unwrap() - before) as f64 / began.elapsed().as_nanos() as f64
        };
        // On a busy machine the process gets less CPU; a tick's overshoot in one period is compensated in the next.
        // If the capping thread itself is not scheduled for long, it stops no process, but that does not happen
        // every time.
        let bounded = (0..10).map(|_| used()).find(|used| *used < 0.4);
        assert!(bounded.is_some_and(|used| used > 0.0), "{bounded:?}");
        drop(cap);
        assert!(!is_stopped(process));
    }

    #[test]
    fn after_a_kill_the_shell_lets_it_go_on() {
        let child = spinner();
        let process = child.0.id();
        let mut held = Held::new(process, Guard::start(cleanup_shell::CONTINUE, &[]).unwrap());
        held.refresh().unwrap();
        held.signal(Signal::STOP);
        while !is_stopped(process) {
            std::thread::sleep(LOOK);
        }
        held.guard.abandon();
        assert!(!is_stopped(process));
    }
}
