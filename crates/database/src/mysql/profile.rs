//! Profiles of MySQL and MariaDB: what PostgreSQL's `default`, `durable` and `steady` mean there.

use crate::Result;
use crate::host_resources::HostResources;
use crate::mysql::{Product, settings};
use crate::profile::{Line, Profile, ProfileLoad, Profiles};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Bytes of redo a second and CPU that are assumed of a load that was not measured.
const ESTIMATED_REDO_RATE_OF_A_CPU: f64 = 10e6;
/// By how much more than expected the redo log is sized.
const MARGIN: f64 = 1.25;
/// Share of the redo log that is filled before pages are flushed for its sake alone, without regard for the load
/// (innodb_adaptive_flushing_lwm can be no more).
const CALM_SHARE: f64 = 0.7;
/// The largest redo log of `steady`: the server gives it all of its room on the disk when it starts, and may have to read all of
/// it after a crash.
const MOST_REDO: u64 = 64 * GIB;

/// MySQL's or MariaDB's profiles.
#[derive(Debug, Clone, Copy)]
pub struct MysqlProfiles {
    /// Which of the two.
    pub product: Product,
    /// Its series, such as (10, 11).
    pub series: (u32, u32),
}

impl Profiles for MysqlProfiles {
    fn built_in(&self, name: &str, host: HostResources, load: &ProfileLoad) -> Option<Profile> {
        match name {
            "default" => Some(self.standard(host)),
            "durable" => Some(self.durable(host)),
            "steady" => Some(self.steady(host, load)),
            _ => None,
        }
    }

    fn parse(&self, name: &str, text: &str) -> Result<Profile> {
        let lines = settings::parse(text).map_err(|error| error.context(name))?;
        Ok(Profile { name: name.into(), lines, cautions: Vec::new() })
    }
}

impl MysqlProfiles {
    /// `default`: moderate and durable, for a host that the server has to itself.
    pub(super) fn standard(&self, host: HostResources) -> Profile {
        let mut lines = moderate(host);
        let redo = (host.disk / 10).clamp(256 * MIB, 2 * GIB);
        let why = "2 GB or 10 % of the free space, whichever is less: avoids furious flushing";
        self.redo_log(&mut lines, redo, why);
        self.flash(&mut lines);
        durable_commits(&mut lines);
        add(
            &mut lines,
            "skip_log_bin",
            "ON",
            "there is no replica; MySQL's default is to write a binary log",
        );
        Profile { name: "default".into(), lines, cautions: Vec::new() }
    }

    /// `durable`: what is committed survives whatever happens to the host, and can be replicated.
    fn durable(&self, host: HostResources) -> Profile {
        let mut lines = moderate(host);
        let redo = (host.disk / 10).clamp(256 * MIB, 8 * GIB);
        self.redo_log(&mut lines, redo, "8 GB or 10 % of the free space, whichever is less");
        self.flash(&mut lines);
        durable_commits(&mut lines);
        add(&mut lines, "log_bin", "binlog", "allows replication and point-in-time recovery");
        add(&mut lines, "server_id", "1", "required by the binary log");
        add(&mut lines, "sync_binlog", "1", "syncs the binary log to disk before a commit returns");
        add(&mut lines, "binlog_format", "ROW", "the usual format for replication");
        Profile { name: "durable".into(), lines, cautions: Vec::new() }
    }

    /// What every profile has for flash, which is what servers have.
    fn flash(&self, lines: &mut Vec<Line>) {
        // Since 11.0 MariaDB's default is the same, and the setting is on its way out.
        if self.product == Product::Mysql || self.series < (11, 0) {
            let why = "avoids caching the data twice, in the page cache as well";
            add(lines, "innodb_flush_method", "O_DIRECT", why);
        }
        add(lines, "innodb_flush_neighbors", "0", "flash gains nothing from flushing neighbor pages");
        let why = "a global latch; MariaDB's default is off, MySQL 8.0's is on";
        add(lines, "innodb_adaptive_hash_index", "OFF", why);
    }

    /// The size of the redo log, by the name that the version has for it.
    fn redo_log(&self, lines: &mut Vec<Line>, bytes: u64, reason: &str) {
        // 8.0.30 has the new name too, and earlier 8.0 has not; two files of half the size are the same log.
        if self.product == Product::Mysql && self.series >= (8, 1) {
            add(lines, "innodb_redo_log_capacity", &megabytes(bytes), reason);
        } else if self.product == Product::Mysql {
            add(lines, "innodb_log_file_size", &megabytes(bytes / 2), reason);
            add(lines, "innodb_log_files_in_group", "2", "two files, each half of the redo log");
        } else {
            add(lines, "innodb_log_file_size", &megabytes(bytes), reason);
        }
    }

    /// Runs that repeat: nothing but the load works in the run, and the processor is the limit. After a crash of the host the
    /// data is lost.
    fn steady(&self, host: HostResources, load: &ProfileLoad) -> Profile {
        let mut cautions = Vec::new();
        let most = (host.memory / 5 * 2).max(128 * MIB);
        let wanted = load.database.map(|bytes| bytes.saturating_add(bytes / 4).max(GIB));
        let pool = in_chunks(wanted.map_or(most, |wanted| wanted.min(most)));
        if let Some(database) = load.database
            && database > pool
        {
            cautions.push(format!(
                "the database ({} MB) does not fit into innodb_buffer_pool_size ({} MB, 40 % of RAM): reads vary \
                 from run to run; use fewer warehouses or a host with more memory",
                database / MIB,
                pool / MIB
            ));
        }
        let rate = load.wal_rate.unwrap_or(host.cpus as f64 * ESTIMATED_REDO_RATE_OF_A_CPU);
        let needed = ((rate * load.seconds * MARGIN / CALM_SHARE) as u64).max(GIB);
        // The rest of the disk is for the data, their snapshots and other servers'.
        let room = (host.disk / 4).max(GIB);
        let redo = needed.min(room).min(MOST_REDO);
        if redo < needed {
            let holds = redo as f64 * CALM_SHARE / rate.max(1.0);
            let (limit, help) = if room < MOST_REDO {
                ("a quarter of the free space", "make runs shorter or free disk space")
            } else {
                ("the maximum of this profile", "make runs shorter")
            };
            cautions.push(format!(
                "the redo log of a run needs {} MB, and {limit} is {} MB: furious flushing starts \
                 after about {holds:.0} s; {help}",
                needed / MIB,
                redo / MIB
            ));
        }
        let basis = if load.wal_rate.is_some() {
            format!("{:.1} MB/s measured", rate / 1e6)
        } else {
            format!(
                "{:.0} MB/s estimated from {} CPUs (--for RUN uses a stored run's rate)",
                rate / 1e6,
                host.cpus
            )
        };
        let mut all = Vec::new();
        let lines = &mut all;
        add(
            lines,
            "innodb_buffer_pool_size",
            &megabytes(pool),
            if load.database.is_some() {
                "the size of the database plus 25 %, at most 40 % of RAM: the load does not read from disk"
            } else {
                "40 % of RAM: a database of that size is read from memory only"
            },
        );
        let reason = format!(
            "no furious flushing in the run: {basis} x {:.0} s x {MARGIN} / {CALM_SHARE}, the share of the log \
             that may fill before flushing starts; at most {} GB and a quarter of the free space",
            load.seconds,
            MOST_REDO / GIB
        );
        self.redo_log(lines, redo, &reason);
        self.flash(lines);
        add(
            lines,
            "innodb_adaptive_flushing_lwm",
            "70",
            "no adaptive flushing until 70 % of the redo log is full",
        );
        add(lines, "innodb_max_dirty_pages_pct", "90", "a high share of dirty pages does not start flushing");
        add(lines, "innodb_max_dirty_pages_pct_lwm", "0", "no flushing in advance");
        add(lines, "innodb_io_capacity", "2000", "keeps the remaining flushing even");
        add(lines, "innodb_io_capacity_max", "4000", "bursts of at most twice that rate");
        add(
            lines,
            "innodb_flush_log_at_trx_commit",
            "0",
            "commits do not wait for the redo log, which is flushed once a second; a crash loses the last second",
        );
        add(
            lines,
            "innodb_doublewrite",
            "OFF",
            "pages are written once; a power failure can tear a page and lose the data",
        );
        add(lines, "skip_log_bin", "ON", "no binary log is written and synced");
        add(
            lines,
            "innodb_stats_auto_recalc",
            "OFF",
            "statistics are not recalculated in the run: plans stay the same",
        );
        add(lines, "innodb_buffer_pool_dump_at_shutdown", "OFF", "every start is equally cold");
        add(lines, "innodb_buffer_pool_load_at_startup", "OFF", "every start is equally cold");
        Profile { name: "steady".into(), lines: all, cautions }
    }
}

fn add(lines: &mut Vec<Line>, name: &str, value: &str, reason: &str) {
    lines.push(Line::new(name, value, reason));
}

/// A size of the buffer pool that the server takes as it is: it rounds others up to a multiple of `innodb_buffer_pool_chunk_size`.
fn in_chunks(bytes: u64) -> u64 {
    (bytes / (128 * MIB)).max(1) * 128 * MIB
}

fn megabytes(bytes: u64) -> String {
    format!("{}M", (bytes / MIB).max(1))
}

/// What `default` and `durable` share.
fn moderate(host: HostResources) -> Vec<Line> {
    let pool = in_chunks((host.memory / 4 / MIB).clamp(128, 8 * 1024) * MIB);
    let mut all = Vec::new();
    let lines = &mut all;
    add(
        lines,
        "innodb_buffer_pool_size",
        &megabytes(pool),
        "25 % of RAM, at most 8 GB; with the default of 128 MB the load measures reads",
    );
    add(
        lines,
        "innodb_io_capacity",
        "2000",
        "background writes, in pages per second: for flash, not the 200 of a spinning disk",
    );
    add(lines, "innodb_io_capacity_max", "4000", "the limit when the redo log fills up");
    all
}

fn durable_commits(lines: &mut Vec<Line>) {
    add(lines, "innodb_flush_log_at_trx_commit", "1", "a commit is on disk before it returns");
    add(lines, "innodb_doublewrite", "ON", "a page torn by a power failure is repaired");
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostResources = HostResources { statements: false, ..HostResources::EXAMPLE };

    fn value<'a>(profile: &'a Profile, name: &str) -> &'a str {
        &profile.lines.iter().find(|line| line.name == name).unwrap().value
    }

    fn of(
        name: &str,
        product: Product,
        series: (u32, u32),
        host: HostResources,
        load: &ProfileLoad,
    ) -> Profile {
        MysqlProfiles { product, series }.built_in(name, host, load).unwrap()
    }

    #[test]
    fn every_setting_has_its_reason_and_stands_once() {
        for name in ["default", "durable", "steady"] {
            for (product, series) in
                [(Product::Mariadb, (10, 11)), (Product::Mysql, (8, 0)), (Product::Mysql, (8, 4))]
            {
                let profile = of(name, product, series, HOST, &ProfileLoad::default());
                let mut names: Vec<&str> = profile.lines.iter().map(|line| line.name.as_str()).collect();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), profile.lines.len());
                assert!(profile.lines.iter().all(|line| line.reason.len() > 5));
            }
        }
        let mysql = MysqlProfiles { product: Product::Mysql, series: (8, 0) };
        assert!(mysql.built_in("mine", HOST, &ProfileLoad::default()).is_none());
        let mine = mysql.parse("mine.cnf", "sync_binlog = 1\nsync-binlog = 0").unwrap_err();
        assert!(mine.message().starts_with("mine.cnf: line 2: sync_binlog is set twice"), "{mine}");
        let default = of("default", Product::Mariadb, (10, 11), HOST, &ProfileLoad::default());
        assert_eq!(value(&default, "innodb_flush_log_at_trx_commit"), "1");
        assert_eq!(value(&default, "innodb_log_file_size"), "2048M");
        let new = of("default", Product::Mysql, (8, 4), HOST, &ProfileLoad::default());
        assert_eq!(value(&new, "innodb_redo_log_capacity"), "2048M");
        assert_eq!(
            value(&of("durable", Product::Mysql, (8, 0), HOST, &ProfileLoad::default()), "sync_binlog"),
            "1"
        );
    }

    #[test]
    fn the_redo_log_of_steady_holds_a_whole_run_before_pages_are_flushed_for_it() {
        let load = ProfileLoad { wal_rate: Some(40e6), seconds: 600.0, database: Some(4 << 30) };
        let steady = of("steady", Product::Mariadb, (10, 11), HOST, &load);
        let redo: f64 = value(&steady, "innodb_log_file_size").strip_suffix('M').unwrap().parse().unwrap();
        assert!(redo * 1_048_576.0 * 0.7 > 40e6 * 600.0 * 1.2, "{redo}");
        assert_eq!(value(&steady, "innodb_buffer_pool_size"), "5120M");
        assert!(steady.cautions.is_empty());
        let small = of("steady", Product::Mariadb, (10, 11), HostResources { disk: 20 << 30, ..HOST }, &load);
        assert_eq!(value(&small, "innodb_log_file_size"), "5120M");
        assert!(small.cautions[0].contains("a quarter of the free space is 5120 MB"), "{:?}", small.cautions);
        assert!(small.cautions[0].contains("after about 94 s"), "{:?}", small.cautions);
        // Many CPUs and no measured rate: the estimate does not take whatever the disk has.
        let many = HostResources { cpus: 128, disk: 8 << 40, ..HOST };
        let estimated = of("steady", Product::Mariadb, (10, 11), many, &ProfileLoad::default());
        assert_eq!(value(&estimated, "innodb_log_file_size"), "65536M");
        assert!(estimated.cautions[0].contains("the maximum of this profile"), "{:?}", estimated.cautions);
    }
}
