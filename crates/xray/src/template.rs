//! The variables of a scenario, and its text with their values.
//!
//! As X-Ray does: the section `vars` is cut out and read by itself; then the whole text is a Jinja template with the
//! variables' values, and what it renders is the YAML that counts. The lines of the rendered text are traced to those
//! of the source by marks that are put in front of each line and are taken out again.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use minijinja::value::Value as Jinja;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

use crate::fault::{Problem, hint};
use crate::yaml::{self, Kind, Node, number};

/// Instructions of a template's evaluation; X-Ray's longest scenario takes a few thousand.
const FUEL: u64 = 2_000_000;
/// The longest text that a template may render.
const LONGEST: usize = 16 << 20;
/// Around the number of a source line, in the text that is rendered for the lines.
const MARKS: (char, char) = ('\u{f0001}', '\u{f0002}');

/// The value of a variable; its default's kind is the variable's type.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Number(f64),
    /// Anything else.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => write!(f, "{value:?}"),
            Self::Text(value) => value.fmt(f),
        }
    }
}

impl Value {
    fn of_node(node: &Node) -> Result<Self, Problem> {
        let Kind::Scalar { text, plain } = &node.kind else {
            return Err(Problem::new(node.line, "a variable must be a number, a text, true or false"));
        };
        if !plain {
            return Ok(Self::Text(text.clone()));
        }
        if let Ok(value) = node.expect_boolean("") {
            return Ok(Self::Boolean(value));
        }
        Ok(match (text.replace('_', "").parse(), number(text)) {
            (Ok(value), _) => Self::Integer(value),
            (_, Some(value)) => Self::Number(value),
            _ => Self::Text(text.clone()),
        })
    }

    /// A value of the same type, from the command line.
    fn parse_like(&self, text: &str) -> Result<Self, String> {
        let wrong = |kind: &str| Err(format!("must be {kind}, not {text:?}"));
        match self {
            Self::Boolean(_) => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => Ok(Self::Boolean(true)),
                "false" | "no" | "off" => Ok(Self::Boolean(false)),
                _ => wrong("true or false"),
            },
            Self::Integer(_) => text.parse().map(Self::Integer).or_else(|_| wrong("a whole number")),
            Self::Number(_) => {
                number(text).map_or_else(|| wrong("a number"), |value| Ok(Self::Number(value)))
            }
            Self::Text(_) => Ok(Self::Text(text.to_owned())),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Number(value) => Some(*value),
            _ => None,
        }
    }

    fn for_template(&self) -> Jinja {
        match self {
            Self::Boolean(value) => Jinja::from(*value),
            Self::Integer(value) => Jinja::from(*value),
            Self::Number(value) => Jinja::from(*value),
            Self::Text(value) => Jinja::from(value.as_str()),
        }
    }
}

/// A variable of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The value that is used.
    pub value: Value,
    /// What the scenario itself says.
    pub default: Value,
    /// The smallest value allowed.
    pub min: Option<f64>,
    /// The largest value allowed.
    pub max: Option<f64>,
    /// Where it is declared.
    pub line: u32,
}

/// A scenario's text, with its variables' values.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) text: String,
    /// The source's line for each line of the text.
    pub(crate) lines: Vec<u32>,
    pub(crate) variables: Vec<Variable>,
}

/// Renders a scenario's text. `settings` are values for its variables, from the command line.
pub(crate) fn render(source: &str, settings: &BTreeMap<String, String>) -> Result<Rendered, Problem> {
    let variables = variables(source, settings)?;
    let values: BTreeMap<String, Jinja> =
        variables.iter().map(|known| (known.name.clone(), known.value.for_template())).collect();
    let values = Jinja::from_object(values);
    let text = evaluate(source, &values)?;
    let lines = trace(source, &values, &text);
    Ok(Rendered { text, lines, variables })
}

/// The section `vars`: from its key to the next line that is not indented.
fn variables_section(source: &str) -> Option<(u32, String)> {
    let mut lines = source.lines().enumerate().skip_while(|(_, line)| !line.starts_with("vars:"));
    let (first, head) = lines.next()?;
    let rest = lines.map(|(_, line)| line).take_while(|line| !line.starts_with(|c: char| !c.is_whitespace()));
    let text = std::iter::once(head).chain(rest).fold(String::new(), |text, line| text + line + "\n");
    Some((first as u32, text))
}

fn variables(source: &str, settings: &BTreeMap<String, String>) -> Result<Vec<Variable>, Problem> {
    let mut found = Vec::new();
    if let Some((before, text)) = variables_section(source) {
        let lines: Vec<u32> = (1..=text.lines().count() as u32).map(|line| line + before).collect();
        let tree = yaml::parse(&text, &lines)?;
        if let Some(section) = tree.get("vars") {
            for (key, definition) in section.expect_entries("vars")? {
                let name = key.expect_text("the name of a variable")?;
                found.push(variable(name, key.line, definition, settings.get(name))?);
            }
        }
    }
    let unknown = settings.keys().find(|name| !found.iter().any(|known: &Variable| known.name == **name));
    if let Some(name) = unknown {
        let known: Vec<&str> = found.iter().map(|known| known.name.as_str()).collect();
        let list = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let hint = hint(name, known.iter().copied());
        return Err(Problem::new(0, format!("has no variable {name}{hint} (its variables: {list})")));
    }
    Ok(found)
}

fn variable(name: &str, line: u32, definition: &Node, set: Option<&String>) -> Result<Variable, Problem> {
    definition.expect_entries(name)?;
    let default = definition
        .get("default")
        .ok_or_else(|| Problem::new(line, format!("the variable {name} has no default")))
        .and_then(Value::of_node)?;
    let bound = |key: &str| {
        definition.get(key).map(|node| node.expect_number(&format!("{key} of {name}"))).transpose()
    };
    let (min, max) = (bound("min")?, bound("max")?);
    let (value, line_of_value) = match set {
        None => (default.clone(), line),
        Some(text) => {
            (default.parse_like(text).map_err(|error| Problem::new(line, format!("{name} {error}")))?, line)
        }
    };
    if let Some(number) = value.number() {
        let broken = |limit: &str, bound: f64| {
            Err(Problem::new(line_of_value, format!("{name} is {value}, and must be at {limit} {bound}")))
        };
        match (min, max) {
            (Some(min), _) if number < min => return broken("least", min),
            (_, Some(max)) if number > max => return broken("most", max),
            _ => {}
        }
    }
    Ok(Variable { name: name.to_owned(), value, default, min, max, line })
}

/// Text that refuses to become too long.
struct Limited(Vec<u8>);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST {
            return Err(io::Error::other(format!("the template renders more than {} MiB", LONGEST >> 20)));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn evaluate(source: &str, values: &Jinja) -> Result<String, Problem> {
    let mut environment = Environment::new();
    // What a scenario does not define is a mistake, unless it asks (`{% if x is defined %}`).
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    let problem = |error: &minijinja::Error| {
        let line = error.line().map_or(0, |line| line as u32);
        let mut message = error.detail().map_or_else(|| error.kind().to_string(), ToOwned::to_owned);
        // The writer's own reason is behind that of the engine.
        if let Some(cause) = std::error::Error::source(error) {
            message = cause.to_string();
        }
        Problem::new(line, format!("the template fails: {message}"))
    };
    let template = environment.template_from_str(source).map_err(|error| problem(&error))?;
    let mut text = Limited(Vec::new());
    template.render_captured_to(values.clone(), &mut text).map_err(|error| problem(&error))?;
    String::from_utf8(text.0).map_err(|_| Problem::new(0, "the output of the template is not UTF-8"))
}

/// The source line of each rendered line. Where marks would change what is rendered, the lines are those rendered.
fn trace(source: &str, values: &Jinja, text: &str) -> Vec<u32> {
    let (open, close) = MARKS;
    let identity = || (1..=text.lines().count() as u32).collect();
    if source.contains([open, close]) {
        return identity();
    }
    let Ok(marked) = evaluate(&marked(source), values) else { return identity() };
    let (mut lines, mut plain, mut line) = (Vec::new(), String::new(), 1);
    for part in marked.split('\n') {
        let mut first = None;
        let mut rest = part;
        while let Some((before, after)) = rest.split_once(open) {
            plain.push_str(before);
            let Some((number, behind)) = after.split_once(close) else { return identity() };
            first = first.or_else(|| number.parse().ok());
            rest = behind;
        }
        plain.push_str(rest);
        plain.push('\n');
        line = first.unwrap_or(line);
        lines.push(line);
    }
    if plain.trim_end_matches('\n') == text.trim_end_matches('\n') { lines } else { identity() }
}

/// The source with a mark before each line that does not begin inside a tag.
fn marked(source: &str) -> String {
    let mut text = String::with_capacity(source.len() * 2);
    let mut inside: Option<&str> = None;
    for (index, line) in source.split('\n').enumerate() {
        if index > 0 {
            text.push('\n');
        }
        if inside.is_none() {
            text.push(MARKS.0);
            text.push_str(&(index + 1).to_string());
            text.push(MARKS.1);
        }
        text.push_str(line);
        let mut rest = line;
        loop {
            if let Some(closing) = inside {
                let Some((_, behind)) = rest.split_once(closing) else { break };
                (inside, rest) = (None, behind);
                continue;
            }
            let tags = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")];
            let begins = tags.iter().filter_map(|(opening, closing)| Some((rest.find(opening)?, *closing)));
            let Some((position, closing)) = begins.min_by_key(|(position, _)| *position) else { break };
            (inside, rest) = (Some(closing), &rest[position + 2..]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOP: &str = "\
vars:
  nodes:
    default: 3
    min: 1
    max: 4
  size: {default: 2.5}
  where: {default: all}

vms:
{% for node in range(nodes) %}
  - Node {{ node }}:
      rate: {{ 1.96 * nodes ** (1/2) }}
{% endfor %}
last: {{ where }}
";

    fn set(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn loops_unfold_and_their_lines_are_those_of_the_source() {
        let rendered = render(LOOP, &set(&[("nodes", "2")])).unwrap();
        let text: Vec<&str> = rendered.text.lines().collect();
        let at = |part: &str| {
            let found = text.iter().enumerate().filter(|(_, line)| line.contains(part));
            found.map(|(index, _)| rendered.lines[index]).collect::<Vec<_>>()
        };
        assert_eq!(
            (at("- Node 0"), at("- Node 1"), at("rate: 2.77"), at("last: all")),
            (vec![11], vec![11], vec![12, 12], vec![14])
        );
        assert_eq!(rendered.variables[0].value, Value::Integer(2));
        assert_eq!(rendered.variables[1].value, Value::Number(2.5));
        assert_eq!(rendered.variables[2].default, Value::Text("all".into()));
    }

    #[test]
    fn settings_have_the_type_and_the_range_of_their_variable() {
        let refusal = |pairs: &[(&str, &str)]| {
            let problem = render(LOOP, &set(pairs)).unwrap_err();
            (problem.line, problem.message)
        };
        assert_eq!(refusal(&[("nodes", "9")]), (2, "nodes is 9, and must be at most 4".into()));
        assert_eq!(refusal(&[("nodes", "0")]), (2, "nodes is 0, and must be at least 1".into()));
        assert_eq!(refusal(&[("nodes", "many")]), (2, "nodes must be a whole number, not \"many\"".into()));
        assert_eq!(
            refusal(&[("node", "1")]).1,
            "has no variable node; did you mean nodes? (its variables: nodes, size, where)"
        );
    }

    #[test]
    fn a_tag_over_several_lines_keeps_the_lines() {
        let rendered = render("a: {{ 1\n  + 1 }}\nb: 2\n", &set(&[])).unwrap();
        assert_eq!((rendered.text.as_str(), &rendered.lines[..2]), ("a: 2\nb: 2", &[1, 3][..]));
    }

    #[test]
    fn what_a_template_does_wrong_has_its_line_and_an_end() {
        for (source, line, message) in [
            ("a: 1\nb: {{ missing }}", 2, "undefined"),
            ("a: 1\n\nb: {% for %}", 3, "template fails"),
            ("{% for i in range(9000) %}{% for j in range(9000) %}{% endfor %}{% endfor %}", 1, "fuel"),
            ("{% for i in range(9000) %}{{ 'x' * 10000 }}{% endfor %}", 0, "more than 16 MiB"),
            ("{% include 'other' %}", 1, "other"),
        ] {
            let problem = render(source, &set(&[])).unwrap_err();
            assert_eq!(problem.line, line, "{problem:?}");
            assert!(problem.message.contains(message), "{problem:?}");
        }
    }
}
