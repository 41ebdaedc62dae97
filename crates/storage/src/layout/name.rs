//! The names of a worker's files, as in fio.

use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

use crate::job::Job;

/// The name of a worker's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkerFileName {
    /// The file or device.
    pub path: PathBuf,
    /// It was derived from the job's name or a format, so that directories in it may be created. A name that the user
    /// gave is used unchanged: a missing directory is a typing error.
    pub made: bool,
}

/// The names of a clone's files, in order.
pub(super) fn target_names(job: &Job, clone: u32) -> Vec<WorkerFileName> {
    let targets = &job.targets;
    if !targets.filenames.is_empty() {
        // All clones share explicitly named files, in the first of the directories.
        let directory = targets.directories.first().cloned().unwrap_or_default();
        let named = |name: &PathBuf| WorkerFileName { path: directory.join(name), made: false };
        return targets.filenames.iter().map(named).collect();
    }
    if targets.files <= 1 && is_device(&job.name) {
        return vec![WorkerFileName { path: PathBuf::from(&job.name), made: false }];
    }
    let count = targets.directories.len().max(1);
    let directory = targets.directories.get(clone as usize % count).cloned().unwrap_or_default();
    (0..targets.files.max(1))
        .map(|file| {
            let name = formatted(&targets.filename_format, &job.name, clone, file);
            WorkerFileName { path: directory.join(name.trim_start_matches('/')), made: true }
        })
        .collect()
}

/// A section may have the name of the device that it uses.
fn is_device(name: &str) -> bool {
    std::fs::metadata(name).is_ok_and(|m| m.file_type().is_block_device() || m.file_type().is_char_device())
}

/// A name from a format. Unknown variables are left unchanged.
fn formatted(format: &str, job: &str, clone: u32, file: u32) -> String {
    let mut name = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('$') {
        name.push_str(&rest[..at]);
        let variable = &rest[at..];
        // The client's address is that of a remote machine. Here there is none.
        let values = [
            ("$jobname", job.to_owned()),
            ("$jobnum", clone.to_string()),
            ("$filenum", file.to_string()),
            ("$clientuid", String::new()),
        ];
        let found = values.into_iter().find(|(word, _)| variable.starts_with(word));
        let length = if let Some((word, value)) = found {
            name.push_str(&value);
            word.len()
        } else {
            name.push('$');
            1
        };
        rest = &variable[length..];
    }
    name.push_str(rest);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_and_the_rest_is_left() {
        assert_eq!(formatted("$jobname.$jobnum.$filenum", "rand", 2, 7), "rand.2.7");
        assert_eq!(formatted("$jobnum/f_$filenum$", "a$jobnum", 0, 1), "0/f_1$");
        assert_eq!(formatted("$jobname-$else", "a$jobnum", 0, 1), "a$jobnum-$else");
        assert_eq!(formatted("x$clientuid", "a", 0, 1), "x");
    }
}
