//! HammerDB's settings: the dictionaries that `diset` changes, with the defaults of its version 6.

use std::collections::BTreeMap;

/// A database system as HammerDB names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    Mariadb,
    /// MySQL.
    Mysql,
    /// SQL Server.
    SqlServer,
    /// Oracle.
    Oracle,
    /// Db2.
    Db2,
}

impl System {
    const ALL: [Self; 6] =
        [Self::Postgres, Self::Mariadb, Self::Mysql, Self::SqlServer, Self::Oracle, Self::Db2];

    /// The system that `dbset db` names.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|system| system.word() == name)
    }

    /// HammerDB's prefix for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Postgres => "pg",
            Self::Mariadb => "maria",
            Self::Mysql => "mysql",
            Self::SqlServer => "mssqls",
            Self::Oracle => "ora",
            Self::Db2 => "db2",
        }
    }

    /// Its name in HammerDB's output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mariadb => "MariaDB",
            Self::Mysql => "MySQL",
            Self::SqlServer => "MSSQLServer",
            Self::Oracle => "Oracle",
            Self::Db2 => "Db2",
        }
    }

    /// The defaults of its settings, by dictionary.
    fn defaults(self) -> &'static [Dictionary] {
        match self {
            Self::Postgres => POSTGRES,
            Self::Mariadb | Self::Mysql => MYSQL,
            Self::SqlServer => SQL_SERVER,
            Self::Oracle | Self::Db2 => &[],
        }
    }

    /// Whether this build can run a workload on it.
    pub fn is_supported(self) -> bool {
        matches!(self, Self::Postgres | Self::Mariadb | Self::Mysql | Self::SqlServer)
    }
}

/// A dictionary and its settings, as pairs of key and default.
type Dictionary = (Section, &'static [(&'static str, &'static str)]);

const POSTGRES: &[Dictionary] = &[
    (Section::Connection, &[("host", "localhost"), ("port", "5432"), ("sslmode", "prefer")]),
    (
        Section::Tpcc,
        &[
            ("superuser", "postgres"),
            ("superuserpass", "postgres"),
            ("defaultdbase", "postgres"),
            ("user", "tpcc"),
            ("pass", "tpcc"),
            ("tspace", "pg_default"),
            ("vacuum", "false"),
            ("dritasnap", "false"),
            ("oracompat", "false"),
            ("cituscompat", "false"),
            ("storedprocs", "false"),
            ("partition", "false"),
        ],
    ),
    (
        Section::Tpch,
        &[
            ("tpch_superuser", "postgres"),
            ("tpch_superuserpass", "postgres"),
            ("tpch_defaultdbase", "postgres"),
            ("tpch_user", "tpch"),
            ("tpch_pass", "tpch"),
            ("tpch_tspace", "pg_default"),
            ("tpch_gpcompat", "false"),
            ("tpch_gpcompress", "false"),
            ("degree_of_parallel", "2"),
            ("cloud_query", "false"),
            ("rs_compat", "false"),
        ],
    ),
];

const MYSQL: &[Dictionary] = &[
    (
        Section::Connection,
        &[
            ("host", "127.0.0.1"),
            ("port", "3306"),
            ("socket", ""),
            ("ssl", "false"),
            ("ssl_two_way", "false"),
            ("ssl_linux_capath", "/etc/mysql/certs"),
            ("ssl_windows_capath", "C:\\mysql\\certs"),
            ("ssl_ca", "ca-cert.pem"),
            ("ssl_cert", "client-cert.pem"),
            ("ssl_key", "client-key.pem"),
            ("ssl_cipher", "server"),
            ("oceanbase_port", "2881"),
        ],
    ),
    (
        Section::Tpcc,
        &[
            ("user", "root"),
            ("pass", ""),
            ("storage_engine", "innodb"),
            ("partition", "false"),
            ("prepared", "false"),
            ("history_pk", "false"),
            ("no_stored_procs", "false"),
            ("purge", "false"),
        ],
    ),
    (
        Section::Tpch,
        &[
            ("tpch_user", "root"),
            ("tpch_pass", ""),
            ("tpch_storage_engine", "innodb"),
            ("tpch_obcompat", "false"),
            ("ob_partition_num", "1"),
            ("ob_tenant_name", "tpch"),
            ("cloud_query", "false"),
        ],
    ),
];

const SQL_SERVER: &[Dictionary] = &[
    (
        Section::Connection,
        &[
            ("server", "(local)"),
            ("linux_server", "localhost"),
            ("tcp", "false"),
            ("port", "1433"),
            ("azure", "false"),
            ("authentication", "windows"),
            ("msi_object_id", "null"),
            ("linux_authent", "sql"),
            ("odbc_driver", "ODBC Driver 18 for SQL Server"),
            ("linux_odbc", "ODBC Driver 18 for SQL Server"),
            ("uid", "sa"),
            ("pass", "admin"),
            ("encrypt_connection", "true"),
            ("trust_server_cert", "true"),
        ],
    ),
    (
        Section::Tpcc,
        &[
            ("imdb", "false"),
            ("bucket", "1"),
            ("durability", "SCHEMA_AND_DATA"),
            ("use_bcp", "true"),
            ("checkpoint", "false"),
        ],
    ),
    (
        Section::Tpch,
        &[
            ("maxdop", "2"),
            ("colstore", "false"),
            ("tpch_use_bcp", "true"),
            ("tpch_partition_orders_and_lineitems", "false"),
            ("tpch_advanced_stats", "false"),
        ],
    ),
];

/// A dictionary of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// How to reach the server.
    Connection,
    /// TPROC-C.
    Tpcc,
    /// TPROC-H.
    Tpch,
}

impl Section {
    /// Every dictionary.
    pub const ALL: [Self; 3] = [Self::Connection, Self::Tpcc, Self::Tpch];

    /// The dictionary that `diset` names.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "connection" => Some(Self::Connection),
            "tpcc" | "tprocc" => Some(Self::Tpcc),
            "tpch" | "tproch" => Some(Self::Tpch),
            _ => None,
        }
    }

    /// HammerDB's name for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Tpcc => "tpcc",
            Self::Tpch => "tpch",
        }
    }

    /// The settings that every system has; their keys begin with the system's prefix.
    fn common(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Connection => &[],
            Self::Tpcc => &[
                ("count_ware", "1"),
                ("num_vu", "1"),
                ("dbase", "tpcc"),
                ("total_iterations", "10000000"),
                ("raiseerror", "false"),
                ("keyandthink", "false"),
                ("driver", "timed"),
                ("rampup", "2"),
                ("duration", "5"),
                ("allwarehouse", "false"),
                ("timeprofile", "false"),
                ("async_scale", "false"),
                ("async_client", "10"),
                ("async_verbose", "false"),
                ("async_delay", "1000"),
                ("connect_pool", "false"),
            ],
            Self::Tpch => &[
                ("scale_fact", "1"),
                ("num_tpch_threads", "1"),
                ("tpch_dbase", "tpch"),
                ("total_querysets", "1"),
                ("raise_query_error", "false"),
                ("verbose", "false"),
                ("refresh_on", "false"),
                ("update_sets", "1"),
                ("trickle_refresh", "1000"),
                ("refresh_verbose", "false"),
            ],
        }
    }
}

/// The values of one system's dictionaries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    system: System,
    values: BTreeMap<(Section, String), String>,
}

/// A dictionary has no key of this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// The key that was probably meant.
    pub nearest: Option<String>,
}

impl Settings {
    /// The defaults of a system.
    pub fn new(system: System) -> Self {
        let own = system.defaults().iter().copied();
        let common = Section::ALL.into_iter().map(|section| (section, section.common()));
        let values = own
            .chain(common)
            .flat_map(|(section, keys)| {
                keys.iter().map(move |(key, value)| {
                    ((section, format!("{}_{key}", system.word())), (*value).to_owned())
                })
            })
            .collect();
        Self { system, values }
    }

    /// The system.
    pub fn system(&self) -> System {
        self.system
    }

    /// The values of a dictionary, by key.
    pub fn of_section(&self, section: Section) -> impl Iterator<Item = (&str, &str)> {
        self.values
            .iter()
            .filter(move |((of, _), _)| *of == section)
            .map(|((_, key), value)| (key.as_str(), value.as_str()))
    }

    /// Sets a value.
    ///
    /// For Oracle and Db2 there is no list of keys, since no workload can run on them: any key is accepted.
    ///
    /// # Errors
    /// The dictionary has no such key; the error names the nearest one.
    pub fn set(&mut self, section: Section, key: &str, value: &str) -> Result<(), UnknownKey> {
        let place = (section, key.to_owned());
        if self.system.defaults().is_empty() || self.values.contains_key(&place) {
            self.values.insert(place, value.to_owned());
            return Ok(());
        }
        // A key written without the system's prefix is nearest to the one with it.
        let prefixed = format!("{}_{key}", self.system.word());
        let distance = |known: &str| {
            strsim::damerau_levenshtein(known, key).min(strsim::damerau_levenshtein(known, &prefixed))
        };
        let nearest = self
            .values
            .keys()
            .map(|(_, known)| (distance(known), known))
            .filter(|(distance, known)| *distance * 3 <= known.len())
            .min()
            .map(|(_, known)| known.clone());
        Err(UnknownKey { nearest })
    }

    /// A value, by its key without the system's prefix.
    pub fn get(&self, section: Section, name: &str) -> &str {
        let place = (section, format!("{}_{name}", self.system.word()));
        self.values.get(&place).map_or("", String::as_str)
    }
}

/// Whether a key holds a password.
pub fn is_secret(key: &str) -> bool {
    key.ends_with("pass") || key.ends_with("password")
}
