//! The line of a meta command as text.

/// A word and its position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Located<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

/// A meta command: its name without the backslash, and the rest of the line.
pub(super) struct Line<'a> {
    pub(super) name: Located<'a>,
    /// Where the arguments start.
    pub(super) rest: usize,
    /// Where the line ends, including its continuation lines.
    pub(super) end: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    /// The command whose backslash is at `at`.
    pub(super) fn read(text: &'a str, at: usize) -> Self {
        let bytes = text.as_bytes();
        let name_end =
            bytes[at + 1..].iter().position(u8::is_ascii_whitespace).map_or(bytes.len(), |n| at + 1 + n);
        let mut end = name_end;
        loop {
            end = bytes[end..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |n| end + n);
            let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
            if end < bytes.len() && line.ends_with(b"\\") && line.len() > name_end {
                end += 1;
            } else {
                break;
            }
        }
        Self { name: Located { text: &text[at + 1..name_end], at }, rest: name_end, end, text }
    }

    /// The words after `from`; a backslash at the end of a line separates words like a space.
    pub(super) fn words(&self, from: usize) -> Vec<Located<'a>> {
        let bytes = self.text.as_bytes();
        let mut words = Vec::new();
        let mut at = from;
        let continues =
            |at: usize| matches!(bytes.get(at..), Some([b'\\', b'\n', ..] | [b'\\', b'\r', b'\n', ..]));
        while at < self.end {
            if bytes[at].is_ascii_whitespace() || continues(at) {
                at += 1;
                continue;
            }
            let start = at;
            while at < self.end && !bytes[at].is_ascii_whitespace() && !continues(at) {
                at += 1;
            }
            words.push(Located { text: &self.text[start..at], at: start });
        }
        words
    }

    /// The text from `from` to the end of the line.
    pub(super) fn text_from(&self, from: usize) -> &'a str {
        &self.text[from.min(self.end)..self.end]
    }
}
