//! `verify_pattern`: repeated bytes, with the block's offset in place of `%o`.

use super::content::tile;
use crate::job::{Piece, Pieces};

/// A pattern ready to be written.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    bytes: Vec<u8>,
    /// The positions of offsets in `bytes`.
    offsets: Vec<usize>,
    /// Bytes after which it begins again with a new offset.
    interval: Option<usize>,
    /// Buffer for the pattern with its offsets.
    ready: Vec<u8>,
}

impl Pattern {
    /// `None` for an empty pattern.
    pub(super) fn new(pieces: &Pieces, interval: Option<u32>) -> Option<Self> {
        let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
        for piece in &pieces.0 {
            match piece {
                Piece::Bytes(more) => bytes.extend_from_slice(more),
                Piece::Offset => {
                    offsets.push(bytes.len());
                    bytes.extend_from_slice(&[0; 8]);
                }
            }
        }
        let interval = interval.filter(|bytes| *bytes > 0).map(|bytes| bytes as usize);
        (!bytes.is_empty()).then(|| Self { ready: bytes.clone(), bytes, offsets, interval })
    }

    /// Fills the block that begins at `offset`.
    pub(super) fn fill(&mut self, offset: u64, block: &mut [u8]) {
        let interval = self.interval.unwrap_or(block.len()).max(1);
        for (index, part) in block.chunks_mut(interval).enumerate() {
            let here = offset + (index * interval) as u64;
            for at in &self.offsets {
                self.ready[*at..*at + 8].copy_from_slice(&here.to_le_bytes());
            }
            tile(&self.ready, part);
        }
    }

    /// Whether a part of a block can be computed without knowing where the block begins.
    pub(super) fn is_free_of_place(&self) -> bool {
        self.offsets.is_empty() && self.bytes.len() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_laid_out_as_fio_does() {
        // verify_pattern=0xff%o"abcd"-12, with the bytes that fio 3.33 writes.
        let pieces = Pieces(vec![
            Piece::Bytes(vec![0xff]),
            Piece::Offset,
            Piece::Bytes(b"abcd".to_vec()),
            Piece::Bytes(vec![0xf4, 0xff, 0xff, 0xff]),
        ]);
        let mut block = vec![0; 4096];
        Pattern::new(&pieces, None).unwrap().fill(4096, &mut block);
        let once = [0xff, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x61, 0x62, 0x63, 0x64, 0xf4, 0xff, 0xff, 0xff];
        assert!(block.iter().enumerate().all(|(at, byte)| *byte == once[at % 17]));
        let mut parts = vec![0; 40];
        Pattern::new(&Pieces(vec![Piece::Offset]), Some(16)).unwrap().fill(100, &mut parts);
        assert_eq!(parts[..8], 100_u64.to_le_bytes());
        assert_eq!(parts[8..16], 100_u64.to_le_bytes());
        assert_eq!(parts[16..24], 116_u64.to_le_bytes());
        assert_eq!(parts[32..40], 132_u64.to_le_bytes());
        assert!(Pattern::new(&Pieces(vec![]), None).is_none());
    }
}
