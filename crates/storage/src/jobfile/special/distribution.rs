//! `random_distribution=` and the distributions of `file_service_type=`.

use crate::PerDirection;
use crate::job::{AbsoluteZone, Distribution, FileChoice, FileService, Zone};
use crate::jobfile::value::{Value, decimal, percent};

/// The words of `random_distribution=`.
pub(crate) const WORDS: &[(&str, &str)] = &[
    ("random", "every place alike"),
    ("zipf", "zipf:THETA[:CENTER], Zipf's law; 1.1 when nothing is given"),
    ("pareto", "pareto:H[:CENTER], Pareto's law; 0.2 when nothing is given"),
    ("normal", "normal:DEVIATION[:CENTER], a normal distribution, its deviation in percent"),
    ("zoned", "zoned:ACCESSES/SHARE:…, percent of the accesses for percent of the target"),
    ("zoned_abs", "zoned_abs:ACCESSES/BYTES:…, percent of the accesses for bytes of the target"),
];

/// The words of `file_service_type=`.
pub(crate) const SERVICE: &[(&str, &str)] = &[
    ("roundrobin", "one file after the other; roundrobin:N stays N I/Os with each"),
    ("random", "any file; random:N stays N I/Os with each"),
    ("sequential", "one file until it is done, then the next; sequential:N counts the same way"),
    ("zipf", "zipf:THETA, by Zipf's law"),
    ("pareto", "pareto:H, by Pareto's law"),
    ("normal", "normal:DEVIATION, by a normal distribution"),
    ("gauss", "as normal"),
];

const THETA: f64 = 1.1;
const POWER: f64 = 0.2;
/// As many as fio takes.
const MOST_ZONES: usize = 256;

fn theta(number: f64) -> Result<f64, String> {
    if number <= 0.0 {
        return Err("the exponent of Zipf's law must be above 0".into());
    }
    if number == 1.0 {
        return Err("the exponent of Zipf's law cannot be 1: write 0.99 or 1.01".into());
    }
    Ok(number)
}

fn power(number: f64) -> Result<f64, String> {
    let within = number > 0.0 && number < 1.0;
    if within { Ok(number) } else { Err("Pareto's h must be above 0 and below 1".into()) }
}

fn deviation(number: f64) -> Result<f64, String> {
    let within = (0.0..100.0).contains(&number);
    if within { Ok(number) } else { Err("the deviation must be at least 0 and below 100 percent".into()) }
}

/// `random_distribution=`.
pub(crate) fn read(value: &Value<'_>) -> Result<PerDirection<Distribution>, String> {
    let (word, rest) = value.word_and_rest(WORDS)?;
    let rest = rest.filter(|rest| !rest.is_empty());
    match word {
        "zoned" | "zoned_abs" => {
            let rest = rest.ok_or("the zones are missing")?;
            let zones = Value::new(Some(rest), false);
            let mut into = PerDirection::all(Distribution::Uniform);
            zones.triple(
                &mut into,
                |part| if word == "zoned" { zoned(part) } else { absolute(value, part) },
            )?;
            Ok(into)
        }
        "random" => match rest {
            None => Ok(PerDirection::all(Distribution::Uniform)),
            Some(_) => Err("an even distribution has no parameter".into()),
        },
        _ => skewed(word, rest).map(PerDirection::all),
    }
}

fn skewed(word: &str, rest: Option<&str>) -> Result<Distribution, String> {
    if rest.is_some_and(|rest| rest.contains(',')) {
        return Err("only zones can be given for each direction: all directions share a distribution".into());
    }
    let mut numbers = rest.into_iter().flat_map(|rest| rest.split(':')).map(decimal);
    let first = numbers.next().transpose()?;
    let center = numbers.next().transpose()?;
    if numbers.next().is_some() {
        return Err("at most two numbers belong to a distribution".into());
    }
    if center.is_some_and(|center| !(0.0..=1.0).contains(&center)) {
        return Err("the center must be within 0 and 1".into());
    }
    Ok(match word {
        "zipf" => Distribution::Zipf { theta: theta(first.unwrap_or(THETA))?, center },
        "pareto" => Distribution::Pareto { h: power(first.unwrap_or(POWER))?, center },
        _ => {
            let first = first.ok_or("the deviation is missing: write normal:20 for 20 percent")?;
            Distribution::Normal { deviation: deviation(first)?, center }
        }
    })
}

/// The two halves of each zone.
fn pairs(text: &str) -> Result<Vec<(f64, &str)>, String> {
    let mut out = Vec::new();
    let mut sum = 0.0;
    for zone in text.split(':') {
        let (access, extent) = zone.split_once('/').ok_or_else(|| {
            format!("the zone {zone:?} must be the percent of the accesses, a slash, and how much they go to")
        })?;
        let access = percent(access.trim())?;
        sum += access;
        out.push((access, extent.trim()));
    }
    if out.len() > MOST_ZONES {
        return Err(format!("{} zones are given, and at most {MOST_ZONES} are taken", out.len()));
    }
    if (sum - 100.0).abs() > 0.01 {
        return Err(format!("the accesses of the zones add up to {sum} % and not to 100 %"));
    }
    Ok(out)
}

fn zoned(text: &str) -> Result<Distribution, String> {
    let pairs = pairs(text)?;
    let mut given = 0.0;
    let mut shares = Vec::new();
    for (_, extent) in &pairs {
        let share = if extent.is_empty() { None } else { Some(percent(extent)?) };
        given += share.unwrap_or(0.0);
        shares.push(share);
    }
    if given > 100.0 + 0.01 {
        return Err(format!("the zones cover {given} % of the target, which is over 100 %"));
    }
    let open = shares.iter().filter(|share| share.is_none()).count().max(1) as f64;
    let rest = (100.0 - given).max(0.0) / open;
    let zones = pairs.iter().zip(shares);
    let zones = zones.map(|((access, _), share)| Zone { access: *access, share: share.unwrap_or(rest) });
    let zones: Vec<Zone> = zones.collect();
    if zones.iter().any(|zone| zone.access > 0.0 && zone.share <= 0.0) {
        return Err("a zone with accesses covers nothing of the target".into());
    }
    Ok(Distribution::Zoned(zones))
}

fn absolute(value: &Value<'_>, text: &str) -> Result<Distribution, String> {
    let pairs = pairs(text)?;
    let last = pairs.len() - 1;
    let mut zones = Vec::new();
    for (index, (access, extent)) in pairs.into_iter().enumerate() {
        let bytes = if extent.is_empty() { 0 } else { value.count_of(extent, 0)? };
        if bytes == 0 && index != last {
            return Err("only the last zone can be without a size: it gets the rest of the target".into());
        }
        zones.push(AbsoluteZone { access, bytes });
    }
    Ok(Distribution::ZonedAbsolute(zones))
}

/// `file_service_type=`.
pub(crate) fn service(value: &Value<'_>) -> Result<FileService, String> {
    let (word, rest) = value.word_and_rest(SERVICE)?;
    let number = |usual: f64| rest.map_or(Ok(usual), decimal);
    let choice = match word {
        "roundrobin" => FileChoice::RoundRobin,
        "random" => FileChoice::Random,
        "sequential" => FileChoice::Sequential,
        "zipf" => FileChoice::Zipf(theta(number(THETA)?)?),
        "pareto" => FileChoice::Pareto(power(number(POWER)?)?),
        _ => FileChoice::Normal(deviation(
            rest.map(decimal)
                .transpose()?
                .ok_or("the deviation is missing: write normal:20 for 20 percent")?,
        )?),
    };
    let counts = matches!(choice, FileChoice::RoundRobin | FileChoice::Random | FileChoice::Sequential);
    let ios_per_switch = match rest {
        Some(rest) if counts => value.count_of(rest, 1)?,
        _ => 1,
    };
    Ok(FileService { choice, ios_per_switch })
}
