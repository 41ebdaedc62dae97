//! The substitution parameters of the queries: drawn by the specification's rules (TPC-H clauses 2.4.1 to
//! 2.4.22), or those of its validation run.
//!
//! They are drawn like those of qgen, the specification's tool: the same seed gives the same parameters. The
//! order of the random numbers was derived from statements that were published with their seeds.

use tpchgen::distribution::Distributions;

use crate::tproc_h::data::{date_text, nations};

/// Days from 1992-01-01 to 1998-12-01, the date from which query 1 counts back.
const END_OF_SHIPPING: i64 = 2526;

/// The words of query 13 (clause 2.4.13.3).
const FIRST_WORDS: [&str; 4] = ["special", "pending", "unusual", "express"];
const SECOND_WORDS: [&str; 4] = ["packages", "requests", "accounts", "deposits"];

/// The parameters of a query, in the order in which its text uses them; dates are followed by the dates
/// derived from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameters(Vec<String>);

impl Parameters {
    /// Parameter `at`, from 0; empty if there is none.
    pub(super) fn text(&self, at: usize) -> &str {
        self.0.get(at).map_or("", String::as_str)
    }

    /// Parameter `at` as an integer.
    pub(super) fn number(&self, at: usize) -> i64 {
        self.text(at).parse().unwrap_or_default()
    }

    /// The parameters from `at` on.
    pub(super) fn arguments_from(&self, at: usize) -> &[String] {
        self.0.get(at..).unwrap_or_default()
    }

    /// The parameters as text, for the result.
    pub(crate) fn describe(&self) -> String {
        self.0.join(", ")
    }

    /// The parameters of the validation run at this scale factor, for query 1 to 22.
    pub(crate) fn for_validation(query: u8, scale: f64) -> Self {
        let (year, months) = (|y| years(y, 1), |y, m, by| months(y, m, by));
        let fixed: &[&str] = match query {
            1 => return Self(vec![date_text(END_OF_SHIPPING - 90).unwrap_or_default()]),
            2 => &["15", "BRASS", "EUROPE"],
            3 => &["BUILDING", "1995-03-15"],
            4 => return Self(months(1993, 7, 3).into()),
            5 => return Self([vec!["ASIA".into()], year(1994).into()].concat()),
            6 => return Self([year(1994).to_vec(), vec!["6".into(), "24".into()]].concat()),
            7 => &["FRANCE", "GERMANY"],
            8 => &["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"],
            9 => &["green"],
            10 => return Self(months(1993, 10, 3).into()),
            11 => return Self(vec!["GERMANY".into(), fraction(scale)]),
            12 => return Self([vec!["MAIL".into(), "SHIP".into()], year(1994).into()].concat()),
            13 => &["special", "requests"],
            14 => return Self(months(1995, 9, 1).into()),
            15 => return Self(months(1996, 1, 3).into()),
            16 => &["Brand#45", "MEDIUM POLISHED", "49", "14", "23", "45", "19", "3", "36", "9"],
            17 => &["Brand#23", "MED BOX"],
            18 => &["300"],
            19 => &["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"],
            20 => return Self([vec!["forest".into()], year(1994).into(), vec!["CANADA".into()]].concat()),
            21 => &["SAUDI ARABIA"],
            _ => &["13", "31", "23", "29", "30", "18", "17"],
        };
        Self(fixed.iter().map(|text| (*text).to_owned()).collect())
    }

    /// The parameters of a query in a run: drawn from the seed, or those of the validation run.
    pub(crate) fn for_run(query: u8, scale: f64, (seed, draw): (u64, u32), validate: bool) -> Self {
        if validate { Self::for_validation(query, scale) } else { Self::draw(query, scale, seed, draw) }
    }

    /// The parameters that qgen, the specification's tool, draws for a query with the sum of seed and stream
    /// as its seed.
    pub(crate) fn draw(query: u8, scale: f64, seed: u64, stream: u32) -> Self {
        Self(Draw::new(query, seed.wrapping_add(stream.into())).parameters(query, scale))
    }
}

/// Query 11's fraction of the total value, which decreases with the scale factor.
fn fraction(scale: f64) -> String {
    format!("{:.12}", 0.0001 / scale)
}

/// The first of January of a year, and of the year `by` years later.
fn years(year: i64, by: i64) -> [String; 2] {
    [format!("{year}-01-01"), format!("{}-01-01", year + by)]
}

/// The first day of a month, and of the month `by` months later.
fn months(year: i64, month: i64, by: i64) -> [String; 2] {
    let text = |months: i64| format!("{}-{:02}-01", months.div_euclid(12), months.rem_euclid(12) + 1);
    let first = year * 12 + month - 1;
    [text(first), text(first + by)]
}

/// The random number generator of Park and Miller (CACM 31, 1988), used by dbgen and qgen. Each query has its
/// own sequence, which starts as many steps after the seed as the query's number.
struct Draw {
    value: u64,
    lists: &'static Distributions,
}

const MULTIPLIER: u64 = 16_807;
const MODULUS: u64 = 2_147_483_647;

impl Draw {
    fn new(query: u8, seed: u64) -> Self {
        // A state of 0 would never change.
        let seed = if seed.is_multiple_of(MODULUS) { MODULUS - 1 } else { seed % MODULUS };
        let value = (0..query).fold(seed, |value, _| value * MULTIPLIER % MODULUS);
        Self { value, lists: Distributions::static_default() }
    }

    fn range(&mut self, low: i64, high: i64) -> i64 {
        self.value = self.value * MULTIPLIER % MODULUS;
        low + (self.value as f64 / MODULUS as f64 * (high - low + 1) as f64) as i64
    }

    /// Two different elements.
    fn pair_of(&mut self, list: &[&str]) -> Vec<String> {
        let first = self.one_of(list);
        loop {
            let second = self.one_of(list);
            if second != first {
                return vec![first, second];
            }
        }
    }

    fn one_of(&mut self, list: &[&str]) -> String {
        list[self.range(0, list.len() as i64 - 1) as usize].to_owned()
    }

    /// `count` different elements of `list`, in random order.
    fn several_of(&mut self, list: &[String], count: usize) -> Vec<String> {
        let mut list = list.to_vec();
        for at in 0..count {
            let other = self.range(at as i64, list.len() as i64 - 1) as usize;
            list.swap(at, other);
        }
        list.truncate(count);
        list
    }

    fn nation(&mut self) -> String {
        self.one_of(self.lists.nations().get_values())
    }

    fn region(&mut self) -> String {
        self.one_of(self.lists.regions().get_values())
    }

    fn brand(&mut self) -> String {
        format!("Brand#{}{}", self.range(1, 5), self.range(1, 5))
    }

    fn part_type(&mut self) -> String {
        self.one_of(self.lists.part_types().get_values())
    }

    /// A month up to `last` months after January 1993, and the month `by` months after it.
    fn month(&mut self, last: i64, by: i64) -> Vec<String> {
        let month = self.range(0, last);
        months(1993 + month / 12, month % 12 + 1, by).into()
    }

    fn year(&mut self) -> Vec<String> {
        years(self.range(1993, 1997), 1).into()
    }

    fn parameters(&mut self, query: u8, scale: f64) -> Vec<String> {
        match query {
            1 => {
                let days = self.range(60, 120);
                vec![date_text(END_OF_SHIPPING - days).unwrap_or_default()]
            }
            2 => {
                let size = self.range(1, 50).to_string();
                let kind = self.part_type();
                let metal = kind.rsplit(' ').next().unwrap_or_default().to_owned();
                vec![size, metal, self.region()]
            }
            3 => {
                let segment = self.one_of(self.lists.market_segments().get_values());
                vec![segment, format!("1995-03-{:02}", self.range(1, 31))]
            }
            // January 1993 to October 1997.
            4 | 15 => self.month(57, 3),
            5 => [vec![self.region()], self.year()].concat(),
            6 => {
                let mut year = self.year();
                year.push(self.range(2, 9).to_string());
                year.push(self.range(24, 25).to_string());
                year
            }
            7 => self.pair_of(self.lists.nations().get_values()),
            8 => {
                let nation = self.nation();
                let region = region_of(self.lists, &nation);
                vec![nation, region, self.part_type()]
            }
            9 => vec![self.one_of(self.lists.part_colors().get_values())],
            // February 1993 to January 1995.
            10 => {
                let month = self.range(1, 24);
                months(1993 + month / 12, month % 12 + 1, 3).into()
            }
            11 => vec![self.nation(), fraction(scale)],
            12 => [self.pair_of(self.lists.ship_modes().get_values()), self.year()].concat(),
            13 => vec![self.one_of(&FIRST_WORDS), self.one_of(&SECOND_WORDS)],
            // January 1993 to December 1997.
            14 => self.month(59, 1),
            16 => {
                let brand = self.brand();
                let kind = self.part_type();
                let syllables = kind.rsplit_once(' ').map_or(kind.as_str(), |(two, _)| two).to_owned();
                let sizes: Vec<String> = (1..=50).map(|size: i32| size.to_string()).collect();
                [vec![brand, syllables], self.several_of(&sizes, 8)].concat()
            }
            17 => vec![self.brand(), self.one_of(self.lists.part_containers().get_values())],
            18 => vec![self.range(312, 315).to_string()],
            19 => {
                let brands = [self.brand(), self.brand(), self.brand()];
                let quantities = [(1, 10), (10, 20), (20, 30)];
                let quantities = quantities.map(|(low, high)| self.range(low, high).to_string());
                [brands, quantities].concat()
            }
            20 => {
                let color = self.one_of(self.lists.part_colors().get_values());
                [vec![color], self.year(), vec![self.nation()]].concat()
            }
            21 => vec![self.nation()],
            _ => {
                let codes: Vec<String> = (10..35).map(|code: i32| code.to_string()).collect();
                self.several_of(&codes, 7)
            }
        }
    }
}

fn region_of(lists: &Distributions, nation: &str) -> String {
    let row = nations().iter().find(|row| row.n_name == nation);
    row.map_or_else(String::new, |row| lists.regions().get_value(row.n_regionkey as usize).to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::QUERIES;
    use super::*;

    #[test]
    fn months_and_years_follow_the_calendar() {
        assert_eq!(months(1993, 10, 3), ["1993-10-01", "1994-01-01"]);
        assert_eq!(months(1995, 12, 1), ["1995-12-01", "1996-01-01"]);
        assert_eq!(Parameters::for_validation(1, 1.0).describe(), "1998-09-02");
        assert_eq!(Parameters::for_validation(11, 0.01).text(1), "0.010000000000");
        assert_eq!(Parameters::for_validation(6, 1.0).describe(), "1994-01-01, 1995-01-01, 6, 24");
    }

    /// From published statements that qgen generated with the seed 81310311.
    #[test]
    fn the_parameters_are_those_of_qgen() {
        let drawn = |query| Parameters::draw(query, 1.0, 81_310_300, 11).describe();
        let published = [
            (1, "1998-09-04"),
            (2, "38, TIN, EUROPE"),
            (3, "MACHINERY, 1995-03-24"),
            (4, "1996-09-01, 1996-12-01"),
            (5, "ASIA, 1994-01-01, 1995-01-01"),
            (6, "1994-01-01, 1995-01-01, 4, 24"),
            (7, "FRANCE, ALGERIA"),
            (8, "ALGERIA, AFRICA, STANDARD BURNISHED STEEL"),
            (9, "bisque"),
            (10, "1993-06-01, 1993-09-01"),
            (12, "FOB, REG AIR, 1993-01-01, 1994-01-01"),
            (13, "special, packages"),
            (14, "1993-11-01, 1993-12-01"),
            (15, "1995-03-01, 1995-06-01"),
            (16, "Brand#15, ECONOMY BRUSHED, 7, 22, 42, 4, 39, 1, 41, 45"),
            (17, "Brand#55, SM PACK"),
            (18, "315"),
            (19, "Brand#13, Brand#51, Brand#41, 8, 19, 22"),
            (20, "ivory, 1997-01-01, 1998-01-01, ALGERIA"),
            (21, "SAUDI ARABIA"),
            (22, "10, 29, 12, 30, 32, 18, 17"),
        ];
        for (query, wanted) in published {
            assert_eq!(drawn(query), wanted, "query {query}");
        }
        assert_eq!(drawn(11), "CHINA, 0.000100000000");
        let fraction = |scale| Parameters::draw(11, scale, 1, 0).text(1).to_owned();
        assert_eq!([fraction(0.01), fraction(30.0)], ["0.010000000000", "0.000003333333"]);
    }

    #[test]
    fn seeds_of_any_size_draw() {
        for seed in [0, MODULUS, u64::MAX] {
            assert!(Parameters::draw(18, 1.0, seed, 0).text(0).starts_with("31"), "{seed}");
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_and_every_draw_has_as_many_as_the_validation() {
        for query in 1..=QUERIES {
            let mut seen = std::collections::BTreeSet::new();
            for stream in 0..200 {
                let drawn = Parameters::draw(query, 1.0, 7, stream);
                assert_eq!(drawn, Parameters::draw(query, 1.0, 7, stream));
                assert_eq!(drawn.0.len(), Parameters::for_validation(query, 1.0).0.len(), "query {query}");
                assert!(drawn.0.iter().all(|text| !text.is_empty() && !text.contains('\'')), "{drawn:?}");
                seen.insert(drawn.describe());
            }
            // Query 18 has only four different parameters.
            assert!(seen.len() >= 4, "query {query}: {seen:?}");
        }
    }

    #[test]
    fn nations_are_in_their_regions_and_pairs_differ() {
        let lists = Distributions::static_default();
        assert_eq!(region_of(lists, "BRAZIL"), "AMERICA");
        assert_eq!(region_of(lists, "CHINA"), "ASIA");
        for stream in 0..200 {
            let pair = Parameters::draw(7, 1.0, 1, stream);
            assert_ne!(pair.text(0), pair.text(1));
        }
    }
}
