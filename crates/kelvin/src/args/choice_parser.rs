//! A parser for values that are one of a few words.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

/// Parses one of `words` into the type that the specification file uses for it, so that flags and files
/// always accept the same words. A word may be followed by its synonyms, separated by `|`.
pub(crate) fn one_of<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let values = words.iter().map(|word| {
        let (name, aliases) = word.split_once('|').unwrap_or((word, ""));
        PossibleValue::new(name).aliases(aliases.split('|').filter(|alias| !alias.is_empty()))
    });
    PossibleValuesParser::new(values).try_map(|word| {
        let deserializer: StrDeserializer<'_, Error> = word.as_str().into_deserializer();
        T::deserialize(deserializer)
    })
}
