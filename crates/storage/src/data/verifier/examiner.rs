//! Verifies read data. Several threads can do so for one worker (`verify_async=`): they share only the number of dumps.

use std::path::PathBuf;

use super::chunk::{self, Sealer};
use super::dump::Dump;
use super::verify_only::OwnDraws;
use crate::Io;
use crate::data::Corruption;
use crate::data::content::mix;
use crate::data::remembered_writes::RememberedBlock;
use crate::data::seeds::Seeds;
use crate::job::Verify;

/// The expectation with which a read is compared.
#[derive(Debug, Clone)]
pub(crate) struct ReadExpectation {
    pub(super) io: Io,
    /// Offsets of the blocks in it, and their expected content, as far as known.
    pub(super) blocks: Vec<(u64, Option<RememberedBlock>)>,
    /// All writes have lower numbers.
    pub(super) limit: Option<u64>,
}

/// Verifies blocks of a worker.
#[derive(Debug, Clone)]
pub(crate) struct Examiner {
    pub(super) sealer: Sealer,
    pub(super) seeds: Seeds,
    pub(super) verify: Verify,
    /// With `verify_only`, which draws the writes again.
    pub(super) drawn: Option<OwnDraws>,
    pub(super) dump: Option<Dump>,
    pub(super) targets: Vec<PathBuf>,
}

impl Examiner {
    /// Whether the read data match the expectation.
    pub(crate) fn examine(
        &mut self,
        question: &ReadExpectation,
        buffer: &[u8],
    ) -> std::result::Result<(), Corruption> {
        question.blocks.iter().try_for_each(|(at, entry)| self.block(question, buffer, *at, *entry))
    }

    /// Verifies the chunks of the block at `at` that are within the read.
    fn block(
        &mut self,
        question: &ReadExpectation,
        buffer: &[u8],
        at: u64,
        entry: Option<RememberedBlock>,
    ) -> std::result::Result<(), Corruption> {
        let io = &question.io;
        let length = entry.map_or(io.length, |entry| entry.length);
        let read = io.offset..io.offset + buffer.len() as u64;
        for chunk in self.sealer.chunks().split(length as usize) {
            let (from, to) = (at + chunk.start as u64, at + chunk.end as u64);
            if from < read.start || to > read.end {
                continue;
            }
            let bytes = &buffer[(from - read.start) as usize..(to - read.start) as usize];
            let seed = entry.and_then(RememberedBlock::number).map(|number| {
                let seed = seed_at(self.seeds.seed_of(number), self.seeds.repeat(), from);
                (number, seed)
            });
            let found = match entry {
                Some(entry) if entry.number().is_none() => chunk::zeros(bytes),
                Some(entry) => {
                    let expected = seed.map(|(number, seed)| chunk::Expected {
                        number,
                        // A later write has another seed.
                        seed: (self.verify.header_seed && !entry.is_at_least()).then_some(seed),
                        or_later: entry.is_at_least(),
                        drawn: self.drawn.as_ref(),
                        sequence: self.verify.write_sequence,
                        below: question.limit,
                    });
                    self.sealer.check(at, from, bytes, expected)
                }
                None => self.sealer.check(at, from, bytes, None),
            };
            if let Err(mut problem) = found {
                if let Some(dump) = &self.dump {
                    let exact = seed.filter(|_| entry.is_some_and(|entry| !entry.is_at_least()));
                    let expected = match entry {
                        Some(entry) if entry.number().is_none() => Some(vec![0; bytes.len()]),
                        _ => self.sealer.expected(at, from, bytes, exact),
                    };
                    let path = self.targets.get(io.target as usize);
                    problem.push_str(&dump.keep(path, from, bytes, expected.as_deref()));
                }
                return Err(Corruption { offset: from, target: io.target, problem });
            }
        }
        Ok(())
    }
}

/// The seed of the chunk at an offset. Chunks differ from each other, except in blocks that must be equal.
pub(super) fn seed_at(base: u64, repeat: bool, offset: u64) -> u64 {
    if repeat { base } else { mix(base ^ offset) }
}
