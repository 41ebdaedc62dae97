//! `buffer_pattern=` and `verify_pattern=`: bytes written as numbers, strings, files, in any order.

use std::io::Read as _;
use std::path::Path;

use crate::job::{Piece, Pieces};

/// The longest pattern.
const LONGEST: usize = 65_536;

/// Bytes without places for the offset.
pub(crate) fn fixed(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for piece in pieces(text)?.0 {
        match piece {
            Piece::Bytes(bytes) => out.extend(bytes),
            Piece::Offset => {
                return Err("%o, the offset of a block, is allowed only in verify_pattern".into());
            }
        }
    }
    Ok(out)
}

/// Bytes and places for the offset.
pub(crate) fn pieces(text: &str) -> Result<Pieces, String> {
    let mut out: Vec<Piece> = Vec::new();
    let mut rest = text;
    let mut length = 0;
    while !rest.is_empty() {
        let (piece, behind) = next(rest)?;
        rest = behind;
        match (piece, out.last_mut()) {
            (Piece::Bytes(more), Some(Piece::Bytes(bytes))) => {
                length += more.len();
                bytes.extend(more);
            }
            (Piece::Bytes(bytes), _) => {
                length += bytes.len();
                out.push(Piece::Bytes(bytes));
            }
            (Piece::Offset, _) => {
                length += 8;
                out.push(Piece::Offset);
            }
        }
        if length > LONGEST {
            return Err(format!("the pattern is longer than {LONGEST} bytes"));
        }
    }
    if length == 0 {
        return Err("the pattern is empty".into());
    }
    Ok(Pieces(out))
}

fn next(text: &str) -> Result<(Piece, &str), String> {
    let quoted = |quote: char| -> Result<(&str, &str), String> {
        text[1..].split_once(quote).ok_or_else(|| format!("the closing {quote} is missing in the pattern"))
    };
    if text.starts_with('"') {
        let (inside, behind) = quoted('"')?;
        return Ok((Piece::Bytes(inside.into()), behind));
    }
    if text.starts_with('\'') {
        let (inside, behind) = quoted('\'')?;
        return Ok((Piece::Bytes(contents(Path::new(inside))?), behind));
    }
    if let Some(behind) = text.strip_prefix("%o") {
        return Ok((Piece::Offset, behind));
    }
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = digits.find(|digit: char| !digit.is_ascii_hexdigit()).unwrap_or(digits.len());
        let end = before_prefix(digits, end);
        return Ok((Piece::Bytes(hexadecimal(&digits[..end])?), &digits[end..]));
    }
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let end = unsigned.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(unsigned.len());
    if end == 0 {
        return Err(format!(
            "{text:?} is not a pattern: use 0x and hexadecimal digits, a number, \"text\", 'a file' or %o"
        ));
    }
    let end = end + text.len() - unsigned.len();
    let end = before_prefix(text, end);
    Ok((Piece::Bytes(decimal(&text[..end])?), &text[end..]))
}

/// Where digits end that stop at `end`: as fio, the 0 of a `0x` behind them belongs to the next number (`-120xface` is -12
/// and 0xface). A number that is nothing but this 0 stays one.
fn before_prefix(text: &str, end: usize) -> usize {
    let prefix = text[end..].starts_with(['x', 'X']) && text[..end].ends_with('0');
    if prefix && end > 1 { end - 1 } else { end }
}

/// Digits in the order of the bytes; of an odd number the first digit is a separate byte.
fn hexadecimal(digits: &str) -> Result<Vec<u8>, String> {
    if digits.is_empty() {
        return Err("digits are missing after 0x".into());
    }
    let padded = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
    let pairs = padded.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| {
        let pair = std::str::from_utf8(pair).unwrap_or_default();
        u8::from_str_radix(pair, 16)
    });
    bytes.collect::<Result<_, _>>().map_err(|_| format!("0x{digits} is not hexadecimal"))
}

/// A number of up to 32 bits, little-endian, without the zero bytes above it.
fn decimal(text: &str) -> Result<Vec<u8>, String> {
    let number = text
        .parse::<i64>()
        .ok()
        .filter(|number| (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(number));
    let number = number.ok_or_else(|| format!("{text} does not fit into 32 bits: write it as 0x…"))?;
    let mut bytes = (number as u32).to_le_bytes().to_vec();
    while bytes.len() > 1 && bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok(bytes)
}

fn contents(path: &Path) -> Result<Vec<u8>, String> {
    let problem = |cause: std::io::Error| format!("the pattern file {}: {cause}", path.display());
    // Not a pipe or a device, whose reading might never end.
    if !std::fs::metadata(path).map_err(problem)?.is_file() {
        return Err(format!("the pattern file {} is not a regular file", path.display()));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(problem)?;
    file.take(LONGEST as u64).read_to_end(&mut bytes).map_err(problem)?;
    if bytes.is_empty() {
        return Err(format!("the pattern file {} is empty", path.display()));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// fio 3.33 writes these bytes.
    #[test]
    fn trial_c7_a_number_ends_where_the_next_begins() {
        let bytes = fixed("\"abcd\"-120xdeadface").unwrap();
        assert_eq!(bytes, [b'a', b'b', b'c', b'd', 0xf4, 0xff, 0xff, 0xff, 0xde, 0xad, 0xfa, 0xce]);
    }

    #[test]
    fn patterns_are_put_together() {
        assert_eq!(fixed("0xdeadface").unwrap(), [0xde, 0xad, 0xfa, 0xce]);
        assert_eq!(fixed("0xabc").unwrap(), [0x0a, 0xbc]);
        assert_eq!(fixed("\"abcd\"-12").unwrap(), [b'a', b'b', b'c', b'd', 0xf4, 0xff, 0xff, 0xff]);
        assert_eq!(fixed("258").unwrap(), [2, 1]);
        assert_eq!(fixed("0xff0x14").unwrap(), [0xff, 0x14]);
        assert_eq!(fixed("0").unwrap(), [0]);
        let mixed = pieces("0xff%o\"ab\"").unwrap();
        assert_eq!(mixed.0, [Piece::Bytes(vec![0xff]), Piece::Offset, Piece::Bytes(b"ab".to_vec())]);
        for wrong in ["", "abc", "\"abc", "0x", "%x", "\"\"", "99999999999", "'/dev/zero'", "'/nowhere'"] {
            assert!(pieces(wrong).is_err(), "{wrong}");
        }
        assert!(fixed("%o").is_err());
    }
}
