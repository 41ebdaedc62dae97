//! `kelvin server`: the PostgreSQL server that kelvin keeps for its runs.

use anyhow::Result;
use kelvin_database::managed::{Manager, Status};

use crate::args::{Global, ServerCommand};
use crate::exit::Code;
use crate::out;
use crate::place;

/// Starts, stops, or describes it.
pub(crate) fn server(command: &ServerCommand, global: &Global) -> Result<Code> {
    let manager = Manager::new(place::servers()?);
    let mut tell = |text: &str| {
        if !global.quiet {
            eprintln!("{text}");
        }
    };
    match command {
        ServerCommand::Up { version } => {
            let instance = manager.up(*version, &mut tell)?;
            if instance.was_running() {
                tell("it was running already");
            }
            out::line(&instance.config().to_string())?;
        }
        ServerCommand::Down { version } => {
            let stopped = manager.down(*version)?;
            if stopped.is_empty() {
                out::line("no server was running")?;
            }
            for major in stopped {
                out::line(&format!("stopped PostgreSQL {major}"))?;
            }
        }
        ServerCommand::Status => {
            let all = manager.status()?;
            if all.is_empty() {
                out::line("no server was made yet; `kelvin server up` makes one")?;
            }
            for status in all {
                out::write(&described(&status))?;
            }
        }
    }
    Ok(Code::Success)
}

fn described(status: &Status) -> String {
    let state = match (status.pid, status.answers) {
        (Some(pid), true) => format!("running, process {pid}"),
        (Some(pid), false) => format!("process {pid} does not answer"),
        (None, _) => "stopped".into(),
    };
    let uptime = status.uptime.map_or(String::new(), |time| format!(", up {} s", time.as_secs()));
    format!(
        "PostgreSQL {}: {state}{uptime}\n  version  {}\n  socket   {}\n  data     {} ({:.1} MB)\n",
        status.major,
        status.version,
        status.socket_directory.display(),
        status.data_directory.display(),
        status.size as f64 / 1e6,
    )
}
