//! Any bytes from a SQL Server end in a result, never in a panic, an endless loop or a huge allocation.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = kelvin_database::sqlserver::examine(bytes);
});
