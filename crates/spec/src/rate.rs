//! Rates of an open loop: one, or several to be run in turn.

use std::fmt;
use std::str::FromStr;

use kelvin_measure::Random;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One arrival in eleven days: less does not happen in a run.
const LOWEST: f64 = 1e-6;

/// Points of a run: more would take days.
const MOST_POINTS: usize = 1000;

/// Domain of [`Random::part`] for the shuffled order: "rates" in ASCII.
const DOMAIN: u64 = 0x72_6174_6573;

/// One or more rates, in arrivals a second.
///
/// On the command line `1000`, `1000/s`, `60000/min`, `1000,2000,4000`, or `1000..20000/8`: eight rates, evenly
/// spaced, both ends included. `,shuffled` runs them in an order that the seed decides, so that what changes
/// with time is not taken for an effect of the rate; `,mirrored` runs them up and down again, the highest once
/// (8 rates make 15 points), so that a rate can be compared with itself after more load (hysteresis). In a file
/// a number, a list of numbers, or the same text.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    shape: Shape,
    order: Order,
}

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    List(Vec<f64>),
    Steps { low: f64, high: f64, steps: usize },
}

/// In which order the rates run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    AsWritten,
    Shuffled,
    Mirrored,
}

impl Rates {
    /// No generator of ours starts more transactions a second than this; a larger number is a mistake.
    pub const HIGHEST: f64 = 10_000_000.0;

    /// The rates in arrivals a second, in the order in which they run.
    pub fn points(&self, seed: u64) -> Vec<f64> {
        let mut points = match &self.shape {
            Shape::List(list) => list.clone(),
            &Shape::Steps { low, high, steps } => {
                let part = |i: usize| i as f64 / (steps - 1) as f64;
                (0..steps).map(|i| if i + 1 == steps { high } else { low + (high - low) * part(i) }).collect()
            }
        };
        match self.order {
            Order::AsWritten => {}
            Order::Shuffled => Random::part(seed, DOMAIN, 0).shuffle(&mut points),
            Order::Mirrored => {
                let down: Vec<f64> = points.iter().rev().skip(1).copied().collect();
                points.extend(down);
            }
        }
        points
    }

    /// The one rate, when it is one.
    pub fn single(&self) -> Option<f64> {
        match &self.shape {
            Shape::List(list) if list.len() == 1 => list.first().copied(),
            _ => None,
        }
    }

    /// Refuses what cannot be run.
    fn new(shape: Shape, order: Order) -> Result<Self, String> {
        let count = match &shape {
            Shape::List(list) => list.len(),
            Shape::Steps { steps, .. } => *steps,
        };
        if count < 2 && order != Order::AsWritten {
            return Err("a single rate has no order; leave out \"shuffled\" and \"mirrored\"".into());
        }
        let points = if order == Order::Mirrored { 2 * count - 1 } else { count };
        if points > MOST_POINTS {
            return Err(format!("{points} rates are too many; at most {MOST_POINTS} are allowed"));
        }
        Ok(Self { shape, order })
    }
}

fn valid(rate: f64) -> Result<f64, String> {
    if !rate.is_finite() {
        Err("a rate must be a finite number of arrivals per second".into())
    } else if rate <= 0.0 {
        Err(format!("a rate of {rate} arrivals per second is not possible; give more than 0"))
    } else if rate < LOWEST {
        Err(format!("{rate} arrivals per second are less than one in eleven days"))
    } else if rate > Rates::HIGHEST {
        Err(format!("{rate} arrivals per second exceed the supported maximum of {}", Rates::HIGHEST))
    } else {
        Ok(rate)
    }
}

/// A bare number as people write it; `f64` alone would also take "inf" and "nan".
fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    text.parse().ok().filter(|_| plain)
}

/// Seconds of a unit.
fn unit(text: &str) -> Option<f64> {
    match text.trim() {
        "s" | "sec" => Some(1.0),
        "min" | "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    }
}

const EXAMPLES: &str = "write 1000, 60000/min, 1000,2000,4000 or 1000..20000/8";

/// A rate, and whether it came with a unit.
fn rate(text: &str) -> Result<(f64, bool), String> {
    let (written, per) = match text.split_once('/') {
        None => (text, None),
        Some((written, per)) => {
            let seconds = unit(per).ok_or_else(|| {
                format!("\"{}\" is not a valid unit for a rate; write /s, /min or /h", per.trim())
            })?;
            (written, Some(seconds))
        }
    };
    let written = written.trim();
    let count = number(written).ok_or_else(|| format!("\"{written}\" is not a valid rate; {EXAMPLES}"))?;
    Ok((valid(count / per.unwrap_or(1.0))?, per.is_some()))
}

/// `LOW..HIGH/STEPS`, both ends with a unit or without.
fn steps(low: &str, rest: &str) -> Result<Shape, String> {
    let (high, count) = match rest.rsplit_once('/') {
        Some((high, count)) if unit(count).is_none() => (high, count.trim()),
        _ => {
            let range = format!("{}..{}", low.trim(), rest.trim());
            return Err(format!("\"{range}\" has no number of steps; write {range}/8"));
        }
    };
    let steps: usize = count.parse().map_err(|_| {
        format!("\"{count}\" is not a valid number of steps; write 1000..20000/8 for eight rates")
    })?;
    let ((low, low_unit), (high, high_unit)) = (rate(low)?, rate(high)?);
    if low_unit != high_unit {
        return Err("only one end of the range has a unit; write 1000/s..20000/s/8 or 1000..20000/8".into());
    }
    if low >= high {
        return Err(format!(
            "the range goes from {low} to {high}; write the lower rate first (\",mirrored\" also runs the \
            rates in reverse order)"
        ));
    }
    if steps < 2 {
        return Err(format!("{steps} steps cannot include both ends; write at least 2, or a single rate"));
    }
    Ok(Shape::Steps { low, high, steps })
}

fn list(text: &str) -> Result<Shape, String> {
    let rates: Vec<(f64, bool)> = text.split(',').map(rate).collect::<Result<_, _>>()?;
    if rates.iter().any(|r| r.1 != rates[0].1) {
        return Err("some of the rates have a unit and some do not; give all of them a unit, or none".into());
    }
    Ok(Shape::List(rates.into_iter().map(|r| r.0).collect()))
}

impl FromStr for Rates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (rates, order) = match text.rsplit_once(',').map(|(rates, word)| (rates, word.trim())) {
            Some((rates, "shuffled")) => (rates, Order::Shuffled),
            Some((rates, "mirrored")) => (rates, Order::Mirrored),
            Some((_, word)) if word.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                return Err(format!("\"{word}\" is not a valid order of rates; write shuffled or mirrored"));
            }
            _ => (text, Order::AsWritten),
        };
        let shape = match rates.split_once("..") {
            Some((low, rest)) if !rates.contains(',') => steps(low, rest)?,
            Some(_) => {
                return Err("a list cannot contain a range; write 1000..20000/8, or each rate".into());
            }
            None => list(rates)?,
        };
        Self::new(shape, order)
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shape {
            Shape::List(list) => {
                let rates: Vec<String> = list.iter().map(f64::to_string).collect();
                f.write_str(&rates.join(","))?;
            }
            Shape::Steps { low, high, steps } => write!(f, "{low}..{high}/{steps}")?,
        }
        f.write_str(match self.order {
            Order::AsWritten => "",
            Order::Shuffled => ",shuffled",
            Order::Mirrored => ",mirrored",
        })
    }
}

impl Serialize for Rates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (&self.shape, self.order) {
            (Shape::List(list), Order::AsWritten) => match list.as_slice() {
                [one] => one.serialize(serializer),
                many => many.serialize(serializer),
            },
            _ => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Rates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberTextOrList)
    }
}

struct NumberTextOrList;

impl<'de> Visitor<'de> for NumberTextOrList {
    type Value = Rates;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rate, a list of rates, or a string such as \"1000..20000/8\"")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Rates, E> {
        self.visit_f64(number as f64)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Rates, E> {
        self.visit_f64(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Rates, E> {
        let shape = Shape::List(vec![valid(number).map_err(E::custom)?]);
        Rates::new(shape, Order::AsWritten).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Rates, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Rates, A::Error> {
        let mut rates = Vec::new();
        while let Some(number) = list.next_element::<f64>()? {
            if rates.len() == MOST_POINTS {
                return Err(A::Error::custom(format!("more than {MOST_POINTS} rates are not supported")));
            }
            rates.push(valid(number).map_err(A::Error::custom)?);
        }
        if rates.is_empty() {
            return Err(A::Error::custom("the list of rates is empty"));
        }
        Rates::new(Shape::List(rates), Order::AsWritten).map_err(A::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn points(text: &str) -> Vec<f64> {
        text.parse::<Rates>().unwrap().points(1)
    }

    #[test]
    fn rates_mean_what_they_say() {
        for (text, expected) in [
            ("1000", vec![1000.0]),
            ("1000/s", vec![1000.0]),
            ("60000/min", vec![1000.0]),
            ("60000/m", vec![1000.0]),
            ("3600/h", vec![1.0]),
            ("0.5", vec![0.5]),
            ("1e3", vec![1000.0]),
            ("1000,2000,4000", vec![1000.0, 2000.0, 4000.0]),
            (" 60/min, 120/min ", vec![1.0, 2.0]),
            ("1000..4000/4", vec![1000.0, 2000.0, 3000.0, 4000.0]),
            ("1000/s..4000/s/4", vec![1000.0, 2000.0, 3000.0, 4000.0]),
            ("60/min..120/min/2", vec![1.0, 2.0]),
            ("1..3/3,mirrored", vec![1.0, 2.0, 3.0, 2.0, 1.0]),
            ("1,5,mirrored", vec![1.0, 5.0, 1.0]),
            ("2,1,2", vec![2.0, 1.0, 2.0]),
        ] {
            assert_eq!(points(text), expected, "{text}");
        }
        let steps = points("1000..20000/8");
        assert_eq!((steps.len(), steps[0], steps[7]), (8, 1000.0, 20_000.0));
        assert!(steps.windows(2).all(|w| (w[1] - w[0] - 19_000.0 / 7.0).abs() < 1e-9));
    }

    #[test]
    fn the_shuffled_order_is_the_seeds() {
        let rates: Rates = "1..50/50,shuffled".parse().unwrap();
        assert_eq!(rates.points(1), rates.points(1));
        assert_ne!(rates.points(1), rates.points(2));
        let mut sorted = rates.points(1);
        assert_ne!(sorted, points("1..50/50"));
        sorted.sort_by(f64::total_cmp);
        assert_eq!(sorted, points("1..50/50"));
    }

    #[test]
    fn refusals_say_what_to_write() {
        for (text, expected) in [
            ("", "write 1000"),
            ("fast", "write 1000"),
            ("inf", "not a valid rate"),
            ("nan", "not a valid rate"),
            ("0", "more than 0"),
            ("-5", "more than 0"),
            ("1e300", "supported"),
            ("1e-9", "eleven days"),
            ("1e999", "finite"),
            ("1000/8", "write /s, /min or /h"),
            ("1000/day", "write /s, /min or /h"),
            ("1000..20000", "write 1000..20000/8"),
            ("1000/s..20000/s", "write 1000/s..20000/s/8"),
            ("1000..20000/x", "number of steps"),
            ("1000..20000/1", "at least 2"),
            ("20000..1000/8", "lower rate first"),
            ("1000..1000/8", "lower rate first"),
            ("1000..20000/min/8", "only one end"),
            ("1000,2000/s", "or none"),
            ("1000..2000/3,4000", "a list cannot contain a range"),
            ("1000,sideways", "shuffled or mirrored"),
            ("1000,shuffled", "has no order"),
            ("1..9/1001", "too many"),
            ("1..9/501,mirrored", "too many"),
            ("1..9/99999999999999999999", "number of steps"),
            ("1..9/18446744073709551615", "too many"),
            ("1,,2", "not a valid rate"),
        ] {
            let error = text.parse::<Rates>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct File {
        rate: Rates,
    }

    #[test]
    fn a_file_says_it_as_a_number_a_list_or_a_text() {
        for (text, expected) in [
            ("rate = 1000", "1000"),
            ("rate = 0.5", "0.5"),
            ("rate = [1000, 2000.5]", "1000,2000.5"),
            ("rate = \"1000..20000/8,mirrored\"", "1000..20000/8,mirrored"),
        ] {
            let file: File = toml::from_str(text).unwrap();
            assert_eq!(file.rate, expected.parse().unwrap(), "{text}");
            assert_eq!(toml::from_str::<File>(&toml::to_string(&file).unwrap()).unwrap(), file);
        }
        for text in ["rate = 0", "rate = []", "rate = [1, -1]", "rate = true", "rate = \"x\"", "rate = inf"] {
            assert!(toml::from_str::<File>(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_printed_is_read_again(
            text in prop_oneof![
                ".{0,30}",
                "[0-9./,esmin-]{0,20}",
                "[0-9]{1,5}(\\.\\.[0-9]{1,6}/[0-9]{1,3}|(,[0-9]{1,4}(\\.[0-9])?){0,4})(,shuffled|,mirrored)?",
            ],
        ) {
            if let Ok(rates) = text.parse::<Rates>() {
                prop_assert_eq!(&rates.to_string().parse::<Rates>().unwrap(), &rates);
                let points = rates.points(7);
                prop_assert!(!points.is_empty() && points.len() <= MOST_POINTS);
                prop_assert!(points.iter().all(|&r| (LOWEST..=Rates::HIGHEST).contains(&r)));
            }
        }
    }
}
