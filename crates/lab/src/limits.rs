//! Limits of a process that generates load, or of a database's server: CPUs, memory, and the I/O on one disk, by its affinity
//! and a control group.
//!
//! What is changed stands in an undo journal before it is changed. Whoever holds the limits takes the groups away again; what
//! a kill leaves behind is taken away by the next who holds some, and by [`recover_left_over`].

use std::path::{Path, PathBuf};

use kelvin_database::Engine;
use kelvin_database::managed::Manager;
use kelvin_host::SystemTree;
use kelvin_measure::text::{binary, parse_bytes};
use serde::Deserialize;

use crate::control_group::{Controller, Flow, Group, disk_below};
use crate::directories;
use crate::error::Doing as _;
use crate::error::StoreBenchError;
use crate::factor::{Access, UndoError, cpus, recover};
use crate::undo::{Journal, JournalError, ReversibleChange};

/// What a process may use. In a file:
///
/// ```toml
/// cpus = "0-1"        # these CPUs; or a number of them, such as 1.5
/// memory = "512 MiB"
/// io = "20 MiB/s"     # read, and as much written; or a table of read, write, read-iops and write-iops
/// ```
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// CPUs.
    pub cpus: Option<CpuLimit>,
    /// Bytes of memory, pages of files among them.
    pub memory: Option<MemoryLimit>,
    /// I/O on the disk of its files.
    pub io: Option<IoLimit>,
}

/// Which CPUs, or how many.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "WrittenCpus")]
pub enum CpuLimit {
    /// A list in the kernel's form: "0-1,4".
    List(String),
    /// As much CPU time as so many CPUs have.
    Number(f64),
}

/// Bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct MemoryLimit(pub u64);

/// I/O per second; each none where it is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(try_from = "WrittenIo")]
pub struct IoLimit {
    /// Bytes read.
    pub read: Option<f64>,
    /// Bytes written.
    pub write: Option<f64>,
    /// Reads.
    pub read_iops: Option<f64>,
    /// Writes.
    pub write_iops: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "cpus is a list such as \"0-1\", or a number such as 1.5")]
enum WrittenCpus {
    Number(f64),
    List(String),
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "io is a rate such as \"20 MiB/s\", or a table with some of read and write (rates), read-iops and \
                 write-iops (numbers)"
)]
enum WrittenIo {
    Both(String),
    Each(WrittenIoTable),
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[derive(Default)]
struct WrittenIoTable {
    read: Option<String>,
    write: Option<String>,
    read_iops: Option<f64>,
    write_iops: Option<f64>,
}

impl TryFrom<WrittenCpus> for CpuLimit {
    type Error = String;

    fn try_from(written: WrittenCpus) -> Result<Self, String> {
        match written {
            WrittenCpus::List(list) if kelvin_host::numbers(&list).is_some_and(|all| !all.is_empty()) => {
                Ok(Self::List(list))
            }
            WrittenCpus::List(list) => Err(format!(
                "\"{list}\" is not a list of CPUs; write \"0-1\", or a number of CPUs such as 1.5"
            )),
            // The kernel's shortest quota is a millisecond in a period of 20.
            WrittenCpus::Number(number) if (0.05..=4096.0).contains(&number) => Ok(Self::Number(number)),
            WrittenCpus::Number(number) => Err(format!("{number} CPUs is out of range; give 0.05 to 4096")),
        }
    }
}

impl TryFrom<String> for MemoryLimit {
    type Error = String;

    fn try_from(written: String) -> Result<Self, String> {
        const LEAST: u64 = 32 << 20;
        match parse_bytes(&written.replace(' ', ""))? {
            bytes if bytes >= LEAST => Ok(Self(bytes)),
            _ => Err(format!(
                "memory = \"{written}\" is too little for a load generator; give at least 32 MiB"
            )),
        }
    }
}

impl TryFrom<WrittenIo> for IoLimit {
    type Error = String;

    fn try_from(written: WrittenIo) -> Result<Self, String> {
        let rate = |text: String| {
            let wrong = || format!("\"{text}\" is not a rate of I/O; write for example 20 MiB/s");
            let bytes = text.trim().strip_suffix("/s").ok_or_else(wrong)?;
            match parse_bytes(&bytes.replace(' ', "")).map_err(|_| wrong())? {
                0 => Err("io: a limit of 0 would end all I/O".to_owned()),
                bytes => Ok(bytes as f64),
            }
        };
        let count = |name: &str, value: Option<f64>| match value {
            Some(value) if !(value >= 1.0 && value.is_finite()) => {
                Err(format!("io: {name} = {value} is out of range; the minimum is 1"))
            }
            value => Ok(value),
        };
        let found = match written {
            WrittenIo::Both(text) => {
                let bytes = Some(rate(text)?);
                Self { read: bytes, write: bytes, ..Self::default() }
            }
            WrittenIo::Each(table) => Self {
                read: table.read.map(rate).transpose()?,
                write: table.write.map(rate).transpose()?,
                read_iops: count("read-iops", table.read_iops)?,
                write_iops: count("write-iops", table.write_iops)?,
            },
        };
        if found == Self::default() {
            return Err("io: give at least one of read, write, read-iops and write-iops".into());
        }
        Ok(found)
    }
}

impl IoLimit {
    fn flow(&self) -> Flow {
        Flow {
            reads: self.read_iops.unwrap_or(0.0),
            read_bytes: self.read.unwrap_or(0.0),
            writes: self.write_iops.unwrap_or(0.0),
            written_bytes: self.write.unwrap_or(0.0),
        }
    }

    /// "20 MiB/s read, 100 writes/s".
    fn describe(&self) -> String {
        let bytes = |value: Option<f64>, what: &str| value.map(|v| format!("{}/s {what}", binary(v as u64)));
        let count = |value: Option<f64>, what: &str| value.map(|v| format!("{v} {what}/s"));
        let parts = [
            bytes(self.read, "read"),
            bytes(self.write, "written"),
            count(self.read_iops, "reads"),
            count(self.write_iops, "writes"),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Limits {
    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// "CPUs 0-1, memory 512 MiB, 20 MiB/s read, 20 MiB/s written".
    pub fn describe(&self) -> String {
        let cpus = self.cpus.as_ref().map(|cpus| match cpus {
            CpuLimit::List(list) => format!("CPUs {list}"),
            CpuLimit::Number(number) => format!("{number} CPUs"),
        });
        let memory = self.memory.map(|MemoryLimit(bytes)| format!("memory {}", binary(bytes)));
        let parts = [cpus, memory, self.io.map(|io| io.describe())];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn controllers(&self) -> Vec<Controller> {
        let cpu = matches!(self.cpus, Some(CpuLimit::Number(_)));
        let wanted = [
            (cpu, Controller::Cpu),
            (self.memory.is_some(), Controller::Memory),
            (self.io.is_some(), Controller::Io),
        ];
        wanted.into_iter().filter(|(wanted, _)| *wanted).map(|(_, controller)| controller).collect()
    }
}

/// A process to be limited: before it is started, or a server that is at work.
pub struct Limited<'a> {
    /// Its name in messages and as a part of that of its group.
    pub name: String,
    /// What it may use.
    pub limits: &'a Limits,
    /// The files and devices that it reads and writes.
    pub paths: Vec<PathBuf>,
    /// The first process of a server.
    pub server: Option<u32>,
}

impl<'a> Limited<'a> {
    /// A database's server, which has to be on this host. It may have as much CPU time beside others as so many processes.
    ///
    /// # Errors
    /// When it is not, or cannot be told from others.
    pub fn server(name: String, limits: &'a Limits, engine: &dyn Engine) -> Result<Self, StoreBenchError> {
        let mut session = engine.connect().doing("connecting to the server that is to be limited")?;
        let found = kelvin_observe::engine::locate_server(engine, &mut *session);
        let Some(process) = found.server else {
            let why = "its server is not on this host, or cannot be identified: run kelvin on the server's host, \
                       outside of containers, as the server's user or as root";
            return Err(StoreBenchError::Refused(because(&name, why)));
        };
        let further = found.data.as_ref().map(|data| engine.further_directories(&mut *session, data));
        let paths = found.data.into_iter().chain(found.wal).chain(further.into_iter().flatten()).collect();
        Ok(Self { name, limits, paths, server: Some(process) })
    }
}

/// Limits in place, until this is dropped.
pub struct HeldLimits {
    /// In the order in which they were asked for.
    held: Vec<Option<Held>>,
    /// The controllers that all of them need: switched on before the first group and off after the last, in the journal too.
    controllers: Group,
    journal: Option<Journal>,
}

struct Held {
    limits: Limits,
    /// The first process of a server.
    server: Option<u32>,
    group: Option<Group>,
    description: String,
}

impl HeldLimits {
    /// Makes the groups of processes that are started later; none for those without limits. What an earlier process left
    /// behind is taken away before.
    ///
    /// # Errors
    /// When one cannot be limited, with its name; then none is.
    pub fn hold(wanted: &[Option<Limited<'_>>]) -> Result<Self, StoreBenchError> {
        let servers: Vec<&Limited<'_>> = wanted.iter().flatten().filter(|one| one.server.is_some()).collect();
        for (index, one) in servers.iter().enumerate() {
            if let Some(first) = servers[..index].iter().find(|other| other.server == one.server) {
                let why = format!("its server is already limited by {}", first.name);
                return Err(StoreBenchError::Refused(because(&one.name, &why)));
            }
        }
        let mut found =
            Self { held: Vec::with_capacity(wanted.len()), controllers: Group::none(), journal: None };
        if wanted.iter().flatten().any(|one| !one.limits.controllers().is_empty()) {
            recover_left_over()?;
            let name = format!("{}{}.journal", directories::LIMITS, std::process::id());
            let begun = Journal::begin(&directories::settings_journals()?.join(name));
            found.journal = Some(begun.map_err(|error| StoreBenchError::Refused(error.to_string()))?);
        }
        for one in wanted.iter().flatten() {
            found.switch_on(one).map_err(StoreBenchError::Refused)?;
        }
        for one in wanted {
            let made = one.as_ref().map(|one| found.make(one)).transpose();
            found.held.push(made.map_err(StoreBenchError::Refused)?);
        }
        Ok(found)
    }

    fn switch_on(&mut self, one: &Limited<'_>) -> Result<(), String> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let mut about = |change| journal.about_to(change).map(drop).map_err(|error| error.to_string());
        for controller in one.limits.controllers() {
            let switched = self.controllers.switch_on(controller, &mut about);
            switched.map_err(|why| because(&one.name, &why))?;
        }
        Ok(())
    }

    fn make(&mut self, one: &Limited<'_>) -> Result<Held, String> {
        let (name, limits) = (one.name.as_str(), one.limits);
        let because = |why: String| because(name, &why);
        let wanted = limits.controllers();
        let mut description = limits.describe();
        let mut group = None;
        if let Some(journal) = self.journal.as_mut().filter(|_| !wanted.is_empty()) {
            let mut about = |change| journal.about_to(change).map(drop).map_err(|error| error.to_string());
            let own = format!("kelvin-{}-{name}", std::process::id());
            let beside = one.server.unwrap_or_else(std::process::id);
            let made = Group::journalled(&SystemTree::default(), &own, beside, &wanted, &mut about);
            let mut made = made.map_err(because)?;
            if let Some(CpuLimit::Number(number)) = limits.cpus {
                made.bound_cpu(Some(number)).map_err(because)?;
            }
            if let Some(MemoryLimit(bytes)) = limits.memory {
                made.bound_memory(bytes).map_err(because)?;
            }
            if let Some(io) = &limits.io {
                let (disk, number) = one_disk(&one.paths).map_err(because)?;
                made.bound_io(&number, Some(io.flow())).map_err(because)?;
                description.push_str(&format!(" on {disk}"));
            }
            if let Some(server) = one.server {
                take_server(&mut made, server, matches!(limits.cpus, Some(CpuLimit::Number(_))))
                    .map_err(because)?;
            }
            let version = made.version().unwrap_or_default();
            description.push_str(&format!(" (control groups, version {version})"));
            group = Some(made);
        }
        Ok(Held { limits: limits.clone(), server: one.server, group, description })
    }

    /// The limits of one in a sentence; none of one without.
    pub fn describe(&self, index: usize) -> Option<&str> {
        self.held.get(index)?.as_ref().map(|one| one.description.as_str())
    }

    /// Puts a process under its limits; best before it has done anything.
    ///
    /// # Errors
    /// When it cannot be.
    pub fn take(&mut self, index: usize, process: u32) -> Result<(), String> {
        let Some(Some(one)) = self.held.get_mut(index) else { return Ok(()) };
        if let Some(group) = &mut one.group {
            group.take(&[process])?;
        }
        match &one.limits.cpus {
            Some(CpuLimit::List(list)) => cpus::bind_process(process, list),
            _ => Ok(()),
        }
    }

    /// Whether the first process of a server is no longer under its limits: it has ended, and a new one is outside of its group.
    pub fn has_lost_server(&self, index: usize) -> bool {
        let Some(Some(one)) = self.held.get(index) else { return false };
        one.server.zip(one.group.as_ref()).is_some_and(|(server, group)| !group.processes().contains(&server))
    }

    /// Whether the kernel has killed a process of its because of its memory limit.
    pub fn was_killed_for_memory(&self, index: usize) -> bool {
        let group = self.held.get(index).and_then(|one| one.as_ref()?.group.as_ref());
        group.and_then(Group::killed_for_memory).is_some_and(|count| count > 0)
    }
}

impl Drop for HeldLimits {
    fn drop(&mut self) {
        self.held.clear();
        self.controllers = Group::none();
        let Some(mut journal) = self.journal.take() else { return };
        let gone = |change: &ReversibleChange| match change {
            ReversibleChange::ControlGroup { group, .. } => !group.exists(),
            _ => true,
        };
        let done: Vec<u64> =
            journal.pending().iter().filter(|one| gone(&one.change)).map(|one| one.number).collect();
        // What is left, or cannot be written, stands in the journal for the next one.
        let settled = done.into_iter().try_for_each(|number| journal.undone(number));
        let _left = settled.and_then(|()| journal.end());
    }
}

/// Takes away the limits that killed processes left behind; what they were, in a sentence each.
///
/// # Errors
/// When some cannot be taken away.
pub fn recover_left_over() -> Result<Vec<String>, StoreBenchError> {
    let mut found = Vec::new();
    let Some(journals) = directories::existing_journals() else { return Ok(found) };
    let entries = std::fs::read_dir(journals).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_journal(&entry.path())) {
        let access = Access::new(Manager::new(directories::servers()?));
        match recover(&entry.path(), &access, &mut |_| ()) {
            Ok(undone) => found.extend(undone.changes),
            // Of a process that is at work.
            Err(UndoError::Journal(JournalError::InUse { .. })) => {}
            Err(error) => return Err(StoreBenchError::Refused(error.to_string())),
        }
    }
    Ok(found)
}

/// Whether a file is a journal of limits.
pub fn is_journal(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with(directories::LIMITS) && name.ends_with(".journal")
}

/// Moves a server's processes into its group. The scheduler treats a group like one process, so with a controller of CPU time
/// it gets the weight of all of them.
fn take_server(group: &mut Group, server: u32, cpu: bool) -> Result<(), String> {
    if cpu {
        group.weigh_as(cpus::processes_of_tree(server).len() as u32)?;
    }
    // Twice: the server may have made another process while the first ones were moved.
    (0..2).try_for_each(|_| group.take(&cpus::processes_of_tree(server)))
}

fn because(name: &str, why: &str) -> String {
    format!("the limits of {name} cannot be set: {why}")
}

/// The one disk below these files and devices; those that are made later are on that of their directory.
fn one_disk(paths: &[PathBuf]) -> Result<(String, String), String> {
    let existing = |path: &PathBuf| {
        let path = std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let found = path.ancestors().find(|path| path.exists()).map(Path::to_owned);
        found.ok_or_else(|| format!("{} does not exist", path.display()))
    };
    let mut found: Vec<(String, String)> = Vec::new();
    for path in paths {
        let disk = disk_below(&existing(path)?)?;
        if !found.contains(&disk) {
            found.push(disk);
        }
    }
    match found.len() {
        0 => Err("it has no files or devices whose I/O could be limited".into()),
        1 => Ok(found.swap_remove(0)),
        _ => {
            let names: Vec<String> = found.into_iter().map(|(name, _)| name).collect();
            Err(format!("its files are on several disks ({}), and a limit is for one", names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Limits, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn limits_are_read_and_what_is_wrong_is_said() {
        let found = read("cpus = \"0-1\"\nmemory = \"512 MiB\"\nio = \"20 MiB/s\"").unwrap();
        assert_eq!(found.cpus, Some(CpuLimit::List("0-1".into())));
        assert_eq!(found.memory, Some(MemoryLimit(512 << 20)));
        let io = found.io.unwrap();
        assert_eq!((io.read, io.write, io.read_iops), (Some(20.0 * 1_048_576.0), io.read, None));
        let found = read("cpus = 1\n[io]\nread = \"1m/s\"\nwrite-iops = 50").unwrap();
        assert_eq!(found.cpus, Some(CpuLimit::Number(1.0)));
        assert_eq!(found.io.unwrap().describe(), "1 MiB/s read, 50 writes/s");
        for (text, part) in [
            ("cpus = \"x\"", "not a list of CPUs"),
            ("cpus = 0", "0 CPUs"),
            ("cpus = true", "cpus is a list"),
            ("memory = \"lots\"", "is not a size"),
            ("memory = \"1 MiB\"", "too little"),
            ("io = \"20 MiB\"", "not a rate"),
            ("io = { reed = \"1m/s\" }", "read-iops"),
            ("io = {}", "at least one"),
            ("io = { read-iops = 0.0 }", "the minimum is 1"),
            ("ram = 1", "unknown field"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }

    #[test]
    fn files_that_are_not_there_yet_are_on_the_disk_of_their_directory() {
        let here = std::env::temp_dir();
        let disks = [here.clone(), here.join("not/yet/there")].map(|path| one_disk(&[path]));
        assert_eq!(disks[0], disks[1]);
        assert!(one_disk(&[]).unwrap_err().contains("no files"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,20}", number in any::<f64>()) {
            let _ = read(&format!("io = {text:?}\nmemory = {text:?}\ncpus = {text:?}"));
            let _ = CpuLimit::try_from(WrittenCpus::Number(number));
        }
    }
}
