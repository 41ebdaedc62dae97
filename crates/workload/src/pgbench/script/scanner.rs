//! Finds the end of an SQL statement by psql's rules.

/// What ends a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Semicolon,
    /// A meta command starts at the position; it is not consumed.
    Backslash,
    File,
}

/// A statement as it is sent: without its terminator, and with `\;` and `\:` resolved.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) text: String,
    /// Its offset in the file.
    pub(super) start: usize,
    /// Ranges of `text` in quotes or comments.
    pub(super) quoted: Vec<(usize, usize)>,
    pub(super) end: End,
}

pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

/// Recognises the BEGIN … END body of a routine in standard SQL, in which semicolons do not end the
/// statement.
#[derive(Default)]
struct Body {
    words: Vec<String>,
    depth: usize,
}

impl Body {
    fn word(&mut self, word: &str, parentheses: usize) {
        let word = word.to_ascii_lowercase();
        if parentheses == 0 && self.creates_routine() {
            match word.as_str() {
                "begin" => self.depth += 1,
                // CASE also ends with END, and matters only inside a body.
                "case" if self.depth > 0 => self.depth += 1,
                "end" => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        if self.words.len() < 4 {
            self.words.push(word);
        }
    }

    fn creates_routine(&self) -> bool {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        matches!(
            words.as_slice(),
            ["create", "function" | "procedure", ..]
                | ["create", "or", "replace", "function" | "procedure", ..]
        )
    }
}

impl Scanner<'_> {
    /// The next statement; its text is empty if nothing precedes its end. An error has the position of an
    /// unterminated quote or comment.
    pub(super) fn statement(&mut self) -> Result<Statement, (usize, &'static str)> {
        let mut out = String::new();
        let mut quoted = Vec::new();
        let mut body = Body::default();
        let mut parentheses = 0_usize;
        self.skip_blank();
        let start = self.at;
        let end = loop {
            let rest = &self.text[self.at..];
            let bytes = rest.as_bytes();
            let Some(&byte) = bytes.first() else { break End::File };
            match byte {
                b';' if parentheses == 0 && body.depth == 0 => {
                    self.at += 1;
                    break End::Semicolon;
                }
                b'\\' => match bytes.get(1) {
                    Some(b';' | b':') => {
                        self.at += 2;
                        if bytes[1] == b':' {
                            // A colon that does not start a variable.
                            quoted.push((out.len(), out.len() + 1));
                        }
                        out.push(bytes[1] as char);
                    }
                    _ => break End::Backslash,
                },
                _ => {
                    let (length, opaque) = self.piece(out.as_bytes().last().copied())?;
                    if opaque {
                        quoted.push((out.len(), out.len() + length));
                    } else if byte == b'(' {
                        parentheses += 1;
                    } else if byte == b')' {
                        parentheses = parentheses.saturating_sub(1);
                    } else if byte.is_ascii_alphabetic() || byte == b'_' {
                        body.word(&rest[..length], parentheses);
                    }
                    out.push_str(&rest[..length]);
                    self.at += length;
                }
            }
        };
        out.truncate(out.trim_end().len());
        Ok(Statement { text: out, start, quoted, end })
    }

    /// White space and comments before a statement are not sent.
    fn skip_blank(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("--") {
                return;
            }
            self.at += trimmed.find('\n').map_or(trimmed.len(), |newline| newline + 1);
        }
    }

    /// The length of the token at this position, and whether it is a quote or comment. `before` is the
    /// preceding byte.
    fn piece(&self, before: Option<u8>) -> Result<(usize, bool), (usize, &'static str)> {
        let rest = &self.text[self.at..];
        let bytes = rest.as_bytes();
        let unfinished = |what| (self.at, what);
        let opaque = |length| Ok((length, true));
        match bytes {
            [b'-', b'-', ..] => opaque(rest.find('\n').unwrap_or(rest.len())),
            [b'/', b'*', ..] => opaque(comment(bytes).ok_or_else(|| unfinished("unterminated comment"))?),
            [b'\'', ..] => opaque(quote(bytes, 0, false).ok_or_else(|| unfinished("unterminated string"))?),
            [b'e' | b'E', b'\'', ..] if !before.is_some_and(is_identifier) => {
                opaque(quote(bytes, 1, true).ok_or_else(|| unfinished("unterminated string"))?)
            }
            [b'"', ..] => {
                opaque(quote(bytes, 0, false).ok_or_else(|| unfinished("unterminated quoted identifier"))?)
            }
            [b'$', ..] if !before.is_some_and(is_identifier) => match dollar_tag(rest) {
                Some(tag) => match rest[tag.len()..].find(tag) {
                    Some(end) => opaque(end + 2 * tag.len()),
                    None => Err(unfinished("unterminated dollar-quoted string")),
                },
                None => Ok((1, false)),
            },
            [first, ..] if is_identifier(*first) => {
                Ok((bytes.iter().position(|&b| !is_identifier(b) && b != b'$').unwrap_or(bytes.len()), false))
            }
            _ => Ok((1, false)),
        }
    }
}

fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The length of a comment, including nested comments.
fn comment(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        match bytes.get(at..)? {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return Some(at);
                }
            }
            [] => return None,
            _ => at += 1,
        }
    }
}

/// The length of a string or identifier whose quote is at `open`. A doubled quote ends it and starts it
/// again.
fn quote(bytes: &[u8], open: usize, backslashes: bool) -> Option<usize> {
    let mark = bytes[open];
    let mut at = open + 1;
    loop {
        match *bytes.get(at)? {
            b'\\' if backslashes => at += 2,
            byte if byte == mark => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// `$tag$` at the start of `text`.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = 1 + text[1..].find('$')?;
    let tag = &text[1..end];
    let well_formed = tag.bytes().all(is_identifier) && !tag.starts_with(|c: char| c.is_ascii_digit());
    well_formed.then(|| &text[..=end])
}
