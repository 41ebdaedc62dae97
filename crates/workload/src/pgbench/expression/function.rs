//! The functions, by name.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Mod,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// The number of arguments of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arity {
    Exactly(u16),
    OneOrMore,
    /// This many and an optional seed, which defaults to `:default_seed`.
    WithSeed(u16),
}

impl fmt::Display for Arity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(count) => write!(f, "{count}"),
            Self::OneOrMore => f.write_str("at least one"),
            Self::WithSeed(count) => write!(f, "{count} or {}", count + 1),
        }
    }
}

const FUNCTIONS: [(&str, Function, Arity); 21] = [
    ("abs", Function::Abs, Arity::Exactly(1)),
    ("debug", Function::Debug, Arity::Exactly(1)),
    ("double", Function::Double, Arity::Exactly(1)),
    ("exp", Function::Exp, Arity::Exactly(1)),
    ("greatest", Function::Greatest, Arity::OneOrMore),
    ("hash", Function::HashMurmur2, Arity::WithSeed(1)),
    ("hash_fnv1a", Function::HashFnv1a, Arity::WithSeed(1)),
    ("hash_murmur2", Function::HashMurmur2, Arity::WithSeed(1)),
    ("int", Function::Int, Arity::Exactly(1)),
    ("least", Function::Least, Arity::OneOrMore),
    ("ln", Function::Ln, Arity::Exactly(1)),
    ("mod", Function::Mod, Arity::Exactly(2)),
    ("permute", Function::Permute, Arity::WithSeed(2)),
    ("pi", Function::Pi, Arity::Exactly(0)),
    ("pow", Function::Power, Arity::Exactly(2)),
    ("power", Function::Power, Arity::Exactly(2)),
    ("random", Function::Random, Arity::Exactly(2)),
    ("random_exponential", Function::RandomExponential, Arity::Exactly(3)),
    ("random_gaussian", Function::RandomGaussian, Arity::Exactly(3)),
    ("random_zipfian", Function::RandomZipfian, Arity::Exactly(3)),
    ("sqrt", Function::Sqrt, Arity::Exactly(1)),
];

impl Function {
    /// The function of this name, regardless of case.
    pub(super) fn named(name: &str) -> Option<Self> {
        FUNCTIONS
            .iter()
            .find(|(known, ..)| known.eq_ignore_ascii_case(name))
            .map(|&(_, function, _)| function)
    }

    pub(super) fn arity(self) -> Arity {
        FUNCTIONS
            .iter()
            .find(|&&(_, function, _)| function == self)
            .map_or(Arity::Exactly(0), |&(_, _, arity)| arity)
    }
}
