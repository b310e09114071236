//! Peers that are silent or slow, alone and in floods.

use crate::peer::welcomed;
use primer::service::message::{Reply, Request};
use primer::{Client, ClientOptions};
use primer_testkit::TEXTS;
use primer_testkit::far::Link;
use primer_testkit::log::Log;
use primer_testkit::server::Server;
use primer_testkit::wait::eventually;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Checks a client whose handshake takes longer than it takes the flood to fill all places for
/// arrivals.
#[test]
fn a_flood_of_silent_connections_does_not_keep_out_who_is_far_away() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::start());
    let server = Server::start(&dir.path().join("server"));
    let direct = server.address.clone();
    let (stop, stopped) = mpsc::channel::<()>();
    let flood = std::thread::spawn(move || {
        let mut silent = VecDeque::new();
        let mut count = 0;
        // 600 a second, for as long as it takes and a minute at most.
        let pace = Duration::from_micros(1600);
        while count < 36_000 && stopped.recv_timeout(pace) == Err(mpsc::RecvTimeoutError::Timeout) {
            silent.extend(TcpStream::connect(&direct));
            if silent.len() > 256 {
                silent.pop_front();
            }
            count += 1;
        }
        count
    });
    eventually("the flood", || {
        server.metrics.number("primer_connections_total") >= 256.0
    });
    let far = Link::Far.to(&server.address);
    for (text, label) in &TEXTS[..2] {
        let options = ClientOptions {
            attempts: 1,
            ..server.options(&dir.path().join("client"))
        };
        let mut client = Client::connect(&far, options).unwrap();
        assert_eq!(client.classify(text).unwrap().label, *label);
    }
    stop.send(()).unwrap();
    let count = flood.join().unwrap();
    println!("{count} silent connections");
    assert!(log.has("reason=Evicted"), "the flood was felt");
}

#[test]
fn slow_peers_are_cut() {
    slow_peers(Link::Near);
}

#[test]
fn slow_peers_are_cut_from_far() {
    slow_peers(Link::Far);
}

fn slow_peers(link: Link) {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_with(&dir.path().join("server"), |options| {
        options.limits.handshake = Duration::from_secs(2);
        options.limits.idle = Duration::from_secs(3);
        options.limits.session = Duration::from_secs(6);
    });
    let at = (&server, &*link.to(&server.address));
    // All at once: what takes time here is waiting.
    std::thread::scope(|scope| {
        scope.spawn(|| never_silent_never_done(at.1));
        scope.spawn(|| welcomed_then_silent(at));
        scope.spawn(|| always_asking_for_lists(at));
    });
    server.metrics.counts("primer_connections_cut_total", 3.0);
}

/// Sends one byte of a TLS record now and then.
fn never_silent_never_done(address: &str) {
    let mut loris = TcpStream::connect(address).unwrap();
    let pace = Some(Duration::from_millis(100));
    loris.set_read_timeout(pace).unwrap();
    let started = Instant::now();
    loris.write_all(&[0x16, 3, 1, 2, 0]).unwrap();
    let waiting =
        |error: std::io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    while loris.write_all(&[1]).is_ok() && loris.read(&mut [0; 1]).is_err_and(waiting) {
        let took = started.elapsed();
        assert!(took < Duration::from_secs(20), "never cut");
    }
    let took = started.elapsed();
    assert!(
        took > Duration::from_secs(1) && took < Duration::from_secs(10),
        "{took:?}"
    );
}

fn welcomed_then_silent(at: (&Server, &str)) {
    let mut channel = welcomed(at, [1; 32]);
    let started = Instant::now();
    assert!(Reply::receive(&mut channel).is_err());
    assert!(started.elapsed() < Duration::from_secs(10));
}

/// Asks for lists at a pace, which is no work.
fn always_asking_for_lists(at: (&Server, &str)) {
    let mut channel = welcomed(at, [1; 32]);
    let started = Instant::now();
    while Request::List.send(&mut channel).is_ok() && Reply::receive(&mut channel).is_ok() {
        assert!(started.elapsed() < Duration::from_secs(20), "never cut");
        std::thread::sleep(Duration::from_millis(200));
    }
    let took = started.elapsed();
    assert!(took > Duration::from_secs(2), "{took:?}");
    assert!(took < Duration::from_secs(6), "{took:?}");
}
