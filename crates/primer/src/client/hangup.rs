//! Ending what a client does from another thread.
//!
//! A client's calls block: on the network for the most part, for as long as a minute-long offline
//! phase takes. Whoever must be able to end one (an interpreter with a signal, a window with a
//! button) keeps the [`HangUp`] of its options. Hanging up shuts the connection down, so whatever
//! waits for it fails at once, and nothing is tried again. What is lost is what a broken
//! connection loses: bundles in the making, and the bundle of an inference under way, which is
//! spent.

use crate::service::ServiceError;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Ends what a client does; clones are of the same client.
#[derive(Debug, Clone, Default)]
pub struct HangUp(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    line: Mutex<Line>,
    went_down: Condvar,
}

#[derive(Debug, Default)]
struct Line {
    /// The connection belongs to its link and ends with it.
    socket: Weak<TcpStream>,
    down: bool,
}

impl HangUp {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Breaks the connection and refuses every other one until [`Self::pick_up`]; the client's call
    /// ends with [`ServiceError::Stopped`].
    pub fn hang_up(&self) {
        let mut line = self.line();
        line.down = true;
        self.0.went_down.notify_all();
        if let Some(socket) = line.socket.upgrade() {
            // It may be broken already, which is as good.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Lets the client connect again.
    pub fn pick_up(&self) {
        self.line().down = false;
    }

    /// An error if the client has been told to stop.
    pub(crate) fn check(&self) -> Result<(), ServiceError> {
        match self.line().down {
            true => Err(ServiceError::Stopped("asking the server")),
            false => Ok(()),
        }
    }

    /// Waits before another try; an error as soon as the client is told to stop.
    pub(crate) fn pause(&self, pause: Duration) -> Result<(), ServiceError> {
        let up = |line: &mut Line| !line.down;
        let waited = (self.0.went_down).wait_timeout_while(self.line(), pause, up);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.check()
    }

    /// A connection came up; it can be broken while what is returned lives.
    pub(crate) fn connected(&self, socket: TcpStream) -> Result<Arc<TcpStream>, ServiceError> {
        let mut line = self.line();
        if line.down {
            return Err(ServiceError::Stopped("connecting to the server"));
        }
        let socket = Arc::new(socket);
        line.socket = Arc::downgrade(&socket);
        Ok(socket)
    }

    /// An earlier connection is the one to be broken again.
    pub(crate) fn back_to(&self, socket: &Arc<TcpStream>) {
        self.line().socket = Arc::downgrade(socket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;
    use std::time::Instant;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        for socket in [&near, &far] {
            let patience = Some(Duration::from_secs(20));
            socket.set_read_timeout(patience).unwrap();
        }
        (near, far)
    }

    #[test]
    fn hanging_up_ends_a_wait_and_refuses_until_picked_up() {
        let hang_up = HangUp::default();
        let (near, _far) = pair();
        let kept = hang_up.connected(near.try_clone().unwrap()).unwrap();
        let waiting = std::thread::spawn(move || (&near).read(&mut [0]));
        hang_up.check().unwrap();
        hang_up.hang_up();
        assert_eq!(waiting.join().unwrap().unwrap(), 0, "the wait has ended");
        assert!(matches!(hang_up.check(), Err(ServiceError::Stopped(_))));
        let (another, _far) = pair();
        let refused = hang_up.connected(another.try_clone().unwrap());
        assert!(matches!(refused, Err(ServiceError::Stopped(_))));
        hang_up.pick_up();
        hang_up.check().unwrap();
        hang_up.connected(another).unwrap();
        drop(kept);
    }

    #[test]
    fn hanging_up_ends_a_pause() {
        let hang_up = HangUp::default();
        hang_up.pause(Duration::from_millis(1)).unwrap();
        let (started, far) = (Instant::now(), hang_up.clone());
        let pausing = std::thread::spawn(move || far.pause(Duration::from_secs(60)));
        hang_up.hang_up();
        let ended = pausing.join().unwrap();
        assert!(matches!(ended, Err(ServiceError::Stopped(_))), "{ended:?}");
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_client_can_work_on_any_thread() {
        fn may_move<T: Send>() {}
        may_move::<crate::Client>();
    }

    #[test]
    fn a_connection_ends_with_its_link() {
        let hang_up = HangUp::default();
        let (near, mut far) = pair();
        drop(hang_up.connected(near).unwrap());
        assert_eq!(far.read(&mut [0]).unwrap(), 0, "nothing else holds it");
        hang_up.hang_up();
    }
}
