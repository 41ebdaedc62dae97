//! The query string of an address.

use percent_encoding::percent_decode_str;

/// Names and values, in order.
#[derive(Debug, Default, Clone)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Splits an address into its path and its query.
    pub(super) fn split(address: &str) -> (String, Self) {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
        });
        (decoded(path), Self(pairs.collect()))
    }

    /// The first value of a name; `None` where it is empty.
    pub(super) fn get<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// All values of a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let of = move |(own, value): &'a (String, String)| (own == name).then_some(value.trim());
        self.0.iter().filter_map(of).filter(|value| !value.is_empty())
    }

    /// Names and values, for a form that shows the query.
    pub(super) fn pairs(&self) -> std::collections::BTreeMap<String, String> {
        self.0.iter().cloned().collect()
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn addresses_are_split_and_decoded() {
        let (path, query) = Query::split("/a%20b?q=x+y%26z&run=1&run=2&empty=&%2B=");
        assert_eq!(path, "/a b");
        assert_eq!((query.get("q"), query.get("empty"), query.get("none")), (Some("x y&z"), None, None));
        assert_eq!(query.all("run").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(Query::split("/%ff?%").0, "/\u{fffd}");
    }
}
