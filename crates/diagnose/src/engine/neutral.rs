//! What advice differs in, grouped by what it is about, with the values for an engine that nobody knows.

use kelvin_measure::text;

use crate::{Evidence, EvidenceLine};

/// How statements about tables and indexes are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SqlDialect {
    /// What names are quoted with.
    pub(crate) quotes: (char, char),
    /// Whether CREATE INDEX has IF NOT EXISTS and an index that statements lack, or that is gone, may be proposed.
    pub(crate) proposes_indexes: bool,
    /// Whether dropping an index and making it again can be repeated without an error.
    pub(crate) repeats_drops: bool,
    /// Whether the name of an index is one within its table, and its full name begins with the table's.
    pub(crate) indexes_within_table: bool,
    /// Whether an index whose definition is not known may serve the conditions of a statement.
    pub(crate) undefined_index_serves: bool,
}

impl SqlDialect {
    /// The SQL standard has the quotes, and no indexes.
    pub(crate) const NEUTRAL: Self = Self {
        quotes: ('"', '"'),
        proposes_indexes: false,
        repeats_drops: false,
        indexes_within_table: false,
        undefined_index_serves: true,
    };

    /// A name of the database, its parts quoted.
    pub(crate) fn quoted(&self, name: &str) -> String {
        name.split('.').map(|part| self.quoted_part(part)).collect::<Vec<_>>().join(".")
    }

    /// A name of one part, such as a column's, which may have dots in it.
    pub(crate) fn quoted_part(&self, name: &str) -> String {
        let (open, close) = self.quotes;
        format!("{open}{}{close}", name.replace(close, &format!("{close}{close}")))
    }

    /// Names of one part, as a list.
    pub(crate) fn quoted_list(&self, names: &[String]) -> String {
        names.iter().map(|name| self.quoted_part(name)).collect::<Vec<_>>().join(", ")
    }
}

/// Statistics of the optimizer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatisticsAdvice {
    /// What updates those of a table: a statement up to its name, or words.
    pub(crate) update: &'static str,
    /// The same in a remedy's title.
    pub(crate) title: &'static str,
    /// What is to be known of it where the user executes it; none where Kelvin can.
    pub(crate) by_hand: Option<&'static str>,
    /// The setting with which the server updates statistics when a statement needs them; it counts changes, then, after which they are stale.
    pub(crate) automatic: Option<&'static str>,
    /// Kinds of plan nodes, where statistics may be stale without a sign because the server counts changes since its start.
    pub(crate) uncounted: Option<NodeKinds>,
    /// What updates those of tables that are named next …
    pub(crate) renew: &'static str,
    /// … and who should have done that.
    pub(crate) renewed_by: &'static str,
    /// What helps against wrong estimates.
    pub(crate) estimates: &'static str,
    /// When plans of a table without statistics may change during a run.
    pub(crate) plans_change: &'static str,
    /// What is to be done after loading.
    pub(crate) after_loading: &'static str,
    /// What uses of an index are, as the server counts them.
    pub(crate) index_uses: &'static str,
}

/// Kinds of plan nodes that say which statistics an estimate comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeKinds {
    /// Reads a whole table: always the number of rows in the table's statistics is expected. For a scan of an index in the order of
    /// ORDER BY … LIMIT it is fewer.
    pub(crate) whole_table: &'static str,
    /// Applies a condition, of whose columns the table's statistics say nothing.
    pub(crate) filter: &'static str,
}

impl StatisticsAdvice {
    pub(crate) const NEUTRAL: Self = Self {
        update: "update the statistics of",
        title: "update the statistics of",
        by_hand: Some(""),
        automatic: None,
        uncounted: None,
        renew: "Update the statistics of",
        renewed_by: "the server did not",
        estimates: "Update the statistics of the tables below these nodes, and make those that the server has for columns that depend on \
            each other or have a skewed distribution. Then compare the plans: a wrong estimate is harmful only if it leads to a slow plan.",
        plans_change: "when the server gathers statistics",
        after_loading: "Update the statistics of the tables after loading, before every run.",
        index_uses: "uses",
    };
}

/// Sessions: who they are, how they are ended, what opening one costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionAdvice {
    /// The server's counters that are known by its figures.
    pub(crate) figures: &'static str,
    /// What lists sessions of others.
    pub(crate) list: &'static str,
    /// What ends a session, before and after its number.
    pub(crate) end: (&'static str, &'static str),
    /// What keeps transactions from being left open.
    pub(crate) idle: &'static str,
    /// Whether a session has the name of its account, and none that its client set.
    pub(crate) named_by_account: bool,
    /// Seconds by which the age of a transaction may be too small: it is read a moment before the time of the sample.
    pub(crate) age_error: f64,
    /// What opening one is called.
    pub(crate) opened: &'static str,
    /// Milliseconds of CPU that it takes at least; none where that was not measured.
    pub(crate) opening_cpu_ms: Option<f64>,
    /// From when on many of them are a finding.
    pub(crate) opening_threshold: &'static str,
    /// Why the cost is not known, if it was not measured.
    pub(crate) opening_unknown: &'static str,
    /// What helps.
    pub(crate) opening_next: &'static str,
}

impl SessionAdvice {
    pub(crate) const NEUTRAL: Self = Self {
        figures: "the database's counters",
        list: "End these sessions before the run: the server's list of sessions shows their programs and open transactions.",
        end: ("the server's command for ending session ", ""),
        idle: "keep sessions that leave a transaction open out of the measured window.",
        named_by_account: false,
        age_error: 0.1,
        opened: "new sessions per second",
        opening_cpu_ms: None,
        opening_threshold: "5 new sessions per second; never red, because the cost of a new session of this \
            engine was not measured",
        opening_unknown: "the cost of a new session of this engine was not measured",
        opening_next: "Find out who connects, and keep the sessions open in a pool",
    };
}

/// Queues for locks, latches and pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueAdvice {
    /// A part of a lock's name in the server's words, what the lock is for, and what helps.
    pub(crate) locks: &'static [(&'static str, &'static str, &'static str)],
    /// From when on a queue for one kind of lock is a finding.
    pub(crate) lock_threshold: &'static str,
    /// What a lock for a moment is called.
    pub(crate) latch: &'static str,
    /// What helps against a queue for one page.
    pub(crate) page: &'static str,
    /// Whether that says already what helps where the rows are inserted.
    pub(crate) page_of_inserts: bool,
}

impl QueueAdvice {
    pub(crate) const NEUTRAL: Self = Self {
        locks: &[],
        lock_threshold: "one kind of lock other than row locks: amber from 10 % of the active sessions and half a \
            session, unless one transaction held it for long (lock-holder); the verdict shows whether it is \
            the limit",
        latch: "latch",
        page: "Spread the rows over more pages: fewer rows per page for small tables that all users update, hash \
            partitions for an index into whose end all users insert.",
        page_of_inserts: false,
    };
}

/// Sorts and hashes that go to storage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpillAdvice {
    /// Where to.
    pub(crate) place: &'static str,
    /// Whether the user decides how much memory a statement has.
    pub(crate) memory_is_set: bool,
    /// The setting of that memory, for each sort of each session.
    pub(crate) setting: Option<&'static str>,
    /// From when on it is a finding.
    pub(crate) threshold: &'static str,
    /// What helps.
    pub(crate) next: &'static str,
    /// What helps queries that are known one by one.
    pub(crate) next_of_queries: &'static str,
    /// Why the time of the statements that spill is not known.
    pub(crate) unknown: &'static str,
}

impl SpillAdvice {
    pub(crate) const NEUTRAL: Self = Self {
        place: "temporary files",
        memory_is_set: false,
        setting: None,
        threshold: "1 MB/s of temporary files; never red, because it is not known how much memory a statement may have",
        next: "Give the statements that spill more memory for sorts and hashes, or create an index that provides the required order.",
        next_of_queries: "Give these queries more memory for sorts and hashes.",
        unknown: "which statements spilled is not known",
    };
}

/// Settings, and the host of the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostAdvice {
    /// Bytes of the unit in which settings of sizes are written, and its name; none where they are not written here.
    pub(crate) size_unit: Option<(f64, &'static str)>,
    /// What takes memory.
    pub(crate) memory: &'static str,
    /// The setting of the memory for which the server can use huge pages of a size.
    pub(crate) huge_pages: Option<&'static str>,
    /// Whether files are read through the kernel's page cache whatever the settings are.
    pub(crate) reads_page_cache: bool,
    /// Whether the server can be one of this host's processes, whose resources can be reduced.
    pub(crate) can_squeeze: bool,
    /// Whether TPROC-C can be built with one row of warehouse and district per page.
    pub(crate) fills_pages: bool,
}

impl HostAdvice {
    pub(crate) const NEUTRAL: Self = Self {
        size_unit: None,
        memory: "the database's buffers, the memory of its sessions",
        huge_pages: None,
        reads_page_cache: false,
        can_squeeze: true,
        fills_pages: false,
    };
}

/// Buffers of pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BufferPool {
    /// The engine's name.
    pub(crate) name: &'static str,
    /// The setting of their size in bytes; none where no setting says it.
    pub(crate) setting: Option<&'static str>,
    /// The setting of a page's bytes, and its usual value.
    pub(crate) page: (&'static str, f64),
    /// Share of the memory with which the engine's documentation begins.
    pub(crate) share: f64,
}

impl BufferPool {
    pub(crate) const NEUTRAL: Self =
        Self { name: "the buffers", setting: None, page: ("page size", 8192.0), share: 0.25 };

    /// Their bytes, by the setting.
    pub(crate) fn bytes(&self, evidence: &Evidence) -> Option<f64> {
        evidence.setting_number(self.setting?)
    }

    /// The setting with its size, as evidence.
    pub(crate) fn size(&self, evidence: &Evidence) -> Option<EvidenceLine> {
        Some(EvidenceLine::new(self.setting?, text::memory(self.bytes(evidence)?)))
    }

    /// Bytes of a page.
    pub(crate) fn page_bytes(&self, evidence: &Evidence) -> f64 {
        evidence.setting_number(self.page.0).unwrap_or(self.page.1)
    }
}
