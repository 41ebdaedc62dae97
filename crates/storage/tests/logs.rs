//! The log files: fio's columns, averages, sums, compression, and their state after a kill.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use kelvin_storage::job::{Job, Jobs, LogValue};
use kelvin_storage::log::{CompletedIo, LogRecorder, LogWriter, inflate};
use kelvin_storage::{BINS, Direction, bin};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn jobs(jobs: Vec<Job>) -> Jobs {
    Jobs { global: Vec::new(), jobs, notes: Vec::new() }
}

fn logging(name: &str) -> Job {
    let mut job = Job::named(name);
    job.logs.bandwidth = Some("p".into());
    job.logs.iops = Some("p".into());
    job.logs.latency = Some("p".into());
    job
}

fn done(at: u64, direction: Direction, length: u32, completion: u64) -> CompletedIo {
    CompletedIo {
        at,
        issued: at.saturating_sub(completion + 1000),
        submission: 1000,
        completion,
        total: completion + 1000,
        offset: 8192,
        length,
        priority: 0,
        direction,
    }
}

fn text(directory: &Path, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Writes the records of the jobs' workers, in one chunk each.
fn written(jobs: &Jobs, all: &[(u64, u64, Vec<CompletedIo>)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::new(jobs, Some(directory.path()), 1_795_304_700_000).unwrap();
    let owners: Vec<(usize, u32)> = jobs
        .jobs
        .iter()
        .enumerate()
        .flat_map(|(place, job)| (0..job.clones).map(move |clone| (place, clone)))
        .collect();
    for (worker, (begin, end, dones)) in all.iter().enumerate() {
        let (place, clone) = owners[worker];
        let mut recorder = LogRecorder::new(&jobs.jobs[place], clone).unwrap();
        recorder.begin(*begin);
        for done in dones {
            recorder.record(done);
        }
        if let Some(chunk) = recorder.finish(*end) {
            writer.chunk(worker as u32, &chunk).unwrap();
        }
    }
    assert_eq!(writer.finish().unwrap(), Vec::<String>::new());
    directory
}

#[test]
fn without_windows_every_io_has_a_row_in_fios_columns() {
    let mut one = logging("a");
    one.logs.offset = true;
    one.logs.priority = true;
    one.logs.issue_time = true;
    let dones =
        vec![done(5 * MS, Direction::Read, 4096, 100_000), done(7 * MS, Direction::Write, 8192, 200_000)];
    let directory = written(&jobs(vec![one]), &[(2 * MS, 10 * MS, dones)]);
    let at = directory.path();
    // Columns: time, value, direction, size, offset, priority, issue.
    assert_eq!(
        text(at, "p_clat.1.log"),
        "3, 100000, 0, 4096, 8192, 0x0000, 2899000\n5, 200000, 1, 8192, 8192, 0x0000, 4799000\n"
    );
    assert_eq!(
        text(at, "p_slat.1.log"),
        "3, 1000, 0, 4096, 8192, 0x0000, 2899000\n5, 1000, 1, 8192, 8192, 0x0000, 4799000\n"
    );
    assert!(text(at, "p_lat.1.log").starts_with("3, 101000, 0, 4096, "));
    // 4 KiB in 100 µs; each I/O counts as one.
    assert!(text(at, "p_bw.1.log").starts_with("3, 40000, 0, 4096, "));
    assert!(text(at, "p_iops.1.log").starts_with("3, 1, 0, 4096, "));
}

#[test]
fn windows_have_rates_and_means_and_an_idle_one_is_zero_and_no_gap() {
    let mut one = logging("a");
    one.logs.window = Some(100 * MS);
    one.logs.value = LogValue::Both;
    one.logs.epoch_clock = Some(0);
    let dones = vec![
        done(10 * MS, Direction::Read, 4096, 100_000),
        done(90 * MS, Direction::Read, 4096, 300_000),
        // Nothing in the second window.
        done(250 * MS, Direction::Read, 4096, 500_000),
        done(320 * MS, Direction::Write, 1 << 20, 700_000),
    ];
    let directory = written(&jobs(vec![one]), &[(0, 350 * MS, dones)]);
    let at = directory.path();
    let base = 1_795_304_700_000_u64;
    assert_eq!(
        text(at, "p_clat.1.log"),
        format!(
            "{}, 200000, 300000, 0, 0, 0\n{}, 500000, 500000, 0, 0, 0\n{}, 700000, 700000, 1, 0, 0\n",
            base + 100,
            base + 300,
            base + 350
        )
    );
    // The last window was half as long: a megabyte in 50 ms.
    assert_eq!(
        text(at, "p_bw.1.log"),
        format!(
            "{0}, 80, 80, 0, 0, 0\n{1}, 0, 0, 0, 0, 0\n{2}, 40, 40, 0, 0, 0\n{3}, 0, 0, 0, 0, 0\n{3}, 20480, 20480, 1, 0, 0\n",
            base + 100,
            base + 200,
            base + 300,
            base + 350
        )
    );
    assert!(text(at, "p_iops.1.log").starts_with(&format!("{}, 20, 20, 0, 0, 0\n", base + 100)));
}

#[test]
fn the_greatest_alone_takes_the_place_of_the_mean() {
    let mut one = logging("a");
    one.logs.window = Some(100 * MS);
    one.logs.value = LogValue::Maximum;
    let dones =
        vec![done(10 * MS, Direction::Read, 4096, 100_000), done(90 * MS, Direction::Read, 4096, 300_000)];
    let directory = written(&jobs(vec![one]), &[(0, 100 * MS, dones)]);
    assert_eq!(text(directory.path(), "p_clat.1.log"), "100, 300000, 0, 0, 0\n");
}

#[test]
fn histograms_have_fios_bins_at_every_coarseness() {
    for coarseness in 0..=6 {
        let mut one = Job::named("h");
        one.logs.histogram = Some("h".into());
        one.logs.histogram_window = Some(100 * MS);
        one.logs.histogram_coarseness = coarseness;
        let dones = vec![
            done(10 * MS, Direction::Read, 4096, 100_000),
            done(20 * MS, Direction::Read, 4096, 100_000),
            done(130 * MS, Direction::Write, 512, 3_000),
        ];
        let directory = written(&jobs(vec![one]), &[(0, 200 * MS, dones)]);
        let text = text(directory.path(), "h_clat_hist.1.log");
        let rows: Vec<Vec<u64>> =
            text.lines().map(|line| line.split(", ").map(|value| value.parse().unwrap()).collect()).collect();
        // Each row covers only its window.
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].len(), 3 + (BINS >> coarseness));
        assert_eq!(rows[0][..3], [100, 0, 4096]);
        assert_eq!(rows[0][3 + (bin(100_000) >> coarseness)], 2);
        assert_eq!(rows[1][..3], [200, 1, 512]);
        assert_eq!(rows.iter().flat_map(|row| &row[3..]).sum::<u64>(), 3);
    }
}

#[test]
fn names_are_fios() {
    let mut first = logging("a");
    first.clones = 2;
    let mut second = logging("b");
    // Without a name, the job's name is used.
    second.logs.bandwidth = Some(String::new());
    second.logs.iops = None;
    second.logs.latency = None;
    let directory = written(&jobs(vec![first, second]), &[]);
    let mut names: Vec<String> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "b_bw.3.log",
            "p_bw.1.log",
            "p_bw.2.log",
            "p_clat.1.log",
            "p_clat.2.log",
            "p_iops.1.log",
            "p_iops.2.log",
            "p_lat.1.log",
            "p_lat.2.log",
            "p_slat.1.log",
            "p_slat.2.log"
        ]
    );
}

#[test]
fn one_file_for_all_jobs_has_all_rows() {
    let mut one = logging("a");
    one.clones = 2;
    one.logs.per_job = false;
    let dones = vec![done(10 * MS, Direction::Read, 4096, 100_000)];
    let directory = written(&jobs(vec![one]), &[(0, 20 * MS, dones.clone()), (0, 20 * MS, dones)]);
    assert_eq!(text(directory.path(), "p_iops.log"), "10, 1, 0, 4096, 0\n10, 1, 0, 4096, 0\n");
}

#[test]
fn a_sum_adds_rates_and_averages_times() {
    let mut one = logging("a");
    one.clones = 2;
    one.logs.summed = true;
    one.logs.window = Some(100 * MS);
    let dones = |count: u64, completion: u64| -> Vec<CompletedIo> {
        (0..count)
            .map(|place| done((place * 80 / count + 12) * MS, Direction::Read, 4096, completion))
            .collect()
    };
    // They did not begin together: the second has half of the first window.
    let late: Vec<CompletedIo> =
        (0..10).map(|place| done((60 + place) * MS, Direction::Read, 4096, 400_000)).collect();
    let directory =
        written(&jobs(vec![one]), &[(10 * MS, 100 * MS, dones(90, 100_000)), (50 * MS, 100 * MS, late)]);
    let at = directory.path();
    // 100 I/Os in 90 ms of the longer one.
    assert_eq!(text(at, "p_iops.log"), "100, 1111, 0, 0, 0\n");
    assert_eq!(text(at, "p_clat.log"), "100, 130000, 0, 0, 0\n");
    // And each separately.
    assert_eq!(text(at, "p_iops.1.log"), "90, 1000, 0, 0, 0\n");
    assert_eq!(text(at, "p_iops.2.log"), "50, 200, 0, 0, 0\n");
}

#[test]
fn a_sum_without_windows_has_those_of_a_second() {
    let mut one = logging("a");
    one.clones = 2;
    one.logs.summed = true;
    one.logs.per_job = false;
    let dones = |shift: u64| -> Vec<CompletedIo> {
        (0..10).map(|place| done((place * 200 + 5 + shift) * MS, Direction::Read, 1024, 100_000)).collect()
    };
    let directory = written(&jobs(vec![one]), &[(0, 1900 * MS, dones(0)), (0, 1900 * MS, dones(3))]);
    assert_eq!(text(directory.path(), "p_bw.log"), "1000, 10, 0, 0, 0\n2000, 10, 0, 0, 0\n");
    assert_eq!(text(directory.path(), "p_iops.log"), "1000, 10, 0, 0, 0\n2000, 10, 0, 0, 0\n");
}

#[test]
fn a_hair_behind_the_last_window_is_no_rate() {
    let mut one = logging("a");
    one.logs.window = Some(100 * MS);
    // 10 I/Os in 100 ms, and one more 0.1 ms later: that would be a rate of 10,000 a second.
    let mut dones: Vec<CompletedIo> =
        (0..10).map(|i| done((i * 10 + 1) * MS, Direction::Read, 4096, 1000)).collect();
    dones.push(done(100 * MS + 50_000, Direction::Read, 4096, 3000));
    let directory = written(&jobs(vec![one.clone()]), &[(0, 100 * MS + 100_000, dones.clone())]);
    assert_eq!(text(directory.path(), "p_iops.1.log"), "100, 100, 0, 0, 0\n");
    assert_eq!(text(directory.path(), "p_bw.1.log"), "100, 400, 0, 0, 0\n");
    // Its time is logged.
    assert_eq!(text(directory.path(), "p_clat.1.log"), "100, 1000, 0, 0, 0\n100, 3000, 0, 0, 0\n");
    // A worker that ran only for such a short time has its row.
    let directory = written(&jobs(vec![one]), &[(0, 2 * MS, dones[..1].to_vec())]);
    assert_eq!(text(directory.path(), "p_iops.1.log"), "2, 500, 0, 0, 0\n");
}

#[test]
fn late_entries_of_an_interval_are_reported() {
    let mut one = logging("a");
    (one.clones, one.logs.summed) = (2, true);
    let all = jobs(vec![one]);
    let directory = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::new(&all, Some(directory.path()), 0).unwrap();
    for (worker, end) in [(0_u32, 5000 * MS), (1, 5000 * MS)] {
        let mut recorder = LogRecorder::new(&all.jobs[0], worker).unwrap();
        recorder.begin(0);
        recorder.record(&done(10 * MS, Direction::Read, 4096, 1000));
        writer.chunk(worker, &recorder.finish(end).unwrap()).unwrap();
    }
    let notes = writer.finish().unwrap();
    assert!(
        notes[0].ends_with("p_bw.log lacks 1 I/Os that were reported after their window was written"),
        "{notes:?}"
    );
}

#[test]
fn a_sum_grows_while_it_is_written_and_waits_for_the_slowest() {
    let mut one = logging("a");
    one.clones = 2;
    one.logs.summed = true;
    one.logs.window = Some(100 * MS);
    let all = jobs(vec![one]);
    let directory = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::new(&all, Some(directory.path()), 0).unwrap();
    let mut recorders: Vec<LogRecorder> =
        (0..2).map(|clone| LogRecorder::new(&all.jobs[0], clone).unwrap()).collect();
    let rows = |directory: &Path| text(directory, "p_iops.log").lines().count();
    for recorder in &mut recorders {
        recorder.begin(0);
    }
    for tick in 1..=8_u64 {
        for (worker, recorder) in recorders.iter_mut().enumerate() {
            // The second worker sends nothing for a while.
            if worker == 1 && tick > 4 && tick < 8 {
                continue;
            }
            for place in 0..5 {
                recorder.record(&done(
                    (tick - 1) * 500 * MS + place * 100 * MS + 10 * MS,
                    Direction::Read,
                    4096,
                    1000,
                ));
            }
            if let Some(chunk) = recorder.take(tick * 500 * MS) {
                writer.chunk(worker as u32, &chunk).unwrap();
            }
        }
        if tick == 4 {
            // After two seconds, the first is written.
            assert_eq!(rows(directory.path()), 10);
        }
        if tick == 7 {
            assert_eq!(rows(directory.path()), 20, "no further than the slower worker has reported");
        }
    }
    writer.finish().unwrap();
    assert_eq!(rows(directory.path()), 40);
}

#[test]
fn rows_are_in_the_file_as_soon_as_they_were_handed_over() {
    for compressed in [false, true] {
        let mut one = logging("a");
        one.logs.compressed = compressed;
        let all = jobs(vec![one]);
        let directory = tempfile::tempdir().unwrap();
        let mut writer = LogWriter::new(&all, Some(directory.path()), 0).unwrap();
        let mut recorder = LogRecorder::new(&all.jobs[0], 0).unwrap();
        recorder.record(&done(10 * MS, Direction::Read, 4096, 100_000));
        writer.chunk(0, &recorder.take(500 * MS).unwrap()).unwrap();
        // As after a kill: the file was not finished.
        let name = if compressed { "p_clat.1.log.fz" } else { "p_clat.1.log" };
        let bytes = std::fs::read(directory.path().join(name)).unwrap();
        let (text, whole) =
            if compressed { inflate(&bytes) } else { (String::from_utf8(bytes).unwrap(), true) };
        assert_eq!(text, "0, 100000, 0, 4096, 0\n");
        assert_eq!(whole, !compressed, "an unfinished archive says that it is");
        writer.finish().unwrap();
        if compressed {
            let (text, whole) = inflate(&std::fs::read(directory.path().join(name)).unwrap());
            assert_eq!((text.as_str(), whole), ("0, 100000, 0, 4096, 0\n", true));
        }
    }
}

/// The records that fio 3.33 stored for `log_offset=1` and `log_prio=1`, and the output of its `--inflate-log`.
#[test]
fn compressed_rows_are_fios_records() {
    let mut one = logging("a");
    (one.logs.compressed, one.logs.offset, one.logs.priority) = (true, true, true);
    let mut write = done(11 * MS + 1000, Direction::Write, 4096, 0x00af_9646);
    (write.issued, write.offset) = (0, 249_856);
    let directory = written(&jobs(vec![one]), &[(0, 12 * MS, vec![write])]);
    let bytes = std::fs::read(directory.path().join("p_clat.1.log.fz")).unwrap();
    let mut packed = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(bytes.as_slice()), &mut packed).unwrap();
    // The direction is the lower half of its word, flags are its highest bits, the priority follows.
    let words = [11_u64, 11_507_270, 0xc000_0001, 4096, 249_856];
    assert_eq!(packed, words.map(u64::to_le_bytes).concat());
    assert_eq!(inflate(&bytes), ("11, 11507270, 1, 4096, 249856, 0x0000\n".into(), true));
    let mut one = logging("a");
    (one.logs.compressed, one.logs.issue_time) = (true, true);
    let refused = LogWriter::new(&jobs(vec![one]), Some(directory.path()), 0).err().unwrap().to_string();
    assert!(refused.contains("cannot hold log_issue_time"), "{refused}");
}

#[test]
fn a_job_without_logs_records_nothing_and_a_bad_path_is_an_error() {
    assert!(LogRecorder::new(&Job::named("a"), 0).is_none());
    assert!(LogWriter::new(&jobs(vec![Job::named("a")]), None, 0).unwrap().is_empty());
    let mut one = logging("a");
    one.logs.bandwidth = Some("/proc/none/p".into());
    let error = LogWriter::new(&jobs(vec![one]), None, 0).err().unwrap().to_string();
    assert!(error.contains("/proc/none"), "{error}");
    let mut one = logging("a");
    one.logs.epoch_clock = Some(99);
    let directory = tempfile::tempdir().unwrap();
    let error = LogWriter::new(&jobs(vec![one]), Some(directory.path()), 0).err().unwrap().to_string();
    assert!(error.contains("clock 99"), "{error}");
}

#[test]
fn times_not_taken_have_no_file() {
    let mut one = logging("a");
    one.report.disabled.submission = true;
    one.report.disabled.latency = true;
    let directory = written(&jobs(vec![one]), &[]);
    assert!(!directory.path().join("p_slat.1.log").exists());
    assert!(!directory.path().join("p_lat.1.log").exists());
    assert!(directory.path().join("p_clat.1.log").exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Rates × their windows equal the work done, wherever chunks are divided; and a sum equals that of its workers.
    #[test]
    fn rows_add_up_to_what_was_done(
        ends in prop::collection::vec((0_u64..3_000, 0_u64..2, 1_u32..64), 1..200),
        cut in 1_u64..700,
        begin in 0_u64..900,
    ) {
        let mut one = Job::named("a");
        one.logs.iops = Some("p".into());
        one.logs.window = Some(50 * MS);
        one.logs.summed = true;
        let all = jobs(vec![one]);
        let directory = tempfile::tempdir().unwrap();
        let mut writer = LogWriter::new(&all, Some(directory.path()), 0).unwrap();
        let mut recorder = LogRecorder::new(&all.jobs[0], 0).unwrap();
        let mut ends = ends;
        ends.sort_unstable();
        recorder.begin(begin * MS);
        let mut next = begin + cut;
        let mut counted = 0.0;
        let mut count = |chunk: &kelvin_storage::log::Chunk| {
            for row in &chunk.rows {
                counted += row.value * row.weight.1 as f64 / 1e9;
                assert!((row.value * row.weight.1 as f64 / 1e9 - row.weight.0 as f64).abs() < 1e-6);
            }
        };
        for (at, direction, blocks) in &ends {
            while begin + at >= next {
                if let Some(chunk) = recorder.take(next * MS) {
                    count(&chunk);
                    writer.chunk(0, &chunk).unwrap();
                }
                next += cut;
            }
            let direction = Direction::ALL[*direction as usize];
            recorder.record(&done((begin + at) * MS + 500_000, direction, blocks * 512, 10_000));
        }
        let chunk = recorder.finish((begin + 3_100) * MS).unwrap();
        prop_assert!(chunk.last);
        count(&chunk);
        writer.chunk(0, &chunk).unwrap();
        prop_assert!(writer.finish().unwrap().is_empty());
        prop_assert!((counted - ends.len() as f64).abs() < 1e-3, "{counted} of {}", ends.len());
        // Rows of the sum are rounded to whole I/Os per second.
        let summed: f64 = text(directory.path(), "p_iops.log")
            .lines()
            .map(|line| line.split(", ").nth(1).unwrap().parse::<f64>().unwrap() * 0.05)
            .sum();
        prop_assert!(summed > 0.0);
    }
}

#[test]
fn the_workers_of_one_log_stand_one_behind_the_other_whatever_came_first() {
    for compressed in [false, true] {
        let mut one = Job::named("a");
        one.clones = 2;
        one.logs.latency = Some("p".into());
        one.logs.per_job = false;
        one.logs.compressed = compressed;
        let all = jobs(vec![one.clone()]);
        let directory = tempfile::tempdir().unwrap();
        let mut writer = LogWriter::new(&all, Some(directory.path()), 0).unwrap();
        for (begin, worker) in [(0, 0), (0, 1), (100, 0), (100, 1)] {
            let mut recorder = LogRecorder::new(&one, worker).unwrap();
            recorder.begin(0);
            recorder.record(&done((begin + 50) * MS, Direction::Read, 4096, u64::from(worker + 1) * 100_000));
            writer.chunk(worker, &recorder.finish((begin + 100) * MS).unwrap()).unwrap();
        }
        writer.finish().unwrap();
        let name = if compressed { "p_clat.log.fz" } else { "p_clat.log" };
        let bytes = std::fs::read(directory.path().join(name)).unwrap();
        let text = if compressed { inflate(&bytes).0 } else { String::from_utf8(bytes).unwrap() };
        let rows: Vec<&str> = text.lines().map(|line| line.split(", 0, ").next().unwrap()).collect();
        assert_eq!(rows, ["50, 100000", "150, 100000", "50, 200000", "150, 200000"]);
        // slat, clat and lat, and none of their parts.
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 3);
    }
}
