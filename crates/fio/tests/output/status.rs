//! The line that goes on while jobs run, on a clock that stands still until it is moved.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kelvin_fio::event::{IoEvent, IoWatcher, WorkerState};
use kelvin_fio::job::{Amount, Jobs};
use kelvin_fio::output::Format;
use kelvin_fio::output::status::{Dumps, Eta, StatusLine, StatusOptions};
use kelvin_fio::tick::{DepthCounts, Tick};
use kelvin_fio::{Direction, Moments, PerDirection};
use kelvin_measure::Clock;
use kelvin_measure::event::LoadPart;

use crate::support::{SECOND, job, jobs, tally};

/// A stream that the test reads.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<u8>>>);

impl Write for Seen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seen {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn two_stages() -> Jobs {
    let mut first = job("r");
    first.clones = 10;
    first.pattern.random = true;
    first.course.runtime = Some(10 * SECOND);
    first.course.time_based = true;
    first.course.ramp = 2 * SECOND;
    let mut second = job("w");
    second.pattern.reads = false;
    second.pattern.writes = true;
    second.course.stonewall = true;
    second.course.runtime = Some(12 * SECOND);
    second.course.time_based = true;
    second.clones = 2;
    jobs(vec![first, second])
}

fn tick(worker: u32, from: u64, to: u64, part: LoadPart, count: u64) -> Tick {
    let mut directions = PerDirection([None, None, None]);
    directions[Direction::Read] = Some(Box::new(tally(count, 100_000, 1000)));
    Tick {
        worker,
        from,
        to,
        part,
        targets: vec![directions],
        syncs: Moments::default(),
        sync_bins: None,
        depth: DepthCounts::default(),
        failures: Vec::new(),
    }
}

struct Run {
    clock: Clock,
    seen: Seen,
    line: StatusLine,
}

fn run(jobs: &Jobs, options: StatusOptions) -> Run {
    let (clock, seen) = (Clock::mock(), Seen::default());
    let line = StatusLine::new(jobs, options, clock.clone(), Box::new(seen.clone()));
    Run { clock, seen, line }
}

impl Run {
    fn forward(&mut self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
        self.line.idle();
    }

    fn states(&mut self, workers: std::ops::Range<u32>, state: WorkerState) {
        for worker in workers {
            self.line.event(&IoEvent::State { worker, state });
        }
    }
}

#[test]
fn a_run_from_its_plan_to_its_end() {
    let mut run = run(&two_stages(), StatusOptions::default());
    run.forward(1000);
    run.states(0..10, WorkerState::SettingUp);
    run.line.event(&IoEvent::Layout { worker: 0, what: "filling /data/f", done: 1 << 30, total: 4 << 30 });
    run.forward(1000);
    run.states(0..10, WorkerState::RampUp);
    run.forward(1000);
    run.states(0..10, WorkerState::Running);
    // A tick of half a second each: the rates are those of the ticks, however often lines are written.
    for worker in 0..10 {
        run.line.event(&IoEvent::Tick(&tick(worker, 0, SECOND / 2, LoadPart::Measured, 500)));
    }
    run.forward(1000);
    // Less in this interval, and slower: not the mean since the beginning.
    for worker in 0..9 {
        let mut slow = tick(worker, SECOND / 2, SECOND, LoadPart::Measured, 0);
        slow.targets[0][Direction::Read] = Some(Box::new(tally(50, 5_000_000, 1_000_000)));
        run.line.event(&IoEvent::Tick(&slow));
    }
    run.forward(1000);
    run.states(0..10, WorkerState::Ended);
    run.states(10..11, WorkerState::Running);
    run.states(11..12, WorkerState::Failed);
    run.forward(1000);
    run.line.end();
    let shown = run.seen.text().replace('\r', "↵\n");
    insta::assert_snapshot!("status_line", shown);
}

#[test]
fn lines_that_stay_and_a_line_that_covers_the_longer_one_before_it() {
    let options = StatusOptions { newline: Some(2 * SECOND), ..StatusOptions::default() };
    let mut run = run(&two_stages(), options);
    for _ in 0..5 {
        run.forward(1000);
    }
    let text = run.seen.text();
    assert_eq!(text.matches('\n').count(), 2, "{text:?}");
    assert_eq!(text.matches('\r').count(), 3, "{text:?}");
    assert!(!Eta::Auto.shows(false) && Eta::Always.shows(false) && !Eta::Never.shows(true));
    assert_eq!(Eta::parse("never"), Some(Eta::Never));
    assert_eq!(Eta::parse("sometimes"), None);
}

#[test]
fn nothing_is_written_where_no_line_is_wanted() {
    let mut run = run(&two_stages(), StatusOptions { line: false, ..StatusOptions::default() });
    run.line.event(&IoEvent::Note("a note"));
    run.forward(5000);
    run.line.end();
    assert_eq!(run.seen.text(), "");
}

#[test]
fn the_rest_of_a_job_that_ends_by_its_bytes() {
    let mut one = job("a");
    // 4,000 I/Os of 4 KiB.
    one.targets.size = Some(Amount::Bytes(4000 * 4096));
    let mut run = run(&jobs(vec![one]), StatusOptions::default());
    run.states(0..1, WorkerState::Running);
    for half in 0..4_u64 {
        run.line.event(&IoEvent::Tick(&tick(
            0,
            half * SECOND / 2,
            (half + 1) * SECOND / 2,
            LoadPart::Measured,
            500,
        )));
        run.forward(500);
    }
    // Half is done in two seconds.
    let text = run.seen.text();
    assert!(text.contains("[50.0%]") && text.ends_with("[eta 00m:02s]\r"), "{text:?}");
}

#[test]
fn the_result_so_far_is_the_sum_of_the_ticks() {
    let plan = two_stages();
    let dumped = Seen::default();
    let mut run = run(&plan, StatusOptions { line: false, ..StatusOptions::default() });
    run.line = StatusLine::new(
        &plan,
        StatusOptions { line: false, ..StatusOptions::default() },
        run.clock.clone(),
        Box::new(run.seen.clone()),
    )
    .with_dumps(Dumps::new(&plan, 2 * SECOND, 0, 0, vec![Format::Json], Box::new(dumped.clone())));
    run.line.event(&IoEvent::Tick(&tick(0, 0, SECOND / 2, LoadPart::RampUp, 999)));
    run.line.event(&IoEvent::Tick(&tick(0, SECOND / 2, SECOND, LoadPart::Measured, 500)));
    run.forward(1000);
    assert_eq!(dumped.text(), "");
    run.forward(1000);
    run.line.event(&IoEvent::Tick(&tick(0, SECOND, 2 * SECOND, LoadPart::Measured, 100)));
    run.forward(2000);
    let parsed = kelvin_fio::output::read::parse_json(&dumped.text(), None).unwrap();
    let ios: Vec<u64> = parsed
        .results
        .iter()
        .map(|result| result.jobs[0].lines.iter().map(|line| line.1.ios).sum())
        .collect();
    assert_eq!(ios, [500, 600], "cumulative, without the ramp-up");
    let last = &parsed.results[1].jobs[0];
    assert_eq!(last.lines[0].1.iops, 400.0);
    assert!(last.kelvin.as_ref().unwrap().partial);
    assert_eq!(parsed.results[1].jobs.len(), 12);
}
