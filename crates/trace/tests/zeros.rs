//! What reads of a loop device found. Needs root, tracefs and a free loop device; where they are absent, the test says so and is skipped.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kelvin_measure::Random;
use kelvin_storage::probe::BlockReader;
use kelvin_trace::capture::{Capture, CaptureOptions};
use kelvin_trace::import::{self, MOST};
use kelvin_trace::stream::profiles;
use kelvin_trace::zeros::{SampleOptions, add_sample};

const MIB: u64 = 1 << 20;

/// A loop device, for as long as this lives.
struct Loop(PathBuf);

impl Loop {
    fn new(image: &Path) -> Option<Self> {
        let made =
            Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(image).output().ok()?;
        let name = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        made.status.success().then(|| Self(name.into()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
    }
}

#[test]
fn zeros_and_holes_are_found_among_what_was_read() {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let image = home.path().join("image");
    // Data, zeros that were written, a hole.
    let mut random = Random::part(3, 1, 4);
    let mut bytes: Vec<u8> = (0..8 * MIB / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
    bytes.resize(16 * MIB as usize, 0);
    std::fs::write(&image, bytes).unwrap();
    let file = std::fs::File::options().write(true).open(&image).unwrap();
    file.set_len(32 * MIB).unwrap();
    file.sync_all().unwrap();
    let Some(device) = Loop::new(&image) else { return eprintln!("skipped: no loop device") };
    let options = CaptureOptions {
        devices: vec![device.0.display().to_string()],
        files: None,
        ..CaptureOptions::default()
    };
    let path = home.path().join("io.trace");
    let out = std::fs::File::create(&path).unwrap();
    let mut capture = match Capture::start(&options, None, out) {
        Ok(capture) => capture,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let mut reader = BlockReader::open(&device.0, 4096).unwrap();
    assert!(reader.is_direct);
    for (part, reads) in [(0, 1000), (1, 500), (2, 500)] {
        for _ in 0..reads {
            let blocks = if part == 2 { 4096 } else { 2048 };
            let block = random.range(0, blocks - 1) as u64;
            reader.read_at(part * 8 * MIB + block * 4096).unwrap();
        }
        capture.drain().unwrap();
    }
    // Zeros are written over the first sixteenth of the data: what reads found there is not there any more.
    let written = Command::new("dd")
        .args(["if=/dev/zero", "bs=512k", "count=1", "oflag=direct", "conv=notrunc"])
        .arg(format!("of={}", device.0.display()))
        .output()
        .unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    std::thread::sleep(Duration::from_millis(50));
    capture.drain().unwrap();
    capture.finish().unwrap();

    let options = SampleOptions { rate: 1e9, longest: Duration::from_mins(1), ..SampleOptions::default() };
    let sample = add_sample(&path, options).unwrap().unwrap();
    assert_eq!((sample.problems.as_slice(), sample.read_bytes), (&[][..], 2000 * 4096));
    assert_eq!(add_sample(&path, options).unwrap(), None, "there is one already");
    let trace = import::open(&path, MOST).unwrap();
    let all = profiles(&trace).remove(0).zeros.unwrap();
    assert_eq!((all.drawn, all.unread), (2000, 0));
    // 1000 of 2000 reads were of data, a sixteenth of these changed: 62, with a standard error of 8 by the reads' places and
    // as much by the sample; four are 45.
    assert!((18..=107).contains(&all.changed), "{all:?}");
    let (zeros, never) = (all.zeros.unwrap(), all.never_written.unwrap());
    // Of 1938 that did not change 1000 read zeros, 500 of them in the hole; four standard errors are 0.046 and 0.040.
    assert!((zeros.share - 1000.0 / 1938.0).abs() < 0.046, "{all:?}");
    assert!((never.share - 500.0 / 1938.0).abs() < 0.040, "{all:?}");
    assert!(zeros.low < zeros.share && zeros.share < zeros.high && zeros.high - zeros.low < 0.05, "{all:?}");
    // Its own bytes are the recording's: a damaged one is rejected.
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(import::open(&path, MOST).unwrap_err().to_string().contains("checksum"));
    eprintln!("{}", all.describe());
}
