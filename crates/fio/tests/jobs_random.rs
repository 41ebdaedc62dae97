//! Job files made at random: none makes the parser panic, and what was read is shown as words that say the same.

use kelvin_fio::error::Location;
use kelvin_fio::job::Jobs;
use kelvin_fio::jobfile::{parse_arguments, parse_text, render_command_line, shown_words};
use proptest::prelude::*;

/// Pieces that job files are made of, so that random texts come past the first letter.
const PIECES: &[&str] = &[
    "[",
    "]",
    "[global]",
    "[a]",
    "\n",
    "=",
    ",",
    ":",
    "/",
    "-",
    "%",
    "(",
    ")",
    "*",
    "^",
    "0x",
    "k",
    "m",
    "g",
    "ki",
    "kib",
    "ms",
    "s",
    "1",
    "4",
    "0",
    "99999999999999999999",
    "0.5",
    "rw",
    "randread",
    "bs",
    "bssplit",
    "bsrange",
    "size",
    "filesize",
    "verify",
    "verify_pattern",
    "buffer_pattern",
    "\"",
    "%o",
    "random_distribution",
    "zipf",
    "zoned",
    "zoned_abs",
    "ioengine",
    "io_uring",
    "psync",
    "runtime",
    "startdelay",
    "iodepth",
    "numjobs",
    "filename",
    "\\",
    ";",
    "#",
    "${",
    "$",
    "$ncpus",
    "$pagesize",
    "}",
    "cpus_allowed",
    "ss",
    "ss_dur",
    "iops_slope",
    "ignore_error",
    "EIO",
    "percentile_list",
    "write_bw_log",
    "stonewall",
    "\u{e9}",
    " ",
    "\t",
    "\r",
    "kb_base=1000",
    "replay_skip",
    "read",
    "sync_file_range",
    "write",
    "name",
    "wait_for",
    "rate",
    "thinktime",
    "hipri",
    "flow",
    "mem",
    "mmap",
];

/// Lines that are right by themselves; together they may contradict each other.
const LINES: &[&str] = &[
    "rw=randrw",
    "rw=write:4k",
    "rw=randread:8",
    "rw=trimwrite",
    "bs=8k,",
    "bs=,16k",
    "bsrange=1k-4k,2k-8k",
    "bssplit=4k/50:8k/,16k/100",
    "size=1g",
    "size=20%",
    "offset=10%",
    "offset=1m",
    "filesize=1m-2m",
    "nrfiles=4",
    "filename=a b:c\\:d",
    "directory=x:y",
    "description=it's \"so\"",
    "direct=1",
    "buffered=1",
    "ioengine=io_uring",
    "ioengine=libaio",
    "ioengine=posixaio",
    "fixedbufs",
    "userspace_reap",
    "hipri",
    "iodepth=32",
    "iodepth_batch=0",
    "iodepth_low=8",
    "rate=1m,500k",
    "rate_min=400k",
    "rate_iops=100",
    "rate_process=poisson",
    "thinktime=5ms",
    "thinktime_spin=10ms",
    "runtime=5",
    "time_based",
    "time_based=0",
    "ramp_time=1s",
    "startdelay=1-5",
    "stonewall",
    "wait_for=one",
    "numjobs=3",
    "verify=crc32c",
    "verify=pattern",
    "verify_pattern=0xff%o",
    "verify_interval=1k",
    "verify_only",
    "zero_buffers",
    "buffer_pattern=\"abc\"-12",
    "random_distribution=zipf:1.2:0.5",
    "random_distribution=zoned:60/10:40/90,50/50:50/",
    "norandommap",
    "blockalign=512,",
    "zonemode=strided",
    "zonesize=1m",
    "flow=3",
    "ss=bw_slope:1%",
    "ss_dur=10",
    "latency_target=1ms",
    "write_bw_log",
    "write_lat_log=l",
    "log_avg_msec=500ms",
    "log_sum=1",
    "kb_base=1000",
    "percentile_list=99:50",
    "continue_on_error=io",
    "ignore_error=EAGAIN,ENOSPC:122",
    "mem=mmap:/x",
    "cpus_allowed=0,2-3",
    "numa_mem_policy=bind:0",
    "thread",
    "nice=-3",
    "loops=2k",
    "read_iolog=a:b",
    "replay_skip=trim",
    "sync_file_range=write:8",
    "name=other",
    "gtod_reduce=1",
    "exitall",
    "exit_what=all",
    "fallocate=keep",
    "size=(4*1024)k",
    "size=4*$pagesize",
    "bogus=1",
    "bs=4q",
];

/// Without what differs between a file and a command line.
fn unplaced(mut jobs: Jobs) -> Jobs {
    for job in &mut jobs.jobs {
        job.place = Location::default();
        // A file names its jobs in their headings, a command line by an option.
        job.given.retain(|(name, _)| name != "name");
    }
    jobs.notes.clear();
    jobs
}

fn shown_says_the_same(jobs: Jobs) -> Result<(), TestCaseError> {
    let words = shown_words(&jobs);
    let again =
        parse_arguments(&words).map_err(|error| TestCaseError::fail(format!("{words:?}: {error}")))?;
    prop_assert_eq!(unplaced(again.jobs), unplaced(jobs));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}") {
        let _ = parse_text(&text, None, &[]);
        let _ = parse_text(&format!("[a]\n{text}"), None, &[]);
        let _ = parse_arguments(&[format!("--{text}"), text]);
    }

    #[test]
    fn no_order_of_pieces_makes_it_panic(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40)) {
        let text = format!("[a]\n{}", pieces.concat());
        if let Ok(jobs) = parse_text(&text, None, &[]) {
            shown_says_the_same(jobs)?;
        }
        let _ = parse_text(&pieces.concat(), None, &[]);
    }

    #[test]
    fn no_value_makes_an_option_panic(
        option in prop::sample::select(LINES),
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..8),
    ) {
        let name = option.split('=').next().unwrap_or_default();
        if let Ok(jobs) = parse_text(&format!("[a]\n{name}={}", pieces.concat()), None, &[]) {
            shown_says_the_same(jobs)?;
        }
    }

    #[test]
    fn what_is_shown_says_the_same(
        global in prop::collection::vec(prop::sample::select(LINES), 0..4),
        one in prop::collection::vec(prop::sample::select(LINES), 0..6),
        late in prop::collection::vec(prop::sample::select(LINES), 0..2),
        two in prop::collection::vec(prop::sample::select(LINES), 0..6),
    ) {
        let section = |name: &str, lines: &[&str]| format!("[{name}]\n{}\n", lines.join("\n"));
        let text = [section("global", &global), section("one", &one), section("global", &late), section("two", &two)];
        if let Ok(jobs) = parse_text(&text.concat(), None, &[]) {
            shown_says_the_same(jobs)?;
        }
    }
}

#[test]
fn a_shell_takes_the_line_apart_as_it_was_put_together() {
    let text = "[it's a; $job `x`]\ndescription=\"so\" & *so*\nfilename=a b:c\\:d\nsize=1m\n";
    // The comment's sign is not of the description, as in fio.
    let jobs = parse_text(text, None, &[]).unwrap();
    let line = render_command_line(&jobs);
    let line = line.strip_prefix("kelvin io ").unwrap();
    let run =
        std::process::Command::new("sh").args(["-c", &format!("printf '%s\\n' {line}")]).output().unwrap();
    let words: Vec<String> = String::from_utf8(run.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(words, shown_words(&jobs));
}
