//! One chunk: writes its header and checksum, and verifies them.

use super::verify_only::OwnDraws;
use super::{BufferContent, Chunks, Pattern, checksum, header};
use crate::Direction;
use crate::error::{Error, Result};
use crate::job::{Job, Verify, VerifyMethod};
use header::{Header, NoHeader, Number};

/// The expected write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    pub(super) number: u64,
    pub(super) seed: Option<u64>,
    pub(super) or_later: bool,
    /// Detects which job wrote a header, if those of other jobs are also valid.
    pub(super) drawn: Option<&'a OwnDraws>,
    /// Whether the number is verified.
    pub(super) sequence: bool,
    /// All writes have lower numbers.
    pub(super) below: Option<u64>,
}

/// Seals and verifies chunks.
#[derive(Debug, Clone)]
pub(super) struct Sealer {
    method: VerifyMethod,
    chunks: Chunks,
    /// `verify_offset`.
    offset: usize,
    content: BufferContent,
    pattern: Option<Pattern>,
    thread: u16,
    /// Buffer for chunks assembled for verification.
    scratch: Vec<u8>,
}

impl Sealer {
    pub(super) fn new(job: &Job, verify: &Verify, clone: u32) -> Result<Self> {
        let refused = |problem: String| Err(Error::refused(&job.name, problem));
        let (method, offset) = (verify.method, verify.offset as usize);
        let pattern =
            verify.pattern.as_ref().and_then(|pieces| Pattern::new(pieces, verify.pattern_interval));
        let needs_pattern = matches!(method, VerifyMethod::Pattern | VerifyMethod::PatternHeader);
        if needs_pattern && pattern.is_none() {
            return refused(format!("verify={} needs verify_pattern=", checksum::word(method)));
        }
        let has_header = !matches!(method, VerifyMethod::Pattern | VerifyMethod::Null);
        let sealed = if has_header { header::LENGTH + checksum::length(method) } else { 0 };
        let least = sealed + 1 + if has_header { offset } else { 0 };
        if has_header && offset > 0 && offset < sealed {
            return refused(format!(
                "verify_offset={offset} is within the header, which has {sealed} bytes with verify={}; give \
                 {sealed} or more",
                checksum::word(method)
            ));
        }
        let interval = verify.interval.filter(|bytes| *bytes > 0).map(|bytes| bytes as usize);
        let reads_or_writes = [(Direction::Write, job.pattern.writes), (Direction::Read, job.pattern.reads)];
        let smallest = reads_or_writes
            .iter()
            .filter(|(_, used)| *used)
            .map(|(direction, _)| job.blocks.sizes[*direction].smallest() as usize)
            .min()
            .unwrap_or(usize::MAX);
        let shortest = interval.unwrap_or(usize::MAX).min(smallest);
        if shortest < least {
            let with = if offset > 0 { format!(" with verify_offset={offset}") } else { String::new() };
            return refused(format!(
                "verify={}{with} needs chunks of at least {least} bytes, but the smallest has {shortest}; \
                 give a larger bs or verify_interval",
                checksum::word(method)
            ));
        }
        let content = BufferContent::for_buffers(&job.buffers);
        let thread = (clone % 0xffff) as u16 + 1;
        Ok(Self {
            method,
            chunks: Chunks { interval, least },
            offset,
            content,
            pattern,
            thread,
            scratch: Vec::new(),
        })
    }

    pub(super) fn chunks(&self) -> Chunks {
        self.chunks
    }

    /// Whether a chunk can be verified without knowing the block that it was written with.
    pub(super) fn parts_stand_alone(&self) -> bool {
        match self.method {
            VerifyMethod::Pattern | VerifyMethod::PatternHeader => {
                self.pattern.as_ref().is_some_and(Pattern::is_free_of_place)
            }
            VerifyMethod::Meta => self.pattern.as_ref().is_none_or(Pattern::is_free_of_place),
            _ => true,
        }
    }

    fn has_header(&self) -> bool {
        !matches!(self.method, VerifyMethod::Pattern | VerifyMethod::Null)
    }

    fn sealed(&self) -> usize {
        header::LENGTH + checksum::length(self.method)
    }

    /// Fills the block that is written at `offset`; `seed` returns the seed of the chunk at an offset.
    pub(super) fn write(&mut self, offset: u64, number: u64, block: &mut [u8], seed: impl Fn(u64) -> u64) {
        if let Some(pattern) = &mut self.pattern {
            pattern.fill(offset, block);
        }
        for chunk in self.chunks.split(block.len()) {
            let at = offset + chunk.start as u64;
            self.seal(at, seed(at), Number::Whole(number), &mut block[chunk]);
        }
    }

    /// Fills a chunk, unless it has a pattern, and writes its header and checksum.
    fn seal(&self, at: u64, seed: u64, number: Number, chunk: &mut [u8]) {
        // With `null` the filler has already filled it.
        if self.pattern.is_none() && self.method != VerifyMethod::Null {
            self.content.fill(seed, chunk);
        }
        if !self.has_header() {
            return;
        }
        let length = chunk.len() as u32;
        let (front, data) = chunk.split_at_mut(self.sealed());
        let (head, field) = front.split_at_mut(header::LENGTH);
        checksum::sum(self.method, data, field);
        let thread = if self.method == VerifyMethod::Crc7 { checksum::crc16(data) } else { self.thread };
        let method = checksum::number(self.method);
        head.copy_from_slice(&Header { method, length, seed, offset: at, number, thread }.to_bytes());
        self.swap(chunk);
    }

    /// `verify_offset`: the header is swapped with the data at its offset.
    fn swap(&self, chunk: &mut [u8]) {
        if self.offset > 0 {
            let (front, back) = chunk.split_at_mut(self.offset);
            let sealed = self.sealed();
            front[..sealed].swap_with_slice(&mut back[..sealed]);
        }
    }

    /// Checks the chunk at `at` of the block that begins at `block`; returns the error, if any.
    pub(super) fn check(
        &mut self,
        block: u64,
        at: u64,
        chunk: &[u8],
        expected: Option<Expected<'_>>,
    ) -> std::result::Result<(), String> {
        if self.method == VerifyMethod::Null {
            return Ok(());
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let result = if !self.has_header() {
            self.check_pattern(block, at, chunk, 0, &mut scratch)
        } else if self.offset > 0 {
            let mut straight = chunk.to_vec();
            self.swap(&mut straight);
            self.check_sealed(block, at, &straight, expected, &mut scratch)
        } else {
            self.check_sealed(block, at, chunk, expected, &mut scratch)
        };
        self.scratch = scratch;
        result
    }

    fn check_sealed(
        &mut self,
        block: u64,
        at: u64,
        chunk: &[u8],
        expected: Option<Expected<'_>>,
        scratch: &mut Vec<u8>,
    ) -> std::result::Result<(), String> {
        let Some(head) = chunk.first_chunk::<{ header::LENGTH }>() else {
            return Err(format!("{} bytes are too few for a header", chunk.len()));
        };
        let drawn = expected.and_then(|expected| expected.drawn);
        let found = match Header::parse(head) {
            Ok(found) => found,
            Err(_) if drawn.is_some_and(OwnDraws::may_be_unwritten) => return Ok(()),
            Err(problem) => return Err(no_header(problem, chunk)),
        };
        let foreign = drawn.filter(|drawn| !drawn.is_own(&found));
        let other_length = found.length as usize != chunk.len();
        if other_length && foreign.is_some_and(OwnDraws::may_be_unwritten) {
            return Ok(());
        }
        self.check_header(found, at, chunk.len(), expected.filter(|_| foreign.is_none()))?;
        let (front, data) = chunk.split_at(self.sealed());
        if matches!(self.method, VerifyMethod::PatternHeader | VerifyMethod::Meta) {
            // The header was swapped back already, so the pattern is at its original position.
            return self.check_pattern(block, at, chunk, self.sealed(), scratch);
        }
        let held = &front[header::LENGTH..];
        let mut field = [0; checksum::LONGEST];
        let field = &mut field[..held.len()];
        checksum::sum(self.method, data, field);
        if held != field {
            return Err(format!(
                "the data does not match the checksum in its header: {} {} instead of {}{}",
                checksum::word(self.method),
                checksum::hex(field),
                checksum::hex(held),
                header_origin(found)
            ));
        }
        if self.method == VerifyMethod::Crc7 && !found.is_of_fio() {
            let sum = checksum::crc16(data);
            if sum != found.thread {
                return Err(format!(
                    "the data does not match the second checksum in its header: crc16 {sum:04x} instead of \
                     {:04x}",
                    found.thread
                ));
            }
        }
        Ok(())
    }

    fn check_header(
        &self,
        found: Header,
        at: u64,
        length: usize,
        expected: Option<Expected<'_>>,
    ) -> std::result::Result<(), String> {
        let method = checksum::number(self.method);
        if found.method != method {
            return Err(format!(
                "the header belongs to another verify method: number {} in fio instead of {method} ({})",
                found.method,
                checksum::word(self.method)
            ));
        }
        if found.is_of_fio() && matches!(self.method, VerifyMethod::Sha256 | VerifyMethod::Sha512) {
            return Err(format!(
                "fio wrote this block, and fio's headers do not hold the digest for verify={}: it cannot be \
                 verified",
                checksum::word(self.method)
            ));
        }
        if found.offset != at {
            return Err(format!(
                "this block belongs at offset {}{}: it was written to, or read from, the wrong offset",
                found.offset,
                header_origin(found)
            ));
        }
        if found.length as usize != length {
            return Err(format!(
                "the header describes a chunk of {} bytes instead of {length}{}",
                found.length,
                header_origin(found)
            ));
        }
        let Some(expected) = expected else { return Ok(()) };
        let wrong_number = match found.number {
            _ if !expected.sequence => false,
            Number::Whole(number) if expected.or_later => {
                number < expected.number || expected.below.is_some_and(|below| number >= below)
            }
            Number::Whole(number) => number != expected.number,
            Number::Low(low) => !expected.or_later && low != expected.number as u16,
        };
        if wrong_number {
            let later = if expected.or_later { " or a later one" } else { "" };
            return Err(format!(
                "write {}{later} was expected here, but another was found{}",
                expected.number,
                header_origin(found)
            ));
        }
        if expected.seed.is_some_and(|seed| seed != found.seed) {
            return Err(format!(
                "the content was generated from another seed ({:#018x}) than this job used here{}",
                found.seed,
                header_origin(found)
            ));
        }
        Ok(())
    }

    fn check_pattern(
        &mut self,
        block: u64,
        at: u64,
        chunk: &[u8],
        from: usize,
        scratch: &mut Vec<u8>,
    ) -> std::result::Result<(), String> {
        let Some(pattern) = &mut self.pattern else { return Ok(()) };
        let skipped = (at - block) as usize;
        scratch.resize(skipped + chunk.len(), 0);
        pattern.fill(block, scratch);
        let expected = &scratch[skipped..];
        match chunk.iter().zip(expected).enumerate().skip(from).find(|(_, (is, should))| is != should) {
            None => Ok(()),
            Some((place, (is, should))) => {
                Err(format!("the pattern differs at byte {place}: {is:#04x} instead of {should:#04x}"))
            }
        }
    }

    /// The expected content of the chunk, as far as known: from the expected write, or else from the header that was
    /// read.
    pub(super) fn expected(
        &mut self,
        block: u64,
        at: u64,
        chunk: &[u8],
        write: Option<(u64, u64)>,
    ) -> Option<Vec<u8>> {
        let (seed, number) = match write {
            Some((number, seed)) => (seed, Number::Whole(number)),
            None if !self.has_header() => (0, Number::Low(0)),
            None => {
                let mut straight = chunk.to_vec();
                self.swap(&mut straight);
                let found = Header::parse(straight.first_chunk()?).ok()?;
                // fio derives its content from the seed in a different way.
                if found.is_of_fio() && self.pattern.is_none() {
                    return None;
                }
                (found.seed, found.number)
            }
        };
        let skipped = (at - block) as usize;
        let mut whole = vec![0; skipped + chunk.len()];
        if let Some(pattern) = &mut self.pattern {
            pattern.fill(block, &mut whole);
        }
        let mut expected = whole.split_off(skipped);
        self.seal(at, seed, number, &mut expected);
        Some(expected)
    }
}

/// Checks that a trimmed range reads as zeros.
pub(super) fn zeros(chunk: &[u8]) -> std::result::Result<(), String> {
    match chunk.iter().position(|byte| *byte != 0) {
        None => Ok(()),
        Some(at) => Err(format!("byte {at} is {:#04x} instead of zero after a trim", chunk[at])),
    }
}

fn no_header(problem: NoHeader, chunk: &[u8]) -> String {
    match problem {
        NoHeader::Magic(_) if chunk.iter().all(|byte| *byte == 0) => {
            "the block is all zeros: it was never written, or its data is lost".into()
        }
        NoHeader::Magic(magic) => {
            format!("there is no header: {magic:#06x} instead of {:#06x}", header::MAGIC)
        }
        NoHeader::Sum(held, is) => {
            format!("the header is damaged: its checksum should be {is:08x}, but is {held:08x}")
        }
    }
}

fn header_origin(found: Header) -> String {
    match found.number {
        Number::Whole(number) => format!(" (its header is from write {number})"),
        Number::Low(number) => format!(" (its header is from fio's write {number})"),
    }
}
