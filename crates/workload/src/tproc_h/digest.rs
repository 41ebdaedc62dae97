//! Digests of answers and plans.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// Hexadecimal digits of a digest that are kept: 64 bits.
const DIGITS: usize = 16;

/// The digest of a text: the first 64 bits of its SHA-256 in hexadecimal.
pub(super) fn digest_of(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// The leading hexadecimal digits of a digest.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(DIGITS);
    for byte in bytes.iter().take(DIGITS / 2) {
        // Writing to a String does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
