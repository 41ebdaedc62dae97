//! The part of its stream that a worker executes: the interaction of `size=`, `io_size=`,
//! `number_ios=` and `loops=`, as in fio.
//!
//! A pass ends with the stream, or when the larger of `size=` and `io_size=` was issued. There are `loops=` passes, and
//! more until `io_size=` is reached; but the total never exceeds `io_size=` (or else `size=`) per loop, or
//! `number_ios=` I/Os per loop. An I/O that begins below a bound is done completely. Appending (`file_append=`) is one
//! pass, unless blocks or files are repeated or holes are left: it has no beginning to return to, and continues to the
//! region's end or as far as all passes would.

use super::offsets::{RepeatAvoidance, once};
use crate::job::{Amount, Job};
use crate::{Direction, Target, TargetKind};

/// The remaining work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quota {
    /// Bytes of a pass, and of all passes together.
    pass: u64,
    whole: u64,
    /// `io_size=` in bytes.
    wanted: Option<u64>,
    loops: u64,
    /// There is one pass.
    once: bool,
    /// Passes are repeated until the time is over.
    timed: bool,
    /// The longest I/O: no further pass begins for a remainder smaller than that.
    longest: u64,
    passes: u64,
    /// Bytes issued, and the number at which the pass ends.
    bytes: u64,
    until: u64,
    /// Remaining I/Os.
    ios: u64,
}

impl Quota {
    /// For a worker with these regions.
    pub(crate) fn new(job: &Job, targets: &[Target]) -> Self {
        let amounts = &job.targets;
        // A block that is trimmed and then written counts once.
        let times = if job.pattern.trim_then_write { 2 } else { 1_u64 };
        let regions = targets.iter().map(|target| target.length).fold(0, u64::saturating_add);
        let part = match amounts.io_size {
            Some(percent @ Amount::Percent(_)) => percent.bytes_of(regions).unwrap_or(regions),
            _ => regions,
        };
        let pass = match amounts.size {
            Some(Amount::Bytes(size)) => part.min(size),
            _ => part,
        };
        let pass = pass.saturating_mul(times);
        let wanted = match amounts.io_size {
            Some(Amount::Bytes(bytes)) if job.replay.is_none() => Some(bytes.saturating_mul(times)),
            _ => None,
        };
        let loops = job.course.loops.max(1);
        let (timed, endless) = (job.course.time_based, job.course.time_based || job.replay.is_some());
        let whole = if endless { u64::MAX } else { wanted.unwrap_or(pass).saturating_mul(loops) };
        // An `io_size` above `size` is the maximum length of a pass: a larger region is processed to its end.
        let pass = if endless { u64::MAX } else { pass.max(wanted.unwrap_or(0)) };
        let again =
            job.pattern.random && once(job) == RepeatAvoidance::No || amounts.service.choice.is_uneven();
        let files = targets.iter().all(|target| target.kind == TargetKind::File);
        let sizes = Direction::ALL.map(|direction| job.blocks.sizes[direction].largest());
        let ios = amounts.number_ios.map_or(u64::MAX, |ios| ios.saturating_mul(loops.saturating_mul(times)));
        let once = amounts.append && files && !endless && job.pattern.modifier.is_none() && !again;
        let pass = if once { whole } else { pass };
        Self {
            pass,
            whole,
            wanted,
            loops,
            once,
            timed,
            longest: sizes.into_iter().max().map_or(1, u64::from),
            passes: 0,
            bytes: 0,
            until: pass.min(whole),
            ios,
        }
    }

    /// Whether the pass must end.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.bytes >= self.until || self.ios == 0
    }

    /// Counts an issued I/O of `length` bytes.
    #[inline]
    pub(crate) fn take(&mut self, length: u32) {
        self.bytes = self.bytes.saturating_add(u64::from(length));
        self.ios = self.ios.saturating_sub(1);
    }

    /// Ends a pass. Returns whether another follows.
    pub(crate) fn begin_another(&mut self) -> bool {
        self.passes += 1;
        let missing = self.wanted.map_or(0, |wanted| wanted.saturating_sub(self.bytes));
        let wants = self.timed || self.passes < self.loops || missing >= self.longest;
        self.until = self.bytes.saturating_add(self.pass).min(self.whole);
        wants && !self.once && !self.is_spent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I/Os of 4 KiB in total, of a worker with one region, and the number of passes.
    fn done(change: impl Fn(&mut Job), length: u64) -> (u64, u64) {
        let mut job = Job::named("job");
        change(&mut job);
        let target = Target { path: "/t".into(), kind: TargetKind::File, begin: 0, length, device: None };
        let mut quota = Quota::new(&job, &[target]);
        let (mut ios, mut passes) = (0, 1);
        loop {
            let mut at = 0;
            while !quota.is_spent() && at + 4096 <= length {
                quota.take(4096);
                (ios, at) = (ios + 1, at + 4096);
            }
            if !quota.begin_another() {
                return (ios, passes);
            }
            passes += 1;
        }
    }

    #[test]
    fn bounds_of_a_job_hold_against_each_other_as_in_fio() {
        const KIB: u64 = 1024;
        let size = |kib: u64| Some(Amount::Bytes(kib * KIB));
        assert_eq!(done(|_| {}, 64 * KIB), (16, 1));
        assert_eq!(done(|job| job.course.loops = 3, 64 * KIB), (48, 3));
        assert_eq!(done(|job| job.targets.size = size(20), 64 * KIB), (5, 1));
        assert_eq!(done(|job| job.targets.size = size(18), 64 * KIB), (5, 1), "begun below the bound");
        assert_eq!(done(|job| job.targets.io_size = size(20), 64 * KIB), (5, 1));
        assert_eq!(done(|job| job.targets.io_size = size(160), 64 * KIB), (40, 3));
        assert_eq!(done(|job| job.targets.io_size = size(66), 64 * KIB), (16, 1), "less than an I/O misses");
        assert_eq!(done(|job| job.targets.io_size = Some(Amount::Percent(25.0)), 64 * KIB), (4, 1));
        let with = |io: u64, loops: u64| {
            move |job: &mut Job| (job.targets.io_size, job.course.loops) = (size(io), loops)
        };
        assert_eq!(done(with(20, 2), 64 * KIB), (10, 1), "io_size is for each loop");
        assert_eq!(done(with(48, 2), 64 * KIB), (24, 2));
        assert_eq!(done(with(96, 2), 64 * KIB), (32, 2), "two loops are more than it already");
        assert_eq!(done(with(256, 2), 64 * KIB), (64, 4));
        let within = |part: u64, io: u64, loops: u64| {
            move |job: &mut Job| {
                (job.targets.size, job.targets.io_size, job.course.loops) = (size(part), size(io), loops);
            }
        };
        assert_eq!(done(within(24, 32, 2), 64 * KIB), (16, 2), "to the larger of size and io_size");
        assert_eq!(done(within(24, 96, 2), 64 * KIB), (32, 2), "to the region's end");
        let append = |job: &mut Job| {
            with(160, 3)(job);
            job.targets.append = true;
        };
        assert_eq!(done(append, 64 * KIB), (16, 1), "nothing lies behind what was appended");
        let append = |loops: u64| {
            move |job: &mut Job| {
                (job.targets.size, job.course.loops, job.targets.append) = (size(24), loops, true);
            }
        };
        assert_eq!(done(append(2), 64 * KIB), (12, 1), "one pass as long as two");
        assert_eq!(done(append(3), 64 * KIB), (16, 1), "or to the region's end");
        let again = |job: &mut Job| {
            append(3)(job);
            job.targets.service.choice = crate::job::FileChoice::Zipf(1.1);
        };
        assert_eq!(done(again, 64 * KIB), (18, 3), "files that come again");
        let ios = |ios: u64, loops: u64| {
            move |job: &mut Job| (job.targets.number_ios, job.course.loops) = (Some(ios), loops)
        };
        assert_eq!(done(ios(10, 3), 1 << 20), (30, 1), "for each loop, in whatever pass");
        assert_eq!(done(ios(10, 3), 64 * KIB), (30, 2));
        assert_eq!(done(ios(100, 3), 64 * KIB), (48, 3));
    }
}
