//! What the fuzzer calls.

use super::inbox::{Inbox, Recorded};
use super::packet;
use super::token::{Answer, Token};
use super::{browser, prelogin};
use crate::{Result, Rows};

/// Reads `bytes` as a server's packets, whatever request they answer, and forgets them. For fuzzing: any bytes must end in a
/// result, never in a panic or a huge allocation.
///
/// # Errors
/// Where the bytes are no answer.
pub fn examine(bytes: &[u8]) -> Result<()> {
    let _ = (prelogin::Reply::parse(bytes), browser::port_of(bytes, "i"));
    let mut inbox = Inbox::new(Recorded(bytes));
    let mut answer = Answer::new();
    let mut rows = Rows::new();
    for round in 0.. {
        inbox.expect(packet::kind::RESPONSE);
        answer.expect_returned(round % 3);
        while inbox.more()? {
            // By turns with names, without, and skipped.
            let wanted = (round % 3 < 2).then_some(&mut rows);
            if let Token::Error(error) = answer.next(&mut inbox, wanted, round % 3 == 0)? {
                drop(error);
                answer.unreadable = None;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::token::number;
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn any_bytes_end_in_an_error(
            tokens in proptest::collection::vec(
                (
                    proptest::sample::select(vec![
                        number::RETURN_STATUS, number::COLUMNS, number::ROW, number::ROW_WITH_NULLS, number::ERROR,
                        number::RETURN_VALUE, number::ENVIRONMENT, number::FEATURES, number::DONE,
                    ]),
                    proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(0xff), any::<u8>(), 0x22..0x70_u8], 0..60),
                ),
                0..8,
            ),
            size in 9..600_usize,
        ) {
            let mut content = Vec::new();
            for (token, body) in tokens {
                content.push(token);
                content.extend(body);
            }
            let mut bytes = Vec::new();
            packet::frame(&mut bytes, packet::kind::RESPONSE, &content, size, &mut 1, true);
            // There is always a further message to wait for, until the connection ends.
            prop_assert!(examine(&bytes).is_err());
            prop_assert!(examine(&content).is_err());
        }
    }
}
