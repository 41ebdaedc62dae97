//! Bytes derived from a seed.

use crate::job::Buffers;

/// Spreads consecutive numbers over all 64 bits (SplitMix64's finaliser; Steele, Lea and Flood 2014).
#[inline]
pub(super) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Fills `bytes` with incompressible data. One multiplication per eight bytes: the generator of the workloads takes
/// three times as long, and this is done for every block. (The generator is wyrand; Wang Yi 2019.)
pub(crate) fn random(seed: u64, bytes: &mut [u8]) {
    let mut state = mix(seed);
    let mut next = || {
        state = state.wrapping_add(0xa076_1d64_78bd_642f);
        let wide = u128::from(state) * u128::from(state ^ 0xe703_7ed1_a0b4_28db);
        (wide >> 64) as u64 ^ wide as u64
    };
    let mut words = bytes.chunks_exact_mut(8);
    for word in &mut words {
        word.copy_from_slice(&next().to_le_bytes());
    }
    let rest = words.into_remainder();
    let last = next().to_le_bytes();
    let length = rest.len();
    rest.copy_from_slice(&last[..length]);
}

/// Repeats `pattern` until `bytes` is full; zeros if it is empty.
pub(super) fn tile(pattern: &[u8], bytes: &mut [u8]) {
    if pattern.is_empty() {
        bytes.fill(0);
        return;
    }
    let mut done = pattern.len().min(bytes.len());
    bytes[..done].copy_from_slice(&pattern[..done]);
    // Doubles each time, but always whole patterns.
    while done < bytes.len() {
        let more = done.min(bytes.len() - done);
        bytes.copy_within(..more, done);
        done += more;
    }
}

/// The content of buffers, as requested by a job.
#[derive(Debug, Clone)]
pub(super) enum BufferContent {
    /// Zeros.
    Zero,
    /// A repeated pattern.
    Pattern(Vec<u8>),
    /// Incompressible data.
    Random,
    /// In each chunk, incompressible data is followed by the pattern or zeros.
    Mixed {
        /// Bytes of a chunk; 0 for the whole buffer.
        chunk: usize,
        /// The share of it that compresses, 0 to 1.
        compressible: f64,
        /// The content of that share; zeros if empty.
        pattern: Vec<u8>,
    },
}

impl BufferContent {
    /// In fio's order of precedence: a compressible mix before a pattern, a pattern before zeros.
    pub(super) fn for_buffers(buffers: &Buffers) -> Self {
        match (buffers.compress_percentage, &buffers.pattern) {
            (Some(percent), pattern) if percent > 0.0 => Self::Mixed {
                chunk: buffers.compress_chunk as usize,
                compressible: (percent / 100.0).min(1.0),
                pattern: pattern.clone().unwrap_or_default(),
            },
            // A share of equal blocks requires that blocks can differ.
            _ if buffers.dedupe_percentage.is_some() => Self::Random,
            (_, Some(pattern)) if !pattern.is_empty() => Self::Pattern(pattern.clone()),
            _ if buffers.zero => Self::Zero,
            _ => Self::Random,
        }
    }

    /// Whether the content is independent of the seed.
    pub(super) fn is_constant(&self) -> bool {
        match self {
            Self::Zero | Self::Pattern(_) => true,
            Self::Random => false,
            Self::Mixed { compressible, .. } => *compressible >= 1.0,
        }
    }

    /// Fills a buffer. The same seed gives the same bytes. A shorter buffer gets the beginning of a longer one's
    /// content, unless there are chunks of the buffer's length.
    pub(super) fn fill(&self, seed: u64, buffer: &mut [u8]) {
        match self {
            Self::Zero => buffer.fill(0),
            Self::Pattern(pattern) => tile(pattern, buffer),
            Self::Random => random(seed, buffer),
            Self::Mixed { chunk, compressible, pattern } => {
                let chunk = if *chunk == 0 { buffer.len().max(1) } else { *chunk };
                for (index, part) in buffer.chunks_mut(chunk).enumerate() {
                    let random_bytes = (part.len() as f64 * (1.0 - compressible)).round() as usize;
                    let (noise, fixed) = part.split_at_mut(random_bytes.min(part.len()));
                    random(seed ^ mix(index as u64), noise);
                    tile(pattern, fixed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_goes_on_to_the_last_byte() {
        for length in [0, 1, 2, 3, 7, 8, 4096, 4099] {
            let mut bytes = vec![0xee; length];
            tile(b"abc", &mut bytes);
            assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == b"abc"[at % 3]), "{length}");
        }
        let mut bytes = [1_u8; 9];
        tile(&[], &mut bytes);
        assert_eq!(bytes, [0; 9]);
    }

    #[test]
    fn random_bytes_are_even_and_follow_from_the_seed() {
        let mut one = vec![0; 1 << 20];
        random(7, &mut one);
        let mut again = vec![0; 1 << 20];
        random(7, &mut again);
        assert_eq!(one, again);
        let mut counts = [0_u32; 256];
        for byte in &one {
            counts[usize::from(*byte)] += 1;
        }
        let expected = 4096.0;
        let chi: f64 = counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
        // Chi-square with 255 degrees of freedom: 330.5 is exceeded once in a thousand.
        assert!(chi < 330.5, "{chi}");
        let mut odd = [0; 13];
        random(7, &mut odd);
        assert_eq!(odd[..8], one[..8]);
        assert_ne!(odd[8..], [0; 5]);
    }
}
