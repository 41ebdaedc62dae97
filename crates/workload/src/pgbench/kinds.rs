//! The kinds that are counted and timed: scripts and, if requested, their statements.

use std::borrow::Cow;
use std::collections::HashMap;

use kelvin_database::{Error, Result};

use super::script::Script;
use crate::TransactionKind;

/// A sample identifies its kind by two bytes.
const MOST_KINDS: usize = 1 << 16;

/// The scripts' kinds.
pub(super) fn of_scripts(scripts: &[Script]) -> Vec<TransactionKind> {
    scripts
        .iter()
        .map(|script| TransactionKind {
            name: Cow::Owned(script.name.clone()),
            headline: true,
            statement_of: None,
        })
        .collect()
}

/// Adds a kind for each step that the user waits for, named by script, line and title, and stores it in the
/// step.
///
/// A pipeline only collects its statements. They are sent, and their results awaited, at its `\endpipeline`,
/// which has the time of all of them (`\syncpipeline` waits for nothing either).
pub(super) fn add_statements(scripts: &mut [Script], kinds: &mut Vec<TransactionKind>) -> Result<()> {
    let mut named: HashMap<String, usize> = HashMap::new();
    for (index, script) in scripts.iter_mut().enumerate() {
        let (name, of) = (&script.name, number(index)?);
        for step in &mut script.steps {
            let Some(title) = &step.title else { continue };
            step.kind = Some(number(kinds.len())?);
            let mut name = format!("{name}:{} {title}", step.line);
            // Two statements on one line may start alike.
            let times = named.entry(name.clone()).or_default();
            *times += 1;
            if *times > 1 {
                name = format!("{name} ({times})");
            }
            kinds.push(TransactionKind { name: Cow::Owned(name), headline: false, statement_of: Some(of) });
        }
    }
    Ok(())
}

fn number(index: usize) -> Result<u16> {
    u16::try_from(index).map_err(|_| {
        Error::usage(format!("more than {MOST_KINDS} scripts and statements cannot be timed"))
            .with_help("use fewer statements, or do not time them separately")
    })
}
