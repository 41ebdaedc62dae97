//! Names of several runs, as `compare`, `gate` and `history` take them.
//!
//! | name | runs |
//! |---|---|
//! | `12`, `last`, `last-2`, `base` | one: its number, the last, the second before it, the newest of this label |
//! | `12,13,15` | these; each part may be any name of this table |
//! | `12..17` | 12 to 17, both of them included |
//! | `label:base` | all of this label |
//! | `group:4`, `group:4/B` | the group's, or those of one of its treatments |
//! | `branch:main` | the newest six of this branch of the history |
//! | `branch:main~20` | the newest twenty |
//! | `branch:main@rack-7`, `branch:main@rack-7~20` | those that were made on this testbed |
//!
//! A name for several runs excludes those that do not count, as far as they have been judged. A run that is named
//! individually is always included.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::run::{RunId, RunSummary};
use crate::store::Store;

/// Runs of a branch without a number: six per side are recommended for a comparison.
const NEWEST: usize = 6;

/// The selected runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Each once, in the order of the name; of a branch, a label or a range the oldest first.
    pub runs: Vec<RunId>,
    /// Notes for the user, in sentences: excluded runs and the reasons.
    pub notes: Vec<String>,
}

/// One part of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    One(String),
    Range(i64, i64),
    Label(String),
    Group(i64, Option<String>),
    Branch { name: String, testbed: Option<String>, newest: Option<usize> },
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(name) => f.write_str(name),
            Self::Range(from, to) => write!(f, "{from}..{to}"),
            Self::Label(label) => write!(f, "label:{label}"),
            Self::Group(id, None) => write!(f, "group:{id}"),
            Self::Group(id, Some(treatment)) => write!(f, "group:{id}/{treatment}"),
            Self::Branch { name, testbed, newest } => {
                write!(f, "branch:{name}")?;
                if let Some(testbed) = testbed {
                    write!(f, "@{testbed}")?;
                }
                newest.map_or(Ok(()), |newest| write!(f, "~{newest}"))
            }
        }
    }
}

/// Checks the name of a branch or a testbed, so that `branch:NAME@TESTBED~N` is unambiguous.
///
/// # Errors
/// Names the character that is not allowed.
pub fn history_name(name: &str) -> std::result::Result<(), String> {
    if name.is_empty() {
        return Err("is empty".into());
    }
    if name.trim() != name {
        return Err("begins or ends with a space".into());
    }
    match name.chars().find(|c| matches!(c, '@' | '~' | ',') || c.is_control()) {
        Some(refused) => Err(format!("contains {refused:?}, which is a separator")),
        None => Ok(()),
    }
}

/// Whether a label is distinct from every other name.
pub(crate) fn is_label(label: &str) -> bool {
    matches!(parse(label).as_deref(), Ok([Term::One(name)]) if name == label)
}

fn parse(name: &str) -> std::result::Result<Vec<Term>, String> {
    name.split(',').map(|part| term(part.trim())).collect()
}

fn term(part: &str) -> std::result::Result<Term, String> {
    if part.is_empty() {
        return Err("a name is missing; give a run number, several such as 12,13 or 12..17, label:NAME, \
                    group:N or branch:NAME"
            .into());
    }
    if let Some(label) = part.strip_prefix("label:") {
        return match label.trim() {
            "" => Err("label: needs a label, such as label:base".into()),
            label => Ok(Term::Label(label.into())),
        };
    }
    if let Some(rest) = part.strip_prefix("group:") {
        let (id, treatment) = rest.split_once('/').map_or((rest, None), |(id, t)| (id, Some(t)));
        let id = id.parse().map_err(|_| {
            format!("{id:?} is not a group number; write group:4, or group:4/B for one treatment")
        })?;
        return match treatment {
            Some("") => Err(format!("group:{id}/ needs a treatment, such as group:{id}/B")),
            treatment => Ok(Term::Group(id, treatment.map(Into::into))),
        };
    }
    if let Some(rest) = part.strip_prefix("branch:") {
        return branch(rest);
    }
    if let Some((from, to)) = part.split_once("..") {
        let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        if digits(from) && digits(to) {
            return range(part, from, to);
        }
    }
    Ok(Term::One(part.into()))
}

fn range(part: &str, from: &str, to: &str) -> std::result::Result<Term, String> {
    match (from.parse::<i64>(), to.parse::<i64>()) {
        (Ok(from), Ok(to)) if from <= to => Ok(Term::Range(from, to)),
        (Ok(_), Ok(_)) => Err(format!("{part} ends before it begins; write the lower number first")),
        _ => Err(format!("{part} needs a number at both ends, such as 12..17")),
    }
}

fn branch(rest: &str) -> std::result::Result<Term, String> {
    let (rest, newest) = match rest.rsplit_once('~') {
        Some((rest, newest)) => {
            let refused = || format!("{newest:?} is not a number of runs; write for example branch:main~20");
            (rest, Some(newest.parse::<usize>().ok().filter(|n| *n > 0).ok_or_else(refused)?))
        }
        None => (rest, None),
    };
    let (name, testbed) = rest.split_once('@').map_or((rest, None), |(name, on)| (name, Some(on)));
    history_name(name).map_err(|why| format!("the branch {name:?} {why}"))?;
    if let Some(testbed) = testbed {
        history_name(testbed).map_err(|why| format!("the testbed {testbed:?} {why}"))?;
    }
    Ok(Term::Branch { name: name.into(), testbed: testbed.map(Into::into), newest })
}

impl Store {
    /// The runs that a name selects (see the table at the beginning of this file).
    ///
    /// # Errors
    /// When the name is invalid, or selects no run.
    pub fn select(&self, name: &str) -> Result<Selection> {
        self.select_without(name, &[])
    }

    /// The same without certain runs: those of the other side of a comparison.
    ///
    /// # Errors
    /// When the name is invalid, or selects no run.
    pub fn select_without(&self, name: &str, without: &[RunId]) -> Result<Selection> {
        let refused = |why: String| Error::Selection { wanted: name.into(), why };
        let terms = parse(name).map_err(refused)?;
        let summaries: BTreeMap<RunId, RunSummary> = if terms.iter().all(|t| matches!(t, Term::One(_))) {
            BTreeMap::new()
        } else {
            self.runs()?.into_iter().map(|run| (run.id, run)).collect()
        };
        let mut selection = Selection::default();
        for term in &terms {
            let before = selection.runs.len() + selection.notes.len();
            match term {
                Term::One(name) => selection.runs.push(self.find(name)?),
                Term::Range(from, to) => {
                    let runs = summaries.range(RunId(*from)..=RunId(*to)).map(|(id, _)| *id);
                    take(runs.collect(), without, &summaries, None, &mut selection);
                }
                Term::Label(label) => {
                    let of = |run: &&RunSummary| run.label.as_deref() == Some(label);
                    let runs = summaries.values().filter(of).map(|run| run.id).collect();
                    take(runs, without, &summaries, None, &mut selection);
                }
                Term::Group(id, treatment) => {
                    let runs = self.of_group(GroupId(*id), treatment.as_deref(), refused)?;
                    take(runs, without, &summaries, None, &mut selection);
                }
                Term::Branch { name, testbed, newest } => {
                    let runs = self.of_branch(name, testbed.as_deref(), refused)?;
                    let newest = newest.unwrap_or(NEWEST);
                    let taken = take(runs, without, &summaries, Some(newest), &mut selection);
                    if testbed.is_none() {
                        self.one_testbed(name, &taken).map_err(refused)?;
                    }
                }
            }
            if before == selection.runs.len() + selection.notes.len() {
                return Err(refused(format!("{term} matches no run; `kelvin runs` lists the runs")));
            }
        }
        let mut seen = BTreeSet::new();
        selection.runs.retain(|run| seen.insert(*run));
        if selection.runs.is_empty() {
            let why = selection.notes.join("; ");
            return Err(refused(if why.is_empty() { "it matches no run".into() } else { why }));
        }
        Ok(selection)
    }

    fn of_group(
        &self,
        id: GroupId,
        treatment: Option<&str>,
        refused: impl Fn(String) -> Error,
    ) -> Result<Vec<RunId>> {
        if self.group(id)?.is_none() {
            let groups: Vec<String> =
                self.groups()?.iter().map(|g| format!("{} ({})", g.id, g.info.kind.as_str())).collect();
            let there = if groups.is_empty() {
                "there are no groups yet".into()
            } else {
                format!("the groups are {}", groups.join(", "))
            };
            return Err(refused(format!("there is no group {id}; {there}")));
        }
        let members = self.members(id)?;
        let Some(treatment) = treatment else { return Ok(members.iter().map(|member| member.run).collect()) };
        let of: Vec<RunId> =
            members.iter().filter(|m| m.slot.treatment == treatment).map(|member| member.run).collect();
        if of.is_empty() {
            let names: BTreeSet<&str> = members.iter().map(|m| m.slot.treatment.as_str()).collect();
            let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
            let there = if names.is_empty() { "it has only one".into() } else { names.join(", ") };
            return Err(refused(format!("group {id} has no treatment {treatment:?}: {there}")));
        }
        Ok(of)
    }

    fn of_branch(
        &self,
        name: &str,
        testbed: Option<&str>,
        refused: impl Fn(String) -> Error,
    ) -> Result<Vec<RunId>> {
        let history = self.history()?;
        let on =
            |(_, branch, on): &&(RunId, String, String)| branch == name && testbed.is_none_or(|t| t == on);
        let runs: Vec<RunId> = history.iter().filter(on).map(|(run, ..)| *run).collect();
        if runs.is_empty() {
            return Err(refused(absent(&history, name, testbed)));
        }
        Ok(runs)
    }

    /// Runs of two machines are no repetitions of each other.
    fn one_testbed(&self, branch: &str, runs: &[RunId]) -> std::result::Result<(), String> {
        let mut testbeds = BTreeSet::new();
        for run in runs {
            if let Some((_, testbed)) = self.in_history(*run).map_err(|error| error.to_string())? {
                testbeds.insert(testbed);
            }
        }
        if testbeds.len() < 2 {
            return Ok(());
        }
        let names: Vec<String> = testbeds.iter().map(|on| format!("branch:{branch}@{on}")).collect();
        Err(format!(
            "the newest runs of branch {branch} are from {} testbeds; name one: {}",
            names.len(),
            names.join(" or ")
        ))
    }
}

/// The existing branches, when a branch has no run.
fn absent(history: &[(RunId, String, String)], name: &str, testbed: Option<&str>) -> String {
    let testbeds: BTreeSet<&str> =
        history.iter().filter(|(_, branch, _)| branch == name).map(|(.., on)| on.as_str()).collect();
    if let Some(testbed) = testbed.filter(|_| !testbeds.is_empty()) {
        let there: Vec<&str> = testbeds.into_iter().collect();
        return format!(
            "branch {name} has no run on the testbed {testbed:?}; it has runs on {}",
            there.join(", ")
        );
    }
    let branches: BTreeSet<&str> = history.iter().map(|(_, branch, _)| branch.as_str()).collect();
    if branches.is_empty() {
        return "no run is on a branch yet; `kelvin run … --branch NAME` puts it on one".into();
    }
    let there: Vec<&str> = branches.into_iter().collect();
    format!("there is no branch {name:?}; there are {}", there.join(", "))
}

/// Takes those that count, at most the last `newest` of them; returns the runs taken.
fn take(
    runs: Vec<RunId>,
    without: &[RunId],
    summaries: &BTreeMap<RunId, RunSummary>,
    newest: Option<usize>,
    selection: &mut Selection,
) -> Vec<RunId> {
    let (mut taken, mut notes, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for run in runs.into_iter().rev() {
        if newest.is_some_and(|newest| taken.len() >= newest) {
            break;
        }
        if without.contains(&run) {
            others.push(run.to_string());
        } else if let Some(judged) = summaries
            .get(&run)
            .and_then(|summary| summary.judgement.as_ref())
            .filter(|judged| !judged.counts())
        {
            notes.push(format!("run {run} is left out, {}", judged.describe()));
        } else {
            taken.push(run);
        }
    }
    taken.reverse();
    selection.runs.extend(&taken);
    selection.notes.extend(notes.into_iter().rev());
    others.reverse();
    match others.as_slice() {
        [] => {}
        [one] => selection.notes.push(format!("run {one} is left out: it is on the other side")),
        several => {
            let several = several.join(", ");
            selection.notes.push(format!("runs {several} are left out: they are on the other side"));
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name() -> impl Strategy<Value = String> {
        "[a-zA-Z][a-z0-9/_.-]{0,8}"
    }

    fn terms() -> impl Strategy<Value = Term> {
        let labels = "[a-z][a-z0-9 :/-]{0,8}[a-z0-9]";
        let some = |text: &'static str| proptest::option::of(text);
        prop_oneof![
            (1_i64..1000).prop_map(|n| Term::One(n.to_string())),
            (1_i64..1000, 0_i64..50).prop_map(|(from, more)| Term::Range(from, from + more)),
            labels.prop_map(Term::Label),
            (1_i64..100, some("[A-Z][a-z =]{0,5}[a-z]")).prop_map(|(id, t)| Term::Group(id, t)),
            (name(), some("[a-z][a-z0-9 -]{0,6}[a-z]"), proptest::option::of(1_usize..100))
                .prop_map(|(name, testbed, newest)| Term::Branch { name, testbed, newest }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(terms in proptest::collection::vec(terms(), 1..5)) {
            let written: Vec<String> = terms.iter().map(ToString::to_string).collect();
            prop_assert_eq!(parse(&written.join(",")), Ok(terms.clone()));
            prop_assert_eq!(parse(&written.join(" , ")), Ok(terms));
        }

        #[test]
        fn anything_is_read_or_refused_with_a_reason(text in "\\PC{0,30}") {
            match parse(&text) {
                Ok(terms) => prop_assert!(!terms.is_empty()),
                Err(why) => prop_assert!(!why.is_empty()),
            }
        }

        #[test]
        fn near_misses_are_read_or_refused_too(text in "(label:|group:|branch:)?[0-9a-z.@~/, ]{0,12}") {
            if let Ok(terms) = parse(&text) {
                for term in terms {
                    prop_assert_eq!(parse(&term.to_string()), Ok(vec![term]));
                }
            }
        }
    }

    #[test]
    fn a_label_is_what_reads_as_nothing_else() {
        for label in ["base", "a..b", "v1.2..next", "x:y"] {
            assert!(is_label(label), "{label}");
        }
        for refused in ["12..17", "..", "a,b", "label:x", "group:1", "branch:main", "", " x"] {
            assert!(!is_label(refused), "{refused}");
        }
    }
}
