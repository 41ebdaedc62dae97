//! Grades a rate: 20 MB/s per physical core are sufficient, 40 are recommended.

use std::fmt;

use serde::Serialize;

use super::report::{Rate, Test};

/// MB/s per core that a column store needs.
pub const MINIMUM: f64 = 20.0;
/// MB/s per core that it should have.
pub const RECOMMENDED: f64 = 40.0;

/// The grade of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThroughputGrade {
    /// Less than the minimum.
    Fail,
    /// At least the minimum.
    Minimum,
    /// At least the recommended rate.
    Recommended,
}

impl ThroughputGrade {
    /// The grade of a rate in MB/s per core.
    pub fn for_rate(rate: f64) -> Self {
        if rate >= RECOMMENDED {
            Self::Recommended
        } else if rate >= MINIMUM {
            Self::Minimum
        } else {
            Self::Fail
        }
    }
}

impl fmt::Display for ThroughputGrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fail => "FAIL",
            Self::Minimum => "PASS: MINIMUM",
            Self::Recommended => "PASS: RECOMMENDED",
        })
    }
}

/// The deciding test and its rate: the lowest of Write, ReWrite and Read. Of ReWrite the slower direction counts, since
/// the rule requires both at once. `None` unless all three were done.
pub(super) fn deciding(per_core: &[(Test, Rate)]) -> Option<(Test, f64)> {
    [Test::Write, Test::ReWrite, Test::Read]
        .into_iter()
        .map(|test| {
            let rate = per_core.iter().find(|(done, _)| *done == test)?.1;
            Some((test, rate.read.unwrap_or(f64::INFINITY).min(rate.write.unwrap_or(f64::INFINITY))))
        })
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .min_by(|one, other| one.1.total_cmp(&other.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_direction_of_the_slowest_test_decides() {
        let write = (Test::Write, Rate { write: Some(50.0), ..Rate::default() });
        let rewrite = (Test::ReWrite, Rate { read: Some(45.0), write: Some(39.9), ..Rate::default() });
        let read = (Test::Read, Rate { read: Some(90.0), ..Rate::default() });
        assert_eq!(deciding(&[write, rewrite, read]), Some((Test::ReWrite, 39.9)));
        assert_eq!(deciding(&[write, rewrite]), None);
        assert_eq!(ThroughputGrade::for_rate(39.9), ThroughputGrade::Minimum);
        assert_eq!(ThroughputGrade::for_rate(40.0), ThroughputGrade::Recommended);
        assert_eq!(ThroughputGrade::for_rate(20.0), ThroughputGrade::Minimum);
        assert_eq!(ThroughputGrade::for_rate(19.99), ThroughputGrade::Fail);
        assert!(ThroughputGrade::Fail < ThroughputGrade::Minimum);
    }
}
