//! The flags that say when transactions start: think times, rates, searches and sweeps.

use clap::Args;
use kelvin_run::Spec;
use kelvin_run::arrivals::Process;
use kelvin_run::spec::{Rates, Slo, Sweep, ThinkTime, Threading};

use super::choice_parser::one_of;
use super::set;

/// When transactions start.
#[derive(Debug, Clone, Args)]
pub(crate) struct PaceArgs {
    /// Think time after each transaction: 100ms, or 100ms,exponential
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Pace")]
    think_time: Option<ThinkTime>,

    /// Open loop: start this many transactions per second, whether or not earlier ones have ended; 1000,
    /// 60000/min, a list, or 1000..20000/8 (eight rates in turn; add ",shuffled" or ",mirrored"). --users limits how
    /// many run at once
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = "Pace")]
    rate: Option<Rates>,

    /// Open loop: arrivals at random (poisson) or evenly spaced (uniform) [default: poisson]
    #[arg(long, value_name = "HOW", value_parser = one_of::<Process>(&["poisson", "uniform"]), help_heading = "Pace")]
    arrivals: Option<Process>,

    /// Open loop: the maximum number of transactions waiting for an idle user; more are refused and reported
    /// [default: 10000]
    #[arg(long, value_name = "N", help_heading = "Pace")]
    queue: Option<u64>,

    /// Service-level objective, such as 'p99<20ms,errors<0.1%': percentiles, mean and max of the response
    /// time, and the share of arrivals that failed, were refused or never started
    #[arg(long, value_name = "OBJECTIVE", help_heading = "Pace")]
    slo: Option<Slo>,

    /// Search for the highest rate that meets --slo; --rate is the first rate tried [default: 100]
    #[arg(long, requires = "slo", help_heading = "Pace")]
    find_max: bool,

    /// With --find-max: precision of the rate found, in percent [default: 5]
    #[arg(long, value_name = "PERCENT", help_heading = "Pace", value_parser = percent)]
    resolution: Option<f64>,

    /// Run users=1..64 (doubling), users=1..64/7 (seven numbers) or users=1,2,4,8 in turn, and fit the
    /// Universal Scalability Law; or hosts=1..8 of a fleet, with --users on each, and compare their efficiency
    #[arg(long, value_name = "NUMBERS", conflicts_with = "rate", help_heading = "Pace")]
    sweep: Option<Sweep>,

    /// Run users in one thread each, or in event loops [default: auto, threads for up to 3 users]
    #[arg(long, value_name = "WHAT", value_parser = one_of::<Threading>(&["auto", "threads", "loops"]), help_heading = "Pace")]
    users_on: Option<Threading>,
}

impl PaceArgs {
    /// Whether numbers of users are swept.
    pub(super) fn sweeps_users(&self) -> bool {
        self.sweep.as_ref().is_some_and(|sweep| !sweep.is_over_hosts())
    }

    /// Applies the flags on top of the file.
    pub(super) fn apply(&self, spec: &mut Spec) {
        let load = &mut spec.load;
        load.think_time = self.think_time.or(load.think_time);
        load.rate = self.rate.clone().or(load.rate.take());
        load.slo = self.slo.clone().or(load.slo.take());
        load.sweep = self.sweep.clone().or(load.sweep.take());
        load.find_max |= self.find_max;
        set(&mut load.arrivals, self.arrivals.as_ref());
        set(&mut load.queue, self.queue.as_ref());
        set(&mut load.resolution, self.resolution.as_ref());
        set(&mut load.users_on, self.users_on.as_ref());
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    number.parse().map_err(|_| "not a percentage; write 5 or 5%".into())
}
