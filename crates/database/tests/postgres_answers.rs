//! Answers that a broken connection made of good ones: none may pass for a commit, or for a result that is whole.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use kelvin_database::postgres::{Config, Host, PostgresEngine, SslMode};
use kelvin_database::{Engine, Error, ErrorClass, Rows, TransactionControl};

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn row(value: i32) -> Vec<u8> {
    message(b'D', &[&1_u16.to_be_bytes()[..], &4_u32.to_be_bytes(), &value.to_be_bytes()].concat())
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

/// One column of type int4.
fn description() -> Vec<u8> {
    let mut body = b"\0\x01c\0\0\0\0\0\0\0".to_vec();
    body.extend_from_slice(&23_u32.to_be_bytes());
    body.extend_from_slice(&[0, 4, 0xff, 0xff, 0xff, 0xff, 0, 0]);
    message(b'T', &body)
}

/// A server that lets everybody in, prepares anything as a statement with one int4 column, and answers what is
/// then executed with `answer`.
fn serve(mut client: TcpStream, answer: &[u8]) {
    let heard = |client: &mut TcpStream| client.read(&mut [0; 4096]).is_ok_and(|count| count > 0);
    let nothing = [message(b'1', &[]), message(b't', &[0, 0]), message(b'n', &[])].concat();
    let prepared = [message(b'1', &[]), message(b't', &[0, 0]), description(), ready()].concat();
    let welcome = [message(b'R', &[0, 0, 0, 0]), ready()].concat();
    for reply in [welcome, [nothing.repeat(4), ready()].concat(), prepared, answer.to_vec()] {
        if !heard(&mut client) || client.write_all(&reply).is_err() {
            return;
        }
    }
    // Open until the client has judged.
    heard(&mut client);
}

/// What a session makes of `answer` to one execution, and whether it goes on afterwards.
fn judge(answer: &[Vec<u8>], commit: bool) -> (Result<usize, Error>, bool) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = answer.concat();
    std::thread::scope(|scope| {
        scope.spawn(move || serve(listener.accept().unwrap().0, &answer));
        let mut config = Config::new(Host::Tcp("127.0.0.1".into()), port, "u", "d");
        config.ssl_mode = SslMode::Disable;
        let mut session = PostgresEngine::new(config).connect().unwrap();
        session.set_timeout(Some(Duration::from_millis(300))).unwrap();
        let statement = session.prepare("SELECT 1").unwrap();
        let mut rows = Rows::new();
        let outcome = if commit {
            session.control(TransactionControl::Commit).map(|()| 0)
        } else {
            session.execute(statement, &[], &mut rows).map(|()| rows.len())
        };
        (outcome, session.is_broken())
    })
}

#[test]
fn only_a_whole_answer_is_a_good_one() {
    let bound = || message(b'2', &[]);
    let done = |tag: &[u8]| message(b'C', tag);
    let whole = [bound(), row(1), row(2), done(b"SELECT 2\0"), ready()];
    let (outcome, broken) = judge(&whole, false);
    assert_eq!((outcome.unwrap(), broken), (2, false));
    for (what, answer) in [
        // One bit makes a row a CopyData, others a notice, a notification, a changed setting.
        ("a row as CopyData", [bound(), row(1), message(b'd', &row(2)[5..]), done(b"SELECT 2\0"), ready()]),
        ("a row as a notice", [bound(), row(1), message(b'N', &row(2)[5..]), done(b"SELECT 2\0"), ready()]),
        ("a row twice", [row(1), row(1), row(2), done(b"SELECT 2\0"), ready()]),
        ("another count", [bound(), row(1), row(2), done(b"SELECT 3\0"), ready()]),
        (
            "a row as BindComplete",
            [bound(), row(1), message(b'2', &row(2)[5..]), done(b"SELECT 2\0"), ready()],
        ),
        ("an end as an empty query", [bound(), row(1), row(2), message(b'I', b"SELECT 2\0"), ready()]),
        (
            "a row of two fields",
            [bound(), row(1), message(b'D', &[0, 2, 0, 0]), done(b"SELECT 2\0"), ready()],
        ),
        (
            "a row with more behind it",
            [bound(), row(1), message(b'D', &[&row(2)[5..], b"x"].concat()), done(b"SELECT 2\0"), ready()],
        ),
    ] {
        let (outcome, broken) = judge(&answer, false);
        let error = outcome.expect_err(what);
        assert_eq!(
            (error.class(), error.code().0.as_str(), broken),
            (ErrorClass::Protocol, "", true),
            "{what}: {error}"
        );
    }
}

#[test]
fn only_the_word_commit_is_a_commit() {
    let answer = |tag: &[u8]| [message(b'2', &[]), message(b'C', tag), ready()];
    let (outcome, broken) = judge(&answer(b"COMMIT\0"), true);
    assert!(outcome.is_ok() && !broken);
    let (outcome, broken) = judge(&answer(b"ROLLBACK\0"), true);
    // Known not to have happened.
    assert_eq!((outcome.unwrap_err().code().0.as_str(), broken), ("25P02", false));
    for tag in [&b"COMMIU\0"[..], b"ROLMBACK\0", b"", b"COMMIT", b"SELECT 1\0"] {
        let (outcome, broken) = judge(&answer(tag), true);
        assert_eq!((outcome.unwrap_err().class(), broken), (ErrorClass::Protocol, true), "{tag:?}");
    }
}
