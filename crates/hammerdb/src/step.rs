//! The steps that a script requests, as commands of Kelvin.

use std::fmt;

use crate::settings::{Section, Settings, System};
use crate::tcl::Position;

/// A workload as HammerDB names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Benchmark {
    /// TPC-C.
    Tprocc,
    /// TPC-H.
    Tproch,
}

/// The action of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// `buildschema`: create user, database and tables, and load them.
    Build,
    /// `checkschema`: check the loaded data.
    Check,
    /// `deleteschema`: drop the tables.
    Delete,
    /// `vurun`: run the workload.
    Run,
}

impl Action {
    /// HammerDB's command for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Build => "buildschema",
            Self::Check => "checkschema",
            Self::Delete => "deleteschema",
            Self::Run => "vurun",
        }
    }
}

/// One step, with the settings at that moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What to do.
    pub action: Action,
    /// The workload.
    pub benchmark: Benchmark,
    /// Where the script requests it.
    pub position: Position,
    /// The settings.
    pub settings: Settings,
    /// Virtual users of a run.
    pub users: u32,
}

/// A Kelvin command line, without the program's name, and the password that it needs in its environment.
#[derive(Clone, PartialEq)]
pub struct KelvinCommand {
    /// The arguments.
    pub arguments: Vec<String>,
    /// The variable that holds the password, and the password.
    pub password: (&'static str, String),
    /// Settings of the script that have no effect, or an effect that its author may not expect.
    pub notes: Vec<String>,
}

impl fmt::Debug for KelvinCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KelvinCommand").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

/// The database and, on PostgreSQL, its owner: created before a build and dropped after `deleteschema`.
#[derive(Clone, PartialEq)]
pub struct Administration {
    /// The address of the administrator's database.
    pub target: String,
    /// The administrator's password.
    pub password: String,
    /// The objects, in the order of creation; they are dropped in reverse.
    pub objects: Vec<DatabaseObject>,
    /// The address of the tables' database for their owner, and the owner's password.
    pub own: (String, String),
    /// A query in that database that returns a row if it has tables.
    pub holds_tables: String,
}

/// A database or a role. Statements hold the role's password: they are not for logs.
#[derive(Clone, PartialEq)]
pub struct DatabaseObject {
    /// What it is, for messages.
    pub name: String,
    /// A query that returns a row if it exists.
    pub exists: String,
    /// The statement that creates it.
    pub create: String,
    /// The statement that drops it.
    pub drop: String,
}

impl Administration {
    fn new(admin: (String, &str), system: System, own: String, owner: (&str, &str), database: &str) -> Self {
        let objects = if system == System::SqlServer {
            let name = format!("[{}]", database.replace(']', "]]"));
            vec![DatabaseObject {
                name: format!("database {database}"),
                exists: format!("SELECT 1 FROM sys.databases WHERE name = N{}", quoted(database, '\'')),
                create: format!("CREATE DATABASE {name}"),
                drop: format!("DROP DATABASE {name}"),
            }]
        } else if system == System::Postgres {
            let (name, word) = (quoted(owner.0, '"'), quoted(owner.1, '\''));
            let created = quoted(database, '"');
            vec![
                DatabaseObject {
                    name: format!("role {}", owner.0),
                    exists: format!("SELECT 1 FROM pg_roles WHERE rolname = {}", quoted(owner.0, '\'')),
                    create: format!("CREATE ROLE {name} LOGIN PASSWORD {word}"),
                    drop: format!("DROP ROLE {name}"),
                },
                DatabaseObject {
                    name: format!("database {database}"),
                    exists: format!("SELECT 1 FROM pg_database WHERE datname = {}", quoted(database, '\'')),
                    create: format!("CREATE DATABASE {created} OWNER {name}"),
                    drop: format!("DROP DATABASE {created}"),
                },
            ]
        } else {
            let created = quoted(database, '`');
            // A backslash is an escape character in this server's strings.
            let text = quoted(&database.replace('\\', "\\\\"), '\'');
            vec![DatabaseObject {
                name: format!("database {database}"),
                exists: format!("SELECT 1 FROM information_schema.schemata WHERE schema_name = {text}"),
                create: format!("CREATE DATABASE {created}"),
                drop: format!("DROP DATABASE {created}"),
            }]
        };
        let holds_tables = match system {
            System::SqlServer => "SELECT TOP 1 1 FROM information_schema.tables WHERE table_schema <> 'sys'",
            System::Postgres => {
                "SELECT 1 FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', \
                 'information_schema') LIMIT 1"
            }
            _ => "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() LIMIT 1",
        };
        Self {
            target: admin.0,
            password: admin.1.to_owned(),
            objects,
            own: (own, owner.1.to_owned()),
            holds_tables: holds_tables.to_owned(),
        }
    }
}

/// Quotes an identifier or a string; quote characters within it are doubled.
fn quoted(text: &str, quote: char) -> String {
    let doubled = text.replace(quote, &format!("{quote}{quote}"));
    format!("{quote}{doubled}{quote}")
}

impl Step {
    /// A setting of the workload, by TPROC-C's name; a setting that only TPROC-H has is named with `tpch_`.
    pub(crate) fn text(&self, name: &str) -> &str {
        match (self.benchmark, name) {
            (Benchmark::Tprocc, _) => self.settings.get(Section::Tpcc, name),
            (_, "user" | "pass" | "dbase" | "superuser" | "superuserpass" | "defaultdbase" | "tspace") => {
                self.settings.get(Section::Tpch, &format!("tpch_{name}"))
            }
            _ => self.settings.get(Section::Tpch, name),
        }
    }

    pub(crate) fn connection(&self, name: &str) -> &str {
        self.settings.get(Section::Connection, name)
    }

    /// The owner of the tables, and the password.
    fn owner(&self) -> (&str, &str) {
        match self.settings.system() {
            System::SqlServer => (self.connection("uid"), self.connection("pass")),
            _ => (self.text("user"), self.text("pass")),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, String> {
        let value = self.text(name);
        match value.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" | "" => Ok(false),
            _ => Err(self.bad(name, "true or false")),
        }
    }

    pub(crate) fn count(&self, name: &str) -> Result<u32, String> {
        match self.text(name).trim().parse() {
            Ok(0) | Err(_) => Err(self.bad(name, "a whole number of at least 1")),
            Ok(count) => Ok(count),
        }
    }

    pub(crate) fn bad(&self, name: &str, wanted: &str) -> String {
        format!("{}_{name} is {:?}, but must be {wanted}", self.settings.system().word(), self.text(name))
    }

    /// A setting in minutes as a duration of Kelvin's, multiplied by `scale`.
    fn minutes(&self, name: &str, scale: f64) -> Result<String, String> {
        match self.text(name).trim().parse::<f64>() {
            Ok(minutes) if (0.0..=100_000.0).contains(&minutes) => {
                let milliseconds = (minutes * 60_000.0 * scale).round();
                let seconds = milliseconds / 1000.0;
                Ok(if seconds.fract() == 0.0 { format!("{seconds}s") } else { format!("{milliseconds}ms") })
            }
            _ => Err(self.bad(name, "a number of minutes")),
        }
    }

    /// Kelvin's command for the step. A `scale` below 1 shortens ramp-up and duration, for rehearsals;
    /// `label` is the label of the stored run.
    ///
    /// # Errors
    /// A setting has an unusable value, or the database system is not supported.
    pub fn command(&self, scale: f64, label: Option<&str>) -> Result<KelvinCommand, String> {
        let system = self.settings.system();
        if !system.is_supported() {
            return Err(format!(
                "this build cannot run {} on {}; it supports pg, maria, mysql and mssqls",
                self.action.word(),
                system.name()
            ));
        }
        let ((user, password), is_tprocc) = (self.owner(), self.benchmark == Benchmark::Tprocc);
        let target = self.target(user, self.text("dbase"))?;
        let verb = match self.action {
            Action::Build => "build",
            Action::Check => "check",
            Action::Delete => "drop",
            Action::Run => "run",
        };
        let workload = if is_tprocc { "tproc-c" } else { "tproc-h" };
        let mut arguments: Vec<String> = [verb, workload, "--target", &target].map(String::from).to_vec();
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        if is_tprocc {
            add(&["--profile", "hammerdb"]);
        }
        match self.action {
            Action::Build if !is_tprocc => {
                let build = self.tproch_build()?;
                add(&build.iter().map(String::as_str).collect::<Vec<_>>());
            }
            Action::Build => {
                let warehouses = self.count("count_ware")?;
                // Loaders in excess of the warehouses would be idle.
                let loaders = self.count("num_vu")?.min(warehouses);
                add(&["--warehouses", &warehouses.to_string(), "--loaders", &loaders.to_string()]);
                if self.flag("partition")? {
                    add(&["--partitions", &warehouses.div_ceil(100).clamp(2, 64).to_string()]);
                }
            }
            Action::Check => {}
            Action::Delete => add(&["--yes"]),
            Action::Run => {
                let run = if is_tprocc { self.run_arguments(scale) } else { self.tproch_run() }?;
                add(&run.iter().map(String::as_str).collect::<Vec<_>>());
                if let Some(label) = label {
                    add(&["--label", label]);
                }
            }
        }
        let variable = match system {
            System::Postgres => "PGPASSWORD",
            System::SqlServer => "MSSQL_PASSWORD",
            _ => "MYSQL_PWD",
        };
        let notes = if is_tprocc { self.notes() } else { self.tproch_notes() }?;
        Ok(KelvinCommand { arguments, password: (variable, password.to_owned()), notes })
    }

    fn run_arguments(&self, scale: f64) -> Result<Vec<String>, String> {
        let mut arguments = vec!["--no-build".to_owned()];
        let asynchronous = self.flag("async_scale")?;
        let users = if asynchronous {
            self.users.checked_mul(self.count("async_client")?).ok_or("there are too many virtual users")?
        } else {
            self.users
        };
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        add(&["--users", &users.to_string()]);
        match self.text("driver") {
            "timed" => {
                add(&[
                    "--ramp-up",
                    &self.minutes("rampup", scale)?,
                    "--duration",
                    &self.minutes("duration", scale)?,
                ]);
            }
            "test" => add(&["--transactions", &self.count("total_iterations")?.to_string()]),
            _ => return Err(self.bad("driver", "timed or test")),
        }
        if self.flag("allwarehouse")? {
            add(&["--all-warehouses"]);
        }
        // HammerDB's asynchronous clients key and think, with many users in one thread.
        if self.flag("keyandthink")? || asynchronous {
            add(&["--keying-and-thinking"]);
        }
        if self.settings.system() != System::Postgres && self.flag("no_stored_procs")? {
            add(&["--calls", "statements"]);
        }
        Ok(arguments)
    }

    fn notes(&self) -> Result<Vec<String>, String> {
        let prefix = self.settings.system().word();
        let mut notes = Vec::new();
        let mut when = |name: &str, text: &str| -> Result<(), String> {
            if self.flag(name)? {
                notes.push(format!("{prefix}_{name} {text}"));
            }
            Ok(())
        };
        match self.action {
            Action::Run => {
                when("connect_pool", "is ignored: every virtual user has one connection")?;
                when(
                    "timeprofile",
                    "needs nothing: the times of every transaction are always measured, without the ramp-up that \
                     HammerDB's include",
                )?;
                when("raiseerror", "is ignored: errors are counted by kind, and the run continues")?;
                match self.settings.system() {
                    System::Postgres => {
                        when(
                            "vacuum",
                            "is ignored in a run: use --reset to begin each run with the same tables",
                        )?;
                        when("dritasnap", "is ignored: it needs EnterpriseDB")?;
                        if !self.flag("storedprocs")? {
                            notes.push(
                                "pg_storedprocs is false: HammerDB's own driver then looks customers up by the name \"$8\"; \
                                 Kelvin passes the name, so that results differ from HammerDB's"
                                    .into(),
                            );
                        }
                    }
                    System::SqlServer => {
                        when("checkpoint", "is ignored: no checkpoint is forced before a run")?;
                    }
                    _ => when("prepared", "is ignored: statements are always prepared")?,
                }
            }
            Action::Build if self.settings.system() == System::SqlServer => {
                when(
                    "imdb",
                    "is ignored: tables are built on disk; memory-optimized ones of HammerDB are driven",
                )?;
            }
            Action::Build if self.settings.system() == System::Postgres => {
                when("oracompat", "is ignored: it needs EnterpriseDB")?;
                when("cituscompat", "is ignored: tables are not distributed")?;
                if self.text("tspace") != "pg_default" {
                    notes.push(
                        "pg_tspace is ignored: tables are created in the database's default tablespace"
                            .into(),
                    );
                }
            }
            _ => {}
        }
        Ok(notes)
    }

    /// The database of the step and its administrator.
    ///
    /// # Errors
    /// The address of its server is unusable.
    pub fn administration(&self) -> Result<Administration, String> {
        let system = self.settings.system();
        let owner = self.owner();
        let (user, password, database) = match system {
            System::Postgres => {
                (self.text("superuser"), self.text("superuserpass"), self.text("defaultdbase"))
            }
            System::SqlServer => (owner.0, owner.1, "master"),
            _ => (owner.0, owner.1, ""),
        };
        let own = self.target(owner.0, self.text("dbase"))?;
        let admin = (self.target(user, database)?, password);
        Ok(Administration::new(admin, system, own, owner, self.text("dbase")))
    }
}
