//! The message that logs in: LOGIN7.

use super::packet;
use super::wire::{put_utf16, units};
use crate::{Error, Result};

/// The versions of the protocol that are spoken here.
pub(crate) const TDS_7_4: u32 = 0x7400_0004;
pub(crate) const TDS_8_0: u32 = 0x0800_0000;

/// The content of the login message.
pub(crate) struct Login<'a> {
    pub(crate) version: u32,
    pub(crate) packet_size: u32,
    pub(crate) program_version: u32,
    pub(crate) process: u32,
    /// The four bytes of flags.
    pub(crate) flags: [u8; 4],
    pub(crate) host: &'a str,
    pub(crate) user: &'a str,
    pub(crate) password: &'a str,
    pub(crate) program: &'a str,
    pub(crate) server: &'a str,
    pub(crate) library: &'a str,
    pub(crate) database: &'a str,
    pub(crate) client: [u8; 6],
    /// Requested extensions, encoded as in the protocol; an empty text requests none.
    pub(crate) features: Vec<u8>,
}

/// Flags of a load driver: the settings that ODBC has (ANSI_NULLS, ANSI_PADDING, ANSI_WARNINGS, QUOTED_IDENTIFIER …), an
/// error where the database cannot be used, and extensions.
pub(crate) const FLAGS: [u8; 4] = [0xe0, 0x03, 0, 0x10];

/// Language of the client: the numbers of en-US.
const LCID: u32 = 0x0409;
const FIXED: usize = 94;

/// Extensions: texts of UTF-8 collations as they are; with an access token, that.
pub(crate) fn features(token: Option<&str>, echo: bool) -> Vec<u8> {
    const FEDERATED: u8 = 2;
    const SECURITY_TOKEN: u8 = 1;
    const UTF8: u8 = 0x0a;
    let mut out = Vec::new();
    if let Some(token) = token {
        let length = (units(token) * 2) as u32;
        out.push(FEDERATED);
        out.extend_from_slice(&(length + 5).to_le_bytes());
        out.push(SECURITY_TOKEN << 1 | u8::from(echo));
        out.extend_from_slice(&length.to_le_bytes());
        put_utf16(&mut out, token);
    }
    out.extend_from_slice(&[UTF8, 1, 0, 0, 0, 1, 0xff]);
    out
}

impl Login<'_> {
    /// The whole message.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        packet::open(&mut out, packet::kind::LOGIN7);
        let start = out.len();
        for word in [0, self.version, self.packet_size, self.program_version, self.process, 0] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&self.flags);
        // The time zone, which no server uses.
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&LCID.to_le_bytes());
        let mut data = Vec::new();
        let place = |out: &mut Vec<u8>, data: &Vec<u8>, count: usize| {
            out.extend_from_slice(&((FIXED + data.len()) as u16).to_le_bytes());
            out.extend_from_slice(&(count as u16).to_le_bytes());
        };
        let mut extension_at = None;
        for (name, text) in [
            ("the host's name", self.host),
            ("the user", self.user),
            ("the password", self.password),
            ("the program", self.program),
            ("the server", self.server),
            ("", ""),
            ("the library", self.library),
            ("", ""),
            ("the database", self.database),
        ] {
            let count = units(text);
            if count > 128 {
                return Err(Error::usage(format!("{name} has more than 128 characters")));
            }
            if out.len() - start == 56 && !self.features.is_empty() {
                // The offset of the extensions.
                place(&mut out, &data, 4);
                extension_at = Some(data.len());
                data.extend_from_slice(&[0; 4]);
                continue;
            }
            place(&mut out, &data, count);
            let from = data.len();
            put_utf16(&mut data, text);
            if name == "the password" {
                for byte in &mut data[from..] {
                    *byte = byte.rotate_left(4) ^ 0xa5;
                }
            }
        }
        out.extend_from_slice(&self.client);
        for _ in 0..3 {
            // Windows authentication, a file to attach, a new password: none.
            place(&mut out, &data, 0);
        }
        out.extend_from_slice(&[0; 4]);
        if let Some(at) = extension_at {
            let features_at = ((FIXED + data.len()) as u32).to_le_bytes();
            data[at..at + 4].copy_from_slice(&features_at);
            data.extend_from_slice(&self.features);
        }
        out.extend_from_slice(&data);
        let length = ((out.len() - start) as u32).to_le_bytes();
        out[start..start + 4].copy_from_slice(&length);
        packet::close(&mut out, packet::FIRST_SIZE);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Login<'static> {
        Login {
            version: 0x7209_0002,
            packet_size: 0x1000,
            program_version: 0x0700_0000,
            process: 0x100,
            flags: [0xe0, 3, 0, 0],
            host: "skostov1",
            user: "sa",
            password: "",
            program: "OSQL-32",
            server: "",
            library: "ODBC",
            database: "",
            client: [0, 0x50, 0x8b, 0xe2, 0xb7, 0x8f],
            features: Vec::new(),
        }
    }

    #[test]
    fn a_login_is_laid_out_as_in_the_published_example() {
        // [MS-TDS] 4.2.
        let expected = b"\x10\x01\x00\x90\x00\x00\x01\x00\x88\x00\x00\x00\x02\x00\x09\x72\x00\x10\x00\x00\x00\x00\x00\x07\
            \x00\x01\x00\x00\x00\x00\x00\x00\xe0\x03\x00\x00\x00\x00\x00\x00\x09\x04\x00\x00\x5e\x00\x08\x00\x6e\x00\x02\x00\
            \x72\x00\x00\x00\x72\x00\x07\x00\x80\x00\x00\x00\x80\x00\x00\x00\x80\x00\x04\x00\x88\x00\x00\x00\x88\x00\x00\x00\
            \x00\x50\x8b\xe2\xb7\x8f\x88\x00\x00\x00\x88\x00\x00\x00\x88\x00\x00\x00\x00\x00\x00\x00\
            s\0k\0o\0s\0t\0o\0v\x001\0s\0a\0O\0S\0Q\0L\0-\x003\x002\0O\0D\0B\0C\0";
        assert_eq!(example().encode().unwrap(), expected);
    }

    #[test]
    fn a_password_is_not_readable_and_an_extension_is_where_its_pointer_says() {
        let login = Login { password: "aZ", features: features(Some("tök"), true), ..example() };
        let out = login.encode().unwrap();
        let body = &out[packet::HEADER..];
        let word = |at: usize| usize::from(u16::from_le_bytes([body[at], body[at + 1]]));
        let at = word(44);
        // 'a' is 0x61: swapped 0x16, and 0x16 ^ 0xa5 = 0xb3.
        assert_eq!(&body[at..at + 4], &[0xb3, 0xa5, 0x00, 0xa5]);
        let (pointer, length) = (word(56), word(58));
        assert_eq!(length, 4);
        let features_at = u32::from_le_bytes(body[pointer..pointer + 4].try_into().unwrap()) as usize;
        assert_eq!(&body[features_at..], &features(Some("tök"), true)[..]);
        assert_eq!(&features(Some("tök"), true)[..12], &[2, 11, 0, 0, 0, 3, 6, 0, 0, 0, b't', 0]);
        assert_eq!(u32::from_le_bytes(body[..4].try_into().unwrap()) as usize, body.len());
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let long = "x".repeat(129);
        let error = Login { database: &long, ..example() }.encode().unwrap_err();
        assert!(error.message().contains("the database"), "{error}");
    }
}
