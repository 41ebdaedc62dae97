use super::*;

const SMALL: &str = r#"
scenario = "two"

[parameters.rate]
type = "number"
default = 50
min = 1
max = 1000

[parameters.long]
type = "duration"
default = "10s"

[tenants.shop]
workload = "script"
target = "sqlite:shop.db"
load = { users = 2, rate = "${rate}", arrivals = "uniform" }
script = { scripts = [{ name = "a", text = "select 1 -- $${x} ${rate}" }] }

[tenants.disk]
workload = "io"
copies = 2
io = { job = """
[j]
ioengine=null
size=1m
filename=f${copy}
""" }

[[steps]]
fill = "disk"
[[steps]]
start = "shop"
[[steps]]
wait = "${long}"
[[steps]]
start = "disk"
for = "20s"
stagger = "4s"
[[steps]]
set = "shop"
rate = 80
[[steps]]
repeat = 2
steps = [{ mark = "round ${round}" }, { wait = "5s" }]
[[steps]]
wait-for = "disk"

[[expect]]
tenant = "shop"
during = "disk"
slo = "p99<20ms,errors<0.1%"
rate-held = "99%"
"#;

fn parse_with(text: &str, chosen: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let chosen: Vec<(String, String)> =
        chosen.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Scenario::parse(text, "x.toml", Path::new(""), &chosen)
}

#[test]
fn a_file_says_who_does_what_when() {
    let scenario = parse_with(SMALL, &[("rate", "20")]).unwrap();
    let names: Vec<&str> = scenario.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    assert_eq!(names, ["shop", "disk-1", "disk-2"]);
    let shop = &scenario.tenants[0].spec;
    assert_eq!(shop.load.rate.as_ref().and_then(kelvin_run::spec::Rates::single), Some(20.0));
    assert_eq!(shop.work.scripts()[0].text.as_deref(), Some("select 1 -- ${x} 20.0"));
    let jobs = |tenant: usize| scenario.tenants[tenant].spec.jobs().unwrap();
    assert_eq!(jobs(2).jobs[0].targets.filenames[0], Path::new("f2"));
    // No job says how long: a step does.
    assert_eq!(jobs(1).jobs[0].course.runtime, Some(30 * 24 * 3600 * 1_000_000_000));
    let planned: Vec<(Option<f64>, &str)> =
        scenario.timeline.steps.iter().map(|step| (step.at, step.text.as_str())).collect();
    assert_eq!(
        planned,
        [
            (None, "fill disk-1, disk-2"),
            (Some(0.0), "start shop"),
            (Some(0.0), "wait 10s"),
            (Some(10.0), "start disk-1, disk-2 for 20s, over 4s"),
            (Some(14.0), "set shop: 80 arrivals/s"),
            (Some(14.0), "round 1"),
            (Some(14.0), "wait 5s"),
            (Some(19.0), "round 2"),
            (Some(19.0), "wait 5s"),
            (Some(24.0), "wait for disk-1, disk-2"),
        ]
    );
    assert_eq!((scenario.timeline.seconds, scenario.timeline.at_least), (34.0, false));
    assert_eq!(scenario.expect[0].during, ["disk-1", "disk-2"]);
    assert!(is_scenario(SMALL) && !is_scenario("workload = \"io\"\n") && is_scenario("scenario = 1\n[x\n"));
}

#[test]
fn what_is_wrong_is_refused_with_its_place_before_anything_starts() {
    let mistakes = [
        ("users = 2", "usrs = 2", "17:", "did you mean `users`"),
        ("start = \"shop\"", "start = \"shp\"", "", "did you mean shop?"),
        ("rate = \"${rate}\"", "rate = \"${rat}\"", "17:", "did you mean ${rate}?"),
        ("rate = 80", "users = 8", "", "not a closed loop"),
        ("set = \"shop\"", "set = \"disk\"", "", "it has none"),
        ("stagger = \"4s\"", "stager = \"4s\"", "", "did you mean `stagger`"),
        ("wait-for = \"disk\"", "wait-for = \"shop\"", "", "does not end without a stop"),
        ("wait-for = \"disk\"", "start = \"shop\"", "", "may still be running"),
        ("wait-for = \"disk\"", "fill = \"disk\"", "", "before the first start"),
        ("fill = \"disk\"", "stop = \"disk\"", "", "not running"),
        ("fill = \"disk\"", "fill = \"shop\"", "", "fill is for I/O jobs"),
        ("default = 50", "default = 5000", "", "out of range"),
        ("repeat = 2", "repeat = 0", "", "0 rounds"),
        ("wait = \"${long}\"", "wait = \"${rate}\"", "", "invalid type"),
        ("users = 2,", "users = 2, duration = \"5s\",", "", "decided by the steps"),
        ("rate-held = \"99%\"", "rate-held = \"99\"", "", "write for example 99%"),
        ("fill = \"disk\"", "mark = \"a\"\nwait = \"1s\"", "", "does one thing"),
        ("fill = \"disk\"", "note = \"a\"", "", "needs one of"),
        ("copies = 2", "copies = 2\nlimits = { cpus = \"x\" }", "23:", "not a list of CPUs"),
        ("copies = 2", "copies = 2\nlimits = { ram = \"1g\" }", "23:", "unknown field `ram`"),
        ("copies = 2", "copies = 2\nlimits = {}", "23:", "tenants.disk-1.limits: give at least one"),
        ("copies = 2", "copies = 2\nserver-limits = { cpus = 1 }", "23:", "it has no server"),
        ("sqlite:shop.db\"", "postgres\"\nlimits = { io = \"1m/s\" }", "17:", "write it in server-limits"),
        ("sqlite:shop.db\"", "postgres\"\nserver-limits = { memory = \"1g\" }", "17:", "shared_buffers"),
        ("sqlite:shop.db\"", "postgres\"\nserver-limits = { cpus = \"0\" }", "17:", "an amount of CPU time"),
    ];
    for (right, wrong, place, why) in mistakes {
        assert!(SMALL.contains(right), "{right}");
        let error = parse_with(&SMALL.replacen(right, wrong, 1), &[]).unwrap_err();
        assert!(error.message.contains(why), "{wrong}: {error}");
        assert!(error.place.starts_with(&format!("x.toml:{place}")), "{wrong}: {error}");
    }
    for (name, value, why) in [
        ("rate", "0", "out of range: a number, 1 to 1000"),
        ("rate", "x", "not a number"),
        ("rte", "1", "did you mean rate?"),
    ] {
        let error = parse_with(SMALL, &[(name, value)]).unwrap_err();
        assert!(error.message.contains(why), "{error}");
    }
    let idle = SMALL
        .replace("start = \"shop\"", "mark = \"nobody\"")
        .replace("set = \"shop\"\nrate = 80", "mark = \"x\"");
    assert!(parse_with(&idle, &[]).unwrap_err().message.contains("no step starts the tenant shop"));
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in ".{0,80}", at in 0_usize..1400) {
        let at = (0..=at.min(SMALL.len())).rev().find(|at| SMALL.is_char_boundary(*at)).unwrap_or(0);
        let _ = parse_with(&format!("{}{text}{}", &SMALL[..at], &SMALL[at..]), &[]);
        let _ = parse_with(&SMALL[..at], &[]);
    }
}

#[test]
fn tenants_are_placed_on_agents() {
    let placed = |old: &str, more: &str| parse_with(&SMALL.replace(old, &format!("{old}{more}\n")), &[]);
    let (copies, shop) = ("copies = 2\n", "target = \"sqlite:shop.db\"\n");
    let scenario = placed(copies, "host = [\"g1\", \"g2\"]").unwrap();
    let hosts: Vec<Option<&str>> = scenario.tenants.iter().map(|tenant| tenant.host.as_deref()).collect();
    assert_eq!(hosts, [None, Some("g1"), Some("g2")]);
    for (place, more, why) in [
        (copies, "host = \"g1\"", "one agent for each of the 2 copies"),
        (copies, "host = [\"g1\", \"g2\"]\nlimits = { cpus = 1 }", "its load is generated by an agent"),
        (shop, "host = \"g1\"", "an agent does not change its load"),
        (shop, "host = \"\"", "host names one agent"),
    ] {
        let error = placed(place, more).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("x.toml:"), "{error}");
    }
}
