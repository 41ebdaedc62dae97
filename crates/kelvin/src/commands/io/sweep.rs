//! `kelvin io sweep`: one run for each combination of some options, or a curve of rates, stored as a group.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use kelvin_lab::{Bench, BenchError, Measured, Planned, bench};
use kelvin_measure::text::{count, duration, significant};
use kelvin_run::Spec;
use kelvin_run::spec::{Setting, Work};
use kelvin_storage::jobfile;
use kelvin_store::{GroupId, GroupKind, GroupSlot, NewGroup, Store};

use super::run::spec;
use super::{INTERRUPTED, USAGE};
use crate::args::io::{SweepArgs, texts};
use crate::args::{Format, Global};
use crate::exit::Stopped;
use crate::group::{self, Axis, SweepPlan};
use crate::measure::{self, WithMetrics};
use crate::{out, paths, signal};

/// More combinations than this are considered a mistake.
const MOST: usize = 1000;
/// Overhead of a run besides its load: probes, layout, the store.
const BESIDE: Duration = Duration::from_millis(300);

/// One run.
#[derive(Debug, Clone)]
struct Cell {
    /// Its label in the group: "bs=4k iodepth=8", "maximum", "50%".
    name: String,
    /// Options added to every job.
    set: Vec<(String, String)>,
}

impl Cell {
    fn spec(&self, base: &Spec) -> Spec {
        let mut spec = base.clone();
        if let Work::Io(io) = &mut spec.work {
            let set = self.set.iter();
            io.set.extend(set.map(|(option, value)| (option.clone(), Setting::Text(value.clone()))));
        }
        spec
    }
}

/// Makes the runs and prints the table.
pub(super) fn sweep(args: &SweepArgs, global: &Global) -> Result<ExitCode> {
    let words = texts(&args.words)?;
    let parsed = jobfile::parse_arguments(&words)?;
    if args.flags.load.fleet.is_given() {
        bail!("a sweep of I/O jobs runs on this host; omit the flags of a fleet");
    }
    let base = spec(&parsed, &args.flags)?;
    let plan = SweepPlan::from_args(args, &base)?;
    let cells = plan.cells();
    for cell in &cells {
        cell.spec(&base).validate().with_context(|| cell.name.clone())?;
        bench::suits(&cell.spec(&base)).map_err(|why| anyhow!(why))?;
    }
    if plan.curve.is_some() {
        suits_curve(&base)?;
    }
    if args.flags.load.print_spec {
        out::write(&base.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = signal::listen()?;
    let live = kelvin_live::for_run(global.quiet, args.flags.load.output.events());
    let mut live = WithMetrics::around(live, args.flags.load.metrics)?;
    let store = Store::open(paths::store(global.store.as_deref())?)?;
    let group = store.begin_group(&NewGroup {
        kind: GroupKind::Sweep,
        name: base.label.clone(),
        created: jiff::Timestamp::now(),
        body: serde_json::to_value(&plan)?,
    })?;
    let runs = plan.runs();
    let planned: Option<Duration> = cells.iter().map(|cell| cell.spec(&base).planned()).sum();
    // Each rate of a curve takes as long as the run that finds the highest rate.
    let planned = planned.map(|planned| planned * (runs / cells.len().max(1)) as u32 + BESIDE * runs as u32);
    let takes = planned.map_or("their duration is known after the first".into(), |planned| {
        format!("at most about {}", duration(planned.as_secs_f64()))
    });
    live.message(&format!("group {group}: {}; {takes}", count(runs, "run")));
    let mut bench = measure::bench(&store, &mut *live, &stop)
        .in_history(args.flags.history()?)
        .destroying(&args.flags.i_know_it_destroys);
    let ended = make(&plan, &base, cells, group, &mut bench);
    drop(bench);
    let failed = match ended {
        Ok(failed) => failed,
        Err(BenchError::Interrupted) if store.members(group)?.is_empty() => {
            return Err(Stopped("interrupted before the first run ended".into()).into());
        }
        Err(BenchError::Interrupted) => {
            show(&store, group, args.flags.load.output.format())?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Err(BenchError::Failed(error)) => return Err(anyhow!(error)),
    };
    show(&store, group, args.flags.load.output.format())?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(USAGE) })
}

fn show(store: &Store, group: GroupId, format: Format) -> Result<()> {
    group::show(store, &group.to_string(), format)?;
    if format != Format::Text {
        return Ok(());
    }
    let kelvin = paths::kelvin_command(store.path());
    out::line(&format!("Again:  {kelvin} groups {group}   One run:  {kelvin} show RUN"))
}

/// Makes the runs. Returns the number of those that could not be made or do not count.
fn make(
    plan: &SweepPlan,
    base: &Spec,
    cells: Vec<Cell>,
    group: GroupId,
    bench: &mut dyn Bench,
) -> Result<usize, BenchError> {
    let began = Instant::now();
    let total = plan.runs();
    let mut waiting: std::collections::VecDeque<Cell> = cells.into();
    let (mut made, mut failed) = (0_usize, 0);
    while let Some(cell) = waiting.pop_front() {
        if bench.stopped() {
            return Err(BenchError::Interrupted);
        }
        let slot = GroupSlot { place: made as u32, block: 0, treatment: cell.name.clone() };
        let spec = cell.spec(base);
        let result = match bench.measure(&Planned { spec: &spec, group, slot: &slot, metrics: &[] }) {
            Ok(measured) => {
                if made == 0 && plan.curve.is_some() {
                    let cells =
                        plan.rates(base, &measured).map_err(|error| BenchError::Failed(error.into()))?;
                    waiting.extend(cells);
                }
                failed += usize::from(!measured.counts());
                describe_run(&cell, &measured)
            }
            Err(BenchError::Failed(error)) if made > 0 => {
                failed += 1;
                format!("{}: the run could not be completed: {error}", cell.name)
            }
            Err(error) => return Err(error),
        };
        made += 1;
        let left = began.elapsed().as_secs_f64() / made as f64 * total.saturating_sub(made) as f64;
        let left = if made < total { format!(" · about {} left", duration(left)) } else { String::new() };
        bench.report(&format!("{result} · {made} of {total}{left}"));
    }
    Ok(failed)
}

fn describe_run(cell: &Cell, measured: &Measured) -> String {
    let figure = measured.figures.first();
    let value = figure.and_then(|figure| figure.value).map_or("–".into(), significant);
    let void = if measured.counts() { String::new() } else { format!(", {}", measured.judgement.describe()) };
    format!("{}, run {}: {value} IOPS{void}", cell.name, measured.run)
}

impl SweepPlan {
    fn from_args(args: &SweepArgs, base: &Spec) -> Result<Self> {
        let given = [
            ("bs", &args.bs),
            ("iodepth", &args.iodepth),
            ("rwmixread", &args.rwmixread),
            ("numjobs", &args.numjobs),
        ];
        let axes: Vec<Axis> = given
            .into_iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(option, values)| Axis { option: option.into(), values: values.clone() })
            .collect();
        let curve = args.rate_curve.as_ref().map(|percents| percents.0.clone());
        if axes.is_empty() && curve.is_none() {
            bail!(
                "nothing to sweep: give values for --bs, --iodepth, --rwmixread or --numjobs, or --rate-curve 10..100%"
            );
        }
        for axis in &axes {
            for (index, value) in axis.values.iter().enumerate() {
                if value.is_empty()
                    || value.contains(char::is_whitespace)
                    || axis.values[..index].contains(value)
                {
                    bail!("--{}: {value:?} is empty, or given twice", axis.option);
                }
            }
        }
        if axes.iter().any(|axis| axis.option == "rwmixread") {
            let jobs = base.jobs()?;
            if let Some(job) = jobs.jobs.iter().find(|job| !(job.pattern.reads && job.pattern.writes)) {
                bail!("--rwmixread: job {} does not mix reads and writes (rw=randrw or rw=rw)", job.name);
            }
        }
        let plan = Self { spec: base.to_toml(), axes, curve };
        if plan.runs() > MOST {
            bail!("too many combinations: {} ({MOST} allowed)", plan.runs());
        }
        Ok(plan)
    }

    /// The number of runs.
    fn runs(&self) -> usize {
        match &self.curve {
            Some(curve) => 1 + curve.len(),
            None => self.axes.iter().map(|axis| axis.values.len()).product(),
        }
    }

    /// The runs that are known in advance: all runs of a sweep, or for a curve the run that finds the highest rate.
    fn cells(&self) -> Vec<Cell> {
        if self.curve.is_some() {
            return vec![Cell { name: MAXIMUM.into(), set: Vec::new() }];
        }
        let mut cells = vec![Cell { name: String::new(), set: Vec::new() }];
        for Axis { option, values } in &self.axes {
            let each = |cell: &Cell| -> Vec<Cell> {
                let one = |value: &String| {
                    let mut set = cell.set.clone();
                    set.push((option.clone(), value.clone()));
                    let name: Vec<String> = set.iter().map(|(o, v)| format!("{o}={v}")).collect();
                    Cell { name: name.join(" "), set }
                };
                values.iter().map(one).collect()
            };
            cells = cells.iter().flat_map(each).collect();
        }
        cells
    }

    /// The runs of a curve, once the highest rate is known.
    fn rates(&self, base: &Spec, maximum: &Measured) -> Result<Vec<Cell>> {
        let highest = maximum.value("iops").filter(|iops| *iops > 0.0);
        let highest = highest.context("the run that measures the highest rate did no I/O")?;
        let jobs = base.jobs()?;
        let job = jobs.jobs.first().context("there is no job")?;
        // Each worker has a separate limit for each direction.
        let share = highest / f64::from(job.clones.max(1));
        let reads = match (job.pattern.reads, job.pattern.writes) {
            (true, true) => job.pattern.mix_read / 100.0,
            (reads, _) => f64::from(u8::from(reads)),
        };
        let cell = |percent: &f64| {
            let rate = share * percent / 100.0;
            let of = |part: f64| ((rate * part).round() as u64).max(1);
            Cell {
                name: format!("{}%", significant(*percent)),
                set: vec![
                    ("rate_iops".into(), format!("{},{},{}", of(reads), of(1.0 - reads), of(1.0))),
                    ("rate_process".into(), "poisson".into()),
                ],
            }
        };
        Ok(self.curve.iter().flatten().map(cell).collect())
    }
}

/// The treatment of the run that finds the highest rate.
const MAXIMUM: &str = "maximum";

/// A total rate can be distributed evenly only among clones of one job.
fn suits_curve(base: &Spec) -> Result<()> {
    let jobs = base.jobs()?;
    let [job] = jobs.jobs.as_slice() else {
        bail!(
            "--rate-curve takes one job (numjobs may be larger): a rate cannot be divided among different \
             jobs"
        );
    };
    if job.rate.limits() {
        bail!("job {} sets a rate; remove it: a rate curve first measures the highest rate", job.name);
    }
    if job.course.runtime.is_none() || !job.course.time_based {
        bail!(
            "job {} needs runtime=… and time_based for a rate curve: at 10 % of the rate, a fixed size takes \
             ten times as long",
            job.name
        );
    }
    Ok(())
}
