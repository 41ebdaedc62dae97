//! Digests of answers and plans.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// Characters of a digest that are kept: 64 bits.
const DIGITS: usize = 16;

/// A text's digest.
pub(super) fn digest_of(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// The digits of a digest that are kept.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(DIGITS);
    for byte in bytes.iter().take(DIGITS / 2) {
        // Writing to a String does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
