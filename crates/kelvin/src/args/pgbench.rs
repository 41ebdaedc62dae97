//! pgbench's flags, with pgbench's letters where they mean the same.

use anyhow::{Result, anyhow, bail};
use clap::{ArgAction, Args};
use kelvin_run::Spec;
use kelvin_run::spec::{LogFile, TargetName, Work};
use kelvin_workload::pgbench::{Options, PartitionMethod, ScriptChoice};

use super::choice_parser::one_of;
use super::language::{Choices, LanguageArgs};
use super::load::{LoadArgs, TargetArgs};
use super::{Flags, set};

const TARGET: &str = "The database: postgres, postgres:VERSION, mysql or mariadb (a server of kelvin's own), or a URL, \
    postgres://user@host:port/database, mysql://…, mariadb://… or sqlserver://… [default: postgres]";

/// `kelvin check pgbench` and `kelvin drop pgbench`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("target", |arg| arg.help(TARGET)), disable_help_flag = true)]
pub(crate) struct DataArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The database, with the options of libpq's programs. Omitted ones come from PGHOST, PGPORT, PGUSER and PGDATABASE.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConnectionArgs {
    /// Host of the server, or directory of its socket
    #[arg(long, short = 'h', value_name = "HOST", conflicts_with = "target", help_heading = "Connection")]
    host: Option<String>,

    /// The server's port
    #[arg(long, short, value_name = "PORT", conflicts_with = "target", help_heading = "Connection")]
    port: Option<u16>,

    /// The user
    #[arg(long, short = 'U', value_name = "USER", conflicts_with = "target", help_heading = "Connection")]
    username: Option<String>,

    /// The database
    #[arg(long, short, value_name = "DATABASE", conflicts_with = "target", help_heading = "Connection")]
    dbname: Option<String>,

    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

impl ConnectionArgs {
    /// The target that the flags name; none if there are none.
    fn target(&self) -> Result<Option<TargetName>> {
        let Self { host, port, username, dbname, help: _ } = self;
        if host.is_none() && port.is_none() && username.is_none() && dbname.is_none() {
            return Ok(None);
        }
        let mut url = String::from("postgres://");
        if let Some(user) = username {
            url.push_str(&format!("{}@", escaped(user)));
        }
        url.push('/');
        url.push_str(&dbname.as_deref().map(escaped).unwrap_or_default());
        let host = host.as_ref().map(|host| format!("host={}", escaped(host)));
        let port = port.map(|port| format!("port={port}"));
        let parameters: Vec<String> = host.into_iter().chain(port).collect();
        if !parameters.is_empty() {
            url.push_str(&format!("?{}", parameters.join("&")));
        }
        url.parse().map(Some).map_err(|why: String| anyhow!(why))
    }
}

/// Text within a URL.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// How the tables are created.
#[derive(Debug, Clone, Args)]
pub(crate) struct TableArgs {
    /// Scale factor: 100,000 accounts, about 15 MB, per unit [default: that of the existing data; 1 in an empty
    /// database]
    #[arg(long, short, value_name = "N", help_heading = "Tables")]
    scale: Option<u32>,

    /// Fill factor of the tables, in percent [default: 100]
    #[arg(long, short = 'F', value_name = "N", help_heading = "Tables")]
    fillfactor: Option<u8>,

    /// Create foreign keys between the tables
    #[arg(long, help_heading = "Tables")]
    foreign_keys: bool,

    /// Create unlogged tables
    #[arg(long, help_heading = "Tables")]
    unlogged_tables: bool,

    /// Divide the accounts among N partitions [default: 0, a plain table]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000), help_heading = "Tables")]
    partitions: Option<u32>,

    /// Partitioning method: range or hash [default: range]
    #[arg(long, value_name = "METHOD", requires = "partitions", help_heading = "Tables",
        value_parser = one_of::<PartitionMethod>(&["range", "hash"]))]
    partition_method: Option<PartitionMethod>,

    /// Do not vacuum new tables, or the two small tables before a run
    #[arg(long, short, help_heading = "Tables")]
    no_vacuum: bool,
}

/// `kelvin build pgbench`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  kelvin build pgbench -s 20\n  \
    kelvin build pgbench -s 100 --target postgres://me@db.example/bench")]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    tables: TableArgs,
}

/// `kelvin run pgbench`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("users", |arg| arg.short('c').visible_alias("client")),
    mut_arg("duration", |arg| arg.short('T').visible_alias("time")),
    mut_arg("transactions", |arg| arg.short('t')),
    mut_arg("seed", |arg| arg.visible_alias("random-seed")),
    mut_arg("rate", |arg| arg.short('R')),
    after_help = "The short flags are pgbench's. -j, -P, --failures-detailed and --verbose-errors are \
    accepted and have no effect. The database is given by --target; its password comes from PGPASSWORD, \
    from ~/.pgpass, or from a prompt.\n\
    \n\
    Examples:\n\
    \x20 kelvin run pgbench\n\
    \x20 kelvin run pgbench -S -M prepared -s 100 -c 16 -T 60\n\
    \x20 kelvin run pgbench -b tpcb-like@1 -b select-only@9 --users 1,4,16\n\
    \x20 kelvin run pgbench -f transfer.sql@3 -S -D limit=100 --target postgres://me@db.example/bench\n\
    \n\
    docs/pgbench.md compares kelvin with pgbench."
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    choices: Choices,
    #[command(flatten)]
    pub(super) language: LanguageArgs,
    #[command(flatten)]
    tables: TableArgs,
    #[command(flatten)]
    pub(super) load: LoadArgs,
    #[command(flatten)]
    pub(super) familiar: FamiliarArgs,

    /// Create the tables and exit, as kelvin build pgbench does; existing complete tables of this scale are kept
    #[arg(long, short = 'i', help_heading = "Tables")]
    pub(super) initialize: bool,

    /// With -i: pgbench's steps; t, g (or G) and p are required, v vacuums, f creates foreign keys, d has no
    /// effect
    #[arg(long, short = 'I', value_name = "STEPS", requires = "initialize", value_parser = steps, help_heading = "Tables")]
    init_steps: Option<String>,

    /// Vacuum all four tables before the run
    #[arg(long, short = 'v', help_heading = "Tables")]
    vacuum_all: bool,

    /// Write every transaction to a new file in pgbench's format; see --log-prefix
    #[arg(long, short = 'l', conflicts_with_all = ["transaction_log", "repeat", "until"], help_heading = "Output")]
    log: bool,

    /// With -l: the file is PREFIX.PID
    #[arg(
        long,
        value_name = "PREFIX",
        default_value = "pgbench_log",
        requires = "log",
        help_heading = "Output"
    )]
    log_prefix: String,

    /// Print a built-in script and exit
    #[arg(long, value_name = "NAME", help_heading = "Scripts")]
    pub(super) show_script: Option<String>,
}

/// The supported steps of an initialisation.
fn steps(text: &str) -> Result<String, String> {
    let steps: String = text.chars().filter(|step| *step != ' ').collect();
    if let Some(other) = steps.chars().find(|step| !"dtgGvpf".contains(*step)) {
        return Err(format!("unknown step \"{other}\": the steps are d, t, g, G, v, p and f"));
    }
    if !steps.contains('t') || !steps.contains(['g', 'G']) || !steps.contains('p') {
        return Err("tables, data and primary keys are created together: t, g and p are required".into());
    }
    Ok(steps)
}

/// Flags of pgbench that have another name or no effect here.
#[derive(Debug, Clone, Args)]
pub(crate) struct FamiliarArgs {
    /// Maximum number of tries of a transaction: --retries plus one; 0 means no limit
    #[arg(long, value_name = "N", conflicts_with = "retries", help_heading = "Load", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(0..=65536))]
    max_tries: Option<u32>,

    #[arg(long, short, hide = true, value_name = "N")]
    jobs: Option<u32>,

    #[arg(long, short = 'P', hide = true, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    progress: Option<u32>,

    #[arg(long, hide = true)]
    failures_detailed: bool,

    #[arg(long, hide = true)]
    verbose_errors: bool,
}

impl FamiliarArgs {
    /// Applies the flags on top of the file.
    pub(super) fn apply(&self, spec: &mut Spec) -> Result<()> {
        match self.max_tries {
            // As in pgbench: a run that ends after a number of transactions would never end if every try failed.
            Some(0) if spec.load.transactions.is_some() => {
                bail!("--max-tries 0 retries without limit, which needs a time limit: give -T instead of -t")
            }
            Some(0) => spec.load.retries = u16::MAX,
            Some(tries) => spec.load.retries = u16::try_from(tries - 1)?,
            None => {}
        }
        Ok(())
    }

    /// Notes on flags that have no effect.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.jobs.is_some() {
            notes.push("--jobs has no effect: kelvin chooses its threads itself".to_owned());
        }
        if self.progress.is_some() {
            notes.push("--progress has no effect: every second is shown and stored".to_owned());
        }
        if self.failures_detailed || self.verbose_errors {
            notes.push("errors are always reported by class, code and second; no flag is needed".to_owned());
        }
        notes
    }
}

impl Flags for DataArgs {
    fn apply(&self, spec: &mut Spec) -> Result<()> {
        self.target.apply(spec);
        if let Some(target) = self.connection.target()? {
            spec.target = target;
        }
        Ok(())
    }
}

impl TableArgs {
    fn apply(&self, options: &mut Options) {
        options.scale = self.scale.or(options.scale);
        set(&mut options.fillfactor, self.fillfactor.as_ref());
        options.foreign_keys |= self.foreign_keys;
        options.unlogged_tables |= self.unlogged_tables;
        set(&mut options.partitions, self.partitions.as_ref());
        set(&mut options.partition_method, self.partition_method.as_ref());
        options.vacuum &= !self.no_vacuum;
    }
}

impl Flags for BuildArgs {
    fn apply(&self, spec: &mut Spec) -> Result<()> {
        if let Work::Pgbench(options) = &mut spec.work {
            self.tables.apply(options);
        }
        self.data.apply(spec)
    }
}

impl Flags for RunArgs {
    fn apply(&self, spec: &mut Spec) -> Result<()> {
        self.data.apply(spec)?;
        self.load.apply(spec)?;
        self.familiar.apply(spec)?;
        if self.log {
            let path = format!("{}.{}", self.log_prefix, std::process::id()).into();
            spec.load.transaction_log = Some(LogFile { path, as_pgbench: true });
        }
        let Work::Pgbench(options) = &mut spec.work else { return Ok(()) };
        self.tables.apply(options);
        options.vacuum_all |= self.vacuum_all;
        if let Some(steps) = &self.init_steps {
            options.vacuum &= steps.contains('v');
            options.foreign_keys |= steps.contains('f');
        }
        if !self.choices.0.is_empty() {
            options.scripts.clone_from(&self.choices.0);
        } else if options.scripts.is_empty() {
            options.scripts.push(ScriptChoice::builtin("tpcb-like")?);
        }
        self.language.apply(
            &mut options.define,
            &mut options.query_mode,
            &mut options.per_statement,
            &mut options.allow_shell,
        );
        Ok(())
    }
}
