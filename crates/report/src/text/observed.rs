//! Activity of host and database in the window, summarized.

use super::Page;
use crate::{DeviceRow, ObservationReport, OccurrenceRow, OtherProcessRow, PointReport, SessionsReport};
use kelvin_measure::text::{cut, decimal, decimal_bytes, rate, whole};

/// Number of wait classes, and of waits, that are named.
const NAMED: usize = 5;

/// Share of the sessions' time, in per cent, from which this wait is explained.
const CLIENT_EXPLAINED: f64 = 25.0;
const CLIENT_WAITS: &str = "Client: a backend reports this wait until it gets a CPU again, so on a busy host \
                            part of it is waiting for a CPU; the verdict counts that as CPU";

/// What the sessions' waits for their client include, if they are a large share.
pub(crate) fn client_waits(sessions: &SessionsReport) -> Option<&'static str> {
    let waiting = sessions.classes.iter().find(|row| row.class == "Client")?;
    (waiting.share_percent >= CLIENT_EXPLAINED).then_some(CLIENT_WAITS)
}

impl Page {
    pub(super) fn observed(&mut self, p: &PointReport) {
        let Some(seen) = &p.observed else { return };
        let start = self.out.len();
        self.processors(seen);
        self.other_processes(&seen.other_processes);
        self.sessions(seen);
        self.log(seen, p.window_s);
        self.devices(&seen.devices);
        if self.out.len() > start {
            self.out.insert_str(
                start,
                if p.phase().is_some() {
                    "\nhost in the window\n"
                } else {
                    "\nhost and database in the window\n"
                },
            );
        }
    }

    fn processors(&mut self, seen: &ObservationReport) {
        for row in &seen.processors {
            let host = row.host.as_ref().map_or_else(String::new, |host| format!("{host}: "));
            let shares = [
                (row.user_percent, "user"),
                (row.system_percent, "system"),
                (row.iowait_percent, "iowait"),
                (row.irq_percent, "interrupts"),
                (row.steal_percent, "steal"),
                (row.idle_percent, "idle"),
            ];
            let is_shown = |(share, name): &&(f64, &str)| *name != "interrupts" || *share >= 0.05;
            let shares: Vec<String> =
                shares.iter().filter(is_shown).map(|(share, name)| format!("{name} {share:.1} %")).collect();
            self.wrapped("processors   ", &format!("{host}{}", shares.join(", ")));
        }
    }

    /// The other processes, each with its resource use and shares.
    fn other_processes(&mut self, rows: &[OtherProcessRow]) {
        let share = |share: Option<f64>| share.map_or_else(String::new, |share| format!(" ({share:.1} %)"));
        for (index, row) in rows.iter().enumerate() {
            let lead = if index == 0 { "others       " } else { "             " };
            let mut words = vec![format!("{:.2} CPUs{}", row.cpus, share(row.cpu_percent))];
            words.push(format!("{} of memory{}", decimal_bytes(row.memory_bytes), share(row.memory_percent)));
            if row.io_bytes_per_s > 0.0 {
                words.push(format!(
                    "{}/s of I/O{}",
                    decimal_bytes(row.io_bytes_per_s),
                    share(row.io_percent)
                ));
            }
            self.wrapped(lead, &format!("{}: {}", row.name, words.join(", ")));
        }
    }

    fn sessions(&mut self, seen: &ObservationReport) {
        let Some(sessions) = &seen.sessions else { return };
        let classes: Vec<String> = sessions
            .classes
            .iter()
            .take(NAMED)
            .map(|row| format!("{} {:.0} %", row.class, row.share_percent))
            .collect();
        let classes = if classes.is_empty() { String::new() } else { format!(": {}", classes.join(", ")) };
        self.wrapped("sessions     ", &format!("{:.2} active on average{classes}", sessions.active + 0.0));
        if let Some(words) = client_waits(sessions) {
            self.wrapped("             ", words);
        }
        let waits: Vec<String> = sessions
            .waits
            .iter()
            .filter(|row| !row.event.is_empty() && row.share_percent.is_some_and(|share| share >= 1.0))
            .take(NAMED)
            .map(|row| format!("{} {} {:.0} %", row.class, row.event, row.share_percent.unwrap_or_default()))
            .collect();
        if !waits.is_empty() {
            self.wrapped("waited for   ", &waits.join(", "));
        }
        let rows: Vec<String> = sessions
            .rows
            .iter()
            .take(3)
            .map(|row| format!("{:.2} on {}", row.sessions, row.relation))
            .collect();
        if !rows.is_empty() {
            self.wrapped("row waits    ", &format!("sessions: {}", rows.join(", ")));
        }
    }

    fn log(&mut self, seen: &ObservationReport, window_s: f64) {
        if let Some(bytes) = seen.wal_bytes_per_s {
            let images = seen.full_page_images_per_s.map_or_else(String::new, |images| {
                format!(", {} full-page images per second", rate(Some(images)))
            });
            self.wrapped("log          ", &format!("{}/s{images}", decimal_bytes(bytes)));
        }
        let within: Vec<&OccurrenceRow> =
            seen.occurrences.iter().filter(|row| row.in_window(window_s)).collect();
        // SQLite has neither; its frequent checkpoints are reported as a rate.
        if within.is_empty() && seen.full_page_images_per_s.is_some() {
            self.line("events       no checkpoint and no autovacuum");
        }
        let mut groups: Vec<(String, Vec<&OccurrenceRow>)> = Vec::new();
        for row in within {
            let words = row.label();
            match groups.iter_mut().find(|(name, _)| *name == words) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((words, vec![row])),
            }
        }
        for (index, (words, rows)) in groups.iter().take(NAMED).enumerate() {
            let lead = if index == 0 { "events       " } else { "             " };
            let times: u64 = rows.iter().map(|row| row.times()).sum();
            let text = match rows.as_slice() {
                [row] if times == 1 => format!("{words} {}", when(row)),
                rows => format!(
                    "{} times {words}, in {:.0} % of the window",
                    whole(times),
                    100.0 * covered(rows, window_s) / window_s
                ),
            };
            self.wrapped(lead, &text);
        }
        if groups.len() > NAMED {
            self.line(&format!("             and {} more kinds, in the HTML report", groups.len() - NAMED));
        }
    }

    fn devices(&mut self, devices: &[DeviceRow]) {
        if devices.is_empty() {
            return;
        }
        self.line(&format!(
            "{:<17}{:>7}{:>9}{:>8}{:>7}{:>9}{:>8}{:>8}{:>7}",
            "device", "r/s", "rkB/s", "r ms", "w/s", "wkB/s", "w ms", "flush", "queue"
        ));
        for d in devices {
            let name = [d.host.clone().unwrap_or_default(), d.device.clone(), d.role()];
            let name = name.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
            self.line(&format!(
                "{:<17}{:>7}{:>9}{:>8}{:>7}{:>9}{:>8}{:>8}{:>7}",
                cut(&name, 16),
                rate(d.r_s),
                rate(d.rkb_s),
                decimal(d.r_await_ms),
                rate(d.w_s),
                rate(d.wkb_s),
                decimal(d.w_await_ms),
                decimal(d.f_await_ms),
                decimal(d.aqu_sz)
            ));
        }
    }
}

/// Seconds of the window during which at least one of them was active.
fn covered(rows: &[&OccurrenceRow], window_s: f64) -> f64 {
    let (mut sum, mut done) = (0.0, 0.0_f64);
    for row in rows {
        let (from, to) = (row.from_s.max(done), row.to_s.unwrap_or(window_s).min(window_s));
        sum += (to - from).max(0.0);
        done = done.max(to);
    }
    sum
}

/// "from 12.3 s to 41.8 s".
pub(crate) fn when(row: &OccurrenceRow) -> String {
    let from = if row.from_s < 0.0 {
        format!("from {:.1} s before the window", -row.from_s)
    } else {
        format!("from {:.1} s", row.from_s)
    };
    match row.to_s {
        Some(to) => format!("{from} to {to:.1} s"),
        None => format!("{from}, end not observed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClassRow;

    #[test]
    fn trial_d9_a_wait_for_the_client_that_may_be_one_for_a_cpu_says_so() {
        let sessions = |share_percent| SessionsReport {
            active: 0.79,
            looks: 80,
            classes: vec![ClassRow { class: "Client".into(), sessions: 0.7, share_percent }],
            waits: Vec::new(),
            rows: Vec::new(),
        };
        assert!(client_waits(&sessions(92.0)).unwrap().contains("waiting for a CPU"));
        assert_eq!(client_waits(&sessions(5.0)), None);
    }
}
