//! From a draft to a job: options that depend on each other are resolved here.

use kelvin_measure::SECOND;
use std::path::{Path, PathBuf};

use super::check::{self, MOST_FILES};
use super::draft::Draft;
use super::lines::problem;
use super::special::priorities;
use super::table;
use crate::error::{Location, Result};
use crate::job::{Distribution, EngineName, Job, VerifyMethod};
use crate::{Direction, PerDirection};

/// Resolves the options, and refuses contradictory ones.
pub(crate) fn finish(mut draft: Draft, notes: &mut Vec<String>) -> Result<Job> {
    let sizes = Direction::ALL.map(|direction| draft.block_sizes(direction));
    draft.job.blocks.sizes = PerDirection(sizes);
    engine_options(&mut draft, notes)?;
    targets(&mut draft)?;
    verify_interval(&mut draft, notes);
    check::draft(&draft)?;
    pattern(&mut draft, notes);
    buffers(&mut draft);
    depth(&mut draft, notes);
    pauses(&mut draft, notes);
    logs(&mut draft, notes);
    process(&mut draft);
    remarks(&draft, notes);
    Ok(draft.job)
}

fn note(draft: &Draft, option: &str, notes: &mut Vec<String>, text: &str) {
    notes.push(format!("{}: {option}: {text}", draft.location_of(option)));
}

/// Options of an engine that the job does not use: those of the job itself are an error, those of `[global]` may be
/// meant for other jobs.
fn engine_options(draft: &mut Draft, notes: &mut Vec<String>) -> Result<()> {
    let name = draft.job.engine.name.word();
    let mut without_effect = Vec::new();
    for (option, written) in &draft.written {
        let Some(entry) = table::find(option) else { continue };
        if entry.engines.is_empty() || entry.engines.contains(&name) {
            continue;
        }
        let engines = entry.engines.join(" and ");
        let text = format!(
            "{option} is an option of {engines}, but the ioengine of job {:?} is {name}",
            draft.job.name
        );
        if written.own {
            return Err(problem(&written.place, text));
        }
        notes.push(format!("{}: {text}: it has no effect", written.place));
        without_effect.push(*option);
    }
    for option in without_effect {
        forget(draft, option);
    }
    Ok(())
}

/// Removes an engine's option, so that no other engine uses it.
fn forget(draft: &mut Draft, option: &str) {
    draft.written.remove(option);
    let engine = &mut draft.job.engine;
    match option {
        "fixedbufs" => engine.fixed_buffers = None,
        "registerfiles" => engine.register_files = None,
        "sqthread_poll" => engine.sq_poll = false,
        "sqthread_poll_cpu" => engine.sq_poll_cpu = None,
        "hipri" => engine.high_priority = false,
        "hipri_percentage" => engine.high_priority_percentage = None,
        "nonvectored" => engine.nonvectored = true,
        "force_async" => engine.force_async = 0,
        "nowait" => engine.no_wait = false,
        "uncached" => engine.uncached = false,
        "userspace_reap" => engine.userspace_reap = false,
        "cmdprio_percentage" => draft.command_percentage = None,
        "cmdprio_bssplit" => draft.command_split = [Vec::new(), Vec::new()],
        "cmdprio_class" => draft.command_class = [None; 2],
        "cmdprio" => draft.command_level = [None; 2],
        _ => {}
    }
}

fn targets(draft: &mut Draft) -> Result<()> {
    if let Some(directory) = &draft.open_directory {
        let place = draft.location_of("opendir");
        let mut files = Vec::new();
        below(directory, &place, &mut files)?;
        if files.is_empty() {
            return Err(problem(&place, format!("opendir={}: there are no files", directory.display())));
        }
        files.sort();
        draft.job.targets.filenames.extend(files);
    }
    let targets = &mut draft.job.targets;
    if !targets.filenames.is_empty() {
        targets.files = targets.filenames.len() as u32;
    }
    // fio holds as many open as there are.
    targets.open_files = targets.open_files.filter(|open| *open < targets.files);
    if targets.pre_read {
        targets.invalidate = false;
    }
    Ok(())
}

fn below(directory: &Path, place: &Location, files: &mut Vec<PathBuf>) -> Result<()> {
    let unreadable =
        |cause: std::io::Error| problem(place, format!("opendir={}: {cause}", directory.display()));
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let kind = entry.file_type().map_err(unreadable)?;
        // Links are not followed: they could lead out of the directory, or in circles.
        if kind.is_dir() {
            below(&entry.path(), place, files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
        if files.len() > MOST_FILES {
            let text = format!("opendir={}: there are more than {MOST_FILES} files", directory.display());
            return Err(problem(place, text));
        }
    }
    Ok(())
}

fn pattern(draft: &mut Draft, notes: &mut Vec<String>) {
    if draft.strided {
        let zones = &mut draft.zones;
        if zones.range == 0 {
            zones.range = zones.size;
        }
        draft.job.pattern.zones = Some(*zones);
    }
    let pattern = &mut draft.job.pattern;
    // As in fio: neither a non-uniform distribution nor a separate alignment can be drawn without repetition.
    let uneven = pattern.distribution.0.iter().any(|distribution| *distribution != Distribution::Uniform);
    let aligned = draft.job.blocks.align.0.iter().any(Option::is_some);
    if uneven || aligned {
        pattern.no_random_map = true;
    }
    if pattern.random && aligned {
        note(
            draft,
            "blockalign",
            notes,
            "offsets can repeat before all have been used (implies norandommap)",
        );
    }
}

/// As fio: an interval is at most the shortest I/O, and where it does not divide all lengths, their greatest common divisor
/// is taken for it.
fn verify_interval(draft: &mut Draft, notes: &mut Vec<String>) {
    let Some(asked) = draft.verify_options.interval.filter(|_| draft.verify.is_some()) else { return };
    let job = &draft.job;
    if job.blocks.unaligned {
        // Blocks of arbitrary length have one header each.
        draft.verify_options.interval = None;
        return;
    }
    let used = [Direction::Read, Direction::Write].into_iter().filter(|one| job.pattern.has(*one));
    let lengths: Vec<u32> = used.flat_map(|direction| job.blocks.sizes[direction].lengths()).collect();
    let Some(shortest) = lengths.iter().copied().min() else { return };
    let within = asked.min(shortest);
    let taken = if lengths.iter().all(|length| length % within == 0) {
        within
    } else {
        lengths.into_iter().fold(0, common_divisor)
    };
    if taken != asked {
        let text = format!("the block sizes are not multiples of {asked} bytes: {taken} is used, as in fio");
        note(draft, "verify_interval", notes, &text);
        draft.verify_options.interval = Some(taken);
    }
}

/// The greatest common divisor; the other one of 0.
fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

fn buffers(draft: &mut Draft) {
    let compresses = draft.job.buffers.compress_percentage.is_some_and(|percent| percent < 100.0);
    let buffers = &mut draft.job.buffers;
    buffers.refill |= compresses || buffers.dedupe_percentage.is_some();
    buffers.dedupe_working_set = draft.working_set.then_some(draft.working_set_percentage);
    draft.job.sync.direct |= draft.job.sync.atomic;
    if let Some(method) = draft.verify {
        let mut verify = draft.verify_options.clone();
        verify.method = method;
        verify.backlog_batch = verify.backlog_batch.or(verify.backlog);
        draft.job.verify = Some(verify);
        if method != VerifyMethod::Null && draft.job.pattern.writes {
            draft.job.buffers.refill = true;
        }
    }
    if !draft.replay.files.is_empty() {
        draft.job.replay = Some(draft.replay.clone());
    }
}

fn depth(draft: &mut Draft, notes: &mut Vec<String>) {
    let asked = draft.job.depth;
    let depth = asked.depth;
    let shortened = [
        ("iodepth_batch_submit", asked.submit),
        ("iodepth_batch_complete_min", asked.complete_min),
        ("iodepth_batch_complete_max", asked.complete_max),
        ("iodepth_low", asked.low),
    ];
    for (option, value) in shortened {
        if let Some(value) = value.filter(|value| *value > depth) {
            note(draft, option, notes, &format!("{value} exceeds the depth: {depth} is used"));
        }
    }
    let within = |value: Option<u32>| value.map(|value| value.min(depth));
    let kept = &mut draft.job.depth;
    // In fio, 0 means the whole depth here.
    kept.submit = within(asked.submit).map(|submit| if submit == 0 { depth } else { submit });
    kept.complete_min = within(asked.complete_min);
    kept.complete_max = within(asked.complete_max);
    kept.low = within(asked.low);
    // With verification threads, the depth is the number of blocks that they may hold.
    if depth > 1
        && !draft.job.engine.name.is_asynchronous()
        && !asked.offload
        && draft.verify_options.threads == 0
    {
        let engine = draft.job.engine.name.word();
        note(draft, "iodepth", notes, &format!("{engine} does one I/O at a time at any depth"));
    }
}

fn pauses(draft: &mut Draft, notes: &mut Vec<String>) {
    if draft.thinking.time > 0 {
        if draft.thinking.spin > draft.thinking.time {
            note(draft, "thinktime_spin", notes, "is longer than thinktime: the whole pause burns CPU");
            draft.thinking.spin = draft.thinking.time;
        }
        draft.job.thinking = Some(draft.thinking);
    }
    if draft.flow.weight > 0 {
        draft.job.flow = Some(draft.flow);
    }
    if draft.job.latency.target.is_some() && draft.job.latency.window == 0 {
        draft.job.latency.window = SECOND;
    }
    if draft.steady.window > 0 {
        let whole = draft.steady.window + draft.steady.ramp;
        if draft.job.course.runtime.is_some_and(|runtime| whole > runtime) {
            note(
                draft,
                "steadystate_duration",
                notes,
                "the window is longer than runtime: it never fills, and no steady state is found",
            );
        }
        draft.job.steady = Some(draft.steady);
    } else if draft.has("steadystate") {
        note(draft, "steadystate", notes, "has no effect without steadystate_duration, as in fio");
    }
}

fn logs(draft: &mut Draft, notes: &mut Vec<String>) {
    let logs = &mut draft.job.logs;
    for prefix in [&mut logs.bandwidth, &mut logs.iops, &mut logs.latency, &mut logs.histogram] {
        if prefix.as_deref() == Some("") {
            *prefix = Some(draft.job.name.clone());
        }
    }
    logs.epoch_clock = draft.epoch.then_some(draft.epoch_clock);
    if logs.histogram.is_some() && logs.histogram_window.is_none() {
        note(draft, "write_hist_log", notes, "remains empty without log_hist_msec, as in fio");
    }
}

/// `IOPRIO_CLASS_BE`, which a level alone means.
const BEST_EFFORT: u8 = 2;

fn process(draft: &mut Draft) {
    draft.job.process.io_priority = match (draft.priority_class, draft.priority_level) {
        (None, None) => None,
        (class, level) => Some((class.unwrap_or(BEST_EFFORT), level.unwrap_or(0))),
    };
    draft.job.engine.command_priorities = priorities::rules(draft);
}

/// Notes on options that have no effect because of others, or that may be misunderstood.
fn remarks(draft: &Draft, notes: &mut Vec<String>) {
    let mut without = |option: &str, needed: bool, text: &str| {
        if draft.has(option) && !needed {
            note(draft, option, notes, text);
        }
    };
    let job = &draft.job;
    without("exit_what", job.course.exit_all || job.errors.exit_all, "has no effect without exitall");
    without("sqthread_poll_cpu", job.engine.sq_poll, "has no effect without sqthread_poll");
    without("hipri_percentage", job.engine.high_priority, "has no effect without hipri");
    without(
        "cmdprio_class",
        !job.engine.command_priorities.is_empty(),
        "has no effect without cmdprio_percentage or cmdprio_bssplit",
    );
    without(
        "cmdprio",
        !job.engine.command_priorities.is_empty(),
        "has no effect without cmdprio_percentage or cmdprio_bssplit",
    );
    without(
        "rw_sequencer",
        job.pattern.modifier.is_some(),
        "has no effect without a number after rw, as in rw=randread:8",
    );
    without(
        "random_distribution",
        job.pattern.random || job.replay.is_some(),
        "has no effect on a sequential pattern",
    );
    without("percentage_random", job.pattern.random, "has no effect on a sequential pattern");
    without("rate_process", job.rate.limits(), "has no effect without a rate");
    without("flow_sleep", job.flow.is_some(), "has no effect without flow");
    without(
        "verify_async_cpus",
        job.verify.as_ref().is_some_and(|verify| verify.threads > 0),
        "has no effect without verify_async",
    );
    without(
        "verify_backlog",
        job.verify.is_none() || job.pattern.writes,
        "has no effect if nothing is written",
    );
    without(
        "zero_buffers",
        job.verify.as_ref().is_none_or(|verify| verify.method == VerifyMethod::Null),
        "has no effect with verify, as in fio: verified data is generated from the header's seed",
    );
    without("latency_run", job.latency.target.is_some(), "has no effect without latency_target");
    without(
        "dedupe_mode",
        job.buffers.dedupe_percentage.is_some(),
        "has no effect without dedupe_percentage",
    );
    without("zonesize", draft.strided, "has no effect without zonemode=strided");
    without("zoneskip", draft.strided, "has no effect without zonemode=strided");
    without("zonerange", draft.strided, "has no effect without zonemode=strided");
    without("thinktime_blocks", job.thinking.is_some(), "has no effect without thinktime");
    without("thinktime_spin", job.thinking.is_some(), "has no effect without thinktime");
    without("thinktime_iotime", job.thinking.is_some(), "has no effect without thinktime");
    for option in
        ["verify_pattern", "verify_interval", "verify_backlog", "verify_only", "verify_fatal", "verify_async"]
    {
        without(option, job.verify.is_some(), "has no effect without verify");
    }
    for option in ["trim_backlog", "trim_backlog_batch"] {
        without(option, job.trims.percentage > 0.0, "has no effect without trim_percentage");
    }
    for option in [
        "replay_no_stall",
        "replay_time_scale",
        "replay_redirect",
        "replay_align",
        "replay_scale",
        "replay_skip",
    ] {
        without(option, job.replay.is_some(), "has no effect without read_iolog");
    }
    without(
        "bs",
        !all_given(&draft.splits) && !all_given(&draft.ranges),
        "bssplit or bsrange takes precedence, as in fio",
    );
    without("bsrange", !all_given(&draft.splits), "bssplit takes precedence, as in fio");
    without(
        "nrfiles",
        job.targets.filenames.is_empty(),
        "has no effect with filename, which sets the number of files",
    );
    without(
        "direct",
        job.engine.name != EngineName::Mmap || !job.sync.direct,
        "has no effect with mmap: pages are always in the cache",
    );
    if job.targets.filenames.iter().any(|path| path.to_string_lossy().contains("$job")) {
        note(draft, "filename", notes, "$jobname and similar variables are expanded only in filename_format");
    }
}

fn all_given<T>(values: &PerDirection<Option<T>>) -> bool {
    values.0.iter().all(Option::is_some)
}
