//! The blocks of the files: their content and checksum.

/// Alignment of buffers, sufficient for direct I/O on every device.
pub(super) const ALIGNMENT: usize = 4096;

/// The checksum, the thread, the block's number and the number of the write are at fixed offsets at the beginning.
const SUMMED_FROM: usize = 4;
const FRONT: usize = 24;

/// Memory that begins at a multiple of [`ALIGNMENT`].
#[derive(Debug)]
pub(super) struct Buffer {
    memory: Vec<u8>,
    from: usize,
    length: usize,
}

impl Buffer {
    /// A buffer of `length` incompressible bytes.
    pub(super) fn new(length: usize, seed: u64) -> Self {
        let mut memory = vec![0; length + ALIGNMENT];
        let from = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        crate::data::random_bytes(seed, &mut memory[from..from + length]);
        Self { memory, from, length }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.length]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.length]
    }
}

/// Writes the block's owner into it, and makes each of its pages different from all others ever written.
pub(super) fn stamp(bytes: &mut [u8], thread: u32, place: u64, number: u64) {
    bytes[..4].fill(0);
    bytes[4..8].copy_from_slice(&thread.to_le_bytes());
    bytes[8..16].copy_from_slice(&place.to_le_bytes());
    bytes[16..24].copy_from_slice(&number.to_le_bytes());
    for (index, page) in bytes.chunks_exact_mut(ALIGNMENT).enumerate() {
        let unlike =
            (number << 16 | index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(thread) << 56;
        page[FRONT..FRONT + 8].copy_from_slice(&unlike.to_le_bytes());
    }
}

/// Writes the checksum.
pub(super) fn seal(bytes: &mut [u8]) {
    let sum = crc32c::crc32c(&bytes[SUMMED_FROM..]);
    bytes[..SUMMED_FROM].copy_from_slice(&sum.to_le_bytes());
}

/// Checks the checksum and the block's owner; returns the error.
pub(super) fn check(bytes: &[u8], thread: u32, place: u64) -> Result<(), String> {
    let (sum, rest) = bytes.split_at(SUMMED_FROM);
    let is = crc32c::crc32c(rest);
    if sum != is.to_le_bytes() {
        let held = u32::from_le_bytes(std::array::from_fn(|at| sum[at]));
        return Err(format!("the block has the CRC-32C {is:08x}, but {held:08x} was written"));
    }
    if bytes[4..8] != thread.to_le_bytes() || bytes[8..16] != place.to_le_bytes() {
        return Err("it is a different block".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_and_a_wrong_block_are_found() {
        let mut buffer = Buffer::new(8192, 1);
        assert_eq!(buffer.bytes().as_ptr() as usize % ALIGNMENT, 0);
        stamp(buffer.bytes_mut(), 3, 7, 1);
        seal(buffer.bytes_mut());
        assert_eq!(check(buffer.bytes(), 3, 7), Ok(()));
        assert_eq!(check(buffer.bytes(), 3, 8), Err("it is a different block".into()));
        for at in (0..8192).step_by(61) {
            buffer.bytes_mut()[at] ^= 0x40;
            assert!(check(buffer.bytes(), 3, 7).is_err(), "{at}");
            buffer.bytes_mut()[at] ^= 0x40;
        }
        let pages = |buffer: &Buffer| buffer.bytes().chunks(4096).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let one = pages(&buffer);
        stamp(buffer.bytes_mut(), 3, 7, 2);
        assert!(pages(&buffer).iter().zip(&one).all(|(page, before)| page != before));
    }
}
