//! Description of an option.

use crate::jobfile::draft::Apply;
use crate::jobfile::number::Unit;

/// An option.
pub(crate) struct OptionEntry {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its other names.
    pub(crate) aliases: &'static [&'static str],
    /// The kind of its values.
    pub(crate) kind: ValueKind,
    /// The default; empty if there is none in particular.
    pub(crate) default: &'static str,
    /// The help text.
    pub(crate) help: &'static str,
    /// The engines that have it; empty for all.
    pub(crate) engines: &'static [&'static str],
    /// A Kelvin extension: fio does not know it.
    pub(crate) own: bool,
    /// Its effect.
    pub(crate) effect: Effect,
}

/// The effect of an option.
pub(crate) enum Effect {
    /// It is read into the job.
    Applied(Apply),
    /// Its value is examined, but it has no effect here: why.
    Ignored(&'static str, Apply),
    /// It is not supported: the reason, and the remedy.
    Refused(&'static str),
}

/// The values of an option.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueKind {
    /// Any text.
    Text,
    /// Any text; may be left out.
    OptionalText,
    /// Paths between colons.
    Paths,
    /// A whole number, with a unit if you like.
    Number,
    /// Up to three of them: reads, writes, trims.
    Numbers,
    /// Bytes.
    Size,
    /// Up to three of them.
    Sizes,
    /// Bytes, or percent.
    Amount,
    /// From bytes to bytes.
    Range,
    /// Up to three of them.
    Ranges,
    /// Lengths and percentages.
    Split,
    /// A time; the unit is that of a number alone.
    Time(Unit),
    /// Up to three of them.
    Times(Unit),
    /// On without a value or with 1.
    Flag,
    /// 0 or 1.
    Bool,
    /// 0 to 100.
    Percent,
    /// Up to three of them.
    Percents,
    /// Decimal numbers between colons.
    Decimals,
    /// Numbers and ranges between commas.
    List,
    /// One of these keywords (with help), some with a parameter after a colon.
    Words(&'static [(&'static str, &'static str)]),
}

impl ValueKind {
    /// As text, for help.
    pub(crate) fn described(self) -> String {
        match self {
            Self::Text | Self::Split => "text".into(),
            Self::OptionalText => "text, optional".into(),
            Self::Paths => "paths separated by colons; \\: is a colon in a path".into(),
            Self::Number => "whole number".into(),
            Self::Numbers => "whole number[,number][,number], for reads, writes, trims".into(),
            Self::Size => "bytes, with k, m, g, t or p".into(),
            Self::Sizes => "bytes[,bytes][,bytes], for reads, writes, trims, with k, m, g, t or p".into(),
            Self::Amount => "bytes, with k, m, g, t or p, or percent, as in 20%".into(),
            Self::Range => "bytes, or bytes-bytes".into(),
            Self::Ranges => "bytes-bytes[,bytes-bytes][,bytes-bytes], for reads, writes, trims".into(),
            Self::Time(unit) => format!("time in {} or with d, h, m, s, ms or us", unit.word()),
            Self::Times(unit) => {
                format!("time[,time][,time], for reads, writes, trims, in {} or with a unit", unit.word())
            }
            Self::Flag => "no value, or 0 or 1".into(),
            Self::Bool => "0 or 1".into(),
            Self::Percent => "percent, 0 to 100".into(),
            Self::Percents => "percent[,percent][,percent], for reads, writes, trims".into(),
            Self::Decimals => "decimal numbers separated by colons".into(),
            Self::List => "numbers and ranges, as in 0,5,8-15".into(),
            Self::Words(_) => "one of the values below".into(),
        }
    }

    /// Whether a value may have units that `kb_base` decides.
    pub(crate) fn holds_sizes(self) -> bool {
        matches!(
            self,
            Self::Split
                | Self::Number
                | Self::Numbers
                | Self::Size
                | Self::Sizes
                | Self::Amount
                | Self::Range
                | Self::Ranges
        )
    }

    /// Whether the option can be written without a value.
    pub(crate) fn may_be_bare(self) -> bool {
        matches!(self, Self::Flag | Self::OptionalText)
    }
}

/// An option that is read into the job.
pub(crate) const fn option(
    name: &'static str,
    kind: ValueKind,
    help: &'static str,
    apply: Apply,
) -> OptionEntry {
    OptionEntry {
        name,
        aliases: &[],
        kind,
        default: "",
        help,
        engines: &[],
        own: false,
        effect: Effect::Applied(apply),
    }
}

/// An option whose value is validated, and that has no effect: the reason.
pub(crate) const fn ignored(
    name: &'static str,
    kind: ValueKind,
    help: &'static str,
    reason: &'static str,
    check: Apply,
) -> OptionEntry {
    let mut entry = option(name, kind, help, check);
    entry.effect = Effect::Ignored(reason, check);
    entry
}

/// An option that is not supported: the reason, and the remedy.
pub(crate) const fn refused(name: &'static str, help: &'static str, reason: &'static str) -> OptionEntry {
    OptionEntry {
        name,
        aliases: &[],
        kind: ValueKind::Text,
        default: "",
        help,
        engines: &[],
        own: false,
        effect: Effect::Refused(reason),
    }
}

impl OptionEntry {
    /// Its other names.
    pub(crate) const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// The default.
    pub(crate) const fn default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    /// The engines that have it.
    pub(crate) const fn engines(mut self, engines: &'static [&'static str]) -> Self {
        self.engines = engines;
        self
    }

    /// Marks it as a Kelvin extension.
    pub(crate) const fn own(mut self) -> Self {
        self.own = true;
        self
    }

    /// Whether it has this name.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}
