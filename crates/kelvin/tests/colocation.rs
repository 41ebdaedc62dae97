//! Tenants on a storage that is really shared and slow: loop devices throttled by blkio (version 1), with direct I/O. All of it
//! judges the machine, and needs root.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "what was measured is read by who runs it")]

mod support;

mod machine {
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

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

        /// "7:0".
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

        /// A command of ours in it.
        fn run(&self, place: &Place, args: &[&str]) -> (Option<i32>, String) {
            let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.0.display());
            let mut command = place.program("sh");
            command.args(["-c", &enter, "sh", env!("CARGO_BIN_EXE_kelvin")]).args(args);
            let output = command.output().unwrap();
            (output.status.code(), format!("{}{}", text(&output.stdout), text(&output.stderr)))
        }
    }

    impl Drop for Throttled {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir(&self.0);
        }
    }

    /// What `--prove` says of the DSS's effect on the OLTP.
    fn effect(place: &Place, throttled: &Throttled, oltp: &Loop, dss: &Loop) -> Value {
        place.write("jobs.toml", JOBS);
        let parameters = [("oltp", oltp), ("dss", dss)];
        let parameters = parameters.map(|(name, on)| format!("{name}={}", on.mounted.display()));
        let [oltp, dss] = &parameters;
        let half = std::env::var("KELVIN_TEST_HALF").unwrap_or_else(|_| "16s".into());
        let half = format!("half={half}");
        let run = ["run", "jobs.toml", "--param", oltp, "--param", dss, "--param", &half, "--quiet"];
        let proof = ["--prove", "--rounds", "4", "--format", "json"];
        let (code, shown) = throttled.run(place, &[&run[..], &proof].concat());
        assert_eq!(code, Some(0), "{shown}");
        let last = place.report("last");
        println!("{}", place.expect(0, &["show", "last"]));
        drop(last);
        let effects: Vec<Value> = shown.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let found = effects.iter().find(|one| one["neighbour"] == "dss" && one["tenant"] == "oltp");
        found.unwrap_or_else(|| panic!("{shown}")).clone()
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
        assert_eq!(separate["throughput"]["shown"], false, "{separate}");
    }

    /// Two of these tenants against one of each: starts, and CPU time.
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

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn two_tenants_start_as_late_as_one_and_cost_no_more_than_both() {
        let place = Place::new();
        let server = super::support::Server::start();
        let long = std::env::var("KELVIN_TEST_LONG").unwrap_or_else(|_| "60s".into());
        let one = cost(&place, &server.url(), &long, &["left"]);
        let two = cost(&place, &server.url(), &long, &["left", "right"]);
        let other = cost(&place, &server.url(), &long, &["right"]);
        println!("late p99 us, CPUs: left {one:?}, right {other:?}, both {two:?}");
        assert!(two.0 <= one.0.max(other.0), "{two:?} {one:?} {other:?}");
        assert!(two.1 <= 1.1 * (one.1 + other.1), "{two:?} {one:?} {other:?}");
    }
}
