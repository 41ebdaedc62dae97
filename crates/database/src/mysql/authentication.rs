//! Proving who we are: mysql_native_password, caching_sha2_password, MariaDB's client_ed25519, and servers that ask the
//! system who is at the other end of the unix socket.

use curve25519_dalek::scalar::clamp_integer;
use curve25519_dalek::{EdwardsPoint, Scalar};
use sha1::{Digest, Sha1};
use sha2::{Sha256, Sha512};

use super::inbox::Inbox;
use super::packet::Greeting;
use super::rsa::PublicKey;
use super::wire::{self, Fields};
use super::{Config, error, password};
use crate::stream::{Stream, printable};
use crate::{Error, ErrorClass, Result};

pub(crate) const NATIVE: &str = "mysql_native_password";
pub(crate) const CACHING_SHA2: &str = "caching_sha2_password";
const ED25519: &str = "client_ed25519";

/// The first answer of a login by this plugin; empty for those that this client does not know, until the server asks
/// for another.
pub(crate) fn first_answer(plugin: &str, config: &Config, nonce: &[u8]) -> Vec<u8> {
    let password = config.password.as_ref().map(super::Password::expose).unwrap_or_default();
    if password.is_empty() {
        return Vec::new();
    }
    match plugin {
        NATIVE => native(password, nonce).to_vec(),
        CACHING_SHA2 => caching_sha2(password, nonce).to_vec(),
        _ => Vec::new(),
    }
}

/// SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password))).
fn native(password: &[u8], nonce: &[u8]) -> [u8; 20] {
    let once: [u8; 20] = Sha1::digest(password).into();
    let twice = Sha1::digest(once);
    let mixed: [u8; 20] = Sha1::new().chain_update(nonce).chain_update(twice).finalize().into();
    std::array::from_fn(|at| once[at] ^ mixed[at])
}

/// SHA256(password) XOR SHA256(SHA256(SHA256(password)) + nonce).
fn caching_sha2(password: &[u8], nonce: &[u8]) -> [u8; 32] {
    let once: [u8; 32] = Sha256::digest(password).into();
    let twice = Sha256::digest(once);
    let mixed: [u8; 32] = Sha256::new().chain_update(twice).chain_update(nonce).finalize().into();
    std::array::from_fn(|at| once[at] ^ mixed[at])
}

/// The signature of the nonce by Ed25519 (RFC 8032), whose seed is the password, of any length, instead of 32 random bytes.
fn ed25519(password: &[u8], nonce: &[u8]) -> [u8; 64] {
    let digest = |parts: [&[u8]; 3]| -> [u8; 64] {
        parts.into_iter().fold(Sha512::new(), Digest::chain_update).finalize().into()
    };
    let expanded = digest([password, &[], &[]]);
    let (mut secret, prefix) = ([0; 32], &expanded[32..]);
    secret.copy_from_slice(&expanded[..32]);
    let secret = Scalar::from_bytes_mod_order(clamp_integer(secret));
    let public = EdwardsPoint::mul_base(&secret).compress();
    let r = Scalar::from_bytes_mod_order_wide(&digest([prefix, nonce, &[]]));
    let point = EdwardsPoint::mul_base(&r).compress();
    let k = Scalar::from_bytes_mod_order_wide(&digest([point.as_bytes(), public.as_bytes(), nonce]));
    let s = r + k * secret;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(point.as_bytes());
    signature[32..].copy_from_slice(s.as_bytes());
    signature
}

/// Logs in: from the sent response to the greeting to the server's OK.
pub(crate) fn log_in(
    stream: &mut Stream,
    inbox: &mut Inbox,
    config: &Config,
    greeting: &Greeting,
) -> Result<()> {
    let mut login =
        Login { stream, inbox, config, nonce: greeting.nonce.clone(), plugin: greeting.plugin.clone() };
    // A server has no reason to ask more often than this.
    for _ in 0..16 {
        let packet = login.inbox.next(login.stream)?;
        let body = login.inbox.body(packet).to_vec();
        match body.as_slice() {
            [0, ..] => return Ok(()),
            [0xff, ..] => return Err(refused(error::from_packet(&body).0, config)),
            [0xfe] => return Err(unknown("mysql_old_password")),
            [0xfe, rest @ ..] => login.switch(rest)?,
            [1, data @ ..] => login.more(data)?,
            _ => return Err(Error::protocol("the server sent an unexpected message during authentication")),
        }
    }
    Err(Error::protocol("the server repeated its authentication request too often"))
}

/// Without a password this may be the server's way to ask for one.
fn refused(error: Error, config: &Config) -> Error {
    if config.password.is_none() && error.code().0.starts_with("1045") {
        return password::missing(&config.user);
    }
    error
}

struct Login<'a> {
    stream: &'a mut Stream,
    inbox: &'a mut Inbox,
    config: &'a Config,
    nonce: Vec<u8>,
    plugin: String,
}

impl Login<'_> {
    fn send(&mut self, content: &[u8]) -> Result<()> {
        let sequence = self.inbox.next_sequence();
        let mut out = Vec::new();
        let start = wire::open(&mut out);
        out.extend_from_slice(content);
        wire::close(&mut out, start, sequence);
        self.inbox.expect_after(sequence);
        self.stream.send(&out, &mut self.inbox.buffer)
    }

    /// The server wants another plugin than it announced, with a separate nonce.
    fn switch(&mut self, request: &[u8]) -> Result<()> {
        let mut fields = Fields(request);
        self.plugin = printable(fields.string());
        self.nonce = fields.0.strip_suffix(&[0]).unwrap_or(fields.0).to_vec();
        match self.plugin.as_str() {
            NATIVE | CACHING_SHA2 => {
                let answer = first_answer(&self.plugin, self.config, &self.nonce);
                self.send(&answer)
            }
            ED25519 => {
                // An account may have the empty password; for no password at all, the server's refusal asks for one.
                let password = self.config.password.as_ref().map(super::Password::expose).unwrap_or_default();
                let signature = ed25519(password, &self.nonce);
                self.send(&signature)
            }
            // The server asks the system, not us.
            "auth_socket" | "unix_socket" => self.send(&[]),
            other => Err(unknown(other)),
        }
    }

    /// caching_sha2_password goes on: the server knows the password's hash, or wants the password itself.
    fn more(&mut self, data: &[u8]) -> Result<()> {
        const FAST: u8 = 3;
        const FULL: u8 = 4;
        match (self.plugin.as_str(), data) {
            (CACHING_SHA2, [FAST]) => Ok(()),
            (CACHING_SHA2, [FULL]) => self.whole_password(),
            (plugin, _) => {
                Err(Error::protocol(format!("the server continued {plugin} with an unknown message")))
            }
        }
    }

    fn whole_password(&mut self) -> Result<()> {
        let Some(password) = &self.config.password else { return Err(password::missing(&self.config.user)) };
        let mut secret = password.expose().to_vec();
        secret.push(0);
        if self.stream.tls().is_some() || self.stream.is_unix() {
            return self.send(&secret);
        }
        let key = self.public_key()?;
        for (byte, mask) in secret.iter_mut().zip(self.nonce.iter().cycle()) {
            *byte ^= mask;
        }
        let mut seed = [0; 20];
        rustls::crypto::ring::default_provider()
            .secure_random
            .fill(&mut seed)
            .map_err(|_| Error::protocol("no random bytes are available from the system"))?;
        let encrypted = key.encrypt(&secret, seed).ok_or_else(|| {
            Error::usage("the password is too long for the server's public key")
                .with_help("use sslmode=require")
        })?;
        self.send(&encrypted)
    }

    /// The key to encrypt the password with: from the file, or, where that was allowed, from the server.
    fn public_key(&mut self) -> Result<PublicKey> {
        const REQUEST: u8 = 2;
        if let Some(path) = &self.config.server_public_key {
            let pem = std::fs::read(path).map_err(|e| {
                Error::usage(format!("the public key {} cannot be read: {e}", path.display()))
            })?;
            return PublicKey::parse(&pem).map_err(|e| {
                Error::usage(format!("the public key {} cannot be used: {}", path.display(), e.message()))
            });
        }
        if !self.config.get_server_public_key {
            return Err(Error::new(
                ErrorClass::Authentication,
                "the server asks for the cleartext password over a connection without TLS",
            )
            .with_help(
                "use sslmode=require; or name the server's public key with server_public_key=FILE; or, on a \
                 trusted network, fetch the key from the server: get_server_public_key=true",
            ));
        }
        self.send(&[REQUEST])?;
        let packet = self.inbox.next(self.stream)?;
        match self.inbox.body(packet) {
            [1, pem @ ..] => PublicKey::parse(pem).map_err(|e| e.context("the server's public key")),
            body @ [0xff, ..] => Err(error::from_packet(body).0),
            _ => Err(Error::protocol("the server sent an unexpected message instead of its public key")),
        }
    }
}

fn unknown(plugin: &str) -> Error {
    let error = Error::new(
        ErrorClass::Authentication,
        format!("the server requires an authentication method that Kelvin does not support: {plugin}"),
    );
    error.with_help(format!(
        "let this user authenticate with {CACHING_SHA2}, {ED25519}, {NATIVE} or the unix socket"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::Host;
    use super::*;

    #[test]
    fn answers_are_as_published() {
        // SHA1 form: the server can undo it with the stored double hash.
        let nonce = b"0123456789abcdefghij";
        let answer = native(b"secret", nonce);
        let stored = Sha1::digest(Sha1::digest(b"secret"));
        let mixed = Sha1::new().chain_update(nonce).chain_update(stored).finalize();
        let once: Vec<u8> = answer.iter().zip(mixed).map(|(a, b)| a ^ b).collect();
        assert_eq!(Sha1::digest(&once), stored);
        let answer = caching_sha2(b"secret", nonce);
        let stored = Sha256::digest(Sha256::digest(b"secret"));
        let mixed = Sha256::new().chain_update(stored).chain_update(nonce).finalize();
        let once: Vec<u8> = answer.iter().zip(mixed).map(|(a, b)| a ^ b).collect();
        assert_eq!(Sha256::digest(&once), stored);
        let config = Config::new(Host::Tcp("h".into()), 1, "u", "");
        assert!(first_answer(NATIVE, &config, nonce).is_empty(), "no password, no answer");
    }

    #[test]
    fn a_password_of_32_bytes_signs_as_rfc_8032_does() {
        let bytes = |hex: &str| -> Vec<u8> {
            hex.as_bytes()
                .chunks(2)
                .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
                .collect()
        };
        let seed = bytes("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7");
        let signature = "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac\
                         18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a";
        assert_eq!(ed25519(&seed, &bytes("af82")).to_vec(), bytes(signature));
    }
}
