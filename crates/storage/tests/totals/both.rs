//! Runs a case in Kelvin, in this process, and in the installed fio.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kelvin_measure::Stop;
use kelvin_storage::control::{RunOptions, prepare, run};
use kelvin_storage::event::{IoEvent, IoWatcher};
use kelvin_storage::jobfile::parse_text;
use kelvin_storage::{Direction, Result};

use super::cases::Case;

/// The result of a case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// I/Os and bytes of the first job's workers: read, written. Reads for verification are not counted.
    pub(crate) directions: [(u64, u64); 2],
    /// The reason for which nothing was started.
    pub(crate) refused: Option<String>,
    /// The error of a worker, or of a worker of the second job.
    pub(crate) failed: Option<String>,
}

impl Totals {
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    pub(crate) fn did_nothing(&self) -> bool {
        self.is_refused() || self.sum().0 == 0
    }

    pub(crate) fn sum(&self) -> (u64, u64) {
        let [(ios, bytes), (more, more_bytes)] = self.directions;
        (ios + more, bytes + more_bytes)
    }
}

struct Nobody;

impl IoWatcher for Nobody {
    fn event(&mut self, _event: &IoEvent<'_>) {}
}

/// Both tools and their working directory.
pub(crate) struct Both {
    directory: tempfile::TempDir,
}

impl Both {
    /// `None` without the fio version of the reference totals.
    pub(crate) fn new() -> Option<Self> {
        let said = Command::new("fio").arg("--version").output().ok()?;
        if !String::from_utf8_lossy(&said.stdout).starts_with("fio-3.33") {
            return None;
        }
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Some(Self { directory: directory.unwrap() })
    }

    /// Runs a single case.
    pub(crate) fn one(&self, case: &Case) -> (Totals, Totals) {
        self.all(std::slice::from_ref(case)).remove(0)
    }

    /// Kelvin's totals and fio's for each case. fio runs together the cases that Kelvin does not refuse: if one of
    /// them is contradictory, fio runs none. With lfsr each runs alone: with some seeds, which depend on the position
    /// among the jobs, fio draws nothing.
    pub(crate) fn all(&self, cases: &[Case]) -> Vec<(Totals, Totals)> {
        let kelvin: Vec<Totals> = cases.iter().map(|case| self.kelvin(case)).collect();
        let (alone, together): (Vec<usize>, Vec<usize>) =
            (0..cases.len()).partition(|index| kelvin[*index].is_refused() || cases[*index].is_lfsr());
        let mut fio = vec![Totals::default(); cases.len()];
        let some = |indices: &[usize]| indices.iter().map(|index| &cases[*index]).collect::<Vec<_>>();
        match self.fio(&some(&together)) {
            Some(totals) => together.iter().zip(totals).for_each(|(index, totals)| fio[*index] = totals),
            None => together.iter().for_each(|index| fio[*index] = self.fio_alone(&cases[*index])),
        }
        for index in alone {
            fio[index] = self.fio_alone(&cases[index]);
        }
        kelvin.into_iter().zip(fio).collect()
    }

    /// A case with fewer options and the same difference.
    pub(crate) fn shrink(&self, case: &Case) -> Case {
        let mut small = case.clone();
        let what = |case: &Case| {
            let (kelvin, fio) = self.one(case);
            case.differs(&kelvin, &fio)
        };
        let before = what(case);
        let differs = |case: &Case| {
            let saves = case.get("verify").is_some() && case.get("verify_state_save").is_none();
            let usable = case.get("rw").is_some() && case.excluded().is_none() && !saves;
            usable && before.is_some() && what(case) == before
        };
        let mut index = 0;
        while index < small.lines.len() {
            let mut less = small.clone();
            less.lines.remove(index);
            if less.get("verify").is_none() {
                less.after = None;
            }
            if differs(&less) { small = less } else { index += 1 }
        }
        for less in [Case { after: None, ..small.clone() }, Case { there: None, ..small.clone() }] {
            if differs(&less) {
                small = less;
            }
        }
        small
    }

    /// A directory for a case, with its initial files.
    fn place(&self, tool: &str, case: &Case, number: usize) -> PathBuf {
        let directory = self.directory.path().join(format!("{tool}{number}"));
        let _gone = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        if let Some(size) = case.there {
            fs::write(directory.join("data"), vec![0x5a; size as usize]).unwrap();
        }
        directory
    }

    fn kelvin(&self, case: &Case) -> Totals {
        let directory = self.place("kelvin", case, 0);
        match Self::kelvin_in(case, &directory) {
            Ok(totals) => totals,
            Err(error) => Totals { refused: Some(error.to_string()), ..Totals::default() },
        }
    }

    fn kelvin_in(case: &Case, directory: &Path) -> Result<Totals> {
        let jobs = parse_text(&case.text("c0", &directory.display().to_string()), None, &[])?;
        // Nothing is written to the working directory, which is the source tree.
        let options = RunOptions {
            log_directory: Some(directory.to_owned()),
            aux_directory: Some(directory.to_owned()),
            ..RunOptions::default()
        };
        let outcome = run(prepare(&jobs, &options)?, &options, &Stop::new(), &mut Nobody)?;
        let mut totals = Totals::default();
        for worker in &outcome.workers {
            totals.failed = totals.failed.or_else(|| worker.error.clone().map(|(_, message)| message));
            for target in worker.targets.iter().filter(|_| worker.job == 0) {
                for (place, direction) in [Direction::Read, Direction::Write].into_iter().enumerate() {
                    totals.directions[place].0 += target.directions[direction].ios;
                    totals.directions[place].1 += target.directions[direction].bytes;
                }
            }
        }
        Ok(totals)
    }

    fn fio_alone(&self, case: &Case) -> Totals {
        let refused = || Totals { refused: Some("fio says nothing".into()), ..Totals::default() };
        self.fio(&[case]).map_or_else(refused, |mut totals| totals.remove(0))
    }

    /// All in one process, one after another. `None` if fio refuses one of them.
    fn fio(&self, cases: &[&Case]) -> Option<Vec<Totals>> {
        let mut text = String::new();
        for (number, case) in cases.iter().enumerate() {
            let directory = self.place("fio", case, number);
            text += &case.text(&format!("c{number}"), &directory.display().to_string());
        }
        if cases.is_empty() {
            return Some(Vec::new());
        }
        let file = self.directory.path().join("jobs.fio");
        let output = self.directory.path().join("fio.json");
        fs::write(&file, text).unwrap();
        let _gone = fs::remove_file(&output);
        let mut fio = Command::new("timeout");
        // A job that draws endlessly ignores the first signal.
        fio.current_dir(self.directory.path()).args([
            "--kill-after=5",
            "60",
            "fio",
            "--output-format=json",
            "--eta=never",
            "--output",
        ]);
        let ended = fio.arg(&output).arg(&file).output().ok()?;
        // A stopped run has results, too, but none for jobs after the one that did not end.
        if matches!(ended.status.code(), Some(124 | 137) | None) {
            return None;
        }
        let text = fs::read_to_string(&output).ok()?;
        // Notes precede and follow the object.
        let json = &text[text.find("\n{").map_or(0, |at| at + 1)..];
        let json = &json[..json.rfind("\n}")? + 2];
        let json: serde_json::Value = serde_json::from_str(json).ok()?;
        let mut all = vec![Totals::default(); cases.len()];
        for job in json["jobs"].as_array()? {
            let name = job["jobname"].as_str()?;
            let first = name.strip_suffix('v');
            let totals = all.get_mut(first.unwrap_or(name)[1..].parse::<usize>().ok()?)?;
            if job["error"].as_i64()? != 0 {
                totals.failed = Some(format!("error {}", job["error"]));
            }
            let case = cases[first.unwrap_or(name)[1..].parse::<usize>().ok()?];
            let verifies =
                case.get("verify").is_some() && case.get("rw").is_some_and(|rw| !rw.contains("read"));
            for (place, direction) in ["read", "write"].into_iter().enumerate() {
                // fio's reads include a verifying pass.
                if first.is_none() && !(verifies && place == 0) {
                    totals.directions[place].0 += job[direction]["total_ios"].as_u64()?;
                    totals.directions[place].1 += job[direction]["io_bytes"].as_u64()?;
                }
            }
        }
        Some(all)
    }
}
