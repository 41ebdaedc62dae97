//! Were sessions opened again and again during the load?

use super::FindingDefinition;
use crate::load::{is_mysql, is_sqlserver, server_is_here};
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};
use kelvin_measure::text;
use kelvin_observe::metric;

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "connection-storm", question: "Were sessions opened frequently?", find };

/// New sessions a second from which it is more than monitoring.
const RATE: f64 = 5.0;
/// Milliseconds of CPU that a new PostgreSQL session takes at least, from the fork to the first statement's catalogue
/// lookups: 1.5 to 4 ms on machines of 2015 to 2023; the lower end, so that the estimate is no exaggeration.
const CPU_MS: f64 = 1.5;
/// The same of MySQL and MariaDB, where it is a thread: 0.09 to 0.17 ms on MariaDB 10.11, with and without its thread cache, by a
/// socket or TCP, without TLS (4000 connections each).
const THREAD_CPU_MS: f64 = 0.1;
/// Share of the host's CPUs for that from which it may limit: as other processes in `noisy-neighbour`.
const SHARE: f64 = 0.08;

const PROCESSES: &str = "5 new sessions per second; red if opening them takes 8 % of the database's host's CPUs or more at \
    1.5 ms each, the lower end of what a new PostgreSQL session costs";
const THREADS: &str = "5 new sessions per second; red if opening them takes 8 % of the database's host's CPUs or more at \
    0.1 ms each, the lower end of what a new session of MariaDB costs without TLS";

const LOGINS: &str = "5 logins per second; never red, because the cost of a login to SQL Server was not \
measured";

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let rate =
        evidence.mean_of_first_known(point.point, metric::NEW_SESSIONS).filter(|rate| *rate >= RATE)?;
    let window = evidence.window(point.point)?;
    let transactions = point.transactions().good() as f64 / window.seconds();
    // The CPUs that are known are the client's.
    let cpus = if server_is_here(evidence) { crate::load::cpus(evidence) } else { None };
    let (threads, logins) = (is_mysql(evidence), is_sqlserver(evidence));
    let each = if threads { THREAD_CPU_MS } else { CPU_MS };
    let used = rate * each / 1e3;
    let share = cpus.map(|cpus| used / cpus).filter(|_| !logins);
    let own = transactions > 0.0 && rate >= transactions / 2.0;
    let mut facts = vec![
        EvidenceLine::new(
            match () {
                () if threads => "attempts to connect per second",
                () if logins => "logins per second",
                () => "new sessions per second",
            },
            text::number(rate),
        ),
        EvidenceLine::new("transactions per second", text::number(transactions)),
    ];
    if !logins {
        let each = format!("{used:.2} (at least {each} ms each)");
        facts.push(EvidenceLine::new("CPUs for opening them", each));
    }
    if own {
        facts.push(EvidenceLine::new(
            "whose",
            "as many as transactions: the load itself may open one for each",
        ));
    }
    let failed = evidence.mean(point.point, metric::FAILED_CONNECTIONS).filter(|failed| *failed > 0.0);
    facts.extend(failed.map(|failed| EvidenceLine::new("of them failed, per second", text::number(failed))));
    let created = evidence.mean(point.point, metric::THREADS_CREATED);
    facts.extend(
        created.map(|created| EvidenceLine::new("threads created per second", text::number(created))),
    );
    facts.extend(
        evidence.setting("thread_cache_size").map(|value| EvidenceLine::new("thread_cache_size", value)),
    );
    let mut next = String::from(match () {
        () if threads => {
            "Find out who connects (performance_schema.hosts, the general log), and keep the sessions open in a pool"
        }
        () if logins => {
            "Find out who connects (host_name and program_name of sys.dm_exec_sessions, by login_time), and use the driver's \
             connection pool: reusing a pooled connection is not a login"
        }
        () => {
            "Find out who connects (log_connections), and put a pooler in between or keep the sessions open"
        }
    });
    // Most of them found no thread to take over.
    if created.is_some_and(|created| created >= rate / 2.0) {
        next.push_str("; until then raise thread_cache_size, so that fewer connections need a new thread");
    }
    next.push_str("; if the run is meant to measure connecting, state it with the result.");
    Some(Finding {
        id: ABOUT.id,
        severity: if share.is_some_and(|share| share >= SHARE) { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: format!("{} sessions were opened per second during the window", text::number(rate)),
        evidence: facts,
        effect: Effect::up_to_or(
            share,
            EffectBasis::Throughput,
            if logins {
                "the cost of a login to SQL Server was not measured"
            } else {
                "the number of CPUs of the database's host is not known"
            },
        ),
        below_precision: false,
        threshold: match () {
            () if threads => THREADS,
            () if logins => LOGINS,
            () => PROCESSES,
        }
        .into(),
        next,
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;
    use crate::scene::Scene;

    #[test]
    fn a_storm_is_red_by_its_cpu_and_monitoring_is_nothing() {
        let severity = |rate: f32| {
            let scene = Scene::healthy().metric("postgres.connections.new", rate);
            find(&scene.evidence()).first().map(|found| found.severity)
        };
        assert_eq!(severity(200.0), Some(Severity::Red));
        assert_eq!(severity(20.0), Some(Severity::Amber));
        let elsewhere =
            Scene::healthy().without("host.process.server.").metric("postgres.connections.new", 200.0);
        assert_eq!(find(&elsewhere.evidence())[0].severity, Severity::Amber);
        assert_eq!(severity(0.5), None);
        assert!(find(&Staged::new().done()).is_empty());
    }

    #[test]
    fn a_thread_costs_less_than_a_process_and_the_thread_cache_is_named_where_it_had_none() {
        let found = |rate: f32, created: f32| {
            let mut scene = Scene::healthy()
                .metric("mysql.connections.new", rate)
                .metric("mysql.connections.failed", 1.0)
                .metric("mysql.threads.created", created);
            scene.environment["engine"] = "mysql".into();
            find(&scene.evidence()).remove(0)
        };
        let few = found(200.0, 0.0);
        assert_eq!(few.severity, Severity::Amber);
        assert!(!few.next.contains("thread_cache_size") && !few.next.contains("log_connections"), "{few:?}");
        assert!(few.evidence.iter().any(|fact| fact.what.starts_with("of them failed")), "{few:?}");
        let many = found(4000.0, 3900.0);
        assert_eq!(many.severity, Severity::Red);
        assert!(many.next.contains("raise thread_cache_size"), "{}", many.next);
    }
}
