//! Host properties of a cell: kernel settings, mounts, and the binding of the server and Kelvin.

use std::path::{Path, PathBuf};

use super::Applier;
use crate::factor::access::Server;
use crate::factor::memory::Cpusets;
use crate::factor::{cpus, kernel, level, memory, mount};
use crate::undo::{Process, ReversibleChange};

impl Applier {
    pub(super) fn kernel(&mut self, key: &str, value: &str) -> Result<(), String> {
        for file in kernel::files(&level::kernel_path(key)?)? {
            if kernel::same(&kernel::read(&file)?, value) {
                continue;
            }
            // Each scheduler starts with its own number of requests. The number is restored after the scheduler.
            let requests = file.ends_with("queue/scheduler").then(|| file.with_file_name("nr_requests"));
            let requests = requests.filter(|requests| requests.exists());
            if let Some(requests) = &requests {
                self.kernel_before(requests)?;
            }
            let before = self.kernel_before(&file)?;
            kernel::write(&file, value)?;
            let now = kernel::read(&file)?;
            if !kernel::same(&now, value) {
                return Err(format!("{} contains {}", file.display(), now.trim()));
            }
            // The original scheduler again, with its original number of requests.
            if let Some(requests) = requests.filter(|_| kernel::same(&now, &before)) {
                kernel::write(&requests, self.kernel_before(&requests)?.trim())?;
            }
        }
        Ok(())
    }

    /// The content of the file before the first change; it is in the journal afterwards.
    pub(super) fn kernel_before(&mut self, file: &Path) -> Result<String, String> {
        let recorded = self.pending().find_map(|change| match change {
            ReversibleChange::Kernel { file: other, before } if other == file => Some(before.clone()),
            _ => None,
        });
        if let Some(before) = recorded {
            return Ok(before);
        }
        let before = kernel::read(file)?;
        self.record(ReversibleChange::Kernel { file: file.into(), before: before.clone() })?;
        Ok(before)
    }

    pub(super) fn mount(&mut self, directory: &str, wanted: &str) -> Result<(), String> {
        let now = mount::options(directory)?;
        if mount::holds(&now, wanted) {
            return Ok(());
        }
        let recorded = self.pending().any(
            |change| matches!(change, ReversibleChange::Mount { directory: other, .. } if other == directory),
        );
        if !recorded {
            self.record(ReversibleChange::Mount { directory: directory.into(), options: now })?;
        }
        mount::remount(directory, wanted)?;
        let now = mount::options(directory)?;
        if mount::holds(&now, wanted) { Ok(()) } else { Err(format!("{directory} is mounted with {now}")) }
    }

    pub(super) fn server_cpus(&mut self, server: &Server, wanted: &str) -> Result<(), String> {
        let pid = server.process().map_err(|error| error.to_string())?;
        if cpus::astray(pid, wanted)?.is_none() {
            return Ok(());
        }
        let process = Process::of(pid).ok_or("the server has exited")?;
        let recorded = self.pending().any(
            |change| matches!(change, ReversibleChange::Affinity { process: other, .. } if *other == process),
        );
        if !recorded {
            self.record(ReversibleChange::Affinity { process, cpus: cpus::allowed_cpus(Some(pid))? })?;
        }
        cpus::bind_tree(pid, wanted)?;
        match cpus::astray(pid, wanted)? {
            None => Ok(()),
            Some((thread, where_it_is)) => {
                Err(format!("process {thread} of the server runs on {where_it_is}"))
            }
        }
    }

    /// Releases a server that has inherited the CPUs of this process, because this process restarted it after a
    /// crash.
    pub(super) fn unbind(&mut self, server: &Server) -> Result<(), String> {
        let mine = cpus::allowed_cpus(None)?;
        let pid = server.process().map_err(|error| error.to_string())?;
        if mine != self.home && cpus::allowed_cpus(Some(pid))? == mine {
            cpus::bind_tree(pid, &self.home)
        } else {
            Ok(())
        }
    }

    pub(super) fn server_memory(&mut self, server: &Server, wanted: &str) -> Result<(), String> {
        let pid = server.process().map_err(|error| error.to_string())?;
        self.memory(pid, wanted).map(drop)
    }

    pub(super) fn client_memory(&mut self, wanted: &str) -> Result<(), String> {
        if let Some(group) = self.memory(std::process::id(), wanted)? {
            self.client_group = Some(group);
        }
        Ok(())
    }

    /// Binds a process and its children. Returns their new group and the previous one if they had to be moved.
    fn memory(&mut self, pid: u32, wanted: &str) -> Result<Option<(PathBuf, PathBuf)>, String> {
        let nodes = cpus::list(level::numbers(wanted)?);
        let pids = cpus::processes_of_tree(pid);
        if pids.iter().filter_map(|pid| memory::allowed(*pid)).all(|now| now == nodes) {
            return Ok(None);
        }
        let Cpusets { group: here, room } = Cpusets::of(pid)?;
        let recorded = self.pending().find_map(|change| match change {
            ReversibleChange::MemoryNodes { group, from } if *group == here => {
                Some((group.clone(), from.clone()))
            }
            _ => None,
        });
        let (group, from) = if let Some(both) = recorded {
            both
        } else {
            let group = room.join(format!("kelvin-{}-{pid}", std::process::id()));
            self.record(ReversibleChange::MemoryNodes { group: group.clone(), from: here.clone() })?;
            (group, here)
        };
        Cpusets::bind(&group, &from, &pids, wanted)?;
        Ok(Some((group, from)))
    }
}
