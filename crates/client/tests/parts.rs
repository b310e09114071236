//! A client whose parts come from outside: no socket, no file. It asks a server in this process
//! over memory, and gets what a client with sockets and files gets.
#![allow(missing_docs)]
#![cfg(feature = "native")]

use primer_client::{
    Client, ClientOptions, Dial, Dialled, Event, HangUp, HintPart, HintStore, MemoryHints,
    MemoryKeep, Parts, ShutDown,
};
use primer_hint::published::Identity;
use primer_hint::storage::ReadAt;
use primer_server::{ConnectionControl, Door, Server, ServerOptions, ShutdownHandle};
use primer_service::ServiceError;
use primer_service::hints::record::Record;
use primer_store::{Bounds, BundleStore, MemoryStore, StoreError};
use primer_wire::Channel;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tempfile::{TempDir, tempdir};

const TEXT: &str = "a warm , funny film";
const TOKENS: usize = 8;

/// A server in this process.
struct Rig {
    dir: TempDir,
    address: String,
    trust: primer_wire::peer::Fingerprint,
    door: Door,
    stop: ShutdownHandle,
    running: Option<JoinHandle<()>>,
}

impl Rig {
    fn start() -> Self {
        let dir = tempdir().unwrap();
        let server = Server::bind(ServerOptions {
            listen: "127.0.0.1:0".into(),
            state: Some(dir.path().join("server")),
            ..ServerOptions::default()
        });
        let server = server.unwrap();
        Self {
            dir,
            address: server.address().to_string(),
            trust: server.fingerprint(),
            door: server.door(),
            stop: server.shutdown_handle(),
            running: Some(std::thread::spawn(move || server.run().unwrap())),
        }
    }

    fn dial(&self) -> MemoryDial {
        MemoryDial {
            door: self.door.clone(),
            dialled: Arc::default(),
            greeted: Arc::default(),
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.shut_down();
        self.running.take().unwrap().join().unwrap();
    }
}

/// Connects over memory, and counts.
#[derive(Clone)]
struct MemoryDial {
    door: Door,
    dialled: Arc<AtomicUsize>,
    greeted: Arc<AtomicUsize>,
}

/// A connection in memory ends with its channels.
struct Memory;

impl ShutDown for Memory {
    fn shut_down(&self) {}
}

impl ConnectionControl for Memory {
    fn peer(&self) -> Option<IpAddr> {
        None
    }

    fn has_input(&self) -> bool {
        false
    }

    fn shut_down(&self) {}
}

impl Dial for MemoryDial {
    fn dial(&mut self, _address: &str, hang_up: &HangUp) -> Result<Dialled, ServiceError> {
        self.dialled.fetch_add(1, Ordering::Relaxed);
        let (channel, far) = Channel::memory_pair(&self.door.channel_options());
        let door = self.door.clone();
        std::thread::spawn(move || door.serve(Memory, "memory", || Ok(far)));
        let line = hang_up.connected(Memory)?;
        Ok(Dialled { channel, line })
    }

    fn greeted(&mut self, _address: &str) -> Result<(), ServiceError> {
        self.greeted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// What is kept between two visits.
#[derive(Clone)]
struct StoredHint {
    keep: MemoryKeep,
    bundles: MemoryStore,
    hints: MemoryHints,
}

impl StoredHint {
    fn new() -> Self {
        Self {
            keep: MemoryKeep::default(),
            bundles: MemoryStore::new(1 << 30),
            hints: MemoryHints::default(),
        }
    }

    fn parts(&self, dial: &MemoryDial) -> Parts {
        Parts {
            dial: Box::new(dial.clone()),
            keep: Box::new(self.keep.clone()),
            bundles: Arc::new(self.bundles.clone()),
            hints: Box::new(self.hints.clone()),
            hint_copy: None,
        }
    }
}

/// Options of a client that uses no thread but its own.
fn alone() -> ClientOptions {
    ClientOptions {
        // No directory: whatever looked there would fail.
        state: Some("/dev/null".into()),
        threads: Some(1),
        ..ClientOptions::default()
    }
}

fn connect(parts: Parts, hint_events: &Arc<Mutex<Vec<u64>>>) -> Client {
    let heard = Arc::clone(hint_events);
    let observer = move |event: Event<'_>| {
        if let Event::Hint { done, .. } = event {
            heard.lock().unwrap().push(done);
        }
    };
    Client::connect_with("nowhere:1", alone(), parts, observer).unwrap()
}

#[test]
fn a_client_of_other_parts_gets_the_same_answer() {
    let rig = Rig::start();
    let (dial, kept, hint_events) = (rig.dial(), StoredHint::new(), Arc::default());
    let mut client = connect(kept.parts(&dial), &hint_events);
    let first = client.classify(TEXT).unwrap();
    assert!(!first.cost.prepared_ahead && first.cost.bytes.offline_down > 0);
    assert!(!hint_events.lock().unwrap().is_empty(), "it was fetched");
    assert_eq!(client.transport(), "", "memory is not encrypted");
    assert!(kept.bundles.list().unwrap().is_empty(), "it was spent");

    // Another visit: hint and tokenizer are there, and so is the bundle that was prepared ahead.
    client.prepare(TOKENS, 2).unwrap();
    client.close();
    hint_events.lock().unwrap().clear();
    let mut client = connect(kept.parts(&dial), &hint_events);
    let again = client.classify(TEXT).unwrap();
    assert!(again.cost.prepared_ahead && again.cost.bytes.offline_down == 0);
    assert_eq!(kept.bundles.list().unwrap().len(), 1);
    client.prepare(TOKENS, 1).unwrap();
    assert!(hint_events.lock().unwrap().is_empty(), "it was kept");
    assert_eq!(client.reconcile().unwrap(), (0, 0), "one pseudonym");
    client.close();
    let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
    assert_eq!((count(&dial.dialled), count(&dial.greeted)), (2, 2));

    let options = ClientOptions {
        state: Some(rig.dir.path().join("client")),
        trust: Some(rig.trust),
        ..ClientOptions::default()
    };
    let mut usual = Client::connect(&rig.address, options).unwrap();
    let expected = usual.classify(TEXT).unwrap();
    for found in [&first, &again] {
        assert_eq!(found.label, expected.label);
        for (a, b) in found.logits.iter().zip(&expected.logits) {
            assert!((a - b).abs() < 0.05, "{a} {b}");
        }
    }
}

/// Opens two clients with one store, as two tabs of a page: no bundle serves both.
#[test]
fn clients_that_share_a_store_share_no_bundle() {
    let rig = Rig::start();
    let (dial, kept, none) = (rig.dial(), StoredHint::new(), Arc::default());
    let mut client = connect(kept.parts(&dial), &none);
    client.prepare(TOKENS, 2).unwrap();
    let asked = std::thread::scope(|scope| {
        let ask = || connect(kept.parts(&dial), &Arc::default()).classify(TEXT);
        let both = [scope.spawn(ask), scope.spawn(ask)];
        both.map(|asked| asked.join().unwrap().unwrap())
    });
    let ahead = asked.iter().filter(|a| a.cost.prepared_ahead).count();
    let left = kept.bundles.list().unwrap().len();
    assert_eq!(ahead + left, 2, "each is used by one or left");
    assert_eq!(asked[0].label, asked[1].label);
}

/// Checks that what does not fit into memory is refused before anything is made.
#[test]
fn a_full_store_is_said_plainly_and_costs_nothing() {
    let rig = Rig::start();
    let parts = Parts::in_memory(rig.dial(), 1000);
    let bundles = Arc::clone(&parts.bundles);
    let mut client = Client::connect_with("nowhere:1", alone(), parts, |_| ()).unwrap();
    let error = client.classify(TEXT).err().unwrap();
    let full = matches!(
        error,
        ServiceError::Store(StoreError::Full { limit: 1000, .. })
    );
    assert!(full, "{error}");
    assert!(bundles.reserve(&[0; 32], 1000, Bounds::NONE).is_ok());
}

/// A place for hints that breaks bytes of those that it keeps, once.
struct Rotten(MemoryHints, bool);

impl HintStore for Rotten {
    fn record(&self, identity: &Identity) -> Result<Option<Record>, ServiceError> {
        self.0.record(identity)
    }

    fn keep_record(&mut self, record: &Record) -> Result<(), ServiceError> {
        self.0.keep_record(record)
    }

    fn whole(&self, identity: &Identity) -> Result<Option<Box<dyn ReadAt>>, ServiceError> {
        let whole = self.0.whole(identity)?;
        Ok(whole.map(|whole| Box::new(Broken(whole, self.1)) as Box<dyn ReadAt>))
    }

    fn reopen(&mut self, identity: &Identity) -> Result<(), ServiceError> {
        self.1 = false;
        self.0.reopen(identity)
    }

    fn part(&mut self, identity: &Identity) -> Result<Option<Box<dyn HintPart>>, ServiceError> {
        self.0.part(identity)
    }

    fn progress(&self, identity: &Identity) -> u64 {
        self.0.progress(identity)
    }

    fn check_room(&self, bytes: u64) -> Result<(), ServiceError> {
        self.0.check_room(bytes)
    }
}

struct Broken(Box<dyn ReadAt>, bool);

impl ReadAt for Broken {
    fn read_exact_at(&self, out: &mut [u8], at: u64) -> std::io::Result<()> {
        self.0.read_exact_at(out, at)?;
        if self.1 && at == 0 {
            out[0] ^= 1;
        }
        Ok(())
    }
}

#[test]
fn a_hint_that_rotted_where_it_is_kept_is_fetched_again() {
    let rig = Rig::start();
    let hint_events = Arc::default();
    let parts = Parts {
        hints: Box::new(Rotten(MemoryHints::default(), true)),
        ..Parts::in_memory(rig.dial(), 1 << 30)
    };
    let mut client = connect(parts, &hint_events);
    client.classify(TEXT).unwrap();
    // What became a part again is good when it is read now: all of it is found there at once.
    let heard = hint_events.lock().unwrap();
    let (first, all) = (heard[0], heard[heard.len() - 1]);
    assert_eq!(
        (first, heard.iter().filter(|done| **done == all).count()),
        (0, 2)
    );
}
