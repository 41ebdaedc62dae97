//! From sections to jobs: what `[global]` hands on, what each job adds, in which order.

use std::collections::BTreeSet;
use std::os::unix::fs::FileTypeExt as _;

use super::draft::{Draft, OptionOrigin};
use super::lines::{Section, WrittenOption, problem};
use super::table::{self, Effect, ValueKind};
use super::value::Value;
use super::{check, finish, guess, variables};
use crate::error::Result;
use crate::job::{Job, Jobs};

/// Jobs in the making.
pub(crate) struct Builder {
    /// What holds for the jobs that follow.
    global: Draft,
    /// Options of `[global]` before the first job, which all jobs share.
    shared: Vec<(String, String)>,
    /// Options of `[global]` behind the first job: they are written among those of the jobs that follow, since they hold
    /// for these only.
    late: Vec<(String, String)>,
    jobs: Vec<Job>,
    notes: Vec<String>,
    /// The next job begins a new file, and so stands behind a stonewall.
    new_file: bool,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            global: Draft::new(),
            shared: Vec::new(),
            late: Vec::new(),
            jobs: Vec::new(),
            notes: Vec::new(),
            new_file: false,
        }
    }

    /// Adds what a file says. Of the jobs, those named in `only` are taken, all when it is empty.
    pub(crate) fn file(&mut self, sections: Vec<Section>, only: &[String]) -> Result<()> {
        for section in sections {
            if section.is_global() {
                self.global(&section.options)?;
            } else if only.is_empty() || only.contains(&section.name) {
                self.job(&section)?;
            }
        }
        Ok(())
    }

    /// As fio: what the next file says begins from the defaults, and its first job waits for those before.
    pub(crate) fn next_file(&mut self) {
        let shared = std::mem::take(&mut self.shared);
        for job in &mut self.jobs {
            let held: Vec<_> = shared.iter().filter(|(option, _)| fits(job, option)).cloned().collect();
            job.given.splice(0..0, held);
        }
        self.late.clear();
        self.global = Draft::new();
        self.new_file = !self.jobs.is_empty();
    }

    /// Options for the jobs that follow.
    pub(crate) fn global(&mut self, options: &[WrittenOption]) -> Result<()> {
        let (names, options): (Vec<&WrittenOption>, Vec<&WrittenOption>) =
            options.iter().partition(|given| given.name == "name");
        for given in names {
            self.notes.push(format!(
                "{}: name has no effect in [global]: section names name the jobs",
                given.place
            ));
        }
        apply_all(&mut self.global, options.iter().copied(), false, &mut self.notes)?;
        let pairs = options.into_iter().map(pair);
        if self.jobs.is_empty() {
            self.shared.extend(pairs);
        } else {
            self.late.extend(pairs);
        }
        Ok(())
    }

    /// A job.
    pub(crate) fn job(&mut self, section: &Section) -> Result<()> {
        let mut draft = self.global.clone();
        draft.job.name.clone_from(&section.name);
        draft.job.place.clone_from(&section.place);
        let mut given = self.late.clone();
        if std::mem::take(&mut self.new_file) {
            draft.job.course.stonewall = true;
            given.push(("stonewall".into(), String::new()));
        }
        apply_all(&mut draft, section.options.iter(), true, &mut self.notes)?;
        given.extend(section.options.iter().map(pair));
        if device_of_name(&draft, &section.name) {
            self.notes.push(format!(
                "{}: the job name is a device and is used as its target, as in fio",
                section.place
            ));
            draft.job.targets.filenames = vec![section.name.clone().into()];
            given.push(("filename".into(), section.name.replace(':', "\\:")));
        }
        draft.job.given = given;
        let mut job = finish::finish(draft, &mut self.notes)?;
        let given = std::mem::take(&mut job.given);
        job.given = given.into_iter().filter(|(option, _)| fits(&job, option)).collect();
        self.jobs.push(job);
        Ok(())
    }

    /// All jobs.
    pub(crate) fn finish(self) -> Result<Jobs> {
        check::check_between_jobs(&self.jobs)?;
        let mut seen = BTreeSet::new();
        let notes = self.notes.into_iter().filter(|note| seen.insert(note.clone())).collect();
        Ok(Jobs { global: self.shared, jobs: self.jobs, notes })
    }
}

fn pair(given: &WrittenOption) -> (String, String) {
    (given.name.clone(), given.value.clone().unwrap_or_default())
}

fn apply_all<'a>(
    draft: &mut Draft,
    mut options: impl Iterator<Item = &'a WrittenOption>,
    own: bool,
    notes: &mut Vec<String>,
) -> Result<()> {
    options.try_for_each(|given| apply(draft, given, own, notes))
}

/// As fio: a job without files whose section is named like a device has this device for its target.
fn device_of_name(draft: &Draft, name: &str) -> bool {
    let targets = &draft.job.targets;
    let has_files = !targets.filenames.is_empty() || targets.files > 1 || draft.open_directory.is_some();
    if has_files || !draft.replay.files.is_empty() {
        return false;
    }
    std::fs::metadata(name).is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_block_device() || kind.is_char_device()
    })
}

/// Whether an option says something to this job: those of other engines do not, where `[global]` gave them.
fn fits(job: &Job, option: &str) -> bool {
    table::find(option)
        .is_none_or(|entry| entry.engines.is_empty() || entry.engines.contains(&job.engine.name.word()))
}

fn apply(draft: &mut Draft, given: &WrittenOption, own: bool, notes: &mut Vec<String>) -> Result<()> {
    let name = given.name.as_str();
    let Some(entry) = table::find(name) else {
        // `bs 4k`, as it would be on a command line.
        let guess = match name.split_once(char::is_whitespace) {
            Some((first, rest)) if table::find(first).is_some() => format!("; write {first}={}", rest.trim()),
            _ => guess::question(name, table::names()),
        };
        return Err(problem(&given.name_place(), format!("there is no option {name:?}{guess}")));
    };
    let shown = || match &given.value {
        Some(value) if !value.is_empty() => format!("{name}={value}"),
        _ => name.to_owned(),
    };
    let wrong = |wrong: String| problem(&given.place, format!("{}: {wrong}", shown()));
    let check = match entry.effect {
        Effect::Refused(reason) => {
            return Err(problem(&given.name_place(), format!("{}: not supported: {reason}", shown())));
        }
        Effect::Ignored(reason, check) => {
            notes.push(format!("{}: {name} has no effect: {reason}", given.place));
            check
        }
        Effect::Applied(apply) => apply,
    };
    // Texts may hold what looks like one of the machine's numbers and is none.
    let replaced = match (&given.value, entry.kind) {
        (Some(value), ValueKind::Text | ValueKind::OptionalText | ValueKind::Words(_)) => Some(value.clone()),
        (Some(value), _) => Some(variables::machine(value)),
        (None, _) => None,
    };
    if replaced.as_deref().is_none_or(str::is_empty) && !entry.kind.may_be_bare() {
        return Err(wrong("a value is missing".into()));
    }
    if let Some(sign) = given.comment {
        let text =
            format!("{}: {} is the value: text after {sign} is a comment, as in fio", given.place, shown());
        notes.push(text);
    }
    let value = Value::new(replaced.as_deref(), draft.thousand());
    check(draft, &value).map_err(wrong)?;
    notes.extend(value.into_remarks().into_iter().map(|remark| format!("{}: {name}: {remark}", given.place)));
    draft.written.insert(entry.name, OptionOrigin { place: given.place.clone(), own });
    Ok(())
}
