//! Every way to name a database, and the words for what is none.

#![allow(clippy::unwrap_used)]

use kelvin_database::target::Target;
use kelvin_database::{EngineKind, ErrorClass};
use proptest::prelude::*;

#[test]
fn targets_are_read_and_written() {
    for (text, written, engine) in [
        ("sqlite", "sqlite", EngineKind::Sqlite),
        ("SQLite", "sqlite", EngineKind::Sqlite),
        ("sqlite:a/b c.x", "sqlite:a/b c.x", EngineKind::Sqlite),
        ("sqlite:/a/b", "sqlite:/a/b", EngineKind::Sqlite),
        ("sqlite:///a/b", "sqlite:/a/b", EngineKind::Sqlite),
        ("sqlite:////a/b", "sqlite:////a/b", EngineKind::Sqlite),
        ("/tmp/x.db", "sqlite:/tmp/x.db", EngineKind::Sqlite),
        ("x.SQLITE", "sqlite:x.SQLITE", EngineKind::Sqlite),
        ("a:b.sqlite3", "sqlite:a:b.sqlite3", EngineKind::Sqlite),
        ("postgres", "postgres", EngineKind::Postgres),
        ("postgresql", "postgres", EngineKind::Postgres),
        ("postgres:16", "postgres:16", EngineKind::Postgres),
        ("postgres://me@db.example:5433/x", "postgres://me@db.example:5433/x", EngineKind::Postgres),
        ("postgresql://me@db.example:5433/x", "postgres://me@db.example:5433/x", EngineKind::Postgres),
        (
            "mssql://sa@db.example;I/x?encrypt=strict",
            "sqlserver://sa@db.example;I/x?encrypt=strict",
            EngineKind::SqlServer,
        ),
    ] {
        let target = Target::parse(text).unwrap();
        assert_eq!((target.to_string().as_str(), target.engine()), (written, engine), "{text}");
        assert_eq!(Target::parse(written).unwrap().to_string(), written);
    }
}

#[test]
fn what_is_no_target_is_refused_with_what_is() {
    for (text, words) in [
        ("", "names no database"),
        ("postgre", "names no database"),
        ("http://host/x.db", "names no database"),
        ("mysql:8", "names no server"),
        ("mariadb://root@h:0/x", "port"),
        ("sqlserver", "names no server"),
        ("mssql://host", "names no user"),
        ("oracle://scott@host", "Oracle is not supported yet"),
        ("sqlite:", "names no file"),
        ("sqlite://host/x.db", "names a host"),
        ("sqlite:///", "names no file"),
        ("sqlite::memory:", "in-memory"),
        ("postgres:", "not a major version"),
        ("postgres:5432", "not a major version"),
        ("postgres:-1", "not a major version"),
        ("postgres:16.4", "not a major version"),
        ("postgres://host:0/x", ""),
    ] {
        let error = Target::parse(text).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Usage, "{text}");
        assert!(error.message().contains(words), "{text}: {error}");
    }
    assert!(Target::parse("nothing").unwrap_err().help().unwrap().contains("sqlite:PATH"));
}

#[test]
fn a_password_is_never_repeated() {
    for text in [
        "mysql://root:s3cret@host/x",
        "sqlserver://sa:s3cret@host;I/x",
        "sqlserver:sa:s3cret@host/x",
        "htp://u:s3cret@host",
        "x://u:s3c@ret@host",
        "postgres://u:s3cret@h/d",
        "postgres:joe:s3cret@host/db",
        "postgres:/joe:s3cret@h/db",
        "joe:s3cret@h/db",
        "postgres//joe:s3cret@h/db",
        "pg://h/db?password=s3cret",
        "pg://h/db?password=no@s3cret",
        "pg://joe:s3c?ret@h/db",
        "sqlite://joe:s3cret@h/db",
    ] {
        let said = match Target::parse(text) {
            Ok(target) => format!("{target} {target:?}"),
            Err(error) => error.to_string(),
        };
        assert!(!said.contains("s3c") && !said.contains("ret"), "{said}");
    }
}

#[test]
fn a_server_has_one_name_for_all_its_databases() {
    for (text, key) in [
        ("postgres://joe@db1:5433/shop", Some("db1_5433")),
        ("postgres://ann@db1:5433/other", Some("db1_5433")),
        ("postgres:///shop?host=/run/pg&port=5432", Some("_run_pg_5432")),
        ("mysql://joe@[::1]:3307/shop", Some("__1_3307")),
        ("postgres:16", Some("postgres_16")),
        ("mariadb", Some("mariadb")),
        ("sqlite:a.db", None),
        ("sqlserver://sa@db1/shop", None),
    ] {
        assert_eq!(Target::parse(text).unwrap().settings_key().as_deref(), key, "{text}");
    }
}

proptest! {
    #[test]
    fn parsing_never_panics(text in ".*") {
        let _ = Target::parse(&text).map(|target| target.to_string());
    }

    #[test]
    fn parsing_never_panics_after_a_scheme(
        scheme in "(sqlite|postgres|postgresql|mysql)(:|://|:///)?",
        rest in ".*",
    ) {
        if let Ok(target @ Target::Sqlite { .. }) = Target::parse(&format!("{scheme}{rest}")) {
            let written = target.to_string();
            prop_assert_eq!(Target::parse(&written).unwrap().to_string(), written);
        }
    }
}
