//! The statements of a session, and calls of procedures among them.

use super::encode::Wire;
use super::wire::{put_short_text, put_utf16, units};
use crate::{Error, Result, TransactionControl};

/// How a statement is executed.
#[derive(Debug)]
pub(crate) enum Form {
    /// The beginning or the end of a transaction.
    Control,
    /// A procedure, called by its name.
    Call(Call),
    /// By the handle that the server gave it at its first execution.
    Handle { sql: String, declared: Declared, handle: Option<i32> },
    /// As text, which the server parses each time.
    Text { sql: String, declared: Declared },
}

/// A statement of the session.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) form: Form,
    /// How many parameters it needs at least.
    pub(crate) parameters: usize,
    /// Its rows are skipped.
    pub(crate) ignores_rows: bool,
}

impl Prepared {
    /// What every session has first, in the order of [`crate::TransactionControl`].
    pub(crate) fn controls() -> Vec<Self> {
        [(); 4].map(|()| Self { form: Form::Control, parameters: 0, ignores_rows: false }).into()
    }
}

/// The beginning or the end of a transaction that a statement of somebody else's is, and nothing more. The server would
/// refuse it as a prepared statement; `BEGIN` and `END` alone are pgbench's words.
pub(crate) fn control_of_text(sql: &str) -> Option<TransactionControl> {
    let mut words = sql.trim().trim_end_matches(';').split_whitespace();
    let first = words.next()?.to_ascii_uppercase();
    let second = words.next().map(str::to_ascii_uppercase);
    if words.next().is_some() {
        return None;
    }
    match (first.as_str(), second.as_deref()) {
        ("BEGIN", None | Some("TRAN" | "TRANSACTION")) => Some(TransactionControl::Begin),
        ("COMMIT", None | Some("TRAN" | "TRANSACTION" | "WORK")) | ("END", None) => {
            Some(TransactionControl::Commit)
        }
        ("ROLLBACK", None | Some("TRAN" | "TRANSACTION" | "WORK")) => Some(TransactionControl::Rollback),
        _ => None,
    }
}

/// The types of a statement's parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    /// As the server wants them; otherwise as they were first given.
    pub(crate) known: Option<Vec<Known>>,
    pub(crate) given: Vec<Wire>,
}

/// A type that the server wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) name: String,
    /// The most characters of a text; the server would cut what is longer.
    pub(crate) longest: Option<usize>,
}

impl Known {
    pub(crate) fn new(name: &str) -> Self {
        let longest = ["char(", "varchar(", "nchar(", "nvarchar("]
            .iter()
            .find_map(|word| name.strip_prefix(word)?.strip_suffix(')')?.parse().ok());
        Self { name: name.to_owned(), longest }
    }
}

impl Declared {
    /// The declaration of all, such as "@P1 bigint,@P2 nvarchar(4000)".
    pub(crate) fn text(&self) -> String {
        let declare = |(at, name): (usize, String)| format!("@P{} {name}", at + 1);
        let all: Vec<String> = match &self.known {
            Some(known) => known.iter().map(|known| known.name.clone()).enumerate().map(declare).collect(),
            None => self.given.iter().map(|wire| wire.declared()).enumerate().map(declare).collect(),
        };
        all.join(",")
    }
}

/// What an argument of a call is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// This parameter.
    One(usize),
    /// A table, of an array for each column; with schema and name of its type, once they are known.
    Table { columns: Vec<usize>, of: (String, String) },
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Argument {
    /// With its `@`; empty where arguments are given in order.
    pub(crate) name: String,
    pub(crate) source: Source,
    /// The type of a value that comes back, where it does.
    pub(crate) output: Option<Wire>,
    /// Name and status as they are sent.
    pub(crate) head: Vec<u8>,
}

/// A call of a procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// As it was written.
    pub(crate) name: String,
    pub(crate) arguments: Vec<Argument>,
    /// Name and options as they are sent.
    pub(crate) head: Vec<u8>,
}

impl Call {
    /// Reads `EXEC name [@a =] $1 [OUTPUT], @b = ($2, $3)`. `None` for any other statement, and for one whose arguments are
    /// not all parameters: these run as text.
    pub(crate) fn parse(sql: &str) -> Result<Option<Self>> {
        let mut reader = Reader(sql);
        let Some(()) = reader.word("EXECUTE").or_else(|| reader.word("EXEC")) else { return Ok(None) };
        let Some(found) = call(&mut reader) else { return Ok(None) };
        let mut call = Self { head: Vec::new(), ..found };
        let count = u16::try_from(units(&call.name))
            .map_err(|_| Error::usage("the name of the procedure is too long"))?;
        call.head.extend_from_slice(&count.to_le_bytes());
        put_utf16(&mut call.head, &call.name);
        // No options.
        call.head.extend_from_slice(&[0, 0]);
        for argument in &mut call.arguments {
            put_short_text(&mut argument.head, &argument.name)?;
            argument.head.push(if argument.output.is_some() { super::encode::OUTPUT } else { 0 });
        }
        Ok(Some(call))
    }

    /// How many parameters it needs.
    pub(crate) fn parameters(&self) -> usize {
        let last = |argument: &Argument| match &argument.source {
            Source::One(at) => at + 1,
            Source::Table { columns, .. } => columns.iter().max().map_or(0, |at| at + 1),
        };
        self.arguments.iter().map(last).max().unwrap_or(0)
    }

    /// Values that come back.
    pub(crate) fn outputs(&self) -> usize {
        self.arguments.iter().filter(|argument| argument.output.is_some()).count()
    }

    /// Whether the types of its arguments have to be asked for.
    pub(crate) fn needs_types(&self) -> bool {
        self.outputs() > 0
            || self.arguments.iter().any(|argument| matches!(argument.source, Source::Table { .. }))
    }
}

fn call(reader: &mut Reader<'_>) -> Option<Call> {
    let name = reader.name()?;
    let mut arguments = Vec::new();
    while !reader.at_end() {
        if !arguments.is_empty() {
            reader.sign(',')?;
        }
        arguments.push(argument(reader)?);
    }
    Some(Call { name, arguments, head: Vec::new() })
}

fn argument(reader: &mut Reader<'_>) -> Option<Argument> {
    let name = reader.variable().unwrap_or_default();
    if !name.is_empty() {
        reader.sign('=')?;
    }
    let source = if reader.sign('(').is_some() {
        let mut columns = vec![reader.parameter()?];
        while reader.sign(',').is_some() {
            columns.push(reader.parameter()?);
        }
        reader.sign(')')?;
        Source::Table { columns, of: Default::default() }
    } else {
        Source::One(reader.parameter()?)
    };
    let output = reader.word("OUTPUT").or_else(|| reader.word("OUT")).map(|()| Wire::Text);
    Some(Argument { name, source, output, head: Vec::new() })
}

/// What is left of a statement.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn skip_space(&mut self) {
        self.0 = self.0.trim_start();
    }

    fn at_end(&mut self) -> bool {
        self.skip_space();
        self.0.trim_start_matches(';').trim().is_empty()
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.skip_space();
        let (found, rest) = self.0.split_at_checked(word.len())?;
        let ends = !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
        (found.eq_ignore_ascii_case(word) && ends).then(|| self.0 = rest)
    }

    fn sign(&mut self, sign: char) -> Option<()> {
        self.skip_space();
        self.0 = self.0.strip_prefix(sign)?;
        Some(())
    }

    /// `$1`, from 0.
    fn parameter(&mut self) -> Option<usize> {
        self.skip_space();
        let rest = self.0.strip_prefix('$')?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = rest[..digits].parse().ok()?;
        self.0 = &rest[digits..];
        number.checked_sub(1).filter(|&at| at < 2100)
    }

    /// `@name`.
    fn variable(&mut self) -> Option<String> {
        self.skip_space();
        let rest = self.0.strip_prefix('@')?;
        let end = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
        let (name, after) = (&self.0[..=end], &rest[end..]);
        let name = (end > 0).then(|| name.to_owned())?;
        self.0 = after;
        Some(name)
    }

    /// A name, perhaps with a schema before it and in brackets.
    fn name(&mut self) -> Option<String> {
        self.skip_space();
        let mut length = 0;
        loop {
            let rest = &self.0[length..];
            length += if rest.starts_with('[') {
                rest.find(']')? + 1
            } else {
                rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len())
            };
            if !self.0[length..].starts_with('.') {
                break;
            }
            length += 1;
        }
        let (name, rest) = self.0.split_at(length);
        let ends = rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r', ';']);
        (ends && !name.is_empty()).then(|| {
            self.0 = rest;
            name.to_owned()
        })
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '#' | '@' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_distinguished_from_other_statements() {
        let call = Call::parse("exec dbo.[new order] @w = $1, @lines=($3,$4), @total = $2 OUTPUT ;")
            .unwrap()
            .unwrap();
        assert_eq!((call.name.as_str(), call.parameters(), call.outputs()), ("dbo.[new order]", 4, 1));
        let names: Vec<&str> = call.arguments.iter().map(|argument| argument.name.as_str()).collect();
        assert_eq!(names, ["@w", "@lines", "@total"]);
        assert_eq!(call.arguments[1].source, Source::Table { columns: vec![2, 3], of: Default::default() });
        assert!(call.needs_types());
        let call = Call::parse("EXECUTE payment $2, $1").unwrap().unwrap();
        assert_eq!(call.arguments[0].source, Source::One(1));
        assert!(!call.needs_types() && call.head.starts_with(&[7, 0, b'p', 0]));
        assert_eq!(Call::parse("EXEC sp_updatestats").unwrap().unwrap().arguments, []);
        for other in [
            "SELECT 1",
            "EXEC p 1",
            "EXEC p @a = N'x'",
            "EXEC @r = p $1",
            "EXEC ('SELECT 1')",
            "EXEC p $1; SELECT 1",
            "EXECUTED p",
            "EXEC p @ = $1",
            "EXEC",
            "EXEC [p",
        ] {
            assert!(Call::parse(other).unwrap().is_none(), "{other}");
        }
    }

    #[test]
    fn ends_of_transactions_are_distinguished_from_statements() {
        for (sql, expected) in [
            ("begin tran;", Some(TransactionControl::Begin)),
            ("BEGIN", Some(TransactionControl::Begin)),
            (" END ;", Some(TransactionControl::Commit)),
            ("commit work", Some(TransactionControl::Commit)),
            ("ROLLBACK TRANSACTION", Some(TransactionControl::Rollback)),
            ("ROLLBACK TRAN savepoint", None),
            ("BEGIN TRAN; SELECT 1", None),
            ("", None),
        ] {
            assert_eq!(control_of_text(sql), expected, "{sql}");
        }
    }

    #[test]
    fn types_are_declared_in_order_and_texts_have_a_limit() {
        let known = |name: &str| Known::new(name);
        assert_eq!(known("varchar(16)").longest, Some(16));
        assert_eq!((known("nvarchar(max)").longest, known("int").longest), (None, None));
        let declared = Declared { known: Some(vec![known("int"), known("char(2)")]), given: Vec::new() };
        assert_eq!(declared.text(), "@P1 int,@P2 char(2)");
        let given = vec![Wire::Int, Wire::Decimal { precision: 19, scale: 2 }, Wire::LongText];
        assert_eq!(Declared { known: None, given }.text(), "@P1 bigint,@P2 decimal(19,2),@P3 nvarchar(max)");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(sql in "(EXEC )?[a-z\\[\\]@$=(),. 0-9é;]{0,20}") {
            let _ = Call::parse(&sql);
        }
    }
}
