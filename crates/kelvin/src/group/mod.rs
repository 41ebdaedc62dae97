//! Groups of runs (repeated runs, comparisons, sweeps) as text, JSON, table and page. The commands that make the runs are in
//! `commands`.

mod ab;
mod ab_waits;
mod list;
mod page;
mod repeat;
mod stored;
mod sweep;
mod text;

use anyhow::{Result, bail};
use kelvin_report::table::{Table, number};
use kelvin_store::{GroupKind, Store};

#[cfg(test)]
pub(crate) use ab::tests as ab_tests;
pub(crate) use ab::{
    HOW_TO_RESET as HOW_TO_RESET_FILES, describe_progress, describe_void, waits_that_changed,
};
pub(crate) use list::{ServedGroups, list, page as group_page};
pub(crate) use repeat::HOW_TO_RESET;
pub(crate) use stored::{Group, find, find_again, plan};
pub(crate) use sweep::{Axis, SweepPlan};
pub(crate) use text::{change, describe_duration, describe_run, failed, time_left};

use crate::args::Format;
use crate::document::{self, Document};
use crate::exit::Code;

/// Prints a group.
pub(crate) fn print(group: &Group<'_>, format: Format) -> Result<Code> {
    if group.stored.info.kind == GroupKind::Study {
        let name = group.stored.info.name.as_deref().unwrap_or("DIR");
        bail!(
            "group {} belongs to the study \"{name}\": see kelvin study show and kelvin study analyze, or \
             kelvin show for one of its runs",
            group.stored.id
        )
    }
    document::print(group, format)?;
    Ok(Code::Success)
}

/// Prints a stored group as it was printed at its end.
pub(crate) fn show(store: &Store, group: &str, format: Format) -> Result<Code> {
    print(&Group::new(store, &find(store, group)?), format)
}

impl Document for Group<'_> {
    fn text(&self) -> Result<String> {
        match self.stored.info.kind {
            GroupKind::Repeat => repeat::render_text(self),
            GroupKind::Ab => ab::render_text(self),
            GroupKind::Sweep => sweep::text(self.store, self.stored),
            GroupKind::Study => bail!("a study has its own commands: kelvin study show"),
        }
    }

    fn records(&self) -> Result<Vec<String>> {
        let value = match self.stored.info.kind {
            GroupKind::Repeat => repeat::json(self)?,
            GroupKind::Ab => ab::json(self)?,
            GroupKind::Sweep => sweep::json(self.store, self.stored)?,
            GroupKind::Study => bail!("a study has its own commands: kelvin study show"),
        };
        Ok(vec![value.to_string()])
    }

    /// A row for each run.
    fn table(&self) -> Result<Table> {
        let rows = self.rows()?;
        let mut table = Table::new("run,order,block,treatment,counted,reason");
        let figures: Vec<String> = rows
            .first()
            .map(|row| row.figures.iter().map(|figure| figure.id.clone()).collect())
            .unwrap_or_default();
        table.columns.extend(figures.iter().cloned());
        for row in rows {
            let mut fields = vec![
                row.run.to_string(),
                (row.slot.place + 1).to_string(),
                (row.slot.block + 1).to_string(),
                row.slot.treatment.clone(),
                row.counts().to_string(),
                row.void.clone().unwrap_or_default(),
            ];
            let value =
                |id: &String| row.figures.iter().find(|figure| figure.id == *id).and_then(|f| f.value);
            fields.extend(figures.iter().map(|id| number(value(id))));
            table.rows.push(fields);
        }
        Ok(table)
    }
}
