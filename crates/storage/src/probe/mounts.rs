//! What is mounted, as `/proc/self/mountinfo` tells it.

use std::path::{Path, PathBuf};

use super::tree::Tree;

/// A mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The device's number, "8:1"; of no device ("0:40") for btrfs, tmpfs, network filesystems.
    pub number: String,
    /// Where.
    pub point: PathBuf,
    /// The filesystem's type.
    pub kind: String,
    /// What is mounted, such as "/dev/sda1".
    pub source: String,
    /// Options of the mount and of the filesystem.
    pub options: Vec<String>,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (front, back) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(2);
        let (number, _, point, mount_options) = (front.next()?, front.next()?, front.next()?, front.next()?);
        let mut back = back.split(' ');
        let (kind, source, filesystem_options) = (back.next()?, back.next()?, back.next().unwrap_or(""));
        let options = mount_options.split(',').chain(filesystem_options.split(','));
        Some(Self {
            number: number.to_owned(),
            point: unescaped(point).into(),
            kind: kind.to_owned(),
            source: unescaped(source),
            options: options.filter(|option| !option.is_empty()).map(str::to_owned).collect(),
        })
    }
}

/// Blanks, line ends and backslashes are written as three octal digits.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(code) = code {
            out.push(code as char);
            out.push_str(part.get(3..).unwrap_or(""));
        } else {
            out.push('\\');
            out.push_str(part);
        }
    }
    out
}

/// All mounts that this process sees.
pub(crate) fn all(tree: &Tree) -> Vec<Mount> {
    let text = tree.text("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(Mount::parse).collect()
}

/// The mount that shows a path, of a file whose device has this number: of those with the longest point the last, since
/// later mounts hide earlier ones. A btrfs subvolume has a number that no mount has.
pub(crate) fn of<'a>(mounts: &'a [Mount], path: &Path, number: &str) -> Option<&'a Mount> {
    let shows = || mounts.iter().filter(|mount| path.starts_with(&mount.point));
    let longest =
        |of: &mut dyn Iterator<Item = &'a Mount>| of.max_by_key(|mount| mount.point.as_os_str().len());
    longest(&mut shows().filter(|mount| mount.number == number)).or_else(|| longest(&mut shows()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart_and_the_nearest_mount_is_found() {
        let text = "36 35 98:0 /mnt1 / rw,noatime shared:1 - ext3 /dev/root rw,errors=continue\n\
                    37 36 98:1 / /a\\040b rw,discard - xfs /dev/sda1 rw,noquota\n\
                    38 36 0:40 / /a rw - tmpfs tmpfs rw\n";
        let mounts: Vec<Mount> = text.lines().filter_map(Mount::parse).collect();
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[1].point, Path::new("/a b"));
        assert_eq!(mounts[1].options, ["rw", "discard", "rw", "noquota"]);
        let kind = |path: &str, number: &str| of(&mounts, Path::new(path), number).map(|m| m.kind.as_str());
        assert_eq!(kind("/a b/file", "98:1"), Some("xfs"));
        assert_eq!(kind("/a/file", "0:40"), Some("tmpfs"));
        assert_eq!(kind("/other", "98:0"), Some("ext3"));
        assert_eq!(kind("/a/file", "0:77"), Some("tmpfs"), "a subvolume's own number");
        assert_eq!(unescaped("a\\134b\\"), "a\\b\\");
    }
}
