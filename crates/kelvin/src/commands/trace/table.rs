//! Text about a trace's streams.

use std::fmt::Write as _;

use kelvin_measure::text::{
    NONE, binary, count, cut, latency, number, percent, rate, seconds, three_figures, whole,
};
use kelvin_trace::Trace;
use kelvin_trace::attribution::{Attribution, ObjectShare};
use kelvin_trace::blender::Blend;
use kelvin_trace::recording::Recording;
use kelvin_trace::stream::{Distribution, Profile, Scope};

use crate::out::wrapped;

/// Width of a stream's name in columns.
const NAME: usize = 24;

/// The agreement of a recording with the kernel's counters, and its lost events.
pub(super) fn checks(recording: &Recording) -> String {
    let mut text = String::new();
    for device in &recording.devices {
        let Some(difference) = device.difference() else { continue };
        let bytes = |sectors: &[u64; 3]| binary(sectors.iter().sum::<u64>() * 512);
        let _ = writeln!(
            text,
            "{}: {} by the trace, {} by /proc/diskstats ({:+.3} %)",
            device.name,
            bytes(&device.traced),
            bytes(&device.counted),
            difference * 100.0
        );
    }
    let mut others = vec![format!("{} lost events", whole(recording.lost))];
    for (count, what) in [
        (recording.unreadable_pages, "unreadable pages"),
        (recording.without_issue, "completions without an issue"),
        (recording.without_completion, "requests without a completion"),
        (recording.requeued, "requests requeued by a busy device"),
    ] {
        if count > 0 {
            others.push(format!("{} {what}", whole(count)));
        }
    }
    text + &others.join(", ") + "\n"
}

/// Renders the whole description.
pub(super) fn render(
    trace: &Trace,
    profiles: &[Profile],
    blend: &Blend,
    attribution: Option<&Attribution>,
    width: usize,
) -> String {
    let mut text = heading(trace, width);
    if let Some(attribution) = attribution {
        objects(&mut text, attribution, width);
    }
    streams(&mut text, profiles);
    operations(&mut text, profiles);
    places(&mut text, trace, profiles);
    zeros(&mut text, trace, profiles, width);
    for profile in profiles {
        let label = cut(profile.scope.label(), NAME);
        wrapped(&mut text, &format!("{label}: {}", profile.category.evidence), 2, 4, width);
    }
    blender(&mut text, blend, width);
    text
}

fn heading(trace: &Trace, width: usize) -> String {
    let devices: Vec<&str> = trace.devices.iter().map(|device| device.name.as_str()).collect();
    let mut text = String::new();
    let words = format!(
        "{} requests in {}, format {}: {}",
        whole(trace.requests.len() as u64),
        seconds(trace.lasts() as f64 / 1e9),
        trace.format,
        kelvin_measure::text::few(devices, 4)
    );
    wrapped(&mut text, &words, 0, 2, width);
    // Without the end of the recording the counts are unknown.
    if let Some(recording) = trace.recording.as_ref().filter(|recording| recording.complete) {
        for line in checks(recording).lines() {
            wrapped(&mut text, line, 0, 2, width);
        }
    }
    for note in &trace.notes {
        wrapped(&mut text, &format!("note: {note}"), 0, 2, width);
    }
    text
}

fn name(scope: &Scope) -> String {
    let label = cut(scope.label(), NAME - 2);
    if *scope == Scope::All { label } else { format!("  {label}") }
}

fn streams(text: &mut String, profiles: &[Profile]) {
    let _ = writeln!(
        text,
        "\n{:<NAME$}{:>9}{:>10}{:>8}{:>7}{:>7}{:>7}{:>7}{:>7}  category",
        "Streams", "requests", "bytes", "req/s", "peak ×", "next", "seq.", "stride", "depth"
    );
    for profile in profiles {
        let depth = profile.depth.map_or_else(|| NONE.into(), |depth| three_figures(depth.mean));
        let peak = profile.arrivals.peak_to_mean.map_or_else(|| NONE.into(), three_figures);
        let sequence = &profile.sequence;
        let _ = writeln!(
            text,
            "{:<NAME$}{:>9}{:>10}{:>8}{:>7}{:>7}{:>7}{:>7}{:>7}  {}, {}",
            name(&profile.scope),
            whole(profile.requests),
            binary(profile.bytes),
            rate(Some(profile.arrivals.rate)),
            peak,
            percent(sequence.next),
            percent(sequence.sequential),
            percent(sequence.strided),
            depth,
            profile.category.pattern.name(),
            profile.category.arrivals.name()
        );
    }
}

/// The objects that the bytes belong to.
fn objects(text: &mut String, attribution: &Attribution, width: usize) {
    const LISTED: usize = 20;
    const WIDE: usize = 46;
    let _ = writeln!(
        text,
        "\n{:<WIDE$}{:>9}{:>10}{:>10}{:>8}",
        "Objects", "requests", "read", "written", "share"
    );
    for class in &attribution.classes {
        let of_class = |text: &mut String, name: &str, part: &ObjectShare| {
            let (read, written) = (binary(part.read), binary(part.written));
            let _ = writeln!(
                text,
                "{:<WIDE$}{:>9}{read:>10}{written:>10}{:>8}",
                cut(name, WIDE - 1),
                whole(part.requests),
                percent(part.share)
            );
        };
        of_class(text, &class.name, class);
        let listed = attribution.objects.iter().take(LISTED).filter(|object| object.class == class.class);
        for object in listed.filter(|object| object.share >= 0.001) {
            of_class(text, &format!("  {}", object.name), object);
        }
    }
    let mut words = format!("{} of the bytes belong to these", percent(attribution.attributed));
    if !attribution.unattributed.is_empty() {
        let sender = |(name, share): &(String, f64)| format!("{name} {}", percent(*share));
        let senders: Vec<String> = attribution.unattributed.iter().map(sender).collect();
        words += &format!("; the rest to no file that is known, sent by: {}", senders.join(", "));
    }
    wrapped(text, &format!("{words}."), 0, 2, width);
}

fn operations(text: &mut String, profiles: &[Profile]) {
    let _ = writeln!(
        text,
        "\n{:<NAME$}{:<9}{:>9}{:>10}{:>10}{:>10}{:>10}  sizes",
        "Operations", "", "requests", "bytes", "median", "p99", "longest"
    );
    for profile in profiles {
        for (place, one) in profile.operations.iter().enumerate() {
            let shown = if place == 0 { name(&profile.scope) } else { String::new() };
            let response = |figure: fn(&Distribution) -> u64| {
                one.response.map_or_else(|| NONE.into(), |all| latency(figure(&all) as f64))
            };
            let size = |size: &kelvin_trace::stream::SizeShare| {
                format!("{} {}", binary(u64::from(size.size)), percent(size.share))
            };
            let sizes: Vec<String> = one
                .sizes
                .iter()
                .filter(|size| size.size > 0 && size.share >= 0.01)
                .take(3)
                .map(size)
                .collect();
            let _ = writeln!(
                text,
                "{:<NAME$}{:<9}{:>9}{:>10}{:>10}{:>10}{:>10}  {}",
                shown,
                one.operation.name(),
                whole(one.requests),
                binary(one.bytes),
                response(|all| all.p50),
                response(|all| all.p99),
                response(|all| all.max),
                sizes.join(", ")
            );
            if one.failed > 0 {
                let _ = writeln!(text, "{:<NAME$}{} with an error", "", whole(one.failed));
            }
        }
    }
}

fn places(text: &mut String, trace: &Trace, profiles: &[Profile]) {
    let _ = writeln!(
        text,
        "\n{:<NAME$}{:>10}{:>8}{:>9}{:>11}{:>11}{:>9}  hottest range",
        "Places", "touched", "again", "hot 1 %", "set, mean", "set, most", "aligned"
    );
    for profile in profiles {
        let places = &profile.places;
        let set = &places.working_set;
        let mean = set.iter().sum::<u64>() / (set.len() as u64).max(1);
        let hot = places.hot_ranges.first().map_or_else(String::new, |hot| {
            let device = trace.devices.get(usize::from(hot.device)).map_or("", |device| device.name.as_str());
            let (begin, length) = (binary(hot.begin), binary(hot.length));
            format!("{} of {length} at {begin} of {}", percent(hot.share), cut(device, 20))
        });
        let _ = writeln!(
            text,
            "{:<NAME$}{:>10}{:>8}{:>9}{:>11}{:>11}{:>9}  {hot}",
            name(&profile.scope),
            binary(places.unique),
            percent(places.touched_again),
            percent(places.hottest_hundredth),
            binary(mean),
            binary(set.iter().max().copied().unwrap_or(0)),
            binary(places.alignment),
        );
    }
    if let Some(all) = profiles.first() {
        let window = seconds(all.places.window);
        let scales: Vec<String> = all
            .arrivals
            .dispersion
            .iter()
            .map(|one| format!("{} at {} ms", number(one.index), one.window))
            .collect();
        let _ = writeln!(text, "\nWorking sets in windows of {window}.");
        if !scales.is_empty() {
            let _ = writeln!(text, "Variance over mean of all arrivals (Poisson: 1): {}.", scales.join(", "));
        }
    }
    let _ = writeln!(text);
}

/// The shares of zeros and of never-written space in the bytes read.
fn zeros(text: &mut String, trace: &Trace, profiles: &[Profile], width: usize) {
    if trace.sample.is_none() {
        let why = match trace.recording {
            Some(_) => "the recording has no sample of the blocks",
            None => "only recordings of kelvin trace record have a sample of the blocks",
        };
        wrapped(
            text,
            &format!("Zeros and never-written space among the reads: not known; {why}."),
            0,
            2,
            width,
        );
        let _ = writeln!(text);
        return;
    }
    let _ = writeln!(text, "What reads found");
    for profile in profiles {
        let label = cut(profile.scope.label(), NAME);
        let Some(zeros) = &profile.zeros else { continue };
        wrapped(text, &format!("{label}: {}", zeros.describe()), 2, 4, width);
    }
    let _ = writeln!(text);
}

/// The regularity of the streams, separate and merged.
pub(super) fn blender(text: &mut String, blend: &Blend, width: usize) {
    let _ = writeln!(text, "\nRegularity: share of the bytes that continue the request before");
    for part in &blend.streams {
        let (name, share) = (cut(&part.name, 40), bar(part.regularity));
        let _ = writeln!(text, "  {name:<42}{:>7}  {share}", percent(part.regularity));
    }
    if let Some(parts) = blend.parts {
        let _ = writeln!(text, "  {:<42}{:>7}  {}", "streams together", percent(parts), bar(parts));
    }
    let _ = writeln!(
        text,
        "  {:<42}{:>7}  {}",
        "merged, as the device sees them",
        percent(blend.merged),
        bar(blend.merged)
    );
    let recovered = &blend.recovered;
    let _ = writeln!(
        text,
        "  {:<42}{:>7}  {}",
        "runs recovered from the merged stream",
        percent(recovered.regularity),
        bar(recovered.regularity)
    );
    let purity = recovered.purity.map_or_else(String::new, |purity| {
        format!("; {} of their bytes are in runs of one sender", percent(purity))
    });
    let index = blend.index().map_or_else(String::new, |index| format!("Blender index {index:.2}. "));
    let words = format!(
        "{index}{} recovered, with {} of the bytes, {} at a time on average{purity}.",
        count(recovered.runs, "run"),
        percent(recovered.share),
        three_figures(recovered.at_once)
    );
    wrapped(text, &words, 0, 2, width);
}

fn bar(share: f64) -> String {
    "█".repeat((share.clamp(0.0, 1.0) * 20.0).round() as usize)
}
