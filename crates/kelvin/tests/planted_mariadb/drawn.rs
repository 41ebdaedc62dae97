//! `cargo xtask faults --engine mariadb`: twelve faults with random parameters, and healthy runs, as on PostgreSQL
//! (`planted_faults/drawn.rs`). Runs in the file of results are not repeated.

use std::any::Any;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use kelvin_database::Engine as _;
use kelvin_database::mysql::{Config, MysqlEngine};
use kelvin_diagnose::{Finding, Severity};
use kelvin_measure::Random;

use super::disturbance::{CpuHog, Delay, Throttle};
use super::results::{Outcome, Results};
use super::support::{Place, wait_until};
use super::{Beside, Load, MANY_ROWS, MUCH_LOG, ONE_ROW, READS, Server, load, slow_flush, url_of};

/// Findings about other users of the machine.
const MACHINE: [&str; 2] = ["steal", "noisy-neighbour"];

/// Updates one of few rows, so that each user soon needs the first row.
const FEW_ROWS: &str = "\\set id random(1, 32)\nbegin;\nupdate h set v = v + 1 where id = :id;\ncommit;\n";
/// The shortest possible transactions.
const ONE_READ: &str = "\\set id random(1, 8192)\nselect v from h where id = :id;\n";
const THREE_READS: &str = "\\set id random(1, 8192)\nselect v from h where id = :id;\n\
     select v from h where id = 7;\nselect v from h where id = 8;\n";
/// Reads rows across a table of 40 MB.
const WIDE_READS: &str = "\\set a random(1, 131072)\n\\set b random(1, 131072)\n\\set c random(1, 131072)\n\
     select v from h where id = :a;\nselect v from h where id = :b;\nselect v from h where id = :c;\n";

/// A disturbance of the machine, the server or the data.
enum Disturbance {
    None,
    /// A number of processes that use CPU.
    Hogs(i64),
    /// Each file flush takes this many ms longer.
    SlowFlush(i64),
    /// The network delay of each direction in ms.
    SlowNetwork(i64),
    /// Limit in hundredths of a CPU for the load generator, or for the server.
    ThrottledClient(i64),
    ThrottledServer(i64),
    /// A transaction that keeps its row locked for this many seconds.
    LockHolder(i64),
    /// TPROC-C without the primary key of its items.
    MissingKey,
    /// Another Kelvin with this many users.
    OtherKelvin(i64),
}

/// A fault with its parameters.
struct Drawn {
    parameters: String,
    settings: Vec<String>,
    powers: u32,
    script: &'static str,
    users: i64,
    times: [String; 2],
    disturbance: Disturbance,
}

impl Drawn {
    fn new(parameters: String, script: &'static str, users: i64) -> Self {
        // With the tests' log size, the log would be full in seconds when nothing delays the commits.
        let settings = ["--innodb-flush-log-at-trx-commit=1", "--innodb-log-file-size=512M"];
        let settings = settings.map(str::to_owned).to_vec();
        let times = ["4s", "12s"].map(str::to_owned);
        let disturbance = Disturbance::None;
        Self { parameters, settings, powers: 13, script, users, times, disturbance }
    }

    fn with(mut self, settings: &[&str]) -> Self {
        self.settings.extend(settings.iter().map(|one| (*one).to_owned()));
        self
    }

    fn by(self, disturbance: Disturbance) -> Self {
        Self { disturbance, ..self }
    }

    /// The load, and what runs beside it.
    fn beside(&self, server: &Server, place: &Place) -> Beside {
        let mut beside = Beside::script(place, self.script);
        let share = |hundredths: i64| Throttle::cpu(hundredths as f64 / 100.0);
        let held: Box<dyn Any> = match self.disturbance {
            Disturbance::None | Disturbance::SlowFlush(_) => return beside,
            Disturbance::ThrottledClient(hundredths) => {
                beside.throttle = Some(share(hundredths));
                return beside;
            }
            Disturbance::MissingKey => {
                let words = ["build", "tproc-c", "--target", &url_of(server), "--warehouses", "2"];
                place.expect(0, &[&words[..], &["--no-check", "-q"]].concat());
                server.session().run("ALTER TABLE item DROP PRIMARY KEY").unwrap();
                beside.load = vec!["tproc-c".into()];
                return beside;
            }
            Disturbance::Hogs(processes) => Box::new(CpuHog::start(processes as usize, Duration::ZERO)),
            Disturbance::SlowNetwork(ms) => {
                let delay = Delay::before(server.socket(), Duration::from_millis(ms.unsigned_abs()));
                beside.url = Some(format!("mysql://root@127.0.0.1:{}/kelvin", delay.port()));
                Box::new(delay)
            }
            Disturbance::ThrottledServer(hundredths) => {
                let throttle = share(hundredths);
                let main = std::fs::read_to_string(server.directory().join("pid")).unwrap();
                throttle.take(main.trim().parse().unwrap());
                Box::new(throttle)
            }
            Disturbance::LockHolder(seconds) => {
                hold_a_row(server, Duration::from_secs(seconds.unsigned_abs()));
                Box::new(())
            }
            Disturbance::OtherKelvin(users) => Box::new(OtherKelvin::start(server, users)),
        };
        beside.held = Some(held);
        beside
    }
}

/// Changes the first row, and ends its transaction when others have waited for `held`.
fn hold_a_row(server: &Server, held: Duration) {
    let engine = MysqlEngine::new(server.unix());
    let mut session = engine.connect().unwrap();
    session.run("begin").unwrap();
    session.run("update h set v = v + 1 where id = 1").unwrap();
    std::thread::spawn(move || {
        let mut observer = engine.connect().unwrap();
        wait_until("somebody waits for the row", || {
            // Not INNODB_TRX: its copy is not refreshed within 100 ms of the last read, so that the load's observer would see
            // no wait.
            let waiting = "select cast(count(*) as signed) from information_schema.PROCESSLIST \
                where INFO like 'update h set%' and TIME_MS > 500";
            observer.query(waiting).unwrap().int(0, 0).unwrap() > 0
        });
        std::thread::sleep(held);
        session.run("rollback").unwrap();
    });
}

/// Another Kelvin on the same server, whose load only sleeps.
struct OtherKelvin {
    process: Child,
    _place: Place,
}

impl OtherKelvin {
    fn start(server: &Server, users: i64) -> Self {
        let (place, url, users) = (Place::new(), url_of(server), users.to_string());
        place.write("sleep.sql", "select sleep(0.05);\n");
        let words = ["run", "script", "sleep.sql", "--target", &url, "-u", &users, "--ramp-up", "0", "-q"];
        let mut command = place.command(&[&words[..], &["-d", "60s"]].concat());
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut session = MysqlEngine::new(Config::parse(&url).unwrap()).connect().unwrap();
        wait_until("the other one is at work", || {
            let asked = "SELECT CAST(COUNT(*) AS SIGNED) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'select sleep(%'";
            session.query(asked).unwrap().int(0, 0).unwrap() > 0
        });
        Self { process, _place: place }
    }
}

impl Drop for OtherKelvin {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Name, findings that must be red, and the draw. "mariadb-healthy" has no findings.
type Planted = (&'static str, &'static [&'static str], fn(&mut Random) -> Drawn);

const FAULTS: [Planted; 13] = [
    ("mariadb-healthy", &[], |random| {
        let script = [MANY_ROWS, READS][random.range(0, 1) as usize];
        Drawn::new(if script == READS { "reads" } else { "writes" }.into(), script, 2)
    }),
    ("mariadb-durability-off", &["durability-off"], |random| {
        let users = random.range(1, 4);
        Drawn::new(format!("{users} users"), MANY_ROWS, users).with(&["--innodb-flush-log-at-trx-commit=0"])
    }),
    ("mariadb-hot-rows", &["hot-rows"], |random| {
        let users = random.range(12, 24);
        Drawn::new(format!("{users} users"), ONE_ROW, users)
    }),
    ("mariadb-redo-log", &["redo-log-too-small"], |random| {
        let capacity = random.range(50, 150);
        Drawn::new(format!("innodb_io_capacity {capacity}"), MUCH_LOG, 4).with(&[
            "--innodb-log-file-size=4M",
            "--innodb-buffer-pool-size=128M",
            "--innodb-adaptive-flushing=OFF",
            &format!("--innodb-io-capacity={capacity}"),
        ])
    }),
    ("mariadb-slow-log", &["log-write-latency"], |random| {
        let ms = random.range(8, 25);
        let drawn = Drawn::new(format!("{ms} ms a flush"), MANY_ROWS, 4).by(Disturbance::SlowFlush(ms));
        // Times the flushes: their duration decides whether the finding is red.
        drawn.with(&["--performance-schema=ON"])
    }),
    ("mariadb-cpu-hog", &["noisy-neighbour"], |random| {
        let hogs = random.range(3, 6);
        Drawn::new(format!("{hogs} processes"), READS, 2).by(Disturbance::Hogs(hogs))
    }),
    ("mariadb-tiny-buffers", &["buffers-too-small"], |random| {
        let mb = random.range(5, 8);
        let drawn = Drawn::new(format!("{mb} MB"), WIDE_READS, 2);
        Drawn { powers: 17, ..drawn }.with(&[&format!("--innodb-buffer-pool-size={mb}M")])
    }),
    ("mariadb-missing-index", &["scan-without-index"], |random| {
        let users = random.range(2, 3);
        Drawn::new(format!("{users} users"), READS, users)
            .with(&["--innodb-buffer-pool-size=512M"])
            .by(Disturbance::MissingKey)
    }),
    ("mariadb-lock-holder", &["lock-holder"], |random| {
        let seconds = random.range(4, 10);
        let drawn = Drawn::new(format!("{seconds} s"), FEW_ROWS, 2);
        let times = ["0s".into(), format!("{}s", seconds + 3)];
        Drawn { times, ..drawn }.by(Disturbance::LockHolder(seconds))
    }),
    ("mariadb-slow-network", &["network-round-trips"], |random| {
        let ms = random.range(2, 5);
        Drawn::new(format!("{ms} ms each way"), THREE_READS, 2).by(Disturbance::SlowNetwork(ms))
    }),
    ("mariadb-throttled-client", &["client-saturated"], |random| {
        let hundredths = random.range(12, 24);
        let drawn = Drawn::new(format!("0.{hundredths} CPUs"), ONE_READ, 8);
        drawn.by(Disturbance::ThrottledClient(hundredths))
    }),
    ("mariadb-throttled-server", &["server-throttled"], |random| {
        let hundredths = random.range(20, 50);
        let drawn = Drawn::new(format!("0.{hundredths} CPUs"), READS, 2);
        drawn.by(Disturbance::ThrottledServer(hundredths))
    }),
    ("mariadb-other-kelvin", &["foreign-sessions"], |random| {
        let users = random.range(1, 4);
        Drawn::new(format!("{users} users"), READS, 2).by(Disturbance::OtherKelvin(users))
    }),
];

/// The value of an option; `None` if empty.
fn option(name: &str) -> Option<String> {
    std::env::var(format!("KELVIN_FAULTS_{name}")).ok().filter(|text| !text.is_empty())
}

fn run(planned: Outcome, expected: &[&str], drawn: &Drawn) -> Outcome {
    let since = Instant::now();
    let settings: Vec<&str> = drawn.settings.iter().map(String::as_str).collect();
    let slow = |directory: &std::path::Path| {
        if let Disturbance::SlowFlush(ms) = drawn.disturbance {
            slow_flush::build(&directory.join("preload.so"), Duration::from_millis(ms.unsigned_abs()));
        }
    };
    let (users, [ramp_up, duration]) = (drawn.users.to_string(), &drawn.times);
    let mut words = vec!["--users", &users, "--ramp-up", ramp_up, "--duration", duration];
    // Accepted noise is not red.
    let is_noise = ["noisy-neighbour", "foreign-sessions"].iter().any(|id| expected.contains(id));
    if option("ACCEPT_NOISE").is_some() && !is_noise {
        words.push("--accept-noise");
    }
    let of = Load { settings: &settings, powers: drawn.powers, words: &words };
    // Repeated if other processes used the machine, as on PostgreSQL.
    let (mut attempts, mut disturbed) = (0, 0);
    let findings = loop {
        let (_, findings) = load(&of, slow, |server, place| drawn.beside(server, place));
        let is_other = |one: &Finding| MACHINE.contains(&one.id) && !expected.contains(&one.id);
        let busy = findings.iter().any(|one| one.severity == Severity::Red && is_other(one));
        attempts += 1;
        disturbed += u64::from(busy);
        if !busy || attempts == 3 || expected.is_empty() {
            break findings;
        }
    };
    let names = |severity| {
        let of = findings.iter().filter(|one| one.severity == severity);
        let mut names: Vec<String> = of.map(|one| one.id.to_owned()).collect();
        names.dedup();
        names
    };
    let own = findings.iter().find(|one| expected.contains(&one.id));
    let outcome = Outcome {
        expected: expected.iter().map(|id| (*id).to_owned()).collect(),
        red: names(Severity::Red),
        amber: names(Severity::Amber),
        attempts,
        disturbed,
        effect: own.map(|one| one.effect.describe()),
        seconds: since.elapsed().as_secs_f64(),
        ..planned
    };
    if !outcome.is_right() {
        for finding in &findings {
            println!("{finding:#?}");
        }
    }
    println!("{}", outcome.line());
    outcome
}

#[test]
#[ignore = "takes minutes: cargo xtask faults --engine mariadb"]
fn faults_with_random_parameters() {
    let number = |name: &str, default: u64| option(name).map_or(default, |text| text.parse().unwrap());
    let (draws, seed) = (number("DRAWS", 2), number("SEED", 1));
    let end = option("MINUTES").map(|text| Instant::now() + Duration::from_mins(text.parse().unwrap()));
    let only = option("ONLY");
    for name in only.iter().flat_map(|only| only.split(',')) {
        assert!(FAULTS.iter().any(|(known, ..)| *known == name), "there is no fault {name:?}");
    }
    let wants = |name: &str| only.as_ref().is_none_or(|only| only.split(',').any(|one| one == name));
    let mut results = Results::open(option("RESULTS").map(Into::into));
    for draw in 0..draws {
        for (index, (name, expected, draw_one)) in FAULTS.iter().enumerate() {
            let is_over = end.is_some_and(|end| Instant::now() >= end);
            let drawn = draw_one(&mut Random::part(seed, index as u64, draw));
            let planned = Outcome::planned(seed, name, draw, drawn.parameters.clone());
            if wants(name) && !is_over && !results.has(&planned) {
                results.add(run(planned, expected, &drawn));
            }
        }
    }
    print!("{}", results.summary());
    let (faults, clean) = (results.faults(), results.tally("mariadb-healthy"));
    assert!(faults.runs + clean.runs > 0, "nothing was run");
    assert!(faults.right * 10 >= faults.runs * 9, "{} of {} faults were named", faults.right, faults.runs);
    assert_eq!((faults.wrong, clean.wrong), (0, 0), "runs with a wrong red finding: with faults, healthy");
}
