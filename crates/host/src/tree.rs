//! The kernel's files in `/proc` and `/sys`, or in a test's directory. A file is read once, or kept open and
//! read repeatedly into one buffer.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::Mount;
use crate::bytes::values;

/// The root of `/proc` and `/sys`. Tests use a directory of recorded files. Paths are absolute paths of this
/// host.
#[derive(Debug, Clone)]
pub struct SystemTree {
    root: PathBuf,
}

impl Default for SystemTree {
    fn default() -> Self {
        Self::at("/")
    }
}

impl SystemTree {
    /// The tree below `root`, a directory that contains `proc` and `sys`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Whether the files are those of the running kernel.
    pub fn is_this_host(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The actual path of a file or directory; `path` may start with a slash or not.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Opens a file to keep, and reads it once, since some files can be opened but not read.
    ///
    /// # Errors
    /// Why it is not available.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<KernelFile, String> {
        let path = path.as_ref();
        let kept = File::open(self.path(path)).map(KernelFile);
        let read = kept.and_then(|kept| kept.0.read_at(&mut [0], 0).map(|_| kept));
        read.map_err(|error| format!("{}: {}", path.display(), reason(&error)))
    }

    /// The text of a file that is read once; `None` if it cannot be read.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read(self.path(path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The first line of a file; `None` when it is empty.
    pub fn line(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        Some(text.lines().next()?.trim().to_owned()).filter(|line| !line.is_empty())
    }

    /// The number that is the first line of a file.
    pub fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.line(path)?.parse().ok()
    }

    /// The numbers of these names in a file of lines "name: number", such as `/proc/meminfo`.
    pub fn values<const N: usize>(&self, path: impl AsRef<Path>, names: [&str; N]) -> [Option<u64>; N] {
        fs::read(self.path(path)).map_or([None; N], |text| values(&text, names))
    }

    /// What identifies this boot of the kernel.
    pub fn boot_id(&self) -> Option<String> {
        self.line("/proc/sys/kernel/random/boot_id")
    }

    /// Whether the file exists.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// The last component of a link's target.
    pub fn link(&self, path: impl AsRef<Path>) -> Option<String> {
        Some(fs::read_link(self.path(path)).ok()?.file_name()?.to_str()?.to_owned())
    }

    /// The mounts that this process sees.
    pub fn mounts(&self) -> Vec<Mount> {
        Mount::all(&self.text("/proc/self/mountinfo").unwrap_or_default())
    }

    /// The numbers of the directory entries whose names are `prefix` and a number, ascending.
    pub fn numbered(&self, directory: &str, prefix: &str) -> Vec<u32> {
        let number = |name: &str| name.strip_prefix(prefix)?.parse().ok();
        let mut found: Vec<u32> = self.names(directory).iter().filter_map(|n| number(n)).collect();
        found.sort_unstable();
        found
    }

    /// The running processes.
    pub fn processes(&self) -> Vec<u32> {
        self.numbered("/proc", "")
    }

    /// The name of a process, which is that of its program cut to 15 characters.
    pub fn process_name(&self, process: u32) -> Option<String> {
        self.line(format!("/proc/{process}/comm"))
    }

    /// The threads of a process; empty if it has ended.
    pub fn threads(&self, process: u32) -> Vec<u32> {
        self.numbered(&format!("/proc/{process}/task"), "")
    }

    /// The names of the directory entries, sorted.
    pub fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(directory)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file here: not offered by this kernel, or not enabled".into(),
        ErrorKind::PermissionDenied => "not readable by this user".into(),
        ErrorKind::Unsupported => "disabled in this kernel".into(),
        _ => error.to_string(),
    }
}

/// An open file of the kernel.
#[derive(Debug)]
pub struct KernelFile(File);

impl KernelFile {
    /// Reads the file from its beginning.
    pub fn read<'a>(&self, buffer: &'a mut Buffer) -> Option<&'a [u8]> {
        buffer.fill(&self.0)
    }
}

/// The buffer that all files are read into. It grows only when a file does not fit.
#[derive(Debug)]
pub struct Buffer(Vec<u8>);

impl Default for Buffer {
    fn default() -> Self {
        Self(vec![0; 64 << 10])
    }
}

impl Buffer {
    /// Opens, reads and closes a file, for files that are too many to keep open. The file must be one that
    /// the kernel writes in one piece of less than a page, as all files of a process except its maps are:
    /// such a file takes a single read.
    pub fn open(&mut self, path: &Path) -> Option<&[u8]> {
        let length = File::open(path).ok()?.read_at(&mut self.0, 0).ok()?;
        Some(&self.0[..length])
    }

    /// As [`Buffer::open`], for a file of any length.
    pub fn open_whole(&mut self, path: &Path) -> Option<&[u8]> {
        self.fill(&File::open(path).ok()?)
    }

    fn fill(&mut self, file: &File) -> Option<&[u8]> {
        let mut length = 0;
        loop {
            if length == self.0.len() {
                self.0.resize(2 * length, 0);
            }
            match file.read_at(&mut self.0[length..], length as u64) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(&self.0[..length])
    }
}
