//! `kelvin squeeze`: a run whose resources are cut in turn.

use anyhow::{Result, anyhow};
use kelvin_database::Engine;
use kelvin_lab::Spec;
use kelvin_lab::spec::Span;
use kelvin_lab::squeeze::Squeeze;
use kelvin_measure::event::Squeeze as Outcome;

use crate::args::{Global, SqueezeArgs};
use crate::exit::Code;
use crate::out::{self, wrapped};

/// Runs, and prints the elasticities.
pub(crate) fn squeeze(args: &SqueezeArgs, global: &Global) -> Result<Code> {
    super::run::run_squeezed(&args.run, global, Some(args))
}

/// Takes the server in hand and gives the window the length that the slices need.
pub(crate) fn prepare(
    args: &SqueezeArgs,
    spec: &mut Spec,
    engine: &dyn Engine,
    notes: &mut Vec<String>,
) -> Result<Squeeze> {
    SqueezeArgs::suits(spec)?;
    let users = spec.load.points().first().map_or(1, |(users, _)| *users);
    let squeeze =
        Squeeze::prepare(args.options()?, engine, users, spec.load.seed).map_err(|why| anyhow!(why))?;
    spec.load.duration = Span::seconds(squeeze.seconds());
    notes.push("resources were cut during this run: its figures are those of a squeezed database".into());
    Ok(squeeze)
}

/// Prints what came of it.
pub(crate) fn show(outcome: &Outcome) -> Result<()> {
    out::write(&table(outcome))
}

fn table(outcome: &Outcome) -> String {
    let percent = outcome.cut * 100.0;
    let mut text = format!(
        "\nSqueeze: what the throughput makes of {percent:.0} % less\n  {:<12} {:>10}  {:>15}  {:>10}  {:>5}  {}\n",
        "resource", "elasticity", "95 % interval", "throughput", "pairs", "verdict"
    );
    for one in &outcome.resources {
        let interval = format!("{:.2} to {:.2}", one.low, one.high);
        let change = format!("{:+.1} %", (one.throughput_ratio - 1.0) * 100.0);
        text.push_str(&format!(
            "  {:<12} {:>10.2}  {interval:>15}  {change:>10}  {:>5}  {}\n",
            one.resource, one.elasticity, one.pairs, one.verdict
        ));
    }
    for one in &outcome.resources {
        wrapped(&mut text, &format!("{}: {}", one.resource, one.how), 2, 4, 100);
    }
    for one in &outcome.not_cut {
        wrapped(&mut text, &format!("{} was not cut: {}", one.what, one.why), 2, 4, 100);
    }
    text
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::Elasticity;
    use kelvin_measure::observation::Absent;

    use super::*;

    #[test]
    fn the_table_says_what_limits() {
        let one = |resource: &str, elasticity: f64, verdict: &str| Elasticity {
            resource: resource.into(),
            how: "20 % off the 1.62 CPUs that others left to it; it used 1.55".into(),
            pairs: 10,
            elasticity,
            low: elasticity - 0.11,
            high: elasticity + 0.11,
            throughput_ratio: 0.8_f64.powf(elasticity),
            verdict: verdict.into(),
        };
        let outcome = Outcome {
            cut: 0.2,
            settle: 1,
            resources: vec![
                one("server CPU", 0.96, "limits the throughput"),
                one("server I/O", -0.02, "does not limit the throughput"),
            ],
            not_cut: vec![Absent {
                what: "client CPU".into(),
                why: "no control groups are mounted here".into(),
            }],
            slices: Vec::new(),
        };
        insta::assert_snapshot!("squeeze", table(&outcome));
    }
}
