//! Writing a recording, block by block.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use kelvin_measure::Nanos;

use super::varint::{put, put_signed};
use super::{BLOCK, CHUNK_HEAD, MAGIC, checksum, places};
use crate::SECTOR;
use crate::matcher::Matched;
use crate::recording::{DiskRange, FileChanges, Header, ProcessGroup, ReadSample, Recording};

/// What requests of one kind have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Class {
    device: (u32, u32),
    operation: u8,
    flags: u8,
    pid: i32,
    command: [u8; 16],
}

/// A recording that is being written.
#[derive(Debug)]
pub struct FileWriter<W: Write> {
    out: W,
    block: Vec<u8>,
    classes: HashMap<Class, u64>,
    ends: HashMap<(u32, u32), u64>,
    last: Nanos,
    written: u64,
    requests: u64,
}

impl<W: Write> FileWriter<W> {
    /// Writes the beginning.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(out: W, header: &Header) -> io::Result<Self> {
        let mut new = Self {
            out,
            block: Vec::with_capacity(BLOCK + 256),
            classes: HashMap::new(),
            ends: HashMap::new(),
            last: 0,
            written: MAGIC.len() as u64,
            requests: 0,
        };
        new.out.write_all(&MAGIC)?;
        let json = serde_json::to_vec(header)?;
        new.chunk(b'H', &json)?;
        Ok(new)
    }

    fn chunk(&mut self, kind: u8, content: &[u8]) -> io::Result<()> {
        self.out.write_all(&chunk_head(kind, content))?;
        self.out.write_all(content)?;
        self.written += (CHUNK_HEAD + content.len()) as u64;
        Ok(())
    }

    /// Adds a request.
    pub(crate) fn request(&mut self, matched: &Matched) -> io::Result<()> {
        let issue = &matched.issue;
        let class = Class {
            device: issue.device,
            operation: issue.operation as u8,
            flags: issue.flags.0,
            pid: matched.pid,
            command: matched.command,
        };
        let next = self.classes.len() as u64;
        let number = *self.classes.entry(class).or_insert(next);
        let block = &mut self.block;
        put(block, number);
        if number == next {
            put(block, u64::from(class.device.0));
            put(block, u64::from(class.device.1));
            block.extend([class.operation, class.flags]);
            put_signed(block, i64::from(class.pid));
            let name = class.command.split(|byte| *byte == 0).next().unwrap_or_default();
            put(block, name.len() as u64);
            block.extend(name);
        }
        put_signed(block, issue.at.wrapping_sub(self.last) as i64);
        self.last = issue.at;
        put(block, matched.response.map_or(0, |took| took.saturating_add(1)));
        let end = self.ends.entry(class.device).or_insert(0);
        put_signed(block, issue.sector.wrapping_sub(*end) as i64);
        put(block, u64::from(issue.sectors));
        *end = issue.sector.wrapping_add(u64::from(issue.sectors));
        self.requests += 1;
        if self.block.len() >= BLOCK { self.flush_block() } else { Ok(()) }
    }

    fn flush_block(&mut self) -> io::Result<()> {
        let block = std::mem::take(&mut self.block);
        if !block.is_empty() {
            self.chunk(b'B', &block)?;
        }
        self.block = block;
        self.block.clear();
        self.classes.clear();
        self.ends.clear();
        self.last = 0;
        Ok(())
    }

    /// Adds what was found about files.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn files(&mut self, found: &FileChanges) -> io::Result<()> {
        for list in places::lists(&found.files, BLOCK) {
            self.chunk(b'F', &serde_json::to_vec(list)?)?;
        }
        for changes in places::encode(&found.changes, BLOCK) {
            self.chunk(b'X', &changes)?;
        }
        Ok(())
    }

    /// Adds names of objects of databases: what they are called now, and their name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn names(&mut self, names: &[(String, String)]) -> io::Result<()> {
        for names in names.chunks(1024) {
            self.chunk(b'N', &serde_json::to_vec(names)?)?;
        }
        Ok(())
    }

    /// Adds control groups of processes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn groups(&mut self, groups: &[ProcessGroup]) -> io::Result<()> {
        // A path has at most 4 KiB.
        for groups in groups.chunks(128) {
            self.chunk(b'G', &serde_json::to_vec(groups)?)?;
        }
        Ok(())
    }

    /// Adds where files have room that was never written.
    pub(crate) fn unwritten(&mut self, ranges: &[DiskRange]) -> io::Result<()> {
        for ranges in ranges.chunks(4096) {
            self.chunk(b'U', &serde_json::to_vec(ranges)?)?;
        }
        Ok(())
    }

    /// Bytes so far, with those of the block that is not written yet.
    pub fn written(&self) -> u64 {
        self.written + self.block.len() as u64
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Writes the end, and gives back what was written to.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self, recording: &Recording) -> io::Result<W> {
        self.flush_block()?;
        let json = serde_json::to_vec(recording)?;
        self.chunk(b'E', &json)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// What stands before a chunk's content.
fn chunk_head(kind: u8, content: &[u8]) -> [u8; CHUNK_HEAD] {
    let mut head = [kind; CHUNK_HEAD];
    head[1..5].copy_from_slice(&(content.len() as u32).to_le_bytes());
    let sum = checksum(&head, content);
    head[5..].copy_from_slice(&sum.to_le_bytes());
    head
}

/// Adds a sample of what reads found to a recording that has its end. Without it, the recording is as good as before.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn append_sample(path: &Path, sample: &ReadSample) -> io::Result<()> {
    let content = serde_json::to_vec(sample)?;
    let mut all = chunk_head(b'Z', &content).to_vec();
    all.extend(content);
    // In one call, so that a recording that is read meanwhile has all of it or looks cut off behind its end.
    std::fs::OpenOptions::new().append(true).open(path)?.write_all(&all)
}

/// A request's place in bytes: a flush has none.
pub(super) fn bytes(sector: u64, sectors: u64) -> Option<(u64, u32)> {
    if sectors == 0 {
        return Some((0, 0));
    }
    let (offset, length) = (sector.checked_mul(SECTOR)?, sectors.checked_mul(SECTOR)?);
    offset.checked_add(length)?;
    Some((offset, u32::try_from(length).unwrap_or(u32::MAX)))
}
