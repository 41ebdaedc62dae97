use std::fs;

use super::*;

fn options(directory: &std::path::Path) -> Options {
    Options {
        directories: vec![directory.to_owned()],
        duration: Duration::from_millis(800),
        interval: Duration::from_millis(100),
        threads: Some(2),
        crc: true,
        direct: true,
        buffer: 64 << 10,
        working_set: Some(8 << 20),
        preserve: false,
    }
}

#[test]
fn four_tests_are_done_within_the_working_set_and_nothing_is_left() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("canary"), "sings").unwrap();
    let mut largest = 0;
    let (mut rows, mut plans) = (0, 0);
    let report = run(&options(directory.path()), &Stop::new(), &mut |event| match event {
        VioperfEvent::Plan(plan) => {
            plans += 1;
            assert_eq!((plan.threads, plan.working_set()), (2, 8 << 20));
        }
        VioperfEvent::Row(_) => {
            rows += 1;
            let sizes =
                fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
            largest = largest.max(sizes.sum());
        }
        VioperfEvent::Note(_) => {}
    })
    .unwrap();
    assert_eq!((plans, rows), (1, report.rows.len()));
    assert!(largest <= (8 << 20) + 5, "{largest}");
    assert_eq!(report.failure, None);
    let done: Vec<Test> = report.tests.iter().map(|row| row.test).collect();
    assert_eq!(done, Test::ALL);
    assert!(report.verdict.is_some());
    let (extend, overwrite) = (report.extend.unwrap(), report.overwrite.unwrap());
    assert!(extend.bytes > 0 && extend.bytes <= 8 << 20);
    // Bytes written are those that extended files and those that overwrote data.
    let write = &report.tests[0];
    let written = write.counter_value.write.unwrap() * MB * write.elapsed_s;
    assert!((written - (extend.bytes + overwrite.bytes) as f64).abs() < 1.0);
    for cost in &report.costs {
        assert!(cost.crc_us_per_mb.unwrap() > 0.0 && cost.rest_us_per_mb > 0.0);
    }
    for row in &report.rows {
        assert!(row.elapsed_s > 0.0 && row.thread_count == 2);
        let core = row.counter_value_per_core;
        for (all, each) in [
            (row.counter_value.read, core.read),
            (row.counter_value.write, core.write),
            (row.counter_value.seeks, core.seeks),
        ] {
            assert_eq!(all.map(|all| all / report.plan.cores.counted), each);
        }
    }
    let left: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["canary"]);
    assert_eq!(fs::read(directory.path().join("canary")).unwrap(), b"sings");
}

#[test]
fn who_asks_to_stop_gets_what_was_measured_and_files_stay_only_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let stop = Stop::new();
    let long = Options {
        duration: Duration::from_hours(1),
        crc: false,
        direct: false,
        preserve: true,
        ..options(directory.path())
    };
    let report = run(&long, &stop, &mut |event| {
        if matches!(event, VioperfEvent::Row(_)) {
            stop.request();
        }
    })
    .unwrap();
    assert!(report.interrupted && report.verdict.is_none());
    assert_eq!(report.tests.len(), 1);
    assert!(report.tests[0].counter_value.write.unwrap() > 0.0);
    assert_eq!(report.costs[0].crc_us_per_mb, None);
    assert_eq!(report.kept.len(), 2);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    assert!(summary(&report).ends_with("Interrupted: not all tests completed, so there is no verdict\n"));
}

#[test]
fn several_directories_have_rows_of_their_own_and_one_together() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let both = Options {
        directories: vec![one.path().to_owned(), other.path().to_owned()],
        threads: Some(3),
        duration: Duration::from_millis(400),
        ..options(one.path())
    };
    let report = run(&both, &Stop::new(), &mut |_| {}).unwrap();
    let last: Vec<_> = report.rows[report.rows.len() - 3..]
        .iter()
        .map(|row| (row.directory.clone(), row.thread_count))
        .collect();
    let names = [one.path().display().to_string(), other.path().display().to_string(), "all".into()];
    assert_eq!(last, names.into_iter().zip([2, 1, 3]).collect::<Vec<_>>());
    assert_eq!(report.tests.len(), 4);
    assert!(report.tests.iter().all(|row| row.directory == "all"));
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |change: &dyn Fn(&mut Options)| {
        let mut asked = options(directory.path());
        change(&mut asked);
        let error = run(&asked, &Stop::new(), &mut |_| {}).unwrap_err().to_string();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        error.replace(&*directory.path().to_string_lossy(), "DIR")
    };
    assert_eq!(
        refused(&|asked| asked.directories.push("/no/such".into())),
        "command line: /no/such cannot be used: No such file or directory (os error 2); give an existing directory"
    );
    assert_eq!(
        refused(&|asked| asked.buffer = 1000),
        "command line: a buffer of 1000 bytes is not a multiple of 4096 up to 67108864"
    );
    assert_eq!(
        refused(&|asked| asked.threads = Some(0)),
        "command line: 0 threads for 1 directories: give at least one per directory and at most 4096"
    );
    assert!(refused(&|asked| asked.working_set = Some(1 << 60)).contains("more than half of the"));
    assert!(
        refused(&|asked| asked.working_set = Some(4096)).starts_with("command line: not enough space in DIR")
    );
    assert_eq!(
        refused(&|asked| asked.directories = vec!["/dev/null".into()]),
        "command line: /dev/null is not a directory"
    );
}

#[test]
fn a_changed_block_ends_it() {
    use std::os::unix::fs::FileExt;
    let directory = tempfile::tempdir().unwrap();
    let asked =
        Options { threads: Some(1), duration: Duration::from_millis(1200), ..options(directory.path()) };
    let mut changed = false;
    let report = run(&asked, &Stop::new(), &mut |event| {
        let VioperfEvent::Row(row) = event else { return };
        if row.test == Test::Read && !changed {
            changed = true;
            for entry in fs::read_dir(directory.path()).unwrap() {
                let file = fs::File::options().write(true).open(entry.unwrap().path()).unwrap();
                let length = file.metadata().unwrap().len();
                for block in 0..length / (64 << 10) {
                    file.write_all_at(b"X", block * (64 << 10) + 5000).unwrap();
                }
            }
        }
    })
    .unwrap();
    let problem = report.failure.unwrap();
    assert!(problem.contains("does not contain the data that was written at byte "), "{problem}");
    assert!(problem.contains(": the block has the CRC-32C "), "{problem}");
    assert_eq!(report.verdict, None);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn the_table_and_the_summary_are_readable() {
    let cores = Cores { counted: 4.0, machine: 8, allowed: 4, threads: 8, quota: None, topology: true };
    let plan = VioperfPlan {
        cores,
        threads: 5,
        directories: [("/data/vertica/very/long/path/of/a/directory", 3), ("/temp", 2)]
            .map(|(path, threads)| DirectoryPlan {
                path: path.into(),
                free: 900 << 30,
                threads,
                file: 3276 << 20,
            })
            .to_vec(),
        buffer: 1 << 20,
        direct: true,
        crc: true,
        seconds: 75.0,
        interval: 10.0,
        notes: Vec::new(),
    };
    let mut report = Report::new(plan.clone());
    let use_of_cpu = Some(kelvin_host::TickShares { taken: 0.124, waiting: 0.401, stolen: 0.0 });
    let (span, recent) = (Duration::from_secs(20), Duration::from_secs(10));
    let counts = |read, written, seeks| {
        let one = Counts { read, written, seeks, threads: 3 };
        let other = Counts { read: read / 2, written: written / 2, seeks: seeks / 2, threads: 2 };
        let all = Counts {
            read: one.read + other.read,
            written: one.written + other.written,
            seeks: one.seeks + other.seeks,
            threads: 5,
        };
        vec![one, other, all]
    };
    let mut text = plan_text(&plan) + "\n" + &header(&plan);
    for (test, read, written, seeks) in [
        (Test::Write, 0, 8_000_000_000, 0),
        (Test::ReWrite, 3_200_000_000, 3_100_000_000, 0),
        (Test::Read, 9_900_000_000, 0, 0),
        (Test::SkipRead, 9_000_000_000, 0, 8585),
    ] {
        let (whole, part) = (counts(read, written, seeks), counts(read / 3, written / 3, seeks / 3));
        let length = Duration::from_secs(75);
        let rows = report::rows(test, &plan, &whole, &part, (span, recent), use_of_cpu, length);
        text.extend(rows.iter().map(row_text));
        report.tests.extend(rows.last().cloned());
        report.costs.push(Cost {
            test,
            crc_us_per_mb: Some(48.3),
            rest_us_per_mb: 101.7,
            thread_cpu_percent: if test == Test::Read { 93.2 } else { 30.0 },
        });
    }
    report.extend = Some(Split { bytes: 16 << 30, mb_s: 410.0, mb_s_per_core: 102.5 });
    report.overwrite = Some(Split { bytes: 20 << 30, mb_s: 780.0, mb_s_per_core: 195.0 });
    report.finish();
    insta::assert_snapshot!(text + "\n" + &summary(&report));
    report.tests[1].counter_value_per_core.write = Some(19.0);
    report.finish();
    assert_eq!(
        summary(&report).lines().last().unwrap(),
        "FAIL: 19.0 MB/s per core in ReWrite, the slowest of Write, ReWrite (each way) and Read; minimum 20, recommended 40"
    );
}
