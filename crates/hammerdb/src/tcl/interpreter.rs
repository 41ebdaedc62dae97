//! The state of a script and the evaluation of its commands.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::files::Files;
use super::parse::{self, Command, WordPart};
use super::{Fault, Position, commands};

/// The environment that a script's commands act on.
pub trait Host {
    /// Executes a command that is not part of Tcl; `None` if there is no such command.
    fn call(
        &mut self,
        name: &str,
        arguments: &[String],
        position: &Position,
    ) -> Option<Result<String, HostError>>;

    /// Prints text that the script writes to standard output.
    fn print(&mut self, text: &str);

    /// Whether a command of this name exists.
    fn knows(&self, name: &str) -> bool;

    /// A script that replaces a file of this name, if the host has one.
    fn replacement(&self, file_name: &str) -> Option<&'static str>;

    /// Waits, for `after`; an error ends the script.
    fn wait(&mut self, milliseconds: u64) -> Result<(), HostError>;

    /// Whether the user has interrupted the script.
    fn interrupted(&self) -> bool {
        false
    }
}

/// How the evaluation of a line ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineEnd {
    /// The line's result.
    Result(String),
    /// `exit` was called with this status.
    Exit(i32),
}

/// The error of a failed host command.
#[derive(Debug, Clone)]
pub struct HostError {
    /// What is wrong.
    pub message: String,
    /// Whether the script ends even within a `catch`.
    pub fatal: bool,
}

impl From<String> for HostError {
    fn from(message: String) -> Self {
        Self { message, fatal: false }
    }
}

/// A reason to stop evaluating a script early.
#[derive(Debug)]
pub(super) enum Stop {
    Fault(Fault),
    Break,
    Continue,
    Return(String),
    Exit(i32),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

pub(super) type Answer = Result<String, Stop>;

/// A word after substitution, and the line on which it began.
#[derive(Debug, Clone)]
pub(super) struct Argument {
    pub(super) text: String,
    pub(super) line: u32,
}

#[derive(Debug, Clone)]
pub(super) enum Variable {
    Text(String),
    Array(BTreeMap<String, String>),
    /// A reference to the global variable of this name.
    Global(String),
}

impl Variable {
    /// Its approximate size in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + EACH_VARIABLE,
            Self::Array(elements) => elements.values().map(|text| text.len() + EACH_VARIABLE).sum(),
            Self::Global(_) => 0,
        }
    }
}

pub(super) type Frame = HashMap<String, Variable>;

/// A procedure defined by the script.
#[derive(Debug)]
pub(super) struct Procedure {
    /// Names with their defaults; the last may be `args`.
    pub(super) parameters: Vec<(String, Option<String>)>,
    pub(super) body: String,
    pub(super) line: u32,
    pub(super) file: Option<PathBuf>,
}

/// The meaning of a command name.
#[derive(Debug, Clone)]
pub(super) enum Definition {
    Procedure(Rc<Procedure>),
    /// A command of Tcl or of the host, under a new name.
    Command(String),
    /// A command that was renamed to another name.
    Nothing,
}

/// Most commands that a script may execute: many times the number in any script that changes settings.
const MOST_COMMANDS: u64 = 1_000_000;
/// Greatest nesting depth of calls, scripts and files.
const DEEPEST: u32 = 100;
/// Most bytes of one string that a script creates.
pub(super) const LONGEST: usize = 16 << 20;
/// Most bytes of all variables and procedures together, and of the words of one command.
const MOST_HELD: usize = 256 << 20;
/// Bytes of a variable in addition to its value.
const EACH_VARIABLE: usize = 100;

/// A script's interpreter.
pub struct Interpreter<'h> {
    pub(super) host: &'h mut dyn Host,
    pub(super) files: Files,
    pub(super) file: Option<PathBuf>,
    pub(super) globals: Frame,
    pub(super) frames: Vec<Frame>,
    pub(super) definitions: HashMap<String, Definition>,
    /// Nesting depth of parentheses in all expressions being evaluated.
    pub(super) expressions: u32,
    commands: u64,
    depth: u32,
    /// Bytes held by variables and procedures.
    held: usize,
}

impl<'h> Interpreter<'h> {
    /// An interpreter for a script that may read and write files below `directories`; relative names start at
    /// the first of them. `environment` becomes the script's `::env`.
    pub fn new(
        host: &'h mut dyn Host,
        directories: &[PathBuf],
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let environment = environment.into_iter().collect();
        let globals = Frame::from([("env".to_owned(), Variable::Array(environment))]);
        Self {
            host,
            files: Files::new(directories),
            file: None,
            globals,
            frames: Vec::new(),
            definitions: HashMap::new(),
            expressions: 0,
            commands: 0,
            depth: 0,
            held: 0,
        }
    }

    /// Runs a script file. Returns the status given to `exit`; 0 without `exit`.
    pub fn run_file(&mut self, path: &Path) -> Result<i32, Fault> {
        let text = super::files::read_script(path)
            .map_err(|message| Fault::at_position(Position::default(), &message))?;
        self.file = Some(path.to_owned());
        match self.top(&text, 1) {
            Ok(_) => Ok(0),
            Err(Stop::Exit(status)) => Ok(status),
            Err(stop) => Err(self.uncaught(stop)),
        }
    }

    /// Whether the user has interrupted the script.
    pub fn is_interrupted(&self) -> bool {
        self.host.interrupted()
    }

    /// Runs text that was typed and whose first line has the number `line`.
    pub fn run_line(&mut self, text: &str, line: u32) -> Result<LineEnd, Fault> {
        self.commands = 0;
        self.run_next(text, line)
    }

    /// Runs text from a script in another language. It counts as one of the commands that the script may
    /// execute.
    pub fn run_at(&mut self, text: &str, position: &Position) -> Result<LineEnd, Fault> {
        self.file.clone_from(&position.file);
        self.run_next(text, position.line)
    }

    fn run_next(&mut self, text: &str, line: u32) -> Result<LineEnd, Fault> {
        self.depth = 0;
        while let Some(frame) = self.frames.pop() {
            self.release(&frame);
        }
        match self.top(text, line) {
            Ok(result) => Ok(LineEnd::Result(result)),
            Err(Stop::Exit(status)) => Ok(LineEnd::Exit(status)),
            Err(stop) => Err(self.uncaught(stop)),
        }
    }

    fn top(&mut self, text: &str, line: u32) -> Answer {
        match self.evaluate(text, line) {
            Err(Stop::Return(value)) => Ok(value),
            other => other,
        }
    }

    fn uncaught(&self, stop: Stop) -> Fault {
        match stop {
            Stop::Fault(fault) => fault,
            _ => Fault::at_position(
                Position { file: self.file.clone(), line: 0 },
                "break or continue is outside a loop",
            ),
        }
    }

    /// A fault at `line` of the current file.
    pub(super) fn fault(&self, line: u32, message: &str) -> Stop {
        Stop::Fault(Fault::at_position(Position { file: self.file.clone(), line }, message))
    }

    fn fatal(&self, line: u32, message: &str) -> Stop {
        let position = Position { file: self.file.clone(), line };
        Stop::Fault(Fault { fatal: true, ..Fault::at_position(position, message) })
    }

    /// Adds the current file to a fault of the parser.
    pub(super) fn in_current_file(&self, mut fault: Fault) -> Stop {
        if fault.position.file.is_none() {
            fault.position.file.clone_from(&self.file);
        }
        Stop::Fault(fault)
    }

    /// Evaluates a script whose first line is `line`.
    pub(super) fn evaluate(&mut self, text: &str, line: u32) -> Answer {
        let commands = parse::script(text, line).map_err(|fault| self.in_current_file(fault))?;
        self.run(&commands)
    }

    /// Executes commands; returns the result of the last.
    pub(super) fn run(&mut self, commands: &[Command]) -> Answer {
        self.depth += 1;
        let line = commands.first().map_or(0, |command| command.line);
        if self.depth > DEEPEST {
            return Err(self.fatal(line, "calls are nested too deeply"));
        }
        let mut result = String::new();
        for command in commands {
            result = self.command(command)?;
        }
        self.depth -= 1;
        Ok(result)
    }

    /// Runs `work` and restores the nesting depth if it ended early.
    pub(super) fn restoring_depth(&mut self, work: impl FnOnce(&mut Self) -> Answer) -> Answer {
        let depth = self.depth;
        let answer = work(self);
        self.depth = depth;
        answer
    }

    fn command(&mut self, command: &Command) -> Answer {
        self.commands += 1;
        if self.commands > MOST_COMMANDS {
            let message = format!("the script ran {MOST_COMMANDS} commands and does not end");
            return Err(self.fatal(command.line, &message));
        }
        if self.host.interrupted() {
            return Err(self.fatal(command.line, "interrupted"));
        }
        let (mut words, mut length) = (Vec::with_capacity(command.words.len()), 0);
        for word in &command.words {
            let text = self.substitute(&word.parts, word.line)?;
            length += text.len();
            if length > MOST_HELD {
                return Err(self.fatal(command.line, "the words of a command are longer than 256 MiB"));
            }
            if word.expanded {
                let elements =
                    super::list::elements(&text).map_err(|message| self.fault(word.line, &message))?;
                words.extend(elements.into_iter().map(|text| Argument { text, line: word.line }));
            } else {
                words.push(Argument { text, line: word.line });
            }
        }
        let Some((name, arguments)) = words.split_first() else { return Ok(String::new()) };
        self.call(&name.text, arguments, command.line)
    }

    /// Calls the command `name`, which is on `line`.
    pub(super) fn call(&mut self, name: &str, arguments: &[Argument], line: u32) -> Answer {
        let name = name.strip_prefix("::").unwrap_or(name);
        match self.definitions.get(name).cloned() {
            Some(Definition::Procedure(procedure)) => self.call_procedure(name, &procedure, arguments, line),
            Some(Definition::Command(original)) => self.call_command(&original, arguments, line),
            Some(Definition::Nothing) => Err(self.unknown(name, line)),
            None => self.call_command(name, arguments, line),
        }
    }

    fn call_command(&mut self, name: &str, arguments: &[Argument], line: u32) -> Answer {
        if let Some(answer) = commands::call(self, name, arguments, line) {
            return answer;
        }
        let texts: Vec<String> = arguments.iter().map(|argument| argument.text.clone()).collect();
        let position = Position { file: self.file.clone(), line };
        match self.host.call(name, &texts, &position) {
            Some(Ok(result)) => Ok(result),
            Some(Err(error)) => {
                Err(Stop::Fault(Fault { position, message: error.message, fatal: error.fatal }))
            }
            None => Err(self.unknown(name, line)),
        }
    }

    fn unknown(&self, name: &str, line: u32) -> Stop {
        self.fault(line, &format!("unknown command {name:?}"))
    }

    fn call_procedure(
        &mut self,
        name: &str,
        procedure: &Rc<Procedure>,
        arguments: &[Argument],
        line: u32,
    ) -> Answer {
        let mut frame = Frame::new();
        let mut given = arguments.iter();
        for (index, (parameter, default)) in procedure.parameters.iter().enumerate() {
            let text = if parameter == "args" && index + 1 == procedure.parameters.len() {
                super::list::join(given.by_ref().map(|argument| &argument.text))
            } else {
                match (given.next(), default) {
                    (Some(argument), _) => argument.text.clone(),
                    (None, Some(default)) => default.clone(),
                    (None, None) => {
                        return Err(
                            self.fault(line, &format!("{name} is called without its argument {parameter}"))
                        );
                    }
                }
            };
            self.hold(text.len() + EACH_VARIABLE, line)?;
            frame.insert(parameter.clone(), Variable::Text(text));
        }
        if given.next().is_some() {
            return Err(self.fault(line, &format!("{name} is called with too many arguments")));
        }
        self.frames.push(frame);
        let file = std::mem::replace(&mut self.file, procedure.file.clone());
        let answer =
            self.restoring_depth(|interpreter| interpreter.evaluate(&procedure.body, procedure.line));
        self.file = file;
        if let Some(frame) = self.frames.pop() {
            self.release(&frame);
        }
        match answer {
            Err(Stop::Return(value)) => Ok(value),
            Err(Stop::Break | Stop::Continue) => {
                Err(self.fault(line, &format!("{name} ends with break or continue outside a loop")))
            }
            other => other,
        }
    }

    /// Substitutes the parts of a word and returns its text.
    pub(super) fn substitute(&mut self, parts: &[WordPart], line: u32) -> Answer {
        if let [WordPart::Text(text)] = parts {
            return Ok(text.clone());
        }
        let mut text = String::new();
        for part in parts {
            match part {
                WordPart::Text(part) => text.push_str(part),
                WordPart::Variable(name, None) => text.push_str(&self.get(name, None, line)?),
                WordPart::Variable(name, Some(index)) => {
                    let index = self.substitute(index, line)?;
                    text.push_str(&self.get(name, Some(&index), line)?);
                }
                WordPart::Script(commands) => text.push_str(&self.run(commands)?),
            }
            if text.len() > LONGEST {
                return Err(self.fatal(line, "a text is longer than 16 MiB"));
            }
        }
        Ok(text)
    }

    /// The frame of a variable, and the variable's name in that frame.
    fn find(&mut self, name: &str) -> (&mut Frame, String) {
        if let Some(global) = name.strip_prefix("::") {
            return (&mut self.globals, global.to_owned());
        }
        let linked = match self.frames.last().and_then(|frame| frame.get(name)) {
            Some(Variable::Global(global)) => Some(global.clone()),
            _ => None,
        };
        match (linked, self.frames.last_mut()) {
            (Some(global), _) => (&mut self.globals, global),
            (None, Some(frame)) => (frame, name.to_owned()),
            (None, None) => (&mut self.globals, name.to_owned()),
        }
    }

    /// Splits a name as written into the variable and its index.
    pub(super) fn split_name(written: &str) -> (&str, Option<&str>) {
        match written.strip_suffix(')').and_then(|rest| rest.split_once('(')) {
            Some((name, index)) => (name, Some(index)),
            None => (written, None),
        }
    }

    /// The value of a variable, if it exists.
    pub(super) fn value(&mut self, name: &str, index: Option<&str>) -> Option<String> {
        let (frame, name) = self.find(name);
        match (frame.get(&name)?, index) {
            (Variable::Text(text), None) => Some(text.clone()),
            (Variable::Array(elements), Some(index)) => elements.get(index).cloned(),
            _ => None,
        }
    }

    pub(super) fn array(&mut self, name: &str) -> Option<&mut BTreeMap<String, String>> {
        let (frame, name) = self.find(name);
        match frame.get_mut(&name)? {
            Variable::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// Whether a variable of this name exists.
    pub(super) fn exists(&mut self, written: &str) -> bool {
        let (name, index) = Self::split_name(written);
        self.value(name, index).is_some() || index.is_none() && self.array(name).is_some()
    }

    fn get(&mut self, name: &str, index: Option<&str>, line: u32) -> Answer {
        if let Some(value) = self.value(name, index) {
            return Ok(value);
        }
        let message = match index {
            Some(index) if name.trim_start_matches(':') == "env" => {
                format!(
                    "the environment variable {index} is not set, which the script reads as $::env({index})"
                )
            }
            Some(index) => format!("there is no variable {name}({index})"),
            None => format!("there is no variable {name}"),
        };
        Err(self.fault(line, &message))
    }

    /// The value of a variable, written as `name` or `name(index)`.
    pub(super) fn read(&mut self, written: &str, line: u32) -> Answer {
        let (name, index) = Self::split_name(written);
        self.get(name, index, line)
    }

    /// Sets the variable and returns its value.
    pub(super) fn set(&mut self, written: &str, value: String, line: u32) -> Answer {
        if value.len() > LONGEST {
            return Err(self.fatal(line, "a text is longer than 16 MiB"));
        }
        self.hold(value.len() + EACH_VARIABLE, line)?;
        let (name, index) = Self::split_name(written);
        let (frame, own) = self.find(name);
        // The size of the previous value.
        let before = match (frame.get_mut(&own), index) {
            (Some(Variable::Array(elements)), Some(index)) => {
                let before = elements.insert(index.to_owned(), value.clone());
                Some(before.map_or(0, |before| before.len() + EACH_VARIABLE))
            }
            (Some(Variable::Array(_)), None) | (Some(Variable::Text(_)), Some(_)) => None,
            (_, None) => {
                let before = frame.insert(own, Variable::Text(value.clone()));
                Some(before.as_ref().map_or(0, Variable::size))
            }
            (_, Some(index)) => {
                let elements = BTreeMap::from([(index.to_owned(), value.clone())]);
                let before = frame.insert(own, Variable::Array(elements));
                Some(before.as_ref().map_or(0, Variable::size))
            }
        };
        let Some(before) = before else {
            return Err(self.fault(line, &format!("{name} is used both as an array and as a plain variable")));
        };
        self.held = self.held.saturating_sub(before);
        Ok(value)
    }

    /// Adds to the bytes held by the script; fails at the limit.
    pub(super) fn hold(&mut self, bytes: usize, line: u32) -> Result<(), Stop> {
        self.held = self.held.saturating_add(bytes);
        if self.held > MOST_HELD {
            Err(self.fatal(line, "the script's variables take more than 256 MiB"))
        } else {
            Ok(())
        }
    }

    fn release(&mut self, frame: &Frame) {
        self.held = self.held.saturating_sub(frame.values().map(Variable::size).sum());
    }

    /// Removes the variable; returns whether it existed.
    pub(super) fn unset(&mut self, written: &str) -> bool {
        let (name, index) = Self::split_name(written);
        let removed = if let Some(index) = index {
            let removed = self.array(name).and_then(|elements| elements.remove(index));
            removed.map(|text| text.len() + EACH_VARIABLE)
        } else {
            let (frame, own) = self.find(name);
            frame.remove(&own).as_ref().map(Variable::size)
        };
        self.held = self.held.saturating_sub(removed.unwrap_or(0));
        removed.is_some()
    }
}
