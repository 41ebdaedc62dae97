use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kelvin_measure::Random;
use proptest::prelude::*;

use super::*;
use crate::arrivals::Process;

const S: u64 = SECOND;

/// The result of a simulated load.
struct Simulated {
    served: u64,
    /// Mean time from the intended to the actual start, in seconds.
    wait: f64,
    tally: QueueTally,
}

/// Serves the queue with `users` on a simulated clock.
fn simulate(queue: &Queue, users: usize, end: Nanos, mut service: impl FnMut() -> f64) -> Simulated {
    let mut free: BinaryHeap<Reverse<Nanos>> = (0..users).map(|_| Reverse(0)).collect();
    let (mut served, mut waited) = (0_u64, 0.0);
    while let Some(Reverse(now)) = free.pop() {
        match queue.claim(now) {
            Claim::Serve { at, .. } => {
                let start = now.max(at);
                waited += (start - at) as f64 / 1e9;
                served += 1;
                free.push(Reverse(start + (service() * 1e9) as u64));
            }
            Claim::End => {}
        }
    }
    Simulated { served, wait: waited / served as f64, tally: queue.tally(end) }
}

fn poisson(seed: u64, rate: f64, seconds: u64, limit: u64) -> Queue {
    Queue::new(Arrivals::new(seed, Process::Poisson, rate, 0), limit, seconds * S)
}

/// Erlang's B: the share of arrivals that find all `c` servers busy, at an offered load of `a`.
fn erlang_b(c: u32, a: f64) -> f64 {
    (1..=c).fold(1.0, |b, k| a * b / (f64::from(k) + a * b))
}

fn close_to(found: f64, known: f64, part: f64) {
    assert!((found / known - 1.0).abs() < part, "found {found}, known {known}");
}

#[test]
fn exponential_service_waits_as_erlang_says() {
    // M/M/c: mean wait C/(c·μ − λ), C = B/(1 − ρ(1 − B)) (Erlang 1917); for c = 1 it is ρ/(μ − λ).
    for (c, rho) in [(1, 0.5), (1, 0.8), (4, 0.8), (16, 0.9)] {
        let (mu, lambda) = (100.0, 100.0 * rho * f64::from(c));
        let b = erlang_b(c, lambda / mu);
        let known = b / (1.0 - rho * (1.0 - b)) / (f64::from(c) * mu - lambda);
        let seconds = (1_500_000.0 / lambda) as u64;
        let queue = poisson(1, lambda, seconds, u64::MAX);
        let mut random = Random::part(2, 3, 4);
        let found = simulate(&queue, c as usize, seconds * S, || random.exponential(1.0 / mu));
        close_to(found.wait, known, 0.05);
        assert_eq!(found.tally.refused, 0);
        assert_eq!(found.tally.due, found.served);
        assert_eq!(found.tally.claimed, found.served);
    }
}

#[test]
fn constant_service_waits_as_crommelin_says() {
    // M/D/c (Crommelin 1932): W/D = Σᵢ P(X ≥ ic) − P(X ≥ ic + 1)/ρ with X Poisson of mean icρ.
    let crommelin = |c: u32, rho: f64| -> f64 {
        let term = |i: u32| {
            let (mean, from) = (f64::from(i * c) * rho, i * c);
            let ln_first = (1..=from).fold(-mean, |ln, k| ln + mean.ln() - f64::from(k).ln());
            let mut point = ln_first.exp();
            let first = point;
            let mut above = 0.0;
            for k in from + 1..from + 2000 {
                point *= mean / f64::from(k);
                above += point;
            }
            first + above - above / rho
        };
        (1..400).map(term).sum()
    };
    // Pollaczek and Khinchine's exact value for one server: ρ/(2(1 − ρ)).
    close_to(crommelin(1, 0.8), 2.0, 1e-5);
    for (c, rho) in [(1, 0.8), (2, 0.8), (4, 0.9)] {
        let (d, seconds) = (0.01, 20_000 / u64::from(c));
        let queue = poisson(5, rho * f64::from(c) / d, seconds, u64::MAX);
        let found = simulate(&queue, c as usize, seconds * S, || d);
        close_to(found.wait, crommelin(c, rho) * d, 0.05);
    }
}

#[test]
fn a_limit_refuses_as_many_as_the_formulas_say() {
    // Limit 0 is Erlang's loss system. M/M/1 with room for K in total refuses (1 − ρ)ρᴷ/(1 − ρᴷ⁺¹).
    let cases =
        [(4_u32, 0_u64, 3.0, erlang_b(4, 3.0)), (1, 4, 0.9, 0.1 * 0.9_f64.powi(5) / (1.0 - 0.9_f64.powi(6)))];
    for (c, limit, load, known) in cases {
        let seconds = 5_000;
        let queue = poisson(7, load * 100.0, seconds, limit);
        let mut random = Random::part(8, 8, 8);
        let found = simulate(&queue, c as usize, seconds * S, || random.exponential(0.01));
        close_to(found.tally.refused as f64 / found.tally.due as f64, known, 0.03);
        assert_eq!(found.tally.longest, limit);
        assert_eq!(found.tally.due, found.served + found.tally.refused + found.tally.waiting);
        let counted: u64 = queue.take_refused().iter().map(|r| r.count).sum();
        assert_eq!(counted, found.tally.refused);
        assert!(queue.take_refused().is_empty());
    }
}

#[test]
fn a_stall_refuses_the_oldest_and_counts_them_in_their_seconds() {
    // 10 per second from 0 on. The first call is at 3.05 s, when 31 are due.
    let queue =
        Queue::new(Arrivals::new(1, Process::Uniform, 10.0, 0), 8, 10 * S).with_window(S / 2, Nanos::MAX);
    assert_eq!(queue.claim(3 * S + S / 20), Claim::Serve { at: 2_300_000_000, changes: 0 });
    let refused = queue.take_refused();
    let seconds: Vec<(u64, u64)> = refused.iter().map(|r| (r.first / 1_000_000, r.count)).collect();
    // Seconds are counted from the window's opening at 0.5 s.
    assert_eq!(seconds, [(0, 5), (500, 10), (1500, 8)]);
    let all = QueueTally { due: 31, claimed: 1, refused: 23, waiting: 7, longest: 8 };
    assert_eq!(queue.tally(3 * S + S / 20), all);
    let window = QueueTally { due: 26, claimed: 1, refused: 18, waiting: 7, longest: 8 };
    assert_eq!(queue.window(3 * S + S / 20), window);
}

#[test]
fn nothing_arrives_after_the_end_and_an_early_end_keeps_the_books() {
    let uniform = || Queue::new(Arrivals::new(1, Process::Uniform, 10.0, 0), 1000, S);
    let queue = uniform();
    let mut served = 0;
    while let Claim::Serve { at, .. } = queue.claim(0) {
        assert!(at < S);
        served += 1;
    }
    assert_eq!(served, 10);
    assert_eq!(queue.tally(5 * S).claimed, 10);

    let queue = uniform();
    for _ in 0..4 {
        queue.claim(0);
    }
    assert_eq!(queue.close(250_000_000), 250_000_000);
    assert_eq!(queue.claim(0), Claim::End);
    // The fourth, at 0.3 s, was claimed by a user that waits for it, but it never became due.
    assert_eq!(queue.tally(9 * S), QueueTally { due: 3, claimed: 3, refused: 0, waiting: 0, longest: 1 });

    // A call at 0.55 s: what was due then cannot be taken back.
    let queue = uniform();
    queue.claim(550_000_000);
    assert_eq!(queue.close(500_000_000), 550_000_001);
    assert_eq!(queue.tally(9 * S), QueueTally { due: 6, claimed: 1, refused: 0, waiting: 5, longest: 6 });
}

#[test]
fn a_rate_of_nothing_ends_at_once() {
    for rate in [0.0, -1.0, f64::NAN] {
        for process in [Process::Poisson, Process::Uniform] {
            let queue = Queue::new(Arrivals::new(1, process, rate, 0), 10, 3600 * S);
            assert_eq!(queue.claim(0), Claim::End);
            assert_eq!(queue.tally(3600 * S).due, 0);
        }
    }
}

#[test]
fn threads_share_it_without_losing_an_arrival() {
    let queue = Queue::new(Arrivals::new(3, Process::Poisson, 1e6, 0), u64::MAX, S / 5);
    let mut all: Vec<Nanos> = std::thread::scope(|scope| {
        let claim = || {
            let mut mine = Vec::new();
            while let Claim::Serve { at, .. } = queue.claim(S) {
                mine.push(at);
            }
            mine
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(claim)).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    all.sort_unstable();
    let known: Vec<Nanos> = Arrivals::new(3, Process::Poisson, 1e6, 0).take_while(|&at| at < S / 5).collect();
    assert_eq!(all, known);
}

/// `cargo test --release -p kelvin-users --lib -- --ignored --nocapture claim_costs`
#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stdout)]
fn a_claim_costs_less_than_200_ns() {
    const BATCH: u64 = 10_000;
    for process in [Process::Poisson, Process::Uniform] {
        let queue = Queue::new(Arrivals::new(1, process, 1e6, 0), 1000, u64::MAX);
        let mut costs: Vec<f64> = (0..300)
            .map(|batch| {
                let begin = std::time::Instant::now();
                for i in batch * BATCH..(batch + 1) * BATCH {
                    // The clock moves with the arrivals: each claim moves both cursors.
                    std::hint::black_box(queue.claim(i * 1000));
                }
                begin.elapsed().as_nanos() as f64 / BATCH as f64
            })
            .collect();
        costs.sort_by(f64::total_cmp);
        // Batches of about a millisecond: the fastest were not interrupted by other processes.
        println!("{process:?}: {:.1} ns a claim (first decile of 300 batches)", costs[30]);
        assert!(costs[30] < 200.0);
    }
}

proptest! {
    #[test]
    fn the_books_balance_whatever_happens(
        seed: u64,
        uniform: bool,
        rate in 1.0..2000.0_f64,
        limit in 0_u64..50,
        open in 0_u64..S,
        steps in proptest::collection::vec((0_u64..20_000_000, 0_u8..8), 1..200),
    ) {
        let process = if uniform { Process::Uniform } else { Process::Poisson };
        let until = 2 * S;
        let queue = Queue::new(Arrivals::new(seed, process, rate, 0), limit, until).with_window(open, Nanos::MAX);
        let (mut now, mut until) = (0, until);
        let (mut claims, mut counted) = (Vec::new(), 0);
        for (step, what) in steps {
            now += step;
            match what {
                0 => counted += queue.take_refused().iter().map(|r| r.count).sum::<u64>(),
                // Another thread's clock reading may arrive out of order.
                1 => { queue.tally(now.saturating_sub(5_000_000)); }
                2 if now > S => until = queue.close(now.saturating_sub(1_000_000)),
                _ => if let Claim::Serve { at, .. } = queue.claim(now) {
                    prop_assert!(at < until && claims.last().is_none_or(|&last| last <= at));
                    claims.push(at);
                }
            }
            let tally = queue.tally(now);
            prop_assert_eq!(tally.due, tally.claimed + tally.refused + tally.waiting);
            prop_assert!(tally.waiting <= tally.longest && tally.longest <= limit);
        }
        let whole = queue.tally(u64::MAX - 1);
        let window = queue.window(u64::MAX - 1);
        // Compared with the schedule itself.
        let schedule: Vec<Nanos> = Arrivals::new(seed, process, rate, 0).take_while(|&at| at < until).collect();
        prop_assert_eq!(whole.due, schedule.len() as u64);
        prop_assert_eq!(window.due, schedule.iter().filter(|&&at| at >= open).count() as u64);
        prop_assert_eq!(whole.claimed, claims.iter().filter(|&&at| at < until).count() as u64);
        prop_assert_eq!(window.claimed, claims.iter().filter(|&&at| at < until && at >= open).count() as u64);
        prop_assert_eq!(window.due, window.claimed + window.refused + window.waiting);
        counted += queue.take_refused().iter().map(|r| r.count).sum::<u64>();
        prop_assert_eq!(whole.refused, counted);
    }
}

#[test]
fn the_arrivals_of_a_window_are_followed_while_the_load_goes_on() {
    // Ten per second, and one user who takes 0.15 s for each. The window is the second second.
    let queue = Queue::new(Arrivals::new(1, Process::Uniform, 10.0, 0), 100, 10 * S).with_window(S, 2 * S);
    let mut now = 0;
    while now < 2 * S {
        let Claim::Serve { at, .. } = queue.claim(now) else { panic!("the load goes on") };
        now = now.max(at) + 150_000_000;
    }
    let at_close = queue.window(2 * S);
    let waited = queue.waiting_at_close().unwrap();
    assert_eq!((at_close.due, at_close.waiting), (10, waited));
    assert!((5..=8).contains(&waited), "{at_close:?}");
    while queue.window(now).waiting > 0 {
        let Claim::Serve { at, .. } = queue.claim(now) else { panic!("the load goes on") };
        now = now.max(at) + 150_000_000;
    }
    let end = queue.end(now);
    assert!(end > 2 * S + S / 2, "{end}");
    let books = queue.window(10 * S);
    assert_eq!((books.due, books.claimed, books.refused, books.waiting), (10, 10, 0, 0));
    assert_eq!(queue.waiting_at_close(), Some(waited), "what waited at the closing is kept");
    assert!(queue.tally(10 * S).due > 20, "the load went on behind it");
}

#[test]
fn a_change_of_the_rate_takes_back_what_users_wait_for_and_the_books_stay_whole() {
    let slow = Arrivals::new(1, Process::Uniform, 1.0, S);
    let queue = Queue::new(slow, 100, 10 * S);
    let Claim::Serve { at: first, changes } = queue.claim(0) else { panic!("the load goes on") };
    let Claim::Serve { at: second, .. } = queue.claim(0) else { panic!("the load goes on") };
    assert_eq!((first, second), (S, 2 * S));
    assert!(queue.confirms(first, changes, first));
    // Ten per second from 1.5 s on: the arrival at 2 s is not among them.
    let at = queue.change(3 * S / 2, |begin| Arrivals::new(1, Process::Uniform, 10.0, begin));
    assert_eq!(at, 3 * S / 2 + 1);
    assert!(!queue.confirms(second, changes, second));
    assert_eq!(queue.claim(at), Claim::Serve { at, changes: 1 });
    let tally = queue.tally(2 * S);
    assert_eq!((tally.due, tally.claimed, tally.waiting), (6, 2, 4));
    assert_eq!(queue.changes(0)[0].at, at);
}

proptest! {
    /// With any changes and any number of waiting users, every due arrival is claimed once or waits.
    #[test]
    fn changes_lose_no_arrival_and_serve_none_twice(
        seed: u64, rates in proptest::collection::vec((0.5..50.0_f64, 1_u64..3_000), 1..6), users in 1_usize..8,
    ) {
        let queue = Queue::new(Arrivals::new(seed, Process::Poisson, 5.0, 0), u64::MAX, 60 * S);
        let mut random = Random::part(seed, 1, 2);
        let mut waiting: Vec<Option<(Nanos, usize)>> = vec![None; users];
        let (mut served, mut now) = (0_u64, 0);
        let mut changes = Vec::new();
        for (number, (rate, after)) in (1..).zip(rates) {
            changes.push((now + after * 1_000_000, rate, number));
            now += after * 1_000_000;
        }
        let end = now + 2 * S;
        let mut clock = 0;
        while clock < end {
            clock += 1 + (random.exponential(2e7) as u64);
            while changes.first().is_some_and(|change| change.0 <= clock) {
                let (at, rate, number) = changes.remove(0);
                let process = Process::Poisson;
                queue.change(at.max(clock), |begin| Arrivals::changed(seed, process, rate, begin, number));
            }
            for user in &mut waiting {
                let (at, version) = match *user {
                    Some(claimed) => claimed,
                    None => match queue.claim(clock) {
                        Claim::Serve { at, changes } => (at, changes),
                        Claim::End => continue,
                    },
                };
                *user = Some((at, version));
                if at <= clock {
                    *user = None;
                    served += u64::from(queue.confirms(at, version, clock));
                    }
            }
        }
        let tally = queue.tally(clock);
        let claimed_and_due = waiting.iter().flatten().filter(|(at, version)| {
            *at <= clock && queue.changes(*version).first().is_none_or(|change| *at < change.at)
        });
        prop_assert_eq!(tally.due, served + claimed_and_due.count() as u64 + tally.waiting);
        prop_assert_eq!(tally.due, tally.claimed + tally.refused + tally.waiting);
    }
}
