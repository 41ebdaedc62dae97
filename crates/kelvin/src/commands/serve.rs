//! `kelvin serve`: shows stored runs in a browser.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use kelvin_serve::{Site, SiteOptions, StartOptions};

use crate::args::{Global, ServeArgs};
use crate::exit::Code;
use crate::{out, paths, signal};

/// Minimum length of a token: a shorter one can be guessed.
const SHORTEST: usize = 16;

/// Serves until a signal arrives.
pub(crate) fn serve(args: &ServeArgs, global: &Global) -> Result<Code> {
    let stop = signal::listen_saying("kelvin: stopping")?;
    let stores = match &args.stores[..] {
        [] => vec![paths::store(global.store.as_deref())?],
        stores => {
            // The default store may have no runs yet; a store that is named must exist.
            for store in stores {
                kelvin_store::Store::open_read_only(store)?;
            }
            stores.to_vec()
        }
    };
    let start = args.allow_start.then(|| start(args.token_file.as_deref())).transpose()?;
    let site = Site::start(SiteOptions {
        address: args.listen,
        names: args.host_names.clone(),
        stores,
        groups: Box::new(crate::group::ServedGroups),
        start,
    })
    .map_err(|error| anyhow!(error.to_string()))?;
    out::line(&format!("http://{}", site.address()))?;
    if !args.listen.ip().is_loopback() && !global.quiet {
        eprintln!("kelvin: other hosts can reach this address and read every result; there is no login");
    }
    while !stop.requested() {
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(site);
    Ok(Code::Success)
}

/// The options that permit starting runs: with the token of the file, or with a new one, which is printed to
/// standard error, where only the user who started the server sees it.
fn start(file: Option<&Path>) -> Result<StartOptions> {
    let program = std::env::current_exe().context("cannot find this program's executable")?;
    let token = if let Some(file) = file {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let token = text.trim().to_owned();
        if token.len() < SHORTEST {
            bail!("the token in {} has fewer than {SHORTEST} characters", file.display());
        }
        token
    } else {
        let mut bytes = [0_u8; 20];
        std::fs::File::open("/dev/urandom")
            .and_then(|mut random| random.read_exact(&mut bytes))
            .context("cannot read /dev/urandom for a token")?;
        let token = bytes.iter().fold(String::new(), |token, byte| format!("{token}{byte:02x}"));
        eprintln!("kelvin: token for starting runs: {token}");
        token
    };
    Ok(StartOptions { token, program })
}
