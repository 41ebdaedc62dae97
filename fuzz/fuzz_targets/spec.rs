//! A specification file: any text is refused or read, and what was read prints as a file that says the same.

#![no_main]

use kelvin_run::Spec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(spec) = Spec::parse(text, "fuzz.toml") {
        let printed = spec.to_toml();
        let again = Spec::parse(&printed, "printed.toml").expect("a printed specification is read again");
        assert_eq!(again, spec);
    }
});
