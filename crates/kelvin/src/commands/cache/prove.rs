//! Predicts the misses of larger caches from a run's trace, and writes a study that measures them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kelvin_lab::study::Folder;
use kelvin_measure::text::{binary, percent, whole, whole_unit};
use kelvin_run::{Environment, Spec};
use kelvin_store::{RunId, Store};
use kelvin_trace::attribution::FileClass;
use kelvin_trace::cache::{Growth, blocks};

use super::run_size::RunSize;
use super::{CachePrediction, PREDICTED_AT_LEAST, PREDICTION, PredictedSize, data_class, reads};
use crate::args::{CacheProveArgs, Global};
use crate::commands::trace::{RunTrace, run_trace};
use crate::exit::Code;
use crate::{out, paths};

/// Predicts the misses, and writes the study's folder.
pub(super) fn prove(args: &CacheProveArgs, global: &Global) -> Result<Code> {
    let folder = args.study.as_deref();
    let folder = folder.context("give --sizes, and --study DIR for the study to be written")?;
    check_sizes(args)?;
    let wanted = args.run.to_str().unwrap_or_default();
    let path = paths::store(global.store.as_deref())?;
    let store = Store::open_read_only(&path)?;
    let run = store.find(wanted)?;
    let info = store.load(run)?.info;
    let spec = Spec::parse(&info.spec_toml, wanted)?;
    let levels = Levels::from_args(args)?;
    let traced = run_trace(&path, &store, run)?;
    let data = data_class(&traced.trace).with_context(|| {
        format!(
            "the trace of run {run} has no reads of database files: cached pages are not read from \
            storage"
        )
    })?;
    let setting = args.setting.as_deref().unwrap_or(match data.0 {
        FileClass::InnodbData => "innodb_buffer_pool_size",
        _ => "shared_buffers",
    });
    // The environment is `None` if another version stored it in a different form.
    let environment = serde_json::from_value::<Environment>(info.environment).ok();
    let size = match &levels.limit {
        Some((file, _)) => RunSize::from_group(file, environment.as_ref()),
        None => RunSize::from_setting(setting, environment.as_ref()),
    };
    let checked = size.check(run, args.sizes.first().copied().unwrap_or_default())?;
    let prediction = predict(args, run, &traced, &levels, data)?;
    // The run's file is written first, because the study names it.
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    write_new(&folder.join("run.toml"), &spec.to_toml())?;
    let text = study_toml(args, &spec, &prediction, &levels, setting, folder);
    let (folder, _) = Folder::create(folder, &text)?;
    write_new(&folder.path().join(PREDICTION), &(serde_json::to_string_pretty(&prediction)? + "\n"))?;
    let mut text = describe(&prediction, &checked);
    let (shown, commands) =
        (folder.path().display(), if levels.limit.is_some() { " --allow-commands" } else { "" });
    let _ = writeln!(
        text,
        "\nWritten to {shown}/study.toml. As root:\n  kelvin study run {shown}{commands}\n  kelvin cache prove {shown}"
    );
    out::write(&text)?;
    Ok(Code::Success)
}

fn check_sizes(args: &CacheProveArgs) -> Result<()> {
    if args.sizes.len() < 2 || !args.sizes.is_sorted_by(|a, b| a < b) {
        bail!("--sizes needs two sizes or more in ascending order, the first that of the run");
    }
    if args.sizes.first().is_some_and(|first| *first <= args.other_memory) {
        bail!(
            "the smallest size leaves no room for a cache with --other-memory {}",
            binary(args.other_memory)
        );
    }
    if !(0.0..1.0).contains(&args.within) {
        bail!("--within {} is not between 0 and 1", args.within);
    }
    if args.block.is_some_and(|block| !block.is_power_of_two() || !(512..=1 << 26).contains(&block)) {
        bail!("a --block of {} is not a power of two between 512 and 64m", args.block.unwrap_or(0));
    }
    Ok(())
}

/// How the study sets the sizes.
struct Levels {
    /// The file of the control group's limit, and its present content.
    limit: Option<(PathBuf, String)>,
}

impl Levels {
    fn from_args(args: &CacheProveArgs) -> Result<Self> {
        let Some(group) = &args.control_group else { return Ok(Self { limit: None }) };
        let group = group.canonicalize().with_context(|| format!("--control-group {}", group.display()))?;
        let files = ["memory.max", "memory.limit_in_bytes"].map(|name| group.join(name));
        let found = files.into_iter().find_map(|file| Some((std::fs::read_to_string(&file).ok()?, file)));
        let Some((now, file)) = found else {
            bail!(
                "{} has no memory.max and no memory.limit_in_bytes: no control group with memory",
                group.display()
            );
        };
        if file.to_str().is_none_or(|file| file.contains(['\'', '\n'])) {
            bail!("the path {} cannot be written into a command", file.display());
        }
        Ok(Self { limit: Some((file, now.trim().to_owned())) })
    }
}

fn predict(
    args: &CacheProveArgs,
    run: RunId,
    traced: &RunTrace,
    levels: &Levels,
    (class, name): (FileClass, String),
) -> Result<CachePrediction> {
    let trace = &traced.trace;
    let Some(window) = &traced.window else {
        bail!("run {run} was made by a version of Kelvin that did not store its window with the trace");
    };
    let page = match class {
        _ if levels.limit.is_some() => 4096,
        FileClass::InnodbData => 16_384,
        FileClass::PostgresData => 8192,
        _ => 4096,
    };
    let block = args.block.unwrap_or(page);
    let accesses = reads(trace, &name).flat_map(|request| {
        let counts = window.contains(&trace.origin.saturating_add(request.at));
        blocks(request, block).map(move |block| (block, counts))
    });
    let growth = Growth::from_accesses(accesses);
    let of_run = args.sizes.first().copied().unwrap_or_default() - args.other_memory;
    let mut sizes = Vec::new();
    for size in &args.sizes {
        let bytes = size - args.other_memory;
        let range = growth.miss_range(bytes / block).filter(|_| growth.accesses() >= PREDICTED_AT_LEAST);
        let Some(range) = range else {
            bail!(
                "only {} pages of {name} were read in the window of run {run}: nothing can be predicted",
                whole(growth.accesses())
            );
        };
        let most = growth.most_misses(of_run / block, bytes / block).unwrap_or(1.0);
        let is_first = sizes.is_empty();
        let one = kelvin_trace::cache::MissRange { low: 1.0, high: 1.0 };
        let misses = if is_first { one } else { range };
        sizes.push(PredictedSize {
            level: whole_unit(*size).replace(' ', ""),
            bytes,
            misses,
            most: if is_first { 1.0 } else { most },
        });
    }
    Ok(CachePrediction { run: run.0, class: name, block, accesses: growth.accesses(), sizes })
}

/// The study as TOML: one factor, with a level for each size.
fn study_toml(
    args: &CacheProveArgs,
    spec: &Spec,
    prediction: &CachePrediction,
    levels: &Levels,
    setting: &str,
    folder: &Path,
) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let name = folder.file_name().map_or_else(|| "cache".into(), |name| name.to_string_lossy().into_owned());
    let headline = spec.workload().headline();
    let list: Vec<String> = args
        .sizes
        .iter()
        .zip(&prediction.sizes)
        .map(|(size, predicted)| match &levels.limit {
            Some((file, now)) => {
                let write = |value: &str| quoted(&format!("echo {value} > '{}'", file.display()));
                let (apply, undo) = (write(&size.to_string()), write(now));
                format!("{} = {{ apply = {apply}, undo = {undo} }}", quoted(&predicted.level))
            }
            None if prediction.class == FileClass::PostgresData.name() => {
                format!("{} = {}", quoted(&predicted.level), quoted(&format!("{}kB", size >> 10)))
            }
            None => format!("{} = {size}", quoted(&predicted.level)),
        })
        .collect();
    let how = match levels.limit {
        Some(_) => "command = true".to_owned(),
        None => format!("setting = {}", quoted(setting)),
    };
    let level = |size: Option<&PredictedSize>| size.map_or_else(String::new, |size| quoted(&size.level));
    let (first, last) = (level(prediction.sizes.first()), level(prediction.sizes.last()));
    let share = prediction.sizes.last().map_or(1.0, PredictedSize::predicted);
    format!(
        "# Written by kelvin cache prove from run {run}. The predicted misses are in {PREDICTION}; after the runs,\n\
         # `kelvin cache prove DIR` compares them with what was read.\n\
         name = {name}\nquestion = \"Does a larger cache reduce reads as much as the trace of run {run} predicts?\"\nrun = \"run.toml\"\n\n\
         [goal]\nmetric = \"{headline}\"\ndirection = \"higher\"\nsmallest-effect = \"3%\"\n\n\
         [hypothesis]\nstatement = \"With the largest cache, reads per transaction are {percent} of those with the smallest, and the throughput is at least 3 % higher\"\nmechanism = \"cached pages are not read from storage\"\n\
         factor = \"cache\"\nfrom = {first}\nto = {last}\nrivals = [\"storage does not limit the throughput\"]\n\
         predicts = [{{ metric = \"{headline}\", direction = \"higher\", by = \"3%\" }}]\n\n\
         [[factor]]\nname = \"cache\"\n{how}\n[factor.levels]\n{levels}\n\n\
         [design]\nkind = \"{kind}\"\nblocks = {blocks}\nseed = 1\ncontrol = false\nassumed-cv = \"5%\"\n",
        run = prediction.run,
        name = quoted(&name),
        percent = percent(share),
        levels = list.join("\n"),
        kind = if args.sizes.len() == 2 { "ab" } else { "sweep" },
        blocks = args.blocks,
    )
}

fn describe(prediction: &CachePrediction, checked: &str) -> String {
    let mut text = format!(
        "{} reads of {} of {} in the window of run {}\n\n{:>12}{:>12}{:>20}{:>10}\n",
        whole(prediction.accesses),
        binary(prediction.block),
        prediction.class,
        prediction.run,
        "size",
        "predicted",
        "(ramp-up)",
        "at most"
    );
    for size in &prediction.sizes {
        let range = format!("({:.3}–{:.3})", size.misses.low, size.misses.high);
        let _ = writeln!(text, "{:>12}{:>12.3}{range:>20}{:>10.3}", size.level, size.predicted(), size.most);
    }
    text += "\nReads per transaction as a share of those at the first size. The range is the uncertainty \
        caused by a short ramp-up; it does not include the error caused by accesses\nthat were hits at the \
            first size, which are not in the trace.\n";
    text + checked + "\n"
}

fn write_new(path: &Path, text: &str) -> Result<()> {
    crate::commands::trace::write_new(path, text.as_bytes())
}
