//! A trace of whatever format: any bytes are refused with their place, or read; what was read can be described.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use kelvin_trace::{blender, import, stream};
use libfuzzer_sys::fuzz_target;

/// Beginnings by which the formats are recognised.
const HEADS: [&[u8]; 8] = [
    b"",
    b"KELVTRC\x04",
    b"\x07\x74\x61\x65",
    b"fio version 3 iolog\n0 /a add\n",
    b"version,time,op,size,lbn\n",
    b"128166372003061629,usr,0,Read,7014609920,24576,41286\n",
    b"  8,0    3        1     0.000000000   697  D   W 223490 + 8 [kjournald]\n",
    b"  fio  697 [001]  100.000004:  block:block_rq_issue: 254,0 WS 4096 () 223490 + 8 none,0,0 [fio]\n",
];

fuzz_target!(|bytes: &[u8]| {
    for head in HEADS {
        let all: Vec<u8> = head.iter().chain(bytes).copied().collect();
        match import::read(Cursor::new(all), Path::new("trace"), 1000) {
            Ok(trace) => {
                assert!(trace.requests.len() <= 1000);
                assert!(trace.requests.windows(2).all(|pair| pair[0].at <= pair[1].at));
                let in_order = stream::profiles(&trace);
                assert_eq!(in_order[0].requests, trace.requests.len() as u64);
                let blend = blender::blend(&trace);
                assert!((0.0..=1.0).contains(&blend.merged));
            }
            Err(error) => assert!(error.to_string().starts_with("trace:"), "{error}"),
        }
    }
});
