//! A sweep over numbers of users, to which the Universal Scalability Law is fitted, or over numbers of hosts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A connection and a stack each, in a thread or on a loop: more than this is a mistake in the number, not a wish.
pub(crate) const MOST_USERS: u32 = 100_000;

/// Numbers of users that the law needs: three parameters and one degree of freedom.
const FEWEST: usize = 4;

/// More would take days, and say no more.
const MOST: usize = 100;

/// Hosts that linearity needs: two numbers.
const FEWEST_HOSTS: usize = 2;

/// Numbers of users: `users=1..64` doubles from 1 to 64 (the end always included), `users=1..64/7` takes 7
/// whole numbers at equal ratios, both ends included, and `users=1,2,4,8` is a list, run in its order. `hosts=1..8` and so
/// on are numbers of hosts of a fleet, each with as many users as the run has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sweep {
    over: Swept,
    shape: Shape,
}

/// What is swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Swept {
    Users,
    Hosts,
}

impl Swept {
    fn word(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::Hosts => "hosts",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    Doubling { low: u32, high: u32 },
    Ratios { low: u32, high: u32, steps: usize },
    List(Vec<u32>),
}

impl Sweep {
    /// Whether its numbers are those of hosts.
    pub fn is_over_hosts(&self) -> bool {
        self.over == Swept::Hosts
    }

    /// The numbers of users or hosts, in the order in which they run; each comes once.
    pub fn numbers(&self) -> Vec<u32> {
        match &self.shape {
            Shape::List(list) => list.clone(),
            &Shape::Doubling { low, high } => {
                let doubled = std::iter::successors(Some(low), |users| users.checked_mul(2));
                doubled.take_while(|&users| users < high).chain([high]).collect()
            }
            &Shape::Ratios { low, high, steps } => ratios(low, high, steps),
        }
    }
}

/// Whole numbers at equal ratios. Where they lie too close together to differ, the next whole number is taken,
/// with room left for those that follow.
fn ratios(low: u32, high: u32, steps: usize) -> Vec<u32> {
    let ratio = f64::from(high) / f64::from(low);
    let mut users: Vec<u32> = Vec::with_capacity(steps);
    for i in 0..steps {
        let wish = f64::from(low) * ratio.powf(i as f64 / (steps - 1) as f64);
        let least = users.last().map_or(low, |last| last + 1);
        let most = high - (steps - 1 - i) as u32;
        users.push((wish.round() as u32).clamp(least, most));
    }
    users
}

impl Swept {
    /// The fewest numbers that say something.
    fn fewest(self) -> usize {
        match self {
            Self::Users => FEWEST,
            Self::Hosts => FEWEST_HOSTS,
        }
    }

    fn number(self, text: &str) -> Result<u32, String> {
        let (text, word) = (text.trim(), self.word());
        let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(0) => Err(format!("a sweep cannot start at 0 {word}; give 1 or more")),
            Ok(number) if plain && number <= MOST_USERS => Ok(number),
            _ if plain => Err(format!("{text} {word} are too many; at most {MOST_USERS} are supported")),
            _ => Err(format!(
                "\"{text}\" is not a valid number of {word}; write {word}=1..64 or {word}=1,2,4,8"
            )),
        }
    }

    fn range(self, low: &str, rest: &str) -> Result<Shape, String> {
        let (high, steps) = match rest.split_once('/') {
            Some((high, steps)) => (high, Some(steps.trim())),
            None => (rest, None),
        };
        let (low, high, word) = (self.number(low)?, self.number(high)?, self.word());
        if low >= high {
            return Err(format!(
                "the sweep goes from {low} to {high} {word}; write the smaller number first"
            ));
        }
        let Some(steps) = steps else { return Ok(Shape::Doubling { low, high }) };
        let steps: usize = steps.parse().map_err(|_| {
            format!("\"{steps}\" is not a valid number of steps; write {word}=1..64/7 for seven steps")
        })?;
        let there_are = (high - low + 1) as usize;
        if steps > there_are {
            return Err(format!("there are only {there_are} numbers from {low} to {high}, not {steps}"));
        }
        // Here, because a single step would have no ratio.
        if steps < self.fewest() {
            return Err(self.few(steps));
        }
        Ok(Shape::Ratios { low, high, steps })
    }

    fn few(self, found: usize) -> String {
        match self {
            Self::Users => format!(
                "{found} numbers of users are too few for the Universal Scalability Law; give at least {FEWEST}, \
                 such as users=1..64 or users=1,2,4,8"
            ),
            Self::Hosts => format!(
                "{found} numbers of hosts are too few to compare; give at least {FEWEST_HOSTS}, such as hosts=1..8"
            ),
        }
    }
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let Some((name, values)) = text.split_once('=') else {
            return Err(format!("\"{text}\" does not name what to sweep; write users=1..64"));
        };
        let over = match name.trim() {
            "users" => Swept::Users,
            "hosts" => Swept::Hosts,
            other => return Err(format!("\"{other}\" cannot be swept; write users=1..64 or hosts=1..8")),
        };
        let shape = match values.split_once("..") {
            Some((low, rest)) => over.range(low, rest)?,
            None => Shape::List(values.split(',').map(|text| over.number(text)).collect::<Result<_, _>>()?),
        };
        let (sweep, word) = (Self { over, shape }, over.word());
        let numbers = sweep.numbers();
        if numbers.len() > MOST {
            return Err(format!(
                "{} numbers of {word} are too many; at most {MOST} are allowed",
                numbers.len()
            ));
        }
        if let Some((_, twice)) = numbers.iter().enumerate().find(|(i, n)| numbers[..*i].contains(n)) {
            return Err(format!("{twice} {word} are given twice; to repeat a point, repeat the run"));
        }
        if numbers.len() < over.fewest() {
            return Err(over.few(numbers.len()));
        }
        Ok(sweep)
    }
}

impl fmt::Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.over.word();
        match &self.shape {
            Shape::Doubling { low, high } => write!(f, "{word}={low}..{high}"),
            Shape::Ratios { low, high, steps } => write!(f, "{word}={low}..{high}/{steps}"),
            Shape::List(list) => {
                let numbers: Vec<String> = list.iter().map(u32::to_string).collect();
                write!(f, "{word}={}", numbers.join(","))
            }
        }
    }
}

impl TryFrom<String> for Sweep {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Sweep> for String {
    fn from(sweep: Sweep) -> Self {
        sweep.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sweeps_mean_what_they_say() {
        for (text, expected) in [
            ("users=1..64", vec![1, 2, 4, 8, 16, 32, 64]),
            ("users=1..100", vec![1, 2, 4, 8, 16, 32, 64, 100]),
            ("users=3..25", vec![3, 6, 12, 24, 25]),
            ("users=1..64/7", vec![1, 2, 4, 8, 16, 32, 64]),
            ("users=1..64/4", vec![1, 4, 16, 64]),
            ("users=1..8/8", vec![1, 2, 3, 4, 5, 6, 7, 8]),
            ("users=1..10/6", vec![1, 2, 3, 4, 6, 10]),
            (" users = 8, 4,2 ,1 ", vec![8, 4, 2, 1]),
            ("users=50000..100000/4", vec![50_000, 62_996, 79_370, 100_000]),
        ] {
            assert_eq!(text.parse::<Sweep>().unwrap().numbers(), expected, "{text}");
        }
        let hosts: Sweep = "hosts=1..8".parse().unwrap();
        assert_eq!((hosts.numbers(), hosts.is_over_hosts()), (vec![1, 2, 4, 8], true));
        assert!(!"users=1..8".parse::<Sweep>().unwrap().is_over_hosts());
    }

    #[test]
    fn refusals_say_what_to_write() {
        for (text, expected) in [
            ("", "write users=1..64"),
            ("1..64", "write users=1..64"),
            ("rate=1..64", "cannot be swept"),
            ("users=", "not a valid number"),
            ("users=0..64", "1 or more"),
            ("users=+1..64", "not a valid number"),
            ("users=64..1", "smaller number first"),
            ("users=1..64/x", "number of steps"),
            ("users=1..64/0", "at least 4"),
            ("users=1..64/3", "at least 4"),
            ("users=1..4/5", "only 4 numbers"),
            ("users=1..200/101", "too many"),
            ("users=1..4", "at least 4"),
            ("users=1,2,4", "at least 4"),
            ("hosts=2", "at least 2, such as hosts=1..8"),
            ("hosts=8..1", "from 8 to 1 hosts"),
            ("users=1,2,4,2", "2 users are given twice"),
            ("users=1..100001", "at most 100000"),
            ("users=1..99999999999", "at most 100000"),
        ] {
            let error = text.parse::<Sweep>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_printed_is_read_again(
            text in prop_oneof![
                ".{0,30}",
                "(users|hosts)=[0-9]{1,6}(\\.\\.[0-9]{1,6}(/[0-9]{1,3})?|(,[0-9]{1,3}){0,6})",
            ],
        ) {
            if let Ok(sweep) = text.parse::<Sweep>() {
                prop_assert_eq!(&sweep.to_string().parse::<Sweep>().unwrap(), &sweep);
            }
        }

        #[test]
        fn ranges_rise_from_end_to_end(low in 1_u32..2000, more in 3_u32..90_000, steps in 4_usize..=100) {
            let high = low + more;
            if let Ok(sweep) = format!("users={low}..{high}/{steps}").parse::<Sweep>() {
                let users = sweep.numbers();
                prop_assert_eq!((users.len(), users[0], *users.last().unwrap()), (steps, low, high));
                prop_assert!(users.windows(2).all(|w| w[0] < w[1]));
            }
        }
    }
}
