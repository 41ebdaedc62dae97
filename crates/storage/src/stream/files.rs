//! The file of the next I/O.

use kelvin_measure::Random;

use super::distribution::{Places, even};
use crate::job::{Distribution, FileChoice, FileService};

/// Chooses among the files with remaining work. Files are numbered by their indexes among the worker's targets.
#[derive(Debug, Clone)]
pub(crate) struct FileChooser {
    count: u32,
    open: u32,
    service: FileService,
    order: Order,
    /// The next file that has not been open yet.
    waiting: u32,
    current: Option<u32>,
    /// I/Os until another file is chosen.
    here: u64,
    left: u32,
}

#[derive(Debug, Clone)]
enum Order {
    /// Slots in a ring, each with a file and the number of the next slot; the current slot and the previous one.
    Ring { slots: Vec<(u32, u32)>, at: u32, before: u32 },
    /// Files that can be drawn, in no order, and the index of the current one.
    Bag(Vec<u32>, usize),
    /// Drawn by a distribution over all files; for a finished file, the entry is the file to try instead.
    Uneven(Places, Vec<u32>),
}

impl FileChooser {
    /// Opens `open` of `count` files at a time.
    pub(crate) fn new(service: FileService, count: u32, open: Option<u32>, keys: &mut Random) -> Self {
        let open = open.unwrap_or(count).clamp(1, count.max(1)).min(count);
        let places = match service.choice {
            FileChoice::Zipf(theta) => Some(Distribution::Zipf { theta, center: None }),
            FileChoice::Pareto(h) => Some(Distribution::Pareto { h, center: None }),
            FileChoice::Normal(deviation) => Some(Distribution::Normal { deviation, center: None }),
            FileChoice::RoundRobin | FileChoice::Sequential | FileChoice::Random => None,
        };
        let order = match (places, service.choice) {
            (Some(distribution), _) => {
                let places = Places::new(&distribution, u64::from(count.max(1)), 1, u64::from(count), keys);
                Order::Uneven(places, Vec::new())
            }
            (None, FileChoice::Random) => Order::Bag(Vec::new(), 0),
            (None, _) => Order::Ring { slots: Vec::new(), at: 0, before: 0 },
        };
        let mut new = Self { count, open, service, order, waiting: 0, current: None, here: 0, left: 0 };
        new.restart();
        new
    }

    /// Restarts with all files.
    pub(crate) fn restart(&mut self) {
        let open = self.open;
        match &mut self.order {
            Order::Ring { slots, at, before } => {
                *slots = (0..open).map(|file| (file, (file + 1) % open)).collect();
                // The first step leads from the last to the first.
                (*at, *before) = (open.saturating_sub(1), open.saturating_sub(2));
            }
            Order::Bag(files, at) => (*files, *at) = ((0..open).collect(), 0),
            Order::Uneven(_, instead) => *instead = (0..self.count).collect(),
        }
        (self.waiting, self.current, self.here, self.left) = (open, None, 0, self.count);
    }

    /// The file of the next I/O; `None` if all are finished.
    #[inline]
    pub(crate) fn choose(&mut self, random: &mut Random) -> Option<u32> {
        if self.here > 0 && self.current.is_some() {
            self.here -= 1;
            return self.current;
        }
        if self.count == 1 {
            return (self.left > 0).then_some(0);
        }
        self.switch(random)
    }

    fn switch(&mut self, random: &mut Random) -> Option<u32> {
        if self.left == 0 {
            return None;
        }
        let file = match &mut self.order {
            Order::Ring { slots, at, before } => {
                (*before, *at) = (*at, slots.get(*at as usize)?.1);
                slots.get(*at as usize)?.0
            }
            Order::Bag(files, at) => {
                *at = even(random, files.len() as u64) as usize;
                *files.get(*at)?
            }
            Order::Uneven(places, instead) => {
                let mut file = places.draw(random, u64::from(self.count)) as u32;
                // Follows the entries to an unfinished file, and halves the path for later calls.
                while let Some(next) = instead.get(file as usize).copied().filter(|next| *next != file) {
                    let further = instead.get(next as usize).copied().unwrap_or(next);
                    if let Some(here) = instead.get_mut(file as usize) {
                        *here = further;
                    }
                    file = further;
                }
                file
            }
        };
        self.current = Some(file);
        self.here = match self.service.choice {
            FileChoice::Sequential => u64::MAX,
            _ => self.service.ios_per_switch.max(1) - 1,
        };
        Some(file)
    }

    /// The file that was chosen last has no work left.
    pub(crate) fn finished(&mut self) {
        self.left = self.left.saturating_sub(1);
        let file = self.current.take();
        self.here = 0;
        let next = (self.waiting < self.count).then_some(self.waiting);
        match &mut self.order {
            Order::Ring { slots, at, before } => {
                if let Some(next) = next {
                    if let Some(slot) = slots.get_mut(*at as usize) {
                        slot.0 = next;
                    }
                    // A finished file of a sequential order is followed by the next, in its slot.
                    if matches!(self.service.choice, FileChoice::Sequential) {
                        *at = *before;
                    }
                    self.waiting += 1;
                } else if let Some(behind) = slots.get(*at as usize).map(|slot| slot.1) {
                    if let Some(slot) = slots.get_mut(*before as usize) {
                        slot.1 = behind;
                    }
                    *at = *before;
                }
            }
            Order::Bag(files, at) => {
                if let Some(next) = next {
                    if let Some(place) = files.get_mut(*at) {
                        *place = next;
                    }
                    self.waiting += 1;
                } else if *at < files.len() {
                    files.swap_remove(*at);
                }
            }
            Order::Uneven(_, instead) => {
                if let Some(file) = file.filter(|_| self.left > 0) {
                    let next = (file + 1) % self.count;
                    if let Some(place) = instead.get_mut(file as usize) {
                        *place = next;
                    }
                }
            }
        }
    }
}
