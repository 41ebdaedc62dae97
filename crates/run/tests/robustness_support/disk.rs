//! A small file system that can be filled and emptied.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tmpfs in a separate directory, unmounted when dropped.
pub struct Disk {
    directory: tempfile::TempDir,
}

/// Mounting requires root, or `sudo -n` for other users; without either the test fails.
fn privileged(words: &[&str]) {
    let mut words = words.to_vec();
    if !rustix::process::geteuid().is_root() {
        words.splice(0..0, ["sudo", "-n"]);
    }
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Disk {
    /// Mounts a file system that all users may write to.
    pub fn mount(megabytes: u32) -> Self {
        let directory = tempfile::Builder::new().prefix("kelvin-disk").tempdir().unwrap();
        let place = directory.path().to_str().unwrap();
        let options = format!("size={megabytes}m,mode=777");
        privileged(&["mount", "-t", "tmpfs", "-o", &options, "tmpfs", place]);
        Self { directory }
    }

    /// Its mount point.
    pub fn place(&self) -> &Path {
        self.directory.path()
    }

    /// Creates a directory on it that the server may use.
    pub fn make(&self, name: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        let made = super::server::unprivileged(Path::new("mkdir")).args(["-m", "700"]).arg(&path).status();
        assert!(made.unwrap().success());
        path
    }

    /// Fills the file system completely, even while others write to it.
    pub fn fill(&self) {
        let file = fs::File::create(self.ballast()).unwrap();
        let (mut size, mut step) = (0, 64 << 20);
        while step >= 4096 {
            match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), size, step) {
                Ok(()) => size += step,
                Err(rustix::io::Errno::NOSPC) => step /= 2,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Whether nothing allocated by [`Disk::fill`] remains.
    pub fn is_empty(&self) -> bool {
        !self.ballast().exists()
    }

    /// Frees what [`Disk::fill`] allocated.
    pub fn empty(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.directory.path().join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, since a server that just ended may still be closing its files.
        privileged(&["umount", "--lazy", self.directory.path().to_str().unwrap()]);
    }
}
