//! How a point takes messages from hosts: only a few are decoded at a time, and no sum of them overflows.

use std::sync::atomic::{AtomicUsize, Ordering};

use kelvin_measure::event::{HostClock, LoadPart, Second, SeriesRole};

use super::*;
use crate::fleet::{GeneratorMessage, RemoteGenerators};

const HOSTS: usize = 200;
const SECONDS: usize = 30;
const AT_ONCE: usize = 16;

/// Generated on demand: together they would fill the memory.
type Messages = Box<dyn Iterator<Item = (usize, GeneratorMessage)> + Send>;

/// Waiting messages, a few of which are decoded in each call.
struct Waiting {
    messages: Messages,
    /// Decoded messages that have not reached the sink.
    decoded: Arc<AtomicUsize>,
}

impl RemoteGenerators for Waiting {
    fn notice(&self) -> Duration {
        Duration::ZERO
    }

    fn start(&mut self, _times: LoadTimes) -> Result<(), RunError> {
        Ok(())
    }

    fn end_at(&mut self, _times: LoadTimes) {}

    fn abort(&mut self) {}

    fn poll(&mut self) -> Vec<(usize, GeneratorMessage)> {
        let some: Vec<_> = self.messages.by_ref().take(AT_ONCE).collect();
        self.decoded.fetch_add(some.len(), Ordering::SeqCst);
        some
    }

    fn clocks(&mut self) -> Vec<Option<HostClock>> {
        Vec::new()
    }
}

/// Counts how many decoded messages are waiting whenever one arrives.
struct Counting {
    decoded: Arc<AtomicUsize>,
    most: usize,
    seconds: usize,
}

impl Sink for Counting {
    fn event_from(&mut self, _source: SourceId, event: &Event) -> Result<(), SinkError> {
        self.most = self.most.max(self.decoded.fetch_sub(1, Ordering::SeqCst));
        self.seconds += usize::from(matches!(event, Event::Second(_)));
        Ok(())
    }
}

fn load<'a>(hosts: u32, messages: Messages, decoded: Arc<AtomicUsize>) -> remote::RemoteLoad<'a> {
    let range = |host| kelvin_workload::UserRange::share(hosts, host, hosts).unwrap();
    let names = (0..hosts).map(|host| (format!("g{host}"), range(host))).collect();
    let waiting = Waiting { messages, decoded };
    remote::RemoteLoad::of_hosts(0, Box::new(waiting), (names, vec![SeriesRole::Transaction], 0), 0)
}

#[test]
fn seconds_of_many_hosts_that_waited_reach_the_sink_a_few_at_a_time() {
    let messages = (0..SECONDS).flat_map(|second| {
        (0..HOSTS).map(move |host| {
            let mut kind = KindCounts { committed: 1, ..KindCounts::default() };
            kind.latency.record(1000);
            let (second, kinds) = (second as i64, vec![kind]);
            let second = Second { point: 0, second, part: LoadPart::Measured, kinds };
            (host, GeneratorMessage::Event(Event::Second(second)))
        })
    });
    let decoded = Arc::new(AtomicUsize::new(0));
    let mut remote = load(HOSTS as u32, Box::new(messages), Arc::clone(&decoded));
    let mut sink = Counting { decoded, most: 0, seconds: 0 };
    for calls in 0.. {
        assert!(calls < HOSTS * SECONDS, "{} seconds came", sink.seconds);
        remote.emit(0, &mut sink).unwrap();
        if sink.seconds == HOSTS * SECONDS {
            break;
        }
    }
    assert_eq!(sink.most, AT_ONCE);
    let (reports, _) = remote.finish(0, &mut sink).unwrap();
    let mut totals = Totals::new(vec![SeriesRole::Transaction]);
    for report in &reports {
        totals.merge(&report.totals);
    }
    let sum = (totals.all[0].committed, totals.all[0].latency.count());
    assert_eq!(sum, ((HOSTS * SECONDS) as u64, (HOSTS * SECONDS) as u64));
}

#[test]
fn the_host_whose_counts_cannot_be_added_is_refused_by_name() {
    let times = LoadTimes { begin: 0, open: 0, close: 1, end: 1 };
    let report = move || {
        let counted = Totals::new(vec![SeriesRole::Transaction]);
        let mut report = GeneratorReport::of_lost(times, counted, Vec::new());
        (report.pushed, report.ended_at, report.close) = (1 << 60, vec![1], None);
        GeneratorMessage::Ended(Box::new(report))
    };
    let refused = |hosts: u32| {
        let messages = Box::new((0..hosts as usize).map(move |host| (host, report())));
        let mut sink = Kept::default();
        let (reports, books) = load(hosts, messages, Arc::default()).finish(1, &mut sink).unwrap();
        let sum = reports.iter().try_fold(0_u64, |sum, report| sum.checked_add(report.pushed));
        (sum, books.stayed())
    };
    let (sum, stayed) = refused(15);
    assert_eq!((sum, stayed.holds), (Some(15 << 60), true), "{}", stayed.evidence);
    let (sum, stayed) = refused(17);
    assert_eq!((sum, stayed.holds), (Some(15 << 60), false));
    let why = "the sum of its counts and those of the other hosts overflows";
    assert_eq!(stayed.evidence, format!("g15: {why}; g16: {why}"));
}
