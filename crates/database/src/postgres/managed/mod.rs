//! Managed PostgreSQL servers, one per major version.

mod binaries;
mod instance;
mod loading;
mod postmaster;
mod reconfigure;
mod server;
mod settings;

pub use binaries::{Installation, installed};
pub use instance::{Instance, Status};
pub use loading::Loading;
pub(crate) use postmaster::running;
pub use server::PostgresServer;

use instance::{Places, Wanted};

use crate::managed::account::Account;
use crate::managed::{HostResources, Manager, Profile};
use crate::settings::PreviousSettings;
use crate::{Error, Result};

impl Manager {
    /// Starts the instance of major version `version`, or the newest that exists or can be created. It is created when
    /// there is none; a running one is not changed. `progress` is called for every step that takes long.
    pub fn up(&self, version: Option<u32>, progress: &mut dyn FnMut(&str)) -> Result<Instance> {
        self.up_with_settings(version, &[], progress)
    }

    /// [`Manager::up`] with settings of the server that override Kelvin's. Refused when the instance already
    /// runs with others.
    pub fn up_with_settings(
        &self,
        version: Option<u32>,
        settings: &[(&str, &str)],
        progress: &mut dyn FnMut(&str),
    ) -> Result<Instance> {
        self.start(version, Wanted { profile: None, extra: settings, may_end_load: false }, progress)
    }

    /// [`Manager::up`] with this profile, which the instance keeps until another is applied. A running instance reloads
    /// it, and is restarted where a setting needs that; this is refused while other clients are connected. If it does
    /// not start with the profile, its previous settings are restored, and the error includes the end of its log.
    pub fn up_with_profile(
        &self,
        version: Option<u32>,
        profile: &Profile,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Instance> {
        self.start(version, Wanted { profile: Some(profile), extra: &[], may_end_load: false }, progress)
    }

    fn start(
        &self,
        version: Option<u32>,
        mut wanted: Wanted<'_>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Instance> {
        let installation = binaries::choose(self.preferred(version))?;
        self.make_base()?;
        let _lock = self.lock(installation.major, progress)?;
        let load_lock = self.load_lock(installation.major)?;
        wanted.may_end_load = load_lock.is_some();
        instance::up(&self.base, &installation, wanted, progress)
    }

    /// The requested version, or the newest instance whose binaries are installed.
    fn preferred(&self, version: Option<u32>) -> Option<u32> {
        version.or_else(|| {
            let found = binaries::installed();
            self.majors().into_iter().rev().find(|major| found.iter().any(|one| one.major == *major))
        })
    }

    /// Restarts the instance and keeps its files; starts it when it is stopped.
    pub fn restart(&self, version: u32, progress: &mut dyn FnMut(&str)) -> Result<Instance> {
        self.must_exist(version)?;
        let _lock = self.lock(version, progress)?;
        instance::down(&self.base, version)?;
        let places = Places::new(&self.base, version);
        let account = Account::for_data(&places.data)?;
        instance::start_as_it_is(&places, &account, version, progress)
    }

    /// Restores `postgresql.auto.conf` of a stopped instance to `before`; for a running one
    /// [`crate::settings::ServerSettings::put_back`] does that.
    pub fn put_back_stopped(&self, version: u32, before: &PreviousSettings) -> Result<()> {
        self.must_exist(version)?;
        let _lock = self.lock(version, &mut |_| ())?;
        let places = Places::new(&self.base, version);
        reconfigure::put_back_stopped(&places, &Account::for_data(&places.data)?, before)
    }

    /// The instance, if it runs and answers. It is not changed.
    pub fn running(&self, version: u32) -> Result<Instance> {
        let places = Places::new(&self.base, version);
        let account = Account::for_data(&places.data)?;
        places.ready(&account, version, true).ok_or_else(|| {
            Error::usage(format!("the managed PostgreSQL {version} is not running"))
                .with_help(format!("start it: kelvin server up --version {version}"))
        })
    }

    /// The version that [`Manager::up`] means by `version`.
    pub fn version(&self, version: Option<u32>) -> Result<u32> {
        Ok(binaries::choose(self.preferred(version))?.major)
    }

    /// Host resources for the instance of `version`, from which profiles are computed.
    pub fn host(&self, version: u32) -> HostResources {
        let places = Places::new(&self.base, version);
        HostResources::read(&places.data)
    }

    /// The profile that was applied to the instance last; `None` when there is no instance, or one of a version of
    /// Kelvin without profiles.
    pub fn profile(&self, version: u32) -> Option<Profile> {
        settings::profile(&Places::new(&self.base, version).configuration().ok()?)
    }

    fn must_exist(&self, version: u32) -> Result<()> {
        if instance::exists(&self.base, version) {
            return Ok(());
        }
        Err(Error::usage(format!("there is no managed PostgreSQL {version}"))
            .with_help(format!("create it: kelvin server up --version {version}")))
    }

    /// Stops the instance of `version`, or all of them; running transactions are rolled back. Returns the major
    /// versions that were running. If one cannot be stopped, the others still are, and its error is returned.
    pub fn down(&self, version: Option<u32>) -> Result<Vec<u32>> {
        let mut stopped = Vec::new();
        let mut failed = None;
        for major in self.majors() {
            if version.is_none_or(|asked| asked == major) {
                let outcome =
                    self.lock(major, &mut |_| ()).and_then(|_lock| instance::down(&self.base, major));
                match outcome {
                    Ok(true) => stopped.push(major),
                    Ok(false) => {}
                    Err(error) => failed = failed.or(Some(error.context(&format!("PostgreSQL {major}")))),
                }
            }
        }
        failed.map_or(Ok(stopped), Err)
    }

    /// All instances, oldest version first, running or not.
    pub fn status(&self) -> Result<Vec<Status>> {
        Ok(self.majors().into_iter().map(|major| instance::status(&self.base, major)).collect())
    }

    /// Major versions of the instances that were made, ascending.
    fn majors(&self) -> Vec<u32> {
        let mut majors: Vec<u32> = std::fs::read_dir(&self.base)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("postgres-")?.parse().ok())
            .filter(|major| instance::exists(&self.base, *major))
            .collect();
        majors.sort_unstable();
        majors
    }

    /// Keeps other kelvin processes from starting or stopping the same instance; released when dropped.
    pub(crate) fn lock(&self, major: u32, progress: &mut dyn FnMut(&str)) -> Result<std::fs::File> {
        self.lock_instance(&format!("postgres-{major}"), progress)
    }
}
