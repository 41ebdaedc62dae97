//! Connecting: socket, prelogin, TLS, login, and what every session sets.

use std::sync::Arc;
use std::time::Instant;

use super::engine::Shared;
use super::inbox::Inbox;
use super::link::Link;
use super::login::{FLAGS, Login, TDS_7_4, TDS_8_0, features};
use super::packet::{self, FIRST_SIZE, WANTED_SIZE};
use super::prelogin::{self, Agreed, Reply};
use super::session::SqlServerSession;
use super::token::{Answer, Route, Token};
use super::{Config, Encrypt, Password, browser, password, tls};
use crate::process_sessions::{PROGRAM, session_name};
use crate::stream::{Stream, connect as socket};
use crate::{Error, ErrorClass, Result, Rows};

/// What every session sets. The first seven decide which plans can be used, and have to be as every other client has them.
const SETTINGS: &str = "SET ANSI_NULLS ON SET ANSI_PADDING ON SET ANSI_WARNINGS ON SET ARITHABORT ON \
    SET CONCAT_NULL_YIELDS_NULL ON SET QUOTED_IDENTIFIER ON SET NUMERIC_ROUNDABORT OFF \
    SET IMPLICIT_TRANSACTIONS OFF SET CURSOR_CLOSE_ON_COMMIT OFF SET DATEFORMAT ymd SET TEXTSIZE 2147483647 \
    SELECT COALESCE(CAST(SERVERPROPERTY('babelfish') AS int), 0)";
/// How often a server may send us to another.
const MOST_ROUTES: usize = 3;

/// A session that is ready for statements.
pub(crate) fn connect(config: &Config, shared: &Arc<Shared>) -> Result<SqlServerSession> {
    let deadline = Instant::now() + config.connect_timeout;
    attempt(config, shared, deadline)
        .map_err(|e| e.context(&format!("cannot connect to SQL Server at {}", config.address())))
}

fn attempt(config: &Config, shared: &Arc<Shared>, deadline: Instant) -> Result<SqlServerSession> {
    let token = token(config)?;
    let port = match (config.port, &config.instance) {
        (Some(port), _) => port,
        (None, Some(instance)) => {
            if let Some(port) = shared.instance_port.get() {
                *port
            } else {
                let port = browser::find_port(&config.host, instance, deadline)?;
                *shared.instance_port.get_or_init(|| port)
            }
        }
        (None, None) => super::config::PORT,
    };
    let mut place = Route { host: config.host.clone(), port };
    for _ in 0..=MOST_ROUTES {
        let (inbox, mut answer) = log_in(config, &place, token.as_ref(), deadline)?;
        match answer.route.take() {
            Some(route) => place = route,
            None => return ready(inbox, answer, shared),
        }
    }
    Err(Error::protocol("the server keeps redirecting from one address to another"))
}

fn token(config: &Config) -> Result<Option<Password>> {
    let token = match &config.token_file {
        Some(path) => Some(password::read_token(path)?),
        None => config.token.clone(),
    };
    if token.is_some() && config.encrypt == Encrypt::Optional {
        return Err(Error::usage("an access token needs an encrypted connection")
            .with_help("use encrypt=mandatory or encrypt=strict"));
    }
    Ok(token)
}

/// Opens the socket and logs in.
fn log_in(
    config: &Config,
    place: &Route,
    token: Option<&Password>,
    deadline: Instant,
) -> Result<(Inbox<Link>, Answer)> {
    let socket = socket::open_tcp(&place.host, place.port, deadline)?;
    let mut inbox = Inbox::new(Link::new(Stream::new(socket, deadline)));
    if config.encrypt == Encrypt::Strict {
        tls::start_first(&mut inbox.source, config, &place.host)?;
    }
    let reply = introduce(&mut inbox, config, token.is_some())?;
    let agreed = reply.agree(config.encrypt)?;
    if agreed != Agreed::Nothing {
        tls::start_within(&mut inbox, config, &place.host, agreed)?;
    }
    let password = match (&config.password, token) {
        (_, Some(_)) => "",
        (Some(password), None) => std::str::from_utf8(password.expose()).unwrap_or_default(),
        (None, None) => return Err(password::missing(&config.user)),
    };
    let token = token.map(|token| String::from_utf8_lossy(token.expose()).into_owned());
    let host = rustix::system::uname();
    let login = Login {
        version: if config.encrypt == Encrypt::Strict { TDS_8_0 } else { TDS_7_4 },
        packet_size: WANTED_SIZE,
        program_version: 0,
        process: std::process::id(),
        flags: FLAGS,
        host: host.nodename().to_str().unwrap_or_default(),
        user: &config.user,
        password,
        program: session_name(),
        server: &place.host,
        library: PROGRAM,
        database: &config.database,
        client: [0; 6],
        features: features(token.as_deref(), reply.federated),
    };
    let message = login.encode()?;
    inbox.expect(packet::kind::RESPONSE);
    inbox.source.stream.send(&message, &mut inbox.buffer)?;
    if agreed == Agreed::Login {
        inbox.source.stream.set_tls(None);
    }
    let mut answer = Answer::new();
    read_login(&mut inbox, &mut answer)?;
    Ok((inbox, answer))
}

/// The first exchange. What comes from another kind of server, or does not come, is explained.
fn introduce(inbox: &mut Inbox<Link>, config: &Config, token: bool) -> Result<Reply> {
    let request = prelogin::request(config.encrypt, config.instance.as_deref().unwrap_or_default(), token);
    inbox.expect(packet::kind::PRELOGIN);
    inbox.source.stream.send(&request, &mut inbox.buffer)?;
    let mut body = Vec::new();
    let read = loop {
        match inbox.more() {
            Ok(false) => break Ok(()),
            Ok(true) if body.len() > FIRST_SIZE => break Err(Error::protocol("its answer is too long")),
            Ok(true) => match inbox.rest_of_packet() {
                Ok(rest) => body.extend_from_slice(rest),
                Err(error) => break Err(error),
            },
            Err(error) => break Err(error),
        }
    };
    let reply = read.and_then(|()| Reply::parse(&body)).map_err(not_sql_server)?;
    if reply.wrong_instance {
        return Err(Error::usage(format!(
            "the server is not the instance {}",
            config.instance.as_deref().unwrap_or_default()
        ))
        .with_help("check the port: with ;instance and no port, SQL Server Browser is queried for it"));
    }
    Ok(reply)
}

fn not_sql_server(error: Error) -> Error {
    match error.class() {
        ErrorClass::Protocol => error.context("this is not SQL Server").with_help("check host and port"),
        ErrorClass::Timeout => error.with_help(
            "SQL Server answers immediately: check host and port; a server that requires encrypt=strict \
            does not answer either",
        ),
        _ => error,
    }
}

fn read_login(inbox: &mut Inbox<Link>, answer: &mut Answer) -> Result<()> {
    let mut first = Ok(());
    while inbox.more()? {
        if let Token::Error(error) = answer.next(inbox, None, false)? {
            first = first.and(Err(error));
        }
    }
    first?;
    match answer.login {
        Some(TDS_7_4 | TDS_8_0) => Ok(()),
        Some(version @ ..=0x7400_0003) if version != TDS_8_0 => Err(Error::protocol(format!(
            "the server speaks TDS version {version:#010x}; 7.4 is needed (SQL Server 2012 and later)"
        ))),
        Some(version) => Err(Error::protocol(format!("the server speaks TDS version {version:#010x}"))),
        None => Err(Error::protocol("the server neither accepted nor rejected the login")),
    }
}

fn ready(inbox: Inbox<Link>, answer: Answer, shared: &Arc<Shared>) -> Result<SqlServerSession> {
    let mut session = SqlServerSession::new(inbox, answer, Arc::clone(shared));
    let mut rows = Rows::new();
    session.run_text(SETTINGS, Some(&mut rows))?;
    session.babelfish = rows.int(0, 0)? == 1;
    session.inbox.source.stream.connected()?;
    session.inbox.source.set_timeout(None)?;
    Ok(session)
}
