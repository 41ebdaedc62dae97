//! The expressions of `\set`, `\if` and `\elif`, with pgbench's grammar and results.
//!
//! The text of an expression is compiled once, directly to a postfix program for a stack machine with
//! variables as slots. Evaluation neither allocates memory nor looks up names.

mod distribution;
mod evaluate;
mod function;
mod lexer;
mod parser;
mod permute;
mod value;

pub use value::Value;

pub(crate) use evaluate::{Lookup, Machine};
pub(crate) use lexer::is_name;
pub(crate) use parser::parse;

use function::Function;

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Expression {
    operations: Vec<Operation>,
}

/// One operation: pops its operands from the stack and pushes its result.
#[derive(Debug, Clone, Copy)]
enum Operation {
    Constant(Value),
    Variable(u32),
    Negate,
    Invert,
    Not,
    /// Whether the value is exactly this one.
    Is(Value),
    Binary(Binary),
    Call {
        function: Function,
        arguments: u16,
    },
    /// Jumps and keeps the value if it is NULL or false; otherwise pops it.
    And(u32),
    /// Jumps and keeps the value if it is NULL or true; otherwise pops it.
    Or(u32),
    /// Fails unless the value is boolean or NULL.
    Boolean,
    /// Pops the value and jumps unless it is true.
    Unless(u32),
    Jump(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
}

/// Why an expression has no value.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Fault {
    /// A value of the wrong type.
    #[error("cannot coerce {from} to {to}")]
    Coercion {
        /// The type it has.
        from: &'static str,
        /// The type that is needed.
        to: &'static str,
    },
    /// A double outside the range of integers.
    #[error("double to int overflow for {0}")]
    DoubleToInt(f64),
    /// An integer beyond 64 bits.
    #[error("bigint {0} out of range")]
    Overflow(&'static str),
    /// A division, or remainder, by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// An undefined variable.
    #[error("undefined variable")]
    Undefined(u32),
    /// A variable whose text is not a value.
    #[error("malformed variable value")]
    Malformed(u32),
    /// The lower bound exceeds the upper.
    #[error("empty range given to random")]
    EmptyRange,
    /// The bounds are 2^63 or more apart.
    #[error("random range is too large")]
    RangeTooLarge,
    /// A distribution's parameter is out of range.
    #[error("{name} parameter must be {bounds} (not {value})")]
    Parameter {
        /// The distribution.
        name: &'static str,
        /// What is allowed.
        bounds: &'static str,
        /// What was given.
        value: f64,
    },
    /// A permutation of no elements.
    #[error("permute size parameter must be greater than zero")]
    PermuteSize,
}

/// A syntax error in an expression and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// Byte offset from the start of the text.
    pub(crate) at: usize,
    pub(crate) message: String,
}

/// Assigns slots to variable names.
pub(crate) trait Names {
    fn slot(&mut self, name: &str) -> u32;
}

/// Compiles and evaluates an expression without variables once. A run compiles its expressions in advance.
pub fn calculate(text: &str, random: &mut kelvin_measure::Random) -> kelvin_database::Result<Value> {
    struct NoNames;
    impl Names for NoNames {
        fn slot(&mut self, _name: &str) -> u32 {
            0
        }
    }
    struct NoValues;
    impl Lookup for NoValues {
        fn value(&self, slot: u32) -> Result<Value, Fault> {
            Err(Fault::Undefined(slot))
        }
    }
    let refuse = |message: String| kelvin_database::Error::usage(message);
    let expression = parse(text, &mut NoNames)
        .map_err(|error| refuse(format!("{} at character {} of {text:?}", error.message, error.at + 1)))?;
    Machine::default()
        .evaluate(&expression, &NoValues, random, (0, 0))
        .map_err(|fault| refuse(format!("{fault} in {text:?}")))
}
