//! The options of TPROC-C.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

/// The rules that a run follows. Results of different profiles are not comparable.
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
    /// Client SQL, one statement per round trip.
    Statements,
    /// Client SQL, in as few round trips as data dependencies allow.
    Pipelined,
    /// One call of a stored function or procedure per transaction.
    #[serde(alias = "procedures")]
    Functions,
}

/// Weights of the transaction types, in the order New-Order, Payment, Delivery, Stock-Level, Order-Status.
/// Written "10/10/1/1/1", in files as on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mix(pub [u32; 5]);

impl Default for Mix {
    fn default() -> Self {
        Self([10, 10, 1, 1, 1])
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "\"{text}\" is not a valid mix; write five weights, \
                 New-Order/Payment/Delivery/Stock-Level/Order-Status, such as 10/10/1/1/1"
            )
        };
        let weights: Vec<u32> = text
            .split('/')
            .map(|weight| weight.trim().parse())
            .collect::<Result<_, _>>()
            .map_err(|_| wrong())?;
        let weights: [u32; 5] = weights.try_into().map_err(|_| wrong())?;
        if weights.iter().all(|&weight| weight == 0) {
            return Err("a mix of five zeros is empty; at least one weight must be greater than 0".into());
        }
        if let Some(large) = weights.iter().find(|&&weight| weight > 1_000_000) {
            return Err(format!("the weight {large} exceeds 1,000,000"));
        }
        Ok(Self(weights))
    }
}

impl TryFrom<String> for Mix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Mix> for String {
    fn from(mix: Mix) -> Self {
        mix.to_string()
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [new_order, payment, delivery, stock_level, order_status] = self.0;
        write!(f, "{new_order}/{payment}/{delivery}/{stock_level}/{order_status}")
    }
}

/// Everything that determines the data and the transactions. The driver has the number of users and the
/// duration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Options {
    /// The rules of the run.
    pub profile: Profile,
    /// Number of warehouses, 1 to 100,000; `None` uses the number in the database, or builds one warehouse.
    #[serde(deserialize_with = "warehouses", skip_serializing_if = "Option::is_none")]
    pub warehouses: Option<u32>,
    /// How transactions are executed; `None` chooses the fastest way that the engine supports.
    pub calls: Option<Calls>,
    /// Each transaction draws its home warehouse from all warehouses, instead of each user keeping one.
    pub all_warehouses: bool,
    /// Weights of the transaction types.
    pub mix: Mix,
    /// Users wait for keying and thinking times like people.
    pub keying_and_thinking: bool,
    /// Foreign keys between the tables.
    pub foreign_keys: bool,
    /// Hash partitions of order_line by warehouse (PostgreSQL).
    pub partitions: Option<u32>,
    /// Each warehouse and each district row is on a separate page (SQL Server).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fill_page: bool,
    /// Connections that load concurrently; `None` chooses by the engine and the number of cores.
    pub loaders: Option<u32>,
    /// Seed of the initial data; `None` uses the seed in the database, or builds with 1. The seed of the run
    /// is an option of the driver.
    #[serde(with = "kelvin_measure::seed::optional", skip_serializing_if = "Option::is_none")]
    pub data_seed: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            profile: Profile::Spec,
            warehouses: None,
            calls: None,
            all_warehouses: false,
            mix: Mix::default(),
            keying_and_thinking: false,
            foreign_keys: false,
            partitions: None,
            fill_page: false,
            loaders: None,
            data_seed: None,
        }
    }
}

impl Options {
    /// Number of warehouses to build if neither the options nor the database determine it.
    pub(super) fn warehouses_to_build(&self) -> u32 {
        self.warehouses.unwrap_or(1)
    }

    /// Seed to build with if neither the options nor the database determine it.
    pub(super) fn seed_to_build(&self) -> u64 {
        self.data_seed.unwrap_or(1)
    }
}

/// The maximum number of warehouses.
pub(super) const MAX_WAREHOUSES: u32 = 100_000;

/// Checks the number while parsing, so that the error has its line and column.
fn warehouses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let number = i64::deserialize(deserializer)?;
    let fits = u32::try_from(number).ok().filter(|n| (1..=MAX_WAREHOUSES).contains(n));
    fits.map(Some).ok_or_else(|| {
        serde::de::Error::custom(format!("{number} warehouses are outside the range 1 to {MAX_WAREHOUSES}"))
    })
}
