//! A trace in blktrace's binary form: any bytes are refused with their place, or read; in the other byte order they say
//! the same as far as the fields of whole records go.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use kelvin_storage::stream::replay::{Action, Trace};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // Records of the right beginning with what was given as their fields, none of which has anything behind it.
    let mut little = Vec::new();
    let mut big = Vec::new();
    for fields in bytes.chunks_exact(42) {
        let mut at = 0;
        little.extend(0x6561_7407_u32.to_le_bytes());
        big.extend(0x6561_7407_u32.to_be_bytes());
        for width in [4, 8, 8, 4, 4, 4, 4, 4, 2] {
            little.extend(&fields[at..at + width]);
            big.extend(fields[at..at + width].iter().rev());
            at += width;
        }
        little.extend([0; 2]);
        big.extend([0; 2]);
    }
    let read = |bytes: &[u8]| Trace::read(Cursor::new(bytes.to_vec()), Path::new("trace"));
    match (read(&little), read(&big)) {
        (Ok(one), Ok(other)) => {
            assert_eq!(one, other);
            for event in &one.events {
                if let Action::Io { offset, length, .. } = event.action {
                    assert!(length > 0 && offset.checked_add(u64::from(length)).is_some());
                }
            }
        }
        (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
        (one, other) => panic!("{one:?} {other:?}"),
    }
    // The bytes as they are, and behind a magic number.
    let _ = read(bytes);
    let mut all = 0x6561_7407_u32.to_le_bytes().to_vec();
    all.extend(bytes);
    let _ = read(&all);
});
