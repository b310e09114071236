//! A link that reads along: it logs the kind and length of every frame and can damage one of them.

use primer_wire::pair::{run_parties, test_options};
use primer_wire::{Channel, Options};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is done to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection ends in front of it.
    Cut,
    /// It comes with a kind that is not in use.
    Kind,
    /// It comes with one byte more than it should.
    Length,
    /// It and everything after it does not come, though the connection stays.
    Stall,
}

/// Who sent a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// The client did.
    Client,
    /// The server did.
    Server,
}

/// A fault at a frame of one direction, counted from 0.
pub type At = (From, usize, Fault);

/// Kind and length of every frame that one party sent, in order.
pub type Log = Vec<(u8, u64)>;

fn pump(mut input: TcpStream, mut output: TcpStream, fault: Option<(usize, Fault)>) -> Log {
    let mut log = Log::new();
    let mut pass = |log: &mut Log| -> io::Result<()> {
        loop {
            let mut header = [0; 8];
            input.read_exact(&mut header)?;
            let word = u64::from_le_bytes(header);
            let length = word >> 8;
            let hit = fault
                .filter(|(at, _)| *at == log.len())
                .map(|(_, fault)| fault);
            log.push((word as u8, length));
            let sent = match hit {
                None => word,
                Some(Fault::Cut) => return Err(io::ErrorKind::ConnectionReset.into()),
                Some(Fault::Kind) => word | 0xff,
                Some(Fault::Length) => word + (1 << 8),
                Some(Fault::Stall) => {
                    io::copy(&mut input, &mut io::sink())?;
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            };
            output.write_all(&sent.to_le_bytes())?;
            let copied = io::copy(&mut (&mut input).take(length), &mut output)?;
            if copied != length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if hit == Some(Fault::Length) {
                output.write_all(&[0])?;
            }
        }
    };
    // The end of the stream and a fault both end here: neither party hears from the other again.
    if pass(&mut log).is_err_and(|e| e.kind() != io::ErrorKind::UnexpectedEof) {
        let _ = input.shutdown(Shutdown::Both);
        let _ = output.shutdown(Shutdown::Both);
    }
    let _ = output.shutdown(Shutdown::Write);
    log
}

fn tcp() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let far = listener.accept().unwrap().0;
    for end in [&near, &far] {
        end.set_nodelay(true).unwrap();
    }
    (near, far)
}

/// Runs both parties over the relay. Returns what each returned, and what each sent.
pub fn run<A: Send, B: Send>(
    fault: Option<At>,
    client: impl FnOnce(&mut Channel) -> A + Send,
    server: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B, [Log; 2]) {
    run_with(Duration::from_secs(20), fault, client, server)
}

/// Runs both parties as [`run`] does, with another time-out.
pub fn run_with<A: Send, B: Send>(
    timeout: Duration,
    fault: Option<At>,
    client: impl FnOnce(&mut Channel) -> A + Send,
    server: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B, [Log; 2]) {
    let options = Options {
        timeout: Some(timeout),
        ..test_options()
    };
    let ((client_end, client_far), (server_end, server_far)) = (tcp(), tcp());
    let of = |who: From| {
        fault
            .filter(|(from, ..)| *from == who)
            .map(|(_, at, what)| (at, what))
    };
    let (up, down) = (of(From::Client), of(From::Server));
    let logs = Arc::new(Mutex::new([Log::new(), Log::new()]));
    let ends = (
        primer_net::tcp(client_end, &options).unwrap(),
        primer_net::tcp(server_end, &options).unwrap(),
    );
    let (a, b) = std::thread::scope(|scope| {
        for (index, input, output, fault) in [
            (
                0,
                client_far.try_clone().unwrap(),
                server_far.try_clone().unwrap(),
                up,
            ),
            (1, server_far, client_far, down),
        ] {
            let logs = Arc::clone(&logs);
            scope.spawn(move || {
                let log = pump(input, output, fault);
                logs.lock().unwrap()[index] = log;
            });
        }
        run_parties(ends, client, server)
    });
    let logs = Arc::into_inner(logs).unwrap().into_inner().unwrap();
    (a, b, logs)
}
