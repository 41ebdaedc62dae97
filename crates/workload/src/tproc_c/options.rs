//! What a user can choose about TPROC-C.

use serde::{Deserialize, Serialize};

/// The rules that a run follows. Results of different profiles are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The rules of TPC-C clauses 2 and 4.
    #[default]
    Spec,
    /// HammerDB's schema, table names and routines.
    Hammerdb,
}

/// How the transactions are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Calls {
    /// Client SQL, one statement a round trip.
    Statements,
    /// Client SQL, as few round trips as the data dependencies allow.
    Pipelined,
    /// One call of a stored function a transaction.
    Functions,
}

/// Weights of the transaction types, in the order New-Order, Payment, Delivery, Stock-Level, Order-Status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix(pub [u32; 5]);

impl Default for Mix {
    fn default() -> Self {
        Self([10, 10, 1, 1, 1])
    }
}

/// Everything about the data and the transactions; how many users and how long is the driver's matter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Options {
    /// Which rules.
    pub profile: Profile,
    /// Number of warehouses, 1 to 100,000.
    pub warehouses: u32,
    /// How transactions are executed; none chooses the fastest that the engine has.
    pub calls: Option<Calls>,
    /// Each transaction draws its home warehouse among all instead of each user keeping one.
    pub all_warehouses: bool,
    /// Weights of the transaction types.
    pub mix: Mix,
    /// Users wait for keying and thinking as people would.
    pub keying_and_thinking: bool,
    /// Foreign keys between the tables.
    pub foreign_keys: bool,
    /// Hash partitions of order_line by warehouse (PostgreSQL).
    pub partitions: Option<u32>,
    /// Connections that load at the same time; none chooses by the engine and the cores.
    pub loaders: Option<u32>,
    /// Seed of the initial data. The run's own seed is the driver's.
    pub data_seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            profile: Profile::Spec,
            warehouses: 1,
            calls: None,
            all_warehouses: false,
            mix: Mix::default(),
            keying_and_thinking: false,
            foreign_keys: false,
            partitions: None,
            loaders: None,
            data_seed: 1,
        }
    }
}
