//! The last guard against a password in a store, a page or a message: the callers must not hand one over in the first place.
//!
//! It removes rather too much than too little, and a text that passed it is left alone by it.

use serde_json::Value;

/// What stands for a password that was given as a parameter.
const GONE: &str = "***";
const KEYS: [&str; 2] = ["password", "passwd"];

/// Removes the password from every `scheme://user:password@host` and `user:password@host` in `text`, and puts `***` for the value of
/// every parameter whose name ends in "password", in any case: `password=abc`, `PGPASSWORD="abc"`,
/// `"password": "abc"`.
pub fn redact(text: &str) -> String {
    parameters(&urls(text))
}

/// The same for every string within `value`. JSON text itself must not be given to [`redact`]: it could take
/// a quote away with the password.
pub fn redact_json(value: &mut Value) {
    match value {
        Value::String(text) => *text = redact(text),
        Value::Array(items) => items.iter_mut().for_each(redact_json),
        Value::Object(map) => {
            for (key, value) in std::mem::take(map) {
                let lower = key.to_ascii_lowercase();
                let mut value = value;
                if KEYS.iter().any(|k| lower.ends_with(k)) && !value.is_null() && !value.is_boolean() {
                    value = Value::String(GONE.into());
                } else {
                    redact_json(&mut value);
                }
                map.insert(redact(&key), value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Blanks end a URL or a value, and so do the escape sequences of a coloured text.
fn is_end(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

fn urls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(&bare(before));
        let (url, tail) = after.split_at(after.find(is_end).unwrap_or(after.len()));
        // A password that was not escaped may hold '/', '?', quotes and '@' itself: the last '@' ends it.
        match url.rfind('@').and_then(|at| url[..at].find(':').map(|colon| (colon, at))) {
            Some((colon, at)) => {
                out.push_str(&url[..colon]);
                out.push_str(&url[at..]);
            }
            None => out.push_str(url),
        }
        rest = tail;
    }
    out.push_str(&bare(rest));
    out
}

/// The same without a scheme. A user's name of letters, digits and `_.-%` must stand before the colon and a host behind
/// the last `@`, without a blank or a quote between them: a host with its port, a time and an operator of SQL are none.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(|c| is_end(c) || matches!(c, '"' | '\'' | '`')) {
        let host = |at: usize| word[at + 1..].starts_with(|c: char| c.is_alphanumeric() || c == '[');
        let user = |colon: usize| {
            word[..colon].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '%'))
        };
        let at = word.rmatch_indices('@').map(|(at, _)| at).find(|at| host(*at));
        let found = at.and_then(|at| {
            let colon = word[..at].match_indices(':').map(|(colon, _)| colon).find(|colon| user(*colon))?;
            Some((colon, at)).filter(|_| colon + 1 < at)
        });
        match found {
            Some((colon, at)) => {
                out.push_str(&word[..colon]);
                out.push_str(&word[at..]);
            }
            None => out.push_str(word),
        }
    }
    out
}

fn parameters(text: &str) -> String {
    // ASCII case only, so that every place in one is the same place in the other.
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    let mut from = 0;
    while let Some((at, key)) =
        KEYS.iter().filter_map(|k| Some((from + lower[from..].find(k)?, *k))).min_by_key(|(at, _)| *at)
    {
        from = at + key.len();
        let Some((offset, quote)) = value_start(&text[from..]) else { continue };
        let start = from + offset;
        let name = text[..at].trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "_-.".contains(c));
        let in_query = name.ends_with(['?', '&']);
        let length = value_length(&text[start..], quote, in_query);
        out.push_str(&text[done..start]);
        if length > 0 {
            out.push_str(GONE);
        }
        done = start + length;
        from = done;
    }
    out.push_str(&text[done..]);
    out
}

/// Where the value begins after the parameter's name, and its opening quote; none without `=` or `:`.
fn value_start(after: &str) -> Option<(usize, Option<char>)> {
    let rest = after.trim_start_matches([' ', '\t', '"', '\'', '\\']);
    let rest = rest.strip_prefix(['=', ':'])?.trim_start_matches(['>', ' ', '\t', '\\']);
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    Some((after.len() - rest.len() + quote.map_or(0, char::len_utf8), quote))
}

/// Bytes of the value at the start of `rest`.
fn value_length(rest: &str, quote: Option<char>, in_query: bool) -> usize {
    let Some(quote) = quote else {
        let end = rest.find(|c| is_end(c) || (in_query && c == '&')).unwrap_or(rest.len());
        // What follows a value in a sentence or a list; inside of it they are part of it.
        return rest[..end].trim_end_matches(['"', '\'', '`', ')', ']', '}', ',', ';']).len();
    };
    let line = rest.lines().next().unwrap_or("");
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == quote {
            // A doubled quote is one of the value, and three of them open and close a TOML string.
            if chars.next_if(|(_, next)| *next == quote).is_none() {
                return at;
            }
        }
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::{redact, redact_json};

    #[test]
    fn passwords_go_and_the_rest_stays() {
        for (given, kept) in [
            (
                "run --target postgres://joe:s3cr:e/t@h/db --users 8",
                "run --target postgres://joe@h/db --users 8",
            ),
            ("a = \"postgres://joe:p@ss@h:5432/db?x=1\"\nb", "a = \"postgres://joe@h:5432/db?x=1\"\nb"),
            ("postgres://h:5432/db", "postgres://h:5432/db"),
            ("postgres://joe:s3?cret@h/db", "postgres://joe@h/db"),
            ("x://joe:my\"pw@h", "x://joe@h"),
            ("sqlite:///tmp/a.db", "sqlite:///tmp/a.db"),
            ("ä://ö:ü@é", "ä://ö@é"),
            ("run --scrape admin:s3cr:e/t@db1:9100 -w 4", "run --scrape admin@db1:9100 -w 4"),
            (
                "scrape = [\"a:b@c@db1\", \"--scrape=x:y@[::1]:1\"]",
                "scrape = [\"a@db1\", \"--scrape=x@[::1]:1\"]",
            ),
            ("joe@db1:5432/db at 12:30:01", "joe@db1:5432/db at 12:30:01"),
            ("SELECT a::jsonb@>b, c: d@e", "SELECT a::jsonb@>b, c: d@e"),
            ("db1:9100 x://db2:1 joe@db3:2", "db1:9100 x://db2:1 joe@db3:2"),
            ("host=h password=abc user=x", "host=h password=*** user=x"),
            ("t = \"host=h password=a\"bc\"\nb", "t = \"host=h password=***\"\nb"),
            ("password=\"abc\" x", "password=\"***\" x"),
            ("password = \"a b\\\"c\"\nusers = 4", "password = \"***\"\nusers = 4"),
            ("password = \"\"\"abc\"\"\"\nb", "password = \"***\"\nb"),
            ("password = 'ä", "password = '***"),
            ("PGPASSWORD=abc kelvin", "PGPASSWORD=*** kelvin"),
            ("{\"Password\" : \"abc\", \"u\": 1}", "{\"Password\" : \"***\", \"u\": 1}"),
            ("postgres://h/db?password=abc&x=1", "postgres://h/db?password=***&x=1"),
            ("'\u{1b}[33m--password=abc\u{1b}[0m'", "'\u{1b}[33m--password=***\u{1b}[0m'"),
            ("password authentication failed", "password authentication failed"),
            ("password_encryption = scram", "password_encryption = scram"),
            ("password=\nx = 1", "password=\nx = 1"),
        ] {
            assert_eq!(redact(given), kept);
            assert_eq!(redact(kept), kept, "a second time");
        }
    }

    #[test]
    fn json_stays_json() {
        let mut value = serde_json::json!({
            "command": "x://joe:a\"b@h password=c",
            "list": ["password=\"c"],
            "db.password": 12,
            "password_encryption": "scram"
        });
        redact_json(&mut value);
        assert_eq!(
            value,
            serde_json::json!({
                "command": "x://joe@h password=***",
                "list": ["password=\"***"],
                "db.password": "***",
                "password_encryption": "scram"
            })
        );
    }
}
