//! Jobs from text, and passes of their sources.

use std::path::PathBuf;

use kelvin_storage::job::Job;
use kelvin_storage::stream::IoSource;
use kelvin_storage::{Direction, Io, NextIo, SyncCall, Target, TargetKind, jobfile};

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;

/// A job with these options, separated by blanks.
pub(crate) fn job(options: &str) -> Job {
    let lines = options.split_whitespace().collect::<Vec<_>>().join("\n");
    let text = format!("[j]\nioengine=null\nfilename=/x\nsize=1g\n{lines}\n");
    jobfile::parse_text(&text, None, &[]).unwrap().jobs.remove(0)
}

pub(crate) fn target(number: usize, begin: u64, length: u64) -> Target {
    Target { path: PathBuf::from(format!("/x{number}")), kind: TargetKind::None, begin, length, device: None }
}

pub(crate) fn targets(lengths: &[u64]) -> Vec<Target> {
    lengths.iter().enumerate().map(|(number, length)| target(number, 0, *length)).collect()
}

/// A source over one target of `length` bytes.
pub(crate) fn source(options: &str, length: u64) -> IoSource {
    IoSource::new(&job(options), 0, &targets(&[length]), 42).unwrap()
}

/// All I/Os and steps until the end.
pub(crate) fn pass(source: &mut IoSource) -> Vec<NextIo> {
    std::iter::from_fn(|| Some(source.next()).filter(|next| *next != NextIo::End)).collect()
}

/// All I/Os until the end.
pub(crate) fn ios(source: &mut IoSource) -> Vec<Io> {
    pass(source)
        .into_iter()
        .filter_map(|next| if let NextIo::Io(io) = next { Some(io) } else { None })
        .collect()
}

/// `count` I/Os, from as many passes as necessary.
pub(crate) fn many(source: &mut IoSource, count: usize) -> Vec<Io> {
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        match source.next() {
            NextIo::Io(io) => all.push(io),
            NextIo::End => source.restart(),
            _ => (),
        }
    }
    all
}

pub(crate) fn offsets(ios: &[Io]) -> Vec<u64> {
    ios.iter().map(|io| io.offset).collect()
}

/// A short form of fio's logs: `r0+4`, in KiB.
pub(crate) fn describe_ios(nexts: &[NextIo]) -> String {
    let word = |next: &NextIo| match next {
        NextIo::Io(io) => {
            let letter = match io.direction {
                Direction::Read => 'r',
                Direction::Write => 'w',
                Direction::Trim => 't',
            };
            let file = if io.target > 0 { format!("{}:", io.target) } else { String::new() };
            let length = if io.length == 4096 { String::new() } else { format!("+{}", io.length / 1024) };
            format!("{file}{letter}{}{length}", io.offset / 1024)
        }
        NextIo::Sync { target, how } => {
            let how = match how {
                SyncCall::Fsync => "sync".to_owned(),
                SyncCall::Fdatasync => "datasync".to_owned(),
                SyncCall::Range(flags) => format!("range{flags}"),
            };
            if *target > 0 { format!("{target}:{how}") } else { how }
        }
        NextIo::Drain => "drain".into(),
        NextIo::NotBefore(at) => format!("@{}", at / 1000),
        NextIo::End => "end".into(),
    };
    nexts.iter().map(word).collect::<Vec<_>>().join(" ")
}
