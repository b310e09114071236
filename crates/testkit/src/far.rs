//! A link of 100 ms: a relay in front of a server that holds everything back for half of that, in
//! either direction, from the first byte of TLS on.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// From here to there.
const DELAY: Duration = Duration::from_millis(50);
/// What may be on its way in one direction: chunks of 16 KiB.
const UNDER_WAY: usize = 1024;

/// How far away the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// On this machine.
    Near,
    /// 100 ms of round-trip time away.
    Far,
}

impl Link {
    /// Returns the address at which a server is this far away.
    pub fn to(self, address: &str) -> String {
        match self {
            Self::Near => address.to_owned(),
            Self::Far => relay(address.to_owned()),
        }
    }
}

/// Starts a relay to an address, for as long as this process lives; returns its own.
pub fn relay(to: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let to = to.clone();
            std::thread::spawn(move || connect(&near, &to));
        }
    });
    address
}

/// Connects late as well: the connection's last packet carries the first bytes.
fn connect(near: &TcpStream, to: &str) {
    std::thread::sleep(DELAY);
    let Ok(far) = TcpStream::connect(to) else {
        return;
    };
    // What the client said first came with it.
    for (from, to, late) in [(near, &far, Duration::ZERO), (&far, near, DELAY)] {
        let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        let _ = (from.set_nodelay(true), to.set_nodelay(true));
        std::thread::spawn(move || carry(from, to, late));
    }
}

/// Carries one direction until it ends, the first chunk as late as is said and each other one by
/// [`DELAY`].
fn carry(mut from: TcpStream, to: TcpStream, mut late: Duration) {
    let (line, arrivals) = std::sync::mpsc::sync_channel(UNDER_WAY);
    let (failed, failure) = channel::<()>();
    let out = to.try_clone().unwrap();
    std::thread::spawn(move || deliver(out, &arrivals, failed));
    let mut buffer = vec![0; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        let chunk = (Instant::now() + late, buffer[..n].to_vec());
        late = DELAY;
        if line.send(chunk).is_err() {
            break;
        }
    }
    drop(line);
    // Everything was delivered, or cannot be.
    let _ = failure.recv();
    let _ = to.shutdown(Shutdown::Write);
}

fn deliver(
    mut to: TcpStream,
    arrivals: &Receiver<(Instant, Vec<u8>)>,
    _failed: std::sync::mpsc::Sender<()>,
) {
    for (arrival, chunk) in arrivals {
        std::thread::sleep(arrival.saturating_duration_since(Instant::now()));
        if to.write_all(&chunk).is_err() {
            // The sender hears that its peer is gone.
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
}
