//! Steps: what the timeline does, one after another.

use std::ops::Range;

use kelvin_run::spec::{Rates, Span};
use serde::Deserialize;
use toml::de::DeValue;

use crate::document::{self, MOST_COPIES, Names, Value};
use crate::error::Refusal;
use crate::tenant::{Tenant, Tenants};

/// A command that takes longer is stuck, when the file does not say otherwise.
const COMMAND_TIMEOUT: Span = Span::seconds(600);

/// Steps of a scenario, repetitions counted: more would take days.
const MOST_STEPS: usize = 10_000;

/// Steps within steps.
const DEEPEST: usize = 8;

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What it does. Tenants are indexes of [`crate::Scenario::tenants`].
    pub action: Action,
    /// The text of its annotation, when the file has one.
    pub note: Option<String>,
    /// Whether charts show it.
    pub annotated: bool,
    /// Where it stands in the file, in bytes.
    pub(crate) place: usize,
}

impl Step {
    /// Its annotation, or what it does with the names of the scenario's tenants.
    pub(crate) fn text(&self, tenants: &[Tenant]) -> String {
        self.note.clone().unwrap_or_else(|| self.action.describe(tenants))
    }
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Makes the data of tenants: builds tables, lays out files.
    Prepare(Vec<usize>),
    /// Lays out the files of I/O jobs and writes what was never written.
    Fill(Vec<usize>),
    /// Begins their load.
    Start {
        /// Whose.
        tenants: Vec<usize>,
        /// For how long; none until a step stops it, or it ends by itself.
        lasts: Option<Span>,
        /// The time over which they begin evenly, the first at once.
        stagger: Span,
    },
    /// Ends their load, and waits for that.
    Stop(Vec<usize>),
    /// Changes the arrivals a second of open loops.
    Rate(Vec<usize>, f64),
    /// Changes the users at work of closed loops.
    Users(Vec<usize>, u32),
    /// Waits.
    Wait(Span),
    /// Waits until their load has ended.
    WaitFor {
        /// Whose.
        tenants: Vec<usize>,
        /// How long at most.
        timeout: Option<Span>,
    },
    /// Runs a command.
    Run {
        /// As the shell takes it.
        command: String,
        /// How long at most.
        timeout: Span,
        /// Whether the scenario goes on if it fails.
        may_fail: bool,
    },
    /// Does nothing: a line on the charts.
    Mark(String),
}

impl Action {
    /// The tenants that it is about.
    pub fn tenants(&self) -> &[usize] {
        match self {
            Self::Prepare(tenants)
            | Self::Fill(tenants)
            | Self::Start { tenants, .. }
            | Self::Stop(tenants)
            | Self::Rate(tenants, _)
            | Self::Users(tenants, _)
            | Self::WaitFor { tenants, .. } => tenants,
            Self::Wait(_) | Self::Run { .. } | Self::Mark(_) => &[],
        }
    }

    /// The same, to be changed; none of an action without tenants.
    pub(crate) fn tenants_mut(&mut self) -> Option<&mut Vec<usize>> {
        match self {
            Self::Prepare(tenants)
            | Self::Fill(tenants)
            | Self::Start { tenants, .. }
            | Self::Stop(tenants)
            | Self::Rate(tenants, _)
            | Self::Users(tenants, _)
            | Self::WaitFor { tenants, .. } => Some(tenants),
            Self::Wait(_) | Self::Run { .. } | Self::Mark(_) => None,
        }
    }

    /// As text; `all` are the scenario's tenants.
    fn describe(&self, all: &[Tenant]) -> String {
        let of = |tenants: &[usize]| {
            let names: Vec<&str> = tenants.iter().map(|&tenant| all[tenant].name.as_str()).collect();
            names.join(", ")
        };
        match self {
            Self::Prepare(tenants) => format!("prepare {}", of(tenants)),
            Self::Fill(tenants) => format!("fill {}", of(tenants)),
            Self::Start { tenants, lasts, stagger } => {
                let lasts = lasts.map_or_else(String::new, |lasts| format!(" for {lasts}"));
                let over = if stagger.is_zero() { String::new() } else { format!(", over {stagger}") };
                format!("start {}{lasts}{over}", of(tenants))
            }
            Self::Stop(tenants) => format!("stop {}", of(tenants)),
            Self::Rate(tenants, rate) => format!("set {}: {rate} arrivals/s", of(tenants)),
            Self::Users(tenants, users) => format!("set {}: {users} users", of(tenants)),
            Self::Wait(span) => format!("wait {span}"),
            Self::WaitFor { tenants, timeout } => {
                let most = timeout.map_or_else(String::new, |timeout| format!(", at most {timeout}"));
                format!("wait for {}{most}", of(tenants))
            }
            Self::Run { command, .. } => format!("run {command}"),
            Self::Mark(text) => text.clone(),
        }
    }
}

/// One name or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    prepare: Option<OneOrMore>,
    fill: Option<OneOrMore>,
    start: Option<OneOrMore>,
    stop: Option<OneOrMore>,
    set: Option<OneOrMore>,
    wait: Option<Span>,
    wait_for: Option<OneOrMore>,
    run: Option<String>,
    mark: Option<String>,
    r#for: Option<Span>,
    stagger: Option<Span>,
    rate: Option<Rates>,
    users: Option<u32>,
    timeout: Option<Span>,
    may_fail: bool,
    note: Option<String>,
    annotate: Option<bool>,
}

/// Reads `[[steps]]`, repetitions written out.
pub(crate) fn read<'a>(
    items: Vec<Value<'a>>,
    names: &Names<'a>,
    tenants: &Tenants,
) -> Result<Vec<Step>, Refusal> {
    let mut steps = Vec::new();
    for item in items {
        take(item, names, tenants, 0, &mut steps)?;
    }
    Ok(steps)
}

fn take<'a>(
    mut value: Value<'a>,
    names: &Names<'a>,
    tenants: &Tenants,
    depth: usize,
    steps: &mut Vec<Step>,
) -> Result<(), Refusal> {
    let span = value.span();
    if steps.len() >= MOST_STEPS {
        return Err((span, format!("more than {MOST_STEPS} steps are not supported")));
    }
    let DeValue::Table(table) = value.get_mut() else {
        return Err((span, "a step must be a table".into()));
    };
    let (repeat, each) = (table.remove("repeat"), table.remove("for-each"));
    if repeat.is_none() && each.is_none() {
        names.put_into(&mut value)?;
        steps.push(step(value, tenants)?);
        return Ok(());
    }
    if depth >= DEEPEST {
        return Err((span, format!("steps within steps are at most {DEEPEST} deep")));
    }
    let inner = document::take_list(table, "steps")?;
    if inner.is_empty() {
        return Err((span, "repeat and for-each need steps: steps = [ { … }, … ]".into()));
    }
    if let Some((key, _)) = table.iter().next() {
        let key = key.as_ref();
        return Err((span, format!("a step with repeat or for-each contains only steps, not \"{key}\"")));
    }
    for round in rounds(repeat, each, names)? {
        for item in &inner {
            take(item.clone(), &round, tenants, depth + 1, steps)?;
        }
    }
    Ok(())
}

/// What stands for `${round}` and `${each}` in each round.
fn rounds<'a>(
    repeat: Option<Value<'a>>,
    each: Option<Value<'a>>,
    names: &Names<'a>,
) -> Result<Vec<Names<'a>>, Refusal> {
    let possible = |span: Range<usize>, count: usize| {
        let why = format!("{count} rounds are out of range; give 1 to {MOST_COPIES}");
        if (1..=MOST_COPIES).contains(&count) { Ok(()) } else { Err((span, why)) }
    };
    match (repeat, each) {
        (Some(mut repeat), None) => {
            let span = repeat.span();
            names.put_into(&mut repeat)?;
            let count: usize = document::read(repeat)?;
            possible(span, count)?;
            Ok((1..=count).map(|round| names.with("round", document::number(round))).collect())
        }
        (None, Some(mut each)) => {
            let span = each.span();
            names.put_into(&mut each)?;
            let DeValue::Array(values) = each.into_inner() else {
                return Err((span, "for-each must be a list".into()));
            };
            // Also none: rounds within rounds would go on for ever without a step.
            possible(span, values.len())?;
            let round = |(round, value): (usize, Value<'a>)| {
                names.with("round", document::number(round)).with("each", value.into_inner())
            };
            Ok((1..).zip(values).map(round).collect())
        }
        (_, each) => Err((each.map_or(0..0, |each| each.span()), "give repeat or for-each, not both".into())),
    }
}

/// Reads one step.
fn step(value: Value<'_>, tenants: &Tenants) -> Result<Step, Refusal> {
    let span = value.span();
    let table: Table = document::read(value)?;
    let refuse = |why: String| -> Refusal { (span.clone(), why) };
    let find = |names: &OneOrMore| -> Result<Vec<usize>, Refusal> {
        let names = match names {
            OneOrMore::One(name) => std::slice::from_ref(name),
            OneOrMore::More(names) => names.as_slice(),
        };
        let mut found = Vec::new();
        for name in names {
            for &tenant in tenants.find(name).map_err(refuse)? {
                if !found.contains(&tenant) {
                    found.push(tenant);
                }
            }
        }
        if found.is_empty() { Err(refuse("a step without a tenant does nothing".into())) } else { Ok(found) }
    };
    table.refuse_strays().map_err(refuse)?;
    let (rate, users) = (table.rate.as_ref(), table.users);
    let action = match table.verb().map_err(refuse)? {
        "prepare" => Action::Prepare(find(named(table.prepare.as_ref()))?),
        "fill" => Action::Fill(find(named(table.fill.as_ref()))?),
        "start" => Action::Start {
            tenants: find(named(table.start.as_ref()))?,
            lasts: table.r#for,
            stagger: table.stagger.unwrap_or(Span::seconds(0)),
        },
        "stop" => Action::Stop(find(named(table.stop.as_ref()))?),
        "set" => match (rate.map(Rates::single), users) {
            (Some(Some(rate)), None) => Action::Rate(find(named(table.set.as_ref()))?, rate),
            (None, Some(users)) if users > 0 => Action::Users(find(named(table.set.as_ref()))?, users),
            (None, Some(_)) => {
                return Err(refuse("0 users generate no load; stop the tenant instead".into()));
            }
            _ => return Err(refuse("set needs one rate, or users".into())),
        },
        "wait" => Action::Wait(table.wait.unwrap_or(Span::seconds(0))),
        "wait-for" => {
            Action::WaitFor { tenants: find(named(table.wait_for.as_ref()))?, timeout: table.timeout }
        }
        "run" => Action::Run {
            command: table.run.clone().unwrap_or_default(),
            timeout: table.timeout.unwrap_or(COMMAND_TIMEOUT),
            may_fail: table.may_fail,
        },
        _ => Action::Mark(table.mark.clone().unwrap_or_default()),
    };
    let quiet =
        matches!(action, Action::Prepare(_) | Action::Fill(_) | Action::Wait(_) | Action::WaitFor { .. });
    let annotated = table.annotate.unwrap_or(!quiet || table.note.is_some());
    Ok(Step { action, note: table.note, annotated, place: span.start })
}

/// The names of the verb that was found.
fn named(names: Option<&OneOrMore>) -> &OneOrMore {
    static NOBODY: OneOrMore = OneOrMore::More(Vec::new());
    names.unwrap_or(&NOBODY)
}

impl Table {
    /// Its verb, of which there must be one.
    fn verb(&self) -> Result<&'static str, String> {
        let verbs = [
            ("prepare", self.prepare.is_some()),
            ("fill", self.fill.is_some()),
            ("start", self.start.is_some()),
            ("stop", self.stop.is_some()),
            ("set", self.set.is_some()),
            ("wait", self.wait.is_some()),
            ("wait-for", self.wait_for.is_some()),
            ("run", self.run.is_some()),
            ("mark", self.mark.is_some()),
        ];
        let mut given = verbs.iter().filter(|(_, given)| *given).map(|(verb, _)| *verb);
        match (given.next(), given.next()) {
            (Some(verb), None) => Ok(verb),
            (Some(first), Some(second)) => {
                Err(format!("a step does one thing, but this one has \"{first}\" and \"{second}\""))
            }
            _ => {
                let all: Vec<&str> = verbs.iter().map(|(verb, _)| *verb).collect();
                Err(format!("a step needs one of {}", all.join(", ")))
            }
        }
    }

    /// Refuses keys that do nothing beside the verb.
    fn refuse_strays(&self) -> Result<(), String> {
        let verb = self.verb()?;
        let strays = [
            ("for", self.r#for.is_some(), &["start"][..]),
            ("stagger", self.stagger.is_some(), &["start"]),
            ("rate", self.rate.is_some(), &["set"]),
            ("users", self.users.is_some(), &["set"]),
            ("timeout", self.timeout.is_some(), &["wait-for", "run"]),
            ("may-fail", self.may_fail, &["run"]),
        ];
        match strays.iter().find(|(_, given, verbs)| *given && !verbs.contains(&verb)) {
            Some((key, _, verbs)) => {
                Err(format!("\"{key}\" is valid only with {}, not with {verb}", verbs.join(" and ")))
            }
            None if self.r#for.is_some_and(Span::is_zero) => Err("for = \"0s\" would be no load".into()),
            None => Ok(()),
        }
    }
}
