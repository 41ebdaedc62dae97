//! `kelvin io plot`: charts of logs, results and stored runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use kelvin_report::RunReport;
use kelvin_report::plot::{Inputs, JobMeasurement, LONGEST, Painter, is_log, page, read};
use kelvin_run::Spec;
use kelvin_storage::output::read::parse_json;
use kelvin_store::{GroupId, Store};

use crate::args::Global;
use crate::args::io_plot::PlotArgs;
use crate::{out, paths};

/// With more runs than this, charts over time are not drawn, only charts that compare the runs.
const MOST_OVER_TIME: usize = 8;

/// Reads everything, then writes the charts and the page.
pub(crate) fn plot(args: &PlotArgs, global: &Global) -> Result<ExitCode> {
    let mut inputs = Inputs::default();
    let mut notes = Vec::new();
    let (mut files, mut runs) = (Vec::new(), Vec::new());
    for what in &args.what {
        let path = Path::new(what);
        if path.is_dir() {
            directory(path, &mut files, &mut notes)?;
        } else if path.exists() {
            files.push(path.to_owned());
        } else if what.contains('/') || is_log(what) || is_result(path) {
            bail!("{what}: no such file");
        } else {
            runs.extend(stored(what, global)?);
        }
    }
    for (path, name) in label_files(files)? {
        file(&path, &name, &mut inputs, &mut notes)?;
    }
    for report in &runs {
        let spec = Spec::parse(&report.recipe.spec_toml, "the stored specification").ok();
        let jobs = spec.and_then(|spec| spec.jobs().ok()).unwrap_or_default();
        inputs.run(report, &jobs, runs.len() <= MOST_OVER_TIME);
    }
    let charts = inputs.charts();
    if charts.is_empty() {
        bail!(
            "nothing to draw: the results contain nothing that a chart could show (a single result without \
             times)"
        );
    }
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot create {}", args.out.display()))?;
    let title = args.title.clone().unwrap_or_else(|| args.what.join(", "));
    let painter = args.png.then(Painter::new).transpose()?;
    for chart in &charts {
        write(&args.out, &format!("{}.svg", chart.name), chart.svg.as_bytes())?;
        if let Some(painter) = &painter {
            write(&args.out, &format!("{}.png", chart.name), &painter.png(chart)?)?;
        }
    }
    let index = write(&args.out, "index.html", page(&title, &charts, &notes).as_bytes())?;
    if !global.quiet {
        for note in &notes {
            out::note(&format!("note: {note}"));
        }
        let kinds = if args.png { "SVG and PNG" } else { "SVG" };
        out::line(&format!("{} charts ({kinds}), listed on {}", charts.len(), index.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn is_result(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "json")
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let path = directory.join(name);
    std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Labels that distinguish the files: the name, and if names are equal, as much of the path as necessary. A file that
/// is given twice is drawn once.
fn label_files(files: Vec<PathBuf>) -> Result<Vec<(PathBuf, String)>> {
    let mut known: Vec<(PathBuf, PathBuf)> = Vec::new();
    for path in files {
        let real = path.canonicalize().with_context(|| format!("cannot read {}", path.display()))?;
        if known.iter().all(|(_, other)| *other != real) {
            known.push((path, real));
        }
    }
    let tail = |real: &Path, parts: usize| -> PathBuf {
        let all: Vec<_> = real.components().collect();
        all[all.len().saturating_sub(parts)..].iter().collect()
    };
    let name = |real: &Path| {
        let most = real.components().count();
        let is_alone = |parts: &usize| {
            known.iter().filter(|(_, other)| tail(other, *parts) == tail(real, *parts)).count() < 2
        };
        tail(real, (1..most).find(is_alone).unwrap_or(most)).to_string_lossy().into_owned()
    };
    Ok(known.iter().map(|(path, real)| (path.clone(), name(real))).collect())
}

fn file(path: &Path, label: &str, inputs: &mut Inputs, notes: &mut Vec<String>) -> Result<()> {
    let shown = path.display().to_string();
    let data = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    // A pipe or a device may have no end.
    if !data.is_file() {
        bail!("{shown}: neither a file nor a directory");
    }
    if data.len() > LONGEST {
        bail!("{shown}: {} bytes is too large; write logs with log_avg_msec", data.len());
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let is_json = !is_log(&name) && bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if is_json || is_result(path) {
        let parsed = parse_json(&String::from_utf8_lossy(&bytes), Some(path))?;
        // The last dump of periodic dumps contains the earlier ones.
        if let Some(result) = parsed.results.last() {
            inputs.measured(JobMeasurement::from_result(label.trim_end_matches(".json"), result));
        }
        return Ok(());
    }
    let mut log = read(&name, &shown, &bytes)?;
    label.clone_into(&mut log.name);
    notes.extend(log.notes.iter().cloned());
    inputs.log(&log);
    Ok(())
}

/// Adds all logs and results of a directory. Other files are ignored; an empty log is reported and is not an error.
fn directory(path: &Path, files: &mut Vec<PathBuf>, notes: &mut Vec<String>) -> Result<()> {
    let read = || format!("cannot read {}", path.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).with_context(read)? {
        let path = entry.with_context(read)?.path();
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        if path.is_file() && (is_log(&name) || is_result(&path)) {
            found.push(path);
        }
    }
    if found.is_empty() {
        bail!("{}: contains no logs (NAME_bw.log …) and no results (.json)", path.display());
    }
    found.sort();
    for path in found {
        if std::fs::metadata(&path).is_ok_and(|data| data.len() == 0) {
            notes.push(format!("{} is empty and was skipped", path.display()));
            continue;
        }
        files.push(path);
    }
    Ok(())
}

fn stored(what: &str, global: &Global) -> Result<Vec<RunReport>> {
    let store = Store::open_read_only(&paths::store(global.store.as_deref())?)
        .with_context(|| format!("{what} is not a file, and there are no stored runs"))?;
    let runs = match what.strip_prefix("group:") {
        Some(number) => {
            let id = number
                .parse()
                .with_context(|| format!("{what}: write group:N, as listed by kelvin groups"))?;
            let members = store.members(GroupId(id))?;
            members.into_iter().filter(|member| member.void.is_none()).map(|member| member.run).collect()
        }
        None => vec![store.find(what).with_context(|| format!("{what} is neither a file nor a stored run"))?],
    };
    if runs.is_empty() {
        bail!("{what}: no counted runs");
    }
    let mut reports = Vec::with_capacity(runs.len());
    for run in runs {
        let report = RunReport::load(&store, run)?;
        if !report.is_io() {
            bail!(
                "run {run} is a {} run: use kelvin report; kelvin io plot draws I/O jobs",
                report.workload_name()
            );
        }
        reports.push(report);
    }
    Ok(reports)
}
