//! Name, text and number of a job.

use super::entry::{OptionEntry, ValueKind, option, refused};

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option(
        "name",
        ValueKind::Text,
        "name of the job; on the command line, it starts a new job",
        |draft, value| {
            value.text()?.clone_into(&mut draft.job.name);
            Ok(())
        },
    ),
    option("description", ValueKind::OptionalText, "text shown with the results", |draft, value| {
        draft.job.description = Some(value.text_or_empty().to_owned());
        Ok(())
    }),
    option(
        "numjobs",
        ValueKind::Number,
        "number of workers that run this job concurrently",
        |draft, value| {
            draft.job.clones = value.small(1..=65_536)?;
            Ok(())
        },
    )
    .default("1"),
    refused("profile", "built-in fio job", "give the options that fio's built-in jobs (act, tiobench) set"),
];
