//! Values of settings, compared by meaning: 8GB, 8192MB and 1048576 pages of 8 kB are one value.

/// Whether two values of a setting are the same, given the setting's type (`bool`, `integer`, `real`, `enum`, `string`)
/// and unit as `pg_settings` has them, or `bytes` with MySQL's suffixes, or `switch`, which any name switches on. A
/// number without a unit is in the setting's unit.
pub fn same(a: &str, b: &str, kind: &str, unit: Option<&str>) -> bool {
    let (a, b) = (a.trim(), b.trim());
    match kind {
        "integer" | "real" => match (number(a, unit), number(b, unit)) {
            // The server stores whole multiples of the unit.
            (Some(a), Some(b)) if kind == "integer" => a.round() == b.round(),
            (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * a.abs().max(b.abs()),
            _ => a == b,
        },
        "bytes" => match (whole_number(a), whole_number(b)) {
            (Some(a), Some(b)) => a == b,
            _ => a.eq_ignore_ascii_case(b),
        },
        // Any value other than "off" and its synonyms switches it on.
        "switch" => (whole_truth(a) == Some(false)) == (whole_truth(b) == Some(false)),
        "bool" => truth(a).map_or(a == b, |a| Some(a) == truth(b)),
        // Some are on and off with additional values.
        "enum" => a.eq_ignore_ascii_case(b) || (whole_truth(a).is_some() && whole_truth(a) == whole_truth(b)),
        _ => a == b || (a.contains(',') && elements(a) == elements(b)),
    }
}

/// A whole number as MySQL's option files have it: 8G, 512M, 64K or plain.
pub(crate) fn whole_number(text: &str) -> Option<i128> {
    let text = text.trim();
    let ending = text.chars().last()?.to_ascii_uppercase();
    let power = "KMGTPE".find(ending).map_or(0, |place| place as u32 + 1);
    let digits = if power == 0 { text } else { &text[..text.len() - 1] };
    digits.parse::<i64>().ok().map(|number| i128::from(number) << (10 * power))
}

/// The value in the setting's unit.
fn number(text: &str, unit: Option<&str>) -> Option<f64> {
    let text = text.trim();
    let digits_end = text
        .char_indices()
        .find(|(index, c)| {
            let exponent = matches!(c, 'e' | 'E')
                && text[index + 1..].starts_with(|next: char| next.is_ascii_digit() || "+-".contains(next));
            let sign = "+-".contains(*c) && (*index == 0 || text[..*index].ends_with(['e', 'E']));
            !(c.is_ascii_digit() || *c == '.' || exponent || sign)
        })
        .map_or(text.len(), |(index, _)| index);
    let (digits, given) = (&text[..digits_end], text[digits_end..].trim());
    let number: f64 = match digits {
        "0" if given.starts_with(['x', 'X']) => {
            return i64::from_str_radix(&given[1..], 16).ok().map(|n| n as f64);
        }
        _ => digits.parse().ok()?,
    };
    if given.is_empty() {
        return Some(number);
    }
    let (size, own) = (scale(given)?, scale(unit?)?);
    (size.0 == own.0).then(|| number * size.1 / own.1)
}

/// The quantity that a unit measures, and its size in bytes or microseconds. Units of settings may have a factor: 8kB.
fn scale(unit: &str) -> Option<(char, f64)> {
    let name_at = unit.find(|c: char| !c.is_ascii_digit()).unwrap_or(unit.len());
    let factor: f64 = if name_at == 0 { 1.0 } else { unit[..name_at].parse().ok()? };
    let (measures, size) = match &unit[name_at..] {
        "B" => ('b', 1.0),
        "kB" => ('b', 1024.0),
        "MB" => ('b', 1024.0 * 1024.0),
        "GB" => ('b', 1024.0 * 1024.0 * 1024.0),
        "TB" => ('b', 1024.0 * 1024.0 * 1024.0 * 1024.0),
        "us" => ('t', 1.0),
        "ms" => ('t', 1e3),
        "s" => ('t', 1e6),
        "min" => ('t', 60e6),
        "h" => ('t', 3600e6),
        "d" => ('t', 86400e6),
        _ => return None,
    };
    Some((measures, factor * size))
}

/// As the server parses it: any unambiguous prefix of the keywords.
fn truth(text: &str) -> Option<bool> {
    let lower = text.to_ascii_lowercase();
    let begins = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
    match lower.as_str() {
        "1" => Some(true),
        "0" => Some(false),
        _ if begins("true", 1) || begins("yes", 1) || lower == "on" => Some(true),
        _ if begins("false", 1) || begins("no", 1) || begins("off", 2) => Some(false),
        _ => None,
    }
}

fn whole_truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// The elements of a list, however it is spaced and quoted.
pub(crate) fn elements(list: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut quoted = false;
    for c in list.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => found.push(String::new()),
            c => {
                if let Some(last) = found.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    found.into_iter().map(|element| element.trim().to_owned()).filter(|element| !element.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_and_times_are_compared_by_value() {
        let pages = |a, b| same(a, b, "integer", Some("8kB"));
        assert!(pages("8GB", "8192MB") && pages("8GB", "1048576") && pages("1.5GB", "1536MB"));
        assert!(!pages("8GB", "8193MB") && !pages("8GB", "8"));
        assert!(pages("16384", "128MB") && pages("0x10", "16") && pages("-1", "-1"));
        let seconds = |a, b| same(a, b, "integer", Some("s"));
        assert!(seconds("15min", "900") && seconds("1h", "60min") && seconds("900000ms", "15min"));
        assert!(!seconds("15min", "15MB") && !seconds("15min", "15"));
        assert!(same("0.9", "0.90", "real", None) && same("2ms", "2", "real", Some("ms")));
        assert!(same("1e-3", "0.001", "real", None) && !same("1.1", "1.2", "real", None));
        assert!(!same("many", "4", "integer", None) && same("many", "many", "integer", None));
    }

    #[test]
    fn sizes_with_mysqls_endings_are_numbers() {
        let bytes = |a, b| same(a, b, "bytes", None);
        assert!(bytes("8589934592", "8G") && bytes("64k", "65536") && bytes("-1", "-1"));
        assert!(!bytes("8G", "8M") && !bytes("8", "8G") && bytes("ON", "on"));
        assert_eq!(whole_number("é"), None);
        assert!(same("ON", "binlog", "switch", None) && !same("OFF", "binlog", "switch", None));
    }

    #[test]
    fn words_are_compared_as_the_server_reads_them() {
        assert!(
            same("on", "true", "bool", None)
                && same("of", "no", "bool", None)
                && same("T", "1", "bool", None)
        );
        assert!(!same("on", "off", "bool", None) && !same("o", "off", "bool", None));
        assert!(same("ON", "true", "enum", None) && same("Remote_Apply", "remote_apply", "enum", None));
        assert!(!same("on", "local", "enum", None) && !same("off", "local", "enum", None));
        assert!(same("a, \"b\"", "a,b", "string", None) && !same("a,b", "b,a", "string", None));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_everything_is_itself(a in "\\PC{0,20}", kind in "bool|bytes|switch|integer|real|enum|string") {
            prop_assert!(same(&a, &a, &kind, Some("8kB")));
            let _ = same(&a, "8GB", &kind, Some("8kB"));
        }

        #[test]
        fn a_size_is_the_same_in_every_unit(mb in 1_u64..1_000_000) {
            let (kb, pages) = (format!("{}kB", mb * 1024), (mb * 128).to_string());
            let (whole, more) = (format!("{mb}MB"), format!("{}MB", mb + 1));
            prop_assert!(same(&whole, &kb, "integer", Some("8kB")));
            prop_assert!(same(&kb, &pages, "integer", Some("8kB")));
            prop_assert!(!same(&kb, &more, "integer", Some("8kB")));
        }
    }
}
