//! Short-lived processes and threads: the list of them, and the work of those that still exist.

use std::fs::File;
use std::mem::MaybeUninit;

use kelvin_host::bytes::number;

/// Number of rounds that a task may be missing before it is forgotten. The kernel's lists are not atomic: a task that
/// ends while they are read can hide another, which must not reappear as new with all of its lifetime.
const PATIENCE: u64 = 16;

/// The last counters of processes or threads by number.
pub(super) struct Table<const N: usize> {
    /// Sorted by number.
    entries: Vec<Entry<N>>,
    round: u64,
    /// When the youngest began that was seen, and that was seen before this round.
    youngest: u64,
    youngest_before: u64,
    /// The parent's sums of the tasks that it has waited for, in the round before.
    ended: Option<[u64; N]>,
    /// Of the tasks that are gone, what was counted and is not in these sums yet.
    gone: [u64; N],
}

struct Entry<const N: usize> {
    id: u32,
    /// The round in which it was seen last.
    round: u64,
    born: Option<u64>,
    counters: [u64; N],
}

impl<const N: usize> Table<N> {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::with_capacity(256),
            round: 0,
            youngest: 0,
            youngest_before: 0,
            ended: None,
            gone: [0; N],
        }
    }

    /// Adds the work of `id` since it was seen last to `sum`. A new task has done all of its work since then, unless it
    /// began (`born`, in any unit) before another that was seen: then it was hidden, and its past belongs to no
    /// interval. A task whose counts have decreased is another one with the same number.
    pub(super) fn account(&mut self, id: u32, born: Option<u64>, now: [u64; N], sum: &mut [u64; N]) {
        self.youngest = self.youngest.max(born.unwrap_or(0));
        let hidden = born.is_some_and(|born| born < self.youngest_before);
        let before = match self.entries.binary_search_by_key(&id, |entry| entry.id) {
            Ok(at) => {
                let entry = &mut self.entries[at];
                let missed = entry.round + 1 < self.round;
                entry.round = self.round;
                let before = std::mem::replace(&mut entry.counters, now);
                let same = entry.born == born && before.iter().zip(now).all(|(before, now)| *before <= now);
                entry.born = born;
                if same && missed {
                    // It was only hidden, and is not in the parent's sums.
                    for (gone, before) in self.gone.iter_mut().zip(before) {
                        *gone = gone.saturating_sub(before);
                    }
                }
                if same { before } else { [0; N] }
            }
            Err(at) => {
                self.entries.insert(at, Entry { id, round: self.round, born, counters: now });
                if hidden { now } else { [0; N] }
            }
        };
        for ((sum, now), before) in sum.iter_mut().zip(now).zip(before) {
            *sum = sum.saturating_add(now - before);
        }
    }

    /// Adds the work of tasks between their last reading and their end, and of those that were never seen: what the parent's
    /// sums of ended children (`now`, read before the tasks of this round) have more than what was counted of them. To be called
    /// after all tasks of the round; a parent that does not wait for its children has no such sums, and that work is lost.
    pub(super) fn account_ended(&mut self, now: [u64; N], sum: &mut [u64; N]) {
        for entry in self.entries.iter().filter(|entry| entry.round + 1 == self.round) {
            for (gone, counted) in self.gone.iter_mut().zip(entry.counters) {
                *gone = gone.saturating_add(counted);
            }
        }
        let Some(before) = self.ended.replace(now) else { return };
        for (((sum, gone), now), before) in sum.iter_mut().zip(&mut self.gone).zip(now).zip(before) {
            let more = now.saturating_sub(before);
            *sum = sum.saturating_add(more.saturating_sub(*gone));
            *gone = gone.saturating_sub(more);
        }
    }

    /// Ends the round. Without [`Self::account_ended`] the work of ended tasks since their last reading is lost. Returns whether
    /// there was a round before this one: the sums of the first are of whole lifetimes.
    pub(super) fn close(&mut self) -> bool {
        self.entries.retain(|entry| entry.round + PATIENCE > self.round);
        self.youngest_before = self.youngest;
        self.round += 1;
        self.round > 1
    }

    /// Resets everything, so that the next round is a first one.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        (self.round, self.youngest, self.youngest_before) = (0, 0, 0);
        (self.ended, self.gone) = (None, [0; N]);
    }
}

/// Reads the numbered entries of an open directory, such as `/proc/PID/task`, into `found`. `None` when it cannot be
/// read: the process has ended.
pub(super) fn numbered(directory: &File, space: &mut [MaybeUninit<u8>], found: &mut Vec<u32>) -> Option<()> {
    found.clear();
    rustix::fs::seek(directory, rustix::fs::SeekFrom::Start(0)).ok()?;
    let mut entries = rustix::fs::RawDir::new(directory, space);
    while let Some(entry) = entries.next() {
        let id = number(entry.ok()?.file_name().to_bytes()).and_then(|n| u32::try_from(n).ok());
        found.extend(id);
    }
    (!found.is_empty()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stays_comes_and_goes_is_counted_once() {
        let mut table = Table::<1>::new();
        let mut round = |seen: &[(u32, u64)]| {
            let mut sum = [0];
            for (id, value) in seen {
                table.account(*id, Some(u64::from(*id)), [*value], &mut sum);
            }
            (table.close(), sum[0])
        };
        assert_eq!(round(&[(1, 100), (2, 50)]), (false, 150));
        assert_eq!(round(&[(1, 110), (2, 55), (3, 7)]), (true, 10 + 5 + 7));
        assert_eq!(round(&[(1, 110), (3, 8)]), (true, 1));
        // 2 was hidden for a round; 3 is another task with the same number.
        assert_eq!(round(&[(1, 111), (2, 56), (3, 2)]), (true, 1 + 1 + 2));
    }

    #[test]
    fn who_was_hidden_does_not_bring_the_past_along() {
        let mut table = Table::<1>::new();
        let mut sum = [0];
        table.account(5, Some(50), [7], &mut sum);
        table.close();
        sum = [0];
        table.account(4, Some(40), [1000], &mut sum);
        table.account(6, Some(50), [3], &mut sum);
        assert_eq!(sum, [3]);
        // After long absence 5 is forgotten, and another may bear its number.
        for _ in 0..=PATIENCE {
            table.close();
        }
        sum = [0];
        table.account(5, Some(90), [8], &mut sum);
        assert_eq!(sum, [8]);
    }

    #[test]
    fn what_ended_between_two_looks_is_in_the_parents_sums() {
        let mut table = Table::<1>::new();
        let mut round = |ended: u64, seen: &[(u32, u64)]| {
            let mut sum = [0];
            for (id, value) in seen {
                table.account(*id, Some(u64::from(*id)), [*value], &mut sum);
            }
            table.account_ended([ended], &mut sum);
            (table.close(), sum[0])
        };
        assert_eq!(
            round(1000, &[(1, 100), (2, 50), (3, 10)]),
            (false, 160),
            "its past is no work of the round"
        );
        // 2 did 5 more before its end, and others that were never seen did 30.
        assert_eq!(round(1000 + 55 + 30, &[(1, 110), (3, 10)]), (true, 10 + 5 + 30));
        // 3 is gone and not waited for; then it is, after 4 more.
        assert_eq!(round(1085, &[(1, 110)]), (true, 0));
        assert_eq!(round(1085 + 14, &[(1, 112)]), (true, 2 + 4));
        // 1 is hidden for a round; another one that was never seen ends.
        assert_eq!(round(1099, &[]), (true, 0));
        assert_eq!(round(1099 + 7, &[(1, 115)]), (true, 3 + 7));
    }

    #[test]
    fn the_threads_of_this_process_are_found() {
        let directory = File::open("/proc/self/task").unwrap();
        let mut found = Vec::new();
        let mut space = vec![MaybeUninit::uninit(); 4096];
        for _ in 0..2 {
            numbered(&directory, &mut space, &mut found).unwrap();
            assert!(found.contains(&(crate::thread_id() as u32)));
        }
    }
}
