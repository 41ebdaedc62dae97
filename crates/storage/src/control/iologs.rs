//! `write_iolog=`: the issued I/Os as fio traces, which fio can replay.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use kelvin_measure::Nanos;

use super::Prepared;
use crate::log::{Chunk, Issued};
use crate::stream::replay::IologWriter;
use crate::{Error, Result};

/// The iologs of a run by worker.
pub(super) struct Iologs(Vec<Option<Iolog>>);

struct Iolog {
    path: PathBuf,
    writer: IologWriter<BufWriter<File>>,
    /// The time of the first I/O, which is the log's time zero, and of the last.
    times: Option<(Nanos, Nanos)>,
}

impl Iologs {
    /// Creates the files; those without a directory are in `directory`. The first of several clones has the given
    /// name; the names of the others end in their numbers, since one log cannot contain two workers.
    pub(super) fn new(prepared: &Prepared, directory: &Path) -> Result<Self> {
        let workers = prepared.workers.iter().map(|worker| {
            let Some(given) = &prepared.job(worker).logs.iolog else { return Ok(None) };
            let mut name = given.clone().into_os_string();
            if worker.clone > 0 {
                name.push(format!(".{}", worker.clone));
            }
            let path = directory.join(name);
            let failed = || Error::system(format!("cannot write {}", path.display()));
            let file = File::create(&path).map_err(failed())?;
            let targets = worker.targets.iter().map(|target| target.path.clone()).collect();
            let writer = IologWriter::new(BufWriter::new(file), targets).map_err(failed())?;
            Ok(Some(Iolog { path, writer, times: None }))
        });
        Ok(Self(workers.collect::<Result<_>>()?))
    }

    /// Writes the I/Os issued by a worker.
    pub(super) fn chunk(&mut self, worker: u32, chunk: &Chunk) -> Result<()> {
        let Some(Some(log)) = self.0.get_mut(worker as usize) else { return Ok(()) };
        for (at, issued) in &chunk.issued {
            let begun = log.times.map_or(*at, |times| times.0);
            log.times = Some((begun, *at));
            let since = at.saturating_sub(begun);
            let written = match issued {
                Issued::Io(io) => log.writer.issued(since, io),
                Issued::Sync { target, how } => log.writer.synced(since, *target, *how),
            };
            written.map_err(Error::system(format!("cannot write {}", log.path.display())))?;
        }
        Ok(())
    }

    /// Completes the logs.
    pub(super) fn finish(self) -> Result<()> {
        for log in self.0.into_iter().flatten() {
            let length = log.times.map_or(0, |(begun, last)| last.saturating_sub(begun));
            let done = log.writer.finish(length).map(|_| ());
            done.map_err(Error::system(format!("cannot write {}", log.path.display())))?;
        }
        Ok(())
    }
}
