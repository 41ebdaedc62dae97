//! Phases of jobs, and rates within them.

use super::place;
use super::support::{text, undisturbed};

/// Two phases, of which only the first has a rate.
const PHASES: &str = "[global]\nfilename=data\nsize=1m\nbs=4k\nioengine=psync\nnumber_ios=100\n\
    [paced]\nrw=randread\nnumjobs=2\nrate_iops=2000\n[free]\nstonewall\nrw=randrw\n";

#[test]
fn stonewalls_are_phases_of_their_own() {
    let place = place(PHASES);
    place.expect(0, &["io", "job.fio", "--no-observe"]);
    let report = place.report("last");
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    assert_eq!(points[0]["headline_count"], 200);
    assert_eq!(points[1]["headline_count"], 100);
    // The rate of one phase does not make the other an open loop, and unused directions have no row.
    assert_eq!((&points[0]["open_loop"], &points[1]["open_loop"]), (&true.into(), &false.into()));
    assert_eq!(report["open_loop"], false);
    let rows = |point: usize, what: &str| points[point][what].as_array().unwrap().len();
    assert_eq!(
        (rows(0, "latency"), rows(0, "response"), rows(1, "latency"), rows(1, "response")),
        (1, 1, 2, 0)
    );
    assert!(points[1]["response_all"].is_null() && points[1]["schedule"].is_null());
    let shown = place.expect(0, &["show", "last"]);
    assert!(shown.contains("phase 2 (1 worker)"), "{shown}");
    assert_eq!(shown.matches("job free: random reads and writes").count(), 1, "{shown}");
    let listed = place.expect(0, &["runs"]);
    for part in ["2 phases", "phase 1      2", "phase 2      1"] {
        assert!(listed.contains(part), "no {part} in\n{listed}");
    }
    place.expect(0, &["report", "last", "--html", "--output", "page.html"]);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    let rows = place.expect(0, &["report", "last", "--csv=jobs", "--output", "-"]);
    assert_eq!(rows.lines().count(), 1 + 1 + 2, "{rows}");
    // The last part of the page is the charts' script, which other runs have, too.
    let page = page.split("<script").next().unwrap();
    for part in [
        "Jobs and devices",
        "IOPS, phase 2 (1 worker)",
        "<td class=\"l\">free</td>",
        "shorter than two seconds",
    ] {
        assert!(page.contains(part), "no {part} in the page");
    }
    for word in ["virtual user", "transaction", "connection", "client process"] {
        assert!(!page.contains(word), "{word} in the page of a run of I/O jobs");
    }
    place.expect(0, &["io", "job.fio", "--no-observe"]);
    let compared = place.expect(0, &["compare", "1", "2"]);
    for part in ["phase 1: 4,000/s requested", "phase 2: 1 worker", "response p99, µs", "write p95, µs"] {
        assert!(compared.contains(part), "no {part} in\n{compared}");
    }
    // Repeated runs need a single metric.
    let refused = place.run(&["io", "job.fio", "--repeat", "2"]);
    assert!(text(&refused.stderr).contains("2 phases (stonewall)"), "{}", text(&refused.stderr));
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn a_rate_in_some_jobs_leaves_the_throughput_to_be_found_out() {
    let job = "[global]\nfilename=data\nsize=1m\nioengine=psync\nrw=randread\nnumber_ios=50\n[paced]\nrate_iops=2000\n[free]\n";
    let place = place(job);
    place.expect(0, &["io", "job.fio", "--no-observe"]);
    let point = &place.report("last")["points"][0];
    assert_eq!(point["open_loop"], false);
    // The response times of jobs with a rate are reported nevertheless.
    assert_eq!(
        (&point["response_all"]["committed"], &point["latency_all"]["committed"]),
        (&50.into(), &100.into())
    );
    assert!(place.expect(0, &["show", "last"]).contains("closed loop next to jobs with a rate"));
}

/// Two jobs, one after the other: each applies its rate in its half of the window.
#[test]
fn a_rate_is_of_the_time_that_its_jobs_cover() {
    let place = place(
        "[global]\nfilename=data\nsize=1m\nrw=randread\nioengine=psync\nrate_iops=200\ntime_based\nruntime=1\n\
         [first]\n[second]\nstartdelay=1\n",
    );
    let run = || place.expect(0, &["io", "job.fio", "--no-observe"]);
    let (_, report) = undisturbed(run, |_| place.report("last"));
    let point = &report["points"][0];
    let schedule = &point["schedule"];
    let asked = schedule["asked_per_second"].as_f64().unwrap();
    let window = point["window_s"].as_f64().unwrap();
    assert!((asked * window / 400.0 - 1.0).abs() < 0.1, "{asked} asked a second for {window} s");
    assert!(schedule["achieved_ratio"].as_f64().unwrap() > 0.8, "{schedule}");
}

/// The job ends early because its amount is done. Although it is late, no requests are left.
#[test]
fn a_job_that_did_all_that_it_had_to_do_left_nothing_waiting() {
    let place =
        place("[a]\nioengine=null\nsize=64k\nbs=4k\nrw=read\nrate_iops=100\nthinktime=30ms\nruntime=60\n");
    place.expect(0, &["io", "job.fio", "--no-observe"]);
    let schedule = &place.report("last")["points"][0]["schedule"];
    assert_eq!((&schedule["due"], &schedule["waiting"]), (&16.into(), &0.into()), "{schedule}");
    assert!(schedule["achieved_ratio"].as_f64().unwrap() < 0.9, "{schedule}");
}
