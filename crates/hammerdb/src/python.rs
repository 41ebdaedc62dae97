//! Scripts in Python. The python3 of the user runs them; HammerDB's commands are functions there, which a shim turns into
//! requests that the evaluator of Tcl answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::session::COMMANDS;
use crate::tcl::{Fault, Interpreter, LineEnd, Position, command_text};

/// The program that the script runs in.
const SHIM: &str = include_str!("python_shim.py");

/// Commands whose names are Python's own functions.
const OF_PYTHON: [&str; 2] = ["help", "print"];

/// Bytes of a request: what a script prints at once is a request, too.
const LONGEST: u64 = 32 << 20;

/// How often it is seen whether somebody asked for the end, and how long a script then has for its own.
const TICK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(2);

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
        let interrupted = || interpreter.is_interrupted();
        let (file, line, what, words) = match python.request(interrupted) {
            Ok(Some(request)) => request,
            Ok(None) => return Err(Fault { fatal: true, ..at_start("interrupted".into()) }),
            Err(why) => return Err(at_start(why)),
        };
        let position = Position { file: Some(file), line };
        let text = match (what.as_str(), words.as_slice()) {
            ("call", _) => command_text(&words),
            ("eval", [text]) => text.clone(),
            ("exit", [status]) => {
                // Files that the script left open are written when Python ends.
                python.end(interrupted);
                return Ok(status.parse().unwrap_or(1));
            }
            ("failed", [message]) => {
                python.end(interrupted);
                return Err(fault(position, message.clone()));
            }
            _ => return Err(fault(position, format!("python3 sent an invalid request: {what}"))),
        };
        let answer = match interpreter.run_at(&text, &position) {
            Ok(LineEnd::Result(result)) => (Some(result), None),
            Ok(LineEnd::Exit(status)) => return Ok(status),
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
    /// The lines that it writes.
    requests: Receiver<std::io::Result<String>>,
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
        let (Some(answers), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::Error::other("there are no pipes to it"));
        };
        let (sender, requests) = mpsc::channel();
        // Whoever computes for long or sleeps sends nothing, and is ended nevertheless when somebody asks for it.
        std::thread::Builder::new().name("python3".into()).spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = String::new();
                let read = (&mut output).take(LONGEST).read_line(&mut line);
                let last = matches!(read, Ok(0)) || read.is_err();
                // The end of the lines says by itself that there are no more.
                let is_line = !matches!(read, Ok(0));
                if is_line && sender.send(read.map(|_| line)).is_err() || last {
                    break;
                }
            }
        })?;
        Ok(Self { child, requests, answers })
    }

    /// The next request; none if it was interrupted and sends none.
    fn request(&mut self, interrupted: impl Fn() -> bool) -> Result<Option<Request>, String> {
        let mut since: Option<Instant> = None;
        let line = loop {
            match self.requests.recv_timeout(TICK) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("python3 ended before the script did".into());
                }
                Err(RecvTimeoutError::Timeout) if !interrupted() => {}
                Err(RecvTimeoutError::Timeout) => {
                    if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                        return Ok(None);
                    }
                }
            }
        };
        let line = line.map_err(|error| format!("cannot read from python3: {error}"))?;
        if !line.ends_with('\n') && line.len() as u64 >= LONGEST {
            return Err("the script prints or sets more than 32 MiB in one piece".into());
        }
        let request = serde_json::from_str(&line);
        request.map(Some).map_err(|error| format!("python3 sent a line that is not a request: {error}"))
    }

    fn answer(&mut self, answer: &(Option<String>, Option<String>)) -> std::io::Result<()> {
        let line = serde_json::to_string(answer)?;
        writeln!(self.answers, "{line}")?;
        self.answers.flush()
    }

    /// Waits for the end that it has announced.
    fn end(&mut self, interrupted: impl Fn() -> bool) {
        while let Ok(None) = self.child.try_wait() {
            if interrupted() {
                break;
            }
            std::thread::sleep(TICK / 10);
        }
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // It may have ended, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
