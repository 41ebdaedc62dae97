//! The faults with their parameters: each prepares a server with data, and makes a run. The tests use fixed parameters;
//! `cargo xtask faults` draws them.

use std::process::Command;
use std::time::Duration;

use super::disturbance::{CpuHog, Delay, Throttle};
use super::faults::{
    Held, SlowFlush, Storm, forgotten_transaction, hold_while_loaded, socket_of, url_by_port,
};
use super::{Bench, Found};

/// A fault on a separate server.
pub(crate) struct Fault {
    /// The findings that must be red; empty for a healthy run.
    red: Vec<&'static str>,
    /// The finding that must be amber, for a fault whose finding is never red. No finding may be red then.
    amber: Option<&'static str>,
    bench: Bench,
    run: Run,
    /// The same load without the fault, to be run after the fault's runs; `None` if it would need other data.
    control: Option<Run>,
}

type Run = Box<dyn Fn(&Bench) -> Found>;

/// Statements are counted, so that findings can attribute time to them.
const COUNTED: (&str, &str) = ("shared_preload_libraries", "pg_stat_statements");
const NO_AUTOVACUUM: (&str, &str) = ("autovacuum", "off");

impl Fault {
    fn new(red: &'static str, bench: Bench, run: impl Fn(&Bench) -> Found + 'static) -> Self {
        Self { red: vec![red], ..Self::none(bench, run) }
    }

    fn amber(amber: &'static str, bench: Bench, run: impl Fn(&Bench) -> Found + 'static) -> Self {
        Self { amber: Some(amber), ..Self::none(bench, run) }
    }

    /// No fault: nothing may be red.
    fn none(bench: Bench, run: impl Fn(&Bench) -> Found + 'static) -> Self {
        Self { red: Vec::new(), amber: None, bench, run: Box::new(run), control: None }
    }

    /// Adds the load without the fault.
    fn against(mut self, control: impl Fn(&Bench) -> Found + 'static) -> Self {
        self.control = Some(Box::new(control));
        self
    }

    /// Adds TPROC-C on two warehouses without the fault, which these statements repair.
    fn against_tproc_c(self, sql: &'static str) -> Self {
        self.against(move |bench| {
            bench.sql(sql);
            bench.run(bench.tproc_c(&[]))
        })
    }

    /// Runs the load without the fault, which is removed.
    pub(crate) fn control(&self) -> Option<Found> {
        self.control.as_ref().map(|control| control(&self.bench))
    }

    /// Runs the load with the fault.
    pub(crate) fn found(&self) -> Found {
        (self.run)(&self.bench)
    }

    /// Asserts that the fault's finding is red and no other. A run that a finding shows to be spoilt is repeated at most
    /// twice, because the test is for the fault's finding and not for a quiet machine.
    #[track_caller]
    pub(crate) fn expect(&self) -> &Bench {
        for attempt in 1..=3 {
            let found = self.found();
            if super::judges_the_machine() && found.is_spoilt(&self.red) && attempt < 3 {
                eprintln!("attempt {attempt} was spoilt: {:?}", found.red());
                continue;
            }
            found.expect(&self.red);
            break;
        }
        &self.bench
    }

    /// The server after a run with the fault, whatever was found.
    pub(crate) fn after_a_run(&self) -> &Bench {
        self.found();
        &self.bench
    }

    /// The findings that must be red.
    pub(crate) fn red(&self) -> &[&'static str] {
        &self.red
    }

    /// The finding that must be amber.
    pub(crate) fn expected_amber(&self) -> Option<&'static str> {
        self.amber
    }

    /// Whether this is a load without a fault.
    pub(crate) fn is_healthy(&self) -> bool {
        self.red.is_empty() && self.amber.is_none()
    }
}

/// TPROC-C without a fault.
pub(crate) fn nothing() -> Fault {
    let bench = Bench::start(&[]).build("2");
    Fault::none(bench, |bench| bench.run(bench.tproc_c(&[])))
}

pub(crate) fn forced_checkpoints(max_wal_mb: i64) -> Fault {
    let most = format!("{max_wal_mb}MB");
    let bench = Bench::start(&[("max_wal_size", &most), ("min_wal_size", "32MB")]).build("2");
    Fault::new("wal-forced-checkpoint", bench, |bench| bench.run(bench.tproc_c(&[])))
        .against_tproc_c("alter system set max_wal_size = '2GB'; select pg_reload_conf()")
}

pub(crate) fn autovacuum_in_window(threshold: i64) -> Fault {
    let threshold = threshold.to_string();
    let bench = Bench::start(&[
        ("autovacuum", "on"),
        ("autovacuum_naptime", "1s"),
        ("autovacuum_vacuum_threshold", &threshold),
        ("autovacuum_vacuum_scale_factor", "0"),
        ("autovacuum_vacuum_cost_delay", "0"),
    ])
    .build("2");
    Fault::new("autovacuum-in-window", bench, |bench| bench.run(bench.tproc_c(&[])))
        .against_tproc_c("alter system set autovacuum = off; select pg_reload_conf()")
}

pub(crate) fn fsync_off() -> Fault {
    let bench = Bench::start(&[("fsync", "off")]).build("2");
    // A longer ramp-up, because the first WAL files are created here, too, and no other wait hides it.
    Fault::new("fsync-off", bench, |bench| bench.run(bench.tproc_c(&["--ramp-up", "10s"]))).against(|bench| {
        bench.sql("alter system set fsync = on; select pg_reload_conf()");
        bench.run(bench.tproc_c(&["--ramp-up", "10s"]))
    })
}

/// Many users and one warehouse.
pub(crate) fn hot_rows(users: i64) -> Fault {
    let bench = Bench::start(&[]).build("1");
    let users = users.to_string();
    // A server that was just started creates its first WAL files, which takes some seconds of such a load.
    let run = move |bench: &Bench| bench.run(bench.tproc_c(&["--users", &users, "--ramp-up", "10s"]));
    Fault::new("hot-rows", bench, run)
}

/// Drops the primary key of a table: either one of which each New-Order reads ten rows, or one with few rows.
pub(crate) fn missing_index(table: &str) -> Fault {
    let bench = Bench::start(&[]).build("2");
    bench.sql(&format!("alter table {table} drop constraint {table}_i1"));
    let key = match table {
        "item" => "i_id",
        "stock" => "s_w_id, s_i_id",
        "warehouse" => "w_id",
        _ => "d_w_id, d_id",
    };
    let again = format!("alter table {table} add constraint {table}_i1 primary key ({key}); checkpoint");
    Fault::new("scan-without-index", bench, |bench| bench.run(bench.tproc_c(&[]))).against(move |bench| {
        bench.sql(&again);
        bench.run(bench.tproc_c(&[]))
    })
}

/// A process that uses a number of hundredths of a CPU.
pub(crate) fn small_cpu_hog(hundredths: i64) -> Fault {
    let bench = Bench::start(&[]).build("2");
    let run = move |bench: &Bench| {
        let throttle = Throttle::cpu(hundredths as f64 / 100.0);
        let hog = CpuHog::start(1, Duration::ZERO);
        hog.0.iter().for_each(|process| throttle.take(process.id()));
        bench.run(bench.tproc_c(&[]))
    };
    Fault::new("noisy-neighbour", bench, run).against_tproc_c("")
}

/// Processes that use CPU, starting some seconds after the load.
pub(crate) fn cpu_hog(processes: i64, after: i64) -> Fault {
    let bench = Bench::start(&[]).build("2");
    let run = move |bench: &Bench| {
        let hog = CpuHog::start(processes as usize, Duration::from_secs(after as u64));
        let found = bench.run(bench.tproc_c(&[]));
        drop(hog);
        found
    };
    Fault::new("noisy-neighbour", bench, run).against_tproc_c("")
}

/// A client limited to a number of hundredths of a CPU.
pub(crate) fn throttled_client(hundredths: i64) -> Fault {
    // Short transactions: TPROC-C's client needs less than the limit.
    const WORDS: [&str; 6] = ["pgbench", "-S", "-M", "prepared", "--users", "8"];
    let bench = Bench::start(&[]);
    let url = bench.server.url();
    bench.place.expect(0, &["build", "pgbench", "--target", &url, "-s", "5", "-q"]);
    bench.sql("checkpoint");
    let run = move |bench: &Bench| {
        let throttle = Throttle::cpu(hundredths as f64 / 100.0);
        bench.run(throttle.around(&bench.command(&WORDS)))
    };
    Fault::new("client-saturated", bench, run).against(|bench| bench.run(bench.command(&WORDS)))
}

pub(crate) fn slow_log(microseconds: i64) -> Fault {
    let bench = Bench::start(&[]).build("2");
    let slow = SlowFlush::start(&bench.server, Duration::from_micros(microseconds as u64));
    let run = move |bench: &Bench| {
        // Keeps the delay for the duration of the run.
        let _slow = &slow;
        bench.run(bench.tproc_c(&[]))
    };
    Fault::new("log-write-latency", bench, run).against(|bench| {
        super::faults::restart(&bench.server, None);
        bench.run(bench.tproc_c(&[]))
    })
}

pub(crate) fn tiny_buffers(mb: i64) -> Fault {
    let size = format!("{mb}MB");
    let bench = Bench::start(&[("shared_buffers", &size)]).build("4");
    Fault::new("buffers-too-small", bench, |bench| bench.run(bench.tproc_c(&[]))).against(|bench| {
        bench.sql("alter system set shared_buffers = '256MB'");
        super::faults::restart(&bench.server, None);
        bench.run(bench.tproc_c(&[]))
    })
}

pub(crate) fn slow_network(ms: i64) -> Fault {
    let bench = Bench::start(&[]).build("2");
    let socket = socket_of(bench.server.instance.data_directory());
    let delay = Delay::before(socket, Duration::from_millis(ms as u64));
    let run = move |bench: &Bench| {
        let url = url_by_port(&bench.server, delay.port());
        bench.run(bench.tproc_c_at(&url, &["--calls", "statements"]))
    };
    let control = |bench: &Bench| bench.run(bench.tproc_c(&["--calls", "statements"]));
    Fault::new("network-round-trips", bench, run).against(control)
}

pub(crate) fn short_ramp_up(users: i64) -> Fault {
    let bench = Bench::start(&[]).build("2");
    let users = users.to_string();
    let run = move |bench: &Bench| {
        // The keying time before the users' first New-Order is 18 s.
        let more = ["--users", &users, "--ramp-up", "0s", "--duration", "60s", "--keying-and-thinking"];
        bench.run(bench.tproc_c(&more))
    };
    Fault::new("ramp-up-too-short", bench, run)
}

/// A session that changes a row that half of the users need, and leaves its transaction open for some time.
pub(crate) fn lock_holder(ms: i64) -> Fault {
    let bench = Bench::start(&[]).build("2");
    let run = move |bench: &Bench| {
        let sql = "update warehouse set w_ytd = w_ytd where w_id = 1";
        let holder = forgotten_transaction(&bench.server, sql, Duration::from_millis(ms as u64));
        let duration = format!("{}s", ms / 1000 + 3);
        let found = bench.run(bench.tproc_c(&["--ramp-up", "0s", "--duration", &duration]));
        holder.join().unwrap();
        found
    };
    Fault::new("lock-holder", bench, run).against_tproc_c("")
}

/// Sorts of a number of rows that exceed `work_mem`.
pub(crate) fn spill(rows: i64) -> Fault {
    let bench = Bench::start(&[COUNTED, ("work_mem", "64kB")]).counted();
    bench.sql(
        "create table big as select id, (id * 7919) % 100003 as v, repeat('x', 100) as pad \
         from generate_series(1, 60000) as id; alter table big add primary key (id); vacuum analyze big; checkpoint",
    );
    let text = format!(
        "\\set low random(1, {})\nselect id, v, pad from big where id between :low and :low + {rows} \
         order by v offset {};\n",
        60_000 - rows,
        rows - 10
    );
    let more = text.clone();
    Fault::new("temporary-files", bench, move |bench| bench.run(bench.script(&text, &[]))).against(
        move |bench| {
            bench.sql("alter system set work_mem = '64MB'; select pg_reload_conf()");
            bench.run(bench.script(&more, &[]))
        },
    )
}

/// Clients that open a number of sessions per second during the load.
pub(crate) fn storm(per_second: i64) -> Fault {
    let bench = Bench::start(&[]).build("2");
    let run = move |bench: &Bench| {
        let storm = Storm::start(&bench.server, per_second as u32);
        let found = bench.run(bench.tproc_c(&[]));
        drop(storm);
        found
    };
    Fault::new("connection-storm", bench, run).against_tproc_c("")
}

/// A transaction that holds a snapshot for some seconds of the load, while a few rows are updated repeatedly.
pub(crate) fn held_snapshot(after: i64, seconds: i64) -> Fault {
    let bench = Bench::start(&[COUNTED, NO_AUTOVACUUM]).counted();
    bench.sql(
        "create table few (id int primary key, v int, pad text); \
         insert into few select id, 0, repeat('x', 100) from generate_series(1, 80) as id; vacuum analyze few",
    );
    // Each user has separate rows, so that there is no wait.
    let text = "update few set v = v + 1 where id between :client_id * 40 + 1 and :client_id * 40 + 40;\n";
    let run = move |bench: &Bench| {
        let held =
            Held { after: Duration::from_secs(after as u64), length: Duration::from_secs(seconds as u64) };
        let holder = hold_while_loaded(&bench.server, held);
        let duration = format!("{}s", after + seconds + 8);
        let found = bench.run(bench.script(text, &["--duration", &duration]));
        holder.join().unwrap();
        found
    };
    let duration = format!("{}s", after + seconds + 8);
    Fault::new("held-snapshot", bench, run)
        .against(move |bench| bench.run(bench.script(text, &["--duration", &duration])))
}

/// A table without statistics, so that the planner chooses the index with few distinct values.
pub(crate) fn dropped_statistics(states: i64) -> Fault {
    let bench = Bench::start(&[COUNTED, NO_AUTOVACUUM]).counted();
    bench.sql(&format!(
        "create table parcel (id int primary key, state int, customer int, pad text); \
         insert into parcel select id, id % {states}, (id::int8 * 7919) % 100003, repeat('x', 60) \
         from generate_series(1, 300000) as id; \
         create index parcel_state on parcel (state); create index parcel_customer on parcel (customer); \
         vacuum analyze parcel; delete from pg_statistic where starelid = 'parcel'::regclass; checkpoint"
    ));
    let text = format!(
        "\\set customer random(1, 100000)\n\\set state random(0, {})\n\
         select id, pad from parcel where state = :state and customer = :customer;\n",
        states - 1
    );
    let more = text.clone();
    Fault::new("missing-statistics", bench, move |bench| bench.run(bench.script(&text, &[]))).against(
        move |bench| {
            bench.sql("analyze parcel");
            bench.run(bench.script(&more, &[]))
        },
    )
}

/// A number of duplicate indexes on a table into which all users insert.
pub(crate) fn duplicate_indexes(number: i64) -> Fault {
    let bench = Bench::start(&[COUNTED, NO_AUTOVACUUM]).counted();
    bench.sql(
        "create table ledger (id bigserial primary key, account int, amount int); \
         create index ledger_account on ledger (account, amount)",
    );
    for one in 1..=number {
        bench.sql(&format!("create index again_{one} on ledger (account, amount)"));
    }
    bench.sql(
        "insert into ledger (account, amount) select random() * 1000000, id from generate_series(1, 20000) as id; \
         vacuum analyze ledger; checkpoint",
    );
    let text = "insert into ledger (account, amount) \
        select random() * 1000000, random() * 1000 from generate_series(1, 100);\n";
    Fault::new("duplicate-index", bench, move |bench| bench.run(bench.script(text, &[]))).against(
        move |bench| {
            for one in 1..=number {
                bench.sql(&format!("drop index again_{one}"));
            }
            bench.sql("truncate ledger; checkpoint");
            bench.run(bench.script(text, &[]))
        },
    )
}

/// Full pages of 40 rows, and statements that update all rows of a page at once. No new version fits into its page; together
/// they fill another page, and each is inserted into all indexes. Rows updated in any other order leave free space in pages
/// that are pruned, so that after a few updates nearly all of them fit. The same happens with two users, who fill pages
/// together.
pub(crate) fn packed_pages(indexes: i64) -> Fault {
    let bench = Bench::start(&[COUNTED, NO_AUTOVACUUM]).counted();
    let columns: Vec<String> = (1..=indexes).map(|one| format!("c{one}")).collect();
    // 200 bytes per row, including 24 for the row header and 4 for the text's header; 4 more for the page's line pointer.
    let pad = 162 - 4 * indexes;
    bench.sql(&format!(
        "create table packed (id int primary key, v int, {}, pad text) with (fillfactor = 100); \
         insert into packed select id, 0, {}, repeat('x', {pad}) from generate_series(0, 19999) as id",
        columns.iter().map(|column| format!("{column} int")).collect::<Vec<_>>().join(", "),
        columns.iter().map(|_| "id % 997").collect::<Vec<_>>().join(", ")
    ));
    for column in &columns {
        bench.sql(&format!("create index packed_{column} on packed ({column})"));
    }
    bench.sql("vacuum analyze packed; checkpoint");
    let text = "\\set page random(0, 499)\n\
        update packed set v = v + 1 where id between :page * 40 and :page * 40 + 39;\n";
    let run = move |bench: &Bench| bench.run(bench.script(text, &["--users", "1"]));
    Fault::new("hot-updates-lost", bench, run).against(move |bench| {
        bench.sql("alter table packed set (fillfactor = 45); vacuum full analyze packed; checkpoint");
        run(bench)
    })
}

/// JIT compilation of every statement of a load of short ones.
pub(crate) fn compiled(rows: i64) -> Fault {
    let settings = [
        COUNTED,
        ("jit", "on"),
        ("jit_above_cost", "0"),
        ("jit_inline_above_cost", "0"),
        ("jit_optimize_above_cost", "0"),
    ];
    let bench = Bench::start(&settings).counted();
    bench.sql(
        "create table numbers (id int primary key, v int); \
         insert into numbers select id, id % 17 from generate_series(1, 20000) as id; vacuum analyze numbers; checkpoint",
    );
    let text = format!(
        "\\set low random(1, 19000)\nselect sum(v * 2 + 1) from numbers where id between :low and :low + {rows} and v <> 3;\n"
    );
    let more = text.clone();
    Fault::new("jit-cost", bench, move |bench| bench.run(bench.script(&text, &[]))).against(move |bench| {
        bench.sql("alter system set jit = off; select pg_reload_conf()");
        bench.run(bench.script(&more, &[]))
    })
}

/// Prepared statements with a generic plan that suits the common states but not the rare one (one row in `rare`), which the
/// load selects. Plans are not counted: the sessions of the load report theirs.
pub(crate) fn generic_plan(states: i64, rare: i64) -> Fault {
    let bench = Bench::start(&[COUNTED, NO_AUTOVACUUM, ("plan_cache_mode", "force_generic_plan")]).counted();
    bench.sql(&format!(
        "create table jobs (id int primary key, state int not null, pad text); insert into jobs \
         select id, case when id % {rare} = 0 then 0 else 1 + (hashint4(id) & 1048575) % {states} end, repeat('x', 100) \
         from generate_series(1, 100000) as id; create index jobs_state on jobs (state); \
         create table details (id int primary key, cost int); \
         insert into details select id, id from generate_series(1, 100000) as id; \
         vacuum analyze jobs; vacuum analyze details; checkpoint"
    ));
    let text = "\\set state 0\nselect sum(cost) from jobs join details using (id) where state = :state;\n";
    let run = move |bench: &Bench| bench.run(bench.script(text, &["-M", "prepared"]));
    Fault::amber("generic-plan", bench, run).against(move |bench| {
        bench.sql("alter system set plan_cache_mode = 'force_custom_plan'; select pg_reload_conf()");
        run(bench)
    })
}

/// Users that hold one of `keys` advisory locks for `ms` in each transaction.
pub(crate) fn lock_queue(users: i64, keys: i64, ms: i64) -> Fault {
    let bench = Bench::start(&[COUNTED]).counted();
    let users = users.to_string();
    let load = move |keys: i64| {
        format!(
            "\\set key random(1, {keys})\nbegin;\nselect pg_advisory_xact_lock(:key);\nselect pg_sleep({ms} / 1000.0);\ncommit;\n"
        )
    };
    let few = users.clone();
    Fault::amber("lock-queue", bench, move |bench| bench.run(bench.script(&load(keys), &["--users", &users])))
        .against(move |bench| bench.run(bench.script(&load(1_000_000), &["--users", &few])))
}

/// Two columns, one of which determines the other, with a number of distinct values; their statistics object was dropped.
pub(crate) fn dropped_dependency(values: i64) -> Fault {
    let bench = Bench::start(&[COUNTED, NO_AUTOVACUUM, ("max_parallel_workers_per_gather", "0")]).counted();
    bench.sql(&format!(
        "create table parts as select id % {values} as a, id % {values} as b, id % 20000 as other from generate_series(1, 200000) as id; \
         create table others as select id, id as value from generate_series(0, 19999) as id; \
         alter table others add primary key (id); create statistics parts_a_b (dependencies) on a, b from parts; \
         vacuum analyze parts; vacuum analyze others; drop statistics parts_a_b; checkpoint"
    ));
    let text = format!(
        "\\set a random(0, {})\nselect sum(value) from parts, others where a = :a and b = :a and id = other;\n",
        values - 1
    );
    let run = move |bench: &Bench| bench.run(bench.script(&text, &["--explain-sample"]));
    let again = run.clone();
    Fault::amber("misestimate", bench, run).against(move |bench| {
        bench.sql("create statistics parts_a_b (dependencies) on a, b from parts; analyze parts");
        again(bench)
    })
}

/// A server limited to a number of hundredths of a CPU.
pub(crate) fn throttled_server(hundredths: i64) -> Fault {
    let bench = Bench::start(&[]).build("2");
    let run = move |bench: &Bench| {
        let throttle = Throttle::cpu(hundredths as f64 / 100.0);
        throttle.take(bench.server.instance.pid());
        bench.run(bench.tproc_c(&[]))
    };
    Fault::new("server-throttled", bench, run).against_tproc_c("")
}

/// A load without a fault, of one of the kinds in [`HEALTHY`].
pub(crate) fn healthy(workload: &str) -> Fault {
    let bench = Bench::start(&[COUNTED]).counted();
    let bench = if workload.starts_with("tproc-c") { bench.build("2") } else { bench };
    let url = bench.server.url();
    let scripts = "create table item_of (id int primary key, v int, pad text); \
        insert into item_of select id, 0, repeat('x', 80) from generate_series(1, 50000) as id";
    match workload {
        "pgbench" | "pgbench -S" => {
            bench.place.expect(0, &["build", "pgbench", "--target", &url, "-s", "10", "-q"]);
        }
        "script" => bench.sql(scripts),
        _ => {}
    }
    let workload = workload.to_owned();
    let run = move |bench: &Bench| {
        bench.sql("vacuum analyze");
        bench.sql("checkpoint");
        let command: Command = match workload.as_str() {
            "tproc-c" => bench.tproc_c(&[]),
            "tproc-c statements" => bench.tproc_c(&["--calls", "statements"]),
            "pgbench" => bench.command(&["pgbench", "--users", "2"]),
            "pgbench -S" => bench.command(&["pgbench", "-S", "-M", "prepared", "--users", "2"]),
            _ => {
                let text = "\\set id random(1, 49000)\nselect count(v) from item_of where id between :id and :id + 50;\n\
                    update item_of set v = v + 1 where id = :id;\n";
                bench.script(text, &[])
            }
        };
        bench.run(command)
    };
    Fault::none(bench, run)
}

/// The kinds of [`healthy`].
pub(crate) const HEALTHY: [&str; 5] = ["tproc-c", "tproc-c statements", "pgbench", "pgbench -S", "script"];
