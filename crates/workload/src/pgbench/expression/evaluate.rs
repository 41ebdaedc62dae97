//! Evaluation of compiled expressions.

use std::io::Write as _;

use kelvin_measure::Random;

use super::function::Function;
use super::{Binary, Expression, Fault, Operation, Value, distribution, permute};

/// State of the evaluation: the stack, whose memory is reused.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    stack: Vec<Value>,
}

/// Reads variables by slot.
pub(crate) trait Lookup {
    fn value(&self, slot: u32) -> Result<Value, Fault>;
}

impl Machine {
    /// Evaluates the expression. `place` is the script and command that `debug` prints.
    #[inline]
    pub(crate) fn evaluate(
        &mut self,
        expression: &Expression,
        variables: &dyn Lookup,
        random: &mut Random,
        place: (usize, usize),
    ) -> Result<Value, Fault> {
        let stack = &mut self.stack;
        stack.clear();
        let mut at = 0;
        while let Some(&operation) = expression.operations.get(at) {
            at += 1;
            match operation {
                Operation::Constant(value) => stack.push(value),
                Operation::Variable(slot) => stack.push(variables.value(slot)?),
                Operation::Negate => {
                    let value = pop(stack);
                    stack.push(binary(Binary::Subtract, Value::Integer(0), value)?);
                }
                Operation::Invert => {
                    let value = pop(stack);
                    stack.push(binary(Binary::BitXor, Value::Integer(-1), value)?);
                }
                Operation::Not => {
                    let value = pop(stack);
                    stack.push(match value {
                        Value::Null => Value::Null,
                        other => Value::Boolean(!other.boolean()?),
                    });
                }
                Operation::Is(expected) => {
                    let value = pop(stack);
                    stack.push(Value::Boolean(value == expected));
                }
                Operation::Binary(operator) => {
                    let right = pop(stack);
                    let left = pop(stack);
                    stack.push(binary(operator, left, right)?);
                }
                Operation::Call { function, arguments } => {
                    let first = stack.len().saturating_sub(usize::from(arguments));
                    let value = call(function, &stack[first..], random, place)?;
                    stack.truncate(first);
                    stack.push(value);
                }
                Operation::And(end) | Operation::Or(end) => {
                    let decisive = matches!(operation, Operation::Or(_));
                    let value = pop(stack);
                    if value == Value::Null || value.boolean()? == decisive {
                        stack.push(value);
                        at = end as usize;
                    }
                }
                Operation::Boolean => {
                    let value = pop(stack);
                    if value != Value::Null {
                        value.boolean()?;
                    }
                    stack.push(value);
                }
                Operation::Unless(other) => {
                    if !pop(stack).is_true() {
                        at = other as usize;
                    }
                }
                Operation::Jump(end) => at = end as usize,
            }
        }
        Ok(pop(stack))
    }
}

/// The parser emits operands before their operator, so the stack is never empty here.
#[inline]
fn pop(stack: &mut Vec<Value>) -> Value {
    stack.pop().unwrap_or(Value::Null)
}

#[inline]
fn binary(operator: Binary, left: Value, right: Value) -> Result<Value, Fault> {
    if left == Value::Null || right == Value::Null {
        return Ok(Value::Null);
    }
    let bits = matches!(
        operator,
        Binary::BitAnd | Binary::BitOr | Binary::BitXor | Binary::ShiftLeft | Binary::ShiftRight
    );
    let doubles = matches!(left, Value::Double(_)) || matches!(right, Value::Double(_));
    if doubles && !bits && operator != Binary::Modulo {
        return double(operator, left.double()?, right.double()?);
    }
    integer(operator, left.integer()?, right.integer()?)
}

fn double(operator: Binary, left: f64, right: f64) -> Result<Value, Fault> {
    Ok(match operator {
        Binary::Add => Value::Double(left + right),
        Binary::Subtract => Value::Double(left - right),
        Binary::Multiply => Value::Double(left * right),
        Binary::Divide => Value::Double(left / right),
        Binary::Equal => Value::Boolean(left == right),
        Binary::NotEqual => Value::Boolean(left != right),
        Binary::Less => Value::Boolean(left < right),
        Binary::LessOrEqual => Value::Boolean(left <= right),
        Binary::Greater => Value::Boolean(left > right),
        Binary::GreaterOrEqual => Value::Boolean(left >= right),
        _ => return integer(operator, Value::Double(left).integer()?, Value::Double(right).integer()?),
    })
}

#[inline]
fn integer(operator: Binary, left: i64, right: i64) -> Result<Value, Fault> {
    let or_overflow = |value: Option<i64>, what| value.ok_or(Fault::Overflow(what)).map(Value::Integer);
    match operator {
        Binary::Add => or_overflow(left.checked_add(right), "add"),
        Binary::Subtract => or_overflow(left.checked_sub(right), "sub"),
        Binary::Multiply => or_overflow(left.checked_mul(right), "mul"),
        Binary::Divide | Binary::Modulo if right == 0 => Err(Fault::DivisionByZero),
        Binary::Divide => or_overflow(left.checked_div(right), "div"),
        Binary::Modulo => Ok(Value::Integer(left.wrapping_rem(right))),
        Binary::Equal => Ok(Value::Boolean(left == right)),
        Binary::NotEqual => Ok(Value::Boolean(left != right)),
        Binary::Less => Ok(Value::Boolean(left < right)),
        Binary::LessOrEqual => Ok(Value::Boolean(left <= right)),
        Binary::Greater => Ok(Value::Boolean(left > right)),
        Binary::GreaterOrEqual => Ok(Value::Boolean(left >= right)),
        Binary::BitAnd => Ok(Value::Integer(left & right)),
        Binary::BitOr => Ok(Value::Integer(left | right)),
        Binary::BitXor => Ok(Value::Integer(left ^ right)),
        // Shift distances beyond the width wrap, as in pgbench on x86 and ARM.
        Binary::ShiftLeft => Ok(Value::Integer(left.wrapping_shl(right as u32))),
        Binary::ShiftRight => Ok(Value::Integer(left.wrapping_shr(right as u32))),
    }
}

fn call(
    function: Function,
    arguments: &[Value],
    random: &mut Random,
    place: (usize, usize),
) -> Result<Value, Fault> {
    if function == Function::Debug {
        let value = arguments.first().copied().unwrap_or(Value::Null);
        debug(value, place);
        return Ok(value);
    }
    if arguments.contains(&Value::Null) {
        return Ok(Value::Null);
    }
    match (function, arguments) {
        (Function::Abs, &[Value::Double(value)]) => Ok(Value::Double(value.abs())),
        (Function::Abs, &[value]) => Ok(Value::Integer(value.integer()?.wrapping_abs())),
        (Function::Double, &[value]) => Ok(Value::Double(value.double()?)),
        (Function::Int, &[value]) => Ok(Value::Integer(value.integer()?)),
        (Function::Exp, &[value]) => Ok(Value::Double(value.double()?.exp())),
        (Function::Ln, &[value]) => Ok(Value::Double(value.double()?.ln())),
        (Function::Sqrt, &[value]) => Ok(Value::Double(value.double()?.sqrt())),
        (Function::Power, &[base, exponent]) => Ok(Value::Double(base.double()?.powf(exponent.double()?))),
        (Function::Mod, &[left, right]) => integer(Binary::Modulo, left.integer()?, right.integer()?),
        (Function::Pi, _) => Ok(Value::Double(std::f64::consts::PI)),
        (Function::Greatest, values) => extreme(values, true),
        (Function::Least, values) => extreme(values, false),
        (Function::HashFnv1a, &[value, seed]) => {
            Ok(Value::Integer(permute::fnv1a(value.integer()?, seed.integer()?)))
        }
        (Function::HashMurmur2, &[value, seed]) => {
            Ok(Value::Integer(permute::murmur2(value.integer()?, seed.integer()?)))
        }
        (Function::Permute, &[value, size, seed]) => {
            let (value, size, seed) = (value.integer()?, size.integer()?, seed.integer()?);
            if size <= 0 {
                return Err(Fault::PermuteSize);
            }
            Ok(Value::Integer(permute::permute(value, size, seed)))
        }
        (Function::Random, &[low, high]) => {
            distribution::uniform(random, low.integer()?, high.integer()?).map(Value::Integer)
        }
        (Function::RandomExponential, &[low, high, parameter]) => {
            distribution::exponential(random, low.integer()?, high.integer()?, parameter.double()?)
                .map(Value::Integer)
        }
        (Function::RandomGaussian, &[low, high, parameter]) => {
            distribution::gaussian(random, low.integer()?, high.integer()?, parameter.double()?)
                .map(Value::Integer)
        }
        (Function::RandomZipfian, &[low, high, parameter]) => {
            distribution::zipfian(random, low.integer()?, high.integer()?, parameter.double()?)
                .map(Value::Integer)
        }
        // The parser has checked the number of arguments.
        (_, _) => Ok(Value::Null),
    }
}

/// The greatest or least value; if any of them is a double, all are converted to double.
fn extreme(values: &[Value], greatest: bool) -> Result<Value, Fault> {
    if values.iter().any(|value| matches!(value, Value::Double(_))) {
        let mut best: Option<f64> = None;
        for value in values {
            let value = value.double()?;
            best = Some(match best {
                Some(best) if (greatest && best >= value) || (!greatest && best <= value) => best,
                _ => value,
            });
        }
        return Ok(best.map_or(Value::Null, Value::Double));
    }
    let mut best: Option<i64> = None;
    for value in values {
        let value = value.integer()?;
        best = Some(best.map_or(value, |best| if greatest { best.max(value) } else { best.min(value) }));
    }
    Ok(best.map_or(Value::Null, Value::Integer))
}

/// Writes a value to standard error in pgbench's format.
fn debug(value: Value, (script, command): (usize, usize)) {
    let mut text = String::new();
    match value {
        Value::Null => text.push_str("null"),
        other => {
            text.push_str(other.type_name());
            text.push(' ');
            other.write(&mut text);
        }
    }
    // An error on standard error cannot be reported.
    let _ = writeln!(std::io::stderr().lock(), "debug(script={script},command={command}): {text}");
}
