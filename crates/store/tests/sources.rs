//! What several sources did is read apart and together.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{as_json, merged, new_run, observed, open_loop, whole_run};
use kelvin_measure::event::LoadPart;
use kelvin_measure::{Event, Sink, Source, SourceId, SourcedEvent};
use kelvin_store::{Follower, RunId, Store};
use proptest::prelude::*;

fn declared(id: u16, tenant: &str) -> Event {
    let source = Source {
        generator: Some(id),
        tenant: Some(tenant.into()),
        host: Some(format!("host-{id}")),
        database: None,
        machine: None,
    };
    Event::Source { id: SourceId(id), source }
}

/// Each event with the source that comes next in `sources`, over and over.
fn dealt_out(events: Vec<Event>, sources: &[u16]) -> Vec<SourcedEvent> {
    let sources = sources.iter().cycle();
    let each = events.into_iter().zip(sources);
    each.map(|(event, &source)| SourcedEvent { source_id: SourceId(source), event }).collect()
}

fn lines(events: &[SourcedEvent]) -> Vec<String> {
    events.iter().map(|event| serde_json::to_string(event).unwrap()).collect()
}

/// The events of one source.
fn of(events: &[SourcedEvent], source: u16) -> Vec<Event> {
    let own = events.iter().filter(|event| event.source_id == SourceId(source));
    own.map(|event| event.event.clone()).collect()
}

fn written(path: &std::path::Path, events: &[SourcedEvent]) -> Store {
    let store = Store::open(path).unwrap();
    let mut writer = store.begin_run(&new_run(None)).unwrap();
    for SourcedEvent { source_id, event } in events {
        writer.event_from(*source_id, event).unwrap();
    }
    drop(writer);
    store
}

#[test]
fn two_generators_are_read_apart_and_merged() {
    let directory = tempfile::tempdir().unwrap();
    let (mut noise, mut other) = (common::Noise(3), common::Noise(4));
    let mut events = vec![SourcedEvent { source_id: SourceId::LOCAL, event: declared(1, "shop") }];
    for second in 0..5 {
        let mut add = |source, event| events.push(SourcedEvent { source_id: SourceId(source), event });
        add(0, noise.second(0, second, LoadPart::Measured, 20));
        add(1, other.second(0, second, LoadPart::Measured, 30));
        add(1, Event::Note { point: 0, second, text: "elsewhere".into() });
    }
    let path = directory.path().join("k.db");
    let store = written(&path, &events);
    let run = store.load(RunId(1)).unwrap();

    let apart: Vec<SourcedEvent> = run.sourced_events().collect::<Result<_, _>>().unwrap();
    assert_eq!(lines(&apart), lines(&events));
    let together: Vec<Event> = run.events().collect::<Result<_, _>>().unwrap();
    let all: Vec<Event> = events.iter().map(|event| event.event.clone()).collect();
    assert_eq!(as_json(&together), as_json(&merged(&all)));
    assert_eq!(run.point_statistics(0).unwrap().headline, common::headline(&all, 0));
    let sources: Vec<_> = run.sources().map(|(id, source)| (id.0, source.tenant.clone())).collect();
    assert_eq!(sources, [(1, Some("shop".into()))]);

    let sql = "SELECT second.source_id, coalesce(tenant, 'local'), sum(committed) FROM second \
               LEFT JOIN source USING (run, source_id) WHERE kind = 0 GROUP BY 1 ORDER BY 1";
    let conn = rusqlite::Connection::open(&path).unwrap();
    let grouped: Vec<(u16, String, u64)> = conn
        .prepare(sql)
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)? as u64)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let headline = |source| common::headline(&of(&events, source), 0);
    assert_eq!(grouped, [(0, "local".into(), headline(0)), (1, "shop".into(), headline(1))]);

    let each = run.source_statistics(0, |one| one).unwrap();
    let ids: Vec<_> = each.iter().map(|one| (one.id.0, one.source.tenant.clone())).collect();
    assert_eq!(ids, [(0, None), (1, Some("shop".into()))]);
    for one in &each {
        assert_eq!(one.figures.headline, headline(one.id.0));
        assert_eq!((one.figures.series.len(), one.figures.seconds), (5, 5.0));
    }
    let sum: u64 = each.iter().map(|one| one.figures.all.latency.count()).sum();
    assert_eq!(run.point_statistics(0).unwrap().all.latency.count(), sum);

    let mut follower = Follower::new(store, RunId(1)).unwrap();
    follower.advance().unwrap();
    let followed: Vec<SourcedEvent> = follower.run().sourced_events().filter_map(Result::ok).collect();
    assert_eq!(of(&followed, 1).len(), of(&events, 1).len());
}

#[test]
fn a_local_event_says_nothing_of_its_source() {
    for event in whole_run(1, 3, 10) {
        let alone = serde_json::to_value(&event).unwrap();
        let local = SourcedEvent { source_id: SourceId::LOCAL, event };
        assert_eq!(serde_json::to_value(&local).unwrap(), alone);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]
    #[test]
    fn events_keep_their_sources_through_json_and_store(
        seed in any::<u64>(), sources in proptest::collection::vec(0_u16..4, 1..40),
    ) {
        let mut events = whole_run(seed, 2, 9);
        events.extend(observed::observations(seed, 3, 12, 500_000_000));
        let events = dealt_out(events, &sources);
        for line in lines(&events).into_iter().chain(lines(&dealt_out(open_loop(seed), &sources))) {
            let read: SourcedEvent = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(serde_json::to_string(&read).unwrap(), line);
        }
        let directory = tempfile::tempdir().unwrap();
        let store = written(&directory.path().join("k.db"), &events);
        let run = store.load(RunId(1)).unwrap();
        let apart: Vec<SourcedEvent> = run.sourced_events().collect::<Result<_, _>>().unwrap();
        for source in 0..4 {
            prop_assert_eq!(as_json(&of(&apart, source)), as_json(&merged(&of(&events, source))));
        }
        let together: Vec<Event> = run.events().collect::<Result<_, _>>().unwrap();
        let all: Vec<Event> = events.into_iter().map(|event| event.event).collect();
        prop_assert_eq!(as_json(&together), as_json(&merged(&all)));
    }
}

#[test]
fn a_run_whose_writer_died_is_resumed_and_what_others_sent_of_its_point_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("k.db");
    let mut noise = common::Noise(5);
    let mut of_host = |point, second| SourcedEvent {
        source_id: SourceId(1),
        event: noise.second(point, second, LoadPart::Measured, 9),
    };
    let note = |source, point, text: &str| SourcedEvent {
        source_id: SourceId(source),
        event: Event::Note { point, second: 0, text: text.into() },
    };
    let declared = SourcedEvent { source_id: SourceId::LOCAL, event: declared(1, "shop") };
    let earlier = [declared, of_host(0, 0), note(1, 0, "earlier"), note(0, 1, "own")];
    let again = [of_host(1, 0), of_host(1, 1), note(1, 1, "of the host")];
    // The writer was dropped without an end: one of its two seconds came.
    let store = written(&path, &[&earlier[..], &[again[0].clone(), again[2].clone()]].concat());
    let mut writer = store.resume_run(RunId(1), 1).unwrap();
    assert!(store.resume_run(RunId(1), 1).unwrap_err().to_string().contains("running"), "one resumes it");
    for SourcedEvent { source_id, event } in &again {
        writer.event_from(*source_id, event).unwrap();
    }
    let end = Event::Finished { status: kelvin_measure::event::Status::Complete, error: None };
    writer.event(&end).unwrap();
    drop(writer);
    let last = SourcedEvent { source_id: SourceId::LOCAL, event: end };
    let stored: Vec<SourcedEvent> =
        store.load(RunId(1)).unwrap().sourced_events().map(Result::unwrap).collect();
    assert_eq!(lines(&stored), lines(&[&earlier[..], &again[..], &[last]].concat()));
    assert!(store.resume_run(RunId(1), 1).unwrap_err().to_string().contains("has ended"));

    let late = Event::Note { point: 1, second: 0, text: "collected".into() };
    store.add_notes(RunId(1), std::slice::from_ref(&late)).unwrap();
    let run = store.load(RunId(1)).unwrap();
    assert_eq!(as_json(&[run.events().last().unwrap().unwrap()]), as_json(std::slice::from_ref(&late)));
    assert_eq!(run.status, kelvin_measure::event::Status::Complete);
    assert!(store.add_notes(RunId(2), &[late]).is_err());
}
