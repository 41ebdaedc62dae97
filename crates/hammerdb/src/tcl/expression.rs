//! `expr`: numbers, strings and comparisons.

use super::interpreter::{Answer, Interpreter, Stop};
use super::list;
use super::parse::{Reader, WordPart};

/// A value in an expression.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Integer(i64),
    Real(f64),
    Text(String),
}

impl Value {
    /// Reads a variable's value or a command's result: a number if it is one, else a string.
    fn read(text: &str) -> Self {
        number(text.trim()).unwrap_or_else(|| Self::Text(text.to_owned()))
    }

    fn text(&self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Real(value) => real_text(*value),
            Self::Text(text) => text.clone(),
        }
    }

    fn real(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Real(value) => Some(*value),
            Self::Text(_) => None,
        }
    }
}

/// Parses an integer (also 0x, 0b, 0o) or a floating-point number.
fn number(text: &str) -> Option<Value> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    if !digits.as_bytes().first().is_some_and(|first| first.is_ascii_digit() || *first == b'.') {
        return None;
    }
    let lower = digits.to_ascii_lowercase();
    for (prefix, radix) in [("0x", 16), ("0b", 2), ("0o", 8)] {
        if let Some(rest) = lower.strip_prefix(prefix) {
            return i64::from_str_radix(rest, radix).ok().map(|value| Value::Integer(sign * value));
        }
    }
    if digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return text.parse().ok().map(Value::Integer);
    }
    text.parse().ok().map(Value::Real)
}

/// Whether `text` is an integer according to `string is integer`.
pub(super) fn is_integer(text: &str) -> bool {
    matches!(number(text.trim()), Some(Value::Integer(_)))
}

/// Whether `text` is a number according to `string is double`.
pub(super) fn is_number(text: &str) -> bool {
    number(text.trim()).is_some()
}

/// Formats a floating-point number with the fewest digits that read back as the same value, and always
/// recognisable as floating-point.
fn real_text(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "Inf" } else { "-Inf" }.to_owned();
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e17).contains(&magnitude) {
        let text = format!("{value:e}");
        return match text.split_once('e') {
            Some((digits, power)) if power.starts_with('-') => format!("{digits}e{power:0>3}"),
            Some((digits, power)) => format!("{digits}e+{power:0>2}"),
            None => text,
        };
    }
    let text = value.to_string();
    if text.contains('.') { text } else { format!("{text}.0") }
}

/// Parses a boolean.
pub(super) fn truth(text: &str) -> Option<bool> {
    match number(text.trim()) {
        Some(Value::Integer(value)) => Some(value != 0),
        Some(Value::Real(value)) => Some(value != 0.0),
        _ => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        },
    }
}

/// Evaluates the expression `text`, which starts on `line`.
pub(super) fn evaluate(interpreter: &mut Interpreter<'_>, text: &str, line: u32) -> Answer {
    let outer = interpreter.expressions;
    let mut expression = Expression { reader: Reader::new(text, line), interpreter };
    let value = expression.whole_text();
    expression.interpreter.expressions = outer;
    value
}

struct Expression<'t, 'i, 'h> {
    reader: Reader<'t>,
    interpreter: &'i mut Interpreter<'h>,
}

/// Greatest nesting depth of parentheses and signs, in an expression and in those it is evaluated for: few
/// enough for the stack.
const DEEPEST: u32 = 200;

/// Binary operators by precedence, weakest first. An operator precedes its own prefixes.
const LEVELS: [&[&str]; 9] = [
    &["|"],
    &["^"],
    &["&"],
    &["==", "!=", "eq", "ne", "in", "ni"],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
    &["**"],
];

type Evaluated = Result<Value, Stop>;

impl Expression<'_, '_, '_> {
    fn fault(&self, message: &str) -> Stop {
        self.interpreter.fault(self.reader.line, message)
    }

    fn whole_text(&mut self) -> Answer {
        let value = self.ternary(true)?;
        self.blanks();
        match self.reader.peek() {
            None => Ok(value.text()),
            Some(next) => Err(self.fault(&format!("the expression does not continue with {next:?}"))),
        }
    }

    fn blanks(&mut self) {
        while self.reader.peek().is_some_and(char::is_whitespace) {
            self.reader.next();
        }
    }

    fn truth(&self, value: &Value) -> Result<bool, Stop> {
        let text = value.text();
        truth(&text).ok_or_else(|| self.fault(&format!("{text:?} is neither true nor false")))
    }

    /// If `live` is false the value is not needed, and nothing is substituted.
    fn ternary(&mut self, live: bool) -> Evaluated {
        self.interpreter.expressions += 1;
        if self.interpreter.expressions > DEEPEST {
            return Err(self.fault("the expression is nested too deeply"));
        }
        let condition = self.either(live)?;
        self.blanks();
        let value = if self.reader.take('?') {
            let holds = live && self.truth(&condition)?;
            let yes = self.ternary(live && holds)?;
            self.blanks();
            if !self.reader.take(':') {
                return Err(self.fault("a colon is missing after ?"));
            }
            let no = self.ternary(live && !holds)?;
            if holds { yes } else { no }
        } else {
            condition
        };
        self.interpreter.expressions -= 1;
        Ok(value)
    }

    fn either(&mut self, live: bool) -> Evaluated {
        let mut left = self.both(live)?;
        while self.operator(&["||"]).is_some() {
            let known = live && self.truth(&left)?;
            let right = self.both(live && !known)?;
            let holds = known || live && self.truth(&right)?;
            left = Value::Integer(holds.into());
        }
        Ok(left)
    }

    fn both(&mut self, live: bool) -> Evaluated {
        let mut left = self.level(0, live)?;
        while self.operator(&["&&"]).is_some() {
            let known = live && self.truth(&left)?;
            let right = self.level(0, live && known)?;
            let holds = known && self.truth(&right)?;
            left = Value::Integer(holds.into());
        }
        Ok(left)
    }

    fn level(&mut self, level: usize, live: bool) -> Evaluated {
        let Some(operators) = LEVELS.get(level) else { return self.unary(live) };
        let mut left = self.level(level + 1, live)?;
        while let Some(operator) = self.operator(operators) {
            // Only `**` is right-associative.
            let right = self.level(if operator == "**" { level } else { level + 1 }, live)?;
            if live {
                left = self.apply(operator, &left, &right)?;
            }
        }
        Ok(left)
    }

    /// Consumes the next token if it is one of `operators` and not the prefix of a longer one.
    fn operator(&mut self, operators: &[&'static str]) -> Option<&'static str> {
        self.blanks();
        let first = self.reader.peek()?;
        let second = self.reader.second();
        for operator in operators {
            let mut wanted = operator.chars();
            let (one, two) = (wanted.next()?, wanted.next());
            let word = one.is_ascii_alphabetic();
            let is = match two {
                Some(two) => one == first && second == Some(two),
                None => {
                    one == first
                        && !matches!(
                            (one, second),
                            ('|', Some('|'))
                                | ('&', Some('&'))
                                | ('*', Some('*'))
                                | ('<', Some('<' | '='))
                                | ('>', Some('>' | '='))
                        )
                }
            };
            if is && !(word && self.continues_word()) {
                self.reader.next();
                if two.is_some() {
                    self.reader.next();
                }
                return Some(operator);
            }
        }
        None
    }

    /// Whether a letter follows the next two characters, so that these are not an operator.
    fn continues_word(&mut self) -> bool {
        self.reader.third().is_some_and(|next| next.is_ascii_alphanumeric() || next == '_')
    }

    fn unary(&mut self, live: bool) -> Evaluated {
        self.blanks();
        let Some(sign @ ('-' | '+' | '!' | '~')) = self.reader.peek() else { return self.operand(live) };
        self.interpreter.expressions += 1;
        if self.interpreter.expressions > DEEPEST {
            return Err(self.fault("the expression is nested too deeply"));
        }
        self.reader.next();
        let value = self.unary(live)?;
        self.interpreter.expressions -= 1;
        if !live {
            return Ok(value);
        }
        match (sign, &value) {
            ('!', _) => Ok(Value::Integer((!self.truth(&value)?).into())),
            ('~', Value::Integer(value)) => Ok(Value::Integer(!value)),
            ('-', Value::Integer(value)) => self.whole(value.checked_neg()),
            ('-', Value::Real(value)) => Ok(Value::Real(-value)),
            ('+', Value::Integer(_) | Value::Real(_)) => Ok(value),
            _ => Err(self.fault(&format!("{:?} is not a number", value.text()))),
        }
    }

    fn operand(&mut self, live: bool) -> Evaluated {
        let line = self.reader.line;
        match self.reader.peek() {
            None => Err(self.fault("the expression ends where a value is expected")),
            Some('(') => {
                self.reader.next();
                let value = self.ternary(live)?;
                self.blanks();
                if self.reader.take(')') {
                    Ok(value)
                } else {
                    Err(self.fault("a parenthesis is never closed"))
                }
            }
            Some('{') => {
                let text = self.reader.braced().map_err(Stop::Fault)?;
                Ok(Value::read(&text))
            }
            Some('"') => {
                let parts = self.reader.quoted().map_err(Stop::Fault)?;
                self.substituted(&parts, live, line)
            }
            Some('$') if self.reader.names_variable() => {
                self.reader.next();
                let part = self.reader.variable().map_err(Stop::Fault)?;
                self.substituted(&[part], live, line)
            }
            Some('[') => {
                self.reader.next();
                let script = self.reader.bracketed().map_err(Stop::Fault)?;
                self.substituted(&[WordPart::Script(script)], live, line)
            }
            Some(first) if first.is_ascii_digit() || first == '.' => self.literal(),
            Some(first) if first.is_ascii_alphabetic() => self.word(live),
            Some(other) => Err(self.fault(&format!("{other:?} is no value"))),
        }
    }

    fn substituted(&mut self, parts: &[WordPart], live: bool, line: u32) -> Evaluated {
        if !live {
            return Ok(Value::Integer(0));
        }
        Ok(Value::read(&self.interpreter.substitute(parts, line)?))
    }

    fn literal(&mut self) -> Evaluated {
        let mut text = String::new();
        while let Some(next) = self.reader.peek() {
            let exponent = matches!(next, '+' | '-') && text.ends_with(['e', 'E']) && !text.starts_with("0x");
            if next.is_ascii_alphanumeric() || next == '.' || exponent {
                text.push(next);
                self.reader.next();
            } else {
                break;
            }
        }
        number(&text).ok_or_else(|| self.fault(&format!("{text:?} is not a number")))
    }

    /// A function call or a boolean.
    fn word(&mut self, live: bool) -> Evaluated {
        let mut name = String::new();
        while let Some(next) = self.reader.peek().filter(|next| next.is_ascii_alphanumeric() || *next == '_')
        {
            name.push(next);
            self.reader.next();
        }
        self.blanks();
        if !self.reader.take('(') {
            return match truth(&name) {
                Some(_) => Ok(Value::Text(name)),
                None => Err(self.fault(&format!(
                    "{name:?} is neither a number nor a function; a text in an expression needs quotes or braces"
                ))),
            };
        }
        let mut arguments = Vec::new();
        loop {
            self.blanks();
            if arguments.is_empty() && self.reader.take(')') {
                break;
            }
            arguments.push(self.ternary(live)?);
            self.blanks();
            if self.reader.take(')') {
                break;
            }
            if !self.reader.take(',') {
                return Err(self.fault(&format!("the arguments of {name} are never closed")));
            }
        }
        if live { self.function(&name, &arguments) } else { Ok(Value::Integer(0)) }
    }

    fn function(&self, name: &str, arguments: &[Value]) -> Evaluated {
        use Value::{Integer, Real};
        let real = |value: &Value| {
            value.real().ok_or_else(|| self.fault(&format!("{:?} is not a number", value.text())))
        };
        let whole = |value: f64| {
            if value.abs() < 9.2e18 {
                Ok(Integer(value as i64))
            } else {
                Err(self.fault("the number is too large"))
            }
        };
        match (name, arguments) {
            ("int" | "wide" | "entier", [value]) => whole(real(value)?.trunc()),
            ("round", [value]) => whole(real(value)?.round()),
            ("double", [value]) => Ok(Real(real(value)?)),
            ("floor", [value]) => Ok(Real(real(value)?.floor())),
            ("ceil", [value]) => Ok(Real(real(value)?.ceil())),
            ("sqrt", [value]) => self.real(real(value)?.sqrt()),
            ("log", [value]) => self.real(real(value)?.ln()),
            ("log10", [value]) => self.real(real(value)?.log10()),
            ("exp", [value]) => self.real(real(value)?.exp()),
            ("pow", [base, power]) => self.real(real(base)?.powf(real(power)?)),
            ("fmod", [left, right]) => self.real(real(left)? % real(right)?),
            ("abs", [Integer(value)]) => self.whole(value.checked_abs()),
            ("abs", [value]) => Ok(Real(real(value)?.abs())),
            ("bool", [value]) => Ok(Integer(self.truth(value)?.into())),
            ("min" | "max", [first, rest @ ..]) => {
                let (mut best, mut chosen) = (real(first)?, first);
                for value in rest {
                    let one = real(value)?;
                    if if name == "min" { one < best } else { one > best } {
                        (best, chosen) = (one, value);
                    }
                }
                Ok(chosen.clone())
            }
            _ => Err(self.fault(&format!("there is no function {name} of {} arguments", arguments.len()))),
        }
    }

    fn real(&self, value: f64) -> Evaluated {
        if value.is_nan() { Err(self.fault("the result is not a number")) } else { Ok(Value::Real(value)) }
    }

    fn whole(&self, value: Option<i64>) -> Evaluated {
        value.map(Value::Integer).ok_or_else(|| self.fault("the number is too large"))
    }

    fn apply(&self, operator: &str, left: &Value, right: &Value) -> Evaluated {
        let truth = |holds: bool| Ok(Value::Integer(holds.into()));
        match operator {
            "eq" => return truth(left.text() == right.text()),
            "ne" => return truth(left.text() != right.text()),
            "in" | "ni" => {
                let elements = list::elements(&right.text()).map_err(|message| self.fault(&message))?;
                return truth(elements.contains(&left.text()) == (operator == "in"));
            }
            "==" | "!=" | "<" | ">" | "<=" | ">=" => {
                let order = match (left, right) {
                    (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
                    _ => match (left.real(), right.real()) {
                        (Some(left), Some(right)) => left.total_cmp(&right),
                        _ => left.text().cmp(&right.text()),
                    },
                };
                return truth(match operator {
                    "==" => order.is_eq(),
                    "!=" => order.is_ne(),
                    "<" => order.is_lt(),
                    ">" => order.is_gt(),
                    "<=" => order.is_le(),
                    _ => order.is_ge(),
                });
            }
            _ => {}
        }
        if let (Value::Integer(left), Value::Integer(right)) = (left, right) {
            return self.integers(operator, *left, *right);
        }
        let (Some(one), Some(two)) = (left.real(), right.real()) else {
            let text = if left.real().is_none() { left } else { right }.text();
            return Err(self.fault(&format!("{text:?} is not a number")));
        };
        match operator {
            "+" => self.real(one + two),
            "-" => self.real(one - two),
            "*" => self.real(one * two),
            "/" => self.real(one / two),
            "**" => self.real(one.powf(two)),
            _ => Err(self.fault(&format!("{operator} needs integers"))),
        }
    }

    fn integers(&self, operator: &str, left: i64, right: i64) -> Evaluated {
        // As in Tcl, quotients are rounded down, and a remainder has the sign of the divisor.
        let quotient = || {
            let down = left.checked_div(right)?;
            Some(if left % right != 0 && (left < 0) != (right < 0) { down - 1 } else { down })
        };
        self.whole(match operator {
            "+" => left.checked_add(right),
            "-" => left.checked_sub(right),
            "*" => left.checked_mul(right),
            "/" | "%" if right == 0 => return Err(self.fault("division by zero")),
            "/" => quotient(),
            "%" => quotient().and_then(|down| left.checked_sub(down.checked_mul(right)?)),
            "**" if right < 0 => return self.real((left as f64).powi(right.max(-10_000) as i32)),
            "**" => u32::try_from(right).ok().and_then(|power| left.checked_pow(power)),
            "<<" => u32::try_from(right).ok().and_then(|bits| left.checked_shl(bits)),
            ">>" => Some(left >> right.clamp(0, 63)),
            "&" => Some(left & right),
            "|" => Some(left | right),
            _ => Some(left ^ right),
        })
    }
}
