//! An I/O from being drawn to being counted.

use kelvin_measure::Nanos;

use super::super::counter::IoTimes;
use crate::{Direction, Io};

/// No intended start time: the I/O may start at any time.
pub(super) const ANY_TIME: Nanos = Nanos::MAX;

/// An I/O in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    pub(super) io: Io,
    /// When its submission began and when it ended.
    pub(super) begin: Nanos,
    pub(super) handed: Nanos,
    /// When it should have started.
    pub(super) intended: Nanos,
    /// Bytes moved by earlier partial completions.
    pub(super) moved: u32,
    /// The verifier's number of a write.
    pub(super) number: u64,
    /// It is excluded from the counts of reads and writes: a verifying read, or a sync, which has no length.
    pub(super) apart: bool,
}

pub(super) const NO_FLIGHT: Flight = Flight {
    io: Io { direction: Direction::Read, target: 0, offset: 0, length: 0 },
    begin: 0,
    handed: 0,
    intended: ANY_TIME,
    moved: 0,
    number: 0,
    apart: false,
};

/// Whether an I/O moved all bytes that were requested.
#[inline]
pub(super) fn is_whole(flight: &Flight, result: i64) -> bool {
    i64::from(flight.moved) + result == i64::from(flight.io.length) && result >= 0
}

/// Its times, if it was reaped at `at`.
#[inline]
pub(super) fn times(flight: &Flight, at: Nanos, synchronous: bool) -> IoTimes {
    let total = at.saturating_sub(flight.begin);
    if synchronous {
        return IoTimes { submission: 0, completion: total, total };
    }
    IoTimes {
        submission: flight.handed.saturating_sub(flight.begin),
        completion: at.saturating_sub(flight.handed),
        total,
    }
}
