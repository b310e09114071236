//! A server's end against bytes as a browser, or something else, would send them.

use super::{Facts, WebSocket, accepts};
use primer_wire::pipe::Memory;
use primer_wire::{Channel, Options, Receive, Transport};
use std::io::{self, Read, Write};
use std::time::Duration;

const PATIENCE: Option<Duration> = Some(Duration::from_secs(5));

/// Frames a payload as a browser does: masked.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x12, 0x34, 0x56, 0x78];
    let mut frame = vec![first];
    match payload.len() {
        length @ 0..126 => frame.push(0x80 | length as u8),
        length @ 126..0x1_0000 => {
            frame.push(0x80 | 126);
            frame.extend((length as u16).to_be_bytes());
        }
        length => {
            frame.push(0x80 | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(b, m)| b ^ m));
    frame
}

const BINARY: u8 = 0x82;
const BEGINS: u8 = 0x02;
const GOES_ON: u8 = 0x80;
const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// Makes the server's end, with what was read behind the request, and the raw other end.
fn server(behind: &[u8]) -> (WebSocket<Memory>, Memory) {
    let options = Options {
        capacity: 1 << 20,
        ..Options::default()
    };
    let (ours, theirs) = Memory::pair(&options);
    let facts = Facts::of(&ours);
    (WebSocket::new(facts, ours.split(), behind.to_vec()), theirs)
}

/// Receives until the stream ends or fails.
fn all(socket: WebSocket<Memory>) -> (Vec<u8>, io::Result<()>) {
    let (_output, mut input) = socket.split();
    let (mut found, mut piece) = (Vec::new(), [0; 700]);
    loop {
        match input.receive(&mut piece, PATIENCE) {
            Ok(0) => return (found, Ok(())),
            Ok(count) => found.extend_from_slice(&piece[..count]),
            Err(error) => return (found, Err(error)),
        }
    }
}

/// Lets a peer send these bytes and go; returns what arrived.
fn received(bytes: &[u8]) -> (Vec<u8>, io::Result<()>) {
    let (socket, theirs) = server(&[]);
    let (mut output, _input) = theirs.split();
    output.write_all(bytes).unwrap();
    output.flush().unwrap();
    drop(output);
    all(socket)
}

#[test]
fn the_key_is_answered_as_the_standard_has_it() {
    let key = "dGhlIHNhbXBsZSBub25jZQ==";
    assert_eq!(accepts(key), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[test]
fn frames_of_any_length_are_one_stream() {
    let long: Vec<u8> = (0..70_000u32).map(|i| (i % 251) as u8).collect();
    let frames = [
        masked(BINARY, b"ab"),
        masked(BINARY, b""),
        masked(BEGINS, &long[..300]),
        masked(PONG, b"unasked"),
        masked(GOES_ON, &long[300..]),
        masked(CLOSE, &[]),
    ];
    let (found, end) = received(&frames.concat());
    end.unwrap();
    assert_eq!(found[..2], *b"ab");
    assert!(found[2..] == long);
}

#[test]
fn what_was_read_behind_the_request_comes_first() {
    let bytes = [masked(BINARY, b"first"), masked(BINARY, b"second")].concat();
    for cut in [1, 3, 8, bytes.len()] {
        let (socket, theirs) = server(&bytes[..cut]);
        let (mut output, _input) = theirs.split();
        output.write_all(&bytes[cut..]).unwrap();
        drop(output);
        let (found, end) = all(socket);
        assert_eq!(found, b"firstsecond", "{cut}");
        assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn what_no_browser_sends_is_an_error() {
    let mut bare = masked(BINARY, b"a");
    bare[1] &= 0x7f;
    for (what, bytes) in [
        ("mask", bare),
        ("text", masked(TEXT, b"a")),
        ("extension", masked(BINARY | 0x40, b"a")),
        ("control", masked(PING, &[0; 126])),
        ("control", masked(PING & 0x7f, b"a")),
    ] {
        let (found, end) = received(&bytes);
        let error = end.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{what}");
        assert!(error.to_string().contains(what), "{error}");
        assert!(found.is_empty());
    }
    let (_, end) = received(&masked(0x83, b"a"));
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn pings_are_answered_and_a_close_is_returned() {
    let (socket, theirs) = server(&[]);
    let (mut output, input) = theirs.split();
    let told = [masked(PING, b"here?"), masked(CLOSE, &[])].concat();
    output.write_all(&told).unwrap();
    output.flush().unwrap();
    let (found, end) = all(socket);
    end.unwrap();
    assert!(found.is_empty());
    let mut answered = Vec::new();
    Raw(input).read_to_end(&mut answered).unwrap();
    // A pong with the same words and a close, neither masked.
    assert_eq!(answered, [&[0x8a, 5][..], b"here?", &[0x88, 0]].concat());
}

#[test]
fn a_silent_peer_is_given_up() {
    let (socket, _theirs) = server(&[]);
    let (_output, mut input) = socket.split();
    let patience = Some(Duration::from_millis(20));
    let error = input.receive(&mut [0; 8], patience).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

/// Reads a raw end.
struct Raw<R>(R);

impl<R: Receive> Read for Raw<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.receive(out, PATIENCE)
    }
}

/// Channels on both sides; the client's end is `tungstenite`'s own.
#[test]
fn a_channel_stands_on_it() {
    use primer_wire::kind::trial::{FIRST, SECOND};
    use tungstenite::protocol::{Role, WebSocket as Other};

    struct Both<W, R>(W, Raw<R>);
    impl<W: Write, R: Receive> Read for Both<W, R> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.1.read(out)
        }
    }
    impl<W: Write, R> Write for Both<W, R> {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            self.0.write(data)
        }
        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    let (socket, theirs) = server(&[]);
    let (output, input) = theirs.split();
    let mut other = Other::from_raw_socket(Both(output, Raw(input)), Role::Client, None);
    let mut channel = Channel::new(socket);
    let question: Vec<u8> = (0..100_000u32).map(|i| (i % 241) as u8).collect();
    // The channel's own frames, in pieces that are not theirs.
    let header = (question.len() as u64) << 8 | u64::from(FIRST.code());
    let framed = [&header.to_le_bytes()[..], &question].concat();
    for piece in framed.chunks(7_777) {
        other.send(piece.to_vec().into()).unwrap();
    }
    assert!(channel.recv(FIRST, 1 << 20).unwrap() == question);
    channel.send(SECOND, b"an answer").unwrap();
    channel.flush().unwrap();
    let mut answer = Vec::new();
    while answer.len() < 8 + 9 {
        answer.extend(other.read().unwrap().into_data());
    }
    assert_eq!(answer[8..], *b"an answer");
    drop(channel);
    assert!(other.read().unwrap().is_close());
}
