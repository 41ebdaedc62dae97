//! Dialects of advice: what findings, remedies and the verdict say, and how they read the evidence, by database engine.
//!
//! One file per engine, chosen by the engine's name in the evidence. Every default holds for an engine that nobody here knows:
//! it names no statement, setting or wait event of another engine. What the evidence itself shows, such as a setting or a metric
//! that only one engine has, needs nothing here.

mod mysql;
mod neutral;
mod postgres;
mod sqlite;
mod sqlserver;

use kelvin_measure::observation::{Relation, WaitGroup, WaitKind};
use kelvin_measure::sampled_execution::MisestimatedNode;

pub(crate) use self::neutral::*;
use crate::{Change, Class, Evidence};

/// The engines with advice of their own: their names in results, what their version contains, and the advice. The first that fits is taken.
const KNOWN: [(&str, &str, &dyn EngineAdvice); 5] = [
    ("postgres", "", &postgres::Postgres),
    ("mysql", "MariaDB", &mysql::Mysql { is_mariadb: true }),
    ("mysql", "", &mysql::Mysql { is_mariadb: false }),
    ("sqlserver", "", &sqlserver::SqlServer),
    ("sqlite", "", &sqlite::Sqlite),
];

/// An engine of which nothing is known but what was observed.
struct Unknown;

impl EngineAdvice for Unknown {}

/// The advice for the engine of a run.
pub(crate) fn engine_advice(evidence: &Evidence) -> &'static dyn EngineAdvice {
    let name = evidence.context.environment("/engine").and_then(serde_json::Value::as_str);
    advice_by_name(name.unwrap_or_default(), evidence.setting("version").unwrap_or_default())
}

/// The advice for the engine of this name, whose server calls its version this.
pub(crate) fn advice_by_name(name: &str, version: &str) -> &'static dyn EngineAdvice {
    let mut known = KNOWN.iter().filter(|(known, mark, _)| *known == name && version.contains(mark));
    known.next().map_or(&Unknown, |(.., advice)| *advice)
}

/// What is said and read differently for an engine.
pub(crate) trait EngineAdvice: Sync {
    /// Its SQL.
    fn sql(&self) -> SqlDialect {
        SqlDialect::NEUTRAL
    }

    /// The statistics of its optimizer.
    fn statistics(&self) -> StatisticsAdvice {
        StatisticsAdvice::NEUTRAL
    }

    /// Its sessions.
    fn sessions(&self) -> SessionAdvice {
        SessionAdvice::NEUTRAL
    }

    /// Queues for its locks, latches and pages.
    fn queues(&self) -> QueueAdvice {
        QueueAdvice::NEUTRAL
    }

    /// Sorts and hashes that do not fit in memory.
    fn spills(&self) -> SpillAdvice {
        SpillAdvice::NEUTRAL
    }

    /// Its settings, and the host on which it runs.
    fn host(&self) -> HostAdvice {
        HostAdvice::NEUTRAL
    }

    /// Its buffers.
    fn buffers(&self) -> BufferPool {
        BufferPool::NEUTRAL
    }

    /// The experiment with a setting that shows whether a class limits the throughput.
    fn experiment(&self, _class: Class) -> Option<&'static str> {
        None
    }

    /// Whether a session waits for a page to come into the buffers, or for another one to make room for it.
    fn replaces_pages(&self, group: &WaitGroup) -> bool {
        group.kind == WaitKind::DataRead
    }

    /// The name of the latch that a session waits for, if that says what it protects.
    fn latch_name<'a>(&self, group: &'a WaitGroup) -> Option<&'a str> {
        Some(group.object.as_deref().unwrap_or(&group.event)).filter(|name| !name.is_empty())
    }

    /// What the latch of this name protects, and what helps.
    fn latch_remedy(&self, _name: &str) -> &'static str {
        "Look the name up in the server's manual; fewer sessions shorten any such queue."
    }

    /// The statement that makes an index again, which does nothing where it is there if the language can say that.
    fn index_again(&self, index: &Relation) -> Option<String> {
        let definition = index.definition.as_ref()?;
        if self.sql().proposes_indexes { if_not_exists(definition) } else { Some(definition.clone()) }
    }

    /// Title and change that give the optimizer statistics on these columns of a table, which a node compares with values; none where
    /// there are no such statistics, or they would not help.
    fn column_statistics(&self, _: &str, _: &[String], _: &MisestimatedNode) -> Option<(String, Change)> {
        None
    }
}

/// "CREATE [UNIQUE] INDEX …" and MySQL's "ALTER TABLE … ADD [UNIQUE] INDEX …" so that it does nothing where the index is there.
fn if_not_exists(definition: &str) -> Option<String> {
    let at = definition.find(" INDEX ")? + " INDEX ".len();
    let (head, rest) = definition.split_at_checked(at)?;
    ["CREATE ", "ALTER TABLE "]
        .iter()
        .any(|begin| head.starts_with(begin))
        .then(|| format!("{head}IF NOT EXISTS {rest}"))
}

#[cfg(test)]
mod tests {
    use kelvin_database::EngineKind;

    use super::*;

    #[test]
    fn every_engine_is_known_by_its_name_in_results_and_no_other() {
        for kind in [EngineKind::Postgres, EngineKind::Mysql, EngineKind::SqlServer, EngineKind::Sqlite] {
            assert!(KNOWN.iter().any(|(name, ..)| *name == kind.as_str()), "{kind}");
        }
        let repeats = |name, version| advice_by_name(name, version).sql().proposes_indexes;
        assert!(repeats("mysql", "10.11.19-MariaDB") && !repeats("mysql", "8.0.31") && !repeats("other", ""));
    }

    /// An engine nobody knows is never treated as one of those that are known.
    #[test]
    fn neutral_advice_has_no_words_of_an_engine() {
        let group =
            WaitGroup { event: "BufferMapping".into(), kind: WaitKind::Latch, ..WaitGroup::default() };
        assert_eq!(Unknown.latch_name(&group), Some("BufferMapping"));
        let said = format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {}",
            Unknown.sql(),
            Unknown.statistics(),
            Unknown.sessions(),
            Unknown.queues(),
            Unknown.spills(),
            Unknown.host(),
            BufferPool::NEUTRAL,
            Unknown.latch_remedy("BufferMapping"),
        );
        let said = said.to_lowercase();
        for word in [
            "postgres",
            "vacuum",
            "pg_",
            "work_mem",
            "shared_buffers",
            "innodb",
            "mysql",
            "mariadb",
            "sql server",
            "tempdb",
        ] {
            assert!(!said.contains(word), "{word}: {said}");
        }
        assert!(!Unknown.replaces_pages(&group) && Unknown.experiment(Class::Log).is_none());
    }
}
