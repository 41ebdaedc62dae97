//! A disk on its own: one request at a time, bypassing the page cache, in a file that no other process uses.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::directory::{Scratch, aligned, fill};
use super::{Baseline, BaselineMetricKind, Interrupted};
use crate::host::Filesystem;

const PAGE: usize = 8192;
const BLOCK: usize = 1 << 20;

/// Alignment that every device takes.
const SECTOR: usize = 4096;
pub(super) const MOST_BYTES: u64 = 1 << 30;
const LEAST_BYTES: u64 = 16 << 20;

/// Each of the four parts ends after so long.
const LIMIT: Duration = Duration::from_secs(3);

pub(super) fn measure(
    baseline: &mut Baseline,
    directory: &Path,
    most: u64,
    begin: &mut dyn FnMut(&str) -> Result<(), Interrupted>,
) -> Result<(), Interrupted> {
    let Some(found) = Filesystem::containing(directory) else {
        baseline.miss("disk", format!("{} cannot be read", directory.display()));
        return Ok(());
    };
    let words = format!("{} on {} ({})", found.kind, found.mount_point, found.source);
    baseline.add_fact("disk.file-system", "disk test file system", words);
    let bytes = size(found.free_bytes, most);
    if bytes < LEAST_BYTES {
        let free = found.free_bytes >> 20;
        let why = format!("10 % of the {free} MiB free in {} is too little", directory.display());
        baseline.miss("disk", why);
        return Ok(());
    }
    let (scratch, direct) = match open(directory) {
        Ok(opened) => opened,
        Err(error) => {
            baseline.miss("disk", format!("{}: {error}", directory.display()));
            return Ok(());
        }
    };
    let way = if direct { "O_DIRECT" } else { "buffered (page cache): O_DIRECT is not supported here" };
    baseline.add_fact("disk.way", "disk test I/O mode", way);
    let mut buffer = vec![0; BLOCK + SECTOR];
    let Some(block) = aligned(&mut buffer, SECTOR, BLOCK) else { return Ok(()) };
    fill(block, 1);
    begin("disk, sequential write")?;
    let written = match write(&scratch.file, block, bytes) {
        Ok((written, speed)) if written >= LEAST_BYTES => {
            put(baseline, "disk.write", "disk, sequential write", speed, written);
            written
        }
        Ok(_) => {
            baseline.miss("disk", format!("less than {} MiB written in {LIMIT:?}", LEAST_BYTES >> 20));
            return Ok(());
        }
        Err(error) => {
            baseline.miss("disk", format!("{}: {error}", directory.display()));
            return Ok(());
        }
    };
    begin("disk, sequential read")?;
    match read(&scratch.file, block, written) {
        Ok((bytes, speed)) => put(baseline, "disk.read", "disk, sequential read", speed, bytes),
        Err(error) => baseline.miss("disk, sequential read", error.to_string()),
    }
    let page = &mut block[..PAGE];
    for (name, what, writes) in [
        ("disk.random-read", "disk, random 8 kB read", false),
        ("disk.random-write", "disk, random 8 kB write", true),
    ] {
        begin(what)?;
        match random(&scratch.file, page, written, writes) {
            Ok(mut times) => baseline.put_latency(name, what, &mut times),
            Err(error) => baseline.miss(what, error.to_string()),
        }
    }
    Ok(())
}

fn put(baseline: &mut Baseline, name: &str, label: &str, speed: f64, bytes: u64) {
    baseline.put(name, label, speed, "MB/s", BaselineMetricKind::Bandwidth, bytes / BLOCK as u64);
}

/// At most 10 % of the free space, in whole blocks.
fn size(free: u64, most: u64) -> u64 {
    most.min(free / 10) / BLOCK as u64 * BLOCK as u64
}

/// The file, and whether it goes past the page cache.
fn open(directory: &Path) -> io::Result<(Scratch, bool)> {
    match Scratch::make(directory, OFlags::DIRECT.bits() as i32) {
        Ok(scratch) => Ok((scratch, true)),
        // Memory and some network filesystems have no direct I/O.
        Err(_) => Scratch::make(directory, 0).map(|scratch| (scratch, false)),
    }
}

/// Writes blocks until there are `bytes` or the time is up; how many bytes, and MB a second with the last sync.
fn write(file: &File, block: &[u8], bytes: u64) -> io::Result<(u64, f64)> {
    let (mut done, since) = (0, Instant::now());
    while done < bytes && since.elapsed() < LIMIT {
        file.write_all_at(block, done)?;
        done += block.len() as u64;
    }
    file.sync_data()?;
    Ok((done, done as f64 / 1e6 / since.elapsed().as_secs_f64()))
}

fn read(file: &File, block: &mut [u8], bytes: u64) -> io::Result<(u64, f64)> {
    let (mut done, since) = (0, Instant::now());
    while done < bytes && since.elapsed() < LIMIT {
        file.read_exact_at(block, done)?;
        done += block.len() as u64;
    }
    Ok((done, done as f64 / 1e6 / since.elapsed().as_secs_f64()))
}

/// Times of requests for pages in random order.
fn random(file: &File, page: &mut [u8], bytes: u64, writes: bool) -> io::Result<Vec<u64>> {
    let pages = bytes / PAGE as u64;
    let (mut times, mut state, since) = (Vec::with_capacity(1 << 16), 0x6b65_6c76_u64, Instant::now());
    while times.len() < 1 << 16 && since.elapsed() < LIMIT / 2 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let place = ((u128::from(state) * u128::from(pages)) >> 64) as u64 * PAGE as u64;
        let before = Instant::now();
        if writes {
            file.write_all_at(page, place)?;
        } else {
            file.read_exact_at(page, place)?;
        }
        times.push(before.elapsed().as_nanos() as u64);
    }
    if writes {
        file.sync_data()?;
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_never_fills_the_file_system() {
        assert_eq!(size(100 << 30, MOST_BYTES), 1 << 30);
        assert_eq!(size(1 << 30, MOST_BYTES), 102 << 20);
        assert_eq!(size(100 << 20, MOST_BYTES), 10 << 20);
    }

    #[test]
    fn a_disk_has_its_figures_and_keeps_nothing() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut baseline = Baseline::new();
        let mut heard = 0;
        measure(&mut baseline, directory.path(), 64 << 20, &mut |_| {
            heard += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(heard, 4, "{baseline:?}");
        for name in ["disk.write", "disk.read", "disk.random-read.p50", "disk.random-write.p50"] {
            assert!(baseline.figure(name).is_some_and(|v| v > 0.01 && v < 1e7), "{name}: {baseline:?}");
        }
        let stopped = measure(&mut baseline, directory.path(), 64 << 20, &mut |_| Err(Interrupted));
        assert_eq!(stopped, Err(Interrupted));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
