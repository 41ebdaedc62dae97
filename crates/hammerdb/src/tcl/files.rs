//! Files that a script reads, writes and sources.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use super::commands::Call;
use super::interpreter::Answer;

pub(super) const COMMANDS: [&str; 10] =
    ["close", "eof", "file", "flush", "gets", "open", "puts", "pwd", "read", "source"];

/// Most files that a script may have open.
const MOST_OPEN: usize = 64;
/// Most bytes that a script may read from one file, and most bytes of a script file.
const LONGEST: u64 = 4 << 20;
/// Most bytes that a script may write to files in total.
const MOST_WRITTEN: u64 = 256 << 20;

/// The directories that a script may use, and its open files.
pub(super) struct Files {
    directories: Vec<PathBuf>,
    open: BTreeMap<String, Channel>,
    opened: u32,
    written: u64,
}

enum Channel {
    Reader(BufReader<File>, bool),
    Writer(File),
}

impl Files {
    pub(super) fn new(directories: &[PathBuf]) -> Self {
        let directories = directories.iter().map(|directory| normal(directory)).collect();
        Self { directories, open: BTreeMap::new(), opened: 0, written: 0 }
    }

    fn current(&self) -> PathBuf {
        self.directories.first().cloned().unwrap_or_default()
    }

    /// The absolute path of a name, without `.`, `..` and symbolic links.
    fn path(&self, name: &str) -> PathBuf {
        normal(&self.current().join(name))
    }

    /// The path of a name; an error if the script may not use it.
    fn allowed(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.path(name);
        if self.directories.iter().any(|directory| path.starts_with(directory)) {
            return Ok(path);
        }
        let listed: Vec<_> =
            self.directories.iter().map(|directory| directory.display().to_string()).collect();
        Err(format!("{name} is refused: a script may use files below {} only", listed.join(" and ")))
    }

    /// The path of a name that the script may create or change. Refused are hidden files, which may be a
    /// program's settings (where a script runs in a home directory), and dangling links.
    fn writable(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.allowed(name)?;
        let shown = |directory: &PathBuf| {
            path.strip_prefix(directory).is_ok_and(|rest| {
                !rest.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."))
            })
        };
        if !self.directories.iter().any(shown) {
            return Err(format!("{name} is refused: a script writes no hidden files"));
        }
        // Links to existing files have been resolved; this one dangles.
        if path.is_symlink() {
            return Err(format!("{name} is refused: it is a dangling link"));
        }
        Ok(path)
    }
}

/// An absolute path without `.` and `..`, with the links in its existing part resolved.
fn normal(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut plain = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => {
                plain.push(other);
                if let Ok(real) = plain.canonicalize() {
                    plain = real;
                }
            }
        }
    }
    plain
}

/// Opens a regular file. Anything else is refused: opening a pipe or a device may block forever.
fn open_regular(path: &Path, options: &OpenOptions) -> std::io::Result<File> {
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    options.open(path)
}

/// Reads a script file.
pub(super) fn read_script(path: &Path) -> Result<String, String> {
    let read = || -> std::io::Result<String> {
        let mut text = String::new();
        open_regular(path, OpenOptions::new().read(true))?.take(LONGEST + 1).read_to_string(&mut text)?;
        Ok(text)
    };
    match read() {
        Ok(text) if text.len() as u64 > LONGEST => Err(format!("{} is longer than 4 MiB", path.display())),
        Ok(text) => Ok(text.replace("\r\n", "\n")),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

pub(super) fn call(call: &mut Call<'_, '_>) -> Answer {
    let texts = call.texts();
    match (call.name, texts.as_slice()) {
        ("puts", words) => puts(call, words),
        ("pwd", []) => Ok(call.interpreter.files.current().display().to_string()),
        ("source", [name] | ["-encoding", _, name]) => source(call, name),
        ("open", [name]) => open(call, name, "r"),
        ("open", [name, access] | [name, access, _]) => open(call, name, access),
        ("close", [channel]) => {
            standard_or(call, channel, |call| match call.interpreter.files.open.remove(*channel) {
                Some(_) => Ok(String::new()),
                None => no_channel(call, channel),
            })
        }
        ("flush", [_]) => Ok(String::new()),
        ("eof", [channel]) => match call.interpreter.files.open.get(*channel) {
            Some(Channel::Reader(_, ended)) => Ok(u8::from(*ended).to_string()),
            _ => no_channel(call, channel),
        },
        ("gets", [channel]) => gets(call, channel, None),
        ("gets", [channel, name]) => gets(call, channel, Some(name)),
        ("read", [channel] | ["-nonewline", channel]) => read(call, channel, texts.len() == 2),
        ("file", [action, rest @ ..]) => file(call, action, rest),
        _ => call.misuse(&format!("{} with other arguments", call.name)),
    }
}

fn no_channel(call: &Call<'_, '_>, channel: &str) -> Answer {
    call.fail(&format!("there is no open file {channel:?}"))
}

/// Standard channels are never closed.
fn standard_or(
    call: &mut Call<'_, '_>,
    channel: &str,
    other: impl FnOnce(&mut Call<'_, '_>) -> Answer,
) -> Answer {
    if ["stdin", "stdout", "stderr"].contains(&channel) { Ok(String::new()) } else { other(call) }
}

fn puts(call: &mut Call<'_, '_>, words: &[&str]) -> Answer {
    let (newline, rest) = match words {
        ["-nonewline", rest @ ..] => ("", rest),
        rest => ("\n", rest),
    };
    let (channel, text) = match rest {
        [text] => ("stdout", text),
        [channel, text] => (*channel, text),
        _ => return call.misuse("puts ?-nonewline? ?FILE? TEXT"),
    };
    let text = format!("{text}{newline}");
    if channel == "stdout" || channel == "stderr" {
        call.interpreter.host.print(&text);
        return Ok(String::new());
    }
    let files = &mut call.interpreter.files;
    let Some(Channel::Writer(file)) = files.open.get_mut(channel) else {
        return no_channel(call, channel);
    };
    files.written += text.len() as u64;
    if files.written > MOST_WRITTEN {
        return call.fail("the script writes more than 256 MiB to files");
    }
    match file.write_all(text.as_bytes()) {
        Ok(()) => Ok(String::new()),
        Err(error) => call.fail(&format!("cannot write to {channel}: {error}")),
    }
}

fn source(call: &mut Call<'_, '_>, name: &str) -> Answer {
    let tail = Path::new(name).file_name().and_then(|tail| tail.to_str()).unwrap_or_default();
    if let Some(script) = call.interpreter.host.replacement(tail) {
        return call.interpreter.guarded(|interpreter| interpreter.evaluate(script, 1));
    }
    let text = call.interpreter.files.allowed(name).and_then(|path| Ok((read_script(&path)?, path)));
    let (text, path) = match text {
        Ok(found) => found,
        Err(message) => return call.fail(&message),
    };
    let outer = call.interpreter.file.replace(path);
    let answer = call.interpreter.guarded(|interpreter| interpreter.evaluate(&text, 1));
    call.interpreter.file = outer;
    match answer {
        Err(super::interpreter::Stop::Return(value)) => Ok(value),
        other => other,
    }
}

fn open(call: &mut Call<'_, '_>, name: &str, access: &str) -> Answer {
    if name.starts_with('|') {
        return call.fail("a script may open files, but not start programs");
    }
    if call.interpreter.files.open.len() >= MOST_OPEN {
        return call.fail(&format!("the script has {MOST_OPEN} files open and closes none"));
    }
    let files = &call.interpreter.files;
    let path = if access.starts_with('r') { files.allowed(name) } else { files.writable(name) };
    let path = match path {
        Ok(path) => path,
        Err(message) => return call.fail(&message),
    };
    let mut options = OpenOptions::new();
    // The script may write secrets, such as passwords.
    options.mode(0o600);
    match access.trim_end_matches('b') {
        "r" => options.read(true),
        "w" | "w+" => options.write(true).create(true).truncate(true),
        "a" | "a+" => options.append(true).create(true),
        other => return call.fail(&format!("open with access {other:?} is not supported: r, w or a")),
    };
    let file = match open_regular(&path, &options) {
        Ok(file) => file,
        Err(error) => return call.fail(&format!("cannot open {}: {error}", path.display())),
    };
    let files = &mut call.interpreter.files;
    files.opened += 1;
    let channel = format!("file{}", files.opened);
    let opened = if access.starts_with('r') {
        Channel::Reader(BufReader::new(file), false)
    } else {
        Channel::Writer(file)
    };
    files.open.insert(channel.clone(), opened);
    Ok(channel)
}

fn gets(call: &mut Call<'_, '_>, channel: &str, name: Option<&str>) -> Answer {
    let Some(Channel::Reader(reader, ended)) = call.interpreter.files.open.get_mut(channel) else {
        return no_channel(call, channel);
    };
    let mut line = String::new();
    match reader.take(LONGEST).read_line(&mut line) {
        Ok(0) => *ended = true,
        Ok(_) => {}
        Err(error) => return call.fail(&format!("cannot read from {channel}: {error}")),
    }
    let length = if line.is_empty() { -1 } else { line.trim_end_matches('\n').chars().count() as i64 };
    let line = line.trim_end_matches('\n').to_owned();
    match name {
        None => Ok(line),
        Some(name) => {
            call.interpreter.set(name, line, call.line)?;
            Ok(length.to_string())
        }
    }
}

fn read(call: &mut Call<'_, '_>, channel: &str, without_newline: bool) -> Answer {
    let Some(Channel::Reader(reader, ended)) = call.interpreter.files.open.get_mut(channel) else {
        return no_channel(call, channel);
    };
    let mut text = String::new();
    match reader.take(LONGEST).read_to_string(&mut text) {
        Ok(_) => *ended = true,
        Err(error) => return call.fail(&format!("cannot read from {channel}: {error}")),
    }
    if without_newline && text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

fn file(call: &mut Call<'_, '_>, action: &str, rest: &[&str]) -> Answer {
    let flag = |holds: bool| Ok(u8::from(holds).to_string());
    let part = |name: &str, part: fn(&Path) -> Option<&std::ffi::OsStr>| {
        part(Path::new(name)).map_or(String::new(), |found| found.to_string_lossy().into_owned())
    };
    match (action, rest) {
        ("exists", [name]) => flag(call.interpreter.files.path(name).exists()),
        ("isfile", [name]) => flag(call.interpreter.files.path(name).is_file()),
        ("isdirectory", [name]) => flag(call.interpreter.files.path(name).is_dir()),
        ("readable", [name]) => {
            let path = call.interpreter.files.path(name);
            flag(open_regular(&path, OpenOptions::new().read(true)).is_ok())
        }
        ("normalize", [name]) => Ok(call.interpreter.files.path(name).display().to_string()),
        ("join", names) => Ok(names.iter().collect::<PathBuf>().display().to_string()),
        ("tail", [name]) => Ok(part(name, Path::file_name)),
        ("extension", [name]) => Ok(match part(name, Path::extension) {
            extension if extension.is_empty() => extension,
            extension => format!(".{extension}"),
        }),
        ("rootname", [name]) => Ok(Path::new(name).with_extension("").display().to_string()),
        ("dirname", [name]) => {
            let parent = Path::new(name).parent().map(|parent| parent.display().to_string());
            Ok(parent.filter(|parent| !parent.is_empty()).unwrap_or_else(|| ".".into()))
        }
        ("mkdir", names) => {
            for name in names {
                let made = call.interpreter.files.writable(name).and_then(|path| {
                    std::fs::create_dir_all(&path)
                        .map_err(|error| format!("cannot create {}: {error}", path.display()))
                });
                if let Err(message) = made {
                    return call.fail(&message);
                }
            }
            Ok(String::new())
        }
        _ => call.fail(&format!("`file {action}` is refused or not supported")),
    }
}
