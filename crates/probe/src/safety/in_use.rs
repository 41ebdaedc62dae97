//! Current users of a device or file.

use kelvin_host::disk::{device_name, device_number, whole_disk};
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::super::device;
use kelvin_host::SystemTree;

/// Time limit of the search for processes that have a file open.
const LOOKING: Duration = Duration::from_millis(300);
/// How long the result is reused for other files.
const FRESH: Duration = Duration::from_millis(200);
/// How often a process that has a file open is checked again, and how long after, before the file counts as in use.
const CHECKS: u32 = 5;
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// A use of a device that writing to it would disrupt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DeviceUse {
    /// The device, or a device built upon it, is mounted at `point`.
    Mounted { device: String, point: PathBuf },
    /// The device, or a device built upon it, is active swap.
    Swap { device: String },
}

/// The use of a device: of itself, its partitions, the disk that it is a partition of, and all devices built upon them.
pub(super) fn of_device(tree: &SystemTree, name: &str) -> Option<DeviceUse> {
    let mut family = device::built_upon(tree, name);
    let disk = whole_disk(tree, name);
    if disk != name {
        // The disk itself may hold a filesystem over all its partitions. Its other partitions are irrelevant.
        family.insert(disk.clone());
        for holder in tree.names(format!("/sys/class/block/{disk}/holders")) {
            family.extend(device::built_upon(tree, &holder));
        }
    }
    used(tree, &family)
}

fn used(tree: &SystemTree, family: &BTreeSet<String>) -> Option<DeviceUse> {
    for mount in tree.mounts() {
        // A btrfs has its own device number: its mount entry names the device.
        let by_number = device_name(tree, &mount.number);
        let device = by_number.or_else(|| {
            let number =
                fs::metadata(tree.path(mount.source.starts_with('/').then_some(&mount.source)?)).ok()?.rdev();
            device_name(tree, &device_number(number))
        });
        if let Some(device) = device.filter(|device| family.contains(device)) {
            return Some(DeviceUse::Mounted { device, point: mount.point });
        }
    }
    let device_of_swap = |path: &str| {
        let number = fs::metadata(tree.path(path)).ok()?.rdev();
        device_name(tree, &device_number(number))
    };
    let swap =
        swaps(tree).iter().filter_map(|path| device_of_swap(path)).find(|device| family.contains(device));
    swap.map(|device| DeviceUse::Swap { device })
}

/// Files and devices that are used as swap.
pub(super) fn swaps(tree: &SystemTree) -> Vec<String> {
    let text = tree.text("/proc/swaps").unwrap_or_default();
    text.lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .map(|path| path.replace("\\040", " "))
        .collect()
}

/// The loop device that a file backs.
pub(super) fn loop_device_over(tree: &SystemTree, file: &Metadata) -> Option<String> {
    let same = |path: &str| {
        fs::metadata(tree.path(path))
            .is_ok_and(|other| (other.dev(), other.ino()) == (file.dev(), file.ino()))
    };
    device::loops(tree).into_iter().find(|(_, path)| same(path)).map(|(name, _)| name)
}

/// Files that other processes have open for writing, by device and inode, with the names and PIDs of the processes.
type Writers = HashMap<(u64, u64), Vec<(String, u32)>>;

/// Another process that has a file open for writing: its name and PID. Only root sees processes of other users.
pub(super) fn writer(file: &Metadata) -> Option<(String, u32)> {
    // A job may have thousands of files: one search serves all of them.
    static LOOKED: Mutex<Option<(Instant, Writers)>> = Mutex::new(None);
    let mut looked = LOOKED.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (file.dev(), file.ino());
    let recent = looked.as_ref().filter(|(at, _)| at.elapsed() < FRESH);
    if recent.is_some_and(|(_, writers)| !writers.contains_key(&key)) {
        return None;
    }
    // Only a new search may refuse: this inode may have belonged to a file that another process wrote and has deleted.
    let (_, writers) = looked.insert((Instant::now(), writers()));
    writers.get(&key)?.iter().find(|(_, process)| keeps_open(*process, key)).cloned()
}

/// Whether a process keeps a file open for writing for more than a moment. A new process holds copies of its parent's
/// descriptors, including those of this process, until it calls exec.
fn keeps_open(process: u32, file: (u64, u64)) -> bool {
    (0..CHECKS).all(|_| {
        std::thread::sleep(CHECK_EVERY);
        written_by(process).any(|other| other == file)
    })
}

fn writers() -> Writers {
    let until = Instant::now() + LOOKING;
    let own = std::process::id();
    let mut found = Writers::new();
    let tree = SystemTree::default();
    for process in tree.processes().into_iter().filter(|process| *process != own) {
        if Instant::now() > until {
            break;
        }
        for file in written_by(process) {
            let name = tree.process_name(process).unwrap_or_default();
            found.entry(file).or_default().push((name, process));
        }
    }
    found
}

/// The regular files that a process has open for writing, by device and inode.
fn written_by(process: u32) -> impl Iterator<Item = (u64, u64)> {
    let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    open.filter_map(move |entry| {
        let file = fs::metadata(entry.path()).ok().filter(Metadata::is_file)?;
        writes(process, &entry.file_name().to_string_lossy()).then(|| (file.dev(), file.ino()))
    })
}

fn writes(process: u32, descriptor: &str) -> bool {
    let text = fs::read_to_string(format!("/proc/{process}/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}

/// The directory of a running PostgreSQL server that contains a file. The server opens its files only while it uses
/// them.
pub(super) fn postgres(path: &Path) -> Option<PathBuf> {
    let running = |directory: &&Path| {
        let lock = fs::read_to_string(directory.join("postmaster.pid")).ok();
        let process = lock.as_deref().and_then(|lock| lock.lines().next()?.trim().parse::<u32>().ok());
        directory.join("PG_VERSION").exists()
            && process.is_some_and(|process| Path::new("/proc").join(process.to_string()).exists())
    };
    path.ancestors().skip(1).find(running).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Child, Command, Stdio};

    fn mounted(number: &str) -> (tempfile::TempDir, SystemTree) {
        let (root, tree) = device::tests::tree();
        fs::write(
            root.path().join("proc/self/mountinfo"),
            format!("22 1 {number} / /data rw - ext4 /dev/x rw\n"),
        )
        .unwrap();
        (root, tree)
    }

    #[test]
    fn a_mount_of_what_is_built_upon_a_device_is_a_use_of_it() {
        let point = PathBuf::from("/data");
        let (_root, tree) = mounted("253:0");
        for device in ["sda", "sda2", "dm-1", "dm-0"] {
            assert_eq!(
                of_device(&tree, device),
                Some(DeviceUse::Mounted { device: "dm-0".into(), point: point.clone() }),
                "{device}"
            );
        }
        for device in ["sda1", "vdb", "dm-2"] {
            assert_eq!(of_device(&tree, device), None, "{device}");
        }
        let (_root, tree) = mounted("8:0");
        assert_eq!(of_device(&tree, "sda1"), Some(DeviceUse::Mounted { device: "sda".into(), point }));
    }

    #[test]
    fn swap_is_read_from_its_list() {
        let (root, tree) = device::tests::tree();
        let list =
            "Filename Type Size Used Priority\n/swap\\040file file 1 0 -2\n/dev/sda1 partition 1 0 -3\n";
        fs::write(root.path().join("proc/swaps"), list).unwrap();
        assert_eq!(swaps(&tree), ["/swap file", "/dev/sda1"]);
    }

    #[test]
    fn a_file_is_in_use_though_the_last_of_its_holders_closes_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "data").unwrap();
        let holder = || {
            let mut command = Command::new("sh");
            command.args(["-c", "exec 3>>\"$0\"; echo; read x"]).arg(&path);
            let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            holder.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
            holder
        };
        let end = |mut holder: Child| {
            drop(holder.stdin.take());
            holder.wait().unwrap();
        };
        let (first, second) = (holder(), holder());
        let file = fs::metadata(&path).unwrap();
        let found = writers();
        let processes: Vec<u32> =
            found[&(file.dev(), file.ino())].iter().map(|(_, process)| *process).collect();
        assert!(processes.contains(&first.id()) && processes.contains(&second.id()), "{processes:?}");
        end(second);
        assert_eq!(writer(&file), Some(("sh".to_owned(), first.id())));
        end(first);
    }

    #[test]
    fn a_file_that_another_process_closes_soon_is_not_in_use() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "data").unwrap();
        let file = fs::metadata(&path).unwrap();
        let key = (file.dev(), file.ino());
        let mut command = Command::new("sh");
        command.args(["-c", "exec 3>>\"$0\"; echo; read x; exec 3>&-; echo; read x"]).arg(&path);
        let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut answers = holder.stdout.take().unwrap();
        let mut answered = || answers.read_exact(&mut [0]).unwrap();
        answered();
        assert!(keeps_open(holder.id(), key));
        // The search found it with the file open. It closes the file before the next check.
        assert!(written_by(holder.id()).any(|other| other == key));
        holder.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        answered();
        assert!(!keeps_open(holder.id(), key));
        drop(holder.stdin.take());
        holder.wait().unwrap();
    }

    #[test]
    fn a_file_of_a_running_server_is_known_by_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("base/1/2");
        assert_eq!(postgres(&file), None);
        fs::write(directory.path().join("PG_VERSION"), "17\n").unwrap();
        assert_eq!(postgres(&file), None, "not running");
        fs::write(directory.path().join("postmaster.pid"), format!("{}\n/x\n", std::process::id())).unwrap();
        assert_eq!(postgres(&file).as_deref(), Some(directory.path()));
    }
}
