//! The non-uniform random numbers and the last names made of them (TPC-C clauses 2.1.6 and 4.3.2.3).

use kelvin_measure::Random;

/// The constants C of the three non-uniform distributions, drawn once per load or run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the specification calls each of them C")]
pub(crate) struct NonUniform {
    /// For last names, NURand(255, 0, 999).
    pub(crate) c_last: i64,
    /// For customers, NURand(1023, 1, 3000).
    pub(crate) c_customer: i64,
    /// For items, NURand(8191, 1, 100000).
    pub(crate) c_item: i64,
}

impl NonUniform {
    /// The constants of a load.
    pub(crate) fn for_load(random: &mut Random) -> Self {
        Self {
            c_last: random.range(0, 255),
            c_customer: random.range(0, 1023),
            c_item: random.range(0, 8191),
        }
    }

    /// The constants of a run over data loaded with `c_last_of_load`: |C_run − C_load| is in 65..=119 and
    /// neither 96 nor 112, so that the most frequent names of run and load differ.
    pub(crate) fn for_run(random: &mut Random, c_last_of_load: i64) -> Self {
        let c_last = loop {
            let candidate = random.range(0, 255);
            let distance = (candidate - c_last_of_load).abs();
            if (65..=119).contains(&distance) && distance != 96 && distance != 112 {
                break candidate;
            }
        };
        Self { c_last, c_customer: random.range(0, 1023), c_item: random.range(0, 8191) }
    }

    /// The number of a last name, 0 to 999.
    pub(crate) fn last_name(&self, random: &mut Random) -> i64 {
        non_uniform(random, 255, 0, 999, self.c_last)
    }

    /// A customer number, 1 to 3000.
    pub(crate) fn customer(&self, random: &mut Random) -> i64 {
        non_uniform(random, 1023, 1, 3000, self.c_customer)
    }

    /// An item number, 1 to 100,000.
    pub(crate) fn item(&self, random: &mut Random) -> i64 {
        non_uniform(random, 8191, 1, 100_000, self.c_item)
    }
}

/// NURand(A, x, y) with its constant C.
fn non_uniform(random: &mut Random, a: i64, x: i64, y: i64, c: i64) -> i64 {
    (((random.range(0, a) | random.range(x, y)) + c) % (y - x + 1)) + x
}

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// Appends the last name with this number, 0 to 999: one syllable for each of its three digits.
pub(crate) fn push_last_name(number: i64, into: &mut String) {
    for digit in [number / 100, number / 10 % 10, number % 10] {
        into.push_str(SYLLABLES[digit as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_follow_the_three_digits() {
        let mut name = String::new();
        push_last_name(371, &mut name);
        assert_eq!(name, "PRICALLYOUGHT", "the example of clause 4.3.2.3");
    }

    #[test]
    fn the_runs_constant_keeps_its_distance_from_the_loads() {
        let mut random = Random::part(1, 1, 1);
        for c_load in 0..=255 {
            let distance = (NonUniform::for_run(&mut random, c_load).c_last - c_load).abs();
            assert!((65..=119).contains(&distance) && distance != 96 && distance != 112);
        }
    }

    #[test]
    fn non_uniform_numbers_keep_their_bounds() {
        let mut random = Random::part(1, 2, 3);
        let constants = NonUniform::for_load(&mut random);
        for _ in 0..20_000 {
            assert!((0..=999).contains(&constants.last_name(&mut random)));
            assert!((1..=3000).contains(&constants.customer(&mut random)));
            assert!((1..=100_000).contains(&constants.item(&mut random)));
        }
    }
}
