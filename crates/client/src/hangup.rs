//! Ending what a client does from another thread.
//!
//! A client's calls block: on the network for the most part, for as long as a minute-long offline
//! phase takes. A program that must be able to end one (an interpreter with a signal, a window with
//! a button) keeps the [`HangUp`] of its options. Hanging up shuts the connection down, so that a
//! call which waits for it fails at once, and nothing is tried again. What is lost is what a broken
//! connection loses: bundles in the making, and the bundle of an inference under way, which is
//! spent.

use primer_service::ServiceError;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// A connection that can be shut down while another thread waits for it.
pub trait ShutDown: Send + Sync {
    /// Ends both directions, so that reads and writes fail from now on.
    fn shut_down(&self);
}

/// Ends what a client does; clones are of the same client.
#[derive(Clone, Default)]
pub struct HangUp(Arc<Shared>);

impl fmt::Debug for HangUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "HangUp({})",
            if self.line().down { "down" } else { "up" }
        )
    }
}

#[derive(Default)]
struct Shared {
    line: Mutex<Line>,
    went_down: Condvar,
}

#[derive(Default)]
struct Line {
    /// The connection belongs to its link and ends with it.
    connection: Option<Weak<dyn ShutDown>>,
    down: bool,
}

impl HangUp {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Breaks the connection and refuses every other one until [`Self::pick_up`]; the client's call
    /// ends with [`ServiceError::HungUp`].
    pub fn hang_up(&self) {
        let mut line = self.line();
        line.down = true;
        self.0.went_down.notify_all();
        if let Some(connection) = line.connection.as_ref().and_then(Weak::upgrade) {
            connection.shut_down();
        }
    }

    /// Lets the client connect again.
    pub fn pick_up(&self) {
        self.line().down = false;
    }

    /// Returns an error if the client has been told to stop.
    ///
    /// # Errors
    /// [`ServiceError::HungUp`].
    pub fn check(&self) -> Result<(), ServiceError> {
        match self.line().down {
            true => Err(ServiceError::HungUp("asking the server")),
            false => Ok(()),
        }
    }

    /// Waits before another try; an error as soon as the client is told to stop.
    pub(crate) fn pause(&self, pause: Duration) -> Result<(), ServiceError> {
        // Where there are no other threads, nothing can end a pause.
        #[cfg(target_family = "wasm")]
        primer_wire::clock::sleep(pause);
        #[cfg(not(target_family = "wasm"))]
        {
            let up = |line: &mut Line| !line.down;
            let waited = (self.0.went_down).wait_timeout_while(self.line(), pause, up);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
        self.check()
    }

    /// Takes a connection that came up; it can be broken while what is returned lives.
    ///
    /// # Errors
    /// [`ServiceError::HungUp`] if the client has been told to stop.
    pub fn connected(
        &self,
        connection: impl ShutDown + 'static,
    ) -> Result<Arc<dyn ShutDown>, ServiceError> {
        let mut line = self.line();
        if line.down {
            return Err(ServiceError::HungUp("connecting to the server"));
        }
        let connection: Arc<dyn ShutDown> = Arc::new(connection);
        line.connection = Some(Arc::downgrade(&connection));
        Ok(connection)
    }

    /// Takes an earlier connection again as the one to be broken.
    pub(crate) fn back_to(&self, connection: &Arc<dyn ShutDown>) {
        self.line().connection = Some(Arc::downgrade(connection));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn hanging_up_ends_a_pause() {
        let hang_up = HangUp::default();
        hang_up.pause(Duration::from_millis(1)).unwrap();
        let (started, far) = (Instant::now(), hang_up.clone());
        let pausing = std::thread::spawn(move || far.pause(Duration::from_secs(60)));
        hang_up.hang_up();
        let ended = pausing.join().unwrap();
        assert!(matches!(ended, Err(ServiceError::HungUp(_))), "{ended:?}");
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_client_can_work_on_any_thread() {
        fn may_move<T: Send>() {}
        may_move::<crate::Client>();
    }
}
