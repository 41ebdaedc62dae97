//! Parsers of numbers and words in the kernel's text files. They work on bytes and do not allocate.

/// The lines of a file.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&b| b == b'\n').filter(|line| !line.is_empty())
}

/// The words of a line, separated by ASCII white space.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// An unsigned decimal number; `None` for anything else.
pub fn number(word: &[u8]) -> Option<u64> {
    let digits = |sum: u64, &byte: &u8| {
        byte.is_ascii_digit().then(|| sum.checked_mul(10)?.checked_add(u64::from(byte - b'0'))).flatten()
    };
    (!word.is_empty()).then(|| word.iter().try_fold(0, digits)).flatten()
}

/// A hexadecimal number without a prefix.
pub fn hexadecimal(word: &[u8]) -> Option<u64> {
    let digits = |sum: u64, &byte: &u8| {
        let digit = char::from(byte).to_digit(16)?;
        sum.checked_mul(16)?.checked_add(u64::from(digit))
    };
    (!word.is_empty()).then(|| word.iter().try_fold(0, digits)).flatten()
}

/// A decimal number such as "2399.998".
pub fn decimal(word: &[u8]) -> Option<f64> {
    let plain = word.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    plain.then(|| std::str::from_utf8(word).ok()?.parse().ok()).flatten()
}

/// The first word as a number.
pub fn first_number(text: &[u8]) -> Option<u64> {
    number(words(text).next()?)
}

/// Splits a line such as "key value …" at the first blank or colon, into the key and the rest.
pub fn keyed(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = line.iter().position(|&b| b == b':' || b.is_ascii_whitespace())?;
    Some((&line[..end], &line[end + 1..]))
}

/// The first numbers of these names in a file of lines "name: number", with or without a unit.
pub fn values<const N: usize>(text: &[u8], names: [&str; N]) -> [Option<u64>; N] {
    let mut found = [None; N];
    for line in lines(text) {
        for (found, name) in found.iter_mut().zip(names) {
            if found.is_none()
                && let Some(rest) =
                    line.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b":"))
            {
                *found = first_number(rest);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_number_is_none() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for word in [&b""[..], b"-1", b"1.5", b"18446744073709551616", b"max", b" 1"] {
            assert_eq!(number(word), None, "{word:?}");
        }
        assert_eq!(hexadecimal(b"0000ff"), Some(255));
        assert_eq!(hexadecimal(b"0x1"), None);
        assert_eq!(decimal(b"2399.998"), Some(2399.998));
        assert_eq!(decimal(b"1e5"), None);
        assert_eq!(keyed(b"MemFree:  12 kB"), Some((&b"MemFree"[..], &b"  12 kB"[..])));
        let text = b"Writeback:      4 kB\nWritebackTmp:   9 kB\nread_bytes: 5\nwrite_bytes: -6\n";
        let names = ["read_bytes", "Writeback", "write_bytes", "Dirty"];
        assert_eq!(values(text, names), [Some(5), Some(4), None, None]);
    }

    proptest! {
        #[test]
        fn a_number_comes_back(n: u64) {
            prop_assert_eq!(number(n.to_string().as_bytes()), Some(n));
            prop_assert_eq!(hexadecimal(format!("{n:08x}").as_bytes()), Some(n));
        }

        #[test]
        fn no_bytes_make_it_panic(text: Vec<u8>) {
            values(&text, ["a", ""]);
            for line in lines(&text) {
                for word in words(line) {
                    let _ = (number(word), hexadecimal(word), decimal(word));
                }
                let _ = (first_number(line), keyed(line));
            }
        }
    }
}
