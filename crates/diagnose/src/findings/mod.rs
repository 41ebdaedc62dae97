//! The findings, one file each.

mod causes;
mod client_saturated;
mod client_throttled;
mod compared;
mod errors_and_retries;
mod log_write_latency;
mod machine_changed;
mod network_round_trips;
mod noisy_neighbour;
mod not_reset;
mod not_steady;
mod past_the_knee;
mod ramp_up_too_short;
mod steal;
mod too_few_users;

use crate::{Evidence, Finding};

/// A finding as it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its stable name.
    pub id: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Looks at the evidence. Whatever the evidence lacks is no finding.
    pub look: fn(&Evidence) -> Vec<Finding>,
}

/// Every finding that is known, in the order of a reader's questions.
const KNOWN: &[About] = &[
    client_saturated::ABOUT,
    steal::ABOUT,
    noisy_neighbour::ABOUT,
    ramp_up_too_short::ABOUT,
    not_steady::ABOUT,
    errors_and_retries::ABOUT,
    too_few_users::ABOUT,
    past_the_knee::ABOUT,
    network_round_trips::ABOUT,
    log_write_latency::ABOUT,
    machine_changed::ABOUT,
    not_reset::ABOUT,
];

/// Every finding that is known.
pub fn all() -> &'static [About] {
    KNOWN
}

/// What the evidence shows, the most severe first, otherwise in the order of [`all`].
pub fn find(evidence: &Evidence) -> Vec<Finding> {
    let mut found: Vec<Finding> = KNOWN.iter().flat_map(|about| (about.look)(evidence)).collect();
    causes::settle(&mut found);
    found.sort_by_key(|finding| finding.severity);
    found
}

/// What keeps two runs from being compared as if they differed in nothing but the factor under study.
pub fn compared(first: &Evidence, second: &Evidence) -> Vec<Finding> {
    compared::compared(first, second)
}
