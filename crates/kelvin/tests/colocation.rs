//! Tenants on storage that is shared and slow: loop devices throttled by blkio (version 1), with direct I/O. All tests depend
//! on the machine and need root.
//! judges the machine, and needs root.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "what was measured is read by who runs it")]

mod support;

mod machine {
    use std::io::{BufRead, BufReader};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use serde_json::Value;

    use super::support::{Place, text};

    /// OLTP and DSS as jobs, each in the directory that a parameter names.
    const JOBS: &str = r#"
scenario = "colocation on a slow device"
accept-noise = true

[parameters.oltp]
type = "text"
default = "."
[parameters.dss]
type = "text"
default = "."
[parameters.half]
type = "duration"
default = "14s"

[tenants.oltp]
workload = "io"
[tenants.oltp.io]
job = """
[global]
directory=${oltp}
direct=1
ioengine=io_uring
rate_process=poisson
norandommap=1
[data]
filename=oltp-data
filesize=64m
rw=randrw
bssplit=8k/90:32k/10
iodepth=16
rate_iops=60,60
[log]
filename=oltp-log
filesize=16m
rw=randwrite
bs=32k
iodepth=1
rate_iops=10
"""

[tenants.dss]
workload = "io"
[tenants.dss.io]
job = """
[data]
directory=${dss}
filename=dss-data
filesize=128m
rw=read
bs=1m
direct=1
ioengine=io_uring
iodepth=10
rate_iops=60
rate_process=poisson
"""

[[steps]]
fill = ["oltp", "dss"]
[[steps]]
start = "oltp"
[[steps]]
wait = "${half}"
[[steps]]
start = "dss"
[[steps]]
wait = "${half}"
"#;

    fn done(program: &str, args: &[&str]) -> String {
        let output = Command::new(program).args(args).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{program} {args:?}: {}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    }

    /// A file system on a loop device.
    struct Loop {
        device: String,
        mounted: PathBuf,
        _directory: tempfile::TempDir,
    }

    impl Loop {
        fn new(megabytes: u32) -> Self {
            let directory = tempfile::Builder::new().prefix("kelvin-loop-").tempdir_in("/var/tmp").unwrap();
            let (file, mounted) = (directory.path().join("image"), directory.path().join("mounted"));
            let file = file.to_str().unwrap();
            std::fs::create_dir(&mounted).unwrap();
            done("fallocate", &["-l", &format!("{megabytes}M"), file]);
            let device = done("losetup", &["--find", "--show", "--direct-io=on", file]);
            done("mkfs.ext4", &["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", &device]);
            done("mount", &[&device, mounted.to_str().unwrap()]);
            Self { device, mounted, _directory: directory }
        }

        /// The device number: "7:0".
        fn number(&self) -> String {
            let name = self.device.trim_start_matches("/dev/");
            std::fs::read_to_string(format!("/sys/class/block/{name}/dev")).unwrap().trim().to_owned()
        }
    }

    impl Drop for Loop {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(&self.mounted).status();
            let _ = Command::new("losetup").args(["--detach", &self.device]).status();
        }
    }

    /// A control group whose I/O on devices is throttled.
    struct Throttled(PathBuf);

    impl Throttled {
        fn new(devices: &[&Loop], bytes: u64, ios: u64) -> Self {
            let group = Path::new("/sys/fs/cgroup/blkio").join(format!("colocation-{}", std::process::id()));
            std::fs::create_dir(&group).unwrap();
            for device in devices {
                for (file, value) in
                    [("read_bps", bytes), ("write_bps", bytes), ("read_iops", ios), ("write_iops", ios)]
                {
                    let line = format!("{} {value}", device.number());
                    std::fs::write(group.join(format!("blkio.throttle.{file}_device")), line).unwrap();
                }
            }
            Self(group)
        }

        /// Runs a kelvin command in the group and ends it after `most`. Returns its lines about neighbours, which are also
        /// printed as they arrive.
        fn run(&self, place: &Place, args: &[&str], most: Duration) -> Vec<Value> {
            let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.0.display());
            let mut command = place.program("sh");
            command.args(["-c", &enter, "sh", env!("CARGO_BIN_EXE_kelvin")]).args(args);
            let began = Instant::now();
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            let output = BufReader::new(child.stdout.take().unwrap());
            let process = rustix::process::Pid::from_child(&child);
            let lines = std::thread::scope(|scope| {
                let lines = scope.spawn(|| {
                    let lines = output.lines().map(Result::unwrap);
                    let lines = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
                    let of_neighbours = lines.filter(|line| !line["neighbour"].is_null());
                    of_neighbours.inspect(|line| println!("{line}")).collect::<Vec<_>>()
                });
                while !lines.is_finished() {
                    if began.elapsed() > most {
                        // Not SIGKILL: the command restores what it has changed.
                        let _ended = rustix::process::kill_process(process, rustix::process::Signal::TERM);
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
                lines.join().unwrap()
            });
            let status = child.wait().unwrap();
            assert!(status.success(), "{status} after {:.0} s", began.elapsed().as_secs_f64());
            lines
        }
    }

    impl Drop for Throttled {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir(&self.0);
        }
    }

    /// The effect of the DSS on the OLTP according to `--prove`.
    fn effect(place: &Place, throttled: &Throttled, oltp: &Loop, dss: &Loop) -> Value {
        place.write("jobs.toml", JOBS);
        let parameters = [("oltp", oltp), ("dss", dss)];
        let parameters = parameters.map(|(name, on)| format!("{name}={}", on.mounted.display()));
        let [oltp, dss] = &parameters;
        let half = std::env::var("KELVIN_TEST_HALF").unwrap_or_else(|_| "16s".into());
        let half = format!("half={half}");
        let run = ["run", "jobs.toml", "--param", oltp, "--param", dss, "--param", &half, "--quiet"];
        // Four rounds are enough for the first interim analysis, whose interval is the widest; they take five minutes.
        let proof = ["--prove", "--rounds", "4", "--format", "jsonl"];
        let lines = throttled.run(place, &[&run[..], &proof].concat(), Duration::from_mins(8));
        let is_effect =
            |one: &&Value| one["round"].is_null() && one["neighbour"] == "dss" && one["tenant"] == "oltp";
        lines.iter().find(is_effect).unwrap_or_else(|| panic!("{lines:?}")).clone()
    }

    /// The largest loss that the interval does not exclude, in percent: lower throughput, higher p99.
    fn at_most(effect: &Value) -> Value {
        let lower = 100.0 * (1.0 - effect["throughput"]["low"].as_f64().unwrap());
        let higher = 100.0 * (effect["p99"]["high"].as_f64().unwrap() - 1.0);
        serde_json::json!({"throughput_lower_percent": lower.max(0.0), "p99_higher_percent": higher.max(0.0)})
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_neighbour_on_a_slow_device_is_named_and_one_on_another_device_is_not() {
        let place = Place::new();
        let (one, other) = (Loop::new(400), Loop::new(400));
        let throttled = Throttled::new(&[&one, &other], 24 << 20, 600);
        let shared = effect(&place, &throttled, &one, &one);
        println!("shared: {shared}");
        let (throughput, p99) = (&shared["throughput"], &shared["p99"]);
        assert!(throughput["shown"] == true && throughput["high"].as_f64().unwrap() < 1.0, "{shared}");
        assert!(p99["shown"] == true && p99["low"].as_f64().unwrap() > 1.0, "{shared}");
        let separate = effect(&place, &throttled, &one, &other);
        println!("separate: {separate}");
        // "No interference shown, at most x %", for both metrics, with a useful x.
        let most = at_most(&separate);
        println!("{}", serde_json::json!({"separate": {"at_most": most}}));
        assert_eq!(separate["throughput"]["shown"], false, "{separate}");
        assert!(separate["p99"]["low"].as_f64().unwrap() <= 1.0, "{separate}");
        assert!(most["throughput_lower_percent"].as_f64().unwrap() < 25.0, "{most}");
    }

    /// One or both of two tenants: start delays and CPU time.
    const ARRIVALS: &str = r#"
scenario = "cost of a tenant"
accept-noise = true
[parameters.target]
type = "text"
default = "postgres"
[parameters.long]
type = "duration"
default = "60s"
TENANTS
[[steps]]
start = [STARTED]
[[steps]]
wait = "${long}"
"#;

    /// The start delay of arrivals (p99, in microseconds), and the CPU time of the client in CPUs.
    fn cost(place: &Place, target: &str, long: &str, tenants: &[&str]) -> (f64, f64) {
        let table = |name: &&str| {
            format!(
                "[tenants.{name}]\nworkload = \"script\"\ntarget = \"${{target}}\"\n[tenants.{name}.load]\nusers = 4\n\
                 rate = 2000\n[tenants.{name}.script]\nscripts = [{{ name = \"one\", text = \"select 1;\" }}]\n"
            )
        };
        let quoted: Vec<String> = tenants.iter().map(|name| format!("\"{name}\"")).collect();
        let scenario = ARRIVALS
            .replace("TENANTS", &tenants.iter().map(table).collect::<String>())
            .replace("STARTED", &quoted.join(", "));
        place.write("cost.toml", scenario);
        let parameters = [format!("target={target}"), format!("long={long}")];
        let run = ["run", "cost.toml", "--quiet", "--param", &parameters[0], "--param", &parameters[1]];
        place.expect(0, &run);
        let report = place.report("last");
        let generator = &report["points"][0]["generator"];
        let lag = generator["lag"]["p99_us"].as_f64().unwrap();
        (lag, generator["cpu_cores"].as_f64().unwrap())
    }

    /// The most that starts with two tenants may be delayed, relative to one, if the interval is inconclusive.
    const LATER: f64 = 1.05;

    /// Each round runs each tenant alone and both together, in rotating order. Differences between rounds affect all three,
    /// so a round's ratio is free of them. "At most as late" is a claim about that ratio: the interval does not exclude
    /// equality, and the estimate itself is close, so that a wide interval proves nothing.
    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn two_tenants_start_as_late_as_one_and_cost_no_more_than_both() {
        let place = Place::new();
        let server = super::support::Server::start();
        let long = std::env::var("KELVIN_TEST_LONG").unwrap_or_else(|_| "60s".into());
        let rounds: usize = std::env::var("KELVIN_TEST_ROUNDS").map_or(5, |text| text.parse().unwrap());
        let kinds = [&["left"][..], &["left", "right"], &["right"]];
        // Of the single tenants the later one counts, and the sum of their costs.
        let (mut alone, mut both) = ((vec![], vec![]), (vec![], vec![]));
        for round in 0..rounds {
            let mut found = [(0.0, 0.0); 3];
            for place_in_round in 0..kinds.len() {
                let kind = (round + place_in_round) % kinds.len();
                found[kind] = cost(&place, &server.url(), &long, kinds[kind]);
                let (lag, cpus) = found[kind];
                let line = serde_json::json!({"round": round + 1, "tenants": kinds[kind], "late_p99_us": lag, "cpus": cpus});
                println!("{line}");
            }
            let [left, together, right] = found;
            alone.0.push(left.0.max(right.0));
            alone.1.push(left.1 + right.1);
            both.0.push(together.0);
            both.1.push(together.1);
        }
        let ratio =
            |alone: &[f64], both: &[f64]| kelvin_stats::student::paired_ratio(alone, both, 0.95).unwrap();
        let (late, cpus) = (ratio(&alone.0, &both.0), ratio(&alone.1, &both.1));
        let shown = |one: kelvin_stats::student::Ratio| serde_json::json!({"ratio": one.ratio, "low": one.low, "high": one.high});
        let line = serde_json::json!({"late_p99": shown(late), "cpus": shown(cpus), "rounds": rounds});
        println!("{line}");
        assert!(late.low <= 1.0 && late.ratio <= LATER, "{line}");
        assert!(cpus.ratio <= 1.1, "{line}");
    }
}
