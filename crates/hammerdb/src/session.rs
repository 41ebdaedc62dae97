//! HammerDB's commands: the settings they change, and the steps they start.

use std::collections::BTreeMap;

use crate::settings::{Section, Settings, System, is_secret};
use crate::step::{Action, Benchmark, Step};
use crate::tcl::{Host, HostError, Position};

/// Executes a script's steps and prints its output.
pub trait Runner {
    /// Executes a step. For [`Action::Run`] the result is the job's identifier.
    fn run(&mut self, step: &Step) -> Result<String, HostError>;

    /// Executes `job` or `jobs` with these arguments and returns the text to print.
    fn job(&mut self, command: &str, arguments: &[String]) -> Result<String, HostError>;

    /// Prints output of the script.
    fn print(&mut self, text: &str);

    /// Warns about a command of the script that has no effect.
    fn warn(&mut self, position: &Position, text: &str);

    /// Waits, for `after`.
    fn wait(&mut self, milliseconds: u64) -> Result<(), HostError>;

    /// The number of processors of this host.
    fn processors(&self) -> u32;

    /// Whether the user has interrupted the script.
    fn interrupted(&self) -> bool;
}

/// The commands of HammerDB that this build supports.
pub(crate) const COMMANDS: [&str; 35] = [
    "buildschema",
    "checkschema",
    "customscript",
    "datagenrun",
    "dbset",
    "deleteschema",
    "dgset",
    "diset",
    "giset",
    "help",
    "job",
    "jobs",
    "librarycheck",
    "loadscript",
    "metset",
    "metstart",
    "metstatus",
    "metstop",
    "numberOfCPUs",
    "numberOfWHs",
    "print",
    "runtimer",
    "steprun",
    "tcset",
    "tcstart",
    "tcstatus",
    "tcstop",
    "vucomplete",
    "vucreate",
    "vudestroy",
    "vurun",
    "vuset",
    "vustatus",
    "waittocomplete",
    "wvudestroy",
];

/// Commands that need no action: `vurun` returns when the run is over, and every run counts transactions and
/// observes the host.
const WITHOUT_EFFECT: [&str; 10] = [
    "runtimer",
    "waittocomplete",
    "tcset",
    "tcstart",
    "tcstatus",
    "tcstop",
    "metset",
    "metstart",
    "metstatus",
    "metstop",
];

/// Options of `vuset` other than `vu`.
const USER_OPTIONS: [&str; 8] =
    ["delay", "repeat", "iterations", "showoutput", "logtotemp", "unique", "nobuff", "timestamps"];

/// A session of HammerDB's command line.
pub struct Session<'r> {
    runner: &'r mut dyn Runner,
    settings: BTreeMap<System, Settings>,
    system: System,
    benchmark: Benchmark,
    users: u32,
    /// Whether `loadscript` was called since the database or the workload changed.
    loaded: bool,
    /// Whether virtual users exist.
    created: bool,
    options: BTreeMap<String, String>,
}

type Result<T, E = HostError> = std::result::Result<T, E>;

fn failure<T>(message: impl Into<String>) -> Result<T> {
    Err(HostError::from(message.into()))
}

impl<'r> Session<'r> {
    /// A session in HammerDB's initial state, but with PostgreSQL instead of Oracle.
    pub fn new(runner: &'r mut dyn Runner) -> Self {
        Self {
            runner,
            settings: BTreeMap::new(),
            system: System::Postgres,
            benchmark: Benchmark::Tprocc,
            users: 1,
            loaded: false,
            created: false,
            options: BTreeMap::new(),
        }
    }

    fn settings(&mut self) -> &mut Settings {
        let system = self.system;
        self.settings.entry(system).or_insert_with(|| Settings::new(system))
    }

    fn command(&mut self, name: &str, arguments: &[&str], position: &Position) -> Result<String> {
        match (name, arguments) {
            (name, _) if WITHOUT_EFFECT.contains(&name) => Ok(String::new()),
            ("dbset", ["db", name]) => self.set_system(name),
            ("dbset", ["bm", name]) => self.set_benchmark(name),
            ("dbset", _) => failure("dbset is called as: dbset db|bm NAME"),
            ("diset", [section, key, value]) => {
                self.set(section, key, value, position);
                Ok(String::new())
            }
            ("diset", _) => {
                // HammerDB prints the usage of diset and continues.
                self.runner.warn(position, "ignored: diset is called as: diset DICTIONARY KEY VALUE");
                Ok(String::new())
            }
            ("giset", [section, key, value]) => {
                self.options.insert(format!("{section} {key}"), (*value).to_owned());
                Ok(String::new())
            }
            ("vuset", ["vu", count]) => self.set_users(count, position),
            ("vuset", [option, value]) if USER_OPTIONS.contains(option) => {
                if matches!(*option, "repeat" | "delay" | "iterations")
                    && !matches!(*value, "0" | "1" | "500")
                {
                    let text = format!("vuset {option} is ignored: users start together and run once");
                    self.runner.warn(position, &text);
                }
                Ok(String::new())
            }
            ("vuset", _) => failure(format!("vuset is called as: vuset vu|{} VALUE", USER_OPTIONS.join("|"))),
            ("loadscript", []) => {
                self.load_script(position);
                Ok(String::new())
            }
            ("vucreate", []) => self.create_users(position),
            ("vudestroy" | "wvudestroy", []) => {
                self.created = false;
                Ok("vudestroy success".into())
            }
            ("vurun", []) => self.run_users(position),
            ("buildschema", []) => self.step(Action::Build, position),
            ("checkschema", []) => self.step(Action::Check, position),
            ("deleteschema", []) => self.step(Action::Delete, position),
            ("numberOfCPUs", []) => Ok(self.runner.processors().to_string()),
            ("numberOfWHs", []) => Ok(warehouses(self.runner.processors()).to_string()),
            ("job" | "jobs", words) => {
                let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
                let text = self.runner.job(name, &words)?;
                self.runner.print(&text);
                Ok(String::new())
            }
            ("print", [what, ..]) => {
                self.show(what);
                Ok(String::new())
            }
            ("vucomplete", []) => Ok("true".into()),
            ("vustatus", []) => {
                let state = if self.created { "created" } else { "none" };
                Ok(format!("{} virtual users: {state}", self.users))
            }
            ("librarycheck", _) => {
                self.runner.print("Kelvin has its own database clients: no library is needed.\n");
                Ok(String::new())
            }
            ("help", _) => {
                let known = COMMANDS.join(" ");
                self.runner.print(&format!("Commands: {known}\nand Tcl's.\n"));
                Ok(String::new())
            }
            ("customscript" | "steprun" | "datagenrun" | "dgset", _) => failure(format!(
                "{name} is not supported: a script of your own SQL runs with `kelvin run script`"
            )),
            _ => failure(format!("{name} is called with other arguments here: {}", arguments.join(" "))),
        }
    }

    fn set_system(&mut self, name: &str) -> Result<String> {
        let Some(system) = System::parse(name) else {
            return failure(format!(
                "there is no database system {name:?}: pg, maria, mysql, mssqls, ora or db2"
            ));
        };
        self.loaded &= system == self.system;
        self.system = system;
        Ok(format!("Database set to {}", system.name()))
    }

    fn set_benchmark(&mut self, name: &str) -> Result<String> {
        let benchmark = match name.to_ascii_uppercase().as_str() {
            "TPC-C" | "TPROC-C" => Benchmark::Tprocc,
            "TPC-H" | "TPROC-H" => Benchmark::Tproch,
            _ => return failure(format!("there is no workload {name:?}: TPC-C or TPC-H")),
        };
        self.loaded &= benchmark == self.benchmark;
        self.benchmark = benchmark;
        Ok(format!("Benchmark set to {}", name.to_ascii_uppercase()))
    }

    fn set(&mut self, section: &str, key: &str, value: &str, position: &Position) {
        let Some(known) = Section::parse(section) else {
            self.runner.warn(
                position,
                &format!("ignored: there is no dictionary {section:?}: connection, tpcc or tpch"),
            );
            return;
        };
        // Tcl's braces group words; inside a word from another language they remain.
        let value = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(value);
        if let Err(unknown) = self.settings().set(known, key, value) {
            let meant = unknown.nearest.map_or(String::new(), |nearest| format!("; did you mean {nearest}?"));
            let system = self.system.name();
            self.runner
                .warn(position, &format!("ignored: {system}'s dictionary {section} has no key {key}{meant}"));
        }
    }

    fn set_users(&mut self, count: &str, position: &Position) -> Result<String> {
        /// More users than any host serves.
        const MOST: u32 = 1_000_000;
        if self.created {
            self.runner.warn(position, "ignored: virtual users exist; call vudestroy first");
            return Ok(String::new());
        }
        let count = if count == "vcpu" { Some(self.runner.processors()) } else { count.trim().parse().ok() };
        match count.filter(|count| (1..=MOST).contains(count)) {
            Some(count) => {
                self.users = count;
                Ok(String::new())
            }
            None => failure("the number of virtual users must be a whole number of at least 1, or vcpu"),
        }
    }

    fn load_script(&mut self, position: &Position) {
        if self.created {
            self.runner.warn(position, "ignored: virtual users exist; call vudestroy first");
        } else {
            self.loaded = true;
        }
    }

    fn create_users(&mut self, position: &Position) -> Result<String> {
        if !self.loaded {
            return failure("no workload is loaded; call loadscript first");
        }
        if self.created {
            self.runner.warn(position, "ignored: virtual users exist; call vudestroy first");
        }
        self.created = true;
        Ok(String::new())
    }

    fn run_users(&mut self, position: &Position) -> Result<String> {
        if !self.created {
            return failure("there are no virtual users; call loadscript and vucreate first");
        }
        let job = self.step(Action::Run, position)?;
        Ok(format!("Benchmark Run jobid={job}"))
    }

    fn step(&mut self, action: Action, position: &Position) -> Result<String> {
        let (benchmark, users) = (self.benchmark, self.users);
        let settings = self.settings().clone();
        let step = Step { action, benchmark, position: position.clone(), settings, users };
        self.runner.run(&step)
    }

    fn show(&mut self, what: &str) {
        let text = match what {
            "dict" => self.dictionaries(),
            "db" => format!("Database {} set.\n", self.system.name()),
            "bm" => format!(
                "Benchmark set to {}\n",
                if self.benchmark == Benchmark::Tprocc { "TPC-C" } else { "TPC-H" }
            ),
            "vuconf" => format!("Virtual Users = {}\n", self.users),
            "generic" => self.options.iter().flat_map(|(key, value)| [key, " = ", value, "\n"]).collect(),
            _ => return,
        };
        self.runner.print(&text);
    }

    fn dictionaries(&mut self) -> String {
        use std::fmt::Write as _;
        let benchmark = self.benchmark;
        let mut text = format!("Dictionary Settings for {}\n", self.system.name());
        let settings = self.settings();
        for section in Section::ALL {
            let other = if benchmark == Benchmark::Tprocc { Section::Tpch } else { Section::Tpcc };
            if section == other {
                continue;
            }
            let _ = writeln!(text, "{} {{", section.word());
            for (key, value) in settings.of_section(section) {
                let value = if is_secret(key) && !value.is_empty() { "********" } else { value };
                let _ = writeln!(text, " {key} = {value}");
            }
            text.push_str("}\n");
        }
        text
    }
}

/// The number of warehouses that HammerDB suggests for a number of processors.
fn warehouses(processors: u32) -> u32 {
    let eight = processors.saturating_mul(8);
    let round = if eight <= 100 { eight.div_ceil(10) * 10 } else { eight };
    round.min(4000)
}

impl Host for Session<'_> {
    fn call(&mut self, name: &str, arguments: &[String], position: &Position) -> Option<Result<String>> {
        if !COMMANDS.contains(&name) {
            return None;
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Some(self.command(name, &arguments, position))
    }

    fn print(&mut self, text: &str) {
        self.runner.print(text);
    }

    fn knows(&self, name: &str) -> bool {
        COMMANDS.contains(&name)
    }

    fn wait(&mut self, milliseconds: u64) -> Result<()> {
        self.runner.wait(milliseconds)
    }

    fn interrupted(&self) -> bool {
        self.runner.interrupted()
    }

    fn replacement(&self, file_name: &str) -> Option<&'static str> {
        // HammerDB's own scripts redirect their output by redefining `puts`.
        ["generic_tprocc_result.tcl", "generic_tproch_result.tcl"].contains(&file_name).then_some(JOB_RESULTS)
    }
}

/// Prints the results of the job whose identifier, returned by `vurun`, is in the file `$::outputfile`.
const JOB_RESULTS: &str = "
set kelvin_channel [open $::outputfile r]
set kelvin_job [string trim [lindex [split [gets $kelvin_channel] =] 1]]
close $kelvin_channel
foreach kelvin_part {result timing tcount} {job $kelvin_job $kelvin_part}
";
