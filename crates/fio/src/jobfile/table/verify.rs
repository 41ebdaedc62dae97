//! Options of verification, and trims among the writes.

use super::entry::{OptionEntry, ValueKind, option};
use crate::job::VerifyMethod;
use crate::jobfile::lists;
use crate::jobfile::special::bytes;

/// The length of fio's header without its checksum.
const HEADER: u32 = 40;

const METHODS: &[(&str, &str)] = &[
    ("0", "do not verify"),
    ("md5", "MD5"),
    ("crc64", "CRC-64"),
    ("crc32c", "CRC-32C, in hardware if available"),
    ("crc32c-intel", "same as crc32c"),
    ("crc32", "CRC-32"),
    ("crc16", "CRC-16"),
    ("crc7", "CRC-7"),
    ("xxhash", "xxHash32"),
    ("sha1", "SHA-1"),
    ("sha256", "SHA-256"),
    ("sha512", "SHA-512"),
    ("sha3-224", "SHA3-224"),
    ("sha3-256", "SHA3-256"),
    ("sha3-384", "SHA3-384"),
    ("sha3-512", "SHA3-512"),
    ("pattern", "verify_pattern, without a header"),
    ("pattern_hdr", "verify_pattern after a header (later versions of fio)"),
    ("null", "write headers, but do not verify"),
    ("meta", "header without a checksum, followed by verify_pattern if given"),
];

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option("verify", ValueKind::Words(METHODS), "verify written data", |draft, value| {
        draft.verify = Some(match value.word(METHODS)? {
            "0" => {
                draft.verify = None;
                return Ok(());
            }
            "meta" => VerifyMethod::Meta,
            "md5" => VerifyMethod::Md5,
            "crc64" => VerifyMethod::Crc64,
            "crc32" => VerifyMethod::Crc32,
            "crc16" => VerifyMethod::Crc16,
            "crc7" => VerifyMethod::Crc7,
            "xxhash" => VerifyMethod::XxHash,
            "sha1" => VerifyMethod::Sha1,
            "sha256" => VerifyMethod::Sha256,
            "sha512" => VerifyMethod::Sha512,
            "sha3-224" => VerifyMethod::Sha3_224,
            "sha3-256" => VerifyMethod::Sha3_256,
            "sha3-384" => VerifyMethod::Sha3_384,
            "sha3-512" => VerifyMethod::Sha3_512,
            "pattern" => VerifyMethod::Pattern,
            "pattern_hdr" => VerifyMethod::PatternHeader,
            "null" => VerifyMethod::Null,
            _ => VerifyMethod::Crc32c,
        });
        Ok(())
    })
    .default("0"),
    option("do_verify", ValueKind::Bool, "verify at the end of a writing job", |draft, value| {
        draft.verify_options.after = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option(
        "verify_only",
        ValueKind::Flag,
        "verify what an earlier run wrote, without writing",
        |draft, value| {
            draft.verify_options.only = value.flag()?;
            Ok(())
        },
    )
    .default("0"),
    option("verify_interval", ValueKind::Size, "size of the chunks that have a header", |draft, value| {
        draft.verify_options.interval = Some(value.small(80..=1 << 30)?);
        Ok(())
    })
    .default("the block size"),
    option("verify_offset", ValueKind::Size, "offset of the header within a chunk", |draft, value| {
        draft.verify_options.offset = value.small(0..=1 << 30)?;
        // The header changes places with what is there: the two must not overlap.
        if (1..HEADER).contains(&draft.verify_options.offset) {
            return Err(format!("must be 0 or at least {HEADER}, the length of a header"));
        }
        Ok(())
    })
    .default("0"),
    option(
        "verify_pattern",
        ValueKind::Text,
        "pattern: 0xHEX, number, \"text\", 'file', %o for the offset",
        |draft, value| {
            draft.verify_options.pattern = Some(bytes::pieces(value.text()?)?);
            Ok(())
        },
    ),
    option(
        "verify_pattern_interval",
        ValueKind::Size,
        "bytes after which the pattern repeats",
        |draft, value| {
            draft.verify_options.pattern_interval =
                Some(value.small(0..=1 << 30)?).filter(|length| *length > 0);
            Ok(())
        },
    ),
    option("verify_fatal", ValueKind::Bool, "end at the first verify error", |draft, value| {
        draft.verify_options.fatal = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option(
        "verify_dump",
        ValueKind::Bool,
        "save the data read and the data expected on errors",
        |draft, value| {
            draft.verify_options.dump = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option(
        "verify_async",
        ValueKind::Number,
        "threads that verify; 0 for the worker itself",
        |draft, value| {
            draft.verify_options.threads = value.small(0..=1024)?;
            Ok(())
        },
    )
    .default("0"),
    option("verify_async_cpus", ValueKind::List, "CPUs for the verify_async threads", |draft, value| {
        draft.verify_options.thread_cpus = lists::numbers(value.text()?)?;
        Ok(())
    }),
    option(
        "verify_backlog",
        ValueKind::Number,
        "verify after this many writes instead of at the end",
        |draft, value| {
            draft.verify_options.backlog = Some(value.count(0)?).filter(|number| *number > 0);
            Ok(())
        },
    ),
    option("verify_backlog_batch", ValueKind::Number, "blocks verified at a time", |draft, value| {
        draft.verify_options.backlog_batch = Some(value.count(0)?).filter(|number| *number > 0);
        Ok(())
    })
    .default("the backlog"),
    option(
        "verify_state_save",
        ValueKind::Bool,
        "save the progress of an interrupted run",
        |draft, value| {
            draft.verify_options.state_save = value.boolean()?;
            Ok(())
        },
    )
    .default("1"),
    option(
        "verify_state_load",
        ValueKind::Bool,
        "verify only what the saved state covers",
        |draft, value| {
            draft.verify_options.state_load = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option(
        "experimental_verify",
        ValueKind::Bool,
        "regenerate the I/Os instead of remembering them",
        |draft, value| {
            draft.verify_options.replay_generator = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option(
        "verify_write_sequence",
        ValueKind::Bool,
        "put write sequence numbers in headers",
        |draft, value| {
            draft.verify_options.write_sequence = value.boolean()?;
            Ok(())
        },
    )
    .default("1"),
    option("verify_header_seed", ValueKind::Bool, "put the seed in headers and verify it", |draft, value| {
        draft.verify_options.header_seed = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("trim_percentage", ValueKind::Percent, "percentage of written blocks to trim", |draft, value| {
        draft.job.trims.percentage = value.percent()?;
        Ok(())
    })
    .default("0"),
    option("trim_verify_zero", ValueKind::Bool, "verify that trimmed blocks are zeros", |draft, value| {
        draft.job.trims.verify_zero = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("trim_backlog", ValueKind::Number, "trim after this many writes", |draft, value| {
        draft.job.trims.backlog = Some(value.count(0)?).filter(|number| *number > 0);
        Ok(())
    }),
    option("trim_backlog_batch", ValueKind::Number, "blocks trimmed at a time", |draft, value| {
        draft.job.trims.backlog_batch = Some(value.count(0)?).filter(|number| *number > 0);
        Ok(())
    }),
];
