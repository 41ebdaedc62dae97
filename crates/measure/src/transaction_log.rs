//! Every transaction of a run as a line of a file, written beside the measured path.
//!
//! The collector's thread formats the lines, a separate thread writes them. Between the two there are at most
//! [`BLOCKS`] blocks: where the disk is too slow for them lines are left out and counted, because a collector that waited
//! would fill the users' rings and make the users wait.

use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::{Nanos, Sample, TransactionOutcome};

/// Bytes that are handed to the writer at once.
const BLOCK: usize = 64 * 1024;
/// Blocks on their way to the disk, at most.
const BLOCKS: usize = 64;

/// The names of the columns, which the file begins with.
pub const COLUMNS: &str = "end_unix_us,point,user,type,result,service_us,response_us,retries\n";

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// [`COLUMNS`], separated by commas: the end in microseconds since 1970, the point from 0, the user from 0, the
    /// transaction type by its index, the result (`committed`, `rolled-back`, `failed`), the times in microseconds.
    Csv,
    /// As pgbench's --log: user, number of its transaction from 1, elapsed microseconds or "failed", type, seconds and
    /// microseconds of the end since 1970, with a rate the lateness of the start, and the repetitions where there can be
    /// some.
    Pgbench {
        /// Whether transactions start by a schedule.
        rate: bool,
        /// Whether a transaction is tried again.
        retries: bool,
    },
}

/// What became of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logged {
    /// Lines in the file.
    pub written: u64,
    /// Lines that the disk was too slow for.
    pub left_out: u64,
}

/// The collector's end.
#[derive(Debug)]
pub struct TransactionLog {
    format: LogFormat,
    point: u32,
    /// Which series are transactions; what single statements took is no line.
    transactions: Vec<bool>,
    /// Nanoseconds since 1970 at the run's clock's 0.
    epoch: i128,
    /// The number of the first user.
    first: usize,
    /// By user.
    counts: Vec<u64>,
    block: Vec<u8>,
    lines: u64,
    logged: Logged,
    sender: SyncSender<Vec<u8>>,
    writer: JoinHandle<io::Result<()>>,
}

impl TransactionLog {
    /// A log of what the users of this range do in `point`, into `file`. `now` is the run's clock, `unix` the time since 1970 in nanoseconds, both of one moment.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn start(
        file: File,
        format: LogFormat,
        point: u32,
        (users, transactions): (Range<u32>, Vec<bool>),
        (now, unix): (Nanos, i128),
    ) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(BLOCKS);
        let writer = std::thread::Builder::new()
            .name("transaction log".into())
            .spawn(move || write(file, &receiver))?;
        Ok(Self {
            format,
            point,
            transactions,
            epoch: unix - i128::from(now),
            first: users.start as usize,
            counts: vec![0; users.len()],
            block: Vec::with_capacity(BLOCK + 256),
            lines: 0,
            logged: Logged { written: 0, left_out: 0 },
            sender,
            writer,
        })
    }

    /// Adds a transaction of a user, counted from the first.
    pub(crate) fn add(&mut self, user: usize, sample: &Sample) {
        if !self.transactions.get(usize::from(sample.kind)).is_some_and(|is| *is) {
            return;
        }
        let end = (self.epoch + i128::from(sample.end)) / 1000;
        let (service, response) = (sample.service / 1000, sample.response() / 1000);
        let Some(count) = self.counts.get_mut(user) else { return };
        *count += 1;
        let user = self.first + user;
        let line = &mut self.block;
        // Writing into memory does not fail.
        let _ = match self.format {
            LogFormat::Csv => {
                let result = match sample.outcome {
                    TransactionOutcome::Committed => "committed",
                    TransactionOutcome::RolledBack => "rolled-back",
                    TransactionOutcome::Failed => "failed",
                };
                let (point, kind, retries) = (self.point, sample.kind, sample.retries);
                writeln!(line, "{end},{point},{user},{kind},{result},{service},{response},{retries}")
            }
            LogFormat::Pgbench { rate, retries } => {
                let (seconds, micros) = (end / 1_000_000, end % 1_000_000);
                let kind = sample.kind;
                let _ = match sample.outcome {
                    TransactionOutcome::Failed => {
                        write!(line, "{user} {count} failed {kind} {seconds} {micros}")
                    }
                    _ => write!(line, "{user} {count} {response} {kind} {seconds} {micros}"),
                };
                if rate {
                    let _ = write!(line, " {}", sample.late / 1000);
                }
                if retries {
                    let _ = write!(line, " {}", sample.retries);
                }
                writeln!(line)
            }
        };
        self.lines += 1;
        if self.block.len() >= BLOCK {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK + 256));
        match self.sender.try_send(block) {
            Ok(()) => self.logged.written += lines,
            Err(_) => self.logged.left_out += lines,
        }
    }

    /// Writes what is left and waits for the disk: the load is over.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn finish(mut self) -> io::Result<Logged> {
        let (lines, block) = (self.lines, std::mem::take(&mut self.block));
        if self.sender.send(block).is_ok() {
            self.logged.written += lines;
        }
        drop(self.sender);
        match self.writer.join() {
            Ok(written) => written.map(|()| self.logged),
            Err(_) => Err(io::Error::other("the writer of the transaction log panicked")),
        }
    }
}

fn write(mut file: File, blocks: &Receiver<Vec<u8>>) -> io::Result<()> {
    for block in blocks {
        file.write_all(&block)?;
    }
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use super::*;

    fn log(format: LogFormat, samples: &[(usize, Sample)]) -> String {
        let mut file = tempfile::tempfile().unwrap();
        let copy = file.try_clone().unwrap();
        let mut log =
            TransactionLog::start(copy, format, 2, (0..2, vec![true, false]), (1_000, 5_000_001_000))
                .unwrap();
        for (user, sample) in samples {
            log.add(*user, sample);
        }
        let logged = log.finish().unwrap();
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!((logged.written, logged.left_out), (text.lines().count() as u64, 0));
        text
    }

    #[test]
    fn every_transaction_has_a_line_and_statements_have_none() {
        let mut late = Sample::closed(2_000_000, 1_500_000, 0, TransactionOutcome::Committed, 3);
        late.late = 250_000;
        let samples = [
            (1, late),
            (0, Sample::closed(2_100_000, 7_000, 1, TransactionOutcome::Committed, 0)),
            (1, Sample::closed(3_000_000, 900_000, 0, TransactionOutcome::Failed, 0)),
        ];
        assert_eq!(
            log(LogFormat::Csv, &samples),
            "5002000,2,1,0,committed,1500,1750,3\n5003000,2,1,0,failed,900,900,0\n"
        );
        assert_eq!(
            log(LogFormat::Pgbench { rate: true, retries: true }, &samples),
            "1 1 1750 0 5 2000 250 3\n1 2 failed 0 5 3000 0 0\n"
        );
        assert_eq!(
            log(LogFormat::Pgbench { rate: false, retries: false }, &samples[..1]),
            "1 1 1750 0 5 2000\n"
        );
    }
}
