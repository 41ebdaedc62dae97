//! Scraped endpoints are checked before the load.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;

use support::{Place, text};

/// Starts a server that answers `times` requests with a page and its type.
fn answering(page: &'static str, times: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(times) {
            let mut stream = stream.unwrap();
            let _request = stream.read(&mut [0; 4096]).unwrap();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length:";
            write!(stream, "{head} {}\r\n\r\n{page}", page.len()).unwrap();
        }
    });
    address
}

#[test]
fn what_cannot_be_scraped_ends_before_any_load() {
    let page = answering("<html><body>It works!</body></html>", 2);
    // A port whose listener is closed.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for (endpoint, why) in [
        ("nonsense", "nonsense"),
        (gone.as_str(), gone.as_str()),
        (page.as_str(), "Prometheus' text format"),
        ("ftp://db1/metrics", "http://"),
    ] {
        for command in [&["run", "tproc-c", "--duration", "1s"][..], &["observe", "--duration", "1s"]] {
            let place = Place::new();
            let output = place.run(&[command, &["--scrape", endpoint]].concat());
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{endpoint}: {said}");
            assert!(said.contains(why) && said.contains("--scrape"), "{endpoint}: {said}");
            assert!(!place.store().exists(), "{endpoint}: nothing was begun");
        }
    }
}
