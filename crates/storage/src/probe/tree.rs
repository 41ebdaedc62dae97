//! Files of /proc and /sys, which a test lays out in a separate directory.

use std::fs;
use std::path::PathBuf;

/// Where they are.
#[derive(Debug, Clone)]
pub(crate) struct SystemTree(PathBuf);

impl Default for SystemTree {
    fn default() -> Self {
        Self("/".into())
    }
}

impl SystemTree {
    #[cfg(test)]
    pub(crate) fn at(root: &std::path::Path) -> Self {
        Self(root.to_owned())
    }

    /// The place of a file that is given by its absolute path.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// All of a file.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }

    /// A file of one line; none when it is empty.
    pub(crate) fn line(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let line = text.lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// A file of one number.
    pub(crate) fn number(&self, path: &str) -> Option<u64> {
        self.line(path)?.parse().ok()
    }

    /// What is in a directory, sorted; nothing when there is none.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Whether there is such a file.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The last part of where a link leads.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        Some(fs::read_link(self.path(path)).ok()?.file_name()?.to_str()?.to_owned())
    }
}
