//! What contradicts itself is refused before anything is done.

use super::draft::Draft;
use super::lines::problem;
use crate::Direction;
use crate::error::{Error, Result};
use crate::job::{Amount, BlockSizes, EngineName, Job, RandomGenerator, VerifyMethod};

/// Maximum number of files: more than any realistic measurement uses.
pub(super) const MOST_FILES: usize = 1_000_000;

/// Refuses at an option's place.
fn refuse(draft: &Draft, option: &str, text: impl AsRef<str>) -> Result<()> {
    Err(problem(&draft.location_of(option), format!("{option}: {}", text.as_ref())))
}

/// What one job says.
pub(crate) fn draft(draft: &Draft) -> Result<()> {
    course(draft)?;
    sizes(draft)?;
    rates(draft)?;
    verify(draft)?;
    rest(draft)
}

fn course(draft: &Draft) -> Result<()> {
    let course = &draft.job.course;
    if course.time_based && course.runtime.is_none() {
        return refuse(draft, "time_based", "needs a runtime: without it, the job would never end");
    }
    if course.wait_for.as_deref() == Some(draft.job.name.as_str()) {
        return refuse(draft, "wait_for", "a job cannot wait for itself");
    }
    let steady = draft.steady;
    if steady.window > 0 && steady.window < 2 * steady.interval {
        return refuse(
            draft,
            "steadystate_duration",
            "the window must have at least two intervals (one second each)",
        );
    }
    Ok(())
}

/// The smallest and the largest length of what a job does.
fn lengths(draft: &Draft) -> (u32, u32) {
    let pattern = &draft.job.pattern;
    // With bs_is_seq_rand, each direction uses the sizes of both.
    let both = |direction| draft.job.blocks.by_sequence && direction != Direction::Trim;
    let used = Direction::ALL.into_iter().filter(|direction| pattern.has(*direction) || both(*direction));
    let all: Vec<&BlockSizes> = used.map(|direction| &draft.job.blocks.sizes[direction]).collect();
    let least = all.iter().map(|sizes| sizes.smallest()).min().unwrap_or(4096);
    let most = all.iter().map(|sizes| sizes.largest()).max().unwrap_or(4096);
    (least, most)
}

/// Refuses regions that lie behind what a file can have, so that sums of offsets and sizes need no check elsewhere.
fn reach(draft: &Draft) -> Result<()> {
    let targets = &draft.job.targets;
    let bytes = |amount: Amount| if let Amount::Bytes(bytes) = amount { bytes } else { 0 };
    let begins = u64::from(draft.job.clones - 1).checked_mul(bytes(targets.offset_increment));
    let end = begins
        .and_then(|begins| begins.checked_add(bytes(targets.offset)))
        .and_then(|begins| begins.checked_add(targets.size.map_or(0, bytes)))
        .filter(|end| i64::try_from(*end).is_ok());
    if end.is_some() {
        return Ok(());
    }
    let option = ["offset_increment", "offset", "size"].into_iter().find(|option| draft.has(option));
    refuse(draft, option.unwrap_or("size"), "the last worker's region exceeds the maximum file size")
}

fn sizes(draft: &Draft) -> Result<()> {
    let targets = &draft.job.targets;
    let (least, most) = lengths(draft);
    let replayed = !draft.replay.files.is_empty();
    if let Some(Amount::Bytes(size)) = targets.size
        && size < u64::from(least)
        && !replayed
    {
        return refuse(draft, "size", format!("{size} bytes are less than one I/O of {least} bytes"));
    }
    if let Some((_, largest)) = targets.file_size {
        if largest < u64::from(least) && !replayed {
            return refuse(
                draft,
                "filesize",
                format!("{largest} bytes are less than one I/O of {least} bytes"),
            );
        }
        if let Amount::Bytes(offset) = targets.offset
            && offset >= largest
        {
            let text =
                format!("{offset} is beyond the end of the files, which have {largest} bytes (filesize)");
            return refuse(draft, "offset", text);
        }
    }
    reach(draft)?;
    let files = u64::from(targets.files) * u64::from(draft.job.clones);
    if targets.files > 1 && files > MOST_FILES as u64 {
        let text = format!("{files} files for all of its workers exceed the maximum, {MOST_FILES}");
        return refuse(draft, "nrfiles", text);
    }
    if targets.offset == Amount::Percent(100.0) {
        return refuse(draft, "offset", "100 % is the end of the target: no space follows it");
    }
    if let (Amount::Percent(offset), Some(Amount::Percent(size))) = (targets.offset, targets.size)
        && offset + size > 100.0
    {
        let text = format!("an offset of {offset} % plus a size of {size} % exceeds 100 %");
        return refuse(draft, "offset", text);
    }
    if targets.create_only && !targets.allow_create {
        return refuse(draft, "create_only", "conflicts with allow_file_create=0");
    }
    let maps = draft.job.engine.name == EngineName::Mmap;
    if maps && targets.open_files.is_some_and(|open| open < targets.files) {
        return refuse(draft, "openfiles", "mmap maps all files before it starts: use another ioengine");
    }
    layouts(draft, maps, replayed)?;
    steps(draft, (least, most))
}

/// What is done with the files as a whole.
fn layouts(draft: &Draft, maps: bool, replayed: bool) -> Result<()> {
    let targets = &draft.job.targets;
    if targets.unlink_each_loop && draft.job.has_several_passes() {
        if !draft.job.pattern.writes || draft.job.pattern.reads || replayed {
            return refuse(
                draft,
                "unlink_each_loop",
                "needs a job that only writes: after the first loop, nothing is left to read",
            );
        }
        if maps {
            return refuse(
                draft,
                "unlink_each_loop",
                "mmap maps the files before it starts: use another ioengine",
            );
        }
    }
    if targets.fill_device && targets.size.is_some_and(|size| matches!(size, Amount::Percent(_))) {
        return refuse(
            draft,
            "fill_device",
            "fills all free space: it cannot be combined with a size in percent",
        );
    }
    Ok(())
}

/// How offsets follow one another.
fn steps(draft: &Draft, (least, most): (u32, u32)) -> Result<()> {
    if draft.job.pattern.trim_then_write {
        let blocks = &draft.job.blocks.sizes;
        if blocks[Direction::Write] != blocks[Direction::Trim] {
            return refuse(
                draft,
                "bs",
                "trimwrite writes each trimmed block: both block sizes must be equal",
            );
        }
    }
    if draft.job.pattern.generator == RandomGenerator::Lfsr && draft.job.pattern.random && least != most {
        return refuse(
            draft,
            "random_generator",
            "lfsr needs a single block size: remove it, or give one bs",
        );
    }
    if draft.strided {
        if draft.zones.size == 0 {
            return refuse(draft, "zonemode", "strided needs a zonesize");
        }
        if draft.zones.range > 0 && draft.zones.range < u64::from(most) {
            return refuse(draft, "zonerange", format!("is smaller than an I/O of up to {most} bytes"));
        }
        if draft.zones.size < u64::from(most) {
            return refuse(draft, "zonesize", format!("is smaller than an I/O of up to {most} bytes"));
        }
    }
    Ok(())
}

fn rates(draft: &Draft) -> Result<()> {
    let rate = &draft.job.rate;
    let pairs = [
        ("rate_min", &rate.bytes_min, &rate.bytes, "bytes per second"),
        ("rate_iops_min", &rate.iops_min, &rate.iops, "I/Os per second"),
    ];
    for (option, minimum, limit, unit) in pairs {
        for direction in Direction::ALL {
            if let (Some(minimum), Some(limit)) = (minimum[direction], limit[direction])
                && minimum > limit
            {
                let text =
                    format!("the minimum for {direction}s, {minimum} {unit}, is above the rate, {limit}");
                return refuse(draft, option, text);
            }
        }
    }
    if rate.limits() && draft.has("rate") && draft.has("rate_iops") {
        for direction in Direction::ALL {
            if rate.bytes[direction].is_some() && rate.iops[direction].is_some() {
                return refuse(
                    draft,
                    "rate_iops",
                    format!("rate and rate_iops both limit {direction}s: give only one"),
                );
            }
        }
    }
    let minima = rate.bytes_min.0.iter().chain(&rate.iops_min.0);
    if rate.cycle == 0 && minima.flatten().next().is_some() {
        return refuse(draft, "rate_cycle", "a minimum cannot be averaged over a time of 0");
    }
    Ok(())
}

fn verify(draft: &Draft) -> Result<()> {
    let pattern = &draft.job.pattern;
    let Some(method) = draft.verify else { return Ok(()) };
    if pattern.trims && !pattern.writes {
        return refuse(draft, "verify", "a job that only trims writes nothing to verify");
    }
    let options = &draft.verify_options;
    let course = &draft.job.course;
    if options.only && course.time_based {
        return refuse(draft, "verify_only", "conflicts with time_based: it verifies complete passes");
    }
    if options.only && !pattern.writes {
        return refuse(
            draft,
            "verify_only",
            "needs a pattern that writes: use the pattern that wrote the data",
        );
    }
    if matches!(method, VerifyMethod::Pattern | VerifyMethod::PatternHeader) && options.pattern.is_none() {
        return refuse(draft, "verify", "needs verify_pattern");
    }
    if draft.job.buffers.pattern.is_some() && options.pattern.is_some() && draft.job.pattern.writes {
        return refuse(draft, "verify_pattern", "conflicts with buffer_pattern: both set what is written");
    }
    let (least, _) = lengths(draft);
    let piece = options.interval.unwrap_or(least);
    if method != VerifyMethod::Pattern && options.offset >= piece {
        return refuse(draft, "verify_offset", format!("is beyond the end of a block of {piece} bytes"));
    }
    if options.state_load && draft.job.course.loops > 1 {
        return refuse(
            draft,
            "verify_state_load",
            "conflicts with loops: a state records the progress of one pass",
        );
    }
    Ok(())
}

fn rest(draft: &Draft) -> Result<()> {
    let job = &draft.job;
    let depth = &job.depth;
    if let (Some(least), Some(most)) = (depth.complete_min, depth.complete_max)
        && least > most
    {
        return refuse(draft, "iodepth_batch_complete_min", format!("{least} is above the maximum, {most}"));
    }
    if job.buffers.dedupe_global && !draft.working_set {
        return refuse(draft, "dedupe_global", "needs dedupe_mode=working_set");
    }
    if job.buffers.zero && job.buffers.pattern.is_some() {
        return refuse(draft, "buffer_pattern", "conflicts with zero_buffers");
    }
    if job.sync.atomic && draft.has("buffered") && !job.sync.direct {
        return refuse(draft, "atomic", "conflicts with buffered=1: such writes bypass the page cache");
    }
    // A word of each wins in fio by its place; two that disagree in one section are a mistake.
    let said =
        |name: &str| job.given.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.as_str());
    if let (Some(direct), Some(buffered)) = (said("direct"), said("buffered"))
        && direct == buffered
    {
        return refuse(draft, "buffered", format!("conflicts with direct={direct}"));
    }
    if job.engine.sq_poll_cpu.is_some() && job.engine.register_files == Some(false) && job.engine.sq_poll {
        return refuse(draft, "sqthread_poll", "conflicts with registerfiles=0");
    }
    if draft.command_percentage.is_some() && draft.command_split.iter().any(|split| !split.is_empty()) {
        return refuse(draft, "cmdprio_bssplit", "conflicts with cmdprio_percentage: give only one");
    }
    if job.trims.percentage > 0.0 && !job.pattern.writes {
        return refuse(draft, "trim_percentage", "trims what was written, but this job writes nothing");
    }
    if job.latency.target.is_some() && job.rate.limits() {
        return refuse(draft, "latency_target", "conflicts with a rate: the depth search needs full speed");
    }
    if !draft.replay.files.is_empty()
        && draft.job.logs.iolog.as_ref().is_some_and(|log| draft.replay.files.contains(log))
    {
        return refuse(draft, "write_iolog", "is the trace being replayed: it would be overwritten");
    }
    Ok(())
}

/// What jobs say of each other.
pub(crate) fn check_between_jobs(jobs: &[Job]) -> Result<()> {
    for (index, job) in jobs.iter().enumerate() {
        let Some(name) = &job.course.wait_for else { continue };
        let refuse = |text: String| Err(Error::Input { place: job.place.clone(), problem: text });
        let named = jobs.iter().filter(|other| other.name == *name).count();
        if named > 1 {
            return refuse(format!("wait_for={name}: {named} jobs have this name, but exactly one must"));
        }
        if !jobs.iter().take(index).any(|other| other.name == *name) {
            return refuse(format!("wait_for={name}: no job of this name precedes job {:?}", job.name));
        }
    }
    Ok(())
}
