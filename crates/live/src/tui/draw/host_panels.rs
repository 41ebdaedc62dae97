//! The panels of the host, the findings, errors and log.

use kelvin_diagnose::Severity;
use kelvin_measure::text::{fixed_percent, short};
use kelvin_observe::metric;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::model::{Column, FindingsState, MODES, Model};
use super::charts;
use super::formatting::{self, figure, line};
use super::palette::Palette;

/// The CPU modes: a letter and a name.
const MODE_NAMES: [(char, &str); MODES] =
    [('u', "user"), ('s', "system"), ('i', "interrupts"), ('w', "iowait"), ('t', "steal")];

/// The CPU by mode, and the pressure stall information.
pub(super) fn host(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) {
    let Some(cpu) = model.host.cpu() else {
        let why = model.host.unavailable_reason(metric::CPU).unwrap_or("no host counters have been read yet");
        return line(buffer, area, 0, why, ink.faint());
    };
    let cell = |mode: usize| (MODE_NAMES[mode].0, ink.mode(mode));
    let busy: f64 = cpu[..3].iter().sum();
    line(buffer, area, 0, &format!("busy {:>5}", fixed_percent(Some(busy), 0)), Palette::strong());
    let bar =
        Rect { x: area.x + 12, y: area.y, width: area.width.saturating_sub(12), height: area.height.min(1) };
    charts::row(buffer, bar, &cpu, cell);
    let narrow = area.width < 45;
    let mut texts = Vec::new();
    let shares: Vec<String> = MODE_NAMES
        .iter()
        .zip(cpu)
        .filter(|(_, share)| *share >= 0.005)
        .map(|((letter, name), share)| {
            let name = if narrow { "" } else { name };
            format!("{letter} {name} {}", fixed_percent(Some(share), 0))
        })
        .collect();
    texts.push(shares.join("  ").replace("  ", if narrow { " " } else { "  " }));
    texts.push(pressure(model, narrow));
    texts.push(processes(model));
    let chart = area.height >= 9;
    for (row, text) in texts.into_iter().filter(|text| !text.is_empty()).enumerate() {
        line(buffer, area, row as u16 + 1, &text, Style::new());
    }
    if chart {
        let strip = Rect { y: area.y + 5, height: area.height - 5, ..area };
        let plot = charts::plot(strip, 7);
        charts::axis(buffer, strip, 7, "100 %", "0 %", ink.faint());
        for (x, (_, column)) in model.timeline.last(usize::from(plot.width)).enumerate() {
            if let Some(shares) = column.and_then(Column::cpu) {
                charts::stack(buffer, plot, x as u16, &shares, 1.0, cell);
            }
        }
    }
}

/// "pressure cpu 12 % io 3 % memory 0 %": the share of time in which some task was stalled.
fn pressure(model: &Model, narrow: bool) -> String {
    let value = |what: &str| model.host.value(&metric::pressure(what, "some"));
    let known = [("cpu", "cpu"), ("io", "io"), ("memory", "mem")].into_iter().filter_map(|(what, short)| {
        Some((if narrow { short } else { what }, fixed_percent(Some(value(what)?), 0)))
    });
    let texts: Vec<String> = known.map(|(what, share)| format!("{what} {share}")).collect();
    match (texts.is_empty(), narrow) {
        (true, _) => String::new(),
        (_, true) => format!("psi {}", texts.join(" ")),
        (_, false) => format!("pressure {}", texts.join("  ")),
    }
}

/// CPUs used by kelvin and the server.
fn processes(model: &Model) -> String {
    let used = |name: &str| {
        let of = |mode: &str| model.host.value(&metric::process(name, format_args!("cpu.{mode}")));
        Some(of("user")? + of("system")?)
    };
    let known: Vec<String> = [("kelvin", "client"), ("server", "server")]
        .iter()
        .filter_map(|(shown, name)| Some(format!("{shown} {}", figure(used(name)?))))
        .collect();
    if known.is_empty() { String::new() } else { format!("{} CPUs", known.join("  ")) }
}

/// The block devices.
pub(super) fn devices(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) {
    let devices = model.host.devices();
    if devices.is_empty() {
        let why =
            model.host.unavailable_reason(metric::DISK).unwrap_or("no device counters have been read yet");
        return line(buffer, area, 0, why, ink.faint());
    }
    // Names have the width that the values leave; the start of a longer name is truncated.
    let role_width = if area.width < 60 { 5 } else { 10 };
    let name = usize::from(area.width).saturating_sub(33 + role_width + 1).clamp(4, 24);
    let header = format!(
        "{:<name$} {:<role_width$}{:>6}{:>6}{:>6}{:>7}{:>8}",
        "device", "role", "r/s", "w/s", "await", "aqu-sz", "f_await"
    );
    line(buffer, area, 0, &header, ink.faint());
    for (row, device) in (1..).zip(&devices) {
        let [reads, writes, wait, queue, flush] = device.values;
        let cut = device.name.chars().count().saturating_sub(name);
        let shown: String = device.name.chars().skip(cut).collect();
        let [wait, queue, flush] = [wait, queue, flush].map(figure);
        let [reads, writes] =
            [reads, writes].map(|rate| if rate.is_nan() { "–".into() } else { short(rate) });
        // A narrow panel abbreviates the role of a device that holds both.
        let role = if role_width < 8 { device.role.replace("data+log", "both") } else { device.role.clone() };
        let role: String = role.chars().take(role_width).collect();
        let text =
            format!("{shown:<name$} {role:<role_width$}{reads:>6}{writes:>6}{wait:>6}{queue:>7}{flush:>8}");
        let style = if role.is_empty() { ink.faint() } else { Style::new() };
        line(buffer, area, row, &text, style);
    }
}

/// Block requests by stream, in a run whose requests are traced.
pub(super) fn streams(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) {
    let streams = model.host.streams();
    if streams.is_empty() {
        return line(buffer, area, 0, "no requests so far", ink.faint());
    }
    let name = usize::from(area.width).saturating_sub(25).clamp(4, 24);
    let header = format!("{:<name$} {:>6}{:>6}{:>6}{:>6}", "stream", "req/s", "MB/s", "seq", "depth");
    line(buffer, area, 0, &header, ink.faint());
    for (row, stream) in (1..).zip(&streams) {
        let [requests, bytes, sequential, depth] = stream.values;
        let shown: String = stream.name.chars().take(name).collect();
        let requests = if requests.is_nan() { "–".into() } else { short(requests) };
        let sequential = fixed_percent(Some(sequential), 0);
        let (bytes, depth) = (figure(bytes / 1e6), figure(depth));
        let text = format!("{shown:<name$} {requests:>6}{bytes:>6}{sequential:>6}{depth:>6}");
        line(buffer, area, row, &text, Style::new());
    }
}

/// The findings so far, the most severe first.
pub(super) fn findings(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) {
    let mut row = 0;
    if model.findings.is_empty() {
        let text = match model.findings_state {
            FindingsState::NotYet => "none yet: the evidence is evaluated during the load",
            FindingsState::UpToDate => "none so far",
            FindingsState::Frozen => {
                "the run is too long to evaluate here: the report will list the findings"
            }
        };
        for (row, text) in formatting::wrap(text, usize::from(area.width)).iter().enumerate() {
            line(buffer, area, row as u16, text, ink.faint());
        }
        return;
    }
    for (index, finding) in model.findings.iter().enumerate() {
        let (mark, style) = match finding.severity {
            Severity::Red => ("RED  ", ink.red()),
            Severity::Amber => ("amber", ink.amber()),
            Severity::Note => ("note ", ink.faint()),
        };
        let point = finding.point.filter(|_| model.stage.point > 0).map(|p| format!("point {}: ", p + 1));
        let title = format!("{}{}", point.unwrap_or_default(), finding.title);
        let next = (area.height > 10).then(|| format!("→ {}", finding.next));
        for (part, text) in std::iter::once(title).chain(next).enumerate() {
            for (broken, text) in
                formatting::wrap(&text, usize::from(area.width.saturating_sub(6))).iter().enumerate()
            {
                let last = row + 1 == area.height;
                if last && (index + 1 < model.findings.len()) {
                    let more = format!("… and {} more", model.findings.len() - index);
                    return line(buffer, area, row, &more, ink.faint());
                }
                if part == 0 && broken == 0 {
                    line(buffer, area, row, mark, style);
                }
                let inner = Rect { x: area.x + 6, width: area.width.saturating_sub(6), ..area };
                line(buffer, inner, row, text, if part == 0 { Style::new() } else { ink.faint() });
                row += 1;
            }
        }
        if row >= area.height {
            return;
        }
    }
}

/// Errors of the point in descending order, then the newest messages.
pub(super) fn errors_and_log(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) {
    let errors = &model.load.errors;
    let mut most: Vec<_> = errors.iter().collect();
    most.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.count));
    // Half of the panel each, or more for one if the other is short.
    let sentences = model.log.len().min(usize::from(area.height));
    let room = usize::from(area.height) - sentences.min(usize::from(area.height / 2));
    let mut row = 0;
    for ((class, code), sum) in most.into_iter().take(room) {
        let failed = if sum.failed > 0 { format!(", {} failed", sum.failed) } else { ", all retried".into() };
        let code = if code.is_empty() { String::new() } else { format!(" {code}") };
        let text = format!("{} × {class}{code}{failed}: {}", short(sum.count as f64), sum.message);
        line(buffer, area, row, &text, ink.red());
        row += 1;
    }
    if errors.is_empty() {
        line(buffer, area, row, "no errors", ink.faint());
        row += 1;
    }
    let left = usize::from(area.height.saturating_sub(row));
    let mut shown: Vec<String> = Vec::new();
    for sentence in model.log.iter().rev() {
        let lines = formatting::wrap(sentence, usize::from(area.width.saturating_sub(2)));
        if shown.len() + lines.len() > left {
            break;
        }
        let broken = lines.iter().enumerate().rev();
        shown.extend(broken.map(|(i, text)| format!("{}{text}", if i == 0 { "· " } else { "  " })));
    }
    for text in shown.iter().rev() {
        line(buffer, area, row, text, Style::new());
        row += 1;
    }
}
