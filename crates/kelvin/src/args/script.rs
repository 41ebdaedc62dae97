//! `kelvin run script`: user SQL.

use anyhow::Result;
use clap::Args;
use clap::builder::ValueHint;
use kelvin_run::Spec;
use kelvin_run::spec::Work;
use kelvin_workload::pgbench::ScriptChoice;

use super::Flags;
use super::language::{LanguageArgs, script_file};
use super::load::{LoadArgs, TargetArgs};
use super::pgbench::FamiliarArgs;

/// `kelvin run script`.
#[derive(Debug, Clone, Args)]
#[command(
    override_usage = "kelvin run script [OPTIONS] <FILE[@W]>…",
    mut_arg("users", |arg| arg.short('u').visible_short_alias('c').visible_alias("client")),
    mut_arg("duration", |arg| arg.short('d').visible_short_alias('T').visible_alias("time")),
    mut_arg("transactions", |arg| arg.short('t')),
    mut_arg("seed", |arg| arg.visible_alias("random-seed")),
    mut_arg("rate", |arg| arg.short('R')),
    mut_arg("verbose", |arg| arg.short('v')),
    // User scripts have no data to build or check.
    mut_arg("no_build", |arg| arg.hide(true)),
    mut_arg("check", |arg| arg.hide(true)),
    after_help = "A file of plain SQL works unchanged; pgbench's commands (\\set, \\if, \\gset, \
    \\startpipeline …) add random values and conditions. One execution of a file is one transaction. Kelvin \
    itself creates and changes no tables.\n\
    \n\
    Examples:\n\
    \x20 kelvin run script query.sql --target postgres://me@db.example/shop\n\
    \x20 kelvin run script read.sql@9 write.sql@1 -D customers=50000 -c 16 -T 60 --target shop.db\n\
    \n\
    docs/pgbench.md describes the language."
)]
pub(crate) struct RunArgs {
    /// SQL script files, chosen at random with weight W [default: 1]; - is standard input
    #[arg(value_name = "FILE[@W]", value_hint = ValueHint::FilePath, value_parser = script_file())]
    files: Vec<ScriptChoice>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    pub(super) language: LanguageArgs,
    #[command(flatten)]
    pub(super) load: LoadArgs,
    #[command(flatten)]
    pub(super) familiar: FamiliarArgs,
}

impl Flags for RunArgs {
    fn apply(&self, spec: &mut Spec) -> Result<()> {
        self.target.apply(spec);
        self.load.apply(spec)?;
        self.familiar.apply(spec)?;
        let Work::Script(options) = &mut spec.work else { return Ok(()) };
        if !self.files.is_empty() {
            options.scripts.clone_from(&self.files);
        }
        self.language.apply(
            &mut options.define,
            &mut options.query_mode,
            &mut options.per_statement,
            &mut options.allow_shell,
        );
        Ok(())
    }
}
