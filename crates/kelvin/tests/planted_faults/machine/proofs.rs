//! Advice on planted problems, from the list of changes to the answer. The right change is among the first two and is
//! confirmed, useless changes are not, and no change is left behind.

use std::process::Stdio;

use kelvin_database::postgres::Config;

use super::*;

/// Statement counters, so that advice can attribute time to statements.
const COUNTED: (&str, &str) = ("shared_preload_libraries", "pg_stat_statements");

/// Settings that do not affect TPROC-C's short lookups and updates.
const USELESS: [&str; 3] = ["effective_cache_size=5GB", "cursor_tuple_fraction=0.2", "join_collapse_limit=9"];

/// Asserts that the first change of an answer is confirmed.
#[track_caller]
fn is_confirmed(answer: &str) {
    let first = answer.split("\n  2  ").next().unwrap();
    assert!(first.contains("confirmed, +"), "{answer}");
}

/// Flags of the comparison, with windows as long as the effects need.
const SHORT: [&str; 8] =
    ["--blocks", "4", "--duration", "3s", "--ramp-up", "1s", "--allow-settings", "--yes"];
/// After a restore, the first write of each page logs a full-page image, whatever max_wal_size is: the difference comes
/// later.
const BEYOND_FIRST_IMAGES: [&str; 8] =
    ["--blocks", "4", "--duration", "10s", "--ramp-up", "6s", "--allow-settings", "--yes"];

/// The settings of every disk's queue.
fn queues() -> Vec<String> {
    let disks = std::fs::read_dir("/sys/block").unwrap();
    let mut disks: Vec<_> = disks.map(|disk| disk.unwrap().path().join("queue")).collect();
    disks.sort();
    let names = ["scheduler", "read_ahead_kb", "nr_requests"];
    let read =
        |queue: &std::path::PathBuf, name| std::fs::read_to_string(queue.join(name)).unwrap_or_default();
    disks.iter().flat_map(|queue| names.map(|name| read(queue, name))).collect()
}

impl Bench {
    /// A run of TPROC-C for advice.
    fn advised(&self) {
        let run = self.tproc_c(&["--calls", "statements", "--ramp-up", "2s", "--duration", "6s"]).output();
        let run = run.unwrap();
        assert!(matches!(run.status.code(), Some(0 | 1)), "{}", text(&run.stderr));
    }

    /// The state that a proof may change and must restore.
    fn state(&self) -> Vec<String> {
        let mut session = PostgresEngine::new(self.server.instance.config()).connect().unwrap();
        let sql = "select (select count(*) from pg_indexes where schemaname = 'public'), \
            (select count(*) from pg_statistic_ext), \
            (select sum(coalesce((xpath('/row/c/text()', query_to_xml(format('select sum(hashtext(t::text)::int8) as c from %I t', \
            relname), false, true, '')))[1]::text, '0')::numeric % 1000000007) from pg_stat_user_tables)::int8, \
            (select sum(hashtext(name || setting)::int8) from pg_settings where name <> 'transaction_deferrable')::int8, \
            (select count(*) from pg_database where datname like 'kelvin_snapshot%')";
        let rows = session.query(sql).unwrap();
        let of_server = (0..5).map(|column| rows.int(0, column).unwrap().to_string());
        of_server.chain(queues()).collect()
    }

    /// Proves the first or second change of the list, whose line contains `right`, and useless ones. Returns the answer.
    fn prove(&self, right: &str, useless: &[&str], how: &[&str]) -> String {
        let tries: Vec<&str> = useless.iter().flat_map(|one| ["--try", one]).collect();
        let list = self.place.expect(0, &[&["advise", "last"], &tries[..]].concat());
        let run = list.split([' ', ':']).nth(1).unwrap().to_owned();
        eprintln!("{list}");
        let number = |words: &str| -> usize {
            let line =
                list.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}: {list}"));
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        // Settings of this host's disks depend on the machine, not on the planted fault.
        let before_it = list.split(right).next().unwrap();
        let of_host = before_it.lines().filter(|line| line.trim_start().starts_with("host: ")).count();
        assert!(number(right) - of_host <= 2, "{right} is not one of the first two:\n{list}");
        let all = [&[right][..], useless].concat();
        let chosen: Vec<String> = all
            .iter()
            .map(|one| number(&one.replacen('=', " = ", usize::from(one != &right))).to_string())
            .collect();
        let (before, chosen) = (self.state(), chosen.join(","));
        let words = [&["advise", &run, "--prove", &chosen], &tries[..], how].concat();
        let answer = self.place.expect(0, &words);
        eprintln!("{answer}");
        let steps: Vec<&str> = (2..=all.len()).fold(vec![&answer[..]], |mut steps, number| {
            let (step, rest) = steps.pop().unwrap().split_once(&format!("\n{number:>3}  ")).unwrap();
            steps.extend([step, rest]);
            steps
        });
        assert!(!steps[0].contains("could not be tried"), "{answer}");
        for step in &steps[1..] {
            let useless = ["refuted", "within noise", "no change shown", "worse"]
                .iter()
                .any(|answer| step.contains(answer));
            assert!(useless && !step.contains("could not be tried"), "{step}");
        }
        assert_eq!(self.state(), before, "indexes, statistics objects, rows, settings, snapshots, disks");
        let target = self.server.url();
        let restore = self.place.expect(0, &["server", "restore", "--target", &target]);
        assert_eq!(restore.trim(), "nothing to revert");
        answer
    }
}

#[test]
#[ignore = "runs for minutes: cargo xtask machine"]
fn a_missing_index_is_proved_among_useless_changes() {
    let bench = Bench::start(&[COUNTED]).build("2").counted();
    bench.sql("alter table item drop constraint item_i1");
    bench.advised();
    let answer = bench.prove("index on public.item (i_id)", &USELESS, &SHORT);
    is_confirmed(&answer);
    assert!(answer.contains("kept for the next changes"), "{answer}");
    let again = bench.place.expect(0, &["advise", "1"]);
    assert!(again.contains("tried in group 1: confirmed"), "{again}");
    // The run's report has them, too.
    let tried = &bench.place.report("1")["tried"];
    assert_eq!(tried.as_array().map(Vec::len), Some(4), "{tried}");
    assert!(tried[0]["answer"].as_str().unwrap().starts_with("confirmed, +"), "{tried}");
    let page = bench.place.expect(0, &["report", "1", "-o", "-"]);
    assert!(page.contains("Changes that were tried") && page.contains("16 runs in "), "{tried}");
}

#[test]
#[ignore = "runs for more than half an hour: cargo xtask machine"]
fn a_small_max_wal_size_is_proved() {
    let bench = Bench::start(&[COUNTED, ("max_wal_size", "48MB"), ("min_wal_size", "32MB")]);
    let bench = bench.build("2").counted();
    // The cost of full-page images after each checkpoint is that of their bytes: high on a cloud volume, but next to nothing
    // on a disk that is the memory of another host.
    let _volume = faults::limit_writes(&bench.server, 40 << 20);
    bench.advised();
    is_confirmed(&bench.prove("max_wal_size = ", &USELESS, &BEYOND_FIRST_IMAGES));
}

#[test]
#[ignore = "runs for minutes: cargo xtask machine"]
fn commits_on_a_slow_log_device_are_proved() {
    let bench = Bench::start(&[COUNTED]).build("2").counted();
    let _slow = faults::SlowFlush::start(&bench.server, Duration::from_millis(8));
    bench.advised();
    let answer = bench.prove("synchronous_commit = off", &USELESS, &SHORT);
    is_confirmed(&answer);
    assert!(!answer.contains("kept for the next changes"), "TPC-C does not allow it: {answer}");
}

#[test]
#[ignore = "runs for minutes: cargo xtask machine"]
fn a_statistics_object_is_tried_and_restored() {
    // With correct row estimates the plan changes, but it need not be faster here.
    plants::dropped_dependency(100).after_a_run().prove("statistics on public.parts", &[], &SHORT);
}

#[test]
#[ignore = "runs for minutes: cargo xtask machine"]
fn custom_plans_are_proved() {
    let fault = plants::generic_plan(3, 1000);
    is_confirmed(&fault.after_a_run().prove("plan_cache_mode = force_custom_plan", &[], &SHORT));
}

const SESSION: [&str; 8] =
    ["--blocks", "4", "--duration", "6s", "--ramp-up", "3s", "--allow-settings", "--yes"];

/// A session of at most an hour with four problems: at least three are confirmed, the largest first.
#[test]
#[ignore = "runs for an hour: cargo xtask machine"]
fn a_tuning_session_proves_what_was_planted_by_its_size() {
    let settings = [
        COUNTED,
        ("max_wal_size", "48MB"),
        ("min_wal_size", "32MB"),
        ("jit", "on"),
        ("jit_above_cost", "0"),
        ("jit_inline_above_cost", "0"),
        ("jit_optimize_above_cost", "0"),
    ];
    let bench = Bench::start(&settings).build("2").counted();
    bench.sql("alter table item drop constraint item_i1");
    for one in 1..=8 {
        bench.sql(&format!("create index again_{one} on order_line (ol_w_id, ol_d_id, ol_o_id, ol_number)"));
    }
    bench.sql("checkpoint");
    bench.advised();
    let before = bench.state();
    let words = ["advise", "1", "--prove", "all", "--budget", "1h", "--within-rules"];
    // The answer names changes that cannot be tried, such as a setting that needs a restart; the exit code is then 4.
    let output = bench.place.command(&[&words[..], &SESSION].concat()).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", text(&output.stderr));
    eprintln!("{}", text(&output.stdout));
    let page = std::env::temp_dir().join("kelvin-tuning-session.html");
    std::fs::write(&page, bench.place.expect(0, &["report", "1", "-o", "-"])).unwrap();
    eprintln!("{}", page.display());
    let planted = ["jit = off", "index on public.item (i_id)", "max_wal_size = ", "duplicate indexes"];
    let gain = |answer: &str| -> Option<f64> {
        let percent = answer.strip_prefix("confirmed, +")?.split('%').next()?;
        percent.trim().parse().ok()
    };
    let tried = bench.place.report("1")["tried"].clone();
    let gains: Vec<f64> = tried
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| planted.iter().any(|words| one["title"].as_str().unwrap().contains(words)))
        .filter_map(|one| gain(one["answer"].as_str().unwrap()))
        .collect();
    assert!(gains.len() >= 3, "{gains:?} of {tried:#}");
    // Changes are tried in the order of their bounds, which need not be that of their gains. The largest gain comes first.
    assert!(gains[1..].iter().all(|gain| *gain <= gains[0]), "the largest first: {gains:?}");
    assert_eq!(bench.state(), before, "indexes, statistics objects, rows, settings, snapshots, disks");
}

/// Step 2 of a published tuning study: removing the largest wait gains nothing, because the sessions then wait for CPU.
#[test]
#[ignore = "runs for minutes: cargo xtask machine"]
fn the_largest_wait_is_reported_as_no_limit_if_it_is_none() {
    let bench = Bench::start(&[]);
    bench.sql(
        "create table parts (id int primary key, v int); \
         insert into parts select id, id from generate_series(1, 50000) as id; vacuum analyze parts",
    );
    let _slow = faults::SlowFlush::start(&bench.server, Duration::from_millis(4));
    // Enough users to keep the CPUs busy while others wait for the WAL.
    let script = "\\set id random(1, 40000)\nselect sum(v) from parts where id between :id and :id + 6000;\n\
        update parts set v = v + 1 where id = :id;\n";
    let run = bench.script(script, &["--users", "16", "--duration", "6s"]).output().unwrap();
    assert!(matches!(run.status.code(), Some(0 | 1)), "{}", text(&run.stderr));
    let words = ["advise", "1", "--prove", "waits", "--blocks", "4", "--allow-settings", "--yes"];
    let more = ["--duration", "4s", "--ramp-up", "1s"];
    let answer = bench.place.expect(0, &[&words[..], &more].concat());
    eprintln!("{answer}");
    assert!(answer.contains("synchronous_commit = off") && !answer.contains("confirmed"), "{answer}");
    let flat = answer.split_whitespace().collect::<Vec<_>>().join(" ");
    let log = flat.split("log: ").nth(1).unwrap();
    assert!(log.contains("it was not a limit"), "{answer}");
}

#[test]
#[ignore = "runs for a minute: cargo xtask machine"]
fn ctrl_c_within_a_proof_puts_everything_back() {
    let bench = Bench::start(&[("work_mem", "4MB")]).build("1");
    let url = bench.server.url();
    let run = bench.tproc_c(&["--ramp-up", "0s", "--duration", "2s"]).output().unwrap();
    assert!(matches!(run.status.code(), Some(0 | 1)), "{}", text(&run.stderr));
    let state = || {
        let mut session = PostgresEngine::new(bench.server.instance.config()).connect().unwrap();
        let sql = "select (select count(*) from orders), (select sum(hashtext(s::text)::int8) from stock as s)::int8, \
            pg_size_bytes(current_setting('work_mem')), \
            (select count(*) from pg_database where datname like 'kelvin_snapshot%')";
        let rows = session.query(sql).unwrap();
        (0..4).map(|column| rows.int(0, column).unwrap()).collect::<Vec<_>>()
    };
    let before = state();
    let words = ["advise", "1", "--try", "work_mem=8MB", "--prove", "try", "--allow-settings", "--yes"];
    let more = ["--duration", "5s", "--ramp-up", "0s"];
    let mut proof = bench.place.command(&[&words[..], &more].concat());
    let mut proof = proof.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The session uses another database: in this one it would prevent the data from being replaced.
    let other = Config { database: "postgres".into(), ..bench.server.instance.config() };
    let changed = || {
        assert!(proof.try_wait().unwrap().is_none(), "it ended before the setting was changed");
        let mut session = PostgresEngine::new(other.clone()).connect().unwrap();
        let size = "select pg_size_bytes(current_setting('work_mem'))";
        session.query(size).unwrap().int(0, 0).unwrap() == 8 << 20
    };
    support::wait_until("the setting is changed", changed);
    let pid = proof.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = proof.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert_eq!(state(), before, "orders, stock, work_mem, snapshots: {}", text(&output.stderr));
    assert_eq!(bench.place.expect(0, &["server", "restore", "--target", &url]).trim(), "nothing to revert");
}
