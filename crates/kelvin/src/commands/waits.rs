//! `kelvin waits`: the waits of a server's sessions under its own load, without a load from Kelvin.

mod table;

use std::collections::BTreeMap;
use std::io::IsTerminal;

use anyhow::{Result, bail};
use kelvin_measure::observation::UnavailableMetrics;
use kelvin_observe::activity::{
    BlockedSession, SampleCounts, ServerActivity, ServerReading, SessionSamples, WaitInputs, WaitReport,
};
use kelvin_report::table::{Table, number};
use kelvin_run::spec::Span;
use serde::Serialize;

use super::sampling::{INTERVAL, Opened, Sampling, TICK, open_server};
use crate::args::{Format, Global, WaitsArgs};
use crate::document::{self, Document};
use crate::exit::Code;
use crate::{out, signal};

/// Seconds between two queries for blocked and blocking sessions.
const BLOCKED_EVERY: f64 = 1.0;

/// Seconds that the end of an interval waits for late samples.
const SAMPLES_LATE: f64 = 1.5;

/// The result.
#[derive(Debug, Serialize)]
struct Waits<'a> {
    target: &'a str,
    product: &'a str,
    #[serde(flatten)]
    report: WaitReport,
    /// Metrics that are unavailable, and why.
    not_seen: Vec<UnavailableMetrics>,
    #[serde(skip)]
    width: usize,
}

/// Samples and counts waits, and prints them.
pub(crate) fn waits(args: &WaitsArgs, global: &Global) -> Result<Code> {
    let format = args.server.format.format();
    check(args, format)?;
    let stop = signal::listen_saying("kelvin: stopping; the totals follow")?;
    let Opened { target, product, sessions, mut server } = open_server(&args.server, global)?;
    let names = Names { target: &target, product: &product, absent: server.absent() };
    let mut counters = Counters::begin(server.as_mut())?;
    let mut sampling = Sampling::start(sessions)?;
    let until = match (args.duration, args.watch) {
        (Some(duration), _) => Some(duration),
        (None, None) => Some(INTERVAL),
        (None, Some(_)) => None,
    };
    let until = until.map(|span| span.duration().as_secs_f64());
    let mut live = args.watch.map(|every| Live::new(every, format));
    while !stop.requested() && until.is_none_or(|until| sampling.seconds() < until) {
        std::thread::sleep(TICK);
        sampling.take();
        let now = sampling.seconds();
        counters.look_at_locks(server.as_mut(), now);
        if let Some(live) = live.as_mut().filter(|live| live.is_due(now, &sampling.samples)) {
            counters.read(server.as_mut());
            live.show(&names, &sampling.samples, &counters, server.as_ref(), now)?;
        }
    }
    let seconds = sampling.seconds();
    let samples = sampling.finish();
    counters.read(server.as_mut());
    if let Some(live) = live {
        live.end()?;
    }
    let inputs = WaitInputs {
        samples: &samples,
        counts: samples.counts(),
        interval: &counters.now.since(&counters.began),
        since_start: &counters.now,
        seconds,
        blocked: counters.all_blocked.into_values().collect(),
    };
    let mut totals = names.waits(WaitReport::new(inputs, server.as_ref()), &samples);
    totals.not_seen.extend(counters.lost);
    document::print(&totals, format)?;
    // Without a duration, a signal is the planned end.
    Ok(if stop.requested() && until.is_some() { Code::Interrupted } else { Code::Success })
}

fn check(args: &WaitsArgs, format: Format) -> Result<()> {
    if args.duration.is_some_and(Span::is_zero) {
        bail!("--duration: an interval of 0s has no waits; write for example 10s");
    }
    let Some(watch) = args.watch else { return Ok(()) };
    if watch < Span::seconds(1) {
        bail!("--watch: the shortest interval is 1s, in which a session is sampled ten times");
    }
    if !matches!(format, Format::Text | Format::Jsonl) {
        bail!("--watch prints text, or with --json one record for each interval; remove --format or --watch");
    }
    Ok(())
}

/// The names that all reports of this server contain.
struct Names<'a> {
    target: &'a str,
    product: &'a str,
    absent: Vec<UnavailableMetrics>,
}

impl Names<'_> {
    fn waits(&self, report: WaitReport, samples: &SessionSamples) -> Waits<'_> {
        let mut not_seen = self.absent.clone();
        not_seen.extend(samples.absent().iter().cloned());
        Waits { target: self.target, product: self.product, report, not_seen, width: out::width() }
    }
}

/// The server's counters, and the blocked sessions with the sessions that block them.
struct Counters {
    began: ServerReading,
    now: ServerReading,
    blocked: Vec<BlockedSession>,
    /// Every blocked pair, in the state of its longest wait.
    all_blocked: BTreeMap<(i64, i64), BlockedSession>,
    looked: f64,
    lost: Option<UnavailableMetrics>,
}

impl Counters {
    fn begin(server: &mut dyn ServerActivity) -> Result<Self> {
        let began = server.read().map_err(anyhow::Error::msg)?;
        Ok(Self {
            now: began.clone(),
            began,
            blocked: Vec::new(),
            all_blocked: BTreeMap::new(),
            looked: 0.0,
            lost: None,
        })
    }

    /// Reads the counters; keeps the previous values if that fails.
    fn read(&mut self, server: &mut dyn ServerActivity) {
        match server.read() {
            Ok(reading) => self.now = reading,
            Err(why) => self.lose("counters", why),
        }
    }

    fn look_at_locks(&mut self, server: &mut dyn ServerActivity, now: f64) {
        if now < self.looked + BLOCKED_EVERY {
            return;
        }
        self.looked = now;
        match server.blocked() {
            Ok(found) => self.blocked = found,
            Err(why) => {
                self.blocked.clear();
                self.lose("who waits for whom", why);
            }
        }
        for one in &self.blocked {
            let kept = self.all_blocked.entry((one.session, one.blocker)).or_insert_with(|| one.clone());
            if one.waited_ms > kept.waited_ms {
                kept.clone_from(one);
            }
        }
    }

    fn lose(&mut self, what: &str, why: String) {
        self.lost.get_or_insert_with(|| UnavailableMetrics { what: what.into(), why });
    }
}

/// Prints the waits of each interval when it ends.
struct Live {
    every: f64,
    due: f64,
    format: Format,
    terminal: bool,
    /// Lines on the screen that the next interval overwrites; if standard output is no terminal, the lines printed so
    /// far.
    lines: usize,
    shown: f64,
    counts: SampleCounts,
    reading: Option<ServerReading>,
}

impl Live {
    fn new(every: Span, format: Format) -> Self {
        let every = every.duration().as_secs_f64();
        Self {
            every,
            due: every,
            format,
            terminal: std::io::stdout().is_terminal(),
            lines: 0,
            shown: 0.0,
            counts: SampleCounts::default(),
            reading: None,
        }
    }

    /// Whether the interval is complete. Samples arrive once a second, so it ends with the first sample after its time;
    /// a server that is down sends none.
    fn is_due(&self, now: f64, samples: &SessionSamples) -> bool {
        let sampled = samples.counts().looks > self.counts.looks;
        now >= self.due && (sampled || now >= self.due + SAMPLES_LATE)
    }

    fn show(
        &mut self,
        names: &Names<'_>,
        samples: &SessionSamples,
        counters: &Counters,
        server: &dyn ServerActivity,
        now: f64,
    ) -> Result<()> {
        // If the server answers slowly, the intervals that it missed are skipped.
        self.due += self.every * (((now - self.due) / self.every).floor() + 1.0);
        let counts = samples.counts().since(&self.counts);
        self.counts = samples.counts().clone();
        let before = self.reading.replace(counters.now.clone());
        let seconds = now - std::mem::replace(&mut self.shown, now);
        let inputs = WaitInputs {
            samples,
            counts: &counts,
            interval: &counters.now.since(before.as_ref().unwrap_or(&counters.began)),
            since_start: &counters.now,
            seconds,
            blocked: counters.blocked.clone(),
        };
        let waits = names.waits(WaitReport::new(inputs, server), samples);
        if self.format == Format::Jsonl {
            return document::print(&waits, self.format);
        }
        if !self.terminal {
            if self.lines.is_multiple_of(20) {
                out::line(table::HEADING)?;
            }
            self.lines += 1;
            return out::line(&table::line(&waits, now));
        }
        let rows = kelvin_live::terminal_size(std::io::stdout()).map_or(24, |(_, rows)| rows);
        let text = table::render(&waits, rows.saturating_sub(1));
        // Each line overwrites one of the previous interval; what is left of that below is cleared.
        let over: String = text.lines().flat_map(|line| [line, "\x1b[K\n"]).collect();
        out::write(&format!("{}{over}\x1b[J", self.back()))?;
        self.lines = text.lines().count();
        Ok(())
    }

    /// The escape sequence that moves the cursor to the first line of the previous interval.
    fn back(&self) -> String {
        if self.lines == 0 { String::new() } else { format!("\r\x1b[{}A", self.lines) }
    }

    /// Clears the last interval, which the totals replace.
    fn end(self) -> Result<()> {
        if self.terminal && self.format == Format::Text {
            out::write(&format!("{}\x1b[J", self.back()))
        } else {
            Ok(())
        }
    }
}

impl Document for Waits<'_> {
    fn text(&self) -> Result<String> {
        Ok(table::render(self, usize::MAX))
    }

    fn records(&self) -> Result<Vec<String>> {
        Ok(vec![serde_json::to_string(self)?])
    }

    /// One row for each class, and one for each event in it.
    fn table(&self) -> Result<Table> {
        let mut table = Table::new(
            "class,event,sessions,share,waits,average_ms,signal_share,since_start_waits,since_start_ms,since_start_average_ms",
        );
        for class in &self.report.classes {
            for row in std::iter::once(&class.sums).chain(&class.events) {
                let since = row.since_start;
                table.rows.push(vec![
                    class.label.to_owned(),
                    row.event.clone(),
                    number(row.sessions),
                    number(row.share),
                    number(row.waits),
                    number(row.average_ms),
                    number(row.signal_share),
                    number(since.map(|since| since.waits)),
                    number(since.and_then(|since| since.total_ms)),
                    number(since.and_then(|since| since.average_ms)),
                ]);
            }
        }
        Ok(table)
    }
}
