//! When InnoDB writes pages as fast as it can because its redo log is nearly used up: "furious flushing".
//!
//! The log is a ring. What the last checkpoint does not cover cannot be written over, so that pages have to be written before the
//! log comes round. From some age of the checkpoint on InnoDB does nothing else, and a little later sessions wait for it.

use std::collections::BTreeMap;

use kelvin_measure::Nanos;
use kelvin_measure::observation::Occurrence;

/// Share of the log that a checkpoint's age may reach before InnoDB (MySQL) writes as fast as it can: `log_max_modified_age_async`
/// of 8.0.31 was 0.775 of a log of 100 MiB, 0.767 of one of 16 MiB and 0.757 of one of 8 MiB. Flushing holds the age a little below
/// it: at 0.740 of a log of 8 MiB for seconds on end.
const MYSQL_LIMIT: f64 = 0.73;
/// The same as a share of MariaDB's `Innodb_checkpoint_max_age`, at which sessions have to wait (`log_t::set_capacity`: a margin,
/// and an eighth of it less).
const MARIADB_LIMIT: f64 = 0.875;

/// Bytes of log since the last checkpoint from which on pages are written as fast as can be; none where the server does not say.
pub(super) fn limit(mariadb: bool, capacity: Option<f64>) -> Option<f64> {
    let share = if mariadb { MARIADB_LIMIT } else { MYSQL_LIMIT };
    capacity.filter(|bytes| *bytes > 0.0).map(|bytes| bytes * share)
}

/// Follows the age of the checkpoint.
#[derive(Debug, Default)]
pub(super) struct Flushing {
    under_way: Option<Occurrence>,
}

impl Flushing {
    /// An age was read; `before` is when the one before it was.
    pub(super) fn age(
        &mut self,
        age: f64,
        limit: f64,
        before: Nanos,
        now: Nanos,
        number: impl FnOnce() -> u32,
    ) -> Option<Occurrence> {
        let middle = before + now.saturating_sub(before) / 2;
        if age >= limit {
            let begins = self.under_way.is_none();
            let one = self.under_way.get_or_insert_with(|| Occurrence {
                id: number(),
                kind: "furious flush".into(),
                subject: "redo log".into(),
                from: middle,
                to: None,
                figures: BTreeMap::from([("limit_bytes".to_owned(), limit), ("age_bytes".to_owned(), age)]),
            });
            let most = one.figures.entry("age_bytes".into()).or_insert(age);
            *most = most.max(age);
            return begins.then(|| one.clone());
        }
        let mut ended = self.under_way.take()?;
        ended.to = Some(middle.max(ended.from));
        Some(ended)
    }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::SECOND;

    use super::*;

    #[test]
    fn one_lasts_from_the_first_age_beyond_the_limit_to_the_first_within_it() {
        let mut seen = Flushing::default();
        let mut next = 6;
        let mut reported = Vec::new();
        for (second, age) in [10.0, 90.0, 120.0, 95.0, 40.0, 30.0].into_iter().enumerate() {
            let now = (second as Nanos + 1) * SECOND;
            reported.extend(seen.age(age, 80.0, now - SECOND, now, || {
                next += 1;
                next
            }));
        }
        assert_eq!(reported.len(), 2);
        assert_eq!((reported[0].id, reported[0].from, reported[0].to), (7, SECOND * 3 / 2, None));
        assert_eq!((reported[1].id, reported[1].to), (7, Some(SECOND * 9 / 2)));
        assert_eq!(reported[1].figures["age_bytes"], 120.0);
    }

    #[test]
    fn the_limit_is_a_share_of_what_the_server_says() {
        assert_eq!(limit(true, Some(80.0)), Some(70.0));
        assert_eq!(limit(false, Some(100.0)), Some(73.0));
        assert_eq!(limit(false, Some(0.0)), None);
        assert_eq!(limit(true, None), None);
    }
}
