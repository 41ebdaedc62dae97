//! `ioscheduler=`: another I/O scheduler for the devices of a run, restored at its end.

use kelvin_host::disk::whole_disk;
use std::fs;
use std::path::PathBuf;

use crate::{Error, Result};
use kelvin_host::SystemTree;

fn file(tree: &SystemTree, device: &str) -> PathBuf {
    tree.path(format!("/sys/block/{}/queue/scheduler", whole_disk(tree, device)))
}

/// The schedulers that a device offers, and its current one, from text such as `[mq-deadline] none`.
fn offered(text: &str) -> (Vec<&str>, Option<&str>) {
    let bare = |word: &'_ str| word.starts_with('[') && word.ends_with(']');
    let names = text.split_whitespace().map(|word| word.trim_matches(['[', ']'])).collect();
    let chosen = text.split_whitespace().find(|word| bare(word)).map(|word| word.trim_matches(['[', ']']));
    (names, chosen)
}

/// Checks whether the device offers the scheduler; otherwise returns the problem.
pub(super) fn check(tree: &SystemTree, device: &str, scheduler: &str) -> std::result::Result<(), String> {
    let Ok(text) = fs::read_to_string(file(tree, device)) else {
        return Err(format!("ioscheduler={scheduler}: {device} has no scheduler"));
    };
    let (names, _) = offered(&text);
    if names.contains(&scheduler) {
        return Ok(());
    }
    Err(format!("ioscheduler={scheduler}: {device} offers {}", names.join(", ")))
}

/// Schedulers that were changed; restored when dropped.
#[derive(Debug, Default)]
pub(super) struct Schedulers {
    changed: Vec<(PathBuf, String)>,
}

impl Schedulers {
    /// Sets the scheduler of a device's disk. Returns a note for the user if that changed anything.
    pub(super) fn choose(
        &mut self,
        tree: &SystemTree,
        device: &str,
        scheduler: &str,
    ) -> Result<Option<String>> {
        let file = file(tree, device);
        let failed = || Error::system(format!("cannot set ioscheduler={scheduler} of {device}"));
        let text = fs::read_to_string(&file).map_err(failed())?;
        let (_, chosen) = offered(&text);
        let before = chosen.unwrap_or("none").to_owned();
        if before == scheduler {
            return Ok(None);
        }
        fs::write(&file, scheduler).map_err(failed())?;
        let note = format!("the I/O scheduler of {device} was {before} and is {scheduler} during the run");
        // The first one is the original scheduler from before the run.
        if self.changed.iter().all(|(other, _)| *other != file) {
            self.changed.push((file, before));
        }
        Ok(Some(note))
    }
}

impl Drop for Schedulers {
    fn drop(&mut self) {
        for (file, before) in self.changed.drain(..) {
            let _ = fs::write(file, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_is_changed_and_put_back_and_one_that_is_not_offered_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let queue = root.path().join("sys/block/vda/queue");
        fs::create_dir_all(&queue).unwrap();
        let file = queue.join("scheduler");
        fs::write(&file, "[mq-deadline] kyber none\n").unwrap();
        let tree = SystemTree::at(root.path());
        assert_eq!(check(&tree, "vda", "kyber"), Ok(()));
        assert_eq!(
            check(&tree, "vda", "bfq").unwrap_err(),
            "ioscheduler=bfq: vda offers mq-deadline, kyber, none"
        );
        assert!(check(&tree, "vdb", "none").unwrap_err().contains("has no scheduler"));
        let mut schedulers = Schedulers::default();
        assert_eq!(schedulers.choose(&tree, "vda", "mq-deadline").unwrap(), None);
        let note = schedulers.choose(&tree, "vda", "kyber").unwrap();
        assert_eq!(note.unwrap(), "the I/O scheduler of vda was mq-deadline and is kyber during the run");
        assert_eq!(fs::read_to_string(&file).unwrap(), "kyber");
        drop(schedulers);
        assert_eq!(fs::read_to_string(&file).unwrap(), "mq-deadline");
    }
}
