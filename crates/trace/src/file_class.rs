//! What a file is to a database, by the names that the databases give their files.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What a file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileClass {
    /// Tables and indexes of PostgreSQL, with their maps.
    PostgresData,
    /// PostgreSQL's write-ahead log.
    PostgresWal,
    /// PostgreSQL's temporary files and tables.
    PostgresTemporary,
    /// Other files of PostgreSQL: states of transactions, statistics, its log.
    PostgresOther,
    /// InnoDB's tablespaces.
    InnodbData,
    /// InnoDB's redo log.
    InnodbRedo,
    /// InnoDB's doublewrite buffer.
    InnodbDoublewrite,
    /// InnoDB's undo tablespaces.
    InnodbUndo,
    /// The binary log of MySQL and MariaDB.
    MysqlBinaryLog,
    /// Other files of MySQL and MariaDB.
    MysqlOther,
    /// A database of SQLite.
    SqliteDatabase,
    /// The write-ahead log of one.
    SqliteWal,
    /// The rollback journal of one.
    SqliteJournal,
    /// A filesystem's own data: superblocks, bitmaps, inodes, directories.
    FilesystemMetadata,
    /// A filesystem's journal.
    FilesystemJournal,
    /// Any other file.
    #[default]
    Other,
}

/// As people read the name of a live stream ([`crate::capture::StreamTotals::name`]): a class's, or the device whose requests
/// are for no known file.
pub fn stream_label(id: &str) -> String {
    FileClass::with_id(id).map_or_else(|| format!("{id}, file unknown"), |class| class.name().to_owned())
}

impl FileClass {
    /// As tables show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::PostgresData => "PostgreSQL data",
            Self::PostgresWal => "PostgreSQL WAL",
            Self::PostgresTemporary => "PostgreSQL temporary",
            Self::PostgresOther => "PostgreSQL other",
            Self::InnodbData => "InnoDB data",
            Self::InnodbRedo => "InnoDB redo log",
            Self::InnodbDoublewrite => "InnoDB doublewrite",
            Self::InnodbUndo => "InnoDB undo",
            Self::MysqlBinaryLog => "MySQL binary log",
            Self::MysqlOther => "MySQL other",
            Self::SqliteDatabase => "SQLite database",
            Self::SqliteWal => "SQLite WAL",
            Self::SqliteJournal => "SQLite journal",
            Self::FilesystemMetadata => "filesystem metadata",
            Self::FilesystemJournal => "filesystem journal",
            Self::Other => "other files",
        }
    }

    /// As data have it, such as "postgres-wal".
    pub fn id(self) -> String {
        let json = serde_json::to_value(self).ok();
        json.and_then(|json| json.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// The class with this [`FileClass::id`].
    pub fn with_id(id: &str) -> Option<Self> {
        serde_json::from_value(id.into()).ok()
    }

    /// Whether it is of PostgreSQL.
    pub(super) fn is_postgres(self) -> bool {
        use FileClass::{PostgresData, PostgresOther, PostgresTemporary, PostgresWal};
        matches!(self, PostgresData | PostgresWal | PostgresTemporary | PostgresOther)
    }

    /// Whether such files are in a server's data directory.
    pub(super) fn is_servers(self) -> bool {
        use FileClass::{InnodbData, InnodbDoublewrite, InnodbRedo, InnodbUndo, MysqlBinaryLog, MysqlOther};
        let is_mysql = matches!(
            self,
            InnodbData | InnodbRedo | InnodbDoublewrite | InnodbUndo | MysqlBinaryLog | MysqlOther
        );
        is_mysql || self.is_postgres()
    }
}

/// Which server a directory is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootKind {
    /// PostgreSQL: `PG_VERSION` and `base`.
    Postgres,
    /// MySQL or MariaDB: `ibdata1`.
    Mysql,
}

/// A server's data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseRoot {
    /// The directory.
    pub path: PathBuf,
    /// Whose.
    pub kind: RootKind,
}

impl DatabaseRoot {
    /// The data directory that a directory is, or is in.
    pub fn above(directory: &Path) -> Option<Self> {
        directory.ancestors().find_map(|path| {
            let kind = if path.join("PG_VERSION").is_file() && path.join("base").is_dir() {
                RootKind::Postgres
            } else if path.join("ibdata1").is_file() {
                RootKind::Mysql
            } else {
                return None;
            };
            Some(Self { path: path.to_owned(), kind })
        })
    }
}

/// The class and the object of a file at a path below a server's data directory, whose symbolic links count as
/// directories. `path` is relative to the directory.
pub fn classify(kind: RootKind, path: &Path) -> (FileClass, String) {
    let parts: Vec<&str> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    match kind {
        RootKind::Postgres => postgres(&parts),
        RootKind::Mysql => mysql(&parts),
    }
}

fn postgres(parts: &[&str]) -> (FileClass, String) {
    let data = |database: &str, name: &str| {
        if name.strip_prefix('t').is_some_and(|rest| rest.contains('_')) {
            return (FileClass::PostgresTemporary, "temporary relations".into());
        }
        match filenode(name) {
            Some(node) => (FileClass::PostgresData, relation_object(database, node)),
            None => (FileClass::PostgresOther, name.to_owned()),
        }
    };
    match parts {
        ["pg_wal" | "pg_xlog", ..] => (FileClass::PostgresWal, "WAL".into()),
        [.., directory, _] if directory.starts_with("pgsql_tmp") => {
            (FileClass::PostgresTemporary, "temporary files".into())
        }
        ["base", database, name] | ["pg_tblspc", _, _, database, name] => data(database, name),
        ["global", name] => data("0", name),
        [first, _, ..] => (FileClass::PostgresOther, (*first).to_owned()),
        [name] => (FileClass::PostgresOther, (*name).to_owned()),
        [] => (FileClass::PostgresOther, "data directory".into()),
    }
}

/// The name of a relation before the catalogue has given it one: the number of its database (0 for shared ones) and
/// its file's.
pub fn relation_object(database: &str, node: &str) -> String {
    format!("relation {database}/{node}")
}

/// The number in a relation's file name: "16384", "16384.1", "16384_fsm", "16384_vm.1".
fn filenode(name: &str) -> Option<&str> {
    let end = name.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(name.len());
    let (node, rest) = name.split_at(end);
    let is_rest = |rest: &str| {
        let rest = ["_fsm", "_vm", "_init"].iter().find_map(|fork| rest.strip_prefix(fork)).unwrap_or(rest);
        rest.is_empty() || rest.strip_prefix('.').is_some_and(|segment| segment.parse::<u32>().is_ok())
    };
    (!node.is_empty() && is_rest(rest)).then_some(node)
}

fn mysql(parts: &[&str]) -> (FileClass, String) {
    let Some((name, directories)) = parts.split_last() else {
        return (FileClass::MysqlOther, "data directory".into());
    };
    if let Some(table) = name.strip_suffix(".ibd") {
        let database = directories.last().map_or_else(String::new, |database| format!("{database}."));
        return (FileClass::InnodbData, format!("{database}{table}"));
    }
    let class = match (directories, *name) {
        (["#innodb_redo"], _) => FileClass::InnodbRedo,
        ([], name) if name.starts_with("ib_logfile") => FileClass::InnodbRedo,
        ([], name) if name.starts_with("#ib_") && name.contains(".dblwr") || name.ends_with(".bdblwr") => {
            FileClass::InnodbDoublewrite
        }
        ([], name) if name.starts_with("undo") => FileClass::InnodbUndo,
        ([], name) if name.starts_with("ibdata") => {
            return (FileClass::InnodbData, "system tablespace".into());
        }
        ([], name) if is_binary_log(name) => FileClass::MysqlBinaryLog,
        _ => FileClass::MysqlOther,
    };
    let object = match class {
        FileClass::InnodbRedo => "redo log".into(),
        FileClass::InnodbDoublewrite => "doublewrite buffer".into(),
        FileClass::InnodbUndo => "undo".into(),
        FileClass::MysqlBinaryLog => "binary log".into(),
        _ => directories.first().map_or_else(|| (*name).to_owned(), |first| (*first).to_owned()),
    };
    (class, object)
}

/// "binlog.000001", "mysql-bin.000001", "mariadb-bin.index".
fn is_binary_log(name: &str) -> bool {
    let Some((base, ending)) = name.rsplit_once('.') else { return false };
    (base == "binlog" || base.ends_with("-bin"))
        && (ending == "index" || ending.len() >= 6 && ending.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The class and the object of a file outside of servers' directories. A database of SQLite is recognised by its name, or
/// by a log or journal beside it; `exists` says whether there is a file.
pub(super) fn classify_other(path: &str, exists: impl Fn(&str) -> bool) -> (FileClass, String) {
    const NAMES: [&str; 4] = [".db", ".sqlite", ".sqlite3", ".db3"];
    for (ending, class) in [("-wal", FileClass::SqliteWal), ("-journal", FileClass::SqliteJournal)] {
        if let Some(main) = path.strip_suffix(ending)
            && exists(main)
        {
            return (class, path.to_owned());
        }
    }
    let is_database = NAMES.iter().any(|name| path.ends_with(name))
        || exists(&format!("{path}-wal"))
        || exists(&format!("{path}-journal"));
    let class = if is_database { FileClass::SqliteDatabase } else { FileClass::Other };
    (class, path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_servers_files_say_what_they_are() {
        use FileClass::*;
        for (path, class, object) in [
            ("base/5/16384", PostgresData, "relation 5/16384"),
            ("base/5/16384_vm", PostgresData, "relation 5/16384"),
            ("base/5/16384_fsm.2", PostgresData, "relation 5/16384"),
            ("global/1262", PostgresData, "relation 0/1262"),
            ("global/pg_control", PostgresOther, "pg_control"),
            ("pg_tblspc/16390/PG_15_202209061/5/16391.3", PostgresData, "relation 5/16391"),
            ("pg_wal/000000010000000000000001", PostgresWal, "WAL"),
            ("base/pgsql_tmp/pgsql_tmp12.0", PostgresTemporary, "temporary files"),
            ("base/5/t3_16400", PostgresTemporary, "temporary relations"),
            ("base/5/PG_VERSION", PostgresOther, "PG_VERSION"),
            ("pg_xact/0000", PostgresOther, "pg_xact"),
        ] {
            assert_eq!(classify(RootKind::Postgres, Path::new(path)), (class, object.into()), "{path}");
        }
        for (path, class, object) in [
            ("ibdata1", InnodbData, "system tablespace"),
            ("tpcc/stock.ibd", InnodbData, "tpcc.stock"),
            ("ib_logfile0", InnodbRedo, "redo log"),
            ("#innodb_redo/#ib_redo12", InnodbRedo, "redo log"),
            ("#ib_16384_0.dblwr", InnodbDoublewrite, "doublewrite buffer"),
            ("undo_001", InnodbUndo, "undo"),
            ("binlog.000003", MysqlBinaryLog, "binary log"),
            ("host-bin.index", MysqlBinaryLog, "binary log"),
            ("ib_buffer_pool", MysqlOther, "ib_buffer_pool"),
            ("mysql/db.MAI", MysqlOther, "mysql"),
        ] {
            assert_eq!(classify(RootKind::Mysql, Path::new(path)), (class, object.into()), "{path}");
        }
        let there = |path: &str| ["/a/x", "/a/x-wal", "/a/y.db"].contains(&path);
        let class = |path: &str| classify_other(path, there).0;
        assert_eq!((class("/a/x"), class("/a/x-wal"), class("/a/z-wal")), (SqliteDatabase, SqliteWal, Other));
        assert_eq!((class("/a/y.db"), class("/a/y.db-journal")), (SqliteDatabase, SqliteJournal));
    }

    #[test]
    fn a_servers_directory_is_recognised_from_below() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().join("base/5");
        std::fs::create_dir_all(&base).unwrap();
        assert_eq!(DatabaseRoot::above(&base), None);
        std::fs::write(place.path().join("PG_VERSION"), "15\n").unwrap();
        // A directory of a database has a PG_VERSION as well.
        std::fs::write(base.join("PG_VERSION"), "15\n").unwrap();
        let found = DatabaseRoot::above(&base).unwrap();
        assert_eq!((found.path.as_path(), found.kind), (place.path(), RootKind::Postgres));
    }
}
