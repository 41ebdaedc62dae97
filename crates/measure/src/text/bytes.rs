//! Amounts of data.

use super::number::number;

/// Binary units, the largest first.
const BINARY: [(&str, u64); 5] =
    [("PiB", 1 << 50), ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// A number of bytes with a unit of 1,024, in any of its spellings: "4096", "64k", "1MiB", "4gb".
///
/// # Errors
/// What is wrong with it.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let plain = text.trim().to_ascii_lowercase();
    let digits = plain.find(|c: char| !c.is_ascii_digit()).unwrap_or(plain.len());
    let (number, unit) = plain.split_at(digits);
    let wrong = || format!("\"{text}\" is not a size; write for example 512k, 1m or 4g");
    let shift = match unit {
        "" | "b" => 0,
        "k" | "ki" | "kb" | "kib" => 10,
        "m" | "mi" | "mb" | "mib" => 20,
        "g" | "gi" | "gb" | "gib" => 30,
        "t" | "ti" | "tb" | "tib" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("\"{text}\" is too large"))
}

/// In decimal units, as disks and networks have them: "14.2 MB".
pub fn decimal_bytes(bytes: f64) -> String {
    for (unit, name) in [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")] {
        if bytes.abs() >= unit {
            return format!("{:.1} {name}", bytes / unit);
        }
    }
    format!("{bytes:.0} B")
}

/// The largest binary unit in which it is at least 1, and that unit's size: none below 1 KiB.
fn binary_unit(bytes: u64) -> Option<(&'static str, u64)> {
    BINARY.into_iter().find(|(_, unit)| bytes >= *unit)
}

/// In binary units, with a decimal where it is no multiple: "4 KiB", "1.5 MiB", "1000 B".
pub fn binary(bytes: u64) -> String {
    match binary_unit(bytes) {
        Some((name, unit)) => format!("{} {name}", (bytes as f64 / unit as f64 * 10.0).round() / 10.0),
        None => format!("{bytes} B"),
    }
}

/// The same, and the exact number where that differs: "4 KiB", "1.43 MiB (1500000 bytes)".
pub fn exact(bytes: u64) -> String {
    match binary_unit(bytes) {
        Some((name, unit)) if bytes.is_multiple_of(unit) => format!("{} {name}", bytes / unit),
        Some((name, unit)) => format!("{:.2} {name} ({bytes} bytes)", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}

/// In the largest binary unit that divides it, so that no two sizes read alike: "4 KiB", "1000 B".
pub fn whole_unit(bytes: u64) -> String {
    let divides = |unit: &(&str, u64)| bytes >= unit.1 && bytes.is_multiple_of(unit.1);
    let found = BINARY.into_iter().find(divides);
    found.map_or_else(|| format!("{bytes} B"), |(name, unit)| format!("{} {name}", bytes / unit))
}

/// Bytes on disk or in memory in two figures, by the names that PostgreSQL's settings have: "64 MB" is 67,108,864 bytes.
pub fn memory(bytes: f64) -> String {
    in_units(bytes, ["B", "kB", "MB", "GB", "TB"])
}

/// The same by the names that storage has: "64 MiB" beside rates in decimal megabytes.
pub fn storage(bytes: f64) -> String {
    in_units(bytes, ["B", "KiB", "MiB", "GiB", "TiB"])
}

/// Bytes a second, in decimal megabytes as iostat and disks have them: "95 MB/s".
pub fn disk_rate(bytes: f64) -> String {
    format!("{} MB/s", number(bytes / 1e6))
}

/// In the largest of units, each 1,024 times the one before, in which it is 1 or more.
fn in_units(bytes: f64, units: [&str; 5]) -> String {
    let mut value = bytes.max(0.0);
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from(value < 10.0 && unit > 0);
    format!("{value:.decimals$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let sizes = [("4096", 4096), ("64k", 65536), ("1M", 1 << 20), ("4GiB", 4 << 30), ("2t", 2 << 40)];
        for (text, expected) in sizes {
            assert_eq!(parse_bytes(text), Ok(expected));
        }
        for text in ["", "k", "1x", "-1m", "1.5m", "1 m x"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        assert_eq!(parse_bytes("99999999t"), Err("\"99999999t\" is too large".into()));
    }

    #[test]
    fn amounts_have_their_unit() {
        let words = [0, 512, 4096, 1 << 20, (1 << 20) + (1 << 19), 3 << 30].map(binary);
        assert_eq!(words, ["0 B", "512 B", "4 KiB", "1 MiB", "1.5 MiB", "3 GiB"]);
        assert_eq!(
            [512, 4096, 1 << 40, 1_500_000].map(exact),
            ["512 bytes", "4 KiB", "1 TiB", "1.43 MiB (1500000 bytes)"]
        );
        assert_eq!([4096, 1536, 1000, 3 << 30].map(whole_unit), ["4 KiB", "1536 B", "1000 B", "3 GiB"]);
        assert_eq!([0.0, 999.0, 14_230_000.0].map(decimal_bytes), ["0 B", "999 B", "14.2 MB"]);
        assert_eq!([67_108_864.0, 1_610_612_736.0, 12.0].map(memory), ["64 MB", "1.5 GB", "12 B"]);
        assert_eq!([storage(67_108_864.0), disk_rate(95e6)], ["64 MiB", "95 MB/s"]);
    }
}
