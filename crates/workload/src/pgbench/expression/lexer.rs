//! Tokens of expressions.

use super::SyntaxError;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'a> {
    Integer(i64),
    /// 9223372036854775808, which is valid only after a minus sign.
    BeyondMaximum,
    Double(f64),
    Variable(&'a str),
    /// A keyword or a function name.
    Word(&'a str),
    Symbol(&'static str),
    End,
}

/// Longer symbols first.
const SYMBOLS: [&str; 20] = [
    "<=", ">=", "<>", "!=", "<<", ">>", "+", "-", "*", "/", "%", "<", ">", "=", "|", "&", "#", "~", "(", ")",
];

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

pub(crate) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token and its position.
    pub(super) fn next(&mut self) -> Result<(usize, Token<'a>), SyntaxError> {
        self.skip_space();
        let start = self.at;
        let rest = &self.text[start..];
        let Some(&first) = rest.as_bytes().first() else { return Ok((start, Token::End)) };
        let token = match first {
            b'0'..=b'9' => self.number()?,
            b'.' if rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit) => self.number()?,
            b':' => {
                self.at += 1;
                match self.name() {
                    "" => return Err(wrong(start, "a variable name must follow the colon")),
                    name => Token::Variable(name),
                }
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Token::Word(self.name()),
            b',' => {
                self.at += 1;
                Token::Symbol(",")
            }
            _ => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                Some(symbol) => {
                    self.at += symbol.len();
                    Token::Symbol(symbol)
                }
                None => return Err(wrong(start, "unexpected character")),
            },
        };
        Ok((start, token))
    }

    /// Skips white space and line continuations.
    fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at..).unwrap_or_default() {
                [b'\\', b'\n', ..] => self.at += 2,
                [b'\\', b'\r', b'\n', ..] => self.at += 3,
                [b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, ..] => self.at += 1,
                _ => return,
            }
        }
    }

    fn name(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let length = rest.bytes().position(|byte| !is_name(byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn number(&mut self) -> Result<Token<'a>, SyntaxError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = start + digits(start);
        let mut whole = true;
        if bytes.get(end) == Some(&b'.') {
            whole = false;
            end += 1;
            end += digits(end);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits((end + 1 + sign).min(bytes.len()));
            if exponent > 0 {
                whole = false;
                end += 1 + sign + exponent;
            }
        }
        self.at = end;
        let text = &self.text[start..end];
        if !whole {
            let value: f64 = text.parse().map_err(|_| wrong(start, "malformed double constant"))?;
            return if value.is_finite() {
                Ok(Token::Double(value))
            } else {
                Err(wrong(start, "double constant overflow"))
            };
        }
        if text == "9223372036854775808" {
            return Ok(Token::BeyondMaximum);
        }
        text.parse().map(Token::Integer).map_err(|_| wrong(start, "bigint constant overflow"))
    }
}

fn wrong(at: usize, message: &str) -> SyntaxError {
    SyntaxError { at, message: message.to_owned() }
}
