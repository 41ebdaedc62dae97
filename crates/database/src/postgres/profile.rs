//! Profiles: lists of server settings for a purpose, their sizes computed from the host and the run, each with its reason.

use std::fmt::Write;

use crate::Result;
use crate::host_resources::HostResources;
use crate::postgres::settings;
use crate::profile::{Line, Profile, ProfileLoad, Profiles};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Bytes of log a second and CPU that are assumed of a load that was not measured: more than TPC-C-like loads were seen to
/// write (FIELD.md 2: 95 MB/s on a large machine).
const ESTIMATED_WAL_RATE_OF_A_CPU: f64 = 25e6;

/// By how much more than expected the log is sized.
const MARGIN: f64 = 1.25;

/// Share of a checkpoint interval over which its writes are spread.
const COMPLETION: f64 = 0.9;

/// PostgreSQL's profiles.
#[derive(Debug, Clone, Copy)]
pub struct PostgresProfiles;

impl Profiles for PostgresProfiles {
    fn built_in(&self, name: &str, host: HostResources, load: &ProfileLoad) -> Option<Profile> {
        match name {
            "default" => Some(Profile::standard(host)),
            "durable" => Some(Profile::durable(host)),
            "steady" => Some(Profile::steady(host, load)),
            _ => None,
        }
    }

    fn parse(&self, name: &str, text: &str) -> Result<Profile> {
        Profile::parse(name, text)
    }
}

impl Profile {
    /// `default`: moderate and durable, for a host that the server has to itself.
    pub fn standard(host: HostResources) -> Self {
        let mut lines = memory(host);
        let wal = (host.disk / 10 / MIB).clamp(1024, 4 * 1024);
        let mut add = |name: &str, value: &str, reason: &str| lines.push(Line::new(name, value, reason));
        add(
            "max_wal_size",
            &format!("{wal}MB"),
            "timed checkpoints, not one every few seconds; 4 GB or 10 % of the free space, whichever is \
            less",
        );
        add("min_wal_size", "512MB", "WAL files are recycled, not created, in the measured window");
        add("checkpoint_timeout", "15min", "fewer full-page images; longer runs contain checkpoints");
        add(
            "checkpoint_completion_target",
            "0.9",
            "spreads a checkpoint's writes (the default since PostgreSQL 14)",
        );
        add("random_page_cost", "1.1", "flash, not spinning disks");
        add("jit", "off", "short queries gain nothing from JIT compilation");
        add("fsync", "on", "without it, commits do not reach the disk");
        add("synchronous_commit", "on", "a commit is on disk before it returns");
        add("full_page_writes", "on", "a page torn by a power failure can be repaired");
        Self { name: "default".into(), lines, cautions: Vec::new() }
    }

    /// `durable`: what is committed survives whatever happens to the host, and the server does all that one in production
    /// does, in the measured window too.
    pub fn durable(host: HostResources) -> Self {
        let mut lines = memory(host);
        let wal = (host.disk / 10 / MIB).clamp(1024, 16 * 1024);
        for (name, value, reason) in [
            ("fsync", "on", "writes reach the disk before they are confirmed"),
            ("synchronous_commit", "on", "a commit is on disk before it returns"),
            ("full_page_writes", "on", "a page torn by a power failure is repaired from WAL"),
            ("wal_level", "replica", "allows standbys and base backups"),
            (
                "data_sync_retry",
                "off",
                "after a failed fsync the server recovers from WAL, because the kernel may have dropped the \
                pages",
            ),
            ("zero_damaged_pages", "off", "a damaged page raises an error instead of reading as empty"),
            (
                "checkpoint_timeout",
                "5min",
                "crash recovery takes minutes: runs contain checkpoints, as in production",
            ),
            ("checkpoint_completion_target", "0.9", "spreads a checkpoint's writes over its interval"),
            (
                "max_wal_size",
                &format!("{wal}MB"),
                "timed checkpoints; 16 GB or 10 % of the free space, whichever is less",
            ),
            ("min_wal_size", "1GB", "WAL files are recycled"),
            ("autovacuum", "on", "dead rows are removed during the load"),
            ("bgwriter_lru_maxpages", "100", "the background writer is active (PostgreSQL's default)"),
            ("log_checkpoints", "on", "the log shows what happened during a run"),
            ("huge_pages", "try", "huge pages if the kernel has them (PostgreSQL's default)"),
            ("random_page_cost", "1.1", "flash, not spinning disks"),
            ("jit", "off", "short queries gain nothing from JIT compilation"),
        ] {
            lines.push(Line::new(name, value, reason));
        }
        Self { name: "durable".into(), lines, cautions: Vec::new() }
    }

    /// `steady`: runs that repeat. Nothing but the load works in the run: no checkpoint, no vacuum, no background writes;
    /// and the processor is the limit, not the disk. After a crash of the host the data is lost.
    pub fn steady(host: HostResources, load: &ProfileLoad) -> Self {
        let mut cautions = Vec::new();
        let most_buffers = (host.memory / 5 * 2).max(128 * MIB);
        let wanted_buffers = load.database.map(|bytes| bytes.saturating_add(bytes / 4).max(GIB));
        let buffers = wanted_buffers.map_or(most_buffers, |wanted| wanted.min(most_buffers));
        if let Some(database) = load.database
            && database > buffers
        {
            cautions.push(format!(
                "the database ({} MB) does not fit into shared_buffers ({} MB, 40 % of RAM): reads from \
                outside it vary from run to run; use fewer warehouses or a host with more memory",
                database / MIB,
                buffers / MIB
            ));
        }
        let rate = load.wal_rate.unwrap_or(host.cpus as f64 * ESTIMATED_WAL_RATE_OF_A_CPU);
        let volume = rate * load.seconds * MARGIN;
        // A checkpoint begins when the log since the last one comes to max_wal_size / (1 + checkpoint_completion_target):
        // CalculateCheckpointSegments in PostgreSQL's xlog.c.
        let wanted = ((volume * (1.0 + COMPLETION)) as u64).max(GIB);
        let wal = wanted.min((host.disk / 2).max(GIB));
        if wal < wanted {
            let holds = wal as f64 / (1.0 + COMPLETION) / rate.max(1.0);
            cautions.push(format!(
                "the WAL of a run needs {} MB, and half of the free space is {} MB: a checkpoint starts in \
                 the run after about {holds:.0} s; make runs shorter or free disk space",
                wanted / MIB,
                wal / MIB
            ));
        }
        let kept = (volume as u64).clamp(GIB.min(wal), wal);
        let basis = match load.wal_rate {
            Some(rate) => format!("{:.1} MB/s measured", rate / 1e6),
            None => format!(
                "{:.0} MB/s estimated from {} CPUs (--for RUN uses a stored run's rate)",
                rate / 1e6,
                host.cpus
            ),
        };
        let huge = host.huge_pages > buffers + buffers / 20;
        // Over an hour whatever the run; the server takes a day at most.
        let timeout = (load.seconds * 2.0 / 60.0).ceil().clamp(60.0, 1440.0) as u64;

        let mut lines = Vec::new();
        let mut add = |name: &str, value: &str, reason: &str| lines.push(Line::new(name, value, reason));
        add(
            "shared_buffers",
            &megabytes(buffers),
            if load.database.is_some() {
                "database size plus 25 %, at most 40 % of RAM: it fits in shared buffers and in the page cache"
            } else {
                "40 % of RAM: a database of that size fits in shared buffers and in the page cache"
            },
        );
        add(
            "effective_cache_size",
            &megabytes(host.memory / 4 * 3),
            "75 % of RAM: what the planner may assume to be cached",
        );
        add(
            "huge_pages",
            if huge { "on" } else { "off" },
            if huge {
                "enough are reserved; with 'try', runs may differ"
            } else {
                "not enough are reserved; with 'try', runs may differ. Test it as a factor of a study"
            },
        );
        add(
            "max_wal_size",
            &megabytes(wal),
            &format!(
                "no checkpoint in the run: {basis} × {:.0} s × {MARGIN} × {:.1}, because a checkpoint starts \
                 at max_wal_size / (1 + checkpoint_completion_target); at most half of the free space",
                load.seconds,
                1.0 + COMPLETION
            ),
        );
        add(
            "min_wal_size",
            &megabytes(kept),
            "the WAL of a whole run: from the second run on, files are recycled, not created, in the window",
        );
        add(
            "checkpoint_timeout",
            &format!("{timeout}min"),
            "no timed checkpoint in the run, which starts after a checkpoint",
        );
        lines.extend(steady_work(host));
        Self { name: "steady".into(), lines, cautions }
    }

    /// A profile from the text of a file, in the form of `postgresql.conf`: `name = value` and comments. What it leaves
    /// out is at PostgreSQL's default. Errors have the line's number.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let lines = settings::parse(text).map_err(|error| error.context(name))?;
        Ok(Self { name: name.into(), lines, cautions: Vec::new() })
    }

    /// As a file that [`Profile::parse`] reads.
    pub fn text(&self) -> Result<String> {
        let mut text = String::new();
        for line in &self.lines {
            let reason: String = line.reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            if !reason.is_empty() {
                // A word before what could be taken for a mark of the section that this stands in.
                let mark = ["--- ", "Profile: ", "End of "].iter().any(|mark| reason.starts_with(mark));
                let _ = writeln!(text, "# {}{reason}", if mark { "note: " } else { "" });
            }
            let _ = writeln!(text, "{} = {}", line.name, settings::written(&line.value)?);
        }
        Ok(text)
    }
}

/// Sizes that follow the memory, as `default` and `durable` have them.
fn memory(host: HostResources) -> Vec<Line> {
    let shared = (host.memory / 4 / MIB).clamp(128, 8 * 1024);
    let cache = (host.memory / 4 * 3 / MIB).max(256);
    vec![
        Line::new(
            "shared_buffers",
            format!("{shared}MB"),
            "25 % of RAM, at most 8 GB; with the default of 128 MB the load measures the page cache",
        ),
        Line::new(
            "effective_cache_size",
            format!("{cache}MB"),
            "75 % of RAM: what the planner may assume to be cached",
        ),
    ]
}

/// In PostgreSQL's unit, which its settings read as 1,048,576 bytes.
fn megabytes(bytes: u64) -> String {
    format!("{}MB", (bytes / MIB).max(1))
}

/// What `steady` sets besides the sizes: nothing but the load works in the run.
fn steady_work(host: HostResources) -> Vec<Line> {
    let work_memory = megabytes((host.memory / 128).clamp(4 * MIB, 128 * MIB));
    let maintenance = megabytes((host.memory / 16).clamp(64 * MIB, GIB));
    let completion = COMPLETION.to_string();
    let settings = [
        (
            "checkpoint_completion_target",
            completion.as_str(),
            "spreads the writes of a checkpoint that occurs anyway",
        ),
        ("log_checkpoints", "on", "the log shows a checkpoint that occurs anyway"),
        ("autovacuum", "off", "no vacuum in the run: tables are vacuumed and analyzed before it"),
        (
            "log_autovacuum_min_duration",
            "0",
            "the log shows an autovacuum that occurs anyway, to prevent wraparound",
        ),
        ("bgwriter_lru_maxpages", "0", "no background writes in the run"),
        ("bgwriter_flush_after", "0", "no background flushes in the run"),
        ("fsync", "off", "the CPU is the limit, not the disk; a crash of the host loses the data"),
        ("synchronous_commit", "off", "commits do not wait for the WAL flush"),
        (
            "full_page_writes",
            "off",
            "useless without fsync; full-page images after each run's checkpoint would skew the window",
        ),
        (
            "max_parallel_workers_per_gather",
            "0",
            "a statement's speed does not depend on free parallel workers",
        ),
        ("work_mem", work_memory.as_str(), "the load's sorts do not spill to disk"),
        ("maintenance_work_mem", maintenance.as_str(), "speeds up index builds and vacuum between runs"),
        ("random_page_cost", "1.1", "all data is in memory or on flash"),
        (
            "cpu_tuple_cost",
            "0.03",
            "a higher cost per row favors plans that read few rows, regardless of what ANALYZE samples",
        ),
        ("jit", "off", "short queries gain nothing from JIT compilation"),
    ];
    settings.map(|(name, value, reason)| Line::new(name, value, reason)).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostResources = HostResources::EXAMPLE;

    fn value<'a>(profile: &'a Profile, name: &str) -> &'a str {
        &profile.lines.iter().find(|line| line.name == name).unwrap().value
    }

    fn megabytes(profile: &Profile, name: &str) -> u64 {
        value(profile, name).strip_suffix("MB").unwrap().parse().unwrap()
    }

    #[test]
    fn sizes_follow_the_host_within_their_limits() {
        let standard = Profile::standard(HOST);
        assert_eq!(value(&standard, "shared_buffers"), "4096MB");
        assert_eq!(value(&standard, "max_wal_size"), "4096MB");
        let small = Profile::standard(HostResources { memory: 256 << 20, disk: 1 << 30, ..HOST });
        assert_eq!(value(&small, "shared_buffers"), "128MB");
        assert_eq!(value(&small, "max_wal_size"), "1024MB");
        let large = Profile::standard(HostResources { memory: 1 << 42, ..HOST });
        assert_eq!(value(&large, "shared_buffers"), "8192MB");
        let durable = Profile::durable(HOST);
        for name in ["fsync", "synchronous_commit", "full_page_writes", "autovacuum"] {
            assert_eq!(value(&durable, name), "on");
        }
    }

    #[test]
    fn steady_holds_the_log_of_a_whole_run() {
        // The page that this is made after: 95 MB/s for 7 minutes, "40 GB".
        let load = ProfileLoad { wal_rate: Some(95e6), seconds: 420.0, database: Some(32 << 30) };
        let host = HostResources { memory: 74 << 30, ..HOST };
        let steady = Profile::steady(host, &load);
        let volume = 95.0 * 420.0 / 1.048_576;
        // A checkpoint begins at 1/1.9 of the limit: later than the run ends.
        assert!(megabytes(&steady, "max_wal_size") as f64 / 1.9 > volume * 1.2);
        assert!(megabytes(&steady, "min_wal_size") as f64 > volume);
        assert_eq!(
            megabytes(&steady, "shared_buffers"),
            74 * 1024 * 2 / 5,
            "not the 40 GB that would be wanted"
        );
        assert_eq!(steady.cautions.len(), 1, "{:?}", steady.cautions);
        assert!(steady.cautions[0].contains("does not fit"));
        assert_eq!(value(&steady, "checkpoint_timeout"), "60min");
        let reason = &steady.lines.iter().find(|line| line.name == "max_wal_size").unwrap().reason;
        assert!(reason.contains("95.0 MB/s measured × 420 s"), "{reason}");
    }

    #[test]
    fn steady_says_where_the_disk_is_too_small() {
        let load = ProfileLoad { wal_rate: Some(100e6), seconds: 1000.0, database: None };
        let steady = Profile::steady(HostResources { disk: 40 << 30, ..HOST }, &load);
        assert_eq!(megabytes(&steady, "max_wal_size"), 20 * 1024);
        assert!(steady.cautions[0].contains("after about 113 s"), "{:?}", steady.cautions);
        assert!(megabytes(&steady, "min_wal_size") <= 20 * 1024);
        // A host with next to nothing free still gets a server that starts.
        let tiny = Profile::steady(HostResources { disk: 0, memory: 0, ..HOST }, &ProfileLoad::default());
        assert_eq!(megabytes(&tiny, "max_wal_size"), 1024);
        assert_eq!(megabytes(&tiny, "min_wal_size"), 1024);
    }

    #[test]
    fn steady_takes_huge_pages_only_where_they_are_reserved() {
        let load = ProfileLoad { database: Some(4 << 30), ..ProfileLoad::default() };
        assert_eq!(value(&Profile::steady(HOST, &load), "huge_pages"), "off");
        let reserved = HostResources { huge_pages: 6 << 30, ..HOST };
        assert_eq!(value(&Profile::steady(reserved, &load), "huge_pages"), "on");
        assert_eq!(value(&Profile::steady(reserved, &load), "shared_buffers"), "5120MB");
    }

    #[test]
    fn every_profile_is_read_as_it_was_written_and_gives_its_reasons() {
        for profile in
            [Profile::standard(HOST), Profile::durable(HOST), Profile::steady(HOST, &ProfileLoad::default())]
        {
            let read = Profile::parse(&profile.name, &profile.text().unwrap()).unwrap();
            assert_eq!(read.lines, profile.lines);
            assert!(profile.lines.iter().all(|line| line.reason.len() > 10));
        }
        let error = Profile::parse("mine.conf", "fsync = on\nfsync = off\n").unwrap_err();
        assert!(error.message().starts_with("mine.conf: line 2: fsync is set twice"), "{error}");
    }
}
