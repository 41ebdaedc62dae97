//! Mounts, from `/proc/self/mountinfo`.

use std::path::{Path, PathBuf};

/// A mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The number of its device, "major:minor".
    pub number: String,
    /// The mounted part of the file system: "/" except for bind mounts and similar mounts.
    pub root: String,
    /// Where it is mounted.
    pub point: PathBuf,
    /// The type of the file system, such as "ext4".
    pub kind: String,
    /// The mounted device or source, such as "/dev/sda1".
    pub source: String,
    /// Options of the mount.
    pub options: Vec<String>,
    /// Options of the file system.
    pub filesystem_options: Vec<String>,
}

impl Mount {
    /// Parses all lines, in the order of the mounts.
    pub fn all(text: &str) -> Vec<Self> {
        text.lines().filter_map(Self::parse).collect()
    }

    /// Parses a line: id, parent, device, root, mount point, options, optional fields, a hyphen, type,
    /// source, options of the file system.
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(2);
        let (number, root, point, options) = (before.next()?, before.next()?, before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (kind, source, of_filesystem) = (after.next()?, after.next()?, after.next().unwrap_or(""));
        let each = |text: &str| text.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect();
        Some(Self {
            number: number.to_owned(),
            root: unescaped(root),
            point: unescaped(point).into(),
            kind: kind.to_owned(),
            source: unescaped(source),
            options: each(options),
            filesystem_options: each(of_filesystem),
        })
    }

    /// Options of the mount, then those of the file system.
    pub fn all_options(&self) -> impl Iterator<Item = &str> {
        self.options.iter().chain(&self.filesystem_options).map(String::as_str)
    }

    /// The mount of a path whose file is on the device `number`. Of the mounts with the longest mount point
    /// the last one counts, since later mounts hide earlier ones. If no mount has that number, as for a btrfs
    /// subvolume, the number is ignored.
    pub fn showing<'a>(mounts: &'a [Self], path: &Path, number: &str) -> Option<&'a Self> {
        let shows = || mounts.iter().filter(|mount| path.starts_with(&mount.point));
        let longest =
            |of: &mut dyn Iterator<Item = &'a Self>| of.max_by_key(|mount| mount.point.as_os_str().len());
        longest(&mut shows().filter(|mount| mount.number == number)).or_else(|| longest(&mut shows()))
    }
}

/// Resolves the kernel's octal escapes of blanks, tabs, line ends and backslashes.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(byte) if first == b'\\' => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart_and_the_nearest_mount_is_found() {
        let text = "36 35 98:0 /mnt1 / rw,noatime shared:1 - ext3 /dev/root rw,errors=continue\n\
                    37 36 98:1 / /a\\040b rw,discard master:1 - xfs /dev/sda1 rw,noquota\n\
                    broken\n\
                    38 36 0:40 / /a rw - tmpfs tmpfs rw\n";
        let mounts = Mount::all(text);
        assert_eq!(mounts.len(), 3);
        assert_eq!((mounts[0].root.as_str(), mounts[1].point.as_path()), ("/mnt1", Path::new("/a b")));
        assert_eq!(mounts[1].all_options().collect::<Vec<_>>(), ["rw", "discard", "rw", "noquota"]);
        let kind = |path: &str, number: &str| {
            Mount::showing(&mounts, Path::new(path), number).map(|mount| mount.kind.as_str())
        };
        assert_eq!(kind("/a b/file", "98:1"), Some("xfs"));
        assert_eq!(kind("/a/file", "0:40"), Some("tmpfs"));
        assert_eq!(kind("/other", "98:0"), Some("ext3"));
        assert_eq!(kind("/a/file", "0:77"), Some("tmpfs"), "a subvolume's own number");
        assert_eq!(unescaped("a\\134b\\"), "a\\b\\");
        assert_eq!(unescaped("\\303\\244"), "ä", "bytes, not characters");
    }
}
