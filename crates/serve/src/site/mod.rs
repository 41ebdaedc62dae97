//! The page: the runs of one or several stores in a browser.
//!
//! It reads stores and changes nothing; only with [`SiteOptions::start`] can runs be started, by users with the token.
//! It answers requests for IP addresses and `localhost`, so that no web site can reach it under its own name, and
//! refuses requests from other sites.

mod answer;
mod documents;
mod jobs;
mod list;
mod live;
mod pages;
mod query;
mod request_checks;

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use kelvin_report::group::GroupPage;
use kelvin_store::Store;
use minijinja::Environment;
use serde::{Deserialize, Serialize};
use tiny_http::{Method, Request, Server};

use answer::{Failure, HEADERS, Result, SiteResponse};
use jobs::Jobs;
use list::Lists;
use live::Streams;
use query::Query;
use request_checks::{Refusal, Token};

/// Threads that answer requests.
const THREADS: usize = 4;
/// The longest specification that is accepted.
const MOST_BYTES: u64 = 256 * 1024;

/// Summaries of the groups of a store.
pub trait DescribeGroups: Send + Sync {
    /// Every group with a short summary of its result.
    ///
    /// # Errors
    /// Describes the unreadable data.
    fn list(&self, store: &Store) -> std::result::Result<Vec<GroupLine>, String>;

    /// A group with its result and its runs.
    ///
    /// # Errors
    /// Describes the unreadable data.
    fn page(&self, store: &Store, group: i64) -> std::result::Result<GroupPage, String>;
}

/// One line of the list of groups.
#[derive(Debug, Clone, Serialize)]
pub struct GroupLine {
    /// The number of the group.
    pub group: i64,
    /// "repeat", "ab", "study" or "sweep".
    pub kind: &'static str,
    /// The user's name for it.
    pub name: Option<String>,
    /// Start time in UTC.
    pub created: String,
    /// Number of runs.
    pub runs: usize,
    /// Number of void runs.
    pub void: usize,
    /// A brief answer.
    pub answer: String,
}

/// The server's content, address and access rights.
pub struct SiteOptions {
    /// The listening address; port 0 selects a free port.
    pub address: SocketAddr,
    /// Host names for which the server answers, in addition to addresses and `localhost`.
    pub names: Vec<String>,
    /// The stores. Runs started from the page go into the first one.
    pub stores: Vec<PathBuf>,
    /// The groups.
    pub groups: Box<dyn DescribeGroups>,
    /// Options for starting runs; `None` for a read-only server.
    pub start: Option<StartOptions>,
}

/// Options for starting runs.
pub struct StartOptions {
    /// The token that allows starting and stopping runs.
    pub token: String,
    /// This program, which runs a specification.
    pub program: PathBuf,
}

/// The server, which stops when dropped.
pub struct Site {
    address: SocketAddr,
    server: Arc<Server>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// State shared by all threads.
struct Shared {
    names: Vec<String>,
    hosts: Vec<String>,
    stores: Vec<PathBuf>,
    lists: Lists,
    templates: Environment<'static>,
    describe: Box<dyn DescribeGroups>,
    jobs: Option<(Token, Jobs)>,
    streams: Streams,
    stop: AtomicBool,
}

impl Site {
    /// Starts the server.
    ///
    /// # Errors
    /// When the address is not available.
    pub fn start(
        options: SiteOptions,
    ) -> std::result::Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let server = Server::http(options.address)
            .map_err(|error| format!("cannot listen on {}: {error}", options.address))?;
        let address = server.server_addr().to_ip().ok_or("the server has no address")?;
        let start = options
            .start
            .map(|start| Ok::<_, std::io::Error>((Token::new(&start.token), Jobs::new(start.program)?)));
        let name = |path: &PathBuf| {
            path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
        };
        let shared = Arc::new(Shared {
            names: options.stores.iter().map(name).collect(),
            hosts: options.names,
            lists: Lists::new(&options.stores),
            stores: options.stores,
            templates: pages::environment().map_err(|error| error.to_string())?,
            describe: options.groups,
            jobs: start.transpose()?,
            streams: Streams::default(),
            stop: AtomicBool::new(false),
        });
        // Reading ten thousand runs for the first time takes a second; this way no request waits for it.
        let warm = Arc::clone(&shared);
        let reader = move || drop(warm.lists.page(&Query::default()));
        std::thread::Builder::new().name("page-list".into()).spawn(reader)?;
        let server = Arc::new(server);
        let thread = |number| {
            let (server, shared) = (Arc::clone(&server), Arc::clone(&shared));
            std::thread::Builder::new().name(format!("page-{number}")).spawn(move || {
                while let Ok(request) = server.recv() {
                    shared.answer(request);
                }
            })
        };
        let threads = (0..THREADS).map(thread).collect::<std::io::Result<_>>()?;
        Ok(Self { address, server, shared, threads })
    }

    /// The listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        for _ in &self.threads {
            self.server.unblock();
        }
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

/// The content of a POST request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartRequest {
    store: usize,
    specification: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StopRequest {
    job: u64,
}

impl Shared {
    /// Answers a request. A closed connection is ignored.
    fn answer(self: &Arc<Self>, mut request: Request) {
        if let Err(refusal) = request_checks::check(&request, &self.hosts) {
            return drop(refused(refusal).send(request));
        }
        let (path, query) = Query::split(request.url());
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        if *request.method() == Method::Post {
            let answer = self.post(&parts, &mut request).unwrap_or_else(|failure| failure.answer());
            return drop(answer.send(request));
        }
        if let ["run", store, run, "events"] = parts[..] {
            return self.follow(store, run, request);
        }
        let answer = self.get(&parts, &query).unwrap_or_else(|failure| failure.answer());
        drop(answer.send(request));
    }

    fn get(&self, parts: &[&str], query: &Query) -> Result<SiteResponse> {
        match *parts {
            [""] => self.runs(query),
            ["run", store, run] => self.run(store, run),
            ["run", store, run, "file"] => self.file(store, run),
            ["compare"] => self.compare(query),
            ["groups"] => self.groups(),
            ["group", store, group] => self.group(store, group),
            ["group", store, group, "file"] => self.group_file(store, group),
            ["history"] => self.history(query),
            ["findings"] => self.findings(None),
            ["findings", id] => self.findings(Some(id)),
            ["start"] => self.start_page(query),
            ["assets", "runs.js"] => Ok(SiteResponse::script(include_str!("assets/runs.js"))),
            ["assets", "live.js"] => Ok(SiteResponse::script(include_str!("assets/live.js"))),
            ["assets", "start.js"] => Ok(SiteResponse::script(include_str!("assets/start.js"))),
            _ => Err(Failure::NotFound),
        }
    }

    /// Requests that change something, or show protected content: only with the token.
    fn post(&self, parts: &[&str], request: &mut Request) -> Result<SiteResponse> {
        let Some((token, jobs)) = &self.jobs else { return Ok(refused(Refusal::ReadOnly)) };
        if let Err(refusal) = token.check(request) {
            return Ok(refused(refusal));
        }
        let mut body = String::new();
        let read = request.as_reader().take(MOST_BYTES + 1).read_to_string(&mut body);
        read.map_err(|error| Failure::Asked(format!("the request cannot be read: {error}")))?;
        if body.len() as u64 > MOST_BYTES {
            return Err(Failure::Asked(format!("a specification has at most {MOST_BYTES} bytes")));
        }
        let wrong = |error: serde_json::Error| Failure::Asked(format!("the request cannot be read: {error}"));
        match *parts {
            ["api", "jobs"] => Ok(SiteResponse::json(&jobs.list())),
            ["api", "start"] => {
                let start: StartRequest = serde_json::from_str(&body).map_err(wrong)?;
                let path = self.stores.get(start.store).ok_or(Failure::NotFound)?;
                let job = jobs.start(start.store, path, &start.specification).map_err(Failure::Asked)?;
                Ok(SiteResponse::json(&job))
            }
            ["api", "stop"] => {
                let stop: StopRequest = serde_json::from_str(&body).map_err(wrong)?;
                jobs.stop(stop.job).map_err(Failure::Asked)?;
                Ok(SiteResponse::json(&jobs.list()))
            }
            _ => Err(Failure::NotFound),
        }
    }

    /// Follows a run in a separate thread until the page is closed.
    fn follow(self: &Arc<Self>, store: &str, run: &str, request: Request) {
        let found = self.store(store).and_then(|(_, store)| Ok((store.find(run)?, store)));
        let (run, store) = match found {
            Ok(found) => found,
            Err(failure) => return drop(failure.answer().send(request)),
        };
        let shared = Arc::clone(self);
        let spawned = std::thread::Builder::new().name("live".into()).spawn(move || {
            let Some(_stream) = shared.streams.begin() else {
                return drop(SiteResponse::text(503, "too many open pages follow runs\n").send(request));
            };
            let mut out = request.into_writer();
            let mut head =
                String::from("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n");
            for (name, value) in HEADERS {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            head.push_str("\r\n");
            // On an error the page was closed, or the store cannot be read; then the page requests again and
            // gets the error.
            let _ended = out
                .write_all(head.as_bytes())
                .map_err(Into::into)
                .and_then(|()| live::follow(store, run, &shared.stop, &mut *out));
        });
        // Without a thread there is no answer, and the page requests again.
        drop(spawned);
    }
}

fn refused(refusal: Refusal) -> SiteResponse {
    SiteResponse::text(refusal.status(), &format!("{}\n", refusal.text()))
}
