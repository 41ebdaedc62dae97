//! Which table or index a page is of, and which part of a table a lock is on.

use std::collections::HashMap;

use kelvin_database::{Result, Rows, Session};

use super::link::Link;
use super::sql;

/// Pages that are remembered; a load that waits for ever other ones has no hot page.
const MOST: usize = 4096;
/// Pages that are asked for at a time.
const AT_A_TIME: usize = 20;
/// The number of the database tempdb.
pub(super) const TEMPDB: i64 = 2;

/// A page: database, file, number.
pub(super) type Page = (i64, i64, i64);

/// A page of "5:1:104", as `resource_description` has it; more may follow behind a space.
pub(super) fn page(resource: &str) -> Option<Page> {
    let mut parts = resource.split_ascii_whitespace().next()?.split(':').map(str::parse);
    let page = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    parts.next().is_none().then_some(page)
}

/// What a page that keeps account of others is called: they stand at fixed places in each file (pages and extents architecture
/// guide: PFS every 8,088 pages, GAM and SGAM every 511,232).
fn allocation((_, _, number): Page) -> Option<&'static str> {
    match number {
        1 => Some("PFS"),
        2 => Some("GAM"),
        3 => Some("SGAM"),
        _ if number % 8_088 == 0 => Some("PFS"),
        _ if (number - 2) % 511_232 == 0 => Some("GAM"),
        _ if (number - 3) % 511_232 == 0 => Some("SGAM"),
        _ => None,
    }
}

/// Pages and what they are of.
#[derive(Debug, Default)]
pub(super) struct Pages {
    known: HashMap<Page, Option<String>>,
    wanted: Vec<Page>,
}

impl Pages {
    /// What a page is of; none where that is not known yet, or cannot be.
    pub(super) fn object(&mut self, page: Page) -> Option<String> {
        let database = if page.0 == TEMPDB { "tempdb " } else { "" };
        if let Some(name) = allocation(page) {
            return Some(format!("{database}{name} page"));
        }
        if let Some(known) = self.known.get(&page) {
            return known.clone();
        }
        if self.wanted.len() < AT_A_TIME && self.known.len() < MOST && !self.wanted.contains(&page) {
            self.wanted.push(page);
        }
        // The table of a page of tempdb has often gone when it is asked for.
        (page.0 == TEMPDB).then(|| "tempdb".to_owned())
    }

    /// Asks for those that were not known.
    pub(super) fn resolve(&mut self, link: &mut Link) -> std::result::Result<(), String> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        let wanted = std::mem::take(&mut self.wanted);
        if !link.about.has(sql::PAGE_INFO) {
            return Ok(());
        }
        let found = link.with(|session, _| names(session, &wanted))?;
        self.known.extend(wanted.into_iter().map(|page| (page, found.get(&page).cloned())));
        Ok(())
    }
}

fn names(session: &mut dyn Session, wanted: &[Page]) -> Result<HashMap<Page, String>> {
    let rows = session.query(&sql::pages(wanted))?;
    let mut found = HashMap::new();
    for row in 0..rows.len() {
        let page = (rows.int(row, 0)?, rows.int(row, 1)?, rows.int(row, 2)?);
        let part = |column| rows.optional(row, column, Rows::text);
        let Some(table) = part(4)? else { continue };
        let schema = part(3)?.map_or(String::new(), |schema| format!("{schema}."));
        let index = part(5)?.map_or(String::new(), |index| format!(" ({index})"));
        let database = if page.0 == TEMPDB { "tempdb " } else { "" };
        found.insert(page, format!("{database}{schema}{table}{index}"));
    }
    Ok(found)
}

/// What is locked, by a lock's description and the table that it is of.
pub(super) fn locked(resource: &str, table: &str) -> String {
    let what = match resource.split_ascii_whitespace().next().unwrap_or_default() {
        "keylock" | "ridlock" => "row of",
        "pagelock" => "page of",
        "objectlock" => "table",
        "xactlock" => return "transaction".into(),
        kind => return kind.trim_end_matches("lock").into(),
    };
    format!("{what} {table}")
}

/// Tables by the numbers that locks have.
#[derive(Debug, Default)]
pub(super) struct Tables {
    known: HashMap<i64, String>,
}

impl Tables {
    /// The tables of locks' descriptions; read again where one is not known.
    pub(super) fn names_of(
        &mut self,
        link: &mut Link,
        resources: &[&str],
    ) -> std::result::Result<Vec<String>, String> {
        let ours = link.about.database;
        let number = |resource: &str| {
            let field = |name: &str| {
                let (_, behind) = resource.split_once(name)?;
                let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
                behind[..end].parse::<i64>().ok()
            };
            if field("dbid=").is_some_and(|database| database != ours) {
                return None;
            }
            field("associatedObjectId=").or_else(|| field("hobtid=")).or_else(|| field("objid="))
        };
        let numbers: Vec<Option<i64>> = resources.iter().map(|resource| number(resource)).collect();
        if numbers.iter().flatten().any(|number| !self.known.contains_key(number)) {
            self.known = link.with(|session, _| {
                let rows = session.query(sql::OBJECTS)?;
                (0..rows.len()).map(|row| Ok((rows.int(row, 0)?, rows.text(row, 1)?.to_owned()))).collect()
            })?;
        }
        let name = |number: Option<i64>| {
            let known = number.and_then(|number| self.known.get(&number).cloned());
            known.unwrap_or_else(|| {
                if number.is_some() { "another table" } else { "another database" }.to_owned()
            })
        };
        Ok(numbers.into_iter().map(name).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_and_those_of_the_allocation_known() {
        assert_eq!(page("5:1:104"), Some((5, 1, 104)));
        assert_eq!(page("2:3:8088 (LATCH 0x00)"), Some((2, 3, 8088)));
        for none in ["", "5:1", "5:1:x", "keylock hobtid=1 dbid=5", "5:1:2:3"] {
            assert_eq!(page(none), None, "{none}");
        }
        for (number, expected) in [
            (1, Some("PFS")),
            (8_088, Some("PFS")),
            (16_176, Some("PFS")),
            (2, Some("GAM")),
            (511_234, Some("GAM")),
            (3, Some("SGAM")),
            (511_235, Some("SGAM")),
            (104, None),
        ] {
            assert_eq!(allocation((2, 1, number)), expected, "{number}");
        }
    }

    #[test]
    fn what_is_locked_has_the_name_of_its_table() {
        for (resource, expected) in [
            ("keylock hobtid=7 dbid=5", "row of dbo.stock"),
            ("objectlock lockPartition=0 objid=7", "table dbo.stock"),
            ("metadatalock subresource=STATS", "metadata"),
        ] {
            assert_eq!(locked(resource, "dbo.stock"), expected);
        }
    }

    #[test]
    fn a_page_is_asked_for_once_and_one_of_tempdb_is_named_at_once() {
        let mut pages = Pages::default();
        assert_eq!(pages.object((5, 1, 104)), None);
        assert_eq!(pages.object((5, 1, 104)), None);
        assert_eq!(pages.wanted, [(5, 1, 104)]);
        assert_eq!(pages.object((2, 1, 1)).as_deref(), Some("tempdb PFS page"));
        assert_eq!(pages.object((2, 1, 104)).as_deref(), Some("tempdb"));
    }
}
