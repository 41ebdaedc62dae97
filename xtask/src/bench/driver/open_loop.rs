//! An open loop at half of the server's capacity: accuracy of the rate, and delays of transaction starts.

use anyhow::Result;
use serde_json::Value;

use super::Row;
use super::competitor::figure;
use super::pgbench_rows::data;
use crate::bench::median;
use crate::bench::server::Bench;
use crate::bench::table::{Line, range, whole};

const USERS: &str = "8";
const PROCESSES: [&str; 2] = ["uniform", "poisson"];

/// Maximum relative difference between the achieved rate and the reference.
const TOLERANCE: f64 = 0.001;

/// The results of one run.
#[derive(Debug, Clone, Copy, Default)]
struct Kept {
    asked: f64,
    /// Arrivals per second that were due in the window.
    due: f64,
    achieved: f64,
    lag_us: f64,
}

/// Results by arrival process, one per round.
pub(super) struct OpenLoop {
    seconds: u32,
    url: String,
    rounds: [Vec<Kept>; 2],
}

impl OpenLoop {
    pub(super) fn new(seconds: u32) -> Self {
        // Twice as long, so that transactions in flight at the window's edges are a smaller share of all.
        Self { seconds: seconds * 2, url: String::new(), rounds: Default::default() }
    }

    fn run(&self, bench: &Bench, more: &[&str]) -> Result<Value> {
        let all = ["run", "pgbench", "-S", "-M", "prepared", "-n", "--no-build", "--quiet", "-c", USERS];
        bench.kelvin(&[&all[..], &["--ramp-up", "1s", "--target", &self.url], more].concat())?;
        bench.report()
    }
}

impl Row for OpenLoop {
    fn name(&self) -> &'static str {
        "open-loop"
    }

    fn prepare(&mut self, bench: &Bench) -> Result<()> {
        self.url = data(bench)?;
        self.run(bench, &["--duration", "1s"]).map(|_| ())
    }

    fn round(&mut self, bench: &Bench, round: usize) -> Result<()> {
        let closed = self.run(bench, &["--duration", "2s"])?;
        let capacity = figure(&closed, "/points/0/headline_per_second")?;
        let rate = (capacity / 2.0).floor().to_string();
        let duration = format!("{}s", self.seconds);
        for (index, process) in PROCESSES.iter().enumerate() {
            let seed = round.to_string();
            let report = self.run(
                bench,
                &["--duration", &duration, "--rate", &rate, "--arrivals", process, "--seed", &seed],
            )?;
            let of = |name: &str| figure(&report, &format!("/points/0/{name}"));
            let kept = Kept {
                asked: of("schedule/asked_per_second")?,
                due: of("schedule/due")? / of("window_s")?,
                achieved: of("schedule/achieved_per_second")?,
                lag_us: of("generator/lag/p99_us")?,
            };
            println!(
                "round {round}: open loop, {process}: requested {}, due {:.1}, achieved {:.1}, lag p99 \
                 {:.0} µs",
                kept.asked, kept.due, kept.achieved, kept.lag_us
            );
            self.rounds[index].push(kept);
        }
        Ok(())
    }

    fn rounds(&self) -> usize {
        self.rounds[1].len()
    }

    /// The number of Poisson arrivals varies by its square root, so even a perfect generator deviates from the
    /// requested rate by 1/√arrivals, which exceeds the tolerance below a million arrivals. A run with Poisson
    /// arrivals is therefore judged by the arrivals scheduled in the window. Their number, which the generator does
    /// not determine, may deviate by four standard deviations.
    fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for (process, rounds) in PROCESSES.iter().zip(&self.rounds) {
            let work = format!("open loop at half of capacity, select-only, {process} arrivals");
            let medians = |pick: fn(&Kept) -> f64| median(rounds.iter().map(pick).collect());
            let off = |pick: fn(&Kept) -> f64| -> Vec<f64> { rounds.iter().map(pick).collect() };
            let mut line = |figure: &str, kelvin: f64, beside: String, off: &[f64], bound: f64| {
                let far = median(off.iter().map(|off| off.abs()).collect());
                let (low, high) = range(off);
                lines.push(Line {
                    work: work.clone(),
                    figure: figure.into(),
                    kelvin: format!("{}/s", whole(kelvin)),
                    beside,
                    ratio: format!(
                        "off by {:.4} % (rounds {:+.4} to {:+.4})",
                        far * 100.0,
                        low * 100.0,
                        high * 100.0
                    ),
                    target: format!("≤ {:.2} %", bound * 100.0),
                    met: Some(far <= bound),
                });
            };
            let (asked, due, achieved) = (medians(|k| k.asked), medians(|k| k.due), medians(|k| k.achieved));
            let chance = 4.0 / (due * f64::from(self.seconds)).sqrt();
            let (beside_asked, beside_due) =
                (format!("{}/s requested", whole(asked)), format!("{}/s due", whole(due)));
            line("achieved rate", achieved, beside_due, &off(|k| k.achieved / k.due - 1.0), TOLERANCE);
            let bound = if *process == "poisson" { chance } else { TOLERANCE };
            line("arrivals in the window", due, beside_asked.clone(), &off(|k| k.due / k.asked - 1.0), bound);
            line("achieved rate", achieved, beside_asked, &off(|k| k.achieved / k.asked - 1.0), bound);
            let lag = medians(|k| k.lag_us);
            let (low, high) = range(&rounds.iter().map(|k| k.lag_us).collect::<Vec<_>>());
            lines.push(Line {
                work,
                figure: "schedule lag, p99".into(),
                kelvin: format!("{lag:.0} µs"),
                ratio: format!("rounds {low:.0} to {high:.0}"),
                target: "< 1,000 µs".into(),
                met: Some(lag < 1000.0),
                ..Line::default()
            });
        }
        lines
    }
}
