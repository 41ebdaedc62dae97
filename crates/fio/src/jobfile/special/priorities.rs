//! `cmdprio_bssplit=4k/50:64k/10/1/0` and related options.

use crate::Direction;
use crate::job::CommandPriority;
use crate::jobfile::draft::{Draft, PriorityPart};
use crate::jobfile::value::{Value, percent};

/// As many as `bssplit` has.
const MOST: usize = 64;
/// `IOPRIO_CLASS_RT`, the highest, which is fio's default.
const REALTIME: u8 = 1;

/// The entries of one direction.
pub(crate) fn read(value: &Value<'_>, text: &str) -> Result<Vec<PriorityPart>, String> {
    let mut parts: Vec<PriorityPart> = Vec::new();
    for entry in text.split(':').map(str::trim).filter(|entry| !entry.is_empty()) {
        let within = |problem: String| format!("in {entry:?}: {problem}");
        let fields: Vec<&str> = entry.split('/').map(str::trim).collect();
        let (length, share, priority) = match fields.as_slice() {
            [length] => (*length, "", None),
            [length, share] => (*length, *share, None),
            [length, share, class, level] => (*length, *share, Some((*class, *level, "0"))),
            [length, share, class, level, hint] => (*length, *share, Some((*class, *level, *hint))),
            _ => {
                return Err(within("must be SIZE/PERCENT or SIZE/PERCENT/CLASS/LEVEL[/HINT]".into()));
            }
        };
        let length = value.block_of(length).map_err(within)?;
        let share = share.trim_end_matches('%');
        let percent = if share.is_empty() { None } else { Some(percent(share).map_err(within)?) };
        let priority = match priority {
            Some((class, level, hint)) => Some((
                value.small_of(class, 1..=3).map_err(within)? as u8,
                value.small_of(level, 0..=7).map_err(within)? as u8,
                value.small_of(hint, 0..=1023).map_err(within)? as u16,
            )),
            None => None,
        };
        parts.push(PriorityPart { length, percent, priority });
    }
    if parts.is_empty() {
        return Err("no size is given".into());
    }
    if parts.len() > MOST {
        return Err(format!("{} sizes are given, but at most {MOST} are allowed", parts.len()));
    }
    for part in &parts {
        let sum = given(&parts, part.length);
        if sum > 100.0 {
            return Err(format!(
                "the percentages for {} bytes add up to {sum} %, which exceeds 100 %",
                part.length
            ));
        }
    }
    Ok(parts)
}

fn given(parts: &[PriorityPart], length: u32) -> f64 {
    parts.iter().filter(|part| part.length == length).filter_map(|part| part.percent).sum()
}

/// The rules of a job.
pub(crate) fn rules(draft: &Draft) -> Vec<CommandPriority> {
    let mut rules = Vec::new();
    for (place, direction) in [Direction::Read, Direction::Write].into_iter().enumerate() {
        let class = draft.command_class.get(place).copied().flatten().unwrap_or(REALTIME);
        let level = draft.command_level.get(place).copied().flatten().unwrap_or(0);
        let share = draft.command_percentage.and_then(|shares| shares.get(place).copied());
        if let Some(percent) = share.filter(|share| *share > 0.0) {
            rules.push(CommandPriority { direction, length: None, percent, class, level, hint: 0 });
        }
        let Some(parts) = draft.command_split.get(place) else { continue };
        for part in parts {
            let open = parts.iter().filter(|other| other.length == part.length && other.percent.is_none());
            let rest = (100.0 - given(parts, part.length)) / open.count().max(1) as f64;
            let percent = part.percent.unwrap_or(rest);
            let (class, level, hint) = part.priority.unwrap_or((class, level, 0));
            let length = Some(part.length);
            rules.push(CommandPriority { direction, length, percent, class, level, hint });
        }
    }
    rules.retain(|rule| rule.percent > 0.0);
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_their_own_priority_or_that_of_all() {
        let text = "4k/50:64k/10/3/7:4k/";
        let parts = read(&Value::new(Some(text), false), text).unwrap();
        let mut draft = Draft::new();
        draft.command_split = [parts, Vec::new()];
        draft.command_level = [Some(2), None];
        let rules: Vec<_> = rules(&draft)
            .into_iter()
            .map(|rule| (rule.length.unwrap(), rule.percent, rule.class, rule.level))
            .collect();
        assert_eq!(rules, [(4096, 50.0, 1, 2), (65_536, 10.0, 3, 7), (4096, 50.0, 1, 2)]);
        let five = "64k/100/1/2/5";
        draft.command_split = [read(&Value::new(Some(five), false), five).unwrap(), Vec::new()];
        assert_eq!(super::rules(&draft)[0].value(), (1 << 13) | (5 << 3) | 2, "trial c7: five fields");
        for (wrong, why) in [
            ("4k/60:4k/60", "add up to 120 %"),
            ("4k/50/1", "SIZE/PERCENT/CLASS/LEVEL"),
            ("4k/50/1/0/1024", "must be at most 1023"),
            ("4k/50/4/0", "in \"4k/50/4/0\""),
            (":", "no size"),
        ] {
            let problem = read(&Value::new(Some(wrong), false), wrong).unwrap_err();
            assert!(problem.contains(why), "{wrong}: {problem}");
        }
    }
}
