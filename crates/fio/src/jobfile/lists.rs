//! Lists: of numbers and ranges, and of paths.

use std::path::PathBuf;

/// More processors or nodes than any machine has.
const MOST: u32 = 65_536;

/// `0,5,8-15`, ascending and each once.
pub(crate) fn numbers(text: &str) -> Result<Vec<u32>, String> {
    let mut out = Vec::new();
    for part in text.split([',', ':']).map(str::trim) {
        let read = |digits: &str| {
            let number = digits.trim().parse::<u32>().ok().filter(|number| *number < MOST);
            number.ok_or_else(|| format!("{part:?} is neither a number nor a range such as 8-15"))
        };
        match part.split_once('-') {
            Some((first, last)) => {
                let (first, last) = (read(first)?, read(last)?);
                if first > last {
                    return Err(format!("the range {part} ends before it starts"));
                }
                out.extend(first..=last);
            }
            None => out.push(read(part)?),
        }
    }
    out.sort_unstable();
    out.dedup();
    Ok(out)
}

/// Paths separated by colons; `\:` is a colon of a path.
pub(crate) fn paths(text: &str) -> Vec<PathBuf> {
    colons(text).into_iter().filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

fn colons(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let escaped = letter == '\\' && letters.peek() == Some(&':');
        let letter = if escaped { letters.next().unwrap_or(letter) } else { letter };
        if letter == ':' && !escaped {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_taken_apart() {
        assert_eq!(numbers("0,5,8-10,9").unwrap(), [0, 5, 8, 9, 10]);
        for wrong in ["", "a", "3-1", "1,,2", "-1", "0-99999999", "1-"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
        let expected = ["/dev/a", "/dev/dsk/foo@3,0:c", "F:\\x"].map(PathBuf::from);
        assert_eq!(paths("/dev/a:/dev/dsk/foo@3,0\\:c:F\\:\\x:"), expected);
    }
}
