//! The activity of a server thread according to the kernel: whether it runs, and if not, in which system call and on
//! which file it waits.
//!
//! `/proc/PID/task/TID/syscall` contains "running", or the number and the arguments of the call that a thread sleeps
//! in. It can be read by root, and by the server's own user where the kernel lets a process inspect another of its user
//! (Yama's `ptrace_scope` 0). Reading it takes some microseconds and does not stop the thread.
//!
//! Source: `Documentation/filesystems/proc.rst` of the kernel; `fs/proc/base.c`, `proc_pid_syscall`.

use std::fs;
use std::path::{Path, PathBuf};

/// The kind of a server's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum File {
    /// InnoDB's redo log, or that of Aria.
    Redo,
    /// The binary log.
    Binlog,
    /// Tables, undo logs, the doublewrite buffer.
    Data,
    /// Anything else, such as a temporary file.
    Unknown,
}

/// The activity of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// On a CPU, or waiting for one.
    Running,
    /// Waits for its client, or writes to it.
    Client,
    /// Reads a file.
    Read(File),
    /// Writes a file.
    Write(File),
    /// Waits until a file is on its device.
    Sync(File),
    /// Waits for another thread: a mutex, a lock, a condition.
    Futex,
    /// Sleeps in another call.
    Other,
}

/// The server's threads.
#[derive(Debug)]
pub(super) struct Threads {
    process: PathBuf,
}

impl Threads {
    /// Those of a process; none where its threads may not be read.
    pub(super) fn of_process(process: u32) -> Option<Self> {
        let process = PathBuf::from(format!("/proc/{process}"));
        let known = call(Call::Futex).is_some();
        let readable = known && fs::read_to_string(process.join("syscall")).is_ok();
        // The process's descriptors show the file of a call.
        (readable && fs::read_dir(process.join("fd")).is_ok()).then_some(Self { process })
    }

    /// The activity of a thread; `None` for one that has ended.
    pub(super) fn doing(&self, thread: i64) -> Option<Doing> {
        let text = fs::read_to_string(self.process.join(format!("task/{thread}/syscall"))).ok()?;
        Some(self.parse(&text))
    }

    fn parse(&self, text: &str) -> Doing {
        let mut words = text.split_ascii_whitespace();
        let Some(first) = words.next() else { return Doing::Other };
        if first == "running" {
            return Doing::Running;
        }
        let descriptor =
            words.next().and_then(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
        let number = first.parse::<i64>().ok();
        let Some(call) = number.and_then(|number| CALLS.iter().find(|(_, of)| *of == number)) else {
            return Doing::Other;
        };
        let file = || descriptor.and_then(|fd| fs::read_link(self.process.join(format!("fd/{fd}"))).ok());
        match call.0 {
            Call::Futex => Doing::Futex,
            Call::Client => Doing::Client,
            Call::Read => doing_with(file().as_deref(), Doing::Read),
            Call::Write => doing_with(file().as_deref(), Doing::Write),
            Call::Sync => doing_with(file().as_deref(), Doing::Sync),
        }
    }
}

fn doing_with(path: Option<&Path>, doing: impl Fn(File) -> Doing) -> Doing {
    let Some(path) = path else { return doing(File::Unknown) };
    if path.as_os_str().as_encoded_bytes().starts_with(b"socket:") {
        Doing::Client
    } else {
        doing(file(path))
    }
}

/// A file by its name, as both servers name theirs by default. A binary log has six digits at its end, whatever its name.
fn file(path: &Path) -> File {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let parent = path.parent().and_then(Path::file_name).unwrap_or_default();
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if name.starts_with("ib_logfile") || name.starts_with("aria_log.") || parent == "#innodb_redo" {
        return File::Redo;
    }
    if name.starts_with("ibdata")
        || name.starts_with("undo")
        || ends(&[".ibd", ".ibu", ".dblwr", ".MAD", ".MAI", ".MYD", ".MYI"])
    {
        return File::Data;
    }
    let digits = name.rsplit('.').next().unwrap_or_default();
    let numbered =
        digits.len() == 6 && digits.len() < name.len() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if numbered { File::Binlog } else { File::Unknown }
}

/// System calls that are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Read,
    Write,
    Sync,
    Futex,
    /// Of sockets only, or of a set of descriptors.
    Client,
}

fn call(of: Call) -> Option<i64> {
    CALLS.iter().find(|(call, _)| *call == of).map(|(_, number)| *number)
}

/// read, pread64, preadv; write, pwrite64, pwritev; fsync, fdatasync; futex; poll, ppoll, recvfrom, sendto, recvmsg, sendmsg,
/// epoll_wait, epoll_pwait (`arch/x86/entry/syscalls/syscall_64.tbl`).
#[cfg(target_arch = "x86_64")]
const CALLS: &[(Call, i64)] = &[
    (Call::Read, 0),
    (Call::Read, 17),
    (Call::Read, 295),
    (Call::Write, 1),
    (Call::Write, 18),
    (Call::Write, 296),
    (Call::Sync, 74),
    (Call::Sync, 75),
    (Call::Futex, 202),
    (Call::Client, 7),
    (Call::Client, 271),
    (Call::Client, 45),
    (Call::Client, 44),
    (Call::Client, 47),
    (Call::Client, 46),
    (Call::Client, 232),
    (Call::Client, 281),
];

/// The same except for poll and epoll_wait, which do not exist there (`include/uapi/asm-generic/unistd.h`).
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
const CALLS: &[(Call, i64)] = &[
    (Call::Read, 63),
    (Call::Read, 67),
    (Call::Read, 69),
    (Call::Write, 64),
    (Call::Write, 68),
    (Call::Write, 70),
    (Call::Sync, 82),
    (Call::Sync, 83),
    (Call::Futex, 98),
    (Call::Client, 73),
    (Call::Client, 207),
    (Call::Client, 206),
    (Call::Client, 212),
    (Call::Client, 211),
    (Call::Client, 22),
];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const CALLS: &[(Call, i64)] = &[];

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn files_are_known_by_their_names() {
        for (path, expected) in [
            ("/d/ib_logfile0", File::Redo),
            ("/d/#innodb_redo/#ib_redo12", File::Redo),
            ("/d/aria_log.00000001", File::Redo),
            ("/d/tpcc/stock.ibd", File::Data),
            ("/d/ibdata1", File::Data),
            ("/d/undo_001", File::Data),
            ("/d/#ib_16384_0.dblwr", File::Data),
            ("/d/binlog.000012", File::Binlog),
            ("/logs/db1-bin.000001", File::Binlog),
            ("/tmp/#9978035 (deleted)", File::Unknown),
            ("/d/slow.log", File::Unknown),
        ] {
            assert_eq!(file(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_line_of_the_kernel_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let redo = fs::File::create(directory.path().join("ib_logfile0")).unwrap();
        let threads = Threads { process: PathBuf::from("/proc/self") };
        let line =
            |of, fd: i32| format!("{} 0x{fd:x} 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f5f\n", call(of).unwrap());
        let fd = redo.as_raw_fd();
        assert_eq!(threads.parse(&line(Call::Sync, fd)), Doing::Sync(File::Redo));
        assert_eq!(threads.parse(&line(Call::Write, fd)), Doing::Write(File::Redo));
        assert_eq!(threads.parse(&line(Call::Read, -1)), Doing::Read(File::Unknown));
        assert_eq!(threads.parse("running\n"), Doing::Running);
        for text in ["", "-1 0x7ffd 0x7f5f", "x", "99999 0x1"] {
            assert_eq!(threads.parse(text), Doing::Other, "{text:?}");
        }
    }

    #[test]
    fn a_thread_that_waits_for_another_is_seen_to() {
        let (send, receive) = std::sync::mpsc::channel::<i32>();
        let (send_id, receive_id) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            send_id.send(crate::thread_id()).unwrap();
            receive.recv()
        });
        let id = i64::from(receive_id.recv().unwrap());
        let threads = Threads::of_process(std::process::id()).unwrap();
        while threads.doing(id) != Some(Doing::Futex) {
            std::thread::yield_now();
        }
        send.send(1).unwrap();
        waiting.join().unwrap().unwrap();
        assert_eq!(threads.doing(-1), None);
    }
}
