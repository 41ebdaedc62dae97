//! The protocol's integers and strings, out of bytes that cannot be trusted and into messages. Texts are UTF-16.

pub(crate) use crate::stream::Fields;
use crate::{Error, Result};

impl<'a> Fields<'a> {
    /// Text with the number of its characters in one byte before it.
    pub(crate) fn short_text(&mut self) -> Result<String> {
        let count = self.u8()?;
        self.take(usize::from(count) * 2).map(text)
    }

    /// Text with the number of its characters in two bytes before it.
    pub(crate) fn long_text(&mut self) -> Result<String> {
        let count = self.u16()?;
        self.take(usize::from(count) * 2).map(text)
    }

    /// Bytes with their number in one byte before them.
    pub(crate) fn short_bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.u8()?;
        self.take(count.into())
    }
}

/// A text from the server without what could steer a terminal.
pub(crate) fn text(utf16: &[u8]) -> String {
    let mut utf8 = Vec::new();
    put_utf8(&mut utf8, utf16);
    crate::stream::printable(&utf8)
}

/// Appends UTF-16 as UTF-8. What is no text becomes U+FFFD, an odd byte at the end too.
#[inline]
pub(crate) fn put_utf8(out: &mut Vec<u8>, utf16: &[u8]) {
    let (pairs, rest) = utf16.as_chunks::<2>();
    out.reserve(pairs.len());
    for (at, pair) in pairs.iter().enumerate() {
        if let [low @ ..0x80, 0] = *pair {
            out.push(low);
        } else {
            return put_utf8_slowly(out, &pairs[at..], rest);
        }
    }
    put_utf8_slowly(out, &[], rest);
}

fn put_utf8_slowly(out: &mut Vec<u8>, pairs: &[[u8; 2]], rest: &[u8]) {
    let mut space = [0; 4];
    let units = pairs.iter().map(|&pair| u16::from_le_bytes(pair));
    for found in char::decode_utf16(units) {
        let found = found.unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(found.encode_utf8(&mut space).as_bytes());
    }
    if !rest.is_empty() {
        out.extend_from_slice(char::REPLACEMENT_CHARACTER.encode_utf8(&mut space).as_bytes());
    }
}

/// Appends a text as UTF-16.
#[inline]
pub(crate) fn put_utf16(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() * 2);
    if text.is_ascii() {
        for &byte in text.as_bytes() {
            out.extend_from_slice(&[byte, 0]);
        }
    } else {
        for unit in text.encode_utf16() {
            out.extend_from_slice(&unit.to_le_bytes());
        }
    }
}

/// How many UTF-16 units a text has.
#[inline]
pub(crate) fn units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// Appends a text with the number of its characters in one byte before it.
pub(crate) fn put_short_text(out: &mut Vec<u8>, text: &str) -> Result<()> {
    let count = u8::try_from(units(text))
        .map_err(|_| Error::usage(format!("the name {text:?} is longer than 255 characters")))?;
    out.push(count);
    put_utf16(out, text);
    Ok(())
}

/// An identifier as SQL.
pub(crate) fn quote(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn texts_come_back_as_they_went(text in ".{0,20}") {
            let (mut wide, mut back) = (Vec::new(), Vec::new());
            put_utf16(&mut wide, &text);
            prop_assert_eq!(wide.len(), 2 * units(&text));
            put_utf8(&mut back, &wide);
            prop_assert_eq!(back, text.as_bytes());
        }
    }

    #[test]
    fn what_is_no_text_is_marked() {
        let mut out = Vec::new();
        put_utf8(&mut out, &[b'a', 0, 0x00, 0xd8, b'b', 0, b'c']);
        assert_eq!(String::from_utf8(out).unwrap(), "a\u{fffd}b\u{fffd}");
    }
}
