//! JSON as fio writes it: fields in a fixed order, blanks around the colon, six decimals.

use std::fmt;

/// A value of a document.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JsonTree {
    Whole(i64),
    Real(f64),
    Text(String),
    Object(Object),
    List(Vec<JsonTree>),
}

/// Fields in their order.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Object(Vec<(String, JsonTree)>);

impl Object {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn add(&mut self, name: impl Into<String>, value: impl Into<JsonTree>) -> &mut Self {
        self.0.push((name.into(), value.into()));
        self
    }

    /// With one more field; for short objects.
    pub(super) fn with(mut self, name: impl Into<String>, value: impl Into<JsonTree>) -> Self {
        self.add(name, value);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<u64> for JsonTree {
    fn from(value: u64) -> Self {
        // fio's numbers are signed; what no run can reach is the greatest.
        Self::Whole(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<i64> for JsonTree {
    fn from(value: i64) -> Self {
        Self::Whole(value)
    }
}

impl From<u32> for JsonTree {
    fn from(value: u32) -> Self {
        Self::Whole(i64::from(value))
    }
}

impl From<f64> for JsonTree {
    fn from(value: f64) -> Self {
        // JSON has no other numbers.
        Self::Real(if value.is_finite() { value } else { 0.0 })
    }
}

impl From<&str> for JsonTree {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl From<String> for JsonTree {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Object> for JsonTree {
    fn from(value: Object) -> Self {
        Self::Object(value)
    }
}

impl From<Vec<JsonTree>> for JsonTree {
    fn from(value: Vec<JsonTree>) -> Self {
        Self::List(value)
    }
}

impl JsonTree {
    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let indent = |f: &mut fmt::Formatter<'_>, depth: usize| write!(f, "{:1$}", "", depth * 2);
        match self {
            Self::Whole(value) => write!(f, "{value}"),
            Self::Real(value) => write!(f, "{value:.6}"),
            Self::Text(text) => {
                // Escapes as JSON wants them.
                f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?)
            }
            Self::Object(Object(fields)) => {
                f.write_str("{\n")?;
                for (place, (name, value)) in fields.iter().enumerate() {
                    indent(f, depth + 1)?;
                    write!(f, "{} : ", serde_json::to_string(name).map_err(|_| fmt::Error)?)?;
                    value.write(f, depth + 1)?;
                    f.write_str(if place + 1 < fields.len() { ",\n" } else { "\n" })?;
                }
                indent(f, depth)?;
                f.write_str("}")
            }
            Self::List(items) => {
                f.write_str("[\n")?;
                for (place, value) in items.iter().enumerate() {
                    indent(f, depth + 1)?;
                    value.write(f, depth + 1)?;
                    f.write_str(if place + 1 < items.len() { ",\n" } else { "\n" })?;
                }
                indent(f, depth)?;
                f.write_str("]")
            }
        }
    }
}

impl fmt::Display for JsonTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        JsonTree::Object(self.clone()).write(f, 0)
    }
}
