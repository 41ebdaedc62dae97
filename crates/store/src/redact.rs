//! The last guard against a password in the store: the callers must not hand one over in the first place.

/// Removes the password from every `scheme://user:password@host` in `text`, and the value of `password=`
/// parameters.
pub fn redact(text: &str) -> String {
    parameters(&urls(text))
}

fn urls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || "\"'<>`".contains(c)).unwrap_or(after.len());
        let (url, tail) = after.split_at(end);
        // A password may hold '/' and '@' itself when it was not escaped: the last '@' before a '?' ends it.
        let authority = &url[..url.find('?').unwrap_or(url.len())];
        match authority.rfind('@').and_then(|at| url[..at].find(':').map(|colon| (colon, at))) {
            Some((colon, at)) => {
                out.push_str(&url[..colon]);
                out.push_str(&url[at..]);
            }
            None => out.push_str(url),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

fn parameters(text: &str) -> String {
    const KEY: &str = "password=";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(KEY) {
        let (before, after) = rest.split_at(at + KEY.len());
        out.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || "&\"'".contains(c)).unwrap_or(after.len());
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn passwords_go_and_the_rest_stays() {
        for (given, kept) in [
            (
                "run --target postgres://joe:s3cr:e/t@h/db --users 8",
                "run --target postgres://joe@h/db --users 8",
            ),
            ("a = \"postgres://joe:p@ss@h:5432/db?x=1@2\"\nb", "a = \"postgres://joe@h:5432/db?x=1@2\"\nb"),
            ("postgres://h:5432/db", "postgres://h:5432/db"),
            ("host=h password=abc user=x", "host=h password= user=x"),
            ("sqlite:///tmp/a.db", "sqlite:///tmp/a.db"),
            ("ä://ö:ü@é", "ä://ö@é"),
        ] {
            assert_eq!(redact(given), kept);
        }
    }
}
