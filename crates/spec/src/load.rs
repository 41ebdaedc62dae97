//! How the load of a run is generated.

use serde::{Deserialize, Serialize};

use crate::Process;
use crate::find_max::Search;
use crate::sweep::MOST_USERS;
use crate::{Rates, Slo, Span, Sweep, ThinkTime, Threading, Users};

/// How the load is generated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Load {
    /// Virtual users; several numbers are run in turn.
    pub users: Users,
    /// Load before the measured window, excluded from all results.
    pub ramp_up: Span,
    /// Length of the measured window.
    pub duration: Span,
    /// Waiting after each transaction, in addition to that of the workload itself; a closed loop only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_time: Option<ThinkTime>,
    /// Arrivals per second: an open loop, in which transactions start on schedule, and not when the previous one has
    /// ended. Several rates are run in turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rates>,
    /// In an open loop: how arrivals follow each other.
    pub arrivals: Process,
    /// In an open loop: the most arrivals that may wait for a free user; arrivals beyond it are refused and reported.
    pub queue: u64,
    /// Threads or event loops that run the users.
    pub users_on: Threading,
    /// Limits of response times and errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slo: Option<Slo>,
    /// Search the highest rate that meets the objective, from `rate` on.
    pub find_max: bool,
    /// The resolution of the search for that rate, in percent.
    pub resolution: f64,
    /// Numbers of users to which the Universal Scalability Law is fitted, instead of `users`; or numbers of hosts, each with
    /// `users` users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// Transactions of each user, instead of a duration; there is no ramp-up then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<std::num::NonZeroU64>,
    /// Hosts of a fleet among which the users are divided; this process, where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<std::num::NonZeroU32>,
    /// How far apart the hosts of a fleet may start, the bounds of their clocks included.
    #[serde(skip_serializing_if = "is_usual_skew")]
    pub start_skew: Span,
    /// Decides every random value of the run.
    #[serde(with = "kelvin_measure::seed")]
    pub seed: u64,
    /// Maximum number of retries of a transaction after a serialization failure, a deadlock or a lock timeout.
    pub retries: u16,
    /// No statement waits longer than this for the server.
    pub timeout: Span,
    /// The file to which every transaction is written; it exists and is empty except for its heading. Not part of the
    /// file, since the run that repeats this one would refuse it.
    #[serde(skip)]
    pub transaction_log: Option<LogFile>,
}

/// A file of every transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// The file, to which lines are added.
    pub path: std::path::PathBuf,
    /// Whether its lines are pgbench's.
    pub as_pgbench: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_usual_skew(skew: &Span) -> bool {
    *skew == Load::START_SKEW
}

impl Default for Load {
    fn default() -> Self {
        Self {
            users: Users::default(),
            ramp_up: Span::seconds(5),
            duration: Span::seconds(20),
            think_time: None,
            rate: None,
            arrivals: Process::default(),
            queue: 10_000,
            users_on: Threading::default(),
            slo: None,
            find_max: false,
            resolution: Search::RESOLUTION,
            sweep: None,
            transactions: None,
            hosts: None,
            start_skew: Self::START_SKEW,
            seed: 1,
            retries: 10,
            timeout: Span::seconds(60),
            transaction_log: None,
        }
    }
}

impl Load {
    /// The load of streams of queries: one user until the streams are known, and an hour for a query.
    pub(crate) fn of_queries() -> Self {
        Self {
            users: Users::several(vec![1]),
            ramp_up: Span::seconds(0),
            transactions: std::num::NonZeroU64::new(22),
            timeout: Span::seconds(3600),
            ..Self::default()
        }
    }

    /// How far apart the hosts of a fleet may start by default.
    pub const START_SKEW: Span = Span::milliseconds(10);

    /// Arrivals per second at which a search begins by default.
    pub const FIRST_RATE: f64 = 100.0;

    /// The points in the order in which they run: users, and arrivals per second in an open loop. A search adds its own
    /// points, starting from the first of these.
    pub fn points(&self) -> Vec<(u32, Option<f64>)> {
        if let Some(hosts) = self.sweep.as_ref().filter(|sweep| sweep.is_over_hosts()) {
            let each = self.users.numbers().first().copied().unwrap_or(1);
            return hosts.numbers().into_iter().map(|hosts| (each.saturating_mul(hosts), None)).collect();
        }
        let swept = self.sweep.as_ref().map(Sweep::numbers);
        let users = swept.as_deref().unwrap_or(self.users.numbers());
        match &self.rate {
            None => users.iter().map(|&users| (users, None)).collect(),
            Some(rates) => {
                let most = users.iter().max().copied().unwrap_or(1);
                rates.points(self.seed).into_iter().map(|rate| (most, Some(rate))).collect()
            }
        }
    }

    /// The hosts that generate the load of a point, by its place among [`Load::points`]; none where this process does.
    pub fn hosts_of(&self, point: usize) -> Option<u32> {
        match self.sweep.as_ref().filter(|sweep| sweep.is_over_hosts()) {
            Some(sweep) => sweep.numbers().get(point).copied(),
            None => self.hosts.map(std::num::NonZeroU32::get),
        }
    }

    /// The most hosts of any point; none where this process generates the load.
    pub fn most_hosts(&self) -> Option<u32> {
        (0..self.points().len()).filter_map(|point| self.hosts_of(point)).max()
    }

    /// Arrivals per second at which a search begins.
    pub fn first_rate(&self) -> f64 {
        self.points().first().and_then(|&(_, rate)| rate).unwrap_or(Self::FIRST_RATE)
    }

    /// Whether arrivals have a schedule of their own (an open loop).
    pub fn is_open_loop(&self) -> bool {
        self.rate.is_some() || self.find_max
    }

    /// Refuses settings that contradict each other.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let open = self.is_open_loop();
        let several = self.rate.as_ref().is_some_and(|rates| rates.single().is_none());
        let most_users = self.points().iter().map(|&(users, _)| users).max();
        let refusals = [
            (
                self.transactions.is_none() && self.duration.is_zero(),
                "the measured window cannot be 0 s; give a duration or a number of transactions",
            ),
            (self.timeout.is_zero(), "a timeout of 0 s would cancel every statement"),
            (
                open && self.transactions.is_some(),
                "an open loop (rate) ends after a time, not a number of transactions; give a duration",
            ),
            (
                open && self.think_time.is_some(),
                "an open loop (rate) has no think time: its transactions start as scheduled",
            ),
            (
                open && (self.users.numbers().len() > 1 || self.sweep.is_some()),
                "several numbers of users and a rate cannot be combined; for an open loop give one number of \
                 users, which limits the transactions in flight",
            ),
            (
                self.sweep.as_ref().is_some_and(Sweep::is_over_hosts)
                    && (self.users.numbers().len() > 1 || self.hosts.is_some()),
                "a sweep over hosts takes one number of users per host, and no number of hosts",
            ),
            (
                self.most_hosts().is_some() && self.transaction_log.is_some(),
                "the hosts of a fleet write no transaction log",
            ),
            (
                self.hosts.is_some_and(|hosts| self.points().iter().any(|(users, _)| *users < hosts.get())),
                "every host of a fleet needs a user; give at least as many users as hosts",
            ),
            (
                self.find_max && self.slo.is_none(),
                "a search (find-max) needs an objective (slo), such as p99<20ms,errors<0.1%",
            ),
            (
                self.find_max && several,
                "a search (find-max) takes one initial rate and chooses the others itself",
            ),
            (
                !(0.1..=100.0).contains(&self.resolution),
                "the resolution of a search must be between 0.1 and 100 percent",
            ),
        ];
        if let Some((_, why)) = refusals.iter().find(|(refused, _)| *refused) {
            return Err((*why).into());
        }
        if let (true, Some(slo)) = (self.find_max, &self.slo) {
            let (first, window) = (self.first_rate(), self.duration.duration());
            let needed = slo.shortest_window(first);
            if window < needed {
                return Err(format!(
                    "trials of {} are too short: at the first rate, {first} arrivals per second, they have \
                     about {:.0}, but {slo} needs {} response times for its percentiles; give a duration of \
                     at least {} s, or a higher initial rate",
                    self.duration,
                    first * window.as_secs_f64(),
                    slo.responses_needed(),
                    needed.as_secs()
                ));
            }
        }
        if most_users.is_some_and(|most| most > MOST_USERS) {
            return Err(format!("more than {MOST_USERS} users are not supported"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_over_hosts_gives_each_host_its_users() {
        let load = |sweep: Option<&str>, hosts, users: Vec<u32>| Load {
            users: Users::several(users),
            hosts: std::num::NonZeroU32::new(hosts),
            sweep: sweep.map(|sweep| sweep.parse().unwrap()),
            ..Load::default()
        };
        let swept = load(Some("hosts=1..4"), 0, vec![8]);
        assert_eq!(swept.points(), [(8, None), (16, None), (32, None)]);
        assert_eq!(
            (0..4).map(|point| swept.hosts_of(point)).collect::<Vec<_>>(),
            [Some(1), Some(2), Some(4), None]
        );
        assert_eq!((swept.most_hosts(), swept.validate()), (Some(4), Ok(())));
        let fleet = load(None, 4, vec![8, 16]);
        assert_eq!((fleet.hosts_of(1), fleet.points()), (Some(4), vec![(8, None), (16, None)]));
        assert_eq!(load(None, 0, vec![8]).most_hosts(), None);
        for (refused, why) in [
            (load(Some("hosts=1..4"), 0, vec![8, 9]), "one number of users"),
            (load(Some("hosts=1..4"), 2, vec![8]), "one number of users"),
            (load(None, 9, vec![8]), "as many users as hosts"),
            (load(Some("hosts=1..64"), 0, vec![50_000]), "more than 100000 users"),
        ] {
            let error = refused.validate().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn trial_d1_a_search_whose_trials_are_too_short_is_refused_with_the_length_that_it_takes() {
        let search = |duration, rate: Option<&str>| Load {
            duration: Span::seconds(duration),
            rate: rate.map(|rate| rate.parse().unwrap()),
            slo: Some("p99<20ms,errors<0.1%".parse().unwrap()),
            find_max: true,
            ..Load::default()
        };
        let why = search(4, None).validate().unwrap_err();
        assert!(
            why.contains("about 400") && why.contains("needs 1000") && why.contains("at least 12 s"),
            "{why}"
        );
        assert_eq!(search(12, None).validate(), Ok(()));
        assert_eq!(search(4, Some("300")).validate(), Ok(()));
    }
}
