//! Which settings of a database give up durability: with them an answered commit can be lost.

use crate::Evidence;
use crate::findings::setting;

/// A setting, the values that give up durability, and what a crash of the host then costs.
const SETTINGS: [(&str, &[&str], Cost); 7] = [
    ("fsync", &["off"], Cost::Database),
    ("full_page_writes", &["off"], Cost::Database),
    ("synchronous", &["off", "0"], Cost::Database),
    ("innodb_doublewrite", &["off", "0"], Cost::Database),
    ("synchronous_commit", &["off"], Cost::Commits),
    ("innodb_flush_log_at_trx_commit", &["0", "2"], Cost::Commits),
    ("delayed_durability_desc", &["FORCED"], Cost::Commits),
];

/// What a crash of the host costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    /// The last commits.
    Commits,
    /// The database may be damaged beyond repair.
    Database,
}

/// The sentence about settings that give up durability, such as "reduced durability: fsync = off; a crash of the host
/// can destroy the database"; none where no setting does.
pub fn durability_given_up(setting: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut worst = Cost::Commits;
    let mut found = Vec::new();
    for (name, values, cost) in SETTINGS {
        let Some(value) = setting(name).filter(|value| values.iter().any(|v| v.eq_ignore_ascii_case(value)))
        else {
            continue;
        };
        found.push(format!("{name} = {value}"));
        worst = worst.max(cost);
    }
    let cost = match worst {
        Cost::Commits => "a host crash loses the last commits",
        Cost::Database => "a host crash can destroy the database",
    };
    (!found.is_empty()).then(|| format!("reduced durability: {}; {cost}", found.join(", ")))
}

impl Evidence {
    /// The sentence about the run's settings that give up durability; none where none does or settings are unknown.
    pub fn durability_given_up(&self) -> Option<String> {
        durability_given_up(|name| setting::setting_value(self, name).map(str::to_owned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_setting_decides_what_is_said() {
        let of = |settings: &'static [(&str, &str)]| {
            durability_given_up(move |name| {
                settings.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[("fsync", "on"), ("synchronous_commit", "remote_write")]), None);
        assert_eq!(
            of(&[("synchronous_commit", "off")]).unwrap(),
            "reduced durability: synchronous_commit = off; a host crash loses the last commits"
        );
        assert_eq!(
            of(&[("synchronous_commit", "OFF"), ("fsync", "off")]).unwrap(),
            "reduced durability: fsync = off, synchronous_commit = OFF; a host crash can destroy the \
            database"
        );
        assert!(of(&[("innodb_flush_log_at_trx_commit", "1")]).is_none());
    }
}
