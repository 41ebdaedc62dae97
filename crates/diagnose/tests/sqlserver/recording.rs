//! A recording of a SQL Server's answers (`recordings/README.md`), and an engine that gives them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kelvin_database::{
    BulkLoad, BulkTable, Cancel, Capabilities, Cell, Engine, EngineKind, Error, ErrorClass, Fingerprint,
    Result, Rows, ServerCounters, Session, Statement, TransactionControl, Value,
};
use kelvin_measure::Clock;

/// A field of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Field {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
}

impl Field {
    fn read(text: &str, directory: &Path) -> Self {
        let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        match (quoted, text.strip_prefix('<')) {
            (Some(text), _) => Self::Text(text.into()),
            (None, Some(file)) if !file.starts_with('>') => {
                Self::Text(std::fs::read_to_string(directory.join(file.trim())).unwrap())
            }
            _ if text == "NULL" => Self::Null,
            _ => text
                .parse()
                .map(Self::Int)
                .or_else(|_| text.parse().map(Self::Float))
                .unwrap_or_else(|_| Self::Text(text.into())),
        }
    }

    pub(crate) fn number(&self) -> f64 {
        match self {
            Self::Int(value) => *value as f64,
            Self::Float(value) => *value,
            other => panic!("{other:?} is no number"),
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Answer {
    at: f64,
    rows: Vec<Vec<Field>>,
}

/// The answers to one statement.
#[derive(Debug, Clone, Default)]
struct Part {
    columns: Vec<String>,
    answers: Vec<Answer>,
    error: Option<String>,
}

/// All parts of a recording.
#[derive(Debug)]
pub(crate) struct Recording {
    parts: BTreeMap<String, Part>,
}

impl Recording {
    pub(crate) fn read(name: &str) -> Self {
        // The command's tests read them as well.
        let directory =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../diagnose/tests/sqlserver/recordings");
        let text = std::fs::read_to_string(directory.join(format!("{name}.txt"))).unwrap();
        let mut parts: BTreeMap<String, Part> = BTreeMap::new();
        let mut part = None;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(other) = line.strip_prefix("like ") {
                parts = Self::read(other).parts;
            } else if let Some(name) = line.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
                parts.insert(name.into(), Part::default());
                part = Some(name.to_owned());
            } else {
                let part = parts.get_mut(part.as_ref().unwrap()).unwrap();
                part.line(line, &directory).unwrap_or_else(|| panic!("{name}: {line}"));
            }
        }
        Self { parts }
    }

    /// The rows of a part at a moment, when it is asked for the `asked`th time.
    pub(crate) fn rows(
        &self,
        name: &str,
        at: f64,
        asked: u64,
    ) -> std::result::Result<Vec<Vec<Field>>, String> {
        let part = self.parts.get(name).ok_or_else(|| format!("Invalid object name ({name})"))?;
        match &part.error {
            Some(error) => Err(error.clone()),
            None => Ok(part.rows(at, asked)),
        }
    }
}

impl Part {
    fn line(&mut self, line: &str, directory: &Path) -> Option<()> {
        if let Some(error) = line.strip_prefix("! ") {
            self.error = Some(error.into());
        } else if let Some(at) = line.strip_prefix("@ ") {
            self.answers.push(Answer { at: at.parse().ok()?, rows: Vec::new() });
        } else if self.columns.is_empty() {
            self.columns = line.split('|').map(|name| name.trim().to_owned()).collect();
            self.answers.push(Answer::default());
        } else {
            let row: Vec<Field> = line.split('|').map(|field| Field::read(field.trim(), directory)).collect();
            (row.len() == self.columns.len()).then_some(())?;
            self.answers.last_mut()?.rows.push(row);
        }
        Some(())
    }

    fn rows(&self, at: f64, asked: u64) -> Vec<Vec<Field>> {
        let next = self.answers.iter().position(|answer| answer.at > at).unwrap_or(self.answers.len()).max(1);
        let now = &self.answers[next - 1];
        // Between two answers, or onwards from the last two.
        let ends = match (self.answers.get(next), next) {
            (Some(later), _) => Some((now, later)),
            (None, 2..) => Some((&self.answers[next - 2], now)),
            (None, _) => None,
        };
        let sampled = self.columns.first().is_some_and(|name| name == "%");
        let mut found = Vec::new();
        for (number, row) in now.rows.iter().enumerate() {
            let mut row = row.clone();
            for (column, _) in self.columns.iter().enumerate().filter(|(_, name)| name.ends_with('+')) {
                let Some((first, second)) = ends else { continue };
                let value = |answer: &Answer| answer.rows[number][column].number();
                let (from, to) = (value(first), value(second));
                let grown = from + (to - from) * (at - first.at) / (second.at - first.at);
                row[column] = match row[column] {
                    Field::Int(_) => Field::Int(grown.round() as i64),
                    _ => Field::Float(grown),
                };
            }
            if sampled {
                let share = row.remove(0).number();
                // Multiples of the golden ratio are spread evenly, whichever of the questions are looked at.
                if (asked as f64 * 0.618_034 + number as f64 * 0.37).fract() >= share {
                    continue;
                }
            }
            found.push(row);
        }
        found
    }
}

/// A server that answers as it was recorded, by a clock of the test's.
pub(crate) struct Replay {
    pub(crate) recording: Arc<Recording>,
    pub(crate) clock: Clock,
    asked: Arc<Mutex<HashMap<String, u64>>>,
}

impl Replay {
    pub(crate) fn new(name: &str, clock: Clock) -> Self {
        Self { recording: Arc::new(Recording::read(name)), clock, asked: Arc::default() }
    }
}

struct ReplaySession {
    recording: Arc<Recording>,
    clock: Clock,
    asked: Arc<Mutex<HashMap<String, u64>>>,
}

struct NoCancel;

impl Cancel for NoCancel {
    fn cancel(&self) -> Result<()> {
        Ok(())
    }
}

fn not_here() -> Error {
    Error::usage("a recording only answers queries")
}

impl Session for ReplaySession {
    fn engine(&self) -> EngineKind {
        EngineKind::SqlServer
    }

    fn control(&mut self, _: TransactionControl) -> Result<()> {
        Err(not_here())
    }

    fn queue_control(&mut self, _: TransactionControl) -> Result<()> {
        Err(not_here())
    }

    fn prepare(&mut self, _: &str) -> Result<Statement> {
        Err(not_here())
    }

    fn execute(&mut self, _: Statement, _: &[Value<'_>], _: &mut Rows) -> Result<()> {
        Err(not_here())
    }

    fn queue(&mut self, _: Statement, _: &[Value<'_>]) -> Result<()> {
        Err(not_here())
    }

    fn flush(&mut self, _: &mut Vec<Rows>) -> Result<()> {
        Err(not_here())
    }

    /// What sets the session.
    fn run(&mut self, sql: &str) -> Result<()> {
        assert!(sql.starts_with("SET "), "{sql}");
        Ok(())
    }

    fn query(&mut self, sql: &str) -> Result<Rows> {
        let name = sql.strip_prefix("/* kelvin ").and_then(|sql| sql.split_once(" */"));
        let (name, _) = name.unwrap_or_else(|| panic!("a statement without a name: {sql}"));
        let mut asked = self.asked.lock().unwrap();
        let asked = asked.entry(name.to_owned()).or_default();
        let answer = self.recording.rows(name, self.clock.now() as f64 / 1e9, *asked);
        *asked += 1;
        let answer = answer.map_err(|why| Error::new(ErrorClass::Statement, why))?;
        let mut rows = Rows::new();
        rows.reset(answer.first().map_or(1, Vec::len), false);
        for field in answer.iter().flatten() {
            match field {
                Field::Null => rows.push(Cell::Null),
                Field::Int(value) => rows.push(Cell::Int(*value)),
                Field::Float(value) => rows.push(Cell::Float(*value)),
                Field::Text(text) => rows.push_text(text.as_bytes())?,
            }
        }
        Ok(rows)
    }

    fn bulk_load<'a>(&'a mut self, _: &'a BulkTable<'a>) -> Result<Box<dyn BulkLoad + 'a>> {
        Err(not_here())
    }

    fn in_transaction(&self) -> bool {
        false
    }

    fn is_broken(&self) -> bool {
        false
    }

    fn set_timeout(&mut self, _: Option<Duration>) -> Result<()> {
        Ok(())
    }

    fn cancel(&self) -> Box<dyn Cancel> {
        Box::new(NoCancel)
    }
}

impl Engine for Replay {
    fn kind(&self) -> EngineKind {
        EngineKind::SqlServer
    }

    fn describe(&self) -> String {
        "sqlserver://sa@recorded/tpcc".into()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { session_state: true, ..Capabilities::default() }
    }

    fn connect(&self) -> Result<Box<dyn Session>> {
        Ok(Box::new(ReplaySession {
            recording: Arc::clone(&self.recording),
            clock: self.clock.clone(),
            asked: Arc::clone(&self.asked),
        }))
    }

    fn fingerprint(&self, _: &mut dyn Session) -> Result<Fingerprint> {
        Err(not_here())
    }

    fn counters(&self, _: &mut dyn Session) -> Result<Option<ServerCounters>> {
        Ok(None)
    }

    fn size(&self, _: &mut dyn Session) -> Result<u64> {
        Err(not_here())
    }

    fn data_directory(&self, _: &mut dyn Session) -> Option<PathBuf> {
        None
    }

    fn checkpoint(&self, _: &mut dyn Session) -> Result<()> {
        Err(not_here())
    }
}
