//! Amounts of bytes as text.

/// Bytes as a person reads them, with the exact number where that says more.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u32); 5] = [("PiB", 50), ("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let Some((unit, shift)) = UNITS.into_iter().find(|(_, shift)| bytes >> shift > 0) else {
        return format!("{bytes} bytes");
    };
    if bytes.trailing_zeros() >= shift {
        return format!("{} {unit}", bytes >> shift);
    }
    format!("{:.2} {unit} ({bytes} bytes)", bytes as f64 / (1_u64 << shift) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_amounts_are_said_in_their_unit_and_others_exactly_too() {
        assert_eq!(bytes(512), "512 bytes");
        assert_eq!(bytes(4096), "4 KiB");
        assert_eq!(bytes(1 << 40), "1 TiB");
        assert_eq!(bytes(1_500_000), "1.43 MiB (1500000 bytes)");
    }
}
