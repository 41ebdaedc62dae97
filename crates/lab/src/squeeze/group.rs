//! A separate control group, into which processes are moved temporarily.
//!
//! Version 1 has a tree per controller, version 2 one for all. In version 1 the group is below the processes' own, so
//! that existing limits still apply; in version 2, where a group with processes may have no groups below it, it is at
//! the top. Whatever ends this process, the processes are moved back: when the group is dropped, and by a shell that
//! waits for the end of this process.

use kelvin_host::cgroup::{group_of, hierarchy};
use kelvin_host::{Mount, SystemTree};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::cleanup_shell::apart;

/// Bandwidth is dealt out once a period: short against a transaction's second, long against the slices of 5 ms in which
/// the scheduler hands it to a CPU.
const PERIOD_US: u64 = 20_000;

/// Restores the processes left in these groups when its standard input ends, that is, when this process ends. The
/// arguments are pairs of a group and the original group of its processes, followed by pairs of "-controller" and the
/// file in which it was switched on.
const BACKSTOP: &str = "cat >/dev/null
while [ $# -ge 2 ]; do
  case \"$1\" in -*) echo \"$1\" > \"$2\";; esac
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

/// One directory of ours.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    mount: PathBuf,
    version: Version,
    /// The name in `/proc/PID/cgroup` in version 1.
    controller: &'static str,
    /// The original group of the first process.
    home: PathBuf,
    /// The original group of each process.
    homes: BTreeMap<u32, PathBuf>,
}

/// A group, and the processes in it.
#[derive(Debug)]
pub(super) struct Group {
    cpu: Option<usize>,
    io: Option<usize>,
    directories: Vec<Directory>,
    /// The controllers that were switched off for the top-level groups before, with the file that controls it.
    switched_on: Vec<(PathBuf, &'static str)>,
    backstop: Option<Child>,
}

/// The controllers that a group is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Controller {
    Cpu,
    Io,
}

impl Controller {
    fn name(self, version: Version) -> &'static str {
        match (self, version) {
            (Self::Cpu, _) => "cpu",
            (Self::Io, Version::One) => "blkio",
            (Self::Io, Version::Two) => "io",
        }
    }
}

impl Group {
    /// Creates a group beside that of `process`. Unavailable controllers are returned with the reason.
    pub(super) fn make(name: &str, process: u32, wanted: &[Controller]) -> (Self, Vec<(Controller, String)>) {
        let mut group = Self::none();
        let mut refused = Vec::new();
        for &controller in wanted {
            match group.add(name, process, controller) {
                Ok(index) => match controller {
                    Controller::Cpu => group.cpu = Some(index),
                    Controller::Io => group.io = Some(index),
                },
                Err(why) => refused.push((controller, why)),
            }
        }
        group.backstop = group.wait_for_our_end();
        (group, refused)
    }

    fn add(&mut self, name: &str, process: u32, controller: Controller) -> Result<usize, String> {
        let (mount, version) = find(&SystemTree::default().mounts(), controller)?;
        let label = controller.name(version);
        if version == Version::Two {
            // Before checking whether a group exists: it is the same for both controllers.
            let file = mount.join("cgroup.subtree_control");
            if switch_on(&file, label)? {
                self.switched_on.push((file, label));
            }
        }
        if let Some(known) = self.directories.iter().position(|one| one.mount == mount) {
            return Ok(known);
        }
        let home = home(process, &mount, version, label)?;
        let base = if version == Version::One { home.clone() } else { mount.clone() };
        let path = base.join(format!("kelvin-squeeze-{}-{name}", std::process::id()));
        fs::create_dir(&path)
            .map_err(|e| format!("cannot create the control group {}: {e}", path.display()))?;
        let homes = BTreeMap::new();
        self.directories.push(Directory { path, mount, version, controller: label, home, homes });
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

    /// Moves processes into it. One that has ended meanwhile is no error.
    pub(super) fn take(&mut self, processes: &[u32]) -> Result<(), String> {
        for one in &mut self.directories {
            for &process in processes {
                let Ok(home) = home(process, &one.mount, one.version, one.controller) else { continue };
                if home == one.path {
                    continue;
                }
                match write(&one.path.join("cgroup.procs"), &process.to_string()) {
                    Ok(()) => drop(one.homes.insert(process, home)),
                    Err(_) if !Path::new(&format!("/proc/{process}")).exists() => {}
                    Err(why) => return Err(format!("process {process} cannot be moved: {why}")),
                }
            }
        }
        Ok(())
    }

    /// An empty one.
    pub(super) fn none() -> Self {
        Self { cpu: None, io: None, directories: Vec::new(), switched_on: Vec::new(), backstop: None }
    }

    /// The processes in it now.
    pub(super) fn processes(&self) -> Vec<u32> {
        let Some(one) = self.directories.first() else { return Vec::new() };
        let text = fs::read_to_string(one.path.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.trim().parse().ok()).collect()
    }

    /// Gives it the weight of so many separate processes: the scheduler treats a group like one process, and moving
    /// sixteen processes into one would give most of their CPU time to the processes outside.
    pub(super) fn weigh_as(&self, processes: u32) -> Result<(), String> {
        let one = self.cpu.map(|index| &self.directories[index]).ok_or("it has no CPU controller")?;
        match one.version {
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

    /// Bounds the CPU time of its processes to so many CPUs; none lifts the bound.
    pub(super) fn bound_cpu(&self, cores: Option<f64>) -> Result<(), String> {
        let one = self.cpu.map(|index| &self.directories[index]).ok_or("it has no CPU controller")?;
        let quota = cores.map(|cores| ((cores * PERIOD_US as f64) as u64).max(1000));
        match one.version {
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

    /// Bounds requests per second and bytes per second to a device ("254:0"); none lifts the bound.
    pub(super) fn bound_io(&self, device: &str, bound: Option<Flow>) -> Result<(), String> {
        let one = self.io.map(|index| &self.directories[index]).ok_or("it has no I/O controller")?;
        match one.version {
            Version::One => {
                let flow = bound.unwrap_or_default();
                for (file, value) in [
                    ("read_iops", flow.reads),
                    ("read_bps", flow.read_bytes),
                    ("write_iops", flow.writes),
                    ("write_bps", flow.written_bytes),
                ] {
                    // 0 lifts it; a rate without a value is left unchanged.
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

    /// Requests and bytes of its processes to a device so far; none where the kernel does not count them.
    pub(super) fn io(&self, device: &str) -> Option<Flow> {
        let one = &self.directories[self.io?];
        let read = |file: &str| fs::read_to_string(one.path.join(file)).ok();
        if one.version == Version::Two {
            return Some(flow_two(&read("io.stat")?, device));
        }
        let requests = read("blkio.throttle.io_serviced_recursive")?;
        let bytes = read("blkio.throttle.io_service_bytes_recursive")?;
        let (reads, writes) = flow_one(&requests, device);
        let (read_bytes, written_bytes) = flow_one(&bytes, device);
        Some(Flow { reads, read_bytes, writes, written_bytes })
    }

    /// Whether it can bound the CPU.
    pub(super) fn has_cpu(&self) -> bool {
        self.cpu.is_some()
    }

    /// Whether it can bound I/O.
    pub(super) fn has_io(&self) -> bool {
        self.io.is_some()
    }
}

/// Requests and bytes per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Flow {
    pub(super) reads: f64,
    pub(super) read_bytes: f64,
    pub(super) writes: f64,
    pub(super) written_bytes: f64,
}

/// Reads and writes in lines of "254:0 Read 12". A device without a line has had no I/O.
fn flow_one(text: &str, device: &str) -> (f64, f64) {
    let of = |kind: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(device)?.trim_start().strip_prefix(kind));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0.0)
    };
    (of("Read "), of("Write "))
}

/// The same of a line such as "254:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0".
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
    pub(super) fn minus(self, before: Self) -> Self {
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
            // A process that forks while it is moved leaves a child behind, so the list is read again.
            for _ in 0..50 {
                let text = fs::read_to_string(one.path.join("cgroup.procs")).unwrap_or_default();
                for process in text.lines() {
                    let home =
                        process.parse().ok().and_then(|id: u32| one.homes.get(&id)).unwrap_or(&one.home);
                    // It has ended, or the next round tries again.
                    let _ = write(&home.join("cgroup.procs"), process);
                }
                if fs::remove_dir(&one.path).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        for (file, label) in &self.switched_on {
            // It stays on if another group below needs it now.
            let _in_use = write(file, &format!("-{label}"));
        }
        if let Some(mut backstop) = self.backstop.take() {
            drop(backstop.stdin.take());
            let _ended = backstop.wait();
        }
    }
}

/// Switches a controller on for the groups beside `file`; whether it was off.
fn switch_on(file: &Path, label: &str) -> Result<bool, String> {
    let on = fs::read_to_string(file).unwrap_or_default();
    if on.split_whitespace().any(|one| one == label) {
        return Ok(false);
    }
    write(file, &format!("+{label}")).map(|()| true)
}

/// Mount point of the controller's tree.
fn find(mounts: &[Mount], controller: Controller) -> Result<(PathBuf, Version), String> {
    if let Some(found) = hierarchy(mounts, Some(controller.name(Version::One))) {
        return Ok((found.point.clone(), Version::One));
    }
    let name = controller.name(Version::Two);
    let Some(unified) = hierarchy(mounts, None).map(|mount| mount.point.clone()) else {
        return Err("no control groups are mounted on this host".into());
    };
    let known = fs::read_to_string(unified.join("cgroup.controllers")).unwrap_or_default();
    if known.split_whitespace().any(|one| one == name) {
        return Ok((unified, Version::Two));
    }
    Err(format!("the control groups in {} have no controller {name}", unified.display()))
}

/// The directory of a process's group.
fn home(process: u32, mount: &Path, version: Version, controller: &str) -> Result<PathBuf, String> {
    let path = format!("/proc/{process}/cgroup");
    let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let within = group_of(&text, (version == Version::One).then_some(controller))
        .ok_or_else(|| format!("{path} names no group of {controller}"))?;
    Ok(mount.join(within.trim_start_matches('/')))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn groups_are_found_in_both_versions() {
        let mounts = "1 0 0:1 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n";
        let mounts = Mount::all(mounts);
        assert_eq!(find(&mounts, Controller::Cpu), Ok(("/sys/fs/cgroup/cpu,cpuacct".into(), Version::One)));
        assert!(find(&mounts, Controller::Io).is_err());
    }

    #[test]
    fn flows_are_read_in_both_versions() {
        let text = "7:0 Read 1\n254:0 Read 3\n254:0 Write 395\n254:0 Total 398\nTotal 398\n";
        assert_eq!((flow_one(text, "254:0"), flow_one(text, "8:0")), ((3.0, 395.0), (0.0, 0.0)));
        let flow = flow_two("8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n", "8:0");
        assert_eq!(flow, Flow { reads: 3.0, read_bytes: 1.0, writes: 4.0, written_bytes: 2.0 });
    }

    #[test]
    fn what_we_switched_on_is_switched_off_again() {
        let file = std::env::temp_dir().join(format!("kelvin-subtree-control-{}", std::process::id()));
        fs::write(&file, "cpuset memory\n").unwrap();
        assert_eq!(switch_on(&file, "cpu"), Ok(true));
        let left = |backstop: bool| {
            let switched_on = vec![(file.clone(), "cpu")];
            let mut group =
                Group { cpu: None, io: None, directories: Vec::new(), switched_on, backstop: None };
            if backstop {
                // As after a kill: only the shell is left to do it.
                group.backstop = group.wait_for_our_end();
                group.switched_on.clear();
            }
            drop(group);
            let text = fs::read_to_string(&file).unwrap();
            fs::write(&file, "cpu memory\n").unwrap();
            text.trim().to_owned()
        };
        assert_eq!((left(false), left(true)), ("-cpu".to_owned(), "-cpu".to_owned()));
        assert_eq!(switch_on(&file, "cpu"), Ok(false), "it was on before us");
        fs::remove_file(&file).unwrap();
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([0-9]{0,2}:?[a-z,]{0,8}:?[/a-z]{0,9}\n?){0,5}\\PC{0,9}") {
            let _ = (flow_one(&text, "8:0"), flow_two(&text, "8:0"));
            let _ = (group_of(&text, Some("cpu")), find(&Mount::all(&text), Controller::Cpu));
        }
    }
}
