//! Name, text and number of a job.

use super::entry::{OptionEntry, ValueKind, option, refused};

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option(
        "name",
        ValueKind::Text,
        "name of the job; on the command line, it begins a new one",
        |draft, value| {
            value.text()?.clone_into(&mut draft.job.name);
            Ok(())
        },
    ),
    option("description", ValueKind::OptionalText, "a text that the results carry", |draft, value| {
        draft.job.description = Some(value.text_or_empty().to_owned());
        Ok(())
    }),
    option("numjobs", ValueKind::Number, "how many workers do this job at the same time", |draft, value| {
        draft.job.clones = value.small(1..=65_536)?;
        Ok(())
    })
    .default("1"),
    refused(
        "profile",
        "a job made by fio itself",
        "write the options that fio's built-in jobs (act, tiobench) stand for",
    ),
];
