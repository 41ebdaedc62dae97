//! The kernel's files: kept open, and read again into one buffer.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Where `/proc` and `/sys` are. Tests give a directory of recorded files.
#[derive(Debug, Clone)]
pub struct SystemFiles {
    root: PathBuf,
}

impl Default for SystemFiles {
    fn default() -> Self {
        Self::at("/")
    }
}

impl SystemFiles {
    /// The tree below `root`, which has `proc` and `sys` in it.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Whether the files are those of the kernel that runs this.
    pub(super) fn is_this_host(&self) -> bool {
        self.root == Path::new("/")
    }

    /// A file or directory; `path` with or without its leading slash.
    pub(super) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Opens a file to keep, and reads it once: some files open well and cannot be read. Why it is absent, otherwise.
    pub(super) fn open(&self, path: impl AsRef<Path>) -> Result<KernelFile, String> {
        let path = path.as_ref();
        let kept = File::open(self.path(path)).map(KernelFile);
        let read = kept.and_then(|kept| kept.0.read_at(&mut [0], 0).map(|_| kept));
        read.map_err(|error| format!("{}: {}", path.display(), reason(&error)))
    }

    /// A file's text, for what is read once.
    pub(super) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read(self.path(path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The names in a directory that are `prefix` and a number, in the order of the numbers.
    pub(super) fn numbered(&self, directory: &str, prefix: &str) -> Vec<u32> {
        let number = |name: &str| name.strip_prefix(prefix)?.parse().ok();
        let mut found: Vec<u32> = self.names(directory).iter().filter_map(|n| number(n)).collect();
        found.sort_unstable();
        found
    }

    /// The names in a directory, sorted.
    pub(super) fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
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

/// An open file of the kernel's.
#[derive(Debug)]
pub(super) struct KernelFile(File);

impl KernelFile {
    /// The file as it is now, from its beginning.
    pub(super) fn read<'a>(&self, buffer: &'a mut Buffer) -> Option<&'a [u8]> {
        buffer.fill(&self.0)
    }
}

/// The buffer all files are read into, one after the other. It grows when a file has grown beyond it, and else not.
#[derive(Debug)]
pub(super) struct Buffer(Vec<u8>);

impl Buffer {
    pub(super) fn new() -> Self {
        Self(vec![0; 64 << 10])
    }

    /// Opens a file, reads it and closes it: for what is too many to keep open. The file must be one of those that the
    /// kernel writes in one piece of less than a page, as all of a process but its maps are: they need one reading.
    pub(super) fn open(&mut self, path: &Path) -> Option<&[u8]> {
        let length = File::open(path).ok()?.read_at(&mut self.0, 0).ok()?;
        Some(&self.0[..length])
    }

    /// The same of a file of any length.
    pub(super) fn open_whole(&mut self, path: &Path) -> Option<&[u8]> {
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
