//! A TDS server that answers from a recording, for the real command.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use super::recording::{Field, Recording};

const PACKET: usize = 4096;
/// "No encryption here."
const PRELOGIN: [u8; 18] = [0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xff, 16, 0, 0, 0, 0, 0, 2];

/// Serves a recording on a port of this host as long as the test runs.
pub(crate) fn serve(name: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let recording = Arc::new(Recording::read(name));
    let began = Instant::now();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let recording = Arc::clone(&recording);
            std::thread::spawn(move || talk(&mut stream.unwrap(), &recording, began));
        }
    });
    port
}

/// Serves one connection until its client disconnects.
fn talk(stream: &mut TcpStream, recording: &Recording, began: Instant) -> Option<()> {
    hear(stream)?;
    say(stream, &PRELOGIN)?;
    hear(stream)?;
    let acknowledged =
        [&[1][..], &0x7400_0004_u32.to_be_bytes(), &short("Recorded"), &[16, 0, 0, 0]].concat();
    let packets = [&[4][..], &short("4096"), &short("4096")].concat();
    let collation = [7, 5, 9, 4, 0xd0, 0, 0x34, 0];
    say(
        stream,
        &[token(0xad, &acknowledged), token(0xe3, &packets), token(0xe3, &collation), done()].concat(),
    )?;
    // The settings of every session, and its query whether this is Babelfish.
    hear(stream)?;
    say(stream, &[rows(&[vec![Field::Int(0)]]), done()].concat())?;
    for asked in 0.. {
        let (_, body) = hear(stream)?;
        let units: Vec<u16> =
            body[22..].chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        let sql = String::from_utf16(&units).unwrap();
        let name = sql.strip_prefix("/* kelvin ").and_then(|sql| Some(sql.split_once(" */")?.0));
        let answer = match name.map(|name| recording.rows(name, began.elapsed().as_secs_f64(), asked)) {
            Some(Ok(answer)) => rows(&answer),
            Some(Err(why)) => panic!("{why}"),
            None => Vec::new(),
        };
        say(stream, &[answer, done()].concat())?;
    }
    None
}

/// Reads the client's next message, and its type.
fn hear(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut whole = Vec::new();
    loop {
        let mut head = [0; 8];
        stream.read_exact(&mut head).ok()?;
        let mut body = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]])) - head.len()];
        stream.read_exact(&mut body).ok()?;
        whole.extend(body);
        if head[1] & 1 != 0 {
            return Some((head[0], whole));
        }
    }
}

fn say(stream: &mut TcpStream, content: &[u8]) -> Option<()> {
    let parts: Vec<&[u8]> = content.chunks(PACKET - 8).collect();
    let mut out = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let [high, low] = ((part.len() + 8) as u16).to_be_bytes();
        out.extend([4, u8::from(at + 1 == parts.len()), high, low, 0, 51, at as u8, 0]);
        out.extend_from_slice(part);
    }
    stream.write_all(&out).ok()
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn short(text: &str) -> Vec<u8> {
    [&[text.encode_utf16().count() as u8], &wide(text)[..]].concat()
}

fn token(number: u8, body: &[u8]) -> Vec<u8> {
    [&[number], &(body.len() as u16).to_le_bytes()[..], body].concat()
}

fn done() -> Vec<u8> {
    [&[0xfd, 0, 0, 0xc1, 0][..], &0_u64.to_le_bytes()].concat()
}

/// A result set: text columns as nvarchar(max), numbers as bigint or float.
fn rows(answer: &[Vec<Field>]) -> Vec<u8> {
    let columns = answer.first().map_or(1, Vec::len);
    let has = |column: usize, of: fn(&Field) -> bool| answer.iter().any(|row| of(&row[column]));
    let kinds: Vec<u8> = (0..columns)
        .map(|column| match () {
            () if has(column, |field| matches!(field, Field::Text(_))) => 0xe7,
            () if has(column, |field| matches!(field, Field::Float(_))) => 0x6d,
            () => 0x26,
        })
        .collect();
    let mut out = [&[0x81][..], &(columns as u16).to_le_bytes()].concat();
    for kind in &kinds {
        out.extend([0, 0, 0, 0, 1, 0, *kind]);
        match kind {
            0xe7 => out.extend([0xff, 0xff, 9, 4, 0xd0, 0, 0x34]),
            _ => out.push(8),
        }
        out.extend(short("c"));
    }
    for row in answer {
        out.push(0xd1);
        for (field, kind) in row.iter().zip(&kinds) {
            match (field, kind) {
                (Field::Null, 0xe7) => out.extend([0xff; 8]),
                (Field::Null, _) => out.push(0),
                (Field::Text(text), _) => {
                    let text = wide(text);
                    out.extend((text.len() as u64).to_le_bytes());
                    if !text.is_empty() {
                        out.extend((text.len() as u32).to_le_bytes());
                        out.extend(text);
                    }
                    out.extend([0; 4]);
                }
                (Field::Int(value), 0x26) => {
                    out.push(8);
                    out.extend(value.to_le_bytes());
                }
                (number, _) => {
                    out.push(8);
                    out.extend(number.number().to_le_bytes());
                }
            }
        }
    }
    out
}
