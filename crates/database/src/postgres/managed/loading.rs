//! Settings for bulk loads: an instance gets settings that make a load faster, and its previous ones afterwards.

use std::fs::File;

use rustix::fs::FlockOperation;

use super::instance::Places;
use super::{reconfigure, settings};
use crate::managed::account::Account;
use crate::managed::{Line, Manager};
use crate::{Error, LoadSettings, Result};

/// The settings of the instance while data are loaded.
fn lines() -> [Line; 4] {
    [
        Line::new("wal_level", "minimal", "a table that the load itself makes is synced to disk, not logged"),
        Line::new("max_wal_senders", "0", "required by wal_level = minimal"),
        Line::new("archive_mode", "off", "required by wal_level = minimal"),
        Line::new("autovacuum", "off", "the load vacuums and analyzes what it has loaded"),
    ]
}

/// An instance with settings for a load. [`Loading::end`] restores its previous ones; if this process is killed, the
/// next start of the instance or the next [`Manager::up`] does.
#[derive(Debug)]
pub struct Loading {
    manager: Manager,
    version: u32,
    ended: bool,
    /// Held by the process that loads.
    _lock: File,
}

impl Manager {
    /// Restarts the running instance with settings for a load. Returns `None` and leaves the instance unchanged where
    /// that is impossible: other clients are connected or load into it, or its user has settings that conflict with
    /// these. `progress` is called with the reason.
    pub fn begin_load(&self, version: u32, progress: &mut dyn FnMut(&str)) -> Result<Option<Loading>> {
        self.must_exist(version)?;
        let _lock = self.lock(version, progress)?;
        let Some(load_lock) = self.load_lock(version)? else { return Ok(None) };
        let places = Places::new(self.base_dir(), version);
        let old = places.configuration()?;
        let new = settings::with_loading(&old, &lines())?;
        if let Err(error) = self.reconfigure(version, &places, &old, &new, progress) {
            progress(&format!("loading with the server's own settings, which is slower: {error}"));
            return Ok(None);
        }
        Ok(Some(Loading { manager: self.clone(), version, ended: false, _lock: load_lock }))
    }

    fn reconfigure(
        &self,
        version: u32,
        places: &Places,
        old: &str,
        new: &str,
        progress: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let account = Account::for_data(&places.data)?;
        reconfigure::running(places, &account, self.running(version)?, old, new, progress).map(drop)
    }

    /// The lock of the process that loads into the instance; `None` while another process holds it.
    pub(super) fn load_lock(&self, version: u32) -> Result<Option<File>> {
        let (file, failed) = self.lock_file(&format!("postgres-{version}.load.lock"))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }
}

impl Loading {
    fn put_back(&mut self, progress: &mut dyn FnMut(&str)) -> Result<()> {
        self.ended = true;
        let _lock = self.manager.lock(self.version, progress)?;
        let places = Places::new(self.manager.base_dir(), self.version);
        let old = places.configuration()?;
        let new = settings::without_loading(&old);
        self.manager
            .reconfigure(self.version, &places, &old, &new, progress)
            .map_err(|error: Error| error.context("the server still has its settings for loading"))
    }
}

impl LoadSettings for Loading {
    /// Restarts the instance with its previous settings. An error when other clients are connected: it keeps the
    /// settings of the load then.
    fn end(mut self: Box<Self>, progress: &mut dyn FnMut(&str)) -> Result<()> {
        self.put_back(progress)
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        if !self.ended {
            // Another error is already being returned; the next start reports this one.
            let _ = self.put_back(&mut |_| ());
        }
    }
}
