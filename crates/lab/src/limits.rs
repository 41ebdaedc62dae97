//! Limits on a process that generates load, or on a database server: CPUs, memory, and the I/O on one disk,
//! by CPU affinity and a control group.
//!
//! Every change is in an undo journal before it is made. The owner of the limits removes the groups again. If
//! it is killed, they are removed by the next process that sets limits, and by [`recover_left_over`].

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

/// The resources that a process may use. In a file:
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
    /// Bytes of memory, page cache included.
    pub memory: Option<MemoryLimit>,
    /// I/O on the disk that holds its files.
    pub io: Option<IoLimit>,
}

/// A list or a number of CPUs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "WrittenCpus")]
pub enum CpuLimit {
    /// A list in the kernel's form: "0-1,4".
    List(String),
    /// CPU time equal to that of so many CPUs.
    Number(f64),
}

/// Bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct MemoryLimit(pub u64);

/// I/O per second; each value is none where it is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(try_from = "WrittenIo")]
pub struct IoLimit {
    /// Bytes read per second.
    pub read: Option<f64>,
    /// Bytes written per second.
    pub write: Option<f64>,
    /// Read requests per second.
    pub read_iops: Option<f64>,
    /// Write requests per second.
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
            // The kernel's minimum quota is a millisecond, in a period of 20 ms.
            WrittenCpus::Number(number) if (0.05..=4096.0).contains(&number) => Ok(Self::Number(number)),
            WrittenCpus::Number(number) => Err(format!("{number} CPUs are not possible; 0.05 to 4096 are")),
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
                "memory = \"{written}\" is too little for a load generator; give 32 MiB at least"
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
                Err(format!("io: {name} = {value} is not possible; 1 is the least"))
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

/// A process with limits: one that is not started yet, or a running server.
pub struct Limited<'a> {
    /// Its name in messages, and part of the name of its group.
    pub name: String,
    /// Its limits.
    pub limits: &'a Limits,
    /// The files and devices that it reads and writes.
    pub paths: Vec<PathBuf>,
    /// The first process of a server.
    pub server: Option<u32>,
}

impl<'a> Limited<'a> {
    /// A database server, which has to run on this host. Its group gets the CPU weight of all its processes.
    ///
    /// # Errors
    /// When it does not run on this host, or cannot be distinguished from other servers.
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

/// Limits that are in effect until this is dropped.
pub struct HeldLimits {
    /// One entry per request, in the order of the requests.
    held: Vec<Option<Held>>,
    /// The controllers that all groups need. They are switched on before the first group and off after the
    /// last one, in the journal too.
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
    /// Creates the groups for processes that are started later; none for those without limits. Groups that an
    /// earlier process left behind are removed first.
    ///
    /// # Errors
    /// When one of them cannot be limited, with its name; then no limit is set.
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

    /// The limits of a process in a sentence; none if it has none.
    pub fn describe(&self, index: usize) -> Option<&str> {
        self.held.get(index)?.as_ref().map(|one| one.description.as_str())
    }

    /// Moves a process under its limits. It should not have done any work yet.
    ///
    /// # Errors
    /// When it cannot be moved.
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

    /// Whether the server's first process is no longer under its limits: it has ended, and a new one is
    /// outside its group.
    pub fn has_lost_server(&self, index: usize) -> bool {
        let Some(Some(one)) = self.held.get(index) else { return false };
        one.server.zip(one.group.as_ref()).is_some_and(|(server, group)| !group.processes().contains(&server))
    }

    /// Whether the kernel has killed one of its processes because of the memory limit.
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
        // Changes that could not be undone or recorded stay in the journal for the next process.
        let settled = done.into_iter().try_for_each(|number| journal.undone(number));
        let _left = settled.and_then(|()| journal.end());
    }
}

/// Removes the limits that killed processes left behind; returns one sentence for each.
///
/// # Errors
/// When some of them cannot be removed.
pub fn recover_left_over() -> Result<Vec<String>, StoreBenchError> {
    let mut found = Vec::new();
    let Some(journals) = directories::existing_journals() else { return Ok(found) };
    let entries = std::fs::read_dir(journals).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_journal(&entry.path())) {
        let access = Access::new(Manager::new(directories::servers()?));
        match recover(&entry.path(), &access, &mut |_| ()) {
            Ok(undone) => found.extend(undone.changes),
            // The journal of a running process.
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

/// Moves a server's processes into its group. The scheduler treats a group like one process, so with a CPU
/// controller the group gets the weight of all of them.
fn take_server(group: &mut Group, server: u32, cpu: bool) -> Result<(), String> {
    if cpu {
        group.weigh_as(cpus::processes_of_tree(server).len() as u32)?;
    }
    // Twice, because the server may have created another process while the first ones were moved.
    (0..2).try_for_each(|_| group.take(&cpus::processes_of_tree(server)))
}

fn because(name: &str, why: &str) -> String {
    format!("the limits of {name} cannot be set: {why}")
}

/// The only disk below these files and devices; a file that does not exist yet is on the disk of its directory.
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
            ("io = { read-iops = 0.0 }", "1 is the least"),
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
