//! A script and an expression: any text is compiled or refused, and what was compiled has a value or a reason.

#![no_main]

use kelvin_measure::Random;
use kelvin_workload::Workload;
use kelvin_workload::pgbench::expression::calculate;
use kelvin_workload::pgbench::{Options, Pgbench, QueryMode, ScriptChoice};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let script = ScriptChoice { name: "fuzz.sql".into(), weight: 1, text: Some(text.into()) };
    let options = Options {
        scripts: vec![script],
        query_mode: QueryMode::Prepared,
        per_statement: true,
        allow_shell: true,
        ..Options::default()
    };
    match Pgbench::new(options) {
        Ok(workload) => {
            let kinds = workload.kinds();
            assert!(kinds[0].headline && kinds[0].statement_of.is_none());
            assert!(kinds[1..].iter().all(|kind| kind.statement_of == Some(0) && !kind.name.contains('\n')));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match calculate(text, &mut Random::part(1, 2, 3)) {
        Ok(value) => {
            let mut written = String::new();
            value.write(&mut written);
            assert!(!written.is_empty());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
