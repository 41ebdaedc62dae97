//! `kelvin ab`: runs specifications in alternation and compares them.

use anyhow::Result;
use kelvin_lab::ab::{self, AbEvent, AbSummary};
use kelvin_run::spec::StartingData;
use kelvin_store::{GroupKind, NewGroup, Store};

use super::advise;
use super::repeat::{code, end_or_error};
use crate::args::{AbArgs, Format, Global};
use crate::document;
use crate::exit::Code;
use crate::group::{self, Group, HOW_TO_RESET_FILES, describe_duration, describe_progress};
use crate::measure::bench;
use crate::{out, paths, signal};

/// Runs the comparison and prints the result.
pub(crate) fn ab(args: &AbArgs, global: &Global) -> Result<Code> {
    if let Some(advice) = args.advice()? {
        return advise::advise(&advice, global);
    }
    let (plan, specs) = args.plan()?;
    let stop = signal::listen()?;
    let mut live = kelvin_live::for_run(global.quiet, args.format.format() == Format::Jsonl);
    let store_path = paths::store(global.store.as_deref())?;
    let store = Store::open(&store_path)?;
    let group = store.begin_group(&NewGroup {
        kind: GroupKind::Ab,
        name: args.name.clone(),
        created: jiff::Timestamp::now(),
        body: serde_json::to_value(&plan)?,
    })?;
    let runs = plan.blocks * plan.treatments().len() as u32;
    let pilot = if plan.effect.is_some() { "a pilot of " } else { "" };
    let load = specs.first().map_or(String::new(), |spec| describe_duration(spec, runs));
    let unreset = specs.iter().all(|spec| spec.beginning() == StartingData::Left);
    let reset = if unreset {
        format!("; the data are not reset between runs ({HOW_TO_RESET_FILES})")
    } else {
        String::new()
    };
    live.message(&format!("group {group}: {pilot}{} blocks, {runs} runs; {load}{reset}", plan.blocks));
    let words = |progress: &AbEvent<'_>| describe_progress(progress, &plan);
    let mut bench = bench(&store, &mut *live, &stop).destroying(&args.i_know_it_destroys);
    let ran = ab::run(&plan, &specs, group, &mut bench, &words);
    drop(bench);
    let ended = end_or_error(ran.map(|ran| ran.ended))?;

    let group = group::find_again(&store, group)?;
    let shown = Group::new(&store, &group);
    document::print(&shown, args.format.format())?;
    if args.format.format() == Format::Text {
        out::line(&format!("Again:  {} groups {}", paths::kelvin_command(&store_path), group.id))?;
    }
    let summary = AbSummary::from_runs(&plan, shown.rows()?);
    Ok(code(ended, true, summary.failed))
}
