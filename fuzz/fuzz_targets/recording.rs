//! A recording of `kelvin trace record` whose checksums are right: parts of any kind with any content are refused with
//! their byte, or read; what was read can be described.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use kelvin_trace::{attribution, blender, import, stream};
use libfuzzer_sys::fuzz_target;

/// The kinds of parts that there are, and one that there is not.
const KINDS: &[u8] = b"HBFXNGUEZ?";

fn part(kind: u8, content: &[u8], all: &mut Vec<u8>) {
    let mut head = vec![kind];
    head.extend((content.len() as u32).to_le_bytes());
    let sum = crc32c::crc32c_append(crc32c::crc32c(&head), content);
    all.extend(head);
    all.extend(sum.to_le_bytes());
    all.extend(content);
}

fuzz_target!(|bytes: &[u8]| {
    let mut all = b"KELVTRC\x04".to_vec();
    let header = br#"{"host":"h","kernel":"k","began":5,"began_at":1,"command":null,"devices":[{"name":"vda","number":[254,0],"bytes":1073741824}]}"#;
    part(b'H', header, &mut all);
    // Of each part a byte for its kind, and two for its length.
    let mut rest = bytes;
    while let [kind, low, high, content @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(content.len());
        let (content, others) = content.split_at(length);
        part(KINDS[usize::from(*kind) % KINDS.len()], content, &mut all);
        rest = others;
    }
    match import::read(Cursor::new(all), Path::new("trace"), 1000) {
        Ok(trace) => {
            assert!(trace.requests.len() <= 1000);
            assert!(trace.requests.windows(2).all(|pair| pair[0].at <= pair[1].at));
            for request in &trace.requests {
                assert!(usize::from(request.device) < trace.devices.len());
                assert!(trace.processes.get(request.process as usize).is_some());
            }
            let profiles = stream::profiles(&trace);
            assert_eq!(profiles[0].requests, trace.requests.len() as u64);
            assert!((0.0..=1.0).contains(&blender::blend(&trace).merged));
            let _ = attribution::attribution(&trace);
        }
        Err(error) => assert!(error.to_string().starts_with("trace:"), "{error}"),
    }
});
