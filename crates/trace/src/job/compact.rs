//! Places of a device, moved together into a file.
//!
//! What was touched is kept in pieces in the order of their places. Pieces that were adjacent stay so; between others is
//! a gap that no sequential run crosses, so that none arises. Pieces become smaller until the files are small enough.

use std::collections::BTreeMap;

use crate::Request;

/// Sizes of pieces: large ones keep distances better.
const PIECES: [u64; 4] = [4 << 20, 1 << 20, 256 << 10, 64 << 10];
/// Twice the widest gap within a run.
const GAP: u64 = 128 << 10;

/// Where a stream's places are in its file.
#[derive(Debug)]
pub(super) struct CompactFile {
    piece: u64,
    /// Of each touched piece, by device and number, its first byte in the file.
    begins: BTreeMap<(u16, u64), u64>,
    /// Of the file.
    pub(super) bytes: u64,
}

impl CompactFile {
    /// The bytes that it needs at least if these are more than `most`.
    fn new(requests: &[&Request], piece: u64, most: u64) -> Result<Self, u64> {
        let mut begins = BTreeMap::new();
        for request in requests {
            for number in request.offset / piece..=(request.end().saturating_sub(1)) / piece {
                begins.insert((request.device, number), 0);
                // Before they fill the memory.
                let bytes = (begins.len() as u64).saturating_mul(piece);
                if bytes > most {
                    return Err(bytes);
                }
            }
        }
        let mut next = 0;
        let mut last: Option<(u16, u64)> = None;
        for (&(device, number), begin) in &mut begins {
            if last.is_some_and(|(other, before)| other != device || before + 1 != number) {
                next += GAP;
            }
            *begin = next;
            next += piece;
            last = Some((device, number));
        }
        Ok(Self { piece, begins, bytes: next })
    }

    /// The place of a request, whose pieces are adjacent.
    pub(super) fn place(&self, request: &Request) -> u64 {
        let begin = self.begins.get(&(request.device, request.offset / self.piece)).copied().unwrap_or(0);
        begin + request.offset % self.piece
    }
}

/// A file for each list of requests. The bytes that they need at least if these are more than `most`.
pub(super) fn files(lists: &[&[&Request]], most: u64) -> Result<Vec<CompactFile>, u64> {
    let mut needed = 0;
    for piece in PIECES {
        let files: Result<Vec<CompactFile>, u64> =
            lists.iter().map(|list| CompactFile::new(list, piece, most)).collect();
        let files = match files {
            Ok(files) => files,
            Err(bytes) => {
                needed = bytes;
                continue;
            }
        };
        needed = files.iter().map(|file| file.bytes).sum();
        if needed <= most {
            return Ok(files);
        }
    }
    Err(needed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Operation};

    fn request(offset: u64, length: u32) -> Request {
        let (at, device, process, file, flags, took) = (0, 0, 0, 0, Flags::default(), Request::UNKNOWN);
        Request { at, offset, length, device, process, file, operation: Operation::Read, flags, took }
    }

    #[test]
    fn what_is_adjacent_stays_so_and_nothing_else_becomes_so() {
        const MIB: u64 = 1 << 20;
        let all = [
            request(100 * MIB, 8192),
            request(104 * MIB - 4096, 8192),
            request(900 * MIB + 4096, 4096),
            request(901 * MIB, 4096),
        ];
        let refs: Vec<&Request> = all.iter().collect();
        let [file] = files(&[&refs], 64 * MIB).unwrap().try_into().unwrap();
        let places: Vec<u64> = all.iter().map(|one| file.place(one)).collect();
        assert_eq!(places[..2], [0, 4 * MIB - 4096]);
        assert_eq!((places[2], places[3] - places[2]), (8 * MIB + GAP + 4096, MIB - 4096));
        assert_eq!(file.bytes, 12 * MIB + GAP);
        // Smaller pieces where the files would be too large.
        let [small] = files(&[&refs], 6 * MIB).unwrap().try_into().unwrap();
        assert!(small.bytes <= 6 * MIB && small.piece == MIB, "{small:?}");
        assert!(files(&[&refs], 1000).unwrap_err() > 1000);
        // 256 TiB of pieces, which are not all put into memory before the answer.
        let wide: Vec<Request> = (0..65_536).map(|n| request(n << 32, u32::MAX)).collect();
        let refs: Vec<&Request> = wide.iter().collect();
        let needed = files(&[&refs], 64 * MIB).unwrap_err();
        assert!((64 * MIB..=68 * MIB).contains(&needed), "{needed}");
    }
}
