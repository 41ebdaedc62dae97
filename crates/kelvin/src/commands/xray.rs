//! `kelvin xray`: runs X-Ray's scenarios.

use std::fmt::Write;

use anyhow::{Context, Result, bail};
use kelvin_diagnose::bands;
use kelvin_diagnose::tenants::TenantSeries;
use kelvin_measure::text::{count, plural, rate};
use kelvin_storage::Error;
use kelvin_xray::{
    Conversion, ResultMeasure, Scenario, Settings, Tenant, claim_lines, convert, read, render, size,
};

use crate::args::{Format, Global, HistoryPlaceArgs, ScenarioFile, ScenarioRunArgs, XrayArgs};
use crate::exit::Code;
use crate::out;

/// Converts a scenario, and runs it or prints the result of the conversion.
pub(crate) fn xray(args: &XrayArgs, global: &Global) -> Result<Code> {
    let scenario = read(&args.path, &args.param.iter().cloned().collect())?;
    let here = std::env::current_dir().context("there is no current directory")?;
    let directory = here.join(format!("{}.data", scenario.name.replace('/', "-")));
    let settings = Settings {
        bindings: &args.bind,
        maps: &args.map,
        directory: &directory,
        nodes: args.nodes,
        time: args.scale_time,
        size: args.scale_size,
    };
    let mut conversion = convert(&scenario, &settings)?;
    place(&mut conversion, &args.place)?;
    for tenant in &conversion.tenants {
        check_job(tenant)?;
    }
    let text = render(&scenario, &conversion);
    // A scenario without a load, such as a clean-up, has no meaning without a cluster.
    let converted = if conversion.tenants.is_empty() {
        None
    } else {
        let name = format!("{}, converted", args.path.display());
        Some(kelvin_scenario::Scenario::parse(&text, &name, &here, &[])?)
    };
    for warning in &conversion.warnings {
        out::note(&format!("warning: {warning}"));
    }
    if args.print_scenario {
        out::write(&text)?;
        return Ok(Code::Success);
    }
    let Some(converted) = converted.filter(|_| !args.check) else {
        out::write(&overview(&scenario, &conversion))?;
        return Ok(Code::Success);
    };
    for note in &conversion.notes {
        out::note(note);
    }
    if conversion.tenants.iter().any(|tenant| tenant.job.contains(&*directory.to_string_lossy())) {
        out::directory(&directory)?;
    }
    let flags = ScenarioRunArgs {
        scenario: ScenarioFile { file: args.path.clone(), parameters: Vec::new() },
        // All commands in it come from the command line.
        allow_shell: true,
        i_know_it_destroys: args.i_know_it_destroys.clone(),
        prove: false,
        rounds: 0,
        tui: args.tui,
        fleet: args.fleet.clone(),
        history: HistoryPlaceArgs::default(),
        output: args.output.clone(),
    };
    let text = matches!(args.output.format(), Format::Text);
    super::scenario::run_scenario(&converted, &flags, global, &|tenants| {
        if text { out::write(&describe_points(&conversion, tenants)) } else { Ok(()) }
    })
}

/// Places the machines of groups on agents.
fn place(conversion: &mut Conversion, placed: &[(String, String)]) -> Result<()> {
    for (group, agents) in placed {
        let agents: Vec<String> = agents.split(',').map(|agent| agent.trim().to_owned()).collect();
        let mut found = false;
        for tenant in conversion.tenants.iter_mut().filter(|tenant| tenant.group == *group) {
            found = true;
            if agents.len() != tenant.copies as usize {
                let copies = count(tenant.copies, "machine");
                bail!("--place {group}: {} has {copies}; name an agent for each", tenant.workload);
            }
            tenant.agents.clone_from(&agents);
        }
        if !found {
            bail!("--place: no workload runs on a group {group}");
        }
    }
    Ok(())
}

/// Where the results lie: in X-Ray's bands, and in those that follow from the arrivals.
fn describe_points(conversion: &Conversion, tenants: &[TenantSeries]) -> String {
    let mut text = String::new();
    for expectation in conversion.expectations.iter().filter(|one| one.measure == ResultMeasure::Iops) {
        let of = &conversion.tenants[expectation.tenant];
        let copies: Vec<&TenantSeries> = tenants.iter().filter(|one| is_copy(&one.name, &of.name)).collect();
        let groups: Vec<Vec<&TenantSeries>> =
            if expectation.summed { vec![copies] } else { copies.into_iter().map(|one| vec![one]).collect() };
        for (group, claim) in
            groups.iter().flat_map(|group| expectation.claims.iter().map(move |claim| (group, claim)))
        {
            let width = expectation.width.round().max(1.0) as u64;
            let counts = bands::seconds_together(group);
            let within = |(low, high): (f64, f64)| {
                let share = bands::share(&counts, width, (low, high));
                let points = format!("{} of {}", share.inside, count(share.points, "point"));
                format!("{points} of {width} s within {} to {}", rate(Some(low)), rate(Some(high)))
            };
            let names: Vec<&str> = group.iter().map(|one| one.name.as_str()).collect();
            let right = claim.computed.map_or_else(String::new, |band| format!("; {}", within(band)));
            let _ = writeln!(
                text,
                "result {} of {}: {} claimed: {}{right}",
                expectation.result,
                names.join(" + "),
                claim.name,
                within(claim.claimed)
            );
        }
    }
    text
}

/// Whether a tenant has the name of a table or of one of its copies.
fn is_copy(name: &str, table: &str) -> bool {
    let number = name.strip_prefix(table).map(|rest| rest.strip_prefix('-').unwrap_or(rest));
    number.is_some_and(|number| number.chars().all(|c| c.is_ascii_digit()))
}

/// Refuses jobs that `kelvin io` would refuse. This happens before anything starts, and the error has the line
/// in the scenario's file.
fn check_job(tenant: &Tenant) -> Result<()> {
    // The substitution that a scenario makes.
    let text = tenant.job.replace("${copy}", "1").replace("$${", "${");
    let Err(error) = kelvin_storage::jobfile::parse_text(&text, None, &[]) else { return Ok(()) };
    if let Error::Input { place, problem } = &error
        && let Some(written) = tenant.job_lines.get((place.line as usize).saturating_sub(1))
        && written.line > 0
    {
        bail!("{written}: {problem}");
    }
    bail!("the job file of the workload {}, converted: {error}", tenant.workload);
}

/// What would run, and the expected results.
fn overview(scenario: &Scenario, conversion: &Conversion) -> String {
    let mut text = format!(
        "{} ({})\n{}; {}; files and devices: {}\n",
        scenario.title,
        scenario.name,
        count(conversion.nodes, "node"),
        count(conversion.steps.len() as u32, "step"),
        size(conversion.bytes),
    );
    for tenant in &conversion.tenants {
        let copies = plural(tenant.copies, "copy", "copies");
        let _ = writeln!(
            text,
            "  tenant {}: workload {}, {} {copies}",
            tenant.name, tenant.workload, tenant.copies
        );
    }
    for expectation in &conversion.expectations {
        let tenant = &conversion.tenants[expectation.tenant];
        for (index, line) in claim_lines(expectation).iter().enumerate() {
            let _ = match index {
                0 => writeln!(text, "  tenant {}: {line}", tenant.name),
                _ => writeln!(text, "    {line}"),
            };
        }
    }
    for note in &conversion.notes {
        let _ = writeln!(text, "  {note}");
    }
    text
}
