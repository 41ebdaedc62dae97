//! `random_distribution=` and the distributions of `file_service_type=`.

use crate::PerDirection;
use crate::job::{AbsoluteZone, Distribution, FileChoice, FileService, Zone};
use crate::jobfile::value::{Value, decimal, percent};

/// The words of `random_distribution=`.
pub(crate) const WORDS: &[(&str, &str)] = &[
    ("random", "uniform"),
    ("zipf", "zipf:THETA[:CENTER], Zipf distribution; default 1.1"),
    ("pareto", "pareto:H[:CENTER], Pareto distribution; default 0.2"),
    ("normal", "normal:DEVIATION[:CENTER], normal distribution with its deviation in percent"),
    ("zoned", "zoned:ACCESSES/SHARE:…, percent of the accesses to percent of the target"),
    ("zoned_abs", "zoned_abs:ACCESSES/BYTES:…, percent of the accesses to bytes of the target"),
];

/// The words of `file_service_type=`.
pub(crate) const SERVICE: &[(&str, &str)] = &[
    ("roundrobin", "each file in turn; roundrobin:N does N I/Os to each"),
    ("random", "a random file; random:N does N I/Os to each"),
    ("sequential", "one file until it is done, then the next; sequential:N does N I/Os to each"),
    ("zipf", "zipf:THETA, Zipf distribution"),
    ("pareto", "pareto:H, Pareto distribution"),
    ("normal", "normal:DEVIATION, normal distribution"),
    ("gauss", "same as normal"),
];

const THETA: f64 = 1.1;
const POWER: f64 = 0.2;
/// As many as fio takes.
const MOST_ZONES: usize = 256;

fn theta(number: f64) -> Result<f64, String> {
    if number <= 0.0 {
        return Err("the Zipf exponent must be above 0".into());
    }
    if number == 1.0 {
        return Err("the Zipf exponent cannot be 1: use 0.99 or 1.01".into());
    }
    Ok(number)
}

fn power(number: f64) -> Result<f64, String> {
    let within = number > 0.0 && number < 1.0;
    if within { Ok(number) } else { Err("the Pareto h must be above 0 and below 1".into()) }
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
            Some(_) => Err("a uniform distribution has no parameter".into()),
        },
        _ => skewed(word, rest).map(PerDirection::all),
    }
}

fn skewed(word: &str, rest: Option<&str>) -> Result<Distribution, String> {
    if rest.is_some_and(|rest| rest.contains(',')) {
        return Err("only zoned and zoned_abs can differ by direction: give one distribution for all".into());
    }
    let mut numbers = rest.into_iter().flat_map(|rest| rest.split(':')).map(decimal);
    let first = numbers.next().transpose()?;
    let center = numbers.next().transpose()?;
    if numbers.next().is_some() {
        return Err("a distribution has at most two numbers".into());
    }
    if center.is_some_and(|center| !(0.0..=1.0).contains(&center)) {
        return Err("the center must be between 0 and 1".into());
    }
    Ok(match word {
        "zipf" => Distribution::Zipf { theta: theta(first.unwrap_or(THETA))?, center },
        "pareto" => Distribution::Pareto { h: power(first.unwrap_or(POWER))?, center },
        _ => {
            let first = first.ok_or("the deviation is missing: use normal:20 for 20 percent")?;
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
            format!("the zone {zone:?} must be a percentage of the accesses, a slash and a size")
        })?;
        let access = percent(access.trim())?;
        sum += access;
        out.push((access, extent.trim()));
    }
    if out.len() > MOST_ZONES {
        return Err(format!("{} zones are given, but at most {MOST_ZONES} are allowed", out.len()));
    }
    if (sum - 100.0).abs() > 0.01 {
        return Err(format!("the accesses of the zones add up to {sum} % instead of 100 %"));
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
        return Err(format!("the zones cover {given} % of the target, which exceeds 100 %"));
    }
    let open = shares.iter().filter(|share| share.is_none()).count().max(1) as f64;
    let rest = (100.0 - given).max(0.0) / open;
    let zones = pairs.iter().zip(shares);
    let zones = zones.map(|((access, _), share)| Zone { access: *access, share: share.unwrap_or(rest) });
    let zones: Vec<Zone> = zones.collect();
    if zones.iter().any(|zone| zone.access > 0.0 && zone.share <= 0.0) {
        return Err("a zone gets accesses, but covers 0 % of the target".into());
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
            return Err("only the last zone may omit its size: it gets the rest of the target".into());
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
            rest.map(decimal).transpose()?.ok_or("the deviation is missing: use normal:20 for 20 percent")?,
        )?),
    };
    let counts = matches!(choice, FileChoice::RoundRobin | FileChoice::Random | FileChoice::Sequential);
    let ios_per_switch = match rest {
        Some(rest) if counts => value.count_of(rest, 1)?,
        _ => 1,
    };
    Ok(FileService { choice, ios_per_switch })
}
