//! A log of I/O jobs, which may be anybody's file: read or refused, and what was read can be drawn.

#![no_main]

use kelvin_report::plot::{Inputs, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((kind, rows)) = data.split_first() else { return };
    let name = match kind % 5 {
        0 => "a_bw.log",
        1 => "a_iops.log",
        2 => "a_clat.1.log",
        3 => "a_clat_hist.log",
        _ => "a_lat.log.fz",
    };
    if let Ok(log) = read(name, name, rows) {
        let mut inputs = Inputs::default();
        inputs.log(&log);
        for chart in inputs.charts() {
            assert!(!chart.svg.contains("NaN"), "{}", chart.svg);
        }
    }
});
