//! Flags about scripts, with pgbench's letters: the scripts, their variables, and the query protocol.

use std::collections::BTreeMap;

use clap::builder::{NonEmptyStringValueParser, TypedValueParser, ValueHint, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use kelvin_run::spec::Span;
use kelvin_workload::pgbench::{QueryMode, ScriptChoice};

use super::choice_parser::one_of;
use super::set;

/// Variables and protocol of scripts.
#[derive(Debug, Clone, Args)]
pub(crate) struct LanguageArgs {
    /// Set a variable before the load; may be given several times
    #[arg(long, short = 'D', value_name = "NAME=VALUE", value_parser = definition, help_heading = "Scripts")]
    define: Vec<(String, String)>,

    /// Query protocol [default: simple, as in pgbench]
    #[arg(long, short = 'M', alias = "protocol", value_name = "MODE", help_heading = "Scripts",
        value_parser = one_of::<QueryMode>(&["simple", "extended", "prepared"]))]
    query_mode: Option<QueryMode>,

    /// Time each statement separately
    #[arg(long, short = 'r', visible_alias = "report-per-command", help_heading = "Scripts")]
    per_statement: bool,

    /// Allow \shell and \setshell in scripts
    #[arg(long, help_heading = "Scripts")]
    pub(super) allow_shell: bool,
}

impl LanguageArgs {
    /// Applies the flags on top of the file.
    pub(super) fn apply(
        &self,
        define: &mut BTreeMap<String, String>,
        query_mode: &mut QueryMode,
        per_statement: &mut bool,
        allow_shell: &mut bool,
    ) {
        define.extend(self.define.iter().cloned());
        set(query_mode, self.query_mode.as_ref());
        *per_statement |= self.per_statement;
        *allow_shell |= self.allow_shell;
    }
}

/// `-b`, `-S`, `-N` and `-f`, in the order in which they were given: it is the order of the results.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choices(pub(super) Vec<ScriptChoice>);

/// The names of the flags that choose a script.
const CHOICES: [&str; 4] = ["builtin", "select_only", "simple_update", "file"];

impl Args for Choices {
    fn augment_args(command: Command) -> Command {
        let choice = |id: &'static str| Arg::new(id).action(ArgAction::Append).help_heading("Scripts");
        let builtin = || ValueParser::new(ScriptChoice::builtin);
        // Each flag names a built-in script and needs no value.
        let flag = |id, name| choice(id).num_args(0).default_missing_value(name).value_parser(builtin());
        command
            .arg(choice("builtin").short('b').long("builtin").value_name("NAME[@W]").value_parser(builtin()).help(
                "A built-in script: tpcb-like, simple-update or select-only; may be given several times, \
                 chosen with weight W [default: tpcb-like]",
            ))
            .arg(flag("select_only", "select-only").short('S').long("select-only").help("The same as -b select-only"))
            .arg(
                flag("simple_update", "simple-update")
                    .short('N')
                    .long("skip-some-updates")
                    .visible_alias("simple-update")
                    .help("The same as -b simple-update"),
            )
            .arg(
                choice("file")
                    .short('f')
                    .long("file")
                    .value_name("FILE[@W]")
                    .value_hint(ValueHint::FilePath)
                    .value_parser(script_file())
                    .help("Your own script; may be given several times, chosen with weight W; - is standard \
                           input"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Choices {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut chosen: Vec<(usize, ScriptChoice)> = Vec::new();
        for id in CHOICES {
            let places = matches.indices_of(id).into_iter().flatten();
            let choices = matches.get_many::<ScriptChoice>(id).into_iter().flatten();
            chosen.extend(places.zip(choices.cloned()));
        }
        chosen.sort_by_key(|(place, _)| *place);
        Ok(Self(chosen.into_iter().map(|(_, choice)| choice).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Reads the script that is named.
pub(super) fn script_file() -> impl TypedValueParser<Value = ScriptChoice> {
    NonEmptyStringValueParser::new().try_map(|written| ScriptChoice::file(&written))
}

/// "name=value", with a name that a script can mention.
fn definition(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("\"{text}\" lacks a \"=\"; write for example -D rows=100"))?;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()) {
        return Err(format!("\"{name}\" is not a valid variable name: use letters, digits and _"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// A length of time; a plain number is seconds, as in pgbench.
pub(super) fn seconds(text: &str) -> Result<Span, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("{text}s").parse();
    }
    text.parse()
}
