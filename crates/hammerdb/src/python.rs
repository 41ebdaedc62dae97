//! Scripts in Python. They run in the user's python3, where HammerDB's commands are functions. A shim turns
//! each call into a request, which the Tcl evaluator answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::session::COMMANDS;
use crate::tcl::{Fault, Interpreter, LineEnd, Position, command_text};

/// The Python program that executes the script.
const SHIM: &str = include_str!("python_shim.py");

/// Commands with the name of a built-in Python function.
const OF_PYTHON: [&str; 2] = ["help", "print"];

/// Most bytes of one request. Text that the script prints in one call is one request.
const LONGEST: u64 = 32 << 20;

/// Interval at which an interrupt is checked for, and the time that an interrupted script has to end by
/// itself.
const TICK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(2);

/// A request: script file, line, command, and its arguments.
type Request = (PathBuf, u32, String, Vec<String>);

/// Runs a script file. Returns the script's exit status; 0 if it sets none.
///
/// # Errors
/// There is no python3, or the script fails; the fault then has the line.
pub fn run_python(interpreter: &mut Interpreter<'_>, script: &Path) -> Result<i32, Fault> {
    let at_start = |message: String| fault(Position { file: Some(script.to_owned()), line: 0 }, message);
    // An unreadable script is an error before python3 is started.
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
                // Wait: Python flushes files that the script left open when it exits.
                python.end(interrupted);
                return Ok(status.parse().unwrap_or(1));
            }
            ("failed", [message]) => {
                python.end(interrupted);
                return Err(fault(position, message.clone()));
            }
            _ => return Err(fault(position, format!("python3 sent a request that is none: {what}"))),
        };
        let answer = match interpreter.run_at(&text, &position) {
            Ok(LineEnd::Result(result)) => (Some(result), None),
            Ok(LineEnd::Exit(status)) => return Ok(status),
            Err(fault) if fault.fatal => return Err(fault),
            Err(fault) => (None, Some(fault.message)),
        };
        // A process that has exited sends no further request.
        let _ = python.answer(&answer);
    }
}

fn fault(position: Position, message: String) -> Fault {
    Fault { position, message, fatal: false }
}

/// A running python3 process; it is killed when this value is dropped.
struct Python {
    child: Child,
    /// The lines that the process writes.
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
        // A separate thread reads, so that a script that computes or sleeps without sending anything can be
        // interrupted.
        std::thread::Builder::new().name("python3".into()).spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = String::new();
                let read = (&mut output).take(LONGEST).read_line(&mut line);
                let last = matches!(read, Ok(0)) || read.is_err();
                // End of file is reported by closing the channel.
                let is_line = !matches!(read, Ok(0));
                if is_line && sender.send(read.map(|_| line)).is_err() || last {
                    break;
                }
            }
        })?;
        Ok(Self { child, requests, answers })
    }

    /// Returns the next request; `None` if the script was interrupted and sends none.
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
        request.map(Some).map_err(|error| format!("python3 sent a line that is no request: {error}"))
    }

    fn answer(&mut self, answer: &(Option<String>, Option<String>)) -> std::io::Result<()> {
        let line = serde_json::to_string(answer)?;
        writeln!(self.answers, "{line}")?;
        self.answers.flush()
    }

    /// Waits for the process to exit, as it has announced.
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
        // Fails if the process has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
