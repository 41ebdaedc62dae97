//! The types of columns and returned values, as the server describes them.

use super::collation::Encoding;
use super::inbox::{Inbox, Source};
use crate::{Error, Result};

/// Types, by the protocol's numbers.
pub(crate) mod kind {
    pub(crate) const NULL: u8 = 0x1f;
    pub(crate) const IMAGE: u8 = 0x22;
    pub(crate) const TEXT: u8 = 0x23;
    pub(crate) const GUID: u8 = 0x24;
    pub(crate) const INT_N: u8 = 0x26;
    pub(crate) const DATE: u8 = 0x28;
    pub(crate) const TIME: u8 = 0x29;
    pub(crate) const DATETIME2: u8 = 0x2a;
    pub(crate) const DATETIMEOFFSET: u8 = 0x2b;
    pub(crate) const INT1: u8 = 0x30;
    pub(crate) const BIT: u8 = 0x32;
    pub(crate) const INT2: u8 = 0x34;
    pub(crate) const DECIMAL_OLD: u8 = 0x37;
    pub(crate) const INT4: u8 = 0x38;
    pub(crate) const SMALLDATETIME: u8 = 0x3a;
    pub(crate) const REAL: u8 = 0x3b;
    pub(crate) const MONEY: u8 = 0x3c;
    pub(crate) const DATETIME: u8 = 0x3d;
    pub(crate) const FLOAT: u8 = 0x3e;
    pub(crate) const NUMERIC_OLD: u8 = 0x3f;
    pub(crate) const VARIANT: u8 = 0x62;
    pub(crate) const NTEXT: u8 = 0x63;
    pub(crate) const BIT_N: u8 = 0x68;
    pub(crate) const DECIMAL: u8 = 0x6a;
    pub(crate) const NUMERIC: u8 = 0x6c;
    pub(crate) const FLOAT_N: u8 = 0x6d;
    pub(crate) const MONEY_N: u8 = 0x6e;
    pub(crate) const DATETIME_N: u8 = 0x6f;
    pub(crate) const SMALLMONEY: u8 = 0x7a;
    pub(crate) const INT8: u8 = 0x7f;
    pub(crate) const VARBINARY: u8 = 0xa5;
    pub(crate) const VARCHAR: u8 = 0xa7;
    pub(crate) const BINARY: u8 = 0xad;
    pub(crate) const CHAR: u8 = 0xaf;
    pub(crate) const NVARCHAR: u8 = 0xe7;
    pub(crate) const NCHAR: u8 = 0xef;
    pub(crate) const UDT: u8 = 0xf0;
    pub(crate) const XML: u8 = 0xf1;
    pub(crate) const TABLE: u8 = 0xf3;
}

/// A size of 0xffff: varchar(max) and similar types, whose values are sent in parts.
pub(crate) const MAX: u16 = 0xffff;

/// Encoding of a value's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Always this many bytes, and never NULL.
    Fixed(u8),
    /// In one byte; 0 for NULL.
    Byte,
    /// In two bytes; 0xffff for NULL.
    Short,
    /// In parts (varchar(max), xml).
    Parts,
    /// Behind a pointer to it: text, ntext, image.
    Pointer,
    /// In four bytes, 0 for NULL; the value begins with its own type.
    Variant,
}

/// A column, as far as its values have to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) kind: u8,
    pub(crate) length: Length,
    /// The maximum size of a value in bytes, where the type defines one.
    pub(crate) size: u16,
    pub(crate) precision: u8,
    pub(crate) scale: u8,
    pub(crate) encoding: Encoding,
    pub(crate) collation: [u8; 5],
    /// Further attributes of the column from the server; used only to send them back.
    pub(crate) flags: u16,
}

impl Column {
    pub(crate) fn new(kind: u8, length: Length) -> Self {
        Self {
            kind,
            length,
            size: 0,
            precision: 0,
            scale: 0,
            encoding: Encoding::Binary,
            collation: [0; 5],
            flags: 0,
        }
    }

    fn collated<S: Source>(mut self, inbox: &mut Inbox<S>) -> Result<Self> {
        self.collation = inbox.array()?;
        self.encoding = match self.kind {
            kind::NVARCHAR | kind::NCHAR | kind::NTEXT => Encoding::Utf16,
            _ => Encoding::from_collation(self.collation),
        };
        Ok(self)
    }

    /// Reads a type.
    pub(crate) fn read<S: Source>(inbox: &mut Inbox<S>) -> Result<Self> {
        let kind = inbox.u8()?;
        Ok(match kind {
            kind::NULL => Self::new(kind, Length::Fixed(0)),
            kind::INT1 | kind::BIT => Self::new(kind, Length::Fixed(1)),
            kind::INT2 => Self::new(kind, Length::Fixed(2)),
            kind::INT4 | kind::REAL | kind::SMALLDATETIME | kind::SMALLMONEY => {
                Self::new(kind, Length::Fixed(4))
            }
            kind::INT8 | kind::FLOAT | kind::DATETIME | kind::MONEY => Self::new(kind, Length::Fixed(8)),
            kind::GUID | kind::INT_N | kind::BIT_N | kind::FLOAT_N | kind::MONEY_N | kind::DATETIME_N => {
                Self { size: inbox.u8()?.into(), ..Self::new(kind, Length::Byte) }
            }
            kind::DATE => Self::new(kind, Length::Byte),
            kind::TIME | kind::DATETIME2 | kind::DATETIMEOFFSET => {
                Self { scale: inbox.u8()?, ..Self::new(kind, Length::Byte) }
            }
            kind::DECIMAL | kind::NUMERIC | kind::DECIMAL_OLD | kind::NUMERIC_OLD => {
                let [size, precision, scale] = inbox.array()?;
                Self { size: size.into(), precision, scale, ..Self::new(kind, Length::Byte) }
            }
            kind::VARBINARY | kind::BINARY | kind::VARCHAR | kind::CHAR | kind::NVARCHAR | kind::NCHAR => {
                let size = inbox.u16()?;
                let length = if size == MAX { Length::Parts } else { Length::Short };
                let column = Self { size, ..Self::new(kind, length) };
                if matches!(kind, kind::VARBINARY | kind::BINARY) {
                    column
                } else {
                    column.collated(inbox)?
                }
            }
            kind::TEXT | kind::NTEXT | kind::IMAGE => {
                inbox.u32()?;
                let column = Self::new(kind, Length::Pointer);
                if kind == kind::IMAGE { column } else { column.collated(inbox)? }
            }
            kind::VARIANT => {
                inbox.u32()?;
                Self::new(kind, Length::Variant)
            }
            kind::XML => {
                if inbox.u8()? != 0 {
                    // Names of the schema.
                    skip_short(inbox)?;
                    skip_short(inbox)?;
                    skip_long(inbox)?;
                }
                Self { encoding: Encoding::Utf16, ..Self::new(kind, Length::Parts) }
            }
            kind::UDT => {
                inbox.u16()?;
                for _ in 0..3 {
                    skip_short(inbox)?;
                }
                skip_long(inbox)?;
                Self::new(kind, Length::Parts)
            }
            _ => {
                return Err(Error::protocol(format!("the server sent the unknown type {kind:#04x}"))
                    .with_help("cast the column in the statement: CAST(… AS nvarchar(max))"));
            }
        })
    }

    /// Reads the description of a column, its name into `name` where that is wanted.
    pub(crate) fn read_described<S: Source>(
        inbox: &mut Inbox<S>,
        name: Option<&mut Vec<u8>>,
    ) -> Result<Self> {
        inbox.u32()?;
        let flags = inbox.u16()?;
        let mut column = Self::read(inbox)?;
        column.flags = flags;
        if column.length == Length::Pointer {
            for _ in 0..inbox.u8()? {
                skip_long(inbox)?;
            }
        }
        let length = usize::from(inbox.u8()?) * 2;
        let bytes = inbox.take(length)?;
        if let Some(name) = name {
            name.clear();
            super::wire::put_utf8(name, bytes);
        }
        Ok(column)
    }
}

fn skip_short<S: Source>(inbox: &mut Inbox<S>) -> Result<()> {
    let count = inbox.u8()?;
    inbox.take(usize::from(count) * 2).map(drop)
}

fn skip_long<S: Source>(inbox: &mut Inbox<S>) -> Result<()> {
    let count = inbox.u16()?;
    inbox.take(usize::from(count) * 2).map(drop)
}
