//! Control commands: variables, conditions, loops, procedures, errors.

use std::rc::Rc;

use super::commands::{self, Call};
use super::expression;
use super::interpreter::{Answer, Definition, Interpreter, Procedure, Stop, Variable};
use super::list;
use super::parse::{self, Substitution};

pub(super) const COMMANDS: [&str; 26] = [
    "after", "array", "break", "catch", "continue", "error", "eval", "exit", "expr", "for", "foreach",
    "global", "if", "incr", "info", "proc", "quit", "rename", "return", "set", "subst", "switch", "unset",
    "update", "variable", "while",
];

pub(super) fn call(call: &mut Call<'_, '_>) -> Answer {
    let texts = call.texts();
    match (call.name, texts.as_slice()) {
        ("set", [name]) => call.interpreter.read(name, call.line),
        ("set", [name, value]) => call.interpreter.set(name, (*value).to_owned(), call.line),
        ("set", _) => call.misuse("set NAME ?VALUE?"),
        ("unset", names) => unset(call, names),
        ("incr", [name]) => increment(call, name, "1"),
        ("incr", [name, by]) => increment(call, name, by),
        ("incr", _) => call.misuse("incr NAME ?NUMBER?"),
        ("global" | "variable", names) => {
            link_to_globals(call, names);
            Ok(String::new())
        }
        ("array", [action, name, rest @ ..]) => array(call, action, name, rest),
        ("array", _) => call.misuse("array ACTION NAME"),
        ("expr", words) => {
            let line = call.arguments.first().map_or(call.line, |first| first.line);
            expression::evaluate(call.interpreter, &words.join(" "), line)
        }
        ("if", _) => condition(call),
        ("while", [_, _]) => repeat(call, None, 0, None, 1),
        ("while", _) => call.misuse("while TEST BODY"),
        ("for", [_, _, _, _]) => repeat(call, Some(0), 1, Some(2), 3),
        ("for", _) => call.misuse("for START TEST NEXT BODY"),
        ("foreach", _) => for_each(call),
        ("switch", _) => switch(call),
        ("break", []) => Err(Stop::Break),
        ("continue", []) => Err(Stop::Continue),
        ("proc", [name, parameters, body]) => define(call, name, parameters, body),
        ("proc", _) => call.misuse("proc NAME PARAMETERS BODY"),
        ("return", words) => leave(call, words),
        ("rename", [from, to]) => rename(call, from, to),
        ("rename", _) => call.misuse("rename OLD NEW"),
        ("error", [message, ..]) => call.fail(message),
        ("catch", _) => catch(call),
        ("eval", _) => {
            let script = texts.join(" ");
            let line = call.arguments.first().map_or(call.line, |first| first.line);
            call.interpreter.guarded(|interpreter| interpreter.evaluate(&script, line))
        }
        ("subst", words) => substitute(call, words),
        ("info", words) => inform(call, words),
        ("after", [milliseconds]) => after(call, milliseconds),
        ("after", _) => {
            call.fail("only `after MILLISECONDS` is supported: a script runs its commands one after another")
        }
        ("update", _) => Ok(String::new()),
        ("exit" | "quit", []) => Err(Stop::Exit(0)),
        ("exit", [status]) => match status.parse() {
            Ok(status) => Err(Stop::Exit(status)),
            Err(_) => call.fail(&format!("{status:?} is not an exit status")),
        },
        _ => call.misuse(&format!("{} with other arguments", call.name)),
    }
}

fn unset(call: &mut Call<'_, '_>, names: &[&str]) -> Answer {
    let quiet = names.first() == Some(&"-nocomplain");
    for name in names.iter().skip(usize::from(quiet)).filter(|name| **name != "--") {
        if !call.interpreter.unset(name) && !quiet {
            return call.fail(&format!("there is no variable {name}"));
        }
    }
    Ok(String::new())
}

fn increment(call: &mut Call<'_, '_>, name: &str, by: &str) -> Answer {
    let old =
        if call.interpreter.exists(name) { call.interpreter.read(name, call.line)? } else { "0".into() };
    let sum = match (old.trim().parse::<i64>(), by.trim().parse::<i64>()) {
        (Ok(old), Ok(by)) => old.checked_add(by),
        (Err(_), _) => return call.fail(&format!("{name} holds {old:?}, which is not an integer")),
        (_, Err(_)) => return call.fail(&format!("{by:?} is no integer")),
    };
    match sum {
        Some(sum) => call.interpreter.set(name, sum.to_string(), call.line),
        None => call.fail("the number is too large"),
    }
}

fn link_to_globals(call: &mut Call<'_, '_>, names: &[&str]) {
    if let Some(frame) = call.interpreter.frames.last_mut() {
        for name in names {
            frame.insert((*name).to_owned(), Variable::Global((*name).to_owned()));
        }
    }
}

fn array(call: &mut Call<'_, '_>, action: &str, name: &str, rest: &[&str]) -> Answer {
    match (action, rest) {
        ("exists", []) => Ok(u8::from(call.interpreter.array(name).is_some()).to_string()),
        ("size", []) => Ok(call.interpreter.array(name).map_or(0, |found| found.len()).to_string()),
        ("names", []) => {
            Ok(call.interpreter.array(name).map_or(String::new(), |found| list::from(found.keys())))
        }
        ("get", []) => Ok(call.interpreter.array(name).map_or(String::new(), |found| {
            list::from(found.iter().flat_map(|(index, value)| [index, value]))
        })),
        ("set", [pairs]) => {
            let elements = call.elements(pairs)?;
            if elements.len() % 2 != 0 {
                return call.fail("the list of an array must have an even number of elements");
            }
            for pair in elements.chunks_exact(2) {
                let written = format!("{name}({})", pair[0]);
                call.interpreter.set(&written, pair[1].clone(), call.line)?;
            }
            Ok(String::new())
        }
        ("unset", []) => {
            call.interpreter.unset(name);
            Ok(String::new())
        }
        _ => call.fail(&format!("`array {action}` is not supported")),
    }
}

fn test(call: &mut Call<'_, '_>, index: usize) -> Result<bool, Stop> {
    let Some(argument) = call.arguments.get(index) else {
        return Err(call
            .interpreter
            .fault(call.line, &format!("{} ends where a condition is expected", call.name)));
    };
    let value = expression::evaluate(call.interpreter, &argument.text, argument.line)?;
    expression::truth(&value).ok_or_else(|| {
        call.interpreter.fault(argument.line, &format!("the condition is {value:?}, neither true nor false"))
    })
}

fn body(call: &mut Call<'_, '_>, index: usize) -> Answer {
    match call.arguments.get(index) {
        Some(argument) => call.interpreter.evaluate(&argument.text, argument.line),
        None => call.fail(&format!("{} ends where its commands are expected", call.name)),
    }
}

fn condition(call: &mut Call<'_, '_>) -> Answer {
    let word = |call: &Call<'_, '_>, index: usize| call.arguments.get(index).map(|found| found.text.clone());
    let mut next = 0;
    loop {
        let holds = test(call, next)?;
        next += 1;
        if word(call, next).as_deref() == Some("then") {
            next += 1;
        }
        if holds {
            return body(call, next);
        }
        next += 1;
        match word(call, next).as_deref() {
            Some("elseif") => next += 1,
            Some("else") => return body(call, next + 1),
            Some(_) => return body(call, next),
            None => return Ok(String::new()),
        }
    }
}

/// Runs a loop. The numbers are the arguments with its start, its condition, its step, and its body.
fn repeat(
    call: &mut Call<'_, '_>,
    start: Option<usize>,
    decides: usize,
    follows: Option<usize>,
    repeated: usize,
) -> Answer {
    if let Some(start) = start {
        body(call, start)?;
    }
    while test(call, decides)? {
        if !turn(call, repeated)? {
            break;
        }
        if let Some(follows) = follows {
            body(call, follows)?;
        }
    }
    Ok(String::new())
}

/// Runs a loop's body once; returns whether the loop continues.
fn turn(call: &mut Call<'_, '_>, index: usize) -> Result<bool, Stop> {
    let arguments = call.arguments;
    let Some(argument) = arguments.get(index) else { return body(call, index).map(|_| true) };
    match call.interpreter.guarded(|interpreter| interpreter.evaluate(&argument.text, argument.line)) {
        Ok(_) | Err(Stop::Continue) => Ok(true),
        Err(Stop::Break) => Ok(false),
        Err(stop) => Err(stop),
    }
}

fn for_each(call: &mut Call<'_, '_>) -> Answer {
    let count = call.arguments.len();
    if count < 3 || count.is_multiple_of(2) {
        return call.misuse("foreach NAMES LIST BODY");
    }
    let mut lists = Vec::new();
    for pair in call.arguments[..count - 1].chunks_exact(2) {
        let names = call.elements(&pair[0].text)?;
        if names.is_empty() {
            return call.misuse("foreach NAMES LIST BODY");
        }
        lists.push((names, call.elements(&pair[1].text)?));
    }
    let turns = lists.iter().map(|(names, values)| values.len().div_ceil(names.len())).max().unwrap_or(0);
    for at in 0..turns {
        for (names, values) in &lists {
            for (index, name) in names.iter().enumerate() {
                let value = values.get(at * names.len() + index).cloned().unwrap_or_default();
                call.interpreter.set(name, value, call.line)?;
            }
        }
        if !turn(call, count - 1)? {
            break;
        }
    }
    Ok(String::new())
}

fn switch(call: &mut Call<'_, '_>) -> Answer {
    let options = call.arguments.iter().take_while(|argument| argument.text.starts_with('-')).count();
    let mut glob = false;
    for option in &call.arguments[..options] {
        match option.text.as_str() {
            "-glob" => glob = true,
            "-exact" | "--" => {}
            other => return call.fail(&format!("switch {other} is not supported")),
        }
    }
    let (subject, pairs) = match &call.arguments[options..] {
        [subject, all] => {
            (subject, call.elements(&all.text)?.into_iter().map(|text| (text, all.line)).collect())
        }
        [subject, rest @ ..] => {
            (subject, rest.iter().map(|argument| (argument.text.clone(), argument.line)).collect::<Vec<_>>())
        }
        [] => return call.misuse("switch ?OPTIONS? TEXT {PATTERN BODY …}"),
    };
    if pairs.len() % 2 != 0 {
        return call.fail("switch has a pattern without commands");
    }
    let last = pairs.len().saturating_sub(2);
    let matches = |index: usize, pattern: &str| {
        index == last && pattern == "default"
            || if glob {
                super::strings::glob_matches(pattern, &subject.text)
            } else {
                pattern == subject.text
            }
    };
    let Some(found) = (0..pairs.len()).step_by(2).find(|index| matches(*index, &pairs[*index].0)) else {
        return Ok(String::new());
    };
    // A hyphen instead of a body means the body of the next pattern.
    let commands =
        (found + 1..pairs.len()).step_by(2).map(|index| &pairs[index]).find(|(text, _)| text != "-");
    match commands {
        Some((text, line)) => call.interpreter.evaluate(text, *line),
        None => call.fail("switch has a pattern without commands"),
    }
}

fn define(call: &mut Call<'_, '_>, name: &str, parameters: &str, body: &str) -> Answer {
    let mut named = Vec::new();
    for parameter in call.elements(parameters)? {
        let parts = call.elements(&parameter)?;
        match parts.as_slice() {
            [name] => named.push((name.clone(), None)),
            [name, default] => named.push((name.clone(), Some(default.clone()))),
            _ => return call.fail(&format!("{parameter:?} is no parameter")),
        }
    }
    let procedure = Procedure {
        parameters: named,
        body: body.to_owned(),
        line: call.arguments[2].line,
        file: call.interpreter.file.clone(),
    };
    let name = name.trim_start_matches("::").to_owned();
    call.interpreter.hold(body.len() + parameters.len(), call.line)?;
    call.interpreter.definitions.insert(name, Definition::Procedure(Rc::new(procedure)));
    Ok(String::new())
}

fn rename(call: &mut Call<'_, '_>, from: &str, to: &str) -> Answer {
    let definition = match call.interpreter.definitions.get(from) {
        Some(Definition::Nothing) => None,
        Some(found) => Some(found.clone()),
        None if is_command(call.interpreter, from) => Some(Definition::Command(from.to_owned())),
        None => None,
    };
    let Some(definition) = definition else {
        return call.fail(&format!("there is no command {from:?} to rename"));
    };
    call.interpreter.definitions.insert(from.to_owned(), Definition::Nothing);
    if !to.is_empty() {
        // The command gets its original name back.
        let own = matches!(&definition, Definition::Command(name) if name == to);
        if own {
            call.interpreter.definitions.remove(to);
        } else {
            call.interpreter.definitions.insert(to.to_owned(), definition);
        }
    }
    Ok(String::new())
}

fn is_command(interpreter: &Interpreter<'_>, name: &str) -> bool {
    commands::knows(name) || interpreter.host.knows(name)
}

fn leave(call: &mut Call<'_, '_>, words: &[&str]) -> Answer {
    match words {
        [] => Err(Stop::Return(String::new())),
        ["-code", "error", message] => call.fail(message),
        [value] | ["-code", "ok" | "return" | "0", value] => Err(Stop::Return((*value).to_owned())),
        _ => call.misuse("return ?-code error? ?VALUE?"),
    }
}

fn catch(call: &mut Call<'_, '_>) -> Answer {
    let arguments = call.arguments;
    let Some((script, names)) = arguments.split_first() else { return call.misuse("catch SCRIPT ?NAME?") };
    let answer = call.interpreter.guarded(|interpreter| interpreter.evaluate(&script.text, script.line));
    let (code, value) = match answer {
        Ok(value) => (0, value),
        Err(Stop::Fault(fault)) if !fault.fatal => (1, fault.message),
        Err(Stop::Return(value)) => (2, value),
        Err(Stop::Break) => (3, String::new()),
        Err(Stop::Continue) => (4, String::new()),
        Err(stop) => return Err(stop),
    };
    if let Some(name) = names.first() {
        call.interpreter.set(&name.text, value, call.line)?;
    }
    Ok(code.to_string())
}

fn substitute(call: &mut Call<'_, '_>, words: &[&str]) -> Answer {
    let mut how = Substitution { commands: true, variables: true, backslashes: true };
    let Some((text, options)) = words.split_last() else { return call.misuse("subst ?OPTIONS? TEXT") };
    for option in options {
        match *option {
            "-nocommands" => how.commands = false,
            "-novariables" => how.variables = false,
            "-nobackslashes" => how.backslashes = false,
            other => return call.fail(&format!("subst {other} is not supported")),
        }
    }
    let line = call.arguments.last().map_or(call.line, |last| last.line);
    let parts = parse::text(text, line, how).map_err(|fault| call.interpreter.located(fault))?;
    call.interpreter.substitute(&parts, line)
}

fn inform(call: &mut Call<'_, '_>, words: &[&str]) -> Answer {
    match words {
        ["exists", name] => Ok(u8::from(call.interpreter.exists(name)).to_string()),
        ["command" | "commands" | "comm", name] => {
            let known = match call.interpreter.definitions.get(*name) {
                Some(Definition::Nothing) => false,
                Some(_) => true,
                None => is_command(call.interpreter, name),
            };
            Ok(if known { (*name).to_owned() } else { String::new() })
        }
        ["procs", name] => {
            let found = call.interpreter.definitions.get(*name);
            Ok(if matches!(found, Some(Definition::Procedure(_))) {
                (*name).to_owned()
            } else {
                String::new()
            })
        }
        ["script"] => {
            Ok(call.interpreter.file.as_ref().map_or(String::new(), |file| file.display().to_string()))
        }
        ["hostname"] => Ok("localhost".into()),
        ["tclversion"] => Ok("8.6".into()),
        [what, ..] => call.fail(&format!("`info {what}` is not supported")),
        [] => call.misuse("info WHAT"),
    }
}

fn after(call: &mut Call<'_, '_>, milliseconds: &str) -> Answer {
    /// One day.
    const LONGEST: u64 = 86_400_000;
    match milliseconds.parse() {
        Ok(time) if time <= LONGEST => match call.interpreter.host.wait(time) {
            Ok(()) => Ok(String::new()),
            Err(error) => {
                let Stop::Fault(mut fault) = call.interpreter.fault(call.line, &error.message) else {
                    return Ok(String::new());
                };
                fault.fatal = error.fatal;
                Err(Stop::Fault(fault))
            }
        },
        _ => call.fail(&format!("{milliseconds:?} is not a number of milliseconds of at most a day")),
    }
}
