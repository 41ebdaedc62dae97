//! `kelvin scenario`, and `kelvin run` with a scenario file.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use kelvin_diagnose::tenants::TenantSeries;
use kelvin_lab::live::Live;
use kelvin_lab::store_bench::{StoreBench, StoreBenchError};
use kelvin_measure::text::{count, duration, fixed_change};
use kelvin_scenario::execute::{self, CompletedScenario, Conditions};
use kelvin_scenario::prove::{NeighbourEffect, Proof, Shown};
use kelvin_scenario::{Action, ExpectationResult, Scenario};
use kelvin_store::{RunState, Store};
use kelvin_workload::Stop;

use crate::args::{Format, Global, ScenarioCommand, ScenarioFile, ScenarioFileArgs, ScenarioRunArgs};
use crate::exit::Code;
use crate::measure::bench;
use crate::{out, paths, signal};
use kelvin_live::Tui;

/// Runs a scenario, or shows what it would do.
pub(crate) fn scenario(command: &ScenarioCommand, global: &Global) -> Result<Code> {
    match command {
        ScenarioCommand::Run(args) => run(args, global),
        ScenarioCommand::Check(args) => {
            let scenario = read(&args.scenario)?;
            out::line(&format!("{}: {}", args.scenario.file.display(), summary(&scenario)))?;
            Ok(Code::Success)
        }
        ScenarioCommand::Plan(args) => plan(args),
        ScenarioCommand::Show(args) => show(args),
        ScenarioCommand::Tenant => tenant(),
    }
}

/// Runs the process of a tenant, which the scenario's process controls.
fn tenant() -> Result<Code> {
    signal::leave_to_others()?;
    let mut input = std::io::stdin().lock();
    execute::serve_tenant(&mut input, &mut std::io::stdout()).map_err(anyhow::Error::msg)?;
    Ok(Code::Success)
}

fn read(file: &ScenarioFile) -> Result<Scenario> {
    Ok(Scenario::read(&file.file, &file.parameters)?)
}

/// "2 tenants, 6 steps, 5m 0s".
fn summary(scenario: &Scenario) -> String {
    let timeline = &scenario.timeline;
    let least = if timeline.at_least { "at least " } else { "" };
    format!(
        "{}, {}, {least}{}",
        count(scenario.tenants.len() as u64, "tenant"),
        count(scenario.steps.len() as u64, "step"),
        duration(timeline.seconds)
    )
}

fn plan(args: &ScenarioFileArgs) -> Result<Code> {
    let scenario = read(&args.scenario)?;
    if matches!(args.format.format(), Format::Json | Format::Jsonl) {
        out::line(&serde_json::to_string(&scenario.timeline)?)?;
        return Ok(Code::Success);
    }
    let mut text = format!("{}: {}\n", scenario.name, summary(&scenario));
    for step in &scenario.timeline.steps {
        let at = match step.at {
            None => "before".to_owned(),
            Some(at) => format!("{}{}", if step.at_least { ">= " } else { "" }, clock(at)),
        };
        let _ = writeln!(text, "{at:>12}  {:>3}  {}", step.number, step.text);
    }
    out::write(&text)?;
    Ok(Code::Success)
}

/// "1:30:00.5", as a clock shows it.
fn clock(seconds: f64) -> String {
    let whole = seconds as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, seconds - (whole / 60 * 60) as f64);
    let rest = if rest.fract() == 0.0 { format!("{rest:02.0}") } else { format!("{rest:04.1}") };
    if hours > 0 { format!("{hours}:{minutes:02}:{rest}") } else { format!("{minutes}:{rest}") }
}

fn show(args: &ScenarioFileArgs) -> Result<Code> {
    let scenario = read(&args.scenario)?;
    let mut text = format!("{}: {}\n", scenario.name, summary(&scenario));
    if let Some(about) = &scenario.description {
        let _ = writeln!(text, "{}", about.trim());
    }
    for one in &scenario.parameters {
        let about = one.description.as_deref().map_or_else(String::new, |about| format!(": {about}"));
        let _ = writeln!(text, "\nparameter {} = {} ({}){about}", one.name, one.value, one.range);
    }
    for tenant in &scenario.tenants {
        let _ = writeln!(text, "\n[{}]\n{}", tenant.name, tenant.spec.to_toml().trim_end());
        if let Some(host) = &tenant.host {
            let _ = writeln!(text, "on the agent {host}");
        }
        if !tenant.limits.is_none() {
            let _ = writeln!(text, "at most {}", tenant.limits.describe());
        }
        if !tenant.server_limits.is_none() {
            let _ = writeln!(text, "its server at most {}", tenant.server_limits.describe());
        }
    }
    for expected in &scenario.expect {
        let _ = writeln!(text, "\nexpect {expected}");
    }
    out::write(&text)?;
    Ok(Code::Success)
}

/// Refuses to run commands of a file without a flag: a file may come from anyone, and the user who runs it decides.
fn refuse_shell(scenario: &Scenario) -> Result<()> {
    let commands = scenario.steps.iter().any(|step| matches!(step.action, Action::Run { .. }));
    if commands || scenario.tenants.iter().any(|tenant| tenant.spec.work.allows_shell()) {
        bail!(
            "the scenario runs commands on this machine (its steps \"run\", or scripts with allow-shell): read them, and \
             add --allow-shell to permit it"
        );
    }
    Ok(())
}

fn run(args: &ScenarioRunArgs, global: &Global) -> Result<Code> {
    let scenario = read(&args.scenario)?;
    if !args.allow_shell {
        refuse_shell(&scenario)?;
    }
    run_scenario(&scenario, args, global, &|_| Ok(()))
}

/// Runs a scenario with the options of the flags, whatever format its file has. `after` is called after the run and
/// prints what the tenants did.
pub(super) fn run_scenario(
    scenario: &Scenario,
    args: &ScenarioRunArgs,
    global: &Global,
    after: &dyn Fn(&[TenantSeries]) -> Result<()>,
) -> Result<Code> {
    kelvin_run::observation::probe(&scenario.observe).map_err(anyhow::Error::msg)?;
    let agents = super::fleet_agents::scenario_agents(&args.fleet, scenario)?;
    let proof =
        args.prove.then(|| Proof::plan(scenario, args.rounds)).transpose().map_err(anyhow::Error::msg)?;
    let stop = signal::listen()?;
    let mut live: Box<dyn Live> = if args.tui {
        Box::new(Tui::new(&execute::view(scenario), global.quiet, &stop, signal::request_stop)?)
    } else {
        kelvin_live::for_run(global.quiet, args.output.events())
    };
    let path = paths::store(global.store.as_deref())?;
    let store = Store::open(&path)?;
    // A run without one of the tenants is a different load and is not entered in the history.
    let history = if args.prove { None } else { args.history.history_key()? };
    let mut bench = bench(&store, &mut *live, &stop).in_history(history);
    let conditions = Conditions { agents, ..conditions(args)? };
    if let Some(proof) = proof {
        return prove(proof, &mut bench, &stop, &conditions, args);
    }
    let done = execute::execute(scenario, &mut bench, &stop, &conditions)?;
    drop(bench);
    let CompletedScenario { run, expectations, tenants } = done;
    let missed = expectations.iter().any(|one| !one.holds);
    let code = match Code::from_run_state(run.judged.run.state, run.stored.failed()) {
        _ if missed && run.judged.run.state == RunState::Counted => Code::NotValid,
        code => code,
    };
    super::run::show(&store, &path, run, &args.output).map_err(StoreBenchError::kept)?;
    if args.output.format() == Format::Text {
        print_expectations(&expectations)?;
    }
    after(&tenants)?;
    Ok(code)
}

/// What the scenario may do, and the command for its tenants' processes, which is this program.
fn conditions(args: &ScenarioRunArgs) -> Result<Conditions> {
    let program = std::env::current_exe().context("cannot find out which command this is")?;
    let tenant_command = vec![program.into(), "scenario".into(), "tenant".into()];
    Ok(Conditions { devices: args.i_know_it_destroys.clone(), tenant_command, agents: None })
}

/// Runs the rounds of a proof. Each run is stored as any other.
fn prove(
    mut proof: Proof,
    bench: &mut StoreBench<'_>,
    stop: &Stop,
    conditions: &Conditions,
    args: &ScenarioRunArgs,
) -> Result<Code> {
    for why in proof.kept() {
        out::note(&format!("kelvin: {why}"));
    }
    out::note(&format!("kelvin: at most {} runs", proof.most_runs()));
    let mut unusable = 0;
    while let Some(variants) = proof.next_round() {
        let mut round = Vec::with_capacity(variants.len());
        let mut counted = true;
        for variant in variants {
            let done = execute::execute(&variant.scenario, bench, stop, conditions)?;
            if stop.requested() {
                print_effects(&proof, args)?;
                return Ok(Code::Interrupted);
            }
            counted &= done.run.judged.run.counts();
            round.push((variant.without, done.tenants));
        }
        if counted {
            proof.take(round);
            show_round(&proof, args)?;
        } else {
            unusable += 1;
            out::note("kelvin: a run of this round does not count; the round is repeated");
        }
        if unusable > args.rounds {
            bail!("too many rounds had a run that does not count; kelvin runs lists them with their reasons");
        }
    }
    print_effects(&proof, args)?;
    Ok(Code::Success)
}

/// Prints the result of the last round, from which nothing is decided: a proof takes many rounds of several minutes each.
fn show_round(proof: &Proof, args: &ScenarioRunArgs) -> Result<()> {
    for one in proof.last_round() {
        if args.output.format() == Format::Jsonl {
            out::line(&serde_json::to_string(&one)?)?;
            continue;
        }
        let percent =
            |ratio: Option<f64>| ratio.map_or_else(|| "?".to_owned(), |ratio| fixed_change(ratio, 1));
        out::note(&format!(
            "kelvin: round {}: {} on {}: throughput {}, p99 {}",
            one.round,
            one.neighbour,
            one.tenant,
            percent(one.throughput),
            percent(one.p99)
        ));
    }
    Ok(())
}

fn print_effects(proof: &Proof, args: &ScenarioRunArgs) -> Result<()> {
    let effects = proof.effects();
    if args.output.format() != Format::Text {
        for effect in &effects {
            out::line(&serde_json::to_string(effect)?)?;
        }
        return Ok(());
    }
    out::line(&format!(
        "{} rounds; effect of another tenant (runs with it, compared with runs without it):",
        proof.rounds()
    ))?;
    for effect in &effects {
        out::line(&format!("  {}", effect_line(effect)))?;
    }
    Ok(())
}

/// "dss slows oltp: throughput -31.5 % (-35.7 to -27.1), p99 …", or the effects that are not excluded.
fn effect_line(effect: &NeighbourEffect) -> String {
    let NeighbourEffect { neighbour, tenant, throughput, p99 } = effect;
    let percent = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
    let figure = |name: &str, found: &Option<Shown>| match found {
        None => format!("{name}: too few values"),
        Some(Shown { ratio, low, high, shown }) => {
            let not = if *shown { "" } else { "; not shown" };
            format!("{name} {} % ({} to {}{not})", percent(*ratio), percent(*low), percent(*high))
        }
    };
    let figures = format!("{}, {}", figure("throughput", throughput), figure("p99", p99));
    let below = |found: &Option<Shown>| found.is_some_and(|one| one.high < 1.0);
    let above = |found: &Option<Shown>| found.is_some_and(|one| one.low > 1.0);
    if below(throughput) || above(p99) {
        return format!("{neighbour} slows {tenant}: {figures}");
    }
    if above(throughput) || below(p99) {
        return format!("{neighbour} speeds up {tenant}: {figures}");
    }
    let most =
        |text: &str, most: Option<f64>| most.map(|most| format!("{text} by at most {:.1} %", most.max(0.0)));
    let bounds = [
        most("throughput lower", throughput.map(|one| (1.0 - one.low) * 100.0)),
        most("p99 higher", p99.map(|one| (one.high - 1.0) * 100.0)),
    ];
    let bounds: Vec<String> = bounds.into_iter().flatten().collect();
    format!("{neighbour} on {tenant}: no interference shown: {} ({figures})", bounds.join(", "))
}

fn print_expectations(expectations: &[ExpectationResult]) -> Result<()> {
    for one in expectations {
        let word = if one.holds { "holds" } else { "MISSED" };
        out::line(&format!("expected {}: {} ({word})", one.expected, one.measured))?;
    }
    Ok(())
}
