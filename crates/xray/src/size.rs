//! Sizes as fio writes them, and how a scenario's sizes are scaled together.

/// A plain size in bytes: 28G, 8k, 1m, 4096, 2GiB; fio's units are powers of 1024.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let shift = match text[end..].trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "p" => 50,
        _ => return None,
    };
    text[..end].parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A size with the largest unit that divides it.
pub(crate) fn size_text(bytes: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "k")];
    let unit = units.iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    unit.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// How sizes are scaled: all by the same ratio of whole units, so that what fitted together fits together still.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SizeScale {
    factor: f64,
    /// What divides all sizes, and what it becomes; none where that would be less than a unit.
    ratio: Option<(u64, u64)>,
    unit: u64,
}

impl SizeScale {
    /// The scale of all sizes of a scenario, in units that hold its largest block.
    pub(crate) fn new(sizes: impl Iterator<Item = u64>, largest_block: u64, factor: f64) -> Self {
        const MIB: u64 = 1 << 20;
        let unit = largest_block.max(MIB).next_multiple_of(MIB);
        let divisor = sizes.filter(|size| *size > 0).fold(0, greatest_common_divisor);
        let scaled = (divisor as f64 * factor) as u64 / unit * unit;
        Self { factor, ratio: (scaled > 0).then_some((divisor, scaled)), unit }
    }

    pub(crate) fn changes(&self) -> bool {
        self.factor != 1.0
    }

    /// The scaled size: whole units, and at least one.
    pub(crate) fn scaled(&self, bytes: u64) -> u64 {
        match self.ratio {
            _ if !self.changes() || bytes == 0 => bytes,
            Some((from, to)) => (bytes / from).saturating_mul(to),
            None => {
                ((bytes as f64 * self.factor) as u64).max(1).div_ceil(self.unit).saturating_mul(self.unit)
            }
        }
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
