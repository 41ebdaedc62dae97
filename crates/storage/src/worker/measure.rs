use super::testing::run;
use crate::engine::testing::job;
use crate::job::*;
use std::path::Path;

fn measure(name: &str, job: &mut Job, length: u64, path: &Path) {
    job.course.runtime = Some(1_000_000_000);
    job.course.time_based = true;
    job.process.cpus = vec![1];
    let mut all = Vec::new();
    for _ in 0..5 {
        let job = job.clone();
        let path = path.to_owned();
        let sent = std::thread::spawn(move || run(&job, &path, length)).join().unwrap();
        assert_eq!(sent.end.error, None);
        let ios = sent.read().ios as f64;
        let cpu = (sent.end.cpu.0 + sent.end.cpu.1) as f64;
        all.push((cpu / ios / 1000.0, sent.end.cpu.0 as f64 / ios / 1000.0));
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    eprintln!("{name}: {:.4} us (user {:.4}); {:.4} to {:.4}", all[2].0, all[2].1, all[0].0, all[4].0);
}

#[test]
#[ignore = "measures"]
fn figures() {
    let dir = tempfile::tempdir_in("/root").unwrap();
    let hole = dir.path().join("hole");
    std::fs::File::create(&hole).unwrap().set_len(8 << 30).unwrap();
    let cached = dir.path().join("cached");
    std::fs::write(&cached, vec![1_u8; 16 << 20]).unwrap();
    measure("null 1", &mut job(EngineName::Null, 1), 8 << 30, &hole);
    measure("null 32", &mut job(EngineName::Null, 32), 8 << 30, &hole);
    let mut direct = job(EngineName::IoUring, 32);
    direct.sync.direct = true;
    measure("hole default", &mut direct.clone(), 8 << 30, &hole);
    direct.depth.submit = Some(16);
    direct.depth.complete_min = Some(16);
    measure("hole 16", &mut direct.clone(), 8 << 30, &hole);
    let mut logs = direct.clone();
    logs.logs.latency = Some("x".into());
    logs.logs.bandwidth = Some("x".into());
    logs.logs.iops = Some("x".into());
    logs.logs.histogram = Some("x".into());
    logs.logs.window = Some(100_000_000);
    logs.logs.histogram_window = Some(100_000_000);
    measure("hole 16 logs", &mut logs, 8 << 30, &hole);
    let mut one = job(EngineName::IoUring, 1);
    one.sync.direct = true;
    measure("hole 1", &mut one, 8 << 30, &hole);
    let mut buffered = job(EngineName::IoUring, 32);
    buffered.targets.invalidate = false;
    buffered.depth.submit = Some(16);
    buffered.depth.complete_min = Some(16);
    measure("cached 16", &mut buffered, 16 << 20, &cached);
    let mut psync = job(EngineName::Psync, 1);
    psync.sync.direct = true;
    measure("psync hole", &mut psync, 8 << 30, &hole);
    let mut aio = job(EngineName::Libaio, 32);
    aio.sync.direct = true;
    measure("libaio hole", &mut aio, 8 << 30, &hole);
}

#[test]
#[ignore = "measures"]
fn one() {
    let path = Path::new("/root/engio/hole");
    let mut direct = job(EngineName::IoUring, 32);
    direct.sync.direct = true;
    direct.depth.submit = Some(16);
    direct.depth.complete_min = Some(16);
    for _ in 0..2 {
        measure("hole 16", &mut direct.clone(), 8 << 30, path);
        let mut other = direct.clone();
        other.engine.fixed_buffers = Some(false);
        measure("hole 16 not fixed", &mut other, 8 << 30, path);
        let mut other = direct.clone();
        other.engine.register_files = Some(false);
        measure("hole 16 no files", &mut other, 8 << 30, path);
    }
}
