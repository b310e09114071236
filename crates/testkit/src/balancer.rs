//! A balancer of connections, as stands in front of replicas: it takes every connection, passes it
//! on to its backend if there is one, and drops it otherwise.
//!
//! It sees no more of a connection than a balancer does, but the records of TLS can be counted, and
//! so it can drop one at a moment of the protocol. Of the client's encrypted records the first ends
//! the handshake, the second is its greeting, the third its first request.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

/// How a connection is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// In good order, as far as TCP is concerned.
    Close,
    /// With a reset, which the system sends if what has arrived is not read.
    Reset,
}

/// Which encrypted record is the client's first request.
const REQUEST: u32 = 3;
/// The type of encrypted records, and the bytes before a record's payload.
const ENCRYPTED: u8 = 23;
const HEADER: usize = 5;

struct Shared {
    ending: Ending,
    backend: Option<String>,
    /// Connections that are passed on only up to the client's first request.
    to_request: u32,
    /// Connections that were dropped so far: without a backend, and at a request.
    dropped: (u32, u32),
}

/// The balancer; it takes connections as long as the process lives.
#[derive(Clone)]
pub struct Balancer {
    /// Where it takes connections.
    pub address: String,
    shared: Arc<Mutex<Shared>>,
}

impl Balancer {
    /// Starts one without a backend.
    pub fn start(ending: Ending) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let balancer = Self {
            address: listener.local_addr().unwrap().to_string(),
            shared: Arc::new(Mutex::new(Shared {
                ending,
                backend: None,
                to_request: 0,
                dropped: (0, 0),
            })),
        };
        let taking = balancer.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                taking.take(near);
            }
        });
        balancer
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }

    /// Sets the backend from now on, or none. `to_request` connections end at the first request.
    pub fn set(&self, backend: Option<&str>, to_request: u32) {
        let mut shared = self.shared();
        (shared.backend, shared.to_request) = (backend.map(str::to_owned), to_request);
    }

    /// Returns how many connections were dropped because there is no backend, and how many at a
    /// request.
    pub fn dropped(&self) -> (u32, u32) {
        self.shared().dropped
    }

    fn take(&self, near: TcpStream) {
        let mut shared = self.shared();
        let far = shared.backend.as_ref().map(TcpStream::connect);
        let Some(Ok(far)) = far else {
            shared.dropped.0 += 1;
            let ending = shared.ending;
            drop(shared);
            // Its hello has arrived.
            let _ = near.peek(&mut [0]);
            return drop_by(&near, ending);
        };
        let limit = match shared.to_request {
            0 => u32::MAX,
            left => {
                shared.to_request = left - 1;
                REQUEST
            }
        };
        drop(shared);
        for up in [true, false] {
            let (near, far) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            let balancer = self.clone();
            std::thread::spawn(move || {
                match up {
                    true => balancer.carry_records(&near, &far, limit),
                    false => drop(std::io::copy(&mut &far, &mut &near)),
                }
                // Neither direction goes on without the other.
                drop_by(&near, balancer.shared().ending);
                let _ = far.shutdown(Shutdown::Both);
            });
        }
    }

    /// Carries the client's records until they end, or the limit of encrypted ones is reached,
    /// whose payload is left unread.
    fn carry_records(&self, mut near: &TcpStream, mut far: &TcpStream, limit: u32) {
        let mut encrypted = 0;
        let mut record = Vec::new();
        loop {
            let mut head = [0; HEADER];
            if near.read_exact(&mut head).is_err() {
                return;
            }
            encrypted += u32::from(head[0] == ENCRYPTED);
            if encrypted == limit {
                self.shared().dropped.1 += 1;
                return;
            }
            let payload = u16::from_be_bytes([head[3], head[4]]);
            record.resize(HEADER + usize::from(payload), 0);
            record[..HEADER].copy_from_slice(&head);
            let read = near.read_exact(&mut record[HEADER..]);
            if read.is_err() || far.write_all(&record).is_err() {
                return;
            }
        }
    }
}

/// Ends a connection; with a reset, when its last descriptor goes, which the other direction's
/// thread lets go of when it wakes.
fn drop_by(near: &TcpStream, ending: Ending) {
    let _ = near.shutdown(match ending {
        Ending::Close => Shutdown::Both,
        Ending::Reset => Shutdown::Read,
    });
}
