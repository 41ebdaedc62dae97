//! What the hosts of a fleet did in a point, and how simultaneously they started.

use serde::{Deserialize, Serialize};

use crate::json::number;
use crate::{Histogram, Nanos};

/// The clock of a host against the controller's, from exchanges of times before, during and after the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostClock {
    /// The host's clock minus the controller's when the load began, in nanoseconds.
    pub offset: i64,
    /// The offset is not further from this than so: half of the shortest round trip.
    pub bound: Nanos,
    /// How fast the offset grows, in nanoseconds a second: positive where the host's clock is fast.
    pub drift_ppb: i64,
    /// By all exchanges, those after the start included: the moment at which the host meant to begin, on the controller's
    /// clock, minus the one that was ordered; in nanoseconds.
    pub start_error: i64,
    /// The same of the moment at which its window closed; none where the load had no planned end, or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<ClockEnd>,
    /// How many exchanges there were.
    pub exchanges: u32,
    /// The shortest round trip.
    pub round_trip: Nanos,
    /// What the host itself says of its synchronisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronisation: Option<String>,
}

/// How far a host's clock was off when its window closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockEnd {
    /// The moment at which the host closed its window, on the controller's clock, minus the one that was ordered; in nanoseconds.
    pub error: i64,
    /// It is not further from this than so.
    pub bound: Nanos,
}

/// The times of a host's transactions in the window that its clients see: response times in an open loop, else service times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HostTimes {
    /// How many.
    pub count: u64,
    /// Their mean, in nanoseconds.
    #[serde(deserialize_with = "number")]
    pub mean: f64,
    /// Their standard deviation, in nanoseconds.
    #[serde(deserialize_with = "number")]
    pub deviation: f64,
}

impl HostTimes {
    /// Of a histogram; none of an empty one.
    pub fn from_histogram(times: &Histogram) -> Option<Self> {
        Some(Self { count: times.count(), mean: times.mean()?, deviation: times.deviation()? })
    }
}

/// What one host of a fleet did in a point. Its source has the host's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostLoad {
    /// Which point of the run.
    pub point: u32,
    /// Its users: the number of the first, and how many.
    pub first_user: u32,
    /// How many.
    pub users: u32,
    /// Headline transactions in the window, by its count.
    pub client_headline: u64,
    /// The times of its transactions; none where none ended.
    pub times: Option<HostTimes>,
    /// CPU time of its generator within the window, in nanoseconds; none where it is not known.
    pub client_cpu: Option<Nanos>,
    /// CPUs that its generator may use.
    #[serde(deserialize_with = "number")]
    pub cpus: f64,
    /// How long after the moment at which it meant to begin its first user began, by its own clock; none where none did.
    pub late: Option<Nanos>,
    /// Its clock; none where there was no exchange, as of a host that was lost early.
    pub clock: Option<HostClock>,
    /// Why it was lost, where it did not stay to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// How long its load was on, where that is not the point's window: of a tenant of a scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<Nanos>,
}

impl HostLoad {
    /// When its first user began, on the controller's clock, after the moment that was ordered; negative for before.
    pub fn started(&self) -> Option<i64> {
        let clock = self.clock.as_ref()?;
        Some(clock.start_error.saturating_add_unsigned(self.late?))
    }

    /// The share of its CPUs that its generator used over a window of this length.
    pub fn cpu_share(&self, elapsed: Nanos) -> Option<f64> {
        let elapsed = self.elapsed.unwrap_or(elapsed);
        let used = self.client_cpu? as f64 / elapsed as f64;
        (elapsed > 0 && self.cpus > 0.0).then(|| used / self.cpus)
    }
}

/// How far apart the hosts of a fleet started, or closed their windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostSkew {
    /// From the first to the last, as well as it is known.
    pub skew: Nanos,
    /// What it is at most, with the bounds of all clocks.
    pub at_most: Nanos,
}

impl HostSkew {
    /// The starts of the hosts of one point; none where that of one of them is not known.
    pub fn of_starts<'a>(hosts: impl IntoIterator<Item = &'a HostLoad>) -> Option<Self> {
        Self::from_offsets(hosts.into_iter().map(|host| Some((host.started()?, host.clock.as_ref()?.bound))))
    }

    /// The closes of their windows; none where that of one of them is not known.
    pub fn of_ends<'a>(hosts: impl IntoIterator<Item = &'a HostLoad>) -> Option<Self> {
        let end = |host: &HostLoad| host.clock.as_ref()?.end.map(|end| (end.error, end.bound));
        Self::from_offsets(hosts.into_iter().map(end))
    }

    /// Of moments with their bounds.
    fn from_offsets(each: impl Iterator<Item = Option<(i64, Nanos)>>) -> Option<Self> {
        let each = each.collect::<Option<Vec<_>>>()?;
        let [_, _, ..] = each.as_slice() else {
            return (!each.is_empty()).then_some(Self { skew: 0, at_most: 0 });
        };
        // Sums that a damaged result could not make overflow.
        let first = each.iter().map(|(start, _)| i128::from(*start)).min()?;
        let last = each.iter().map(|(start, _)| i128::from(*start)).max()?;
        let earliest = each.iter().map(|(start, bound)| i128::from(*start) - i128::from(*bound)).min()?;
        let latest = each.iter().map(|(start, bound)| i128::from(*start) + i128::from(*bound)).max()?;
        let nanos = |difference: i128| Nanos::try_from(difference).unwrap_or(Nanos::MAX);
        Some(Self { skew: nanos(last - first), at_most: nanos(latest - earliest) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(start_error: i64, late: u64, bound: u64) -> HostLoad {
        let clock = HostClock {
            offset: 3_000_000_000,
            bound,
            drift_ppb: 50_000,
            start_error,
            end: Some(ClockEnd { error: start_error.saturating_mul(2), bound: bound / 2 }),
            exchanges: 32,
            round_trip: bound.saturating_mul(2),
            synchronisation: None,
        };
        HostLoad {
            point: 0,
            first_user: 0,
            users: 4,
            client_headline: 100,
            times: HostTimes::from_histogram(&Histogram::new()),
            client_cpu: Some(500_000_000),
            cpus: 2.0,
            late: Some(late),
            clock: Some(clock),
            lost: None,
            elapsed: None,
        }
    }

    #[test]
    fn the_skew_is_from_the_first_start_to_the_last_and_at_most_that_with_all_bounds() {
        let hosts = [host(-40_000, 60_000, 100_000), host(10_000, 50_000, 30_000), host(0, 55_000, 50_000)];
        assert_eq!(hosts[0].started(), Some(20_000));
        // 20, 60 and 55 µs; from -80 µs to 120 µs at most.
        let skew = HostSkew::of_starts(&hosts).unwrap();
        assert_eq!((skew.skew, skew.at_most), (40_000, 200_000));
        // -80, 20 and 0 µs; from -130 µs to 35 µs at most.
        let ends = HostSkew::of_ends(&hosts).unwrap();
        assert_eq!((ends.skew, ends.at_most), (100_000, 165_000));
        assert_eq!(HostSkew::of_starts(&hosts[..1]).unwrap(), HostSkew { skew: 0, at_most: 0 });
        assert_eq!(HostSkew::of_starts([]), None);
        let unknown = HostLoad { clock: None, ..hosts[0].clone() };
        assert_eq!(HostSkew::of_starts([&hosts[0], &unknown]), None, "of one host it is not known");
        let extreme = [host(i64::MIN, 0, u64::MAX), host(i64::MAX, u64::MAX, u64::MAX)];
        assert_eq!(HostSkew::of_starts(&extreme).unwrap().at_most, u64::MAX);
    }

    #[test]
    fn a_host_with_transactions_has_their_mean_and_deviation() {
        let mut times = Histogram::new();
        assert_eq!(HostTimes::from_histogram(&times), None);
        for _ in 0..50 {
            times.record(1_000_000);
            times.record(3_000_000);
        }
        let found = HostTimes::from_histogram(&times).unwrap();
        assert_eq!((found.count, found.mean), (100, 2_000_000.0));
        assert!((found.deviation / 1_000_000.0 - 1.0).abs() < 0.01, "{}", found.deviation);
    }

    #[test]
    fn a_host_uses_a_share_of_its_own_cpus() {
        assert_eq!(host(0, 0, 0).cpu_share(1_000_000_000), Some(0.25));
        assert_eq!(host(0, 0, 0).cpu_share(0), None);
        let text = serde_json::to_string(&host(-1, 2, 3)).unwrap();
        assert_eq!(serde_json::from_str::<HostLoad>(&text).unwrap(), host(-1, 2, 3));
    }
}
