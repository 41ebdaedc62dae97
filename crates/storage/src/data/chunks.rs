//! Divides a block into chunks with a header each.

use std::ops::Range;

/// `verify_interval`, and the minimum size of a chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunks {
    /// Bytes of a chunk; `None` for the whole block.
    pub(super) interval: Option<usize>,
    /// Bytes that a chunk needs: header, checksum, and a byte of data; with `verify_offset`, up to
    /// the header's end there.
    pub(super) least: usize,
}

impl Chunks {
    /// The chunks of a block of this length. A remainder too short for a header belongs to the preceding chunk, so that
    /// every byte is in a chunk.
    pub(super) fn split(self, length: usize) -> impl Iterator<Item = Range<usize>> {
        let interval = self.interval.unwrap_or(length).clamp(1, length.max(1));
        let mut from = 0;
        std::iter::from_fn(move || {
            if from >= length {
                return None;
            }
            let mut to = (from + interval).min(length);
            if length - to < self.least {
                to = length;
            }
            let chunk = from..to;
            from = to;
            Some(chunk)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_every_byte_once_and_none_is_too_short() {
        for interval in [None, Some(512), Some(1000), Some(4096), Some(1 << 20)] {
            for length in [45, 512, 513, 1000, 1044, 1045, 4096, 5000, 65536] {
                let chunks: Vec<_> = Chunks { interval, least: 45 }.split(length).collect();
                let mut at = 0;
                for chunk in &chunks {
                    assert_eq!(chunk.start, at);
                    assert!(chunk.len() >= 45, "{interval:?} {length} {chunk:?}");
                    at = chunk.end;
                }
                assert_eq!(at, length);
            }
        }
        let cut: Vec<_> = Chunks { interval: Some(512), least: 45 }.split(1024).collect();
        assert_eq!(cut, [0..512, 512..1024]);
        assert_eq!(Chunks { interval: None, least: 45 }.split(0).count(), 0);
    }
}
