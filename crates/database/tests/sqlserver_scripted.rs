//! Conversations with a scripted server: what the client sends, and what it makes of any answer.
#![allow(clippy::unwrap_used)]

mod sqlserver_support;

use std::time::Duration;

use kelvin_database::{BulkTable, ColumnType, Decimal, ErrorClass, Rows, TransactionControl, Value};
use sqlserver_support::*;

const SQL_BATCH: u8 = 1;
const RPC: u8 = 3;
const ATTENTION_PACKET: u8 = 6;
const BULK: u8 = 7;
const MANAGER: u8 = 14;
const LOGIN: u8 = 16;

fn kinds(heard: &[(u8, Vec<u8>)]) -> Vec<u8> {
    heard.iter().map(|(kind, _)| *kind).collect()
}

#[test]
fn a_login_says_who_and_sets_what_changes_plans() {
    // The smallest packets: every token is cut somewhere.
    let server = Scripted::with_packets(16, |peer| {
        peer.let_in()?;
        peer.hear()?;
        peer.say(&[
            ints("number", &[1, -2]),
            done(DONE, MORE | COUNT, 2),
            ints("second", &[7]),
            done(DONE, COUNT, 1),
        ]);
        None
    });
    let mut session = server.connect().unwrap();
    let mut results = Vec::new();
    session.query_text("SELECT 1; SELECT 2", &mut results).unwrap();
    assert_eq!(results.iter().map(Rows::len).collect::<Vec<_>>(), [2, 1]);
    assert_eq!((results[0].int(1, 0).unwrap(), results[0].name(0)), (-2, Some(&b"number"[..])));
    assert_eq!((results[1].int(0, 0).unwrap(), results[1].affected()), (7, 1));
    let heard = server.heard();
    assert_eq!(kinds(&heard), [0x12, LOGIN, SQL_BATCH, SQL_BATCH]);
    let login = &heard[1].1;
    assert!(!login.windows(4).any(|part| part == &wide("s3")[..]), "the password is not readable");
    let user = usize::from(u16::from_le_bytes([login[40], login[41]]));
    assert_eq!(&login[user..user + 4], &wide("sa")[..]);
    assert!(batch_text(&heard[2].1).contains("SET ARITHABORT ON"));
    assert_eq!(batch_text(&heard[3].1), "SELECT 1; SELECT 2");
}

#[test]
fn a_refused_login_says_why_and_repeats_no_password() {
    let server = Scripted::new(|peer| {
        peer.hear()?;
        peer.say_as(4, &prelogin(2));
        peer.hear()?;
        peer.say(&[error(18456, 14, "Login failed for user 'sa'."), done(DONE, FAILED, 0)]);
        None
    });
    let error = server.connect().map(drop).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Authentication);
    assert!(error.to_string().contains("MSSQL_PASSWORD") && !error.to_string().contains("s3cr"), "{error}");
    // Without a password nothing is sent but the first word.
    let mut server = Scripted::new(|peer| {
        peer.hear()?;
        peer.say_as(4, &prelogin(2));
        peer.hear().map(drop)
    });
    server.config.password = None;
    let error = server.connect().map(drop).unwrap_err();
    assert!(kelvin_database::sqlserver::password::is_missing(&error), "{error}");
    assert_eq!(kinds(&server.heard()), [0x12]);
}

#[test]
fn a_statement_is_prepared_by_its_first_execution_and_keeps_its_handle() {
    let server = Scripted::new(|peer| {
        peer.let_in()?;
        // The types of the parameters cannot be determined.
        peer.hear()?;
        peer.say(&[error(11526, 16, "cannot"), done(DONE_PROC, FAILED, 0)]);
        for handle in [Some(5), None, Some(6)] {
            peer.hear()?;
            let mut tokens =
                vec![ints("a", &[1]), done(DONE_IN_PROC, MORE | COUNT, 1), vec![0x79, 0, 0, 0, 0]];
            tokens.extend(handle.map(returned));
            tokens.push(done(DONE_PROC, FINAL, 0));
            peer.say(&tokens);
        }
        None
    });
    let mut session = server.connect().unwrap();
    let statement = session.prepare("SELECT a FROM t WHERE b = $1 AND c = $2").unwrap();
    let mut rows = Rows::new();
    for amount in [Decimal::new(150, 2), Decimal::new(5, 1), Decimal::new(1, 3)] {
        session.execute(statement, &[Value::Int(3), Value::Decimal(amount)], &mut rows).unwrap();
        assert_eq!((rows.len(), rows.int(0, 0).unwrap(), rows.affected()), (1, 1, 1));
    }
    assert!(session.execute(statement, &[Value::Int(3)], &mut rows).is_err());
    let heard = server.heard();
    // Behind the headers: a number instead of a name, and which.
    let procedures: Vec<u8> = heard[4..].iter().map(|(_, body)| body[24]).collect();
    assert_eq!(procedures, [13, 12, 13], "prepared again for a decimal with more places");
    assert!(heard[4].1.windows(46).any(|part| part == &wide("@P1 bigint,@P2 decimal(")[..]));
    assert_eq!(&heard[5].1[28..37], &[0, 0, 0x26, 4, 4, 5, 0, 0, 0], "the handle");
}

#[test]
fn what_follows_an_error_in_a_message_ran_and_is_rolled_back() {
    let server = Scripted::new(|peer| {
        peer.let_in()?;
        peer.hear()?;
        peer.say(&[done(DONE, FINAL, 0)]);
        // Three calls: the first begins a transaction, the second ends it as the victim of a deadlock, the third, which the
        // server runs all the same, begins another.
        peer.hear()?;
        peer.say(&[
            began(7),
            done(DONE_IN_PROC, MORE | COUNT, 1),
            done(DONE_PROC, MORE | IN_BATCH, 0),
            error(1205, 13, "deadlocked"),
            rolled_back(),
            done(DONE_PROC, MORE | FAILED | IN_BATCH, 0),
            began(8),
            done(DONE_IN_PROC, MORE | COUNT, 3),
            done(DONE_PROC, FINAL, 0),
        ]);
        peer.hear()?;
        peer.say(&[rolled_back(), done(DONE, FINAL, 0)]);
        peer.hear()?;
        peer.say(&[done(DONE, FINAL, 0)]);
        peer.hear()?;
        peer.say(&[done(DONE, COUNT, 9)]);
        None
    });
    let mut session = server.connect().unwrap();
    let call = session.prepare("EXEC p").unwrap();
    session.queue_control(TransactionControl::Begin).unwrap();
    for _ in 0..3 {
        session.queue(call, &[]).unwrap();
    }
    session.queue_control(TransactionControl::Commit).unwrap();
    let mut results = Vec::new();
    let error = session.flush(&mut results).unwrap_err();
    assert_eq!((error.class(), error.code().0.as_str()), (ErrorClass::Deadlock, "1205/13/1"));
    assert_eq!(results.len(), 5);
    assert_eq!((results[1].affected(), results[3].affected()), (1, 0));
    assert!(session.in_transaction() && !session.is_broken());
    let mut rows = Rows::new();
    assert!(session.execute(call, &[], &mut rows).unwrap_err().message().contains("already failed"));
    session.control(TransactionControl::Rollback).unwrap();
    assert!(!session.in_transaction());
    session.run("UPDATE t SET a = 1").unwrap();
    let heard = server.heard();
    assert_eq!(kinds(&heard[3..]), [SQL_BATCH, RPC, MANAGER, SQL_BATCH, SQL_BATCH]);
    assert_eq!(batch_text(&heard[3].1), "SET IMPLICIT_TRANSACTIONS ON");
    let name = [&[1, 0][..], &wide("p"), &[0, 0]].concat();
    assert_eq!(heard[4].1[22..], [&name[..], &[0xff], &name, &[0xff], &name].concat());
    assert_eq!((&heard[5].1[10..18], &heard[5].1[22..24]), (&8_u64.to_le_bytes()[..], &[8, 0][..]));
    assert_eq!(batch_text(&heard[6].1), "SET IMPLICIT_TRANSACTIONS OFF");
}

#[test]
fn a_transaction_is_named_by_its_descriptor_and_one_that_the_server_ended_is_not_committed() {
    let server = Scripted::new(|peer| {
        peer.let_in()?;
        for _ in 0..2 {
            peer.hear()?;
            peer.say(&[began(0x0102_0304_0506_0708), done(DONE, FINAL, 0)]);
            peer.hear()?;
            peer.say(&[done(DONE, COUNT, 2)]);
            peer.hear()?;
            peer.say(&[environment(9, &[]), done(DONE, FINAL, 0)]);
        }
        None
    });
    let mut session = server.connect().unwrap();
    session.control(TransactionControl::Begin).unwrap();
    session.run("UPDATE t SET a = 1").unwrap();
    session.control(TransactionControl::Commit).unwrap();
    session.run("begin transaction").unwrap();
    assert!(
        session.control(TransactionControl::Begin).unwrap_err().message().contains("a transaction is open")
    );
    session.run("UPDATE t SET a = 1").unwrap();
    // A procedure that commits.
    session.run("EXEC p").unwrap();
    let error = session.control(TransactionControl::Commit).unwrap_err();
    assert!(error.message().contains("ended before its commit"), "{error}");
    assert!(!session.in_transaction());
    let heard = server.heard();
    assert_eq!(kinds(&heard[3..]), [MANAGER, SQL_BATCH, MANAGER, MANAGER, SQL_BATCH, SQL_BATCH]);
    assert_eq!(heard[3].1[10..18], [0; 8]);
    assert_eq!(heard[4].1[10..18], 0x0102_0304_0506_0708_u64.to_le_bytes());
    assert_eq!(heard[5].1[22..], [7, 0, 0, 0]);
}

#[test]
fn outputs_come_back_as_a_row() {
    let server = Scripted::new(|peer| {
        peer.let_in()?;
        peer.hear()?;
        let mut described = vec![0x81, 8, 0];
        for (at, kind) in [0xe7, 0xe7, 0x26, 0x26, 0x26, 0x26, 0xe7, 0xe7].into_iter().enumerate() {
            described.extend([0, 0, 0, 0, 1, 0, kind]);
            if kind == 0xe7 {
                described.extend([200, 0, 9, 4, 0xd0, 0, 0x34]);
            } else {
                described.push(4);
            }
            described.extend(short(&at.to_string()));
        }
        for (name, of) in [("@a", "int"), ("@b", "decimal")] {
            described.push(0xd1);
            for text in [name, of] {
                described.extend((wide(text).len() as u16).to_le_bytes());
                described.extend(wide(text));
            }
            for number in [12, 2, 9, 0] {
                described.extend([4, number, 0, 0, 0]);
            }
            for text in ["sys", of] {
                described.extend((wide(text).len() as u16).to_le_bytes());
                described.extend(wide(text));
            }
        }
        peer.say(&[described, done(DONE_IN_PROC, MORE | COUNT, 2), done(DONE_PROC, FINAL, 0)]);
        peer.hear()?;
        peer.say(&[
            ints("x", &[4]),
            done(DONE_IN_PROC, MORE, 0),
            returned(11),
            returned(12),
            done(DONE_PROC, FINAL, 0),
        ]);
        None
    });
    let mut session = server.connect().unwrap();
    let call = session.prepare("EXEC p @a = $1 OUTPUT, @b = $2 OUT").unwrap();
    let mut rows = Rows::new();
    session.execute(call, &[Value::Int(1), Value::Null], &mut rows).unwrap();
    assert_eq!((rows.len(), rows.int(0, 0).unwrap(), rows.int(0, 1).unwrap()), (1, 11, 12));
    let heard = server.heard();
    let sent = &heard[4].1[22..];
    let expected = [
        &[1, 0][..],
        &wide("p"),
        &[0, 0],
        &short("@a"),
        &[1, 0x26, 8, 8, 1, 0, 0, 0, 0, 0, 0, 0],
        &short("@b"),
        &[1, 0x6a, 9, 12, 2, 0],
    ]
    .concat();
    assert_eq!(sent, expected);
}

#[test]
fn a_cancelled_statement_ends_and_the_session_goes_on() {
    for crossed in [false, true] {
        let server = Scripted::new(move |peer| {
            peer.let_in()?;
            peer.hear()?;
            if crossed {
                // The answer was complete when the attention came.
                let (kind, _) = peer.hear()?;
                assert_eq!(kind, ATTENTION_PACKET);
                peer.say(&[ints("a", &[1]), done(DONE, COUNT, 1)]);
                peer.say(&[done(DONE, ATTENTION, 0)]);
            } else {
                peer.hear()?;
                peer.say(&[ints("a", &[1]), done(DONE, MORE | FAILED, 0), done(DONE, ATTENTION, 0)]);
            }
            peer.hear()?;
            peer.say(&[ints("a", &[5]), done(DONE, COUNT, 1)]);
            None
        });
        let mut session = server.connect().unwrap();
        let cancel = session.cancel();
        // Nothing runs: this is meant for no statement.
        cancel.cancel().unwrap();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            cancel.cancel().unwrap();
        });
        let error = session.query("WAITFOR DELAY '1:00'").unwrap_err();
        thread.join().unwrap();
        assert_eq!((error.class(), error.message()), (ErrorClass::Timeout, "the statement was cancelled"));
        assert_eq!(session.query("SELECT 5").unwrap().int(0, 0).unwrap(), 5);
        drop(session);
        assert_eq!(kinds(&server.heard()[3..]), [SQL_BATCH, ATTENTION_PACKET, SQL_BATCH]);
    }
}

#[test]
fn a_time_out_is_kept_whether_or_not_somebody_may_cancel() {
    for may_cancel in [false, true] {
        let server = Scripted::new(|peer| {
            peer.let_in()?;
            peer.hear()?;
            peer.hear().map(drop)
        });
        let mut session = server.connect().unwrap();
        let cancel = may_cancel.then(|| session.cancel());
        session.set_timeout(Some(Duration::from_millis(300))).unwrap();
        let error = session.query("WAITFOR DELAY '1:00'").unwrap_err();
        assert_eq!(error.class(), ErrorClass::Timeout, "{error}");
        assert!(session.is_broken());
        drop((session, cancel));
    }
}

#[test]
fn rows_are_loaded_as_the_server_describes_them() {
    let server = Scripted::new(|peer| {
        peer.let_in()?;
        peer.hear()?;
        let mut described = vec![0x81, 2, 0, 0, 0, 0, 0, 8, 0, 0x38];
        described.extend(short("k"));
        described.extend([0, 0, 0, 0, 9, 0, 0xa7, 10, 0, 9, 4, 0xd0, 0, 0x34]);
        described.extend(short("v"));
        peer.say(&[described, done(DONE, COUNT, 0)]);
        peer.hear()?;
        peer.say(&[done(DONE, FINAL, 0)]);
        peer.hear()?;
        peer.say(&[done(DONE, COUNT, 2)]);
        None
    });
    let mut session = server.connect().unwrap();
    let table = BulkTable { name: "t]", columns: &[("k", ColumnType::Int4), ("v", ColumnType::Text)] };
    let mut load = session.bulk_load(&table).unwrap();
    load.row(&[Value::Int(1), Value::Text("ä")]).unwrap();
    assert!(load.row(&[Value::Int(1 << 40), Value::Null]).unwrap_err().message().starts_with("column k"));
    load.row(&[Value::Int(2), Value::Null]).unwrap();
    assert_eq!(load.finish().unwrap(), 2);
    let heard = server.heard();
    assert_eq!(batch_text(&heard[3].1), "SELECT TOP 0 [k], [v] FROM [t]]]");
    assert_eq!(batch_text(&heard[4].1), "INSERT BULK [t]]] ([k] int, [v] varchar(10)) WITH (TABLOCK)");
    let mut expected = vec![0x81, 2, 0, 0, 0, 0, 0, 8, 0, 0x26, 4];
    expected.extend(short("k"));
    expected.extend([0, 0, 0, 0, 9, 0, 0xa7, 10, 0, 9, 4, 0xd0, 0, 0x34]);
    expected.extend(short("v"));
    expected.extend([0xd1, 4, 1, 0, 0, 0, 1, 0, 0xe4, 0xd1, 4, 2, 0, 0, 0, 0xff, 0xff]);
    expected.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(heard[5], (BULK, expected));
}

/// Answers to a query that no server gives, each with words of what is said of it.
fn malformed() -> Vec<(Vec<u8>, &'static str)> {
    let message = |tokens: &[Vec<u8>]| {
        let content = tokens.concat();
        let [high, low] = ((content.len() + 8) as u16).to_be_bytes();
        [&[4, 1, high, low, 0, 0, 1, 0], &content[..]].concat()
    };
    let of = |bytes: &[u8]| message(&[bytes.to_vec()]);
    let column = |kind: &[u8]| [&[0x81, 1, 0, 0, 0, 0, 0, 0, 0], kind, &[0]].concat();
    let with_row = |kind: &[u8], row: &[u8]| message(&[column(kind), vec![0xd1], row.to_vec()]);
    vec![
        (Vec::new(), "closed the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n".to_vec(), "packet of kind 0x48"),
        (vec![4, 1, 0, 7, 0, 0, 1, 0], "7 bytes"),
        (vec![4, 1, 0, 20, 0, 0, 1, 0, 0xfd], "closed the connection"),
        (of(&[0xfd, 0, 0]), "in the middle of a token"),
        (of(&[0x00]), "unknown token 0x00"),
        (of(&[0x88, 1, 0]), "unknown token 0x88"),
        (of(&[0xd1, 4, 1, 0, 0, 0]), "without describing its columns"),
        (of(&[0xd2, 0]), "without describing its columns"),
        (of(&column(&[0x99])), "unknown type 0x99"),
        (of(&[0x81, 0, 0x10, 0, 0]), "in the middle of a token"),
        (with_row(&[0x26, 4], &[3, 1, 2, 3]), "an integer of 3 bytes"),
        (with_row(&[0x26, 4], &[200, 1]), "in the middle of a token"),
        (with_row(&[0xe7, 0xff, 0xff, 0, 0, 0, 0, 0], &[[0xfe; 8], [0xff; 8]].concat()), "announced a value"),
        (
            with_row(&[0x22, 0, 0, 0, 0, 0], &[[16; 1].as_slice(), &[0; 24], &[0xff; 4]].concat()),
            "announced a value",
        ),
        (with_row(&[0x6f, 8], &[8, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]), "invalid datetime"),
        (with_row(&[0x6a, 9, 9, 99], &[9, 1, 1, 1, 1, 1, 1, 1, 1, 1]), "a decimal of 9 bytes"),
        (with_row(&[0x62, 0, 0, 0, 0], &[2, 0, 0, 0, 0x62, 0]), "sql_variant within"),
        (of(&[0xaa, 4, 0, 1, 2, 3, 4]), "message that is too short"),
        (of(&[0xe3, 3, 0, 4, 9, b'x']), "message that is too short"),
        (message(&[packet_size(9)]), "packets of \"9\" bytes"),
        (of(&[0xe3, 4, 0, 8, 2, 1, 1]), "is not 8 bytes long"),
        (of(&[0xae, 1, 0xff, 0xff, 0xff, 0xff]), "announced a value"),
    ]
}

#[test]
fn malformed_conversations_end_in_a_clear_error() {
    assert!(malformed().len() >= 20);
    for (bytes, words) in malformed() {
        let shown = format!("{bytes:02x?}");
        let server = Scripted::new(move |peer| {
            peer.let_in()?;
            peer.hear()?;
            peer.raw(&bytes);
            None
        });
        let mut session = server.connect().unwrap();
        let error = session.query("SELECT 1").unwrap_err();
        assert!(
            matches!(error.class(), ErrorClass::Protocol | ErrorClass::ConnectionLost),
            "{shown}: {error}"
        );
        assert!(error.to_string().contains(words), "{shown}: {error}");
        assert!(session.is_broken());
        assert!(session.run("SELECT 1").unwrap_err().message().contains("lost earlier"));
    }
}
