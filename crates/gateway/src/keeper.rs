//! The keeper: one thread that fills the stock, and looks for a server that was lost.
//!
//! It prepares in batches, which take fewer bytes and less time than one bundle at a time, when
//! half of a length's bundles are used, or earlier while no question is asked. It holds a
//! connection only while it works: a server's places are few.

use crate::Connect;
use crate::activity::Activity;
use crate::hint::HintLog;
use crate::stock::Stock;
use primer::{Client, Event, HangUp, ServiceError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long no question must have been asked before the time is used.
const QUIET: Duration = Duration::from_secs(2);
/// How often the store is looked at when nothing happens: other processes use it too.
const LOOK: Duration = Duration::from_secs(5);
/// The pause after a first failure; it doubles.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause after a failure, and the longest that a server's return goes unnoticed.
const LONGEST: Duration = Duration::from_secs(15);

/// The thread, from outside.
pub(crate) struct Keeper {
    hang_up: HangUp,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Keeper {
    /// Starts the thread, with a client that is connected.
    pub(crate) fn start(
        connect: Connect,
        (client, hang_up): (Client, HangUp),
        stock: Arc<Stock>,
        activity: Arc<Activity>,
    ) -> Self {
        let work = Work {
            connect,
            hang_up: hang_up.clone(),
            stock,
            activity,
        };
        let thread = std::thread::spawn(move || work.run(client));
        let thread = Mutex::new(Some(thread));
        Self { hang_up, thread }
    }

    /// Breaks off what the thread does, and waits for its end. To be called after
    /// [`Activity::stop`].
    pub(crate) fn close(&self) {
        self.hang_up.hang_up();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Work {
    connect: Connect,
    hang_up: HangUp,
    stock: Arc<Stock>,
    activity: Arc<Activity>,
}

impl Work {
    fn run(&self, client: Client) {
        let mut client = Some(self.watched(client));
        let mut pause = FIRST;
        while !self.activity.stopping() {
            let seen = self.activity.changes();
            match self.turn(&mut client) {
                Ok(true) => pause = FIRST,
                Ok(false) => {
                    client.iter_mut().for_each(Client::rest);
                    pause = FIRST;
                    let patience = if self.stock.is_full() { LOOK } else { QUIET };
                    self.activity.wait(seen, patience);
                }
                // The gateway ends.
                Err(ServiceError::Stopped(_)) => break,
                Err(error) => {
                    tracing::warn!("preparing bundles failed: {error}");
                    self.stock.rest(Some(error.to_string()));
                    let lost = self.activity.reached(Some(&error));
                    client = None;
                    self.activity.pause(lost, pause);
                    pause = (pause * 2).min(LONGEST);
                }
            }
        }
    }

    /// Prepares one batch if one is wanted; tells whether it did.
    fn turn(&self, client: &mut Option<Client>) -> Result<bool, ServiceError> {
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
        let quiet = self.activity.quiet() >= QUIET;
        let Some((tokens, lacking)) = self.stock.most_wanted(quiet) else {
            self.stock.rest(None);
            return Ok(false);
        };
        let batch = client.card().batch(tokens, lacking);
        self.stock.begin(tokens, batch);
        client.prepare(tokens, batch)?;
        self.count(client)?;
        self.stock.rest(None);
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
