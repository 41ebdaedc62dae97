//! The schedule of workers, and the collected results.
#![allow(clippy::unwrap_used)]

mod control_support;

use std::fs;
use std::sync::mpsc::channel;

use control_support::*;
use kelvin_measure::Stop;
use kelvin_storage::Direction;
use kelvin_storage::control::{RunOptions, WorkerIo, exit_code, prepare, run_with};
use kelvin_storage::event::WorkerState;
use kelvin_storage::job::{EngineName, ExitWhat, Flow, Jobs, SteadyFigure, SteadyState};
use kelvin_storage::message::WorkerEnd;
use kelvin_storage::result::JobsOutcome;
use kelvin_storage::worker::{Shared, WorkerPlan};
use proptest::collection::vec;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// When a worker began and ended, in milliseconds of the run.
fn course(outcome: &JobsOutcome, worker: usize) -> (i64, i64) {
    let of = &outcome.workers[worker];
    let from = of.started.unwrap() - outcome.started;
    (from, from + (of.elapsed / MILLI) as i64)
}

#[test]
fn the_outcome_is_the_sum_of_the_ticks() {
    let directory = tempfile::tempdir().unwrap();
    let mut read = reader("read", directory.path(), 2 * MIB);
    (read.clones, read.targets.files) = (2, 2);
    let write = writer("write", directory.path(), MIB);
    let (outcome, heard) = run(&jobs([read, write]), &RunOptions::default()).unwrap();
    let sums = sums(&outcome);
    assert_eq!(sums[Direction::Read], (2 * 2 * MIB / 4096, 2 * 2 * MIB));
    assert_eq!(sums[Direction::Write], (MIB / 4096, MIB));
    assert_eq!(heard.ios, sums[Direction::Read].0 + sums[Direction::Write].0);
    assert_eq!(exit_code(&outcome), 0);
    assert!(!outcome.interrupted);
    for worker in &outcome.workers {
        assert!(worker.error.is_none() && worker.thread > 0 && worker.measured > 0);
        let direction = if worker.job == 0 { Direction::Read } else { Direction::Write };
        assert!(worker.runtime[direction] > 0 && worker.runtime[direction] <= worker.elapsed);
        assert_eq!(worker.runtime[Direction::Trim], 0);
        for target in &worker.targets {
            let of = &target.directions[direction];
            assert_eq!(of.completion_bins.count(), of.ios);
            assert_eq!(of.completion.count, of.ios);
        }
    }
    let names: Vec<_> = paths(&outcome)[1].iter().map(|p| p.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["read.1.0", "read.1.1"]);
    for worker in 0..3 {
        let states: Vec<WorkerState> =
            heard.states.iter().filter(|(w, _)| *w == worker).map(|(_, s)| *s).collect();
        assert_eq!(states.first(), Some(&WorkerState::Planned));
        assert_eq!(states.last(), Some(&WorkerState::Ended));
        assert!(states.contains(&WorkerState::Running));
    }
}

#[test]
fn ramp_up_is_in_no_figure_and_samples_are_of_windows() {
    let directory = tempfile::tempdir().unwrap();
    let mut job = lasting(reader("read", directory.path(), MIB), 250 * MILLI);
    job.course.ramp = 150 * MILLI;
    job.rate.iops[Direction::Read] = Some(1000);
    (job.report.iops_window, job.report.bandwidth_window) = (50 * MILLI, 50 * MILLI);
    // A machine that stalls when the ramp ends measures less, but not each time.
    let mut outcomes = (0..20).map(|_| run(&jobs([job.clone()]), &RunOptions::default()).unwrap().0);
    let outcome = outcomes.find(|outcome| outcome.workers[0].measured >= 200 * MILLI).unwrap();
    let worker = &outcome.workers[0];
    let ios = worker.targets[0].directions[Direction::Read].ios;
    assert!(worker.elapsed >= 400 * MILLI);
    assert!(worker.measured <= worker.elapsed - 100 * MILLI);
    // Late I/Os are made up for: bounded by all that were due since the job began.
    let due = (worker.elapsed / MILLI) as f64;
    assert!(ios as f64 <= due + 1.0, "{ios} in {due} ms at no more than 1000 a second");
    let samples = worker.iops[Direction::Read];
    assert!((1..=5).contains(&samples.count), "{samples:?}");
    assert!(samples.range.1 <= (due + 1.0) * 20.0, "{samples:?}");
    assert_eq!(worker.iops[Direction::Write].count, 0);
}

#[test]
fn stonewalls_delays_and_waiting_order_the_workers_and_groups_are_counted_as_fio_does() {
    let directory = tempfile::tempdir().unwrap();
    let short = |name: &str| lasting(reader(name, directory.path(), MIB), 60 * MILLI);
    let mut first = short("first");
    (first.course.stonewall, first.clones) = (true, 2);
    let mut delayed = short("delayed");
    delayed.course.start_delay = (100 * MILLI, 130 * MILLI);
    let mut walled = short("walled");
    walled.course.stonewall = true;
    let mut waiting = short("waiting");
    (waiting.course.wait_for, waiting.course.new_group) = (Some("walled".into()), true);
    let (outcome, _) = run(&jobs([first, delayed, walled, waiting]), &RunOptions::default()).unwrap();
    let groups: Vec<u32> = outcome.workers.iter().map(|worker| worker.group).collect();
    assert_eq!(groups, [0, 0, 0, 1, 2]);
    assert!(course(&outcome, 2).0 >= 100);
    assert!(course(&outcome, 3).0 >= course(&outcome, 2).1, "behind the delayed one too");
    assert!(course(&outcome, 4).0 >= course(&outcome, 3).1);
    assert!(outcome.elapsed >= 280 * MILLI);
}

#[test]
fn times_are_on_the_clock_that_was_given() {
    let directory = tempfile::tempdir().unwrap();
    let clock = kelvin_measure::Clock::real();
    std::thread::sleep(std::time::Duration::from_millis(120));
    let mut delayed = reader("delayed", directory.path(), MIB);
    delayed.course.start_delay = (60 * MILLI, 60 * MILLI);
    let options = RunOptions { clock: Some(clock), ..RunOptions::default() };
    let all = jobs([reader("read", directory.path(), MIB), delayed]);
    let mut begins = (0..20).map(|_| run(&all, &options).unwrap());
    // A machine that stalls between the beginning of the run and of the worker makes it late, but not each time.
    let (outcome, heard) = begins.find(|(outcome, _)| (-5..100).contains(&course(outcome, 0).0)).unwrap();
    assert!(heard.first.unwrap() >= 120 * MILLI, "{:?}", heard.first);
    assert!(course(&outcome, 1).0 >= 55, "a delay counts from the beginning of the run and not of the clock");
}

#[test]
fn exitall_ends_the_others_and_only_those_meant() {
    let directory = tempfile::tempdir().unwrap();
    let long = |name: &str| lasting(reader(name, directory.path(), MIB), 120 * SECOND);
    let mut first = lasting(reader("first", directory.path(), MIB), 50 * MILLI);
    (first.course.exit_all, first.course.exit_what) = (true, ExitWhat::Stonewall);
    let mut late = long("late");
    late.course.start_delay = (120 * SECOND, 120 * SECOND);
    let mut walled = reader("walled", directory.path(), MIB);
    walled.course.stonewall = true;
    let (outcome, _) = run(&jobs([first, long("long"), late, walled]), &RunOptions::default()).unwrap();
    assert!(outcome.elapsed < 60 * SECOND);
    assert_eq!(outcome.workers[2].started, None, "cancelled before it began");
    assert!(outcome.workers[3].targets[0].directions[Direction::Read].ios > 0);
    assert_eq!(exit_code(&outcome), 0);
}

#[test]
fn a_steady_state_ends_the_whole_group() {
    let directory = tempfile::tempdir().unwrap();
    let mut job = lasting(reader("steady", directory.path(), MIB), 120 * SECOND);
    job.clones = 2;
    job.course.group_reporting = true;
    job.rate.iops[Direction::Read] = Some(500);
    job.steady = Some(SteadyState {
        figure: SteadyFigure::Iops,
        slope: false,
        // Wide, since this machine has other work.
        limit: 60.0,
        percent: true,
        window: 200 * MILLI,
        ramp: 50 * MILLI,
        interval: 50 * MILLI,
    });
    let (outcome, _) = run(&jobs([job]), &RunOptions::default()).unwrap();
    assert!(outcome.elapsed < 100 * SECOND);
    for worker in &outcome.workers {
        let steady = worker.steady.as_ref().unwrap();
        assert!(steady.attained && steady.criterion.abs() < 60.0, "{steady:?}");
        assert_eq!(steady.iops.len(), 4);
        let mean = steady.iops.iter().sum::<f64>() / 4.0;
        assert!((100.0..=1100.0).contains(&mean), "of both together: {mean}");
    }
}

#[test]
fn flows_keep_their_weights() {
    let part = |name: &str, weight: i64| {
        let mut job = lasting(reader(name, std::path::Path::new("/tmp"), 64 * MIB), 800 * MILLI);
        job.flow = Some(Flow { id: 1, weight, sleep: 0 });
        by(EngineName::Null, job)
    };
    let all = [part("three", 3), part("two", 2), part("one", 1)];
    let (outcome, _) = run(&jobs(all), &RunOptions::default()).unwrap();
    let ios = [0, 1, 2].map(|worker| outcome.workers[worker].targets[0].directions[Direction::Read].ios);
    // Within 1 % (as another test of the shares alone shows), plus the effect of a thread without a CPU at its end.
    let all: u64 = ios.iter().sum();
    for (ios, weight) in ios.iter().zip([3.0, 2.0, 1.0]) {
        let share = *ios as f64 / all as f64 * 6.0 / weight;
        assert!((share - 1.0).abs() < 0.15, "{ios} of {all}: {share} of its share");
    }
}

#[test]
fn logs_and_iologs_are_written_and_fio_replays_what_was_issued() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let mut job = reader("job", directory.path(), MIB);
    (job.clones, job.pattern.random) = (2, true);
    (job.logs.iops, job.logs.iolog) = (Some("kept".into()), Some("trace".into()));
    let options = RunOptions { log_directory: Some(directory.path().into()), ..RunOptions::default() };
    let (outcome, _) = run(&jobs([job]), &options).unwrap();
    assert_eq!(exit_code(&outcome), 0);
    for (log, trace) in [("kept_iops.1.log", "trace"), ("kept_iops.2.log", "trace.1")] {
        assert_eq!(fs::read_to_string(at(log)).unwrap().lines().count(), 256);
        let text = fs::read_to_string(at(trace)).unwrap();
        assert_eq!(text.lines().next(), Some("fio version 3 iolog"));
        assert_eq!(text.lines().filter(|line| line.contains(" read ")).count(), 256);
        let replayed = std::process::Command::new("fio")
            .args(["--name=replay", "--output-format=json", "--ioengine=psync"])
            .arg(format!("--read_iolog={}", at(trace).display()))
            .output();
        // Without fio, the reader of the stream tests is used.
        let Ok(replayed) = replayed else { continue };
        let text = String::from_utf8(replayed.stdout).unwrap();
        assert!(text.contains("\"total_ios\" : 256"), "{text}");
    }
    // Kelvin replays it, too: it lays out the trace's files.
    let traced = fs::read_to_string(at("trace")).unwrap();
    let name = at("job.0.0").display().to_string();
    fs::write(at("moved"), traced.replace(&name, &at("elsewhere").display().to_string())).unwrap();
    let parsed = kelvin_storage::jobfile::parse_text(
        &format!("[replay]\nread_iolog={}\n", at("moved").display()),
        None,
        &[],
    )
    .unwrap();
    let (outcome, _) = run(&parsed, &RunOptions::default()).unwrap();
    assert_eq!(exit_code(&outcome), 0, "{:?}", outcome.workers[0].error);
    assert_eq!(sums(&outcome)[Direction::Read], (256, MIB));
    assert_eq!(paths(&outcome), [[at("elsewhere")]]);
}

/// Without its syncs, the trace of a WAL would replay much faster.
#[test]
fn an_iolog_has_the_syncs_at_their_places() {
    let directory = tempfile::tempdir().unwrap();
    let mut job = writer("wal", directory.path(), 64 << 10);
    (job.sync.fdatasync, job.logs.iolog) = (4, Some("trace".into()));
    let options = RunOptions { log_directory: Some(directory.path().into()), ..RunOptions::default() };
    let (outcome, _) = run(&jobs([job]), &options).unwrap();
    assert_eq!(exit_code(&outcome), 0);
    let text = fs::read_to_string(directory.path().join("trace")).unwrap();
    let actions: Vec<&str> = text.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    // As with fio, the last write of the job's size is the end, without a sync after it.
    let expected = &["write", "write", "write", "write", "datasync"].repeat(4)[..19];
    let found: Vec<&str> = actions.into_iter().filter(|word| expected.contains(word)).collect();
    assert_eq!(found, expected, "{text}");
}

/// The content of the trace decides whether it is allowed under `--readonly`.
#[test]
fn a_read_only_replay_reads() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("data"), vec![0; 8192]).unwrap();
    let said = |actions: &str, skip: &str| {
        let data = at("data").display().to_string();
        let mut text = format!("fio version 2 iolog\n{data} add\n{data} open\n");
        for action in actions.split(',') {
            text += &format!("{data} {action} 0 4096\n");
        }
        fs::write(at("trace"), text + &format!("{data} close\n")).unwrap();
        let job = format!("[replay]\nread_iolog={}\n{skip}", at("trace").display());
        let parsed = kelvin_storage::jobfile::parse_text(&job, None, &[]).unwrap();
        let options = RunOptions { read_only: true, ..RunOptions::default() };
        prepare(&parsed, &options).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(said("read,read", ""), Ok(()));
    assert_eq!(said("read,write", "replay_skip=write"), Ok(()));
    for actions in ["read,write", "read,trim"] {
        let error = said(actions, "").unwrap_err();
        assert!(error.contains("--readonly") && error.contains("replay_skip="), "{error}");
    }
}

#[test]
fn a_worker_that_dies_is_an_error_of_its_own_and_the_others_go_on() {
    struct Mortal;
    impl WorkerIo for Mortal {
        fn run(&self, plan: WorkerPlan, shared: &Shared) -> WorkerEnd {
            assert!(plan.clone != 1, "the second clone has had enough");
            Plain.run(plan, shared)
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let mut job = reader("job", directory.path(), MIB);
    job.clones = 3;
    let options = RunOptions::default();
    let prepared = prepare(&jobs([job]), &options).unwrap();
    let mut heard = Heard::default();
    let outcome =
        run_with(std::sync::Arc::new(Mortal), prepared, &options, &Stop::new(), &mut heard).unwrap();
    assert_eq!(exit_code(&outcome), 1);
    let error = outcome.workers[1].error.clone().unwrap();
    assert!(error.1.contains("the second clone has had enough"), "{error:?}");
    assert!(outcome.workers[0].error.is_none() && outcome.workers[2].error.is_none());
    assert_eq!(sums(&outcome)[Direction::Read].1, 2 * MIB);
    assert!(heard.states.contains(&(1, WorkerState::Failed)));
}

#[test]
fn one_request_to_stop_ends_all_and_keeps_everything_and_two_wait_for_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let mut walled = lasting(reader("walled", directory.path(), MIB), SECOND);
    walled.course.stonewall = true;
    let all = jobs([lasting(reader("long", directory.path(), MIB), 120 * SECOND), walled]);
    let stop = Stop::new();
    let asker = stop.clone();
    let (at_work, works) = channel();
    std::thread::spawn(move || {
        works.recv().unwrap();
        asker.request();
    });
    let options = RunOptions::default();
    let mut heard = Heard { at_work: Some(at_work), ..Heard::default() };
    let outcome = run_prepared(prepare(&all, &options).unwrap(), &options, &stop, &mut heard).unwrap();
    assert!(outcome.interrupted);
    assert_eq!(exit_code(&outcome), 128);
    assert!(outcome.elapsed < 60 * SECOND);
    assert_eq!(sums(&outcome)[Direction::Read].0, heard.ios);
    assert!(heard.ios > 0);
    assert!(outcome.workers[0].error.is_none());
    assert_eq!(outcome.workers[1].started, None);

    /// Does one I/O and then hangs as on a hung device.
    struct Hung;
    impl WorkerIo for Hung {
        fn run(&self, plan: WorkerPlan, shared: &Shared) -> WorkerEnd {
            if plan.clone == 0 {
                return Plain.run(plan, shared);
            }
            loop {
                std::thread::park();
            }
        }
    }
    let mut job = lasting(reader("job", directory.path(), MIB), 120 * SECOND);
    job.clones = 2;
    let stop = Stop::new();
    let asker = stop.clone();
    let (at_work, works) = channel();
    std::thread::spawn(move || {
        works.recv().unwrap();
        // The second request abandons running workers: the one that does its I/O has time to end.
        for pause in [150, 3_000] {
            std::thread::sleep(std::time::Duration::from_millis(pause));
            asker.request();
        }
    });
    let prepared = prepare(&jobs([job]), &options).unwrap();
    let mut heard = Heard { at_work: Some(at_work), ..Heard::default() };
    let outcome = run_with(std::sync::Arc::new(Hung), prepared, &options, &stop, &mut heard).unwrap();
    assert!(outcome.interrupted);
    assert!(
        outcome.workers[0].error.is_none()
            && outcome.workers[0].targets[0].directions[Direction::Read].ios > 0
    );
    let error = outcome.workers[1].error.clone().unwrap();
    assert!(error.1.contains("abandoned"), "{error:?}");
}

#[test]
fn commands_run_around_a_worker_and_one_that_fails_is_its_error() {
    let directory = tempfile::tempdir().unwrap();
    let mut good = reader("good", directory.path(), MIB);
    good.process.before = Some("echo before".into());
    good.process.after = Some("echo after; echo too >&2".into());
    let mut bad = reader("bad", directory.path(), MIB);
    bad.process.before = Some("echo no; exit 3".into());
    let options = RunOptions { log_directory: Some(directory.path().into()), ..RunOptions::default() };
    let (outcome, _) = run(&jobs([good, bad]), &options).unwrap();
    let said = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(said("good.prerun.txt"), "before\n");
    assert_eq!(said("good.postrun.txt"), "after\ntoo\n");
    assert_eq!(said("bad.prerun.txt"), "no\n");
    assert!(outcome.workers[0].error.is_none());
    let error = outcome.workers[1].error.clone().unwrap();
    assert!(error.1.contains("exec_prerun=echo no; exit 3: exit status: 3"), "{error:?}");
    assert_eq!(sums(&outcome)[Direction::Read].1, MIB);
    assert_eq!(exit_code(&outcome), 1);
}

#[test]
fn files_are_deleted_when_the_last_who_needs_them_has_ended_and_create_only_does_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let mut first = on(reader("first", directory.path(), MIB), &path);
    (first.targets.unlink, first.clones) = (true, 2);
    let mut second = on(reader("second", directory.path(), MIB), &path);
    second.course.stonewall = true;
    second.targets.unlink = true;
    let mut made = reader("made", directory.path(), MIB);
    made.targets.create_only = true;
    let (outcome, _) = run(&jobs([first, second, made]), &RunOptions::default()).unwrap();
    assert_eq!(exit_code(&outcome), 0, "{:?}", outcome.workers.iter().map(|w| &w.error).collect::<Vec<_>>());
    assert!(!path.exists());
    assert_eq!(fs::metadata(directory.path().join("made.0.0")).unwrap().len(), MIB);
    assert_eq!(outcome.workers[3].started, None);
    assert_eq!(sums(&outcome)[Direction::Read].1, 3 * MIB);
}

#[test]
fn a_tick_that_overlaps_or_claims_what_the_kernel_did_not_see_is_no_result() {
    use kelvin_measure::event::LoadPart;
    use kelvin_storage::PerDirection;
    use kelvin_storage::message::Message;
    use kelvin_storage::tick::{DepthCounts, Tally, Tick};

    /// Reports wrong counts.
    struct Liar(Vec<(u64, u64, u64)>);
    impl WorkerIo for Liar {
        fn run(&self, plan: WorkerPlan, shared: &Shared) -> WorkerEnd {
            for (from, to, bytes) in &self.0 {
                let tally = Tally { ios: 1, bytes: *bytes, ..Tally::default() };
                let tick = Tick {
                    worker: plan.number,
                    from: *from,
                    to: *to,
                    part: LoadPart::Measured,
                    targets: vec![PerDirection([Some(Box::new(tally)), None, None])],
                    syncs: kelvin_storage::Moments::default(),
                    sync_bins: None,
                    depth: DepthCounts::default(),
                    failures: Vec::new(),
                };
                shared.messages.send(Message::Tick(Box::new(tick))).unwrap();
            }
            let end = WorkerEnd { worker: plan.number, ..WorkerEnd::default() };
            shared.messages.send(Message::End(Box::new(end.clone()))).unwrap();
            end
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let all = jobs([reader("job", directory.path(), MIB)]);
    let options = RunOptions::default();
    let said = |ticks: Vec<(u64, u64, u64)>| {
        let prepared = prepare(&all, &options).unwrap();
        run_with(std::sync::Arc::new(Liar(ticks)), prepared, &options, &Stop::new(), &mut Heard::default())
    };
    assert!(said(vec![(0, 10, 0), (10, 20, 0)]).is_ok());
    let error = said(vec![(0, 10, 0), (9, 20, 0)]).unwrap_err().to_string();
    assert!(error.contains("a tick covers 9 to 20 ns, but the previous tick ended at 10 ns"), "{error}");
    let error = said(vec![(0, 10, 1 << 50)]).unwrap_err().to_string();
    assert!(error.contains("workers report 1125899906842624 bytes (read)"), "{error}");
}

/// Name, number, seed and files of each worker.
fn workers_of(jobs: &Jobs) -> Vec<(String, u32, u64, Vec<std::path::PathBuf>)> {
    let prepared = prepare(jobs, &RunOptions::default()).unwrap();
    let names = prepared.targets().into_iter().map(|(name, _)| name);
    let each = names.zip(prepared.workers()).map(|(name, worker)| {
        let paths = worker.targets.iter().map(|target| target.path.clone()).collect();
        (name, worker.clone, worker.seed, paths)
    });
    each.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_parts_of_all_hosts_are_all_workers(clones in vec(1_u32..5, 1..5), hosts in 1_u32..8) {
        let directory = tempfile::tempdir().unwrap();
        let each = clones.iter().enumerate().map(|(number, clones)| {
            let mut job = writer(&format!("job{number}"), directory.path(), MIB);
            job.clones = *clones;
            job
        });
        let all = Jobs { jobs: each.collect(), ..Jobs::default() };
        let total = all.workers() as u32;
        prop_assert_eq!(total, clones.iter().sum::<u32>());
        let mut found = Vec::new();
        for host in 0..hosts {
            let part = all.part(total * host / hosts..total * (host + 1) / hosts);
            found.extend(if part.jobs.is_empty() { Vec::new() } else { workers_of(&part) });
        }
        prop_assert_eq!(found, workers_of(&all));
    }
}
