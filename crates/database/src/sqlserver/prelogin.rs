//! The first message of a connection: it negotiates encryption and the kind of authentication.

use super::{Encrypt, packet};
use crate::{Error, Result};

/// Options, by the protocol's numbers.
mod option {
    pub(super) const VERSION: u8 = 0;
    pub(super) const ENCRYPTION: u8 = 1;
    pub(super) const INSTANCE: u8 = 2;
    pub(super) const FEDERATED: u8 = 6;
    pub(super) const END: u8 = 0xff;
}

/// The encryption option of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// Of the login only.
    Login,
    /// Of everything.
    All,
    /// None: it cannot.
    None,
    /// Of everything, or no connection.
    Required,
}

impl Encryption {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Login, Self::All, Self::None, Self::Required].into_iter().find(|found| *found as u8 == byte)
    }
}

/// The encryption that both sides agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreed {
    Nothing,
    Login,
    All,
}

/// Appends options: offsets and lengths of all, then the values.
fn put(out: &mut Vec<u8>, options: &[(u8, &[u8])]) {
    let mut at = options.len() * 5 + 1;
    for (option, value) in options {
        out.push(*option);
        out.extend_from_slice(&(at as u16).to_be_bytes());
        out.extend_from_slice(&(value.len() as u16).to_be_bytes());
        at += value.len();
    }
    out.push(option::END);
    for (_, value) in options {
        out.extend_from_slice(value);
    }
}

/// The complete message. With `token` an access token will authenticate the client.
pub(crate) fn request(encrypt: Encrypt, instance: &str, token: bool) -> Vec<u8> {
    let encryption = match encrypt {
        Encrypt::Optional => Encryption::Login,
        Encrypt::Mandatory => Encryption::All,
        // All is encrypted already, from outside.
        Encrypt::Strict => Encryption::None,
    };
    let instance = [instance.as_bytes(), &[0]].concat();
    let mut options: Vec<(u8, &[u8])> = vec![
        // The client's version has no meaning for the server.
        (option::VERSION, &[0; 6]),
        (
            option::ENCRYPTION,
            match encryption {
                Encryption::Login => &[0],
                Encryption::All => &[1],
                Encryption::None | Encryption::Required => &[2],
            },
        ),
        (option::INSTANCE, &instance),
    ];
    if token {
        options.push((option::FEDERATED, &[1]));
    }
    let mut out = Vec::new();
    packet::open(&mut out, packet::kind::PRELOGIN);
    put(&mut out, &options);
    packet::close(&mut out, packet::FIRST_SIZE);
    out
}

/// The server's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) encryption: Encryption,
    /// It requires the access token message to repeat that it was requested.
    pub(crate) federated: bool,
    /// It does not have the instance.
    pub(crate) wrong_instance: bool,
}

impl Reply {
    pub(crate) fn parse(body: &[u8]) -> Result<Self> {
        let broken = || Error::protocol("the server's answer to the prelogin is invalid");
        let mut reply = Self { encryption: Encryption::None, federated: false, wrong_instance: false };
        let mut rest = body;
        loop {
            let (&option, after) = rest.split_first().ok_or_else(broken)?;
            if option == option::END {
                return Ok(reply);
            }
            let (&[a, b, c, d], after) = after.split_first_chunk::<4>().ok_or_else(broken)?;
            rest = after;
            let at = usize::from(u16::from_be_bytes([a, b]));
            let length = usize::from(u16::from_be_bytes([c, d]));
            let value = body.get(at..at + length).ok_or_else(broken)?;
            match (option, value) {
                (option::ENCRYPTION, &[byte]) => {
                    reply.encryption = Encryption::from_byte(byte).ok_or_else(broken)?;
                }
                (option::FEDERATED, &[byte]) => reply.federated = byte == 1,
                (option::INSTANCE, &[byte, ..]) => reply.wrong_instance = byte == 1,
                _ => {}
            }
        }
    }

    /// The encryption that follows from the client's setting and the server's answer.
    pub(crate) fn agree(self, encrypt: Encrypt) -> Result<Agreed> {
        match (encrypt, self.encryption) {
            (Encrypt::Strict, _) | (Encrypt::Optional, Encryption::None) => Ok(Agreed::Nothing),
            (_, Encryption::All | Encryption::Required) => Ok(Agreed::All),
            (Encrypt::Optional, Encryption::Login) => Ok(Agreed::Login),
            (Encrypt::Mandatory, _) => {
                Err(Error::usage("the server does not encrypt, which encrypt=mandatory requires").with_help(
                    "configure a certificate on the server, or use encrypt=optional on a trusted network",
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_laid_out_as_in_the_published_example() {
        // [MS-TDS] 4.1: the client's prelogin.
        let example =
            b"\x12\x01\x00\x2f\x00\x00\x01\x00\x00\x00\x1a\x00\x06\x01\x00\x20\x00\x01\x02\x00\x21\x00\x01\
            \x03\x00\x22\x00\x04\x04\x00\x26\x00\x01\xff\x09\x00\x00\x00\x00\x00\x01\x00\xb8\x0d\x00\x00\x01";
        let mut out = Vec::new();
        packet::open(&mut out, packet::kind::PRELOGIN);
        put(&mut out, &[(0, &[9, 0, 0, 0, 0, 0]), (1, &[1]), (2, &[0]), (3, &[0xb8, 0x0d, 0, 0]), (4, &[1])]);
        packet::close(&mut out, 4096);
        assert_eq!(out, example);
        let read = Reply::parse(&out[packet::HEADER..]).unwrap();
        assert_eq!(read, Reply { encryption: Encryption::All, federated: false, wrong_instance: false });
        for length in packet::HEADER..out.len() {
            assert!(Reply::parse(&out[packet::HEADER..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn nothing_goes_unencrypted_that_was_to_be_encrypted() {
        let answer = |encryption| Reply { encryption, federated: false, wrong_instance: false };
        for (wish, said, expected) in [
            (Encrypt::Mandatory, Encryption::All, Some(Agreed::All)),
            (Encrypt::Mandatory, Encryption::Required, Some(Agreed::All)),
            (Encrypt::Mandatory, Encryption::Login, None),
            (Encrypt::Mandatory, Encryption::None, None),
            (Encrypt::Optional, Encryption::Login, Some(Agreed::Login)),
            (Encrypt::Optional, Encryption::Required, Some(Agreed::All)),
            (Encrypt::Optional, Encryption::None, Some(Agreed::Nothing)),
            (Encrypt::Strict, Encryption::None, Some(Agreed::Nothing)),
        ] {
            assert_eq!(answer(said).agree(wish).ok(), expected, "{wish:?} {said:?}");
        }
    }
}
