//! A job file of fio's: any text is refused or read, and what was read is shown as a command line that says the same.

#![no_main]

use kelvin_fio::error::Location;
use kelvin_fio::job::Jobs;
use kelvin_fio::jobfile::{parse_arguments, parse_text, shown_words};
use libfuzzer_sys::fuzz_target;

/// Without what differs between a file and a command line.
fn unplaced(mut jobs: Jobs) -> Jobs {
    for job in &mut jobs.jobs {
        job.place = Location::default();
    }
    jobs.notes.clear();
    jobs
}

fuzz_target!(|text: &str| {
    // These read other files, which are none of the input.
    if ["include", "opendir", "'"].iter().any(|word| text.contains(word)) {
        return;
    }
    let words: Vec<String> = text.lines().map(|line| format!("--{line}")).collect();
    let _ = parse_arguments(&words);
    let Ok(jobs) = parse_text(text, None, &[]) else { return };
    let again = parse_arguments(&shown_words(&jobs)).expect("what is shown is read again");
    assert_eq!(unplaced(again.jobs), unplaced(jobs));
});
