//! Traces: their events, and the errors of invalid ones.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use kelvin_storage::stream::IoSource;
use kelvin_storage::stream::replay::{self, Action, IologWriter, Trace, TraceFile};
use kelvin_storage::{Direction, Io, NextIo, SyncCall, Target, TargetKind};
use proptest::prelude::*;

use crate::support::{describe_ios, job, pass};

const V3: &str = "fio version 3 iolog\n5 /a add\n6 /a open\n10 /a read 0 4096\n30 /a sync 0 0\n40 /a write 9000 512\n\
                  45 /b add\n50 /b trim 4096 8192\n60 /a datasync\n61 /a close\n";
const V2: &str = "fio version 2 iolog\n/a add\n/a open\n/a wait 10 0\n/a read 0 4096\n/a wait 20\n/a sync\n/a wait 10 0\n\
                  /a write 9000 512\n/b add\n/b trim 4096 8192\n/a datasync\n/a close\n";

fn on(path: &str, length: u64) -> Target {
    Target { path: PathBuf::from(path), kind: TargetKind::File, begin: 0, length, device: None }
}

/// A source that replays this text.
fn replaying(text: &[u8], options: &str, targets: &[Target]) -> kelvin_storage::Result<IoSource> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    std::fs::write(&path, text).unwrap();
    let job = job(&format!("rw=read read_iolog={} {options}", path.display()));
    IoSource::new(&job, 0, targets, 1)
}

fn said(text: &[u8], options: &str) -> String {
    describe_ios(&pass(&mut replaying(text, options, &[on("/a", 1 << 20), on("/b", 1 << 20)]).unwrap()))
}

#[test]
fn both_versions_say_the_same() {
    assert_eq!(said(V3.as_bytes(), ""), "@10 r0 @30 sync @40 w8+0 @50 1:t4+8 @60 datasync");
    assert_eq!(said(V2.as_bytes(), ""), "@10 r0 @30 sync @40 w8+0 1:t4+8 datasync");
}

#[test]
fn options_change_what_is_replayed() {
    for (options, expected) in [
        ("replay_no_stall=1", "r0 sync w8+0 1:t4+8 datasync"),
        ("replay_time_scale=50", "@20 r0 @60 sync @80 w8+0 @100 1:t4+8 @120 datasync"),
        ("replay_time_scale=200", "@5 r0 @15 sync @20 w8+0 @25 1:t4+8 @30 datasync"),
        ("replay_skip=write,sync", "@10 r0 @50 1:t4+8"),
        ("replay_skip=read,trim replay_no_stall=1", "sync w8+0 datasync"),
        ("replay_redirect=/b replay_no_stall=1", "1:r0 1:sync 1:w8+0 1:t4+8 1:datasync"),
        ("replay_align=4096 replay_no_stall=1 replay_skip=sync,read", "w8+0 1:t4+8"),
        ("replay_scale=2 replay_align=512 replay_no_stall=1 replay_skip=sync", "r0 w4+0 1:t2+8"),
    ] {
        assert_eq!(said(V3.as_bytes(), options), expected, "{options}");
    }
    let mut source = replaying(
        V3.as_bytes(),
        "replay_align=4096 replay_skip=sync,read,trim",
        &[on("/a", 1 << 20), on("/b", 1)],
    );
    let offsets = crate::support::ios(source.as_mut().unwrap());
    assert_eq!(offsets[0].offset, 8192);
}

#[test]
fn a_second_pass_goes_on_where_the_first_ended() {
    let text = "fio version 3 iolog\n0 /a add\n10 /a read 0 4096\n30 /a read 4096 4096\n";
    for options in ["", "read_iolog_chunked=1"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        std::fs::write(&path, text).unwrap();
        let job = job(&format!("rw=read read_iolog={} {options}", path.display()));
        let mut source = IoSource::new(&job, 0, &[on("/a", 1 << 20)], 1).unwrap();
        assert_eq!(source.pass_bytes(), 8192);
        assert_eq!(describe_ios(&pass(&mut source)), "@10 r0 @30 r4");
        source.restart();
        assert_eq!(describe_ios(&pass(&mut source)), "@40 r0 @60 r4");
        assert!(source.problem().is_none());
        if options.is_empty() {
            continue;
        }
        // The trace is damaged while it is read in pieces: the source ends and reports why.
        std::fs::write(&path, "fio version 3 iolog\n0 /a add\n10 /a read 0 4096\n30 /a leap 4096 4096\n")
            .unwrap();
        source.restart();
        assert_eq!(describe_ios(&pass(&mut source)), "@70 r0");
        let problem = source.problem().unwrap().to_string();
        assert!(problem.contains("trace:4: \"leap\" is not an action"), "{problem}");
    }
}

#[test]
fn clones_take_their_own_trace() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("one"), "fio version 3 iolog\n0 /a add\n0 /a read 0 4096\n").unwrap();
    std::fs::write(path("two"), "fio version 3 iolog\n0 /a add\n0 /a write 0 4096\n").unwrap();
    let job = job(&format!("rw=read read_iolog={}:{}", path("one").display(), path("two").display()));
    for (clone, expected) in [(0, "r0"), (1, "w0"), (2, "r0")] {
        let mut source = IoSource::new(&job, clone, &[on("/a", 1 << 20)], 1).unwrap();
        assert_eq!(describe_ios(&pass(&mut source)), expected);
    }
    let reached = replay::files(&job, 1).unwrap();
    assert_eq!((reached.len(), reached[0].path.as_path(), reached[0].end), (1, Path::new("/a"), 4096));
    assert_eq!(reached[0].bytes.0, [0, 4096, 0]);
}

#[test]
fn a_trace_that_does_not_fit_is_refused() {
    let problem = |targets: &[Target]| replaying(V3.as_bytes(), "", targets).unwrap_err().to_string();
    let missing = problem(&[on("/a", 1 << 20)]);
    assert!(missing.contains("/b, which is not a target of the job") && missing.contains("replay_redirect="));
    let small = problem(&[on("/a", 9511), on("/b", 1 << 20)]);
    assert!(small.contains("extends to byte 9512 of /a, which ends at 9511"), "{small}");
}

#[test]
fn what_is_wrong_with_a_log_is_said_with_its_line() {
    for (text, line, problem) in [
        ("", 1, "not a trace"),
        ("hello\n", 1, "not a trace"),
        ("0, 0, 4096\n", 1, "not a trace"),
        ("fio version 4 iolog\n", 1, "iolog version 4 is not supported"),
        ("fio version 2 iolog\n/a read 0 4096\n", 2, "file \"/a\" was not added before"),
        ("fio version 2 iolog\n/a add\n/a read 0\n", 3, "a length in bytes is missing"),
        (
            "fio version 2 iolog\n/a add\n/a read x 4096\n",
            3,
            "an offset in bytes was expected instead of \"x\"",
        ),
        ("fio version 2 iolog\n/a add\n\n/a read 0 0\n", 4, "a length of 0 bytes"),
        ("fio version 2 iolog\n/a add\n/a read 0 4294967296\n", 3, "a length of 4294967296 bytes"),
        ("fio version 2 iolog\n/a add\n/a read 18446744073709551615 1\n", 3, "beyond the largest file"),
        ("fio version 2 iolog\n/a add\n/a read 0 1 2\n", 3, "too many words"),
        ("fio version 2 iolog\n/a\n", 2, "an action must follow"),
        ("fio version 2 iolog\n/a add\n/a wait 18446744073709551615\n", 3, "out of range"),
        ("fio version 3 iolog\n0 /a add\n1 /a wait 5\n", 3, "`wait` belongs to version 2"),
        ("fio version 3 iolog\n/a add\n", 2, "a time in microseconds was expected"),
        ("fio version 3 iolog\n0\n", 2, "a file name must follow the time"),
        ("fio version 3 iolog\n0 /a add\nfio version 3 iolog\n", 3, "another log starts here"),
    ] {
        let error = Trace::read(Cursor::new(text.to_owned()), Path::new("t.log")).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("t.log:{line}: ")) && error.contains(problem),
            "{text:?}: {error}"
        );
    }
    let long = format!("fio version 2 iolog\n{}", "x".repeat(100_000));
    let error = Trace::read(Cursor::new(long), Path::new("t.log")).unwrap_err().to_string();
    assert!(error.starts_with("t.log:2: a line of more than"), "{error}");
}

/// A record as the kernel writes it: `struct blk_io_trace`.
struct Record {
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
    data: &'static [u8],
}

fn queued(kind: u32, time: u64, sector: u64, bytes: u32) -> Record {
    Record { time, sector, bytes, action: 1 | (kind | 1 << 4) << 16, device: 254 << 20 | 16, data: b"" }
}

fn binary(records: &[Record], big: bool) -> Vec<u8> {
    let mut all = Vec::new();
    for record in records {
        let first = [0x6561_7407_u32.to_le_bytes(), 7_u32.to_le_bytes()].map(Vec::from);
        let long = [record.time, record.sector].map(|word| word.to_le_bytes().to_vec());
        let middle =
            [record.bytes, record.action, 4321, record.device, 1].map(|word| word.to_le_bytes().to_vec());
        let last = [0, record.data.len() as u16].map(|word| word.to_le_bytes().to_vec());
        let words = first.into_iter().chain(long).chain(middle).chain(last);
        for mut word in words {
            if big {
                word.reverse();
            }
            all.extend(word);
        }
        all.extend(record.data);
    }
    all
}

#[test]
fn blktrace_is_read_in_either_byte_order() {
    let records = [
        Record { action: 0x0400_0000, data: b"a note of a process", ..queued(0, 1, 0, 0) },
        queued(1, 5_000_000, 8, 4096),
        Record { action: 7 | 1 << 16, ..queued(0, 5_000_100, 8, 4096) },
        queued(2, 5_020_000, 16, 8192),
        queued(1 << 13, 5_030_000, 0, 4096),
        queued(4 | 2, 5_040_000, 0, 0),
        queued(2, 5_040_000, 24, 0),
        Record { data: b"xyz", ..queued(1 << 9, 5_045_000, 0, 512) },
        Record { device: 8 << 20 | 1, ..queued(1 | 1 << 12, 5_050_000, 2, 512) },
    ];
    let expected = "r4 @20 w8+8 @30 t0 @40 sync @50 r1+0";
    for big in [false, true] {
        let bytes = binary(&records, big);
        let trace = Trace::read(Cursor::new(bytes.clone()), Path::new("t.bin")).unwrap();
        assert_eq!(trace.names, [TraceFile::Device(254, 16), TraceFile::Device(8, 1)]);
        let mut source = replaying(&bytes, "replay_redirect=/a", &[on("/a", 1 << 20)]).unwrap();
        assert_eq!(describe_ios(&pass(&mut source)), expected);
        // Truncated at any byte, it is an error with its offset, or a shorter trace.
        for cut in 4..bytes.len() {
            match Trace::read(Cursor::new(bytes[..cut].to_vec()), Path::new("t.bin")) {
                Ok(shorter) => assert!(trace.events.starts_with(&shorter.events)),
                Err(error) => {
                    let error = error.to_string();
                    assert!(
                        error.starts_with("t.bin:0: byte ") && error.contains("truncated"),
                        "{cut}: {error}"
                    );
                }
            }
        }
    }
    let mut damaged = binary(&records, false);
    damaged[48 + 19 + 1] = 0;
    let error = Trace::read(Cursor::new(damaged), Path::new("t.bin")).unwrap_err().to_string();
    assert!(error.contains("byte 67: no record starts here"), "{error}");
    let mut newer = binary(&records, false);
    newer[0] = 8;
    let error = Trace::read(Cursor::new(newer), Path::new("t.bin")).unwrap_err().to_string();
    assert!(error.contains("byte 0: blktrace record version 8"), "{error}");
    let far = binary(&[queued(1, 0, u64::MAX / 512, 4096)], false);
    let error = Trace::read(Cursor::new(far), Path::new("t.bin")).unwrap_err().to_string();
    assert!(error.contains("beyond the largest device"), "{error}");
}

#[test]
fn a_device_that_is_not_here_needs_a_redirection() {
    let bytes = binary(&[Record { device: 4000 << 20 | 7, ..queued(1, 0, 0, 512) }], false);
    let error = replaying(&bytes, "", &[on("/a", 1 << 20)]).unwrap_err().to_string();
    assert!(error.contains("device 4000:7") && error.contains("replay_redirect="), "{error}");
}

fn any_io() -> impl Strategy<Value = (u64, NextIo)> {
    let what = prop_oneof![
        (0_usize..3, 0_u32..3, 0_u64..1 << 50, 1_u32..=u32::MAX).prop_map(
            |(direction, target, offset, length)| {
                NextIo::Io(Io { direction: Direction::ALL[direction], target, offset, length })
            }
        ),
        (0_u32..3, any::<bool>()).prop_map(|(target, data)| {
            NextIo::Sync { target, how: if data { SyncCall::Fdatasync } else { SyncCall::Fsync } }
        }),
    ];
    (0_u64..10_000, what)
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(steps in proptest::collection::vec(any_io(), 0..60)) {
        let names: Vec<PathBuf> = ["/a", "/dev/b", "c.0.0"].map(PathBuf::from).to_vec();
        let mut writer = IologWriter::new(Vec::new(), names.clone()).unwrap();
        let mut at = 0;
        let mut expected = Vec::new();
        for (gap, next) in steps {
            at += gap * 1000;
            match next {
                NextIo::Io(io) => {
                    writer.issued(at, &io).unwrap();
                    let Io { direction, offset, length, .. } = io;
                    expected.push((at, io.target, Action::Io { direction, offset, length }));
                }
                NextIo::Sync { target, how } => {
                    writer.synced(at, target, how).unwrap();
                    expected.push((at, target, Action::Sync(how)));
                }
                _ => (),
            }
        }
        let text = writer.finish(at).unwrap();
        let trace = Trace::read(Cursor::new(text), Path::new("t.log")).unwrap();
        prop_assert_eq!(trace.names, names.into_iter().map(TraceFile::Path).collect::<Vec<_>>());
        let read: Vec<_> = trace.events.iter().map(|event| (event.at, event.name, event.action)).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn any_bytes_are_a_trace_or_an_error(bytes: Vec<u8>, head in 0_usize..4) {
        let mut all = [&b""[..], b"fio version 2 iolog\n/a add\n", b"fio version 3 iolog\n", &[7, 0x74, 0x61, 0x65]]
            [head]
            .to_vec();
        all.extend(bytes);
        let _ = Trace::read(Cursor::new(all), Path::new("t"));
    }
}

#[test]
fn a_name_with_a_blank_cannot_be_logged() {
    let error = IologWriter::new(Vec::new(), vec![PathBuf::from("/a b")]).unwrap_err().to_string();
    assert!(error.contains("\"/a b\" cannot be written to an iolog"), "{error}");
    let mut writer = IologWriter::new(Vec::new(), vec![PathBuf::from("/a")]).unwrap();
    let io = Io { direction: Direction::Read, target: 1, offset: 0, length: 1 };
    assert!(writer.issued(0, &io).is_err());
}

/// Standard input is examined first and then replayed, as a whole or in pieces. The test starts itself again, since a
/// process has only one standard input.
#[test]
fn a_trace_comes_from_standard_input() {
    use std::io::Write;
    use std::process::{Command, Stdio};

    const MARK: &str = "KELVIN_TEST_TRACE_ON_STANDARD_INPUT";
    if let Ok(options) = std::env::var(MARK) {
        let job = job(&format!("rw=read read_iolog=- {options}"));
        assert_eq!(replay::files(&job, 0).unwrap()[1].end, 12_288);
        let mut source = IoSource::new(&job, 0, &[on("/a", 1 << 20), on("/b", 1 << 20)], 1).unwrap();
        assert_eq!(describe_ios(&pass(&mut source)), "@10 r0 @30 sync @40 w8+0 @50 1:t4+8 @60 datasync");
        return;
    }
    for options in ["", "read_iolog_chunked=1"] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "replay::a_trace_comes_from_standard_input"])
            .env(MARK, options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(V3.as_bytes()).unwrap();
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && said.contains("1 passed"), "{said}");
    }
}
