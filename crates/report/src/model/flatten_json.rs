//! The environment as a flat list of facts.

/// Flattens nested JSON to "a.b" → "value".
pub(crate) fn flatten(
    prefix: &str,
    value: &serde_json::Value,
    into: &mut std::collections::BTreeMap<String, String>,
) {
    use serde_json::Value;
    let inner = |key: &str| if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| flatten(&inner(k), v, into)),
        Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
            items.iter().enumerate().for_each(|(i, v)| flatten(&inner(&i.to_string()), v, into));
        }
        Value::Array(items) => {
            let words: Vec<String> = items.iter().map(scalar).collect();
            into.insert(prefix.to_owned(), words.join(", "));
        }
        Value::Null if prefix.is_empty() => {}
        other => {
            into.insert(prefix.to_owned(), scalar(other));
        }
    }
}

fn scalar(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => kelvin_measure::text::NONE.into(),
        other => other.to_string(),
    }
}
