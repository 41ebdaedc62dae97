//! The checksums of blocks, in fio's formats.

use std::fmt::Write as _;

use crc::{Algorithm, CRC_7_MMC, CRC_16_ARC, CRC_64_REDIS, Crc, Table};
use md5::Md5;
use sha1::{Digest, Sha1};
use sha2::{Sha256, Sha512};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};

use crate::job::VerifyMethod;

/// fio's `crc32`: the polynomial of IEEE 802.3, but neither reflected nor inverted.
const CRC_32_OF_FIO: Algorithm<u32> = Algorithm {
    width: 32,
    poly: 0x04c1_1db7,
    init: 0,
    refin: false,
    refout: false,
    xorout: 0,
    check: 0x89a1_897f,
    residue: 0,
};

static CRC_7: Crc<u8, Table<16>> = Crc::<u8, Table<16>>::new(&CRC_7_MMC);
static CRC_16: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_ARC);
static CRC_32: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_OF_FIO);
static CRC_64: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// Maximum bytes of a checksum's field.
pub(super) const LONGEST: usize = 128;

/// fio's number for a method in its headers.
pub(super) fn number(method: VerifyMethod) -> u16 {
    match method {
        VerifyMethod::Meta => 1,
        VerifyMethod::Md5 => 2,
        VerifyMethod::Crc64 => 3,
        VerifyMethod::Crc32 => 4,
        VerifyMethod::Crc32c => 5,
        VerifyMethod::Crc16 => 7,
        VerifyMethod::Crc7 => 8,
        VerifyMethod::Sha256 => 9,
        VerifyMethod::Sha512 => 10,
        VerifyMethod::Sha3_224 => 11,
        VerifyMethod::Sha3_256 => 12,
        VerifyMethod::Sha3_384 => 13,
        VerifyMethod::Sha3_512 => 14,
        VerifyMethod::XxHash => 15,
        VerifyMethod::Sha1 => 16,
        VerifyMethod::PatternHeader => 17,
        VerifyMethod::Pattern => 18,
        VerifyMethod::Null => 19,
    }
}

/// Its name in a job file.
pub(super) fn word(method: VerifyMethod) -> &'static str {
    match method {
        VerifyMethod::Meta => "meta",
        VerifyMethod::Md5 => "md5",
        VerifyMethod::Crc64 => "crc64",
        VerifyMethod::Crc32 => "crc32",
        VerifyMethod::Crc32c => "crc32c",
        VerifyMethod::Crc16 => "crc16",
        VerifyMethod::Crc7 => "crc7",
        VerifyMethod::Sha256 => "sha256",
        VerifyMethod::Sha512 => "sha512",
        VerifyMethod::Sha3_224 => "sha3-224",
        VerifyMethod::Sha3_256 => "sha3-256",
        VerifyMethod::Sha3_384 => "sha3-384",
        VerifyMethod::Sha3_512 => "sha3-512",
        VerifyMethod::XxHash => "xxhash",
        VerifyMethod::Sha1 => "sha1",
        VerifyMethod::PatternHeader => "pattern_hdr",
        VerifyMethod::Pattern => "pattern",
        VerifyMethod::Null => "null",
    }
}

/// Bytes of the checksum's field after the header. fio's fields for SHA-256 and SHA-512 are longer than the digests;
/// the remainder is zeros, which are checked like the digest.
pub(super) fn length(method: VerifyMethod) -> usize {
    match method {
        VerifyMethod::Md5 => 16,
        VerifyMethod::Crc64 => 8,
        VerifyMethod::Crc32 | VerifyMethod::Crc32c | VerifyMethod::XxHash => 4,
        VerifyMethod::Crc16 => 2,
        VerifyMethod::Crc7 => 1,
        VerifyMethod::Sha1 => 20,
        VerifyMethod::Sha3_224 => 28,
        VerifyMethod::Sha3_256 => 32,
        VerifyMethod::Sha3_384 => 48,
        VerifyMethod::Sha256 | VerifyMethod::Sha3_512 => 64,
        VerifyMethod::Sha512 => LONGEST,
        VerifyMethod::Meta | VerifyMethod::Pattern | VerifyMethod::PatternHeader | VerifyMethod::Null => 0,
    }
}

/// The CRC-32C in fio's headers and fields: not inverted at the end, unlike that of iSCSI.
pub(super) fn crc32c(data: &[u8]) -> u32 {
    !crc32c::crc32c(data)
}

/// CRC-16 as in `verify=crc16`.
pub(super) fn crc16(data: &[u8]) -> u16 {
    CRC_16.checksum(data)
}

/// Writes the checksum of `data` into `field`, which is [`length`] bytes long.
pub(super) fn sum(method: VerifyMethod, data: &[u8], field: &mut [u8]) {
    fn put(field: &mut [u8], digest: &[u8]) {
        let (sum, rest) = field.split_at_mut(digest.len().min(field.len()));
        sum.copy_from_slice(&digest[..sum.len()]);
        rest.fill(0);
    }
    match method {
        VerifyMethod::Md5 => put(field, &Md5::digest(data)),
        VerifyMethod::Crc64 => put(field, &CRC_64.checksum(data).to_le_bytes()),
        VerifyMethod::Crc32 => put(field, &CRC_32.checksum(data).to_le_bytes()),
        VerifyMethod::Crc32c => put(field, &crc32c(data).to_le_bytes()),
        VerifyMethod::Crc16 => put(field, &crc16(data).to_le_bytes()),
        VerifyMethod::Crc7 => put(field, &[CRC_7.checksum(data)]),
        VerifyMethod::XxHash => put(field, &twox_hash::XxHash32::oneshot(1, data).to_le_bytes()),
        VerifyMethod::Sha1 => {
            let mut digest = Sha1::digest(data);
            // fio stores the words of the digest in the processor's byte order.
            for word in digest.chunks_exact_mut(4) {
                word.reverse();
            }
            put(field, &digest);
        }
        VerifyMethod::Sha256 => put(field, &Sha256::digest(data)),
        VerifyMethod::Sha512 => put(field, &Sha512::digest(data)),
        VerifyMethod::Sha3_224 => put(field, &Sha3_224::digest(data)),
        VerifyMethod::Sha3_256 => put(field, &Sha3_256::digest(data)),
        VerifyMethod::Sha3_384 => put(field, &Sha3_384::digest(data)),
        VerifyMethod::Sha3_512 => put(field, &Sha3_512::digest(data)),
        VerifyMethod::Meta | VerifyMethod::Pattern | VerifyMethod::PatternHeader | VerifyMethod::Null => {}
    }
}

/// Bytes in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_are_the_published_ones() {
        let data = b"123456789";
        // The check values of the catalogue of CRCs (reveng.sourceforge.io); CRC-32C before its final inversion.
        assert_eq!(CRC_7.checksum(data), 0x75);
        assert_eq!(crc16(data), 0xbb3d);
        assert_eq!(CRC_64.checksum(data), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(!crc32c(data), 0xe306_9283);
        // CRC-32/MPEG-2's polynomial with an initial value of zero, computed bit by bit.
        let mut bitwise = 0_u32;
        for byte in data {
            bitwise ^= u32::from(*byte) << 24;
            for _ in 0..8 {
                bitwise = if bitwise >> 31 == 1 { (bitwise << 1) ^ 0x04c1_1db7 } else { bitwise << 1 };
            }
        }
        assert_eq!(CRC_32.checksum(data), bitwise);
        let hex = |method, data: &[u8]| {
            let mut field = vec![0xee; length(method)];
            sum(method, data, &mut field);
            super::hex(&field)
        };
        // RFC 1321, FIPS 180-4 and 202 examples for "abc".
        assert_eq!(hex(VerifyMethod::Md5, b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(
            hex(VerifyMethod::Sha1, b"abc"),
            "363e99a96a81064771253eba6cc25078 9dd8d09c".replace(' ', "")
        );
        assert!(hex(VerifyMethod::Sha256, b"abc").starts_with("ba7816bf8f01cfea414140de5dae2223b00361a3"));
        assert!(hex(VerifyMethod::Sha256, b"abc").ends_with(&"00".repeat(32)));
        assert!(hex(VerifyMethod::Sha512, b"abc").starts_with("ddaf35a193617abacc417349ae204131"));
        assert!(hex(VerifyMethod::Sha3_224, b"abc").starts_with("e642824c3f8cf24ad09234ee7d3c766f"));
        assert!(hex(VerifyMethod::Sha3_256, b"abc").starts_with("3a985da74fe225b2045c172d6bd390bd"));
        assert!(hex(VerifyMethod::Sha3_384, b"abc").starts_with("ec01498288516fc926459f58e2c6ad8d"));
        assert!(hex(VerifyMethod::Sha3_512, b"abc").starts_with("b751850b1a57168a5693cd924b6b096e"));
    }
}
