//! Content of blocks: zeros, duplicates, compressible data.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use kelvin_measure::Random;
use kelvin_stats::rank::median;

use super::facts::Content;

/// Length of a sampled block in bytes, unless the target requires a longer one.
pub const BLOCK: u32 = 4096;

/// Counts zero, duplicate and compressible blocks.
#[derive(Debug, Default)]
pub struct Counting {
    content: Content,
    hasher: RandomState,
    seen: HashSet<u64>,
    given: u64,
    left: u64,
    zero_times: Vec<f64>,
    data_times: Vec<f64>,
}

impl Counting {
    /// Adds a block; `nanos` is the time in nanoseconds that reading it took.
    pub fn add(&mut self, block: &[u8], nanos: Option<f64>) {
        self.content.blocks += 1;
        self.content.block = block.len() as u32;
        if is_zero(block) {
            self.content.zero += 1;
            self.zero_times.extend(nanos);
            return;
        }
        self.data_times.extend(nanos);
        self.seen.insert(self.hasher.hash_one(block));
        self.given += block.len() as u64;
        self.left += compressed(block).min(block.len() as u64);
    }

    /// The result; `None` if there was no block.
    pub fn done(mut self) -> Option<Content> {
        self.content.distinct = self.seen.len() as u32;
        self.content.compressed = if self.given == 0 { 1.0 } else { self.left as f64 / self.given as f64 };
        self.content.zero_time = median(&self.zero_times);
        self.content.data_time = median(&self.data_times);
        (self.content.blocks > 0).then_some(self.content)
    }
}

/// Whether all bytes are zero.
#[inline]
pub fn is_zero(block: &[u8]) -> bool {
    let (chunks, rest) = block.as_chunks::<16>();
    chunks.iter().all(|chunk| u128::from_ne_bytes(*chunk) == 0) && rest.iter().all(|byte| *byte == 0)
}

/// The length of a block after compression by zlib's fastest level.
fn compressed(block: &[u8]) -> u64 {
    let mut encoder = ZlibEncoder::new(Vec::with_capacity(block.len()), Compression::fast());
    match encoder.write_all(block).and_then(|()| encoder.finish()) {
        Ok(out) => out.len() as u64,
        // Writing to a vector cannot fail.
        Err(_) => block.len() as u64,
    }
}

/// Reads up to `most` blocks at random offsets of `begin..end`, past the page cache where possible, until `until` at
/// the latest. The offsets are the same every time, so that two samples of a target agree.
///
/// # Errors
/// When the target cannot be opened or read.
pub(crate) fn sample(
    path: &Path,
    (begin, end): (u64, u64),
    block: u32,
    most: u32,
    until: Instant,
) -> std::io::Result<Option<Content>> {
    let length = u64::from(block);
    let first = begin.div_ceil(length);
    let blocks = (end / length).saturating_sub(first);
    if blocks == 0 {
        return Ok(None);
    }
    let mut reader = BlockReader::open(path, block)?;
    let mut random = Random::part(0x6b65_6c76_696e, 24, blocks);
    let mut counting = Counting::default();
    let mut used = HashSet::new();
    for number in 0..most {
        if Instant::now() > until {
            break;
        }
        // If there are few blocks, each is read once.
        let place = if blocks <= u64::from(most) {
            if u64::from(number) >= blocks {
                break;
            }
            u64::from(number)
        } else {
            unused(&mut random, &mut used, blocks)
        };
        let begun = Instant::now();
        let is_direct = reader.is_direct;
        let read = reader.read_at((first + place) * length)?;
        let nanos = begun.elapsed().as_nanos() as f64;
        counting.add(read, is_direct.then_some(nanos));
    }
    Ok(counting.done())
}

/// A block that was not sampled before: a block read twice would count as two equal blocks. There are more blocks than
/// are requested.
fn unused(random: &mut Random, used: &mut HashSet<u64>, blocks: u64) -> u64 {
    loop {
        let place = random.range(0, blocks as i64 - 1) as u64;
        if used.insert(place) {
            return place;
        }
    }
}

/// Reads blocks of a file or a device, past the page cache where possible. Never writes.
#[derive(Debug)]
pub struct BlockReader {
    file: File,
    room: Vec<u8>,
    lead: usize,
    block: usize,
    /// Whether reads bypass the page cache.
    pub is_direct: bool,
}

impl BlockReader {
    /// Opens a target for reading blocks of `block` bytes, a power of two.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path, block: u32) -> std::io::Result<Self> {
        let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path);
        let (file, is_direct) = match direct {
            Ok(file) => (file, true),
            Err(_) => (File::open(path)?, false),
        };
        // Page alignment meets the requirements of all devices.
        let block = block as usize;
        let room = vec![0_u8; block * 2];
        let lead = room.as_ptr().align_offset(block).min(block);
        Ok(Self { file, room, lead, block, is_direct })
    }

    /// The file or device itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Reads the block at an offset in bytes.
    ///
    /// # Errors
    /// If it cannot be read, or not completely.
    pub fn read_at(&mut self, place: u64) -> std::io::Result<&[u8]> {
        let buffer = &mut self.room[self.lead..self.lead + self.block];
        self.file.read_exact_at(buffer, place)?;
        Ok(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with few more blocks than are sampled: drawn with replacement, 64 of 128 would be 50 distinct blocks.
    #[test]
    fn trial_c9_no_block_is_looked_at_twice() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let mut random = Random::part(1, 2, 3);
        for blocks in [65_u32, 128, 256] {
            let bytes: Vec<u8> = (0..blocks * BLOCK / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
            std::fs::write(&path, bytes).unwrap();
            let until = Instant::now() + std::time::Duration::from_mins(1);
            let found = sample(&path, (0, u64::from(blocks * BLOCK)), BLOCK, 64, until).unwrap().unwrap();
            assert_eq!((found.blocks, found.distinct), (64, 64), "{blocks}");
        }
    }

    #[test]
    fn blocks_are_told_apart_by_what_they_hold() {
        let mut random = Random::part(1, 1, 1);
        let mut noise = || (0..512).flat_map(|_| random.bits().to_le_bytes()).collect::<Vec<u8>>();
        let (one, other) = (noise(), noise());
        let text = b"the same words again and again ".repeat(133);
        let mut counting = Counting::default();
        for block in [&one, &other, &one, &vec![0; 4096]] {
            counting.add(block, Some(100.0));
        }
        let found = counting.done().unwrap();
        assert_eq!((found.blocks, found.zero, found.distinct), (4, 1, 2));
        assert!(found.compressed > 0.99, "{}", found.compressed);
        assert_eq!(found.zero_time, Some(100.0));
        let mut counting = Counting::default();
        counting.add(&text, None);
        let found = counting.done().unwrap();
        assert!(found.compressed < 0.1, "{}", found.compressed);
        assert_eq!(Counting::default().done(), None);
        assert!(!is_zero(&[0, 0, 1]) && is_zero(&[0; 17]));
    }
}
