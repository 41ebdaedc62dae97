//! A seed in a file: a number where the format has one that is large enough, else its digits as a text. TOML's numbers end at
//! 2^63 - 1, and a seed may be any of 64 bits.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

/// For `#[serde(with = "kelvin_measure::seed")]`.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match i64::try_from(*seed) {
        Ok(number) => serializer.serialize_i64(number),
        Err(_) => serializer.collect_str(seed),
    }
}

/// Reads both forms.
///
/// # Errors
/// When it is no whole number from 0 to 2^64 - 1.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(NumberOrText)
}

/// The same of a seed that may be left out, with `#[serde(default)]`.
pub mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Seed(#[serde(with = "super")] u64);

    /// For `#[serde(with = "kelvin_measure::seed::optional")]`.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(seed: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        seed.map(Seed).serialize(serializer)
    }

    /// Reads both forms.
    ///
    /// # Errors
    /// When it is no whole number from 0 to 2^64 - 1.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(|Seed(seed)| seed))
    }
}

struct NumberOrText;

impl Visitor<'_> for NumberOrText {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a seed from 0 to 18446744073709551615, as a number or a string")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        u64::try_from(number).map_err(|_| E::custom(format!("the seed {number} is negative")))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        text.parse().map_err(|_| E::custom(format!("\"{text}\" is not a seed from 0 to {}", u64::MAX)))
    }
}
