//! `kelvin trace show`.

use std::path::Path;

use anyhow::{Result, bail};
use kelvin_report::table::{Table, number};
use kelvin_trace::attribution::{Attribution, attribution};
use kelvin_trace::blender::{self, Blend};
use kelvin_trace::stream::{Profile, profiles};
use kelvin_trace::{Request, Trace, import};

use super::table;
use crate::args::{Global, TraceShowArgs};
use crate::document::{self, Document};
use crate::exit::Code;
use crate::out;

/// Reads a trace, and describes it.
pub(super) fn show(args: &TraceShowArgs, global: &Global) -> Result<Code> {
    if let Some([change, _]) = args.what_if.as_deref()
        && change != "merge"
    {
        bail!("--what-if {change} is not known; write --what-if merge A,B,C");
    }
    let trace = super::read(&args.trace, global)?;
    let format = args.format.format();
    if let Some([_, streams]) = args.what_if.as_deref() {
        let merged = merged(&trace, streams, args.trace.max_requests)?;
        let blend = blender::blend(&merged);
        let profiles = profiles(&merged);
        let streams = Streams { trace: &merged, profiles, blend, attribution: None, width: out::width() };
        document::print(&streams, format)?;
        return Ok(Code::Success);
    }
    let (profiles, blend) = (profiles(&trace), blender::blend(&trace));
    let attribution = attribution(&trace);
    document::print(&Streams { trace: &trace, profiles, blend, attribution, width: out::width() }, format)?;
    Ok(Code::Success)
}

fn merged(trace: &Trace, streams: &str, most: usize) -> Result<Trace> {
    let mut parts: Vec<(String, Vec<Request>)> = Vec::new();
    for name in streams.split(',').map(str::trim) {
        let mut requests = blender::named(trace, name);
        if requests.is_empty() && Path::new(name).is_file() {
            requests = import::open(Path::new(name), most)?.requests;
        }
        if requests.is_empty() {
            let known = trace.processes.iter().map(kelvin_trace::Process::label);
            let known = known.chain(trace.devices.iter().map(|device| device.name.clone()));
            let known = kelvin_measure::text::few(known, 12);
            bail!("{name} is not a process or device of the trace, nor a file; the trace has {known}");
        }
        parts.push((name.to_owned(), requests));
    }
    if parts.len() < 2 {
        bail!("--what-if merge needs two streams or more, such as --what-if merge A,B");
    }
    Ok(blender::merge(&parts))
}

struct Streams<'a> {
    trace: &'a Trace,
    profiles: Vec<Profile>,
    blend: Blend,
    attribution: Option<Attribution>,
    width: usize,
}

impl Document for Streams<'_> {
    fn text(&self) -> Result<String> {
        Ok(table::render(self.trace, &self.profiles, &self.blend, self.attribution.as_ref(), self.width))
    }

    fn records(&self) -> Result<Vec<String>> {
        let trace = self.trace;
        let record = serde_json::json!({
            "format": trace.format,
            "requests": trace.requests.len(),
            "seconds": trace.lasts() as f64 / 1e9,
            "devices": trace.devices,
            "recording": trace.recording,
            "notes": trace.notes,
            "streams": self.profiles,
            "blender": self.blend,
            "attribution": self.attribution,
        });
        Ok(vec![serde_json::to_string(&record)?])
    }

    fn table(&self) -> Result<Table> {
        let mut table = Table::new(
            "stream,requests,bytes,requests_per_second,peak_to_mean,next,sequential,strided,runs,depth_mean,\
             touched_bytes,touched_again,pattern,arrivals,zeros,zeros_low,zeros_high",
        );
        for one in &self.profiles {
            let zeros = one.zeros.and_then(|zeros| zeros.zeros);
            table.rows.push(vec![
                one.scope.label().to_owned(),
                one.requests.to_string(),
                one.bytes.to_string(),
                number(Some(one.arrivals.rate)),
                number(one.arrivals.peak_to_mean),
                number(Some(one.sequence.next)),
                number(Some(one.sequence.sequential)),
                number(Some(one.sequence.strided)),
                one.sequence.runs.to_string(),
                number(one.depth.map(|depth| depth.mean)),
                one.places.unique.to_string(),
                number(Some(one.places.touched_again)),
                one.category.pattern.name().to_owned(),
                one.category.arrivals.name().to_owned(),
                number(zeros.map(|zeros| zeros.share)),
                number(zeros.map(|zeros| zeros.low)),
                number(zeros.map(|zeros| zeros.high)),
            ]);
        }
        Ok(table)
    }
}
