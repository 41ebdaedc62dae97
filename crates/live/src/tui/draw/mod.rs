//! Draws a [`Model`] in four rows of panels that share the height.

mod charts;
mod formatting;
mod host_panels;
mod palette;
mod panels;

use kelvin_measure::text::{countdown, plural, short, whole};
use std::time::Duration;

use kelvin_measure::event::{Phase, Status};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::model::{CLASSES, Lane, Model, NAMES, RECENT};
use formatting::{line, wrap};
pub(super) use palette::Palette;

/// The smallest terminal that can show every panel.
const NEEDS: (u16, u16) = (80, 24);

/// Width from which details are shown that a small terminal omits.
const WIDE: u16 = 140;

/// Largest number of tenants that the header names.
const TENANTS: usize = 3;

/// Display options, set with keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ViewOptions {
    /// Whether the display is frozen.
    pub(super) paused: bool,
    /// Whether the help for the keys is shown.
    pub(super) help: bool,
}

/// A panel: its title and the function that draws it.
type Panel = (&'static str, fn(&mut Buffer, Rect, &Model, Palette));

/// Draws everything.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, model: &Model, asked: ViewOptions, ink: Palette) {
    let body = header(buffer, area, model, ink);
    if asked.help {
        help(buffer, body, model, ink);
    } else if area.width < NEEDS.0 || area.height < NEEDS.1 {
        too_small(buffer, body, area, ink);
    } else {
        bands(buffer, body, model, ink);
    }
    footer(buffer, area, model, asked, ink);
}

fn bands(buffer: &mut Buffer, body: Rect, model: &Model, ink: Palette) {
    let body = panels::sources(buffer, body, model, ink);
    let wide = body.width >= WIDE;
    // Width in per cent, and panel.
    let load: &[(u16, Panel)] = if model.has_tenants() {
        &[(100, ("tenants", panels::tenants))]
    } else if wide {
        &[
            (43, ("throughput", panels::throughput)),
            (40, ("latency over time", panels::latency_over_time)),
            (17, ("latency", panels::latencies)),
        ]
    } else {
        &[(62, ("throughput", panels::throughput)), (38, ("latency", panels::latencies))]
    };
    let causes: &[(u16, Panel)] = &[(62, ("waits", panels::waits)), (38, ("host", host_panels::host))];
    let streams: Panel = ("storage by stream", host_panels::streams);
    let detail: &[(u16, Panel)] = if model.host.has_streams() {
        match (wide, model.is_io()) {
            (true, true) => &[
                (35, ("devices", host_panels::devices)),
                (35, streams),
                (30, ("transactions", panels::types)),
            ],
            (true, false) => &[
                (30, ("devices", host_panels::devices)),
                (32, streams),
                (38, ("top statements", panels::statements)),
            ],
            // A small terminal shows the streams in place of their devices.
            (false, _) => &[(60, streams), (40, ("top statements", panels::statements))],
        }
    } else if wide && model.is_io() {
        &[(60, ("devices", host_panels::devices)), (40, ("transactions", panels::types))]
    } else if wide {
        &[
            (33, ("devices", host_panels::devices)),
            (42, ("top statements", panels::statements)),
            (25, ("transactions", panels::types)),
        ]
    } else {
        &[(60, ("devices", host_panels::devices)), (40, ("top statements", panels::statements))]
    };
    let words: &[(u16, Panel)] = &[
        (55, ("findings so far", host_panels::findings)),
        (45, ("errors and notes", host_panels::errors_and_log)),
    ];
    // Charts benefit from height; tables soon show all of their rows.
    let height = u32::from(body.height);
    let cut = |share: u32| (height * share / 100) as u16;
    let shares = if model.has_tenants() { [40, 60, 80] } else { [29, 53, 77] };
    let edges = [0, cut(shares[0]), cut(shares[1]), cut(shares[2]), body.height];
    for (band, panels) in [load, causes, detail, words].into_iter().enumerate() {
        let (from, to) = (edges[band], edges[band + 1]);
        let area = Rect { y: body.y + from, height: to - from, ..body };
        let mut x = area.x;
        for (index, (share, (title, panel))) in panels.iter().enumerate() {
            let last = index + 1 == panels.len();
            let width = if last { area.right() - x } else { area.width * share / 100 };
            let whole = Rect { x, width, ..area };
            titled(buffer, whole, &title_of(title, model, wide), ink);
            let gap = u16::from(!last) * 2;
            let inner = Rect {
                y: whole.y + 1,
                width: whole.width.saturating_sub(gap),
                height: whole.height.saturating_sub(1),
                ..whole
            };
            panel(buffer, inner, model, ink);
            x += width;
        }
    }
}

/// A title, completed with values of the model.
fn title_of(title: &str, model: &Model, wide: bool) -> String {
    match title {
        "throughput" => format!("throughput: {} by second", model.about.headline),
        "tenants" => "tenants: transactions and I/Os per second, each on its own scale".into(),
        "latency" if model.load.is_open() => "response time".into(),
        "latency" => model.labels().time.into(),
        "latency over time" if model.load.is_open() => "response time by second".into(),
        "latency over time" => format!("{} by second", model.labels().time),
        "waits" if model.is_io() => format!("by direction and device, last {RECENT} s"),
        "waits" => match model.sessions.hottest() {
            Some(relation) => format!("waits: sessions by class; rows of {relation}"),
            None => "waits: sessions by class".into(),
        },
        "storage by stream" if model.host.lost_events() > 0 => {
            format!("storage by stream: {} events lost", whole(model.host.lost_events()))
        }
        "findings so far" if !model.findings.is_empty() => {
            format!("findings so far: {}", model.findings.len())
        }
        "errors and notes" if model.load.all_errors() > 0 => {
            format!("errors: {}, and notes", whole(model.load.all_errors()))
        }
        "top statements" | "transactions" if model.is_io() => "over the window".into(),
        "top statements" if !wide && model.sessions.top(1).is_empty() => "transaction types".into(),
        other => other.into(),
    }
}

fn titled(buffer: &mut Buffer, area: Rect, title: &str, ink: Palette) {
    let rule = "─".repeat(usize::from(area.width));
    line(buffer, area, 0, &rule, ink.faint());
    let title = format!("─ {title} ");
    let room = Rect { width: area.width.saturating_sub(1), ..area };
    line(buffer, room, 0, &title, ink.heading());
}

/// Two lines: what is running, and its state. Returns the rest of the area.
fn header(buffer: &mut Buffer, area: Rect, model: &Model, ink: Palette) -> Rect {
    let about = &model.about;
    let mut first = vec!["kelvin".to_owned(), stage(model)];
    if model.stage.users > 0 {
        let users = whole(u64::from(model.stage.users));
        first.push(format!("{users} {}", model.labels().who.form_for(model.stage.users.into())));
    }
    match about.points {
        Some(points) if points > 1 && model.stage.users > 0 => {
            first.push(format!("{} {} of {points}", model.labels().point.one, model.stage.point + 1));
        }
        None if model.stage.users > 0 => first.push(format!("trial {}", model.stage.point + 1)),
        _ => {}
    }
    // Last, because it may be long and the user knows it.
    first.push(format!("{} on {}", about.workload, about.target));
    line(buffer, area, 0, &first.join(" · "), Palette::strong());
    let style = if model.load.all_errors() > 0 { ink.amber() } else { Style::new() };
    line(buffer, area, 1, &figures(model), style);
    Rect { y: area.y + area.height.min(2), height: area.height.saturating_sub(3), ..area }
}

/// The phase and its remaining time.
fn stage(model: &Model) -> String {
    if let Some(status) = model.finished {
        let word = match status {
            Status::Complete => "complete",
            Status::Interrupted => "interrupted",
            Status::Failed => "failed",
            Status::Partial => "ending",
        };
        return word.into();
    }
    let Some(phase) = model.stage.phase else { return "preparing".into() };
    let stopping = if model.stopping && phase != Phase::Stop { ", stopping" } else { "" };
    let clock = match model.left() {
        Some(left) => format!(" {} left", countdown(left)),
        None if model.elapsed() >= Duration::from_secs(1) => {
            format!(" for {}", countdown(model.elapsed()))
        }
        None => String::new(),
    };
    format!("{}{clock}{stopping}", phase.label())
}

/// The headline values, or the progress of a long operation.
fn figures(model: &Model) -> String {
    if let Some(work) = &model.work {
        return progress(model, work);
    }
    if matches!(model.stage.phase, Some(Phase::CheckBefore | Phase::CheckAfter)) {
        let (checked, failed) = model.checked;
        return format!("{checked} consistency conditions checked, {failed} do not hold");
    }
    if model.load.series.is_empty() {
        return String::new();
    }
    let load = &model.load;
    let rate = |rate: Option<f64>| rate.map_or("–".into(), |rate| whole(rate as u64));
    let mut parts = if model.has_tenants() {
        let lanes = model.lanes.loaded();
        let mean = |lane: &Lane| rate(model.pace(lane.headline, model.seconds_of(lane)));
        let each = lanes.iter().map(|(name, lane, _)| format!("{name} {}/s mean", mean(lane)));
        vec![kelvin_measure::text::few(each, TENANTS)]
    } else {
        let (now, mean) = (model.pace(load.now, 1.0), model.pace(load.headline, load.seconds));
        vec![format!("{} {} now  {} mean", model.about.headline, rate(now), rate(mean))]
    };
    // The arrivals of different tenants have no common schedule.
    if !model.has_tenants()
        && let Some(arrivals) = &load.arrivals
    {
        let waiting = whole(arrivals.waiting.unwrap_or(0));
        let mut queue = format!("{} due per second, {waiting} waiting", whole(arrivals.due));
        if arrivals.refused > 0 {
            queue.push_str(&format!(", {} refused", whole(arrivals.refused)));
        }
        parts.push(queue);
    }
    let errors = load.all_errors();
    parts.push(format!("{} {}", whole(errors), plural(errors, "error", "errors")));
    if model.dropped > 0 {
        parts.push(format!("{} events not shown", whole(model.dropped)));
    }
    parts.join(" · ")
}

fn progress(model: &Model, work: &super::model::Work) -> String {
    let seconds = model.worked(work).as_secs_f64();
    let mut text = format!("{} {}/{}", work.what, whole(work.done), whole(work.total));
    if work.rows > 0 {
        text.push_str(&format!(" · {} rows", whole(work.rows)));
        if seconds >= 1.0 {
            text.push_str(&format!(" · {} rows/s", whole((work.rows as f64 / seconds) as u64)));
        }
    }
    if work.done > 0 && work.done < work.total && seconds >= 2.0 {
        let left = seconds / work.done as f64 * (work.total - work.done) as f64;
        text.push_str(&format!(" · {} left", countdown(Duration::from_secs_f64(left))));
    }
    text
}

fn too_small(buffer: &mut Buffer, body: Rect, area: Rect, ink: Palette) {
    let text = format!(
        "the panels need {}×{} characters and the terminal has {}×{}: enlarge it or reduce the font size; \
         the run continues",
        NEEDS.0, NEEDS.1, area.width, area.height
    );
    for (row, text) in wrap(&text, usize::from(body.width)).iter().enumerate() {
        line(buffer, body, row as u16, text, ink.amber());
    }
}

fn help(buffer: &mut Buffer, body: Rect, model: &Model, ink: Palette) {
    let [first, second] = [0..6, 6..CLASSES].map(|range| {
        let classes: Vec<String> =
            NAMES[range].iter().map(|(letter, name, _)| format!("{letter} {name}")).collect();
        format!("  {}", classes.join("   "))
    });
    let stop =
        format!("  q, Ctrl-C   stop after the {} in flight; again: stop now", model.labels().unit.many);
    // Shown by I/O jobs in place of sessions.
    let devices = [
        "by direction and device",
        "  now: I/Os of the last second; times of the last few seconds, for jobs with",
        "  a rate from the scheduled start",
    ];
    let waits = [
        "waits: average number of sampled sessions in each class",
        &first,
        &second,
        "  log: the log (WAL, redo) and its locks. latches: other locks in memory",
    ];
    let seen: &[&str] = if model.is_io() { &devices } else { &waits };
    let lines: [&str; 8] = [
        "keys",
        &stop,
        "  p, space    freeze the display; the run continues",
        "  Ctrl-L      redraw the screen",
        "  ?           show or hide this page",
        "throughput",
        "  one column per second; a dot below it: ramp-up, not counted",
        "  below it: c checkpoint  v vacuum  ! restart  e errors  2, 3, …: start of a point",
    ];
    let rest = [
        "host",
        "  u user  s system  i interrupts  w waiting for devices  t steal  · idle",
        "  pressure: share of time in which some task waited for the resource",
        "devices",
        "  await, f_await: ms per request, per flush. aqu-sz: mean queue length",
        "storage by stream (--trace)",
        "  seq: bytes in sequential runs. depth: others in flight when a request arrives",
        "findings so far may change until the end; the report has the final ones",
    ];
    for (row, text) in lines.iter().chain(seen).chain(&rest).enumerate() {
        let style = if text.starts_with(' ') { Style::new() } else { ink.heading() };
        line(buffer, body, row as u16, text, style);
    }
}

fn footer(buffer: &mut Buffer, area: Rect, model: &Model, asked: ViewOptions, ink: Palette) {
    if area.height < 3 {
        return;
    }
    let keys = if model.stopping { "q stop now" } else { "q stop" };
    let pause = if asked.paused { "p resume" } else { "p pause" };
    let text = format!("{keys} · {pause} · ? help");
    let row = area.height - 1;
    line(buffer, area, row, &text, ink.faint());
    let right = if asked.paused {
        "PAUSED: the run continues".to_owned()
    } else if model.stopping {
        format!("stopping after the {} in flight", model.labels().unit.many)
    } else {
        let conditions = model.sessions.any().then(|| {
            let sessions: f64 = model.sessions.average().iter().sum();
            format!("{} sessions active on average", short(sessions))
        });
        conditions.unwrap_or_default()
    };
    let width = right.chars().count() as u16;
    if width > 0 && area.width > width + text.chars().count() as u16 + 2 {
        let at = Rect { x: area.right() - width, width, ..area };
        line(buffer, at, row, &right, if asked.paused || model.stopping { ink.amber() } else { ink.faint() });
    }
}
