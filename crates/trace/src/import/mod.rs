//! Reading traces, whatever tool wrote them. The format is recognised by the content.
//!
//! | format | response times | process |
//! |---|---|---|
//! | `kelvin trace record` | yes | yes |
//! | blktrace, binary (`blkparse -d`, or the file of one processor) | yes | number |
//! | blktrace, text (`blkparse`) | yes | yes |
//! | `perf script`, and the text of tracefs, of block_rq_issue and block_rq_complete | yes | yes |
//! | fio's iologs, versions 2 and 3 | no | no |
//! | csv of MSR Cambridge (SNIA) | yes | no |
//! | csv with a line of column names, as CloudPhysics's | if it has them | no |

mod csv;
mod events;
mod iolog;
mod lines;

use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::{Error, Reading, Result, Trace, file};
use kelvin_storage::stream::replay::is_blktrace;

/// Requests that are read if nothing else is asked for: 1 GB of memory.
pub const MOST: usize = 20_000_000;

/// Reads the trace in a file: at most so many requests of it, or for a visitor.
///
/// # Errors
/// When the file cannot be read, is of no known format, or damaged: the line or byte and what is wrong there.
pub fn open(path: &Path, reading: impl Into<Reading>) -> Result<Trace> {
    let file = std::fs::File::open(path).map_err(Error::system(format!("opening {}", path.display())))?;
    let about = file.metadata().map_err(Error::system(format!("opening {}", path.display())))?;
    if about.is_dir() {
        return Err(Error::byte(path, 0, "a directory, not a trace"));
    }
    read(BufReader::with_capacity(1 << 17, file), path, reading)
}

/// Reads a trace of the given name (for messages).
///
/// # Errors
/// As [`open`].
pub fn read(
    mut input: impl BufRead + Send + 'static,
    path: &Path,
    reading: impl Into<Reading>,
) -> Result<Trace> {
    let reading = reading.into();
    let first = input.fill_buf().map_err(Error::system(format!("reading {}", path.display())))?;
    if first.is_empty() {
        return Err(Error::byte(path, 0, "the file is empty"));
    }
    if file::is_ours(first) {
        return file::read(input, path, reading);
    }
    if is_blktrace(first) {
        return events::blktrace(Box::new(input), path, reading);
    }
    if first.starts_with(b"fio version ") {
        return iolog::read(Box::new(input), path, reading);
    }
    lines::read(input, path, &reading)
}

/// Nanoseconds of a decimal number of units of so many nanoseconds, such as "12.000000345" seconds; digits below a
/// nanosecond are dropped. None for anything else, and for more than 64 bits.
fn time(text: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let mut nanos = whole.checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        nanos = nanos.checked_add(u64::from(digit - b'0') * place)?;
    }
    Some(nanos)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::Operation;

    fn parse(text: &str) -> Result<Trace> {
        read(Cursor::new(text.as_bytes().to_vec()), Path::new("trace"), 1000)
    }

    /// Time, response, offset, length and operation of all requests.
    fn fields(trace: &Trace) -> Vec<(u64, Option<u64>, u64, u32, Operation)> {
        let one = |r: &crate::Request| (r.at, r.response(), r.offset, r.length, r.operation);
        trace.requests.iter().map(one).collect()
    }

    const BLKPARSE: &str = "\
  254,0    1        1     0.000000000   697  Q   W 223490 + 8 [jbd2/vda-8]
  254,0    1        2     0.000001000   697  G   W 223490 + 8 [jbd2/vda-8]
  254,0    1        3     0.000004000   697  D  WS 223490 + 8 [jbd2/vda-8]
  254,0    0        4     0.000005000     0  D  FF [swapper/0]
  254,0    0        5     0.000104000     0  C  WS 223490 + 8 [0]
  254,0    0        6     0.000205000     0  C  FF 18446744073709551615 + 0 [0]
  254,0    0        7     0.000300000    12  D   R 16 + 16 [a b]
CPU0 (trace):
 Reads Queued:           0,        0KiB\t Writes Queued:           1,        4KiB
";

    const PERF: &str = "\
# comment
     my fio   697 [001]  100.000004:      block:block_rq_issue: 254,0 WS 4096 () 223490 + 8 none,0,0 [my fio]
     swapper     0 [000]  100.000104:   block:block_rq_complete: 254,0 WS () 223490 + 8 none,0,0 [0]
     swapper     0 [000]  100.000204: sched:sched_switch: whatever
          fio-698   [000] d..1.   100.000304: block_rq_issue: 254,0 R 8192 () 16 + 16 [fio]
";

    #[test]
    fn events_of_the_kernels_tools_become_requests() {
        let trace = parse(BLKPARSE).unwrap();
        assert_eq!(
            fields(&trace),
            [
                (0, Some(100_000), 223_490 * 512, 4096, Operation::Write),
                (1000, Some(200_000), 0, 0, Operation::Flush),
                (296_000, None, 16 * 512, 8192, Operation::Read),
            ]
        );
        assert_eq!(trace.processes[0].label(), "jbd2/vda-8 697");
        let trace = parse(PERF).unwrap();
        assert_eq!(
            fields(&trace),
            [
                (0, Some(100_000), 223_490 * 512, 4096, Operation::Write),
                (300_000, None, 16 * 512, 8192, Operation::Read),
            ]
        );
        assert_eq!(
            trace.processes.iter().map(crate::Process::label).collect::<Vec<_>>(),
            ["my fio 697", "fio 698"]
        );
        let queued = parse("8,0 3 1 0.5 697 Q W 8 + 8 [a]\n8,0 3 2 1.5 697 Q R 16 + 8 [a]\n").unwrap();
        assert_eq!(fields(&queued).iter().map(|each| each.0).collect::<Vec<_>>(), [0, 1_000_000_000]);
        assert!(queued.notes.iter().any(|note| note.contains("queued")), "{:?}", queued.notes);
    }

    #[test]
    fn csv_is_read_with_and_without_names() {
        let msr = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
                   128166372003061639,usr,1,Write,512,512,10\n";
        let trace = parse(msr).unwrap();
        assert_eq!(
            fields(&trace),
            [
                (0, Some(4_128_600), 7_014_609_920, 24576, Operation::Read),
                (1000, Some(1000), 512, 512, Operation::Write),
            ]
        );
        assert_eq!(trace.devices.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["usr.0", "usr.1"]);
        let cloud =
            parse("version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633899,28,6656,8\n").unwrap();
        assert_eq!(
            fields(&cloud),
            [
                (0, None, 42_932_745 * 512, 512, Operation::Write),
                (1_000_000_000, None, 4096, 6656, Operation::Read)
            ]
        );
        for (text, problem) in [
            ("version,time,op,size,lbn\n1,a,2a,512,1\n9,9,9,9,9\n", "line 2: "),
            ("version,time,op,size,lbn\n1,1,99,512,1\n9,9,9,9,9\n", "line 2: "),
            ("time,size\n1,1\n", "line 1: "),
            ("128166372003061629,usr,0,Read,7014609920,24576,41286\nx,usr,0,Read,1,1,1\n1,1\n", "line 2: "),
            ("hello\n", "line 1: "),
            ("\n\n", "line 2: "),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with("trace: ") && error.contains(problem), "{text}: {error}");
        }
        // The last line was cut off.
        let cut = parse("version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,56338").unwrap();
        assert_eq!((cut.requests.len(), cut.notes.len()), (1, 1));
        assert!(parse("").unwrap_err().to_string().contains("empty"));
    }

    #[test]
    fn iologs_are_read_as_the_replay_reads_them() {
        let trace =
            parse("fio version 3 iolog\n0 /a add\n10 /a open\n20 /a write 4096 8192\n30 /a sync 0 0\n")
                .unwrap();
        assert_eq!(
            fields(&trace),
            [(0, None, 4096, 8192, Operation::Write), (10_000, None, 0, 0, Operation::Flush)]
        );
        assert!(parse("fio version 3 iolog\n0 /a read 0 0\n").unwrap_err().to_string().contains("trace:2"));
    }

    #[test]
    fn binary_traces_have_issues_and_completions() {
        let mut bytes = Vec::new();
        for (at, sector, length, action) in
            // The issue is one of a control group.
            [(1000_u64, 8_u64, 4096_u32, 7_u32 | 1 << 8 | 2 << 16), (5000, 8, 4096, 8 | 2 << 16)]
        {
            bytes.extend(0x6561_7407_u32.to_le_bytes());
            bytes.extend([0; 4]);
            bytes.extend(at.to_le_bytes());
            bytes.extend(sector.to_le_bytes());
            bytes.extend(length.to_le_bytes());
            bytes.extend(action.to_le_bytes());
            bytes.extend(33_u32.to_le_bytes());
            bytes.extend((254_u32 << 20).to_le_bytes());
            bytes.extend([0; 8]);
        }
        let trace = read(Cursor::new(bytes), Path::new("trace"), 10).unwrap();
        assert_eq!(fields(&trace), [(0, Some(4000), 4096, 4096, Operation::Write)]);
        assert_eq!((trace.processes[0].pid, trace.devices[0].number), (33, Some((254, 0))));
    }

    #[test]
    fn a_file_of_ten_gigabytes_of_nothing_ends_at_once() {
        use std::io::Write;

        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("io.trace");
        for begin in [
            &b""[..],
            &crate::file::MAGIC[..],
            b"fio version 3 iolog\n",
            b"time,op,size,lbn\n1,r,512,8\n",
            b"8,0 3 1 0.5 697 D W 8 + 8 [a]\n",
            &0x6561_7407_u32.to_le_bytes()[..],
        ] {
            let mut file = std::fs::File::create(&path).unwrap();
            file.write_all(begin).unwrap();
            // Not one byte of it is on the disk.
            file.set_len(10 << 30).unwrap();
            drop(file);
            let error = open(&path, MOST).unwrap_err().to_string();
            assert!(error.contains("io.trace"), "{begin:?}: {error}");
        }
    }

    #[test]
    fn times_are_exact() {
        assert_eq!(time("12.000000345", 1_000_000_000), Some(12_000_000_345));
        assert_eq!(time("1.5", 1000), Some(1500));
        assert_eq!(time("7", 100), Some(700));
        for bad in ["", ".5", "1.x", "-1", "99999999999999999999", "20000000000"] {
            assert_eq!(time(bad, 1_000_000_000), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(junk: Vec<u8>, at: prop::sample::Index, to: u8, line in "([0-9]{1,20}[, .:+]{0,2}|[A-Za-z]{1,9} ?|\\[[a-z0-9]{0,3}\\] ?){0,14}") {
            let path = Path::new("trace");
            let _ = read(Cursor::new(junk.clone()), path, 100);
            for good in [BLKPARSE, PERF, "version,time,op,size,lbn\n1,5633898,2a,512,42932745\n", "128166372003061629,usr,0,Read,7014609920,24576,41286\n", "fio version 2 iolog\n/a add\n/a read 0 1\n"] {
                let mut bytes = good.as_bytes().to_vec();
                let at = at.index(bytes.len());
                bytes[at] = to;
                bytes.extend(line.as_bytes());
                bytes.extend(&junk);
                if let Err(error) = read(Cursor::new(bytes), path, 100) {
                    prop_assert!(error.to_string().starts_with("trace:"), "{}", error);
                }
            }
        }
    }
}
