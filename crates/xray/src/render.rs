//! A converted scenario as the text of Kelvin's own format.

use crate::claim::Claim;
use crate::conversion::Expectation;
use crate::conversion::{Conversion, ConvertedAction, ConvertedStep, Tenant};
use crate::job::literal;
use crate::result::{Aggregate, ResultLine, ResultMeasure, ResultSubject};
use crate::scenario::Scenario;

/// The text of the scenario: TOML, with what X-Ray says of it as remarks.
pub fn render(scenario: &Scenario, conversion: &Conversion) -> String {
    let mut text = String::new();
    head(&mut text, scenario, conversion);
    for tenant in &conversion.tenants {
        tenant_table(&mut text, scenario, tenant);
    }
    for step in &conversion.steps {
        step_table(&mut text, conversion, step);
    }
    for expectation in &conversion.expectations {
        expectation_table(&mut text, conversion, expectation);
    }
    results(&mut text, scenario);
    text
}

fn remark(text: &mut String, line: &str) {
    for line in line.lines() {
        // TOML allows no control characters in remarks.
        let clean: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        text.push_str(format!("# {clean}").trim_end());
        text.push('\n');
    }
}

fn head(text: &mut String, scenario: &Scenario, conversion: &Conversion) {
    remark(
        text,
        &format!("{}: X-Ray's scenario {}, converted by kelvin xray", scenario.title, scenario.name),
    );
    for variable in &scenario.variables {
        remark(
            text,
            &format!("variable {} = {} (default {})", variable.name, variable.value, variable.default),
        );
    }
    remark(text, &format!("cluster of {}", counted(conversion.nodes, "node")));
    remark(text, &format!("files and devices: {}", size(conversion.bytes)));
    for note in &conversion.notes {
        remark(text, note);
    }
    for warning in &conversion.warnings {
        remark(text, &format!("warning: line {}: {}", warning.location.line, warning.message));
    }
    text.push_str(&format!("\nscenario = {}\n", string(&literal(&scenario.title))));
    if !scenario.summary.is_empty() {
        text.push_str(&format!("description = {}\n", string(&literal(&scenario.summary))));
    }
}

fn tenant_table(text: &mut String, scenario: &Scenario, tenant: &Tenant) {
    text.push('\n');
    remark(text, &format!("workload {} on group {}", tenant.workload, tenant.group));
    if let Some(group) = scenario.groups.iter().find(|group| group.name == tenant.group) {
        remark(
            text,
            &format!(
                "X-Ray's machines have {} and {} MiB of memory each",
                counted(group.vcpus, "virtual CPU"),
                group.ram_mib
            ),
        );
    }
    text.push_str(&format!("[tenants.{}]\nworkload = \"io\"\n", tenant.name));
    if tenant.copies > 1 {
        text.push_str(&format!("copies = {}\n", tenant.copies));
    }
    if !tenant.agents.is_empty() {
        let agents: Vec<String> = tenant.agents.iter().map(|agent| string(agent)).collect();
        text.push_str(&format!("host = [{}]\n", agents.join(", ")));
    }
    if let Some(seed) = tenant.seed {
        text.push_str(&format!("[tenants.{}.load]\nseed = {seed}\n", tenant.name));
    }
    text.push_str(&format!("[tenants.{}.io]\njob = {}\n", tenant.name, lines(&tenant.job)));
}

fn step_table(text: &mut String, conversion: &Conversion, step: &ConvertedStep) {
    let name = |tenant: &usize| string(&conversion.tenants[*tenant].name);
    text.push('\n');
    remark(text, &format!("{}, line {}", step.source, step.line));
    text.push_str("[[steps]]\n");
    match &step.action {
        ConvertedAction::Fill(tenant) => text.push_str(&format!("fill = {}\n", name(tenant))),
        ConvertedAction::Start { tenant, runtime, stagger } => {
            text.push_str(&format!("start = {}\n", name(tenant)));
            for (key, seconds) in [("for", runtime), ("stagger", stagger)] {
                if let Some(seconds) = seconds {
                    text.push_str(&format!("{key} = {}\n", duration(*seconds)));
                }
            }
        }
        ConvertedAction::WaitFor(tenant, timeout) => {
            text.push_str(&format!("wait-for = {}\ntimeout = {}\n", name(tenant), duration(*timeout)));
        }
        ConvertedAction::Stop(tenant) => text.push_str(&format!("stop = {}\n", name(tenant))),
        ConvertedAction::Pause(seconds) => text.push_str(&format!("wait = {}\n", duration(*seconds))),
        ConvertedAction::Run { command, timeout, may_fail } => {
            text.push_str(&format!("run = {}\n", string(command)));
            if let Some(seconds) = timeout {
                text.push_str(&format!("timeout = {}\n", duration(*seconds)));
            }
            if *may_fail {
                text.push_str("may-fail = true\n");
            }
        }
        ConvertedAction::Repeat { count, command, interval } => {
            let wait = if *interval > 0.0 {
                format!(", {{ wait = {} }}", duration(*interval))
            } else {
                String::new()
            };
            text.push_str(&format!("repeat = {count}\nsteps = [{{ run = {} }}{wait}]\n", string(command)));
        }
        ConvertedAction::Mark(mark) => text.push_str(&format!("mark = {}\n", string(&literal(mark)))),
    }
}

fn expectation_table(text: &mut String, conversion: &Conversion, expectation: &Expectation) {
    let tenant = &conversion.tenants[expectation.tenant];
    text.push('\n');
    remark(text, &claim_lines(expectation).join("\n"));
    let mut table = String::new();
    if let Some((lower, upper)) = expectation.throughput {
        table.push_str(&format!("throughput-min = {lower:.1}\nthroughput-max = {upper:.1}\n"));
    }
    if expectation.no_errors {
        table.push_str("slo = \"errors<=0%\"\n");
    }
    if table.is_empty() {
        remark(text, "not judged: no band of I/Os per second follows from it");
    } else {
        text.push_str(&format!("[[expect]]\ntenant = {}\n{table}", string(&tenant.name)));
    }
}

/// What a scenario claims of a result, and what follows from its arrivals, in lines.
pub fn claim_lines(expectation: &Expectation) -> Vec<String> {
    let unit = match expectation.measure {
        ResultMeasure::Iops => " I/Os per second",
        ResultMeasure::Bandwidth => " bytes per second",
        ResultMeasure::Latency => " microseconds",
        _ => "",
    };
    let mut found = vec![match expectation.expected {
        Some(expected) => format!("result {}: {}{unit} expected", expectation.result, value(expected)),
        None => format!("result {}: no errors", expectation.result),
    }];
    for Claim { name, claimed, computed } in &expectation.claims {
        let theirs = format!("{name}: X-Ray's band is {} to {}", value(claimed.0), value(claimed.1));
        found.push(match computed {
            Some((lower, upper)) => format!(
                "{theirs}; of points that count {} s it is {} to {}",
                value(expectation.width),
                value(*lower),
                value(*upper)
            ),
            None => format!("{theirs}; arrivals that are not Poisson, or have no rate, give none"),
        });
    }
    found.extend(expectation.remark.iter().cloned());
    found
}

/// All of X-Ray's results, with where they are found.
fn results(text: &mut String, scenario: &Scenario) {
    if scenario.results.is_empty() {
        return;
    }
    text.push('\n');
    remark(text, "X-Ray's results, and where they are in Kelvin's report:");
    for result in &scenario.results {
        remark(text, &format!("- {}: {}", result.name, counterpart(result)));
    }
}

fn counterpart(result: &ResultLine) -> String {
    let of = match &result.subject {
        ResultSubject::Group(name) => format!(" of the tenants on group {name}"),
        ResultSubject::Workload(name) => format!(" of the tenant of workload {name}"),
        ResultSubject::Cluster(metric) => {
            return match metric.split('.').next().unwrap_or_default() {
                "CpuUsage" => "the host's CPU".into(),
                "NetReceived" | "NetTransmitted" => "the host's network".into(),
                _ => format!("no counterpart of {metric}"),
            };
        }
    };
    let measure = match result.measure {
        ResultMeasure::Iops => "I/Os per second",
        ResultMeasure::Bandwidth => "bytes per second",
        ResultMeasure::Latency => "response times, with percentiles where X-Ray has a mean,",
        ResultMeasure::Errors => "errors",
        ResultMeasure::Active => "seconds with I/Os",
        ResultMeasure::Generic | ResultMeasure::Metric => return "no counterpart".into(),
    };
    let aggregate = match result.aggregate {
        None => "",
        Some(Aggregate::Sum) => ", their sum",
        Some(Aggregate::Min) => ", the smallest",
        Some(Aggregate::Mean) => ", their mean",
        Some(Aggregate::Median) => ", their median",
        Some(Aggregate::Max) => ", the largest",
    };
    format!("{measure}{of}{aggregate}")
}

/// A number without places that say nothing.
fn value(value: f64) -> String {
    let text = if value.abs() >= 1e5 { format!("{value:.0}") } else { format!("{value:.2}") };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A number with its noun.
fn counted(count: u32, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Bytes with a unit that leaves at least one whole.
pub fn size(bytes: u64) -> String {
    let (shift, unit) = match bytes {
        0..0x10_0000 => return format!("{} KiB", bytes.div_ceil(1024)),
        0x10_0000..0x4000_0000 => (20, "MiB"),
        0x4000_0000..0x100_0000_0000 => (30, "GiB"),
        _ => (40, "TiB"),
    };
    format!(
        "{} {unit}",
        value((bytes as f64 / f64::from(1u32 << (shift - 20)) / f64::from(1u32 << 20) * 10.0).round() / 10.0)
    )
}

/// A time as a scenario writes it.
fn duration(seconds: f64) -> String {
    let milliseconds = (seconds * 1000.0).round().max(1.0) as u64;
    let (number, unit) = match milliseconds {
        whole if whole % 3_600_000 == 0 => (whole / 3_600_000, "h"),
        whole if whole % 60_000 == 0 => (whole / 60_000, "m"),
        whole if whole % 1000 == 0 => (whole / 1000, "s"),
        whole => (whole, "ms"),
    };
    format!("\"{number}{unit}\"")
}

/// A text in TOML.
fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A text of several lines in TOML, as it is if that can be.
fn lines(text: &str) -> String {
    let as_it_is = !text.contains("'''") && !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
    if as_it_is { format!("'''\n{text}'''") } else { string(text) }
}
