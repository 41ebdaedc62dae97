//! How close a run of a job came to the stream that it was made from.

use serde::Serialize;

use crate::Operation;
use crate::stream::Profile;

/// A feature of both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FeaturePair {
    /// Which.
    pub feature: &'static str,
    /// Of the trace.
    pub trace: f64,
    /// Of the job.
    pub job: f64,
    /// How far they may differ; none of those that are only shown.
    pub allowed: Option<f64>,
    /// As close as this is close in any case: a tenth of nearly nothing is nothing.
    pub floor: f64,
    /// Whether the difference is absolute (of shares) or relative.
    pub is_share: bool,
}

impl FeaturePair {
    /// How far they differ: of shares the difference, else as a share of the trace's.
    pub fn difference(&self) -> f64 {
        let difference = self.job - self.trace;
        if self.is_share || difference == 0.0 { difference } else { difference / self.trace }
    }

    /// Whether that is as close as it should be; none of those that are only shown.
    pub fn is_close(&self) -> Option<bool> {
        let is_within =
            |allowed| self.difference().abs() <= allowed || (self.job - self.trace).abs() <= self.floor;
        self.allowed.map(is_within)
    }
}

/// A stream and its job's run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fidelity {
    /// The job.
    pub job: String,
    /// Its features.
    pub features: Vec<FeaturePair>,
}

impl Fidelity {
    /// Whether everything that is judged is as close as it should be.
    pub fn is_close(&self) -> bool {
        self.features.iter().all(|pair| pair.is_close() != Some(false))
    }
}

/// Streams with less of the requests are shown and not judged: of a few hundred requests the mean size and the rate are a
/// matter of chance.
const LEAST_JUDGED: f64 = 0.005;

/// Mean depths differ by no more than chance if they differ by so many requests.
const DEPTH_FLOOR: f64 = 0.1;

/// The features of a stream and of its run: both of one operation. `totals` are the requests of all streams of the trace and
/// of the run, for the mix.
pub fn compare(job: String, trace: &Profile, run: &Profile, totals: (u64, u64)) -> Fidelity {
    let share = |profile: &Profile, total: u64| profile.requests as f64 / total.max(1) as f64;
    let size = |profile: &Profile| {
        let sizes = profile.operations.first().and_then(|one| one.sizes.first());
        sizes.map_or(0.0, |size| f64::from(size.size))
    };
    let p99 = |profile: &Profile| {
        let response = profile.operations.first().and_then(|one| one.response);
        response.map_or(0.0, |response| response.p99 as f64)
    };
    let mut features = common(trace, run);
    features.insert(1, relative("most frequent size", (size(trace), size(run)), Some(0.05)));
    let shares = (share(trace, totals.0), share(run, totals.1));
    features.insert(2, points("share of the requests", shares, Some(0.05)));
    features.push(relative("p99 response", (p99(trace), p99(run)), None));
    if shares.0 < LEAST_JUDGED {
        for pair in &mut features {
            pair.allowed = None;
        }
    }
    Fidelity { job, features }
}

/// The same of all streams together, with the flushes a second of the trace and of the run.
pub fn compare_all(trace: &Profile, run: &Profile, flushes: (f64, f64)) -> Fidelity {
    let reads = |profile: &Profile| {
        let reads = profile.operations.iter().find(|one| one.operation == Operation::Read);
        reads.map_or(0.0, |one| one.requests as f64 / profile.requests.max(1) as f64)
    };
    let mut features = common(trace, run);
    features.insert(1, points("reads", (reads(trace), reads(run)), Some(0.05)));
    features.push(relative("flushes a second", flushes, None));
    Fidelity { job: "all streams".into(), features }
}

/// What is compared of every set of requests.
fn common(trace: &Profile, run: &Profile) -> Vec<FeaturePair> {
    let both = |of: &dyn Fn(&Profile) -> f64| (of(trace), of(run));
    let mean_size = |profile: &Profile| profile.bytes as f64 / profile.requests.max(1) as f64;
    let peak = |profile: &Profile| profile.arrivals.peak_to_mean.unwrap_or(0.0);
    let depth = |profile: &Profile| profile.depth.map_or(0.0, |depth| depth.mean);
    let response =
        |profile: &Profile| profile.in_flight.unwrap_or(0.0) / profile.arrivals.rate.max(1e-9) * 1e9;
    vec![
        relative("mean size", both(&mean_size), Some(0.05)),
        points("sequential", both(&|profile| profile.sequence.sequential), Some(0.05)),
        relative("rate", both(&|profile| profile.arrivals.rate), Some(0.1)),
        relative("peak to mean", both(&peak), None),
        // At arrival: what the stream does. How many are in flight over time is the rate times the device's response.
        FeaturePair { floor: DEPTH_FLOOR, ..relative("mean depth", both(&depth), Some(0.1)) },
        relative("in flight over time", both(&|profile| profile.in_flight.unwrap_or(0.0)), None),
        relative("mean response", both(&response), None),
    ]
}

fn relative(feature: &'static str, (trace, job): (f64, f64), allowed: Option<f64>) -> FeaturePair {
    FeaturePair { feature, trace, job, allowed, floor: 0.0, is_share: false }
}

fn points(feature: &'static str, (trace, job): (f64, f64), allowed: Option<f64>) -> FeaturePair {
    FeaturePair { feature, trace, job, allowed, floor: 0.0, is_share: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::profile_of;
    use crate::{Flags, Request};

    #[test]
    fn shares_differ_by_points_and_others_by_their_size() {
        let pair = |trace, job, is_share| {
            let one = if is_share { points } else { relative };
            one("x", (trace, job), Some(0.05))
        };
        assert_eq!(pair(0.5, 0.56, true).is_close(), Some(false));
        assert_eq!(pair(0.5, 0.54, true).is_close(), Some(true));
        assert_eq!(pair(100.0, 104.0, false).is_close(), Some(true));
        assert_eq!(pair(100.0, 94.0, false).is_close(), Some(false));
        assert_eq!(pair(0.0, 0.0, false).is_close(), Some(true));
        assert_eq!(pair(0.0, 1.0, false).is_close(), Some(false));
        let depth = |trace, job| FeaturePair { floor: DEPTH_FLOOR, ..pair(trace, job, false) }.is_close();
        assert_eq!(
            (depth(0.0001, 0.09), depth(0.0001, 0.2), depth(20.0, 22.0)),
            (Some(true), Some(false), Some(false))
        );
    }
    #[test]
    fn a_stream_of_few_requests_is_shown_and_not_judged() {
        let request = |at: u64| Request {
            at: at * 1_000_000,
            offset: at << 20,
            length: 4096,
            device: 0,
            process: 0,
            file: Request::NO_FILE,
            operation: Operation::Read,
            flags: Flags::default(),
            took: 100_000,
        };
        let requests: Vec<Request> = (0..1000).map(request).collect();
        let (all, half) = (profile_of(&requests, 1_000_000_000), profile_of(&requests[..500], 1_000_000_000));
        let large = compare("large".into(), &all, &half, (2000, 2000));
        let off: Vec<_> = large.features.iter().filter(|pair| pair.is_close() == Some(false)).collect();
        let names: Vec<&str> = off.iter().map(|pair| pair.feature).collect();
        assert_eq!(names, ["share of the requests", "rate"], "one by one, at half the rate");
        assert!(!large.is_close());
        let small = compare("small".into(), &all, &half, (1_000_000, 1_000_000));
        assert!(small.is_close() && small.features.iter().all(|pair| pair.allowed.is_none()));
        let whole = compare_all(&all, &all, (0.0, 3.0));
        assert!(
            whole.is_close() && whole.features.iter().any(|pair| pair.feature == "reads" && pair.job == 1.0)
        );
    }
}
