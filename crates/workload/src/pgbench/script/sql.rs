//! An SQL statement with its variables.

use crate::pgbench::expression::{Names, is_name};

/// Maximum number of parameters of a statement, as in pgbench.
const MOST_PARAMETERS: usize = 255;

/// Where the row of a result is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Store {
    /// Prefix of the variables' names; the column's name follows.
    pub(crate) prefix: String,
    /// `\aset`: stores the last row of every result of combined statements; a result without rows is not an
    /// error.
    pub(crate) all: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Sql {
    /// For the simple mode: the text in pieces, with variables replaced wherever they are.
    pub(crate) parts: Vec<SqlPart>,
    /// For the extended modes: the text with $1, $2, …, and the slots of these parameters.
    pub(crate) numbered: String,
    pub(crate) parameters: Vec<u32>,
    pub(crate) store: Option<Store>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SqlPart {
    Text(String),
    /// The slot, and the original text, which is kept if the variable is undefined.
    Variable(u32, String),
}

/// The length of a variable's name after a colon at the start of `text`; 0 if there is none. Names start with
/// a letter or underscore, so that times such as 12:30 are left unchanged.
pub(super) fn variable(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(&first) if is_name(first) && !first.is_ascii_digit() => {
            bytes.iter().position(|&byte| !is_name(byte)).unwrap_or(bytes.len())
        }
        _ => 0,
    }
}

impl Sql {
    /// `quoted` has the ranges of `text` in quotes or comments, in which parameters are impossible.
    pub(super) fn new(text: &str, quoted: &[(usize, usize)], names: &mut dyn Names) -> Result<Self, String> {
        let mut sql =
            Self { parts: Vec::new(), numbered: String::new(), parameters: Vec::new(), store: None };
        let mut literal = String::new();
        let mut at = 0;
        let mut quoted = quoted.iter().peekable();
        while let Some(colon) = text[at..].find(':').map(|found| at + found) {
            sql.numbered.push_str(&text[at..colon]);
            literal.push_str(&text[at..colon]);
            let length = variable(&text[colon + 1..]);
            if length == 0 {
                // All colons of a cast or slice.
                let colons = text[colon..].bytes().take_while(|&byte| byte == b':').count();
                at = colon + colons;
                sql.numbered.push_str(&text[colon..at]);
                literal.push_str(&text[colon..at]);
                continue;
            }
            at = colon + 1 + length;
            let written = &text[colon..at];
            let slot = names.slot(&written[1..]);
            if !literal.is_empty() {
                sql.parts.push(SqlPart::Text(std::mem::take(&mut literal)));
            }
            sql.parts.push(SqlPart::Variable(slot, written.to_owned()));
            while quoted.next_if(|&&(_, end)| end <= colon).is_some() {}
            if quoted.peek().is_some_and(|&&(start, _)| start <= colon) {
                sql.numbered.push_str(written);
            } else {
                sql.parameters.push(slot);
                sql.numbered.push('$');
                sql.numbered.push_str(&sql.parameters.len().to_string());
            }
        }
        sql.numbered.push_str(&text[at..]);
        literal.push_str(&text[at..]);
        if !literal.is_empty() {
            sql.parts.push(SqlPart::Text(literal));
        }
        if sql.parameters.len() > MOST_PARAMETERS {
            return Err(format!(
                "the statement has {} variables; at most {MOST_PARAMETERS} are allowed",
                sql.parameters.len()
            ));
        }
        Ok(sql)
    }
}
