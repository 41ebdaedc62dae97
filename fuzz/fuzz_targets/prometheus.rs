//! The text of an exporter: any text is refused with a line that it has, or read.

#![no_main]

use kelvin_observe::scrape::text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    match text::parse(input) {
        Ok(samples) => assert!(samples.iter().all(|sample| !sample.name.is_empty())),
        Err(error) => assert!(error.line >= 1 && error.line <= input.lines().count()),
    }
});
