//! URLs of servers, without passwords: the parts common to the parsers of all engines.

use std::fmt;
use std::time::Duration;

use crate::{Error, Result};

/// The parts of a URL after `://`, decoded; empty parts are absent.
#[derive(Default)]
pub(crate) struct Split {
    pub(crate) user: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) port: Option<String>,
    pub(crate) database: Option<String>,
    pub(crate) parameters: Vec<(String, Option<String>)>,
}

impl Split {
    /// Splits a URL. A URL that contains a password is refused and not repeated; `remedy` says where the password
    /// belongs.
    pub(crate) fn parse(rest: &str, remedy: &str) -> Result<Self> {
        if rest.contains('#') {
            return Err(Error::usage("the URL contains a '#'").with_help("write it as %23"));
        }
        let (before_query, query) = rest.split_once('?').map_or((rest, None), |(a, b)| (a, Some(b)));
        let (authority, path) =
            before_query.split_once('/').map_or((before_query, None), |(a, b)| (a, Some(b)));
        // The last '@', since otherwise an unescaped one in a password would put the rest of it into messages.
        let (userinfo, hostport) =
            authority.rsplit_once('@').map_or((None, authority), |(a, b)| (Some(a), b));

        let mut parts = Self::default();
        if let Some(userinfo) = userinfo {
            if userinfo.contains(':') {
                return Err(Error::usage("the URL contains a password").with_help(remedy));
            }
            parts.user = decode(userinfo, "the user name")?;
        }
        // "user:secret" without '@' would be read as host and port, and "postgres://u:a/b@h/db" as path: an '@'
        // after the authority means that a part of a password may follow.
        if path.is_some_and(|p| p.contains('@'))
            || (userinfo.is_none() && query.is_some_and(|q| q.contains('@')))
        {
            return Err(Error::usage("the URL contains an '@' after the host")
                .with_help(format!("write it as %40; if it is part of a password, {remedy}")));
        }
        split_host(hostport, &mut parts)?;
        if let Some(path) = path {
            if path.contains('/') {
                return Err(Error::usage("the database name contains a '/'").with_help("write it as %2F"));
            }
            parts.database = decode(path, "the database name")?;
        }
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| {
                Error::usage(format!("the URL's parameter {pair:?} has no value"))
                    .with_help("write name=value")
            })?;
            let name = decode(name, "a parameter's name")?.unwrap_or_default();
            if ["password", "passfile", "passwd", "pwd"].contains(&name.as_str()) {
                return Err(Error::usage(format!("the URL contains the parameter {name}")).with_help(remedy));
            }
            let value = decode(value, &format!("the parameter {name}"))?;
            parts.parameters.push((name, value));
        }
        Ok(parts)
    }
}

fn split_host(hostport: &str, parts: &mut Split) -> Result<()> {
    let (host, port) = if let Some(bracketed) = hostport.strip_prefix('[') {
        let Some((address, after)) = bracketed.split_once(']') else {
            return Err(Error::usage("the IPv6 address in the URL has no closing ']'"));
        };
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(Error::usage(format!("{address:?} in the URL is not an IPv6 address")));
        }
        match after.strip_prefix(':') {
            Some(port) => (address, Some(port)),
            None if after.is_empty() => (address, None),
            None => {
                return Err(Error::usage(format!(
                    "{after:?} follows the address, where a port was expected"
                )));
            }
        }
    } else {
        match hostport.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(Error::usage("the host in the URL contains more than one ':'")
                    .with_help("write an IPv6 address in brackets: [::1]"));
            }
            Some((host, port)) => (host, Some(port)),
            None => (hostport, None),
        }
    };
    parts.host = decode(host, "the host")?;
    parts.port = port.filter(|port| !port.is_empty()).map(str::to_owned);
    Ok(())
}

/// Resolves %xx. `None` for an empty part. Errors name the part and the position, not the text.
fn decode(text: &str, part: &str) -> Result<Option<String>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes().enumerate();
    while let Some((at, byte)) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |found: Option<(usize, u8)>| found.and_then(|(_, b)| (b as char).to_digit(16));
        let value = digit(rest.next()).and_then(|high| Some(high * 16 + digit(rest.next())?));
        match value {
            None => {
                return Err(Error::usage(format!(
                    "{part} has an invalid percent-encoding at character {}",
                    at + 1
                ))
                .with_help("two hexadecimal digits must follow a %; write % itself as %25"));
            }
            Some(0) => {
                return Err(Error::usage(format!("{part} contains %00, which servers do not accept")));
            }
            Some(value) => bytes.push(value as u8),
        }
    }
    let text =
        String::from_utf8(bytes).map_err(|_| Error::usage(format!("{part} is not UTF-8 when decoded")))?;
    if text.contains('\0') {
        return Err(Error::usage(format!("{part} contains a zero byte, which servers do not accept")));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Parses a port.
pub(crate) fn port(text: &str) -> Result<u16> {
    match text.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        // A bad port may be a password whose '@' was forgotten, so it is not repeated.
        _ => Err(Error::usage("the port is not a number from 1 to 65535")),
    }
}

/// Parses a time in whole seconds, at most one day.
pub(crate) fn seconds(name: &str, text: &str) -> Result<Duration> {
    let seconds = text.parse::<u32>().ok().filter(|seconds| (1..=86_400).contains(seconds));
    seconds
        .map(|seconds| Duration::from_secs(seconds.into()))
        .ok_or_else(|| Error::usage(format!("{name} {text:?} is not a number of seconds from 1 to 86400")))
}

/// Parses a boolean.
pub(crate) fn yes_or_no(name: &str, text: &str) -> Result<bool> {
    match text {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(Error::usage(format!("{name} {text:?} is neither true nor false"))),
    }
}

/// The name of the effective user, which libpq takes too.
pub(crate) fn system_user() -> Option<String> {
    let id = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    })
}

/// A text in percent-encoding, except for these additional characters.
pub(crate) struct Escaped<'a>(pub(crate) &'a str, pub(crate) &'static str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.0.as_bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || self.1.as_bytes().contains(&byte) {
                write!(f, "{}", byte as char)?;
            } else {
                write!(f, "%{byte:02X}")?;
            }
        }
        Ok(())
    }
}
