//! The agent's clock as reported to the controller, and the state of the host's clock synchronisation.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kelvin_measure::Nanos;
use kelvin_run::driver::LoadTimes;

use crate::error::FleetError;
use crate::message::clean;

/// How long chrony may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// A test hook that shifts the reported clock and makes it drift, so that a test on one host has hosts whose
/// clocks differ by a known amount. No other part of the agent is affected.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ClockTestHook {
    /// Shift in nanoseconds.
    pub shift: i64,
    /// Nanoseconds gained per nanosecond.
    pub drift: f64,
}

impl ClockTestHook {
    /// Parses the shift in seconds and the drift in parts per million, such as `3,50`.
    ///
    /// # Errors
    /// When the text has another form.
    pub fn parse(text: &str) -> Result<Self, FleetError> {
        let numbers = text.split_once(',').map(|(shift, drift)| (shift.parse::<f64>(), drift.parse::<f64>()));
        match numbers {
            Some((Ok(shift), Ok(ppm))) if shift.abs() <= 1e6 && ppm.abs() <= 1e5 => {
                Ok(Self { shift: (shift * 1e9) as i64, drift: ppm / 1e6 })
            }
            _ => Err(FleetError::Refused(format!(
                "{text:?}: write seconds and parts per million, such as 3,50"
            ))),
        }
    }

    /// The reported time when the real clock shows `now`.
    pub(crate) fn shown(self, now: Nanos) -> Nanos {
        let shown = i128::from(now) + i128::from(self.shift) + (now as f64 * self.drift).round() as i128;
        Nanos::try_from(shown).unwrap_or(0)
    }

    /// The real time at which the reported time is `shown`.
    pub(crate) fn real(self, shown: Nanos) -> Nanos {
        let since = i128::from(shown) - i128::from(self.shift);
        // The correction is small. Computed separately, it keeps its precision of nanoseconds.
        let gained = since as f64 * self.drift / (1.0 + self.drift);
        Nanos::try_from(since - gained.round() as i128).unwrap_or(0)
    }

    /// Converts the times of a load to the real clock.
    pub(crate) fn real_times(self, times: LoadTimes) -> LoadTimes {
        let real = |shown| if shown == u64::MAX { shown } else { self.real(shown) };
        LoadTimes {
            begin: real(times.begin),
            open: real(times.open),
            close: real(times.close),
            end: real(times.end),
        }
    }
}

/// The state of the host's clock synchronisation, on one line; `None` where chrony does not run.
pub(crate) fn synchronisation() -> Option<String> {
    let mut asked = Command::new("chronyc");
    asked.args(["-c", "tracking"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = asked.spawn().ok()?;
    let since = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if since.elapsed() > PATIENCE {
            let _ended = child.kill();
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    describe(text.trim())
}

/// Describes the fields of `chronyc -c tracking`.
fn describe(line: &str) -> Option<String> {
    let fields: Vec<&str> = line.split(',').collect();
    let [_, source, stratum, _, _, offset, ..] = fields[..] else { return None };
    let (delay, dispersion) = (fields.get(10)?, fields.get(11)?);
    Some(clean(&format!(
        "chrony: source {source}, stratum {stratum}, last offset {offset} s, root delay {delay} s, root dispersion \
         {dispersion} s"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_leads_back() {
        let hook = ClockTestHook::parse("3,50").unwrap();
        assert_eq!(hook.shown(1_000_000_000), 4_000_050_000);
        for now in [0, 1, 1_000_000_007, 86_400_000_000_000] {
            assert!(hook.real(hook.shown(now)).abs_diff(now) <= 1, "{now}");
        }
        assert_eq!(ClockTestHook::default().real(17), 17);
        assert_eq!(
            hook.real_times(LoadTimes { begin: 4, open: 5, close: u64::MAX, end: u64::MAX }).close,
            u64::MAX
        );
        for bad in ["", "3", "x,1", "1,nan", "1e9,1"] {
            assert!(ClockTestHook::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn chrony_is_read() {
        let line = "A9FEA97B,169.254.169.123,4,1718000000.1,-0.000001,0.000002,0.00001,-1.0,0.0,0.01,0.0003,0.0002,64.5,Normal";
        let text = describe(line).unwrap();
        assert!(text.contains("stratum 4") && text.contains("root dispersion 0.0002 s"), "{text}");
        assert_eq!(describe("506 Cannot talk to daemon"), None);
    }
}
