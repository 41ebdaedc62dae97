//! Observations of host and database during the load.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::observed::{groups, observations, observer, occurrence, waits};
use common::{Noise, as_json, merged, new_run, whole_run};
use kelvin_measure::observation::{Observation, Reading};
use kelvin_measure::{Event, Sink};
use kelvin_store::{Error, RunId, Store};
use proptest::prelude::*;

fn write(path: &std::path::Path, events: &[Event]) -> Store {
    let store = Store::open(path).unwrap();
    let mut writer = store.begin_run(&new_run(None)).unwrap();
    for event in events {
        writer.event(event).unwrap();
    }
    drop(writer);
    store
}

fn back(store: &Store) -> Vec<Event> {
    store.load(RunId(1)).unwrap().events().collect::<Result<_, _>>().unwrap()
}

/// The file's size with everything moved out of its log.
fn size(events: &[Event]) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("k.db");
    drop(write(&path, events));
    assert!(!dir.path().join("k.db-wal").exists());
    std::fs::metadata(path).unwrap().len()
}

fn bits(events: &[Event]) -> Vec<Vec<u32>> {
    let values = |event: &Event| match event {
        Event::Observed(Observation::Reading(reading)) => {
            Some(reading.values.iter().map(|value| value.to_bits()).collect())
        }
        _ => None,
    };
    events.iter().filter_map(values).collect()
}

/// The load's events with the observers' between them.
fn interleaved(load: Vec<Event>, seen: Vec<Event>, seed: u64) -> Vec<Event> {
    let mut noise = Noise(seed);
    let (mut load, mut seen) = (load.into_iter().peekable(), seen.into_iter().peekable());
    let mut out = Vec::new();
    while load.peek().is_some() || seen.peek().is_some() {
        out.extend(if noise.next(2) == 0 { load.next() } else { seen.next() });
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]
    #[test]
    fn a_replay_gives_what_the_live_view_saw(seed in any::<u64>(), seconds in 1_u64..20, metrics in 0_usize..200) {
        let mut seen = observations(seed, seconds, metrics, 500_000_000);
        // A second observer, which finds more of its metrics later.
        let more = |i: u64| Event::Observed(Observation::Reading(Reading {
            at: i * 1_000_000_000, first: 5000, values: vec![f32::NAN, f32::INFINITY, -0.0, i as f32],
        }));
        seen.insert(1, observer("postgres", 5000, 4));
        seen.extend((0..seconds).map(more));
        let events = interleaved(whole_run(seed, 3, 5), seen, seed);
        let dir = tempfile::tempdir().unwrap();
        let store = write(&dir.path().join("k.db"), &events);
        let back = back(&store);
        prop_assert_eq!(as_json(&back), as_json(&merged(&events)));
        prop_assert_eq!(bits(&back), bits(&events));
    }
}

/// 578 kB when this was written; 1.46 MB together with the load's own seconds.
#[test]
fn ten_minutes_of_three_hundred_metrics_stay_under_two_megabytes() {
    let events = observations(1, 600, 300, 1_000_000_000);
    let observed = size(&events) - size(&[]);
    assert!(observed < 700_000, "{observed} bytes");
    let whole = size(&[whole_run(2, 600, 300), events].concat());
    assert!(whole < 2_000_000, "{whole} bytes");
}

/// 950 kB a minute when this was written.
#[test]
fn sixty_four_processors_ten_times_a_second_stay_below_raw_numbers() {
    // A tenth of the ten minutes; the size grows with the time.
    let (metrics, seconds) = (64 * 6 + 300, 60);
    let observed = size(&observations(1, seconds, metrics, 100_000_000)) - size(&[]);
    let raw = seconds * 10 * metrics as u64 * 4;
    assert!(observed < raw * 6 / 10, "{observed} of {raw} bytes");
}

#[test]
fn the_list_of_runs_does_not_read_them_and_a_damaged_one_is_an_error() {
    for (damage, message) in [
        ("UPDATE reading SET body = x'0102' WHERE rowid = 3", "a reading at"),
        ("UPDATE reading SET body = CAST(x'02ffffff00' || body AS BLOB) WHERE rowid = 3", "a reading at"),
        ("UPDATE reading SET body = substr(body, 1, length(body) - 3) WHERE rowid = 5", "a reading at"),
        ("DELETE FROM reading WHERE rowid = 1", "no earlier reading"),
        ("UPDATE reading SET body = 'text' WHERE rowid = 3", ""),
        ("UPDATE reading SET at = -1 WHERE rowid = 3", "a count of -1"),
        ("UPDATE reading SET first = 5000000000 WHERE rowid = 3", "a count of 5000000000"),
        ("UPDATE waits SET seen = '[[1' WHERE rowid = 3", "the waits of run 1"),
        ("UPDATE waits SET rows = '[[\"a\", -1]]' WHERE rowid = 3", "the waits of run 1"),
        ("UPDATE waits SET looks = -1 WHERE rowid = 3", "a count of -1"),
        ("UPDATE event SET body = '{' WHERE name = 'observed'", "an event of run 1"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k.db");
        let events = [whole_run(1, 3, 5), observations(1, 10, 50, 1_000_000_000)].concat();
        drop(write(&path, &events));
        rusqlite::Connection::open(&path).unwrap().execute(damage, []).unwrap();
        let store = Store::open(&path).unwrap();
        assert_eq!(store.runs().unwrap()[0].points.len(), 1, "{damage}");
        let read = store.load(RunId(1)).and_then(|run| run.events().collect::<Result<Vec<_>, _>>());
        let error = read.map(|events| events.len()).unwrap_err();
        assert!(error.to_string().contains(message), "{damage}: {error}");
        if !message.is_empty() {
            assert!(matches!(error, Error::Damaged { .. }), "{damage}: {error}");
        }
    }
}

#[test]
fn a_deleted_run_takes_them_along() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("k.db");
    let mut store = write(&path, &observations(1, 5, 20, 1_000_000_000));
    let shell = rusqlite::Connection::open(&path).unwrap();
    let count = |table: &str| -> i64 {
        shell.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!((count("reading"), count("waits"), count("metric")), (5, 5, 20));
    store.delete(RunId(1)).unwrap();
    assert_eq!((count("reading"), count("waits"), count("metric")), (0, 0, 0));
}

#[test]
fn the_shell_sees_names_waits_and_occurrences() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("k.db");
    let mut noise = Noise(3);
    let looked = waits(&mut noise, 7_500_000_000, 30);
    let Event::Observed(Observation::Waits(expected)) = &looked else { unreachable!() };
    let events = [
        observer("host", 10, 3),
        groups(0, 20),
        groups(20, 20),
        looked.clone(),
        occurrence(1, 5, None),
        occurrence(1, 5, Some(2_000_000_000)),
    ];
    drop(write(&path, &events));
    let shell = rusqlite::Connection::open(&path).unwrap();
    let (place, unit): (i64, String) = shell
        .query_row("SELECT place, unit FROM metric WHERE name = 'host.some.thing.number2'", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!((place, unit.as_str()), (12, "1/s"));
    let (rows, sessions, at): (u32, f64, f64) = shell
        .query_row(
            "SELECT count(*), sum(sessions), max(at_s) FROM wait WHERE backend = 'client backend'",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    let sum: u32 = expected.seen.iter().map(|(_, count)| count).sum();
    assert_eq!((rows as usize, at), (expected.seen.len(), 7.5));
    assert!((sessions - f64::from(sum) / 10.0).abs() < 1e-9);
    let relation: (String, f64) = shell
        .query_row("SELECT relation, sessions FROM row_wait", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(relation, ("public.warehouse".into(), f64::from(expected.rows[0].1)));
    let ended: (f64, String) = shell
        .query_row("SELECT to_s, subject FROM occurrence WHERE kind = 'checkpoint'", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(ended, (2.0, "requested".into()));
}

#[test]
fn no_password_in_a_relation_or_a_statement_reaches_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("k.db");
    let mut noise = Noise(1);
    let mut looked = waits(&mut noise, 1, 3);
    if let Event::Observed(Observation::Waits(waits)) = &mut looked {
        waits.rows = vec![("x://joe:S3cr3t@h".into(), 1)];
    }
    drop(write(&path, &[groups(0, 3), looked]));
    assert!(!std::fs::read(&path).unwrap().windows(6).any(|w| w == b"S3cr3t"));
}

/// A line of `--json` is the whole event: it can be read back, and sent on.
#[test]
fn events_come_back_from_their_json() {
    for seed in 1..20 {
        let mut events = whole_run(seed, 5, 200);
        events.extend(observations(seed, 5, 20, 1_000_000_000));
        for event in events {
            let json = serde_json::to_string(&event).unwrap();
            let back: Event = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{json}: {error}"));
            assert_eq!(serde_json::to_string(&back).unwrap(), json);
            assert!(json.contains(&format!("\"event\":\"{}\"", event.name())), "{json}");
            let (Event::Second(one), Event::Second(two)) = (&event, &back) else { continue };
            for (one, two) in one.kinds.iter().zip(&two.kinds) {
                assert!(one.latency.buckets().eq(two.latency.buckets()));
            }
        }
    }
}
