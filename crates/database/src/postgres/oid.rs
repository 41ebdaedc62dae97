//! The server's types that this client reads and writes, by OID (`src/include/catalog/pg_type.dat`).

pub(crate) const BOOL: u32 = 16;
pub(crate) const CHAR: u32 = 18;
pub(crate) const NAME: u32 = 19;
pub(crate) const INT8: u32 = 20;
pub(crate) const INT2: u32 = 21;
pub(crate) const INT4: u32 = 23;
pub(crate) const TEXT: u32 = 25;
pub(crate) const OID: u32 = 26;
pub(crate) const JSON: u32 = 114;
pub(crate) const FLOAT4: u32 = 700;
pub(crate) const FLOAT8: u32 = 701;
pub(crate) const UNKNOWN: u32 = 705;
pub(crate) const BPCHAR: u32 = 1042;
pub(crate) const VARCHAR: u32 = 1043;
pub(crate) const DATE: u32 = 1082;
pub(crate) const TIMESTAMP: u32 = 1114;
pub(crate) const TIMESTAMPTZ: u32 = 1184;
pub(crate) const NUMERIC: u32 = 1700;
pub(crate) const VOID: u32 = 2278;

/// All that [`kind`] knows, for tests.
#[cfg(test)]
pub(crate) const READABLE: [u32; 19] = [
    BOOL,
    CHAR,
    NAME,
    INT8,
    INT2,
    INT4,
    TEXT,
    OID,
    JSON,
    FLOAT4,
    FLOAT8,
    UNKNOWN,
    BPCHAR,
    VARCHAR,
    DATE,
    TIMESTAMP,
    TIMESTAMPTZ,
    NUMERIC,
    VOID,
];

/// How a value is laid out in binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryFormat {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    Text,
    Timestamp,
    Date,
    /// The result of a function that returns nothing.
    Void,
    /// An array of elements of this type.
    Array(Element, u32),
    /// Neither read nor written.
    Unsupported(u32),
}

/// What an array can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Int2,
    Int4,
    Int8,
    Numeric,
    Text,
}

/// The layout of a type.
pub(crate) fn kind(oid: u32) -> BinaryFormat {
    match oid {
        BOOL => BinaryFormat::Bool,
        INT2 => BinaryFormat::Int2,
        INT4 => BinaryFormat::Int4,
        INT8 => BinaryFormat::Int8,
        OID => BinaryFormat::Oid,
        FLOAT4 => BinaryFormat::Float4,
        FLOAT8 => BinaryFormat::Float8,
        NUMERIC => BinaryFormat::Numeric,
        TEXT | VARCHAR | BPCHAR | NAME | CHAR | UNKNOWN | JSON => BinaryFormat::Text,
        TIMESTAMP | TIMESTAMPTZ => BinaryFormat::Timestamp,
        DATE => BinaryFormat::Date,
        VOID => BinaryFormat::Void,
        1005 => BinaryFormat::Array(Element::Int2, INT2),
        1007 => BinaryFormat::Array(Element::Int4, INT4),
        1016 => BinaryFormat::Array(Element::Int8, INT8),
        1231 => BinaryFormat::Array(Element::Numeric, NUMERIC),
        1009 => BinaryFormat::Array(Element::Text, TEXT),
        1014 => BinaryFormat::Array(Element::Text, BPCHAR),
        1015 => BinaryFormat::Array(Element::Text, VARCHAR),
        other => BinaryFormat::Unsupported(other),
    }
}

/// The type's name where it is a common one, for messages.
pub(crate) fn name(oid: u32) -> String {
    let name = match oid {
        BOOL => "boolean",
        17 => "bytea",
        CHAR => "\"char\"",
        NAME => "name",
        INT8 => "bigint",
        INT2 => "smallint",
        INT4 => "integer",
        TEXT => "text",
        OID => "oid",
        JSON => "json",
        FLOAT4 => "real",
        FLOAT8 => "double precision",
        UNKNOWN => "unknown",
        BPCHAR => "char",
        VARCHAR => "varchar",
        DATE => "date",
        1083 => "time",
        TIMESTAMP => "timestamp",
        TIMESTAMPTZ => "timestamptz",
        1186 => "interval",
        NUMERIC => "numeric",
        1005 => "smallint[]",
        1007 => "integer[]",
        1016 => "bigint[]",
        1231 => "numeric[]",
        1009 => "text[]",
        1014 => "char[]",
        1015 => "varchar[]",
        2249 => "record",
        VOID => "void",
        2950 => "uuid",
        3802 => "jsonb",
        _ => return format!("type with OID {oid}"),
    };
    format!("{name} (OID {oid})")
}
