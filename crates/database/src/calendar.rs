//! Points in time as servers write them.

use crate::Timestamp;

/// Microseconds of a day.
pub(crate) const DAY: i64 = 86_400_000_000;

/// "2024-02-29 12:34:56.789+05:30" and its shorter forms, as DateStyle ISO writes them. `None` for years before
/// Christ and infinities.
pub(crate) fn timestamp(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once(' ').map_or((text, None), |(d, t)| (d, Some(t)));
    let mut parts = date.split('-');
    let (year, month, day): (i64, i64, i64) =
        (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    if parts.next().is_some()
        || !(0..=294_276).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
    {
        return None;
    }
    let mut micros = days_from_civil(year, month, day) * DAY;
    if let Some(time) = time {
        let zone_at = time.find(['+', '-']).unwrap_or(time.len());
        let (clock, zone) = time.split_at(zone_at);
        micros += clock_micros(clock)?;
        if let Some(sign) = zone.chars().next() {
            let offset = clock_micros(&zone[1..])?;
            micros += if sign == '+' { -offset } else { offset };
        }
    }
    Some(Timestamp(micros))
}

/// "12", "12:34", "12:34:56" or "12:34:56.789" in microseconds.
fn clock_micros(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut total = 0_i64;
    let mut unit = 3_600_000_000_i64;
    for part in whole.split(':') {
        let value: i64 = part.parse().ok().filter(|v| (0..=99).contains(v))?;
        total += value * unit;
        unit /= 60;
    }
    if fraction.len() > 6 {
        return None;
    }
    let padded: i64 = if fraction.is_empty() { 0 } else { fraction.parse().ok().filter(|v| *v >= 0)? };
    Some(total + padded * 10_i64.pow(6 - fraction.len() as u32))
}

/// Days from 1970-01-01 in the Gregorian calendar: years begin in March, so that the leap day comes last.
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a number of days from 1970-01-01: [`days_from_civil`] the other way round.
pub(crate) fn civil_from_days(days: i64) -> (i64, u8, u8) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month as u8, day as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, micros) in [
            ("1970-01-01", Some(0)),
            ("2000-01-01 00:00:00", Some(946_684_800_000_000)),
            ("2024-02-29 12:34:56.789+00", Some(1_709_210_096_789_000)),
            ("2024-02-29 18:04:56.789+05:30", Some(1_709_210_096_789_000)),
            ("2024-02-29 07:34:56.789-05", Some(1_709_210_096_789_000)),
            ("1969-12-31 23:59:59.999999+00", Some(-1)),
            ("infinity", None),
            ("2024-13-01", None),
            ("2024-01-01 x", None),
        ] {
            assert_eq!(timestamp(text).map(|t| t.0), micros, "{text}");
        }
    }

    #[test]
    fn days_and_dates_are_one_another() {
        for days in (-800_000..3_000_000).step_by(97) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month.into(), day.into()), days);
        }
        assert_eq!(civil_from_days(19_782), (2024, 2, 29));
    }
}
