//! `kelvin io plot`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::ValueHint;

/// `kelvin io plot`.
#[derive(Debug, Args)]
#[command(after_help = "Each argument is one of\n\
    \x20 a log of fio or kelvin    NAME_bw.log, NAME_iops.1.log, _slat, _clat, _lat, _clat_hist, also .fz\n\
    \x20 a result                  fio's or kelvin's JSON or JSON+\n\
    \x20 a directory               all logs and results in it\n\
    \x20 a stored run              its number, its label or last; group:N for the runs of a sweep\n\
    \n\
    Reads and writes are always separate lines. docs/io-plots.md shows every chart.\n\
    \n\
    Examples:\n\
    \x20 kelvin io plot job_bw.1.log job_clat.1.log --out plots\n\
    \x20 kelvin io plot old.json new.json --png                compares two results\n\
    \x20 kelvin io plot group:3                                bars and heat maps of a sweep")]
pub(crate) struct PlotArgs {
    /// Logs, results, directories, stored runs
    #[arg(required = true, value_name = "LOG|RESULT|RUN", value_hint = ValueHint::AnyPath)]
    pub(crate) what: Vec<String>,
    /// Directory for the charts; created if it does not exist
    #[arg(long, value_name = "DIR", default_value = "plots", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    /// Also write each chart as PNG (needs rsvg-convert: librsvg2-bin)
    #[arg(long)]
    pub(crate) png: bool,
    /// The page's title
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
}
