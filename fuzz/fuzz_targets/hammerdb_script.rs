#![no_main]
//! No text makes the evaluator of HammerDB's scripts panic, or run without end.

use kelvin_hammerdb::tcl::{Host, Interpreter};
use kelvin_hammerdb::{HostError, Position};
use libfuzzer_sys::fuzz_target;

struct Silent;

impl Host for Silent {
    fn call(&mut self, name: &str, _: &[String], _: &Position) -> Option<Result<String, HostError>> {
        (name == "vurun").then(|| Ok("Benchmark Run jobid=1".into()))
    }

    fn print(&mut self, _: &str) {}

    fn knows(&self, name: &str) -> bool {
        name == "vurun"
    }

    fn replacement(&self, _: &str) -> Option<&'static str> {
        None
    }

    fn wait(&mut self, _: u64) -> Result<(), HostError> {
        Ok(())
    }
}

fuzz_target!(|text: &str| {
    // A script without a directory can open no file.
    let _ = Interpreter::new(&mut Silent, &[], []).run_line(text, 1);
});
