//! The reason why a worker ends early, with a message that says what to do.

use std::io;

use crate::error::Error;
use crate::{Direction, Io};

/// The kernel's error number and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Halt {
    pub(crate) number: i32,
    pub(crate) message: String,
}

impl Halt {
    /// An engine's call failed.
    pub(super) fn call(what: &str, error: &io::Error) -> Self {
        Self { number: error.raw_os_error().unwrap_or(libc::EIO), message: format!("{what}: {error}") }
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        let number = match &error {
            Error::System { cause, .. } => cause.raw_os_error().unwrap_or(libc::EIO),
            _ => libc::EINVAL,
        };
        let message = match &error {
            Error::System { what, cause } => format!("{what}: {cause}"),
            other => other.to_string(),
        };
        Self { number, message }
    }
}

/// Describes a failed I/O and the meaning of its error number.
pub(super) fn failed_io_message(io: &Io, path: &str, number: i32) -> String {
    let error = io::Error::from_raw_os_error(number);
    let hint = match number {
        libc::ENOSPC => ": the filesystem or device is full",
        libc::EIO => ": the device or the filesystem failed (see the kernel log)",
        libc::ENODEV | libc::ENXIO | libc::ENOMEDIUM => ": the device is gone",
        libc::EINVAL => {
            ": with direct=1, offset, length and memory must be multiples of the device's block size"
        }
        libc::EOPNOTSUPP => {
            ": the file or device does not support this (hipri, nowait, uncached, atomic or trim)"
        }
        libc::EAGAIN => ": it would have blocked, which nowait=1 forbids (ignore_error=EAGAIN continues)",
        libc::EFBIG => ": beyond the maximum file size (ulimit -f, or the filesystem's limit)",
        libc::EDQUOT => ": the disk quota is exceeded",
        _ => "",
    };
    format!("{} of {} bytes at {} of {path}: {error}{hint}", io.direction, io.length, io.offset)
}

/// The file ends where more data was expected.
pub(super) fn short_io_message(io: &Io, path: &str, moved: u32) -> String {
    let at = io.offset + u64::from(moved);
    match io.direction {
        Direction::Read => format!(
            "read of {} bytes at {} of {path}: the file ends at {at}; it was truncated or never laid out",
            io.length, io.offset
        ),
        _ => format!(
            "{} of {} bytes at {} of {path}: no bytes were transferred at {at}",
            io.direction, io.length, io.offset
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_where_and_why() {
        let io = Io { direction: Direction::Write, target: 0, offset: 8192, length: 4096 };
        assert_eq!(
            failed_io_message(&io, "/mnt/x", libc::ENOSPC),
            "write of 4096 bytes at 8192 of /mnt/x: No space left on device (os error 28): the filesystem or device is full"
        );
        let read = Io { direction: Direction::Read, ..io };
        assert!(short_io_message(&read, "/mnt/x", 512).contains("ends at 8704"));
    }
}
