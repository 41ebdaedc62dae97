//! Sampling a trace while it is read, so that it need not be kept.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use kelvin_measure::Nanos;

use super::{Accesses, Sampled, Sampler, blocks};
use crate::import;
use crate::{Reading, Request, Result, Trace, Visitor};

/// What a sample of a trace gives.
#[derive(Debug, Clone, Default)]
pub struct SampledTrace {
    /// The trace without its requests.
    pub trace: Trace,
    /// The curves.
    pub sampled: Sampled,
    /// All accesses.
    pub accesses: u64,
    /// The accesses of the first sample, for simulations.
    pub first_sample: Vec<u64>,
    /// The mean response time of the requests, in nanoseconds.
    pub response: Option<f64>,
}

#[derive(Debug)]
struct SamplingVisitor {
    sampler: Sampler,
    first_sample: Vec<u64>,
    keeps_first: bool,
    which: Accesses,
    block: u64,
    window: Option<Range<Nanos>>,
    responses: (u64, f64),
}

impl Visitor for SamplingVisitor {
    fn request(&mut self, request: &Request) {
        if !self.which.has(request)
            || self.window.as_ref().is_some_and(|window| !window.contains(&request.at))
        {
            return;
        }
        if let Some(response) = request.response() {
            self.responses.0 += 1;
            self.responses.1 += response as f64;
        }
        for block in blocks(request, self.block) {
            if self.sampler.access(block) && self.keeps_first {
                self.first_sample.push(block);
            }
        }
    }
}

/// What is sampled of a trace.
#[derive(Debug, Clone)]
pub struct Sampling {
    /// The share of the blocks.
    pub rate: f64,
    /// Samples.
    pub seeds: u64,
    /// Whether to keep the accesses of the first one.
    pub keeps_first: bool,
    /// Which requests.
    pub which: Accesses,
    /// Bytes of a block.
    pub block: u64,
    /// Only requests of this time, by the trace's own clock.
    pub window: Option<Range<Nanos>>,
}

/// Reads a trace of at most `most` requests, and samples them. Memory is that of the samples.
///
/// # Errors
/// As [`import::open`].
pub fn sample_file(path: &Path, most: usize, sampling: Sampling) -> Result<SampledTrace> {
    let Sampling { rate, seeds, keeps_first, which, block, window } = sampling;
    let visitor = Rc::new(RefCell::new(SamplingVisitor {
        sampler: Sampler::new(rate, seeds),
        first_sample: Vec::new(),
        keeps_first,
        which,
        block,
        window,
        responses: (0, 0.0),
    }));
    let trace = import::open(path, Reading { most, visitor: Some(visitor.clone()) })?;
    let mut found = visitor.borrow_mut();
    let (answered, sum) = found.responses;
    Ok(SampledTrace {
        trace,
        sampled: found.sampler.finish(),
        accesses: found.sampler.accesses(),
        first_sample: std::mem::take(&mut found.first_sample),
        response: (answered > 0).then(|| sum / answered as f64),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::BufWriter;

    use kelvin_measure::Random;

    use super::*;
    use crate::cache::{accesses, sampled};
    use crate::file::FileWriter;
    use crate::matcher::{EventKind, Matched, RequestEvent};
    use crate::recording::{Header, Recording};
    use crate::{Flags, Operation};

    /// A recording of so many requests of 4 KiB every 10 µs, half of which go to a tenth of 200 GB.
    fn record(path: &Path, requests: u64) {
        let mut random = Random::part(1, 0, 0);
        let out = BufWriter::with_capacity(1 << 17, File::create(path).unwrap());
        let mut writer = FileWriter::new(out, &Header::default()).unwrap();
        for n in 0..requests {
            let place = random.range(0, 50_000_000) as u64;
            let block = if place.is_multiple_of(2) { place / 10 } else { place };
            let issue = RequestEvent {
                at: n * 10_000,
                device: (8, 0),
                sector: block * 8,
                sectors: 8,
                operation: if n % 4 == 0 { Operation::Write } else { Operation::Read },
                flags: Flags::default(),
                kind: EventKind::Issue { pid: 1, command: [0; 16] },
            };
            writer.request(&Matched { issue, pid: 1, command: [0; 16], response: Some(100_000) }).unwrap();
        }
        writer.finish(&Recording { complete: true, ..Recording::default() }).unwrap();
    }

    fn sampling(rate: f64) -> Sampling {
        Sampling { rate, seeds: 5, keeps_first: true, which: Accesses::All, block: 4096, window: None }
    }

    #[test]
    fn a_trace_that_is_not_kept_gives_the_same_samples() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("io.trace");
        record(&path, 30_000);
        let found = sample_file(&path, usize::MAX, sampling(0.1)).unwrap();
        let trace = import::open(&path, 100_000).unwrap();
        assert_eq!(found.sampled, sampled(accesses(&trace, 4096, Accesses::All), 0.1, 5));
        assert_eq!((found.accesses, found.response), (30_000, Some(100_000.0)));
        assert!((2500..3500).contains(&found.first_sample.len()), "{}", found.first_sample.len());
        let half = Sampling { window: Some(0..150_000_000), which: Accesses::Reads, ..sampling(1.0) };
        assert_eq!(sample_file(&path, usize::MAX, half).unwrap().accesses, 15_000 * 3 / 4);
        assert!(
            sample_file(&path, 10, sampling(1.0))
                .unwrap()
                .trace
                .notes
                .iter()
                .any(|note| note.contains("10 r"))
        );
    }

    /// Of a release build: `cargo xtask bench cache`.
    #[cfg(not(debug_assertions))]
    mod machine {
        use std::time::Instant;

        use super::*;

        /// Peak memory of this process in MB.
        fn peak() -> u64 {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1000
        }

        #[test]
        #[ignore = "judges the machine, and writes 1.2 GB: cargo xtask bench cache"]
        #[allow(clippy::print_stdout, reason = "what was measured is read by who runs it")]
        fn a_sample_of_a_hundred_million_requests_takes_less_than_a_minute_and_500_mb() {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("io.trace");
            record(&path, 100_000_000);
            let began = Instant::now();
            let found = sample_file(&path, usize::MAX, sampling(0.01)).unwrap();
            let (took, memory) = (began.elapsed().as_secs_f64(), peak());
            let size = std::fs::metadata(&path).unwrap().len();
            println!("{took:.1} s, {memory} MB, {size} bytes, {:?}", found.sampled.miss_ratio(25_000_000.0));
            assert_eq!(found.accesses, 100_000_000);
            assert!(took < 60.0 && memory < 500, "{took} s, {memory} MB");
        }
    }
}
