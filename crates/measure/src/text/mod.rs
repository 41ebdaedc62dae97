//! Figures as text: each form is defined here, once, for every output. fio's notation, which fio's formats need, is
//! `kelvin_storage`'s.
//!
//! A figure that is not known is [`NONE`]; one that is known from below only begins with [`AT_LEAST`].

mod bytes;
mod lines;
mod number;
mod percent;
mod time;

pub use bytes::{binary, decimal_bytes, disk_rate, exact, memory, parse_bytes, storage, whole_unit};
pub use lines::{
    count, cut, few, hanging, plain, plural, printable, printable_lines, series, statement, wrap,
};
pub use number::{
    AT_LEAST, NONE, bounded, coefficient, decimal, ends, number, probability, rate, rounded, short,
    significant, significant_or_none, three_figures, whole,
};
pub use percent::{
    change, fixed_change, fixed_percent, one_decimal, percent, plain_percent, signed_percent, small_percent,
    trimmed_percent,
};
pub use time::{countdown, duration, latency, ms, nanos, seconds, short_seconds, time_unit};
