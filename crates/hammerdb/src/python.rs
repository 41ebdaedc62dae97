//! Scripts in Python. The python3 of the user runs them; HammerDB's commands are functions there, which a shim turns into
//! requests that the evaluator of Tcl answers.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::session::COMMANDS;
use crate::tcl::{Fault, Interpreter, Position, command_text};

/// The program that the script runs in.
const SHIM: &str = include_str!("python_shim.py");

/// Commands whose names are Python's own functions.
const OF_PYTHON: [&str; 2] = ["help", "print"];

/// A request: file and line of the script, what is wanted, and the words of it.
type Request = (PathBuf, u32, String, Vec<String>);

/// Runs the script in a file; the status that it asked for when it ended, 0 without.
///
/// # Errors
/// If there is no python3, or the script fails: the fault has its line.
pub fn run_python(interpreter: &mut Interpreter<'_>, script: &Path) -> Result<i32, Fault> {
    let at_start = |message: String| fault(Position { file: Some(script.to_owned()), line: 0 }, message);
    // What cannot be read is an error before anything is started.
    std::fs::File::open(script)
        .map_err(|error| at_start(format!("cannot read {}: {error}", script.display())))?;
    let mut python = Python::start(script).map_err(|error| {
        at_start(format!("cannot run python3, which runs scripts in Python: {error}; a script in Tcl needs no other program"))
    })?;
    loop {
        let (file, line, what, words) = python.request().map_err(at_start)?;
        let position = Position { file: Some(file), line };
        let text = match (what.as_str(), words.as_slice()) {
            ("call", _) => command_text(&words),
            ("eval", [text]) => text.clone(),
            ("exit", [status]) => {
                // Files that the script left open are written when Python ends.
                python.end();
                return Ok(status.parse().unwrap_or(1));
            }
            ("failed", [message]) => {
                python.end();
                return Err(fault(position, message.clone()));
            }
            _ => return Err(fault(position, format!("python3 sent a request that is none: {what}"))),
        };
        let answer = match interpreter.run_at(&text, &position) {
            Ok(Some(result)) => (Some(result), None),
            Ok(None) => return Ok(0),
            Err(fault) if fault.fatal => return Err(fault),
            Err(fault) => (None, Some(fault.message)),
        };
        // One that is gone sends no further request.
        let _ = python.answer(&answer);
    }
}

fn fault(position: Position, message: String) -> Fault {
    Fault { position, message, fatal: false }
}

/// A running python3, which ends with this value.
struct Python {
    child: Child,
    requests: BufReader<ChildStdout>,
    answers: ChildStdin,
}

impl Python {
    fn start(script: &Path) -> std::io::Result<Self> {
        let functions: Vec<&str> =
            COMMANDS.into_iter().filter(|command| !OF_PYTHON.contains(command)).collect();
        let mut child = Command::new("python3")
            .args(["-c", SHIM])
            .arg(script)
            .arg(functions.join(","))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(answers), Some(requests)) => {
                Ok(Self { child, requests: BufReader::new(requests), answers })
            }
            _ => Err(std::io::Error::other("there are no pipes to it")),
        }
    }

    fn request(&mut self) -> Result<Request, String> {
        let mut line = String::new();
        let read = self.requests.read_line(&mut line);
        match read.map(|_| serde_json::from_str(&line)) {
            Ok(Ok(request)) => Ok(request),
            _ if line.is_empty() => Err("python3 ended before the script did".into()),
            Ok(Err(error)) => Err(format!("python3 sent a line that is no request: {error}")),
            Err(error) => Err(format!("cannot read from python3: {error}")),
        }
    }

    fn answer(&mut self, answer: &(Option<String>, Option<String>)) -> std::io::Result<()> {
        let line = serde_json::to_string(answer)?;
        writeln!(self.answers, "{line}")?;
        self.answers.flush()
    }

    /// Waits for the end that it has announced.
    fn end(&mut self) {
        let _ = self.child.wait();
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // It may have ended, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
