//! `kelvin hammerdb`: runs scripts of HammerDB's command line, and has its prompt.

mod prompt;
mod runner;
mod sweep;

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kelvin_hammerdb::{Fault, Interpreter, LineEnd, Runner as _, Session, run_python};
use kelvin_measure::text::printable_lines;

use crate::args::{Global, HammerdbArgs, HammerdbCommand, HammerdbRunArgs};
use crate::exit::{Code, Stopped};
use crate::{out, signal};
use prompt::{Entered, Lines};
use runner::{KelvinRunner, Mode};

/// Runs a script, or commands from standard input.
pub(crate) fn hammerdb(args: &HammerdbArgs, global: &Global) -> Result<Code> {
    match &args.command {
        Some(HammerdbCommand::Run(args)) => run(args, global),
        None => prompt(global),
    }
}

fn run(args: &HammerdbRunArgs, global: &Global) -> Result<Code> {
    let python = match args.file.extension().and_then(OsStr::to_str) {
        Some("tcl") => false,
        Some("py") => true,
        _ => bail!("{} is not a script: its name must end in .tcl or .py", args.file.display()),
    };
    let mode = match (args.plan, args.print_spec) {
        (true, _) => Mode::Plan,
        (_, true) => Mode::Specifications,
        _ => Mode::Run,
    };
    let mut runner = KelvinRunner::new(global, mode, args.scale_time, signal::listen_saying("")?);
    let directory =
        args.file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut session = Session::new(&mut runner);
    let mut interpreter = interpreter(&mut session, Some(directory))?;
    let status =
        if python { run_python(&mut interpreter, &args.file) } else { interpreter.run_file(&args.file) };
    drop(interpreter);
    drop(session);
    runner.show_sweeps()?;
    match status {
        Ok(0) => Ok(runner.worst()),
        Ok(status) => bail!("the script ended with exit {status}"),
        Err(fault) => Err(failure(fault, &runner)),
    }
}

/// Converts the fault of a script to an error; after Ctrl-C, to a stop request.
fn failure(fault: Fault, runner: &KelvinRunner<'_>) -> anyhow::Error {
    if runner.interrupted() { Stopped(fault.to_string()).into() } else { fault.into() }
}

fn interpreter<'h>(session: &'h mut Session<'_>, script: Option<&Path>) -> Result<Interpreter<'h>> {
    let mut directories: Vec<PathBuf> =
        vec![std::env::current_dir().context("there is no current directory")?];
    directories.extend(script.map(Path::to_owned));
    directories.extend(std::env::var_os("TMP").map(PathBuf::from));
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Ok(Interpreter::new(session, &directories, environment))
}

/// Reads commands until the end of standard input. On a terminal, an error ends only its command. Ctrl-C at the prompt
/// discards what was typed, and in a run ends the run; the settings are kept.
fn prompt(global: &Global) -> Result<Code> {
    let typed = std::io::stdin().is_terminal();
    let stop = signal::listen_saying("")?;
    let mut runner = KelvinRunner::new(global, Mode::Run, 1.0, stop.clone());
    let mut session = Session::new(&mut runner);
    let mut interpreter = interpreter(&mut session, None)?;
    let mut lines = Lines::new(typed)?;
    let (mut text, mut line, mut status) = (String::new(), 1, None);
    while status.is_none() {
        let mut ended = false;
        match lines.next(&text)? {
            Entered::Line(entered) => text.push_str(&entered),
            Entered::Interrupt => text.clear(),
            Entered::End => ended = true,
        }
        if !ended && !kelvin_hammerdb::tcl::is_complete(&text) {
            prompt::check_length(&text)?;
            continue;
        }
        status = ended.then_some(0);
        match interpreter.run_line(&text, line) {
            Ok(LineEnd::Result(result)) if !result.is_empty() => out::line(&printable_lines(&result))?,
            Ok(LineEnd::Result(_)) => {}
            Ok(LineEnd::Exit(asked)) => status = Some(asked),
            Err(fault) if typed && (!fault.fatal || stop.requested()) => {
                out::note(&format!("kelvin: {fault}"));
                stop.reset();
            }
            Err(fault) => {
                drop(interpreter);
                drop(session);
                return Err(failure(fault, &runner));
            }
        }
        line += text.lines().count() as u32;
        text.clear();
    }
    drop(interpreter);
    drop(session);
    runner.show_sweeps()?;
    match status {
        None | Some(0) => Ok(runner.worst()),
        Some(status) => bail!("the commands ended with exit {status}"),
    }
}
