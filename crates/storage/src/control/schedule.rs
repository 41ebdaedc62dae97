//! Decides which workers may begin, and which end when one has ended. It uses neither threads nor a clock.

use kelvin_measure::Nanos;

use crate::job::ExitWhat;

/// The state of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits for its turn.
    Waiting,
    /// Its thread runs.
    Running,
    /// It has ended.
    Over,
    /// It will not begin.
    Cancelled,
}

/// The conditions of a worker's start.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub stage: Stage,
    /// The number of stonewalls before it.
    pub wall: u32,
    pub group: u32,
    /// The earliest start, from the beginning of the run.
    pub delay: Nanos,
    /// The workers whose end it waits for.
    pub after: Vec<usize>,
    /// The workers that end with it, and whether only if it ends with an error.
    pub exit: Option<Exit>,
}

/// `exitall` and `exitall_on_error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exit {
    pub what: ExitWhat,
    pub only_on_error: bool,
}

/// All workers' turns.
#[derive(Debug)]
pub(super) struct WorkerSchedule(pub Vec<Turn>);

impl WorkerSchedule {
    fn is_done(&self, worker: usize) -> bool {
        self.0.get(worker).is_none_or(|turn| matches!(turn.stage, Stage::Over | Stage::Cancelled))
    }

    /// Whether no worker is running or will run.
    pub(super) fn is_over(&self) -> bool {
        (0..self.0.len()).all(|worker| self.is_done(worker))
    }

    /// The first wall that has an unfinished worker before it: no worker after it may begin.
    fn wall(&self) -> u32 {
        let open = self.0.iter().enumerate().filter(|(worker, _)| !self.is_done(*worker));
        open.map(|(_, turn)| turn.wall).min().unwrap_or(u32::MAX)
    }

    /// The workers that may begin at this time, in order.
    pub(super) fn ready(&self, now: Nanos) -> Vec<usize> {
        self.open().filter(|(_, turn)| turn.delay <= now).map(|(worker, _)| worker).collect()
    }

    /// The start time of the next worker that waits only for its delay.
    pub(super) fn next_start(&self) -> Option<Nanos> {
        self.open().map(|(_, turn)| turn.delay).min()
    }

    fn open(&self) -> impl Iterator<Item = (usize, &Turn)> {
        let wall = self.wall();
        self.0.iter().enumerate().filter(move |(_, turn)| {
            turn.stage == Stage::Waiting
                && turn.wall == wall
                && turn.after.iter().all(|other| self.is_done(*other))
        })
    }

    /// Records the end of a worker. Other workers may end with it: waiting ones are cancelled here, and running ones
    /// are returned, to be stopped.
    pub(super) fn ended(&mut self, worker: usize, failed: bool) -> Vec<usize> {
        let Some(turn) = self.0.get_mut(worker) else { return Vec::new() };
        turn.stage = Stage::Over;
        let (group, wall) = (turn.group, turn.wall);
        let Some(exit) = turn.exit.filter(|exit| failed || !exit.only_on_error) else { return Vec::new() };
        let along = |turn: &Turn| match exit.what {
            ExitWhat::Group => turn.group == group,
            ExitWhat::All => true,
            // The run continues after the next stonewall.
            ExitWhat::Stonewall => turn.wall == wall,
        };
        let mut running = Vec::new();
        for (other, turn) in self.0.iter_mut().enumerate().filter(|(_, turn)| along(turn)) {
            match turn.stage {
                Stage::Waiting => turn.stage = Stage::Cancelled,
                Stage::Running => running.push(other),
                Stage::Over | Stage::Cancelled => {}
            }
        }
        running
    }

    /// No further worker begins.
    pub(super) fn cancel_all(&mut self) {
        for turn in self.0.iter_mut().filter(|turn| turn.stage == Stage::Waiting) {
            turn.stage = Stage::Cancelled;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn turn(wall: u32, group: u32) -> Turn {
        Turn { stage: Stage::Waiting, wall, group, delay: 0, after: Vec::new(), exit: None }
    }

    fn begin(schedule: &mut WorkerSchedule, now: Nanos) -> Vec<usize> {
        let ready = schedule.ready(now);
        for worker in &ready {
            schedule.0[*worker].stage = Stage::Running;
        }
        ready
    }

    #[test]
    fn a_stonewall_holds_until_all_before_it_have_ended_also_the_delayed() {
        let mut schedule = WorkerSchedule(vec![turn(0, 0), Turn { delay: 50, ..turn(0, 0) }, turn(1, 1)]);
        assert_eq!(begin(&mut schedule, 0), [0]);
        assert_eq!(schedule.next_start(), Some(50));
        schedule.ended(0, false);
        assert_eq!(begin(&mut schedule, 10), Vec::<usize>::new(), "fio lets the third begin here");
        assert_eq!(begin(&mut schedule, 50), [1]);
        assert_eq!(schedule.next_start(), None);
        schedule.ended(1, false);
        assert_eq!(begin(&mut schedule, 50), [2]);
        schedule.ended(2, false);
        assert!(schedule.is_over());
    }

    #[test]
    fn who_waits_for_a_job_begins_after_its_last_worker() {
        let mut schedule =
            WorkerSchedule(vec![turn(0, 0), turn(0, 0), Turn { after: vec![0, 1], ..turn(0, 0) }]);
        assert_eq!(begin(&mut schedule, 0), [0, 1]);
        schedule.ended(1, false);
        assert_eq!(begin(&mut schedule, 0), Vec::<usize>::new());
        schedule.ended(0, false);
        assert_eq!(begin(&mut schedule, 0), [2]);
    }

    #[test]
    fn exitall_takes_along_whom_exit_what_says() {
        let exit = |what| Some(Exit { what, only_on_error: false });
        for (what, running, left) in [
            (ExitWhat::Group, vec![1], vec![2, 4]),
            (ExitWhat::All, vec![1, 2], vec![]),
            (ExitWhat::Stonewall, vec![1, 2], vec![4]),
        ] {
            let mut schedule = WorkerSchedule(vec![
                Turn { exit: exit(what), ..turn(0, 0) },
                turn(0, 0),
                turn(0, 1),
                Turn { delay: 99, ..turn(0, 0) },
                turn(1, 2),
            ]);
            assert_eq!(begin(&mut schedule, 0), [0, 1, 2]);
            assert_eq!(schedule.ended(0, false), running, "{what:?}");
            let open: Vec<_> = (0..5).filter(|w| !schedule.is_done(*w) && !running.contains(w)).collect();
            assert_eq!(open, left, "{what:?}");
        }
        let mut schedule = WorkerSchedule(vec![
            Turn { exit: Some(Exit { what: ExitWhat::All, only_on_error: true }), ..turn(0, 0) },
            turn(0, 0),
        ]);
        begin(&mut schedule, 0);
        assert_eq!(schedule.ended(0, false), Vec::<usize>::new());
        assert_eq!(schedule.ended(0, true), [1]);
    }

    proptest! {
        #[test]
        fn every_schedule_comes_to_its_end(
            parts in proptest::collection::vec((0_u32..3, 0_u32..2, 0_u64..100, proptest::option::of(0_usize..8)), 1..12)
        ) {
            let mut wall = 0;
            let turns = parts.iter().enumerate().map(|(at, (step, group, delay, after))| {
                wall += step / 2;
                let after = after.filter(|other| *other < at).into_iter().collect();
                Turn { delay: *delay, after, ..turn(wall, *group) }
            });
            let mut schedule = WorkerSchedule(turns.collect());
            let mut now = 0;
            for _ in 0..parts.len() {
                if schedule.is_over() {
                    break;
                }
                now = now.max(schedule.next_start().expect("somebody can begin at some time"));
                let ready = begin(&mut schedule, now);
                prop_assert!(!ready.is_empty());
                for worker in ready {
                    schedule.ended(worker, false);
                }
            }
            prop_assert!(schedule.is_over());
        }
    }
}
