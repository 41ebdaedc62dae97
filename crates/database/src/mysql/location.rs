//! The data of a MySQL or MariaDB database.

use std::path::PathBuf;
use std::sync::Arc;

use super::managed::{self, MysqlServer};
use super::{Config, MysqlEngine, Product, product, snapshot};
use crate::snapshot::{SnapshotMethod, SnapshotMethods, SnapshotStore};
use crate::{DataLocation, Engine, Result, ServerDirectories};

/// A database of a MySQL or MariaDB server.
#[derive(Debug)]
pub(crate) struct MysqlLocation {
    engine: MysqlEngine,
    managed: Option<MysqlServer>,
    dumps: PathBuf,
}

impl MysqlLocation {
    /// The database that `config` names; a managed server is also found by its address.
    pub(crate) fn new(config: &Config, directories: ServerDirectories) -> Self {
        let managed = MysqlServer::by_socket(&directories.manager, config);
        Self { engine: MysqlEngine::new(config.clone()), managed, dumps: directories.dumps }
    }

    /// Starts the managed server of this product, making it first if need be.
    pub(crate) fn start(
        product: Product,
        directories: ServerDirectories,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self> {
        let engine = MysqlEngine::new(managed::up(&directories.manager, product, None, progress)?.config);
        let managed = Some(MysqlServer::new(directories.manager, product)?);
        Ok(Self { engine, managed, dumps: directories.dumps })
    }

    /// Directory of the programs of an unpacked server.
    fn base(&self) -> Option<PathBuf> {
        self.managed.as_ref().and_then(MysqlServer::base)
    }
}

/// The server's data can be copied only while it is stopped.
fn methods(managed: bool, no_dump: Option<String>) -> SnapshotMethods {
    SnapshotMethods {
        no_template: Some(
            "MySQL and MariaDB cannot copy a database by themselves; use files, dump or reload".into(),
        ),
        no_files: (!managed).then(|| {
            "files can be copied only of a server that kelvin manages, while it is stopped; use dump or reload".into()
        }),
        no_dump,
        fastest: if managed {
            Ok((SnapshotMethod::Files, "the files of the stopped server are copied"))
        } else {
            Err("not kelvin's server, so no copy of its files".into())
        },
        confirming: &[SnapshotMethod::Dump],
        is_file: false,
    }
}

impl DataLocation for MysqlLocation {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(self.engine.clone())
    }

    fn is_managed(&self) -> bool {
        self.managed.is_some()
    }

    fn snapshot_methods(&self) -> Result<Option<SnapshotMethods>> {
        let product = product(self.engine.connect()?.as_mut())?;
        let no_dump = snapshot::programs(product, self.base().as_deref())
            .is_none()
            .then(|| format!("the client programs of {product} are not installed here"));
        Ok(Some(methods(self.is_managed(), no_dump)))
    }

    fn snapshot_store(&self, way: SnapshotMethod) -> Result<Option<Box<dyn SnapshotStore>>> {
        Ok(match (way, &self.managed) {
            (SnapshotMethod::Files, Some(server)) => Some(snapshot::files(server.clone())),
            (SnapshotMethod::Dump, _) => {
                Some(snapshot::dumps(self.engine.config().clone(), self.base(), &self.dumps))
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_managed_server_is_reset_by_its_files() {
        let managed = methods(true, None);
        assert_eq!(managed.fastest.as_ref().unwrap().0, SnapshotMethod::Files);
        assert_eq!(managed.refusal(SnapshotMethod::Files), None);
        assert!(managed.refusal(SnapshotMethod::Template).unwrap().contains("files, dump or reload"));
        let other = methods(false, Some("no programs".into()));
        assert!(other.fastest.as_ref().unwrap_err().contains("not kelvin's server"));
        assert!(other.refusal(SnapshotMethod::Files).unwrap().contains("a server that kelvin manages"));
        assert_eq!(other.refusal(SnapshotMethod::Dump).unwrap(), "no programs");
    }
}
