//! `kelvin vioperf`'s flags.

use std::path::PathBuf;

use clap::Args;
use kelvin_run::spec::Span;

/// `kelvin vioperf`.
#[derive(Debug, Args)]
#[command(
    after_help = "Four tests, each a quarter of the duration, one thread for each physical core, each thread with a file of its own:\n  \
    Write     files grow for half of the time (or until they are large enough), then are written over\n  \
    ReWrite   each block is read and written back\n  \
    Read      blocks are read in order\n  \
    SkipRead  blocks are read out of order: seeks/s\n\n\
    The figure is MB/s (10^6 bytes) for each physical core that this process may use; where a cgroup's quota allows less, \
    that is what counts, and the first lines say so. A column store needs 20 MB/s for each core, reading and writing at \
    once, and should have 40: the slowest of Write, ReWrite (each way) and Read decides.\n\n\
    The files take a quarter of the free space and at most 16 GiB of a filesystem, never grow once it has lost three \
    quarters of its free space, and are removed at the end and on Ctrl-C. Only directories that are there are used, and \
    no other file is touched.\n\n\
    Writes that make a file longer and writes over what is there have a figure each: the first also write the \
    filesystem's own data. The CPU time of checksums (CRC-32C, by the processor's instruction where there is one) and of \
    everything else is told for each MB, so that a slow processor is not taken for slow storage.\n\n\
    Examples:\n  kelvin vioperf /data                        five minutes, as vioperf\n  \
    kelvin vioperf --duration 2m /data /temp    several directories at once\n  \
    kelvin vioperf --require recommended /data && echo fast\n\n\
    Ends with 0 when the verdict is MINIMUM or better (--require recommended: RECOMMENDED), 1 when it is less, 2 when \
    nothing could be measured, 4 after an error, 130 after Ctrl-C; see docs/vioperf.md."
)]
pub(crate) struct VioperfArgs {
    /// Directories to measure, which must be there
    #[arg(required = true, value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Length of all four tests together, 1s to 1 day
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub(crate) duration: Span,
    /// Threads in all [default: one for each physical core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) thread_count: Option<u32>,
    /// Put no checksums into the blocks, and look at none
    #[arg(long)]
    pub(crate) disable_crc: bool,
    /// Go through the page cache; what it holds is dropped before it is read
    #[arg(long)]
    pub(crate) disable_direct_io: bool,
    /// Time between two rows of a test
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) log_interval: Span,
    /// File for the rows and the result as JSON [default: results-DATE-TIME.json in the working directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
    /// One entry of the log a line, instead of one JSON array
    #[arg(long)]
    pub(crate) condense_log: bool,
    /// Size of an I/O, a multiple of 4k up to 64m
    #[arg(long, value_name = "SIZE", default_value = "1m", value_parser = bytes)]
    pub(crate) max_buffer_size: u64,
    /// Size of all files together, at most half of the free space [default: chosen from it]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) working_set: Option<u64>,
    /// Leave the files at the end
    #[arg(long)]
    pub(crate) preserve_files: bool,
    /// The verdict to end with 0 for
    #[arg(long, value_name = "VERDICT", default_value = "minimum")]
    pub(crate) require: Required,
}

/// What `--require` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Required {
    /// 20 MB/s for each core
    Minimum,
    /// 40 MB/s for each core
    Recommended,
}

/// Bytes with the units k, m, g or t of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("\"{text}\" is no size; write for example 512k, 1m or 4g");
    let plain = text.trim().to_ascii_lowercase();
    let digits = plain.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &plain[digits.len()..] {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("\"{text}\" is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, expected) in
            [("4096", 4096), ("64k", 65536), ("1M", 1 << 20), ("4GiB", 4 << 30), ("2t", 2 << 40)]
        {
            assert_eq!(bytes(text), Ok(expected));
        }
        for text in ["", "k", "1x", "-1m", "1.5m", "1 m x"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert_eq!(bytes("99999999t"), Err("\"99999999t\" is too large".into()));
    }
}
