//! Which points of the runs are compared: those with the same load.

use std::collections::{BTreeMap, BTreeSet};

use crate::{PointReport, RunReport};

/// The load of a point: users, the requested rate (in thousandths of a transaction per second, so that it can
/// be a key), and its number among the run's points with the same users and rate. The two legs of a mirrored
/// ramp have the same rates but may have different results, because the system may depend on its history. For
/// I/O jobs the load is the phase alone, since its jobs determine the number of workers. For a scenario it is
/// the tenant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Load {
    /// Only for a scenario.
    pub(super) tenant: Option<String>,
    /// None if the rate alone is the load, regardless of the number of users.
    users: Option<u32>,
    rate: Option<u64>,
    /// From 1.
    pub(super) nth: u32,
}

impl Load {
    /// Whether the load is the same except for its number among the run's points.
    pub(super) fn repeats(&self, other: &Self) -> bool {
        self.nth > 1 && (self.users, self.rate) == (other.users, other.rate)
    }
}

/// The loads of a run's points, in order.
pub(super) fn loads(report: &RunReport, by_users: bool) -> Vec<Load> {
    let mut seen: BTreeMap<(Option<u32>, Option<u64>), u32> = BTreeMap::new();
    let load = |p: &PointReport| {
        if let Some(phase) = p.phase() {
            return Load { tenant: None, users: None, rate: None, nth: phase };
        }
        if let Some(tenant) = p.tenant() {
            return Load { tenant: Some(tenant.to_owned()), users: None, rate: None, nth: 1 };
        }
        let rate = p.asked_per_second().map(|asked| (asked * 1e3).round() as u64);
        let users = (by_users || rate.is_none()).then_some(p.users);
        let nth = seen.entry((users, rate)).or_default();
        *nth += 1;
        Load { tenant: None, users, rate, nth: *nth }
    };
    report.points.iter().map(load).collect()
}

/// Which points are compared.
pub(super) struct Pairs {
    pub(super) by_users: bool,
    pub(super) of: Vec<(Load, Load)>,
}

/// Loads that both sides measured. If there are none, rates are matched regardless of the users. If each side
/// has only one load, these two are compared in any case.
pub(super) fn pairs(a: &[&RunReport], b: &[&RunReport]) -> Pairs {
    let all = |side: &[&RunReport], by_users| -> BTreeSet<Load> {
        side.iter().flat_map(|r| loads(r, by_users)).collect()
    };
    let (loads_a, loads_b) = (all(a, true), all(b, true));
    if let (1, 1, Some(x), Some(y)) = (loads_a.len(), loads_b.len(), loads_a.first(), loads_b.first())
        && x.tenant == y.tenant
    {
        return Pairs { by_users: true, of: vec![(x.clone(), y.clone())] };
    }
    let common = |by_users| -> Vec<_> {
        all(a, by_users).intersection(&all(b, by_users)).map(|load| (load.clone(), load.clone())).collect()
    };
    match common(true) {
        none if none.is_empty() => Pairs { by_users: false, of: common(false) },
        of => Pairs { by_users: true, of },
    }
}
