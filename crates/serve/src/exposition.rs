//! Renders a state as a page of OpenMetrics.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Error, Write as _};
use std::time::Instant;

use kelvin_measure::event::{Phase, SeriesRole, Status};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::names::PrometheusMetric;
use crate::state::{Counts, State};

const PHASES: [(Phase, &str); 7] = [
    (Phase::Build, "build"),
    (Phase::CheckBefore, "check-before"),
    (Phase::Connect, "connect"),
    (Phase::RampUp, "ramp-up"),
    (Phase::Measure, "measure"),
    (Phase::Stop, "stop"),
    (Phase::CheckAfter, "check-after"),
];

const STATUSES: [(Status, &str); 4] = [
    (Status::Partial, "running"),
    (Status::Complete, "complete"),
    (Status::Interrupted, "interrupted"),
    (Status::Failed, "failed"),
];

/// The whole page, including `# EOF`.
pub(crate) fn text(state: State) -> Result<String, Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(state));
    let mut page = String::new();
    text::encode(&mut page, &registry)?;
    Ok(page)
}

impl Collector for State {
    fn encode(&self, encoder: DescriptorEncoder) -> Result<(), Error> {
        let mut page = Page { encoder };
        let now = Instant::now();
        page.run(self)?;
        page.transactions(self)?;
        page.latencies(self)?;
        page.queue(self)?;
        page.sessions(self, now)?;
        page.observations(self, now)
    }
}

type Labels<'a> = Vec<(&'a str, String)>;

fn labels<'a, const N: usize>(pairs: [(&'a str, &str); N]) -> Labels<'a> {
    pairs.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()
}

/// Escapes a help text. `prometheus-client` leaves this to the caller, but escapes labels itself.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            // The two formats escape quotes differently, so they are replaced.
            '"' => escaped.push('\''),
            '\n' => escaped.push_str("\\n"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A family of gauges: its metric, its help, its samples.
type Gauges<'a> = (&'a PrometheusMetric, &'a str, Vec<(Labels<'a>, f64)>);

struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
}

/// Name, help and unit of a family.
type Family<'a> = (&'a str, &'a str, Option<&'a Unit>);

impl Page<'_> {
    fn family(
        &mut self,
        (name, help, unit): Family<'_>,
        kind: MetricType,
        each: impl FnOnce(&mut MetricEncoder<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        each(&mut self.encoder.encode_descriptor(name, help, unit, kind)?)
    }

    fn gauges(&mut self, family: Family<'_>, samples: &[(Labels<'_>, f64)]) -> Result<(), Error> {
        self.family(family, MetricType::Gauge, |family| {
            samples.iter().try_for_each(|(labels, value)| match labels.as_slice() {
                [] => family.encode_gauge(value),
                _ => family.encode_family(labels)?.encode_gauge(value),
            })
        })
    }

    fn counters(&mut self, family: Family<'_>, samples: &[(Labels<'_>, u64)]) -> Result<(), Error> {
        self.family(family, MetricType::Counter, |family| {
            samples.iter().try_for_each(|(labels, value)| match labels.as_slice() {
                [] => family.encode_counter::<NoLabelSet, u64, f64>(value, None),
                _ => family.encode_family(labels)?.encode_counter::<NoLabelSet, u64, f64>(value, None),
            })
        })
    }

    fn run(&mut self, state: &State) -> Result<(), Error> {
        let info = &state.info;
        let of_run = labels([("run", &info.run), ("workload", &info.workload), ("headline", &info.headline)]);
        self.family(("kelvin_run", "The current run.", None), MetricType::Info, |family| {
            family.encode_info(&of_run)
        })?;
        let is = |yes: bool| if yes { 1.0 } else { 0.0 };
        let phases = PHASES.map(|(phase, word)| (labels([("phase", word)]), is(state.phase == Some(phase))));
        self.gauges(("kelvin_run_phase", "1 for the current phase of the run.", None), &phases)?;
        let statuses = STATUSES.map(|(status, word)| {
            (labels([("status", word)]), is(state.status.unwrap_or(Status::Partial) == status))
        });
        let help = "1 for the state of the run: how it ended, or running.";
        self.gauges(("kelvin_run_status", help, None), &statuses)?;
        let point = [(Vec::new(), f64::from(state.point))];
        self.gauges(("kelvin_run_point", "Index of the current point of the run, from 0.", None), &point)?;
        self.gauges(
            ("kelvin_users", "Virtual users of the load.", None),
            &[(Vec::new(), f64::from(state.users))],
        )?;
        if let Some(value) = state.headline() {
            let help = "The headline result over the measured window so far, in its own unit.";
            let sample = [(labels([("headline", &info.headline)]), value)];
            self.gauges(("kelvin_headline_throughput", help, None), &sample)?;
        }
        Ok(())
    }

    fn transactions(&mut self, state: &State) -> Result<(), Error> {
        let of_transactions: Vec<(&str, &str, &Counts)> = state
            .counts
            .iter()
            .filter_map(|((kind, part), counts)| {
                let (series, name) = state.series(*kind)?;
                series.is_transaction().then_some((name, *part, counts))
            })
            .collect();
        let mut outcomes = Vec::new();
        for (name, part, counts) in &of_transactions {
            for (outcome, count) in [
                ("committed", counts.committed),
                ("rolled_back", counts.rolled_back),
                ("failed", counts.failed),
            ] {
                outcomes.push((labels([("type", name), ("outcome", outcome), ("part", part)]), count));
            }
        }
        let help = "Transactions that ended, by type and outcome, and by the part of the load: ramp-up, measured, tail.";
        self.counters(("kelvin_transactions", help, None), &outcomes)?;
        let retries: Vec<_> = of_transactions
            .iter()
            .map(|(name, part, counts)| (labels([("type", name), ("part", part)]), counts.retries))
            .collect();
        let help = "Retries after serialization failures, deadlocks and busy locks.";
        self.counters(("kelvin_transaction_retries", help, None), &retries)?;
        let errors: Vec<_> = state
            .errors
            .iter()
            .map(|((kind, class, retried), &count)| {
                let retried = if *retried { "true" } else { "false" };
                (labels([("type", kind), ("class", class), ("retried", retried)]), count)
            })
            .collect();
        let help = "Errors by transaction type and class, and whether the transaction was retried.";
        self.counters(("kelvin_errors", help, None), &errors)
    }

    fn latencies(&mut self, state: &State) -> Result<(), Error> {
        let (mut service, mut response, mut statement, mut lag) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for ((kind, part), counts) in &state.counts {
            let Some((series, of)) = state.series(*kind) else { continue };
            match series.role {
                SeriesRole::Transaction => {
                    service.push((labels([("type", of), ("part", part)]), &counts.latency));
                }
                SeriesRole::Response { .. } => {
                    response.push((labels([("type", of), ("part", part)]), &counts.latency));
                }
                SeriesRole::Statement { .. } => {
                    let of = [("type", of), ("statement", series.name.as_str()), ("part", part)];
                    statement.push((labels(of), &counts.latency));
                }
                SeriesRole::Lag => lag.push((labels([("part", part)]), &counts.latency)),
            }
        }
        for (name, help, histograms) in [
            (
                "kelvin_transaction_service",
                "Service times: from a transaction's first statement to its end, retries included.",
                service,
            ),
            (
                "kelvin_transaction_response",
                "Response times of an open loop: from the scheduled start to the end.",
                response,
            ),
            ("kelvin_statement", "Times of single statements.", statement),
            (
                "kelvin_start_lag",
                "Lateness of the generator itself: from the scheduled start to the actual start.",
                lag,
            ),
        ] {
            if histograms.is_empty() {
                continue;
            }
            self.family((name, help, Some(&Unit::Seconds)), MetricType::Histogram, |family| {
                histograms.iter().try_for_each(|(labels, latency)| {
                    family.encode_family(labels)?.encode_histogram::<NoLabelSet>(
                        latency.sum,
                        latency.count,
                        &latency.buckets(),
                        None,
                    )
                })
            })?;
        }
        Ok(())
    }

    fn queue(&mut self, state: &State) -> Result<(), Error> {
        let Some(queue) = state.arrivals else { return Ok(()) };
        let help = "Transactions due in an open loop.";
        self.counters(("kelvin_arrivals_due", help, None), &[(Vec::new(), queue.due)])?;
        let help = "Arrivals refused because the queue was full.";
        self.counters(("kelvin_arrivals_refused", help, None), &[(Vec::new(), queue.refused)])?;
        let help = "Arrivals waiting for an idle user.";
        self.gauges(("kelvin_arrivals_waiting", help, None), &[(Vec::new(), queue.waiting as f64)])
    }

    fn sessions(&mut self, state: &State, now: Instant) -> Result<(), Error> {
        let sessions: Vec<_> = state
            .sessions(now)
            .into_iter()
            .map(|((backend, class, event), mean)| {
                (labels([("backend", backend), ("class", class), ("event", event)]), mean)
            })
            .collect();
        let help = "Database sessions by wait: the average over the latest samples.";
        self.gauges(("kelvin_sessions", help, None), &sessions)?;
        let of_kind = |kind: &String| labels([("kind", kind)]);
        let ended: Vec<_> = state.occurrences.iter().map(|(kind, o)| (of_kind(kind), o.ended)).collect();
        let help = "Checkpoints, vacuums and similar events that ended.";
        self.counters(("kelvin_occurrences", help, None), &ended)?;
        let going_on = state.occurrences.iter().map(|(kind, o)| (of_kind(kind), o.going_on.len() as f64));
        let going_on: Vec<_> = going_on.collect();
        self.gauges(
            ("kelvin_occurrences_going_on", "Checkpoints, vacuums and similar events in progress.", None),
            &going_on,
        )
    }

    fn observations(&mut self, state: &State, now: Instant) -> Result<(), Error> {
        let mut families: BTreeMap<String, Gauges<'_>> = BTreeMap::new();
        let mut told = BTreeSet::new();
        for (named, help, value) in state.observations(now) {
            let mut family = named.name.clone();
            if let Some(unit) = named.unit {
                // Never fails, since a string can grow.
                write!(family, "_{unit}")?;
            }
            // Prometheus would refuse the page because of a duplicate name.
            if told.insert((family.clone(), &named.labels)) {
                let of = named.labels.iter().map(|(key, value)| (*key, value.clone())).collect();
                families.entry(family).or_insert_with(|| (named, help, Vec::new())).2.push((of, value));
            }
        }
        for (named, help, samples) in families.values() {
            let unit = named.unit.map(|unit| Unit::Other(unit.to_owned()));
            self.gauges((&named.name, &escaped(help), unit.as_ref()), samples)?;
        }
        Ok(())
    }
}
