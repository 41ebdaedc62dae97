//! Profiles of MySQL and MariaDB: what PostgreSQL's `default`, `durable` and `steady` mean there.

use crate::managed::{HostResources, Line, Profile, ProfileLoad};
use crate::mysql::Product;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Bytes of redo a second and CPU that are assumed of a load that was not measured.
const ESTIMATED_REDO_RATE_OF_A_CPU: f64 = 10e6;
/// By how much more than expected the redo log is sized.
const MARGIN: f64 = 1.25;
/// Share of the redo log that is filled before pages are flushed for its sake alone, without regard for the load
/// (innodb_adaptive_flushing_lwm can be no more).
const CALM_SHARE: f64 = 0.7;

/// The profile of this name; none when there is no such.
pub fn named(
    name: &str,
    product: Product,
    series: (u32, u32),
    host: HostResources,
    load: &ProfileLoad,
) -> Option<Profile> {
    let mut profile = Profile { name: name.into(), lines: Vec::new(), cautions: Vec::new() };
    let pool = (host.memory / 4 / MIB).clamp(128, 8 * 1024) * MIB;
    match name {
        "default" => {
            let redo = (host.disk / 10).clamp(256 * MIB, 2 * GIB);
            moderate(&mut profile.lines, pool);
            redo_log(
                &mut profile.lines,
                product,
                series,
                redo,
                "2 GB or 10 % of the free space, whichever is less: avoids furious flushing",
            );
            durable_commits(&mut profile.lines);
            add(
                &mut profile.lines,
                "skip_log_bin",
                "ON",
                "there is no replica; MySQL's default is to write a binary log",
            );
        }
        "durable" => {
            let redo = (host.disk / 10).clamp(256 * MIB, 8 * GIB);
            moderate(&mut profile.lines, pool);
            redo_log(
                &mut profile.lines,
                product,
                series,
                redo,
                "8 GB or 10 % of the free space, whichever is less",
            );
            durable_commits(&mut profile.lines);
            add(&mut profile.lines, "log_bin", "binlog", "allows replication and point-in-time recovery");
            add(&mut profile.lines, "server_id", "1", "required by the binary log");
            add(
                &mut profile.lines,
                "sync_binlog",
                "1",
                "syncs the binary log to disk before a commit returns",
            );
            add(&mut profile.lines, "binlog_format", "ROW", "the usual format for replication");
        }
        "steady" => steady(&mut profile, product, series, host, load),
        _ => return None,
    }
    Some(profile)
}

fn add(lines: &mut Vec<Line>, name: &str, value: &str, reason: &str) {
    lines.push(Line::new(name, value, reason));
}

fn megabytes(bytes: u64) -> String {
    format!("{}M", (bytes / MIB).max(1))
}

/// What `default` and `durable` share.
fn moderate(lines: &mut Vec<Line>, pool: u64) {
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
}

fn durable_commits(lines: &mut Vec<Line>) {
    add(lines, "innodb_flush_log_at_trx_commit", "1", "a commit is on disk before it returns");
    add(lines, "innodb_doublewrite", "ON", "a page torn by a power failure is repaired");
}

/// The size of the redo log, by the name that the version has for it.
fn redo_log(lines: &mut Vec<Line>, product: Product, series: (u32, u32), bytes: u64, reason: &str) {
    // 8.0.30 has the new name too, and earlier 8.0 has not; two files of half the size are the same log.
    if product == Product::Mysql && series >= (8, 1) {
        add(lines, "innodb_redo_log_capacity", &megabytes(bytes), reason);
    } else if product == Product::Mysql {
        add(lines, "innodb_log_file_size", &megabytes(bytes / 2), reason);
        add(lines, "innodb_log_files_in_group", "2", "two files, each half of the redo log");
    } else {
        add(lines, "innodb_log_file_size", &megabytes(bytes), reason);
    }
}

/// Runs that repeat: nothing but the load works in the run, and the processor is the limit. After a crash of the host the
/// data is lost.
fn steady(
    profile: &mut Profile,
    product: Product,
    series: (u32, u32),
    host: HostResources,
    load: &ProfileLoad,
) {
    let most = (host.memory / 5 * 2).max(128 * MIB);
    let wanted = load.database.map(|bytes| bytes.saturating_add(bytes / 4).max(GIB));
    let pool = wanted.map_or(most, |wanted| wanted.min(most));
    if let Some(database) = load.database
        && database > pool
    {
        profile.cautions.push(format!(
            "the database ({} MB) does not fit into innodb_buffer_pool_size ({} MB, 40 % of RAM): reads vary \
             from run to run; use fewer warehouses or a host with more memory",
            database / MIB,
            pool / MIB
        ));
    }
    let rate = load.wal_rate.unwrap_or(host.cpus as f64 * ESTIMATED_REDO_RATE_OF_A_CPU);
    let needed = ((rate * load.seconds * MARGIN / CALM_SHARE) as u64).max(GIB);
    // MariaDB before 10.9 and MySQL take 512 GB; the disk is what limits.
    let redo = needed.min((host.disk / 2).max(GIB)).min(512 * GIB - MIB);
    if redo < needed {
        let holds = redo as f64 * CALM_SHARE / rate.max(1.0);
        profile.cautions.push(format!(
            "the redo log of a run needs {} MB, and half of the free space is {} MB: furious flushing starts \
             after about {holds:.0} s; make runs shorter or free disk space",
            needed / MIB,
            redo / MIB
        ));
    }
    let basis = if load.wal_rate.is_some() {
        format!("{:.1} MB/s measured", rate / 1e6)
    } else {
        format!("{:.0} MB/s estimated from {} CPUs", rate / 1e6, host.cpus)
    };
    let lines = &mut profile.lines;
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
         that may fill before flushing starts; at most half of the free space",
        load.seconds
    );
    redo_log(lines, product, series, redo, &reason);
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
        named(name, product, series, host, load).unwrap()
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
        assert!(named("mine", Product::Mysql, (8, 0), HOST, &ProfileLoad::default()).is_none());
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
        assert_eq!(value(&small, "innodb_log_file_size"), "10240M");
        assert!(small.cautions[0].contains("after about 188 s"), "{:?}", small.cautions);
    }
}
