//! `kelvin advise`'s flags.

use anyhow::{Result, anyhow, bail};
use clap::Args;
use kelvin_run::spec::{Span, TargetName};

use super::observation::ExplainWhich;
use super::{Format, FormatArgs};

/// `kelvin advise`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each line is a change that may remove the cause of a finding, with an upper bound of its \
    gain: the throughput times 1 / (1 - s), where s is the share of the time that the change can remove, if \
    the other transactions do not wait for what the statement itself uses or holds. The bound is not a \
    forecast. --prove tries a change: the data are saved, both sides run in turn from the same data, with \
    and without the change, and everything is restored at the end, also after an error. It asks for \
    confirmation before it changes this host, or a server that kelvin does not manage. Several changes are \
    tried one after another; confirmed ones stay applied while the next ones are tried. Each has its own 95 \
    % interval, which is not corrected for their number. After a kill, `kelvin server restore --target \
    TARGET` restores settings and statements, and `kelvin snapshot restore` the data.\n\
    \n\
    Examples:\n\
    \x20 kelvin advise last                        list the changes for the last run\n\
    \x20 kelvin advise 17 --within-rules           only those that TPC-C's rules allow\n\
    \x20 kelvin advise 17 --prove 1                try the first\n\
    \x20 kelvin advise 17 --prove all --budget 2h  try one after another\n\
    \x20 kelvin advise 17 --prove jit-cost         try the change of a finding; jit-cost#2 is its second \
    change\n\
    \x20 kelvin advise 17 --try jit=off --prove 4  a setting of your choice, the last in the list\n\
    \x20 kelvin advise --target postgres://dba@db.example/shop -d 1m\n\
    \x20                                           observe a server for a minute and list changes for it"
)]
pub(crate) struct AdviseArgs {
    /// The run: its number, its label, or "last"
    #[arg(default_value = "last")]
    pub(crate) run: String,

    /// List changes for a running server instead of a run: it is observed for --duration, and nothing is changed
    #[arg(long, short, value_name = "TARGET", conflicts_with_all = ["run", "prove", "within_rules"])]
    pub(crate) target: Option<TargetName>,

    /// With --target: execute the statements with the most time once more with EXPLAIN (ANALYZE), each in a transaction that is
    /// rolled back, and compare the rows of their plans with what the planner expected (PostgreSQL, MySQL, MariaDB);
    /// "writes" includes statements that change data (PostgreSQL)
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "reads",
        requires = "target")]
    pub(crate) explain: Option<ExplainWhich>,

    /// List only changes that TPC-C's rules allow
    #[arg(long)]
    pub(crate) within_rules: bool,

    /// Add a setting of the server, or a file below /sys of its host, to the list; may be given several times
    #[arg(long = "try", value_name = "NAME=VALUE")]
    tried: Vec<String>,

    /// Try these changes of the list, by number or as FINDING#N, separated by commas, or all
    #[arg(long, value_name = "N,…|all")]
    pub(crate) prove: Option<String>,

    /// With --prove: begin no run after this time; one change is tried until it is clear, until then, or for 40 blocks [default:
    /// none: one change is tried until it is clear, or for 12 blocks]
    #[arg(long, value_name = "TIME", requires = "prove")]
    pub(crate) budget: Option<Span>,

    /// With --prove: blocks of each comparison, 4 to 200; with more than 6 it ends early if it is clear [default: 12 for one change,
    /// or 40 with --budget; 6 for each of several]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=200), requires = "prove")]
    pub(crate) blocks: Option<u32>,

    /// With --prove: duration of the measured window [default: that of the run]; with --target: how long the server is
    /// observed [default: 30s]
    #[arg(long, short, value_name = "TIME")]
    pub(crate) duration: Option<Span>,

    /// With --prove: ramp-up before it [default: that of the run]
    #[arg(long, value_name = "TIME", requires = "prove")]
    pub(crate) ramp_up: Option<Span>,

    /// With --prove: do not save and restore the data; each run begins with the data that the previous run left
    #[arg(long, requires = "prove")]
    pub(crate) no_reset: bool,

    /// With --prove: allow changes of settings of a server that kelvin does not manage; they are restored afterwards
    #[arg(long, requires = "prove")]
    pub(crate) allow_settings: bool,

    /// With --prove: do not ask for confirmation before changing this host, or a server that kelvin does not manage and
    /// whose data are replaced
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
    /// As if `--prove` had named this change of this run; `allowed` is whether settings may be changed, and whether that was
    /// agreed to.
    pub(crate) fn trying(run: String, change: &str, blocks: Option<u32>, allowed: (bool, bool)) -> Self {
        Self {
            run,
            target: None,
            explain: None,
            within_rules: false,
            tried: Vec::new(),
            prove: Some(change.to_owned()),
            budget: None,
            blocks,
            duration: None,
            ramp_up: None,
            no_reset: false,
            allow_settings: allowed.0,
            yes: allowed.1,
            format: FormatArgs::default(),
        }
    }

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

    /// The changes that `--prove` selects from a list of changes for these findings; `None` without the flag.
    pub(crate) fn proved(&self, findings: &[&str]) -> Result<Option<Tried>> {
        let Some(text) = &self.prove else {
            if self.duration.is_some() && self.target.is_none() {
                bail!("--duration: give --prove or --target as well");
            }
            return Ok(None);
        };
        if self.format.format() != Format::Text {
            bail!("--prove prints text; kelvin groups prints its comparisons in every format");
        }
        if findings.is_empty() {
            bail!("--prove: there is nothing to try for this run; --try NAME=VALUE adds a setting");
        }
        if text == "all" {
            return Ok(Some(Tried::All));
        }
        let mut chosen = Vec::new();
        for word in text.split(',') {
            let index = index(word.trim(), findings).map_err(|why| anyhow!("{text}: {why}"))?;
            if chosen.contains(&index) {
                bail!("{text}: number {} is given twice", index + 1);
            }
            chosen.push(index);
        }
        Ok(Some(Tried::Some(chosen)))
    }
}

/// The place in the list that a word names: "3", "jit-cost" or "scan-without-index#2".
fn index(word: &str, findings: &[&str]) -> Result<usize, String> {
    let of = findings.len();
    if let Ok(number) = word.parse::<usize>() {
        let there = (1..=of).contains(&number);
        return there
            .then(|| number - 1)
            .ok_or_else(|| format!("there is no number {number}; the list has 1 to {of}"));
    }
    let (finding, number) = word.split_once('#').unwrap_or((word, "1"));
    let number: usize = number
        .parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("{word}: write a finding's first change as {finding}#1"))?;
    let all: Vec<usize> = (0..of).filter(|at| findings.get(*at) == Some(&finding)).collect();
    all.get(number - 1).copied().ok_or_else(|| match all.len() {
        0 => {
            let mut known = findings.to_vec();
            known.sort_unstable();
            known.dedup();
            format!(
                "no change is for {finding:?}; write numbers of the list, such as 1,3, or all, or one of {}",
                known.join(", ")
            )
        }
        one => format!("{finding} has {one} of the changes"),
    })
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
    fn changes_of_the_list_are_chosen_in_their_order() {
        const FINDINGS: [&str; 3] = ["scan-without-index", "jit-cost", "scan-without-index"];
        let chosen =
            |text: &str| line(&["3", "--prove", text]).proved(&FINDINGS).map_err(|error| error.to_string());
        assert_eq!(chosen("3,1"), Ok(Some(Tried::Some(vec![2, 0]))));
        assert_eq!(chosen("all"), Ok(Some(Tried::All)));
        assert_eq!(chosen("scan-without-index#2,jit-cost"), Ok(Some(Tried::Some(vec![2, 1]))));
        assert_eq!(line(&[]).proved(&[]).unwrap(), None);
        for (text, part) in [
            ("4", "has 1 to 3"),
            ("0", "has 1 to 3"),
            ("1,1", "twice"),
            ("scan-without-index,1", "twice"),
            ("x", "such as 1,3"),
            ("jit-cost#2", "jit-cost has 1 of"),
            ("jit-cost#0", "jit-cost#1"),
            ("jit-cost#x", "jit-cost#1"),
            ("", "such as 1,3"),
        ] {
            assert!(chosen(text).unwrap_err().contains(part), "{text}");
        }
        assert!(line(&["--prove", "1"]).proved(&[]).unwrap_err().to_string().contains("--try"));
    }

    #[test]
    fn a_setting_has_a_name_and_a_value() {
        assert_eq!(line(&["--try", "jit = off"]).settings().unwrap(), [("jit".into(), "off".into())]);
        assert!(line(&["--try", "jit"]).settings().is_err() && line(&["--try", "=1"]).settings().is_err());
        assert!(Line::try_parse_from(["advise", "--budget", "1h"]).is_err(), "without --prove");
        assert!(line(&["-d", "1s"]).proved(&[]).unwrap_err().to_string().contains("--prove or --target"));
        assert!(line(&["-d", "1s", "--target", "postgres"]).proved(&[]).unwrap().is_none());
        for more in ["17", "--within-rules"] {
            let line = Line::try_parse_from(["advise", more, "--target", "postgres"]);
            assert!(line.is_err(), "{more}: of a run");
        }
    }
}
