//! MySQL and MariaDB servers of kelvin's own.

use anyhow::{Result, bail};
use kelvin_database::managed::Manager;
use kelvin_database::mysql::Product;
use kelvin_database::mysql::managed::{self as mysql, Status};

use super::profile;
use crate::args::{Global, ProfileArgs, ServerEngine};
use crate::out;

/// Which of the two; none for PostgreSQL.
pub(super) fn product(engine: ServerEngine) -> Option<Product> {
    match engine {
        ServerEngine::Postgres => None,
        ServerEngine::Mariadb => Some(Product::Mariadb),
        ServerEngine::Mysql => Some(Product::Mysql),
    }
}

/// Starts it, making it first if need be.
pub(super) fn up(
    manager: &Manager,
    product: Product,
    version: Option<u32>,
    asked: &ProfileArgs,
    global: &Global,
    tell: &mut dyn FnMut(&str),
) -> Result<()> {
    if version.is_some() {
        bail!("--version chooses among installed PostgreSQL servers; for {product} the newest is used");
    }
    let wanted = match &asked.profile {
        None => None,
        Some(name) => {
            let (installation, host) = mysql::installation(manager, product)?;
            let load = profile::load_of(name, asked.sized_for.as_deref(), global)?;
            let Some(found) = mysql::profile(name, product, installation.series, host, &load) else {
                bail!("--profile {name}: {product} has the profiles default, durable and steady");
            };
            Some(found)
        }
    };
    for caution in wanted.iter().flat_map(|profile| &profile.cautions) {
        tell(&format!("caution: {caution}"));
    }
    let instance = mysql::up(manager, product, wanted.as_ref(), tell)?;
    if instance.was_running {
        tell("it was already running");
    }
    out::line(&instance.config.to_string())
}

/// A managed server, as PostgreSQL's are shown.
pub(super) fn describe_status(status: &Status) -> String {
    let state = status.pid.map_or_else(|| "stopped".to_owned(), |pid| format!("running, process {pid}"));
    let uptime = status.uptime.map_or(String::new(), |time| format!(", up {} s", time.as_secs()));
    format!(
        "{}: {state}{uptime}\n  profile  {}\n  socket   {}\n  data     {} ({:.1} MB)\n",
        status.name,
        status.profile,
        status.socket.display(),
        status.data_directory.display(),
        status.size as f64 / 1e6,
    )
}
