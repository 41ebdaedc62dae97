//! A result of I/O jobs in JSON, among whatever lines: read, or refused at a line that it has.

#![no_main]

use kelvin_fio::Error;
use kelvin_storage::log::inflate;
use kelvin_fio::output::read::parse_json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = inflate(input);
    let Ok(text) = std::str::from_utf8(input) else { return };
    let lines = text.split('\n').count() as u32;
    match parse_json(text, None) {
        Ok(parsed) => {
            assert!(!parsed.results.is_empty());
            assert!(parsed.results.iter().all(|result| result.line >= 1 && result.line <= lines));
            assert!(
                parsed.stray.iter().all(|stray| stray.line >= 1 && stray.line + stray.lines <= lines + 1)
            );
        }
        Err(Error::Input { place, .. }) => assert!(place.line >= 1 && place.line <= lines),
        Err(other) => panic!("{other}"),
    }
});
