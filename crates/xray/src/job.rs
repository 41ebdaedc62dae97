//! The job files of a scenario: as much of fio's language as it takes to name other files, scale sizes, and compute
//! arrival rates. Everything else passes through as it is written, for the parser of `kelvin io`.

use std::path::{Component, Path, PathBuf};

use crate::fault::{Fault, Location};
use crate::size::{SizeScale, bytes, size_text};

/// How deep included files may include.
const DEEPEST: usize = 16;
/// More lines than any job file, with what it includes.
const MOST_LINES: usize = 20_000;
/// More than any job file includes.
const MOST_INCLUDES: usize = 100;
/// What X-Ray sets itself, over the file's.
const FORCED: &[(&str, &str)] = &[("group_reporting", "1"), ("disk_util", "0"), ("continue_on_error", "all")];

/// A job file, with what it includes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct JobFile {
    sections: Vec<Section>,
    lines: usize,
    includes: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct Section {
    name: String,
    location: Location,
    options: Vec<JobOption>,
}

#[derive(Debug, Clone, PartialEq)]
struct JobOption {
    name: String,
    /// None for an option without `=`.
    value: Option<String>,
    location: Location,
}

/// Gives the text of a file of a scenario's folder.
pub type ReadText<'a> = dyn Fn(&Path) -> Result<String, Fault> + 'a;

/// How a job file is changed.
pub(crate) struct Changes<'a> {
    /// The file or device for a device of X-Ray's machine.
    pub(crate) target: &'a dyn Fn(&str) -> String,
    pub(crate) sizes: &'a SizeScale,
    /// The factor of the file's times.
    pub(crate) time: f64,
    /// The scenario ends the jobs, so that they need not be `time_based`.
    pub(crate) ended_by_step: bool,
    /// Seconds after which a job ends by itself.
    pub(crate) runtime: Option<f64>,
}

/// The I/Os that a job file's rates schedule.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Arrivals {
    /// I/Os per second.
    pub(crate) rate: f64,
    /// Bytes per second: the sum of rate × size.
    pub(crate) bytes: f64,
    /// The sum of rate × size², whose root is the standard deviation of a second's bytes for Poisson arrivals.
    pub(crate) squares: f64,
    /// Whether all of them are Poisson arrivals.
    pub(crate) poisson: bool,
}

impl JobFile {
    /// Reads a job file of a scenario's folder. It and what it includes must be inside the folder.
    pub(crate) fn read(directory: &Path, name: &str, read: &ReadText<'_>) -> Result<Self, Fault> {
        let mut file = Self::default();
        let path = inside(directory, name, &Location { file: directory.into(), line: 0 })?;
        file.add(&read(&path)?, &path, read, 0)?;
        Ok(file)
    }

    fn add(&mut self, text: &str, path: &Path, read: &ReadText<'_>, depth: usize) -> Result<(), Fault> {
        for (index, line) in text.lines().enumerate() {
            let location = Location { file: path.into(), line: index as u32 + 1 };
            let fault =
                |message: &str| Err(Fault { location: location.clone(), message: message.to_owned() });
            let line = without_comment(line.trim_start_matches('\u{feff}').trim());
            if line.is_empty() {
                continue;
            }
            self.lines += 1;
            if self.lines > MOST_LINES {
                return fault("has too many lines");
            }
            if let Some(name) = line.strip_prefix("include ").map(str::trim) {
                self.includes += 1;
                if depth == DEEPEST || self.includes > MOST_INCLUDES {
                    return fault("includes too many files");
                }
                let directory = path.parent().unwrap_or(Path::new("."));
                let included = inside(directory, name, &location)?;
                let text = read(&included).map_err(|error| Fault {
                    location: location.clone(),
                    message: format!("cannot include {error}"),
                })?;
                self.add(&text, &included, read, depth + 1)?;
            } else if let Some(rest) = line.strip_prefix('[') {
                let Some((name, _)) = rest.split_once(']') else {
                    return fault("the section name has no closing bracket");
                };
                self.sections.push(Section {
                    name: name.trim().to_owned(),
                    location: location.clone(),
                    options: Vec::new(),
                });
            } else if let Some(section) = self.sections.last_mut() {
                let (name, value) = match line.split_once('=') {
                    Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
                    None => (line, None),
                };
                section.options.push(JobOption { name: canonical(name).to_owned(), value, location });
            } else {
                return fault("precedes the first section: write [global] or a job's [name] above it");
            }
        }
        Ok(())
    }

    /// The jobs, each with its options: a later one overrides an earlier one, and those of [global] come first.
    fn jobs(&self) -> impl Iterator<Item = Job<'_>> {
        let mut global: Vec<&JobOption> = Vec::new();
        self.sections.iter().filter_map(move |section| {
            if section.name == "global" {
                global.extend(&section.options);
                return None;
            }
            let options = global.iter().copied().chain(&section.options).collect();
            Some(Job { section, options })
        })
    }

    /// The devices that its jobs use, in their order.
    pub(crate) fn devices(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for job in self.jobs() {
            for device in job.devices() {
                if !found.contains(&device) {
                    found.push(device);
                }
            }
        }
        found
    }

    /// The bytes of a device that its jobs use, by what they say; none where they do not say it.
    pub(crate) fn extent(&self, device: &str, sizes: &SizeScale) -> Option<u64> {
        let extent = |job: Job<'_>| {
            let read = |name: &str| job.value(name).and_then(bytes).map(|bytes| sizes.scaled(bytes));
            let end = read("size").map(|size| size.saturating_add(read("offset").unwrap_or(0)));
            read("filesize").into_iter().chain(end).max()
        };
        self.jobs().filter(|job| job.devices().iter().any(|used| used == device)).filter_map(extent).max()
    }

    /// Whether all its jobs run for a time, however much they have done.
    pub(crate) fn is_time_based(&self) -> bool {
        self.jobs().all(|job| job.flag("time_based"))
    }

    /// What its rates schedule; none where a job is bound by no rate.
    pub(crate) fn arrivals(&self) -> Option<Arrivals> {
        let mut sum = Arrivals { poisson: true, ..Arrivals::default() };
        for job in self.jobs() {
            let arrivals = job.arrivals()?;
            sum.rate += arrivals.rate;
            sum.bytes += arrivals.bytes;
            sum.squares += arrivals.squares;
            sum.poisson &= arrivals.poisson;
        }
        (sum.rate > 0.0).then_some(sum)
    }

    /// The job file's text with the changes, for a tenant: `${` is doubled, as a scenario asks for. With it, where each of
    /// its lines comes from; the file is empty for a line that X-Ray or the conversion adds.
    pub(crate) fn render(&self, changes: &Changes<'_>) -> Result<(String, Vec<Location>), Fault> {
        let added = Location::default();
        let mut lines: Vec<(String, &Location)> = vec![("[global]".into(), &added)];
        lines.extend(FORCED.iter().map(|(name, value)| (format!("{name}={value}"), &added)));
        if let Some(runtime) = changes.runtime {
            lines.push((format!("runtime={}", milliseconds(runtime)), &added));
        }
        let mut names_files = self.jobs().map(|job| job.value("filename").is_some());
        for section in &self.sections {
            let is_global = section.name == "global";
            lines.push((String::new(), &added));
            lines.push((format!("[{}]", literal(&section.name)), &section.location));
            for option in &section.options {
                let forced = is_global && FORCED.iter().any(|(name, _)| *name == option.name);
                let dropped = option.name == "time_based" && changes.ended_by_step;
                // It is a directory of X-Ray's machine; the target has its own.
                if forced || dropped || option.name == "directory" {
                    continue;
                }
                lines.push((option.changed(changes)?, &option.location));
            }
            if !is_global && names_files.next() == Some(false) {
                let target = escaped(&(changes.target)(&section.name));
                lines.push((format!("filename={target}"), &section.location));
            }
        }
        let text = lines.iter().fold(String::new(), |text, (line, _)| text + line + "\n");
        Ok((text, lines.into_iter().map(|(_, location)| location.clone()).collect()))
    }

    /// The sizes that its options give.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = u64> {
        let options = self.sections.iter().flat_map(|section| &section.options);
        options
            .filter(|option| SIZES.contains(&option.name.as_str()))
            .filter_map(|option| option.value.as_deref().and_then(bytes))
    }

    /// The largest block that its jobs transfer.
    pub(crate) fn largest_block(&self) -> u64 {
        let blocks = self.jobs().flat_map(|job| [job.blocks(0), job.blocks(1)]).flatten().flatten();
        blocks.map(|(size, _)| size).max().unwrap_or(0)
    }
}

/// The scale of the sizes of all of a scenario's job files.
pub(crate) fn size_scale<'a>(files: impl Iterator<Item = &'a JobFile> + Clone, factor: f64) -> SizeScale {
    let largest_block = files.clone().map(JobFile::largest_block).max().unwrap_or(0);
    SizeScale::new(files.flat_map(JobFile::sizes), largest_block, factor)
}

/// A file below a directory.
fn inside(directory: &Path, name: &str, location: &Location) -> Result<PathBuf, Fault> {
    let path = Path::new(name);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if name.is_empty() || !plain {
        return Err(Fault {
            location: location.clone(),
            message: format!("{name:?} is not a file of the scenario's folder"),
        });
    }
    Ok(directory.join(path))
}

fn without_comment(line: &str) -> &str {
    if line.starts_with([';', '#']) {
        return "";
    }
    let comment = line.match_indices([';', '#']).find(|(at, _)| line[..*at].ends_with([' ', '\t']));
    comment.map_or(line, |(at, _)| line[..at].trim_end())
}

/// fio's first name for an option.
fn canonical(name: &str) -> &str {
    match name {
        "blocksize" => "bs",
        "blocksize_range" => "bsrange",
        "readwrite" => "rw",
        "io_limit" => "io_size",
        "fileoffset" => "offset",
        name => name,
    }
}

/// Options that are sizes, and are scaled.
const SIZES: &[&str] =
    &["size", "filesize", "offset", "io_size", "zonesize", "zoneskip", "zonerange", "offset_increment"];
/// Options that are times in seconds, and are scaled.
const TIMES: &[&str] = &["runtime", "ramp_time", "startdelay"];

impl JobOption {
    fn changed(&self, changes: &Changes<'_>) -> Result<String, Fault> {
        let Some(value) = &self.value else { return Ok(self.name.clone()) };
        let fault = |what: &str| Fault {
            location: self.location.clone(),
            message: format!("{}={value} cannot be scaled: {what}", self.name),
        };
        let changed = match self.name.as_str() {
            "filename" => {
                let targets = split_names(value)
                    .iter()
                    .map(|name| escaped(&(changes.target)(name)))
                    .collect::<Vec<_>>();
                targets.join(":")
            }
            // A share of the file stays that share.
            name if SIZES.contains(&name) && changes.sizes.changes() && !value.ends_with('%') => {
                let bytes = bytes(value).ok_or_else(|| fault("it is not a plain size"))?;
                size_text(changes.sizes.scaled(bytes))
            }
            name if TIMES.contains(&name) && changes.time != 1.0 => {
                let seconds = seconds(value).ok_or_else(|| fault("it is not a plain time"))?;
                milliseconds(seconds * changes.time)
            }
            _ => literal(value),
        };
        Ok(format!("{}={changed}", self.name))
    }
}

/// A job with all options that hold for it.
struct Job<'a> {
    section: &'a Section,
    options: Vec<&'a JobOption>,
}

impl Job<'_> {
    fn option(&self, name: &str) -> Option<&JobOption> {
        self.options.iter().rev().find(|option| option.name == name).copied()
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.option(name)?.value.as_deref()
    }

    fn flag(&self, name: &str) -> bool {
        self.option(name).is_some_and(|option| option.value.as_deref().is_none_or(|value| value != "0"))
    }

    fn devices(&self) -> Vec<String> {
        self.value("filename").map_or_else(|| vec![self.section.name.clone()], split_names)
    }

    /// Block sizes with their shares, for reads (0) or writes (1); none where they are not plain.
    fn blocks(&self, direction: usize) -> Option<Vec<(u64, f64)>> {
        let of_direction = |value: &str| {
            let parts: Vec<&str> = value.split(',').collect();
            parts.get(direction).or(parts.first()).map_or(String::new(), |part| (*part).to_owned())
        };
        match self.value("bssplit") {
            Some(split) => shares(&of_direction(split)),
            None if self.option("bsrange").is_some() => None,
            None => Some(vec![(bytes(&of_direction(self.value("bs").unwrap_or("4k")))?, 1.0)]),
        }
    }

    fn arrivals(&self) -> Option<Arrivals> {
        let (reads, writes) = match self.value("rw").unwrap_or("read").split(':').next()? {
            "read" | "randread" => (true, false),
            "write" | "randwrite" => (false, true),
            "rw" | "readwrite" | "randrw" => (true, true),
            _ => return None,
        };
        let rates: Vec<&str> = self.value("rate_iops")?.split(',').collect();
        let workers: f64 = self.value("numjobs").map_or(Some(1.0), |value| value.parse().ok())?;
        let mut sum =
            Arrivals { poisson: self.value("rate_process") == Some("poisson"), ..Arrivals::default() };
        for (direction, _) in [reads, writes].iter().enumerate().filter(|(_, used)| **used) {
            // fio reads a rate with its units of sizes.
            let rate = bytes(rates.get(direction).or(rates.first())?)? as f64 * workers;
            sum.rate += rate;
            for (size, share) in self.blocks(direction)? {
                sum.bytes += rate * share * size as f64;
                sum.squares += rate * share * (size as f64).powi(2);
            }
        }
        Some(sum)
    }
}

/// `8k/90:32k/10`: sizes with their shares; those without a number share what is left.
fn shares(text: &str) -> Option<Vec<(u64, f64)>> {
    let mut parts = Vec::new();
    for part in text.split(':') {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let share = if share.is_empty() { None } else { Some(share.parse::<f64>().ok()? / 100.0) };
        parts.push((bytes(size)?, share));
    }
    let given: f64 = parts.iter().filter_map(|(_, share)| *share).sum();
    let open = parts.iter().filter(|(_, share)| share.is_none()).count();
    let rest = if open > 0 { (1.0 - given).max(0.0) / open as f64 } else { 0.0 };
    Some(parts.into_iter().map(|(size, share)| (size, share.unwrap_or(rest))).collect())
}

/// The names of `filename=`: separated by colons; `\:` is a colon of a name.
fn split_names(value: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut name = String::new();
    let mut letters = value.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next_if_eq(&':').is_some() => name.push(':'),
            ':' => names.push(std::mem::take(&mut name)),
            letter => name.push(letter),
        }
    }
    names.push(name);
    names.retain(|name| !name.is_empty());
    names
}

fn escaped(name: &str) -> String {
    name.replace(':', "\\:")
}

/// A text in which a scenario finds none of its parameters.
pub(crate) fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// A plain time in seconds: 60, 60s, 5m, 1h, 500ms.
fn seconds(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let factor = match &text[end..] {
        "" | "s" => 1.0,
        "us" => 1e-6,
        "ms" => 1e-3,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    text[..end].parse::<f64>().ok().map(|value| value * factor)
}

fn milliseconds(seconds: f64) -> String {
    format!("{}ms", (seconds * 1000.0).round().max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> JobFile {
        JobFile::read(Path::new(""), "x.fio", &|_| Ok(text.to_owned())).unwrap()
    }

    const OLTP: &str = "\
[global]
ioengine=libaio ; asynchronous
time_based
disk_util=1
rate_process=poisson

[data]
bssplit=8k/90:32k/10,8k/90:32k/10
size=28G
filename=/dev/sdd
rw=randrw
rate_iops=500,500

[log]
blocksize=32k
size=2G
offset=1G
filename=/dev/sdb:/dev/sdc
rw=randwrite
rate_iops=100
";

    #[test]
    fn rates_and_sizes_make_the_moments_of_arrivals() {
        let arrivals = file(OLTP).arrivals().unwrap();
        assert_eq!(arrivals.rate, 1100.0);
        let mean = 0.9 * 8192.0 + 0.1 * 32768.0;
        assert!((arrivals.bytes - (1000.0 * mean + 100.0 * 32768.0)).abs() < 1e-3);
        let squares = 1000.0 * (0.9 * 8192f64.powi(2) + 0.1 * 32768f64.powi(2)) + 100.0 * 32768f64.powi(2);
        assert!((arrivals.squares / squares - 1.0).abs() < 1e-12);
        assert!(arrivals.poisson);
        assert_eq!(file("[a]\nrw=read\nfilename=/dev/sdb").arrivals(), None);
        assert!(!file("[a]\nrw=read\nrate_iops=1k").arrivals().unwrap().poisson);
    }

    #[test]
    fn devices_become_targets_and_sizes_keep_their_ratios() {
        let file = file(OLTP);
        assert_eq!(file.devices(), ["/dev/sdd", "/dev/sdb", "/dev/sdc"]);
        let sizes = size_scale([&file].into_iter(), 0.01);
        assert_eq!(sizes.scaled(28 << 30) / sizes.scaled(1 << 30), 28);
        let (text, lines) = file
            .render(&Changes {
                target: &|device| format!("/data/a:{}", device.trim_start_matches("/dev/")),
                sizes: &sizes,
                time: 1.0,
                ended_by_step: true,
                runtime: None,
            })
            .unwrap();
        for line in ["filename=/data/a\\:sdb:/data/a\\:sdc", "size=280M", "offset=10M", "ioengine=libaio"] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        let at = text.lines().position(|line| line == "offset=10M").unwrap();
        assert_eq!(lines[at].to_string(), "x.fio:17");
        assert!(!text.contains("time_based") && !text.contains("disk_util=1"), "{text}");
        assert_eq!(file.extent("/dev/sdb", &sizes), Some(30 << 20));
    }

    #[test]
    fn sizes_too_small_for_a_common_unit_are_rounded_up_each() {
        let file = file("[a]\nsize=3M\nfilename=b\n[b]\nsize=2048k\nfilename=c\n");
        let sizes = size_scale([&file].into_iter(), 0.5);
        assert_eq!((sizes.scaled(3 << 20), sizes.scaled(2 << 20)), (2 << 20, 1 << 20));
    }

    #[test]
    fn what_cannot_be_scaled_is_refused_with_its_line() {
        let file = file("[a]\nfilename=/dev/sdb\nsize=1g-2g\n");
        let sizes = size_scale([&file].into_iter(), 0.5);
        let changes = Changes {
            target: &|device| device.to_owned(),
            sizes: &sizes,
            time: 1.0,
            ended_by_step: false,
            runtime: None,
        };
        let fault = file.render(&changes).unwrap_err();
        assert_eq!(fault.to_string(), "x.fio:3: size=1g-2g cannot be scaled: it is not a plain size");
    }

    #[test]
    fn files_outside_the_folder_are_refused() {
        for name in ["/etc/passwd", "../other.fio", "", "a/../../b"] {
            let fault = JobFile::read(Path::new("/tmp"), name, &|_| Ok(String::new())).unwrap_err();
            assert!(fault.message.contains("not a file of the scenario's folder"), "{fault}");
        }
        let text = |text: &str| Ok(text.to_owned());
        let fault = JobFile::read(Path::new("d"), "x.fio", &|_| text("[a]\ninclude ../x\n")).unwrap_err();
        assert_eq!(fault.location.line, 2);
        let fault = JobFile::read(Path::new("d"), "x.fio", &|_| text("[a]\ninclude x.fio\n")).unwrap_err();
        assert_eq!(fault.message, "includes too many files");
    }
}
