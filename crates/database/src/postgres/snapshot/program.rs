//! Where PostgreSQL's programs are.

use std::path::PathBuf;

use crate::postgres::managed::installed;

/// The directory of these programs, of the nearest PostgreSQL from version `oldest` to `newest`. They may be installed
/// without a server, and a directory of links to a server's programs need not hold all of them.
pub(crate) fn directory(oldest: u32, newest: u32, names: &[&str]) -> Option<PathBuf> {
    let complete = |directory: &PathBuf| names.iter().all(|name| directory.join(name).is_file());
    let servers = installed().into_iter().flat_map(|one| {
        let real = one.directory.join("postgres").canonicalize().ok();
        let real = real.and_then(|program| program.parent().map(|parent| (one.major, parent.to_owned())));
        [Some((one.major, one.directory)), real].into_iter().flatten()
    });
    let usual = (oldest..=newest).flat_map(|version| {
        [format!("/usr/lib/postgresql/{version}/bin"), format!("/usr/pgsql-{version}/bin")]
            .map(|directory| (version, PathBuf::from(directory)))
    });
    let fits =
        |(version, directory): &(u32, PathBuf)| (oldest..=newest).contains(version) && complete(directory);
    servers.chain(usual).filter(fits).min_by_key(|(version, _)| *version).map(|(_, directory)| directory)
}
