//! Parses a script's text into commands.

use super::command::{Command, Duration, Step, Word};
use super::meta::{Line, Located};
use super::scanner::{End, Scanner};
use super::sql::{Sql, Store, variable};
use super::{Script, ScriptError};
use crate::pgbench::expression::{self, Expression, Names};
use crate::pgbench::variables::Slots;

pub(super) fn parse(
    name: &str,
    text: &str,
    allow_shell: bool,
    slots: &mut Slots,
) -> Result<Script, ScriptError> {
    let mut parser = Parser {
        name,
        text,
        allow_shell,
        slots,
        steps: Vec::new(),
        counted: (0, 1),
        ifs: Vec::new(),
        pipeline: None,
        pipelines: false,
    };
    let mut scanner = Scanner { text, at: 0 };
    loop {
        let statement = scanner.statement().map_err(|(at, message)| parser.wrong(at, message))?;
        if !statement.text.is_empty() {
            let sql = Sql::new(&statement.text, &statement.quoted, parser.slots)
                .map_err(|message| parser.wrong(statement.start, message))?;
            let title = parser.pipeline.is_none().then(|| title(&statement.text));
            parser.push_titled(statement.start, Command::Sql(sql), title);
        }
        match statement.end {
            End::Semicolon => {}
            End::Backslash => {
                let line = Line::read(text, scanner.at);
                parser.meta(&line)?;
                scanner.at = line.end;
            }
            End::File => break,
        }
    }
    if let Some(open) = parser.ifs.last() {
        return Err(parser.wrong(open.at, "this \\if has no matching \\endif"));
    }
    if let Some(at) = parser.pipeline {
        return Err(parser.wrong(at, "this \\startpipeline has no matching \\endpipeline"));
    }
    if parser.steps.is_empty() {
        return Err(parser.wrong(0, "the script contains no command"));
    }
    Ok(Script { name: name.to_owned(), steps: parser.steps, pipelines: parser.pipelines })
}

/// An `\if` without its `\endif` yet.
struct Open {
    at: usize,
    /// The condition whose jump must be set to the next branch.
    condition: Option<usize>,
    /// Jumps from the ends of branches to the `\endif`.
    ends: Vec<usize>,
    /// The pipeline's state before the branches; all branches must end in the same state.
    pipeline: Option<usize>,
}

struct Parser<'a> {
    name: &'a str,
    text: &'a str,
    allow_shell: bool,
    slots: &'a mut Slots,
    steps: Vec<Step>,
    /// A position in the text and its line number.
    counted: (usize, usize),
    ifs: Vec<Open>,
    /// Where the open pipeline starts.
    pipeline: Option<usize>,
    pipelines: bool,
}

type ParseResult = Result<(), ScriptError>;

impl Parser<'_> {
    fn wrong(&self, at: usize, message: impl Into<String>) -> ScriptError {
        ScriptError::new(self.name, self.text, at, message)
    }

    fn push(&mut self, at: usize, command: Command) {
        self.push_titled(at, command, None);
    }

    /// `at` must not be less than in the previous call.
    fn push_titled(&mut self, at: usize, command: Command, title: Option<String>) {
        let line = self.counted.1 + self.text[self.counted.0..at].matches('\n').count();
        self.counted = (at, line);
        self.steps.push(Step { command, line, title, kind: None });
    }

    /// Adds a meta command that the user waits for.
    fn push_waiting(&mut self, line: &Line<'_>, command: Command) {
        let at = line.name.at;
        self.push_titled(at, command, Some(title(&self.text[at..line.end])));
    }

    fn meta(&mut self, line: &Line<'_>) -> ParseResult {
        let at = line.name.at;
        let words = line.words(line.rest);
        let none = |parser: &Self| match words.first() {
            Some(word) => Err(parser.wrong(word.at, format!("\\{} takes no argument", line.name.text))),
            None => Ok(()),
        };
        match line.name.text.to_ascii_lowercase().as_str() {
            "set" => self.set(line, &words),
            "gset" => self.store(at, &words, false),
            "aset" => self.store(at, &words, true),
            "if" => {
                let condition = self.expression(line, line.rest)?;
                self.ifs.push(Open {
                    at,
                    condition: Some(self.steps.len()),
                    ends: Vec::new(),
                    pipeline: self.pipeline,
                });
                self.push(at, Command::Unless { condition, target: usize::MAX });
                Ok(())
            }
            "elif" => {
                let condition = self.expression(line, line.rest)?;
                self.next_branch(at, "\\elif")?;
                let here = self.steps.len();
                if let Some(open) = self.ifs.last_mut() {
                    open.condition = Some(here);
                }
                self.push(at, Command::Unless { condition, target: usize::MAX });
                Ok(())
            }
            "else" => {
                none(self)?;
                self.next_branch(at, "\\else")
            }
            "endif" => {
                none(self)?;
                self.end_if(at)
            }
            "sleep" => self.sleep(line, &words),
            "setshell" => self.shell(line, &words, true),
            "shell" => self.shell(line, &words, false),
            "startpipeline" => {
                none(self)?;
                if self.pipeline.replace(at).is_some() {
                    return Err(self.wrong(at, "a pipeline is already open: \\endpipeline must come first"));
                }
                self.pipelines = true;
                self.push(at, Command::StartPipeline);
                Ok(())
            }
            "syncpipeline" => {
                none(self)?;
                self.in_pipeline(at, "\\syncpipeline")?;
                self.push(at, Command::SyncPipeline);
                Ok(())
            }
            "endpipeline" => {
                none(self)?;
                self.in_pipeline(at, "\\endpipeline")?;
                self.pipeline = None;
                self.push_waiting(line, Command::EndPipeline);
                Ok(())
            }
            "setrandom" => {
                Err(self.wrong(at, "\\setrandom is no longer supported: write \\set name random(low, high)"))
            }
            other => Err(self.wrong(at, format!("unknown meta command \\{other}"))),
        }
    }

    fn in_pipeline(&self, at: usize, what: &str) -> ParseResult {
        if self.pipeline.is_some() {
            Ok(())
        } else {
            Err(self.wrong(at, format!("{what} is outside a pipeline: \\startpipeline must come first")))
        }
    }

    fn expression(&mut self, line: &Line<'_>, from: usize) -> Result<Expression, ScriptError> {
        let text = line.text_from(from);
        if text.trim().is_empty() {
            return Err(self.wrong(line.end, format!("\\{} needs an expression", line.name.text)));
        }
        expression::parse(text, self.slots).map_err(|error| self.wrong(from + error.at, error.message))
    }

    fn set(&mut self, line: &Line<'_>, words: &[Located<'_>]) -> ParseResult {
        let Some(&name) = words.first() else {
            return Err(self.wrong(line.end, "\\set needs a variable name"));
        };
        let slot = self.variable_name(name)?;
        let expression = self.expression(line, name.at + name.text.len())?;
        self.push(line.name.at, Command::Set { slot, expression });
        Ok(())
    }

    fn variable_name(&mut self, name: Located<'_>) -> Result<u32, ScriptError> {
        if variable(name.text) != name.text.len() {
            return Err(self.wrong(
                name.at,
                format!(
                    "\"{}\" is not a valid variable name: use letters, digits and underscores, and no \
                    leading digit",
                    name.text
                ),
            ));
        }
        Ok(self.slots.slot(name.text))
    }

    fn store(&mut self, at: usize, words: &[Located<'_>], all: bool) -> ParseResult {
        let what = if all { "\\aset" } else { "\\gset" };
        if let Some(second) = words.get(1) {
            return Err(self.wrong(second.at, format!("{what} takes at most one argument")));
        }
        if self.pipeline.is_some() {
            return Err(self.wrong(at, format!("{what} is not allowed in a pipeline")));
        }
        let must_follow = format!("{what} must follow an SQL statement");
        // If a branch ended between the two, the statement would depend on the path taken.
        let jumped_here =
            self.ifs.last().is_some_and(|open| open.condition.is_none() && open.ends.is_empty());
        let Some(Step { command: Command::Sql(sql), .. }) = self.steps.last_mut().filter(|_| !jumped_here)
        else {
            return Err(self.wrong(at, must_follow));
        };
        if sql.store.is_some() {
            return Err(self.wrong(at, must_follow));
        }
        let prefix = words.first().map_or("", |word| word.text).to_owned();
        sql.store = Some(Store { prefix, all });
        Ok(())
    }

    /// Ends a branch of an `\if`; execution continues here if its condition is false.
    fn next_branch(&mut self, at: usize, what: &str) -> ParseResult {
        let here = self.steps.len();
        let pipeline = self.pipeline;
        let Some(open) = self.ifs.last_mut() else {
            return Err(self.wrong(at, format!("{what} has no matching \\if")));
        };
        let Some(condition) = open.condition.take() else {
            return Err(self.wrong(at, format!("{what} follows \\else")));
        };
        if open.pipeline != pipeline {
            return Err(self.wrong(at, "a branch must end as many pipelines as it starts"));
        }
        open.ends.push(here);
        self.push(at, Command::Jump { target: usize::MAX });
        self.patch(condition, here + 1);
        Ok(())
    }

    fn end_if(&mut self, at: usize) -> ParseResult {
        let Some(open) = self.ifs.pop() else {
            return Err(self.wrong(at, "\\endif has no matching \\if"));
        };
        if open.pipeline != self.pipeline {
            return Err(self.wrong(at, "a branch must end as many pipelines as it starts"));
        }
        let here = self.steps.len();
        for step in open.ends.into_iter().chain(open.condition) {
            self.patch(step, here);
        }
        Ok(())
    }

    fn patch(&mut self, step: usize, here: usize) {
        if let Command::Unless { target, .. } | Command::Jump { target } = &mut self.steps[step].command {
            *target = here;
        }
    }

    fn sleep(&mut self, line: &Line<'_>, words: &[Located<'_>]) -> ParseResult {
        let at = line.name.at;
        let Some(&length) = words.first() else {
            return Err(self.wrong(at, "\\sleep needs a time"));
        };
        if let Some(third) = words.get(2) {
            return Err(self.wrong(third.at, "\\sleep takes only a time and a unit"));
        }
        // "10ms" without a space is also accepted.
        let split = length.text.find(|c: char| !c.is_ascii_digit()).unwrap_or(length.text.len());
        let is_number = split > 0 && !length.text.starts_with(':');
        let (number, glued) = if is_number { length.text.split_at(split) } else { (length.text, "") };
        let (unit, unit_at) = match words.get(1) {
            Some(word) if glued.is_empty() => (word.text, word.at),
            Some(word) => return Err(self.wrong(word.at, "the unit is given twice")),
            None if glued.is_empty() => ("s", at),
            None => (glued, length.at + split),
        };
        let unit = match unit.to_ascii_lowercase().as_str() {
            "us" => 1,
            "ms" => 1_000,
            "s" => 1_000_000,
            _ => {
                return Err(
                    self.wrong(unit_at, format!("unrecognized time unit \"{unit}\", must be us, ms or s"))
                );
            }
        };
        let duration = if let Some(name) = number.strip_prefix(':') {
            let slot = self.variable_name(Located { text: name, at: length.at + 1 })?;
            Duration::Variable { slot, unit }
        } else {
            let micros = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
            let micros =
                micros.ok_or_else(|| self.wrong(length.at, format!("\"{number}\" is not a valid time")))?;
            Duration::Fixed(std::time::Duration::from_micros(micros))
        };
        self.push_waiting(line, Command::Sleep(duration));
        Ok(())
    }

    fn shell(&mut self, line: &Line<'_>, words: &[Located<'_>], sets: bool) -> ParseResult {
        let at = line.name.at;
        if words.len() + 1 >= MOST_WORDS {
            return Err(self.wrong(at, format!("too many arguments; at most {} are allowed", MOST_WORDS - 2)));
        }
        let (slot, words) = match words {
            [name, rest @ ..] if sets => (Some(self.variable_name(*name)?), rest),
            rest => (None, rest),
        };
        if words.is_empty() {
            return Err(self.wrong(at, "the shell command is missing"));
        }
        if !self.allow_shell {
            return Err(self.wrong(
                at,
                "shell commands are not allowed: allow them with --allow-shell and, if a file contains the \
                 run, also with allow-shell = true in that file",
            ));
        }
        let words = words
            .iter()
            .map(|word| match word.text.strip_prefix(':') {
                // A doubled colon is a literal colon.
                Some(rest) if rest.starts_with(':') => Word::Text(rest.to_owned()),
                Some(name) if !name.is_empty() && variable(name) == name.len() => {
                    Word::Variable(self.slots.slot(name), word.text.to_owned())
                }
                _ => Word::Text(word.text.to_owned()),
            })
            .collect();
        self.push_waiting(line, Command::Shell { slot, words });
        Ok(())
    }
}

/// Maximum number of words of a shell command, including the meta command, as in pgbench.
const MOST_WORDS: usize = 256;

/// Maximum characters of a title.
const TITLE: usize = 60;

/// The start of a statement, on one line.
fn title(text: &str) -> String {
    let mut title = String::new();
    let mut length = 0;
    // A single word can be as long as the whole text.
    for word in text.split_whitespace() {
        if length > 0 {
            title.push(' ');
            length += 1;
        }
        for letter in word.chars() {
            if length >= TITLE {
                title.truncate(title.trim_end().len());
                title.push('…');
                return title;
            }
            title.push(letter);
            length += 1;
        }
    }
    title
}
