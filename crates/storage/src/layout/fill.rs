//! What files are filled with: bytes that no device can compress, deduplicate or take for zeros.

/// SplitMix64's finaliser (Steele, Lea and Flood 2014) over a counter: each word depends on its place alone, so that
/// what an interrupted layout left is continued as if nothing had been.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filling(u64);

impl Filling {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Fills what will stand at `offset`, a multiple of 8.
    pub(crate) fn fill(self, offset: u64, buffer: &mut [u8]) {
        for (word, place) in buffer.chunks_mut(8).zip(offset / 8..) {
            let mut z = self.0.wrapping_add(place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let bytes = (z ^ (z >> 31)).to_le_bytes();
            let length = word.len();
            word.copy_from_slice(&bytes[..length]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_where_does_not_depend_on_how_it_is_cut() {
        let filling = Filling::new(7);
        let mut whole = vec![0; 4096];
        filling.fill(8192, &mut whole);
        let mut part = vec![0; 1001];
        filling.fill(8192 + 1024, &mut part);
        assert_eq!(part, whole[1024..2025]);
        let mut seen = std::collections::HashSet::new();
        assert!(whole.chunks(8).all(|word| seen.insert(word.to_vec())), "no two words are equal");
    }
}
