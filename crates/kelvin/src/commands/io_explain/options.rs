//! What a job requested, from its options. Options that are not given have fio's default.

use kelvin_measure::text::parse_bytes;
use kelvin_storage::output::read::{IoResult, JobResult};

/// The options that determine the meaning of the metrics.
pub(super) struct ExplainedOptions<'a> {
    pub(super) pattern: &'a str,
    pub(super) block: &'a str,
    pub(super) engine: &'a str,
    pub(super) depth: Option<u64>,
    pub(super) workers: u64,
    pub(super) direct: bool,
    pub(super) rate: Option<(&'static str, &'a str)>,
    pub(super) think: Option<&'a str>,
}

/// A switch, which may have no value.
fn is_on(value: Option<&str>) -> bool {
    value.is_some_and(|value| !matches!(value.trim(), "0" | "false" | "no"))
}

/// A number with fio's suffixes; `None` for anything else, such as a range.
pub(super) fn bytes(text: &str) -> Option<u64> {
    parse_bytes(text).ok()
}

impl<'a> ExplainedOptions<'a> {
    pub(super) fn from_job(job: &'a JobResult, result: &IoResult) -> Self {
        let kelvin = job.kelvin.as_ref();
        let direct =
            is_on(job.option(&["direct"])) || job.option(&["buffered"]).is_some_and(|v| v.trim() == "0");
        let rate = [("rate_iops", "I/Os per second"), ("rate", "bytes per second")]
            .into_iter()
            .find_map(|(option, unit)| job.option(&[option]).map(|value| (unit, value)))
            .filter(|(_, value)| value.trim() != "0");
        // fio does not report whether workers were grouped; fewer entries with the name than workers show it.
        let entries = result.jobs.iter().filter(|other| other.name == job.name).count().max(1) as u64;
        let clones = job.option(&["numjobs"]).and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(1);
        let workers = kelvin.map_or(clones / entries, |kelvin| kelvin.workers).max(1);
        let depth = job.option(&["iodepth"]).map_or(Some(1), |value| value.trim().parse().ok());
        Self {
            pattern: job.option(&["rw", "readwrite"]).unwrap_or("read"),
            block: job.option(&["bs", "blocksize", "bsrange", "blocksize_range", "bssplit"]).unwrap_or("4k"),
            engine: kelvin.map_or_else(
                || job.option(&["ioengine"]).unwrap_or("psync"),
                |kelvin| kelvin.engine.as_str(),
            ),
            depth: kelvin.map_or(depth, |kelvin| Some(kelvin.depth_asked / workers)),
            workers,
            direct: kelvin.map_or(direct, |kelvin| kelvin.direct),
            rate,
            think: job.option(&["thinktime"]).filter(|value| value.trim() != "0"),
        }
    }

    /// Whether the engine waits during submission: buffered I/O of libaio goes through the page cache.
    pub(super) fn waits_in_submission(&self) -> bool {
        self.engine == "libaio" && !self.direct
    }

    /// Whether a worker can have several I/Os in flight.
    pub(super) fn is_asynchronous(&self) -> bool {
        !matches!(self.engine, "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" | "mmap" | "splice" | "null")
    }

    /// "random reads of 4k by libaio, depth 8, bypassing the page cache".
    pub(super) fn describe(&self) -> String {
        let plain = self.pattern.split(':').next().unwrap_or(self.pattern);
        let order = if plain.starts_with("rand") { "random" } else { "sequential" };
        let what = match plain.trim_start_matches("rand") {
            "rw" | "readwrite" => "reads and writes",
            "read" => "reads",
            "write" => "writes",
            "trim" => "trims",
            "trimwrite" => "trims and writes",
            other => other,
        };
        let depth = self.depth.map_or_else(String::new, |depth| format!(", depth {depth}"));
        let workers = if self.workers == 1 { String::new() } else { format!(", {} workers", self.workers) };
        let cache = if self.direct { "bypassing the page cache" } else { "through the page cache" };
        format!("{order} {what} of {} by {}{workers}{depth}, {cache}", self.block, self.engine)
    }
}
