//! YAML as a tree whose nodes know their lines, with bounds on what a file can unfold to.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use crate::fault::Problem;

/// Deeper than any scenario.
const DEEPEST: usize = 64;
/// More nodes than any scenario; aliases count as what they stand for.
const MOST_NODES: usize = 500_000;
/// More keys than any table of a scenario.
const MOST_KEYS: usize = 1_000;

/// A value of the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// The line of the source, counted from 1.
    pub(crate) line: u32,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A text; `plain` without quotes, so that it may be a number, a truth value or nothing.
    Scalar {
        text: String,
        plain: bool,
    },
    Sequence(Vec<Node>),
    Mapping(Vec<(Node, Node)>),
}

/// Reads a text that holds one document. `lines` gives the source's line of each of its lines; the line itself if it
/// has none.
pub(crate) fn parse(text: &str, lines: &[u32]) -> Result<Node, Problem> {
    let line_of = |line: usize| {
        lines.get(line.saturating_sub(1)).copied().unwrap_or(u32::try_from(line).unwrap_or(u32::MAX))
    };
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span): (Event<'_>, Span) = event.map_err(|error: ScanError| {
            Problem::new(line_of(error.marker().line()), format!("is not valid YAML: {}", error.info()))
        })?;
        builder.event(event, line_of(span.start.line()))?;
    }
    builder.root.ok_or_else(|| Problem::new(1, "is empty"))
}

/// A collection that is not complete.
#[derive(Debug)]
struct Open {
    node: Node,
    /// The key that waits for its value, in a mapping.
    key: Option<Node>,
    /// What `<<` brings into a mapping, as far as the mapping does not have it.
    merged: Vec<(Node, Node)>,
    anchor: usize,
}

#[derive(Debug, Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    root: Option<Node>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, line: u32) -> Result<(), Problem> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && !is_text_tag(tag.as_deref(), line)?;
                let node = Node { line, kind: Kind::Scalar { text: text.into_owned(), plain } };
                self.count(1, line)?;
                self.add(node, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                is_text_tag(tag.as_deref(), line)?;
                self.begin(Kind::Sequence(Vec::new()), anchor, line)
            }
            Event::MappingStart(anchor, tag) => {
                is_text_tag(tag.as_deref(), line)?;
                self.begin(Kind::Mapping(Vec::new()), anchor, line)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => {
                    let (node, anchor) = open.close();
                    self.add(node, anchor)
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor) else {
                    return Err(Problem::new(line, "an alias refers to a value that contains it"));
                };
                let (size, node) = (node.size(), node.clone());
                self.count(size, line)?;
                self.add(node, 0)
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(Problem::new(line, "a second document begins: a scenario is one document"))
            }
            _ => Ok(()),
        }
    }

    fn count(&mut self, nodes: usize, line: u32) -> Result<(), Problem> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MOST_NODES {
            return Err(Problem::new(line, format!("holds more than {MOST_NODES} values")));
        }
        Ok(())
    }

    fn begin(&mut self, kind: Kind, anchor: usize, line: u32) -> Result<(), Problem> {
        self.count(1, line)?;
        if self.open.len() == DEEPEST {
            return Err(Problem::new(line, format!("is nested deeper than {DEEPEST} levels")));
        }
        self.open.push(Open { node: Node { line, kind }, key: None, merged: Vec::new(), anchor });
        Ok(())
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        // An alias may have unfolded to a deep tree below a deep place.
        if node.depth() + self.open.len() > 2 * DEEPEST {
            return Err(Problem::new(node.line, "is nested too deep"));
        }
        if anchor > 0 {
            self.count(node.size(), node.line)?;
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.node.kind {
            Kind::Sequence(items) => items.push(node),
            Kind::Mapping(entries) => match open.key.take() {
                None => open.key = Some(node),
                Some(key) if key.is_merge() => open.merged.append(&mut merged_entries(node)?),
                Some(key) => insert(entries, key, node)?,
            },
            Kind::Scalar { .. } => {}
        }
        Ok(())
    }
}

impl Open {
    /// The complete collection, and its anchor.
    fn close(mut self) -> (Node, usize) {
        if let Kind::Mapping(entries) = &mut self.node.kind {
            for (key, value) in self.merged {
                if !entries.iter().any(|(known, _)| known.text() == key.text()) {
                    entries.push((key, value));
                }
            }
        }
        (self.node, self.anchor)
    }
}

/// What `<<` brings: the entries of a mapping, or of a list of them.
fn merged_entries(node: Node) -> Result<Vec<(Node, Node)>, Problem> {
    match node.kind {
        Kind::Mapping(entries) => Ok(entries),
        Kind::Sequence(items) => {
            let mut entries = Vec::new();
            for item in items {
                let Kind::Mapping(more) = item.kind else {
                    return Err(Problem::new(item.line, "<< must be a list of tables of keys"));
                };
                entries.extend(more);
            }
            Ok(entries)
        }
        Kind::Scalar { .. } => Err(Problem::new(node.line, "<< must be a table of keys")),
    }
}

fn insert(entries: &mut Vec<(Node, Node)>, key: Node, value: Node) -> Result<(), Problem> {
    let Some(text) = key.text() else {
        return Err(Problem::new(key.line, "a key must be a name"));
    };
    if entries.iter().any(|(known, _)| known.text() == Some(text)) {
        return Err(Problem::new(key.line, format!("{text} is given twice")));
    }
    if entries.len() == MOST_KEYS {
        return Err(Problem::new(key.line, format!("has more than {MOST_KEYS} keys")));
    }
    entries.push((key, value));
    Ok(())
}

/// Whether a tag makes a text of what may look like a number. Tags of other languages' objects are refused.
fn is_text_tag(tag: Option<&Tag>, line: u32) -> Result<bool, Problem> {
    match tag {
        None => Ok(false),
        Some(tag)
            if tag.is_yaml_core_schema()
                && matches!(
                    tag.suffix.as_str(),
                    "str" | "int" | "float" | "bool" | "null" | "map" | "seq"
                ) =>
        {
            Ok(tag.suffix == "str")
        }
        Some(tag) if tag.handle == "!" && tag.suffix.is_empty() => Ok(true),
        Some(tag) => Err(Problem::new(line, format!("the tag {tag} is not supported"))),
    }
}

impl Node {
    /// The number of values that it holds, itself included.
    fn size(&self) -> usize {
        match &self.kind {
            Kind::Scalar { .. } => 1,
            Kind::Sequence(items) => 1 + items.iter().map(Self::size).sum::<usize>(),
            Kind::Mapping(entries) => 1 + entries.iter().map(|(_, value)| 1 + value.size()).sum::<usize>(),
        }
    }

    fn depth(&self) -> usize {
        match &self.kind {
            Kind::Scalar { .. } => 0,
            Kind::Sequence(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Kind::Mapping(entries) => 1 + entries.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
        }
    }

    /// The text of a scalar, whatever it may stand for.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether it is nothing: `key:` without a value, `null`, `~`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, plain: true }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// What kind of value it is, for messages.
    fn description(&self) -> &'static str {
        match &self.kind {
            Kind::Scalar { .. } => "a single value",
            Kind::Sequence(_) => "a list",
            Kind::Mapping(_) => "a table of keys",
        }
    }

    /// The text of a scalar; `name` is what a message calls it.
    pub(crate) fn expect_text(&self, name: &str) -> Result<&str, Problem> {
        self.text().ok_or_else(|| {
            Problem::new(self.line, format!("{name} must be a string, not {}", self.description()))
        })
    }

    /// A number, in quotes too: templates give numbers in quotes.
    pub(crate) fn expect_number(&self, name: &str) -> Result<f64, Problem> {
        let text = self.expect_text(name)?;
        number(text).ok_or_else(|| Problem::new(self.line, format!("{name} must be a number, not {text:?}")))
    }

    /// A whole number that is not negative.
    pub(crate) fn expect_count(&self, name: &str) -> Result<u32, Problem> {
        let value = self.expect_number(name)?;
        if value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value) {
            Ok(value as u32)
        } else {
            Err(Problem::new(self.line, format!("{name} must be a whole number of at least 0, not {value}")))
        }
    }

    /// A truth value, by the names of YAML 1.1.
    pub(crate) fn expect_boolean(&self, name: &str) -> Result<bool, Problem> {
        let text = self.expect_text(name)?;
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Ok(true),
            "false" | "no" | "off" => Ok(false),
            _ => Err(Problem::new(self.line, format!("{name} must be true or false, not {text:?}"))),
        }
    }

    /// The items of a list; none for nothing.
    pub(crate) fn expect_items(&self, name: &str) -> Result<&[Self], Problem> {
        match &self.kind {
            Kind::Sequence(items) => Ok(items),
            _ if self.is_null() => Ok(&[]),
            _ => Err(Problem::new(self.line, format!("{name} must be a list, not {}", self.description()))),
        }
    }

    /// The entries of a table of keys; none for nothing.
    pub(crate) fn expect_entries(&self, name: &str) -> Result<&[(Self, Self)], Problem> {
        match &self.kind {
            Kind::Mapping(entries) => Ok(entries),
            _ if self.is_null() => Ok(&[]),
            _ => Err(Problem::new(
                self.line,
                format!("{name} must be a table of keys, not {}", self.description()),
            )),
        }
    }

    fn is_merge(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, plain: true } if text == "<<")
    }

    /// The value of a key; none where it is missing or nothing.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Kind::Mapping(entries) = &self.kind else { return None };
        entries
            .iter()
            .find(|(known, _)| known.text() == Some(key))
            .map(|(_, value)| value)
            .filter(|v| !v.is_null())
    }
}

/// A number as YAML 1.1 writes it: with a sign, `_` between digits, a fraction, an exponent.
pub(crate) fn number(text: &str) -> Option<f64> {
    let digits = text.trim().replace('_', "");
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    if !digits.chars().all(plain) || !digits.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Node {
        parse(text, &[]).unwrap_or_else(|problem| panic!("{problem:?}: {text}"))
    }

    fn refusal(text: &str) -> (u32, String) {
        let Err(Problem { line, message }) = parse(text, &[]) else { panic!("accepted: {text}") };
        (line, message)
    }

    #[test]
    fn values_know_their_lines_and_kinds() {
        let tree = read("a: 1\nb:\n  - True\n  - 'yes'\n  - 1_000.5\nc: ~\nd: |\n  one\n  two\n");
        assert_eq!(tree.get("a").unwrap().expect_count("a"), Ok(1));
        let items = tree.get("b").unwrap().expect_items("b").unwrap();
        assert_eq!((items[2].line, items[2].expect_number("n").unwrap()), (5, 1000.5));
        assert!(items[0].expect_boolean("x").unwrap() && items[1].expect_boolean("x").unwrap());
        assert!(tree.get("c").is_none());
        assert_eq!(tree.get("d").unwrap().text(), Some("one\ntwo\n"));
        assert_eq!(
            items[0].expect_number("rate"),
            Err(Problem::new(3, "rate must be a number, not \"True\""))
        );
    }

    #[test]
    fn lines_are_those_of_the_source() {
        let tree = parse("a: 1\nb: 2\nb2: 3\n", &[10, 20, 20]).unwrap();
        assert_eq!(tree.get("b2").unwrap().line, 20);
        assert_eq!(parse("a: 1\na: 2\n", &[7, 9]).unwrap_err(), Problem::new(9, "a is given twice"));
    }

    #[test]
    fn anchors_aliases_and_merged_keys_are_followed() {
        let tree = read("base: &b {x: 1, y: 2}\none:\n  <<: *b\n  y: 3\ntwo: *b\n");
        let one = tree.get("one").unwrap();
        assert_eq!(one.get("x").unwrap().expect_number("x"), Ok(1.0));
        assert_eq!(one.get("y").unwrap().expect_number("y"), Ok(3.0));
        assert_eq!(tree.get("two").unwrap().get("y").unwrap().expect_number("y"), Ok(2.0));
    }

    #[test]
    fn what_is_no_scenario_is_refused_with_its_line() {
        assert_eq!(refusal("a: 1\n---\nb: 2\n").0, 2);
        assert!(refusal("a: [1, 2\nb: 3").1.starts_with("is not valid YAML"));
        assert_eq!(refusal("").1, "is empty");
        assert!(refusal("a: !!python/object:os.system x").1.contains("python"));
        assert!(refusal(&format!("a: {}{}", "[".repeat(70), "]".repeat(70))).1.contains("nested deeper"));
    }

    #[test]
    fn what_unfolds_to_millions_of_values_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        assert!(refusal(&text).1.contains("more than 500000 values"));
    }
}
