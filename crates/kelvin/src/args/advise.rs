//! `kelvin advise`'s flags.

use anyhow::{Result, bail};
use clap::Args;
use kelvin_run::spec::Span;

use super::FormatArgs;

/// `kelvin advise`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each line is a change that may remove what a finding names, with the most that it can gain: the \
    throughput times 1 / (1 - s), where s is the share of the time that it can take away, if the other transactions \
    do not wait for what the statement itself uses or holds. A bound is no forecast. \
    --prove tries a change: the data are saved, both sides run in turn from the same data, with and without the \
    change, and everything is put back, however it ends. On a server that kelvin does not manage it asks first. \
    Several are tried one after another; what is confirmed stays on for the next ones, until the end. Each has its \
    own 95 % interval, which is not corrected for their number. After a kill, `kelvin server restore --target TARGET` puts the \
    settings and statements back, and `kelvin snapshot restore` the data.\n\
    \n\
    Examples:\n\
    \x20 kelvin advise last                        list the changes for the last run\n\
    \x20 kelvin advise 17 --within-rules           only those that TPC-C's rules allow\n\
    \x20 kelvin advise 17 --prove 1                try the first\n\
    \x20 kelvin advise 17 --prove all --budget 2h  try one after another\n\
    \x20 kelvin advise 17 --try jit=off --prove 4  a setting of your choice, which is last in the list"
)]
pub(crate) struct AdviseArgs {
    /// The run: its number, its label, or "last"
    #[arg(default_value = "last")]
    pub(crate) run: String,

    /// List only changes that TPC-C's rules allow
    #[arg(long)]
    pub(crate) within_rules: bool,

    /// Add a setting of the server to the list; may be given several times
    #[arg(long = "try", value_name = "NAME=VALUE")]
    tried: Vec<String>,

    /// Try these changes of the list, by number and separated by commas, or all
    #[arg(long, value_name = "N,…|all")]
    prove: Option<String>,

    /// With --prove: begin no run after this time [default: none]
    #[arg(long, value_name = "TIME", requires = "prove")]
    pub(crate) budget: Option<Span>,

    /// With --prove: blocks of each comparison, 4 to 200; with more than 6 it ends early if it is clear [default: 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=200), requires = "prove")]
    pub(crate) blocks: Option<u32>,

    /// With --prove: duration of the measured window [default: that of the run]
    #[arg(long, short, value_name = "TIME", requires = "prove")]
    pub(crate) duration: Option<Span>,

    /// With --prove: ramp-up before it [default: that of the run]
    #[arg(long, value_name = "TIME", requires = "prove")]
    pub(crate) ramp_up: Option<Span>,

    /// With --prove: do not save and restore the data; each run begins with what the one before left
    #[arg(long, requires = "prove")]
    pub(crate) no_reset: bool,

    /// With --prove: allow changes of settings of a server that kelvin does not manage; they are put back
    #[arg(long, requires = "prove")]
    pub(crate) allow_settings: bool,

    /// With --prove: do not ask before a server that kelvin does not manage is changed and its data are replaced
    #[arg(long, requires = "prove")]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// The changes that are tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tried {
    /// All of the list, by their bound.
    All,
    /// These, from 0, in this order.
    Some(Vec<usize>),
}

impl AdviseArgs {
    /// The settings of `--try`, as name and value.
    pub(crate) fn settings(&self) -> Result<Vec<(String, String)>> {
        let split = |text: &String| match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            }
            _ => bail!("--try {text}: write a setting and its value, such as --try jit=off"),
        };
        self.tried.iter().map(split).collect()
    }

    /// What `--prove` names of a list of so many changes; none without it.
    pub(crate) fn proved(&self, of: usize) -> Result<Option<Tried>> {
        let Some(text) = &self.prove else { return Ok(None) };
        if of == 0 {
            bail!("--prove: there is nothing to try for this run; --try NAME=VALUE adds a setting");
        }
        if text == "all" {
            return Ok(Some(Tried::All));
        }
        let mut chosen = Vec::new();
        for word in text.split(',') {
            match word.trim().parse::<usize>() {
                Ok(number) if (1..=of).contains(&number) && !chosen.contains(&(number - 1)) => {
                    chosen.push(number - 1);
                }
                Ok(number) if (1..=of).contains(&number) => bail!("--prove {text}: {number} is given twice"),
                Ok(number) => bail!("--prove {text}: there is no number {number}; the list has 1 to {of}"),
                Err(_) => bail!("--prove {text}: write numbers of the list, such as 1,3, or all"),
            }
        }
        Ok(Some(Tried::Some(chosen)))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        advise: AdviseArgs,
    }

    fn line(words: &[&str]) -> AdviseArgs {
        Line::try_parse_from([&["advise"], words].concat()).unwrap().advise
    }

    #[test]
    fn numbers_of_the_list_are_chosen_in_their_order() {
        let chosen = |text: &str| line(&["3", "--prove", text]).proved(3).map_err(|error| error.to_string());
        assert_eq!(chosen("3,1"), Ok(Some(Tried::Some(vec![2, 0]))));
        assert_eq!(chosen("all"), Ok(Some(Tried::All)));
        assert_eq!(line(&[]).proved(0).unwrap(), None);
        for (text, part) in [("4", "has 1 to 3"), ("0", "has 1 to 3"), ("1,1", "twice"), ("x", "such as 1,3")]
        {
            assert!(chosen(text).unwrap_err().contains(part), "{text}");
        }
        assert!(line(&["--prove", "1"]).proved(0).unwrap_err().to_string().contains("--try"));
    }

    #[test]
    fn a_setting_has_a_name_and_a_value() {
        assert_eq!(line(&["--try", "jit = off"]).settings().unwrap(), [("jit".into(), "off".into())]);
        assert!(line(&["--try", "jit"]).settings().is_err() && line(&["--try", "=1"]).settings().is_err());
        assert!(Line::try_parse_from(["advise", "--budget", "1h"]).is_err(), "without --prove");
    }
}
