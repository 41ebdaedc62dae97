use kelvin_storage::log::LogKind;
use kelvin_storage::output::read::parse_json;
use proptest::prelude::*;

use super::series;
use super::*;

fn log(name: &str, text: &str) -> IoLogFile {
    read(name, name, text.as_bytes()).unwrap()
}

/// One line per number.
fn lines(of: impl IntoIterator<Item = u64>, line: impl Fn(u64) -> String) -> String {
    of.into_iter().map(|at| line(at) + "\n").collect::<Vec<_>>().concat()
}

fn refused(name: &str, text: &str) -> String {
    read(name, &format!("dir/{name}"), text.as_bytes()).unwrap_err().to_string()
}

/// Reads of 100 MiB/s that drop by 1 MiB/s every 100 ms, and writes of 20 MiB/s that drop sharply to 5.
fn averaged() -> String {
    let row = |at: u64| {
        let write = if at < 12 { 20 } else { 5 };
        format!("{0}, {1}, 0, 0, 0\n{0}, {2}, 1, 0, 0\n", at * 100, (101 - at) * 1024, write * 1024)
    };
    (1..=20).map(row).collect()
}

fn document(svg: &str) -> roxmltree::Document<'_> {
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    roxmltree::Document::parse(svg).unwrap()
}

#[test]
fn a_name_says_which_log_it_is() {
    assert!(is_log("a_b_clat.12.log.fz"));
    for (name, prefix, job) in [
        ("a_bw.1.log", "a", Some(1)),
        ("a_b_clat.12.log", "a_b", Some(12)),
        ("x_lat.log", "x", None),
        ("_iops.log", "", None),
        ("a.b_slat.log", "a.b", None),
    ] {
        assert!(is_log(name), "{name}");
        let found = log(name, "1, 2, 0, 0");
        assert_eq!((found.prefix.as_str(), found.job), (prefix, job));
    }
    for name in ["a.log", "a_bw.txt", "bw", "a_bwx.log", "a_bw.x.log", "result.json"] {
        assert!(!is_log(name), "{name}");
    }
    assert!(refused("a.log", "").contains("does not identify the kind of log"));
}

#[test]
fn rows_of_every_version_are_read() {
    // fio 2 (four columns), fio 3, with offsets, and with issue times.
    for text in ["5, 7, 1, 0", "5, 7, 1, 0, 0", "5, 7, 1, 0, 4096, 0x0004", "5, 7, 1, 0, 0, 0, 1234"] {
        let Rows::Values { kind, single, parts } = log("a_iops.log", text).rows else { panic!() };
        assert_eq!((kind, single, parts.len()), (LogKind::Iops, false, 1));
        assert_eq!(parts[0], [Row { time: 5, value: 7.0, direction: Direction::Write, length: 0 }], "{text}");
    }
    // Mean and maximum: all later columns are shifted by one.
    let Rows::Values { parts, .. } = log("a_clat.log", "5, 700, 900, 1, 0, 0\n9, 1, 1, 0, 0, 0\n").rows
    else {
        panic!()
    };
    assert_eq!(parts[0][0], Row { time: 5, value: 700.0, direction: Direction::Write, length: 0 });
    assert_eq!(parts[0][1].direction, Direction::Read);
    // The workers follow each other in the file.
    let Rows::Values { parts, .. } =
        log("a_bw.log", "500, 1, 0, 0\n1000, 2, 0, 0\n500, 3, 0, 0\n1000, 4, 0, 0").rows
    else {
        panic!()
    };
    assert_eq!(parts.len(), 2);
    // Also if each has only one window.
    let Rows::Values { parts, .. } = log("a_bw.log", "500, 1, 0, 0\n500, 2, 1, 0\n500, 3, 0, 0\n").rows
    else {
        panic!()
    };
    assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn a_log_that_is_cut_off_within_a_row_says_so() {
    assert_eq!(log("a_bw.log", "500, 1, 0, 0\n").notes, Vec::<String>::new());
    let notes = log("a_bw.log", "500, 1, 0, 0\n1000, 1, 0, 0").notes;
    assert_eq!(
        notes,
        ["a_bw.log does not end with a complete line: it is truncated, or still being written"]
    );
}

#[test]
fn what_does_not_fit_is_refused_with_its_line() {
    assert_eq!(
        refused("a_bw.log", "1, 2, 0, 0, 0\n\nfio: hello\n"),
        "dir/a_bw.log:3: 1 columns; a row of a fio log has at least time, value, direction and block size"
    );
    assert!(
        refused("a_bw.log", "1, 2, 0, 0\n2, x, 0, 0")
            .starts_with("dir/a_bw.log:2: \"x\" is not a valid value")
    );
    assert!(refused("a_bw.log", "1, 2, 5, 0").contains("direction 5 is none of 0 (read)"));
    assert!(refused("a_bw.log", "1, -2, 0, 0").contains(":1: \"-2\" is not a valid value"));
    assert!(refused("a_bw.log", "").contains("the log is empty"));
    assert!(refused("a_bw.log.fz", "nothing").contains("not a compressed fio log"));
    let mixed = refused("a_clat.log", "1, 2, 0, 4096, 0\n2, 2, 0, 0, 0\n");
    assert!(
        mixed.starts_with("dir/a_clat.log:2: a row of a window") && mixed.contains("two logs in one file"),
        "{mixed}"
    );
    assert!(refused("a_clat_hist.log", "1, 0, 4096, 1, 2").contains(":1: 5 columns"));
    assert!(
        read("a_bw.log", "a_bw.log", b"1, 2, 0, 0\n\xff\xfe")
            .unwrap_err()
            .to_string()
            .contains(":2: not text")
    );
}

#[test]
fn histograms_are_read_at_every_coarseness() {
    for coarseness in 0..=6 {
        let columns = kelvin_storage::BINS >> coarseness;
        let mut counts = vec!["0"; columns];
        counts[640 >> coarseness] = "7";
        // fio ends its rows with a comma, Kelvin does not.
        for end in ["", ","] {
            let text = format!("100, 1, 4096, {}{end}\n", counts.join(", "));
            let Rows::Histograms(rows) = log("a_clat_hist.1.log", &text).rows else { panic!() };
            assert_eq!(
                (rows[0].direction, rows[0].counts.len(), rows[0].counts[0].1),
                (Direction::Write, 1, 7)
            );
            let (nanos, truth) = (rows[0].counts[0].0 as f64, kelvin_storage::middle(640) as f64);
            assert!((nanos / truth - 1.0).abs() < 0.01 * f64::from(1 << coarseness), "{coarseness}: {nanos}");
        }
    }
}

#[test]
fn single_ios_become_rates_that_add_up() {
    // 1000 reads of 4 KiB, one per millisecond, and one write.
    let mut text = lines(0..1000, |at| format!("{at}, {}, 0, 4096, 0", 1 + at % 7));
    text.push_str("999, 5, 1, 8192, 0\n");
    let found = series::series_of_log(&log("a_bw.log", &text));
    assert_eq!(
        found.iter().map(|one| one.direction).collect::<Vec<_>>(),
        [Direction::Read, Direction::Write]
    );
    for point in &found[0].points {
        assert!((point.value - 4_096_000.0).abs() < 1.0, "{point:?}");
    }
    for (one, bytes) in found.iter().zip([4_096_000.0, 8192.0]) {
        let drawn: f64 = one.points.iter().map(|point| point.value * point.width).sum();
        assert!((drawn - bytes).abs() < 1.0, "{drawn}");
    }
    let times = series::series_of_log(&log("a_clat.log", &text));
    assert_eq!((times[0].points[0].low, times[0].points[0].high), (1.0, 7.0));
}

#[test]
fn a_window_without_ios_is_a_rate_of_0() {
    let rows = |from: u64| lines(from..from + 200, |at| format!("{at}, 1, 1, 1024, 0"));
    let found = series::series_of_log(&log("a_iops.log", &(rows(0) + &rows(600))));
    assert!(found[0].points.iter().any(|point| point.value == 0.0 && point.time > 0.3 && point.time < 0.6));
}

#[test]
fn a_window_that_fio_leaves_out_is_a_rate_of_0() {
    // Written by fio 3.33 for bursts of 20 writes of 64 KiB: 1280 KiB in a window of 200 ms, then none for a
    // while.
    let text = "200, 6400, 1, 0, 0\n800, 6400, 1, 0, 0\n1600, 6400, 1, 0, 0\n2203, 6400, 1, 0, 0\n\
        2803, 320, 1, 0, 0\n3003, 6080, 1, 0, 0\n3604, 6400, 1, 0, 0\n";
    let found = series::series_of_log(&log("think_bw.1.log", text));
    let bytes: f64 = found[0].points.iter().map(|point| point.value * point.width).sum();
    assert!((bytes / (6.0 * 1280.0 * 1024.0) - 1.0).abs() < 0.02, "{bytes}");
    assert!(found[0].points.iter().any(|point| point.value == 0.0 && point.time > 1.2 && point.time < 1.5));
    assert_eq!(found[0].how, "windows of 200 ms as logged; windows missing in the log are 0");
    // A short last window does not turn the others into gaps.
    let text = "500, 10, 0, 0\n1000, 10, 0, 0\n1501, 10, 0, 0\n1620, 10, 0, 0\n";
    let found = series::series_of_log(&log("a_bw.log", text));
    assert_eq!(found[0].points.len(), 4);
    // Latencies have no value if no I/O ended.
    assert_eq!(
        series::series_of_log(&log("a_clat.log", "200, 5, 0, 0\n400, 5, 0, 0\n1600, 5, 0, 0\n"))[0]
            .points
            .len(),
        3
    );
}

#[test]
fn huge_figures_are_refused_or_drawn_and_never_overflow() {
    let most = u64::MAX;
    assert!(
        refused("a_bw.log", &format!("{most}, 1, 0, 0")).contains(":1: 18446744073709551615 is not a time")
    );
    assert!(
        refused("a_bw.log", "1, 99999999999999999999999, 0, 0")
            .contains(":1: \"99999999999999999999999\" is not a valid value")
    );
    let mut counts = vec!["0".to_owned(); kelvin_storage::BINS];
    counts[5] = most.to_string();
    assert!(
        refused("a_clat_hist.log", &format!("1, 0, 4096, {}", counts.join(", ")))
            .contains("implausibly many")
    );
    for kind in ["bw", "iops", "clat"] {
        for length in [0, most] {
            let mut inputs = Inputs::default();
            inputs.log(&log(
                &format!("a_{kind}.log"),
                &lines(0..9, |at| format!("{}, {most}, 1, {length}, 0", at.pow(14))),
            ));
            for chart in inputs.charts() {
                document(&chart.svg);
            }
        }
    }
    let mut inputs = Inputs::default();
    inputs.log(&log("a_iops.log", &lines(1..9, |at| format!("{at}, 0, 1, 0, 0"))));
    for chart in inputs.charts() {
        document(&chart.svg);
    }
}

#[test]
fn smoothing_never_goes_beyond_what_was_measured() {
    let text = lines(1..200, |at| format!("{at}, {}, 0, 0", if at % 50 == 0 { 10_000 } else { 100 }));
    let one = &series::series_of_log(&log("a_iops.log", &text))[0];
    let smoothed = one.smoothed();
    assert_eq!(smoothed.len(), one.points.len());
    assert!(smoothed.iter().all(|value| (100.0..=10_000.0).contains(value)));
    assert_eq!(smoothed[0], 100.0);
}

#[test]
fn read_and_write_have_lines_of_their_own() {
    let mut inputs = Inputs::default();
    inputs.log(&log("mix_bw.1.log", &averaged()));
    let charts = inputs.charts();
    assert_eq!(
        charts.iter().map(|chart| chart.name.as_str()).collect::<Vec<_>>(),
        ["mix_bw.1-time", "bandwidth-written"]
    );
    let document = document(&charts[0].svg);
    let lines = document.descendants().filter(|node| node.has_tag_name("polyline"));
    assert_eq!(lines.count(), 6, "of each direction what was measured, its mean, its trend");
    insta::assert_snapshot!("time", charts[0].svg);
    insta::assert_snapshot!("written", charts[1].svg);
}

/// Dropping sharply and halving again and again: a share of the initial value cannot fall by more than 100 %.
#[test]
fn trial_c10_no_trend_falls_by_more_than_there_was() {
    let of = |value: &dyn Fn(u64) -> u64| {
        lines(1..=20, |at| format!("{}, {}, 0, 0, 0", at * 100, value(at) * 1024))
    };
    let shapes = [
        averaged(),
        of(&|at| 1000 - 40 * at),
        of(&|at| if at < 12 { 900 } else { 1 }),
        of(&|at| 1_000_000 >> at),
        of(&|at| (21 - at) * (21 - at)),
        of(&|at| if at < 7 { 5000 } else { 21 - at }),
    ];
    let mut shares = 0;
    for text in shapes {
        let mut inputs = Inputs::default();
        inputs.log(&log("a_bw.1.log", &text));
        for chart in inputs.charts() {
            for part in chart.svg.split(" % overall").filter(|part| part.contains("trend: ")) {
                let Some((_, share)) = part.rsplit_once('(') else { continue };
                let Ok(share) = share.replace('\u{2212}', "-").parse::<f64>() else { continue };
                assert!(share >= -100.0, "{share} %\n{text}");
                shares += 1;
            }
        }
    }
    assert!(shares >= 4, "{shares}");
}

#[test]
fn many_are_small_and_few_are_together() {
    for (count, panels) in [(3, 1), (9, 9)] {
        let mut inputs = Inputs::default();
        for at in 1..=count {
            inputs.log(&log(
                &format!("<j{at}>_iops.{at}.log"),
                "100, 50, 0, 0\n200, 70, 0, 0\n300, 60, 0, 0\n",
            ));
        }
        let charts = inputs.charts();
        let compared = charts.iter().find(|chart| chart.name == "compared-iops-read").unwrap();
        let document = document(&compared.svg);
        let dashed = document.descendants().filter(|node| node.attribute("stroke-dasharray").is_some());
        let polylines = dashed.filter(|node| node.has_tag_name("polyline"));
        assert_eq!(polylines.count(), panels, "the mean in each panel");
        assert!(
            compared.svg.contains("&lt;j1&gt;_iops.1")
                && compared.svg.contains(&format!("mean of all {count}: 60"))
        );
    }
}

#[test]
fn percentiles_and_histogram_come_from_the_bins() {
    let mut counts = vec![0_u64; kelvin_storage::BINS];
    (counts[600], counts[700], counts[900]) = (900, 90, 10);
    let row = counts.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let mut inputs = Inputs::default();
    inputs.log(&log("a_clat_hist.1.log", &format!("100, 0, 4096, {row}\n200, 0, 4096, {row}\n")));
    let times = &inputs.times[&Direction::Read][0];
    assert_eq!(times.count, 2000);
    let curve = times.curve();
    assert_eq!(
        curve.iter().map(|point| (point.0 * 10.0).round() / 10.0).collect::<Vec<_>>(),
        [45.0, 94.5, 99.5]
    );
    let charts = inputs.charts();
    assert_eq!(charts.len(), 2);
    for chart in &charts {
        document(&chart.svg);
        insta::assert_snapshot!(chart.name.clone(), chart.svg);
    }
    // At least ten samples beyond the percentile are required.
    let few = CompletionTimes { count: 20, bins: vec![(5, 8), (9, 12)], ..CompletionTimes::default() };
    assert_eq!(few.curve().len(), 1);
}

fn result(rw: &str, bs: &str, depth: u32, jobs: u32, mix: u32, iops: f64) -> String {
    let line = |iops: f64| {
        format!(
            r#"{{"total_ios":1000,"io_bytes":4096000,"bw":{0},"bw_bytes":{1},"iops":{iops},"runtime":1000,
            "clat_ns":{{"min":1,"max":9,"mean":{2},"stddev":1,"N":1000,"percentile":{{"50.000000":100,"99.000000":900}}}}}}"#,
            iops * 4.0,
            iops * 4096.0,
            1e9 / iops
        )
    };
    let entry = format!(
        r#"{{"jobname":"j","groupid":0,"error":0,"job options":{{"rw":"{rw}","bs":"{bs}","iodepth":"{depth}","numjobs":"{jobs}","rwmixread":"{mix}"}},
        "read":{},"write":{}}}"#,
        line(iops),
        line(iops / 2.0)
    );
    // Without group_reporting each clone has a separate entry.
    let entries = vec![entry; jobs as usize].join(",");
    format!("{{\"fio version\":\"fio-3.33\",\"jobs\":[{entries}]}}")
}

fn inputs(results: &[(&str, &str, u32, u32, u32, f64)]) -> Inputs {
    let mut inputs = Inputs::default();
    for (at, (rw, bs, depth, jobs, mix, iops)) in results.iter().enumerate() {
        let parsed = parse_json(&result(rw, bs, *depth, *jobs, *mix, *iops), None).unwrap();
        inputs.measured(JobMeasurement::of_result(&format!("r{at}"), &parsed.results[0]));
    }
    inputs
}

#[test]
fn clones_are_added_up_and_bars_are_drawn_of_depth_and_jobs() {
    let inputs = inputs(&[
        ("randrw", "4k", 1, 1, 70, 1000.0),
        ("randrw", "4k", 1, 4, 70, 900.0),
        ("randrw", "4k", 8, 1, 70, 5000.0),
        ("randrw", "4k", 8, 4, 70, 3000.0),
    ]);
    assert_eq!(inputs.measured.len(), 4);
    assert_eq!(inputs.measured[3].did[0].iops, 12_000.0);
    assert_eq!(inputs.measured[3].about(), "job j, randrw, 70 % reads, bs 4k, depth 8, 4 jobs, fio-3.33");
    let charts = inputs.charts();
    let bars: Vec<&Chart> = charts.iter().filter(|chart| chart.name.starts_with("depth-jobs")).collect();
    assert_eq!(bars.len(), 4, "IOPS and times, reads and writes");
    let document = document(&bars[0].svg);
    assert_eq!(document.descendants().filter(|node| node.has_tag_name("rect")).count(), 1 + 4);
    insta::assert_snapshot!("bars", bars[0].svg);
}

#[test]
fn a_heat_map_shows_its_values() {
    let inputs = inputs(&[
        ("randrw", "4k", 1, 1, 70, 1000.0),
        ("randrw", "64k", 1, 1, 70, 400.0),
        ("randrw", "4k", 1, 1, 30, 800.0),
        ("randrw", "64k", 1, 1, 30, 200.0),
    ]);
    let charts = inputs.charts();
    let map = charts.iter().find(|chart| chart.name.starts_with("blocks-mix-iops-read")).unwrap();
    document(&map.svg);
    for value in ["1,000", "400", "800", "200", "64 KiB", "70 %"] {
        assert!(map.svg.contains(&format!(">{value}</text>")), "{value}");
    }
    insta::assert_snapshot!("map", map.svg);
}

#[test]
fn a_page_holds_all_charts_and_nothing_from_outside() {
    let mut inputs = Inputs::default();
    inputs.log(&log("mix_bw.1.log", &averaged()));
    let charts = inputs.charts();
    let page = page("a <b>", &charts, &["a note".into()]);
    assert_eq!(page.matches("<svg").count(), charts.len());
    assert!(page.contains("a &lt;b&gt;") && page.contains("a note"));
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http") && !outside.contains("<script"));
}

#[test]
fn the_unit_is_one_that_reads_well() {
    assert_eq!(series::unit(LogKind::Bandwidth, 3e9).0, "MiB/s");
    assert_eq!(series::unit(LogKind::Bandwidth, 3e10), ("GiB/s", 1_073_741_824.0));
    assert_eq!(
        [5e2, 5e3, 5e7, 5e10].map(|nanos| series::unit(LogKind::Total, nanos).0),
        ["ns", "µs", "ms", "s"]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9, \nx-]{0,120}", name in "a_(bw|iops|clat|clat_hist)\\.log(\\.fz)?") {
        if let Ok(log) = read(&name, &name, text.as_bytes()) {
            let mut inputs = Inputs::default();
            inputs.log(&log);
            for chart in inputs.charts() {
                document(&chart.svg);
            }
        }
    }

    #[test]
    fn written_rows_are_read_again(
        rows in prop::collection::vec((0_u64..5000, 0_u64..1 << 40, 0_u64..3), 1..60),
        single in any::<bool>(),
    ) {
        let mut rows = rows;
        rows.sort_by_key(|row| row.0);
        let length = if single { 4096 } else { 0 };
        let row = |at: u64| rows.get(at as usize).map(|(time, value, direction)| format!("{time}, {value}, {direction}, {length}, 0"));
        let text = lines(0..rows.len() as u64, |at| row(at).unwrap());
        let Rows::Values { single: found, parts, .. } = log("a_clat.log", &text).rows else { panic!() };
        prop_assert_eq!(found, single);
        let again: Vec<(u64, u64, u64)> =
            parts.concat().iter().map(|row| (row.time, row.value as u64, row.direction as u64)).collect();
        prop_assert_eq!(again, rows);
        let mut inputs = Inputs::default();
        inputs.log(&log("a_bw.log", &text));
        // All values of the log are in the chart.
        for one in &inputs.series {
            prop_assert!(!one.points.is_empty() && one.points.iter().all(|point| point.value.is_finite()));
        }
        for chart in inputs.charts() {
            document(&chart.svg);
        }
    }
}
