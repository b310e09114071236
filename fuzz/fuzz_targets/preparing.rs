//! The offline phase of a stop of each kind, one party real, the other replaced by what it truly
//! said once, with changes: columns of extensions, corrections of unit vectors, correlations of
//! products, garbled tables.
//!
//! The transfers are set up once. Each run moves them on, however it ends, and what the peer said
//! names its position; so positions are brought up to date before the fuzzer's changes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::sessions::{peer_says, recorded};
use primer_fuzz::{Script, edited, frames, stops};
use primer_ot::{BaseOt, CotReceiver, CotSender, Delta, Setup, Variant};
use primer_ring::prg::Prg;
use primer_stops::{ClientStop, ClientTools, ServerStop, ServerTools, TwoPartyStop};
use std::sync::{Arc, LazyLock, Mutex};

/// The kind of an extension's message, and where its position is behind its beginning.
const EXTENSION: u8 = 0x22;
const POSITION: std::ops::Range<usize> = 8..16;

/// Transfers of one party: one that it sends in and one that it receives in.
struct Party {
    sender: CotSender,
    receiver: CotReceiver,
    rng: Prg,
}

/// What a party heard once, and where the transfers that it sends in stood then.
struct Heard {
    bytes: Vec<u8>,
    position: u64,
}

struct Case {
    stop: Arc<dyn TwoPartyStop>,
    client: Heard,
    server: Heard,
}

struct World {
    client: Party,
    server: Party,
    cases: Vec<Case>,
}

fn prepare_client(stop: &dyn TwoPartyStop, party: &mut Party, heard: Vec<u8>) -> usize {
    let mut channel = peer_says(heard);
    let mut stored = Vec::new();
    let done = client(stop, party, &mut channel, &mut stored);
    done.map_or(0, |()| stored.len())
}

fn client(
    stop: &dyn TwoPartyStop,
    party: &mut Party,
    channel: &mut primer_wire::Channel,
    stored: &mut Vec<u8>,
) -> primer_stops::Result<()> {
    let mut tools = ClientTools {
        channel,
        labels: &mut party.receiver,
        transfers: &mut party.sender,
        rng: &mut party.rng,
    };
    let shares = vec![1; if stop.is_late() { 0 } else { stop.elements() }];
    let masks = vec![2; stop.outputs()];
    ClientStop::prepare(stop, &mut tools, &shares, &masks, stored)?;
    Ok(channel.flush()?)
}

fn prepare_server(stop: &dyn TwoPartyStop, party: &mut Party, heard: Vec<u8>) -> usize {
    let mut channel = peer_says(heard);
    let mut stored = Vec::new();
    let done = server(stop, party, &mut channel, &mut stored);
    done.map_or(0, |()| stored.len())
}

fn server(
    stop: &dyn TwoPartyStop,
    party: &mut Party,
    channel: &mut primer_wire::Channel,
    stored: &mut Vec<u8>,
) -> primer_stops::Result<()> {
    let mut tools = ServerTools {
        channel,
        labels: &mut party.sender,
        transfers: &mut party.receiver,
        rng: &mut party.rng,
    };
    ServerStop::prepare(stop, &mut tools, stored)?;
    Ok(channel.flush()?)
}

/// Returns what was heard, for transfers that have moved on to position `now`.
fn moved(heard: &Heard, now: u64) -> Vec<u8> {
    let mut bytes = heard.bytes.clone();
    for at in frames(&heard.bytes) {
        if bytes[at] == EXTENSION {
            let position = &mut bytes[at + POSITION.start..at + POSITION.end];
            let old = u64::from_le_bytes((&*position).try_into().unwrap());
            position.copy_from_slice(&(old - heard.position + now).to_le_bytes());
        }
    }
    bytes
}

static WORLD: LazyLock<Mutex<World>> = LazyLock::new(|| {
    let setup = Setup::new(Variant::SOFT_4, BaseOt::default());
    let ((mut client_party, _), (mut server_party, _)) = recorded(
        |channel| {
            let rng = &mut Prg::new(&[1; 16]);
            let receiver = CotReceiver::setup(setup, channel, rng);
            let delta = Delta::random(rng);
            let sender = CotSender::setup(setup, channel, delta, rng);
            Party {
                sender: sender.unwrap(),
                receiver: receiver.unwrap(),
                rng: Prg::new(&[3; 16]),
            }
        },
        |channel| {
            let rng = &mut Prg::new(&[2; 16]);
            let delta = Delta::random(rng);
            let sender = CotSender::setup(setup, channel, delta, rng);
            let receiver = CotReceiver::setup(setup, channel, rng);
            Party {
                sender: sender.unwrap(),
                receiver: receiver.unwrap(),
                rng: Prg::new(&[4; 16]),
            }
        },
    );
    let cases = stops::all().into_iter().map(|stop| {
        let positions = (client_party.sender.spent(), server_party.sender.spent());
        let (mut at_client, mut at_server) = (Vec::new(), Vec::new());
        let ((_, up), (_, down)) = recorded(
            |channel| client(&*stop, &mut client_party, channel, &mut at_client).unwrap(),
            |channel| server(&*stop, &mut server_party, channel, &mut at_server).unwrap(),
        );
        let stored = stop.stored();
        assert_eq!(
            (at_client.len(), at_server.len()),
            (stored.client as usize, stored.server as usize)
        );
        let case = Case {
            client: Heard {
                bytes: down,
                position: positions.0,
            },
            server: Heard {
                bytes: up,
                position: positions.1,
            },
            stop,
        };
        // A target whose true peer is refused would find nothing.
        let told = moved(&case.client, client_party.sender.spent());
        assert_eq!(
            prepare_client(&*case.stop, &mut client_party, told),
            at_client.len()
        );
        let told = moved(&case.server, server_party.sender.spent());
        assert_eq!(
            prepare_server(&*case.stop, &mut server_party, told),
            at_server.len()
        );
        // Neither stands where the other one does; their peers are played from here on.
        (case, positions)
    });
    let cases: Vec<Case> = cases.map(|(case, _)| case).collect();
    Mutex::new(World {
        client: client_party,
        server: server_party,
        cases,
    })
});

fuzz_target!(init: { LazyLock::force(&WORLD); }, |bytes: &[u8]| {
    let world = &mut *WORLD.lock().unwrap();
    let mut script = Script(bytes);
    let choice = usize::from(script.byte());
    let case = &world.cases[choice / 2 % world.cases.len()];
    let (heard, party) = match choice % 2 {
        0 => (&case.client, &mut world.client),
        _ => (&case.server, &mut world.server),
    };
    let told = moved(heard, party.sender.spent());
    let told = edited(&told, &frames(&heard.bytes), &mut script);
    let stored = case.stop.stored();
    let (made, whole) = match choice % 2 {
        0 => (prepare_client(&*case.stop, party, told), stored.client),
        _ => (prepare_server(&*case.stop, party, told), stored.server),
    };
    assert!(made == 0 || made as u64 == whole, "{made} of {whole} bytes");
});
