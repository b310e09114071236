use super::*;
use primer_service::message::Refusal;
use std::io::Read;
use std::net::{TcpListener, TcpStream};

fn timeouts(millis: u64) -> Timeouts {
    Timeouts {
        handshake: Duration::from_millis(millis),
        idle: Duration::from_millis(millis),
        grace: Duration::from_millis(millis / 4),
        session: Duration::from_millis(3 * millis),
    }
}

fn connection(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

fn twin(socket: &TcpStream) -> TcpStream {
    socket.try_clone().unwrap()
}

/// Blocks until the socket is cut; tells how long that took.
fn until_cut(mut socket: TcpStream) -> Duration {
    let start = Instant::now();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "cut, not timed out");
    start.elapsed()
}

#[test]
fn late_connections_are_cut_however_busy_they_look() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let gate = Gate::new(2, timeouts(200));
    let watching = Arc::clone(&gate);
    let watcher = std::thread::spawn(move || watching.watch());
    let (_client, server) = connection(&listener);
    let slot = gate.arrive(twin(&server)).unwrap();
    assert!(until_cut(server) >= Duration::from_millis(150));
    assert_eq!(slot.cut(), Some(Cut::Late(Stage::Arriving)));
    drop(slot);
    // A session that asks for lists is not at work.
    let (_client, server) = connection(&listener);
    let slot = gate.arrive(twin(&server)).unwrap();
    slot.admit().unwrap();
    let listing = std::thread::spawn(move || until_cut(server));
    while !listing.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        let _ = slot.stage(Stage::Idle);
    }
    assert!(listing.join().unwrap() >= Duration::from_millis(150));
    assert_eq!(slot.cut(), Some(Cut::Late(Stage::Idle)));
    drop(slot);
    // One that works all the time is cut by its total.
    let (_client, server) = connection(&listener);
    let slot = gate.arrive(twin(&server)).unwrap();
    slot.admit().unwrap();
    let busy = std::thread::spawn(move || until_cut(server));
    while !busy.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        slot.worked();
        let _ = slot.stage(Stage::Idle);
    }
    assert!(busy.join().unwrap() >= Duration::from_millis(500));
    drop(slot);
    gate.shut_down();
    assert_eq!(gate.close(Duration::from_secs(5)), 0);
    watcher.join().unwrap();
}

#[test]
fn places_are_bounded_and_of_equals_the_oldest_makes_room() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let gate = Gate::new(1, timeouts(60_000));
    let pairs: Vec<_> = (0..ARRIVALS + 1).map(|_| connection(&listener)).collect();
    let slots: Vec<_> = pairs
        .iter()
        .map(|(_, s)| gate.arrive(twin(s)).unwrap())
        .collect();
    assert_eq!(slots[0].cut(), Some(Cut::Evicted));
    assert_eq!(slots[1].cut(), None);
    slots[2].admit().unwrap();
    assert_eq!(slots[3].admit(), Err(Refusal::Busy(1)));
    gate.shut_down();
    assert_eq!(slots[2].cut(), Some(Cut::Stopping));
    assert_eq!(slots[3].admit(), Err(Refusal::Stopping));
    assert!(gate.arrive(twin(&pairs[0].1)).is_none());
}

/// Keeps an arrival that spoke, although it is the oldest of all: its answers are on a long way.
#[test]
fn silent_arrivals_make_room_before_those_that_speak() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let gate = Gate::new(1, timeouts(60_000));
    let far = connection(&listener);
    let far_away = gate.arrive(twin(&far.1)).unwrap();
    far_away.progress(Progress::Speaking);
    let mut flood = Vec::new();
    for _ in 0..3 * ARRIVALS {
        let pair = connection(&listener);
        let slot = gate.arrive(twin(&pair.1));
        flood.push((pair, slot.expect("room")));
        flood.retain(|(_, slot)| slot.cut().is_none());
        assert!(flood.len() < ARRIVALS);
    }
    assert_eq!(far_away.cut(), None);
    far_away.progress(Progress::Secured);
    for (_, slot) in &flood {
        slot.progress(Progress::Speaking);
    }
    // Among those that speak, those that have shaken hands stay.
    let pair = connection(&listener);
    let last = gate.arrive(twin(&pair.1)).unwrap();
    last.progress(Progress::Speaking);
    assert_eq!(flood[0].1.cut(), Some(Cut::Evicted));
    assert_eq!(far_away.cut(), None);
    assert!(far_away.admit().is_ok());
}

#[test]
fn the_address_with_the_most_arrivals_makes_room() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let gate = Gate::new(1, timeouts(60_000));
    let other = connection(&listener);
    let elsewhere = Origin::network("192.0.2.7".parse().unwrap());
    let silent = gate.arrive_from(elsewhere, twin(&other.1)).unwrap();
    let mut flood = Vec::new();
    for _ in 0..2 * ARRIVALS {
        let pair = connection(&listener);
        let slot = gate.arrive(twin(&pair.1)).expect("room");
        slot.progress(Progress::Secured);
        flood.push((pair, slot));
        flood.retain(|(_, slot)| slot.cut().is_none());
    }
    assert_eq!(silent.cut(), None);
}

#[test]
fn a_session_that_rests_gives_its_place() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let gate = Gate::new(2, timeouts(400));
    let pairs: Vec<_> = (0..4).map(|_| connection(&listener)).collect();
    let slots: Vec<_> = pairs
        .iter()
        .map(|(_, s)| gate.arrive(twin(s)).unwrap())
        .collect();
    slots[0].admit().unwrap();
    slots[1].admit().unwrap();
    // Both have just come.
    assert_eq!(slots[2].admit(), Err(Refusal::Busy(2)));
    std::thread::sleep(Duration::from_millis(150));
    // Both only asked for lists; one works now.
    slots[0].stage(Stage::Idle).unwrap();
    slots[1].stage(Stage::Preparing).unwrap();
    slots[2].admit().unwrap();
    assert_eq!(slots[0].cut(), Some(Cut::Displaced));
    assert_eq!(slots[1].cut(), None);
    assert_eq!(gate.sessions(), 2);
    // One works and one has just come.
    assert_eq!(slots[3].admit(), Err(Refusal::Busy(2)));
}

#[test]
fn networks_of_the_newer_kind_are_one_source() {
    let network = |text: &str| Origin::network(text.parse().unwrap());
    assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:2"));
    assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
    assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
}

#[test]
fn a_stop_waits_for_inferences_only() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let gate = Gate::new(2, timeouts(60_000));
    let (a, b) = (connection(&listener), connection(&listener));
    let (online, offline) = (
        gate.arrive(twin(&a.1)).unwrap(),
        gate.arrive(twin(&b.1)).unwrap(),
    );
    online.admit().unwrap();
    offline.admit().unwrap();
    online.stage(Stage::Inferring).unwrap();
    offline.stage(Stage::Preparing).unwrap();
    gate.shut_down();
    assert_eq!((online.cut(), offline.cut()), (None, Some(Cut::Stopping)));
    drop(offline);
    let closing = std::thread::spawn(move || gate.close(Duration::from_secs(20)));
    std::thread::sleep(Duration::from_millis(50));
    drop(online);
    assert_eq!(closing.join().unwrap(), 0);
}
