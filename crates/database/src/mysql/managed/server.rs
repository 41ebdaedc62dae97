//! A managed MySQL or MariaDB as servers of every engine are used.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Installation, Instance, Places, binaries, others_at_work, ready, start, stop, up};
use crate::managed::{HostResources, ManagedServer, Manager, Profile, Profiles, Started};
use crate::mysql::settings::OptionFileSettings;
use crate::mysql::{Config, MysqlEngine, Product};
use crate::settings::{PreviousSettings, ServerSettings};
use crate::{Engine, Error, Result};

/// The instance of the newest installed server of a product.
#[derive(Debug, Clone)]
pub struct MysqlServer {
    manager: Manager,
    installation: Installation,
}

impl MysqlServer {
    /// The instance of the newest installed server of this product, be it made yet or not.
    pub fn new(manager: Manager, product: Product) -> Result<Self> {
        Ok(Self { manager, installation: binaries::choose(product)? })
    }

    /// The managed server with this socket, if there is one.
    pub(crate) fn by_socket(manager: &Manager, config: &Config) -> Option<Self> {
        let crate::Host::Unix(socket) = &config.host else { return None };
        if !manager.may_have_socket(socket) {
            return None;
        }
        let found =
            super::status(manager).into_iter().find(|one| one.pid.is_some() && one.socket == *socket)?;
        [Product::Mariadb, Product::Mysql]
            .into_iter()
            .filter_map(|product| Self::new(manager.clone(), product).ok())
            .find(|one| one.name() == found.name)
    }

    /// The name of its directory: "mariadb-10.11".
    pub(crate) fn name(&self) -> String {
        self.installation.name()
    }

    /// Directory of the programs of an unpacked archive, next to the server; `None` for the system's installation.
    pub(crate) fn base(&self) -> Option<PathBuf> {
        self.installation.base().map(ToOwned::to_owned)
    }

    pub(crate) fn manager(&self) -> &Manager {
        &self.manager
    }

    fn places(&self) -> Places {
        Places::new(self.manager.base_dir(), &self.name())
    }

    /// Its data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.places().data
    }

    /// Its process, when it runs.
    pub(crate) fn process(&self) -> Option<u32> {
        self.places().running()
    }

    fn instance(&self) -> Result<Instance> {
        let places = self.places();
        let Some(pid) = places.running() else {
            return Err(Error::usage(format!("the managed {} is not running", self.label())).with_help(
                format!("start it: kelvin server up --engine {}", self.installation.product.word()),
            ));
        };
        ready(&places, self.installation.product, &places.socket(&places.account()?), pid, None, true)
    }

    /// Stops it, unless other clients are connected; returns whether it was running.
    pub(crate) fn stop_alone(&self) -> Result<bool> {
        let places = self.places();
        let _lock = self.manager.lock_instance(&self.name(), &mut |_| ())?;
        if places.running().is_none() {
            return Ok(false);
        }
        others_at_work(&self.instance()?.config)?;
        stop(&places)
    }

    fn option_file(&self) -> Result<OptionFileSettings> {
        let places = self.places();
        let account = places.account()?;
        Ok(OptionFileSettings { file: places.settings, directory: places.directory, account })
    }

    fn must_exist(&self) -> Result<()> {
        if self.places().data.join("mysql").is_dir() {
            return Ok(());
        }
        let word = self.installation.product.word();
        Err(Error::usage(format!("there is no managed {}", self.label()))
            .with_help(format!("create it: kelvin server up --engine {word}")))
    }
}

impl ManagedServer for MysqlServer {
    fn label(&self) -> String {
        let (major, minor) = self.installation.series;
        format!("{} {major}.{minor}", self.installation.product)
    }

    fn target(&self) -> String {
        self.installation.product.word().to_owned()
    }

    fn start(&self, profile: Option<&Profile>, progress: &mut dyn FnMut(&str)) -> Result<Started> {
        let instance = up(&self.manager, self.installation.product, profile, progress)?;
        let engine = Arc::new(MysqlEngine::new(instance.config));
        Ok(Started { engine, was_running: instance.was_running })
    }

    fn running(&self) -> Result<Arc<dyn Engine>> {
        Ok(Arc::new(MysqlEngine::new(self.instance()?.config)))
    }

    fn restart(&self, progress: &mut dyn FnMut(&str)) -> Result<()> {
        self.must_exist()?;
        let places = self.places();
        let _lock = self.manager.lock_instance(&self.name(), progress)?;
        stop(&places)?;
        progress(&format!("starting {}", self.label()));
        let account = places.account()?;
        let socket = places.socket(&account);
        start(&account, &self.installation, &places, self.installation.product, &socket).map(drop)
    }

    fn settings(&self) -> Result<Box<dyn ServerSettings>> {
        Ok(Box::new(self.option_file()?))
    }

    fn put_back_stopped(&self, before: &PreviousSettings) -> Result<()> {
        self.must_exist()?;
        let _lock = self.manager.lock_instance(&self.name(), &mut |_| ())?;
        if self.process().is_some() {
            return Err(Error::usage("the managed server is running; it restores its settings itself"));
        }
        self.option_file()?.put_file_back(before)
    }

    fn profiles(&self) -> Box<dyn Profiles> {
        Box::new(self.installation.profiles())
    }

    fn profile(&self) -> Option<Profile> {
        self.places().profile()
    }

    fn host(&self) -> HostResources {
        HostResources::read(&self.places().data)
    }
}
