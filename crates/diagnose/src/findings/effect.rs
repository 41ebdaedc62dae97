//! How an occurrence with a start and an end affected the load: the seconds that it covers, compared with the others.

use kelvin_measure::observation::Occurrence;
use kelvin_measure::text;
use kelvin_observe::metric;
use kelvin_stats::student;

use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Span};

/// Whole seconds needed on each side before their throughput is compared.
const FEWEST: usize = 3;

/// How low the upper end of the interval of during / rest must lie: the SNIA PTS allows a steady state to range over
/// 20 % of its mean, 10 % to each side (SNIA Solid State Storage Performance Test Specification, "steady state").
const CERTAIN: f64 = 0.9;
/// How low the ratio itself must be: twice that, because a second of a small machine is noisy.
const LIKELY: f64 = 0.8;

/// Throughput inside and outside of some intervals within a point's window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contrast {
    /// Mean of the transactions a second, in the stretches.
    pub(super) during: f64,
    /// The same in the rest of the window.
    pub(super) rest: f64,
    /// Whether it is certain (99 %) that they were slower by more than a steady state allows, and likely by twice that.
    pub(super) costly: bool,
    /// How much slower than the rest they were, from and to, as shares of the rest (99 %).
    lost: (f64, f64),
}

impl Contrast {
    /// As evidence.
    pub(super) fn fact(self) -> EvidenceLine {
        let (during, rest) = (text::number(self.during), text::number(self.rest));
        let change = text::fixed_change(self.during / self.rest, 0);
        EvidenceLine::new(
            "transactions per second during it",
            format!("{during} against {rest} in the rest of the window ({change})"),
        )
    }
}

/// What stretches that cover such a part of the window cost its throughput: as they were seen, else no more than that part.
pub(super) fn on_figure(seen: Option<Contrast>, part: f64) -> Effect {
    let (low, high) = seen.map_or((0.0, 1.0), |seen| seen.lost);
    Effect::between(part * low, part * high, EffectBasis::Throughput)
}

/// The part of what happened that lies within `span`.
pub(super) fn spans<'a>(occurrences: impl IntoIterator<Item = &'a Occurrence>, span: Span) -> Vec<Span> {
    let within =
        |o: &Occurrence| Span { from: o.from.max(span.from), to: o.to.unwrap_or(span.to).min(span.to) };
    occurrences.into_iter().map(within).filter(|span| span.to > span.from).collect()
}

/// How many checkpoints an occurrence stands for: fast ones come together.
pub(super) fn checkpoints(occurrence: &Occurrence) -> f64 {
    occurrence.figures.get("checkpoints").copied().filter(|number| *number >= 1.0).unwrap_or(1.0)
}

/// Seconds that at least one of the stretches covers.
pub(super) fn covered(spans: &[Span]) -> f64 {
    let mut sorted = spans.to_vec();
    sorted.sort_by_key(|span| span.from);
    let (mut end, mut sum) = (0, 0);
    for span in sorted {
        sum += span.to.saturating_sub(span.from.max(end));
        end = end.max(span.to);
    }
    sum as f64 / 1e9
}

/// Transactions a second in and outside of the stretches; none with too few seconds on either side.
pub(super) fn on_throughput(evidence: &Evidence, point: u32, spans: &[Span]) -> Option<Contrast> {
    let open = evidence.window(point)?.from;
    let (mut during, mut rest) = (Vec::new(), Vec::new());
    for (second, good) in evidence.point(point)?.throughput().into_iter().enumerate() {
        let from = open + second as u64 * 1_000_000_000;
        let touched: Vec<Span> = spans
            .iter()
            .map(|s| Span { from: s.from.max(from), to: s.to.min(from + 1_000_000_000) })
            .filter(|s| s.to > s.from)
            .collect();
        // A second without a transaction is slow and not unknown; logarithms need something.
        let side = if covered(&touched) >= 0.5 { &mut during } else { &mut rest };
        side.push(good.max(0.5));
    }
    if during.len() < FEWEST || rest.len() < FEWEST {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let ratio = student::welch_ratio(&rest, &during, 0.99);
    let costly = ratio.is_some_and(|r| r.ratio < LIKELY && r.high < CERTAIN);
    let lost =
        ratio.map_or((1.0 - mean(&during) / mean(&rest), 1.0), |ratio| (1.0 - ratio.high, 1.0 - ratio.low));
    Some(Contrast { during: mean(&during), rest: mean(&rest), costly, lost })
}

/// Mean times of a device's requests in the stretches and in the rest of the window, over the requests of each side; none
/// where one side has none.
fn on_requests(
    evidence: &Evidence,
    time: &str,
    rate: &str,
    window: Span,
    spans: &[Span],
) -> Option<(f64, f64)> {
    let (mut during, mut rest) = ((0.0, 0.0), (0.0, 0.0));
    for (seen, requests) in evidence.by_request(time, rate, window) {
        let touched: Vec<Span> = spans
            .iter()
            .map(|s| Span { from: s.from.max(seen.from), to: s.to.min(seen.to) })
            .filter(|s| s.to > s.from)
            .collect();
        let side = if covered(&touched) * 2.0 >= seen.seconds() { &mut during } else { &mut rest };
        side.0 += seen.value * requests;
        side.1 += requests;
    }
    (during.1 > 0.0 && rest.1 > 0.0).then(|| (during.0 / during.1, rest.0 / rest.1))
}

/// Sum of a rate over a stretch of time; none when less than half of it is known.
pub(super) fn total(evidence: &Evidence, name: &str, span: Span) -> Option<f64> {
    Some(evidence.mean_over(name, span)? * span.seconds())
}

/// The log device's mean time of a write and of a flush during the stretches, against the rest of the window.
pub(super) fn on_log_device(evidence: &Evidence, window: Span, spans: &[Span]) -> Vec<EvidenceLine> {
    let Some(device) = evidence.file_location("wal").and_then(|place| place.device.as_ref()) else {
        return Vec::new();
    };
    let each = |(kind, what): (&str, &str)| {
        let of = |column: &str| metric::disk(device, format_args!("{kind}_{column}"));
        let (during, rest) = on_requests(evidence, &of("await"), &of("s"), window, spans)?;
        let found = format!("{} ms against {} ms", text::number(during), text::number(rest));
        Some(EvidenceLine::new(format!("mean {what} time of the log device {device} during it"), found))
    };
    [("w", "write"), ("f", "flush")].into_iter().filter_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use kelvin_measure::SECOND;

    use super::*;

    #[test]
    fn what_overlaps_is_counted_once() {
        let span = |from: u64, to: u64| Span { from: from * SECOND, to: to * SECOND };
        assert_eq!(covered(&[span(5, 8), span(1, 3), span(2, 4), span(6, 7)]), 6.0);
        assert_eq!(covered(&[]), 0.0);
    }

    #[test]
    fn a_slower_stretch_is_costly_and_noise_is_not() {
        let staged = |slow: f64| {
            let of = move |second: i64| {
                let factor = if (5..9).contains(&second) { slow } else { 1.0 };
                (factor * (1000.0 + 60.0 * ((second * 7) % 5 - 2) as f64)) as u64
            };
            Staged::new().throughput(of).done()
        };
        let spans = |evidence: &Evidence| {
            let open = evidence.window(0).unwrap().from;
            vec![Span { from: open + 5 * SECOND, to: open + 9 * SECOND }]
        };
        for (slow, costly) in [(0.5, true), (0.0, true), (0.95, false), (1.0, false)] {
            let evidence = staged(slow);
            let effect = on_throughput(&evidence, 0, &spans(&evidence)).unwrap();
            assert_eq!(effect.costly, costly, "{slow}: {effect:?}");
        }
        let evidence = staged(0.5);
        assert!(on_throughput(&evidence, 0, &[]).is_none());
    }

    #[test]
    fn request_times_are_means_over_requests() {
        use kelvin_measure::event::Event;
        use kelvin_measure::observation::{Metric, Observation, Observer, Reading};
        let metric = |name: &str| Metric { name: name.into(), unit: "1".into(), help: String::new() };
        let mut evidence = Evidence::default();
        let mut seen = |observation| evidence.event(&Event::Observed(observation));
        let metrics = vec![metric("w_await"), metric("w_s")];
        seen(Observation::Observer(Observer { first: 0, metrics, ..Observer::default() }));
        for (second, values) in
            [[0.0, 0.0], [10.0, 1.0], [1.0, 999.0], [f32::NAN, 0.0], [4.0, 10.0]].iter().enumerate()
        {
            seen(Observation::Reading(Reading {
                at: second as u64 * SECOND,
                first: 0,
                values: values.to_vec(),
            }));
        }
        let span = |from: u64, to: u64| Span { from: from * SECOND, to: to * SECOND };
        let mean = evidence.mean_by_request("w_await", "w_s", span(0, 3)).unwrap();
        assert!((mean - 1.009).abs() < 1e-6, "{mean}");
        let (during, rest) = on_requests(&evidence, "w_await", "w_s", span(0, 4), &[span(0, 2)]).unwrap();
        assert!((during - 1.009).abs() < 1e-6 && (rest - 4.0).abs() < 1e-6, "{during} {rest}");
        assert_eq!(evidence.mean_by_request("w_await", "w_s", span(2, 3)), None);
    }
}
