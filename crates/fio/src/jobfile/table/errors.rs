//! What errors do.

use super::entry::{OptionEntry, ValueKind, option};
use crate::jobfile::special::errors;

const CONTINUE: &[(&str, &str)] = &[
    ("none", "end on any error"),
    ("0", "same as none"),
    ("read", "continue after read errors"),
    ("write", "continue after write and trim errors"),
    ("io", "continue after I/O errors"),
    ("verify", "continue after verify errors"),
    ("all", "continue after any error"),
    ("1", "same as all"),
];

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option(
        "continue_on_error",
        ValueKind::Words(CONTINUE),
        "which errors do not end the job",
        |draft, value| {
            let word = value.word(CONTINUE)?;
            let all = matches!(word, "all" | "1");
            let rules = &mut draft.job.errors;
            rules.go_on_read = all || matches!(word, "read" | "io");
            rules.go_on_write = all || matches!(word, "write" | "io");
            rules.go_on_verify = all || word == "verify";
            Ok(())
        },
    )
    .default("none"),
    option(
        "ignore_error",
        ValueKind::Text,
        "errors to ignore: READ:…,WRITE:…,VERIFY:…",
        |draft, value| {
            draft.job.errors.ignore = errors::read(value.text()?)?;
            Ok(())
        },
    ),
    option("error_dump", ValueKind::Bool, "print each error that does not end the job", |draft, value| {
        draft.job.errors.dump = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option(
        "exitall_on_error",
        ValueKind::Flag,
        "end other jobs if this job ends with an error",
        |draft, value| {
            draft.job.errors.exit_all = value.flag()?;
            Ok(())
        },
    )
    .default("0"),
];
