//! A watcher's own connection: bounded in time, made again after a loss.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use kelvin_database::{Engine, Result, Session};

/// What a statement of ours may take before the server cancels it. The connection's own limit is longer, so that
/// the server has the first word.
pub(crate) const PATIENCE: Duration = Duration::from_secs(4);

/// From one attempt to connect again to the next.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(500);

/// A connection whose calls end.
pub(crate) fn bounded(engine: &dyn Engine) -> Result<Box<dyn Session>> {
    let mut session = engine.connect()?;
    session.set_timeout(Some(PATIENCE + Duration::from_secs(1)))?;
    Ok(session)
}

/// Opens a connection, prepares it for an observer and finds out about the server.
pub(crate) type Connect<A> = fn(&dyn Engine) -> Result<(Box<dyn Session>, A)>;

/// A connection of the observers; `A` is what an engine's watchers know about their server.
pub(crate) struct Link<A> {
    engine: Arc<dyn Engine>,
    connect: Connect<A>,
    session: Option<Box<dyn Session>>,
    /// Grows with each connection: statements prepared before are gone.
    pub(crate) generation: u32,
    /// Of the server, as it was when the connection was made.
    pub(crate) about: A,
    tried: Instant,
}

impl<A> Link<A> {
    /// Connects.
    pub(crate) fn open(engine: &Arc<dyn Engine>, connect: Connect<A>) -> Result<Self> {
        let (session, about) = connect(engine.as_ref())?;
        Ok(Self {
            engine: Arc::clone(engine),
            connect,
            session: Some(session),
            generation: 1,
            about,
            tried: Instant::now(),
        })
    }

    /// Whether there is a connection.
    pub(crate) fn is_up(&self) -> bool {
        self.session.is_some()
    }

    /// Does something with the connection, which is made again where it was lost. A connection that broke is dropped.
    pub(crate) fn with<T>(
        &mut self,
        mut work: impl FnMut(&mut dyn Session, &A) -> Result<T>,
    ) -> std::result::Result<T, String> {
        self.connect_again()?;
        let Some(session) = self.session.as_deref_mut() else { return Err("not connected".into()) };
        let result = work(session, &self.about);
        let broken = session.is_broken();
        if session.in_transaction() && !broken {
            // An error within it; the next statement must not meet it. A failure shows at the next use.
            let _later = session.run("ROLLBACK");
        }
        if broken {
            self.session = None;
            self.tried = Instant::now();
        }
        result.map_err(|error| error.to_string())
    }

    /// Connects where the connection was lost, at most twice a second.
    pub(crate) fn connect_again(&mut self) -> std::result::Result<(), String> {
        if self.session.is_some() {
            return Ok(());
        }
        if self.tried.elapsed() < BETWEEN_ATTEMPTS {
            return Err("the connection was lost".into());
        }
        self.tried = Instant::now();
        let (session, about) =
            (self.connect)(self.engine.as_ref()).map_err(|error| format!("reconnecting: {error}"))?;
        self.session = Some(session);
        self.generation += 1;
        self.about = about;
        Ok(())
    }
}

/// The two watchers, by their places in [`Observers`].
pub(crate) const SESSIONS: usize = 0;
pub(crate) const FIGURES: usize = 1;

/// The numbers of the observers' connections, which are left out of what is seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observers(Arc<[AtomicI64; 2]>);

impl Observers {
    /// Sets the connection of one of the two watchers.
    pub(crate) fn set(&self, watcher: usize, connection: i64) {
        self.0[watcher].store(connection, Ordering::Relaxed);
    }

    /// As a list for SQL.
    pub(crate) fn list(&self) -> String {
        let [first, second] = [&self.0[0], &self.0[1]].map(|one| one.load(Ordering::Relaxed));
        format!("{first}, {second}")
    }
}
