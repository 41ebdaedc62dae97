//! Commands on strings and lists.

use super::commands::Call;
use super::expression;
use super::interpreter::{Answer, LONGEST};
use super::list;

pub(super) const COMMANDS: [&str; 18] = [
    "append", "clock", "concat", "format", "join", "lappend", "lassign", "lindex", "linsert", "list",
    "llength", "lrange", "lreplace", "lreverse", "lsearch", "lsort", "split", "string",
];

pub(super) fn call(call: &mut Call<'_, '_>) -> Answer {
    let texts = call.texts();
    match (call.name, texts.as_slice()) {
        ("append", [name, rest @ ..]) => {
            let old = if call.interpreter.exists(name) {
                call.interpreter.read(name, call.line)?
            } else {
                String::new()
            };
            call.interpreter.set(name, old + &rest.concat(), call.line)
        }
        ("lappend", [name, rest @ ..]) => {
            let old = if call.interpreter.exists(name) {
                call.interpreter.read(name, call.line)?
            } else {
                String::new()
            };
            let mut elements = call.elements(&old)?;
            elements.extend(rest.iter().map(|text| (*text).to_owned()));
            call.interpreter.set(name, list::from(elements), call.line)
        }
        ("list", elements) => Ok(list::from(elements)),
        ("concat", lists) => Ok(lists
            .iter()
            .map(|text| text.trim())
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(" ")),
        ("llength", [list]) => Ok(call.elements(list)?.len().to_string()),
        ("lindex", [list]) => Ok((*list).to_owned()),
        ("lindex", [list, indexes @ ..]) => {
            let mut found = (*list).to_owned();
            for index in indexes {
                let elements = call.elements(&found)?;
                let at = position(call, index, elements.len())?;
                found = usize::try_from(at).ok().and_then(|at| elements.get(at).cloned()).unwrap_or_default();
            }
            Ok(found)
        }
        ("lrange", [list, first, last]) => {
            let elements = call.elements(list)?;
            let (first, end) = range(call, first, last, elements.len())?;
            Ok(list::from(&elements[first..end]))
        }
        ("lreplace", [list, first, last, new @ ..]) => {
            let mut elements = call.elements(list)?;
            let (first, end) = range(call, first, last, elements.len())?;
            elements.splice(first..end, new.iter().map(|text| (*text).to_owned()));
            Ok(list::from(elements))
        }
        ("linsert", [list, at, new @ ..]) => {
            let mut elements = call.elements(list)?;
            // An index just past the last element is valid here.
            let at = position(call, at, elements.len() + 1)?.clamp(0, elements.len() as i64) as usize;
            elements.splice(at..at, new.iter().map(|text| (*text).to_owned()));
            Ok(list::from(elements))
        }
        ("lreverse", [list]) => Ok(list::from(call.elements(list)?.iter().rev())),
        ("lsearch", words) => search(call, words),
        ("lsort", words) => sort(call, words),
        ("lassign", [list, names @ ..]) => {
            let mut elements = call.elements(list)?.into_iter();
            for name in names {
                call.interpreter.set(name, elements.next().unwrap_or_default(), call.line)?;
            }
            Ok(list::from(elements))
        }
        ("split", [text]) => Ok(split(text, " \t\n\r")),
        ("split", [text, separators]) => Ok(split(text, separators)),
        ("join", [list]) => Ok(call.elements(list)?.join(" ")),
        ("join", [list, between]) => {
            let elements = call.elements(list)?;
            if list.len().saturating_add(elements.len().saturating_mul(between.len())) > LONGEST {
                return too_long(call);
            }
            Ok(elements.join(between))
        }
        ("string", [action, rest @ ..]) => string(call, action, rest),
        ("format", [template, values @ ..]) => format(call, template, values),
        ("clock", ["seconds"]) => Ok(since_epoch().as_secs().to_string()),
        ("clock", ["milliseconds" | "clicks", ..]) => Ok(since_epoch().as_millis().to_string()),
        ("clock", ["microseconds"]) => Ok(since_epoch().as_micros().to_string()),
        _ => call.misuse(&format!("{} with other arguments", call.name)),
    }
}

fn since_epoch() -> std::time::Duration {
    std::time::UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// The position that `index` denotes in a list or string of `length` elements: a number, `end`, `end-N` or
/// `N+M`. It may be out of range.
fn position(call: &Call<'_, '_>, index: &str, length: usize) -> Result<i64, super::interpreter::Stop> {
    let bad = || {
        call.interpreter
            .fault(call.line, &format!("{index:?} is not an index: write a number, end, or end-N"))
    };
    let term = |text: &str| match text.trim() {
        "end" => Some(length as i64 - 1),
        number => number.parse::<i64>().ok(),
    };
    if let Some(value) = term(index) {
        return Ok(value);
    }
    let at = index.rfind(['+', '-']).filter(|at| *at > 0).ok_or_else(bad)?;
    let (left, right) = (term(&index[..at]).ok_or_else(bad)?, term(&index[at + 1..]).ok_or_else(bad)?);
    let sum = if index[at..].starts_with('-') { left.checked_sub(right) } else { left.checked_add(right) };
    sum.ok_or_else(bad)
}

/// The elements from `first` to `last` inclusive, as a range within `length`.
fn range(
    call: &Call<'_, '_>,
    first: &str,
    last: &str,
    length: usize,
) -> Result<(usize, usize), super::interpreter::Stop> {
    let first = position(call, first, length)?.clamp(0, length as i64) as usize;
    let end = position(call, last, length)?.saturating_add(1).clamp(0, length as i64) as usize;
    Ok((first, end.max(first)))
}

fn split(text: &str, separators: &str) -> String {
    if separators.is_empty() {
        return list::from(text.chars().map(String::from));
    }
    if text.is_empty() {
        return String::new();
    }
    list::from(text.split(|found| separators.contains(found)))
}

fn search(call: &Call<'_, '_>, words: &[&str]) -> Answer {
    let [options @ .., list, pattern] = words else { return call.misuse("lsearch ?OPTIONS? LIST PATTERN") };
    let (mut exact, mut not, mut all, mut inline, mut fold) = (false, false, false, false, false);
    for option in options {
        match *option {
            "-exact" => exact = true,
            "-glob" => exact = false,
            "-not" => not = true,
            "-all" => all = true,
            "-inline" => inline = true,
            "-nocase" => fold = true,
            other => return call.fail(&format!("lsearch {other} is not supported")),
        }
    }
    let folded = |text: &str| if fold { text.to_lowercase() } else { text.to_owned() };
    let pattern = folded(pattern);
    let elements = call.elements(list)?;
    let mut found = elements.iter().enumerate().filter(|(_, element)| {
        let element = folded(element);
        (if exact { element == pattern } else { glob_matches(&pattern, &element) }) != not
    });
    let shown = |(index, element): (usize, &String)| if inline { element.clone() } else { index.to_string() };
    if all {
        return Ok(list::from(found.map(shown)));
    }
    Ok(found.next().map_or_else(|| if inline { String::new() } else { "-1".into() }, shown))
}

fn sort(call: &Call<'_, '_>, words: &[&str]) -> Answer {
    let [options @ .., list] = words else { return call.misuse("lsort ?OPTIONS? LIST") };
    let mut elements = call.elements(list)?;
    let (mut integers, mut down, mut once) = (false, false, false);
    for option in options {
        match *option {
            "-integer" => integers = true,
            "-decreasing" => down = true,
            "-unique" => once = true,
            "-ascii" | "-increasing" => {}
            other => return call.fail(&format!("lsort {other} is not supported")),
        }
    }
    if integers {
        if let Some(bad) = elements.iter().find(|element| element.trim().parse::<i64>().is_err()) {
            return call.fail(&format!("{bad:?} is no integer"));
        }
        elements.sort_by_key(|element| element.trim().parse::<i64>().unwrap_or(0));
    } else {
        elements.sort();
    }
    if once {
        elements.dedup();
    }
    if down {
        elements.reverse();
    }
    Ok(list::from(elements))
}

fn string(call: &Call<'_, '_>, action: &str, rest: &[&str]) -> Answer {
    let flag = |holds: bool| Ok(u8::from(holds).to_string());
    let blank = |found: char| found.is_whitespace() || found == '\0';
    let sets = |set: &str| {
        let set = set.to_owned();
        move |found: char| set.contains(found)
    };
    match (action, rest) {
        ("tolower", [text]) => Ok(text.to_lowercase()),
        ("toupper", [text]) => Ok(text.to_uppercase()),
        ("totitle", [text]) => {
            let mut characters = text.chars();
            let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
            Ok(first + &characters.as_str().to_lowercase())
        }
        ("trim", [text]) => Ok(text.trim_matches(blank).to_owned()),
        ("trimleft", [text]) => Ok(text.trim_start_matches(blank).to_owned()),
        ("trimright", [text]) => Ok(text.trim_end_matches(blank).to_owned()),
        ("trim", [text, set]) => Ok(text.trim_matches(sets(set)).to_owned()),
        ("trimleft", [text, set]) => Ok(text.trim_start_matches(sets(set)).to_owned()),
        ("trimright", [text, set]) => Ok(text.trim_end_matches(sets(set)).to_owned()),
        ("length", [text]) => Ok(text.chars().count().to_string()),
        ("equal", [left, right]) => flag(left == right),
        ("equal", ["-nocase", left, right]) => flag(left.to_lowercase() == right.to_lowercase()),
        ("compare", [left, right]) => Ok((left.cmp(right) as i8).to_string()),
        ("match", [pattern, text]) => flag(glob_matches(pattern, text)),
        ("match", ["-nocase", pattern, text]) => {
            flag(glob_matches(&pattern.to_lowercase(), &text.to_lowercase()))
        }
        ("index", [text, at]) => {
            let characters: Vec<char> = text.chars().collect();
            let at = position(call, at, characters.len())?;
            let found = usize::try_from(at).ok().and_then(|at| characters.get(at));
            Ok(found.map(char::to_string).unwrap_or_default())
        }
        ("range", [text, first, last]) => {
            let characters: Vec<char> = text.chars().collect();
            let (first, end) = range(call, first, last, characters.len())?;
            Ok(characters[first..end].iter().collect())
        }
        ("first" | "last", [wanted, text]) => {
            let found = if action == "first" { text.find(wanted) } else { text.rfind(wanted) };
            let found = found.filter(|_| !wanted.is_empty());
            Ok(found.map_or("-1".into(), |at| text[..at].chars().count().to_string()))
        }
        ("repeat", [text, count]) => match count.trim().parse::<usize>() {
            Ok(count) if count.saturating_mul(text.len()) <= 1 << 20 => Ok(text.repeat(count)),
            _ => call.fail("a text can be repeated to 1 MiB at most"),
        },
        ("reverse", [text]) => Ok(text.chars().rev().collect()),
        ("map", [pairs, text]) => {
            let pairs = call.elements(pairs)?;
            map(&pairs, text).map_or_else(|| too_long(call), Ok)
        }
        ("is", [class, options @ .., text]) => {
            let strict = options.contains(&"-strict");
            if let Some(other) = options.iter().find(|option| **option != "-strict") {
                return call.fail(&format!("string is {other} is not supported"));
            }
            if text.is_empty() {
                return flag(!strict);
            }
            let every = |holds: fn(char) -> bool| flag(text.chars().all(holds));
            match *class {
                "integer" | "wideinteger" | "entier" => flag(expression::is_integer(text)),
                "double" => flag(expression::is_number(text)),
                "boolean" => flag(expression::truth(text).is_some()),
                "true" => flag(expression::truth(text) == Some(true)),
                "false" => flag(expression::truth(text) == Some(false)),
                "digit" => every(|found| found.is_ascii_digit()),
                "alpha" => every(char::is_alphabetic),
                "alnum" => every(char::is_alphanumeric),
                "space" => every(char::is_whitespace),
                "upper" => every(char::is_uppercase),
                "lower" => every(char::is_lowercase),
                other => call.fail(&format!("`string is {other}` is not supported")),
            }
        }
        _ => call.fail(&format!("`string {action}` with {} arguments is not supported", rest.len())),
    }
}

fn too_long(call: &Call<'_, '_>) -> Answer {
    call.fail("a text is longer than 16 MiB")
}

/// `None` if the result is too long.
fn map(pairs: &[String], text: &str) -> Option<String> {
    let (mut mapped, mut rest) = (String::new(), text);
    while let Some(next) = rest.chars().next() {
        let found = pairs.chunks_exact(2).find(|pair| !pair[0].is_empty() && rest.starts_with(&pair[0]));
        if let Some(pair) = found {
            mapped.push_str(&pair[1]);
            rest = &rest[pair[0].len()..];
        } else {
            mapped.push(next);
            rest = &rest[next.len_utf8()..];
        }
        if mapped.len() > LONGEST {
            return None;
        }
    }
    Some(mapped)
}

/// Whether a string matches a pattern with `*`, `?`, `[a-z]` and `\x`.
pub(super) fn glob_matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut from) = (0, 0);
    // Where to resume when a star must match one more character.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(at) {
            Some('*') => {
                star = Some((at + 1, from));
                at += 1;
                continue;
            }
            None if from == text.len() => return true,
            None => None,
            Some(_) => text.get(from).and_then(|found| one_matches(&pattern[at..], *found)),
        };
        match (step, star) {
            (Some(length), _) => {
                at += length;
                from += 1;
            }
            (None, Some((after, taken))) if taken < text.len() => {
                star = Some((after, taken + 1));
                (at, from) = (after, taken + 1);
            }
            _ => return false,
        }
    }
}

/// The length of the pattern's first element if it matches `found`.
fn one_matches(pattern: &[char], found: char) -> Option<usize> {
    match pattern {
        ['?', ..] => Some(1),
        ['\\', escaped, ..] => (*escaped == found).then_some(2),
        ['[', rest @ ..] => {
            let end = rest.iter().position(|next| *next == ']')?;
            let set = &rest[..end];
            let mut at = 0;
            let mut is = false;
            while at < set.len() {
                if set.get(at + 1) == Some(&'-') && at + 2 < set.len() {
                    is |= (set[at]..=set[at + 2]).contains(&found);
                    at += 3;
                } else {
                    is |= set[at] == found;
                    at += 1;
                }
            }
            is.then_some(end + 2)
        }
        [same, ..] => (*same == found).then_some(1),
        [] => None,
    }
}

/// printf's conversions: flags, width and precision, with d i u x X o c s f e g and %.
fn format(call: &Call<'_, '_>, template: &str, values: &[&str]) -> Answer {
    let (mut text, mut values) = (String::new(), values.iter());
    let mut rest = template.chars().peekable();
    while let Some(next) = rest.next() {
        if text.len() > LONGEST {
            return too_long(call);
        }
        if next != '%' {
            text.push(next);
            continue;
        }
        if rest.next_if_eq(&'%').is_some() {
            text.push('%');
            continue;
        }
        let (mut left, mut zero, mut plus) = (false, false, false);
        while let Some(flag) = rest.next_if(|next| "-0+ ".contains(*next)) {
            match flag {
                '-' => left = true,
                '0' => zero = true,
                '+' => plus = true,
                _ => {}
            }
        }
        let mut digits = |most: usize| {
            let mut found = String::new();
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                found.push(digit);
            }
            found.parse::<usize>().unwrap_or(0).min(most)
        };
        let width = digits(10_000);
        let precision = rest.next_if_eq(&'.').map(|_| {
            let mut found = String::new();
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                found.push(digit);
            }
            found.parse::<usize>().unwrap_or(0).min(100)
        });
        let conversion = rest.next();
        let Some(value) = values.next() else { return call.fail("format has fewer values than conversions") };
        let body = match conversion {
            Some('s') => value.chars().take(precision.unwrap_or(usize::MAX)).collect(),
            Some(letter @ ('d' | 'i' | 'u' | 'x' | 'X' | 'o' | 'c')) => {
                let Ok(number) = value.trim().parse::<i64>() else {
                    return call.fail(&format!("{value:?} is no integer"));
                };
                match letter {
                    'x' => format!("{number:x}"),
                    'X' => format!("{number:X}"),
                    'o' => format!("{number:o}"),
                    'c' => u32::try_from(number)
                        .ok()
                        .and_then(char::from_u32)
                        .map(String::from)
                        .unwrap_or_default(),
                    _ if plus && number >= 0 => format!("+{number}"),
                    _ => number.to_string(),
                }
            }
            Some(letter @ ('f' | 'e' | 'g')) => {
                let Ok(number) = value.trim().parse::<f64>() else {
                    return call.fail(&format!("{value:?} is no number"));
                };
                match letter {
                    'f' => format!("{number:.*}", precision.unwrap_or(6)),
                    'e' => format!("{number:.*e}", precision.unwrap_or(6)),
                    _ => format!("{number}"),
                }
            }
            other => return call.fail(&format!("format does not support the conversion {other:?}")),
        };
        let missing = width.saturating_sub(body.chars().count());
        match (left, zero && conversion != Some('s')) {
            (true, _) => text.push_str(&(body + &" ".repeat(missing))),
            (false, true) => {
                let signed = usize::from(body.starts_with(['-', '+']));
                text.push_str(&body[..signed]);
                text.push_str(&"0".repeat(missing));
                text.push_str(&body[signed..]);
            }
            (false, false) => text.push_str(&(" ".repeat(missing) + &body)),
        }
    }
    Ok(text)
}
