//! `kelvin rm` and `kelvin tag`: remove and label stored runs.

use anyhow::{Result, bail};
use kelvin_lab::run_trace::trace_path;
use kelvin_measure::text::plural;
use kelvin_store::Store;

use super::confirm;
use super::select::RunSelection;
use crate::args::{Global, RmArgs, TagArgs};
use crate::exit::Code;
use crate::{out, paths};

/// Removes runs and groups, including the runs' pages and recordings.
pub(crate) fn remove(args: &RmArgs, global: &Global) -> Result<Code> {
    let path = paths::store(global.store.as_deref())?;
    let mut store = open(&path)?;
    let doomed = RunSelection::from_names(&store, &args.runs)?;
    if !args.from_groups {
        refuse_members(&store, &doomed)?;
    }
    if !args.yes {
        let runs: Vec<String> = doomed.runs.iter().map(ToString::to_string).collect();
        let groups: Vec<String> = doomed.groups.iter().map(|group| format!("group {group} and ")).collect();
        let noun = plural(runs.len(), "run", "runs");
        confirm(&format!("remove {}{noun} {}", groups.concat(), runs.join(", ")))?;
    }
    for run in &doomed.runs {
        store.delete(*run)?;
        let page = paths::report(&path, *run)?;
        for file in [page, trace_path(&path, *run)] {
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    out::note(&format!("kelvin: cannot remove {}: {error}", file.display()));
                }
                _ => {}
            }
        }
    }
    for group in &doomed.groups {
        store.delete_group(*group)?;
    }
    if !global.quiet {
        let noun = plural(doomed.runs.len(), "run", "runs");
        out::line(&format!("removed {} {noun}", doomed.runs.len()))?;
    }
    Ok(Code::Success)
}

/// Sets or removes a label.
pub(crate) fn tag(args: &TagArgs, global: &Global) -> Result<Code> {
    let store = open(&paths::store(global.store.as_deref())?)?;
    let run = store.find(&args.run)?;
    store.set_label(run, args.label.as_deref())?;
    if !global.quiet {
        out::line(&match &args.label {
            Some(label) => format!("run {run} is \"{}\"", kelvin_measure::text::cut(label, 200)),
            None => format!("run {run} has no label"),
        })?;
    }
    Ok(Code::Success)
}

fn open(path: &std::path::Path) -> Result<Store> {
    if !path.exists() {
        bail!("there are no runs in {}", path.display());
    }
    Ok(Store::open(path)?)
}

/// Refuses to remove runs of a group without the whole group.
fn refuse_members(store: &Store, doomed: &RunSelection) -> Result<()> {
    for run in &doomed.runs {
        if let Some(member) = store.membership(*run)?
            && !doomed.groups.contains(&member.group)
        {
            bail!(
                "run {run} belongs to group {0}, whose result depends on it: remove the group with kelvin rm \
                 group:{0}, or give --from-groups",
                member.group
            );
        }
    }
    Ok(())
}
