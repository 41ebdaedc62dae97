//! Tcl's syntax: commands, words, and the substitutions in a word.

use super::{Fault, Position};

/// A command: its words, before substitution.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Command {
    pub(super) line: u32,
    pub(super) words: Vec<Word>,
}

/// A word.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    /// The line on which it starts, which is the first line of a script in the word.
    pub(super) line: u32,
    /// Whether it has the prefix `{*}`.
    pub(super) expanded: bool,
    pub(super) parts: Vec<WordPart>,
}

/// A piece of a word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum WordPart {
    Text(String),
    /// `$name`, `${name}` or `$name(index)`.
    Variable(String, Option<Vec<WordPart>>),
    /// `[script]`.
    Script(Vec<Command>),
}

/// Greatest nesting depth of brackets and indexes: more than any script needs, and few enough for the stack.
const DEEPEST: u32 = 100;

/// The kinds of substitution that `subst` performs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Substitution {
    pub(super) commands: bool,
    pub(super) variables: bool,
    pub(super) backslashes: bool,
}

/// Parses a script whose first line has the number `line`.
pub(super) fn script(text: &str, line: u32) -> Result<Vec<Command>, Fault> {
    let mut reader = Reader::new(text, line);
    let commands = reader.commands(false)?;
    Ok(commands)
}

/// Parses text with the given kinds of substitution, for `subst` and for strings in expressions.
pub(super) fn text(text: &str, line: u32, substitution: Substitution) -> Result<Vec<WordPart>, Fault> {
    let mut reader = Reader::new(text, line);
    reader.parts(|_| false, substitution)
}

/// A cursor over characters that counts lines.
pub(super) struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    pub(super) line: u32,
    depth: u32,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, line: u32) -> Self {
        Self { rest: text.chars().peekable(), line, depth: 0 }
    }

    pub(super) fn peek(&mut self) -> Option<char> {
        self.rest.peek().copied()
    }

    /// The character after the next.
    pub(super) fn second(&self) -> Option<char> {
        let mut ahead = self.rest.clone();
        ahead.next();
        ahead.next()
    }

    /// The character after the next two.
    pub(super) fn third(&self) -> Option<char> {
        self.rest.clone().nth(2)
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let found = self.rest.next();
        if found == Some('\n') {
            self.line += 1;
        }
        found
    }

    pub(super) fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.next();
        }
        found
    }

    fn fault(&self, message: &str) -> Fault {
        Fault::at_position(Position::line(self.line), message)
    }

    fn increase_depth(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > DEEPEST { Err(self.fault("brackets are nested too deeply")) } else { Ok(()) }
    }

    /// Commands up to the end, or up to the bracket that closes a command substitution.
    fn commands(&mut self, bracketed: bool) -> Result<Vec<Command>, Fault> {
        let opened = self.line;
        let mut commands = Vec::new();
        loop {
            while self.peek().is_some_and(|found| found.is_whitespace() || found == ';')
                || self.at_continuation()
            {
                self.next();
            }
            match self.peek() {
                None if bracketed => {
                    return Err(Fault::at_position(Position::line(opened), "a bracket [ is never closed"));
                }
                None => return Ok(commands),
                Some(']') if bracketed => {
                    self.next();
                    return Ok(commands);
                }
                Some('#') => self.skip_comment(),
                Some(_) => commands.push(self.command(bracketed)?),
            }
        }
    }

    /// Consumes the backslash of a line continuation if one is next; returns whether it did.
    fn at_continuation(&mut self) -> bool {
        self.peek() == Some('\\') && self.second() == Some('\n') && self.next().is_some()
    }

    fn skip_comment(&mut self) {
        while let Some(found) = self.next() {
            match found {
                '\n' => return,
                '\\' => {
                    self.next();
                }
                _ => {}
            }
        }
    }

    fn command(&mut self, bracketed: bool) -> Result<Command, Fault> {
        let line = self.line;
        let mut words = Vec::new();
        loop {
            while self.peek().is_some_and(|found| found.is_whitespace() && found != '\n')
                || self.at_continuation()
            {
                self.next();
            }
            match self.peek() {
                None => break,
                Some('\n' | ';') => {
                    self.next();
                    break;
                }
                Some(']') if bracketed => break,
                Some(_) => words.push(self.word(bracketed)?),
            }
        }
        Ok(Command { line, words })
    }

    fn word(&mut self, bracketed: bool) -> Result<Word, Fault> {
        let expanded = self.take_expansion();
        let line = self.line;
        let parts = match self.peek() {
            Some('{') => vec![WordPart::Text(self.braced()?)],
            Some('"') => self.quoted()?,
            _ => self.parts(
                |next| next.is_whitespace() || next == ';' || bracketed && next == ']',
                Substitution { commands: true, variables: true, backslashes: true },
            )?,
        };
        let ended = match self.peek() {
            None => true,
            Some(next) => next.is_whitespace() || next == ';' || bracketed && next == ']',
        };
        if !ended && !self.at_line_end_backslash() {
            return Err(self.fault("characters follow the end of a word in braces or quotes"));
        }
        Ok(Word { line, expanded, parts })
    }

    fn at_line_end_backslash(&mut self) -> bool {
        self.peek() == Some('\\') && self.second() == Some('\n')
    }

    /// Consumes `{*}` directly before another word.
    fn take_expansion(&mut self) -> bool {
        let mut ahead = self.rest.clone();
        let is = ahead.next() == Some('{')
            && ahead.next() == Some('*')
            && ahead.next() == Some('}')
            && ahead.next().is_some_and(|next| !next.is_whitespace() && next != ';' && next != ']');
        if is {
            for _ in 0..3 {
                self.next();
            }
        }
        is
    }

    /// The text between braces. Only line continuations are replaced in it.
    pub(super) fn braced(&mut self) -> Result<String, Fault> {
        let opened = self.line;
        self.next();
        let (mut text, mut depth) = (String::new(), 1);
        loop {
            match self.next() {
                None => return Err(Fault::at_position(Position::line(opened), "a brace { is never closed")),
                Some('\\') if self.peek() == Some('\n') => {
                    self.skip_continuation();
                    text.push(' ');
                }
                Some('\\') => {
                    text.push('\\');
                    text.extend(self.next());
                }
                Some('{') => {
                    depth += 1;
                    text.push('{');
                }
                Some('}') if depth == 1 => return Ok(text),
                Some('}') => {
                    depth -= 1;
                    text.push('}');
                }
                Some(other) => text.push(other),
            }
        }
    }

    /// Skips, after a backslash, the line break and the white space at the start of the next line.
    fn skip_continuation(&mut self) {
        self.next();
        while self.peek().is_some_and(|next| next == ' ' || next == '\t') {
            self.next();
        }
    }

    /// The parts of a text in quotation marks.
    pub(super) fn quoted(&mut self) -> Result<Vec<WordPart>, Fault> {
        let opened = self.line;
        self.next();
        let all = Substitution { commands: true, variables: true, backslashes: true };
        let parts = self.parts(|next| next == '"', all)?;
        if self.next() != Some('"') {
            return Err(Fault::at_position(Position::line(opened), "a quotation mark is never closed"));
        }
        Ok(parts)
    }

    fn parts(&mut self, ends: impl Fn(char) -> bool, how: Substitution) -> Result<Vec<WordPart>, Fault> {
        let (mut parts, mut text) = (Vec::new(), String::new());
        while let Some(next) = self.peek() {
            if ends(next) {
                break;
            }
            match next {
                '\\' if how.backslashes => {
                    if self.second() == Some('\n') && ends(' ') {
                        break;
                    }
                    self.next();
                    self.escape(&mut text)?;
                }
                '$' if how.variables && self.names_variable() => {
                    self.next();
                    let variable = self.variable()?;
                    push_text(&mut parts, &mut text);
                    parts.push(variable);
                }
                '[' if how.commands => {
                    self.next();
                    self.increase_depth()?;
                    let commands = self.commands(true)?;
                    self.depth -= 1;
                    push_text(&mut parts, &mut text);
                    parts.push(WordPart::Script(commands));
                }
                other => {
                    text.push(other);
                    self.next();
                }
            }
        }
        push_text(&mut parts, &mut text);
        Ok(parts)
    }

    /// Whether a variable name follows the dollar sign; otherwise the sign is literal.
    pub(super) fn names_variable(&self) -> bool {
        self.second().is_some_and(|next| is_name(next) || next == '{' || next == ':')
    }

    /// Parses the variable after a dollar sign.
    pub(super) fn variable(&mut self) -> Result<WordPart, Fault> {
        if self.peek() == Some('{') {
            return Ok(WordPart::Variable(self.braced()?, None));
        }
        let mut name = String::new();
        while let Some(next) = self.peek() {
            if is_name(next) {
                name.push(next);
                self.next();
            } else if next == ':' && self.second() == Some(':') {
                name.push_str("::");
                self.next();
                self.next();
            } else {
                break;
            }
        }
        if self.take('(') {
            self.increase_depth()?;
            let all = Substitution { commands: true, variables: true, backslashes: true };
            let index = self.parts(|next| next == ')', all)?;
            self.depth -= 1;
            if self.next() != Some(')') {
                return Err(self.fault("the parenthesis of an array's index is never closed"));
            }
            return Ok(WordPart::Variable(name, Some(index)));
        }
        Ok(WordPart::Variable(name, None))
    }

    /// Parses a script in brackets, after the opening one.
    pub(super) fn bracketed(&mut self) -> Result<Vec<Command>, Fault> {
        self.commands(true)
    }

    /// Parses the character after a backslash.
    fn escape(&mut self, text: &mut String) -> Result<(), Fault> {
        match self.next() {
            None => text.push('\\'),
            Some('\n') => {
                while self.peek().is_some_and(|next| next == ' ' || next == '\t') {
                    self.next();
                }
                text.push(' ');
            }
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('a') => text.push('\u{7}'),
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('v') => text.push('\u{b}'),
            Some('x') => self.code(text, 'x', 16, 2)?,
            Some('u') => self.code(text, 'u', 16, 4)?,
            Some(digit @ '0'..='7') => {
                let mut code = digit.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = self.peek().and_then(|next| next.to_digit(8)) else { break };
                    code = code * 8 + digit;
                    self.next();
                }
                text.extend(char::from_u32(code));
            }
            Some(other) => text.push(other),
        }
        Ok(())
    }

    fn code(&mut self, text: &mut String, letter: char, radix: u32, longest: usize) -> Result<(), Fault> {
        let (mut code, mut digits) = (0, 0);
        while digits < longest {
            let Some(digit) = self.peek().and_then(|next| next.to_digit(radix)) else { break };
            code = code * radix + digit;
            digits += 1;
            self.next();
        }
        if digits == 0 {
            text.push(letter);
        } else {
            text.push(char::from_u32(code).ok_or_else(|| self.fault("an escape names no character"))?);
        }
        Ok(())
    }
}

fn push_text(parts: &mut Vec<WordPart>, text: &mut String) {
    if !text.is_empty() {
        parts.push(WordPart::Text(std::mem::take(text)));
    }
}

fn is_name(found: char) -> bool {
    found.is_ascii_alphanumeric() || found == '_'
}
