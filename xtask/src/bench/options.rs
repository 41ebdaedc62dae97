//! Options of a benchmark.

use anyhow::{Context, Result, bail};

/// Rows, rounds and seconds.
#[derive(Debug)]
pub(crate) struct Options {
    /// The rows to run; all if empty.
    rows: Vec<String>,
    /// The number of rounds.
    pub(crate) rounds: usize,
    /// Length of a run in seconds.
    pub(crate) seconds: u32,
}

impl Options {
    /// Parses the arguments after the benchmark's name, with the benchmark's default rounds and seconds.
    pub(crate) fn parse(words: &[&str], rounds: usize, seconds: u32) -> Result<Self> {
        let mut options = Self { rows: Vec::new(), rounds, seconds };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let mut number = || -> Result<u32> {
                let text = words.next().with_context(|| format!("{word} needs a number"))?;
                match text.parse() {
                    Ok(number) if number > 0 => Ok(number),
                    _ => bail!("{word} takes a whole number above 0, not {text:?}"),
                }
            };
            match word {
                "--rounds" => options.rounds = number()? as usize,
                "--seconds" => options.seconds = number()?,
                _ if word.starts_with('-') => bail!("there is no option {word}"),
                row => options.rows.push(row.to_owned()),
            }
        }
        Ok(options)
    }

    /// Whether no rows are named, so that all are run.
    pub(crate) fn all_rows(&self) -> bool {
        self.rows.is_empty()
    }

    /// Selects the requested rows; an unknown name is an error.
    pub(crate) fn chosen<'a>(&self, all: &[&'a str]) -> Result<Vec<&'a str>> {
        if let Some(unknown) = self.rows.iter().find(|row| !all.contains(&row.as_str())) {
            bail!("there is no row {unknown:?}; there are {}", all.join(", "));
        }
        let wanted = |name: &&str| self.rows.is_empty() || self.rows.iter().any(|row| row == name);
        Ok(all.iter().copied().filter(wanted).collect())
    }
}
