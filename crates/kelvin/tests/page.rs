//! `kelvin serve` in a browser: finds a run, opens it, compares two, watches a running one, starts one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/axe.rs"]
mod axe;
#[path = "support/browser.rs"]
mod browser;
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use browser::Browser;
use support::Place;

/// A server that ends with the test.
struct Served {
    process: Child,
    address: String,
    token: Option<String>,
}

impl Served {
    fn start(place: &Place, more: &[&str]) -> Self {
        let args = [&["serve", "--listen", "127.0.0.1:0"], more].concat();
        let mut process = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let mut errors = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        if more.contains(&"--allow-start") {
            errors.read_line(&mut line).unwrap();
        }
        let token = line.rsplit_once(": ").map(|(_, token)| token.trim().to_owned());
        // Read to the end, so that the server never blocks on a full pipe.
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        Self { process, address: address.trim().to_owned(), token }
    }

    /// The HTTP status of a request with these header lines.
    fn status(&self, request: &str) -> u16 {
        self.answer(request).split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn answer(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address.strip_prefix("http://").unwrap()).unwrap();
        write!(stream, "{request}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// An A/B comparison of two blocks of half-second runs.
fn a_group(place: &Place) {
    place.write("own.sql", "with recursive c(x) as (select 1 union all select x + 1 from c where x < 1000) select count(*) from c;\n");
    let run = ["run", "script", "own.sql", "--target", "sqlite:own.db", "--users", "1", "--ramp-up", "0s"];
    for (file, seconds) in [("a.toml", "1s"), ("b.toml", "2s")] {
        let spec = place.expect(0, &[&run[..], &["--duration", seconds, "--print-spec"]].concat());
        place.write(file, spec);
    }
    let ran = place.run(&["ab", "a.toml", "b.toml", "--blocks", "2", "--no-control", "--name", "longer"]);
    assert!(ran.status.code().is_some_and(|code| code < 2), "{}", support::text(&ran.stderr));
}

/// Two short runs on the same data.
fn two_runs(place: &Place) {
    let short = ["--target", "sqlite:w.db", "--users", "2", "--ramp-up", "0s", "--duration", "2s"];
    for label in ["base", "changed"] {
        place.expect(0, &[&["run", "tproc-c", "--label", label], &short[..]].concat());
    }
}

/// Checks every page: one heading, a name for every control, nothing wider than the window, no accessibility violation.
#[track_caller]
fn is_usable(browser: &mut Browser, axe: Option<&str>, name: &str) {
    axe::is_accessible(browser, axe, name);
    let nameless = "[...document.querySelectorAll('input:not([type=hidden]), select, textarea, button, a')].filter((e) => \
        !(e.labels?.length || e.ariaLabel || e.textContent.trim())).map((e) => e.outerHTML)";
    assert_eq!(browser.value(nameless), serde_json::json!([]), "{name}");
    assert_eq!(browser.value("document.querySelectorAll('h1').length"), 1, "{name}");
    assert_eq!(browser.value("document.documentElement.lang"), "en", "{name}");
    for (width, dark) in [(360, true), (768, false), (1440, false)] {
        browser.resize(width, 900, dark);
        browser.wait(&format!("innerWidth === {width}"));
        // Charts adapt to the window a moment later.
        browser.wait(
            "![...document.querySelectorAll('body *')].some((e) => e.getBoundingClientRect().right > innerWidth + 1 \
             && !e.closest('.scroll, .figure, pre, .guide table, .skip, .hidden'))",
        );
        browser.picture(&format!("{name}-{width}"), width != 1440);
    }
}

#[test]
fn a_run_is_found_opened_compared_started_and_watched() {
    let place = Place::new();
    two_runs(&place);
    let served = Served::start(&place, &["--allow-start"]);
    let profile = tempfile::tempdir().unwrap();
    let axe = axe::script();
    let axe = axe.as_deref();
    let mut browser = Browser::start(profile.path());
    let home = format!("{}/", served.address);

    browser.open(&home);
    assert_eq!(browser.value("document.querySelectorAll('#runs tbody tr').length"), 2);
    is_usable(&mut browser, axe, "runs");
    browser.value(
        "document.querySelector('[name=q]').value = 'chang'; filter.dispatchEvent(new Event('input'))",
    );
    browser.wait("document.querySelectorAll('#runs tbody tr').length === 1");
    assert_eq!(browser.value("document.querySelector('#runs tbody a').textContent"), "2");
    assert_eq!(browser.value("location.search"), "?q=chang");

    browser.value("document.querySelector('#runs tbody a').click()");
    browser.wait("document.querySelector('.tile.big .value') && document.readyState === 'complete'");
    let title = browser.value("document.querySelector('h1').textContent");
    assert!(title.as_str().unwrap().starts_with("TPROC-C on SQLite 3."), "{title}");
    let drawn =
        "[...document.querySelectorAll('.chart')].filter((chart) => chart.querySelector('canvas')).length";
    assert!(browser.value(drawn).as_u64().unwrap() >= 3, "no charts");
    assert_eq!(browser.value("document.body.innerText.includes('`')"), false);
    is_usable(&mut browser, axe, "run");

    browser.open(&home);
    browser.value("for (const box of document.querySelectorAll('#runs [name=run]')) box.click()");
    browser.value("document.getElementById('compare').click()");
    browser.wait("document.querySelector('.limit .sentence')");
    assert_eq!(browser.value("document.querySelector('h1').textContent"), "NOPM: B against A");
    is_usable(&mut browser, axe, "compare");
    for (path, heading) in [
        ("compare", "Compare"),
        ("groups", "Groups"),
        ("history", "History"),
        ("findings", "Findings and terms"),
        ("findings/checkpoint-in-window", "checkpoint-in-window"),
        ("findings/measured-window", "measured window"),
        ("findings/nopm", "NOPM"),
    ] {
        browser.open(&format!("{home}{path}"));
        assert_eq!(browser.value("document.querySelector('h1').textContent"), heading);
        is_usable(&mut browser, axe, &path.replace('/', "-"));
    }

    a_group(&place);
    browser.open(&format!("{home}groups"));
    browser.value("document.querySelector('tbody a').click()");
    browser
        .wait("document.querySelector('.limit .sentence') && document.querySelector('.figure svg circle')");
    assert_eq!(browser.value("document.querySelector('h1').textContent"), "longer");
    is_usable(&mut browser, axe, "group");
    let exported = place.path("group.html");
    place.expect(0, &["groups", "1", "--html", exported.to_str().unwrap()]);
    browser.open(&format!("file://{}", exported.display()));
    browser
        .wait("document.querySelector('.limit .sentence') && document.querySelector('.figure svg circle')");
    assert_eq!(browser.value("document.querySelectorAll('a, script').length"), 0);
    is_usable(&mut browser, axe, "group-file");

    browser.open(&format!("{home}start?store=0&run=1"));
    is_usable(&mut browser, axe, "start");
    let fill = |token: &str| {
        format!(
            "form = document.getElementById('start'); form.elements.specification.value = form.elements.specification.value\
             .replace('duration = \"2s\"', 'duration = \"15s\"'); form.elements.token.value = '{token}'; form.requestSubmit()"
        )
    };
    browser.value(&fill("not the token"));
    browser.wait("document.getElementById('outcome').textContent.includes('token is missing or wrong')");
    browser.value(&fill(served.token.as_deref().unwrap()));
    browser.wait("document.querySelector('#jobs a')");
    browser.value("document.querySelector('#jobs a').click()");
    // The run is watched from its first seconds to its end; then its page is a report like any other.
    browser.wait("/second ([3-9]|1[0-4]) of 15/.test(document.getElementById('live')?.textContent) && kelvin.data.points[0].t.length > 2");
    axe::is_accessible(&mut browser, axe, "live");
    browser.picture("live", false);
    browser.wait("!document.getElementById('live') && document.querySelector('.tile.big') && document.readyState === 'complete'");
    let seconds = browser.value("kelvin.data.points[0].t.filter((t) => t >= 0).length").as_u64().unwrap();
    assert!(seconds >= 15, "{seconds} seconds");

    assert_eq!(browser.faults, Vec::<String>::new());
    let outside: Vec<&String> = browser
        .requests
        .iter()
        .filter(|address| {
            ![&home[..], "file:", "data:"].iter().any(|own| address.starts_with(own))
                && *address != "about:blank"
        })
        .collect();
    assert!(outside.is_empty() && browser.requests.len() > 20, "{outside:?}");
}

#[test]
fn an_imported_run_shows_its_origin() {
    let place = Place::new();
    place.write("own.sql", "select 1;\n");
    let run = ["run", "script", "own.sql", "--target", "sqlite:own.db", "-u", "1", "--transactions", "9"];
    place.expect(0, &[&run[..], &["--no-observe"]].concat());
    place.expect(0, &["export", "last", "one.kelvin"]);
    for _ in 0..2 {
        place.run(&[&run[..], &["--no-observe", "--store", "team.db"]].concat());
    }
    place.expect(0, &["import", "one.kelvin", "--store", "team.db"]);
    let served = Served::start(&place, &["--store", "team.db"]);
    let host = served.address.strip_prefix("http://").unwrap().to_owned();
    let get = |path: &str| served.answer(&format!("GET {path} HTTP/1.1\r\nHost: {host}"));
    let list = get("/");
    assert!(list.contains("imported from</th>") && list.contains("kelvin.db on "), "{list}");
    let own = get("/?q=kelvin.db");
    assert_eq!(own.matches("name=\"run\"").count(), 1, "found by the store that it comes from: {own}");
    assert!(get("/run/0/3").contains("imported: run 1 of kelvin.db on "));
    assert!(!get("/run/0/1").contains("imported: "));
    assert!(!get("/?q=nothing").contains("imported from"), "the column is there for imported runs only");
}

#[test]
fn a_server_that_is_read_only_starts_nothing_and_strangers_get_no_answer() {
    let place = Place::new();
    let served = Served::start(&place, &[]);
    let host = served.address.strip_prefix("http://").unwrap().to_owned();
    let get = |more: &str| served.status(&format!("GET / HTTP/1.1\r\n{more}"));
    assert_eq!(get(&format!("Host: {host}")), 200, "a store without a run has its page");
    assert_eq!(get("Host: evil.example"), 421);
    assert_eq!(get(&format!("Host: {host}\r\nOrigin: http://evil.example")), 403);
    assert_eq!(get(&format!("Host: {host}\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: image")), 403);
    let post = format!("POST /api/start HTTP/1.1\r\nHost: {host}\r\nX-Kelvin-Token: x\r\nContent-Length: 0");
    assert_eq!(served.status(&post), 403);
    assert_eq!(served.status(&format!("GET /run/0/../../etc/passwd HTTP/1.1\r\nHost: {host}")), 404);
    assert_eq!(served.status(&format!("GET /run/7/1 HTTP/1.1\r\nHost: {host}")), 404);
    assert_eq!(served.status(&format!("DELETE / HTTP/1.1\r\nHost: {host}")), 405);
}
