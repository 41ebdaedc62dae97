//! `kelvin serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// `kelvin serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "The page lists, searches and compares runs, shows their reports, and follows runs that go on, whoever started \
    them: a run writes its store every second. It changes nothing unless --allow-start is given. Requests under a host name \
    other than localhost, and requests that other web sites make, are refused.\n\n\
    Examples:\n  kelvin serve                                   the page at http://127.0.0.1:8420\n  \
    kelvin serve a.db b.db                         the runs of two stores\n  \
    ssh -L 8420:localhost:8420 bench kelvin serve  the page of another host, without opening a port there\n  \
    kelvin serve --allow-start                     prints a token; whoever has it can start and stop runs"
)]
pub(crate) struct ServeArgs {
    /// The stores [default: the one that --store names]
    #[arg(value_name = "STORE")]
    pub(crate) stores: Vec<PathBuf>,
    /// Where to listen. Without TLS and without a login: whoever reaches another address than this host's own can read
    /// every result
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8420")]
    pub(crate) listen: SocketAddr,
    /// Answer under this host name as well; behind a proxy, the one that browsers use
    #[arg(long = "host-name", value_name = "NAME")]
    pub(crate) host_names: Vec<String>,
    /// Let those who have the token start, stop and repeat runs
    #[arg(long)]
    pub(crate) allow_start: bool,
    /// Read the token from this file [default: a new one, printed at the start]
    #[arg(long, value_name = "FILE", requires = "allow_start")]
    pub(crate) token_file: Option<PathBuf>,
}
