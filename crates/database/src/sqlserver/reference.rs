//! What is sent and read, against another encoder (the crate tds-protocol) and the examples of [MS-TDS] section 4.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use tds_protocol::rpc::{RpcParam, RpcRequest, TypeInfo};
use tds_protocol::tvp::{TvpColumnDef, TvpEncoder, TvpWireType};

use super::encode::table;
use super::execute::{append_call, append_execute};
use super::inbox::{Inbox, Recorded};
use super::packet::{self, HEADER, put_all_headers};
use super::statement::{Call, Declared};
use super::token::{Answer, Token};
use super::wire::put_utf16;
use crate::{Decimal, Rows, Timestamp, Value};

/// The collation that the other encoder sends.
const COLLATION: [u8; 5] = [0x09, 0x04, 0xd0, 0x00, 0x34];

#[derive(Debug, Clone)]
enum Given {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
    Decimal(i64, u8),
    Time(i64),
}

impl Given {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Int(value) => Value::Int(*value),
            Self::Float(value) => Value::Float(*value),
            Self::Text(text) => Value::Text(text),
            Self::Decimal(unscaled, scale) => Value::Decimal(Decimal::new(*unscaled, *scale)),
            Self::Time(micros) => Value::Timestamp(Timestamp(*micros)),
        }
    }

    fn theirs(&self, name: &str) -> RpcParam {
        match self {
            Self::Null => RpcParam::null(name, TypeInfo::nvarchar(4000)),
            Self::Int(value) => RpcParam::bigint(name, *value),
            Self::Float(value) => {
                RpcParam::new(name, TypeInfo::float(), Bytes::copy_from_slice(&value.to_le_bytes()))
            }
            Self::Text(text) => {
                let mut wide = Vec::new();
                put_utf16(&mut wide, text);
                let of = if wide.len() > 8000 { TypeInfo::nvarchar_max() } else { TypeInfo::nvarchar(4000) };
                RpcParam::new(name, of, wide.into())
            }
            Self::Decimal(unscaled, scale) => {
                let mut of = TypeInfo::decimal(19, *scale);
                (of.type_id, of.max_length) = (0x6a, Some(9));
                let digits = unscaled.unsigned_abs().to_le_bytes();
                RpcParam::new(name, of, [&[u8::from(*unscaled >= 0)], &digits[..]].concat().into())
            }
            Self::Time(micros) => {
                let day = 719_162 + micros.div_euclid(86_400_000_000);
                let clock = micros.rem_euclid(86_400_000_000);
                let value = [&clock.to_le_bytes()[..5], &day.to_le_bytes()[..3]].concat();
                RpcParam::new(name, TypeInfo::datetime2(6), value.into())
            }
        }
    }
}

fn given() -> impl Strategy<Value = Given> {
    prop_oneof![
        Just(Given::Null),
        any::<i64>().prop_map(Given::Int),
        (-1e300..1e300).prop_map(Given::Float),
        ".{0,20}".prop_map(Given::Text),
        (3990..4010_usize).prop_map(|length| Given::Text("ä".repeat(length))),
        (any::<i64>(), 0..=18_u8).prop_map(|(unscaled, scale)| Given::Decimal(unscaled, scale)),
        (-60_000_000_000_000_000_i64..250_000_000_000_000_000).prop_map(Given::Time),
    ]
}

fn message(transaction: u64) -> Vec<u8> {
    let mut out = Vec::new();
    packet::open(&mut out, packet::kind::RPC);
    put_all_headers(&mut out, transaction);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn calls_are_the_same_bytes_as_another_encoders(
        given in proptest::collection::vec(given(), 0..8),
        name in "[a-zäö_]{1,20}",
        named: bool,
        handle: i32,
        transaction: u64,
    ) {
        let values: Vec<Value<'_>> = given.iter().map(Given::value).collect();
        let names: Vec<String> =
            (0..given.len()).map(|at| if named { format!("@p{at}") } else { String::new() }).collect();
        let theirs: Vec<RpcParam> = given.iter().zip(&names).map(|(given, name)| given.theirs(name)).collect();

        let arguments: Vec<String> = names
            .iter()
            .enumerate()
            .map(|(at, name)| if named { format!("{name} = ${}", at + 1) } else { format!("${}", at + 1) })
            .collect();
        let call = Call::parse(&format!("EXEC {name} {}", arguments.join(", "))).unwrap().unwrap();
        let mut ours = message(transaction);
        append_call(&mut ours, &call, &values, COLLATION).unwrap();
        let expected = theirs.iter().fold(RpcRequest::named(&name), |request, param| request.param(param.clone()));
        prop_assert_eq!(&ours[HEADER..], &expected.encode_with_transaction(transaction)[..]);

        let mut ours = message(transaction);
        append_execute(&mut ours, handle, &Declared::default(), &values, COLLATION).unwrap();
        let expected = RpcRequest::execute(handle, theirs);
        prop_assert_eq!(&ours[HEADER..], &expected.encode_with_transaction(transaction)[..]);
    }
}

proptest! {
    #[test]
    fn tables_are_the_same_bytes_as_another_encoders(
        rows in proptest::collection::vec((any::<i64>(), ".{0,20}"), 0..20),
        name in "[a-zä_]{1,20}",
    ) {
        let numbers: Vec<i64> = rows.iter().map(|(number, _)| *number).collect();
        let texts: Vec<&str> = rows.iter().map(|(_, text)| text.as_str()).collect();
        let mut ours = Vec::new();
        let arrays = [Value::IntArray(&numbers), Value::TextArray(&texts)];
        table(&mut ours, ("dbo", &name), &arrays, COLLATION).unwrap();
        let columns = [
            TvpColumnDef::nullable(TvpWireType::Int { size: 8 }),
            TvpColumnDef::nullable(TvpWireType::NVarChar { max_length: 8000 }),
        ];
        let encoder = TvpEncoder::new("dbo", &name, &columns);
        let mut theirs = BytesMut::new();
        encoder.encode_metadata(&mut theirs);
        for (number, text) in &rows {
            encoder.encode_row(&mut theirs, |out| {
                let mut wide = Vec::new();
                put_utf16(&mut wide, text);
                out.extend_from_slice(&[8]);
                out.extend_from_slice(&number.to_le_bytes());
                out.extend_from_slice(&(wide.len() as u16).to_le_bytes());
                out.extend_from_slice(&wide);
            });
        }
        encoder.encode_end(&mut theirs);
        prop_assert_eq!(&ours[..], &theirs[..]);
    }
}

#[test]
fn a_batch_is_laid_out_as_in_the_published_example() {
    // 4.6, but for the number of requests, of which the example has none.
    let example = b"\x01\x01\x00\x5c\x00\x00\x01\x00\x16\x00\x00\x00\x12\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\
        \x00\x00\x00\x00\n\0s\0e\0l\0e\0c\0t\0 \0'\0f\0o\0o\0'\0 \0a\0s\0 \0'\0b\0a\0r\0'\0\n\0 \0 \0 \0 \0 \0 \0 \0 \0";
    let mut out = Vec::new();
    packet::open(&mut out, packet::kind::SQL_BATCH);
    put_all_headers(&mut out, 1 << 56);
    put_utf16(&mut out, "\nselect 'foo' as 'bar'\n        ");
    packet::close(&mut out, packet::FIRST_SIZE);
    assert_eq!(out[26], 1);
    out[26] = 0;
    assert_eq!(out, example);
}

#[test]
fn the_published_answers_are_read() {
    // 4.7: the answer to a batch.
    let example = b"\x04\x01\x00\x33\x00\x00\x01\x00\x81\x01\x00\x00\x00\x00\x00\x20\x00\xa7\x03\x00\x09\x04\xd0\x00\x34\x03\
        b\0a\0r\0\xd1\x03\x00foo\xfd\x10\x00\xc1\x00\x01\x00\x00\x00\x00\x00\x00\x00";
    let (rows, tokens) = read(example);
    assert_eq!((rows.text(0, 0).unwrap(), rows.name(0)), ("foo", Some(&b"bar"[..])));
    assert!(matches!(tokens[..], [Token::Columns, Token::Row, Token::Done(done)] if done.count() == Some(1)));
    // 4.9: the answer to a call.
    let example = b"\x04\x01\x00\x27\x00\x00\x01\x00\xff\x11\x00\xc1\x00\x01\x00\x00\x00\x00\x00\x00\x00\x79\x00\x00\x00\x00\
        \xfe\x00\x00\xe0\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    let (_, tokens) = read(example);
    assert!(matches!(tokens[..], [Token::Done(first), Token::Other, Token::Done(last)]
        if first.more() && first.count() == Some(1) && !last.more() && !last.failed()));
}

fn read(bytes: &[u8]) -> (Rows, Vec<Token>) {
    let mut inbox = Inbox::new(Recorded(bytes));
    inbox.expect(packet::kind::RESPONSE);
    let (mut answer, mut rows, mut tokens) = (Answer::new(), Rows::new(), Vec::new());
    while inbox.more().unwrap() {
        tokens.push(answer.next(&mut inbox, Some(&mut rows), true).unwrap());
    }
    (rows, tokens)
}
