//! Jobs from text, and passes of their sources.

use std::path::PathBuf;

use kelvin_storage::job::Job;
use kelvin_storage::stream::Source;
use kelvin_storage::{Direction, Io, Next, SyncCall, Target, TargetKind, jobfile};

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;

/// A job with these options; words with a blank between.
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

/// Over one target of so many bytes.
pub(crate) fn source(options: &str, length: u64) -> Source {
    Source::new(&job(options), 0, &targets(&[length]), 42).unwrap()
}

/// All that comes until the end.
pub(crate) fn pass(source: &mut Source) -> Vec<Next> {
    std::iter::from_fn(|| Some(source.next()).filter(|next| *next != Next::End)).collect()
}

/// All I/Os until the end.
pub(crate) fn ios(source: &mut Source) -> Vec<Io> {
    pass(source)
        .into_iter()
        .filter_map(|next| if let Next::Io(io) = next { Some(io) } else { None })
        .collect()
}

/// So many I/Os, of as many passes as it takes.
pub(crate) fn many(source: &mut Source, count: usize) -> Vec<Io> {
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        match source.next() {
            Next::Io(io) => all.push(io),
            Next::End => source.restart(),
            _ => (),
        }
    }
    all
}

pub(crate) fn offsets(ios: &[Io]) -> Vec<u64> {
    ios.iter().map(|io| io.offset).collect()
}

/// As fio's logs would say it, short: `r0+4`, in KiB.
pub(crate) fn words(nexts: &[Next]) -> String {
    let word = |next: &Next| match next {
        Next::Io(io) => {
            let letter = match io.direction {
                Direction::Read => 'r',
                Direction::Write => 'w',
                Direction::Trim => 't',
            };
            let file = if io.target > 0 { format!("{}:", io.target) } else { String::new() };
            let length = if io.length == 4096 { String::new() } else { format!("+{}", io.length / 1024) };
            format!("{file}{letter}{}{length}", io.offset / 1024)
        }
        Next::Sync { target, how } => {
            let how = match how {
                SyncCall::Fsync => "sync".to_owned(),
                SyncCall::Fdatasync => "datasync".to_owned(),
                SyncCall::Range(flags) => format!("range{flags}"),
            };
            if *target > 0 { format!("{target}:{how}") } else { how }
        }
        Next::Drain => "drain".into(),
        Next::NotBefore(at) => format!("@{}", at / 1000),
        Next::End => "end".into(),
    };
    nexts.iter().map(word).collect::<Vec<_>>().join(" ")
}
