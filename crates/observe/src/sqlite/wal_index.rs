//! The wal-index: the shared memory through which the connections to a file in WAL mode agree on the content of the
//! WAL.
//!
//! Layout: <https://www.sqlite.org/walformat.html#the_wal_index_file_format>, in native byte order. A header of 48
//! bytes, a copy of it, then the part of the WAL that has been moved into the database.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// The only version there has been.
const VERSION: u32 = 3_007_000;

/// Bytes of one header.
const HEADER: usize = 48;

/// Bytes that are read: both headers, and the fields up to `nBackfillAttempted`.
const READ: usize = 132;

/// Attempts to read a header that is being written, before it is skipped until the next sample.
const ATTEMPTS: usize = 5;

/// The state of the WAL at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct WalState {
    /// Bytes of a page.
    pub(super) page: u32,
    /// Valid frames in the log.
    pub(super) frames: u32,
    /// Incremented whenever writing restarts at the WAL's beginning.
    pub(super) salt: u32,
    /// Frames that are in the database, too.
    pub(super) moved: u32,
    /// Frames that the newest checkpoint has moved or is about to move.
    pub(super) attempted: u32,
}

/// The wal-index of one file, where this process has mapped it.
#[derive(Debug)]
pub(super) struct WalIndex {
    memory: File,
    address: u64,
}

impl WalIndex {
    /// Finds the wal-index of the database at `path`, to which this process must have a connection that has read.
    pub(super) fn find(path: &Path) -> Result<Self, String> {
        let mut name = path.as_os_str().to_owned();
        name.push("-shm");
        // Asks for its number and does not open it.
        let metadata = std::fs::metadata(&name).map_err(|error| format!("{}: {error}", name.display()))?;
        let maps = std::fs::read_to_string("/proc/self/maps").map_err(|e| format!("/proc/self/maps: {e}"))?;
        // The name decides. Where the kernel shows another one (an overlay's lower file), the inode number may.
        let named = |line: &str| line.ends_with(&format!(" {}", name.display()));
        let numbered = |line: &str| line.split_ascii_whitespace().nth(4) == Some(&metadata.ino().to_string());
        let address = maps
            .lines()
            .find_map(|line| mapped_at(line).filter(|_| named(line)))
            .or_else(|| maps.lines().find_map(|line| mapped_at(line).filter(|_| numbered(line))))
            .ok_or_else(|| format!("{} is not mapped in this process", name.display()))?;
        let memory = File::open("/proc/self/mem").map_err(|error| format!("/proc/self/mem: {error}"))?;
        Ok(Self { memory, address })
    }

    /// The present state of the WAL; `None` while it is being changed, or if it was never written.
    pub(super) fn read(&self) -> Result<Option<WalState>, String> {
        let mut bytes = [0; READ];
        for _ in 0..ATTEMPTS {
            self.memory
                .read_exact_at(&mut bytes, self.address)
                .map_err(|error| format!("the wal-index is no longer mapped: {error}"))?;
            if let Some(log) = parse(&bytes) {
                return Ok(Some(log));
            }
        }
        Ok(None)
    }
}

/// The address at which the beginning of a `-shm` is mapped, if a line of `/proc/self/maps` shows that.
fn mapped_at(line: &str) -> Option<u64> {
    let mut words = line.split_ascii_whitespace();
    let (range, offset) = (words.next()?, words.nth(1)?);
    let at_beginning = u64::from_str_radix(offset, 16) == Ok(0);
    let (from, _to) = range.split_once('-').filter(|_| at_beginning && line.ends_with("-shm"))?;
    u64::from_str_radix(from, 16).ok()
}

/// Parses both headers, which must be equal and have a valid checksum.
fn parse(bytes: &[u8; READ]) -> Option<WalState> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (header, again) = (bytes.get(..HEADER)?, bytes.get(HEADER..2 * HEADER)?);
    if header != again || word(0)? != VERSION || checksum(header.get(..40)?) != (word(40)?, word(44)?) {
        return None;
    }
    let page = u16::from_ne_bytes(bytes.get(14..16)?.try_into().ok()?);
    Some(WalState {
        // As SQLite unfolds it: 65536 does not fit, and is written as 1.
        page: u32::from(page & 0xfe00) + (u32::from(page & 1) << 16),
        frames: word(16)?,
        // The salts are bytes of the WAL's header, whose numbers are big-endian.
        salt: word(32)?.to_ne_bytes().iter().fold(0, |salt, &byte| salt << 8 | u32::from(byte)),
        moved: word(96)?,
        attempted: word(128)?,
    })
}

/// SQLite's checksum: <https://www.sqlite.org/fileformat2.html#checksum_algorithm>.
fn checksum(bytes: &[u8]) -> (u32, u32) {
    let mut words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word));
    let (mut first, mut second) = (0_u32, 0_u32);
    while let (Some(one), Some(two)) = (words.next(), words.next()) {
        first = first.wrapping_add(one).wrapping_add(second);
        second = second.wrapping_add(two).wrapping_add(first);
    }
    (first, second)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn image(frames: u32, page: u16, moved: u32) -> [u8; READ] {
        let mut bytes = [0; READ];
        bytes[..4].copy_from_slice(&VERSION.to_ne_bytes());
        bytes[14..16].copy_from_slice(&page.to_ne_bytes());
        bytes[16..20].copy_from_slice(&frames.to_ne_bytes());
        bytes[32..36].copy_from_slice(&0x0102_0304_u32.to_be_bytes());
        let (first, second) = checksum(&bytes[..40]);
        bytes[40..44].copy_from_slice(&first.to_ne_bytes());
        bytes[44..48].copy_from_slice(&second.to_ne_bytes());
        let header: [u8; HEADER] = bytes[..HEADER].try_into().unwrap();
        bytes[HEADER..2 * HEADER].copy_from_slice(&header);
        bytes[96..100].copy_from_slice(&moved.to_ne_bytes());
        bytes
    }

    proptest! {
        #[test]
        fn what_is_in_it_comes_out(frames: u32, moved: u32) {
            let log = parse(&image(frames, 4096, moved)).unwrap();
            prop_assert_eq!((log.frames, log.moved, log.page, log.salt), (frames, moved, 4096, 0x0102_0304));
        }

        #[test]
        fn a_header_that_is_being_written_is_refused(at in 0_usize..96, change in 1_u8..) {
            let mut bytes = image(77, 4096, 5);
            bytes[at] ^= change;
            prop_assert_eq!(parse(&bytes), None);
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), READ), line: String) {
            parse(&bytes.try_into().unwrap());
            mapped_at(&line);
        }
    }

    #[test]
    fn the_largest_page_is_unfolded() {
        assert_eq!(parse(&image(1, 1, 0)).unwrap().page, 65_536);
    }

    #[test]
    fn a_mapping_is_known_by_its_file() {
        let line = "7f12d4000000-7f12d4008000 rw-s 00000000 fd:01 4242                       /tmp/a b.db-shm";
        assert_eq!(mapped_at(line), Some(0x7f12_d400_0000));
        assert_eq!(mapped_at(&line.replace("00000000 fd", "00008000 fd")), None);
        assert_eq!(mapped_at(&line.replace("-shm", "")), None);
    }
}
