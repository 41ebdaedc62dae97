//! Entry points of the fuzzer.

use super::inbox::Inbox;
use super::packet::{Column, Greeting, OkPacket, PrepareOk, column_name, result_head};
use super::{decode, error, wire};
use crate::{Result, Rows};

/// Reads `bytes` as a server's greeting and as the answers to statements, in text and in binary, and forgets them. For
/// fuzzing: any bytes must end in a result, never in a panic or a huge allocation.
pub fn examine(bytes: &[u8]) -> Result<()> {
    let mut inbox = Inbox::new();
    inbox.trust();
    inbox.buffer.feed(bytes)?;
    let (mut columns, mut rows) = (Vec::new(), Rows::new());
    let mut expected = 0;
    while let Some(packet) = inbox.take()? {
        let body = inbox.body(packet);
        let _ = (Greeting::parse(body), OkPacket::ok(body), OkPacket::eof(body), PrepareOk::parse(body));
        let _ = (error::from_packet(body), column_name(body), super::rsa::PublicKey::parse(body).is_ok());
        let mut fields = wire::Fields(body);
        while !fields.0.is_empty() && fields.bytes().is_ok() {}
        if columns.len() < expected {
            columns.push(Column::parse(body)?);
            continue;
        }
        for reader in [decode::binary_row, decode::text_row] {
            rows.reset(columns.len(), false);
            let _ = reader(body, &columns, &mut rows);
        }
        if let Ok((count, _)) = result_head(body, false) {
            columns.clear();
            expected = count;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_end_in_a_result(
            packets in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..80), any::<bool>()), 0..8)
        ) {
            let mut bytes = Vec::new();
            for (sequence, (content, whole)) in packets.into_iter().enumerate() {
                if whole {
                    bytes.extend_from_slice(&[content.len() as u8, 0, 0, sequence as u8]);
                }
                bytes.extend(content);
            }
            let _ = examine(&bytes);
        }
    }
}
