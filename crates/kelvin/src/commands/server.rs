//! `kelvin server`: the PostgreSQL server that kelvin keeps for its runs.

use anyhow::Result;
use kelvin_database::managed::Manager;

use crate::args::{Global, ServerCommand};
use crate::exit::Code;
use crate::place;

/// Starts, stops, or describes it.
pub(crate) fn server(command: &ServerCommand, global: &Global) -> Result<Code> {
    let manager = Manager::new(place::servers()?);
    match command {
        ServerCommand::Up { version } => {
            let instance = manager.up(*version, &mut |text| {
                if !global.quiet {
                    eprintln!("{text}");
                }
            })?;
            println!("{}", instance.config());
        }
        ServerCommand::Down { remove } => {
            println!("{}", if manager.down(*remove)? { "stopped" } else { "was not running" });
        }
        ServerCommand::Status => println!("{}", manager.status()?),
    }
    Ok(Code::Success)
}
