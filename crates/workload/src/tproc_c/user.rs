//! The virtual users.

use kelvin_database::{Result, Session};
use kelvin_measure::{Counters, Random, TransactionOutcome};

use super::audit;
use super::calls::{self, Details, Driven, Execute};
use super::inputs::{Inputs, Transaction};
use super::non_uniform::NonUniform;
use super::options::{Calls, Options, Profile};
use super::schema::metadata::Metadata;
use crate::{NextTransaction, UserRange, VirtualUser};

/// Domain of [`Random::part`] for the constants of a run, which all its users share (clause 2.1.6).
const CONSTANTS_OF_RUN: u64 = 0x7072_6f63_5f72_756e;

/// Creates the users of `range`. Their homes are spread evenly over the warehouses; with HammerDB's routines each user
/// draws its home, as HammerDB's users do.
pub(crate) fn make<'a>(
    options: &'a Options,
    metadata: &'a Metadata,
    driven: Driven,
    range: UserRange,
    seed: u64,
) -> impl Iterator<Item = User> + 'a {
    let mut shared = Random::part(seed, CONSTANTS_OF_RUN, 0);
    let constants = NonUniform::for_run(&mut shared, metadata.c_last_of_load);
    let draws_home = options.profile == Profile::Hammerdb && driven.calls == Calls::Functions;
    range.streams(seed).map(move |(number, mut random)| {
        let home = if draws_home {
            random.range(1, i64::from(metadata.warehouses))
        } else {
            home(number, range.total(), metadata.warehouses)
        };
        User {
            inputs: Inputs::new(options, metadata.warehouses, random, constants, home),
            executor: calls::executor(options.profile, driven, metadata.warehouses),
            current: None,
            done: Details::default(),
            rolled_back: false,
        }
    })
}

/// The home warehouse of user `index` of `users`.
fn home(index: u32, users: u32, warehouses: u32) -> i64 {
    (u64::from(index) * u64::from(warehouses) / u64::from(users)) as i64 + 1
}

pub(crate) struct User {
    inputs: Inputs,
    executor: Box<dyn Execute>,
    current: Option<(u16, Transaction)>,
    done: Details,
    rolled_back: bool,
}

impl VirtualUser for User {
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        self.executor.prepare(session)
    }

    fn next(&mut self) -> NextTransaction {
        let (kind, transaction, keying, thinking) = self.inputs.draw();
        self.current = Some((kind, transaction));
        NextTransaction { kind, keying, thinking }
    }

    /// Leaves a transaction open on an error: the driver rolls back if [`Session::in_transaction`] is true.
    fn execute(&mut self, session: &mut dyn Session) -> Result<TransactionOutcome> {
        let Some((_, transaction)) = &self.current else {
            return Err(kelvin_database::Error::usage(
                "a user executed a transaction before it had chosen one",
            ));
        };
        let outcome = self.executor.execute(session, transaction, &mut self.done)?;
        self.rolled_back = outcome == TransactionOutcome::RolledBack;
        Ok(outcome)
    }

    fn count(&self, counters: &Counters) {
        if let Some((kind, transaction)) = &self.current {
            let server_draws = self.executor.server_draws_lines();
            audit::count(counters, *kind, transaction, &self.done, self.rolled_back, server_draws);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kelvin_database::EngineKind;

    use super::super::dialect::of_engine;
    use super::super::schema::metadata::BuiltBy;
    use super::*;

    /// The first transactions of the users of `range`, with their keying and thinking times.
    fn drawn(profile: Profile, range: UserRange) -> Vec<Vec<(u16, Transaction, Duration, Duration)>> {
        let options = Options { profile, keying_and_thinking: true, ..Options::default() };
        let metadata =
            Metadata { profile, warehouses: 3, data_seed: 1, c_last_of_load: 7, built_by: BuiltBy::Kelvin };
        let driven = Driven::new(of_engine(EngineKind::Postgres).unwrap(), Calls::Functions);
        let users = make(&options, &metadata, driven, range, 42);
        users.map(|mut user| (0..50).map(|_| user.inputs.draw()).collect()).collect()
    }

    #[test]
    fn a_user_draws_the_same_whichever_generator_drives_it() {
        for profile in [Profile::Spec, Profile::Hammerdb] {
            let whole = drawn(profile, UserRange::all(8));
            let part = |range| drawn(profile, UserRange::part(range, 8).unwrap());
            assert_eq!([part(0..4), part(4..8)].concat(), whole);
            assert_eq!(part(5..6), whole[5..6]);
            assert_ne!(whole[0], whole[4]);
        }
        assert_eq!(UserRange::part(4..9, 8), None);
    }

    #[test]
    fn homes_are_spread_evenly() {
        let homes = |users, warehouses| (0..users).map(|i| home(i, users, warehouses)).collect::<Vec<_>>();
        assert_eq!(homes(4, 10), [1, 3, 6, 8]);
        assert_eq!(homes(4, 1), [1; 4]);
        assert_eq!(homes(6, 3), [1, 1, 2, 2, 3, 3]);
        assert_eq!(home(99_999, 100_000, 100_000), 100_000);
        assert_eq!(home(u32::MAX - 1, u32::MAX, 100_000), 100_000);
    }
}
