#![no_main]
//! No text makes the reader of X-Ray's scenarios panic, or work without end; neither its job files.

use std::path::Path;

use kelvin_xray::{Settings, convert, parse, render};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|texts: (&str, &str)| {
    let (text, job) = texts;
    let Ok(scenario) = parse(text, Path::new("test.yml"), &[].into(), &|_| Ok(job.to_owned())) else {
        return;
    };
    let settings = Settings {
        bindings: &[],
        maps: &[],
        directory: Path::new("/data"),
        nodes: None,
        time: 0.1,
        size: 0.1,
    };
    if let Ok(conversion) = convert(&scenario, &settings) {
        let _ = render(&scenario, &conversion);
    }
});
