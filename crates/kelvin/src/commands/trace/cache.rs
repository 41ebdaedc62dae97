//! `kelvin trace cache`.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use kelvin_measure::text::{NONE, binary, nanos, percent, whole};
use kelvin_report::table::{Table, number};
use kelvin_trace::Trace;
use kelvin_trace::cache::policy::Policy;
use kelvin_trace::cache::{
    Accesses, Curve, Sampled, Sampling, accesses, count_accesses, exact, mean_absolute_error, sample_file,
    sampled,
};
use kelvin_trace::import::MOST;
use serde::Serialize;

use crate::args::{Global, TraceCacheArgs, TracePolicy};
use crate::document::{self, Document};
use crate::exit::Code;
use crate::out;

/// Number of samples, each with a different seed.
const SEEDS: u64 = 5;
/// Default number of sizes.
const SIZES: u64 = 10;
/// Maximum number of accesses, which limits the memory for their blocks.
const MOST_ACCESSES: u64 = 1_000_000_000;

/// Reads a trace, computes the miss ratios and prints them.
pub(super) fn cache(args: &TraceCacheArgs, global: &Global) -> Result<Code> {
    if !args.block.is_power_of_two() || !(512..=1 << 26).contains(&args.block) {
        bail!("a --block of {} is not a power of two between 512 and 64m", args.block);
    }
    if args.sampled_only && args.sample >= 1.0 {
        bail!("--sampled-only needs a --sample below 1");
    }
    let prediction = if args.sampled_only {
        predict_sampled(args, global)?
    } else {
        predict(&super::read(&args.trace, global)?, args)?
    };
    document::print(&prediction, args.format.format())?;
    Ok(Code::Success)
}

/// The miss ratios of a size.
#[derive(Debug, Serialize)]
struct Row {
    size: u64,
    lru: Option<f64>,
    /// Median, lowest and highest of the samples.
    lru_sampled: Option<(f64, f64, f64)>,
    policies: Vec<(Policy, Option<f64>)>,
    /// Mean response time with LRU, in nanoseconds.
    response: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Prediction {
    accesses: u64,
    touched: f64,
    block: u64,
    reads_only: bool,
    sample: Option<f64>,
    /// Mean absolute error of the median sample against the exact curve, and of the best and the worst sample.
    sample_error: Option<(f64, f64, f64)>,
    /// The share of accesses that miss at any size.
    compulsory: f64,
    /// Mean response time of the accesses in the trace, in nanoseconds.
    traced_response: Option<f64>,
    hit_time: u64,
    rows: Vec<Row>,
    notes: Vec<String>,
    #[serde(skip)]
    width: usize,
}

/// Computes exact and sampled miss ratios of a trace in memory.
fn predict(trace: &Trace, args: &TraceCacheArgs) -> Result<Prediction> {
    let which = which(args);
    let total = count_accesses(trace, args.block, which);
    check_accesses(total, args)?;
    let all = || accesses(trace, args.block, which);
    let curve = exact(all());
    let samples = (args.sample < 1.0).then(|| sampled(all(), args.sample, SEEDS));
    let traced = traced_response(trace, which);
    let rows = sizes(&curve, args).into_iter();
    let rows = rows.map(|size| row(size, args, &all, Some(&curve), samples.as_ref(), traced)).collect();
    Ok(Prediction {
        sample_error: samples.as_ref().map(|samples| errors(&curve, samples)),
        ..Prediction::new(total, &curve, samples.as_ref(), traced, rows, args, trace.notes.clone())
    })
}

/// Computes miss ratios of samples that are taken while the trace is read.
fn predict_sampled(args: &TraceCacheArgs, global: &Global) -> Result<Prediction> {
    let (path, window) = super::source(&args.trace, global)?;
    // Requests are not kept in memory, so their number needs no limit.
    let most = if args.trace.max_requests == MOST { usize::MAX } else { args.trace.max_requests };
    let sampling = Sampling {
        rate: args.sample,
        seeds: SEEDS,
        keeps_first: args.policies.iter().any(|policy| *policy != TracePolicy::None),
        which: which(args),
        block: args.block,
        window,
    };
    if !global.quiet {
        out::note("kelvin: reading and sampling the trace");
    }
    let found = sample_file(&path, most, sampling)?;
    check_accesses(found.accesses, args)?;
    let Some(first) = found.sampled.curves.first() else { bail!("nothing to compute") };
    let all = || found.first_sample.iter().copied();
    let one = |size| row(size, args, &all, None, Some(&found.sampled), found.response);
    let rows = sizes(first, args).into_iter().map(one).collect();
    let notes = found.trace.notes.clone();
    Ok(Prediction::new(found.accesses, first, Some(&found.sampled), found.response, rows, args, notes))
}

fn which(args: &TraceCacheArgs) -> Accesses {
    if args.reads { Accesses::Reads } else { Accesses::All }
}

fn check_accesses(total: u64, args: &TraceCacheArgs) -> Result<()> {
    if total == 0 {
        bail!("the trace has no requests that a cache would serve");
    }
    if total > MOST_ACCESSES && !args.sampled_only {
        bail!(
            "{} accesses to blocks of {} are too many: give --sampled-only, a larger --block or a smaller --max-requests",
            whole(total),
            binary(args.block)
        );
    }
    Ok(())
}

/// The requested sizes, or ten sizes up to the footprint: the bytes of all distinct blocks.
fn sizes(curve: &Curve, args: &TraceCacheArgs) -> Vec<u64> {
    let mut sizes = args.sizes.clone();
    if sizes.is_empty() {
        let touched = curve.unique * args.block as f64;
        let tenth = |n| ((touched * n as f64 / SIZES as f64) as u64).next_multiple_of(args.block);
        sizes = (1..=SIZES).map(tenth).collect();
        sizes.dedup();
    }
    sizes
}

impl Prediction {
    fn new(
        accesses: u64,
        curve: &Curve,
        samples: Option<&Sampled>,
        traced_response: Option<f64>,
        rows: Vec<Row>,
        args: &TraceCacheArgs,
        notes: Vec<String>,
    ) -> Self {
        Self {
            accesses,
            touched: curve.unique * args.block as f64,
            block: args.block,
            reads_only: args.reads,
            sample: samples.map(|samples| samples.rate),
            sample_error: None,
            compulsory: curve.floor(),
            traced_response,
            hit_time: args.hit_time.nanos(),
            rows,
            notes,
            width: out::width(),
        }
    }
}

fn row<I: Iterator<Item = u64>>(
    size: u64,
    args: &TraceCacheArgs,
    all: &impl Fn() -> I,
    curve: Option<&Curve>,
    samples: Option<&Sampled>,
    traced: Option<f64>,
) -> Row {
    let blocks = size / args.block;
    let lru = curve.map(|curve| curve.miss_ratio(blocks as f64));
    let lru_sampled = samples.and_then(|samples| samples.miss_ratio(blocks as f64));
    let rate = if args.sampled_only { args.sample } else { 1.0 };
    let simulate = |policy: &TracePolicy| {
        let policy = match policy {
            TracePolicy::None => return None,
            TracePolicy::Arc => Policy::Arc,
            TracePolicy::S3Fifo => Policy::S3Fifo,
        };
        let ratio = if blocks == 0 { Some(1.0) } else { policy.miss_ratio(all(), blocks, rate) };
        Some((policy, ratio))
    };
    let policies = args.policies.iter().filter_map(simulate).collect();
    let miss = lru.or(lru_sampled.map(|(median, ..)| median));
    let hit_time = args.hit_time.nanos() as f64;
    let response = miss.zip(traced).map(|(miss, traced)| miss * traced + (1.0 - miss) * hit_time);
    Row { size, lru, lru_sampled, policies, response }
}

fn errors(curve: &Curve, samples: &Sampled) -> (f64, f64, f64) {
    let median = |blocks| samples.miss_ratio(blocks).map_or(0.0, |(median, ..)| median);
    let mut each: Vec<f64> = samples
        .curves
        .iter()
        .map(|sample| mean_absolute_error(curve, |blocks| sample.miss_ratio(blocks)))
        .collect();
    each.sort_unstable_by(f64::total_cmp);
    let (best, worst) = (each.first().copied().unwrap_or(0.0), each.last().copied().unwrap_or(0.0));
    (mean_absolute_error(curve, median), best, worst)
}

fn traced_response(trace: &Trace, which: Accesses) -> Option<f64> {
    let served = trace.requests.iter().filter(|request| which.has(request));
    let times: Vec<u64> = served.filter_map(kelvin_trace::Request::response).collect();
    (!times.is_empty()).then(|| times.iter().map(|time| *time as f64).sum::<f64>() / times.len() as f64)
}

impl Document for Prediction {
    fn text(&self) -> Result<String> {
        let mut text = String::new();
        let which = if self.reads_only { "reads" } else { "reads and writes" };
        let words = format!(
            "{} accesses of {which} to blocks of {}, {} touched; {} are first accesses, which miss at any \
                size",
            whole(self.accesses),
            binary(self.block),
            binary(self.touched as u64),
            percent(self.compulsory)
        );
        out::wrapped(&mut text, &words, 0, 2, self.width);
        for note in &self.notes {
            out::wrapped(&mut text, &format!("note: {note}"), 0, 2, self.width);
        }
        let _ = write!(text, "\nMiss ratios\n{:>12}{:>9}", "size", "LRU");
        if self.sample.is_some() {
            let _ = write!(text, "{:>11}{:>20}", "sampled", "(lowest–highest)");
        }
        for (policy, _) in self.rows.first().iter().flat_map(|row| &row.policies) {
            let _ = write!(text, "{:>9}", policy.name());
        }
        if self.traced_response.is_some() {
            let _ = write!(text, "{:>14}", "mean response");
        }
        let ratio = |ratio: Option<f64>| ratio.map_or_else(|| NONE.into(), |ratio| format!("{ratio:.4}"));
        for row in &self.rows {
            let _ = write!(text, "\n{:>12}{:>9}", binary(row.size), ratio(row.lru));
            if self.sample.is_some() {
                let (median, low, high) = row.lru_sampled.unwrap_or_default();
                let band = format!("({low:.4}–{high:.4})");
                let _ = write!(text, "{:>11}{band:>20}", ratio(Some(median)));
            }
            for (_, missed) in &row.policies {
                let _ = write!(text, "{:>9}", ratio(*missed));
            }
            if let Some(response) = row.response {
                let _ = write!(text, "{:>14}", nanos(response));
            }
        }
        text.push_str("\n\n");
        if let (Some(rate), Some((median, best, worst))) = (self.sample, self.sample_error) {
            let words = format!(
                "{SEEDS} samples of {} of the blocks: mean absolute error of their median {median:.4}, of each {best:.4} to \
                 {worst:.4}.",
                percent(rate)
            );
            out::wrapped(&mut text, &words, 0, 2, self.width);
        }
        if let Some(traced) = self.traced_response {
            let words = format!(
                "The mean response time is modelled: a hit takes {}, a miss {} as in the trace, regardless \
                    of the load.",
                nanos(self.hit_time as f64),
                nanos(traced)
            );
            out::wrapped(&mut text, &words, 0, 2, self.width);
        }
        let words = "A block trace contains the misses of the caches above it: the results are for a cache \
            in addition to those.";
        out::wrapped(&mut text, words, 0, 2, self.width);
        Ok(text)
    }

    fn records(&self) -> Result<Vec<String>> {
        Ok(vec![serde_json::to_string(self)?])
    }

    fn table(&self) -> Result<Table> {
        let mut table = Table::new("size,lru,lru_sampled,lowest,highest,arc,s3_fifo,mean_response_ns");
        for row in &self.rows {
            let of = |policy| {
                let found = row.policies.iter().find(|(one, _)| *one == policy);
                number(found.and_then(|(_, ratio)| *ratio))
            };
            table.rows.push(vec![
                row.size.to_string(),
                number(row.lru),
                number(row.lru_sampled.map(|all| all.0)),
                number(row.lru_sampled.map(|all| all.1)),
                number(row.lru_sampled.map(|all| all.2)),
                of(Policy::Arc),
                of(Policy::S3Fifo),
                number(row.response),
            ]);
        }
        Ok(table)
    }
}
