//! The header of a chunk: 40 bytes, little-endian, with the layout of fio 3.33.
//!
//! | at | bytes | holds |
//! |---|---|---|
//! | 0 | 2 | `0xacca` |
//! | 2 | 2 | the method |
//! | 4 | 4 | length of the chunk |
//! | 8 | 8 | seed of the content |
//! | 16 | 8 | offset of the chunk in the file |
//! | 24 | 8 | fio: its clock. Kelvin: the number of the write above its lowest 16 bits, and a mark |
//! | 32 | 2 | fio: the thread. Kelvin: the clone, from 1; with `crc7` a CRC-16 of the data |
//! | 34 | 2 | the lowest 16 bits of the number of the write |
//! | 36 | 4 | CRC-32C of all before |
//!
//! The checksum follows, then the data. fio checks neither its clock nor its thread. The mark is the highest bit of the
//! field that fio interprets as nanoseconds, which never reach it. `crc7` needs the CRC-16 because a checksum of seven
//! bits does not detect one of 255 changes of a byte.
//!
//! Debian's fio 3.33 does not write the digest for `sha256` and `sha512`: it writes what its hash function had in its
//! buffer (for `sha512` only the end of the data, so that it detects no change elsewhere). Kelvin writes the digests.
//! For these two methods neither tool can verify the other's blocks, and Kelvin reports that for a block of fio.

use super::checksum;

pub(super) const LENGTH: usize = 40;
pub(super) const MAGIC: u16 = 0xacca;

/// fio's second number for CRC-32C.
const CRC32C_INTEL: u16 = 6;
const MARK: u32 = 1 << 31;

/// The content of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) method: u16,
    pub(super) length: u32,
    pub(super) seed: u64,
    pub(super) offset: u64,
    pub(super) number: Number,
    pub(super) thread: u16,
}

/// The number of the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// A write of Kelvin: the complete number, up to 2^63.
    Whole(u64),
    /// A write of fio: the low bits.
    Low(u16),
}

/// The reason why bytes are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoHeader {
    /// The value in place of the magic number.
    Magic(u16),
    /// The stored and the computed checksum.
    Sum(u32, u32),
}

fn array<const N: usize>(bytes: &[u8; LENGTH], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

impl Header {
    pub(super) fn to_bytes(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let (low, time) = match self.number {
            Number::Whole(number) => (number as u16, number >> 16 | u64::from(MARK) << 32),
            Number::Low(low) => (low, 0),
        };
        bytes[0..2].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.method.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.seed.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..32].copy_from_slice(&time.to_le_bytes());
        bytes[32..34].copy_from_slice(&self.thread.to_le_bytes());
        bytes[34..36].copy_from_slice(&low.to_le_bytes());
        let sum = checksum::crc32c(&bytes[..36]);
        bytes[36..40].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8; LENGTH]) -> Result<Self, NoHeader> {
        let magic = u16::from_le_bytes(array(bytes, 0));
        if magic != MAGIC {
            return Err(NoHeader::Magic(magic));
        }
        let (held, is) = (u32::from_le_bytes(array(bytes, 36)), checksum::crc32c(&bytes[..36]));
        if held != is {
            return Err(NoHeader::Sum(held, is));
        }
        let method = u16::from_le_bytes(array(bytes, 2));
        let time = u64::from_le_bytes(array(bytes, 24));
        let low = u16::from_le_bytes(array(bytes, 34));
        let marked = time >> 32 & u64::from(MARK) != 0;
        let number = if marked {
            Number::Whole((time & !(u64::from(MARK) << 32)) << 16 | u64::from(low))
        } else {
            Number::Low(low)
        };
        Ok(Self {
            method: if method == CRC32C_INTEL { CRC32C_INTEL - 1 } else { method },
            length: u32::from_le_bytes(array(bytes, 4)),
            seed: u64::from_le_bytes(array(bytes, 8)),
            offset: u64::from_le_bytes(array(bytes, 16)),
            number,
            thread: u16::from_le_bytes(array(bytes, 32)),
        })
    }

    /// Whether fio wrote it.
    pub(super) fn is_of_fio(&self) -> bool {
        matches!(self.number, Number::Low(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_as_it_was_written() {
        for number in [0, 1, 65535, 65536, 0x1234_5678_9abc_def0, (1 << 63) - 1] {
            let header = Header {
                method: 5,
                length: 4096,
                seed: 0x0123_4567_89ab_cdef,
                offset: 1 << 40,
                number: Number::Whole(number),
                thread: 7,
            };
            assert_eq!(Header::parse(&header.to_bytes()), Ok(header));
        }
    }

    #[test]
    fn a_header_of_fio_3_33_is_understood() {
        // fio --rw=write --bs=4k --verify=crc32c --verify_interval=2k, second chunk.
        let bytes: [u8; LENGTH] = [
            0xca, 0xac, 5, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0x74, 0xb7, 0, 0,
            0x42, 0xb4, 0x52, 0x10, 1, 0, 0, 0, 0xe1, 0xc9, 0xcd, 0x71,
        ];
        let header = Header::parse(&bytes).unwrap();
        assert_eq!((header.method, header.length, header.offset, header.thread), (5, 2048, 2048, 1));
        assert_eq!(header.number, Number::Low(0));
        assert!(header.is_of_fio());
    }

    #[test]
    fn no_byte_of_it_can_change_unseen() {
        let header =
            Header { method: 2, length: 512, seed: 9, offset: 0, number: Number::Whole(3), thread: 1 };
        for at in 0..LENGTH {
            for change in 1..=255 {
                let mut bytes = header.to_bytes();
                bytes[at] ^= change;
                assert!(Header::parse(&bytes).is_err(), "{at} {change}");
            }
        }
    }
}
