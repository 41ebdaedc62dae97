//! `kelvin groups`: groups of runs.

use anyhow::Result;
use kelvin_report::table::Table;
use kelvin_serve::GroupLine;
use kelvin_store::Store;

use crate::args::{Format, Global, GroupsArgs};
use crate::document::{self, Document};
use crate::exit::Code;
use crate::group::{self, Group};
use crate::{out, paths};

/// Lists the groups with the newest last, or shows one.
pub(crate) fn groups(args: &GroupsArgs, global: &Global) -> Result<Code> {
    let path = paths::store(global.store.as_deref())?;
    if let Some(group) = args.group {
        let store = Store::open_read_only(&path)?;
        let stored = group::find(&store, &group.to_string())?;
        let group = Group::new(&store, &stored);
        if let Some(file) = &args.html {
            let page = group::group_page(&group)?;
            out::file(file, &kelvin_report::group::render(&page)?, global.quiet)?;
        }
        return group::print(&group, args.format.format());
    }
    let listed = if path.exists() { group::list(&Store::open_read_only(&path)?)? } else { Vec::new() };
    if listed.is_empty() && args.format.format() == Format::Text {
        let path = path.display();
        out::line(&format!("no groups yet in {path}; start with: kelvin run tproc-c --repeat 6"))?;
        return Ok(Code::Success);
    }
    document::print(&Groups(listed), args.format.format())?;
    Ok(Code::Success)
}

/// The list of groups.
struct Groups(Vec<GroupLine>);

impl Document for Groups {
    fn text(&self) -> Result<String> {
        Ok(table(&self.0))
    }

    fn records(&self) -> Result<Vec<String>> {
        self.0.iter().map(|group| Ok(serde_json::to_string(group)?)).collect()
    }

    fn is_list(&self) -> bool {
        true
    }

    fn table(&self) -> Result<Table> {
        let mut table = Table::new("group,kind,name,created,runs,void,answer");
        for one in &self.0 {
            table.rows.push(vec![
                one.group.to_string(),
                one.kind.into(),
                one.name.clone().unwrap_or_default(),
                one.created.clone(),
                one.runs.to_string(),
                one.void.to_string(),
                one.answer.clone(),
            ]);
        }
        Ok(table)
    }
}

fn table(listed: &[GroupLine]) -> String {
    let mut text = format!(
        "{:>5}  {:<6}  {:<16}  {:>4}  {:>4}  {:<48}  {}\n",
        "group", "kind", "began (UTC)", "runs", "void", "answer", "name"
    );
    for one in listed {
        let name = one.name.as_ref().map_or(String::new(), |name| format!("\"{name}\""));
        let line = format!(
            "{:>5}  {:<6}  {:<16}  {:>4}  {:>4}  {:<48}  {name}",
            one.group, one.kind, one.created, one.runs, one.void, one.answer
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
