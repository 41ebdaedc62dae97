//! The flags common to the runs of all workloads: database, load and results.
//!
//! No flag has a short form here: each workload adds those its users know (`mut_arg`).

use std::io::Read as _;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use kelvin_run::Spec;
use kelvin_run::spec::{Build, LogFile, Span, TargetName, Users};

use super::OutputArgs;
use super::fleet::RunFleetArgs;
use super::history::HistoryPlaceArgs;
use super::language::seconds;
use super::observation::ObservationArgs;
use super::pace::PaceArgs;
use super::repeat::RepeatArgs;
use super::reset::ResetArgs;
use super::set;

/// The database.
#[derive(Debug, Clone, Args)]
pub(crate) struct TargetArgs {
    /// The database: sqlite or sqlite:FILE; postgres, mysql or mariadb (a server of kelvin's own); or a
    /// URL, postgres://user@host:port/database, mysql://…, mariadb://… or sqlserver://… [default: sqlite,
    /// in a temporary file]
    #[arg(long, value_name = "TARGET")]
    target: Option<TargetName>,
}

/// How the load runs.
#[derive(Debug, Clone, Args)]
pub(crate) struct LoadArgs {
    /// Virtual users; several numbers (1,2,4,8) run in turn [default: 4]
    #[arg(long, value_name = "N[,N…]", help_heading = "Load")]
    users: Option<Users>,

    /// Load before the measured window, not counted in the results [default: 5s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = seconds, help_heading = "Load")]
    ramp_up: Option<Span>,

    /// Length of the measured window [default: 20s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = seconds, help_heading = "Load")]
    duration: Option<Span>,

    /// Number of transactions per user, instead of a ramp-up and a duration
    #[arg(long, value_name = "N", conflicts_with_all = ["duration", "ramp_up"], value_parser = at_least_one,
        help_heading = "Load")]
    pub(super) transactions: Option<NonZeroU64>,

    #[command(flatten)]
    pace: PaceArgs,

    #[command(flatten)]
    pub(crate) fleet: RunFleetArgs,

    #[command(flatten)]
    observation: ObservationArgs,

    #[command(flatten)]
    reset: ResetArgs,

    #[command(flatten)]
    pub(crate) repeat: RepeatArgs,

    /// Seed of every random value in the run: a number, time (from the clock) or rand (from the kernel)
    /// [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed, help_heading = "Load")]
    seed: Option<u64>,

    /// Maximum number of retries of a transaction after a serialization failure, a deadlock or a lock timeout [default:
    /// 10]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Load")]
    retries: Option<u16>,

    /// Statement timeout [default: 1m]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Load")]
    timeout: Option<Span>,

    /// Label by which other commands can refer to the run
    #[arg(long, value_name = "NAME")]
    label: Option<String>,

    #[command(flatten)]
    pub(crate) history: HistoryPlaceArgs,

    /// Fail if the data do not exist, instead of creating them
    #[arg(long)]
    no_build: bool,

    /// Check the consistency conditions after the run
    #[arg(long)]
    check: bool,

    /// Count the run even if other processes on the machine may account for 10 % or more of its result; the share is
    /// shown with the result and in every comparison
    #[arg(long)]
    accept_noise: bool,

    /// Print a specification file equivalent to this command line, and exit
    #[arg(long)]
    pub(crate) print_spec: bool,

    /// Write every transaction to this new file as comma-separated values: end, point, user, type, result, service and
    /// response time, retries
    #[arg(long, value_name = "FILE", conflicts_with_all = ["repeat", "until"], help_heading = "Output")]
    pub(super) transaction_log: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Serve metrics to Prometheus at this address during the run, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) metrics: Option<SocketAddr>,

    /// Show the run full-screen in the terminal; ? explains the keys, q stops the run
    #[arg(long, conflicts_with_all = ["json", "format", "repeat", "until"])]
    pub(crate) tui: bool,
}

impl TargetArgs {
    /// Applies the flag on top of the file.
    pub(super) fn apply(&self, spec: &mut Spec) {
        set(&mut spec.target, self.target.as_ref());
    }
}

impl LoadArgs {
    /// Whether numbers of users were given.
    pub(super) fn gives_users(&self) -> bool {
        self.users.is_some()
    }

    /// The flag of a length of the load that was given.
    pub(super) fn decided_by_queries(&self) -> Option<&'static str> {
        let given = [
            ("--ramp-up", self.ramp_up.is_some()),
            ("--duration", self.duration.is_some()),
            ("--transactions", self.transactions.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// Removes users, duration and ramp-up, as options of I/O jobs.
    pub(super) fn take_shape(&mut self) -> Result<Vec<(&'static str, String)>> {
        let mut options = Vec::new();
        if let Some(users) = self.users.take() {
            let [number] = users.numbers()[..] else {
                bail!(
                    "--users: give one number of clones; kelvin io sweep --numjobs 1,2,4 runs several in \
                       turn"
                );
            };
            options.push(("numjobs", number.to_string()));
        }
        if let Some(duration) = self.duration.take() {
            options.push(("runtime", microseconds(duration)));
            options.push(("time_based", "1".into()));
        }
        if let Some(ramp_up) = self.ramp_up.take() {
            options.push(("ramp_time", microseconds(ramp_up)));
        }
        Ok(options)
    }

    /// Applies the flags on top of the file.
    pub(super) fn apply(&self, spec: &mut Spec) -> Result<()> {
        if self.users.is_some() && self.pace.sweeps_users() {
            bail!("--users and --sweep users=… both give numbers of users; give one of them");
        }
        set(&mut spec.load.users, self.users.as_ref());
        set(&mut spec.load.ramp_up, self.ramp_up.as_ref());
        set(&mut spec.load.duration, self.duration.as_ref());
        set(&mut spec.load.seed, self.seed.as_ref());
        set(&mut spec.load.retries, self.retries.as_ref());
        set(&mut spec.load.timeout, self.timeout.as_ref());
        spec.load.transactions =
            if self.duration.is_some() { None } else { self.transactions.or(spec.load.transactions) };
        let log = |path: &PathBuf| LogFile { path: path.clone(), as_pgbench: false };
        spec.load.transaction_log = self.transaction_log.as_ref().map(log);
        self.pace.apply(spec);
        self.observation.apply(spec);
        self.reset.apply(spec);
        spec.label = self.label.clone().or(spec.label.take());
        spec.check |= self.check;
        spec.accept_noise |= self.accept_noise;
        if self.no_build {
            spec.build = Build::Never;
        }
        Ok(())
    }
}

/// As fio's options take a time.
fn microseconds(span: Span) -> String {
    format!("{}us", span.nanos() / 1000)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let refused = |_| "not an address with a port, such as 127.0.0.1:9464 or [::1]:9464".to_owned();
    text.replace("localhost", "127.0.0.1").parse().map_err(refused)
}

/// A seed, or its source; the seed that is used is stored with the run.
fn seed(text: &str) -> Result<u64, String> {
    match text {
        "time" => Ok(u64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(1)),
        "rand" => {
            let mut bytes = [0_u8; 8];
            let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
            read.map(|()| u64::from_ne_bytes(bytes)).map_err(|error| format!("/dev/urandom: {error}"))
        }
        number => number.parse().map_err(|_| "not a seed: write a number, time or rand".to_owned()),
    }
}

fn at_least_one(text: &str) -> Result<NonZeroU64, String> {
    match text.parse::<u64>().map(NonZeroU64::new) {
        Ok(Some(number)) => Ok(number),
        Ok(None) => Err("0 transactions would measure nothing; give at least 1".into()),
        Err(_) => Err("not a number of transactions".into()),
    }
}
