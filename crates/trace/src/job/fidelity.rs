//! How close a run of a job came to the stream that it was made from.

use serde::Serialize;

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
        self.allowed.map(|allowed| self.difference().abs() <= allowed)
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

/// Of two sets of requests of one operation: sizes, sequentiality, rate, bursts, depth and response. `totals` are the
/// requests of all streams of the trace and of the run, for the mix.
pub fn compare(job: String, trace: &Profile, run: &Profile, totals: (u64, u64)) -> Fidelity {
    let mean_size = |profile: &Profile| profile.bytes as f64 / profile.requests.max(1) as f64;
    let share = |profile: &Profile, total: u64| profile.requests as f64 / total.max(1) as f64;
    let pair = |feature, of: &dyn Fn(&Profile) -> f64, allowed, is_share| FeaturePair {
        feature,
        trace: of(trace),
        job: of(run),
        allowed,
        is_share,
    };
    let p99 = |profile: &Profile| {
        let response = profile.operations.first().and_then(|one| one.response);
        response.map_or(0.0, |response| response.p99 as f64)
    };
    let p50_size = |profile: &Profile| {
        let sizes = profile.operations.first().and_then(|one| one.sizes.first());
        sizes.map_or(0.0, |size| f64::from(size.size))
    };
    let features = vec![
        pair("mean size", &mean_size, Some(0.05), false),
        pair("most frequent size", &p50_size, Some(0.05), false),
        FeaturePair {
            feature: "share of the requests",
            trace: share(trace, totals.0),
            job: share(run, totals.1),
            allowed: Some(0.05),
            is_share: true,
        },
        pair("sequential", &|profile| profile.sequence.sequential, Some(0.05), true),
        pair("rate", &|profile| profile.arrivals.rate, Some(0.1), false),
        pair("peak to mean", &|profile| profile.arrivals.peak_to_mean.unwrap_or(0.0), None, false),
        pair("mean depth", &|profile| profile.depth.map_or(0.0, |depth| depth.mean), Some(0.1), false),
        pair("p99 response", &p99, None, false),
    ];
    Fidelity { job, features }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_differ_by_points_and_others_by_their_size() {
        let pair =
            |trace, job, is_share| FeaturePair { feature: "x", trace, job, allowed: Some(0.05), is_share };
        assert_eq!(pair(0.5, 0.56, true).is_close(), Some(false));
        assert_eq!(pair(0.5, 0.54, true).is_close(), Some(true));
        assert_eq!(pair(100.0, 104.0, false).is_close(), Some(true));
        assert_eq!(pair(100.0, 94.0, false).is_close(), Some(false));
        assert_eq!(pair(0.0, 0.0, false).is_close(), Some(true));
        assert_eq!(pair(0.0, 1.0, false).is_close(), Some(false));
    }
}
