//! `kelvin top-sql`: a server's most expensive statements, their plans, and the changes since an earlier
//! measurement.

mod earlier;
mod figures;
mod table;

use std::path::Path;

use anyhow::{Result, bail};
use kelvin_measure::observation::UnavailableMetrics;
use kelvin_observe::activity::{ServerActivity, SessionSamples, StatementCounters, StatementReading, grown};
use kelvin_report::table::{Table, number};
use kelvin_workload::Stop;
use serde::Serialize;

use super::sampling::{INTERVAL, Opened, Sampling, TICK, open_server};
use crate::args::{Global, Measure, PlansOf, TopSqlArgs};
use crate::document::{self, Document};
use crate::exit::Code;
use crate::{out, signal};
use earlier::{Change, Saved};
use figures::{Counted, Statement};

/// The document that is printed.
#[derive(Debug, Serialize)]
struct TopSql {
    target: String,
    product: String,
    /// Whether the server counted the statements; otherwise the sessions were sampled.
    counted: bool,
    /// Why the server does not count statements, and how to enable the counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_counted: Option<String>,
    /// Length of the interval in seconds; `None` for totals since the counters began.
    seconds: Option<f64>,
    /// When the server's counters began, if the values are totals and the server reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    counters_began: Option<String>,
    samples: u64,
    by: Measure,
    /// What the columns of reads and writes contain on this server.
    reads: &'static str,
    writes: &'static str,
    /// Whether CPU time is sampled.
    cpu_is_sampled: bool,
    /// Execution time of all statements, in milliseconds, each counted once.
    total_ms: f64,
    statements: Vec<Statement>,
    /// Statements that were sampled but not counted: they did not end in the interval, or they belong to another
    /// database.
    not_ended: Vec<Statement>,
    /// What changed since the earlier measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Changes>,
    /// Metrics that are unavailable, and why.
    not_seen: Vec<UnavailableMetrics>,
    #[serde(skip)]
    width: usize,
}

/// The earlier measurement, and the differences.
#[derive(Debug, Serialize)]
#[allow(clippy::struct_field_names, reason = "the list is what the type is about")]
struct Changes {
    target: String,
    product: String,
    taken: jiff::Timestamp,
    /// Length of its interval in seconds; `None` for totals.
    seconds: Option<f64>,
    changes: Vec<Change>,
    /// Why plans are not compared, if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    plans_not_compared: Option<&'static str>,
}

/// Samples and counts statements, explains them, compares them with an earlier measurement, and prints the
/// result.
pub(crate) fn top_sql(args: &TopSqlArgs, global: &Global) -> Result<Code> {
    if args.duration.is_some_and(kelvin_run::spec::Span::is_zero) {
        bail!("--duration: in an interval of 0s nothing is counted; write for example 10s, or --since-start");
    }
    let earlier = args.since.as_deref().map(Saved::read).transpose()?;
    let stop = signal::listen_saying("kelvin: stopping; the counts so far follow")?;
    let Opened { target, product, sessions, mut server } = open_server(&args.server, global)?;
    let counters = server.statement_counters();
    check(args, &product, counters.as_ref())?;
    // Totals do not include the sessions' present states.
    let sampling = if args.since_start { None } else { Some(Sampling::start(sessions)?) };
    let measured = measure(args, server.as_mut(), counters.is_ok(), sampling, &stop)?;
    let Measured { grown, samples, seconds } = measured;
    let counted = Counted { grown, samples, seconds, counters: counters.as_ref().ok() };
    let (mut statements, not_ended) =
        counted.statements(args.by, usize::from(args.limit), server.as_mut())?;
    if let Some(whose) = args.plans() {
        plan(&mut statements, server.as_mut(), whose, args.save_plans.as_deref(), global)?;
    }
    let since = earlier.map(|earlier| {
        let changes = earlier.changes(&statements);
        let why = (args.plans().is_none() && earlier.has_plans())
            .then_some("give --plans to compare plans as well");
        Changes {
            target: earlier.target,
            product: earlier.product,
            taken: earlier.taken,
            seconds: earlier.seconds,
            changes,
            plans_not_compared: why,
        }
    });
    let document = TopSql {
        counted: counters.is_ok(),
        not_counted: counters.as_ref().err().cloned(),
        seconds,
        counters_began: counters.as_ref().ok().and_then(|of| of.since.clone()).filter(|_| args.since_start),
        samples: counted.samples.counts().looks,
        by: args.by,
        reads: counters.as_ref().map_or("", |of| of.reads),
        writes: counters.as_ref().map_or("", |of| of.writes),
        cpu_is_sampled: !counters.as_ref().is_ok_and(|of| of.cpu),
        total_ms: counted.total_ms(),
        statements,
        not_ended,
        since,
        not_seen: counters
            .as_ref()
            .map_or_else(|_| counted.samples.absent().to_vec(), |of| of.absent.clone()),
        target,
        product,
        width: out::width(),
    };
    if let Some(path) = &args.save {
        let saved = Saved::new(&document, counted.all_statements(server.as_mut())?);
        out::file(path, &(serde_json::to_string_pretty(&saved)? + "\n"), global.quiet)?;
    }
    document::print(&document, args.server.format.format())?;
    Ok(if stop.requested() { Code::Interrupted } else { Code::Success })
}

/// Refuses an order by a metric that this server does not have.
fn check(args: &TopSqlArgs, product: &str, counters: Result<&StatementCounters, &String>) -> Result<()> {
    let by = match args.by {
        Measure::Reads => "reads",
        Measure::Writes => "writes",
        Measure::Calls => "calls",
        Measure::Cpu => "cpu",
        Measure::Elapsed => "elapsed",
    };
    match counters {
        Err(why) if args.since_start => bail!("--since-start: {product} does not count statements: {why}"),
        Err(why) if !matches!(args.by, Measure::Cpu | Measure::Elapsed) => {
            bail!("--by {by}: {product} does not count statements, and samples show only times: {why}")
        }
        Ok(counters) if args.by == Measure::Cpu && !counters.cpu && args.since_start => bail!(
            "--by cpu: {product} does not count CPU time by statement here; without --since-start it is sampled"
        ),
        Ok(counters) if args.by == Measure::Cpu && !counters.cpu && !counters.sampled_by_id => bail!(
            "--by cpu: {product} does not count CPU time by statement, and does not show which counted \
            statement a session runs"
        ),
        _ => Ok(()),
    }
}

/// The counted and sampled metrics.
struct Measured {
    grown: StatementReading,
    samples: SessionSamples,
    /// Length of the interval in seconds; `None` for totals.
    seconds: Option<f64>,
}

fn measure(
    args: &TopSqlArgs,
    server: &mut dyn ServerActivity,
    counted: bool,
    sampling: Option<Sampling>,
    stop: &Stop,
) -> Result<Measured> {
    let mut read = || {
        if counted { server.statements().map_err(anyhow::Error::msg) } else { Ok(StatementReading::new()) }
    };
    let opened = if sampling.is_some() { read()? } else { StatementReading::new() };
    let (mut samples, mut seconds) = (SessionSamples::default(), None);
    if let Some(mut sampling) = sampling {
        let until = args.duration.unwrap_or(INTERVAL).duration().as_secs_f64();
        while !stop.requested() && sampling.seconds() < until {
            std::thread::sleep(TICK);
            sampling.take();
        }
        seconds = Some(sampling.seconds());
        samples = sampling.finish();
    }
    let closed = read()?;
    Ok(Measured { grown: grown(&opened, &closed), samples, seconds })
}

/// Requests the plan of each statement, and saves the plans in `directory` if there is one.
fn plan(
    statements: &mut [Statement],
    server: &mut dyn ServerActivity,
    whose: PlansOf,
    directory: Option<&Path>,
    global: &Global,
) -> Result<()> {
    if let Some(directory) = directory {
        out::directory(directory)?;
    }
    let mut saved = 0;
    for one in statements {
        match server.plan(one.number, whose == PlansOf::All) {
            Ok(found) => {
                if let Some(directory) = directory {
                    for (end, content) in &found.files {
                        let name = format!("{}-{}.{end}", one.query, found.plan.hash);
                        out::private(&directory.join(name), content)?;
                        saved += 1;
                    }
                }
                one.plan = Some(found.plan.hash);
                one.plan_text = Some(found.plan.text);
            }
            // A server's message may have hints below it, which are for the author of the statement.
            Err(why) => one.no_plan = why.lines().next().map(str::to_owned),
        }
    }
    if let Some(directory) = directory.filter(|_| !global.quiet) {
        out::note(&format!("wrote {saved} files to {}", directory.display()));
    }
    Ok(())
}

impl Document for TopSql {
    fn text(&self) -> Result<String> {
        Ok(table::render(self))
    }

    fn records(&self) -> Result<Vec<String>> {
        Ok(vec![serde_json::to_string(self)?])
    }

    /// One row for each statement.
    fn table(&self) -> Result<Table> {
        let mut table =
            Table::new("query,calls,mean_ms,elapsed_ms,share,cpu_ms,rows,reads,writes,log_bytes,plan,text");
        for one in &self.statements {
            table.rows.push(vec![
                one.query.clone(),
                number(one.calls),
                number(one.mean_ms),
                number(Some(one.elapsed_ms)),
                number(one.share),
                number(one.cpu_ms),
                number(one.rows),
                number(one.reads),
                number(one.writes),
                number(one.log_bytes),
                one.plan.clone().unwrap_or_default(),
                one.text.clone(),
            ]);
        }
        Ok(table)
    }
}
