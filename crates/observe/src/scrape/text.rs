//! The text format of exporters: Prometheus' format 0.0.4 and OpenMetrics 1.0, whose sample lines are the same,
//! `name{label="value",…} value [time] [# exemplar]`.
//!
//! Comments are ignored, including types and help texts: the meaning of a sample is known from its name. Times are
//! ignored as well: the time of the scrape counts, on the run's clock.
//!
//! Source: `prometheus.io/docs/instrumenting/exposition_formats`; the OpenMetrics specification, "Text Format". Names
//! in quotes, `{"a name",label="value"} 1`, are of Prometheus 3.

use std::borrow::Cow;

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<'a> {
    /// The metric's name.
    pub name: Cow<'a, str>,
    /// Names and values of its labels, in their order.
    pub labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The value; counters, too, are floating-point numbers.
    pub value: f64,
}

impl Sample<'_> {
    /// The value of a label; empty if it is missing, which is equivalent in this format.
    pub fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(label, _)| label == name).map_or("", |(_, value)| value)
    }
}

/// The error in a text, and its location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Malformed {
    /// The line, from 1.
    pub line: usize,
    /// The error.
    pub what: &'static str,
}

/// The samples of a text, in its order.
///
/// # Errors
/// The first line that is neither empty, a comment nor a sample: a partly parsed text would be partly measured.
pub fn parse(text: &str) -> Result<Vec<Sample<'_>>, Malformed> {
    let mut samples = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim_matches(BLANKS);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        samples.push(sample(line).map_err(|what| Malformed { line: i + 1, what })?);
    }
    Ok(samples)
}

const BLANKS: [char; 2] = [' ', '\t'];

type ParsedToken<'a, T> = Result<(T, &'a str), &'static str>;

fn sample(line: &str) -> Result<Sample<'_>, &'static str> {
    let (name, rest) = if line.starts_with('{') { (Cow::Borrowed(""), line) } else { bare(line)? };
    let mut sample = Sample { name, labels: Vec::new(), value: f64::NAN };
    let mut rest = rest.trim_start_matches(BLANKS);
    if let Some(inside) = rest.strip_prefix('{') {
        rest = labels(inside, &mut sample)?;
    }
    if sample.name.is_empty() {
        return Err("a value without a name");
    }
    let mut words = rest.split(BLANKS).filter(|word| !word.is_empty());
    let value = words.next().ok_or("a name without a value")?;
    sample.value = value.parse().map_err(|_| "the value is not a number")?;
    match words.next() {
        None | Some("#") => Ok(sample),
        Some(time) if time.parse::<f64>().is_err() => Err("the timestamp is not a number"),
        // Only an exemplar may follow the time; it begins with "#".
        Some(_) => match words.next() {
            None | Some("#") => Ok(sample),
            Some(_) => Err("text after the value and the timestamp"),
        },
    }
}

/// Parses the content of braces; returns the rest after them.
fn labels<'a>(mut rest: &'a str, sample: &mut Sample<'a>) -> Result<&'a str, &'static str> {
    loop {
        rest = rest.trim_start_matches(BLANKS);
        if let Some(behind) = rest.strip_prefix('}') {
            return Ok(behind);
        }
        let (name, behind) = if rest.starts_with('"') { quoted(rest)? } else { bare(rest)? };
        rest = behind.trim_start_matches(BLANKS);
        if let Some(behind) = rest.strip_prefix('=') {
            let (value, behind) = quoted(behind.trim_start_matches(BLANKS))?;
            sample.labels.push((name, value));
            rest = behind.trim_start_matches(BLANKS);
        } else if sample.name.is_empty() {
            sample.name = name;
        } else {
            return Err("a label without a value");
        }
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind,
            None if rest.starts_with('}') => {}
            None => return Err("labels without a closing brace"),
        }
    }
}

/// A name without quotes. Names of recording rules contain colons; labels have none, which is not checked.
fn bare(text: &str) -> ParsedToken<'_, Cow<'_, str>> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let end = text.find(|c| !part(c)).unwrap_or(text.len());
    match text.chars().next() {
        Some(first) if end > 0 && !first.is_ascii_digit() => Ok((Cow::Borrowed(&text[..end]), &text[end..])),
        _ => Err("a name is missing"),
    }
}

/// A text in quotes, in which `\\`, `\"` and `\n` are escaped.
fn quoted(text: &str) -> ParsedToken<'_, Cow<'_, str>> {
    let inside = text.strip_prefix('"').ok_or("a quoted string is missing")?;
    let mut owned: Option<String> = None;
    let mut from = 0;
    let mut bytes = inside.bytes().enumerate();
    // Quotes and backslashes are single bytes in UTF-8, so every position found is a character boundary.
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => {
                let value = match owned {
                    None => Cow::Borrowed(&inside[..at]),
                    Some(owned) => Cow::Owned(owned + &inside[from..at]),
                };
                return Ok((value, &inside[at + 1..]));
            }
            b'\\' => {
                let character = match bytes.next().map(|(_, byte)| byte) {
                    Some(b'\\') => '\\',
                    Some(b'"') => '"',
                    Some(b'n') => '\n',
                    _ => return Err("an invalid escape sequence"),
                };
                let owned = owned.get_or_insert_default();
                owned.push_str(&inside[from..at]);
                owned.push(character);
                from = at + 2;
            }
            _ => {}
        }
    }
    Err("a string without a closing quote")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_format_of_the_manual_is_read() {
        let text = "# HELP http_requests_total The total number of HTTP requests.\n\
            # TYPE http_requests_total counter\n\
            http_requests_total{method=\"post\",code=\"200\"} 1027 1395066363000\n\n\
            msdos_file_access_time_seconds{path=\"C:\\\\DIR\\\\F.TXT\",error=\"No:\\n\\\"x\\\"\",} 1.458255915e9\n\
            metric_without_timestamp_and_labels 12.47\n\
            something_weird {problem=\"division by zero\"} +Inf -3982045\n\
            foo_bucket{le=\"1.0\"} 5 1520879607.789 # {trace=\"a\"} 0.67\n\
            {\"a name\", zone=\"\u{e9}\"} NaN\n# EOF\n";
        let samples = parse(text).unwrap();
        let found: Vec<_> = samples.iter().map(|s| (&*s.name, s.value)).collect();
        assert_eq!(
            found[..5],
            [
                ("http_requests_total", 1027.0),
                ("msdos_file_access_time_seconds", 1.458_255_915e9),
                ("metric_without_timestamp_and_labels", 12.47),
                ("something_weird", f64::INFINITY),
                ("foo_bucket", 5.0),
            ]
        );
        assert!(found[5].0 == "a name" && found[5].1.is_nan());
        assert_eq!(samples[0].label("code"), "200");
        assert_eq!(samples[0].label("none"), "");
        assert_eq!((samples[1].label("path"), samples[1].label("error")), ("C:\\DIR\\F.TXT", "No:\n\"x\""));
        assert_eq!(samples[5].label("zone"), "\u{e9}");
    }

    #[test]
    fn an_error_is_reported_with_its_line() {
        for (text, line, part) in [
            ("a 1\nb\n", 2, "without a value"),
            ("a 1\n\n# x\nb x\n", 4, "not a number"),
            ("<html>", 1, "name is missing"),
            ("a{b=\"c} 1", 1, "closing quote"),
            ("a{b=\"c\" 1", 1, "closing brace"),
            ("a{b} 1", 1, "without a value"),
            ("a{b=c} 1", 1, "quoted string is missing"),
            ("a{b=\"\\x\"} 1", 1, "escape"),
            ("a 1 2 3", 1, "text after"),
            ("a 1 later", 1, "timestamp is not"),
            ("{b=\"c\"} 1", 1, "without a name"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.line == line && error.what.contains(part), "{text:?}: {error}");
        }
    }

    fn escaped(text: &str) -> String {
        text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
    }

    proptest! {
        #[test]
        fn what_is_written_comes_back(
            name in "[a-zA-Z_:][a-zA-Z0-9_:]{0,20}",
            labels in proptest::collection::vec(("[a-zA-Z_][a-zA-Z0-9_]{0,9}", "([^\r]|\\\\|\"|\n){0,9}"), 0..5),
            value: f64,
        ) {
            let shown: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            let text = format!("{name}{{{}}} {value}", shown.join(","));
            let samples = parse(&text).unwrap();
            prop_assert_eq!(samples.len(), 1);
            prop_assert_eq!(&samples[0].name, &name);
            prop_assert!(samples[0].value == value || value.is_nan() && samples[0].value.is_nan());
            let found: Vec<_> = samples[0].labels.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
            prop_assert_eq!(found, labels);
        }

        #[test]
        fn no_text_makes_it_panic(text in "([a-z{}=,#]|\"|\\\\|\n| |[0-9.+-]{1,4}|NaN|\\PC){0,60}") {
            if let Err(error) = parse(&text) {
                prop_assert!(error.line >= 1 && error.line <= text.lines().count());
            }
        }
    }
}
