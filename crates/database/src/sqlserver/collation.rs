//! Which bytes a text of a `char` or `varchar` column is, by its collation.

use crate::{Error, ErrorClass, Result};

/// How the text of a column is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// UTF-16: nchar, nvarchar, xml.
    Utf16,
    /// UTF-8: of collations whose names end in `_UTF8`.
    Utf8,
    /// The code page of Western Europe, which most servers are installed with.
    Windows1252,
    /// Some other code page: only its ASCII is known here.
    Ascii,
    /// No text: bytes as they are.
    Binary,
}

/// Sort numbers of the older collations (SQL_…) whose code page is 1252.
const SORTS_OF_1252: [(u8, u8); 2] = [(50, 54), (183, 186)];
/// Languages, by the lower ten bits of their number, whose code page is 1252.
const LANGUAGES_OF_1252: [u32; 20] = [
    0x03, 0x06, 0x07, 0x09, 0x0a, 0x0b, 0x0c, 0x0f, 0x10, 0x13, 0x14, 0x16, 0x1d, 0x21, 0x2d, 0x36, 0x38,
    0x3e, 0x41, 0x56,
];

impl Encoding {
    /// The encoding of a `char` or `varchar` of this collation.
    pub(crate) fn from_collation([a, b, c, d, sort]: [u8; 5]) -> Self {
        const UTF8: u32 = 0x0400_0000;
        let word = u32::from_le_bytes([a, b, c, d]);
        if word & UTF8 != 0 {
            Self::Utf8
        } else if match sort {
            0 => LANGUAGES_OF_1252.contains(&(word & 0x3ff)),
            sort => SORTS_OF_1252.iter().any(|&(first, last)| (first..=last).contains(&sort)),
        } {
            Self::Windows1252
        } else {
            Self::Ascii
        }
    }
}

/// What code page 1252 has from 0x80 to 0x9f; what it leaves open is the control character of that number.
const FROM_80: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Appends bytes of a code page as UTF-8.
pub(crate) fn put_utf8(out: &mut Vec<u8>, bytes: &[u8], encoding: Encoding) -> Result<()> {
    for &byte in bytes {
        match byte {
            0..0x80 => out.push(byte),
            _ if encoding != Encoding::Windows1252 => return Err(unknown_code_page()),
            _ => {
                let found = if byte < 0xa0 { FROM_80[usize::from(byte & 0x1f)] } else { char::from(byte) };
                out.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    Ok(())
}

/// Appends a text as bytes of a code page.
pub(crate) fn put_bytes(out: &mut Vec<u8>, text: &str, encoding: Encoding) -> Result<()> {
    if encoding == Encoding::Utf8 || text.is_ascii() {
        out.extend_from_slice(text.as_bytes());
        return Ok(());
    }
    for found in text.chars() {
        let code = u32::from(found);
        let byte = match (code, encoding) {
            (0..0x80, _) | (0xa0..0x100, Encoding::Windows1252) => Some(code as u8),
            (_, Encoding::Windows1252) => {
                FROM_80.iter().position(|&other| other == found).map(|at| at as u8 + 0x80)
            }
            _ => None,
        };
        out.push(byte.ok_or_else(|| {
            Error::new(
                ErrorClass::Statement,
                format!("the column's code page, as supported by Kelvin, does not contain {found:?}"),
            )
            .with_help("make the column nvarchar, or give it a collation whose name ends in _UTF8")
        })?);
    }
    Ok(())
}

#[cold]
fn unknown_code_page() -> Error {
    Error::new(
        ErrorClass::Statement,
        "a string is in a code page that Kelvin does not support (it supports 1252 and UTF-8)",
    )
    .with_help("cast it in the statement: CAST(… AS nvarchar(4000))")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collations_have_their_code_pages() {
        for (collation, expected) in [
            // SQL_Latin1_General_CP1_CI_AS, Latin1_General_CI_AS, Latin1_General_100_CI_AS_SC_UTF8, Japanese_CI_AS,
            // SQL_Latin1_General_CP437_CI_AS.
            ([0x09, 0x04, 0xd0, 0x00, 0x34], Encoding::Windows1252),
            ([0x09, 0x04, 0xd0, 0x00, 0x00], Encoding::Windows1252),
            ([0x09, 0x04, 0xd0, 0x24, 0x00], Encoding::Utf8),
            ([0x11, 0x04, 0xd0, 0x00, 0x00], Encoding::Ascii),
            ([0x09, 0x04, 0xd0, 0x00, 0x20], Encoding::Ascii),
        ] {
            assert_eq!(Encoding::from_collation(collation), expected, "{collation:02x?}");
        }
    }

    #[test]
    fn every_byte_of_the_code_page_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        let (mut text, mut back) = (Vec::new(), Vec::new());
        put_utf8(&mut text, &all, Encoding::Windows1252).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("€") && text.ends_with("ýþÿ"));
        put_bytes(&mut back, &text, Encoding::Windows1252).unwrap();
        assert_eq!(back, all);
        assert!(put_utf8(&mut Vec::new(), &[0x80], Encoding::Ascii).is_err());
        assert!(put_bytes(&mut Vec::new(), "Ω", Encoding::Windows1252).is_err());
    }
}
