//! The subcommands, one per file.

mod ab;
mod advise;
mod build;
mod cache;
mod check;
mod compare;
mod completions;
mod doctor;
mod drop;
mod explain;
mod fleet;
mod fleet_agents;
mod fleet_collect;
mod fleet_ssh;
mod gate;
mod groups;
mod hammerdb;
mod history;
pub(crate) mod io;
mod io_explain;
mod io_plot;
mod observe;
mod repeat;
mod report;
mod rm;
mod run;
mod runs;
mod sampling;
mod scenario;
mod select;
mod serve;
mod server;
mod show;
mod snapshot;
mod squeeze;
mod study;
mod top_sql;
mod trace;
mod transfer;
mod vioperf;
mod waits;
mod xray;

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::args::{Cli, Command};
use crate::exit::Stopped;

/// Runs a command.
pub(crate) fn run(cli: Cli) -> Result<ExitCode> {
    let global = &cli.global;
    let code = match cli.command {
        Command::Run(args) => run::run(&args, global),
        // Its exit codes are those of fio.
        Command::Io(args) => return Ok(io::io(&args, global)),
        Command::Scenario(command) => scenario::scenario(&command, global),
        Command::Squeeze(args) => squeeze::squeeze(&args, global),
        Command::Ab(args) => ab::ab(&args, global),
        Command::Advise(args) => advise::advise(&args, global),
        Command::Groups(args) => groups::groups(&args, global),
        Command::Build(args) => build::build(&args, global),
        Command::Check(args) => check::check(&args, global),
        Command::Drop(args) => drop::drop_data(&args, global),
        Command::Runs(args) => runs::runs(&args, global),
        Command::Rm(args) => rm::remove(&args, global),
        Command::Export(args) => transfer::export(&args, global),
        Command::Import(args) => transfer::import(&args, global),
        Command::Tag(args) => rm::tag(&args, global),
        Command::Show(args) => show::show(&args, global),
        Command::Report(args) => report::report(&args, global),
        Command::Compare(args) => compare::compare(&args, global),
        Command::History(args) => history::history(&args, global),
        Command::Gate(args) => gate::gate(&args, global),
        Command::Serve(args) => serve::serve(&args, global),
        Command::Fleet(command) => fleet::fleet(&command, global),
        Command::Agent(args) => fleet::agent(&args, global),
        Command::Server(command) => server::server(&command, global),
        Command::Snapshot(command) => snapshot::snapshot(&command, global),
        Command::Study(command) => study::study(&command, global),
        Command::Doctor(args) => doctor::doctor(&args, global),
        Command::Observe(args) => observe::observe(&args, global),
        Command::Waits(args) => waits::waits(&args, global),
        Command::TopSql(args) => top_sql::top_sql(&args, global),
        Command::Trace(command) => trace::trace(&command, global),
        Command::Cache(command) => cache::cache(&command, global),
        Command::Vioperf(args) => vioperf::run(&args, global),
        Command::Hammerdb(args) => hammerdb::hammerdb(&args, global),
        Command::Xray(args) => xray::xray(&args, global),
        Command::Explain(args) => explain::explain(&args),
        Command::Completions { shell } => completions::completions(shell),
        Command::Man { directory } => completions::man(&directory),
    }?;
    Ok(code.into())
}

/// Asks on the terminal whether to do what `doing` says; any answer but yes is an error.
fn confirm(doing: &str) -> Result<()> {
    if !std::io::stdin().is_terminal() {
        bail!("would {doing}; give --yes to do it without confirmation");
    }
    eprint!("{doing}? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        return Err(Stopped("nothing was changed".into()).into());
    }
    Ok(())
}
