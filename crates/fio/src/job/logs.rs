//! Logs of a job, and the content of its result.

use std::path::PathBuf;

use kelvin_measure::Nanos;

/// fio's log files. Names are prefixes, to which kind, job and `.log` are added.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Logs {
    /// `write_bw_log=`.
    pub bandwidth: Option<String>,
    /// `write_iops_log=`.
    pub iops: Option<String>,
    /// `write_lat_log=`: slat, clat and lat.
    pub latency: Option<String>,
    /// `write_hist_log=`.
    pub histogram: Option<String>,
    /// `write_iolog=`.
    pub iolog: Option<PathBuf>,
    /// `log_avg_msec=`: one row per window; `None` for a row per I/O.
    pub window: Option<Nanos>,
    /// `log_hist_msec=`.
    pub histogram_window: Option<Nanos>,
    /// `log_hist_coarseness=`, 0 to 6: how often the number of bins is halved.
    pub histogram_coarseness: u8,
    /// `log_window_value=`, `log_max_value=`.
    pub value: LogValue,
    /// `log_offset=`.
    pub offset: bool,
    /// `log_prio=`.
    pub priority: bool,
    /// `log_issue_time=`.
    pub issue_time: bool,
    /// `log_unix_epoch=`, `log_alternate_epoch=`: times are by this clock, given by its number.
    pub epoch_clock: Option<i32>,
    /// `per_job_logs=`, default true.
    pub per_job: bool,
    /// Kelvin's `log_sum=1`: one file, in which the jobs of a group are added up window by window.
    pub summed: bool,
    /// `log_compression=`, `log_store_compressed=`: files end in `.fz`.
    pub compressed: bool,
}

/// `log_window_value=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogValue {
    /// The mean of the window.
    #[default]
    Average,
    /// Its maximum.
    Maximum,
    /// Both.
    Both,
}

/// The content of the result.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportOptions {
    /// `unified_rw_reporting=`.
    pub mixed: Mixed,
    /// `percentile_list=`, percent, ascending.
    pub percentiles: Vec<f64>,
    /// `clat_percentiles=`, default true.
    pub completion_percentiles: bool,
    /// `lat_percentiles=`.
    pub total_percentiles: bool,
    /// `slat_percentiles=`.
    pub submission_percentiles: bool,
    /// `disk_util=`, default true.
    pub disk_use: bool,
    /// `disable_lat=`, `disable_clat=`, `disable_slat=`, `disable_bw_measurement=`, `gtod_reduce=`.
    pub disabled: Disabled,
    /// `significant_figures=`, 1 to 10.
    pub significant_figures: u8,
    /// `bwavgtime=`: the window of the bandwidth's samples.
    pub bandwidth_window: Nanos,
    /// `iopsavgtime=`.
    pub iops_window: Nanos,
    /// `kb_base=1000`: units in powers of ten.
    pub thousand: bool,
    /// `unit_base=1`: bits instead of bytes.
    pub bits: bool,
}

/// `unified_rw_reporting=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mixed {
    /// Directions apart.
    #[default]
    None,
    /// Together only.
    Mixed,
    /// Both.
    Both,
}

/// Figures that are not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disabled {
    /// Total times.
    pub latency: bool,
    /// Completion times.
    pub completion: bool,
    /// Submission times.
    pub submission: bool,
    /// Samples of the bandwidth.
    pub bandwidth: bool,
}
