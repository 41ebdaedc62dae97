//! The sampler on the machine that runs the tests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use kelvin_observe::sample::{Config, HostSampler, Process};

struct Live {
    sampler: HostSampler,
    values: Vec<f64>,
    last: Instant,
}

impl Live {
    fn new(config: &Config) -> Self {
        let sampler = HostSampler::new(config);
        let values = vec![f64::NAN; sampler.series().len()];
        let mut live = Self { sampler, values, last: Instant::now() };
        live.sample();
        live
    }

    /// Returns the length of the interval.
    fn sample(&mut self) -> f64 {
        let elapsed = self.last.elapsed();
        self.last = Instant::now();
        self.sampler.sample(elapsed, &mut self.values);
        elapsed.as_secs_f64()
    }

    fn value(&self, name: &str) -> f64 {
        let at = self.sampler.series().iter().position(|series| series.name == name);
        self.values[at.unwrap_or_else(|| panic!("no series {name}: {:?}", self.sampler.absent()))]
    }
}

fn client() -> Config {
    Config {
        paths: vec![("data".into(), PathBuf::from("."))],
        processes: vec![Process { name: "client".into(), pid: std::process::id(), children: false }],
        ..Config::default()
    }
}

fn burn(time: Duration) {
    let start = Instant::now();
    let mut sum = 0_u64;
    while start.elapsed() < time {
        for i in 0..10_000 {
            sum = std::hint::black_box(sum.wrapping_add(i));
        }
    }
}

#[test]
fn a_busy_loop_shows_and_the_shares_add_up() {
    let mut live = Live::new(&client());
    assert!(live.value("host.cpu.total.user").is_nan(), "the first sample only primes");
    assert!(live.value("host.memory.available") > 0.0);
    let ran = kelvin_observe::cpu_time();
    burn(Duration::from_secs(1));
    let seconds = live.sample();
    let ran = kelvin_observe::cpu_time().saturating_sub(ran).as_secs_f64();
    let shares = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
    let cpus: Vec<String> =
        live.sampler.series().iter().filter_map(|s| Some(s.name.strip_suffix(".user")?.to_owned())).collect();
    for cpu in cpus.iter().filter(|name| name.starts_with("host.cpu.")) {
        let sum: f64 = shares.iter().map(|share| live.value(&format!("{cpu}.{share}"))).sum();
        assert!((sum - 1.0).abs() < 0.02, "{cpu}: {sum}");
    }
    // The process's CPU time by its own clock equals the sampler's value, to the kernel's tick on either side.
    let used =
        (live.value("host.process.client.cpu.user") + live.value("host.process.client.cpu.system")) * seconds;
    assert!((used - ran).abs() < 0.05 + 0.1 * ran, "{used} s seen of {ran} s");
    // And it must be among the busy shares of all CPUs of the host, of which a container may use a part only.
    let of_one =
        |name: &&String| name.strip_prefix("host.cpu.").is_some_and(|cpu| cpu.parse::<u32>().is_ok());
    let threads = cpus.iter().filter(of_one).count() as f64;
    let busy = live.value("host.cpu.total.busy");
    assert!(busy * seconds * threads > 0.5 * ran, "{busy} busy of {threads} CPUs, {ran} s of it here");
    assert!(live.value("host.process.client.resident") > 1e5);
    assert!(live.value("host.process.client.threads") >= 2.0);
    assert!(live.value("host.context_switches") > 0.0);
}

#[test]
fn what_the_client_writes_shows_with_it() {
    let mut live = Live::new(&client());
    let path = std::env::temp_dir().join(format!("kelvin-sampler-{}", std::process::id()));
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = &file;
    std::io::Write::write_all(&mut writer, &vec![7; 4 << 20]).unwrap();
    file.sync_all().unwrap();
    // Long enough for a reading of the process.
    std::thread::sleep(Duration::from_millis(300));
    let seconds = live.sample();
    std::fs::remove_file(&path).unwrap();
    // The other tests of this binary are the same process, so that there may be more. A tmpfs writes to no device.
    let temporary = kelvin_observe::host::Filesystem::containing(&std::env::temp_dir()).unwrap();
    if temporary.kind != "tmpfs" {
        // A rate times the seconds can be a fraction of a byte less.
        let written = (live.value("host.process.client.write_bytes") * seconds).round();
        assert!(written >= f64::from(4 << 20), "{written}");
    }
}

#[test]
fn every_series_has_one_name_and_every_absence_a_reason() {
    let live = Live::new(&client());
    let mut names: Vec<_> = live.sampler.series().iter().map(|s| s.name.clone()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for series in live.sampler.series() {
        assert!(series.name.starts_with("host.") && !series.name.contains(' '), "{series:?}");
        assert!(!series.help.is_empty() && !series.unit.is_empty(), "{series:?}");
    }
    assert!(live.sampler.absent().iter().all(|absent| !absent.what.is_empty() && absent.why.len() > 10));
}

/// `cargo test -p kelvin-observe --test sampler_live -- --ignored --nocapture cost`
#[test]
#[ignore = "measures"]
#[allow(clippy::print_stdout)]
fn cost_of_a_sample() {
    let parent = std::env::var("KELVIN_TEST_PID").ok().and_then(|pid| pid.parse().ok());
    let mut config = client();
    config.processes.extend(parent.map(|pid| Process { name: "server".into(), pid, children: true }));
    let mut live = Live::new(&config);
    let mut costs: Vec<f64> = (0..300)
        .map(|_| {
            let before = kelvin_observe::cpu_time();
            // Said to be a second later, so that processes are read every time.
            live.sampler.sample(Duration::from_secs(1), &mut live.values);
            kelvin_observe::cpu_time().saturating_sub(before).as_secs_f64() * 1e6
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    println!(
        "{} series; CPU per sample: median {:.0} µs, p95 {:.0} µs",
        live.values.len(),
        costs[150],
        costs[285]
    );
    for absent in live.sampler.absent() {
        println!("absent: {}: {}", absent.what, absent.why);
    }
    println!("{:?}", live.sampler.places());
    live.sample();
    std::thread::sleep(Duration::from_secs(1));
    live.sample();
    for (series, value) in live.sampler.series().iter().zip(&live.values) {
        println!("{} {value:.3} {}", series.name, series.unit);
    }
}

#[test]
fn many_samples_cost_no_more_than_their_budget_for_processes() {
    // Created in one thread and used in another, as intended for the sampler.
    let mut live = std::thread::spawn(|| Live::new(&client())).join().unwrap();
    let name = "host.process.client.resident";
    // Samples a microsecond apart cannot each pay for a reading.
    let mut read = 0;
    for _ in 0..50 {
        live.sampler.sample(Duration::from_micros(1), &mut live.values);
        read += usize::from(!live.value(name).is_nan());
    }
    assert!(read <= 1, "{read} readings in 50 microseconds");
    // An interval of ten seconds does, and its values are means over all of it.
    live.sampler.sample(Duration::from_secs(10), &mut live.values);
    assert!(!live.value(name).is_nan());
}

/// Requires a certain kind of disk, or root.
mod machine {
    use super::*;

    /// The metrics of iostat, and the sampler's with the base of their means: seconds, or requests.
    const IOSTAT: [(&str, &str, &str); 18] = [
        ("r/s", "r_s", ""),
        ("rkB/s", "rkb_s", ""),
        ("rrqm/s", "rrqm_s", ""),
        ("r_await", "r_await", "r_s"),
        ("rareq-sz", "rareq_sz", "r_s"),
        ("w/s", "w_s", ""),
        ("wkB/s", "wkb_s", ""),
        ("wrqm/s", "wrqm_s", ""),
        ("w_await", "w_await", "w_s"),
        ("wareq-sz", "wareq_sz", "w_s"),
        ("d/s", "d_s", ""),
        ("dkB/s", "dkb_s", ""),
        ("d_await", "d_await", "d_s"),
        ("dareq-sz", "dareq_sz", "d_s"),
        ("f/s", "f_s", ""),
        ("f_await", "f_await", "f_s"),
        ("aqu-sz", "aqu_sz", ""),
        ("util", "util", ""),
    ];

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn iostat_says_the_same() {
        // The two read some time apart, a moment on a quiet machine, and on a shared disk others may write in it: that can
        // only add to the difference, so the best of some attempts counts.
        let mut far = Vec::new();
        for _ in 0..6 {
            far = beside_iostat();
            if far.is_empty() {
                return;
            }
        }
        panic!("these differ by more than 2 %: {far:#?}");
    }

    /// The columns in which four samples, a second apart, and iostat's one report of the same four seconds differ.
    fn beside_iostat() -> Vec<String> {
        let mut live = Live::new(&client());
        let disk = live.sampler.places()[0].1.disks[0].clone();
        let mut iostat = Command::new("iostat");
        let iostat =
            iostat.args(["-x", "-y", "-k", "-o", "JSON", "--dec=2", &disk, "4", "1"]).env("LC_ALL", "C");
        let iostat = iostat.stdout(std::process::Stdio::piped()).spawn();
        let iostat = iostat.expect("iostat is not installed: apt-get install sysstat");
        // iostat has read when it sleeps, a moment ago. The load begins after that and ends before the end.
        let stat = format!("/proc/{}/stat", iostat.id());
        while !std::fs::read_to_string(&stat).unwrap().contains("(iostat) S") {
            std::thread::sleep(Duration::from_micros(200));
        }
        live.sample();
        let begun = live.last;
        let load = std::thread::spawn(move || write_and_read(begun + Duration::from_millis(3500)));
        let mut samples = Vec::new();
        for second in 1..=4 {
            let due = begun + Duration::from_secs(second);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let seconds = live.sample();
            let value = |column: &str| live.value(&format!("host.disk.{disk}.{column}"));
            let of = |(_, column, over): &(_, &str, &str)| {
                let weight = if over.is_empty() { seconds } else { value(over) * seconds };
                (value(column) * weight, weight)
            };
            samples.push(IOSTAT.iter().map(of).collect::<Vec<_>>());
        }
        let output = iostat.wait_with_output().unwrap();
        load.join().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find(|line| line.contains("disk_device")).unwrap();
        let theirs = |key: &str| -> f64 {
            let rest = line.split_once(&format!("\"{key}\":")).unwrap().1.trim_start();
            rest[..rest.find([',', '}']).unwrap()].trim().parse().unwrap()
        };
        assert!(
            theirs("r/s") > 1.0 && theirs("w/s") > 1.0 && theirs("f/s") > 1.0,
            "the load was none: {line}"
        );
        let mut far = Vec::new();
        for (i, (key, ..)) in IOSTAT.iter().enumerate() {
            let sum =
                samples.iter().fold((0.0, 0.0), |sum, sample| (sum.0 + sample[i].0, sum.1 + sample[i].1));
            let ours = if sum.1 > 0.0 { sum.0 / sum.1 } else { 0.0 };
            let theirs = theirs(key);
            // Hundredths are iostat's last digit.
            if (ours - theirs).abs() > 0.011 + 0.02 * theirs {
                far.push(format!("{key}: {ours:.3} here, {theirs} there"));
            }
        }
        far
    }

    /// Writes, flushes and reads from the device until then.
    fn write_and_read(until: Instant) {
        use std::os::unix::fs::FileExt as _;
        let path = std::env::temp_dir().join(format!("kelvin-iostat-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        let reader = std::fs::File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut block = vec![7; 256 << 10];
        for i in 0.. {
            if Instant::now() >= until {
                break;
            }
            let at = i % 64 * block.len() as u64;
            file.write_all_at(&block, at).unwrap();
            file.sync_data().unwrap();
            // Clean pages can be dropped from the page cache, and are read from the device again.
            rustix::fs::fadvise(&reader, at, None, rustix::fs::Advice::DontNeed).unwrap();
            reader.read_exact_at(&mut block[..64 << 10], at).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// As root, with control groups of version 1.
    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_limited_group_is_throttled() {
        let group = PathBuf::from(format!("/sys/fs/cgroup/cpu/kelvin-test-{}", std::process::id()));
        std::fs::create_dir(&group).unwrap();
        std::fs::write(group.join("cpu.cfs_period_us"), "100000").unwrap();
        std::fs::write(group.join("cpu.cfs_quota_us"), "20000").unwrap();
        let mut hog = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        std::fs::write(group.join("cgroup.procs"), hog.id().to_string()).unwrap();
        let config = Config { cgroups: vec![("hog".into(), group.clone())], ..Config::default() };
        let mut live = Live::new(&config);
        std::thread::sleep(Duration::from_secs(3));
        live.sample();
        hog.kill().unwrap();
        hog.wait().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        std::fs::remove_dir(&group).unwrap();
        let value = |name: &str| live.value(&format!("host.cgroup.hog.{name}"));
        assert_eq!(value("cpu.limit"), 0.2);
        assert!((value("cpu.periods") - 10.0).abs() < 1.0, "{}", value("cpu.periods"));
        assert!(
            value("cpu.throttled_periods") > 2.0 && value("cpu.throttled") > 0.05,
            "{}",
            value("cpu.throttled")
        );
    }
}
