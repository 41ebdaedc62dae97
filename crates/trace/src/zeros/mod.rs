//! What reads found: zeros, and room that was never written.
//!
//! A device that knows that a block was never written answers without its medium, and response times of such reads say
//! nothing about others. After a recording [`add_sample`] draws read bytes, every one with the same chance, and reads the
//! blocks of these from the devices; [`SampleIndex`] finds the sampled bytes of a stream, which are a random sample of the
//! stream's, and [`ZeroShare`] is what they say about it. Blocks that were written during the recording are not counted: what
//! a read found there is not there any more.

mod draw;
mod sampling;

use std::collections::BTreeMap;

use kelvin_measure::Nanos;
use kelvin_measure::text::{percent, whole};
use kelvin_stats::proportion::interval;
use serde::{Deserialize, Serialize};

pub use sampling::{SampleOptions, add_sample};

use crate::recording::{BlockContent, DrawnByte};
use crate::{Operation, Request, Trace};

/// Bytes of a block that is zero or not: what filesystems allocate and devices map.
pub const BLOCK: u32 = 4096;
/// The confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// A share with its interval of 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Estimate {
    /// The share in the sample.
    pub share: f64,
    /// Where the share of all is, from here
    pub low: f64,
    /// to here.
    pub high: f64,
}

impl Estimate {
    fn from_counts(some: u64, all: u64) -> Option<Self> {
        let (low, high) = interval(some, all, CONFIDENCE);
        (all > 0).then(|| Self { share: some as f64 / all as f64, low, high })
    }
}

/// What the sample says about a stream's reads.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZeroShare {
    /// Drawn bytes of the stream.
    pub drawn: u64,
    /// Of these, in blocks that were written or discarded during the recording.
    pub changed: u64,
    /// In blocks that could not be read.
    pub unread: u64,
    /// The share of the read bytes whose blocks are zeros, without those that changed or could not be read.
    pub zeros: Option<Estimate>,
    /// The share of the read bytes in room that was never written by what the filesystem says: reserved and unwritten, or,
    /// behind a loop device, a hole of its image. Without those that changed.
    pub never_written: Option<Estimate>,
    /// Whether not all ranges of such room are known: the share is that of the known ones, so that of all is at least as
    /// large.
    pub never_written_is_partial: bool,
}

impl ZeroShare {
    /// In words, as the reports say it.
    pub fn describe(&self) -> String {
        let mut parts = Vec::new();
        match self.zeros {
            Some(Estimate { share, low, high }) => parts.push(format!(
                "{} of the bytes read are in blocks of zeros ({} to {})",
                percent(share),
                percent(low),
                percent(high)
            )),
            None => parts.push("whether the blocks read are zeros is not known".to_owned()),
        }
        if let Some(Estimate { share, low, high }) = self.never_written {
            let (share, low, high) = (percent(share), percent(low), percent(high));
            parts.push(if self.never_written_is_partial {
                format!("at least {low} in space that was never written ({share} of the sample)")
            } else {
                format!("{share} in space that was never written ({low} to {high})")
            });
        }
        let mut text = format!("{} (sample of {})", parts.join(", "), whole(self.drawn));
        let left: Vec<String> =
            [(self.changed, "written during the recording"), (self.unread, "not read (of the zeros)")]
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, why)| format!("{} {why}", whole(count)))
                .collect();
        if !left.is_empty() {
            text += &format!(", not counted: {}", left.join(", "));
        }
        text
    }
}

/// When, on which device, and at which byte one was drawn.
type Drawing = (Nanos, (u32, u32), u64);

/// The sampled bytes of a trace's requests.
#[derive(Debug)]
pub struct SampleIndex {
    /// The request's place in the trace, what its block holds, whether that was never written.
    found: Vec<(usize, BlockContent, bool)>,
    /// Whether not all ranges of never-written room are known.
    is_partial: bool,
}

impl SampleIndex {
    /// None if the trace has no sample.
    pub fn for_trace(trace: &Trace) -> Option<Self> {
        let sample = trace.sample.as_ref()?;
        let mut by_place: BTreeMap<Drawing, Vec<&DrawnByte>> = BTreeMap::new();
        for drawn in &sample.drawn {
            by_place.entry((drawn.0, drawn.1, drawn.2)).or_default().push(drawn);
        }
        let mut found = Vec::new();
        for (place, request) in trace.requests.iter().enumerate() {
            if request.operation != Operation::Read {
                continue;
            }
            let device = trace.devices.get(usize::from(request.device)).and_then(|device| device.number);
            let at = trace.origin.saturating_add(request.at);
            let Some(device) = device else { continue };
            // Each is of one request, also where two were issued at one time for one place.
            let range = (at, device, request.offset)..(at, device, request.end());
            let keys: Vec<_> = by_place.range(range).map(|(key, _)| *key).collect();
            for drawn in keys.iter().filter_map(|key| by_place.remove(key)).flatten() {
                found.push((place, drawn.3, drawn.4));
            }
        }
        let recording = trace.recording.as_ref();
        let is_partial = recording.is_some_and(|one| one.unwritten_left_out > 0 || one.files_partial);
        Some(Self { found, is_partial })
    }

    /// What it says of the requests that belong to a stream; none if there is no sampled byte of it.
    pub fn share(&self, trace: &Trace, of: &dyn Fn(&Request) -> bool) -> Option<ZeroShare> {
        let (mut zeros, mut never) = (0, 0);
        let mut share = ZeroShare { never_written_is_partial: self.is_partial, ..ZeroShare::default() };
        for (place, found, is_never) in &self.found {
            if !trace.requests.get(*place).is_some_and(of) {
                continue;
            }
            share.drawn += 1;
            match found {
                BlockContent::Zeros => zeros += 1,
                BlockContent::Data => (),
                BlockContent::Changed => share.changed += 1,
                BlockContent::Unread => share.unread += 1,
            }
            never += u64::from(*is_never && *found != BlockContent::Changed);
        }
        let unchanged = share.drawn - share.changed;
        share.zeros = Estimate::from_counts(zeros, unchanged - share.unread);
        // None found may be none looked up: files may not have been followed.
        share.never_written = Estimate::from_counts(never, unchanged).filter(|_| never > 0);
        (share.drawn > 0).then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::ReadSample;
    use crate::{Builder, Device, Flags};

    #[test]
    fn a_streams_share_is_that_of_its_own_bytes() {
        let mut builder = Builder::new("test", 100);
        builder.device(&Device { name: "sda".into(), number: Some((8, 0)) });
        builder.device(&Device { name: "sdb".into(), number: Some((8, 16)) });
        for (at, device, offset, operation) in [
            (100, 0, 0, Operation::Read),
            (110, 0, 8192, Operation::Read),
            (110, 1, 8192, Operation::Read),
            (120, 1, 0, Operation::Write),
        ] {
            let (file, flags, took) = (Request::NO_FILE, Flags::default(), Request::UNKNOWN);
            let request =
                Request { at, offset, length: 8192, device, process: 0, file, operation, flags, took };
            builder.push(request, None);
        }
        let mut trace = builder.finish();
        assert!(SampleIndex::for_trace(&trace).is_none(), "nothing is said without a sample");
        let drawn = vec![
            DrawnByte(100, (8, 0), 4096, BlockContent::Zeros, true),
            DrawnByte(100, (8, 0), 512, BlockContent::Changed, true),
            DrawnByte(110, (8, 0), 8192, BlockContent::Data, false),
            DrawnByte(110, (8, 16), 12_288, BlockContent::Unread, false),
            // Of no request of the trace, as of one before its window.
            DrawnByte(90, (8, 0), 4096, BlockContent::Zeros, false),
            DrawnByte(120, (8, 16), 0, BlockContent::Zeros, false),
        ];
        trace.sample = Some(ReadSample { drawn, ..ReadSample::default() });
        let index = SampleIndex::for_trace(&trace).unwrap();
        let all = index.share(&trace, &|_| true).unwrap();
        assert_eq!((all.drawn, all.changed, all.unread), (4, 1, 1));
        let (zeros, never) = (all.zeros.unwrap(), all.never_written.unwrap());
        assert!((zeros.share - 0.5).abs() < 1e-12 && (never.share - 1.0 / 3.0).abs() < 1e-12);
        // R: binom.test(1, 2)$conf.int is 0.0126 to 0.9874.
        assert!((zeros.low - 0.0126).abs() < 1e-4 && (zeros.high - 0.9874).abs() < 1e-4, "{zeros:?}");
        let second = index.share(&trace, &|request| request.device == 1).unwrap();
        assert_eq!((second.drawn, second.unread, second.zeros), (1, 1, None));
        assert_eq!(index.share(&trace, &|request| request.operation == Operation::Write), None);
    }
}
