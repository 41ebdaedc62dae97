//! Numbers of virtual users: one, or several to be run in turn.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One or more numbers of virtual users, none of them 0. In a file `4` or `[1, 2, 4]`, on the command line
/// `4` or `1,2,4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Users(Vec<u32>);

impl Users {
    /// These numbers, none of them 0 and none twice.
    pub(crate) fn several(numbers: Vec<u32>) -> Self {
        Self(numbers)
    }

    /// The numbers, in the order in which they run.
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }
}

impl Default for Users {
    fn default() -> Self {
        Self(vec![4])
    }
}

fn valid(number: i64) -> Result<u32, String> {
    match u32::try_from(number) {
        Ok(0) => Err("0 users generate no load; give at least 1".into()),
        Ok(users) => Ok(users),
        Err(_) => Err(format!("{number} is not a valid number of users")),
    }
}

/// The numbers as a list of points; each must come once.
fn distinct(numbers: Vec<u32>) -> Result<Users, String> {
    match numbers.iter().enumerate().find(|(i, n)| numbers[..*i].contains(n)) {
        Some((_, twice)) => Err(format!("{twice} users are given twice; to repeat a point, repeat the run")),
        None => Ok(Users(numbers)),
    }
}

impl FromStr for Users {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            let part = part.trim();
            let number = part
                .parse()
                .map_err(|_| format!("\"{part}\" is not a valid number of users; write 8 or 1,2,4,8"))?;
            valid(number)
        };
        text.split(',').map(number).collect::<Result<_, _>>().and_then(distinct)
    }
}

impl fmt::Display for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&numbers.join(","))
    }
}

impl Serialize for Users {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            many => many.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Users {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;
        impl<'de> Visitor<'de> for OneOrMore {
            type Value = Users;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of users, or a list of numbers")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Users, E> {
                Ok(Users(vec![valid(number).map_err(E::custom)?]))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Users, E> {
                self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Users, A::Error> {
                let mut numbers = Vec::new();
                while let Some(number) = list.next_element::<i64>()? {
                    numbers.push(valid(number).map_err(A::Error::custom)?);
                }
                if numbers.is_empty() {
                    return Err(A::Error::custom("the list of users is empty"));
                }
                distinct(numbers).map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(OneOrMore)
    }
}

#[cfg(test)]
mod tests {
    use crate::Users;

    #[test]
    fn a_number_given_twice_is_refused() {
        assert!("1,2,4".parse::<Users>().is_ok());
        assert!("4,2,4".parse::<Users>().unwrap_err().contains("4 users are given twice"));
    }
}
