//! A trace as jobs in fio's language: streams with the same sizes, mix, sequentiality, arrivals and depth.
//!
//! [`streams`] splits a trace by what its requests were for and by operation, and moves each stream's places together into
//! one file. [`text::job_file`] describes the streams by their figures, or replays them by iologs. [`Fidelity`] compares a
//! stream with what a run of its job did.

mod compact;
mod fidelity;
mod pattern;
pub mod text;

use std::collections::{HashMap, HashSet};

use kelvin_measure::Nanos;
use kelvin_measure::text::{count, few};

pub use fidelity::{FeaturePair, Fidelity, compare, compare_all};

use crate::recording::TracedFile;
use crate::stream::{Profile, profile_of};
use crate::{Error, Operation, Request, Result, Trace};

/// A group of fewer requests, as a share of all, becomes part of the rest.
const LEAST_SHARE: f64 = 0.005;
/// Fewer requests have no figures worth keeping.
const LEAST: usize = 20;
/// Nor have fewer a second a rate: fio's are whole numbers.
const LEAST_RATE: f64 = 0.5;

/// Letters of a stream's name.
const LONGEST_NAME: usize = 60;

/// By what a trace is split into streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamsBy {
    /// What the file belongs to: a database's data, its log, the filesystem.
    Class,
    /// The object of the database, or the file.
    Object,
    /// The name of the process.
    Process,
    /// Not at all.
    Nothing,
}

/// Requests of one stream and operation, whose places are those in one file.
#[derive(Debug, Clone)]
pub struct StreamJob {
    /// The stream, as a name of a file can be.
    pub name: String,
    /// What they do: reads or writes.
    pub operation: Operation,
    /// In the order of their issue, times since the beginning of the trace.
    pub requests: Vec<Request>,
    /// When the device's cache was flushed, if the flushes follow these writes.
    pub flushes: Vec<Nanos>,
    /// Bytes of the stream's file, which both operations share.
    pub file_bytes: u64,
    /// What they are like.
    pub profile: Profile,
}

impl StreamJob {
    /// The name of its job.
    pub fn job_name(&self) -> String {
        format!("{}-{}", self.name, self.operation.name())
    }

    /// The name of its file.
    pub fn file_name(&self) -> String {
        format!("{}.dat", self.name)
    }
}

/// The streams of a trace, and how long it lasted.
#[derive(Debug, Clone)]
pub struct TraceJobs {
    /// In the order of their names, reads first.
    pub streams: Vec<StreamJob>,
    /// Nanoseconds.
    pub lasts: Nanos,
    /// What is not in the streams.
    pub notes: Vec<String>,
}

impl TraceJobs {
    /// The requests of all streams, whose files lie behind each other.
    pub fn together(&self) -> Vec<Request> {
        const BETWEEN: u64 = 1 << 30;
        let mut begins: HashMap<&str, u64> = HashMap::new();
        let mut next = 0;
        let mut all = Vec::new();
        for stream in &self.streams {
            let begin = *begins.entry(&stream.name).or_insert_with(|| {
                let begin = next;
                next += stream.file_bytes + BETWEEN;
                begin
            });
            let moved = |request: &Request| Request { offset: begin + request.offset, ..*request };
            all.extend(stream.requests.iter().map(moved));
        }
        all.sort_by_key(|request| request.at);
        all
    }
}

/// Splits the reads and writes of some devices (of the one with the most requests if none is named) into streams, whose
/// files have at most `most_bytes` together.
///
/// # Errors
/// When a device is unknown, there is nothing to do, or the files would be larger.
pub fn streams(trace: &Trace, by: StreamsBy, devices: &[String], most_bytes: u64) -> Result<TraceJobs> {
    let chosen = chosen_devices(trace, devices)?;
    let is_chosen = |request: &&Request| chosen.contains(&request.device);
    let moving: Vec<&Request> =
        trace.requests.iter().filter(is_chosen).filter(|one| one.moves_data() && one.length > 0).collect();
    if moving.is_empty() {
        return Err(Error::Unavailable("the trace has no reads or writes of the chosen devices".into()));
    }
    let lasts = trace.lasts();
    if lasts < 1_000_000_000 {
        return Err(Error::Unavailable("the trace is shorter than a second: too short for rates".into()));
    }
    let mut notes = Vec::new();
    let of_kind = |kind| trace.requests.iter().filter(is_chosen).filter(move |one| one.operation == kind);
    let discards = of_kind(Operation::Discard).count();
    if discards > 0 {
        notes.push(format!("{discards} discards are not in the job"));
    }
    let mut groups: HashMap<String, Vec<&Request>> = HashMap::new();
    for request in &moving {
        groups.entry(group(trace, by, request)).or_default().push(request);
    }
    let least = ((moving.len() as f64 * LEAST_SHARE) as usize).max(LEAST);
    let (large, small): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(_, list)| list.len() >= least);
    let mut groups = large;
    let mut left_out = 0;
    let mut rest: Vec<&Request> = small.into_iter().flat_map(|(_, list)| list).collect();
    if !rest.is_empty() {
        rest.sort_by_key(|request| request.at);
        groups.push(("rest".into(), rest));
    }
    groups.sort_by(|a, b| a.0.cmp(&b.0));
    name_files(&mut groups);
    let lists: Vec<&[&Request]> = groups.iter().map(|(_, list)| list.as_slice()).collect();
    let files = compact::files(&lists, most_bytes).map_err(|needed| {
        Error::Unavailable(format!(
            "the files of the job would need at least {}; --max-size allows {}",
            kelvin_measure::text::binary(needed),
            kelvin_measure::text::binary(most_bytes)
        ))
    })?;
    let mut found = Vec::new();
    for ((name, list), file) in groups.iter().zip(files) {
        for operation in [Operation::Read, Operation::Write] {
            let requests: Vec<Request> = list
                .iter()
                .filter(|request| request.operation == operation)
                .map(|request| Request { offset: file.place(request), device: 0, ..**request })
                .collect();
            let rate = requests.len() as f64 / (lasts as f64 / 1e9);
            if requests.len() < LEAST || rate < LEAST_RATE {
                left_out += requests.len();
            } else {
                let profile = profile_of(&requests, lasts);
                let (name, file_bytes, flushes) = (name.clone(), file.bytes, Vec::new());
                found.push(StreamJob { name, operation, requests, flushes, file_bytes, profile });
            }
        }
    }
    if left_out > 0 {
        notes.push(format!("{left_out} reads and writes of streams with too few are not in the job"));
    }
    if found.is_empty() {
        return Err(Error::Unavailable("the trace has no stream with enough requests for a job".into()));
    }
    let flushes: Vec<Nanos> = of_kind(Operation::Flush).map(|flush| flush.at).collect();
    if let Some(note) = give_flushes(&mut found, flushes) {
        notes.push(note);
    }
    Ok(TraceJobs { streams: found, lasts, notes })
}

/// Gives the flushes to the stream whose writes they follow most often, as a log's; the rest of them happen to come while
/// another stream's writes end, and one job cannot wait for another. A note if they are too few to be in a job.
fn give_flushes(streams: &mut [StreamJob], flushes: Vec<Nanos>) -> Option<String> {
    if flushes.is_empty() {
        return None;
    }
    let mut ends: Vec<(Nanos, usize)> = Vec::new();
    for (number, stream) in streams.iter().enumerate().filter(|(_, one)| one.operation == Operation::Write) {
        let end = |one: &Request| Some((one.at.saturating_add(one.response()?), number));
        ends.extend(stream.requests.iter().filter_map(end));
    }
    ends.sort_unstable();
    let mut counts = vec![0_usize; streams.len()];
    for at in &flushes {
        let before = ends.partition_point(|(end, _)| end <= at).checked_sub(1);
        if let Some((_, number)) = before.and_then(|place| ends.get(place)) {
            counts[*number] += 1;
        }
    }
    let most = counts.iter().enumerate().max_by_key(|(_, count)| **count).filter(|(_, count)| **count > 0);
    let stream = most.and_then(|(number, _)| streams.get_mut(number));
    match stream.filter(|stream| flushes.len() >= LEAST && flushes.len() * 1000 >= stream.requests.len()) {
        Some(stream) => {
            stream.flushes = flushes;
            None
        }
        None => Some(format!("{} are not in the job", count(flushes.len() as u64, "flush"))),
    }
}

fn chosen_devices(trace: &Trace, names: &[String]) -> Result<Vec<u16>> {
    if names.is_empty() {
        let mut counts: HashMap<u16, u64> = HashMap::new();
        for request in trace.requests.iter().filter(|request| request.moves_data()) {
            *counts.entry(request.device).or_insert(0) += 1;
        }
        let most = counts.into_iter().max_by_key(|(device, count)| (*count, std::cmp::Reverse(*device)));
        return Ok(most.map(|(device, _)| device).into_iter().collect());
    }
    let known = || few(trace.devices.iter().map(|device| device.name.clone()), 12);
    let place = |name: &String| {
        let place = trace.devices.iter().position(|device| device.name == *name);
        let unknown =
            || Error::Unavailable(format!("{name} is not a device of the trace; there are {}", known()));
        place.map(|place| place as u16).ok_or_else(unknown)
    };
    names.iter().map(place).collect()
}

fn group(trace: &Trace, by: StreamsBy, request: &Request) -> String {
    let file = trace.files.get(request.file as usize);
    let label = |name: Option<String>| name.unwrap_or_else(|| "unattributed".into());
    match by {
        StreamsBy::Nothing => "all".into(),
        StreamsBy::Class => label(file.map(TracedFile::class_label)),
        StreamsBy::Object => label(file.map(|file| file.object.clone())),
        StreamsBy::Process => {
            let process = trace.processes.get(request.process as usize);
            let command = process.map_or("", |process| process.command.as_str());
            // A kernel worker's name ends in its work of the moment.
            let command = command.split('/').next().unwrap_or_default();
            if command.is_empty() { "unknown".into() } else { command.into() }
        }
    }
}

/// Gives each group a name that a file and a job may have, and that no other has.
fn name_files(groups: &mut [(String, Vec<&Request>)]) {
    let mut taken: HashSet<String> = HashSet::new();
    for (name, _) in groups {
        let plain = file_name(name);
        let numbered = (2..).map(|number: u64| format!("{plain}-{number}"));
        let free = std::iter::once(plain.clone()).chain(numbered).find(|one| !taken.contains(one));
        *name = free.unwrap_or(plain);
        taken.insert(name.clone());
    }
}

fn file_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_matches('-');
    // Paths differ at their ends.
    let name = name[name.len().saturating_sub(LONGEST_NAME)..].trim_matches('-');
    if name.is_empty() { "unnamed".into() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_files_and_differ() {
        let long = format!("/{}/x.db", "a".repeat(300));
        let mut groups: Vec<(String, Vec<&Request>)> =
            ["a_b", "a-b", "rest", "rest", "表", &long].map(|name| (name.to_owned(), Vec::new())).into();
        name_files(&mut groups);
        let names: Vec<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[..5], ["a-b", "a-b-2", "rest", "rest-2", "unnamed"]);
        assert!(names[5].len() == LONGEST_NAME && names[5].ends_with("a-x-db"), "{}", names[5]);
    }
    #[test]
    fn flushes_go_to_the_stream_whose_writes_they_follow() {
        use crate::{Builder, Device, Flags};
        let mut builder = Builder::new("test", 100_000);
        let device = builder.device(&Device::default());
        let (flags, file) = (Flags::default(), Request::NO_FILE);
        let mut push = |process: &str, at, offset, length, operation, took| {
            let command = process.to_owned();
            let process = builder.process(&crate::Process { pid: 1, command });
            let one = Request { at, offset, length, device, process, file, operation, flags, took };
            builder.push(one, Some(took));
        };
        for n in 0..1000_u64 {
            let at = n * 2_000_000;
            push("wal", at, n * 4096, 4096, Operation::Write, 100_000);
            // Of one flush in ten the log's write was not the last that ended.
            let (begin, took) = if n % 10 == 0 { (at + 20_000, 90_000) } else { (at + 1_000_000, 100_000) };
            push("data", begin, (1 << 30) + n * 81_920, 8192, Operation::Write, took);
            push("kworker", at + 120_000, 0, 0, Operation::Flush, 50_000);
        }
        let trace = builder.finish();
        let jobs = streams(&trace, StreamsBy::Process, &[], 1 << 30).unwrap();
        let found: Vec<(String, usize)> =
            jobs.streams.iter().map(|one| (one.job_name(), one.flushes.len())).collect();
        assert_eq!(found, [("data-write".to_owned(), 0), ("wal-write".to_owned(), 1000)]);
        assert!(jobs.notes.is_empty(), "{:?}", jobs.notes);
        let together = jobs.together();
        assert_eq!(together.len(), 2000);
        let ends = |of: &[Request]| of.iter().map(Request::end).max();
        assert!(ends(&together) > ends(&jobs.streams[0].requests), "each stream's file has a range");
    }
}
