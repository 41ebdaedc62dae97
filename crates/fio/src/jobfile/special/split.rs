//! `bssplit=4k/50:1k/:32k/`.

use crate::jobfile::draft::SplitPart;
use crate::jobfile::value::{Value, percent};

/// As many as fio takes of one direction.
const MOST: usize = 64;

/// The sizes of one direction with their percentages.
pub(crate) fn read(value: &Value<'_>, text: &str) -> Result<Vec<SplitPart>, String> {
    let mut parts = Vec::new();
    for entry in text.split(':').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (size, share) = entry.split_once('/').unwrap_or((entry, ""));
        let share = share.trim().trim_end_matches('%');
        let share = if share.is_empty() { None } else { Some(percent(share)?) };
        let size = value.block_of(size.trim()).map_err(|problem| format!("in {entry:?}: {problem}"))?;
        parts.push((size, share));
    }
    if parts.is_empty() {
        return Err("no size is given".into());
    }
    if parts.len() > MOST {
        return Err(format!("{} sizes are given, but at most {MOST} are allowed", parts.len()));
    }
    let sum: f64 = parts.iter().filter_map(|part| part.1).sum();
    let open = parts.iter().any(|part| part.1.is_none());
    // Percentages are written with a few digits: 33.3 three times is meant as all.
    if sum > 100.0 + 0.5 {
        return Err(format!("the percentages add up to {sum} %, which exceeds 100 %"));
    }
    if !open && sum < 100.0 - 0.5 {
        return Err(format!(
            "the percentages add up to {sum} %: leave one empty (as in 4k/) to give it the rest"
        ));
    }
    if !open {
        // What is off by rounding is spread.
        for part in &mut parts {
            part.1 = part.1.map(|share| share * 100.0 / sum);
        }
    }
    Ok(parts)
}
