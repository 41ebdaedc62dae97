//! What the catalogue calls the files of relations.

use kelvin_database::postgres::MARK;
use kelvin_database::{Result, Session};

/// Of each relation of the database with a file: the number of the database (0 for those that all share), the file's, and the
/// name; indexes and TOAST tables with what they are of.
fn statement() -> String {
    format!(
        "SELECT {MARK} CASE WHEN c.relisshared THEN 0 ELSE d.oid END::int8, pg_relation_filenode(c.oid)::int8, \
         CASE WHEN o.oid IS NOT NULL THEN format('%s.%s (TOAST)', otn.nspname, o.relname) \
          WHEN x.indexrelid IS NOT NULL THEN format('%s.%s (index of %s)', n.nspname, c.relname, t.relname) \
          ELSE format('%s.%s', n.nspname, c.relname) END::text \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         JOIN pg_database d ON d.datname = current_database() \
         LEFT JOIN pg_class o ON o.reltoastrelid = c.oid LEFT JOIN pg_namespace otn ON otn.oid = o.relnamespace \
         LEFT JOIN pg_index x ON x.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = x.indrelid \
         WHERE pg_relation_filenode(c.oid) IS NOT NULL"
    )
}

/// The database's number, the file's, and the name of each relation that has a file.
///
/// # Errors
/// When the server does not answer.
pub(crate) fn file_names(session: &mut dyn Session) -> Result<Vec<(String, String, String)>> {
    let rows = session.query(&statement())?;
    let one = |row| {
        Ok((rows.int(row, 0)?.to_string(), rows.int(row, 1)?.to_string(), rows.text(row, 2)?.to_owned()))
    };
    (0..rows.len()).map(one).collect()
}
