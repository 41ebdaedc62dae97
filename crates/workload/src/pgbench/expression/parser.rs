//! Compiles text to a postfix program by precedence climbing.

use super::function::{Arity, Function};
use super::lexer::{Lexer, Token};
use super::{Binary, Expression, Names, Operation, SyntaxError, Value};

/// Maximum number of arguments, as in pgbench.
const MOST_ARGUMENTS: u16 = 16;

/// Binding powers, weakest first.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARISON: u8 = 5;
const BITS: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;
const SIGN: u8 = 9;

/// Maximum nesting depth: more than anybody writes, and far from exhausting the stack.
const DEEPEST: usize = 200;

/// Compiles an expression; `names` assigns slots to its variables.
pub(crate) fn parse(text: &str, names: &mut dyn Names) -> Result<Expression, SyntaxError> {
    let mut lexer = Lexer::new(text);
    let (at, token) = lexer.next()?;
    let mut parser = Parser { lexer, at, token, names, operations: Vec::new(), depth: 0 };
    parser.expression(0)?;
    match parser.token {
        Token::End => Ok(Expression { operations: parser.operations }),
        _ => Err(parser.unexpected()),
    }
}

struct Parser<'a, 'n> {
    lexer: Lexer<'a>,
    at: usize,
    token: Token<'a>,
    names: &'n mut dyn Names,
    operations: Vec<Operation>,
    depth: usize,
}

type ParseResult = Result<(), SyntaxError>;

impl Parser<'_, '_> {
    fn advance(&mut self) -> ParseResult {
        (self.at, self.token) = self.lexer.next()?;
        Ok(())
    }

    fn emit(&mut self, operation: Operation) {
        self.operations.push(operation);
    }

    fn here(&self) -> u32 {
        self.operations.len() as u32
    }

    /// Emits a jump with a target to be set later.
    fn emit_jump(&mut self, jump: fn(u32) -> Operation) -> (usize, fn(u32) -> Operation) {
        self.emit(jump(0));
        (self.operations.len() - 1, jump)
    }

    fn land(&mut self, (index, jump): (usize, fn(u32) -> Operation)) {
        self.operations[index] = jump(self.here());
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.token, Token::Word(found) if found.eq_ignore_ascii_case(word))
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.token, Token::Symbol(found) if found == symbol)
    }

    fn take_word(&mut self, word: &str) -> Result<bool, SyntaxError> {
        let found = self.is_word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect_word(&mut self, word: &str) -> ParseResult {
        if self.take_word(word)? { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_symbol(&mut self, symbol: &str) -> ParseResult {
        if self.is_symbol(symbol) { self.advance() } else { Err(self.unexpected()) }
    }

    /// Parses an operand and the operators after it that bind at least as strongly as `weakest`.
    fn expression(&mut self, weakest: u8) -> ParseResult {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong("the expression is nested too deeply"));
        }
        self.operand()?;
        while let Some((power, operator)) = self.operator() {
            if power < weakest {
                break;
            }
            self.advance()?;
            match operator {
                Operator::Or => self.lazy(Operation::Or, OR + 1)?,
                Operator::And => self.lazy(Operation::And, AND + 1)?,
                Operator::IsNull => self.emit(Operation::Is(Value::Null)),
                Operator::NotNull => self.is_not(Value::Null),
                Operator::Is => {
                    let negated = self.take_word("not")?;
                    let value = self.constant_word().ok_or_else(|| self.unexpected())?;
                    self.advance()?;
                    if negated {
                        self.is_not(value);
                    } else {
                        self.emit(Operation::Is(value));
                    }
                }
                Operator::Binary(binary) => {
                    self.expression(power + 1)?;
                    self.emit(Operation::Binary(binary));
                    // Comparisons do not chain: 1 < 2 < 3 has no meaning.
                    if power == COMPARISON && self.operator().is_some_and(|(next, _)| next == COMPARISON) {
                        return Err(self.unexpected());
                    }
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Evaluates the second operand only if the first does not decide.
    fn lazy(&mut self, jump: fn(u32) -> Operation, weakest: u8) -> ParseResult {
        let decided = self.emit_jump(jump);
        self.expression(weakest)?;
        self.emit(Operation::Boolean);
        self.land(decided);
        Ok(())
    }

    fn is_not(&mut self, value: Value) {
        self.emit(Operation::Is(value));
        self.emit(Operation::Not);
    }

    fn constant_word(&self) -> Option<Value> {
        if self.is_word("null") {
            Some(Value::Null)
        } else if self.is_word("true") {
            Some(Value::Boolean(true))
        } else if self.is_word("false") {
            Some(Value::Boolean(false))
        } else {
            None
        }
    }

    /// The operator of the current token.
    fn operator(&self) -> Option<(u8, Operator)> {
        let Token::Symbol(symbol) = self.token else {
            let words = [
                ("or", OR, Operator::Or),
                ("and", AND, Operator::And),
                ("is", IS, Operator::Is),
                ("isnull", IS, Operator::IsNull),
                ("notnull", IS, Operator::NotNull),
            ];
            return words.into_iter().find(|(word, ..)| self.is_word(word)).map(|(_, power, o)| (power, o));
        };
        let (power, binary) = match symbol {
            "=" => (COMPARISON, Binary::Equal),
            "<>" | "!=" => (COMPARISON, Binary::NotEqual),
            "<" => (COMPARISON, Binary::Less),
            "<=" => (COMPARISON, Binary::LessOrEqual),
            ">" => (COMPARISON, Binary::Greater),
            ">=" => (COMPARISON, Binary::GreaterOrEqual),
            "|" => (BITS, Binary::BitOr),
            "#" => (BITS, Binary::BitXor),
            "&" => (BITS, Binary::BitAnd),
            "<<" => (BITS, Binary::ShiftLeft),
            ">>" => (BITS, Binary::ShiftRight),
            "+" => (SUM, Binary::Add),
            "-" => (SUM, Binary::Subtract),
            "*" => (PRODUCT, Binary::Multiply),
            "/" => (PRODUCT, Binary::Divide),
            "%" => (PRODUCT, Binary::Modulo),
            _ => return None,
        };
        Some((power, Operator::Binary(binary)))
    }

    fn operand(&mut self) -> ParseResult {
        let at = self.at;
        match self.token.clone() {
            Token::Integer(value) => self.constant(Value::Integer(value)),
            Token::Double(value) => self.constant(Value::Double(value)),
            Token::Variable(name) => {
                let slot = self.names.slot(name);
                self.emit(Operation::Variable(slot));
                self.advance()
            }
            Token::Symbol("(") => {
                self.advance()?;
                self.expression(0)?;
                self.expect_symbol(")")
            }
            Token::Symbol("+") => {
                self.advance()?;
                self.expression(SIGN)
            }
            Token::Symbol("-") => {
                self.advance()?;
                if self.token == Token::BeyondMaximum {
                    return self.constant(Value::Integer(i64::MIN));
                }
                self.expression(SIGN)?;
                self.emit(Operation::Negate);
                Ok(())
            }
            Token::Symbol("~") => {
                self.advance()?;
                // It has the precedence of the bitwise operators, which are left-associative.
                self.expression(BITS + 1)?;
                self.emit(Operation::Invert);
                Ok(())
            }
            Token::Word(word) => {
                if let Some(value) = self.constant_word() {
                    self.constant(value)
                } else if word.eq_ignore_ascii_case("not") {
                    self.advance()?;
                    self.expression(NOT)?;
                    self.emit(Operation::Not);
                    Ok(())
                } else if word.eq_ignore_ascii_case("case") {
                    self.advance()?;
                    self.case()
                } else {
                    self.advance()?;
                    self.call(word, at)
                }
            }
            _ => Err(self.unexpected()),
        }
    }

    fn constant(&mut self, value: Value) -> ParseResult {
        self.emit(Operation::Constant(value));
        self.advance()
    }

    fn case(&mut self) -> ParseResult {
        let mut ends = Vec::new();
        self.expect_word("when")?;
        loop {
            self.expression(0)?;
            self.expect_word("then")?;
            let other = self.emit_jump(Operation::Unless);
            self.expression(0)?;
            ends.push(self.emit_jump(Operation::Jump));
            self.land(other);
            if !self.take_word("when")? {
                break;
            }
        }
        if self.take_word("else")? {
            self.expression(0)?;
        } else {
            self.emit(Operation::Constant(Value::Null));
        }
        self.expect_word("end")?;
        for end in ends {
            self.land(end);
        }
        Ok(())
    }

    fn call(&mut self, name: &str, at: usize) -> ParseResult {
        let function = Function::from_name(name)
            .ok_or_else(|| SyntaxError { at, message: format!("unexpected function name \"{name}\"") })?;
        self.expect_symbol("(")?;
        let mut arguments = 0_u16;
        if !self.is_symbol(")") {
            loop {
                self.expression(0)?;
                arguments = arguments
                    .checked_add(1)
                    .filter(|arguments| *arguments <= MOST_ARGUMENTS)
                    .ok_or_else(|| self.wrong("too many function arguments, maximum is 16"))?;
                if !self.is_symbol(",") {
                    break;
                }
                self.advance()?;
            }
        }
        if !self.is_symbol(")") {
            return Err(self.unexpected());
        }
        let allowed = match function.arity() {
            Arity::Exactly(count) => arguments == count,
            Arity::OneOrMore => arguments > 0,
            Arity::WithSeed(count) => arguments == count || arguments == count + 1,
        };
        if !allowed {
            return Err(SyntaxError {
                at,
                message: format!(
                    "unexpected number of arguments ({arguments}) for \"{name}\", which takes {}",
                    function.arity()
                ),
            });
        }
        if function.arity() == Arity::WithSeed(arguments) {
            let slot = self.names.slot("default_seed");
            self.emit(Operation::Variable(slot));
            arguments += 1;
        }
        self.advance()?;
        self.emit(Operation::Call { function, arguments });
        Ok(())
    }

    fn wrong(&self, message: &str) -> SyntaxError {
        SyntaxError { at: self.at, message: message.to_owned() }
    }

    fn unexpected(&self) -> SyntaxError {
        let found = match &self.token {
            Token::End => "end of the expression".to_owned(),
            Token::Integer(value) => format!("number {value}"),
            Token::BeyondMaximum => "number 9223372036854775808, which exceeds the bigint range".to_owned(),
            Token::Double(value) => format!("number {value}"),
            Token::Variable(name) => format!("variable :{name}"),
            Token::Word(word) => format!("word \"{word}\""),
            Token::Symbol(symbol) => format!("\"{symbol}\""),
        };
        self.wrong(&format!("unexpected {found}"))
    }
}

#[derive(Clone, Copy)]
enum Operator {
    Or,
    And,
    Is,
    IsNull,
    NotNull,
    Binary(Binary),
}
