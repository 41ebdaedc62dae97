//! A verify state, as a killed run may have left it: any bytes are read or refused with a line.

#![no_main]

use kelvin_storage::data::check_state;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _either = check_state(bytes);
    // The same behind a good beginning, which a fuzzer does not find by itself.
    let mut behind = b"kelvin verify state 1\njob a\nclone 0\nseed 1\nwrites 9\ntarget /t\n".to_vec();
    behind.extend_from_slice(bytes);
    let _either = check_state(&behind);
});
