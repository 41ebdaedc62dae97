//! Round trip of a byte over the loopback network: the floor under every statement's.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::Baseline;

const MOST: usize = 20_000;
const WARM_UP: usize = 200;
const LIMIT: Duration = Duration::from_millis(500);

/// A peer that does not answer for so long never will.
const PATIENCE: Duration = Duration::from_secs(5);

/// CPUs that this process may use.
fn allowed_cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).ok();
    set.map_or_else(Vec::new, |set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Both ends on one CPU, and each on a separate CPU: left to the scheduler it would be now the one, now the other, and
/// they differ by a factor of five where an idle CPU has to be woken by a hypervisor.
pub(super) fn measure(baseline: &mut Baseline) {
    let allowed = allowed_cpus();
    for (name, label, second) in [
        ("loopback.one-cpu", "TCP round trip on one CPU", 0),
        ("loopback.two-cpus", "TCP round trip on two CPUs", 1),
    ] {
        let (Some(&near), Some(&far)) = (allowed.first(), allowed.get(second)) else {
            baseline.miss(label, "this process may not use enough CPUs");
            continue;
        };
        match round_trips(near, far) {
            Ok(mut times) => baseline.put_latency(name, label, &mut times),
            Err(error) => baseline.miss(label, error.to_string()),
        }
    }
}

/// Starts a thread that stays on a CPU.
fn on<T: Send + 'static>(
    cpu: usize,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<JoinHandle<io::Result<T>>> {
    let work = move || {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set)?;
        work()
    };
    std::thread::Builder::new().name("loopback".into()).stack_size(256 * 1024).spawn(work)
}

fn round_trips(near: usize, far: usize) -> io::Result<Vec<u64>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
    }
    let echo = on(far, move || {
        let mut byte = [0];
        // Ends when the client closes.
        while server.read_exact(&mut byte).and_then(|()| server.write_all(&byte)).is_ok() {}
        Ok(())
    })?;
    let client = on(near, move || ask(client))?;
    let broken = |_| io::Error::other("a thread of the measurement panicked");
    let times = client.join().map_err(broken)?;
    // It ends with the connection. If it could not start, the client has waited in vain and the reason is here.
    echo.join().map_err(broken)??;
    times
}

fn ask(mut stream: TcpStream) -> io::Result<Vec<u64>> {
    let mut byte = [7];
    let mut trip = || -> io::Result<u64> {
        let since = Instant::now();
        stream.write_all(&byte)?;
        stream.read_exact(&mut byte)?;
        Ok(since.elapsed().as_nanos() as u64)
    };
    for _ in 0..WARM_UP {
        trip()?;
    }
    let (mut times, since) = (Vec::with_capacity(MOST), Instant::now());
    while times.len() < MOST && since.elapsed() < LIMIT {
        times.push(trip()?);
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;

    #[test]
    fn round_trips_are_measured_on_as_many_cpus_as_there_are() {
        let mut baseline = Baseline::new();
        measure(&mut baseline);
        assert!(measured(&baseline, "loopback.one-cpu.p50") <= measured(&baseline, "loopback.one-cpu.p99"));
        if allowed_cpus().len() > 1 {
            measured(&baseline, "loopback.two-cpus.p50");
        } else {
            assert!(baseline.absent.iter().any(|absent| absent.why.contains("enough CPUs")), "{baseline:?}");
        }
    }
}
