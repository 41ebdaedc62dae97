//! Whether storage is fast enough for a column store, by its usual metric: MB/s per physical core.
//!
//! Four tests of equal length, as in vioperf: Write, ReWrite, Read, SkipRead; one thread per core, each with a separate
//! file. Three weaknesses of vioperf are avoided. Files stop growing long before the filesystem is full. Writes that
//! extend a file are distinguished from overwrites, and the CPU time of the checksums from that of the rest.

mod block;
mod cores;
mod counters;
mod plan;
mod report;
mod table;
mod verdict;
mod worker;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kelvin_host::{SystemTree, Ticks};
use kelvin_measure::Stop;

use crate::error::Result;
use counters::{Counters, Counts};
use worker::{Order, Worker};

pub use cores::Cores;
pub use plan::{DirectoryPlan, LARGEST_BUFFER, VioperfPlan};
pub use report::{Cost, Rate, Report, Row, Split, Test};
pub use table::{header, plan as plan_text, row as row_text, summary};
pub use verdict::{MINIMUM, RECOMMENDED, ThroughputGrade};

/// One MB. vioperf's rule uses powers of ten.
pub const MB: f64 = 1e6;

/// How often the runner checks for a stop request.
const LOOK: Duration = Duration::from_millis(20);

/// Options of a measurement.
#[derive(Debug, Clone)]
pub struct Options {
    /// Existing directories, at least one.
    pub directories: Vec<PathBuf>,
    /// Duration of all four tests together.
    pub duration: Duration,
    /// Time between two rows of a test.
    pub interval: Duration,
    /// Threads in total; one for each core by default.
    pub threads: Option<u32>,
    /// Whether blocks contain a checksum that reads verify.
    pub crc: bool,
    /// Whether I/O bypasses the page cache.
    pub direct: bool,
    /// Bytes per I/O; a multiple of 4096.
    pub buffer: usize,
    /// Maximum bytes of all files together; by default chosen from the free space.
    pub working_set: Option<u64>,
    /// Whether the files are kept.
    pub preserve: bool,
}

/// An event of a measurement.
#[derive(Debug)]
pub enum VioperfEvent<'a> {
    /// The plan. Nothing has been written yet.
    Plan(&'a VioperfPlan),
    /// A row of the table.
    Row(&'a Row),
    /// A note to be shown immediately.
    Note(&'a str),
}

/// Runs the tests. Errors are those before the first I/O; later errors are in the report, with the results up to then.
pub fn run(
    options: &Options,
    stop: &Stop,
    report_event: &mut dyn FnMut(&VioperfEvent<'_>),
) -> Result<Report> {
    let mut plan = plan::make(options)?;
    let mut workers = worker::open(options, &mut plan)?;
    report_event(&VioperfEvent::Plan(&plan));
    for note in &plan.notes {
        report_event(&VioperfEvent::Note(note));
    }
    let mut report = Report::new(plan);
    for test in Test::ALL {
        if stop.requested() {
            report.interrupted = true;
            break;
        }
        if let Err(problem) = run_test(test, options, &mut workers, stop, &mut report, report_event) {
            report.failure = Some(problem);
            break;
        }
    }
    report.interrupted |= stop.requested();
    report.finish();
    for mut worker in workers {
        if let Err(problem) = worker.end(options.preserve) {
            report.notes.push(problem);
        } else if options.preserve {
            report.kept.push(worker.path().to_owned());
        }
    }
    Ok(report)
}

/// Runs one of the tests; returns the reason if it ended early.
fn run_test(
    test: Test,
    options: &Options,
    workers: &mut [Worker],
    stop: &Stop,
    report: &mut Report,
    report_event: &mut dyn FnMut(&VioperfEvent<'_>),
) -> std::result::Result<(), String> {
    let length = options.duration / 4;
    let over = Arc::new(AtomicBool::new(false));
    let counters: Vec<Counters> = workers.iter().map(|_| Counters::default()).collect();
    let directories: Vec<usize> = workers.iter().map(Worker::directory).collect();
    let (begin, machine) = (Instant::now(), processor_ticks());
    let mut watch = Watch {
        test,
        begin,
        length,
        directories: &directories,
        counters: &counters,
        before: Counts::by_directory(&counters, &directories, report.plan.directories.len()),
        before_at: begin,
        machine,
        whole: machine,
    };
    let ends: Vec<std::result::Result<Option<String>, String>> = thread::scope(|scope| {
        let running: Vec<_> = workers
            .iter_mut()
            .zip(&counters)
            .map(|(worker, counters)| {
                let order = Order { test, begin, length, over: over.clone(), crc: options.crc };
                scope.spawn(move || worker.run(&order, counters))
            })
            .collect();
        let mut next = begin + options.interval;
        while begin.elapsed() < length
            && !stop.requested()
            && !running.iter().any(thread::ScopedJoinHandle::is_finished)
        {
            thread::sleep(LOOK.min(length.saturating_sub(begin.elapsed())));
            // The last row of a test is made when its threads have ended.
            if Instant::now() >= next && begin.elapsed() + options.interval / 2 < length {
                for row in watch.rows(&report.plan) {
                    report_event(&VioperfEvent::Row(&row));
                    report.rows.push(row);
                }
                next += options.interval;
            }
        }
        over.store(true, Ordering::Release);
        running
            .into_iter()
            .map(|end| {
                end.join().unwrap_or_else(|_| Err("a thread panicked because of a bug in Kelvin".into()))
            })
            .collect()
    });
    let elapsed = begin.elapsed();
    let last = watch.last(&report.plan);
    for row in &last {
        report_event(&VioperfEvent::Row(row));
    }
    report.rows.extend(last);
    let whole = watch.whole_test(&report.plan);
    report.add(test, whole, &counters, elapsed);
    let mut failed = Ok(());
    for end in ends {
        match end {
            Ok(None) => {}
            Ok(Some(note)) => {
                report_event(&VioperfEvent::Note(&note));
                report.notes.push(note);
            }
            Err(problem) => failed = Err(problem),
        }
    }
    failed
}

/// Makes rows from the threads' counts.
struct Watch<'a> {
    test: Test,
    begin: Instant,
    length: Duration,
    directories: &'a [usize],
    counters: &'a [Counters],
    before: Vec<Counts>,
    before_at: Instant,
    machine: Ticks,
    whole: Ticks,
}

/// Zero if the kernel does not show them.
fn processor_ticks() -> Ticks {
    Ticks::read(&SystemTree::default()).unwrap_or_default()
}

impl Watch<'_> {
    /// A row for each directory; if there are several, also one for all.
    fn rows(&mut self, plan: &VioperfPlan) -> Vec<Row> {
        let (now, machine) = (Instant::now(), processor_ticks());
        let counts = Counts::by_directory(self.counters, self.directories, plan.directories.len());
        let recent: Vec<Counts> =
            counts.iter().zip(&self.before).map(|(now, before)| now.since(before)).collect();
        let spans = (now - self.begin, now - self.before_at);
        let use_of_cpu = machine.shares_since(self.machine);
        let rows = report::rows(self.test, plan, &counts, &recent, spans, use_of_cpu, self.length);
        (self.before, self.before_at, self.machine) = (counts, now, machine);
        rows
    }

    /// The last rows of a test.
    fn last(&mut self, plan: &VioperfPlan) -> Vec<Row> {
        self.rows(plan)
    }

    /// The whole test as a row, with its CPU use.
    fn whole_test(&self, plan: &VioperfPlan) -> Option<Row> {
        let counts = Counts::by_directory(self.counters, self.directories, plan.directories.len());
        let span = self.before_at - self.begin;
        let use_of_cpu = self.machine.shares_since(self.whole);
        report::rows(self.test, plan, &counts, &counts, (span, span), use_of_cpu, self.length).pop()
    }
}
