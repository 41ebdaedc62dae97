//! Names of runs, as `compare`, `gate` and `history` take them.
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

use std::fmt;

use crate::error::{Error, Result};

/// One part of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Term {
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
fn is_label(label: &str) -> bool {
    matches!(parse(label).as_deref(), Ok([Term::One(name)]) if name == label)
}

/// The parts of a name.
pub(crate) fn parse(name: &str) -> std::result::Result<Vec<Term>, String> {
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

/// Refuses a label that reads like another name of runs.
pub(crate) fn refuse_label(label: &str) -> Result<()> {
    if label.parse::<i64>().is_ok() || back_from_last(label).is_some() || !is_label(label) {
        return Err(Error::Label(label.to_owned()));
    }
    Ok(())
}

/// N of "last-N"; 0 for "last".
pub(crate) fn back_from_last(wanted: &str) -> Option<i64> {
    let rest = wanted.strip_prefix("last")?;
    if rest.is_empty() { Some(0) } else { rest.strip_prefix('-')?.parse().ok().filter(|n| *n >= 0) }
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
