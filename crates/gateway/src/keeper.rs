//! The keeper: one thread that fills the stock, and looks for a server that was lost.
//!
//! It prepares in batches, which take fewer bytes and less time than one bundle at a time, when
//! half of a length's bundles are used, or earlier while no question is asked. It holds a
//! connection only while it works: a server's slots are few.

use crate::Connect;
use crate::activity::Activity;
use crate::hint::HintLog;
use crate::stock::Stock;
use primer::{Client, Event, HangUp, ServiceError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long no question must have been asked before the time is used.
const QUIET: Duration = Duration::from_secs(2);
/// How often the store is looked at when nothing happens: other processes use it too.
const LOOK: Duration = Duration::from_secs(5);
/// The pause after a first failure; it doubles.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause after a failure, and the longest that a server's return goes unnoticed.
const LONGEST: Duration = Duration::from_secs(15);
/// How long nothing is asked for at a limit of the server, at most: it may be raised meanwhile.
const AT_LIMIT: Duration = Duration::from_secs(3600);

/// The thread, from outside.
pub(crate) struct StockKeeper {
    hang_up: HangUp,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl StockKeeper {
    /// Starts the thread, with a client that is connected.
    pub(crate) fn start(
        connect: Connect,
        (client, hang_up): (Client, HangUp),
        stock: Arc<Stock>,
        activity: Arc<Activity>,
    ) -> Self {
        let worker = KeeperThread {
            connect,
            hang_up: hang_up.clone(),
            stock,
            activity,
        };
        let thread = std::thread::spawn(move || worker.run(client));
        let thread = Mutex::new(Some(thread));
        Self { hang_up, thread }
    }

    /// Breaks off what the thread does, and waits for its end. To be called after
    /// [`Activity::shut_down`].
    pub(crate) fn close(&self) {
        self.hang_up.hang_up();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            let _ = thread.join();
        }
    }
}

/// A limit of the server, at which it makes no sense to ask for bundles.
struct Barred {
    until: Instant,
    why: String,
}

impl Barred {
    /// Returns how long a refusal bars, if it is about a limit.
    fn by(error: &ServiceError) -> Option<Self> {
        let limit = error.limit()?;
        let ends = limit.ends_in.map_or(AT_LIMIT, Duration::from_secs);
        // No answer of a server makes us ask again and again.
        let remaining = ends.clamp(LONGEST, AT_LIMIT);
        Some(Self {
            until: Instant::now() + remaining,
            why: error.to_string(),
        })
    }

    fn remaining(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    fn is_over(&self) -> bool {
        self.remaining().is_zero()
    }
}

/// What the thread has.
struct KeeperThread {
    connect: Connect,
    hang_up: HangUp,
    stock: Arc<Stock>,
    activity: Arc<Activity>,
}

impl KeeperThread {
    fn run(&self, client: Client) {
        let mut client = Some(self.watched(client));
        let mut pause = FIRST;
        let mut barred = None;
        while !self.activity.stopping() {
            let seen = self.activity.changes();
            match self.turn(&mut client, &mut barred) {
                Ok(true) => pause = FIRST,
                Ok(false) => {
                    client.iter_mut().for_each(Client::disconnect);
                    pause = FIRST;
                    let idle = barred.is_some() || self.stock.is_full();
                    let patience = if idle { LOOK } else { QUIET };
                    self.activity.wait(seen, patience);
                }
                Err(error) if let Some(found) = Barred::by(&error) => {
                    tracing::info!("preparing is paused for {:?}: {error}", found.remaining());
                    self.activity.reached(None);
                    self.stock.idle(Some(found.why.clone()));
                    barred = Some(found);
                }
                // The gateway ends.
                Err(ServiceError::HungUp(_)) => break,
                Err(error) => {
                    tracing::warn!("preparing bundles failed: {error}");
                    self.stock.idle(Some(error.to_string()));
                    let lost = self.activity.reached(Some(&error));
                    client = None;
                    self.activity.pause(lost, pause);
                    pause = (pause * 2).min(LONGEST);
                }
            }
        }
    }

    /// Prepares one batch if one is wanted and no limit bars it; tells whether it did.
    fn turn(
        &self,
        client: &mut Option<Client>,
        barred: &mut Option<Barred>,
    ) -> Result<bool, ServiceError> {
        if self.activity.trouble().is_some() {
            // The server is out of reach: connect anew each time, so that we notice its return even
            // when no question is asked.
            *client = None;
        }
        let client = match client {
            Some(client) => client,
            None => {
                let made = (self.connect)(self.hang_up.clone())?;
                self.activity.reached(None);
                client.insert(self.watched(made))
            }
        };
        self.count(client)?;
        if barred.as_ref().is_some_and(Barred::is_over) {
            *barred = None;
        }
        if let Some(barred) = barred {
            // So the status says it, whatever failed meanwhile.
            self.stock.idle(Some(barred.why.clone()));
            return Ok(false);
        }
        let quiet = self.activity.quiet() >= QUIET;
        let Some((tokens, lacking)) = self.stock.most_wanted(quiet) else {
            self.stock.idle(None);
            return Ok(false);
        };
        let batch = client.card().batch(tokens, lacking);
        self.stock.begin(tokens, batch);
        client.prepare(tokens, batch)?;
        self.count(client)?;
        self.stock.idle(None);
        self.activity.reached(None);
        Ok(true)
    }

    /// Makes a client report how far it is.
    fn watched(&self, mut client: Client) -> Client {
        let (stock, mut hint) = (Arc::clone(&self.stock), HintLog::default());
        client.observe(move |event| match event {
            Event::Offline {
                tokens,
                meter,
                expected,
                ..
            } => stock.watch(tokens, meter, expected),
            Event::Prepared {
                tokens,
                bundles,
                seconds,
            } => stock.made(tokens, bundles, seconds),
            other => hint.heed(&other),
        });
        client
    }

    /// Counts the bundles in the store.
    fn count(&self, client: &Client) -> Result<(), ServiceError> {
        loop {
            let mark = self.stock.mark();
            if self.stock.counted(&client.prepared()?, mark) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer::service::message::{Counted, Exhausted, Refusal};

    #[test]
    fn a_limit_bars_until_it_ends_and_an_hour_at_most() {
        let remaining = |ends_in| {
            let limit = Exhausted {
                what: Counted::Prepared,
                limit: 5,
                had: 5,
                asked: 1,
                ends_in,
            };
            let barred = Barred::by(&ServiceError::Refused(Refusal::Limit(limit))).unwrap();
            assert!(barred.why.contains("5 prepared bundles"), "{}", barred.why);
            assert!(!barred.is_over());
            barred.remaining().as_secs_f64().round()
        };
        assert_eq!(remaining(Some(600)), 600.0);
        assert_eq!(remaining(Some(7 * 3600)), 3600.0);
        assert_eq!(remaining(None), 3600.0);
        assert_eq!(remaining(Some(0)), 15.0);
        assert!(Barred::by(&ServiceError::Refused(Refusal::Full)).is_none());
    }
}
