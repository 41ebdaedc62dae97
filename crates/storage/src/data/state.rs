//! `verify_state_save` and `verify_state_load`: the writes of a run, in a file.
//!
//! The format is Kelvin's, in lines of text: fio's contains the state of fio's generator, which is useless for Kelvin's
//! writes. The last line contains the number of lines of writes and the CRC-32C of everything before it, so that a
//! truncated file is detected.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::remembered_writes::{BlockAddress, RememberedBlock};
use crate::error::{Error, Location as Written, Result};

const FIRST_LINE: &str = "kelvin verify state 1";

/// The run to which a state belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) job: String,
    pub(super) clone: u32,
    pub(super) seed: u64,
    /// Writes so far.
    pub(super) writes: u64,
}

/// A state that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loaded {
    pub(super) identity: Identity,
    pub(super) entries: Vec<(BlockAddress, RememberedBlock)>,
}

/// The name of a worker's state: similar to fio's, but distinguishable from it.
pub fn state_name(job: &str, clone: u32) -> String {
    let job: String = job.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).collect();
    format!("kelvin-{job}-{clone}-verify.state")
}

pub(super) fn save(
    path: &Path,
    identity: &Identity,
    targets: &[PathBuf],
    entries: impl Iterator<Item = (BlockAddress, RememberedBlock)>,
) -> Result<()> {
    let shown = path.display();
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&beside)?;
        let (mut sum, mut count, mut text) = (0, 0_u64, String::new());
        let _infallible = write!(
            text,
            "{FIRST_LINE}\njob {}\nclone {}\nseed {}\nwrites {}\n",
            escaped(&identity.job),
            identity.clone,
            identity.seed,
            identity.writes
        );
        for target in targets {
            let _infallible = writeln!(text, "target {}", escaped(&target.to_string_lossy()));
        }
        for ((target, offset), entry) in entries {
            let length = entry.length;
            let _infallible = match entry.number() {
                Some(number) => {
                    let later = if entry.is_at_least() { " or later" } else { "" };
                    writeln!(text, "w {target} {offset} {length} {number}{later}")
                }
                None => writeln!(text, "t {target} {offset} {length}"),
            };
            count += 1;
            if text.len() > 1 << 20 {
                sum = crc32c::crc32c_append(sum, text.as_bytes());
                file.write_all(text.as_bytes())?;
                text.clear();
            }
        }
        sum = crc32c::crc32c_append(sum, text.as_bytes());
        let _infallible = writeln!(text, "end {count} {sum:08x}");
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(|error| {
        // The incomplete file is useless, and a second failure would hide the first.
        let _gone = fs::remove_file(&beside);
        Error::system(format!("cannot save the verify state in {shown}"))(error)
    })
}

/// A word of a line: line ends and backslashes are escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

pub(super) fn load(path: &Path, targets: &[PathBuf]) -> Result<Loaded> {
    let bytes =
        fs::read(path).map_err(Error::system(format!("cannot read the verify state {}", path.display())))?;
    parse(&bytes, targets).map_err(|(line, problem)| Error::Input {
        place: Written { file: Some(path.to_owned()), line, column: 0 },
        problem,
    })
}

/// Whether bytes are a valid state, whatever its targets; an error has the line and the reason. For the fuzzer.
pub fn check_state(bytes: &[u8]) -> std::result::Result<(), (u32, String)> {
    let targets: Vec<PathBuf> = String::from_utf8_lossy(bytes)
        .lines()
        .filter_map(|line| line.strip_prefix("target "))
        .take(100)
        .map(PathBuf::from)
        .collect();
    parse(bytes, &targets).map(|_| ())
}

fn parse(bytes: &[u8], targets: &[PathBuf]) -> std::result::Result<Loaded, (u32, String)> {
    if bytes.starts_with(&3_u64.to_le_bytes()) {
        return Err((
            0,
            "this verify state is from fio, whose generator differs; only Kelvin's can be loaded".into(),
        ));
    }
    let text =
        std::str::from_utf8(bytes).map_err(|_| (0, "not a verify state: it is not text".to_string()))?;
    let mut lines = (1_u32..).zip(text.split_inclusive('\n'));
    let (mut line, mut done) = (0, 0);
    let mut next = || -> std::result::Result<(u32, &str, usize), (u32, String)> {
        let (number, words) = lines
            .next()
            .ok_or_else(|| (line + 1, "the file is truncated or was never finished".to_string()))?;
        line = number;
        let before = done;
        done += words.len();
        match words.strip_suffix('\n') {
            Some(words) => Ok((number, words, before)),
            None => Err((number, "the last line is truncated".into())),
        }
    };
    let (number, first, _) = next()?;
    if first != FIRST_LINE {
        return Err((number, format!("not a Kelvin verify state: the first line is not {FIRST_LINE:?}")));
    }
    let mut named = |name: &str| -> std::result::Result<(u32, &str), (u32, String)> {
        let (number, words, _) = next()?;
        match words.strip_prefix(name).and_then(|rest| rest.strip_prefix(' ')) {
            Some(rest) => Ok((number, rest)),
            None => Err((number, format!("expected {name:?} here"))),
        }
    };
    let (_, job) = named("job")?;
    let job = unescaped(job);
    let clone = number_of(named("clone")?)?;
    let seed = number_of(named("seed")?)?;
    let writes = number_of(named("writes")?)?;
    // By index in the file: the index of the job's target.
    let mut places: Vec<u32> = Vec::new();
    let mut entries = Vec::new();
    let mut seen = BTreeSet::new();
    loop {
        let (number, words, before) = next()?;
        let fail = |problem: String| Err((number, problem));
        let (kind, rest) = words.split_once(' ').unwrap_or((words, ""));
        match kind {
            "target" => {
                let path = PathBuf::from(unescaped(rest));
                match targets.iter().position(|target| *target == path) {
                    Some(place) => places.push(place as u32),
                    None => return fail(format!("the job has no target {}", path.display())),
                }
            }
            "w" | "t" => {
                let (place, entry) =
                    remembered((kind, rest), writes, &places).map_err(|problem| (number, problem))?;
                if !seen.insert(place) {
                    return fail(format!("offset {} is listed twice", place.1));
                }
                entries.push((place, entry));
            }
            "end" => {
                let expected = format!("{} {:08x}", entries.len(), crc32c::crc32c(&bytes[..before]));
                if rest != expected {
                    return fail(format!(
                        "the file was changed: it ends with {rest:?} instead of {expected:?}"
                    ));
                }
                if before + words.len() + 1 != bytes.len() {
                    return fail("there is text after the last line".into());
                }
                return Ok(Loaded { identity: Identity { job, clone, seed, writes }, entries });
            }
            _ => return fail(format!("{kind:?} is not valid in a verify state")),
        }
    }
}

/// A write or a trim: "w TARGET OFFSET LENGTH NUMBER", followed by " or later" if it is the minimum, and
/// "t TARGET OFFSET LENGTH".
fn remembered(
    (kind, rest): (&str, &str),
    writes: u64,
    places: &[u32],
) -> std::result::Result<(BlockAddress, RememberedBlock), String> {
    let (plain, later) = rest.strip_suffix(" or later").map_or((rest, false), |plain| (plain, true));
    let values: Vec<u64> = plain
        .split(' ')
        .map(|word| number_of((0, word)))
        .collect::<std::result::Result<_, _>>()
        .map_err(|(_, problem)| problem)?;
    let (target, offset, length, write) = match (kind, values.as_slice(), later) {
        ("w", &[target, offset, length, write], _) => (target, offset, length, Some(write)),
        ("t", &[target, offset, length], false) => (target, offset, length, None),
        _ => return Err(format!("\"{kind} {rest}\" is neither a write nor a trim")),
    };
    let Some(target) = usize::try_from(target).ok().and_then(|target| places.get(target)) else {
        return Err(format!("no target {target} is listed above"));
    };
    let fits = length > 0 && offset.checked_add(length).is_some_and(|end| i64::try_from(end).is_ok());
    let Some(length) = u32::try_from(length).ok().filter(|_| fits) else {
        return Err(format!("{length} bytes at {offset} cannot have been written"));
    };
    let entry = match write {
        Some(write) if write >= writes || write >> 62 > 0 => {
            return Err(format!("write {write} is beyond the {writes} writes of the job"));
        }
        Some(write) => RememberedBlock::written(length, write),
        None => RememberedBlock::trimmed(length),
    };
    Ok(((*target, offset), if later { entry.or_later() } else { entry }))
}

fn unescaped(text: &str) -> String {
    let (mut plain, mut chars) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => plain.push('\n'),
                Some(other) => plain.push(other),
                None => plain.push('\\'),
            },
            other => plain.push(other),
        }
    }
    plain
}

fn number_of<T: std::str::FromStr>((line, words): (u32, &str)) -> std::result::Result<T, (u32, String)> {
    words.parse().map_err(|_| (line, format!("{words:?} is not a number or is too large")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example() -> (Identity, Vec<PathBuf>, Vec<(BlockAddress, RememberedBlock)>) {
        let identity = Identity { job: "a job\nof \\ two".into(), clone: 3, seed: u64::MAX, writes: 20 };
        let targets = vec![PathBuf::from("/dev/one"), PathBuf::from("/tmp/t w\no")];
        let entries = vec![
            ((0, 0), RememberedBlock::written(4096, 7)),
            ((0, 4096), RememberedBlock::trimmed(8192)),
            ((1, 1 << 40), RememberedBlock::written(512, 19).or_later()),
        ];
        (identity, targets, entries)
    }

    #[test]
    fn a_state_reads_as_it_was_saved_and_not_when_a_byte_is_missing_or_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(state_name("a/b", 3));
        assert!(path.ends_with("kelvin-a_b-3-verify.state"));
        let (identity, targets, entries) = example();
        save(&path, &identity, &targets, entries.iter().copied()).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert_eq!(load(&path, &targets).unwrap(), Loaded { identity, entries });
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            assert!(parse(&whole[..length], &targets).is_err(), "{length}");
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 1;
            assert!(parse(&other, &targets).is_err(), "{at}");
        }
        let error = load(&path, &targets[..1]).unwrap_err().to_string();
        assert!(error.ends_with("-verify.state:7: the job has no target /tmp/t w\no"), "{error}");
        let mut of_fio = 3_u64.to_le_bytes().to_vec();
        of_fio.extend_from_slice(&[0; 184]);
        assert!(parse(&of_fio, &targets).unwrap_err().1.contains("verify state is from fio"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(lines in prop::collection::vec("(job|clone|seed|writes|target|w|t|end|)( [0-9a-z]{0,9}){0,5}", 0..12)) {
            let text = format!("{FIRST_LINE}\n{}\n", lines.join("\n"));
            let _either = check_state(text.as_bytes());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(check_state(&bytes).is_err());
        }
    }
}
