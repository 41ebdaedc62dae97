//! The flags of `runs`, `rm` and `tag`.

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kelvin_store::{Liveness, RunState, RunSummary};

use super::FormatArgs;

/// `kelvin runs`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kelvin runs --limit 10\n  kelvin runs --workload tproc-c --state counted --since 7d\n  \
    kelvin runs --label base --format csv"
)]
pub(crate) struct RunsArgs {
    /// Runs of this workload: tproc-c, tproc-h, pgbench, script, scan or io
    #[arg(long, value_name = "WORKLOAD", help_heading = "Filters")]
    workload: Option<String>,
    /// Runs in this state
    #[arg(long, value_name = "STATE", value_enum, help_heading = "Filters")]
    pub(crate) state: Option<State>,
    /// Runs started since this time: 2026-11-22, 2026-11-22T18:30Z, or an age such as 90m, 12h, 7d
    #[arg(long, value_name = "TIME", value_parser = since, help_heading = "Filters")]
    since: Option<Timestamp>,
    /// Runs whose target contains this text
    #[arg(long, value_name = "TEXT", help_heading = "Filters")]
    target: Option<String>,
    /// Runs with this label
    #[arg(long, value_name = "NAME", help_heading = "Filters")]
    label: Option<String>,
    /// Only the newest N runs
    #[arg(long, short = 'n', value_name = "N", value_parser = at_least_one, help_heading = "Filters")]
    pub(crate) limit: Option<usize>,
    /// Look for findings in every run instead of only the newest 20
    #[arg(long)]
    pub(crate) findings: bool,
    /// Do not truncate lines to the width of the terminal
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// The values of `--state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// Counted
    Counted,
    /// Measured, but must not be used
    Void,
    /// Interrupted or killed
    Partial,
    /// Ended by an error
    Failed,
    /// Still running
    Running,
}

impl State {
    /// Whether the run is in it.
    pub(crate) fn is_of(self, run: &RunSummary) -> bool {
        let state = run.judgement.as_ref().map(|judgement| judgement.state);
        match self {
            Self::Running => run.liveness == Liveness::Running,
            Self::Counted => state == Some(RunState::Counted),
            Self::Void => state == Some(RunState::Void),
            Self::Partial => state == Some(RunState::Partial),
            Self::Failed => state == Some(RunState::Failed),
        }
    }
}

impl RunsArgs {
    /// Whether a run passes the filters, but for its state.
    pub(crate) fn wants(&self, run: &RunSummary) -> bool {
        self.workload.as_ref().is_none_or(|workload| *workload == run.workload)
            && self.since.is_none_or(|since| run.started >= since)
            && self.target.as_ref().is_none_or(|target| run.target.contains(target.as_str()))
            && self.label.as_ref().is_none_or(|label| run.label.as_ref() == Some(label))
    }

    /// Columns that a line may fill: those of the terminal, at least 80; 80 elsewhere.
    pub(crate) fn width(&self) -> usize {
        if self.wide {
            return usize::MAX;
        }
        kelvin_live::terminal_size(std::io::stdout()).map_or(80, |(columns, _)| columns.max(80))
    }
}

/// `kelvin rm`.
#[derive(Debug, Args)]
#[command(
    after_help = "A run of a group (repeats, an A/B, a sweep or a study) is not removed, because the group's \
    result depends on it: --from-groups removes it anyway, and group:N removes a group with all its runs. \
    The HTML page of a run is removed with it. The number of a removed run is not reused.\n\
    \n\
    Examples:\n\
    \x20 kelvin rm 12\n\
    \x20 kelvin rm 12..17 19 --yes\n\
    \x20 kelvin rm group:3"
)]
pub(crate) struct RmArgs {
    /// Runs by number, label, last, or last-N; a range such as 12..17; or a group with its runs, such as group:3
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Also remove runs that belong to groups
    #[arg(long)]
    pub(crate) from_groups: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// `kelvin tag`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  kelvin tag last new-disk\n  kelvin tag 12 --remove")]
pub(crate) struct TagArgs {
    /// The run: its number, its label, last, or last-N
    pub(crate) run: String,
    /// The label, by which other commands find the run
    #[arg(required_unless_present = "remove", conflicts_with = "remove")]
    pub(crate) label: Option<String>,
    /// Remove the label
    #[arg(long)]
    pub(crate) remove: bool,
}

/// A date, a time, or how long ago.
fn since(text: &str) -> Result<Timestamp, String> {
    let refused =
        || format!("\"{text}\" is not a time: write 2026-11-22, 2026-11-22T18:30Z, or 90m, 12h, 7d");
    let ago = text.char_indices().next_back().and_then(|(at, unit)| {
        let number: i64 = text[..at].parse().ok().filter(|number| *number >= 0)?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return None,
        };
        number.checked_mul(seconds)
    });
    if let Some(seconds) = ago {
        let then = Timestamp::now().as_second().checked_sub(seconds);
        return then.and_then(|then| Timestamp::from_second(then).ok()).ok_or_else(refused);
    }
    let date = |text: &str| text.parse::<jiff::civil::Date>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
    if let Some(begin) = date(text).filter(|_| !text.contains('T')) {
        return Ok(begin.timestamp());
    }
    text.parse().map_err(|_| refused())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("0 runs would be an empty list; give at least 1".into()),
        Ok(number) => Ok(number),
        Err(_) => Err("not a number of runs".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_or_so_long_ago() {
        assert_eq!(since("2026-11-22").unwrap().to_string(), "2026-11-22T00:00:00Z");
        assert_eq!(since("2026-11-22T18:30:00Z").unwrap().to_string(), "2026-11-22T18:30:00Z");
        let hour = Timestamp::now().as_second() - since("1h").unwrap().as_second();
        assert!((3600..3660).contains(&hour), "{hour}");
        for refused in ["", "yesterday", "-1d", "d", "7w", "99999999999999999999d", "9223372036854775807d"] {
            assert!(since(refused).is_err(), "{refused}");
        }
    }
}
