//! Derives written frames and checkpoints from samples of the WAL.

use kelvin_measure::Nanos;

use super::wal_index::WalState;

/// Restarts of the WAL between two samples beyond which the salts belong to different WALs.
const MOST_RESTARTS: u32 = 16;

/// An event of checkpoints that a sample shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// One is under way.
    Began {
        /// When it was seen first.
        from: Nanos,
    },
    /// One has ended.
    Ended {
        /// When it was seen first, or the last sample before it.
        from: Nanos,
        /// When it was seen to have ended.
        to: Nanos,
        /// Frames that it moved into the database; the least that it can have been where the log was already
        /// written anew.
        moved: u32,
    },
}

/// Follows one WAL.
#[derive(Debug, Default)]
pub(super) struct Follower {
    last: Option<(Nanos, WalState)>,
    /// When the checkpoint under way was seen first.
    running: Option<Nanos>,
    /// Frames written since the first sample.
    pub(super) written: u64,
    /// Checkpoints completed since the first sample.
    pub(super) checkpoints: u64,
}

impl Follower {
    /// Takes the state of the WAL at `at`.
    pub(super) fn take_state(&mut self, at: Nanos, log: WalState, mut each: impl FnMut(Step)) {
        let Some((before, mut old)) = self.last.replace((at, log)) else { return };
        if log.salt != old.salt {
            // Writing starts over only when everything has been moved.
            if old.moved < old.frames {
                self.ended(before, at, old.frames - old.moved, &mut each);
            }
            let restarts = log.salt.wrapping_sub(old.salt);
            if old.frames > 0 && restarts <= MOST_RESTARTS {
                self.checkpoints += u64::from(restarts - 1);
            }
            self.running = None;
            old = WalState { frames: 0, moved: 0, attempted: 0, ..log };
        }
        self.written += u64::from(log.frames.saturating_sub(old.frames));
        if log.moved > old.moved {
            self.ended(before, at, log.moved - old.moved, &mut each);
        }
        // After recovery the WAL names an attempt that no connection makes: only a new one counts.
        if log.attempted > old.attempted && log.attempted > log.moved {
            self.running = Some(at);
            each(Step::Began { from: at });
        }
    }

    fn ended(&mut self, before: Nanos, at: Nanos, moved: u32, each: &mut impl FnMut(Step)) {
        self.checkpoints += 1;
        each(Step::Ended { from: self.running.take().unwrap_or(before), to: at, moved });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn log(salt: u32, frames: u32, moved: u32, attempted: u32) -> WalState {
        WalState { page: 4096, frames, salt, moved, attempted }
    }

    fn follow(logs: &[WalState]) -> (Follower, Vec<Step>) {
        let (mut follower, mut steps) = (Follower::default(), Vec::new());
        for (at, &log) in logs.iter().enumerate() {
            follower.take_state(at as Nanos, log, |step| steps.push(step));
        }
        (follower, steps)
    }

    proptest! {
        #[test]
        fn whatever_is_seen_adds_up(logs in prop::collection::vec((0_u32..4, any::<[u32; 3]>()), 0..50)) {
            let logs: Vec<WalState> = logs.iter().map(|(salt, [f, m, a])| log(*salt, *f, *m, *a)).collect();
            let (follower, steps) = follow(&logs);
            let mut ended = 0;
            for step in steps {
                if let Step::Ended { from, to, moved } = step {
                    prop_assert!(from < to && moved > 0);
                    ended += 1;
                }
            }
            // More only if the log was restarted more than once between two samples.
            prop_assert!(follower.checkpoints >= ended);
        }
    }

    #[test]
    fn a_checkpoint_is_seen_from_its_attempt_to_its_end() {
        let (follower, steps) = follow(&[
            log(1, 10, 0, 0),
            log(1, 4000, 0, 4000),
            log(1, 4000, 0, 4000),
            log(1, 4100, 4000, 4000),
            log(1, 4200, 4000, 4000),
        ]);
        assert_eq!(steps, [Step::Began { from: 1 }, Step::Ended { from: 1, to: 3, moved: 4000 }]);
        assert_eq!((follower.written, follower.checkpoints), (4190, 1));
    }

    #[test]
    fn one_that_came_and_went_between_two_looks_counts() {
        // Detected by the frames moved, then by a restart of the WAL, then by two restarts together.
        let (follower, steps) = follow(&[
            log(1, 4000, 0, 0),
            log(1, 4000, 4000, 4000),
            log(2, 500, 0, 0),
            log(3, 20, 0, 0),
            log(5, 30, 0, 0),
        ]);
        assert_eq!(
            steps,
            [
                Step::Ended { from: 0, to: 1, moved: 4000 },
                Step::Ended { from: 2, to: 3, moved: 500 },
                Step::Ended { from: 3, to: 4, moved: 20 },
            ]
        );
        assert_eq!((follower.written, follower.checkpoints), (550, 4));
    }

    #[test]
    fn a_log_that_was_recovered_or_made_anew_has_no_checkpoint() {
        let (follower, steps) =
            follow(&[log(9, 50, 0, 50), log(9, 60, 0, 50), log(9, 60, 60, 60), log(0xdead_beef, 5, 0, 0)]);
        assert_eq!(steps, [Step::Ended { from: 1, to: 2, moved: 60 }]);
        assert_eq!((follower.written, follower.checkpoints), (15, 1));
    }
}
