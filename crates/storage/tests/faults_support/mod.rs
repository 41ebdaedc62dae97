//! Filesystems and devices of the tests, and files that must not be touched.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kelvin_measure::Random;
use tempfile::{NamedTempFile, TempDir};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The output of a command; `None` if it fails.
fn said(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Random bytes, always the same.
pub fn noise(length: u64) -> Vec<u8> {
    let mut random = Random::part(1, 2, 3);
    let mut bytes = Vec::with_capacity(length as usize);
    while (bytes.len() as u64) < length {
        bytes.extend_from_slice(&random.bits().to_le_bytes());
    }
    bytes
}

/// Whether only a region differs from the previous content.
pub fn changed_only_within(file: &File, before: &[u8], begin: u64, length: u64) {
    let mut now = vec![0; before.len()];
    file.read_exact_at(&mut now, 0).unwrap();
    let (begin, end) = (begin as usize, (begin + length) as usize);
    assert!(now[..begin] == before[..begin], "what lies before the region was touched");
    assert!(now[end..] == before[end..], "what lies behind the region was touched");
    assert!(now[begin..end] != before[begin..end], "the region itself was written");
}

/// Foreign files in the directory of the targets.
pub struct Canaries(Vec<(PathBuf, Vec<u8>)>);

impl Canaries {
    pub fn beside(directory: &Path) -> Self {
        // Names like those of jobs' files, which a wrong number would overwrite.
        let names = ["within.0.1", "grow.1.0", "grow.0.1", "file.0.0", "read", "canary"];
        let all = names.map(|name| (directory.join(name), noise(10_000 + name.len() as u64)));
        for (path, bytes) in &all {
            fs::write(path, bytes).unwrap();
        }
        Self(all.into())
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn check(&self) {
        for (path, bytes) in &self.0 {
            assert!(fs::read(path).unwrap() == *bytes, "{} was touched", path.display());
        }
    }
}

/// A filesystem in memory; `None` without permission to mount one.
pub struct SmallFilesystem(TempDir);

impl SmallFilesystem {
    pub fn new(size: u64) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let place = directory.path().to_str()?;
        said("mount", &["-t", "tmpfs", "-o", &options, "kelvin-test", place]).filter(|_| is_root())?;
        Some(Self(directory))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallFilesystem {
    fn drop(&mut self) {
        said("umount", &["--lazy", &self.0.path().display().to_string()]);
    }
}

/// Held while a loop device is created, and for longer if a number must stay free.
static LOOPS: Mutex<()> = Mutex::new(());

/// While this is held, no loop device is created in this process.
pub fn no_new_devices() -> MutexGuard<'static, ()> {
    LOOPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A block device over a file; `None` without permission to create one.
pub struct LoopDevice {
    path: PathBuf,
    file: NamedTempFile,
}

impl LoopDevice {
    pub fn new(size: u64) -> Option<Self> {
        if !is_root() {
            return None;
        }
        let file = NamedTempFile::new().unwrap();
        file.as_file().set_len(size).unwrap();
        let _alone = no_new_devices();
        let path = said("losetup", &["--find", "--show", file.path().to_str()?])?;
        Some(Self { path: path.into(), file })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file behind it.
    pub fn backing(&self) -> File {
        OpenOptions::new().read(true).write(true).open(self.file.path()).unwrap()
    }

    /// Drops the kernel's cache of the device, so that a change of the file is visible.
    pub fn forget(&self) {
        said("blockdev", &["--flushbufs", self.path.to_str().unwrap()]).unwrap();
    }

    pub fn sync(&self) {
        File::open(&self.path).unwrap().sync_all().unwrap();
    }

    /// Detaches the file from the device.
    pub fn detach(&self) {
        said("losetup", &["--detach", self.path.to_str().unwrap()]);
    }

    /// The present backing file of the device, if any.
    pub fn over(&self) -> Option<String> {
        let file = said("losetup", &["--noheadings", "--output", "BACK-FILE", self.path.to_str()?])?;
        Some(file).filter(|file| !file.is_empty())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // Only if it is still backed by this test's file: another process may be using the number now.
        if self.over().is_some_and(|file| file.starts_with(&*self.file.path().to_string_lossy())) {
            self.detach();
        }
    }
}
