//! Which neighbour costs a tenant what: the scenario with all tenants against the scenario without one of them, in rounds.
//!
//! A round runs every variant once, in random order and with random values of its own. A neighbour's effect on a tenant is the
//! ratio of the tenant's figure with it to that without it, over the same seconds of the clock: those in which the neighbour
//! was at work. Rounds are pairs; the interval is that of their ratios (paired t of logarithms), and what each look on the way
//! may spend of the error is that of a sequential plan ([`Boundary`]), because rounds end when the intervals have decided.

use std::collections::BTreeMap;

use kelvin_diagnose::tenants::TenantSeries;
use kelvin_measure::Random;
use kelvin_stats::sequential::Boundary;
use kelvin_stats::student::{Ratio, paired_ratio};
use serde::Serialize;

use crate::scenario::Scenario;
use crate::step::Action;
use crate::timeline::Timeline;

/// Rounds before the first look: fewer decide nothing.
pub const FEWEST_ROUNDS: u32 = 4;

/// Domain of [`Random::part`] for the order of variants: "prove" in ASCII.
const DOMAIN: u64 = 0x70_726f_7665;

/// A scenario with all tenants, or without one.
#[derive(Debug, Clone)]
pub struct Variant {
    /// The tenant that is left out, by its name in the file, all copies of it; none in the whole.
    pub without: Option<String>,
    /// What is run.
    pub scenario: Scenario,
}

/// The rounds so far.
#[derive(Debug)]
pub struct Proof {
    variants: Vec<Variant>,
    /// Why tenants are in every variant.
    kept: Vec<String>,
    rounds: Vec<Round>,
    boundary: Boundary,
    planned: u32,
    seed: u64,
}

/// The tenants of each variant of one round.
type Round = BTreeMap<Option<String>, Vec<TenantSeries>>;

/// What a neighbour does to a tenant, as the ratio of a figure with it to that without it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NeighbourEffect {
    /// The neighbour, by its name in the file.
    pub neighbour: String,
    /// Whom it is done to.
    pub tenant: String,
    /// Completed transactions or I/Os a second.
    pub throughput: Option<Shown>,
    /// The 99th percentile of the times as clients see them.
    pub p99: Option<Shown>,
}

/// The same of one round, without an interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoundRatios {
    /// The round, from 1.
    pub round: usize,
    /// The neighbour, by its name in the file.
    pub neighbour: String,
    /// Whom it is done to.
    pub tenant: String,
    /// Throughput with the neighbour / without it.
    pub throughput: Option<f64>,
    /// The same of the 99th percentile.
    pub p99: Option<f64>,
}

/// A ratio with its interval, and whether that excludes 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shown {
    /// With the neighbour / without it.
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether the interval excludes that there is no effect.
    pub shown: bool,
}

impl Shown {
    fn from_ratio(ratio: Ratio) -> Self {
        let Ratio { ratio, low, high } = ratio;
        Self { ratio, low, high, shown: high < 1.0 || low > 1.0 }
    }
}

impl Proof {
    /// A plan of at most so many rounds.
    ///
    /// # Errors
    /// When no tenant can be left out: as text.
    pub fn plan(scenario: &Scenario, rounds: u32) -> Result<Self, String> {
        let looks: Vec<u32> = (FEWEST_ROUNDS..=rounds).collect();
        let boundary = Boundary::new(&looks, 0.05)
            .ok_or_else(|| format!("a proof takes {FEWEST_ROUNDS} to {} rounds", FEWEST_ROUNDS + 99))?;
        if scenario.timeline.at_least {
            return Err(
                "a proof needs a timeline with known times: one of its steps has no fixed duration".into()
            );
        }
        let mut groups: Vec<&str> = scenario.tenants.iter().map(|tenant| tenant.group.as_str()).collect();
        groups.dedup();
        if groups.len() < 2 {
            return Err("a proof omits one tenant after another: at least two are needed".into());
        }
        let whole = Scenario { expect: Vec::new(), ..scenario.clone() };
        let mut variants = vec![Variant { without: None, scenario: whole }];
        let mut kept = Vec::new();
        for group in groups {
            match without(scenario, group) {
                Ok(scenario) => variants.push(Variant { without: Some(group.to_owned()), scenario }),
                Err(why) => kept.push(why),
            }
        }
        if variants.len() < 2 {
            return Err(kept.join("; "));
        }
        Ok(Self { variants, kept, rounds: Vec::new(), boundary, planned: rounds, seed: scenario.seed })
    }

    /// Why tenants cannot be left out, in a sentence each.
    pub fn kept(&self) -> &[String] {
        &self.kept
    }

    /// How many runs the plan has at most.
    pub fn most_runs(&self) -> usize {
        self.planned as usize * self.variants.len()
    }

    /// The runs of the next round in their order; none when the rounds are over.
    pub fn next_round(&self) -> Option<Vec<Variant>> {
        let round = self.rounds.len() as u32;
        if round >= self.planned || round >= FEWEST_ROUNDS && self.is_decided() {
            return None;
        }
        let mut variants = self.variants.clone();
        Random::part(self.seed, DOMAIN, u64::from(round)).shuffle(&mut variants);
        for tenant in variants.iter_mut().flat_map(|variant| &mut variant.scenario.tenants) {
            tenant.spec.load.seed = tenant.spec.load.seed.wrapping_add(u64::from(round));
        }
        Some(variants)
    }

    /// Takes what the runs of a round measured.
    pub fn take(&mut self, round: impl IntoIterator<Item = (Option<String>, Vec<TenantSeries>)>) {
        self.rounds.push(round.into_iter().collect());
    }

    /// Rounds so far.
    pub fn rounds(&self) -> usize {
        self.rounds.len()
    }

    /// Whether every neighbour has a tenant to which it is shown to do something.
    fn is_decided(&self) -> bool {
        let effects = self.effects();
        let neighbours = self.variants.iter().filter_map(|variant| variant.without.as_deref());
        neighbours.into_iter().all(|neighbour| {
            let of = effects.iter().filter(|effect| effect.neighbour == neighbour);
            of.flat_map(|effect| [effect.throughput, effect.p99]).flatten().any(|one| one.shown)
        })
    }

    /// Every neighbour and every tenant beside it that was at work at the same time.
    pub fn effects(&self) -> Vec<NeighbourEffect> {
        let look = (self.rounds.len() as u32).saturating_sub(FEWEST_ROUNDS) as usize;
        let alpha = self.boundary.nominal(look);
        let mut found = Vec::new();
        for (neighbour, tenant) in self.neighbours() {
            let pair = |round| self.pair(round, neighbour, tenant);
            let pairs: Vec<[Figures; 2]> = self.rounds.iter().filter_map(pair).collect();
            if pairs.is_empty() {
                continue;
            }
            let of = |figure: fn(&Figures) -> Option<f64>| {
                let each = pairs.iter().map(|[without, with]| Some((figure(without)?, figure(with)?)));
                let (without, with): (Vec<f64>, Vec<f64>) =
                    each.collect::<Option<Vec<_>>>()?.into_iter().unzip();
                paired_ratio(&without, &with, 1.0 - alpha).map(Shown::from_ratio)
            };
            found.push(NeighbourEffect {
                neighbour: neighbour.to_owned(),
                tenant: tenant.to_owned(),
                throughput: of(|figures| figures.throughput),
                p99: of(|figures| figures.p99),
            });
        }
        found
    }

    /// What the last round alone shows.
    pub fn last_round(&self) -> Vec<RoundRatios> {
        let Some(last) = self.rounds.last() else { return Vec::new() };
        let ratios = |(neighbour, tenant): (&str, &str)| {
            let [without, with] = self.pair(last, neighbour, tenant)?;
            let of = |figure: fn(&Figures) -> Option<f64>| Some(figure(&with)? / figure(&without)?);
            Some(RoundRatios {
                round: self.rounds.len(),
                neighbour: neighbour.to_owned(),
                tenant: tenant.to_owned(),
                throughput: of(|figures| figures.throughput),
                p99: of(|figures| figures.p99),
            })
        };
        self.neighbours().filter_map(ratios).collect()
    }

    /// Every neighbour that is left out, with every tenant beside it.
    fn neighbours(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variants.iter().filter_map(|variant| variant.without.as_deref()).flat_map(|neighbour| {
            let others =
                self.variants[0].scenario.tenants.iter().filter(move |tenant| tenant.group != neighbour);
            others.map(move |tenant| (neighbour, tenant.name.as_str()))
        })
    }

    /// A tenant's figures without a neighbour and with it, over the seconds in which the neighbour was at work.
    fn pair(&self, round: &Round, neighbour: &str, tenant: &str) -> Option<[Figures; 2]> {
        let whole = round.get(&None)?;
        let without = round.get(&Some(neighbour.to_owned()))?;
        let of_group = |series: &&TenantSeries| {
            let tenants = &self.variants[0].scenario.tenants;
            tenants.iter().any(|one| one.group == neighbour && one.name == series.name)
        };
        let neighbours: Vec<&TenantSeries> = whole.iter().filter(of_group).collect();
        let together = |second: i64| neighbours.iter().any(|series| series.is_at_work(second));
        let figures = |tenants: &[TenantSeries]| {
            let own = tenants.iter().find(|series| series.name == tenant)?;
            Figures::of_tenant(own, together)
        };
        Some([figures(without)?, figures(whole)?])
    }
}

/// What is compared.
struct Figures {
    throughput: Option<f64>,
    p99: Option<f64>,
}

impl Figures {
    fn of_tenant(tenant: &TenantSeries, of: impl Fn(i64) -> bool) -> Option<Self> {
        let sums = tenant.sums(of);
        let throughput = sums.good as f64 / sums.seconds as f64;
        (sums.seconds > 0).then_some(Self {
            throughput: Some(throughput).filter(|rate| *rate > 0.0),
            p99: sums.percentile(99.0),
        })
    }
}

/// The scenario without a tenant, in which everything else happens at the same times.
fn without(scenario: &Scenario, group: &str) -> Result<Scenario, String> {
    let kept: Vec<usize> =
        (0..scenario.tenants.len()).filter(|&tenant| scenario.tenants[tenant].group != group).collect();
    let mut found = Scenario {
        name: format!("{} without {group}", scenario.name),
        tenants: kept.iter().map(|&tenant| scenario.tenants[tenant].clone()).collect(),
        steps: Vec::new(),
        expect: Vec::new(),
        ..scenario.clone()
    };
    let planned = &scenario.timeline.steps;
    let mut times = Vec::new();
    for (index, step) in scenario.steps.iter().enumerate() {
        let at = planned[index].at;
        let next = planned.get(index + 1).map_or(Some(scenario.timeline.seconds), |step| step.at);
        let mut step = step.clone();
        if let Some(tenants) = step.action.tenants_mut() {
            let left: Vec<usize> =
                tenants.iter().filter_map(|one| kept.iter().position(|kept| kept == one)).collect();
            *tenants = left;
            if tenants.is_empty() {
                // Its time goes by all the same.
                let Some(length) = at.zip(next).map(|(at, next)| next - at).filter(|length| *length > 0.0)
                else {
                    continue;
                };
                let text = format!("{}ms", (length * 1e3).round());
                step.action = Action::Wait(text.parse().map_err(|why| format!("{text}: {why}"))?);
            }
        }
        times.push(at);
        found.steps.push(step);
    }
    found.timeline = Timeline::plan(&found.tenants, &found.steps)
        .map_err(|(_, why)| format!("{group} cannot be omitted: {why}"))?;
    if found.timeline.steps.iter().map(|step| step.at).eq(times) {
        Ok(found)
    } else {
        Err(format!("{group} cannot be omitted: the others would not begin at the same clock times"))
    }
}

#[cfg(test)]
mod tests;
