use kelvin_measure::observation::{CaptureTime, Relation, TableWrites};

use super::*;
use crate::findings::staged::{Staged, index, statement, table};
use crate::{EvidenceLine, Severity, findings_for};

fn titles(evidence: &Evidence) -> Vec<String> {
    remedies(evidence, &findings_for(evidence)).into_iter().map(|one| one.title).collect()
}

/// Three quarters of the time in a scan of customer, a quarter in lookups.
fn scanned() -> Staged {
    let mut scan = statement(1, 750.0, 100, "a", &[("Seq Scan", "customer")]);
    scan.text =
        "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first".into();
    Staged::new().statements(vec![scan, statement(2, 250.0, 9000, "b", &[])]).relations(
        CaptureTime::Before,
        vec![table("public.customer", 120_000, 0)],
        1 << 30,
    )
}

#[test]
fn a_statement_that_reads_a_whole_table_asks_for_an_index_with_its_share_as_bound() {
    let evidence = scanned().done();
    let all = remedies(&evidence, &findings_for(&evidence));
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!(all[0].title, "index on public.customer (c_w_id, c_d_id, c_last)");
    let Change::Statements { apply, undo, control } = &all[0].change else { panic!("{:?}", all[0].change) };
    assert_eq!(
        apply,
        &[
            "CREATE INDEX IF NOT EXISTS \"kelvin_advice_customer_c_w_id_c_d_id_c_last_0c5aa80b\" ON \"public\".\"customer\" \
             (\"c_w_id\", \"c_d_id\", \"c_last\")",
            "ANALYZE \"public\".\"customer\"",
        ]
    );
    assert_eq!(
        undo,
        &["DROP INDEX IF EXISTS \"public\".\"kelvin_advice_customer_c_w_id_c_d_id_c_last_0c5aa80b\""]
    );
    assert_eq!(control, &apply[1..], "a comparison shows the index, not ANALYZE");
    // Three quarters of the time can make four times the throughput.
    assert!((all[0].gain().unwrap() - 3.0).abs() < 1e-9 && all[0].is_allowed());
}

#[test]
fn a_small_table_needs_none() {
    let small = vec![table("public.customer", 500, 0)];
    assert!(titles(&scanned().relations(CaptureTime::Before, small, 1).done()).is_empty());
}

#[test]
fn an_index_that_is_there_and_is_not_used_is_not_made_again() {
    let with = |columns: &str| {
        let definition = Some(format!("CREATE INDEX i ON public.customer USING btree ({columns})"));
        let there = Relation { definition, ..index("public.i", "public.customer") };
        let relations = vec![table("public.customer", 120_000, 0), there];
        titles(&scanned().relations(CaptureTime::Before, relations, 1 << 30).done()).len()
    };
    assert_eq!(with("c_w_id, c_d_id DESC, c_last, c_first"), 0);
    assert_eq!(with("c_w_id, c_d_id"), 1);
    assert_eq!(with("c_w_id, c_d_id, c_last) WHERE (c_id > 1"), 1);
}

#[test]
fn the_bound_of_an_index_is_that_of_the_point_with_the_largest_share() {
    let mut scan = statement(1, 250.0, 100, "a", &[("Seq Scan", "customer"), ("Seq Scan", "customer")]);
    scan.text = "SELECT c_id FROM customer WHERE c_w_id = $1".into();
    let evidence = scanned().statements(vec![scan, statement(2, 750.0, 9000, "b", &[])]).done();
    let all = remedies(&evidence, &[]);
    assert!((all[0].effect.high().unwrap() - 0.25).abs() < 1e-9, "{all:#?}");
}

#[test]
fn an_index_of_the_earlier_run_is_made_again() {
    let with = |index: Option<Relation>| {
        let relations = [vec![table("public.customer", 120_000, 0)], index.into_iter().collect()].concat();
        Staged::new().relations(CaptureTime::Before, relations, 1 << 30)
    };
    let definition =
        Some("CREATE INDEX customer_name ON public.customer USING btree (c_w_id, c_last)".into());
    let there = Relation { definition, ..index("public.customer_name", "public.customer") };
    let now = with(None).earlier(with(Some(there.clone())).done()).done();
    let all = remedies(&now, &[]);
    assert_eq!(all[0].title, "index public.customer_name again");
    let Change::Statements { apply, .. } = &all[0].change else { panic!() };
    assert_eq!(
        apply,
        &["CREATE INDEX IF NOT EXISTS customer_name ON public.customer USING btree (c_w_id, c_last)"]
    );
    assert!(remedies(&with(Some(there.clone())).earlier(with(Some(there)).done()).done(), &[]).is_empty());
}

#[test]
fn a_duplicate_that_could_not_be_made_again_stays_and_the_others_are_dropped() {
    let of = |inserted: u64| {
        let writes = Some(TableWrites { inserted, updated: 0, updated_in_page: 0, fillfactor: 100 });
        let stock = Relation { writes, ..table("public.stock", 100_000, 0) };
        let each = [("a", "CREATE"), ("b", "CREATE"), ("c", "MAKE"), ("d", "CREATE")].map(|(name, begin)| {
            Relation {
                definition: Some(format!("{begin} INDEX {name} ON public.stock USING btree (s_i_id)")),
                enforces: Some(false),
                index_scans: Some(1),
                ..index(&format!("public.{name}"), "public.stock")
            }
        });
        std::iter::once(stock).chain(each).collect::<Vec<_>>()
    };
    let evidence = Staged::new()
        .sessions(&[("client backend", "CPU", "", 4.0)], &[])
        .relations(CaptureTime::Before, of(500), 1 << 30)
        .relations(CaptureTime::After, of(5500), 1 << 30)
        .done();
    let all = remedies(&evidence, &[]);
    let twins = all.iter().find(|one| one.finding == "duplicate-index").unwrap();
    assert_eq!(twins.title, "drop 2 duplicate indexes: public.b, public.d");
    let Change::Statements { apply, undo, .. } = &twins.change else { panic!("{:?}", twins.change) };
    assert_eq!((apply.len(), undo.len()), (2, 2));
    assert_eq!(undo[1], "CREATE INDEX IF NOT EXISTS d ON public.stock USING btree (s_i_id)");
}

/// As MariaDB's watcher has them: a table with its key, an index that is there twice, and one that is never used.
fn of_mysql(version: &str) -> Staged {
    let of = |inserted: u64| {
        let writes = Some(TableWrites { inserted, updated: 9000, updated_in_page: 9000, fillfactor: 100 });
        let stock = Relation { writes, ..table("k.stock", 100_000, 0) };
        let indexes = [("PRIMARY", "PRIMARY KEY", "`id`", 7), ("a", "INDEX `a`", "`i`, `p`(10)", 7)];
        let more = [("b", "INDEX `b`", "`i`, `p`(10)", 0), ("c", "INDEX `c`", "`s` DESC", 0)];
        let each = indexes.into_iter().chain(more).map(|(name, what, columns, uses)| Relation {
            definition: Some(format!("ALTER TABLE `k`.`stock` ADD {what} USING btree ({columns})")),
            enforces: Some(name == "PRIMARY"),
            index_scans: Some(if inserted > 500 { uses } else { 0 }),
            ..index(&format!("k.stock.{name}"), "k.stock")
        });
        std::iter::once(stock).chain(each).collect::<Vec<_>>()
    };
    Staged::new()
        .environment(serde_json::json!({ "engine": "mysql" }))
        .setting("version", version)
        .sessions(&[("client backend", "CPU", "", 4.0)], &[])
        .relations(CaptureTime::Before, of(500), 1 << 30)
        .relations(CaptureTime::After, of(5500), 1 << 30)
}

#[test]
fn indexes_of_mariadb_are_dropped_and_made_again_in_its_language_and_mysqls_are_listed() {
    let evidence = of_mysql("10.11.19-MariaDB").done();
    let all = remedies(&evidence, &[]);
    let twin = all.iter().find(|one| one.finding == "duplicate-index").unwrap();
    let Change::Statements { apply, undo, .. } = &twin.change else { panic!("{twin:?}") };
    assert_eq!(apply, &["DROP INDEX IF EXISTS `b` ON `k`.`stock`"]);
    assert_eq!(undo, &["ALTER TABLE `k`.`stock` ADD INDEX IF NOT EXISTS `b` USING btree (`i`, `p`(10))"]);
    // Rows and the entries of three indexes: those of the primary key are the rows.
    assert!((twin.effect.high().unwrap() - 0.25).abs() < 0.03, "{twin:?}");
    assert!(twin.reason.contains("0 rows found through it"), "{}", twin.reason);
    assert!(all.iter().any(|one| one.title == "drop the index k.stock.c"), "{all:?}");
    let all = remedies(&of_mysql("8.0.31").done(), &[]);
    let listed = all.iter().find(|one| one.finding == "duplicate-index").unwrap();
    let Change::Manual { how } = &listed.change else { panic!("{listed:?}") };
    assert!(how.starts_with("DROP INDEX `b` ON `k`.`stock`;") && !how.contains("EXISTS"), "{how}");
}

#[test]
fn an_index_of_mariadb_that_is_there_is_not_advised_again() {
    let advised = |condition: &str| {
        let mut scan = statement(1, 750.0, 100, "a", &[("ALL", "stock")]);
        scan.text = format!("SELECT `x` FROM `stock` WHERE {condition}");
        let all = remedies(&of_mysql("10.11.19-MariaDB").statements(vec![scan]).done(), &[]);
        all.into_iter()
            .filter(|one| one.finding == "scan-without-index")
            .map(|one| one.title)
            .collect::<Vec<_>>()
    };
    assert_eq!(advised("`i` = ? AND `p` = ?"), [""; 0]);
    assert_eq!(advised("`s` > ?"), [""; 0]);
    assert_eq!(advised("`p` = ?"), ["index on k.stock (p)"]);
}

#[test]
fn waits_for_the_log_bound_what_relaxes_it_and_the_rules_forbid_that() {
    let groups = [
        ("client backend", "IO", "WALSync", 2.0),
        ("client backend", "LWLock", "WALWrite", 2.0),
        ("client backend", "CPU", "", 4.0),
    ];
    let staged = |compression: &str| {
        Staged::new()
            .sessions(&groups, &[])
            .setting("synchronous_commit", "on")
            .setting("wal_compression", compression)
            .metric("postgres.wal.full_page_images", 100.0)
            .metric("postgres.wal.records", 1000.0)
            .done()
    };
    let evidence = staged("off");
    let all = remedies(&evidence, &[]);
    let seen: Vec<_> = all.iter().map(|one| (one.title.as_str(), one.is_allowed())).collect();
    assert_eq!(
        seen,
        [("wal_compression = on (now off)", true), ("synchronous_commit = off (now on)", false)]
    );
    assert!(all.iter().all(|one| (one.gain().unwrap() - 1.0).abs() < 0.01), "{all:?}");
    assert_eq!(titles(&staged("lz4")).len(), 1, "compressed already");
}

/// A finding whose remedy has this share as its bound.
fn red(id: &'static str, share: f64) -> Finding {
    Finding {
        id,
        severity: Severity::Red,
        point: Some(0),
        title: "Sorts spilled".into(),
        evidence: Vec::<EvidenceLine>::new(),
        effect: Effect::up_to(share, EffectBasis::StatementTime),
        below_precision: false,
        threshold: String::new(),
        next: String::new(),
    }
}

#[test]
fn bounds_beyond_the_largest_rank_as_equal_findings_first_and_forbidden_changes_last() {
    let ranked = |waiting: f64| {
        let groups =
            [("client backend", "IO", "WALSync", waiting), ("client backend", "CPU", "", 1.0 - waiting)];
        let evidence = Staged::new()
            .sessions(&groups, &[])
            .setting("synchronous_commit", "on")
            .setting("wal_compression", "off")
            .setting("jit", "on")
            .metric("postgres.wal.full_page_images", 100.0)
            .metric("postgres.wal.records", 1000.0)
            .done();
        let all = remedies(&evidence, &[red("jit-cost", 0.92)]);
        all.iter().map(|one| one.title.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // +1150 % and +9900 %: both are above +1000 %.
    assert_eq!(ranked(0.99), ["jit", "wal_compression", "synchronous_commit"]);
    assert_eq!(ranked(0.5), ["jit", "wal_compression", "synchronous_commit"]);
}

#[test]
fn settings_of_findings_are_in_their_unit_and_only_raised() {
    let staged = || Staged::new().setting("work_mem", "65536").setting("jit", "on");
    let spilled = [red("temporary-files", 0.5), red("jit-cost", 0.5)];
    let all = remedies(&staged().place("data", "vda").metric("host.memory.total", 24e9).done(), &spilled);
    let change = |name: &str| {
        all.iter().find_map(|one| match &one.change {
            Change::Setting { name: of, before, value } if of == name => {
                Some((before.clone(), value.clone()))
            }
            _ => None,
        })
    };
    assert_eq!(change("work_mem"), Some(("64kB".into(), "1024kB".into())));
    assert_eq!(change("jit"), Some(("on".into(), "off".into())));
    // Without the host's memory nothing says how much is too much.
    assert_eq!(remedies(&staged().done(), &spilled).len(), 1);
    // One that is off already is none.
    let off = Staged::new().setting("jit", "off").done();
    assert!(remedies(&off, &[red("jit-cost", 0.5)]).is_empty());
}

#[test]
fn a_dear_generic_plan_and_long_planning_ask_for_opposite_modes() {
    use kelvin_measure::observation::{CustomPlan, Planning};
    let asked = |mode: &str, custom: bool, prepared: bool| {
        let mut one = statement(1, 500.0, 1000, "a", &[]);
        let plan =
            CustomPlan { hash: "b".into(), cost: 1.0, generic_cost: 9.0, values: "a rare value".into() };
        one.custom_plan = custom.then_some(plan);
        one.planning = Some(if custom { Planning::default() } else { Planning { plans: 1000, ms: 500.0 } });
        let text = one.text.clone();
        let staged = Staged::new().setting("plan_cache_mode", mode).statements(vec![one]);
        let staged = if prepared { staged.prepared(&text, 0, 1000) } else { staged };
        titles(&staged.done())
    };
    assert_eq!(asked("auto", true, false), ["plan_cache_mode = force_custom_plan (now auto)"]);
    assert_eq!(asked("auto", false, true), ["plan_cache_mode = force_generic_plan (now auto)"]);
    assert!(asked("auto", false, false).is_empty(), "nothing says that they are prepared");
    assert!(asked("force_generic_plan", false, true).is_empty(), "it is that already");
}
