//! The offset of the next I/O in one target.

use super::distribution::{Places, even};
use super::map::Map;
use super::permutation::Permutation;
use super::seeds::Streams;
use super::sizes::JobSizes;
use crate::job::{Job, RandomGenerator, Sequencer, Strided};
use crate::{Direction, Io, PerDirection, Target};

/// How often a random block is drawn again if the last, shorter zone does not contain it.
const DRAWS: usize = 8;

/// Rules that apply to all targets of a job.
#[derive(Debug, Clone)]
pub(crate) struct OffsetRules {
    pub(crate) sizes: JobSizes,
    /// The smallest length in use, in bytes.
    pub(crate) smallest: u64,
    /// The largest.
    pub(crate) largest: u64,
    /// The length that every direction can use: less is too small for one of them.
    pub(crate) needed: u64,
    /// Random offsets are multiples of this.
    pub(crate) align: PerDirection<u64>,
    pub(crate) random: bool,
    percentage: PerDirection<f64>,
    modifier: Option<i64>,
    sequencer: Sequencer,
    pub(crate) zones: Option<Strided>,
    pub(crate) once: RepeatAvoidance,
    /// A target is finished when as many bytes were moved as it has.
    pub(crate) limited: bool,
}

/// The method that prevents a block from being used twice in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RepeatAvoidance {
    /// None.
    No,
    /// Blocks come in a random order.
    Order,
    /// Used blocks are remembered.
    Map,
}

impl OffsetRules {
    pub(crate) fn new(job: &Job, once: RepeatAvoidance, limited: bool) -> Self {
        let sizes = JobSizes::new(&job.blocks);
        let pattern = &job.pattern;
        let smallest = sizes.used(job).map(super::sizes::Sizes::smallest).min().unwrap_or(0);
        let needed = sizes.used(job).map(super::sizes::Sizes::smallest).max().unwrap_or(0);
        let largest =
            job.blocks.sizes.0.iter().map(|sizes| u64::from(sizes.largest())).max().unwrap_or(smallest);
        let align = PerDirection(Direction::ALL.map(|direction| {
            let own = job.blocks.align[direction].filter(|align| *align > 0);
            own.unwrap_or_else(|| sizes.for_direction(direction, true).smallest()).max(1)
        }));
        let zones = pattern
            .zones
            .map(|zones| Strided { range: if zones.range == 0 { zones.size } else { zones.range }, ..zones });
        Self {
            sizes,
            smallest,
            largest,
            needed,
            align,
            random: pattern.random,
            percentage: pattern.percentage_random,
            modifier: pattern.modifier,
            sequencer: pattern.sequencer,
            zones,
            once,
            limited,
        }
    }
}

/// The method for a job without other options that affect it.
pub(crate) fn once(job: &Job) -> RepeatAvoidance {
    let pattern = &job.pattern;
    if !pattern.random {
        return RepeatAvoidance::No;
    }
    if pattern.generator == RandomGenerator::Lfsr {
        return RepeatAvoidance::Order;
    }
    let used = || Direction::ALL.into_iter().filter(|direction| pattern.has(*direction));
    let even = used().all(|direction| pattern.distribution[direction] == crate::job::Distribution::Uniform);
    let aligned = used().any(|direction| job.blocks.align[direction].is_some());
    if pattern.no_random_map || !even || aligned {
        return RepeatAvoidance::No;
    }
    let sizes = JobSizes::new(&job.blocks);
    let mut all = sizes.used(job).map(super::sizes::Sizes::one);
    let first = all.next().flatten();
    if first.is_some() && all.all(|size| size == first) {
        RepeatAvoidance::Order
    } else {
        RepeatAvoidance::Map
    }
}

/// One target: its next offsets, and which of its blocks were used.
#[derive(Debug, Clone)]
pub(crate) struct OffsetGenerator {
    target: u32,
    begin: u64,
    length: u64,
    moved: u64,
    /// The next sequential I/O of each direction, from the region's beginning.
    sequential: [u64; 3],
    /// `rw=rand…:N`: the offset of the next I/O of the run, and how many remain.
    run: (u64, u64),
    draws: Option<Box<Draws>>,
    zone: Option<Box<Zone>>,
}

#[derive(Debug, Clone)]
struct Draws {
    /// The distribution of blocks, and their number.
    places: [(Places, u64); 3],
    used: Used,
}

#[derive(Debug, Clone)]
enum Used {
    No,
    Order(Permutation),
    Map(Map),
}

#[derive(Debug, Clone)]
struct Zone {
    from: u64,
    moved: u64,
    key: u64,
    visits: u64,
    order: Option<Permutation>,
}

impl OffsetGenerator {
    pub(crate) fn new(
        job: &Job,
        rules: &OffsetRules,
        number: u32,
        target: &Target,
        streams: &mut Streams,
    ) -> Self {
        let zone = rules.zones.map(|_| {
            let key = streams.keys.bits();
            Box::new(Zone { from: 0, moved: 0, key, visits: 0, order: None })
        });
        // The part of the target that offsets are drawn from: all of it, or a zone.
        let length = rules.zones.map_or(target.length, |zones| zones.range.min(target.length));
        let draws = (rules.random && length >= rules.smallest).then(|| {
            let places = Direction::ALL.map(|direction| {
                let unit = rules.align[direction];
                let smallest = rules.sizes.for_direction(direction, true).smallest();
                let count = length.checked_sub(smallest).map_or(0, |rest| rest / unit + 1);
                let distribution = &job.pattern.distribution[direction];
                if count == 0 || !job.pattern.has(direction) {
                    return (Places::Uniform, count);
                }
                (Places::new(distribution, count, unit, length, &mut streams.keys), count)
            });
            let used = match rules.once {
                _ if zone.is_some() => Used::No,
                RepeatAvoidance::No => Used::No,
                RepeatAvoidance::Order => {
                    Used::Order(Permutation::new(length / rules.smallest, streams.keys.bits()))
                }
                RepeatAvoidance::Map => Used::Map(Map::new(length / rules.smallest)),
            };
            Box::new(Draws { places, used })
        });
        let (begin, length) = (target.begin, target.length);
        Self { target: number, begin, length, moved: 0, sequential: [0; 3], run: (0, 0), draws, zone }
    }

    /// Begins another pass, with the same random choices or with others.
    pub(crate) fn restart(&mut self, same: bool, streams: &mut Streams) {
        (self.moved, self.sequential, self.run) = (0, [0; 3], (0, 0));
        if let Some(draws) = &mut self.draws {
            match &mut draws.used {
                Used::No => (),
                Used::Order(order) if same => order.rewind(),
                Used::Order(order) => order.restart(streams.keys.bits()),
                Used::Map(map) => map.clear(),
            }
        }
        if let Some(zone) = &mut self.zone {
            let key = if same { zone.key } else { streams.keys.bits() };
            **zone = Zone { from: 0, moved: 0, key, visits: 0, order: None };
        }
    }

    /// Whether it ended because as many bytes were moved as it has, or has no room for any I/O.
    pub(crate) fn has_its_share(&self, rules: &OffsetRules) -> bool {
        rules.limited && (self.moved >= self.length || self.length < rules.smallest)
    }

    /// The next I/O, of at most `left` bytes or the smallest size if that is more; `None` at the end of the pass.
    #[inline]
    pub(crate) fn next(
        &mut self,
        rules: &OffsetRules,
        direction: Direction,
        left: u64,
        streams: &mut Streams,
    ) -> Option<Io> {
        let left = if rules.limited { left.min(self.length.saturating_sub(self.moved)) } else { left };
        if left == 0 {
            return None;
        }
        // An I/O that begins below the bound is done completely.
        let least = |random| rules.sizes.for_direction(direction, random).smallest();
        let left = left.max(least(true)).max(least(false));
        let (offset, length) = if self.zone.is_some() {
            self.in_zone(rules, direction, left, streams)?
        } else if !rules.random {
            self.in_sequence(rules, direction, left, streams)?
        } else if let Some(next) = self.in_run(rules, direction, left, streams) {
            next
        } else if Self::is_random(rules, direction, streams) {
            let next = self.at_random(rules, direction, left, streams)?;
            if let Some(run) = rules.modifier {
                self.run.1 = (run.max(1) - 1) as u64;
            }
            next
        } else {
            let at = self.sequential[direction as usize];
            let sizes = rules.sizes.for_direction(direction, false);
            let fits = |at: u64, streams: &mut Streams| {
                Some((at, sizes.fitting(&mut streams.sizes, self.length.checked_sub(at)?.min(left))?))
            };
            // After the end it continues at the beginning: only random I/O can end. If nothing is random, a last piece
            // without room for a block ends it, as in any sequence.
            let ends = rules.percentage[direction] <= 0.0 && at < self.length;
            fits(at, streams).or_else(|| if ends { None } else { fits(0, streams) })?
        };
        self.moved += length;
        let end = offset + length;
        self.sequential[direction as usize] = match rules.modifier.filter(|_| !rules.random) {
            None => end,
            Some(skip) => self.skipped(end, skip),
        };
        self.run.0 = if rules.sequencer == Sequencer::Identical { offset } else { end };
        Some(Io { direction, target: self.target, offset: self.begin + offset, length: length as u32 })
    }

    /// Where `rw=…:N` continues after an I/O, as in fio: it wraps around in both directions, as often as necessary to
    /// move as many bytes as the region has. It ends with an I/O up to the very end, or if the next would begin
    /// within the region and not fit.
    fn skipped(&self, end: u64, skip: i64) -> u64 {
        if skip >= 0 {
            let next = end.saturating_add(skip.unsigned_abs());
            return if end < self.length && next >= self.length { 0 } else { next };
        }
        let back = |from: u64| from.checked_add_signed(skip);
        back(end).or_else(|| back(self.length)).unwrap_or(self.length)
    }

    #[inline]
    fn is_random(rules: &OffsetRules, direction: Direction, streams: &mut Streams) -> bool {
        let percentage = rules.percentage[direction];
        percentage >= 100.0 || (percentage > 0.0 && streams.sequence.unit() * 100.0 < percentage)
    }

    #[inline]
    fn in_sequence(
        &self,
        rules: &OffsetRules,
        direction: Direction,
        left: u64,
        streams: &mut Streams,
    ) -> Option<(u64, u64)> {
        let at = self.sequential[direction as usize];
        let room = self.length.checked_sub(at)?.min(left);
        Some((at, rules.sizes.for_direction(direction, false).fitting(&mut streams.sizes, room)?))
    }

    /// The next I/O of `rw=rand…:N`; `None` if there is no run, or its next I/O would be outside.
    #[inline]
    fn in_run(
        &mut self,
        rules: &OffsetRules,
        direction: Direction,
        left: u64,
        streams: &mut Streams,
    ) -> Option<(u64, u64)> {
        if rules.modifier.is_none() || self.run.1 == 0 {
            return None;
        }
        self.run.1 -= 1;
        let at = self.run.0;
        let room = self.length.checked_sub(at)?.min(left);
        let sizes = rules.sizes.for_direction(direction, rules.sequencer == Sequencer::Identical);
        Some((at, sizes.fitting(&mut streams.sizes, room)?))
    }

    #[inline]
    fn at_random(
        &mut self,
        rules: &OffsetRules,
        direction: Direction,
        left: u64,
        streams: &mut Streams,
    ) -> Option<(u64, u64)> {
        let draws = self.draws.as_mut()?;
        let (places, count) = &draws.places[direction as usize];
        let sizes = rules.sizes.for_direction(direction, true);
        match &mut draws.used {
            Used::No => {
                let offset = if *count == 0 {
                    return None;
                } else {
                    places.draw(&mut streams.offsets, *count) * rules.align[direction]
                };
                let size = sizes.fitting(&mut streams.sizes, (self.length - offset).min(left))?;
                Some((offset, size))
            }
            Used::Order(order) => {
                let offset = order.next()? * rules.smallest;
                let room = (self.length - offset).min(left);
                Some((offset, sizes.fitting(&mut streams.sizes, room).or_else(|| cut(rules, room))?))
            }
            Used::Map(map) => {
                let unit = rules.smallest;
                // One draw, and the next free unit after it, which is the first of its gap. With that, and with a size
                // that is cut to the gap and never drawn again, the sizes of a pass have fio's shares. Drawing until
                // something fits would favour small sizes: of a half of 16k among 4k, a seventh would be left.
                let at = even(&mut streams.offsets, (*count).max(1)) * rules.align[direction] / unit;
                let at = map.next_free(at)?;
                let free = map.free_run(at, rules.largest.div_ceil(unit)) * unit;
                let room = free.min(self.length - at * unit).min(left);
                let size = Some(sizes.draw(&mut streams.sizes)).filter(|size| *size <= room);
                let size = size.or_else(|| cut(rules, room))?;
                map.take(at, size.div_ceil(unit));
                Some((at * unit, size))
            }
        }
    }

    /// The next I/O in the zone, or in the next zone if the zone's amount was moved.
    fn in_zone(
        &mut self,
        rules: &OffsetRules,
        direction: Direction,
        left: u64,
        streams: &mut Streams,
    ) -> Option<(u64, u64)> {
        let zones = rules.zones?;
        let zone = self.zone.as_mut()?;
        let left_of = |from: u64| zones.range.min(self.length - from);
        // In a last zone that is cut by the region's end, the same share is moved as in the others.
        let quota = |from: u64| match left_of(from) {
            part if zones.size <= zones.range => zones.size.min(part),
            part => (u128::from(zones.size) * u128::from(part) / u128::from(zones.range)) as u64,
        };
        if zone.moved >= quota(zone.from).max(1) {
            zone.from = zone.from.saturating_add(zones.range).saturating_add(zones.skip);
            if zone.from.saturating_add(rules.smallest) > self.length {
                zone.from = 0;
            }
            (zone.moved, zone.order) = (0, None);
            zone.visits += 1;
            self.sequential = [zone.from; 3];
        }
        let end = zone.from + left_of(zone.from);
        let is_random = rules.random && Self::is_random(rules, direction, streams);
        let sizes = rules.sizes.for_direction(direction, is_random);
        let to_move = quota(zone.from).saturating_sub(zone.moved).max(sizes.smallest()).min(left);
        let (offset, length) = if is_random {
            let smallest = sizes.smallest();
            let unit =
                if rules.once == RepeatAvoidance::Order { rules.smallest } else { rules.align[direction] };
            let count = (end - zone.from).checked_sub(smallest)? / unit + 1;
            let place = if rules.once == RepeatAvoidance::Order {
                let key = zone.key.wrapping_add(zone.visits);
                let order = zone.order.get_or_insert_with(|| Permutation::new(count, key));
                // If more is moved in a zone than it has, it begins again.
                order.next().or_else(|| {
                    order.rewind();
                    order.next()
                })?
            } else {
                let (places, all) = self.draws.as_ref().map(|draws| &draws.places[direction as usize])?;
                // The last zone may be shorter than the others.
                let mut draws = (0..DRAWS).map(|_| places.draw(&mut streams.offsets, (*all).max(1)));
                draws.find(|place| *place < count).unwrap_or_else(|| even(&mut streams.offsets, count))
            };
            let offset = zone.from + place * unit;
            (offset, sizes.fitting(&mut streams.sizes, (end - offset).min(to_move))?)
        } else {
            let at = self.sequential[direction as usize];
            let fits = |at: u64, streams: &mut Streams| {
                Some((at, sizes.fitting(&mut streams.sizes, end.checked_sub(at)?.min(to_move))?))
            };
            fits(at, streams).or_else(|| fits(zone.from, streams))?
        };
        zone.moved += length;
        Some((offset, length))
    }
}

/// The rest of a map may be less than a block of this direction: returns as much as there is, in whole units.
fn cut(rules: &OffsetRules, room: u64) -> Option<u64> {
    Some(room / rules.smallest * rules.smallest).filter(|length| *length > 0)
}
