//! The built-in scripts, in the language of user scripts.

/// A built-in script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    /// Whether it inserts into the history and updates an account.
    pub(crate) writes: bool,
    /// Whether it also updates a teller and a branch by the same amount.
    pub(crate) whole: bool,
}

pub(crate) const BUILTINS: [Builtin; 3] = [
    Builtin { name: "tpcb-like", text: TPCB_LIKE, writes: true, whole: true },
    Builtin { name: "simple-update", text: SIMPLE_UPDATE, writes: true, whole: false },
    Builtin { name: "select-only", text: SELECT_ONLY, writes: false, whole: false },
];

/// TPC-B's transaction as pgbench implements it: aid, tid and bid are drawn from 1 … 100000, 10 and 1 times
/// the scale factor.
const TPCB_LIKE: &str = "\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
COMMIT;
";

/// The same without the updates of tellers and branches, for which clients contend.
const SIMPLE_UPDATE: &str = "\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
COMMIT;
";

const SELECT_ONLY: &str = "\
\\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
";

/// The built-in script with this name or unique prefix.
pub(crate) fn find(name: &str) -> Result<Builtin, String> {
    let names = || BUILTINS.map(|builtin| builtin.name).join(", ");
    let mut found = BUILTINS.iter().filter(|builtin| builtin.name.starts_with(name));
    match (found.next(), found.next()) {
        (Some(one), None) if !name.is_empty() => Ok(*one),
        (Some(_), Some(_)) if !name.is_empty() => {
            let matching =
                BUILTINS.iter().map(|builtin| builtin.name).filter(|known| known.starts_with(name));
            let matching = matching.collect::<Vec<_>>().join(" or ");
            Err(format!("\"{name}\" matches more than one built-in script: write {matching}"))
        }
        _ => Err(format!("there is no built-in script \"{name}\"; the built-in scripts are {}", names())),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn trial_b12_a_short_name_that_is_not_unique_names_those_that_it_fits() {
        let error = super::find("s").unwrap_err();
        assert_eq!(error, "\"s\" matches more than one built-in script: write simple-update or select-only");
        assert_eq!(super::find("si").unwrap().name, "simple-update");
        assert!(super::find("x").unwrap_err().contains("the built-in scripts are tpcb-like"));
        assert!(super::find("").unwrap_err().contains("there is no"));
    }
}
