//! Where the files of this host lie, looked up again while a recording runs.
//!
//! Files are those that a process has open, those of the data directories that such files are in, and those of directories
//! that were named. A file is asked for its place when it is first seen, and again when its length or its blocks changed.
//! Nothing is read of the files, and no dirty page is written for the question: a place that the filesystem has not chosen
//! yet is asked for at the next look.

use std::collections::{HashMap, HashSet};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kelvin_host::disk::{device_name, device_number, whole_disk};
use kelvin_host::{Mount, SystemTree};
use kelvin_measure::Nanos;
use kelvin_storage::probe::extents::{FilePart, walk};
use kelvin_storage::probe::filesystem_map::filesystem_parts;

use super::lookup::filesystem_file;
use crate::SECTOR;
use crate::file_class::{DatabaseRoot, FileClass, classify, classify_other};
use crate::recording::{Change, DiskRange, FileChanges, TracedFile};

/// Files that are followed at most, and the extents that these have at a time.
const MOST_FILES: usize = 200_000;
const MOST_EXTENTS: usize = 2_000_000;
/// Files and changes that a recording has at most, as its reader takes no more: half of the reader's, as those of one look
/// are counted afterwards.
const MOST_FILES_EVER: u32 = 500_000;
const MOST_CHANGES: usize = 4_000_000;
/// Directories below each other that are walked.
const DEEPEST: usize = 12;
/// Where MariaDB, and MySQL before 8.0.20, have the doublewrite buffer in the first system tablespace: the second and third
/// 64 pages of 16 KiB.
const DOUBLEWRITE: std::ops::Range<u64> = 1 << 20..3 << 20;

/// A file's number on its filesystem, and when the file was made: ext4 gives the number of a file that went to the next
/// one. Filesystems that do not know the time give None.
type Inode = (u64, u64, Option<SystemTime>);

fn inode(about: &Metadata) -> Inode {
    (about.dev(), about.ino(), about.created().ok())
}

/// A filesystem's disk, and where the filesystem begins on it.
#[derive(Debug, Clone, Copy)]
struct Home {
    disk: (u32, u32),
    begin: u64,
}

/// A part of a file on a disk: first byte, length, first byte in the file, place of the file in the list.
type FileExtent = (u64, u64, u64, u32);

#[derive(Debug, Default)]
struct Followed {
    path: PathBuf,
    file: u32,
    /// The doublewrite buffer within it.
    doublewrite: Option<u32>,
    /// The loop device whose image it is, and where that begins.
    behind: Option<((u32, u32), u64)>,
    length: u64,
    blocks: u64,
    parts: Vec<FileExtent>,
    /// Where it has room on the disk that was never written: first byte, length.
    unwritten: Vec<(u64, u64)>,
    /// Whether some of it has no place yet.
    is_pending: bool,
}

/// Looks up where files lie.
#[derive(Debug)]
pub struct FileWatcher {
    tree: SystemTree,
    directories: Vec<PathBuf>,
    /// None where nothing can be said about a filesystem.
    homes: HashMap<u64, Option<Home>>,
    /// What directories of open files belong to.
    roots: HashMap<PathBuf, Option<DatabaseRoot>>,
    /// The data directory that is being walked.
    server: Option<String>,
    files: u32,
    followed: HashMap<Inode, Followed>,
    /// Extents that the followed files and the filesystems have now.
    extents: usize,
    /// Changes so far.
    changed: usize,
    changes: FileChanges,
    now: Nanos,
    seen: HashSet<Inode>,
    /// Whether a limit left something out.
    pub is_partial: bool,
}

impl FileWatcher {
    /// Watches open files and those of the directories.
    pub fn new(directories: Vec<PathBuf>) -> Self {
        Self {
            tree: SystemTree::default(),
            directories,
            homes: HashMap::new(),
            roots: HashMap::new(),
            server: None,
            files: 0,
            followed: HashMap::new(),
            extents: 0,
            changed: 0,
            changes: FileChanges::default(),
            now: 0,
            seen: HashSet::new(),
            is_partial: false,
        }
    }

    /// Whether it is known of a directory's filesystem where files lie.
    pub fn knows(directory: &Path) -> bool {
        let about = std::fs::metadata(directory);
        about.is_ok_and(|about| Self::new(Vec::new()).home(directory, about.dev()).is_some())
    }

    /// Looks around, and returns what changed. `now` is the recording's clock.
    pub fn file_changes(&mut self, now: Nanos) -> FileChanges {
        self.now = now;
        self.seen.clear();
        self.loop_devices();
        for directory in self.directories.clone() {
            match DatabaseRoot::above(&directory) {
                Some(root) => self.root(&root),
                None => self.walk(&directory, &mut |_| None, 0),
            }
        }
        let open = self.open_files();
        // The files of servers first, by the paths that say what they are: their logs may be links to elsewhere.
        let mut roots: Vec<DatabaseRoot> = self.roots.values().flatten().cloned().collect();
        roots.sort_by(|a, b| a.path.cmp(&b.path));
        roots.dedup();
        for root in roots {
            self.root(&root);
        }
        for (path, link, about) in open {
            self.file(&path, &link, &about, None);
        }
        self.forget();
        std::mem::take(&mut self.changes)
    }

    /// Where files had room that was never written when they were last asked, at most so many ranges, those of the first
    /// places, in their order; and how many others there are. A file is asked again when its length or its blocks change,
    /// which a write into such room does not do: who uses this has to leave out what was written since.
    pub fn unwritten(&self, most: usize) -> (Vec<DiskRange>, u64) {
        let mut found: Vec<DiskRange> = Vec::new();
        for (inode, followed) in &self.followed {
            let Some(home) = self.homes.get(&inode.0).copied().flatten() else { continue };
            found.extend(followed.unwritten.iter().map(|(begin, length)| (home.disk, *begin, *length)));
        }
        found.sort_unstable();
        let left_out = found.len().saturating_sub(most) as u64;
        found.truncate(most);
        (found, left_out)
    }

    fn root(&mut self, root: &DatabaseRoot) {
        let (kind, above) = (root.kind, root.path.clone());
        self.server = Some(above.to_string_lossy().into_owned());
        self.walk(&root.path, &mut |path| path.strip_prefix(&above).ok().map(|path| classify(kind, path)), 0);
        self.server = None;
    }

    /// The files below a directory. Links are followed where a server has its own: PostgreSQL's log and tablespaces.
    fn walk(
        &mut self,
        directory: &Path,
        class: &mut dyn FnMut(&Path) -> Option<(FileClass, String)>,
        depth: usize,
    ) {
        let Ok(entries) = std::fs::read_dir(directory) else { return };
        self.directory(directory);
        for entry in entries.flatten() {
            let path = entry.path();
            // Follows a link.
            let Ok(about) = std::fs::metadata(&path) else { continue };
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if about.is_dir() && depth < DEEPEST {
                let is_servers = directory.ends_with("pg_tblspc") || path.ends_with("pg_wal");
                if !is_link || is_servers {
                    self.walk(&path, class, depth + 1);
                }
            } else if about.is_file() {
                let known = if self.is_known(&about) { None } else { class(&path) };
                self.file(&path, &path, &about, known);
            }
        }
    }

    fn is_known(&self, about: &Metadata) -> bool {
        self.followed.contains_key(&inode(about))
    }

    /// A directory's own blocks are the filesystem's metadata.
    fn directory(&mut self, path: &Path) {
        if let Ok(about) = std::fs::metadata(path) {
            let metadata = (FileClass::FilesystemMetadata, "directories".to_owned());
            self.file(path, path, &about, Some(metadata));
        }
    }

    /// The regular files that processes have open, outside of servers' directories: path, where it can be opened.
    fn open_files(&mut self) -> Vec<(PathBuf, PathBuf, Metadata)> {
        let mut found = Vec::new();
        for pid in self.tree.processes() {
            let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
            for entry in entries.flatten() {
                let link = entry.path();
                let Ok(path) = std::fs::read_link(&link) else { continue };
                if !path.is_absolute()
                    || ["/dev", "/proc", "/sys"].iter().any(|other| path.starts_with(other))
                {
                    continue;
                }
                // Of a file that was deleted and of one in another mount namespace the path leads nowhere, or elsewhere.
                let Ok(about) = std::fs::metadata(&link) else { continue };
                if !about.is_file() {
                    continue;
                }
                let directory = path.parent().unwrap_or(&path).to_owned();
                let root = self.roots.entry(directory);
                if root.or_insert_with_key(|directory| DatabaseRoot::above(directory)).is_none() {
                    found.push((path, link, about));
                }
            }
        }
        found
    }

    /// What is behind loop devices.
    fn loop_devices(&mut self) {
        for number in self.tree.numbered("/sys/block", "loop") {
            let home = format!("/sys/block/loop{number}");
            let Some(path) = self.tree.line(format!("{home}/loop/backing_file")) else { continue };
            let begin = self.tree.number(format!("{home}/loop/offset")).unwrap_or(0);
            let Some(device) = self.tree.line(format!("{home}/dev")).and_then(|text| numbers(&text)) else {
                continue;
            };
            let path = PathBuf::from(path);
            let Ok(about) = std::fs::metadata(&path) else { continue };
            let behind = Some((device, begin));
            // An image that was followed as another file before, or behind another device: its places become those of
            // a new file.
            let is_other = |followed: &Followed| followed.behind != behind;
            if !self.seen.contains(&inode(&about)) && self.followed.get(&inode(&about)).is_some_and(is_other)
            {
                self.drop_file(inode(&about));
            }
            let is_new = !self.is_known(&about);
            self.file(&path, &path, &about, None);
            if is_new
                && let Some(followed) = self.followed.get_mut(&inode(&about))
                && let Some(file) = self.changes.files.last_mut()
            {
                // The file is the last of the list, as it was taken.
                (followed.behind, file.behind) = (behind, behind);
            }
        }
    }

    /// Follows a file, of a class if it is known, and looks at it if it changed; `link` is where it can be opened.
    fn file(&mut self, path: &Path, link: &Path, about: &Metadata, class: Option<(FileClass, String)>) {
        let inode = inode(about);
        if !self.seen.insert(inode) {
            return;
        }
        let Some(home) = self.home(path, about.dev()) else { return };
        if !self.followed.contains_key(&inode) {
            if self.followed.len() >= MOST_FILES || self.files >= MOST_FILES_EVER {
                self.is_partial = true;
                return;
            }
            let name = path.to_string_lossy().into_owned();
            let class = class.unwrap_or_else(|| classify_other(&name, |other| Path::new(other).is_file()));
            let doublewrite = self.doublewrite(path, &class);
            let (class, object) = class;
            let file = self.add(TracedFile { path: name, class, object, ..TracedFile::default() });
            let path = path.to_owned();
            let new = Followed { path, file, doublewrite, is_pending: true, ..Followed::default() };
            self.followed.insert(inode, new);
        }
        let Some(followed) = self.followed.get_mut(&inode) else { return };
        let is_same = followed.length == about.len() && followed.blocks == about.blocks();
        if is_same && !followed.is_pending {
            return;
        }
        (followed.length, followed.blocks) = (about.len(), about.blocks());
        let opened = open(link, inode).or_else(|| open(&followed.path, inode));
        let Some(FoundParts { parts: found, unwritten, is_pending }) =
            opened.and_then(|file| parts(&file, home, followed))
        else {
            followed.is_pending = false;
            return;
        };
        (followed.is_pending, followed.unwritten) = (is_pending, unwritten);
        let extents = self.extents - followed.parts.len();
        // What has no room is freed, and not another file's by its old places.
        let is_too_much = extents + found.len() > MOST_EXTENTS || self.changed > MOST_CHANGES;
        self.is_partial |= is_too_much;
        let found = if is_too_much { Vec::new() } else { found };
        self.extents = extents + found.len();
        let before = std::mem::replace(&mut followed.parts, found);
        let followed = &self.followed[&inode];
        let had: HashSet<&FileExtent> = before.iter().collect();
        let has: HashSet<&FileExtent> = followed.parts.iter().collect();
        let gone = before.iter().filter(|part| !has.contains(part)).map(|part| (part, false));
        let new = followed.parts.iter().filter(|part| !had.contains(part)).map(|part| (part, true));
        for (&(begin, length, logical, file), is_there) in gone.chain(new) {
            let file = is_there.then_some(file);
            let change = Change { seen: self.now, device: home.disk, begin, length, file, logical };
            self.changes.changes.push(change);
            self.changed += 1;
        }
    }

    /// The place of the doublewrite buffer in the first system tablespace, where it has no files of its own.
    fn doublewrite(&mut self, path: &Path, class: &(FileClass, String)) -> Option<u32> {
        if class.0 != FileClass::InnodbData || !path.ends_with("ibdata1") {
            return None;
        }
        let names = self.tree.names(path.parent()?);
        if names.iter().any(|name| name.contains("dblwr")) {
            return None;
        }
        Some(self.add(TracedFile {
            path: path.to_string_lossy().into_owned(),
            class: FileClass::InnodbDoublewrite,
            object: "doublewrite buffer".into(),
            ..TracedFile::default()
        }))
    }

    fn add(&mut self, file: TracedFile) -> u32 {
        let server = self.server.clone().filter(|_| file.class.is_servers());
        self.changes.files.push(TracedFile { server, ..file });
        self.files += 1;
        self.files - 1
    }

    /// Where a filesystem is; when it is first seen, what it keeps for itself as well. Only of filesystems whose answers
    /// are places of their device: others have several, or an address space of their own.
    fn home(&mut self, path: &Path, device: u64) -> Option<Home> {
        if let Some(home) = self.homes.get(&device) {
            return *home;
        }
        let number = device_number(device);
        let mounts = self.tree.mounts();
        let mount = mounts.iter().find(|mount| mount.number == number);
        let home = mount.and_then(|mount| place(&self.tree, mount, &number));
        self.homes.insert(device, home);
        let (home, mount) = (home?, mount?);
        let directory = if path.is_dir() { Some(path) } else { path.parent() };
        let opened = directory.and_then(|directory| File::open(directory).ok());
        let parts = opened.and_then(|file| filesystem_parts(&file).ok()).unwrap_or_default();
        let mut files: [Option<u32>; 2] = [None; 2];
        let whose = format!("of {}", mount.point.display());
        for part in parts.into_iter().take(MOST_EXTENTS / 4) {
            let journal = part.is_journal;
            let place = usize::from(journal);
            let file = match files.get(place).copied().flatten() {
                Some(file) => file,
                None => self.add(filesystem_file(journal, &whose)),
            };
            files[place] = Some(file);
            let (begin, length) = (part.physical.start + home.begin, part.physical.end - part.physical.start);
            let (seen, device) = (self.now, home.disk);
            self.changes.changes.push(Change { seen, device, begin, length, file: Some(file), logical: 0 });
            self.extents += 1;
            self.changed += 1;
        }
        Some(home)
    }

    /// Frees the places of files that are gone. Those that were only closed may still be written back.
    fn forget(&mut self) {
        let gone: Vec<Inode> = self
            .followed
            .iter()
            .filter(|(inode, _)| !self.seen.contains(*inode))
            .filter(|(inode, followed)| {
                let about = std::fs::metadata(&followed.path);
                !about.is_ok_and(|about| self::inode(&about) == **inode)
            })
            .map(|(inode, _)| *inode)
            .collect();
        let mut freed = Vec::new();
        for inode in gone {
            freed.extend(self.freed(inode));
        }
        // Before the new files of this look, which may have their places already.
        self.extents -= freed.len();
        self.changed += freed.len();
        freed.append(&mut self.changes.changes);
        self.changes.changes = freed;
    }

    /// Follows a file no more. Returns that its places are free.
    fn freed(&mut self, inode: Inode) -> Vec<Change> {
        let home = self.homes.get(&inode.0).copied().flatten();
        let (Some(followed), Some(home)) = (self.followed.remove(&inode), home) else { return Vec::new() };
        let free = |(begin, length, ..): &FileExtent| Change {
            seen: self.now,
            device: home.disk,
            begin: *begin,
            length: *length,
            file: None,
            logical: 0,
        };
        followed.parts.iter().map(free).collect()
    }

    /// The same, within a look.
    fn drop_file(&mut self, inode: Inode) {
        let freed = self.freed(inode);
        self.extents -= freed.len();
        self.changed += freed.len();
        self.changes.changes.extend(freed);
    }
}

/// A file at a path, if it is still the one that is meant.
fn open(path: &Path, wanted: Inode) -> Option<File> {
    let file = File::open(path).ok()?;
    let about = file.metadata().ok()?;
    (inode(&about) == wanted).then_some(file)
}

fn numbers(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn place(tree: &SystemTree, mount: &Mount, number: &str) -> Option<Home> {
    let kind = mount.kind.as_str();
    let is_realtime = mount.all_options().any(|option| option.starts_with("rtdev"));
    if !matches!(kind, "ext2" | "ext3" | "ext4" | "xfs") || is_realtime {
        return None;
    }
    let name = device_name(tree, number)?;
    let disk = whole_disk(tree, &name);
    let start = if disk == name { 0 } else { tree.number(format!("/sys/class/block/{name}/start"))? };
    let disk = numbers(&tree.line(format!("/sys/class/block/{disk}/dev"))?)?;
    Some(Home { disk, begin: start.checked_mul(SECTOR)? })
}

/// What the filesystem says of a file.
struct FoundParts {
    parts: Vec<FileExtent>,
    unwritten: Vec<(u64, u64)>,
    is_pending: bool,
}

/// The parts of a file that have a place, those that continue each other in one; and whether some have none yet.
fn parts(file: &File, home: Home, followed: &Followed) -> Option<FoundParts> {
    let mut found: Vec<FileExtent> = Vec::new();
    let mut unwritten: Vec<(u64, u64)> = Vec::new();
    let mut is_pending = false;
    let mut take = |part: FilePart| {
        if !part.has_place() {
            is_pending = true;
            return true;
        }
        let (begin, length) = (part.physical + home.begin, part.logical.end - part.logical.start);
        if part.is_unwritten() {
            let is_room = unwritten.len() < MOST_EXTENTS;
            match unwritten.last_mut() {
                Some((from, room)) if *from + *room == begin => *room += length,
                _ if is_room => unwritten.push((begin, length)),
                _ => {}
            }
        }
        match found.last_mut() {
            Some(last) if last.0 + last.1 == begin && last.2 + last.1 == part.logical.start => {
                last.1 += length;
            }
            _ => found.push((begin, length, part.logical.start, followed.file)),
        }
        found.len() < MOST_EXTENTS
    };
    // Behind the end there may be blocks that were allocated ahead.
    walk(file, 0..u64::MAX / 2, false, &mut take).ok()?;
    if let Some(buffer) = followed.doublewrite {
        let within: Vec<FileExtent> = found.iter().filter_map(|part| clipped(part, buffer)).collect();
        found.extend(within);
    }
    Some(FoundParts { parts: found, unwritten, is_pending })
}

/// What of a part is the doublewrite buffer's.
fn clipped(&(begin, length, logical, _): &FileExtent, buffer: u32) -> Option<FileExtent> {
    let from = logical.max(DOUBLEWRITE.start);
    let to = (logical + length).min(DOUBLEWRITE.end);
    (from < to).then(|| (begin + (from - logical), to - from, from, buffer))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_doublewrite_buffer_is_cut_out_of_the_tablespace() {
        const MIB: u64 = 1 << 20;
        assert_eq!(clipped(&(100 * MIB, 2 * MIB, 0, 1), 9), Some((101 * MIB, MIB, MIB, 9)));
        assert_eq!(clipped(&(0, MIB, 2 * MIB, 1), 9), Some((0, MIB, 2 * MIB, 9)));
        assert_eq!(clipped(&(0, MIB, 3 * MIB, 1), 9), None);
    }

    #[test]
    fn ranges_beyond_the_limit_are_counted() {
        let mut watcher = FileWatcher::new(Vec::new());
        watcher.homes.insert(1, Some(Home { disk: (254, 0), begin: 0 }));
        for (file, unwritten) in [vec![(900, 8), (100, 8)], vec![(500, 8)]].into_iter().enumerate() {
            let followed = Followed { unwritten, ..Followed::default() };
            watcher.followed.insert((1, file as u64, None), followed);
        }
        let range = |begin| ((254, 0), begin, 8);
        assert_eq!(watcher.unwritten(2), (vec![range(100), range(500)], 1));
        assert_eq!(watcher.unwritten(3), (vec![range(100), range(500), range(900)], 0));
    }

    #[test]
    fn a_file_is_found_and_found_again_when_it_grows_and_is_freed_when_it_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.db");
        let mut file = File::create(&path).unwrap();
        let mut write = |kib: usize| {
            file.write_all(&vec![7; kib << 10]).unwrap();
            file.sync_all().unwrap();
        };
        write(64);
        let mut watcher = FileWatcher::new(vec![place.path().to_owned()]);
        let bytes = |found: &FileChanges, is_there: bool| -> u64 {
            found.changes.iter().filter(|one| one.file.is_some() == is_there).map(|one| one.length).sum()
        };
        let first = watcher.file_changes(1);
        let about = std::fs::metadata(&path).unwrap();
        if watcher.homes.get(&about.dev()).copied().flatten().is_none() {
            // Not on a filesystem that is understood: nothing may be said about it.
            assert!(!first.files.iter().any(|one| one.path.ends_with("x.db")), "{:?}", first.files);
            return;
        }
        let number = first.files.iter().position(|one| one.path.ends_with("x.db")).unwrap() as u32;
        assert_eq!(first.files[number as usize].class, FileClass::SqliteDatabase);
        let of_file = |found: &FileChanges| FileChanges {
            changes: found.changes.iter().filter(|one| one.file == Some(number)).copied().collect(),
            ..FileChanges::default()
        };
        assert!(bytes(&of_file(&first), true) >= 64 << 10, "{first:?}");
        let same = watcher.file_changes(2);
        assert!(of_file(&same).changes.is_empty(), "{same:?}");
        write(192);
        let grown = watcher.file_changes(3);
        assert!(bytes(&of_file(&grown), true) >= 192 << 10, "{grown:?}");
        drop(file);
        std::fs::remove_file(&path).unwrap();
        // Which may well get the number of the one that went.
        let other = place.path().join("other");
        std::fs::write(&other, [7; 4096]).unwrap();
        let gone = watcher.file_changes(4);
        assert!(bytes(&gone, false) >= 256 << 10, "{gone:?}");
        if about.created().is_ok() {
            // Databases of other tests are found as well.
            let here = place.path().to_str().unwrap();
            let new = gone.files.iter().map(|one| one.path.as_str()).filter(|path| path.starts_with(here));
            assert_eq!(new.collect::<Vec<_>>(), [other.to_str().unwrap()]);
        }
    }
}
