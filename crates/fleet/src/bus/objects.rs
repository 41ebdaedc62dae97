//! Files in the server's object store, and the streams of stored runs.

use std::io::Write;
use std::time::Duration;

use async_nats::jetstream::object_store;
use futures_util::TryStreamExt;
use tokio::io::{AsyncRead, ReadBuf};

use super::{Bus, Result, STORAGE};
use crate::error::{FleetError, causes};

/// The largest file that is sent, in bytes. An hour of a run with ten transaction types takes less than a
/// tenth of it.
pub(crate) const LARGEST_FILE: u64 = 256 << 20;

/// Space in bytes that the server needs in addition to the content.
const OVERHEAD: u64 = 16 << 20;

/// Time limit of a transfer.
const TRANSFER: Duration = Duration::from_mins(5);

/// How long the server keeps a bucket that is not removed.
const KEPT: Duration = Duration::from_hours(1);

/// The name of the only file in a bucket.
const OBJECT: &str = "run";

impl Bus {
    /// Creates an empty bucket for one file.
    pub(crate) fn make_bucket(&self, bucket: &str) -> Result<()> {
        // A bucket left by an earlier attempt.
        let _none = self.remove_bucket(bucket);
        let config = object_store::Config {
            bucket: bucket.to_owned(),
            max_age: KEPT,
            max_bytes: i64::try_from(LARGEST_FILE + OVERHEAD).unwrap_or(i64::MAX),
            ..object_store::Config::default()
        };
        let made = self.wait(self.storage.create_object_store(config));
        made.map(drop).map_err(|error| FleetError::Nats(format!("cannot make a bucket: {}", causes(&error))))
    }

    /// Removes a bucket.
    pub(crate) fn remove_bucket(&self, bucket: &str) -> Result<()> {
        self.wait(self.storage.delete_object_store(bucket)).map_err(FleetError::nats)
    }

    /// Puts a file into an existing bucket.
    pub(crate) fn put_file(&self, bucket: &str, content: &[u8]) -> Result<()> {
        let put = async {
            let store = self.storage.get_object_store(bucket).await.map_err(FleetError::nats)?;
            let mut rest = content;
            store.put(OBJECT, &mut rest).await.map(drop).map_err(|error| FleetError::Nats(causes(&error)))
        };
        self.wait(async { tokio::time::timeout(TRANSFER, put).await }).map_err(|_| timed_out())?
    }

    /// Copies the file of a bucket into the empty `file`. Checks its size, which is limited, and its digest.
    /// Returns the size in bytes.
    pub(crate) fn get_file(&self, bucket: &str, file: &mut dyn Write) -> Result<u64> {
        let refused = |why: &str| FleetError::Refused(format!("the file in the object store {why}"));
        let get = async {
            let store = self.storage.get_object_store(bucket).await.map_err(FleetError::nats)?;
            let info = store.info(OBJECT).await.map_err(|error| FleetError::Nats(causes(&error)))?;
            let size = info.size as u64;
            if size > LARGEST_FILE {
                return Err(refused(&format!("has {size} bytes; {LARGEST_FILE} are allowed")));
            }
            if info.digest.is_none() || info.options.as_ref().is_some_and(|options| options.link.is_some()) {
                // A link could lead to another agent's bucket, or to itself.
                return Err(refused("does not exist, or has no digest"));
            }
            let mut object = store.get(OBJECT).await.map_err(|error| FleetError::Nats(causes(&error)))?;
            if object.info().size as u64 != size {
                return Err(refused("was replaced meanwhile"));
            }
            let (mut read, mut buffer) = (0, vec![0; 128 << 10]);
            loop {
                let mut part = ReadBuf::new(&mut buffer);
                let reading = std::future::poll_fn(|context| {
                    std::pin::Pin::new(&mut object).poll_read(context, &mut part)
                });
                // The reader compares the digest when it ends.
                reading.await.map_err(FleetError::nats)?;
                let part = part.filled();
                read += part.len() as u64;
                if read > size || part.is_empty() {
                    break;
                }
                file.write_all(part).map_err(|error| FleetError::Refused(error.to_string()))?;
            }
            if read == size { Ok(size) } else { Err(refused("does not have the stated length")) }
        };
        self.wait(async { tokio::time::timeout(TRANSFER, get).await }).map_err(|_| timed_out())?
    }

    /// The streams whose names begin with `prefix`, sorted.
    pub(crate) fn streams(&self, prefix: &str) -> Result<Vec<StoredStream>> {
        let list = async {
            let mut found = Vec::new();
            let mut streams = self.storage.streams();
            while let Some(info) = streams.try_next().await.map_err(FleetError::nats)? {
                if info.config.name.starts_with(prefix) {
                    let state = info.state;
                    let is_whole = state.first_sequence <= 1;
                    found.push(StoredStream {
                        name: info.config.name,
                        bytes: state.bytes,
                        is_whole,
                        last_sequence: state.last_sequence,
                    });
                }
            }
            found.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(found)
        };
        self.wait(async { tokio::time::timeout(STORAGE, list).await }).map_err(|_| timed_out())?
    }
}

/// A stream on the server.
pub(crate) struct StoredStream {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// Whether its first message still exists, since the server drops messages after their maximum age.
    pub(crate) is_whole: bool,
    /// The sequence of the newest message.
    pub(crate) last_sequence: u64,
}

fn timed_out() -> FleetError {
    FleetError::Nats("no answer in time".into())
}
