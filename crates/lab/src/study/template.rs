//! The initial `study.toml` of a study: valid, commented, and meant to be changed.

/// The available templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// One factor at two levels on an embedded database: it runs without changes.
    Ab,
    /// Three factors on a managed PostgreSQL server: the form of a study of settings.
    Factorial,
}

/// The text of the file for a new study.
pub fn study_toml(template: Template, name: &str) -> String {
    let (question, rest) = match template {
        Template::Ab => (AB_QUESTION, AB),
        Template::Factorial => (FACTORIAL_QUESTION, FACTORIAL),
    };
    let name = toml::Value::String(name.into());
    format!("{HEAD}name = {name}\nquestion = \"{question}\"\n{rest}")
}

const HEAD: &str = "\
# A study for kelvin. Review it with `kelvin study plan`, fix the hypothesis with `kelvin study lock`, run it with
# `kelvin study run`. docs/studies.md explains every key.

";

const AB_QUESTION: &str =
    "Does a second virtual user add throughput on SQLite, which allows one writer at a time?";

const AB: &str = r#"
# What the answer applies to, in your words: machine, versions, what else ran, what is excluded. Any keys.
[universe]
machine = "this one, with nothing else running"
out-of-scope = "other engines"

# The one metric that decides; all others are exploratory.
[goal]
metric = "nopm"               # a key figure (nopm, tps, transactions, mean, p50, p95, p99, cpu, server-cpu, wal, …)
direction = "higher"          # the better direction: higher, lower
smallest-effect = "3%"        # an effect that is clearly smaller counts as no difference

# Falsifiable: how changing the factor from one level to the other affects these metrics, and why.
[hypothesis]
statement = "Two virtual users reach less than 5 % more New-Orders per minute than one"
mechanism = "SQLite allows one writer at a time, and nearly all of these transactions write"
factor = "users"
from = "1"
to = "2"
rivals = ["the CPU limits the second user, not the lock"]
# The goal's metric, and the signature that separates this mechanism from its rivals. direction: higher, lower, same;
# by: the change is at least this large, or, for "same", at most this large.
predicts = [
    { metric = "nopm", direction = "same", by = "5%" },
    { metric = "mean", direction = "higher", by = "50%" },
]

# What varies. The first level is the base. Exactly one key defines what changes:
#   spec = "load.users"            a value of [run], by its path
#   setting = "shared_buffers"     a server setting; restarts the server if needed
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
blocks = 6                    # each runs every cell once, in random order; fewer than 4 cannot be tested
seed = 1                      # determines the order
control = true                # a second run of the base in each block shows which effects cannot be resolved
assumed-cv = "2%"             # run-to-run variation that the plan assumes until runs measure it
# replacements = 3            # maximum number of void or failed runs to repeat [20 % of the runs, at least 2]

# The run that every run varies, as printed by `kelvin run … --print-spec`; or a file: run = "run.toml"
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
    "How do waiting at commit, buffer size and huge pages affect the throughput, alone and together?";

const FACTORIAL: &str = r#"
# What the answer applies to, in your words: machine, versions, what else ran, what is excluded. Any keys.
[universe]
machine = "this one, with nothing else running; load generator and server share it"
database = "a PostgreSQL server managed by kelvin, created for this study"
out-of-scope = "durability: synchronous_commit = off may lose the last transactions in a crash"

# The one metric that decides; all others are exploratory.
[goal]
metric = "nopm"
direction = "higher"
smallest-effect = "3%"        # an effect that is clearly smaller counts as no difference

[hypothesis]
statement = "Not waiting for the disk at commit raises the throughput by 10 % or more"
mechanism = "every commit waits until WAL is written and synced; users could spend that time on the next transaction"
factor = "commit"
from = "on"
to = "off"
rivals = ["the CPU is already the limit, and other users' work hides the wait"]
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
huge-pages = true             # reserves enough for the buffers and restarts the server

[design]
kind = "factorial"            # every combination of levels: 2 × 2 × 2 = 8 cells
blocks = 6                    # each runs every cell once, in random order
seed = 1
control = true                # a second run of the base in each block shows which effects cannot be resolved
assumed-cv = "2%"

# Metrics to store for every run in addition to the key figures.
# metrics = ["postgres.wal.bytes"]

[run]
workload = "tproc-c"
target = "postgres"           # a server managed by kelvin, which may change and restart it

[run.reset]
how = "auto"                  # every run starts with the same data; otherwise TPROC-C's tables grow with each run

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
