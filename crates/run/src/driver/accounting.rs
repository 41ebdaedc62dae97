//! Accounting at the end of a point: merges the reports of its generators into one window, and checks that
//! all counts agree.

use kelvin_measure::event::{ArrivalSchedule, HostLoad, KindCounts, SeriesRole, Window};
use kelvin_measure::invariant::{Invariant, counts_agree, littles_law};
use kelvin_measure::{Event, Nanos, Sink, SourceId, Totals};

use std::time::Duration;

use super::generator_report::GeneratorReport;
use super::remote::RemoteAccounting;
use super::saturation::GeneratorLoad;
use super::server_counters::ServerReadings;
use crate::error::RunError;
use crate::heartbeat::check_generator_ran;
use kelvin_users::UserCounter;

/// Everything from which the final results are computed.
pub(super) struct PointAccounting<'a> {
    pub(super) point: u32,
    pub(super) users: u32,
    /// Which series the headline counts.
    pub(super) headline: &'a [bool],
    /// Whether the database is part of the process.
    pub(super) embedded: bool,
    /// When the window opened.
    pub(super) open: Nanos,
    /// The requested rate; `None` in a closed loop, and where a timeline may change it.
    pub(super) rate: Option<f64>,
    /// The generators' reports, at least one.
    pub(super) generators: &'a [GeneratorReport],
    /// What is known of a fleet's hosts in addition to their reports; the point then has no other generators.
    pub(super) hosts: Option<&'a RemoteAccounting>,
    /// The sums of all generators.
    pub(super) totals: &'a Totals,
    /// `None` when there was no time to wait for the readings.
    pub(super) server: Option<&'a ServerReadings>,
    /// Whether gaps caused by other work on the machine are accepted.
    pub(super) accept_noise: bool,
}

impl PointAccounting<'_> {
    /// The actual window, not the planned one.
    fn window(&self) -> Window {
        // Of hosts that close one after another the last counts, so that none exceeds its share. By count:
        // the last user's end.
        let closes = self.generators.iter().filter_map(|generator| generator.close).max();
        let close = closes.unwrap_or_else(|| {
            let last = self.generators.iter().map(GeneratorReport::last_end).max();
            last.unwrap_or(0).max(self.open)
        });
        let elapsed = close.saturating_sub(self.open);
        let delays = self.generators.iter().map(|generator| generator.run_delay(elapsed));
        Window {
            point: self.point,
            users: self.users,
            elapsed,
            idle: self.sum(|generator| generator.idle(close)),
            client_headline: self.headline(&self.totals.measured),
            server_headline: self.server.and_then(ServerReadings::headline),
            server_transactions: self.server.and_then(ServerReadings::transactions),
            client_cpu: self.sum(|generator| generator.cpu_time(elapsed)),
            client_run_delay: delays.sum(),
            schedule: self.schedule(),
        }
    }

    /// Emits the window, the share of each host, the invariants, and notes for the reader. `known` is an
    /// invariant that was evaluated earlier.
    pub(super) fn emit(
        &self,
        known: Option<Invariant>,
        ended: bool,
        server: Option<(u64, kelvin_database::Result<u64>)>,
        sink: &mut dyn Sink,
    ) -> Result<(Window, Vec<Invariant>), RunError> {
        let window = self.window();
        sink.event(&Event::Window(window.clone()))?;
        let loads = self.host_loads(&window);
        for (source, load) in &loads {
            sink.event_from(*source, &Event::HostLoad(Box::new(load.clone())))?;
        }
        let mut invariants: Vec<Invariant> = known.into_iter().collect();
        invariants.extend(self.invariants(&window, &loads, ended, server));
        for invariant in &invariants {
            sink.event(&Event::Invariant { point: self.point, invariant: invariant.clone() })?;
        }
        for report in self.generators {
            for gap in &report.gaps {
                sink.event_from(report.source, &gap.note(self.point, self.open))?;
            }
        }
        for text in self.notes() {
            sink.event(&Event::Note { point: self.point, second: 0, text })?;
        }
        Ok((window, invariants))
    }

    /// Saturates, since reports from other hosts may contain any number.
    fn sum(&self, figure: impl Fn(&GeneratorReport) -> u64) -> u64 {
        self.generators.iter().map(figure).fold(0, u64::saturating_add)
    }

    fn user_sum(&self, counter: UserCounter) -> u64 {
        self.sum(|generator| generator.user_sum(counter))
    }

    /// The arrivals of all generators. Each has a share of the rate and a separate queue.
    fn schedule(&self) -> Option<ArrivalSchedule> {
        let each = self.generators.iter().map(|generator| generator.arrivals);
        each.reduce(|sum, one| {
            let sum = sum?.with(one?);
            // The sum of the shares is subject to rounding.
            Some(ArrivalSchedule { rate: self.rate.unwrap_or(sum.rate), ..sum })
        })?
    }

    /// Committed headline transactions of these series.
    fn headline(&self, kinds: &[KindCounts]) -> u64 {
        kelvin_users::headline_of(self.headline, kinds).map(|kind| kind.committed).sum()
    }

    /// The share of each host of a fleet, with its source.
    fn host_loads(&self, window: &Window) -> Vec<(SourceId, HostLoad)> {
        let headline = |report: &GeneratorReport| self.headline(&report.totals.measured);
        let loads =
            self.hosts.map(|hosts| hosts.loads((self.point, window.elapsed), self.generators, headline));
        loads.unwrap_or_default()
    }

    /// Checks the invariants. If not all users have ended, one invariant says so, and those that depend on it
    /// are skipped.
    fn invariants(
        &self,
        window: &Window,
        loads: &[(SourceId, HostLoad)],
        ended: bool,
        server: Option<(u64, kelvin_database::Result<u64>)>,
    ) -> Vec<Invariant> {
        let at_work: u32 = self.generators.iter().map(|generator| generator.at_work).sum();
        let broken = self.generators.iter().find_map(|generator| generator.broken_loop.clone());
        let panicked = self.generators.iter().any(|generator| generator.panicked);
        let in_order = ended && at_work == 0 && !panicked && broken.is_none();
        let evidence = match broken {
            Some(error) => error,
            None if panicked => "a user's thread panicked".into(),
            None => format!("{at_work} of {} are still waiting for the database", self.users),
        };
        let mut invariants = vec![Invariant::new("all users ended normally", in_order, evidence)];
        if let Some(hosts) = self.hosts {
            let stayed = hosts.stayed();
            let all = stayed.holds;
            invariants.push(stayed);
            if !all {
                return invariants;
            }
            invariants.extend(hosts.agree(loads));
        }
        if !in_order {
            return invariants;
        }
        invariants.extend(self.totals.invariants(self.sum(|generator| generator.pushed)));
        invariants.push(counts_agree(
            "the collector kept up with the users",
            ("waits for space in a ring buffer", self.sum(|generator| generator.ring_full)),
            ("allowed", 0),
            0,
        ));
        let failed = self.totals.transactions(&self.totals.all).map(|kind| kind.failed).sum();
        invariants.push(counts_agree(
            "every failed transaction has an error",
            ("failed transactions", failed),
            ("errors that ended a transaction", self.sum(|generator| generator.final_errors)),
            0,
        ));
        invariants.extend(self.littles_law(window));
        invariants.extend(self.every_arrival(window));
        invariants.extend(worst(self.check_each(|generator| {
            (window.elapsed > 0)
                .then(|| check_generator_ran(&generator.gaps, self.open, window.elapsed, self.accept_noise))
        })));
        let mut busy = self.check_each(|generator| generator.saturation(window.elapsed, self.embedded));
        busy.extend(self.saturated_machines(window.elapsed));
        invariants.extend(worst(busy));
        invariants.extend(server.map(|(before, after)| self.whole_load(before, after)));
        invariants.extend(self.window_against_server(window));
        invariants
    }

    /// The invariants of all generators, labelled with their hosts.
    fn check_each(&self, judge: impl Fn(&GeneratorReport) -> Option<Invariant>) -> Vec<Invariant> {
        let each = self.generators.iter().filter_map(|generator| {
            let mut judged = judge(generator)?;
            if let Some(host) = &generator.host {
                let text = judged.not_judged.as_mut().unwrap_or(&mut judged.evidence);
                text.insert_str(0, &format!("{host}: "));
            }
            Some(judged)
        });
        each.collect()
    }

    /// Whether generators on one machine were a bottleneck together although none of them was one alone.
    pub(super) fn saturated_machines(&self, elapsed: Nanos) -> Vec<Invariant> {
        let machines = self.hosts.map(RemoteAccounting::shared_machines).unwrap_or_default();
        let judge = |(hosts, cpus): (Vec<usize>, u32)| {
            let generators: Vec<&GeneratorReport> =
                hosts.iter().filter_map(|&host| self.generators.get(host)).collect();
            let used: Vec<Nanos> = generators.iter().map(|generator| generator.cpu_time(elapsed)).collect();
            // 0 means unknown; the generator's own invariant reports that.
            if elapsed == 0 || used.contains(&0) {
                return None;
            }
            let own: f64 = generators.iter().map(|generator| generator.cpus).sum();
            let names: Vec<&str> =
                generators.iter().filter_map(|generator| generator.host.as_deref()).collect();
            let load = GeneratorLoad {
                elapsed: Duration::from_nanos(elapsed),
                cpus: own.min(f64::from(cpus)),
                cpu: Duration::from_nanos(used.iter().sum()),
                embedded: self.embedded,
                loops: Some(&Vec::new()),
                lag: None,
            };
            let mut judged = load.judge();
            judged.evidence.insert_str(0, &format!("{} on one machine: ", names.join(" and ")));
            Some(judged)
        };
        machines.into_iter().filter_map(judge).collect()
    }

    /// What the reader of the result should know in addition to its metrics.
    fn notes(&self) -> Vec<String> {
        let waits = self.sum(|generator| generator.busy_waits);
        let busy =
            (waits > 0).then(|| format!("the users waited {waits} times because the database was busy"));
        let cut_off = self.user_sum(UserCounter::CutOff);
        let cut_off = (cut_off > 0).then(|| {
            format!(
                "{cut_off} transaction{} cut off during a retry by the end of the load, and not counted as \
                completed or failed",
                if cut_off == 1 { " was" } else { "s were" }
            )
        });
        let left_out = self.generators.iter().filter_map(|generator| generator.notes_left_out.clone());
        busy.into_iter().chain(cut_off).chain(left_out).collect()
    }

    fn littles_law(&self, window: &Window) -> Option<Invariant> {
        if window.elapsed == 0 {
            return None;
        }
        let measured = self.totals.transactions(&self.totals.measured);
        let latencies: u128 = measured.map(|kind| kind.latency.sum()).sum();
        let in_window = latencies + u128::from(self.user_sum(UserCounter::BeforeClose));
        let in_window = in_window.saturating_sub(u128::from(self.user_sum(UserCounter::BeforeOpen)));
        let user_time = window.elapsed as f64 * f64::from(self.users);
        let busy = 1.0 - window.idle as f64 / user_time;
        Some(littles_law(self.users, busy, in_window as f64 / 1e9, window.elapsed as f64 / 1e9))
    }

    /// Checks that each arrival of the window had exactly one end.
    fn every_arrival(&self, window: &Window) -> Option<Invariant> {
        let schedule = window.schedule?;
        let responses = self.totals.measured_of(|role| matches!(role, SeriesRole::Response { .. }));
        let ended = responses.good() + responses.failed;
        Some(counts_agree(
            "every arrival in the window completed, failed, was refused, waited, or was cut off at the end",
            ("due", schedule.due),
            ("total of these states", ended + schedule.refused + schedule.waiting + schedule.cut_off),
            0,
        ))
    }

    /// The strict comparison: from before the first user to after the last, the server must have counted
    /// exactly the commits that the users saw. Only a commit whose answer was lost with its connection may be
    /// in just one of the counts.
    fn whole_load(&self, before: u64, after: kelvin_database::Result<u64>) -> Invariant {
        let name = "over the whole load, server and users counted the same commits";
        let committed = self.headline(&self.totals.all);
        match after {
            Ok(after) => counts_agree(
                name,
                ("committed by the users", committed),
                ("counted by the server", after.saturating_sub(before)),
                self.user_sum(UserCounter::Unknown),
            ),
            Err(error) => Invariant::new(
                name,
                false,
                format!("{committed} committed by the users; reading the server's count failed: {error}"),
            ),
        }
    }

    /// The comparison between the window's edges, where transactions are in flight and the server is read
    /// slightly late.
    fn window_against_server(&self, window: &Window) -> Option<Invariant> {
        let server = window.server_headline?;
        let late = self.server?.late();
        let unknown = self.user_sum(UserCounter::Unknown);
        // Twice the rate of the busiest second, since a burst, or the window itself, may be shorter than a
        // second.
        let busiest = self.sum(|generator| generator.busiest);
        let mean = window.client_headline as f64 * 1e9 / window.elapsed.max(1) as f64;
        let while_reading = (2.0 * mean.max(busiest as f64) * late as f64 / 1e9).ceil() as u64;
        Some(counts_agree(
            "in the window, server and client counts agree, allowing for transactions in flight at the edges",
            ("counted by the client", window.client_headline),
            ("counted by the server", server),
            2 * u64::from(self.users) + while_reading + unknown,
        ))
    }
}

/// The result of a check that every generator must pass: those that failed, otherwise one that could not be
/// evaluated, otherwise the first.
fn worst(mut each: Vec<Invariant>) -> Option<Invariant> {
    each.sort_by_key(|judged| (judged.holds, judged.not_judged.is_none()));
    let broken: Vec<&str> =
        each.iter().filter(|judged| !judged.holds).map(|judged| judged.evidence.as_str()).collect();
    let evidence = (broken.len() > 1).then(|| broken.join("; "));
    let worst = each.into_iter().next()?;
    Some(match evidence {
        Some(evidence) => Invariant { evidence, ..worst },
        None => worst,
    })
}
