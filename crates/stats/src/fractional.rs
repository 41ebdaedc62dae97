//! Fractions of two-level designs: 2^(k−p) runs for k factors, at the cost of confounded effects.
//!
//! Each of the p dependent factors follows the product of others, its generator (Box and Hunter, Technometrics 3, 1961;
//! Jain, The Art of Computer Systems Performance Analysis, 1991, chapter 19). Factors are the letters A, B, C, …
//! without I, which stands for the mean.

use thiserror::Error;

/// Factors up to which aliases are listed: 2¹⁵ effects.
const MOST_FACTORS: usize = 15;

const LETTERS: [char; MOST_FACTORS] =
    ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'J', 'K', 'L', 'M', 'N', 'O', 'P'];

/// Why a fraction is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FractionError {
    /// Too few or too many factors.
    #[error("a fraction has 2 to {MOST_FACTORS} factors, not {0}")]
    Factors(usize),
    /// A generator that cannot be read.
    #[error("generator {0:?} does not have the form D=ABC: a factor, =, and the factors whose product it is")]
    Form(String),
    /// A letter that is no factor.
    #[error("generator {generator:?}: {letter:?} is not one of the factors {factors}")]
    Letter {
        /// The generator.
        generator: String,
        /// The letter.
        letter: char,
        /// The factors there are.
        factors: String,
    },
    /// A factor generated twice, or a generator that leads to generated factors.
    #[error("generator {generator:?}: {letter} must be {}", if *.twice { "generated only once" } else { "a base factor, because it is on the right-hand side" })]
    Generated {
        /// The generator.
        generator: String,
        /// The factor.
        letter: char,
        /// Generated twice; otherwise on the right-hand side although it is itself generated.
        twice: bool,
    },
    /// Nothing left to vary, or two factors that always change together.
    #[error("the defining relation has the word {0}: {1}")]
    Word(String, &'static str),
}

/// A fraction 2^(k−p) of a design of two levels each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fraction {
    factors: usize,
    base: Vec<usize>,
    /// The defining relation: sets of factors as bits, each with whether its product is −1. The empty set is first.
    words: Vec<(u32, bool)>,
    /// For each factor, the base factors whose product it is, and whether reversed.
    columns: Vec<(u32, bool)>,
}

impl Fraction {
    /// A fraction of so many factors by generators such as `"D=ABC"` or `"E=-AB"`: each halves the number of runs.
    ///
    /// ```
    /// let fraction = kelvin_stats::fractional::Fraction::new(4, &["D=ABC"]).unwrap();
    /// assert_eq!((fraction.runs().len(), fraction.resolution()), (8, 4));
    /// assert_eq!(fraction.aliases()[0], ["A", "BCD"]);
    /// ```
    pub fn new(factors: usize, generators: &[&str]) -> Result<Self, FractionError> {
        if !(2..=MOST_FACTORS).contains(&factors) {
            return Err(FractionError::Factors(factors));
        }
        let parsed: Vec<(usize, u32, bool)> =
            generators.iter().map(|text| parse(text, factors)).collect::<Result<_, _>>()?;
        for (i, (made, of, _)) in parsed.iter().enumerate() {
            let error = |factor: usize, twice: bool| FractionError::Generated {
                generator: generators[i].to_owned(),
                letter: LETTERS[factor],
                twice,
            };
            if parsed[..i].iter().any(|(earlier, ..)| earlier == made) {
                return Err(error(*made, true));
            }
            if let Some((other, ..)) = parsed.iter().find(|(other, ..)| of >> other & 1 == 1) {
                return Err(error(*other, false));
            }
        }
        let base: Vec<usize> = (0..factors).filter(|f| parsed.iter().all(|(made, ..)| made != f)).collect();
        let mut columns: Vec<(u32, bool)> = (0..factors).map(|f| (1 << f, false)).collect();
        let mut words = vec![(0, false)];
        for &(made, of, reversed) in &parsed {
            columns[made] = (of, reversed);
            // Every product of the existing words with the new one.
            let word = of | 1 << made;
            words.extend(words.clone().iter().map(|(bits, sign)| (bits ^ word, sign ^ reversed)));
        }
        words.sort_by_key(|(bits, _)| order(*bits));
        if let Some((word, reversed)) = words.get(1).filter(|(bits, _)| bits.count_ones() < 3) {
            let why = "two factors would always change together; choose generators of two or more letters that differ";
            return Err(FractionError::Word(name(*word, *reversed), why));
        }
        Ok(Self { factors, base, words, columns })
    }

    /// The level of each factor in each run, −1 or 1; the first of the base factors changes fastest.
    pub fn runs(&self) -> Vec<Vec<i8>> {
        (0..1_u32 << self.base.len())
            .map(|run| {
                let high: u32 =
                    self.base.iter().enumerate().map(|(i, factor)| (run >> i & 1) << factor).sum();
                let level = |(of, reversed): &(u32, bool)| {
                    let minus = (of & !high).count_ones() % 2 == 1;
                    if minus ^ reversed { -1 } else { 1 }
                };
                self.columns.iter().map(level).collect()
            })
            .collect()
    }

    /// The factors that are varied independently, counted from 0. The runs are a full factorial of these, which
    /// [`crate::factorial`] analyses; see [`Self::aliases_of`] for the names of its effects here.
    pub fn base(&self) -> &[usize] {
        &self.base
    }

    /// The products that are the same in every run, `I` first: `["I", "ABD", …]`.
    #[cfg(test)]
    fn defining_relation(&self) -> Vec<String> {
        self.words.iter().map(|(bits, reversed)| name(*bits, *reversed)).collect()
    }

    /// The confounded effects, class by class, each in ascending order of letters, and the classes by their first
    /// effect. A minus means that it is measured reversed. The class of the mean is not among them.
    pub fn aliases(&self) -> Vec<Vec<String>> {
        let mut classes: Vec<Vec<(u32, bool)>> =
            (1..1_u32 << self.base.len()).map(|run| self.class(self.spread(run))).collect();
        classes.sort_by_key(|class| order(class[0].0));
        classes.iter().map(|class| names(class)).collect()
    }

    /// The effects measured together with that of some of the base factors (as places in [`Self::base`], as
    /// [`crate::factorial::Effect::factors`] has them when the base factors are analysed).
    pub fn aliases_of(&self, of_base: &[usize]) -> Vec<String> {
        let run = of_base.iter().filter(|i| **i < self.base.len()).fold(0, |bits: u32, i| bits | 1 << i);
        let mut class: Vec<(u32, bool)> =
            self.words.iter().map(|(word, reversed)| (word ^ self.spread(run), *reversed)).collect();
        class.sort_by_key(|(bits, _)| order(*bits));
        names(&class)
    }

    /// The resolution: letters of the shortest word of the defining relation. At III main effects are confounded with
    /// two-factor interactions, at IV two-factor interactions with each other, at V neither. For a full factorial,
    /// which has no such word, it is the number of factors plus one.
    pub fn resolution(&self) -> usize {
        self.words.get(1).map_or(self.factors + 1, |(bits, _)| bits.count_ones() as usize)
    }

    /// A set of places among the base factors as a set of factors.
    fn spread(&self, places: u32) -> u32 {
        self.base
            .iter()
            .enumerate()
            .filter(|(i, _)| places >> i & 1 == 1)
            .map(|(_, factor)| 1 << factor)
            .sum()
    }

    /// An effect's aliases, the first of them never reversed.
    fn class(&self, effect: u32) -> Vec<(u32, bool)> {
        let mut class: Vec<(u32, bool)> =
            self.words.iter().map(|(word, reversed)| (word ^ effect, *reversed)).collect();
        class.sort_by_key(|(bits, _)| order(*bits));
        let flip = class[0].1;
        class.iter().map(|(bits, reversed)| (*bits, reversed ^ flip)).collect()
    }
}

/// Fewest letters first, then as in a dictionary: A before B, so the lowest bits decide.
fn order(bits: u32) -> (u32, u32) {
    (bits.count_ones(), u32::MAX - bits.reverse_bits())
}

fn names(class: &[(u32, bool)]) -> Vec<String> {
    class.iter().map(|(bits, reversed)| name(*bits, *reversed)).collect()
}

fn name(bits: u32, reversed: bool) -> String {
    let letters = LETTERS.iter().enumerate().filter(|(f, _)| bits >> f & 1 == 1).map(|(_, letter)| *letter);
    let sign = if reversed { "-" } else { "" };
    if bits == 0 { format!("{sign}I") } else { sign.chars().chain(letters).collect() }
}

/// The factor made, the factors of the product, whether reversed.
fn parse(text: &str, factors: usize) -> Result<(usize, u32, bool), FractionError> {
    let form = || FractionError::Form(text.to_owned());
    let (made, of) = text.split_once('=').ok_or_else(form)?;
    let of = of.trim();
    let (of, reversed) = of.strip_prefix('-').map_or((of, false), |rest| (rest.trim_start(), true));
    let factor = |letter: char| {
        LETTERS[..factors].iter().position(|l| *l == letter).ok_or_else(|| FractionError::Letter {
            generator: text.to_owned(),
            letter,
            factors: LETTERS[..factors].iter().collect(),
        })
    };
    let mut made = made.trim().chars();
    let (Some(letter), None) = (made.next(), made.next()) else { return Err(form()) };
    let made = factor(letter)?;
    let mut bits = 0;
    for letter in of.chars() {
        let bit = 1 << factor(letter)?;
        if bits & bit != 0 {
            return Err(form());
        }
        bits |= bit;
    }
    if bits == 0 { Err(form()) } else { Ok((made, bits, reversed)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_factors_in_eight_runs() {
        // The saturated design of Box, Hunter and Hunter (Statistics for Experimenters, 1978, chapter 12): D=AB, E=AC,
        // F=BC, G=ABC, of resolution III; each main effect is mixed with three interactions of two.
        let found = Fraction::new(7, &["D=AB", "E=AC", "F=BC", "G=ABC"]).unwrap();
        assert_eq!((found.runs().len(), found.resolution(), found.base()), (8, 3, &[0, 1, 2][..]));
        let relation = found.defining_relation();
        assert_eq!(relation.len(), 16);
        assert_eq!(
            relation[..8].iter().map(String::as_str).collect::<Vec<_>>(),
            ["I", "ABD", "ACE", "AFG", "BCF", "BEG", "CDG", "DEF"]
        );
        assert_eq!(relation[15], "ABCDEFG");
        let aliases = found.aliases();
        assert_eq!(aliases.len(), 7);
        assert_eq!(aliases[0][..4], ["A", "BD", "CE", "FG"]);
        assert_eq!(aliases[3][..4], ["D", "AB", "CG", "EF"]);
        assert_eq!(aliases[6][..4], ["G", "AF", "BE", "CD"]);
        assert_eq!(found.aliases_of(&[0, 1])[..2], ["D", "AB"]);
        let runs = found.runs();
        assert_eq!(runs[0], [-1, -1, -1, 1, 1, 1, -1]);
        assert_eq!(runs[7], [1; 7]);
        // Every two columns are orthogonal.
        for i in 0..7 {
            for j in 0..i {
                assert_eq!(runs.iter().map(|run| i32::from(run[i] * run[j])).sum::<i32>(), 0);
            }
        }
    }

    #[test]
    fn jains_half_of_four_factors_has_resolution_four() {
        // Jain, chapter 19: D=ABC, so that AB and CD, AC and BD, AD and BC are confounded.
        let found = Fraction::new(4, &["D = ABC"]).unwrap();
        assert_eq!(found.resolution(), 4);
        let aliases = found.aliases();
        assert_eq!(aliases[4], ["AB", "CD"]);
        assert_eq!(aliases[5], ["AC", "BD"]);
        assert_eq!(aliases[6], ["AD", "BC"]);
        // The less favourable half of his comparison: D=AB has resolution III.
        assert_eq!(Fraction::new(4, &["D=AB"]).unwrap().resolution(), 3);
        assert_eq!(Fraction::new(3, &[]).unwrap().resolution(), 4);
    }

    #[test]
    fn a_reversed_generator_is_the_other_half() {
        let (one, other) = (Fraction::new(4, &["D=ABC"]).unwrap(), Fraction::new(4, &["D=-ABC"]).unwrap());
        let mut all: Vec<Vec<i8>> = [one.runs(), other.runs()].concat();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 16);
        assert_eq!(other.aliases()[0], ["A", "-BCD"]);
        assert_eq!(other.defining_relation(), ["I", "-ABCD"]);
    }

    #[test]
    fn every_alias_really_is_the_same_in_every_run() {
        for (factors, generators) in [
            (5, &["D=AB", "E=-AC"][..]),
            (6, &["E=ABC", "F=BCD"]),
            (5, &["A=-DE"]),
            (9, &["H=ABCD", "J=-AEF"]),
        ] {
            let found = Fraction::new(factors, generators).unwrap();
            let runs = found.runs();
            let column = |name: &str| -> Vec<i8> {
                let (sign, letters) = name.strip_prefix('-').map_or((1, name), |rest| (-1, rest));
                let factor = |letter: char| LETTERS.iter().position(|l| *l == letter).unwrap();
                let level = |run: &Vec<i8>| letters.chars().map(|l| run[factor(l)]).product::<i8>() * sign;
                runs.iter().map(level).collect()
            };
            let aliases = found.aliases();
            for class in &aliases {
                assert!(class.iter().all(|name| column(name) == column(&class[0])), "{class:?}");
            }
            let distinct: usize = aliases.iter().map(Vec::len).sum();
            assert_eq!(distinct + found.defining_relation().len(), 1 << factors);
        }
    }

    #[test]
    fn what_is_no_fraction_is_refused() {
        let error =
            |factors, generators: &[&str]| Fraction::new(factors, generators).unwrap_err().to_string();
        assert!(error(1, &[]).contains("2 to 15"));
        assert!(error(16, &[]).contains("16"));
        for text in ["D", "=ABC", "DE=AB", "D=", "D=AAB", "D=-"] {
            assert!(error(5, &[text]).contains("the form D=ABC"), "{text}");
        }
        assert!(error(4, &["D=AX"]).contains("'X' is not one of the factors ABCD"));
        assert!(error(4, &["d=AB"]).contains("'d'"));
        assert!(error(5, &["D=AB", "D=AC"]).contains("generated only once"));
        assert!(error(5, &["D=AB", "E=AD"]).contains("a base factor"));
        assert!(error(4, &["D=AD"]).contains("a base factor"));
        assert!(error(4, &["D=A"]).contains("always change together"));
        assert!(error(5, &["D=AB", "E=AB"]).contains("word DE"));
    }
}
