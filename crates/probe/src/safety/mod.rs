//! Whether a target may be written: refused if that would destroy existing data.

mod in_use;
mod signature;

use kelvin_host::disk::{device_name, device_number};
use std::fs::{self, File, Metadata, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use self::in_use::DeviceUse;
use kelvin_fio::{Error, Result};
use kelvin_host::SystemTree;

/// The option by which the user confirms that a target may be lost.
const FLAG: &str = "--i-know-it-destroys";

/// Checks whether a target may be written; `writes` is set if a job writes it. Refuses block devices that are mounted,
/// in use or hold data, and files that other processes use, unless `confirmed` names the same device or file, by any of
/// its names. A target that is mounted or active swap is refused even then: see [`check_with`]. Only reads the target.
///
/// # Errors
/// [`Error::Protected`], which describes the content of the target and the remedy.
pub fn check(path: &Path, writes: bool, confirmed: &[PathBuf]) -> Result<()> {
    check_with(path, writes, confirmed, false)
}

/// As [`check`], but with `allow_mounted_write=1` a mounted target may be written once it is confirmed. Active swap
/// may never be written.
///
/// # Errors
/// As [`check`].
pub fn check_with(path: &Path, writes: bool, confirmed: &[PathBuf], allow_mounted: bool) -> Result<()> {
    // A file that does not exist yet has no users.
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    if !writes {
        return Ok(());
    }
    let look = Look {
        tree: SystemTree::default(),
        path,
        metadata: &metadata,
        confirmed: confirmed.iter().any(|known| same(known, &metadata)),
        allow_mounted,
    };
    let kind = metadata.file_type();
    if kind.is_block_device() {
        look.device()
    } else if kind.is_char_device() {
        look.character()
    } else if kind.is_file() {
        look.file()
    } else {
        Ok(())
    }
}

/// Whether a path leads to the same device or file.
fn same(path: &Path, other: &Metadata) -> bool {
    let device = |of: &Metadata| of.file_type().is_block_device() || of.file_type().is_char_device();
    fs::metadata(path).is_ok_and(|one| match (device(&one), device(other)) {
        (true, true) => one.file_type() == other.file_type() && one.rdev() == other.rdev(),
        (false, false) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    })
}

struct Look<'a> {
    tree: SystemTree,
    path: &'a Path,
    metadata: &'a Metadata,
    confirmed: bool,
    allow_mounted: bool,
}

impl Look<'_> {
    fn device(&self) -> Result<()> {
        if let Some(name) = device_name(&self.tree, &device_number(self.metadata.rdev())) {
            self.not_in_use(in_use::of_device(&self.tree, &name))?;
        }
        if self.confirmed {
            return Ok(());
        }
        // The kernel refuses this if the device has an owner: a filesystem, an array, a volume, another program
        // that opened it exclusively.
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(self.path);
        let file = opened.map_err(|error| {
            self.refusal(&format!("cannot be opened exclusively ({error}): it is in use"))
        })?;
        let size = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))
            .map_err(|error| self.refusal(&format!("its size cannot be determined ({error})")))?;
        let (head, tail) = self.ends(&file, size, signature::HEAD)?;
        if let Some(what) = signature::find_signature(&head, &tail, size) {
            return Err(self.refusal(&format!("holds {what}")));
        }
        let zero = |bytes: &[u8]| super::content::is_zero(bytes);
        if !zero(&head) || !zero(&tail) {
            return Err(self.refusal("is not empty: its first or last blocks hold data"));
        }
        Ok(())
    }

    /// The null device and similar ones lose nothing. Any other character device may be a disk or the machine's memory.
    fn character(&self) -> Result<()> {
        const MEMORY: u32 = 1;
        const HARMLESS: [u32; 3] = [3, 5, 7];
        let number = self.metadata.rdev();
        let harmless = rustix::fs::major(number) == MEMORY && HARMLESS.contains(&rustix::fs::minor(number));
        if harmless || self.confirmed {
            return Ok(());
        }
        Err(self.refusal("is a character device other than /dev/null, /dev/zero and /dev/full"))
    }

    fn file(&self) -> Result<()> {
        if self.metadata.len() == 0 {
            return Ok(());
        }
        let swap = |path: &String| fs::metadata(path).is_ok_and(|other| same_file(&other, self.metadata));
        if in_use::swaps(&self.tree).iter().any(swap) {
            return Err(Error::protected(
                self.path,
                "is active swap: run `swapoff` first; nothing was written",
            ));
        }
        if let Some(device) = in_use::looped(&self.tree, self.metadata) {
            self.not_in_use(in_use::of_device(&self.tree, &device))?;
            if !self.confirmed {
                return Err(self.refusal(&format!("is the disk image behind /dev/{device}")));
            }
        }
        if self.confirmed {
            return Ok(());
        }
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.to_owned());
        if let Some(directory) = in_use::postgres(&real) {
            return Err(
                self.refusal(&format!("belongs to the running PostgreSQL server in {}", directory.display()))
            );
        }
        if let Some((name, process)) = in_use::writer(self.metadata) {
            return Err(self.refusal(&format!("is open for writing by {name} (process {process})")));
        }
        // A file that is writable but not readable cannot be examined.
        let Ok(file) = File::open(self.path) else { return Ok(()) };
        let (head, tail) = self.ends(&file, self.metadata.len(), signature::FILE)?;
        match signature::find_signature(&head, &tail, self.metadata.len()) {
            Some(what) => Err(self.refusal(&format!("holds {what}"))),
            None => Ok(()),
        }
    }

    fn not_in_use(&self, found: Option<DeviceUse>) -> Result<()> {
        match found {
            Some(DeviceUse::Swap { device }) => Err(Error::protected(
                self.path,
                format!("{device} is active swap: run `swapoff` first; nothing was written"),
            )),
            Some(DeviceUse::Mounted { .. }) if self.confirmed && self.allow_mounted => Ok(()),
            Some(DeviceUse::Mounted { device, point }) => Err(Error::protected(
                self.path,
                format!(
                    "{device} is mounted at {}: unmount it, or overwrite it with `allow_mounted_write=1` \
                     and `{FLAG} {}`; nothing was written",
                    point.display(),
                    self.path.display()
                ),
            )),
            None => Ok(()),
        }
    }

    fn ends(&self, file: &File, size: u64, length: u64) -> Result<(Vec<u8>, Vec<u8>)> {
        let read = |at: u64, length: u64| {
            let mut bytes = vec![0; length as usize];
            file.read_exact_at(&mut bytes, at)
                .map_err(|error| self.refusal(&format!("its blocks cannot be read ({error})")))?;
            Ok(bytes)
        };
        let head = read(0, size.min(length))?;
        let tail = size.min(length / 2);
        Ok((head, read(size - tail, tail)?))
    }

    fn refusal(&self, problem: &str) -> Error {
        Error::protected(
            self.path,
            format!(
                "{problem}; nothing was written. If its data may be destroyed, add `{FLAG} {}`",
                self.path.display()
            ),
        )
    }
}

fn same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}
