//! CPU time of a PostgreSQL server, from the kernel's accounting in /proc.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The process ID of the postmaster.
pub(crate) fn postmaster(data: &Path) -> Result<u32> {
    let file = data.join("postmaster.pid");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let first = text.lines().next().unwrap_or_default();
    first.trim().parse().with_context(|| format!("{} names no process", file.display()))
}

/// CPU seconds of the postmaster, its running children, and its ended children.
pub(crate) fn seconds(postmaster: u32) -> Result<f64> {
    // The time of a backend that ends moves from the running to the ended children. In between it may be missed or
    // counted twice. Two samples with the same children are consistent.
    let mut before = sample(postmaster)?;
    for _ in 0..100 {
        let now = sample(postmaster)?;
        if now.children == before.children {
            return Ok(now.ticks / rustix::param::clock_ticks_per_second() as f64);
        }
        before = now;
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    anyhow::bail!("the server's processes start and exit too fast to be counted")
}

struct Look {
    children: Vec<u32>,
    ticks: f64,
}

fn sample(postmaster: u32) -> Result<Look> {
    let own = stat(postmaster).context("the postmaster has exited")?;
    let mut look = Look { children: Vec::new(), ticks: own.cpu + own.ended };
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(stat) = stat(pid).filter(|stat| stat.parent == postmaster) {
            look.children.push(pid);
            look.ticks += stat.cpu + stat.ended;
        }
    }
    look.children.sort_unstable();
    Ok(look)
}

struct Stat {
    parent: u32,
    /// utime + stime.
    cpu: f64,
    /// cutime + cstime.
    ended: f64,
}

/// The statistics of a process, unless it has ended. See proc(5): the fields after the name in parentheses, which may
/// contain anything.
fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<f64>().ok();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        cpu: ticks(11)? + ticks(12)?,
        ended: ticks(13)? + ticks(14)?,
    })
}
