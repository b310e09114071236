//! A server among clients that prepare, ask, vanish, are killed and send garbage, for half an hour:
//! every answer is right, nothing is spent twice, and its memory stays what it was.
//!
//! Everything stays on this machine, and on loopback; it needs two cores and 4 GB.
//!
//! `cargo test --release -p primer-cli --test program soak -- --ignored --nocapture`. One run,
//! without `--release`, on two cores with a load of 15 to 40: 442 answers, all right; 97
//! preparations, 99 clients killed, 202 vanished, 185 pieces of garbage. No bundle was spent twice
//! or by one side alone. Resident memory was 254 to 352 MB (largest of the first half 352, of the
//! second 326); when all clients had gone, 5 threads and 9 open files were left.

use primer::service::message::{Greeting, Reception, Request};
use primer::service::{BundleId, VERSION};
use primer_net::tls::{TlsClient, Trust};
use primer_testkit::TEXTS;
use primer_testkit::command::json;
use primer_testkit::process::{Server, client};
use primer_testkit::stores::check_stores;
use primer_testkit::wait::eventually;
use primer_wire::{Channel, Options};
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CLIENTS: usize = 8;

/// What a client has done so far.
#[derive(Default)]
struct Deeds([AtomicUsize; 5]);

impl Deeds {
    const NAMES: [&str; 5] = ["answers", "preparations", "killed", "vanished", "garbage"];

    fn did(&self, deed: usize) {
        self.0[deed].fetch_add(1, Ordering::Relaxed);
    }

    fn told(&self) -> String {
        let count = |deed: &AtomicUsize| deed.load(Ordering::Relaxed);
        let all = Self::NAMES.iter().zip(&self.0);
        let all: Vec<String> = all
            .map(|(name, n)| format!("{} {name}", count(n)))
            .collect();
        all.join(", ")
    }
}

/// Numbers that look random, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// Opens a connection under a pseudonym of its own, welcomed or not.
fn stranger(server: &Server, dice: &mut Dice) -> Option<Channel> {
    let socket = TcpStream::connect(&server.address).ok()?;
    let tls = TlsClient::new(Trust::Pinned(server.fingerprint.parse().unwrap())).unwrap();
    let options = Options {
        timeout: Some(Duration::from_secs(30)),
        ..Options::default()
    };
    let mut channel = primer_net::tls_connect(socket, &tls, &options).ok()?;
    let greeting = Greeting {
        version: VERSION,
        pseudonym: [dice.below(256) as u8; 32],
        token: None,
    };
    greeting.send(&mut channel).ok()?;
    Reception::receive(&mut channel).ok()?;
    Some(channel)
}

fn garbage(server: &Server, dice: &mut Dice) {
    let bytes: Vec<u8> = (0..dice.below(4000))
        .map(|_| dice.below(256) as u8)
        .collect();
    if dice.below(2) == 0 {
        let socket = TcpStream::connect(&server.address);
        let _ = socket.and_then(|mut socket| socket.write_all(&bytes));
    } else if let Some(mut channel) = stranger(server, dice) {
        let code = dice.below(256) as u8;
        let _ = channel
            .send_code(code, &bytes)
            .and_then(|()| channel.flush());
    }
}

/// Asks for bundles and goes somewhere in the middle of it.
fn vanish(server: &Server, dice: &mut Dice) {
    let Some(mut channel) = stranger(server, dice) else {
        return;
    };
    let id = BundleId::from_bytes(std::array::from_fn(|_| dice.below(256) as u8));
    let request = Request::Prepare {
        id,
        tokens: 8,
        bundles: 1,
        session: Some([3; 32]),
    };
    let _ = request.send(&mut channel);
    std::thread::sleep(Duration::from_millis(dice.below(500)));
}

/// Kills a client while it prepares or asks.
fn killed(server: &Server, state: &Path, dice: &mut Dice) {
    let mut asking = client("classify", server, state);
    asking.arg(TEXTS[0].0);
    let quiet = asking.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = quiet.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(dice.below(2000)));
    let _ = child.kill();
    let _ = child.wait();
}

fn live(server: &Server, state: &Path, end: Instant, dice: &mut Dice, deeds: &Deeds) {
    while Instant::now() < end {
        let deed = match dice.below(10) {
            0..=3 => {
                let (text, label) = TEXTS[dice.below(TEXTS.len() as u64) as usize];
                let mut asking = client("classify", server, state);
                let found = json(asking.args(["--wait", "300", "--attempts", "10", text]));
                assert_eq!(found["label"], label, "{found}");
                0
            }
            4 => {
                let mut preparing = client("prepare", server, state);
                let count = (1 + dice.below(2)).to_string();
                preparing.args(["--tokens", "8", "--count", &count]);
                json(preparing.args(["--wait", "300", "--attempts", "10"]));
                1
            }
            5 => {
                killed(server, state, dice);
                2
            }
            6..=7 => {
                vanish(server, dice);
                3
            }
            _ => {
                garbage(server, dice);
                4
            }
        };
        deeds.did(deed);
    }
}

/// Runs by `cargo test --release -p primer-cli --test program soak -- --ignored --nocapture`, which
/// prints the server's memory once a minute; `PRIMER_SOAK_SECONDS=300` makes it shorter.
#[test]
#[ignore = "takes half an hour"]
fn memory_stays_flat_and_answers_right() {
    let seconds = std::env::var("PRIMER_SOAK_SECONDS").map_or(1800, |s| s.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let server_state = dir.path().join("server");
    let args = ["--max-sessions", "10", "--metrics", "127.0.0.1:0"];
    let server = Server::start(&server_state, &args);
    let states: Vec<PathBuf> = (0..CLIENTS)
        .map(|number| dir.path().join(format!("client{number}")))
        .collect();
    let deeds = Deeds::default();
    let started = Instant::now();
    let end = started + Duration::from_secs(seconds);
    let every = Duration::from_secs((seconds / 10).clamp(5, 60));
    let mut memory = Vec::new();
    std::thread::scope(|scope| {
        for (number, state) in states.iter().enumerate() {
            let (server, deeds) = (&server, &deeds);
            let mut dice = Dice(0x9e37_79b9_7f4a_7c15 + number as u64);
            scope.spawn(move || live(server, state, end, &mut dice, deeds));
        }
        while Instant::now() < end {
            std::thread::sleep(every.min(end.saturating_duration_since(Instant::now())));
            let now = server.resident_memory();
            memory.push(now);
            let minute = started.elapsed().as_secs_f64() / 60.0;
            let (threads, files) = server.threads_and_files();
            println!(
                "{minute:5.1} min  {:6.1} MB  {threads:3} threads  {files:3} files  {}",
                now as f64 / 1e6,
                deeds.told()
            );
        }
    });
    println!("at the end: {}", deeds.told());
    eventually("everybody to leave", || {
        server.metrics.number("primer_sessions") == 0.0
    });
    println!(
        "{} threads and {} files when all have gone",
        server.threads_and_files().0,
        server.threads_and_files().1
    );
    let inferred = server.metrics.number("primer_inferences_total");
    assert!(inferred > 0.0);
    assert_eq!(server.terminate().code(), Some(0));
    let states: Vec<&Path> = states.iter().map(PathBuf::as_path).collect();
    check_stores(&server_state, &states);
    // The first half includes warming up; what is needed was needed by then.
    let half = memory.len() / 2;
    let most = |part: &[u64]| part.iter().copied().max().unwrap_or(0);
    let (before, after) = (most(&memory[..half]), most(&memory[half..]));
    let room = before / 5 + (64 << 20);
    assert!(
        after < before + room,
        "memory grew from {before} to {after}"
    );
}
