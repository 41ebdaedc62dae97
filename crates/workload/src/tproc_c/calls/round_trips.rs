//! Round trips of each way of calling, counted on the wire by a proxy between client and server.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kelvin_database::Engine;
use kelvin_database::postgres::{Config, PostgresEngine};

use super::tests::{build, support};
use super::*;
use crate::tproc_c::dialect::of_engine;
use crate::tproc_c::inputs::{Customer, UNUSED_ITEM, order_of};

/// Forwards one connection, and counts how often the client sends first or after the server has sent.
fn pass_on(mut client: TcpStream, mut server: TcpStream, round_trips: &AtomicU64) {
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
        // The sides are polled alternately: only the order of the bytes matters, not their timing.
        stream.set_read_timeout(Some(Duration::from_micros(200))).unwrap();
    }
    let mut buffer = vec![0; 1 << 16];
    let mut server_spoke = true;
    loop {
        for from_client in [true, false] {
            let (from, to) =
                if from_client { (&mut client, &mut server) } else { (&mut server, &mut client) };
            match from.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => {
                    if from_client && server_spoke {
                        round_trips.fetch_add(1, Ordering::SeqCst);
                    }
                    server_spoke = !from_client;
                    to.write_all(&buffer[..count]).unwrap();
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return,
            }
        }
    }
}

/// Listens for one connection and forwards it to the server at `port`; returns its own port and the count.
fn proxy(port: u16) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().port();
    let round_trips = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&round_trips);
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        pass_on(client, TcpStream::connect(("127.0.0.1", port)).unwrap(), &counted);
    });
    (at, round_trips)
}

fn payment(customer: Customer) -> Transaction {
    Transaction::Payment(Payment {
        warehouse: 1,
        district: 3,
        customer_warehouse: 2,
        customer_district: 7,
        customer,
        amount: 123_405,
    })
}

fn status(customer: Customer) -> Transaction {
    Transaction::OrderStatus(OrderStatus { warehouse: 1, district: 2, customer })
}

#[test]
fn a_transaction_takes_as_few_round_trips_as_its_data_allow() {
    let server = support::Server::start();
    server.admin().run("create database loaded").unwrap();
    build(&server.engine("loaded"));
    // With a repeated item, which is taken in a second round.
    let order = order_of(1, 4, 123, &[(77, 1, 10), (500, 1, 3), (77, 1, 10), (77, 2, 4)]);
    let unused = order_of(1, 5, 9, &[(12, 1, 3), (UNUSED_ITEM, 1, 1)]);
    let (by_number, by_name, nobody) = (Customer::Id(7), Customer::Name("BARBARBAR"), Customer::Name("$8"));
    let level = StockLevel { warehouse: 1, district: 2, threshold: 15 };
    let transactions = [
        (Transaction::NewOrder(order), 2),
        (Transaction::NewOrder(unused), 2),
        (payment(by_number), 1),
        (payment(by_name), 1),
        (payment(nobody), 1),
        (status(by_number), 1),
        (status(by_name), 1),
        (status(nobody), 1),
        (Transaction::StockLevel(level), 1),
        (Transaction::Delivery(Delivery { warehouse: 2, carrier: 9 }), 1),
    ];
    for calls in [Calls::Pipelined, Calls::Functions, Calls::Statements] {
        let (port, round_trips) = proxy(server.port());
        let url = format!("postgres://postgres@127.0.0.1:{port}/loaded");
        let mut session = PostgresEngine::new(Config::parse(&url).unwrap()).connect().unwrap();
        let driven = Driven::new(of_engine(session.engine()).unwrap(), calls);
        let mut executor = executor(Profile::Spec, driven, 2);
        executor.prepare(session.as_mut()).unwrap();
        for (transaction, pipelined) in &transactions {
            let before = round_trips.load(Ordering::SeqCst);
            executor.execute(session.as_mut(), transaction, &mut Details::default()).unwrap();
            let taken = round_trips.load(Ordering::SeqCst) - before;
            match calls {
                Calls::Pipelined => assert_eq!(taken, *pipelined, "{transaction:?}"),
                Calls::Functions => assert_eq!(taken, 1, "{transaction:?}"),
                // Checks the counter itself: one statement per round trip takes more.
                Calls::Statements => assert!(taken >= 3, "{transaction:?}: {taken}"),
            }
        }
    }
}
