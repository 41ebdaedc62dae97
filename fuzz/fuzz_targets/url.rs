//! A target: any text is refused or read, and no message or name shows a password.

#![no_main]

use kelvin_database::target::Target;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Target::parse(text) {
        Ok(target) => {
            let _ = target.to_string();
        }
        Err(error) => {
            let _ = error.to_string();
        }
    }
    let secret = format!("postgres://user:s3cr3t-s3cr3t@host/{text}");
    if let Err(error) = Target::parse(&secret) {
        assert!(text.contains("s3cr3t-s3cr3t") || !error.to_string().contains("s3cr3t-s3cr3t"));
    }
});
