//! TPROC-C: an open workload derived from TPC-C, in the `spec` and `hammerdb` profiles.

mod audit;
mod calls;
mod check;
mod data;
mod data_state;
pub(crate) mod dialect;
mod hammerdb;
mod inputs;
pub(crate) mod load;
mod non_uniform;
mod options;
pub(crate) mod schema;
mod user;
mod workload;

use kelvin_database::{Engine, EngineKind, Error, Result, Session};
use kelvin_measure::event::CheckLine;

use crate::{BuildProgress, Stop};
use dialect::Dialect;
use options::MAX_WAREHOUSES;
pub use options::{Calls, Mix, Options, Profile};
use schema::metadata::{Build, BuiltBy, Metadata, missing_indexes};

/// The maximum number of loaders and of partitions.
const MAX_PARALLEL: u32 = 1024;

/// The workload TPROC-C.
#[derive(Debug)]
pub struct TprocC {
    options: Options,
    dialect_of: fn(EngineKind) -> Result<&'static dyn Dialect>,
    /// The data that the database holds; set by `inspect`.
    metadata: Option<Metadata>,
    /// How the database is driven; also set by `inspect`.
    driven: Option<calls::Driven>,
}

impl TprocC {
    /// Creates the workload with these options; the error says which option is invalid.
    pub fn new(options: Options) -> Result<Self> {
        let refuse = |message: String| Err(Error::usage(message));
        if let Some(number) = options.warehouses.filter(|number| !(1..=MAX_WAREHOUSES).contains(number)) {
            return refuse(format!("{number} warehouses are outside the range 1 to {MAX_WAREHOUSES}"));
        }
        if options.mix.0.iter().all(|&weight| weight == 0) {
            return refuse("the mix is empty: at least one weight must be greater than 0".into());
        }
        if options.fill_page && options.profile == Profile::Hammerdb {
            return refuse(
                "--fill-page belongs to the spec profile: HammerDB's rows are always filled".into(),
            );
        }
        for (what, number, low) in [("loaders", options.loaders, 1), ("partitions", options.partitions, 2)] {
            if let Some(number) = number.filter(|number| !(low..=MAX_PARALLEL).contains(number)) {
                return refuse(format!("{number} {what} are outside the range {low} to {MAX_PARALLEL}"));
            }
        }
        Ok(Self { options, dialect_of: dialect::of_engine, metadata: None, driven: None })
    }

    pub(crate) fn dialect(&self, engine: &dyn Engine) -> Result<&'static dyn Dialect> {
        let dialect = (self.dialect_of)(engine.kind())?;
        if self.options.fill_page && !dialect.can_fill_pages() {
            return Err(Error::usage(format!("--fill-page is not possible on {}", engine.kind()))
                .with_help("its rows have no latches by page that others wait for; leave out --fill-page"));
        }
        Ok(dialect)
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Creates the tables and loads them; resumes an interrupted build. A build that is stopped returns an
    /// error, since its data are incomplete.
    pub fn build(&self, engine: &dyn Engine, progress: &dyn BuildProgress, stop: &Stop) -> Result<()> {
        load::build(engine, self.dialect(engine)?, &self.options, progress, stop)
    }

    /// Drops everything that a build created, complete or not.
    pub fn drop_data(&self, engine: &dyn Engine) -> Result<()> {
        load::drop_data(engine, self.dialect(engine)?)
    }

    /// Checks the twelve consistency conditions and calls `each` with each outcome as soon as it is known.
    pub fn check(
        &self,
        engine: &dyn Engine,
        progress: &dyn BuildProgress,
        stop: &Stop,
        each: &mut dyn FnMut(CheckLine),
    ) -> Result<()> {
        check::check(engine, self.dialect(engine)?, (progress, stop), each)
    }

    /// Indexes and routines that these data should have but do not, as text. A run is possible without them.
    pub fn lacks(&self, engine: &dyn Engine) -> Result<Vec<String>> {
        let mut session = engine.connect()?;
        let dialect = self.dialect(engine)?;
        let Some(build) = Build::read(session.as_mut(), dialect)? else { return Ok(Vec::new()) };
        build.must_be_whole()?;
        let mut lacks = missing_indexes(session.as_mut(), dialect, build.metadata.profile)?;
        if build.metadata.built_by == BuiltBy::Kelvin {
            lacks.extend(dialect.missing_routines(session.as_mut())?);
        }
        Ok(lacks)
    }

    /// Whether complete data with these options exist; an error if one of their tables is missing.
    pub fn is_built(&self, engine: &dyn Engine) -> Result<bool> {
        let build = Build::read(engine.connect()?.as_mut(), self.dialect(engine)?)?;
        let Some(build) = build else { return Ok(false) };
        build.must_be_whole()?;
        Ok(build.complete && build.must_match(&self.options).is_ok())
    }

    /// Sum of d_next_o_id, which each committed New-Order increments by one.
    pub fn headline_count(&self, session: &mut dyn Session) -> Result<u64> {
        let number = (self.dialect_of)(session.engine())?.large("d_next_o_id");
        let sum = session.query(&format!("select sum({number}) from district"))?.int(0, 0)?;
        u64::try_from(sum).map_err(|_| Error::protocol(format!("the sum of d_next_o_id is {sum}")))
    }

    /// The complete data in the database; an error if there are none or these options do not match them.
    pub(crate) fn read_metadata(&self, session: &mut dyn Session, dialect: &dyn Dialect) -> Result<Metadata> {
        let build = Build::read(session, dialect)?.ok_or_else(|| {
            Error::usage("the database contains no TPROC-C data")
                .with_help("build them: kelvin build tproc-c")
        })?;
        build.must_match(&self.options)?;
        build.must_be_whole()?;
        if !build.complete {
            return Err(Error::usage("the TPROC-C data are incomplete: a build was interrupted")
                .with_help("run the build again: it continues with the missing part"));
        }
        Ok(build.metadata)
    }
}
