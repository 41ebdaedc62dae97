//! The `study.toml` with which a study begins: valid, commented, and to be changed.

/// Which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// One factor at two levels, on an embedded database: it runs as it stands.
    Ab,
    /// Three factors on a PostgreSQL server of Kelvin's own: the shape of a study of settings.
    Factorial,
}

/// The text of a new study's file.
pub fn study_toml(template: Template, name: &str) -> String {
    let (question, rest) = match template {
        Template::Ab => (AB_QUESTION, AB),
        Template::Factorial => (FACTORIAL_QUESTION, FACTORIAL),
    };
    let name = toml::Value::String(name.into());
    format!("{HEAD}name = {name}\nquestion = \"{question}\"\n{rest}")
}

const HEAD: &str = "\
# A study for kelvin. Look at it with `kelvin study plan`, fix the hypothesis with `kelvin study lock`, run it with
# `kelvin study run`. docs/studies.md explains every key.

";

const AB_QUESTION: &str =
    "Does a second virtual user add throughput on SQLite, which has one writer at a time?";

const AB: &str = r#"
# What the answer holds for, in your words: machine, versions, what else ran, what is left out. Any keys.
[universe]
machine = "this one, with nothing else running"
out-of-scope = "other engines"

# The one metric that decides; all others are exploratory.
[goal]
metric = "nopm"               # a key figure (nopm, tps, transactions, mean, p50, p95, p99, cpu, server-cpu, wal, …)
direction = "higher"          # which way it is better: higher, lower
smallest-effect = "3%"        # what is surely smaller than this counts as no difference

# Falsifiable: changing the factor from one level to the other does this to these metrics, because of that.
[hypothesis]
statement = "Two virtual users reach less than 5 % more New-Orders a minute than one"
mechanism = "SQLite has one writer at a time, and nearly all of these transactions write"
factor = "users"
from = "1"
to = "2"
rivals = ["the second user is limited by the processor, not by the lock"]
# The goal's metric, and the signature that tells this mechanism from its rivals. direction: higher, lower, same;
# by: at least so much, and of "same" within so much.
predicts = [
    { metric = "nopm", direction = "same", by = "5%" },
    { metric = "mean", direction = "higher", by = "50%" },
]

# What is varied. The first level is the base. Exactly one key says what is changed:
#   spec = "load.users"            a value of [run], by its path
#   setting = "shared_buffers"     a setting of the server, restarted where it needs that
#   huge-pages = true              levels "off", "2M", "1G"
#   bind = "server.cpus"           also server.memory, client.cpus, client.memory; levels such as "0-3"
#   kernel = "vm.swappiness"       a kernel setting
#   mount = "/srv/pg"              mount options of a filesystem
#   command = true                 levels = { off = {}, on = { apply = "…", undo = "…" } }
[[factor]]
name = "users"
levels = [1, 2]
spec = "load.users"

[design]
kind = "ab"                   # ab, factorial, fractional (with generators = ["D=ABC"]), sweep
blocks = 6                    # each runs every cell once, in shuffled order; fewer than 4 cannot be tested
seed = 1                      # decides the order
control = true                # the base once more in each block: what the measurement cannot resolve
assumed-cv = "2%"             # run-to-run variation with which the plan reckons until runs tell it
# replacements = 3            # the most runs made again because they are void or failed [a fifth, two at least]

# The run of which every run is a variation, as `kelvin run … --print-spec` prints it; or a file: run = "run.toml"
[run]
workload = "tproc-c"
target = "sqlite"

[run.load]
ramp-up = "5s"
duration = "20s"

[run.tproc-c]
warehouses = 1
"#;

const FACTORIAL_QUESTION: &str =
    "What do the wait at commit, the buffers' size and huge pages do to the throughput, alone and together?";

const FACTORIAL: &str = r#"
# What the answer holds for, in your words: machine, versions, what else ran, what is left out. Any keys.
[universe]
machine = "this one, with nothing else running; load generator and server share it"
database = "a PostgreSQL server of kelvin's own, made for this study"
out-of-scope = "durability: synchronous_commit = off may lose the last transactions in a crash"

# The one metric that decides; all others are exploratory.
[goal]
metric = "nopm"
direction = "higher"
smallest-effect = "3%"        # what is surely smaller than this counts as no difference

[hypothesis]
statement = "Not waiting for the disk at commit raises the throughput by a tenth or more"
mechanism = "every commit waits for a write and a sync of the log, which the users could spend on the next transaction"
factor = "commit"
from = "on"
to = "off"
rivals = ["the processor is the limit already, and the wait hides behind other users' work"]
predicts = [
    { metric = "nopm", direction = "higher", by = "10%" },
    { metric = "p50", direction = "lower" },
    { metric = "wal", direction = "same", by = "10%" },
]

# The first level of each is the base: "commit=on buffers=128MB huge-pages=off".
[[factor]]
name = "commit"
levels = ["on", "off"]
setting = "synchronous_commit"

[[factor]]
name = "buffers"
levels = ["128MB", "1GB"]
setting = "shared_buffers"    # restarts the server

[[factor]]
name = "huge-pages"
levels = ["off", "2M"]
huge-pages = true             # reserves what the buffers need, and restarts the server

[design]
kind = "factorial"            # every level with every other: 2 × 2 × 2 = 8 cells
blocks = 6                    # each runs every cell once, in shuffled order
seed = 1
control = true                # the base once more in each block: what the measurement cannot resolve
assumed-cv = "2%"

# Kept of every run beside the key figures.
# metrics = ["postgres.wal.bytes"]

[run]
workload = "tproc-c"
target = "postgres"           # a server of kelvin's own: kelvin may change it, and restart it

[run.reset]
how = "auto"                  # every run begins with the same data: TPROC-C's tables grow with each

[run.load]
users = 8
ramp-up = "30s"
duration = "2m"

[run.tproc-c]
warehouses = 10
"#;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::study::{Study, StudyPlan};

    #[test]
    fn templates_are_studies() {
        for (template, runs) in [(Template::Ab, 18), (Template::Factorial, 54)] {
            let text = study_toml(template, "a \"quoted\" name");
            let study = Study::parse(&text, "study.toml", Path::new(".")).unwrap();
            assert_eq!(study.name, "a \"quoted\" name");
            assert_eq!(StudyPlan::of(&study).runs.len(), runs);
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(120), "{longest:?}");
        }
    }
}
