//! Sorts and temporary tables that do not fit into memory, and sessions that are opened repeatedly.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Sorts all rows, each with a text of 200 bytes.
const SORTS: &str = "select id, pad from h order by pad, id desc limit 8000;\n";
/// Counts all rows, grouped by values that differ in each.
const GROUPS: &str =
    "select count(*) from (select pad, id % 8000 as part, count(*) from h group by pad, part) as each_one;\n";

fn find<'a>(findings: &'a [Finding], id: &str) -> Option<&'a Finding> {
    findings.iter().find(|one| one.id == id)
}

#[test]
fn sorts_that_are_merged_from_files_are_named_with_and_without_performance_schema() {
    let words = ["--users", "2", "--ramp-up", "1s", "--duration", "4s"];
    for (schema, counted) in [("--performance-schema=OFF", false), ("--performance-schema=ON", true)] {
        let settings = ["--sort-buffer-size=32K", schema];
        let of_load = Load { settings: &settings, powers: 13, words: &words };
        let (evidence, findings) = load(&of_load, |_| {}, |_, place| Beside::script(place, SORTS));
        let found = find(&findings, "temporary-files").unwrap();
        assert_eq!(found.severity, Severity::Amber);
        assert!(
            found.next.contains("sort_buffer_size") && !found.next.contains("tmp_table_size"),
            "{found:#?}"
        );
        let lines = format!("{:?}", found.evidence);
        assert!(lines.contains("sort_buffer_size") && lines.contains("32 kB"), "{lines}");
        assert_eq!(lines.contains("ORDER BY `pad`"), counted, "{lines}");
        assert_eq!(found.effect.high().is_some_and(|high| high > 0.9), counted, "{:?}", found.effect);
        // If the server's host is known.
        if evidence.file_location("data").is_some() {
            let all = kelvin_diagnose::remedies(&evidence, &findings);
            let of_it = all.iter().find(|one| one.finding == found.id).unwrap();
            assert!(of_it.title.starts_with("sort_buffer_size = 512 kB"), "{all:#?}");
        }
    }
}

#[test]
fn temporary_tables_on_disk_are_named_with_their_statement_and_not_those_of_the_observer() {
    let words = ["--users", "2", "--ramp-up", "1s", "--duration", "4s"];
    let mut settings = vec!["--tmp-table-size=64K", "--max-heap-table-size=64K", "--performance-schema=ON"];
    // MySQL's other engine for temporary tables allocates a megabyte at a time.
    if !mysql_support::is_mariadb() {
        settings.push("--internal-tmp-mem-storage-engine=MEMORY");
    }
    let of_load = Load { settings: &settings, powers: 13, words: &words };
    let (evidence, findings) = load(&of_load, |_| {}, |_, place| Beside::script(place, GROUPS));
    let found = find(&findings, "temporary-files").unwrap();
    let lines = format!("{:?}", found.evidence);
    assert!(lines.contains("tmp_table_size") && lines.contains("GROUP BY `pad`"), "{lines}");
    assert!(found.next.contains("max_heap_table_size"), "{}", found.next);
    // On MariaDB, observation itself creates such tables.
    let (statements, _) = evidence.statements(0).unwrap();
    assert!(!statements.iter().any(|one| one.text.contains("PROCESSLIST")), "{statements:?}");
}

#[test]
fn sessions_that_are_opened_all_the_time_are_counted_and_the_thread_cache_is_named_where_it_has_none() {
    let words = ["--users", "2", "--ramp-up", "1s", "--duration", "4s"];
    for (settings, cached) in [(&["--thread-cache-size=0"][..], false), (&[], true)] {
        let (done, of_load) = (AtomicBool::new(false), Load { settings, powers: 13, words: &words });
        let server = start(&of_load, |_| {});
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Place::new();
        let (_, findings) = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    drop(MysqlEngine::new(server.unix()).connect().unwrap());
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
            let measure = || measure(&server, &place, Beside::script(&place, MANY_ROWS), &words);
            let measured = catch_unwind(AssertUnwindSafe(measure));
            // Otherwise the scope waits for the thread for ever.
            done.store(true, Ordering::Relaxed);
            measured.unwrap_or_else(|panic| resume_unwind(panic))
        });
        let found = find(&findings, "connection-storm").unwrap();
        assert_eq!(found.next.contains("raise thread_cache_size"), !cached, "{found:#?}");
        assert!(found.threshold.contains("MariaDB"), "{}", found.threshold);
    }
}
