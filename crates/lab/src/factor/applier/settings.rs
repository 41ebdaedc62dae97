//! Server properties of a cell: its settings, with the restarts that they require, and its huge pages.

use std::path::PathBuf;

use super::{Applier, Levels, not_taken};
use crate::factor::access::Server;
use crate::factor::level::{Bound, HugePages, Side};
use crate::factor::restore::restore_changes;
use crate::factor::{FactorError, FactorKind, kernel, server};
use crate::undo::ReversibleChange;
use kelvin_run::spec::TargetName;

impl Applier {
    pub(super) fn server(&mut self, levels: &Levels<'_>, target: &TargetName) -> Result<(), FactorError> {
        let first = levels.first().copied();
        let refused = |why: String| match first {
            Some((factor, level)) => not_taken(factor, level, why),
            None => FactorError::Unusable(why),
        };
        let reached =
            self.at_home(|this| server::reach(&this.access, target, &mut *this.report)).map_err(refused)?;
        if self.target.as_ref().is_some_and(|old| *old != reached.target) {
            // For another server, the previous one gets its settings back.
            let of_server = |change: &ReversibleChange| {
                matches!(change, ReversibleChange::Settings { .. } | ReversibleChange::Affinity { .. })
            };
            if let Some(journal) = &mut self.journal {
                restore_changes(journal, &self.access, &of_server, &mut *self.report)?;
            }
        }
        self.target = Some(reached.target.clone());
        self.settings(levels, &reached)?;
        let bound =
            levels.iter().any(|(factor, _)| factor.how == FactorKind::Bind(Bound::Cpus(Side::Server)));
        if reached.managed.is_some() && !bound {
            self.unbind(&reached).map_err(refused)?;
        }
        for (factor, level) in levels {
            let done = match factor.how {
                FactorKind::Bind(Bound::Cpus(Side::Server)) => {
                    self.server_cpus(&reached, &level.value.text())
                }
                FactorKind::Bind(Bound::Memory(Side::Server)) => {
                    self.server_memory(&reached, &level.value.text())
                }
                _ => Ok(()),
            };
            done.map_err(|why| not_taken(factor, level, why))?;
        }
        Ok(())
    }

    fn settings(&mut self, levels: &Levels<'_>, server: &Server) -> Result<(), FactorError> {
        let asked = server::requested_settings(levels).map_err(FactorError::Unusable)?;
        let Some(first) = asked.first() else { return Ok(()) };
        let refused = |why: String| not_taken(first.factor, first.level, why);
        let differing = server::differing(server, &asked).map_err(refused)?;
        if !differing.is_empty() {
            let (one, _) = &differing[0];
            if server.managed.is_none() && !self.consent.settings {
                return Err(FactorError::Unusable(format!(
                    "factor {:?} changes settings of {}, which kelvin does not manage; allow it with \
                     --allow-settings: the old values are restored at the end",
                    one.factor.name, server.target
                )));
            }
            self.reserve_pages(levels, server, &asked)?;
            let changes: Vec<(&str, &str)> =
                differing.iter().map(|(one, _)| (one.name.as_str(), one.value.as_str())).collect();
            self.change(server, &changes).map_err(|why| {
                // Several settings were changed together: the one in the error is responsible.
                let blamed =
                    differing.iter().find(|(one, _)| why.contains(&one.name)).unwrap_or(&differing[0]);
                not_taken(blamed.0.factor, blamed.0.level, why)
            })?;
            if let Some((one, why)) = server::differing(server, &asked).map_err(refused)?.first() {
                let why = format!("{} was set to {}, but {why}", one.name, one.value);
                return Err(not_taken(one.factor, one.level, why));
            }
        }
        for (factor, level) in levels.iter().filter(|(factor, _)| factor.how == FactorKind::HugePages) {
            let taken = match HugePages::read(&level.value) {
                Ok(HugePages::Off) => self.release_pages(None),
                Ok(HugePages::Of { kilobytes }) => match server::has_pages(server, kilobytes) {
                    Ok(true) => self.release_pages(Some(kilobytes)),
                    Ok(false) => Err(format!("the server's shared memory has no pages of {kilobytes} kB")),
                    Err(why) => Err(why),
                },
                Err(why) => Err(why),
            };
            taken.map_err(|why| not_taken(factor, level, why))?;
        }
        Ok(())
    }

    /// Changes settings, and restarts the server where that is required and allowed.
    fn change(&mut self, server: &Server, changes: &[(&str, &str)]) -> Result<(), String> {
        let as_text = |error: kelvin_database::Error| error.to_string();
        let names: Vec<&str> = changes.iter().map(|(name, _)| *name).collect();
        let (present, before) = server
            .settings(|settings, session| {
                Ok((settings.read(session, &names)?, settings.before(session, &names)?))
            })
            .map_err(as_text)?;
        if let (None, Some(one)) = (&server.managed, present.iter().find(|one| one.needs_restart())) {
            return Err(format!(
                "{} takes effect only after a restart, but kelvin does not manage {} and cannot restart it",
                one.name, server.target
            ));
        }
        // Only the values before the first change are restored at the end.
        let mut new = before.clone();
        new.settings.retain(|one| !self.is_recorded(&server.target, &one.name));
        if !new.settings.is_empty() {
            let servers = server.managed.as_ref().map(|_| self.access.manager().base_dir().to_owned());
            self.record(ReversibleChange::Settings { target: server.target.clone(), servers, before: new })?;
        }
        let waiting =
            server.settings(|settings, session| settings.change(session, changes)).map_err(as_text)?;
        match &server.managed {
            Some(managed) if !waiting.is_empty() => {
                (self.report)(&format!("restarting {} to apply {}", managed.label(), waiting.join(", ")));
                self.at_home(|_| {
                    managed
                        .restart_or_put_back(&before, &mut |_| ())
                        .map_err(|error| format!("restart to apply {}: {error}", waiting.join(", ")))
                })
            }
            _ => Ok(()),
        }
    }

    fn is_recorded(&self, server: &str, name: &str) -> bool {
        self.pending().any(|change| match change {
            ReversibleChange::Settings { target, before, .. } => {
                target == server && before.settings.iter().any(|one| one.name.eq_ignore_ascii_case(name))
            }
            _ => false,
        })
    }

    fn reserve_pages(
        &mut self,
        levels: &Levels<'_>,
        server: &Server,
        asked: &[server::RequestedSetting<'_>],
    ) -> Result<(), FactorError> {
        for (factor, level) in levels.iter().filter(|(factor, _)| factor.how == FactorKind::HugePages) {
            let done = (|| {
                let HugePages::Of { kilobytes } = HugePages::read(&level.value)? else { return Ok(()) };
                let file = kernel::huge_pages(kilobytes);
                let before = self.kernel_before(&file)?;
                let others: u64 = before.trim().parse().unwrap_or(0);
                kernel::reserve(&file, others + server::pages(server, asked, kilobytes)?)
            })();
            done.map_err(|why| not_taken(factor, level, why))?;
        }
        Ok(())
    }

    /// Releases reserved huge pages, except those of the size that the server uses now.
    fn release_pages(&mut self, kept: Option<u64>) -> Result<(), String> {
        let kept = kept.map(kernel::huge_pages);
        let reserved: Vec<(PathBuf, String)> = self
            .pending()
            .filter_map(|change| match change {
                ReversibleChange::Kernel { file, before }
                    if file.starts_with("/sys/kernel/mm/hugepages") && Some(file) != kept.as_ref() =>
                {
                    Some((file.clone(), before.clone()))
                }
                _ => None,
            })
            .collect();
        reserved.iter().try_for_each(|(file, before)| kernel::write(file, before.trim()))
    }
}
