//! Sets the commit that the command is built from, for `kelvin --version`.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=KELVIN_COMMIT");
    let commit =
        std::env::var("KELVIN_COMMIT").ok().filter(|name| !name.is_empty()).or_else(commit_of_checkout);
    let commit = commit.unwrap_or_else(|| "unknown commit".to_owned());
    let version = variable("CARGO_PKG_VERSION");
    let build = if variable("PROFILE") == "release" { "optimised" } else { "debug" };
    println!(
        "cargo::rustc-env=KELVIN_VERSION={version} ({commit}, {build} build for {})",
        variable("TARGET")
    );
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// The commit of the checkout, and a rebuild when it changes; `None` outside a checkout.
fn commit_of_checkout() -> Option<String> {
    for name in
        ["HEAD".to_owned(), "packed-refs".to_owned()].into_iter().chain(git(&["symbolic-ref", "-q", "HEAD"]))
    {
        if let Some(path) =
            git(&["rev-parse", "--git-path", &name]).filter(|path| std::path::Path::new(path).exists())
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
