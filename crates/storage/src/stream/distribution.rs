//! The distribution of random offsets over a target.

use kelvin_measure::Random;

use super::permutation::Permutation;
use super::zipf::Zipf;
use crate::job::Distribution;

/// Draws the index of a block below a number of blocks.
#[derive(Debug, Clone)]
pub(crate) enum Places {
    /// All with equal probability.
    Uniform,
    /// Zipf's law over ranks that are scattered over the blocks.
    Zipf(Zipf, Box<Scatter>),
    /// Ranks ⌊places·u^power⌋ of a uniform u, scattered: the share h of the blocks gets 1 − h of the draws, at every
    /// scale (Gray and others, Quickly Generating Billion-Record Synthetic Databases, SIGMOD 1994, self-similar).
    Pareto(f64, Box<Scatter>),
    /// A normal distribution: mean and deviation as shares of the blocks. Values outside are drawn again.
    Normal { mean: f64, deviation: f64 },
    /// Shares of the draws (running sum), and the blocks to which each applies: from, to.
    Zoned(Vec<(f64, u64, u64)>),
}

/// The positions of ranks: the first is set separately, the others are in random order around it.
#[derive(Debug, Clone)]
pub(crate) struct Scatter {
    order: Permutation,
    shift: u64,
}

impl Scatter {
    fn new(places: u64, center: Option<f64>, random: &mut Random) -> Self {
        let order = Permutation::new(places, random.bits());
        let hot = center.map_or_else(
            || random.range(0, places as i64 - 1) as u64,
            |center| ((center * places as f64) as u64).min(places - 1),
        );
        let first = order.at(0);
        Self { order, shift: if hot >= first { hot - first } else { places - (first - hot) } }
    }

    fn place(&self, rank: u64, places: u64) -> u64 {
        let place = self.order.at(rank);
        let rest = places - place;
        if self.shift >= rest { self.shift - rest } else { place + self.shift }
    }
}

impl Places {
    /// For `places` blocks (at least 1), each of which represents `unit` bytes of a region of `length` bytes.
    pub(crate) fn new(
        distribution: &Distribution,
        places: u64,
        unit: u64,
        length: u64,
        keys: &mut Random,
    ) -> Self {
        match distribution {
            Distribution::Uniform => Self::Uniform,
            Distribution::Zipf { theta, center } => {
                Self::Zipf(Zipf::new(*theta, places), Box::new(Scatter::new(places, *center, keys)))
            }
            Distribution::Pareto { h, center } => {
                Self::Pareto(h.ln() / (1.0 - h).ln(), Box::new(Scatter::new(places, *center, keys)))
            }
            Distribution::Normal { deviation, center } => {
                Self::Normal { mean: center.unwrap_or(0.5), deviation: deviation / 100.0 }
            }
            Distribution::Zoned(zones) => {
                let shares = zones.iter().map(|zone| (zone.access, zone.share / 100.0 * length as f64));
                Self::zoned(shares, places, unit)
            }
            Distribution::ZonedAbsolute(zones) => {
                let known: u64 = zones.iter().map(|zone| zone.bytes).sum();
                let rest = length.saturating_sub(known) as f64;
                let shares = zones
                    .iter()
                    .map(|zone| (zone.access, if zone.bytes == 0 { rest } else { zone.bytes as f64 }));
                Self::zoned(shares, places, unit)
            }
        }
    }

    fn zoned(zones: impl Iterator<Item = (f64, f64)>, places: u64, unit: u64) -> Self {
        let (mut access, mut end) = (0.0, 0.0);
        let mut all: Vec<(f64, u64, u64)> = Vec::new();
        for (share, bytes) in zones {
            let from = (end / unit as f64).round() as u64;
            end += bytes;
            let to = ((end / unit as f64).round() as u64).min(places);
            if share > 0.0 {
                access += share;
                // A zone that is smaller than a block, or beyond the end, keeps its share: the nearest block gets it.
                let from = from.min(places - 1);
                all.push((access, from, to.max(from + 1)));
            }
        }
        for zone in &mut all {
            zone.0 /= access;
        }
        if all.is_empty() { Self::Uniform } else { Self::Zoned(all) }
    }

    /// Draws a block below `places`, which is the number that this was created for.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random, places: u64) -> u64 {
        match self {
            Self::Uniform => even(random, places),
            _ => self.uneven(random, places),
        }
    }

    fn uneven(&self, random: &mut Random, places: u64) -> u64 {
        match self {
            Self::Uniform => even(random, places),
            Self::Zipf(zipf, scatter) => scatter.place(zipf.draw(random).min(places - 1), places),
            Self::Pareto(power, scatter) => {
                let rank = (places as f64 * random.unit().powf(*power)) as u64;
                scatter.place(rank.min(places - 1), places)
            }
            Self::Normal { mean, deviation } => {
                let (mean, deviation) = (mean * places as f64, deviation * places as f64);
                for _ in 0..64 {
                    let place = mean + deviation * normal(random);
                    if place >= 0.0 && place < places as f64 {
                        return place as u64;
                    }
                }
                (mean as u64).min(places - 1)
            }
            Self::Zoned(zones) => {
                let unit = random.unit();
                let zone = zones.iter().find(|zone| unit < zone.0).or(zones.last());
                zone.map_or(0, |(_, from, to)| from + even(random, to - from))
            }
        }
    }
}

/// A number below `below`, with equal probability.
#[inline]
pub(crate) fn even(random: &mut Random, below: u64) -> u64 {
    random.range(0, below as i64 - 1) as u64
}

/// A number of the standard normal distribution (Box and Muller, 1958; the second of each pair is discarded).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}
