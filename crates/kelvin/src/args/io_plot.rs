//! `kelvin io plot`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::ValueHint;

/// `kelvin io plot`.
#[derive(Debug, Args)]
#[command(after_help = "Each argument is one of\n  \
    a log of fio or kelvin    NAME_bw.log, NAME_iops.1.log, _slat, _clat, _lat, _clat_hist, also .fz\n  \
    a result                  fio's or kelvin's JSON or JSON+\n  \
    a directory               all logs and results in it\n  \
    a stored run              its number, its label or last; group:N for the runs of a sweep\n\n\
    Reads and writes are never in one line. docs/io-plots.md shows every chart.\n\n\
    Examples:\n  kelvin io plot job_bw.1.log job_clat.1.log --out plots\n  \
    kelvin io plot old.json new.json --png                two results against each other\n  \
    kelvin io plot group:3                                bars and heat maps of a sweep")]
pub(crate) struct PlotArgs {
    /// Logs, results, directories, stored runs
    #[arg(required = true, value_name = "LOG|RESULT|RUN", value_hint = ValueHint::AnyPath)]
    pub(crate) what: Vec<String>,
    /// Where the charts are written; made when it is not there
    #[arg(long, value_name = "DIR", default_value = "plots", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    /// Write each chart as PNG, too (needs rsvg-convert: librsvg2-bin)
    #[arg(long)]
    pub(crate) png: bool,
    /// The page's title
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
}
