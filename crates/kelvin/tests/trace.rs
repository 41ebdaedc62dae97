//! `kelvin trace` from end to end. Recording needs root and tracefs; without them, the test prints that and is skipped.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]
#![allow(clippy::print_stdout, reason = "what was measured is read by who runs it")]

mod support;

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use support::{Place, text, wait_until};

/// A log that is written sequentially and random reads, as blkparse prints them.
fn blkparse() -> String {
    let mut lines = String::new();
    let mut place = 12_345_u64;
    for n in 0..2000_u64 {
        let at = n * 1_000_000;
        let (pid, letters, sector, name) = if n % 2 == 0 {
            (100, "WS", 1_000_000 + n * 8, "wal")
        } else {
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (200, "R", 100_000_000 + (place >> 40) * 16, "backend")
        };
        for (action, at) in [("D", at), ("C", at + 400_000)] {
            let (seconds, nanos) = (at / 1_000_000_000, at % 1_000_000_000);
            let name = if action == "C" { "0" } else { name };
            writeln!(
                lines,
                "254,0 0 {n} {seconds}.{nanos:09} {pid} {action} {letters} {sector} + 16 [{name}]"
            )
            .unwrap();
        }
    }
    lines
}

#[test]
fn streams_are_shown_and_a_cache_is_predicted() {
    let place = Place::new();
    place.write("io.txt", blkparse());
    let run = |line: &str| {
        let args: Vec<&str> = line.split(' ').collect();
        let output = place.command(&args).env("COLUMNS", "110").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    insta::assert_snapshot!("show", run("trace show io.txt"));
    insta::assert_snapshot!("cache", run("trace cache io.txt --sizes 1m,4m,16m"));
    let shown: Value = serde_json::from_str(&run("trace show io.txt --json")).unwrap();
    let streams = shown["streams"].as_array().unwrap();
    let patterns: Vec<_> = streams.iter().map(|one| one["category"]["pattern"].as_str().unwrap()).collect();
    assert_eq!(patterns, ["mixed", "sequential", "random"]);
    let merged = run("trace show io.txt --what-if merge wal,wal --json");
    let merged: Value = serde_json::from_str(&merged).unwrap();
    assert_eq!(merged["streams"][0]["requests"], 2000);
    assert!(run("trace cache io.txt --format csv").starts_with("size,lru,lru_sampled"));
}

#[test]
fn what_cannot_be_read_ends_with_2() {
    let place = Place::new();
    place.write("io.txt", "8,0 3 1 0.5 697 D W eight + 8 [a]\n8,0 3 1 0.6 697 D W 8 + 8 [a]\n");
    place.write("empty", "");
    place.write("huge", format!("time,op,size,lbn\n{}", "1,r,4294967295,8\n".repeat(120)));
    let mut seen = String::new();
    for line in [
        "trace show absent",
        "trace show empty",
        "trace show .",
        "trace show io.txt",
        "trace cache io.txt --block 1000",
        "trace cache io.txt --sample 2",
        "trace cache huge --block 512",
        "trace show io.txt --what-if split a,b",
        "trace record -o io.txt",
        "trace record --buffer 1k -o new",
        "cache prove 1",
        "cache prove absent --sizes 2m,1m --study s",
        "cache prove absent --sizes 1m,2m --study s",
    ] {
        let output = place.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{line}");
        let said = text(&output.stderr).replace(&place.path("").display().to_string(), "DIR/");
        writeln!(seen, "$ kelvin {line}\n{}", said.trim_end()).unwrap();
    }
    assert!(!place.path("new").exists());
    insta::assert_snapshot!(seen);
}

#[test]
fn the_help_teaches() {
    let place = Place::new();
    let seen = place.help(&[
        "trace --help",
        "trace record --help",
        "trace show --help",
        "trace cache --help",
        "trace to-fio --help",
        "trace csv --help",
        "cache --help",
        "cache prove --help",
    ]);
    insta::assert_snapshot!(seen);
}

/// Whether this process may record; otherwise the reason.
fn can_record() -> Result<(), String> {
    let instances = Path::new("/sys/kernel/tracing/instances");
    std::fs::read_dir(instances).map_err(|error| format!("{}: {error}", instances.display()))?;
    let events = Path::new("/sys/kernel/tracing/events/block");
    std::fs::read_dir(events).map(|_| ()).map_err(|error| format!("{}: {error}", events.display()))
}

fn instances_of(pid: u32) -> bool {
    Path::new("/sys/kernel/tracing/instances").join(format!("kelvin-{pid}")).exists()
}

#[test]
fn a_recording_has_the_requests_of_its_command_and_leaves_nothing_behind() {
    if let Err(why) = can_record() {
        eprintln!("skipped: recording needs root and tracefs ({why})");
        return;
    }
    let place = Place::new();
    let kelvin = env!("CARGO_BIN_EXE_kelvin");
    let job = "--name=job --filename=f --size=8m --bs=64k --rw=write --direct=1 --ioengine=psync";
    let mut args = vec!["trace", "record", "-o", "io.trace", "--", kelvin, "io"];
    args.extend(job.split(' '));
    args.push("--no-store");
    let output = place.run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown: Value =
        serde_json::from_str(&place.expect(0, &["trace", "show", "io.trace", "--json"])).unwrap();
    let recording = &shown["recording"];
    assert_eq!((&recording["lost"], &recording["complete"]), (&Value::from(0), &Value::from(true)));
    assert_eq!(recording["unreadable_pages"], 0);
    let written: u64 = shown["streams"][0]["operations"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["operation"] == "write")
        .map(|one| one["bytes"].as_u64().unwrap())
        .sum();
    assert!(written >= 8 << 20, "{written} bytes; {}", text(&output.stdout));

    // A command that fails after the end of the recording.
    let failing = ["sh", "-c", "sleep 2; exit 3"];
    let line = ["trace", "record", "--duration", "100ms", "-o", "short.trace", "--"];
    let output = place.run(&[&line[..], &failing[..]].concat());
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));

    // Ctrl-C ends a recording normally.
    let mut child = place.command(&["trace", "record", "-o", "more.trace"]).spawn().unwrap();
    wait_until("the instance is there", || instances_of(child.id()));
    wait_until("the file is there", || place.path("more.trace").exists());
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    // The signal handler is installed before the instance is created.
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!instances_of(child.id()));
    place.expect(0, &["trace", "show", "more.trace"]);
}

/// Tests that need root, loop devices, and a machine without other load.
mod machine {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::Duration;

    use kelvin_database::managed::Manager;
    use serde_json::Value;

    use super::support::{Place, wait_until};

    #[track_caller]
    fn sh(line: &str) -> String {
        let output = Command::new("sh").args(["-c", line]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{line}: {error}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A separate filesystem on a loop device, removed when dropped.
    struct LoopDisk {
        device: String,
        mount: PathBuf,
    }

    impl LoopDisk {
        fn new(place: &Place, name: &str, size: &str) -> Self {
            let (image, mount) = (place.path(&format!("{name}.img")), place.path(name));
            std::fs::create_dir(&mount).unwrap();
            sh(&format!("truncate -s {size} {0} && fallocate -l {size} {0}", image.display()));
            sh(&format!("mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 {}", image.display()));
            let device = sh(&format!("losetup --find --show --direct-io=on {}", image.display()));
            let this = Self { device, mount };
            sh(&format!("mount {} {}", this.device, this.mount.display()));
            std::fs::set_permissions(&this.mount, std::fs::Permissions::from_mode(0o777)).unwrap();
            this
        }

        fn name(&self) -> &str {
            self.device.trim_start_matches("/dev/")
        }
    }

    impl Drop for LoopDisk {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(&self.mount).status();
            let _ = Command::new("losetup").args(["-d", &self.device]).status();
        }
    }

    fn stream<'a>(shown: &'a Value, name: &str) -> &'a Value {
        let streams = shown["streams"].as_array().unwrap();
        let found = streams.iter().find(|one| one["scope"]["name"] == name);
        found.unwrap_or_else(|| panic!("{name} is not in {streams:#?}"))
    }

    fn share(shown: &Value, class: &str) -> f64 {
        let classes = shown["attribution"]["classes"].as_array().unwrap();
        let of = classes.iter().find(|one| one["name"] == class);
        of.map_or(0.0, |one| one["share"].as_f64().unwrap())
    }

    /// PostgreSQL with data and WAL on two devices, and TPROC-C with checkpoints. A checkpoint that writes most pages, as at
    /// a high rate into a small database, writes sequentially; here it writes a few percent of them.
    #[test]
    #[ignore = "needs root, loop devices, a quiet machine and two minutes: cargo xtask machine"]
    fn a_databases_log_is_sequential_and_its_data_bursty() {
        let place = Place::new();
        std::fs::set_permissions(place.directory(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let data = LoopDisk::new(&place, "data", "6g");
        let log = LoopDisk::new(&place, "log", "2g");
        let settings = [
            ("shared_buffers", "256MB"),
            ("checkpoint_timeout", "30s"),
            ("checkpoint_completion_target", "0.2"),
            ("max_wal_size", "1GB"),
        ];
        let manager = Manager::new(data.mount.clone());
        let up = || manager.up_with_settings(None, &settings, &mut |_| {}).unwrap();
        let instance = up();
        let wal = instance.data_directory().join("pg_wal");
        manager.down(None).unwrap();
        sh(&format!("cp -a {} {}/pg_wal && rm -r {0}", wal.display(), log.mount.display()));
        symlink(log.mount.join("pg_wal"), &wal).unwrap();
        let url = up().config().to_string();
        place.expect(0, &["build", "tproc-c", "--target", &url, "-w", "20"]);
        let devices = format!("{},{}", data.name(), log.name());
        let kelvin = env!("CARGO_BIN_EXE_kelvin");
        let record =
            ["trace", "record", "-o", "io.trace", "--device", &devices, "--target", &url, "--", kelvin];
        let load =
            ["run", "tproc-c", "--target", &url, "-w", "20", "-u", "4", "--rate", "20", "--duration", "95s"];
        let output = place.run(&[&record[..], &load[..]].concat());
        println!("{}", String::from_utf8_lossy(&output.stdout));
        println!("{}", place.expect(0, &["trace", "show", "io.trace"]));
        let shown: Value =
            serde_json::from_str(&place.expect(0, &["trace", "show", "io.trace", "--json"])).unwrap();
        manager.down(None).unwrap();
        assert_eq!(shown["recording"]["lost"], 0);
        for device in shown["recording"]["devices"].as_array().unwrap() {
            let sum = |what: &str| -> f64 {
                device[what].as_array().unwrap().iter().map(|sectors| sectors.as_f64().unwrap()).sum()
            };
            let (traced, counted) = (sum("traced"), sum("counted"));
            assert!((traced - counted).abs() <= 0.001 * counted, "{device}");
        }
        assert!(shown["attribution"]["attributed"].as_f64().unwrap() >= 0.95);
        assert!(share(&shown, "PostgreSQL data") > 0.05 && share(&shown, "PostgreSQL WAL") > 0.05);
        assert!(share(&shown, "filesystem journal") + share(&shown, "filesystem metadata") > 0.0);
        let objects = shown["attribution"]["objects"].to_string();
        assert!(objects.contains("stock"), "relations have their names: {objects}");
        let (wal, data) = (stream(&shown, "PostgreSQL WAL"), stream(&shown, "PostgreSQL data"));
        assert!(wal["sequence"]["sequential"].as_f64().unwrap() >= 0.95, "{}", wal["sequence"]);
        // A checkpoint writes in the order of offsets with gaps between: its writes are ascending and random.
        assert_eq!(data["category"]["pattern"], "random", "{}", data["category"]);
        assert!(data["sequence"]["ascending"].as_f64().unwrap() > 0.2, "{}", data["sequence"]);
        assert!(data["arrivals"]["peak_to_mean"].as_f64().unwrap() >= 5.0, "{}", data["arrivals"]);
    }

    /// A job that is made from a trace, by its statistics or as a replay, reproduces the trace.
    #[test]
    #[ignore = "needs root and a quiet machine: cargo xtask machine"]
    fn a_job_made_from_a_trace_does_what_the_trace_did() {
        let place = Place::new();
        let disk = LoopDisk::new(&place, "disk", "1g");
        let directory = disk.mount.display().to_string();
        place.write(
            "load.fio",
            format!(
                "[global]\nioengine=libaio\ndirect=1\ntime_based\nruntime=8s\nsize=64m\ndirectory={directory}\n\
                 [log]\nfilename=log\nrw=write\nbs=8k\nrate_iops=150\n[data]\nfilename=data\nrw=randread\n\
                 bssplit=4k/50:16k/50\niodepth=4\nrate_iops=400\nrate_process=poisson\n"
            ),
        );
        let kelvin = env!("CARGO_BIN_EXE_kelvin");
        let load = [kelvin, "io", "load.fio", "--no-store"];
        place.expect(0, &load[1..]);
        let record = ["trace", "record", "-o", "io.trace", "--device", disk.name(), "--"];
        place.expect(0, &[&record[..], &load[..]].concat());
        for way in ["--by=object", "--replay"] {
            let verify = ["trace", "to-fio", "io.trace", "--verify", "--directory", &directory, way];
            let output = place.run(&verify);
            println!("{way}\n{}", String::from_utf8_lossy(&output.stdout));
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        }
        wait_until("the files are gone", || {
            let names = std::fs::read_dir(&disk.mount).unwrap().flatten();
            !names
                .map(|entry| entry.file_name())
                .any(|name| name.to_string_lossy().starts_with("kelvin-to-fio"))
        });
    }

    /// Eight sequential readers of eight files look random to their device, and are separated again.
    #[test]
    #[ignore = "needs root and a loop device: cargo xtask machine"]
    fn eight_sequential_readers_are_recovered_from_what_the_device_sees() {
        let place = Place::new();
        let disk = LoopDisk::new(&place, "disk", "2g");
        let mut job = format!(
            "[global]\nioengine=psync\ndirect=1\nbs=64k\nsize=128m\nrw=read\nthread=1\nrate_iops=500\ndirectory={}\n",
            disk.mount.display()
        );
        for reader in 0..8 {
            job += &format!("[reader{reader}]\nfilename=file{reader}\n");
        }
        place.write("readers.fio", &job);
        place.write("layout.fio", job.replace("[global]\n", "[global]\ncreate_only=1\n"));
        place.expect(0, &["io", "layout.fio", "--no-store"]);
        let kelvin = env!("CARGO_BIN_EXE_kelvin");
        let record = ["trace", "record", "-o", "io.trace", "--device", disk.name(), "--no-files", "--"];
        place.expect(0, &[&record[..], &[kelvin, "io", "readers.fio", "--no-store"]].concat());
        println!("{}", place.expect(0, &["trace", "show", "io.trace"]));
        let shown: Value =
            serde_json::from_str(&place.expect(0, &["trace", "show", "io.trace", "--json"])).unwrap();
        let streams = shown["streams"].as_array().unwrap();
        let sequential: Vec<f64> = streams
            .iter()
            .filter(|one| one["scope"]["of"] == "process" && one["requests"].as_u64() > Some(2000))
            .map(|one| one["sequence"]["sequential"].as_f64().unwrap())
            .collect();
        assert!(sequential.len() == 8 && sequential.iter().all(|share| *share >= 0.95), "{sequential:?}");
        let blend = &shown["blender"];
        assert!(blend["merged"].as_f64().unwrap() <= 0.3, "{blend}");
        let recovered = |what: &str| blend["recovered"][what].as_f64().unwrap();
        assert!(recovered("share") >= 0.95 && recovered("purity") >= 0.95, "{blend}");
    }

    /// The cost of recording a load of 50,000 requests per second, in pairs of runs with and without recording.
    #[test]
    #[ignore = "needs root, a disk that reads 50,000 times a second, and a quiet machine: cargo xtask machine"]
    fn recording_50000_requests_a_second_costs_little() {
        let place = Place::new();
        let job = "io --no-store --name=load --filename=file --size=512m --bs=4k --rw=randread --direct=1 \
                   --ioengine=io_uring --iodepth=32 --time_based --runtime=3s --output-format=json --output=result.json";
        let job: Vec<&str> = job.split_whitespace().collect();
        let measure = |prefix: &[&str], rate: &str| -> f64 {
            let mut line = [prefix, &job].concat();
            if !rate.is_empty() {
                line.push(rate);
            }
            place.expect(0, &line);
            let result: Value =
                serde_json::from_str(&std::fs::read_to_string(place.path("result.json")).unwrap()).unwrap();
            result["jobs"][0]["read"]["iops"].as_f64().unwrap()
        };
        measure(&[], "--rate_iops=50000");
        let kelvin = env!("CARGO_BIN_EXE_kelvin");
        let record = ["trace", "record", "-o", "io.trace", "--no-files", "--", kelvin];
        for rate in ["--rate_iops=50000", ""] {
            let (mut with, mut without, mut costs) = (Vec::new(), Vec::new(), Vec::new());
            for turn in 0..8 {
                if turn % 2 == 0 {
                    without.push(measure(&[], rate));
                }
                with.push(measure(&record, rate));
                let shown = place.expect(0, &["trace", "show", "io.trace", "--json"]);
                let recording = &serde_json::from_str::<Value>(&shown).unwrap()["recording"];
                assert!(recording["lost"] == 0 && recording["complete"] == true, "{recording}");
                let figure = |name: &str| recording[name].as_f64().unwrap();
                costs.push(figure("cpu") / figure("requests"));
                std::fs::remove_file(place.path("io.trace")).unwrap();
                if turn % 2 == 1 {
                    without.push(measure(&[], rate));
                }
            }
            let ratio = kelvin_stats::student::paired_ratio(&without, &with, 0.95).unwrap();
            println!(
                "{rate}: IOPS without {without:.0?}, with {with:.0?}, ratio {ratio:?}, ns a request {costs:.0?}"
            );
            // Without a rate limit, load and recorder compete for CPUs: printed, but not judged.
            if !rate.is_empty() {
                // 3 % of a core at 10,000 requests per second is 3 µs per request; a debug build takes more than three times
                // as long.
                let most = if cfg!(debug_assertions) { 9000.0 } else { 3000.0 };
                assert!(costs.iter().all(|cost| (1.0..most).contains(cost)), "{costs:?}");
                assert!(ratio.low >= 0.97 && ratio.high <= 1.03, "{ratio:?}");
                assert!(without.iter().all(|iops| *iops >= 49_000.0), "{without:?}");
            }
        }
    }

    /// A control group with a memory limit, of cgroup version 1 or 2.
    struct MemoryGroup {
        path: PathBuf,
        limit: PathBuf,
    }

    impl MemoryGroup {
        fn new() -> Self {
            let first = Path::new("/sys/fs/cgroup/memory");
            let is_first = first.join("memory.limit_in_bytes").exists();
            let above = if is_first { first } else { Path::new("/sys/fs/cgroup") };
            let path = above.join(format!("kelvin-cache-{}", std::process::id()));
            std::fs::create_dir(&path).unwrap();
            let limit = path.join(if is_first { "memory.limit_in_bytes" } else { "memory.max" });
            Self { path, limit }
        }

        fn add(&self, pid: &str) {
            std::fs::write(self.path.join("cgroup.procs"), pid).unwrap();
        }

        /// Bytes in the group other than page cache.
        fn other_memory(&self) -> u64 {
            let number = |name: &str| {
                let text = std::fs::read_to_string(self.path.join(name)).ok()?;
                text.trim().parse::<u64>().ok()
            };
            let used = number("memory.usage_in_bytes").or_else(|| number("memory.current")).unwrap();
            let stat = std::fs::read_to_string(self.path.join("memory.stat")).unwrap();
            let of = |key: &str| {
                let line = stat.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
                line.unwrap().parse::<u64>().unwrap()
            };
            used - of("active_file") - of("inactive_file")
        }
    }

    impl Drop for MemoryGroup {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir(&self.path);
        }
    }

    /// A control group limits the page cache. A trace is recorded with the smallest cache, misses are predicted for three
    /// larger ones, and a study measures them.
    #[test]
    #[ignore = "needs root, a loop device, a quiet machine and three minutes: cargo xtask machine"]
    fn larger_caches_miss_what_the_trace_of_the_smallest_predicts() {
        const MIB: u64 = 1 << 20;
        let place = Place::new();
        std::fs::set_permissions(place.directory(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let disk = LoopDisk::new(&place, "data", "2g");
        // Read-ahead is not an access of the database.
        std::fs::write(format!("/sys/block/{}/queue/read_ahead_kb", disk.name()), "0").unwrap();
        let group = MemoryGroup::new();
        let manager = Manager::new(disk.mount.clone());
        let settings = [("shared_buffers", "4MB"), ("max_connections", "20"), ("autovacuum", "off")];
        let instance = manager.up_with_settings(None, &settings, &mut |_| {}).unwrap();
        let url = instance.config().to_string();
        place.expect(0, &["build", "pgbench", "--target", &url, "-s", "10"]);
        let pids = std::fs::read_to_string(instance.data_directory().join("postmaster.pid")).unwrap();
        let postmaster = pids.lines().next().unwrap();
        group.add(postmaster);
        let children =
            std::fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children")).unwrap();
        children.split_whitespace().for_each(|pid| group.add(pid));
        // Written pages must not remain in a cache.
        sh("sync; echo 3 > /proc/sys/vm/drop_caches");
        std::fs::write(&group.limit, (64 * MIB).to_string()).unwrap();
        let load = "run pgbench -S -M prepared -s 10 -c 4 --seed 3 --ramp-up 12s --duration 10s --accept-noise --target";
        let load: Vec<&str> = load.split(' ').chain([url.as_str()]).collect();
        let mut warm = place.command(&load).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(15));
        let other = group.other_memory();
        assert!(warm.wait().unwrap().success());
        let sizes: Vec<String> =
            [24, 56, 88, 120].iter().map(|size| (other + size * MIB).to_string()).collect();
        std::fs::write(&group.limit, &sizes[0]).unwrap();
        place.expect(0, &[&load[..], &["--trace"]].concat());
        let (directory, sizes) = (group.path.display().to_string(), sizes.join(","));
        let other = other.to_string();
        let prove = ["cache", "prove", "last", "--sizes", &sizes, "--control-group", &directory];
        let others = ["cache", "prove", "last", "--sizes", "1g,2g", "--study", "others"];
        for group in [&[][..], &["--control-group", &directory]] {
            let output = place.run(&[&others[..], group].concat());
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{said}");
            let made_with =
                if group.is_empty() { "made with shared_buffers = 4 MiB" } else { "made with the limit" };
            assert!(said.contains(made_with), "{said}");
        }
        assert!(!place.path("others").exists());
        let written = place.expect(
            0,
            &[&prove[..], &["--other-memory", &other, "--study", "study", "--blocks", "1"]].concat(),
        );
        println!("{written}");
        place.expect(0, &["study", "run", "study", "--allow-commands"]);
        let output = place.run(&["cache", "prove", "study"]);
        println!("{}", String::from_utf8_lossy(&output.stdout));
        manager.down(None).unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
