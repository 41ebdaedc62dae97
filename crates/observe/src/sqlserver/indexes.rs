//! The definitions of indexes, and which of them something depends on.

use std::collections::{BTreeMap, HashMap};

use kelvin_database::{Result, Rows, Session};

use super::relations::Key;
use super::sql;

/// What is known of an index.
#[derive(Debug)]
pub(super) struct IndexFacts {
    /// The statement that makes it; none where not all of it is known: that of a columnstore, a partitioned or a disabled index, or of a
    /// memory-optimized table.
    pub(super) definition: Option<String>,
    /// Whether it is unique, or the only one that supports a foreign key.
    pub(super) enforces: bool,
}

/// A column of an index.
struct Column {
    name: String,
    /// None for an included one.
    descends: Option<bool>,
}

struct Index {
    name: String,
    /// Whether it can be dropped and made again.
    plain: bool,
    unique: bool,
    filter: Option<String>,
    options: String,
    file_group: String,
    columns: Vec<Column>,
}

/// All indexes of the database, clustered ones included.
pub(super) fn read(session: &mut dyn Session) -> Result<HashMap<Key, IndexFacts>> {
    let rows = session.query(sql::INDEXES)?;
    let mut all: BTreeMap<Key, Index> = BTreeMap::new();
    for row in 0..rows.len() {
        let text = |column| {
            Ok::<_, kelvin_database::Error>(rows.optional(row, column, Rows::text)?.map(str::to_owned))
        };
        let key = (rows.text(row, 0)?.to_owned(), rows.int(row, 2)?);
        let column = Column {
            name: rows.text(row, 8)?.to_owned(),
            descends: (rows.int(row, 9)? > 0).then_some(rows.int(row, 10)? == 1),
        };
        if let Some(index) = all.get_mut(&key) {
            index.columns.push(column);
            continue;
        }
        let index = Index {
            name: text(1)?.unwrap_or_default(),
            plain: rows.int(row, 3)? == 1,
            unique: rows.int(row, 4)? == 1,
            filter: text(5)?,
            options: text(6)?.unwrap_or_default(),
            file_group: text(7)?.unwrap_or_default(),
            columns: vec![column],
        };
        all.insert(key, index);
    }
    let keys = foreign_keys(session)?;
    let needed: Vec<Key> =
        keys.iter().filter_map(|(table, columns)| only_support(&all, table, columns)).collect();
    let facts = |(key, index): (Key, Index)| {
        let facts = IndexFacts {
            definition: index.definition(&key.0),
            enforces: index.unique || needed.contains(&key),
        };
        (key, facts)
    };
    Ok(all.into_iter().map(facts).collect())
}

/// Table and columns of each foreign key.
fn foreign_keys(session: &mut dyn Session) -> Result<Vec<(String, Vec<String>)>> {
    let rows = session.query(sql::FOREIGN_KEYS)?;
    let mut keys: BTreeMap<i64, (String, Vec<String>)> = BTreeMap::new();
    for row in 0..rows.len() {
        let key = keys.entry(rows.int(row, 1)?).or_insert_with(|| (String::new(), Vec::new()));
        rows.text(row, 0)?.clone_into(&mut key.0);
        key.1.push(rows.text(row, 2)?.to_owned());
    }
    Ok(keys.into_values().collect())
}

/// The index by which the server finds the rows of a foreign key when a row that they refer to is deleted: one whose first columns are
/// the key's, else one that begins with any of them. Of several the first stands for them; none is needed where one cannot be dropped.
fn only_support(all: &BTreeMap<Key, Index>, table: &str, columns: &[String]) -> Option<Key> {
    let supports = |depth: usize| -> Vec<(&Key, &Index)> {
        let of_table = all.iter().filter(|((of, _), index)| of == table && index.filter.is_none());
        let begins = |index: &Index| {
            let first: Vec<&Column> = index.columns.iter().take(depth).collect();
            first.len() == depth
                && first.iter().all(|one| one.descends.is_some() && columns.contains(&one.name))
        };
        of_table.filter(|(_, index)| begins(index)).collect()
    };
    let mut candidates = supports(columns.len());
    if candidates.is_empty() {
        candidates = supports(1);
    }
    // The clustered index, whose number is 1, is the table.
    let stays = candidates.iter().any(|((_, number), index)| *number == 1 || index.unique);
    candidates.first().filter(|_| !stays).map(|(key, _)| (*key).clone())
}

impl Index {
    /// The statement that creates it. A name that contains a dot is indistinguishable from two names.
    fn definition(&self, table: &str) -> Option<String> {
        let (schema, plain) = table.split_once('.').filter(|(_, plain)| !plain.contains('.'))?;
        if !self.plain || self.name.contains(['.', ']']) {
            return None;
        }
        let list = |key: bool| {
            let of = self.columns.iter().filter(|one| one.descends.is_some() == key);
            let part = |one: &Column| {
                format!("{}{}", bracketed(&one.name), if one.descends == Some(true) { " DESC" } else { "" })
            };
            of.map(part).collect::<Vec<_>>().join(", ")
        };
        let mut sql = format!(
            "CREATE {}INDEX {} ON {}.{} ({})",
            if self.unique { "UNIQUE " } else { "" },
            bracketed(&self.name),
            bracketed(schema),
            bracketed(plain),
            list(true)
        );
        let mut add = |part: &str, text: &str, end: &str| {
            if !text.is_empty() {
                sql.push_str(part);
                sql.push_str(text);
                sql.push_str(end);
            }
        };
        add(" INCLUDE (", &list(false), ")");
        add(" WHERE ", self.filter.as_deref().unwrap_or_default(), "");
        add(" WITH (", self.options.trim_end_matches(", "), ")");
        add(" ON ", &bracketed(&self.file_group), "");
        Some(sql)
    }
}

fn bracketed(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(name: &str, key: &[&str], included: &[&str]) -> Index {
        let column = |descends| move |name: &&str| Column { name: (*name).into(), descends };
        Index {
            name: name.into(),
            plain: true,
            unique: false,
            filter: None,
            options: String::new(),
            file_group: "PRIMARY".into(),
            columns: key.iter().map(column(Some(false))).chain(included.iter().map(column(None))).collect(),
        }
    }

    #[test]
    fn an_index_is_made_again_as_it_was() {
        let plain = index("i", &["a", "b]"], &[]).definition("dbo.t").unwrap();
        assert_eq!(plain, "CREATE INDEX [i] ON [dbo].[t] ([a], [b]]]) ON [PRIMARY]");
        let mut all = Index {
            unique: true,
            filter: Some("([b]>(0))".into()),
            options: "FILLFACTOR = 80, PAD_INDEX = ON, ".into(),
            ..index("i", &["a"], &["c", "d"])
        };
        all.columns[0].descends = Some(true);
        assert_eq!(
            all.definition("dbo.t").unwrap(),
            "CREATE UNIQUE INDEX [i] ON [dbo].[t] ([a] DESC) INCLUDE ([c], [d]) WHERE ([b]>(0)) \
             WITH (FILLFACTOR = 80, PAD_INDEX = ON) ON [PRIMARY]"
        );
        assert_eq!(Index { plain: false, ..all }.definition("dbo.t"), None);
        assert_eq!(index("i.j", &["a"], &[]).definition("dbo.t"), None);
    }

    #[test]
    fn the_only_index_of_a_foreign_key_is_needed() {
        let all = |indexes: Vec<Index>| {
            indexes
                .into_iter()
                .zip(1..)
                .map(|(index, number)| (("dbo.t".to_owned(), number), index))
                .collect()
        };
        let of = |indexes: Vec<Index>, key: &[&str]| {
            let key: Vec<String> = key.iter().map(|name| (*name).to_owned()).collect();
            only_support(&all(indexes), "dbo.t", &key).map(|(_, number)| number)
        };
        let clustered = |key: &[&str]| index("pk", key, &[]);
        assert_eq!(of(vec![clustered(&["x"]), index("i", &["b", "a", "c"], &[])], &["a", "b"]), Some(2));
        assert_eq!(
            of(vec![clustered(&["x"]), index("i", &["a", "x"], &[])], &["a", "b"]),
            Some(2),
            "in part"
        );
        assert_eq!(of(vec![clustered(&["x"]), index("i", &["x"], &["a"])], &["a"]), None, "included");
        assert_eq!(of(vec![clustered(&["a"]), index("i", &["a"], &[])], &["a"]), None, "the table itself");
        let twins = vec![clustered(&["x"]), index("i", &["a"], &[]), index("j", &["a"], &[])];
        assert_eq!(of(twins, &["a"]), Some(2), "one of two");
        let unique = Index { unique: true, ..index("u", &["a"], &[]) };
        assert_eq!(of(vec![clustered(&["x"]), index("i", &["a"], &[]), unique], &["a"]), None);
        let filtered = Index { filter: Some("([a]>(0))".into()), unique: true, ..index("f", &["a"], &[]) };
        assert_eq!(of(vec![clustered(&["x"]), index("i", &["a"], &[]), filtered], &["a"]), Some(2));
    }
}
