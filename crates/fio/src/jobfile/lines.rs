//! A job file's lines: sections, options, comments, includes.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::variables::environment;
use crate::error::{Error, Location, Result};

/// An option as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenOption {
    /// Its name or alias.
    pub(crate) name: String,
    /// What stands behind `=`, with the environment's variables replaced; none without `=`.
    pub(crate) value: Option<String>,
    /// Where the value is; the name where there is none.
    pub(crate) place: Location,
    /// The column of the name.
    pub(crate) named_at: u32,
    /// What began a comment right behind the value, without a space: it may have been meant as a part of it.
    pub(crate) comment: Option<char>,
}

impl WrittenOption {
    /// Where the name is.
    pub(crate) fn name_place(&self) -> Location {
        Location { column: self.named_at, ..self.place.clone() }
    }
}

/// A section with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    /// What is in the brackets.
    pub(crate) name: String,
    /// Where.
    pub(crate) place: Location,
    /// Its options in their order.
    pub(crate) options: Vec<WrittenOption>,
}

impl Section {
    /// Whether it is not a job but sets what holds for the following jobs.
    pub(crate) fn is_global(&self) -> bool {
        self.name == "global"
    }
}

/// The longest name of a section, as in fio.
const LONGEST_NAME: usize = 255;
/// How deep included files may include.
const DEPTH: usize = 16;
/// More than any job file has.
const LARGEST: u64 = 16 << 20;

pub(crate) fn problem(place: &Location, problem: impl Into<String>) -> Error {
    Error::Input { place: place.clone(), problem: problem.into() }
}

/// The text of a job file; `-` is standard input.
pub(crate) fn text_of(path: &Path) -> Result<String> {
    let what = || format!("reading the job file {}", path.display());
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes).map_err(Error::system(what()))?;
    } else {
        let file = std::fs::File::open(path).map_err(Error::system(what()))?;
        file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(Error::system(what()))?;
    }
    decode(bytes, path)
}

fn decode(bytes: Vec<u8>, path: &Path) -> Result<String> {
    let place = |line| Location { file: Some(path.into()), line, column: 0 };
    if bytes.len() as u64 > LARGEST {
        return Err(problem(&place(1), "is larger than 16 MiB, the maximum for a job file"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.split(|byte| *byte == b'\n').skip(1).count() as u32;
        problem(&place(line), "is not UTF-8 text")
    })
}

/// The sections of a text. `path` is where it was read from, for places and for the files that it includes.
pub(crate) fn sections(text: &str, path: Option<&Path>) -> Result<Vec<Section>> {
    let mut sections: Vec<Section> = Vec::new();
    for (place, line) in numbered(text, path) {
        if let Some(name) = header(&line, &place)? {
            sections.push(Section { name, place, options: Vec::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else {
            return Err(problem(
                &place,
                format!(
                    "{:?} precedes the first section: write [global] or a job's [name] above it",
                    line.trim()
                ),
            ));
        };
        option_line(&line, &place, &mut section.options, 0)?;
    }
    // As in fio, `kb_base` says how all options of its section are read, wherever it stands. On a command line it says how
    // those after it are read.
    for section in &mut sections {
        section.options.sort_by_key(|given| given.name != "kb_base");
    }
    Ok(sections)
}

/// The lines that are not empty and no comments, with their places. Columns are counted in letters.
fn numbered<'a>(text: &'a str, path: Option<&'a Path>) -> impl Iterator<Item = (Location, String)> + 'a {
    text.lines().enumerate().filter_map(move |(index, line)| {
        // A byte-order mark, as some editors write it.
        let line = if index == 0 { line.trim_start_matches('\u{feff}') } else { line };
        let start = line.trim_start();
        if start.is_empty() || start.starts_with([';', '#']) {
            return None;
        }
        // Anything else needs a path for its place; a text without one is given an empty one.
        let file = Some(path.map_or_else(|| PathBuf::from("(text)"), Path::to_path_buf));
        let column = (line.len() - start.len()) as u32 + 1;
        Some((Location { file, line: index as u32 + 1, column }, line.to_owned()))
    })
}

/// The name of a section's header; none for another line.
fn header(line: &str, place: &Location) -> Result<Option<String>> {
    let Some(inside) = line.trim_start().strip_prefix('[') else { return Ok(None) };
    let Some((name, behind)) = inside.split_once(']') else {
        return Err(problem(place, "the section name has no closing bracket"));
    };
    let behind = behind.trim();
    if !behind.is_empty() && !behind.starts_with([';', '#']) {
        return Err(problem(
            place,
            format!("{behind:?} follows the section name: put it on a separate line"),
        ));
    }
    let name = name.trim();
    if name.is_empty() {
        return Err(problem(place, "the section has no name"));
    }
    if name.len() > LONGEST_NAME {
        return Err(problem(place, format!("the section name is longer than {LONGEST_NAME} bytes")));
    }
    Ok(Some(name.to_owned()))
}

/// Reads a line with an option, or with an include, into the options of a section.
fn option_line(line: &str, place: &Location, into: &mut Vec<WrittenOption>, depth: usize) -> Result<()> {
    let whole = line;
    let line = whole.split([';', '#']).next().unwrap_or_default();
    let comment = whole[line.len()..].chars().next().filter(|_| !line.ends_with(char::is_whitespace));
    let line = line.trim_end();
    let words = line.trim_start();
    let included =
        words.strip_prefix("include").filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '=']));
    if let Some(name) = included {
        let name = name.trim_start_matches([' ', '\t', '=']).trim();
        let name = environment(name).map_err(|wrong| problem(place, wrong))?;
        return include(&name, place, into, depth);
    }
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value)),
        None => (words, None),
    };
    let before = line.find('=').map_or(line.len() - words.len(), |at| {
        at + 1
            + line[at + 1..]
                .chars()
                .take_while(|letter| letter.is_whitespace())
                .map(char::len_utf8)
                .sum::<usize>()
    });
    let named_at = place.column;
    let place = Location { column: line[..before].chars().count() as u32 + 1, ..place.clone() };
    let value = value
        .map(|value| environment(value.trim()))
        .transpose()
        .map_err(|wrong| problem(&place, format!("{name}: {wrong}")))?;
    into.push(WrittenOption { name: name.to_owned(), value, place, named_at, comment });
    Ok(())
}

fn include(name: &str, place: &Location, into: &mut Vec<WrittenOption>, depth: usize) -> Result<()> {
    if name.is_empty() {
        return Err(problem(place, "include does not name a file"));
    }
    if depth >= DEPTH {
        return Err(problem(place, format!("include files are nested more than {DEPTH} deep")));
    }
    let path = located(name, place);
    let unreadable = |cause: std::io::Error| problem(place, format!("include {name}: {cause}"));
    // Not a pipe or a device, whose reading might never end.
    if !std::fs::metadata(&path).map_err(unreadable)?.is_file() {
        return Err(problem(place, format!("include {name}: is not a regular file")));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&path).map_err(unreadable)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let text = decode(bytes, &path)?;
    for (place, line) in numbered(&text, Some(&path)) {
        if line.trim_start().starts_with('[') {
            return Err(problem(
                &place,
                "an included file may contain only options: put sections in the job file",
            ));
        }
        option_line(&line, &place, into, depth + 1)?;
    }
    Ok(())
}

/// As fio: where the name leads from the current directory, or from that of the file that includes it.
fn located(name: &str, place: &Location) -> PathBuf {
    let here = PathBuf::from(name);
    if here.is_absolute() || here.exists() {
        return here;
    }
    let beside = place.file.as_deref().and_then(Path::parent).map(|directory| directory.join(name));
    beside.filter(|path| path.exists()).unwrap_or(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Vec<(String, Option<String>, u32, u32)> {
        let sections = sections(text, None).unwrap();
        let options = sections.into_iter().flat_map(|section| section.options);
        options.map(|given| (given.name, given.value, given.place.line, given.place.column)).collect()
    }

    #[test]
    fn options_have_their_places() {
        let read = options("; c\n[a] # c\nbs=4k ; c\n  rw = randread  \n\ntime_based\r\n\tfilename=/a#b\n");
        let expected = [
            ("bs", Some("4k"), 3, 4),
            ("rw", Some("randread"), 4, 8),
            ("time_based", None, 6, 1),
            ("filename", Some("/a"), 7, 11),
        ];
        let expected =
            expected.map(|(name, value, line, column)| (name.into(), value.map(String::from), line, column));
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_no_section_is_refused() {
        for (text, wrong) in [
            ("bs=4k\n[a]\n", "the first section"),
            ("[a\n", "closing bracket"),
            ("[]\n", "no name"),
            ("[a] b\n", "follows the section name"),
            ("[a]\ninclude /nowhere\n", "/nowhere"),
            ("[a]\ninclude \n", "name a file"),
            ("[a]\ninclude /dev/zero\n", "regular file"),
            ("[a]\nfilename=${KELVIN_NOT_SET}\n", "KELVIN_NOT_SET"),
        ] {
            let error = sections(text, None).unwrap_err().to_string();
            assert!(error.contains(wrong), "{text:?}: {error}");
        }
    }

    #[test]
    fn included_options_stand_where_the_include_was() {
        let directory = tempfile::tempdir().unwrap();
        let job = directory.path().join("a.fio");
        std::fs::write(directory.path().join("b.inc"), "; c\nbs=8k\ninclude c.inc\n").unwrap();
        std::fs::write(directory.path().join("c.inc"), "rw=write\n").unwrap();
        std::fs::write(directory.path().join("d.inc"), "include d.inc\n").unwrap();
        std::fs::write(directory.path().join("e.inc"), "[b]\n").unwrap();
        let read = sections("[a]\nsize=1m\ninclude b.inc\nloops=2\n", Some(&job)).unwrap();
        let names: Vec<&str> = read[0].options.iter().map(|given| given.name.as_str()).collect();
        assert_eq!(names, ["size", "bs", "rw", "loops"]);
        assert!(read[0].options[2].place.to_string().ends_with("c.inc:1:4"));
        assert!(sections("[a]\ninclude d.inc\n", Some(&job)).unwrap_err().to_string().contains("deep"));
        assert!(sections("[a]\ninclude e.inc\n", Some(&job)).unwrap_err().to_string().contains("e.inc:1"));
    }
}
