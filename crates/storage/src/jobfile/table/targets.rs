//! Files and devices, how large, how they are made.

use super::entry::{OptionEntry, ValueKind, ignored, option};
use crate::job::{Fadvise, Fallocate, LockFile};
use crate::jobfile::lists;
use crate::jobfile::special::distribution;
use crate::jobfile::value::Value;

const FALLOCATE: &[(&str, &str)] = &[
    ("native", "the filesystem's own way, where it has one"),
    ("none", "space is not reserved"),
    ("0", "as none"),
    ("posix", "posix_fallocate, which writes where it must"),
    ("1", "as posix"),
    ("keep", "space behind the end, the size stays"),
    ("truncate", "the size is set, the file is a hole"),
];

const FADVISE: &[(&str, &str)] = &[
    ("1", "by the pattern: sequential or random"),
    ("0", "none"),
    ("sequential", "POSIX_FADV_SEQUENTIAL"),
    ("random", "POSIX_FADV_RANDOM"),
    ("noreuse", "POSIX_FADV_NOREUSE"),
];

const WRITE_HINT: &[(&str, &str)] = &[
    ("none", "no lifetime in particular"),
    ("short", "soon overwritten"),
    ("medium", "overwritten some time"),
    ("long", "stays long"),
    ("extreme", "stays very long"),
];

const LOCK: &[(&str, &str)] = &[
    ("none", "no lock"),
    ("exclusive", "one worker at a time"),
    ("readwrite", "many that read, or one that writes"),
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
            return Err("standard input and output (-) are no storage: name a file or a device".into());
        }
        draft.job.targets.filenames = paths;
        Ok(())
    }),
    option(
        "directory",
        ValueKind::Paths,
        "where files are made; workers take several in turn",
        |draft, value| {
            draft.job.targets.directories = lists::paths(value.text()?);
            if draft.job.targets.directories.is_empty() { Err("no path is given".into()) } else { Ok(()) }
        },
    ),
    option(
        "filename_format",
        ValueKind::Text,
        "how files are named that have no filename",
        |draft, value| {
            value.text()?.clone_into(&mut draft.job.targets.filename_format);
            Ok(())
        },
    )
    .default("$jobname.$jobnum.$filenum"),
    ignored(
        "unique_filename",
        ValueKind::Bool,
        "whether files carry the address of a client",
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
    option("nrfiles", ValueKind::Number, "how many files each worker has", |draft, value| {
        draft.job.targets.files = value.small(1..=u32::MAX)?;
        Ok(())
    })
    .alias(&["nr_files"])
    .default("1"),
    option("openfiles", ValueKind::Number, "how many files are open at a time", |draft, value| {
        draft.job.targets.open_files = Some(value.small(0..=u32::MAX)?).filter(|open| *open > 0);
        Ok(())
    }),
    option(
        "file_service_type",
        ValueKind::Words(distribution::SERVICE),
        "which file the next I/O goes to",
        |draft, value| {
            draft.job.targets.service = distribution::service(value)?;
            Ok(())
        },
    )
    .default("roundrobin"),
    option(
        "size",
        ValueKind::Amount,
        "bytes of a worker's files together; percent of what is there",
        |draft, value| {
            let amount = value.amount()?;
            draft.job.targets.size = (amount != crate::job::Amount::Bytes(0)).then_some(amount);
            Ok(())
        },
    ),
    option("filesize", ValueKind::Range, "bytes of each file, drawn from the range", |draft, value| {
        draft.job.targets.file_size = Some(sizes(value)?);
        Ok(())
    }),
    option(
        "io_size",
        ValueKind::Amount,
        "bytes that a worker moves; the size when not given",
        |draft, value| {
            let amount = value.amount()?;
            draft.job.targets.io_size = (amount != crate::job::Amount::Bytes(0)).then_some(amount);
            Ok(())
        },
    )
    .alias(&["io_limit"]),
    option("number_ios", ValueKind::Number, "end after so many I/Os", |draft, value| {
        draft.job.targets.number_ios = Some(value.count(0)?).filter(|number| *number > 0);
        Ok(())
    }),
    option("offset", ValueKind::Amount, "where the region begins", |draft, value| {
        draft.job.targets.offset = value.amount()?;
        Ok(())
    })
    .alias(&["fileoffset"])
    .default("0"),
    option("offset_align", ValueKind::Size, "what an offset in percent is rounded to", |draft, value| {
        draft.job.targets.offset_align = value.count(0)?;
        Ok(())
    })
    .default("0, the smallest length of an I/O"),
    option(
        "offset_increment",
        ValueKind::Amount,
        "how much further each further worker begins",
        |draft, value| {
            draft.job.targets.offset_increment = value.amount()?;
            Ok(())
        },
    )
    .default("0"),
    option("fill_device", ValueKind::Bool, "write until no space is left", |draft, value| {
        draft.job.targets.fill_device = value.boolean()?;
        Ok(())
    })
    .alias(&["fill_fs"])
    .default("0"),
    option("file_append", ValueKind::Bool, "begin at the end of the file", |draft, value| {
        draft.job.targets.append = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option(
        "create_serialize",
        ValueKind::Bool,
        "lay out the files of one worker after the other",
        |draft, value| {
            draft.job.targets.create_serialize = value.boolean()?;
            Ok(())
        },
    )
    .default("1"),
    option("create_fsync", ValueKind::Bool, "fsync a file that was laid out", |draft, value| {
        draft.job.targets.create_fsync = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("create_on_open", ValueKind::Bool, "lay out nothing: opening makes the file", |draft, value| {
        draft.job.targets.create_on_open = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("create_only", ValueKind::Bool, "lay out the files and do nothing else", |draft, value| {
        draft.job.targets.create_only = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("allow_file_create", ValueKind::Bool, "files that are missing may be made", |draft, value| {
        draft.job.targets.allow_create = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("allow_mounted_write", ValueKind::Bool, "a mounted device may be written", |draft, value| {
        draft.job.targets.allow_mounted_write = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("pre_read", ValueKind::Bool, "read the files into the page cache before", |draft, value| {
        draft.job.targets.pre_read = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("invalidate", ValueKind::Bool, "drop the files from the page cache before", |draft, value| {
        draft.job.targets.invalidate = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("unlink", ValueKind::Bool, "delete the files at the end", |draft, value| {
        draft.job.targets.unlink = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("unlink_each_loop", ValueKind::Bool, "delete the files after each pass", |draft, value| {
        draft.job.targets.unlink_each_loop = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("fallocate", ValueKind::Words(FALLOCATE), "how space is reserved for a file", |draft, value| {
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
    option(
        "fadvise_hint",
        ValueKind::Words(FADVISE),
        "what the kernel is told of the order",
        |draft, value| {
            draft.job.targets.fadvise = match value.word(FADVISE)? {
                "0" => Fadvise::Off,
                "sequential" => Fadvise::Sequential,
                "random" => Fadvise::Random,
                "noreuse" => Fadvise::NoReuse,
                _ => Fadvise::ByPattern,
            };
            Ok(())
        },
    )
    .default("1"),
    option(
        "write_hint",
        ValueKind::Words(WRITE_HINT),
        "how long what is written will stay",
        |draft, value| {
            let word = value.word(WRITE_HINT)?;
            let place = WRITE_HINT.iter().position(|(known, _)| *known == word).unwrap_or(0);
            // The kernel counts from 1 for none.
            draft.job.targets.write_hint = Some(place as u64 + 1);
            Ok(())
        },
    ),
    option("lockfile", ValueKind::Words(LOCK), "a lock between the workers on a file", |draft, value| {
        draft.job.targets.lock = match value.word(LOCK)? {
            "exclusive" => LockFile::Exclusive,
            "readwrite" => LockFile::ReadWrite,
            _ => LockFile::None,
        };
        Ok(())
    })
    .default("none"),
];
