//! Tenants: whose load it is, on what target. A tenant's table is a specification, without what the steps decide.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use kelvin_lab::limits::{CpuLimit, Limits};
use kelvin_run::Spec;
use kelvin_run::arrivals::Process;
use kelvin_run::spec::{IoOptions, Load, Observe, Setting, Span, SpecFile, Work};
use kelvin_workload::tproc_h::Profile;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::document::{self, MOST_COPIES, Names, Value};
use crate::error::Refusal;

/// A job that a step stops runs so long by itself: the longest time that a file can say.
const ENDLESS: &str = "30d";

/// Seeds of tenants lie so far apart that those of neither's users meet.
const SEEDS_APART: u64 = 1_000_003;

/// One load on one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Tenant {
    /// Its name; of a copy that of its table with its number: "dss-2".
    pub name: String,
    /// The name of its table, which its copies have in common: "dss".
    pub group: String,
    /// What it runs, and on what.
    pub spec: Spec,
    /// The most users of any step, who all connect at the beginning; workers of I/O jobs.
    pub users: u32,
    /// The agent of a fleet that puts its load on; none of a tenant on this host.
    pub host: Option<String>,
    /// What its process may use; with any limit it has a process of its own.
    pub limits: Limits,
    /// What its database's server may use.
    pub server_limits: Limits,
}

impl Tenant {
    /// Whether its load ends by itself, however it is started.
    pub fn ends_by_itself(&self) -> bool {
        matches!(&self.spec.work, Work::Io(io) if !runs_until_stopped(io))
    }

    /// How long its load takes by itself, where that is known.
    pub fn lasts(&self) -> Option<Span> {
        let planned = self.spec.planned().filter(|_| self.ends_by_itself())?;
        format!("{}ms", planned.as_millis()).parse().ok()
    }

    /// Whether its arrivals are a Poisson process.
    pub fn has_poisson_arrivals(&self) -> bool {
        match &self.spec.work {
            Work::Io(io) => io.is_poisson(),
            _ => self.spec.is_open_loop() && self.spec.load.arrivals == Process::Poisson,
        }
    }

    /// What it runs if a step starts it for so long.
    pub fn spec_for(&self, lasts: Option<Span>) -> Spec {
        let mut spec = self.spec.clone();
        if let (Work::Io(io), Some(lasts)) = (&mut spec.work, lasts) {
            run_for(io, &format!("{}ms", lasts.duration().as_millis()));
        }
        spec
    }
}

/// The tenants of the file, and which of them each name means.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    pub(crate) all: Vec<Tenant>,
    by_name: BTreeMap<String, Vec<usize>>,
}

impl Tenants {
    /// Reads `[tenants.NAME]`.
    pub(crate) fn read(
        tables: DeTable<'_>,
        names: &Names<'_>,
        directory: &Path,
        seed: u64,
    ) -> Result<Self, Refusal> {
        let mut found = Self::default();
        for (key, value) in tables {
            found.take(&key, value, names, directory, seed)?;
        }
        Ok(found)
    }

    fn take<'a>(
        &mut self,
        key: &Spanned<Cow<'a, str>>,
        mut value: Value<'a>,
        names: &Names<'a>,
        directory: &Path,
        seed: u64,
    ) -> Result<(), Refusal> {
        let (name, place) = (key.as_ref().to_string(), key.span());
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 32 || !name.chars().all(plain) {
            let why = "a tenant's name has at most 32 letters, digits, - and _".to_owned();
            return Err((place, why));
        }
        let DeValue::Table(table) = value.get_mut() else {
            return Err((value.span(), format!("tenants.{name} must be a table")));
        };
        let limits = [Limited::Client, Limited::Server].map(|of| (of, table.remove(of.key())));
        let copies = copies(table, names)?;
        let hosts = hosts(table, names, copies.len())?;
        let single = matches!(copies.as_slice(), [None]);
        let mut members = Vec::with_capacity(copies.len());
        for (number, each) in (1..).zip(copies) {
            let (mut value, mut names) = (value.clone(), names.clone());
            if !single {
                names = names.with("copy", document::number(number));
            }
            if let Some(each) = each {
                names = names.with("each", each);
            }
            names.put_into(&mut value)?;
            let own = if single { name.clone() } else { format!("{name}-{number}") };
            members.push(self.all.len());
            if !single && self.by_name.insert(own.clone(), vec![self.all.len()]).is_some() {
                return Err((place, format!("there are two tenants named {own}")));
            }
            let index = self.all.len() as u64;
            let seed = seed.wrapping_add(index * SEEDS_APART);
            let mut tenant = tenant((own, name.clone()), value, directory, seed)?;
            tenant.host = hosts.get(number - 1).cloned();
            for (of, limits) in limits.clone() {
                let Some(mut limits) = limits else { continue };
                names.put_into(&mut limits)?;
                let span = limits.span();
                let limits = document::read(limits)?;
                let checked = of.check(&limits, &tenant.spec);
                checked
                    .map_err(|why| (span.clone(), format!("tenants.{}.{}: {why}", tenant.name, of.key())))?;
                if tenant.host.is_some() {
                    let why = "limits apply to this host, but its load is generated by an agent";
                    return Err((span, format!("tenants.{}.{}: {why}", tenant.name, of.key())));
                }
                match of {
                    Limited::Client => tenant.limits = limits,
                    Limited::Server => tenant.server_limits = limits,
                }
            }
            self.all.push(tenant);
        }
        if self.by_name.insert(name.clone(), members).is_some() {
            return Err((place, format!("there are two tenants named {name}")));
        }
        Ok(())
    }

    /// Those that a name in the file means: one, or all copies.
    pub(crate) fn find(&self, name: &str) -> Result<&[usize], String> {
        self.by_name.get(name).map(Vec::as_slice).ok_or_else(|| {
            let meant = kelvin_run::nearest(name, self.by_name.keys().map(String::as_str));
            let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
            format!("there is no tenant \"{name}\"{meant}")
        })
    }
}

/// The agents that a table names: one, or one for each of its copies; none of tenants on this host.
fn hosts<'a>(table: &mut DeTable<'a>, names: &Names<'a>, copies: usize) -> Result<Vec<String>, Refusal> {
    let Some(mut hosts) = table.remove("host") else { return Ok(Vec::new()) };
    let span = hosts.span();
    names.put_into(&mut hosts)?;
    let hosts: Vec<String> = match hosts.get_ref() {
        DeValue::Array(_) => document::read(hosts)?,
        _ => vec![document::read(hosts)?],
    };
    // An agent puts on one load at a time.
    if hosts.len() != copies || hosts.iter().any(|host| host.trim().is_empty()) {
        let why = format!("host names one agent for each of the {copies} copies: host = [\"g1\", \"g2\", …]");
        return Err((span, if copies == 1 { "host names one agent".into() } else { why }));
    }
    Ok(hosts)
}

/// The copies that a table asks for, each with its value if it has one; without either key one without a number.
fn copies<'a>(table: &mut DeTable<'a>, names: &Names<'a>) -> Result<Vec<Option<DeValue<'a>>>, Refusal> {
    let (mut copies, mut values) = (table.remove("copies"), table.remove("for-each"));
    for value in copies.iter_mut().chain(&mut values) {
        names.put_into(value)?;
    }
    let allowed = |span: Range<usize>, count: usize| {
        let why = format!("{count} copies are out of range; give 1 to {MOST_COPIES}");
        if (1..=MOST_COPIES).contains(&count) { Ok(count) } else { Err((span, why)) }
    };
    match (copies, values) {
        (None, None) => Ok(vec![None]),
        (Some(copies), None) => {
            let span = copies.span();
            let count = allowed(span, document::read(copies)?)?;
            Ok((1..=count).map(|copy| Some(document::number(copy))).collect())
        }
        (None, Some(values)) => {
            let span = values.span();
            let DeValue::Array(values) = values.into_inner() else {
                return Err((span, "for-each must be a list".into()));
            };
            allowed(span, values.len())?;
            Ok(values.into_iter().map(|value| Some(value.into_inner())).collect())
        }
        (Some(copies), Some(_)) => Err((copies.span(), "give copies or for-each, not both".into())),
    }
}

/// Reads one table as a specification.
fn tenant(
    (name, group): (String, String),
    value: Value<'_>,
    directory: &Path,
    seed: u64,
) -> Result<Tenant, Refusal> {
    let span = value.span();
    let of = |why: String| (span.clone(), format!("tenants.{name}: {why}"));
    let file: SpecFile = document::read(value)?;
    let mut spec = Spec::of_file(file, directory).map_err(|error| of(error.to_string()))?;
    check(&spec).map_err(of)?;
    if spec.load.seed == Load::default().seed {
        spec.load.seed = seed;
    }
    if let Work::Io(io) = &mut spec.work
        && has_no_runtime(io).map_err(of)?
    {
        run_for(io, ENDLESS);
    }
    spec.observe.enabled = false;
    let users = if spec.is_io() {
        let jobs = spec.jobs().map_err(|error| of(error.to_string()))?;
        jobs.jobs.iter().map(|job| job.clones).sum()
    } else {
        spec.load.points().first().map_or(1, |&(users, _)| users)
    };
    let (limits, server_limits) = (Limits::default(), Limits::default());
    Ok(Tenant { name, group, spec, users, host: None, limits, server_limits })
}

/// Whose limits a table has.
#[derive(Debug, Clone, Copy)]
enum Limited {
    /// Those of the tenant's own process.
    Client,
    /// Those of its database's server.
    Server,
}

impl Limited {
    fn key(self) -> &'static str {
        match self {
            Self::Client => "limits",
            Self::Server => "server-limits",
        }
    }

    /// Refuses limits that would not limit what is meant.
    fn check(self, limits: &Limits, spec: &Spec) -> Result<(), String> {
        let has_server = !spec.is_io() && spec.target.file().is_none() && !spec.target.is_temporary();
        let why = match self {
            _ if limits.is_none() => "give at least one of cpus, memory and io",
            Self::Client if !spec.is_io() && spec.target.is_temporary() => {
                "a temporary database is not visible to another process; name its file: target = \
                 \"sqlite:FILE\""
            }
            Self::Client if limits.io.is_some() && has_server => {
                "io limits the tenant's process, and its I/O is done by its server: write it in server-limits"
            }
            Self::Server if !has_server => "it has no server; limits are those of its process",
            Self::Server if limits.memory.is_some() => {
                "memory that a server has already allocated is not limited; change its settings \
                 (shared_buffers, innodb_buffer_pool_size)"
            }
            Self::Server if matches!(limits.cpus, Some(CpuLimit::List(_))) => {
                "give an amount of CPU time, such as 1.5: a server's threads are not bound to CPUs here; the \
                 factor cpus of a study does that"
            }
            _ => return Ok(()),
        };
        Err(why.into())
    }
}

/// Refuses what the steps decide, or what only a run by itself has.
fn check(spec: &Spec) -> Result<(), String> {
    let (load, usual) = (&spec.load, Load::default());
    let several =
        load.users.numbers().len() > 1 || load.rate.as_ref().is_some_and(|rates| rates.single().is_none());
    let timed = load.duration != usual.duration || load.ramp_up != usual.ramp_up;
    let refused = [
        (timed, "duration and ramp-up are decided by the steps: start, for, stop"),
        (load.transactions.is_some(), "a number of transactions cannot end a tenant's load; a step does"),
        (several, "give one number of users and one rate; steps change them (set)"),
        (
            load.find_max || load.sweep.is_some() || load.slo.is_some(),
            "find-max, sweep and slo are not supported in a scenario; [[expect]] has an slo",
        ),
        (load.hosts.is_some(), "hosts is not supported in a scenario; host names a tenant's agent"),
        (
            spec.observe != Observe::default(),
            "observe belongs at the top of the scenario and applies to all \
            tenants",
        ),
        (
            spec.label.is_some() || spec.accept_noise,
            "label and accept-noise belong at the top of the scenario",
        ),
        (spec.check, "check is not supported in a scenario: use kelvin check"),
        (spec.phases() > 1, "jobs in phases (stonewall) are not supported; make each phase a tenant"),
    ];
    if let Some((_, why)) = refused.iter().find(|(refused, _)| *refused) {
        return Err((*why).into());
    }
    if let Work::TprocH(options) = &spec.work
        && (options.profile != Profile::Hammerdb || options.query_sets > 0)
    {
        return Err(
            "the queries of a tenant run until a step stops them: profile = \"hammerdb\" and query-sets = 0"
                .into(),
        );
    }
    let jobs = spec.jobs().map_err(|error| error.to_string())?;
    if jobs.jobs.iter().any(|job| job.course.ramp > 0) {
        return Err(
            "ramp_time is decided by the steps: what comes before a step is compared with what follows"
                .into(),
        );
    }
    Ok(())
}

/// Whether no job says how long it runs, so that a step decides.
fn has_no_runtime(io: &IoOptions) -> Result<bool, String> {
    let jobs = io.jobs(1).map_err(|error| error.to_string())?;
    Ok(jobs.jobs.iter().all(|job| job.course.runtime.is_none()))
}

fn run_for(io: &mut IoOptions, runtime: &str) {
    io.set.insert("runtime".into(), Setting::Text(runtime.into()));
    io.set.insert("time_based".into(), Setting::Switch(true));
}

fn runs_until_stopped(io: &IoOptions) -> bool {
    io.set.get("runtime") == Some(&Setting::Text(ENDLESS.into()))
}
