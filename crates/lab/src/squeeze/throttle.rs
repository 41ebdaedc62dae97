//! The methods for cutting the server's CPU.

use super::affinity::Affinity;
use super::meter::Capacity;
use super::rate_cap::RateCap;
use crate::control_group::Group;

/// A smaller cut counts as none.
const LEAST: f64 = 0.03;

/// A way to give a server less CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// A control group's bandwidth (`cpu.max`, `cpu.cfs_quota_us`).
    ControlGroup,
    /// Fewer CPUs for its processes.
    Affinity,
    /// Stopping its processes once they have used their quota in a period.
    RateCap,
}

impl Means {
    /// The method as text, as in the command-line option.
    pub fn describe(self) -> &'static str {
        match self {
            Self::ControlGroup => "control group",
            Self::Affinity => "CPU affinity",
            Self::RateCap => "rate cap",
        }
    }
}

/// The method in effect.
#[derive(Debug)]
pub(super) enum Throttle {
    /// The server's control group.
    Group,
    Affinity(Box<Affinity>),
    RateCap(RateCap),
}

impl Throttle {
    /// The method without control groups: the requested one of affinity and cap. By default, affinity if removing
    /// whole CPUs comes close to the cut, else the cap, else affinity anyway.
    pub(super) fn without_groups(
        wanted: Option<Means>,
        server: u32,
        embedded: bool,
        cut: f64,
    ) -> Result<Self, String> {
        let affinity = || Affinity::of(server, embedded, cut);
        let cap = || {
            if embedded {
                return Err("the database runs in this process, which would stop itself".to_owned());
            }
            RateCap::of(server)
        };
        match wanted {
            Some(Means::Affinity) => affinity().map(Box::new).map(Self::Affinity),
            Some(Means::RateCap) => cap().map(Self::RateCap),
            Some(Means::ControlGroup) => Err("no other means was requested".into()),
            None => match (affinity(), cap) {
                (Ok(affinity), _) if affinity.is_near(cut) => Ok(Self::Affinity(Box::new(affinity))),
                (affinity, cap) => match (cap(), affinity) {
                    (Ok(cap), _) => Ok(Self::RateCap(cap)),
                    (Err(_), Ok(affinity)) => Ok(Self::Affinity(Box::new(affinity))),
                    (Err(cap), Err(affinity)) => {
                        Err(format!("by CPU affinity: {affinity}; by a rate cap: {cap}"))
                    }
                },
            },
        }
    }

    pub(super) fn means(&self) -> Means {
        match self {
            Self::Group => Means::ControlGroup,
            Self::Affinity(_) => Means::Affinity,
            Self::RateCap(_) => Means::RateCap,
        }
    }

    /// The number of CPUs that a cut leaves of the server's capacity, and the share that this is.
    pub(super) fn leave(&self, capacity: &Capacity, cut: f64) -> Result<(f64, f64), String> {
        let Self::Affinity(affinity) = self else { return Ok((capacity.cores * (1.0 - cut), 1.0 - cut)) };
        let left = f64::from(affinity.left());
        // The load generator moves to the CPUs that the server leaves, so its use is no loss. Other processes are
        // spread evenly over all CPUs, and take the same share of those that remain.
        let share = left / (capacity.cores + capacity.others);
        if share.is_nan() || share > 1.0 - LEAST {
            return Err(
                "the load generator uses as many CPUs as affinity would take away from the server".into()
            );
        }
        Ok((left, share))
    }

    /// Applies a limit; none removes it.
    pub(super) fn bound(&self, group: &Group, cores: Option<f64>) -> Result<(), String> {
        match (self, cores) {
            (Self::Group, cores) => group.bound_cpu(cores),
            (Self::Affinity(affinity), Some(_)) => affinity.cut(),
            (Self::Affinity(affinity), None) => affinity.lift(),
            (Self::RateCap(cap), cores) => cap.bound(cores),
        }
    }

    /// The method as text for the results; empty if it is the expected one.
    pub(super) fn how(&self) -> String {
        match self {
            Self::Group => String::new(),
            Self::Affinity(affinity) => {
                let (left, total) = (affinity.left(), affinity.total());
                let taken = total - left;
                let share = f64::from(taken) / f64::from(total) * 100.0;
                // Two logical CPUs of one core provide less than two cores.
                let siblings = std::fs::read_to_string("/sys/devices/system/cpu/smt/active");
                let siblings = siblings.is_ok_and(|text| text.trim() == "1");
                let less = if siblings { ", logical CPUs that share cores" } else { "" };
                format!("; {taken} of {total} CPUs taken away = {share:.0} %{less}")
            }
            Self::RateCap(_) => "; its processes were stopped when they had used that much CPU \
                time within 20 ms"
                .into(),
        }
    }
}
