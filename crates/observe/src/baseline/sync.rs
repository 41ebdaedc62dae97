//! What a commit waits for: 8 kB written over what is there already, and `fdatasync`.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::fdatasync;

use super::Baseline;
use super::directory::{Scratch, fill};
use crate::host::Filesystem;

/// A page of a database.
const PAGE: usize = 8192;

/// Length of the file: written before, as a database's log is, so that no commit has to lengthen it.
const PAGES: u64 = 512;
const MOST: usize = 5000;
const LIMIT: Duration = Duration::from_millis(1500);

pub(super) fn measure(baseline: &mut Baseline, directory: &Path) {
    if let Some(found) = Filesystem::containing(directory) {
        let words = format!("{} on {} ({})", found.kind, found.mount_point, found.source);
        baseline.add_fact("sync.file-system", "fdatasync file system", words);
    }
    match syncs(directory) {
        Ok(mut times) => baseline.put_latency("sync", "fdatasync of 8 kB", &mut times),
        Err(error) => baseline.miss("fdatasync", format!("{}: {error}", directory.display())),
    }
}

fn syncs(directory: &Path) -> io::Result<Vec<u64>> {
    let scratch = Scratch::make(directory, 0)?;
    let mut page = [0; PAGE];
    fill(&mut page, 1);
    for number in 0..PAGES {
        scratch.file.write_all_at(&page, number * PAGE as u64)?;
    }
    scratch.file.sync_all()?;
    let (mut times, since) = (Vec::with_capacity(MOST), Instant::now());
    while times.len() < MOST && since.elapsed() < LIMIT {
        let place = (times.len() as u64 % PAGES) * PAGE as u64;
        let before = Instant::now();
        scratch.file.write_all_at(&page, place)?;
        fdatasync(&scratch.file)?;
        times.push(before.elapsed().as_nanos() as u64);
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;

    #[test]
    fn a_sync_takes_its_time_and_leaves_nothing() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut baseline = Baseline::new();
        measure(&mut baseline, directory.path());
        measured(&baseline, "sync.p50");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let mut baseline = Baseline::new();
        measure(&mut baseline, Path::new("/no/such"));
        assert!(baseline.figures.is_empty() && baseline.absent[0].why.contains("/no/such"), "{baseline:?}");
    }
}
