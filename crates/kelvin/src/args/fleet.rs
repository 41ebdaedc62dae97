//! `kelvin agent`, `kelvin fleet`, and the flags that locate a run's fleet.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Result;
use clap::builder::ValueHint;
use clap::{Args, Subcommand};
use kelvin_fleet::ssh::SshHost;
use kelvin_fleet::{Connection, Name};
use kelvin_run::spec::Span;

use super::{FleetCollectArgs, FleetResumeArgs};

/// Where the NATS server is.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct NatsArgs {
    /// Name of the fleet; `kelvin fleet up` must have been run on this host
    #[arg(long, value_name = "NAME", conflicts_with = "nats", help_heading = "Fleet")]
    pub(crate) fleet: Option<Name>,
    /// A running NATS server with JetStream: nats://127.0.0.1:4222, or tls://HOST:4222 on another host
    #[arg(long, value_name = "URL", help_heading = "Fleet")]
    nats: Option<String>,
    /// File with the nkey seed for authentication; required for a server on another host
    #[arg(long, value_name = "FILE", requires = "nats", help_heading = "Fleet")]
    nats_key: Option<PathBuf>,
    /// CA certificate that verifies the server's certificate [default: the system's CA certificates]
    #[arg(long, value_name = "FILE", requires = "nats", help_heading = "Fleet")]
    nats_ca: Option<PathBuf>,
    /// Client certificate, if the server requires one
    #[arg(long, value_name = "FILE", requires_all = ["nats", "nats_cert_key"], help_heading = "Fleet")]
    nats_cert: Option<PathBuf>,
    /// Key of the client certificate
    #[arg(long, value_name = "FILE", requires = "nats_cert", help_heading = "Fleet")]
    nats_cert_key: Option<PathBuf>,
    /// Name that separates this fleet from others on the same NATS server [default: kelvin]
    #[arg(long, value_name = "NAME", requires = "nats", help_heading = "Fleet")]
    lab: Option<Name>,
}

impl NatsArgs {
    /// Whether a fleet was named.
    pub(crate) fn is_given(&self) -> bool {
        self.fleet.is_some() || self.nats.is_some()
    }

    /// The server of `--nats`, and its lab.
    pub(crate) fn given_server(&self) -> Result<Option<(Connection, Name)>> {
        let Some(url) = &self.nats else { return Ok(None) };
        let lab = match &self.lab {
            Some(lab) => lab.clone(),
            None => "kelvin".parse().map_err(anyhow::Error::msg)?,
        };
        let connection = Connection {
            url: url.clone(),
            key: self.nats_key.clone(),
            authority: self.nats_ca.clone(),
            certificate: self.nats_cert.clone().zip(self.nats_cert_key.clone()),
        };
        Ok(Some((connection, lab)))
    }
}

/// The fleet of a run.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunFleetArgs {
    /// Divide the users among these agents, or among this number of idle agents; I/O jobs run on every agent
    #[arg(long, value_name = "AGENT[,AGENT…]|N", value_delimiter = ',', help_heading = "Fleet")]
    pub(crate) hosts: Vec<Name>,
    /// Maximum difference between the agents' start times; if it is exceeded, the run is void [default: 10ms]
    #[arg(long, value_name = "TIME", help_heading = "Fleet")]
    pub(crate) start_skew: Option<Span>,
    #[command(flatten)]
    pub(crate) nats: NatsArgs,
}

impl RunFleetArgs {
    /// Whether the run has a fleet.
    pub(crate) fn is_given(&self) -> bool {
        self.nats.is_given() || !self.hosts.is_empty() || self.start_skew.is_some()
    }
}

/// `kelvin agent`.
#[derive(Debug, Args)]
#[command(
    after_help = "The agent waits for a controller (kelvin run … --hosts), connects its share of the users, \
    starts at the time given by the controller, and also stores its results in its own store. It uses only \
    the targets of --allow-target and the files and devices of --allow-path, and reads passwords from the \
    same sources as psql and mariadb: its environment and its password files. It stops its load after \
    --alone without a message from the controller.\n\
    \n\
    Examples:\n\
    \x20 kelvin agent --fleet lab --name g1 --allow-target postgres://bench@db1/tpcc\n\
    \x20 kelvin agent --nats tls://10.0.0.1:4222 --nats-key g1.nk --nats-ca ca.pem --lab lab --name g1 \\\n\
    \x20              --allow-target postgres://bench@db1/tpcc\n\
    \x20 kelvin agent --fleet lab --name g1 --allow-path /mnt/nvme     for kelvin run io --fleet lab\n\
    \n\
    Exit codes: 0 stopped, or done · 2 bad input · 4 with --once: the run lost its controller"
)]
pub(crate) struct AgentArgs {
    /// The agent's name in the fleet [default: the host's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<Name>,
    #[command(flatten)]
    pub(crate) nats: NatsArgs,
    /// A database that the agent may drive, as in --target; may be given several times
    #[arg(long = "allow-target", value_name = "TARGET", required_unless_present = "allow_paths")]
    pub(crate) allow_targets: Vec<String>,
    /// A file or device that I/O jobs may use, or a directory in which they may use and create any file; may be given
    /// several times
    #[arg(long = "allow-path", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) allow_paths: Vec<PathBuf>,
    /// A block device of --allow-path that I/O jobs may write to, even if it holds data; may be given several times
    #[arg(long, value_name = "DEVICE", requires = "allow_paths", value_hint = ValueHint::FilePath)]
    pub(crate) i_know_it_destroys: Vec<PathBuf>,
    /// A command that I/O jobs may run with exec_prerun or exec_postrun, exactly as written in the job; may be given
    /// several times
    #[arg(long = "allow-command", value_name = "COMMAND", requires = "allow_paths")]
    pub(crate) allow_commands: Vec<String>,
    /// Stop the load after this time without a message from the controller; at most 15s
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub(crate) alone: Span,
    /// End after the first run
    #[arg(long)]
    pub(crate) once: bool,
    /// For tests: show a clock that is SECONDS ahead and drifts by PPM
    #[arg(long, value_name = "SECONDS,PPM", hide = true)]
    pub(crate) clock_test_hook: Option<String>,
}

/// `kelvin fleet`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum FleetCommand {
    /// Start a NATS server for a fleet, with a key for the controller and for each agent
    ///
    /// It listens on 127.0.0.1. With another address (--listen), it uses TLS with a certificate signed by the fleet's
    /// own CA. An agent on another host needs its key (NAME.nk) and ca.pem from the fleet's directory.
    #[command(after_help = "Examples:
  kelvin fleet up lab --agents g1,g2,g3
  kelvin fleet up lab --agents g1,g2 --listen 10.0.0.1 --port 4222
  kelvin fleet up lab --ssh db-load1,db-load2 --listen 10.0.0.1 --allow-target postgres://bench@db1/tpcc")]
    Up(FleetUpArgs),
    /// Show the server of a fleet, and its agents
    Status {
        #[command(flatten)]
        of: FleetNameArgs,
    },
    /// Continue a run whose controller was killed
    ///
    /// Agents continue for 15 s without a controller. Within that time, the load can be resumed and runs to its planned
    /// end; later, it has already stopped. In both cases, the results of all agents are collected and the run is
    /// completed, but it does not count.
    #[command(after_help = "Examples:
  kelvin fleet resume --fleet lab
  kelvin fleet resume 12 --fleet lab \
        --verbose

Exit codes: 1 the load reached its planned end; the run is void · 2 bad input, or nothing \
        to resume
            4 the load ended early; the run has failed · 130 ended by Ctrl-C")]
    Resume(FleetResumeArgs),
    /// Fetch the results of lost hosts from their agents; without a run, remove the data of ended runs from the server
    ///
    /// Each agent stores its part of a run in its own store. These parts become runs of this store, labelled with the
    /// name of the agents' run. A note is added to the run itself; its state does not change.
    #[command(after_help = "Examples:
  kelvin fleet collect 12 --fleet lab
  kelvin fleet collect --fleet lab

Exit codes: 0 done · 1 an agent did not send its file · 2 bad input")]
    Collect(FleetCollectArgs),
    /// Stop the agents that were started with ssh, remove the copied files from their hosts, and stop the server of a
    /// fleet; its keys are kept
    Down {
        #[command(flatten)]
        of: FleetNameArgs,
    },
}

/// A fleet by its name.
#[derive(Debug, Clone, Args)]
pub(crate) struct FleetNameArgs {
    /// The fleet
    #[arg(default_value = "kelvin")]
    pub(crate) name: Name,
}

/// `kelvin fleet up`.
#[derive(Debug, Clone, Args)]
pub(crate) struct FleetUpArgs {
    #[command(flatten)]
    pub(crate) of: FleetNameArgs,
    /// The names of the agents [default with --ssh: those of the hosts]
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',', required_unless_present = "ssh")]
    pub(crate) agents: Vec<Name>,
    /// Copy this kelvin and the agent's key to each of these hosts with ssh, and start the agent there. KELVIN_SSH sets
    /// the ssh command with its options, such as KELVIN_SSH="ssh -F FILE"
    #[arg(long, value_name = "HOST[,HOST…]", value_delimiter = ',')]
    pub(crate) ssh: Vec<SshHost>,
    /// With --ssh: a database that the agents may drive; may be given several times
    #[arg(long = "allow-target", value_name = "TARGET", requires = "ssh")]
    pub(crate) allow_targets: Vec<String>,
    /// With --ssh: a file, device or directory of the hosts that I/O jobs may use; may be given several times
    #[arg(long = "allow-path", value_name = "PATH", requires = "ssh")]
    pub(crate) allow_paths: Vec<String>,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
    /// Port to listen on [default: any free port]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
}
