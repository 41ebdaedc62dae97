//! Tcl lists: strings with elements separated by white space and quoted where necessary.

/// Splits a list into its elements. The error is a message.
pub(super) fn elements(text: &str) -> Result<Vec<String>, String> {
    let mut rest = text.chars().peekable();
    let mut found = Vec::new();
    loop {
        while rest.next_if(|next| next.is_whitespace()).is_some() {}
        let Some(first) = rest.peek().copied() else { return Ok(found) };
        let mut element = String::new();
        match first {
            '{' => {
                rest.next();
                let mut depth = 1;
                loop {
                    match rest.next() {
                        None => return Err("unmatched open brace in list".into()),
                        Some('\\') => {
                            element.push('\\');
                            element.extend(rest.next());
                        }
                        Some('{') => {
                            depth += 1;
                            element.push('{');
                        }
                        Some('}') if depth == 1 => break,
                        Some('}') => {
                            depth -= 1;
                            element.push('}');
                        }
                        Some(other) => element.push(other),
                    }
                }
                must_end(rest.peek(), "braces")?;
            }
            '"' => {
                rest.next();
                loop {
                    match rest.next() {
                        None => return Err("unmatched open quote in list".into()),
                        Some('"') => break,
                        Some('\\') => unescape(&mut element, rest.next()),
                        Some(other) => element.push(other),
                    }
                }
                must_end(rest.peek(), "quotes")?;
            }
            _ => {
                while let Some(next) = rest.next_if(|next| !next.is_whitespace()) {
                    if next == '\\' {
                        unescape(&mut element, rest.next());
                    } else {
                        element.push(next);
                    }
                }
            }
        }
        found.push(element);
    }
}

fn must_end(next: Option<&char>, what: &str) -> Result<(), String> {
    match next {
        Some(next) if !next.is_whitespace() => {
            Err(format!("list element in {what} followed by \"{next}\" instead of space"))
        }
        _ => Ok(()),
    }
}

fn unescape(element: &mut String, escaped: Option<char>) {
    element.push(match escaped {
        None => '\\',
        Some('n') => '\n',
        Some('t') => '\t',
        Some('r') => '\r',
        Some(other) => other,
    });
}

/// Joins `elements` to a list.
pub(super) fn from<S: AsRef<str>>(elements: impl IntoIterator<Item = S>) -> String {
    let mut text = String::new();
    for element in elements {
        if !text.is_empty() {
            text.push(' ');
        }
        push(&mut text, element.as_ref());
    }
    text
}

/// How an element is quoted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Plain,
    Braces,
    /// A backslash before every special character.
    Backslashes,
    /// A backslash before every special character except braces, which are balanced.
    BackslashesButBraces,
}

/// Appends an element, quoted as Tcl quotes it.
fn push(text: &mut String, element: &str) {
    let leading_hash = element.starts_with('#') && text.is_empty();
    let quoting = if element.is_empty() { Quoting::Braces } else { quoting(element, leading_hash) };
    match quoting {
        Quoting::Plain => text.push_str(element),
        Quoting::Braces => {
            text.push('{');
            text.push_str(element);
            text.push('}');
        }
        Quoting::Backslashes | Quoting::BackslashesButBraces => {
            if leading_hash {
                text.push('\\');
            }
            for found in element.chars() {
                let letter = match found {
                    '\n' => Some('n'),
                    '\t' => Some('t'),
                    '\r' => Some('r'),
                    '\u{b}' => Some('v'),
                    '\u{c}' => Some('f'),
                    _ => None,
                };
                let brace = found == '{' || found == '}';
                if letter.is_some() || "][$; \\\"".contains(found) || brace && quoting == Quoting::Backslashes
                {
                    text.push('\\');
                }
                text.push(letter.unwrap_or(found));
            }
        }
    }
}

/// The quoting that Tcl 8.6 chooses: none if possible, else braces if they are balanced, else backslashes.
fn quoting(element: &str, leading_hash: bool) -> Quoting {
    let (mut depth, mut special, mut wants_braces, mut wants_backslashes) = (0_i64, false, false, false);
    if leading_hash || element.starts_with(['{', '"']) {
        (special, wants_braces) = (true, true);
    }
    let mut characters = element.chars().peekable();
    while let Some(found) = characters.next() {
        match found {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth < 0 {
                    return Quoting::Backslashes;
                }
            }
            ']' | '"' => (special, wants_backslashes) = (true, true),
            '[' | '$' | ';' | ' ' | '\n' | '\t' | '\r' | '\u{b}' | '\u{c}' => {
                (special, wants_braces) = (true, true);
            }
            '\\' => {
                (special, wants_braces) = (true, true);
                match characters.peek() {
                    None | Some('\n') => return Quoting::Backslashes,
                    Some('{' | '}' | '\\') => {
                        characters.next();
                    }
                    Some(_) => {}
                }
            }
            _ => {}
        }
    }
    match (special, wants_backslashes && !wants_braces) {
        _ if depth != 0 => Quoting::Backslashes,
        (true, true) => Quoting::BackslashesButBraces,
        (true, false) => Quoting::Braces,
        (false, _) => Quoting::Plain,
    }
}
