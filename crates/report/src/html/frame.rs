//! The frame of a page: navigation and links in `kelvin serve`, none in an exported file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::Environment;
use minijinja::value::{Serde, Value};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::Result;

/// The head of a page, up to its title.
const HEAD: &str = include_str!("head.html");
/// Navigation above a page.
const NAVIGATION: &str = include_str!("navigation.html");

/// The parts that `kelvin serve` adds around a page. An exported file has none of them.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Frame {
    /// The links above the page.
    pub links: Vec<Link>,
    /// Where the run was imported from, as text.
    pub origin: Option<String>,
    /// The base address of the findings' documentation, such as `/findings/`.
    pub findings: String,
    /// The addresses of the server's scripts.
    pub scripts: Vec<String>,
    /// Parameters of those scripts, as attributes of the page's body: names without `data-`, and values.
    pub attributes: Vec<(String, String)>,
}

/// A link.
#[derive(Debug, Clone, Serialize)]
pub struct Link {
    /// Its address.
    pub address: String,
    /// Its text.
    pub text: String,
    /// Whether it is the current page or its parent.
    pub current: bool,
}

/// Adds the parts that every page includes.
///
/// # Errors
/// Fails if the template cannot be parsed, which is a bug in it.
pub fn add_to(environment: &mut Environment<'_>) -> Result<()> {
    environment.add_template("head.html", HEAD)?;
    environment.add_template("navigation.html", NAVIGATION)?;
    Ok(())
}

/// A frame as a template value; "none" without a frame.
pub fn value(frame: Option<&Frame>) -> Value {
    frame.map_or_else(|| Value::from(()), |frame| Value::from(Serde(frame)))
}

/// The content security policy of a page: only these inline scripts may run. A page of the server may also
/// load the server's scripts and fetch data from it.
pub fn policy(scripts: &[&str], frame: Option<&Frame>) -> String {
    let own = if frame.is_some() { " 'self'" } else { "" };
    let mut script = own.to_owned();
    for text in scripts {
        script.push_str(&format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(text))));
    }
    if script.is_empty() {
        script.push_str(" 'none'");
    }
    let connect = if own.is_empty() { String::new() } else { format!("; connect-src{own}") };
    let form = if own.is_empty() { " 'none'" } else { own };
    format!(
        "default-src 'none'; script-src{script}; style-src 'unsafe-inline'{own}; img-src data:{own}{connect}; \
         base-uri 'none'; form-action{form}"
    )
}

#[cfg(test)]
mod tests {
    use super::{Frame, policy};

    #[test]
    fn only_the_scripts_of_the_page_run() {
        let exported = policy(&["alert(1)"], None);
        assert!(
            exported.contains("script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"),
            "{exported}"
        );
        assert!(!exported.contains("'self'") && policy(&[], None).contains("script-src 'none'"));
        assert!(policy(&[], Some(&Frame::default())).contains("connect-src 'self'"));
    }
}
