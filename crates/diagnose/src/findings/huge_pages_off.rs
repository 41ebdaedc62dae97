//! Do large shared buffers use huge pages?

use super::{FindingDefinition, setting};
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};
use kelvin_measure::text;
use kelvin_observe::metric;

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "huge-pages-off", question: "Do large shared buffers use huge pages?", find };

/// Buffers from which it matters.
const LARGE: f64 = 8.0 * 1_073_741_824.0;
/// Shared memory in relation to the buffers: 16 GB need about 8400 pages of 2 MB and not 8192 (FIELD 2).
const BESIDE: f64 = 1.03;
/// Default size of a huge page.
const PAGE: f64 = 2_097_152.0;

/// Whether the server has them: none if unknown.
fn in_use(evidence: &Evidence, pages: f64) -> Option<bool> {
    match (
        setting::setting_value(evidence, "huge_pages_status"),
        setting::setting_value(evidence, "huge_pages")?,
    ) {
        (Some("on"), _) | (_, "on") => Some(true),
        (Some("off"), _) | (_, "off") => Some(false),
        // "try": by the kernel's count of used pages, on this host.
        _ => {
            evidence.file_location("data")?;
            let total = evidence.newest(metric::HUGE_PAGES_TOTAL)?;
            let taken = total - evidence.newest(metric::HUGE_PAGES_FREE)?
                + evidence.newest(metric::HUGE_PAGES_RESERVED).unwrap_or(0.0);
            Some(taken >= pages / 2.0)
        }
    }
}

const MISSES: &str = "reads that missed the TLB, of data in pages of any size";

/// Reads that missed the TLB, of the server where it was counted by itself, otherwise of the host: per second, and per transaction.
fn misses(evidence: &Evidence) -> Option<String> {
    let point = evidence.points().next()?;
    let names = [("the server", metric::SERVER_TLB_MISSES), ("the host", metric::TLB_MISSES)];
    let (whose, each) =
        names.iter().find_map(|(whose, name)| Some((whose, evidence.mean(point.point, name)?)))?;
    let seconds = point.throughput();
    let done = seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
    let by_transaction =
        if done > 0.0 { format!(", {} per transaction", text::rounded(each / done)) } else { String::new() };
    Some(format!("{} per second by {whose}{by_transaction}", text::rounded(each)))
}

fn find(evidence: &Evidence) -> Vec<Finding> {
    of_server(evidence)
        .or_else(|| of_mysql(evidence))
        .or_else(|| of_sqlserver(evidence))
        .into_iter()
        .collect()
}

/// SQL Server's memory by its own view; its buffer pool is in large pages in one of its three memory models only. In Azure's
/// services the model is not the user's to choose, and of the kernel's transparent huge pages on Linux it says nothing.
fn of_sqlserver(evidence: &Evidence) -> Option<Finding> {
    let model = evidence.setting("sql_memory_model_desc").filter(|model| *model != "LARGE_PAGES")?;
    let used = 1024.0 * evidence.newest(metric::SERVER_MEMORY)?;
    let platform = evidence.setting("platform");
    if used < LARGE || platform == Some("Azure") {
        return None;
    }
    let linux = platform == Some("Linux");
    let mut facts = vec![
        EvidenceLine::new("memory that the server uses", text::memory(used)),
        EvidenceLine::new("sql_memory_model_desc", model),
    ];
    let large = evidence.setting_number("large_page_allocations");
    facts.extend(large.map(|large| EvidenceLine::new("of it in large pages", text::memory(large))));
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Note,
        point: None,
        title: if linux {
            format!("The server uses {}, and only transparent huge pages could hold it", text::memory(used))
        } else {
            format!("The buffer pool does not use large pages; the server uses {}", text::memory(used))
        },
        evidence: facts,
        effect: Effect::unknown("no study of SQL Server was found"),
        below_precision: false,
        threshold: "8 GB or more of memory, and another memory model than LARGE_PAGES".into(),
        next: if linux {
            "Check /sys/kernel/mm/transparent_hugepage/enabled on the server's host: Microsoft recommends to leave transparent huge \
            pages enabled. No view of the server shows how much of its memory is in them."
        } else {
            "On Windows, Enterprise edition: grant the server's account \"lock pages in memory\", set the startup trace flag 834, \
            and compare. Microsoft advises against the flag with columnstore indexes; with it, memory is allocated when the server \
            starts."
        }
        .into(),
    })
}

/// Of MySQL and MariaDB on this host. With "always" the kernel gives the buffer pool huge pages of its own accord.
fn of_mysql(evidence: &Evidence) -> Option<Finding> {
    let pool = evidence.setting_number("innodb_buffer_pool_size").filter(|pool| *pool >= LARGE)?;
    evidence.file_location("data")?;
    let transparent = evidence.context.environment("/client_host/memory/transparent_huge_pages")?.as_str()?;
    if setting::setting_value(evidence, "large_pages")? != "off" || transparent == "always" {
        return None;
    }
    let page = evidence.newest(metric::HUGE_PAGE_SIZE).filter(|size| *size > 0.0).unwrap_or(PAGE);
    let pages = (pool * BESIDE / page).ceil();
    let mut facts = vec![
        EvidenceLine::new("innodb_buffer_pool_size", text::memory(pool)),
        EvidenceLine::new("large_pages", "off"),
        EvidenceLine::new("transparent huge pages of the host", transparent),
    ];
    facts.extend(misses(evidence).map(|misses| EvidenceLine::new(MISSES, misses)));
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Note,
        point: None,
        title: format!("{} of buffer pool do not use huge pages", text::memory(pool)),
        evidence: facts,
        effect: Effect::unknown("no study of MySQL and MariaDB was found"),
        below_precision: false,
        threshold: "innodb_buffer_pool_size of 8 GB or more with large_pages off, on a host that does not always use transparent huge pages"
            .into(),
        next: format!(
            "Run `sysctl vm.nr_hugepages={pages:.0}` (innodb_buffer_pool_size × 1.03), set large_pages = on, \
            allow the server to lock that much memory (LimitMEMLOCK, vm.hugetlb_shm_group) and restart it: \
            it falls back to small pages with a warning in its error log."
        ),
    })
}

fn of_server(evidence: &Evidence) -> Option<Finding> {
    let buffers = evidence.setting_number("shared_buffers").filter(|buffers| *buffers >= LARGE)?;
    let here = evidence.file_location("data").is_some();
    let page = evidence.newest(metric::HUGE_PAGE_SIZE).filter(|size| here && *size > 0.0).unwrap_or(PAGE);
    // The server's own value (15 and later) is exact.
    let stated = evidence.setting_number("shared_memory_size_in_huge_pages").filter(|pages| *pages > 0.0);
    let pages = stated.unwrap_or((buffers * BESIDE / page).ceil());
    if in_use(evidence, pages)? {
        return None;
    }
    let mut facts = vec![
        EvidenceLine::new("shared_buffers", text::memory(buffers)),
        EvidenceLine::new("huge_pages", setting::setting_value(evidence, "huge_pages").unwrap_or("unknown")),
    ];
    if here && let Some(total) = evidence.newest(metric::HUGE_PAGES_TOTAL) {
        facts.push(EvidenceLine::new(
            "huge pages allocated on the host",
            format!("{} of {}", text::rounded(total), text::memory(page)),
        ));
    }
    if here && let Some(tables) = evidence.newest(metric::PAGE_TABLES) {
        facts.push(EvidenceLine::new("page tables", text::memory(tables)));
    }
    if here && let Some(misses) = misses(evidence) {
        facts.push(EvidenceLine::new(MISSES, misses));
    }
    let from = if stated.is_some() { "shared_memory_size_in_huge_pages" } else { "shared_buffers × 1.03" };
    facts.push(EvidenceLine::new("huge pages needed", format!("{} ({from})", text::rounded(pages))));
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: None,
        title: format!("{} of shared buffers do not use huge pages", text::memory(buffers)),
        evidence: facts,
        effect: Effect::unknown(
            "no counter distinguishes TLB misses by page size; other studies found 4 to 7.5 % of the throughput",
        ),
        below_precision: false,
        threshold: "shared_buffers of 8 GB or more without huge pages; in other studies, huge pages \
            increased throughput by 4 to 7 % with TPROC-C and by 7.5 % with pgbench"
            .into(),
        next: format!(
            "Run `sysctl vm.nr_hugepages={pages:.0}`, set huge_pages = on (the server then refuses to start \
            without them; \"try\" falls back silently) and restart the server."
        ),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::staged::Staged;
    use super::*;

    const GB16: &str = "17179869184";

    fn found(staged: Staged) -> Option<Finding> {
        of_server(&staged.done())
    }

    #[test]
    fn large_buffers_in_small_pages_are_amber_with_the_number() {
        let one = found(Staged::new().setting("shared_buffers", GB16).setting("huge_pages", "off")).unwrap();
        assert_eq!(one.severity, Severity::Amber);
        assert!(one.next.contains("vm.nr_hugepages=8438"), "{}", one.next);
        let stated = Staged::new()
            .setting("shared_buffers", GB16)
            .setting("huge_pages", "off")
            .setting("shared_memory_size_in_huge_pages", "8401");
        assert!(found(stated).unwrap().next.contains("nr_hugepages=8401"));
        let counted = Staged::new()
            .setting("shared_buffers", GB16)
            .setting("huge_pages", "off")
            .place("data", "vda")
            .metric("host.hardware.dtlb_misses", 5e6);
        let facts = found(counted).unwrap().evidence;
        let misses = facts.iter().find(|line| line.what.contains("TLB")).unwrap();
        assert!(misses.found.contains("per second by the host, 5"), "{misses:?}");
    }

    #[test]
    fn a_large_buffer_pool_in_small_pages_is_a_note_unless_the_kernel_always_gives_it_huge_ones() {
        let found = |pool: &str, large: &str, transparent: &str| {
            let environment = json!({ "engine": "mysql", "client_host": { "memory": { "transparent_huge_pages": transparent } } });
            let staged = Staged::new().environment(environment).place("data", "vda");
            find(&staged.setting("innodb_buffer_pool_size", pool).setting("large_pages", large).done())
        };
        let one = found(GB16, "off", "madvise").remove(0);
        assert_eq!(one.severity, Severity::Note);
        assert!(one.next.contains("vm.nr_hugepages=8438"), "{}", one.next);
        assert!(found(GB16, "off", "always").is_empty() && found(GB16, "on", "never").is_empty());
        assert!(found("134217728", "off", "never").is_empty());
    }

    #[test]
    fn with_try_the_kernels_counters_decide() {
        let tries = |total: f64, free: f64| {
            Staged::new()
                .setting("shared_buffers", GB16)
                .setting("huge_pages", "try")
                .place("data", "vda")
                .metric("host.memory.huge_pages.total", total)
                .metric("host.memory.huge_pages.free", free)
                .metric("host.memory.huge_pages.reserved", 0.0)
                .metric("host.memory.huge_pages.size", 2_097_152.0)
        };
        assert!(found(tries(0.0, 0.0)).is_some());
        assert!(found(tries(9000.0, 500.0)).is_none());
        assert!(found(tries(0.0, 0.0).setting("huge_pages_status", "on")).is_none());
    }

    #[test]
    fn a_buffer_pool_of_sql_server_in_small_pages_is_a_note() {
        let note = |model: &str, kilobytes: f64| {
            let staged = Staged::new().setting("sql_memory_model_desc", model);
            find(&staged.metric("sqlserver.memory.server", kilobytes).done()).pop().map(|one| one.severity)
        };
        assert_eq!(note("LOCK_PAGES", 5e7), Some(Severity::Note));
        assert_eq!(note("CONVENTIONAL", 5e6), None);
        assert_eq!(note("LARGE_PAGES", 5e7), None);
        let advice = |platform: &str| {
            let staged = Staged::new().setting("sql_memory_model_desc", "CONVENTIONAL");
            let staged = staged.setting("platform", platform).metric("sqlserver.memory.server", 5e7);
            find(&staged.done()).pop().map(|one| one.next)
        };
        assert!(advice("Windows").unwrap().contains("834"));
        let linux = advice("Linux").unwrap();
        assert!(linux.contains("transparent") && !linux.contains("834"), "{linux}");
        assert_eq!(advice("Azure"), None);
    }

    #[test]
    fn small_buffers_huge_pages_and_the_unknown_are_nothing() {
        assert!(
            found(Staged::new().setting("shared_buffers", "134217728").setting("huge_pages", "off"))
                .is_none()
        );
        assert!(found(Staged::new().setting("shared_buffers", GB16).setting("huge_pages", "on")).is_none());
        assert!(found(Staged::new().setting("shared_buffers", GB16).setting("huge_pages", "try")).is_none());
        assert!(found(Staged::new()).is_none());
    }
}
