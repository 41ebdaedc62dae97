//! Files and devices, how large, how they are made.

use super::entry::{OptionEntry, ValueKind, ignored, option};
use crate::job::{Fadvise, Fallocate, LockFile};
use crate::jobfile::lists;
use crate::jobfile::special::distribution;
use crate::jobfile::value::Value;

const FALLOCATE: &[(&str, &str)] = &[
    ("native", "the filesystem's native method, if any"),
    ("none", "do not preallocate space"),
    ("0", "same as none"),
    ("posix", "posix_fallocate, which may write zeros"),
    ("1", "same as posix"),
    ("keep", "preallocate without changing the file size"),
    ("truncate", "set the size; the file is sparse"),
];

const FADVISE: &[(&str, &str)] = &[
    ("1", "by the I/O pattern: sequential or random"),
    ("0", "none"),
    ("sequential", "POSIX_FADV_SEQUENTIAL"),
    ("random", "POSIX_FADV_RANDOM"),
    ("noreuse", "POSIX_FADV_NOREUSE"),
];

const WRITE_HINT: &[(&str, &str)] = &[
    ("none", "no particular lifetime"),
    ("short", "short lifetime"),
    ("medium", "medium lifetime"),
    ("long", "long lifetime"),
    ("extreme", "very long lifetime"),
];

const LOCK: &[(&str, &str)] = &[
    ("none", "no locking"),
    ("exclusive", "one worker at a time"),
    ("readwrite", "many readers or one writer"),
];

/// A file's sizes: one, or from one to another.
fn sizes(value: &Value<'_>) -> Result<(u64, u64), String> {
    Value::range_of(value.text()?, |part| value.count_of(part, 1))
}

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option("filename", ValueKind::Paths, "files and devices to read and write", |draft, value| {
        let paths = lists::paths(value.text()?);
        if paths.is_empty() {
            return Err("no path is given".into());
        }
        if paths.iter().any(|path| path.as_os_str() == "-") {
            return Err("standard input and output (-) are not storage: name a file or a device".into());
        }
        draft.job.targets.filenames = paths;
        Ok(())
    }),
    option(
        "directory",
        ValueKind::Paths,
        "directory for files; several are distributed over the workers",
        |draft, value| {
            draft.job.targets.directories = lists::paths(value.text()?);
            if draft.job.targets.directories.is_empty() { Err("no path is given".into()) } else { Ok(()) }
        },
    ),
    option("filename_format", ValueKind::Text, "format of generated file names", |draft, value| {
        value.text()?.clone_into(&mut draft.job.targets.filename_format);
        Ok(())
    })
    .default("$jobname.$jobnum.$filenum"),
    ignored(
        "unique_filename",
        ValueKind::Bool,
        "add the client address to file names",
        "there are no clients",
        |draft, value| {
            draft.job.targets.unique_filename = value.boolean()?;
            Ok(())
        },
    )
    .default("1"),
    option("opendir", ValueKind::Text, "all files below this directory", |draft, value| {
        draft.open_directory = Some(value.text()?.into());
        Ok(())
    }),
    option("nrfiles", ValueKind::Number, "number of files per worker", |draft, value| {
        draft.job.targets.files = value.small(1..=u32::MAX)?;
        Ok(())
    })
    .alias(&["nr_files"])
    .default("1"),
    option("openfiles", ValueKind::Number, "number of files open at a time", |draft, value| {
        draft.job.targets.open_files = Some(value.small(0..=u32::MAX)?).filter(|open| *open > 0);
        Ok(())
    }),
    option(
        "file_service_type",
        ValueKind::Words(distribution::SERVICE),
        "how the file for the next I/O is selected",
        |draft, value| {
            draft.job.targets.service = distribution::service(value)?;
            Ok(())
        },
    )
    .default("roundrobin"),
    option(
        "size",
        ValueKind::Amount,
        "total size of a worker's files, or percent of the target",
        |draft, value| {
            let amount = value.amount()?;
            draft.job.targets.size = (amount != crate::job::Amount::Bytes(0)).then_some(amount);
            Ok(())
        },
    ),
    option("filesize", ValueKind::Range, "size of each file, random within the range", |draft, value| {
        draft.job.targets.file_size = Some(sizes(value)?);
        Ok(())
    }),
    option("io_size", ValueKind::Amount, "bytes that a worker transfers; default is size", |draft, value| {
        let amount = value.amount()?;
        draft.job.targets.io_size = (amount != crate::job::Amount::Bytes(0)).then_some(amount);
        Ok(())
    })
    .alias(&["io_limit"]),
    option("number_ios", ValueKind::Number, "end after this many I/Os", |draft, value| {
        draft.job.targets.number_ios = Some(value.count(0)?).filter(|number| *number > 0);
        Ok(())
    }),
    option("offset", ValueKind::Amount, "start of the region", |draft, value| {
        draft.job.targets.offset = value.amount()?;
        Ok(())
    })
    .alias(&["fileoffset"])
    .default("0"),
    option("offset_align", ValueKind::Size, "alignment of an offset in percent", |draft, value| {
        draft.job.targets.offset_align = value.count(0)?;
        Ok(())
    })
    .default("0, the smallest block size"),
    option("offset_increment", ValueKind::Amount, "offset added for each further worker", |draft, value| {
        draft.job.targets.offset_increment = value.amount()?;
        Ok(())
    })
    .default("0"),
    option("fill_device", ValueKind::Bool, "write until no space is left", |draft, value| {
        draft.job.targets.fill_device = value.boolean()?;
        Ok(())
    })
    .alias(&["fill_fs"])
    .default("0"),
    option("file_append", ValueKind::Bool, "start at the end of the file", |draft, value| {
        draft.job.targets.append = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("create_serialize", ValueKind::Bool, "lay out files one worker at a time", |draft, value| {
        draft.job.targets.create_serialize = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("create_fsync", ValueKind::Bool, "fsync files after laying them out", |draft, value| {
        draft.job.targets.create_fsync = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("create_on_open", ValueKind::Bool, "do not lay out files: create them on open", |draft, value| {
        draft.job.targets.create_on_open = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("create_only", ValueKind::Bool, "only lay out the files", |draft, value| {
        draft.job.targets.create_only = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("allow_file_create", ValueKind::Bool, "allow missing files to be created", |draft, value| {
        draft.job.targets.allow_create = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("allow_mounted_write", ValueKind::Bool, "allow writes to a mounted device", |draft, value| {
        draft.job.targets.allow_mounted_write = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option(
        "pre_read",
        ValueKind::Bool,
        "read the files into the page cache before the job",
        |draft, value| {
            draft.job.targets.pre_read = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option(
        "invalidate",
        ValueKind::Bool,
        "drop the files from the page cache before the job",
        |draft, value| {
            draft.job.targets.invalidate = value.boolean()?;
            Ok(())
        },
    )
    .default("1"),
    option("unlink", ValueKind::Bool, "delete the files after the job", |draft, value| {
        draft.job.targets.unlink = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("unlink_each_loop", ValueKind::Bool, "delete the files after each pass", |draft, value| {
        draft.job.targets.unlink_each_loop = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("fallocate", ValueKind::Words(FALLOCATE), "how files are preallocated", |draft, value| {
        draft.job.targets.fallocate = match value.word(FALLOCATE)? {
            "none" | "0" => Fallocate::None,
            "posix" | "1" => Fallocate::Posix,
            "keep" => Fallocate::Keep,
            "truncate" => Fallocate::Truncate,
            _ => Fallocate::Native,
        };
        Ok(())
    })
    .default("native"),
    option("fadvise_hint", ValueKind::Words(FADVISE), "access pattern hint to the kernel", |draft, value| {
        draft.job.targets.fadvise = match value.word(FADVISE)? {
            "0" => Fadvise::Off,
            "sequential" => Fadvise::Sequential,
            "random" => Fadvise::Random,
            "noreuse" => Fadvise::NoReuse,
            _ => Fadvise::ByPattern,
        };
        Ok(())
    })
    .default("1"),
    option("write_hint", ValueKind::Words(WRITE_HINT), "lifetime hint for written data", |draft, value| {
        let word = value.word(WRITE_HINT)?;
        let place = WRITE_HINT.iter().position(|(known, _)| *known == word).unwrap_or(0);
        // The kernel counts from 1 for none.
        draft.job.targets.write_hint = Some(place as u64 + 1);
        Ok(())
    }),
    option("lockfile", ValueKind::Words(LOCK), "file locking between workers", |draft, value| {
        draft.job.targets.lock = match value.word(LOCK)? {
            "exclusive" => LockFile::Exclusive,
            "readwrite" => LockFile::ReadWrite,
            _ => LockFile::None,
        };
        Ok(())
    })
    .default("none"),
];
