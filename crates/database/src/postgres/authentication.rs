//! Authentication: trust, cleartext, md5, SCRAM-SHA-256 with and without channel binding.

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding as Binding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::frontend;

use super::backend::Fields;
use super::inbox::Inbox;
use super::{ChannelBinding, Config, end_point, error, password};
use crate::stream::Stream;
use crate::{Error, ErrorClass, Result};

/// What the server asks for.
#[derive(Debug)]
pub(crate) enum Request<'a> {
    Ok,
    Cleartext,
    Md5([u8; 4]),
    Sasl(Vec<&'a [u8]>),
    SaslContinue(&'a [u8]),
    SaslFinal(&'a [u8]),
    Unknown(i32),
}

impl<'a> Request<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self> {
        let mut fields = Fields(body);
        Ok(match fields.int4()? {
            0 => Self::Ok,
            3 => Self::Cleartext,
            5 => {
                let salt = fields.take(4)?;
                Self::Md5([salt[0], salt[1], salt[2], salt[3]])
            }
            10 => {
                let mut mechanisms = Vec::new();
                while let name @ [_, ..] = fields.string()? {
                    mechanisms.push(name);
                }
                Self::Sasl(mechanisms)
            }
            11 => Self::SaslContinue(fields.0),
            12 => Self::SaslFinal(fields.0),
            other => Self::Unknown(other),
        })
    }
}

/// Logs in: from the sent startup message to AuthenticationOk.
pub(crate) fn log_in(stream: &mut Stream, inbox: &mut Inbox, config: &Config) -> Result<()> {
    let known = || {
        config
            .password
            .as_ref()
            .map(super::Password::expose)
            .filter(|p| !p.is_empty())
            .ok_or_else(|| password::missing(&config.user))
    };
    let mut scram: Option<ScramSha256> = None;
    let mut verified = false;
    let mut bound = false;
    let mut answer = BytesMut::new();
    loop {
        let (tag, body) = inbox.next(stream)?;
        let body = inbox.body(body);
        match tag {
            b'E' => return Err(error::from_response(body).0),
            // A notice, and the server's word that it knows fewer protocol options.
            b'N' | b'v' => continue,
            b'R' => {}
            _ => return Err(not_postgres(&[tag])),
        }
        answer.clear();
        let request = Request::parse(body)?;
        let sasl = matches!(request, Request::Sasl(_) | Request::SaslContinue(_) | Request::SaslFinal(_));
        if config.channel_binding == ChannelBinding::Require && !sasl && !bound {
            return Err(unbound("the server did not ask for SCRAM authentication"));
        }
        match request {
            Request::Ok if scram.is_some() && !verified => {
                return Err(Error::protocol(
                    "the server completed the login without proving that it knows the password",
                ));
            }
            Request::Ok => return Ok(()),
            Request::Cleartext => {
                if stream.tls().is_none() && !stream.is_unix() {
                    return Err(Error::new(
                        ErrorClass::Authentication,
                        "the server asks for the cleartext password over a connection without TLS",
                    )
                    .with_help(
                        "use sslmode=require, or configure scram-sha-256 on the server (pg_hba.conf)",
                    ));
                }
                frontend::password_message(known()?, &mut answer).map_err(|e| unusable(&e))?;
            }
            Request::Md5(salt) => {
                let hash = md5_hash(config.user.as_bytes(), known()?, salt);
                frontend::password_message(hash.as_bytes(), &mut answer).map_err(|e| unusable(&e))?;
            }
            Request::Sasl(offered) => {
                let (mechanism, binding) = choose(&offered, stream, config.channel_binding)?;
                bound = mechanism == SCRAM_SHA_256_PLUS;
                let exchange = ScramSha256::new(known()?, binding);
                frontend::sasl_initial_response(mechanism, exchange.message(), &mut answer)
                    .map_err(|e| unusable(&e))?;
                scram = Some(exchange);
            }
            Request::SaslContinue(data) => {
                let exchange = scram.as_mut().filter(|_| !verified).ok_or_else(out_of_turn)?;
                exchange.update(data).map_err(|e| scram_failed(&e))?;
                frontend::sasl_response(exchange.message(), &mut answer).map_err(|e| unusable(&e))?;
            }
            Request::SaslFinal(data) => {
                let exchange = scram.as_mut().filter(|_| !verified).ok_or_else(out_of_turn)?;
                exchange.finish(data).map_err(|e| scram_failed(&e))?;
                verified = true;
                continue;
            }
            Request::Unknown(number) => {
                let name = match number {
                    2 => "Kerberos 5",
                    7 | 8 => "GSSAPI",
                    9 => "SSPI",
                    _ => "unknown",
                };
                return Err(Error::new(
                    ErrorClass::Authentication,
                    format!(
                        "the server requires an authentication method that Kelvin does not support: {name} \
                        ({number})"
                    ),
                )
                .with_help("allow scram-sha-256 for this user in pg_hba.conf"));
            }
        }
        stream.send(&answer, &mut inbox.buffer)?;
    }
}

fn choose(offered: &[&[u8]], stream: &Stream, mode: ChannelBinding) -> Result<(&'static str, Binding)> {
    let plus = offered.contains(&SCRAM_SHA_256_PLUS.as_bytes());
    let plain = offered.contains(&SCRAM_SHA_256.as_bytes());
    let end_point = stream.tls().filter(|_| mode != ChannelBinding::Disable).and_then(end_point::end_point);
    match end_point {
        Some(hash) if plus => Ok((SCRAM_SHA_256_PLUS, Binding::tls_server_end_point(hash))),
        _ if mode == ChannelBinding::Require => Err(unbound(match end_point {
            Some(_) => "the server does not offer it",
            None if stream.tls().is_some() => {
                "the server's certificate uses a signature algorithm without channel binding"
            }
            None => "the connection has no TLS",
        })),
        // Says that we could have bound the channel: a man in the middle who hid the offer is found out.
        Some(_) if plain => Ok((SCRAM_SHA_256, Binding::unrequested())),
        None if plain => Ok((SCRAM_SHA_256, Binding::unsupported())),
        _ => Err(Error::new(
            ErrorClass::Authentication,
            "the server offers no SASL mechanism that Kelvin supports",
        )
        .with_help("allow scram-sha-256 for this user in pg_hba.conf")),
    }
}

/// The login cannot be tied to the connection, which the user demands.
fn unbound(why: &str) -> Error {
    Error::new(ErrorClass::Authentication, format!("channel_binding=require cannot be met: {why}")).with_help(
        "it requires TLS (sslmode=require or stricter) and scram-sha-256 for this user in pg_hba.conf; or \
         use channel_binding=prefer",
    )
}

fn unusable(error: &std::io::Error) -> Error {
    Error::usage(format!("the password cannot be sent: {error}"))
}

fn scram_failed(error: &std::io::Error) -> Error {
    Error::new(ErrorClass::Authentication, format!("SCRAM failed: {error}"))
}

fn out_of_turn() -> Error {
    Error::protocol("the server sent a SCRAM message out of order")
}

/// The peer answered with something that PostgreSQL would not send here.
pub(crate) fn not_postgres(bytes: &[u8]) -> Error {
    let shown: Vec<u8> = bytes.iter().copied().take(40).collect();
    Error::protocol(format!(
        "this is not a PostgreSQL server: it answered {:?}",
        String::from_utf8_lossy(&shown)
    ))
    .with_help("check host and port")
}
