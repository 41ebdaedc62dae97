//! Exchanges of times with several agents at the same time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{Client, Request};
use futures_util::future::join_all;
use kelvin_measure::Clock;

use crate::bus::{Bus, Task};
use crate::clock::{ClockEstimate, Exchange};
use crate::message::{ClockAnswer, decode};

/// Time limit of an answer; a slower one would not improve the bound.
const PATIENCE: Duration = Duration::from_millis(500);

/// Interval of the exchanges during a load, and their number each time.
const AGAIN: Duration = Duration::from_secs(5);
const FEW: u32 = 2;

/// The estimates of the clocks of a point's agents.
pub(super) struct AgentClocks {
    subjects: Vec<String>,
    clock: Clock,
    estimates: Arc<Mutex<Vec<ClockEstimate>>>,
}

impl AgentClocks {
    /// Clocks of the agents that answer at these subjects, without any exchange yet.
    pub(super) fn new(subjects: Vec<String>, clock: &Clock) -> Self {
        let estimates = Arc::new(Mutex::new(vec![ClockEstimate::default(); subjects.len()]));
        Self { subjects, clock: clock.clone(), estimates }
    }

    /// Performs `times` exchanges with each agent, and waits for them.
    pub(super) fn exchange(&self, bus: &Bus, times: u32) {
        bus.wait(all(
            bus.client(),
            self.subjects.clone(),
            self.clock.clone(),
            times,
            Arc::clone(&self.estimates),
        ));
    }

    /// Repeats exchanges until the task is dropped.
    pub(super) fn go_on(&self, bus: &Bus) -> Task {
        let (client, subjects, clock) = (bus.client(), self.subjects.clone(), self.clock.clone());
        let estimates = Arc::clone(&self.estimates);
        bus.spawn(async move {
            loop {
                tokio::time::sleep(AGAIN).await;
                all(client.clone(), subjects.clone(), clock.clone(), FEW, Arc::clone(&estimates)).await;
            }
        })
    }

    /// The current estimates, in the order of the subjects.
    pub(super) fn estimates(&self) -> Vec<ClockEstimate> {
        self.estimates.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn all(
    client: Client,
    subjects: Vec<String>,
    clock: Clock,
    times: u32,
    estimates: Arc<Mutex<Vec<ClockEstimate>>>,
) {
    let with = |subject: String| with_agent(client.clone(), subject, clock.clone(), times);
    let found = join_all(subjects.into_iter().map(with)).await;
    let mut estimates = estimates.lock().unwrap_or_else(PoisonError::into_inner);
    for (estimate, exchanges) in estimates.iter_mut().zip(found) {
        for exchange in exchanges {
            estimate.add(exchange);
        }
    }
}

async fn with_agent(client: Client, subject: String, clock: Clock, times: u32) -> Vec<Exchange> {
    let mut found = Vec::new();
    for _ in 0..times {
        let request = Request::new().timeout(Some(PATIENCE));
        let t0 = clock.now();
        let Ok(answer) = client.send_request(subject.clone(), request).await else {
            // Without an answer the beats show whether the agent still runs.
            break;
        };
        let t3 = clock.now();
        if let Ok(ClockAnswer { t1, t2 }) = decode(&answer.payload) {
            found.push(Exchange { t0, t1, t2, t3 });
        }
    }
    found
}
