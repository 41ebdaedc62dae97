//! The connection to NATS. Its tasks run on a separate thread with its own runtime, so that threads that
//! generate load call blocking functions. Without a fleet neither is started.

mod objects;

pub(crate) use objects::StoredStream;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, stream};
use async_nats::{Client, ConnectOptions};
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::{FleetError, causes};
use crate::message::{clean, decode, encode};

pub(crate) use objects::LARGEST_FILE;

type Result<T> = std::result::Result<T, FleetError>;

/// Time limit for passing a message to the connection.
const HAND_OVER: Duration = Duration::from_secs(2);

/// Time limit of the first connection.
const CONNECT: Duration = Duration::from_secs(5);

/// Pause before another attempt to connect or read.
const AGAIN: Duration = Duration::from_millis(200);

/// Time limit of a storage request.
const STORAGE: Duration = Duration::from_secs(5);

/// How long the server keeps a run.
const KEPT: Duration = Duration::from_hours(24 * 7);

/// A repeated message is recognised within this time.
const DUPLICATES: Duration = Duration::from_mins(10);

/// Number of stored messages that are requested at once, and how long the server waits for them.
const BATCH: usize = 64;
const BATCH_WAIT: Duration = Duration::from_millis(500);

/// Interval of the checks whether there is room for more messages.
const ROOM: Duration = Duration::from_millis(20);

/// The address of a NATS server and this client's credentials.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// `nats://host:port` or `tls://host:port`.
    pub url: String,
    /// The file with the seed of this client's nkey.
    pub key: Option<PathBuf>,
    /// The certificate of the authority that signed the server's certificate.
    pub authority: Option<PathBuf>,
    /// This client's certificate and key, if the server requires them.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl Connection {
    /// Refuses connections that would let others start load: beyond this host TLS and a key are required, and
    /// the URL must not contain secrets.
    pub fn check(&self) -> Result<()> {
        let refused = |why: String| Err(FleetError::Refused(why));
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("", &self.url));
        if !matches!(scheme, "nats" | "tls") {
            return refused(format!(
                "{}: write nats://127.0.0.1:4222 or tls://host:4222",
                kelvin_measure::redact(&self.url)
            ));
        }
        if rest.contains('@') {
            return refused(
                "a user or a token in a NATS URL would be visible in process lists: give the file of an nkey \
                 seed with --nats-key"
                    .into(),
            );
        }
        let host = host_of(rest);
        if !is_loopback(host) && (scheme != "tls" || self.key.is_none()) {
            return refused(format!(
                "{host} is not this host: connections to other hosts require TLS and a key; write \
                    tls://{rest} and give --nats-key"
            ));
        }
        Ok(())
    }
}

/// The host of `host:port/…`.
fn host_of(rest: &str) -> &str {
    let rest = rest.split(['/', '?']).next().unwrap_or(rest);
    match rest.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(v6),
        None => rest.split(':').next().unwrap_or(rest),
    }
}

/// Whether an address or name refers to this host.
pub(crate) fn is_loopback(host: &str) -> bool {
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// A received message.
pub(crate) struct Incoming {
    pub(crate) subject: String,
    pub(crate) payload: Vec<u8>,
    reply: Option<String>,
}

/// A connection to NATS.
pub struct Bus {
    client: Client,
    storage: jetstream::Context,
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    refusals: Arc<Mutex<BTreeSet<String>>>,
}

/// Limit of the distinct refusals that are kept.
const MOST_REFUSALS: usize = 16;

impl Bus {
    /// Connects. `name` is visible to the server's administrator; `inbox` is the prefix of the subjects of
    /// answers.
    pub fn connect(connection: &Connection, name: &str, inbox: Option<&str>) -> Result<Self> {
        connection.check()?;
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(CONNECT)
            .ping_interval(Duration::from_secs(2))
            .reconnect_delay_callback(|_| AGAIN)
            // Servers that the server announces were not checked.
            .ignore_discovered_servers()
            .subscription_capacity(1 << 16);
        if let Some(path) = &connection.key {
            options = options.nkey(crate::keys::read_seed(path)?);
        }
        if let Some(path) = &connection.authority {
            options = options.add_root_certificates(path.clone());
        }
        if let Some((certificate, key)) = &connection.certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        if connection.url.starts_with("tls://") {
            options = options.require_tls(true);
        }
        if let Some(inbox) = inbox {
            options = options.custom_inbox_prefix(inbox);
        }
        let refusals = Arc::new(Mutex::new(BTreeSet::new()));
        let noted = Arc::clone(&refusals);
        options = options.event_callback(move |event| {
            if let async_nats::Event::ServerError(error) = event {
                let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
                if noted.len() < MOST_REFUSALS {
                    noted.insert(clean(&error.to_string()));
                }
            }
            std::future::ready(())
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, start) = mpsc::channel();
        let url = connection.url.clone();
        let thread = std::thread::Builder::new()
            .name("nats".into())
            .spawn(move || {
                let runtime = match Builder::new_current_thread().enable_all().build() {
                    Ok(runtime) => runtime,
                    Err(error) => return drop(started.send(Err(FleetError::nats(error)))),
                };
                runtime.block_on(async move {
                    let connected = options.connect(&url).await;
                    let connected = connected.map_err(|error| {
                        FleetError::Nats(format!("cannot connect to {url}: {}", causes(&error)))
                    });
                    let is_connected = connected.is_ok();
                    // Fails only when the command is ending.
                    let _gone = started.send(connected.map(|client| (client, Handle::current())));
                    if is_connected {
                        let _dropped = stopped.await;
                    }
                });
            })
            .map_err(FleetError::nats)?;
        let (client, handle) = start.recv().map_err(FleetError::nats)??;
        // This starts a task.
        let mut storage = {
            let _within = handle.enter();
            jetstream::new(client.clone())
        };
        storage.set_timeout(STORAGE);
        Ok(Self { client, storage, handle, stop: Some(stop), thread: Some(thread), refusals })
    }

    /// What the server has refused since the last call, such as subjects that the key does not permit.
    pub(crate) fn take_refusals(&self) -> Vec<String> {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *refusals).into_iter().collect()
    }

    /// Whether the server was reachable when last checked.
    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// The largest message that the server accepts, in bytes.
    pub(crate) fn largest(&self) -> usize {
        self.client.max_payload().max(64 << 10)
    }

    /// Sends a message without confirmation; it may be lost.
    pub(crate) fn publish(&self, subject: &str, body: &impl Serialize) -> Result<()> {
        let payload = encode(body)?;
        if !self.is_connected() {
            return Err(FleetError::Nats("there is no connection".into()));
        }
        self.send(subject.to_owned(), payload)
    }

    fn send(&self, subject: String, payload: Vec<u8>) -> Result<()> {
        self.handle.block_on(async {
            let sent = tokio::time::timeout(HAND_OVER, self.client.publish(subject, payload.into())).await;
            sent.map_err(|_| FleetError::Nats("a message could not be sent in time".into()))?
                .map_err(FleetError::nats)
        })
    }

    /// Waits until the server has received what was sent.
    pub(crate) fn flush(&self) {
        // The caller notices a missing effect itself.
        let _late =
            self.handle.block_on(async { tokio::time::timeout(HAND_OVER, self.client.flush()).await });
    }

    /// Answers a message.
    pub(crate) fn answer(&self, incoming: &Incoming, body: &impl Serialize) -> Result<()> {
        let Some(reply) = &incoming.reply else { return Ok(()) };
        self.send(reply.clone(), encode(body)?)
    }

    /// Sends requests at the same time, each with its own content. The answers are in the order of the
    /// requests.
    pub(crate) fn ask<T: DeserializeOwned>(
        &self,
        questions: Vec<(String, Vec<u8>)>,
        patience: Duration,
    ) -> Vec<Result<T>> {
        let ask = |(subject, payload): (String, Vec<u8>)| {
            let request = async_nats::Request::new().payload(payload.into()).timeout(Some(patience));
            async move {
                let answer = self.client.send_request(subject, request).await;
                answer.map_err(FleetError::nats).and_then(|message| decode(&message.payload))
            }
        };
        self.handle.block_on(join_all(questions.into_iter().map(ask)))
    }

    /// As [`Bus::ask`], without waiting. Answers arrive in any order, with the number of their request.
    pub(crate) fn ask_each<T: DeserializeOwned + Send + 'static>(
        &self,
        questions: Vec<(String, Vec<u8>)>,
        patience: Duration,
    ) -> Answers<T> {
        let (sender, answers) = mpsc::channel();
        let ask = |(number, (subject, payload)): (usize, (String, Vec<u8>))| {
            let request = async_nats::Request::new().payload(payload.into()).timeout(Some(patience));
            let (client, sender) = (self.client(), sender.clone());
            self.spawn(async move {
                let answer = client.send_request(subject, request).await;
                let answer = answer.map_err(FleetError::nats).and_then(|message| decode(&message.payload));
                // The caller may have given up.
                let _gone = sender.send((number, answer));
            })
        };
        let tasks = questions.into_iter().enumerate().map(ask).collect();
        Answers { answers, _tasks: tasks }
    }

    /// Waits for a future that uses the connection.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.handle.block_on(future)
    }

    /// Runs a future on the connection's thread.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> Task {
        Task(self.handle.spawn(future).abort_handle())
    }

    /// The client, for futures that run on its thread.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Passes every message of a subject to `take`, which must not block.
    pub(crate) fn subscribe(
        &self,
        subject: &str,
        mut take: impl FnMut(Incoming) + Send + 'static,
    ) -> Result<Task> {
        let subscribed = self.handle.block_on(self.client.subscribe(subject.to_owned()));
        let mut messages = subscribed.map_err(FleetError::nats)?;
        Ok(self.spawn(async move {
            while let Some(message) = messages.next().await {
                take(Incoming {
                    subject: message.subject.to_string(),
                    payload: message.payload.to_vec(),
                    reply: message.reply.map(|reply| reply.to_string()),
                });
            }
        }))
    }

    /// Answers every message of a subject immediately.
    pub(crate) fn serve(
        &self,
        subject: &str,
        mut answer: impl FnMut() -> Vec<u8> + Send + 'static,
    ) -> Result<Task> {
        let client = self.client();
        let subscribed = self.handle.block_on(self.client.subscribe(subject.to_owned()));
        let mut messages = subscribed.map_err(FleetError::nats)?;
        Ok(self.spawn(async move {
            while let Some(message) = messages.next().await {
                if let Some(reply) = message.reply {
                    // If the answer is lost, the request is repeated.
                    let _lost = client.publish(reply, answer().into()).await;
                }
            }
        }))
    }

    /// Creates the stream that stores messages of these subjects, unless it exists.
    pub(crate) fn make_stream(&self, name: &str, subjects: Vec<String>) -> Result<()> {
        let config = stream::Config {
            name: name.to_owned(),
            subjects,
            max_age: KEPT,
            duplicate_window: DUPLICATES,
            storage: stream::StorageType::File,
            ..stream::Config::default()
        };
        let made = self.handle.block_on(self.storage.get_or_create_stream(config));
        made.map(drop).map_err(|error| {
            FleetError::Nats(format!("cannot store a run; is JetStream on? {}", causes(&error)))
        })
    }

    /// Removes a stream.
    pub(crate) fn remove_stream(&self, name: &str) -> Result<()> {
        self.handle.block_on(self.storage.delete_stream(name)).map(drop).map_err(FleetError::nats)
    }

    /// Sends a message that the server stores exactly once, and waits for the confirmation.
    pub(crate) fn store(&self, subject: &str, id: &str, payload: Vec<u8>) -> Result<()> {
        let message = PublishMessage::build().payload(payload.into()).message_id(id);
        self.handle.block_on(async {
            let stored =
                async { self.storage.send_publish(subject.to_owned(), message).await?.await.map(drop) };
            match tokio::time::timeout(STORAGE, stored).await {
                Ok(stored) => stored.map_err(FleetError::nats),
                Err(_) => Err(FleetError::Nats("no answer".into())),
            }
        })
    }

    /// Passes the stored messages of a stream to `take`, in order and each once, with their sequence in the
    /// stream, until `take` returns false. A message stays on the server until `has_room` returns true for
    /// its sequence. After an interruption it continues with the next message.
    pub(crate) fn follow(
        &self,
        stream: String,
        has_room: impl Fn(u64) -> bool + Send + Sync + 'static,
        mut take: impl FnMut(u64, Incoming) -> bool + Send + 'static,
    ) -> Task {
        let storage = self.storage.clone();
        self.spawn(async move {
            let mut next = 1;
            while let Some(more) = read_on(&storage, &stream, &mut next, &has_room, &mut take).await {
                if !more {
                    // Unreachable or restarted: the next attempt creates a new consumer.
                    tokio::time::sleep(AGAIN).await;
                }
            }
        })
    }
}

/// Reads with one consumer until it fails. Returns whether it has read anything; `None` if no more messages
/// are wanted.
async fn read_on(
    storage: &jetstream::Context,
    stream: &str,
    next: &mut u64,
    has_room: &(impl Fn(u64) -> bool + Sync),
    take: &mut (impl FnMut(u64, Incoming) -> bool + Send),
) -> Option<bool> {
    let config = pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: *next },
        ack_policy: AckPolicy::None,
        inactive_threshold: Duration::from_mins(1),
        ..pull::Config::default()
    };
    let Ok(consumer) = storage.create_consumer_on_stream(config, stream).await else { return Some(false) };
    let (began, mut delivered) = (*next, 0);
    loop {
        while !has_room(*next) {
            tokio::time::sleep(ROOM).await;
        }
        let batch = consumer.fetch().max_messages(BATCH).expires(BATCH_WAIT).messages();
        let Ok(Ok(mut batch)) = tokio::time::timeout(STORAGE, batch).await else {
            return Some(*next > began);
        };
        loop {
            let Ok(message) = tokio::time::timeout(STORAGE, batch.next()).await else {
                return Some(*next > began);
            };
            let Some(message) = message else { break };
            let Ok(message) = message else { return Some(*next > began) };
            let info = message.info().map(|info| (info.stream_sequence, info.consumer_sequence));
            let Ok((sequence, delivery)) = info else { continue };
            // A batch that is read too slowly expires with messages in it; a new consumer delivers them.
            if delivery != delivered + 1 {
                return Some(true);
            }
            delivered = delivery;
            if sequence < *next {
                continue;
            }
            *next = sequence + 1;
            let (message, _) = message.split();
            let (subject, payload) = (message.subject.to_string(), message.payload.to_vec());
            if !take(sequence, Incoming { subject, payload, reply: None }) {
                return None;
            }
        }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.flush();
        if let Some(stop) = self.stop.take() {
            // Fails if the thread has already ended.
            let _ended = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// Outstanding answers. Dropping it cancels the requests.
pub(crate) struct Answers<T> {
    pub(crate) answers: mpsc::Receiver<(usize, Result<T>)>,
    _tasks: Vec<Task>,
}

/// A task on the connection's thread, aborted when dropped.
pub(crate) struct Task(tokio::task::AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_starts_load_from_beyond_the_host_without_tls_and_a_key() {
        let of = |url: &str, key: bool| Connection {
            url: url.into(),
            key: key.then(|| "seed".into()),
            ..Connection::default()
        };
        for (url, key) in [
            ("nats://10.0.0.1:4222", true),
            ("tls://db1:4222", false),
            ("nats://[2001:db8::1]:4222", true),
            ("nats://127.0.0.1.example.org:4222", true),
            ("nats://localhost.example.org:4222", true),
        ] {
            let error = of(url, key).check().unwrap_err().to_string();
            assert!(error.contains("TLS and a key"), "{url}: {error}");
        }
        for (url, key) in
            [("nats://127.0.0.1:4222", false), ("nats://[::1]:4222", false), ("tls://db1:4222", true)]
        {
            of(url, key).check().unwrap();
        }
        let error = of("nats://me:secret@127.0.0.1:4222", true).check().unwrap_err().to_string();
        assert!(error.contains("--nats-key") && !error.contains("secret"), "{error}");
        assert!(of("http://127.0.0.1", true).check().is_err());
    }
}
