//! A separate control group, into which processes are moved temporarily.
//!
//! Version 1 has a tree per controller, version 2 a single one. In version 1 the group is created below that
//! of the processes, so that existing limits still apply. In version 2, where a group with processes may have
//! no groups below it, it is created at the top. However this process ends, the processes are moved back:
//! when the group is dropped, and after a kill either by a shell that waits for the end of this process, or
//! from the undo journal that lists the group ([`Group::journalled`]).

use kelvin_host::cgroup::{group_of, hierarchy};
use kelvin_host::disk::{device_name, device_number, whole_disk};
use kelvin_host::{Mount, SystemTree};
use kelvin_observe::sample::BackingDevice;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::cleanup_shell::apart;
use crate::undo::ReversibleChange;

/// The kernel grants bandwidth once per period. The period is short compared with a transaction's second, and
/// long compared with the slices of 5 ms in which the scheduler assigns it to a CPU.
const PERIOD_US: u64 = 20_000;

/// Restores the processes left in these groups when its standard input ends, that is, when this process ends. The
/// arguments are pairs of a group and the original group of its processes, followed by pairs of "-controller" and the
/// file in which it was switched on. It stays on under the condition of [`switch_off`].
const BACKSTOP: &str = "cat >/dev/null
while [ $# -ge 2 ]; do
  case \"$1\" in -*)
    others=
    for one in \"${2%/*}\"/*/cgroup.procs; do [ -e \"$one\" ] && others=yes; done
    [ \"$others\" ] || echo \"$1\" > \"$2\"
  esac
  if [ -d \"$1\" ]; then
    for round in 1 2 3; do
      while read -r process; do echo \"$process\" > \"$2/cgroup.procs\"; done < \"$1/cgroup.procs\"
      rmdir \"$1\" && break
      sleep 1
    done
  fi
  shift 2
done 2>/dev/null";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Where the groups of a controller are mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    mount: PathBuf,
    /// The group that is mounted there. In a container it may be a group of the host.
    root: String,
    version: Version,
}

/// A directory of our group in one tree.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    hierarchy: Hierarchy,
    /// The name in `/proc/PID/cgroup` in version 1.
    controller: &'static str,
    /// The original group of the first process.
    home: PathBuf,
    /// The original group of each process.
    homes: BTreeMap<u32, PathBuf>,
}

/// A group, and the processes in it.
#[derive(Debug)]
pub(crate) struct Group {
    tree: SystemTree,
    cpu: Option<usize>,
    io: Option<usize>,
    memory: Option<usize>,
    directories: Vec<Directory>,
    /// The controllers that were off for the top-level groups, each with the file that controls it.
    switched_on: Vec<(PathBuf, &'static str)>,
    backstop: Option<Child>,
}

/// The controllers that a group is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Controller {
    Cpu,
    Io,
    Memory,
}

impl Controller {
    fn name(self, version: Version) -> &'static str {
        match (self, version) {
            (Self::Cpu, _) => "cpu",
            (Self::Io, Version::One) => "blkio",
            (Self::Io, Version::Two) => "io",
            (Self::Memory, _) => "memory",
        }
    }
}

/// Records a change that is about to be made, so that it can be undone after a kill.
type About<'a> = &'a mut dyn FnMut(ReversibleChange) -> Result<(), String>;

impl Group {
    /// Creates a group for `process`, at the place that the module describes. Unavailable controllers are
    /// returned with the reason.
    pub(crate) fn make(name: &str, process: u32, wanted: &[Controller]) -> (Self, Vec<(Controller, String)>) {
        let mut group = Self::none();
        let mut refused = Vec::new();
        let name = format!("kelvin-squeeze-{}-{name}", std::process::id());
        for &controller in wanted {
            if let Err(why) = group.add(&name, process, controller, &mut |_| Ok(())) {
                refused.push((controller, why));
            }
        }
        group.backstop = group.wait_for_our_end();
        (group, refused)
    }

    /// Creates a group of this name for `process`, with all of these controllers. Every change is passed to
    /// `about` first.
    pub(crate) fn journalled(
        tree: &SystemTree,
        name: &str,
        process: u32,
        wanted: &[Controller],
        about: About<'_>,
    ) -> Result<Self, String> {
        let mut group = Self::none();
        group.tree = tree.clone();
        for &controller in wanted {
            group.add(name, process, controller, about)?;
        }
        Ok(group)
    }

    fn add(
        &mut self,
        name: &str,
        process: u32,
        controller: Controller,
        about: About<'_>,
    ) -> Result<(), String> {
        // Done before checking whether a group exists, because it is the same for all controllers.
        let hierarchy = self.switch_on(controller, about)?;
        let label = controller.name(hierarchy.version);
        let known = self.directories.iter().position(|one| one.hierarchy.mount == hierarchy.mount);
        let index =
            known.map_or_else(|| self.make_directory(hierarchy, (name, label), process, about), Ok)?;
        match controller {
            Controller::Cpu => self.cpu = Some(index),
            Controller::Io => self.io = Some(index),
            Controller::Memory => self.memory = Some(index),
        }
        Ok(())
    }

    /// Switches a controller of version 2 on. It is switched off again when this is dropped.
    pub(crate) fn switch_on(
        &mut self,
        controller: Controller,
        about: About<'_>,
    ) -> Result<Hierarchy, String> {
        let hierarchy = find(&self.tree, controller)?;
        let label = controller.name(hierarchy.version);
        let file = hierarchy.mount.join("cgroup.subtree_control");
        if hierarchy.version == Version::Two && is_off(&file, label) {
            about(ReversibleChange::Controller { file: file.clone(), name: label.into() })?;
            write(&file, &format!("+{label}"))?;
            self.switched_on.push((file, label));
        }
        Ok(hierarchy)
    }

    /// Creates the directory in one tree, and returns its index.
    fn make_directory(
        &mut self,
        hierarchy: Hierarchy,
        (name, controller): (&str, &'static str),
        process: u32,
        about: About<'_>,
    ) -> Result<usize, String> {
        let home = home(&self.tree, process, &hierarchy, controller)?;
        let base = if hierarchy.version == Version::One { &home } else { &hierarchy.mount };
        let path = base.join(name);
        about(ReversibleChange::ControlGroup { group: path.clone(), from: home.clone() })?;
        fs::create_dir(&path)
            .map_err(|e| format!("cannot create the control group {}: {e}", path.display()))?;
        let homes = BTreeMap::new();
        self.directories.push(Directory { path, hierarchy, controller, home, homes });
        Ok(self.directories.len() - 1)
    }

    fn wait_for_our_end(&self) -> Option<Child> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(BACKSTOP).arg("kelvin-squeeze");
        for one in &self.directories {
            command.arg(&one.path).arg(&one.home);
        }
        for (file, label) in &self.switched_on {
            command.arg(format!("-{label}")).arg(file);
        }
        apart(command.stdin(Stdio::piped())).spawn().ok()
    }

    /// Moves processes into the group. A process that has ended meanwhile is no error.
    pub(crate) fn take(&mut self, processes: &[u32]) -> Result<(), String> {
        for one in &mut self.directories {
            for &process in processes {
                let home = match home(&self.tree, process, &one.hierarchy, one.controller) {
                    Ok(home) => home,
                    Err(_) if !self.tree.has(format!("/proc/{process}")) => continue,
                    Err(why) => return Err(format!("process {process} cannot be moved: {why}")),
                };
                if home == one.path {
                    continue;
                }
                match write(&one.path.join("cgroup.procs"), &process.to_string()) {
                    Ok(()) => drop(one.homes.insert(process, home)),
                    Err(_) if !self.tree.has(format!("/proc/{process}")) => {}
                    Err(why) => return Err(format!("process {process} cannot be moved: {why}")),
                }
            }
        }
        Ok(())
    }

    /// A group without directories.
    pub(crate) fn none() -> Self {
        Self {
            tree: SystemTree::default(),
            cpu: None,
            io: None,
            memory: None,
            directories: Vec::new(),
            switched_on: Vec::new(),
            backstop: None,
        }
    }

    /// The processes in it now.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let Some(one) = self.directories.first() else { return Vec::new() };
        let text = fs::read_to_string(one.path.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.trim().parse().ok()).collect()
    }

    /// Gives the group the weight of `processes` separate processes. The scheduler treats a group like one process,
    /// so moving sixteen processes into one would give most of their CPU time to the processes outside.
    pub(crate) fn weigh_as(&self, processes: u32) -> Result<(), String> {
        let one = self.cpu.map(|index| &self.directories[index]).ok_or("it has no CPU controller")?;
        match one.hierarchy.version {
            // 1024 and 100 are the weights of one process; the upper limits are the kernel's.
            Version::One => {
                let shares = processes.saturating_mul(1024).clamp(2, 262_144);
                write(&one.path.join("cpu.shares"), &shares.to_string())
            }
            Version::Two => {
                let weight = processes.saturating_mul(100).clamp(1, 10_000);
                write(&one.path.join("cpu.weight"), &weight.to_string())
            }
        }
    }

    /// Limits the CPU time of the group's processes to that of `cores` CPUs; none removes the limit.
    pub(crate) fn bound_cpu(&self, cores: Option<f64>) -> Result<(), String> {
        let one = self.cpu.map(|index| &self.directories[index]).ok_or("it has no CPU controller")?;
        let quota = cores.map(|cores| ((cores * PERIOD_US as f64) as u64).max(1000));
        match one.hierarchy.version {
            Version::One => {
                write(&one.path.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
                let quota = quota.map_or("-1".into(), |quota| quota.to_string());
                write(&one.path.join("cpu.cfs_quota_us"), &quota)
            }
            Version::Two => {
                let quota = quota.map_or("max".into(), |quota| quota.to_string());
                write(&one.path.join("cpu.max"), &format!("{quota} {PERIOD_US}"))
            }
        }
    }

    /// Limits requests per second and bytes per second on a device ("254:0"); none removes the limit.
    pub(crate) fn bound_io(&self, device: &str, bound: Option<Flow>) -> Result<(), String> {
        let one = self.io.map(|index| &self.directories[index]).ok_or("it has no I/O controller")?;
        match one.hierarchy.version {
            Version::One => {
                let flow = bound.unwrap_or_default();
                for (file, value) in [
                    ("read_iops", flow.reads),
                    ("read_bps", flow.read_bytes),
                    ("write_iops", flow.writes),
                    ("write_bps", flow.written_bytes),
                ] {
                    // 0 removes the limit; a rate without a value is left unchanged.
                    let path = one.path.join(format!("blkio.throttle.{file}_device"));
                    write(&path, &format!("{device} {}", value.ceil() as u64))?;
                }
                Ok(())
            }
            Version::Two => {
                let word = |value: Option<f64>| {
                    value.filter(|v| *v > 0.0).map_or("max".into(), |v| (v.ceil() as u64).to_string())
                };
                let text = format!(
                    "{device} rbps={} wbps={} riops={} wiops={}",
                    word(bound.map(|b| b.read_bytes)),
                    word(bound.map(|b| b.written_bytes)),
                    word(bound.map(|b| b.reads)),
                    word(bound.map(|b| b.writes))
                );
                write(&one.path.join("io.max"), &text)
            }
        }
    }

    /// Limits the memory of the group's processes, in bytes, including the page cache of files that they read
    /// and write.
    pub(crate) fn bound_memory(&self, bytes: u64) -> Result<(), String> {
        let one = self.memory.map(|index| &self.directories[index]).ok_or("it has no memory controller")?;
        let (limit, swap) = match one.hierarchy.version {
            Version::One => ("memory.limit_in_bytes", ("memory.memsw.limit_in_bytes", bytes)),
            Version::Two => ("memory.max", ("memory.swap.max", 0)),
        };
        write(&one.path.join(limit), &bytes.to_string())?;
        // Without swap accounting there is no such file. Version 1 counts memory and swap together.
        let file = one.path.join(swap.0);
        if file.exists() { write(&file, &swap.1.to_string()) } else { Ok(()) }
    }

    /// The number of its processes that the kernel has killed because of its memory limit; none where that is
    /// not counted.
    pub(crate) fn killed_for_memory(&self) -> Option<u64> {
        let one = &self.directories[self.memory?];
        let file = if one.hierarchy.version == Version::One { "memory.oom_control" } else { "memory.events" };
        let text = fs::read_to_string(one.path.join(file)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
    }

    /// The version of its trees; none for an empty group.
    pub(crate) fn version(&self) -> Option<u32> {
        let one = self.directories.first()?;
        Some(if one.hierarchy.version == Version::One { 1 } else { 2 })
    }

    /// Requests and bytes of its processes on a device so far; none where the kernel does not count them.
    pub(crate) fn io(&self, device: &str) -> Option<Flow> {
        let one = &self.directories[self.io?];
        let read = |file: &str| fs::read_to_string(one.path.join(file)).ok();
        if one.hierarchy.version == Version::Two {
            return Some(flow_two(&read("io.stat")?, device));
        }
        let requests = read("blkio.throttle.io_serviced_recursive")?;
        let bytes = read("blkio.throttle.io_service_bytes_recursive")?;
        let (reads, writes) = flow_one(&requests, device);
        let (read_bytes, written_bytes) = flow_one(&bytes, device);
        Some(Flow { reads, read_bytes, writes, written_bytes })
    }

    /// Whether it can limit CPU time.
    pub(crate) fn has_cpu(&self) -> bool {
        self.cpu.is_some()
    }

    /// Whether it can limit I/O.
    pub(crate) fn has_io(&self) -> bool {
        self.io.is_some()
    }
}

/// Requests and bytes per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Flow {
    pub(crate) reads: f64,
    pub(crate) read_bytes: f64,
    pub(crate) writes: f64,
    pub(crate) written_bytes: f64,
}

/// Reads and writes in lines of "254:0 Read 12". A device without a line has had no I/O.
fn flow_one(text: &str, device: &str) -> (f64, f64) {
    let of = |kind: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(device)?.trim_start().strip_prefix(kind));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0.0)
    };
    (of("Read "), of("Write "))
}

/// Reads and writes in a line such as "254:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0".
fn flow_two(text: &str, device: &str) -> Flow {
    let line = text.lines().find_map(|l| l.strip_prefix(device)?.strip_prefix(' ')).unwrap_or("");
    let of = |key: &str| {
        let word = line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        word.and_then(|count| count.parse().ok()).unwrap_or(0.0)
    };
    Flow { reads: of("rios"), read_bytes: of("rbytes"), writes: of("wios"), written_bytes: of("wbytes") }
}

impl Flow {
    /// The difference to `before`; decreasing counters count as zero.
    pub(crate) fn minus(self, before: Self) -> Self {
        let rise = |now: f64, then: f64| (now - then).max(0.0);
        Self {
            reads: rise(self.reads, before.reads),
            read_bytes: rise(self.read_bytes, before.read_bytes),
            writes: rise(self.writes, before.writes),
            written_bytes: rise(self.written_bytes, before.written_bytes),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for one in &self.directories {
            // What cannot be removed stays in the journal, or in the shell's list.
            let _left = release(&one.path, &one.home, &one.homes);
        }
        for (file, label) in &self.switched_on {
            switch_off(file, label);
        }
        if let Some(mut backstop) = self.backstop.take() {
            drop(backstop.stdin.take());
            let _ended = backstop.wait();
        }
    }
}

/// Moves the processes of a group to their previous groups, or to `from`, and removes the group. Does nothing
/// if it no longer exists.
pub(crate) fn release(group: &Path, from: &Path, homes: &BTreeMap<u32, PathBuf>) -> Result<(), String> {
    // A process that forks while it is moved leaves a child behind, so the list is read again.
    for _ in 0..100 {
        if !group.is_dir() {
            return Ok(());
        }
        let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        for process in text.lines() {
            let home = process.parse().ok().and_then(|id: u32| homes.get(&id));
            // It has ended, or the next round tries again.
            let _ = write(&home.map_or(from, PathBuf::as_path).join("cgroup.procs"), process);
        }
        if fs::remove_dir(group).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(format!("the control group {} cannot be removed", group.display()))
}

/// Whether a controller is off for the groups beside `file`.
fn is_off(file: &Path, label: &str) -> bool {
    let on = fs::read_to_string(file).unwrap_or_default();
    on.split_whitespace().all(|one| one != label)
}

/// Switches off a controller that was switched on. It stays on if there is any other group: that group may
/// have limits by now, and the kernel would remove them instead of refusing.
pub(crate) fn switch_off(file: &Path, name: &str) {
    let beside = file.parent().and_then(|top| fs::read_dir(top).ok()).into_iter().flatten().flatten();
    let others = beside.map(|entry| entry.path().join("cgroup.procs")).any(|group| group.exists());
    if !others && !is_off(file, name) {
        // Fails if a group has just been created that has groups below it.
        let _in_use = write(file, &format!("-{name}"));
    }
}

/// The name and the number of the only disk below a path or a block device, for I/O limits.
pub(crate) fn disk_below(path: &Path) -> Result<(String, String), String> {
    let tree = SystemTree::default();
    let block = fs::metadata(path).ok().filter(|data| data.file_type().is_block_device());
    let device = block.and_then(|data| device_name(&tree, &device_number(data.rdev())));
    let disks = if let Some(device) = device {
        vec![whole_disk(&tree, &device)]
    } else {
        let place = BackingDevice::find(&tree, path);
        if place.disks.is_empty() {
            let unknown = || format!("no disk was found below {}", path.display());
            return Err(place.unknown.unwrap_or_else(unknown));
        }
        place.disks
    };
    let [disk] = &disks[..] else {
        return Err(format!("{} is on several disks: {}", path.display(), disks.join(", ")));
    };
    let path = format!("/sys/class/block/{disk}/dev");
    let number = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    Ok((disk.clone(), number.trim().to_owned()))
}

/// The mount of a controller's groups.
fn find(tree: &SystemTree, controller: Controller) -> Result<Hierarchy, String> {
    let mounts = tree.mounts();
    let of = |found: &Mount, version| Hierarchy {
        mount: tree.path(&found.point),
        root: found.root.clone(),
        version,
    };
    if let Some(found) = hierarchy(&mounts, Some(controller.name(Version::One))) {
        return Ok(of(found, Version::One));
    }
    let name = controller.name(Version::Two);
    let Some(unified) = hierarchy(&mounts, None).map(|found| of(found, Version::Two)) else {
        return Err("no control groups are mounted on this host".into());
    };
    let known = fs::read_to_string(unified.mount.join("cgroup.controllers")).unwrap_or_default();
    if known.split_whitespace().any(|one| one == name) {
        return Ok(unified);
    }
    Err(format!("the control groups in {} have no controller {name}", unified.mount.display()))
}

/// The directory of a process's group.
fn home(tree: &SystemTree, process: u32, of: &Hierarchy, controller: &str) -> Result<PathBuf, String> {
    let path = format!("/proc/{process}/cgroup");
    let text = tree.text(&path).ok_or_else(|| format!("{path} cannot be read"))?;
    let within = group_of(&text, (of.version == Version::One).then_some(controller))
        .ok_or_else(|| format!("{path} names no group of {controller}"))?;
    // As in `kelvin_host::cgroup::own_groups`: in a container a group of the host is mounted.
    let within = Path::new(within).strip_prefix(&of.root).unwrap_or(Path::new(within));
    Ok(of.mount.join(within.strip_prefix("/").unwrap_or(within)))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests;
