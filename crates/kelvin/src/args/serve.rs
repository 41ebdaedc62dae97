//! `kelvin serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// `kelvin serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "The page lists, searches and compares runs, shows their reports, and follows all runs in \
    progress: a run writes to its store every second. The page is read-only unless --allow-start is given. \
    Requests with a host name other than localhost, and requests from other web sites, are rejected.\n\
    \n\
    Examples:\n\
    \x20 kelvin serve                                   the page at http://127.0.0.1:8420\n\
    \x20 kelvin serve a.db b.db                         the runs of two stores\n\
    \x20 ssh -L 8420:localhost:8420 bench kelvin serve  the page of another host, through an SSH tunnel\n\
    \x20 kelvin serve --allow-start                     prints a token that permits starting and stopping \
    runs"
)]
pub(crate) struct ServeArgs {
    /// The stores to show [default: that of --store]
    #[arg(value_name = "STORE")]
    pub(crate) stores: Vec<PathBuf>,
    /// Address to listen on. There is no TLS and no login: on an address other than loopback, anyone who can reach it
    /// can read every result
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8420")]
    pub(crate) listen: SocketAddr,
    /// Also accept this host name; behind a proxy, the one that browsers use
    #[arg(long = "host-name", value_name = "NAME")]
    pub(crate) host_names: Vec<String>,
    /// Let holders of the token start, stop and repeat runs
    #[arg(long)]
    pub(crate) allow_start: bool,
    /// Read the token from this file [default: a new one, printed at startup]
    #[arg(long, value_name = "FILE", requires = "allow_start")]
    pub(crate) token_file: Option<PathBuf>,
}
