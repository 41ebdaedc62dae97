//! A log of I/O as fio and Kelvin write it: read, or refused at a line that it has; what was read is drawn as XML without a
//! figure that is none. The first byte chooses the log.

#![no_main]

use kelvin_report::Error;
use kelvin_report::plot::{Inputs, read};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 6] =
    ["a_bw.log", "a_iops.1.log", "a_clat.log", "a_slat.log", "a_clat_hist.log", "a_bw.1.log.fz"];

fuzz_target!(|input: &[u8]| {
    let Some((first, rest)) = input.split_first() else { return };
    let name = NAMES[usize::from(*first) % NAMES.len()];
    match read(name, "log", rest) {
        Ok(log) => {
            let mut inputs = Inputs::default();
            inputs.log(&log);
            for chart in inputs.charts() {
                assert!(!chart.svg.contains("NaN") && !chart.svg.contains("\"inf"), "{}", chart.svg);
            }
        }
        Err(Error::Plot(message)) => {
            // "log:LINE: …" or "log: …" for the whole.
            let place = message.strip_prefix("log:").expect("the file comes first");
            let lines = rest.split(|byte| *byte == b'\n').count();
            if let Some(line) = place.split(':').next().and_then(|line| line.parse::<usize>().ok()) {
                assert!(name.ends_with(".fz") || (line >= 1 && line <= lines), "{message}");
            }
        }
        Err(other) => panic!("{other}"),
    }
});
