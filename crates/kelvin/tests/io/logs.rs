//! Logs, charts and explanations.

use serde_json::Value;

use super::support::text;
use super::{JOB, place};

/// The mean of a run is the same in a chart and in its table, including the last fraction of a second.
#[test]
fn trial_c10_a_chart_and_a_table_have_the_same_mean() {
    let place = place(
        "[a]\nfilename=data\nsize=1m\nrw=randread\nioengine=psync\nrate_iops=100\ntime_based\nruntime=1150ms\n",
    );
    for _ in 0..2 {
        place.expect(0, &["io", "job.fio", "--no-observe"]);
    }
    place.expect(0, &["io", "plot", "1", "2", "--out", "charts"]);
    let svg = std::fs::read_to_string(place.path("charts/compared-iops-read.svg")).unwrap();
    for run in ["1", "2"] {
        let (_, rest) = svg.split_once(&format!("run {run} (mean ")).unwrap_or_else(|| panic!("{svg}"));
        let (mean, unit) = rest.split_once(' ').unwrap();
        assert!(unit.starts_with("IOPS)"), "{unit}");
        let mean: f64 = mean.replace(',', "").parse().unwrap();
        let point = &place.report(run)["points"][0];
        let table = point["headline_per_second"].as_f64().unwrap();
        assert!((mean / table - 1.0).abs() < 0.002, "{mean} in the chart, {table} in the table");
    }
}

#[test]
fn trial_c10_explain_refuses_what_has_nothing_to_explain() {
    let place = place(JOB);
    for (content, why) in
        [("{\"jobs\":5}", "no fio JSON result"), ("\n{\"jobs\":[]}", "bad.json:2: this result has no jobs")]
    {
        place.write("bad.json", content);
        let output = place.run(&["io", "explain", "bad.json"]);
        assert_eq!(output.status.code(), Some(2), "{content}");
        assert!(text(&output.stderr).contains(why) && output.stdout.is_empty(), "{}", text(&output.stderr));
    }
}

#[test]
fn compressed_logs_are_read() {
    let job = format!("{JOB}write_lat_log=times\nlog_compression=64k\nlog_store_compressed=1\n");
    let place = place(&job);
    let output = place.run(&["io", "job.fio", "--no-observe", "--no-store"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = place.run(&["io", "--inflate-log=times_clat.1.log.fz"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 100);
    let output = place.run(&["io", "--inflate-log=data"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("not a compressed"), "{}", text(&output.stderr));
}

#[test]
fn logs_results_and_runs_are_plotted_with_each_direction_apart() {
    let place = place(
        "[mix]\nfilename=data\nsize=1m\nbs=4k\nioengine=psync\nrw=randrw\nrandseed=7\nnumber_ios=200\n\
         write_bw_log=mix\nwrite_lat_log=mix\n",
    );
    place.expect(0, &["io", "job.fio", "--no-observe", "--output=mix.json", "--output-format=json+"]);
    let words = "io plot mix_bw.1.log mix_clat.1.log mix.json last --png --title a<b --out charts";
    let printed = place.expect(0, &words.split(' ').collect::<Vec<_>>());
    assert!(printed.contains("charts/index.html"), "{printed}");
    let read = |name: &str| std::fs::read_to_string(place.path("charts").join(name)).unwrap();
    let pictures: [(&str, &[&str]); 6] = [
        ("mix_bw.1-time", &[">read, as measured<", ">write, as measured<"]),
        ("mix_clat.1-time", &[">read, as measured<", ">write, as measured<", "single I/Os"]),
        ("bandwidth-written", &[">mix_bw.1<"]),
        ("latency-histogram-read", &["mix mix (", "run 1 read, 50 % reads, bs 4k, depth 1 ("]),
        ("latency-histogram-write", &["mix mix (", "run 1 write, 50 % reads, bs 4k"]),
        ("latency-percentiles-write", &["run 1 write, "]),
    ];
    let page = read("index.html");
    assert!(page.contains("<h1>a&lt;b</h1>"));
    for (name, parts) in pictures {
        let svg = read(&format!("{name}.svg"));
        for part in parts {
            assert!(svg.contains(part), "no {part} in {name}\n{svg}");
        }
        assert!(page.contains(svg.trim()), "{name} is not on the page");
        let png = std::fs::read(place.path(&format!("charts/{name}.png"))).unwrap();
        // librsvg paints twice as many pixels as the picture has units.
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
        let width = svg.split("width=\"").nth(1).unwrap().split('"').next().unwrap();
        let pixels = u32::from_be_bytes(png[16..20].try_into().unwrap());
        assert_eq!(f64::from(pixels), 2.0 * width.parse::<f64>().unwrap(), "{name}");
    }
    let no_program = place.command(&["io", "plot", "mix.json", "--png"]).env("PATH", "").output().unwrap();
    assert_eq!(no_program.status.code(), Some(2));
    let message = text(&no_program.stderr);
    assert!(message.contains("rsvg-convert") && message.contains("librsvg2-bin"), "{message}");
    // Each direction has a histogram, and their counts add up to the result's.
    let counts = |direction: &str| -> u64 {
        let svg = read(&format!("latency-histogram-{direction}.svg"));
        let (_, name) = svg.split_once(&format!("run 1 {direction}, ")).unwrap();
        let count = name.split_once('(').unwrap().1.split(' ').next().unwrap();
        count.parse().unwrap()
    };
    assert_eq!(counts("read") + counts("write"), 200);
    place.expect(0, &["report", "last", "--html", "--output", "page.html"]);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    let json = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: Value = serde_json::from_str(json).unwrap();
    let names: Vec<_> =
        data["points"][0]["directions"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["read", "write"]);
    for direction in ["read", "write"] {
        assert!(page.contains(&format!("histogram of completion times, {direction}")), "{direction}");
    }
    place.write("bad_bw.1.log", "1, 2, 0, 0, 0\nfio: hello\n");
    let output = place.run(&["io", "plot", "mix_bw.1.log", "bad_bw.1.log", "--out", "none"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("bad_bw.1.log:2: 1 columns"), "{stderr}");
    assert!(output.stdout.is_empty() && !place.path("none").exists(), "nothing is drawn of a part");
}
