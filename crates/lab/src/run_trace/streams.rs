//! Storage traffic by stream, as observations of a run while it is recorded.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use kelvin_measure::observation::{Metric, Observer};
use kelvin_observe::metric::{
    STREAM_BYTES, STREAM_DEPTH, STREAM_REQUESTS, STREAM_SEQUENTIAL, STREAMS, TRACE_LOST,
};
use kelvin_observe::watch::{Feed, Watcher};
use kelvin_trace::attribution::FileClass;
use kelvin_trace::capture::{LiveTotals, StreamTotals};

/// Turns the recorder's sums into readings, one per set of sums.
pub(crate) struct StreamWatcher {
    totals: Receiver<LiveTotals>,
    last: Option<LiveTotals>,
    interval: Duration,
    lost: u32,
    /// The first metric of each stream, in the recorder's order.
    streams: Vec<u32>,
}

impl StreamWatcher {
    /// A watcher for a recorder that sends its sums at an interval.
    pub(crate) fn new(totals: Receiver<LiveTotals>, interval: Duration) -> Self {
        Self { totals, last: None, interval, lost: 0, streams: Vec::new() }
    }

    fn reading(&mut self, last: &LiveTotals, now: &LiveTotals, feed: &mut Feed) {
        let seconds = now.until.saturating_sub(last.until) as f64 / 1e9;
        if seconds <= 0.0 {
            return;
        }
        let lost = now.lost.saturating_sub(last.lost);
        feed.reading(self.lost, vec![now.lost as f32]);
        let nothing = StreamTotals::default();
        for (place, totals) in now.streams.iter().enumerate() {
            let before = last.streams.get(place).unwrap_or(&nothing);
            if place == self.streams.len() {
                self.streams.push(feed.declare(observer(&totals.name)));
            }
            let Some(&first) = self.streams.get(place) else { continue };
            feed.reading(first, values(before, totals, seconds, lost > 0));
        }
    }
}

/// The metrics of a stream, in the order of [`values`].
fn observer(name: &str) -> Observer {
    let whose = FileClass::with_id(name)
        .map_or_else(|| format!("no known file on {name}"), |class| class.name().to_owned());
    let metric = |figure: &str, unit: &str, help: &str| Metric {
        name: format!("{STREAMS}{name}.{figure}"),
        unit: unit.into(),
        help: format!("{help}: {whose}"),
    };
    Observer {
        source: "trace".into(),
        metrics: vec![
            metric(STREAM_REQUESTS, "1/s", "requests to the device"),
            metric(STREAM_BYTES, "B/s", "bytes read and written"),
            metric(STREAM_SEQUENTIAL, "ratio", "share of the bytes in sequential runs"),
            metric(STREAM_DEPTH, "1", "requests in flight on the device when a request arrives"),
        ],
        ..Observer::default()
    }
}

/// The increase of a stream's sums per second. If events were lost, the number of requests in flight is unknown.
fn values(before: &StreamTotals, now: &StreamTotals, seconds: f64, is_lossy: bool) -> Vec<f32> {
    let since = |of: fn(&StreamTotals) -> u64| of(now).saturating_sub(of(before)) as f64;
    let requests = since(|totals| totals.requests);
    let bytes = since(|totals| totals.bytes);
    // The start of a sequential run may belong to the previous reading.
    let sequential = (since(|totals| totals.sequential) / bytes).min(1.0);
    let depth = since(|totals| totals.depths) / requests;
    let known = |value: f64, is_known: bool| if is_known { value as f32 } else { f32::NAN };
    vec![
        (requests / seconds) as f32,
        (bytes / seconds) as f32,
        known(sequential, bytes > 0.0),
        known(depth, requests > 0.0 && !is_lossy),
    ]
}

impl Watcher for StreamWatcher {
    fn name(&self) -> String {
        "trace".into()
    }

    /// Several times the recorder's rate, so that the time of a reading is close to that of the sums.
    fn interval(&self) -> Duration {
        (self.interval / 5).max(Duration::from_millis(20))
    }

    fn begin(&mut self, feed: &mut Feed) {
        let lost = Metric {
            name: TRACE_LOST.into(),
            unit: "1".into(),
            help: "events lost so far because the kernel's buffers were full".into(),
        };
        self.lost =
            feed.declare(Observer { source: "trace".into(), metrics: vec![lost], ..Observer::default() });
    }

    fn sample(&mut self, feed: &mut Feed) -> Result<(), String> {
        while let Ok(now) = self.totals.try_recv() {
            if let Some(last) = self.last.take() {
                self.reading(&last, &now, feed);
            }
            self.last = Some(now);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::Observation;
    use kelvin_measure::{Clock, SECOND};

    use super::*;

    fn stream(name: &str, [requests, bytes, sequential, depths]: [u64; 4]) -> StreamTotals {
        StreamTotals { name: name.into(), requests, bytes, sequential, depths }
    }

    #[test]
    fn sums_become_rates_and_new_streams_are_declared() {
        let (send, totals) = std::sync::mpsc::channel();
        let mut watcher = StreamWatcher::new(totals, Duration::from_secs(1));
        let (mut feed, seen) = Feed::detached(Clock::real());
        watcher.begin(&mut feed);
        let log = |sums| stream("postgres-wal", sums);
        let sent = [
            (SECOND, 0, vec![log([10, 1000, 0, 0])]),
            (3 * SECOND, 0, vec![log([30, 5000, 4500, 50]), stream("vda", [4, 0, 0, 4])]),
            (4 * SECOND, 7, vec![log([30, 5000, 4500, 50]), stream("vda", [5, 4096, 0, 4])]),
        ];
        for (until, lost, streams) in sent {
            send.send(LiveTotals { until, lost, streams }).unwrap();
        }
        watcher.sample(&mut feed).unwrap();
        drop(feed);
        let (mut names, mut readings) = (Vec::new(), Vec::new());
        for one in &seen {
            match one {
                Observation::Observer(observer) => {
                    assert_eq!(observer.first as usize, names.len());
                    names.extend(observer.metrics.into_iter().map(|metric| (metric.name, metric.help)));
                }
                Observation::Reading(reading) => readings.push((reading.first, reading.values)),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(names[0].0, "host.trace.lost");
        let what = "share of the bytes in sequential runs: PostgreSQL WAL";
        assert_eq!(names[3], ("host.trace.postgres-wal.sequential".into(), what.into()));
        let what = "requests in flight on the device when a request arrives: no known file on vda";
        assert_eq!(names[8], ("host.trace.vda.depth".into(), what.into()));
        let none = f32::NAN;
        let expected: [(u32, Vec<f32>); 6] = [
            (0, vec![0.0]),
            // More sequential bytes than bytes: the start of the sequential run belongs to the previous reading.
            (1, vec![10.0, 2000.0, 1.0, 2.5]),
            (5, vec![2.0, 0.0, none, 1.0]),
            (0, vec![7.0]),
            (1, vec![0.0, 0.0, none, none]),
            (5, vec![1.0, 4096.0, 0.0, none]),
        ];
        // Unknown values (NaN) are not equal to themselves.
        assert_eq!(format!("{readings:?}"), format!("{expected:?}").replace("; 6", ""));
    }
}
