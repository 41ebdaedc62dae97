//! The virtual users.

use kelvin_database::{Result, Session};
use kelvin_measure::{Counters, Random, TransactionOutcome};

use super::audit;
use super::calls::{self, Driven, Execute, TransactionDetails};
use super::inputs::{Inputs, Transaction};
use super::non_uniform::NonUniform;
use super::options::{Calls, Options, Profile};
use super::schema::metadata::Metadata;
use crate::{NextTransaction, VirtualUser};

/// Domain of [`Random::part`] for the constants of a run, which all its users share (clause 2.1.6).
const CONSTANTS_OF_RUN: u64 = 0x7072_6f63_5f72_756e;

/// Makes the users of a run. Their homes are spread evenly over the warehouses; with HammerDB's routines each
/// draws its own, as HammerDB's users do.
pub(crate) fn make(
    options: &Options,
    metadata: &Metadata,
    driven: Driven,
    users: u32,
    seed: u64,
) -> Vec<Box<dyn VirtualUser>> {
    let mut shared = Random::part(seed, CONSTANTS_OF_RUN, 0);
    let constants = NonUniform::for_run(&mut shared, metadata.c_last_of_load);
    let draws_home = options.profile == Profile::Hammerdb && driven.calls == Calls::Functions;
    let mut made: Vec<Box<dyn VirtualUser>> = Vec::with_capacity(users as usize);
    for (index, mut random) in (0..users).zip(Random::users(seed)) {
        let home = if draws_home {
            random.range(1, i64::from(metadata.warehouses))
        } else {
            home(index, users, metadata.warehouses)
        };
        let inputs = Inputs::new(options, metadata.warehouses, random, constants, home);
        let executor = calls::executor(options.profile, driven, metadata.warehouses);
        made.push(Box::new(User {
            inputs,
            executor,
            current: None,
            done: TransactionDetails::default(),
            rolled_back: false,
        }));
    }
    made
}

/// Home warehouse of user `index` of `users`.
fn home(index: u32, users: u32, warehouses: u32) -> i64 {
    (u64::from(index) * u64::from(warehouses) / u64::from(users)) as i64 + 1
}

struct User {
    inputs: Inputs,
    executor: Box<dyn Execute>,
    current: Option<(u16, Transaction)>,
    done: TransactionDetails,
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

    /// Leaves an open transaction on an error: the driver rolls back when [`Session::in_transaction`] says so.
    fn execute(&mut self, session: &mut dyn Session) -> Result<TransactionOutcome> {
        let Some((_, transaction)) = &self.current else {
            return Err(kelvin_database::Error::usage(
                "a user was told to execute before it had decided what",
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
    use super::*;

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
