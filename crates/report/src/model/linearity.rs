//! How throughput grows with the hosts of a fleet.

use serde::Serialize;

use super::point::PointReport;

/// A point of a sweep over hosts.
#[derive(Debug, Clone, Serialize)]
pub struct HostScaling {
    /// Hosts that generated the load.
    pub hosts: usize,
    /// Users of all hosts.
    pub users: u32,
    /// Headline transactions per second.
    pub headline_per_second: f64,
    /// Throughput per host, relative to that of the point with the fewest hosts: 1 if throughput grows in
    /// proportion to the hosts.
    pub efficiency: f64,
    /// Lower end of its 95 % interval, from the precision of both points within the run; none if that is
    /// unknown, and for the reference point.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

impl HostScaling {
    /// For the points that count, sorted by hosts; empty if all have the same number of hosts.
    pub(super) fn all(points: &[PointReport]) -> Vec<Self> {
        let rate = |p: &PointReport| p.throughput.headline_per_second.filter(|rate| *rate > 0.0);
        let counted = points.iter().filter(|p| p.judgement.counts() && !p.generator.hosts.is_empty());
        let mut counted: Vec<(&PointReport, usize, f64)> =
            counted.filter_map(|p| Some((p, p.generator.hosts.len(), rate(p)?))).collect();
        counted.sort_by_key(|(_, hosts, _)| *hosts);
        let Some(&(base, fewest, usual)) = counted.first() else { return Vec::new() };
        if counted.iter().all(|(_, hosts, _)| *hosts == fewest) {
            return Vec::new();
        }
        let half = |p: &PointReport| Some(p.within_run?.half_width_percent / 100.0);
        let each = counted.into_iter().map(|(point, hosts, rate)| {
            let efficiency = (rate / hosts as f64) / (usual / fewest as f64);
            // Relative errors of two independent means add in quadrature. They are applied as a factor, so
            // neither end is negative.
            let known = half(point).zip(half(base)).filter(|_| point.point != base.point);
            let factor = known.map(|(own, of_base)| own.hypot(of_base).exp());
            Self {
                hosts,
                users: point.users,
                headline_per_second: rate,
                efficiency,
                low: factor.map(|factor| efficiency / factor),
                high: factor.map(|factor| efficiency * factor),
            }
        });
        each.collect()
    }
}
