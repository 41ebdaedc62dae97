//! TPROC-H steps as arguments of Kelvin.

use crate::settings::System;
use crate::step::{Action, Step};

impl Step {
    /// The arguments of `kelvin build tproc-h`.
    pub(crate) fn tproch_build(&self) -> Result<Vec<String>, String> {
        let scale = self.text("scale_fact").trim();
        if !scale.parse::<f64>().is_ok_and(|scale| (0.01..=1000.0).contains(&scale)) {
            return Err(self.bad("scale_fact", "a number from 0.01 to 1000"));
        }
        let loaders = self.count("num_tpch_threads")?.to_string();
        let mut arguments: Vec<String> = ["--scale", scale, "--loaders", &loaders].map(String::from).to_vec();
        if self.settings.system() == System::SqlServer && self.flag("colstore")? {
            arguments.push("--colstore".into());
        }
        Ok(arguments)
    }

    /// The arguments of `kelvin run tproc-h`. A single user that refreshes runs the power test: RF1, the queries, RF2.
    pub(crate) fn tproch_run(&self) -> Result<Vec<String>, String> {
        let (sets, refreshes) = (self.count("total_querysets")?, self.flag("refresh_on")?);
        let mut arguments = vec!["--no-build".to_owned()];
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        if refreshes && self.users == 1 {
            if sets > 1 {
                return Err(format!(
                    "{sets} query sets of a single user with refresh functions are not supported: with one it is the power test"
                ));
            }
            add(&["--streams", "0"]);
            return Ok(arguments);
        }
        add(&[
            "--profile",
            "hammerdb",
            "--users",
            &self.users.to_string(),
            "--query-sets",
            &sets.to_string(),
        ]);
        if refreshes {
            let pause = self.text("trickle_refresh").trim();
            let pause =
                pause.parse::<u32>().map_err(|_| self.bad("trickle_refresh", "a number of milliseconds"))?;
            add(&["--trickle-refresh", &pause.to_string()]);
        } else {
            add(&["--no-refresh"]);
        }
        Ok(arguments)
    }

    /// Settings that have no effect, or an effect that the script's author may not expect.
    pub(crate) fn tproch_notes(&self) -> Result<Vec<String>, String> {
        let (system, prefix) = (self.settings.system(), self.settings.system().word());
        let mut notes = Vec::new();
        let mut note = |holds: bool, name: &str, text: &str| {
            if holds {
                notes.push(format!("{prefix}_{name} {text}"));
            }
        };
        match self.action {
            Action::Build => match system {
                System::Postgres => {
                    note(self.flag("tpch_gpcompat")?, "tpch_gpcompat", "is ignored: it needs Greenplum");
                    let other = self.text("tspace") != "pg_default";
                    note(
                        other,
                        "tpch_tspace",
                        "is ignored: tables are created in the database's default tablespace",
                    );
                }
                System::SqlServer => {
                    let name = "tpch_partition_orders_and_lineitems";
                    note(self.flag(name)?, name, "is ignored: tables are not partitioned on SQL Server");
                }
                _ => {}
            },
            Action::Run => {
                note(
                    self.flag("raise_query_error")?,
                    "raise_query_error",
                    "is ignored: a query that fails is named and voids the run, and the others run",
                );
                let sets =
                    self.flag("refresh_on")? && !["", "0", "1"].contains(&self.text("update_sets").trim());
                note(
                    sets,
                    "update_sets",
                    "is ignored: refresh functions run beside the queries until these have ended",
                );
                note(
                    self.text("cloud_query").eq_ignore_ascii_case("true"),
                    "cloud_query",
                    "is ignored: the 22 queries are those of TPC-H",
                );
                note(
                    system == System::SqlServer,
                    "maxdop",
                    "is ignored: the server's and the database's MAXDOP decide",
                );
            }
            Action::Check | Action::Delete => {}
        }
        Ok(notes)
    }
}
