//! The status line: one second of the load as text. Pure functions, so that tests can compare exact text.

use kelvin_measure::event::{Arrivals, LoadPart, Phase, RatePeriod, Second, Series, SeriesRole};
use kelvin_measure::labels::{self, WorkloadLabels};
use kelvin_measure::text::{self, plural, whole};
use kelvin_measure::{Histogram, Nanos};

use super::fields::Fields;

/// The fraction of a second below which its rate is noise.
pub(super) const SLIVER: f64 = 0.2;

/// Largest number of tenants whose rate is in the line.
const TENANTS: usize = 4;

impl Default for Status {
    /// For a run about which nothing is known yet.
    fn default() -> Self {
        Self::of(WorkloadLabels::for_workload(""))
    }
}

/// The values of the status line, updated every second.
#[derive(Debug, Clone)]
pub(super) struct Status {
    words: &'static WorkloadLabels,
    /// Name of the headline metric.
    headline: String,
    /// The period to which the headline refers.
    per: RatePeriod,
    /// The series of a second's counts, including those of an open loop, which a closed loop does not send.
    series: Vec<Series>,
    users: u32,
    /// Planned length of the measured window in seconds; none if it ends after a number of transactions.
    planned: Option<u64>,
    measured_seconds: f64,
    measured: u64,
    /// When the window opened, on the run's clock. `length` is its length in seconds, once known.
    opened: Nanos,
    length: Option<f64>,
    /// Errors of the point so far.
    errors: u64,
    /// The newest arrivals of an open loop; the refused ones are totalled over the point.
    arrivals: Option<Arrivals>,
    /// The newest second that was printed.
    printed: Option<i64>,
    /// Whether several sources put load on the point. The newest second is then the total of what they have
    /// sent, and is printed when a later second starts.
    several: bool,
    newest: Option<Second>,
}

impl Status {
    pub(super) fn new(workload: &str, headline: &str, per: RatePeriod, series: Vec<Series>) -> Self {
        Self { headline: headline.into(), per, series, ..Self::of(WorkloadLabels::for_workload(workload)) }
    }

    fn of(words: &'static WorkloadLabels) -> Self {
        Self {
            words,
            headline: String::new(),
            per: RatePeriod::default(),
            series: Vec::new(),
            users: 0,
            planned: None,
            measured_seconds: 0.0,
            measured: 0,
            opened: 0,
            length: None,
            errors: 0,
            arrivals: None,
            printed: None,
            several: false,
            newest: None,
        }
    }

    /// Whether the series belong to a scenario's tenants, whose loads have no common sum.
    fn has_tenants(&self) -> bool {
        self.words == WorkloadLabels::for_workload(labels::SCENARIO)
    }

    /// Starts a phase.
    pub(super) fn phase(&mut self, phase: Phase, at: Nanos, users: u32, planned: Option<Nanos>) {
        match phase {
            Phase::Connect => {
                let (headline, series) =
                    (std::mem::take(&mut self.headline), std::mem::take(&mut self.series));
                let (per, several) = (self.per, self.several);
                *self = Self { headline, per, series, several, ..Self::of(self.words) };
            }
            Phase::Measure => self.opened = at,
            Phase::Stop => self.length = Some(at.saturating_sub(self.opened) as f64 / 1e9),
            _ => {}
        }
        self.users = users;
        // The last measured second is complete shortly after the window has closed.
        if phase == Phase::Measure {
            self.planned = planned.map(|nanos| nanos.div_ceil(1_000_000_000));
        }
    }

    /// Adds errors.
    pub(super) fn errors(&mut self, count: u64) {
        self.errors += count;
    }

    /// Adds the arrivals of a second.
    pub(super) fn arrivals(&mut self, new: &Arrivals) {
        self.arrivals = Some(super::arrivals_after(&self.arrivals.unwrap_or_default(), new));
    }

    /// A source of load other than this process was declared.
    pub(super) fn declare_source(&mut self) {
        self.several = true;
    }

    /// Adds a second, or a later addition to one. Returns the line for it, or for the preceding second.
    pub(super) fn second(&mut self, second: &Second, ramp_up: u64) -> Option<Fields> {
        match &mut self.newest {
            _ if !self.several => self.line(second, ramp_up),
            Some(newest) if (newest.second, newest.part) == (second.second, second.part) => {
                newest.kinds.iter_mut().zip(&second.kinds).for_each(|(sum, kind)| sum.add(kind));
                None
            }
            // Late: the line of this second was already printed.
            Some(newest) if second.second < newest.second => self.line(second, ramp_up),
            newest => {
                let complete = newest.replace(second.clone())?;
                self.line(&complete, ramp_up)
            }
        }
    }

    /// The line for a second; none for seconds after the window, and for additions to a second that was
    /// already printed.
    fn line(&mut self, second: &Second, ramp_up: u64) -> Option<Fields> {
        let (mut now, mut width) = (0, 1.0);
        let (mut service, mut response) = (Histogram::new(), Histogram::new());
        let mut tenants: Vec<(&str, u64)> = Vec::new();
        for (series, kind) in self.series.iter().zip(&second.kinds) {
            match series.role {
                SeriesRole::Transaction => {
                    now += if series.headline { kind.committed } else { 0 };
                    service.add(&kind.latency);
                    let tenant = series.name.split_once(": ").filter(|_| self.has_tenants());
                    match (tenant, tenants.last_mut()) {
                        (Some((name, _)), Some((last, count))) if *last == name => *count += kind.good(),
                        (Some((name, _)), _) => tenants.push((name, kind.good())),
                        (None, _) => {}
                    }
                }
                SeriesRole::Response { .. } => response.add(&kind.latency),
                SeriesRole::Statement { .. } | SeriesRole::Lag => {}
            }
        }
        let (name, at, total) = match second.part {
            LoadPart::Tail => return None,
            LoadPart::RampUp => ("ramp-up", ramp_up.saturating_add_signed(second.second) + 1, Some(ramp_up)),
            LoadPart::Measured => {
                let from = second.second as f64;
                width = self.length.map_or(1.0, |length| (length - from).clamp(0.0, 1.0));
                self.measured_seconds = self.measured_seconds.max(from + width);
                self.measured += now;
                ("measure", second.second as u64 + u64::from(width >= SLIVER), self.planned)
            }
        };
        if self.printed.is_some_and(|printed| printed >= second.second) {
            return None;
        }
        self.printed = Some(second.second);
        // Jobs with a rate have response times but no arrivals. If only some jobs have a rate, response times
        // do not cover all.
        let open = self.arrivals.is_some() || !response.is_empty() && response.count() >= service.count();
        let (what, latency) = if open { ("response p95", &response) } else { ("p95", &service) };
        let p95 = latency.percentile(95.0).map_or("–".to_owned(), |nanos| text::latency(nanos as f64));
        let users = format!("{} {}", self.users, self.words.who.form_for(self.users.into()));
        let errors = format!("{} {}", whole(self.errors), plural(self.errors, "error", "errors"));
        let good = self.errors == 0;
        let pace = |count: u64, seconds: f64| text::rate(Some(count as f64 * self.per.seconds() / seconds));
        let mean = match (second.part, self.measured_seconds) {
            (LoadPart::Measured, seconds) if seconds > 0.0 => pace(self.measured, seconds),
            _ => "–".into(),
        };
        let of_second = |count| if width >= SLIVER { pace(count, width) } else { "–".into() };
        let clock = total.map_or(format!("{at} s"), |total| format!("{} s left", total.saturating_sub(at)));
        let mut fields = Fields::default();
        fields.push(0, format!("{name} {clock}"));
        if tenants.is_empty() {
            fields.push(0, format!("{} {} now {mean} mean", of_second(now), self.headline));
            fields.push(2, format!("{what} {p95}"));
        } else {
            let each = tenants.iter().map(|(name, count)| format!("{name} {}/s", of_second(*count)));
            fields.push(0, text::few(each, TENANTS));
        }
        if let Some(arrivals) = &self.arrivals {
            fields.push(4, format!("{} due", whole(arrivals.due)));
            fields.push(3, queue(arrivals));
        }
        fields.push(if good { 5 } else { 1 }, errors);
        fields.push(6, users);
        Some(fields)
    }
}

/// Arrivals of an open loop that have not started.
fn queue(arrivals: &Arrivals) -> String {
    let refused =
        if arrivals.refused > 0 { format!(", {} refused", whole(arrivals.refused)) } else { String::new() };
    format!("{} waiting{refused}", whole(arrivals.waiting.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::KindCounts;

    use super::*;

    fn second(at: i64, part: LoadPart, committed: u64) -> Second {
        let mut kind = KindCounts { committed, ..KindCounts::default() };
        for _ in 0..committed {
            kind.latency.record(1_500_000);
        }
        Second { point: 0, second: at, part, kinds: vec![kind] }
    }

    #[test]
    fn tenants_have_their_pace_each_and_no_sum() {
        let series = ["oltp: New-Order", "oltp: Payment", "dss: read"];
        let series = series.map(|name| Series::transaction(name, true)).into();
        let mut status = Status::new("scenario", "x", RatePeriod::Second, series);
        status.phase(Phase::Measure, 0, 4, Some(20_000_000_000));
        let kinds = [39, 50, 7000].map(|committed| KindCounts { committed, ..KindCounts::default() });
        let mut kinds = kinds.to_vec();
        kinds[0].rolled_back = 1;
        let second = Second { point: 0, second: 0, part: LoadPart::Measured, kinds };
        let line = status.second(&second, 0).unwrap().join();
        assert_eq!(line, "measure 19 s left · oltp 90/s, dss 7,000/s · 0 errors · 4 users");
    }

    #[test]
    fn the_line_says_where_we_are_and_what_it_is() {
        let mut status =
            Status::new("tproc-c", "NOPM", RatePeriod::Minute, vec![Series::transaction("New-Order", true)]);
        status.phase(Phase::RampUp, 0, 4, Some(5_000_000_000));
        let line = status.second(&second(-5, LoadPart::RampUp, 100), 5).unwrap().join();
        assert_eq!(line, "ramp-up 4 s left · 6,000 NOPM now – mean · p95 – · 0 errors · 4 users");
        status.phase(Phase::Measure, 5_000_000_000, 4, Some(20_000_000_000));
        status.second(&second(0, LoadPart::Measured, 1000), 5);
        status.errors(3);
        let line = status.second(&second(1, LoadPart::Measured, 500), 5).unwrap().join();
        assert_eq!(
            line,
            "measure 18 s left · 30,000 NOPM now 45,000 mean · p95 1.50 ms · 3 errors · 4 users"
        );
        assert!(status.second(&second(20, LoadPart::Tail, 1), 5).is_none());
    }

    #[test]
    fn an_open_loop_counts_a_transaction_once_and_shows_its_queue() {
        let response =
            Series { role: SeriesRole::Response { of: 0 }, ..Series::transaction("response", false) };
        let mut status =
            Status::new("pgbench", "tps", RatePeriod::Second, vec![Series::transaction("a", true), response]);
        status.phase(Phase::Measure, 0, 1, None);
        let mut both = second(0, LoadPart::Measured, 400);
        let mut slow = both.kinds[0].clone();
        slow.latency.clear();
        (0..400).for_each(|_| slow.latency.record(9_000_000));
        both.kinds.push(slow);
        status.arrivals(&Arrivals { due: 410, refused: 2, waiting: Some(8), ..Arrivals::default() });
        let next = Arrivals { second: 1, due: 420, refused: 3, waiting: Some(7), ..Arrivals::default() };
        status.arrivals(&next);
        let line = status.second(&both, 0).unwrap();
        assert_eq!(
            line.join(),
            "measure 1 s · 400 tps now 400 mean · response p95 9.00 ms · 420 due · 7 waiting, 5 refused · 0 errors · \
             1 user"
        );
        assert_eq!(
            line.fit(80),
            "measure 1 s · 400 tps now 400 mean · response p95 9.00 ms · 7 waiting, 5 refused"
        );
    }

    #[test]
    fn a_second_of_several_sources_is_their_sum() {
        let mut status =
            Status::new("pgbench", "tps", RatePeriod::Second, vec![Series::transaction("a", true)]);
        status.declare_source();
        status.phase(Phase::Connect, 0, 2, None);
        status.phase(Phase::Measure, 0, 2, None);
        let mut lines = Vec::new();
        // The last source of the first second is late.
        for (at, count) in [(0, 100), (0, 300), (1, 500), (0, 50), (1, 700), (2, 1)] {
            lines.extend(status.second(&second(at, LoadPart::Measured, count), 0).map(|line| line.join()));
        }
        assert_eq!(
            lines,
            [
                "measure 1 s · 400 tps now 400 mean · p95 1.50 ms · 0 errors · 2 users",
                "measure 2 s · 1,200 tps now 825 mean · p95 1.50 ms · 0 errors · 2 users"
            ]
        );
    }

    #[test]
    fn a_last_sliver_is_no_whole_second() {
        let mut status =
            Status::new("io", "IOPS", RatePeriod::Second, vec![Series::transaction("read", true)]);
        status.phase(Phase::Measure, 5_000_000_000, 2, Some(1_000_000_000));
        status.second(&second(0, LoadPart::Measured, 1000), 0);
        status.phase(Phase::Stop, 6_001_000_000, 2, None);
        let line = status.second(&second(1, LoadPart::Measured, 1), 0).unwrap().join();
        assert_eq!(line, "measure 0 s left · – IOPS now 1,000 mean · p95 – · 0 errors · 2 workers");
    }

    #[test]
    fn numbers_are_grouped() {
        let times = [61_200.0, 100_000.0, 1_490_000.0, 250e6].map(text::latency);
        assert_eq!(times, ["61.2 µs", "0.100 ms", "1.49 ms", "250 ms"]);
    }
}
