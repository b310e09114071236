//! A link for attacks: whole frames as they pass, changed on the way if need be, and kept.

use primer_wire::Channel;
use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex};

const HEADER: usize = 8;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its kind.
    pub kind: u8,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Returns the message as it travels.
    pub fn bytes(&self) -> Vec<u8> {
        let word = (self.payload.len() as u64) << 8 | u64::from(self.kind);
        [&word.to_le_bytes()[..], &self.payload].concat()
    }
}

/// Messages of one direction, in order.
pub type Frames = Vec<Frame>;

/// Passes frames on to a writer. Each is shown to `edit` with its place among those of its kind.
struct Edited<W, E> {
    inner: W,
    edit: E,
    seen: [usize; 256],
    /// What came of a frame that is not complete yet.
    begun: Vec<u8>,
    passed: Arc<Mutex<Frames>>,
}

impl<W: Write, E: FnMut(usize, &mut Frame)> Write for Edited<W, E> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        let mut done = 0;
        while let Some((header, rest)) = self.begun[done..].split_first_chunk::<HEADER>() {
            let word = u64::from_le_bytes(*header);
            let Some(payload) = rest.get(..(word >> 8) as usize) else {
                break;
            };
            let mut frame = Frame {
                kind: word as u8,
                payload: payload.to_vec(),
            };
            done += HEADER + payload.len();
            let place = &mut self.seen[usize::from(frame.kind)];
            (self.edit)(*place, &mut frame);
            *place += 1;
            let bytes = frame.bytes();
            self.passed.lock().unwrap().push(frame);
            self.inner.write_all(&bytes)?;
        }
        self.begun.drain(..done);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn edited<W: Write, E: FnMut(usize, &mut Frame)>(
    inner: W,
    edit: E,
    passed: &Arc<Mutex<Frames>>,
) -> Edited<W, E> {
    Edited {
        inner,
        edit,
        seen: [0; 256],
        begun: Vec::new(),
        passed: Arc::clone(passed),
    }
}

/// Changes nothing.
pub fn honest(_: usize, _: &mut Frame) {}

/// What came of both parties, and what travelled.
pub struct Met<A, B> {
    /// What the client returned.
    pub client: A,
    /// What the server returned.
    pub server: B,
    /// What the client sent, after it was changed.
    pub up: Frames,
    /// What the server sent.
    pub down: Frames,
}

/// Runs both parties, and changes what the client sends.
pub fn meet<A, B: Send>(
    edit: impl FnMut(usize, &mut Frame) + Send + 'static,
    client: impl FnOnce(&mut Channel) -> A,
    server: impl FnOnce(&mut Channel) -> B + Send,
) -> Met<A, B> {
    let (server_in, client_out) = io::pipe().unwrap();
    let (client_in, server_out) = io::pipe().unwrap();
    let passed: [Arc<Mutex<Frames>>; 2] = Default::default();
    let [up, down] = &passed;
    let (client, server) = std::thread::scope(|scope| {
        let serving = scope.spawn(move || {
            let mut channel = Channel::over(edited(server_out, honest, down), server_in);
            server(&mut channel)
        });
        let mut channel = Channel::over(edited(client_out, edit, up), client_in);
        let client = client(&mut channel);
        drop(channel);
        (client, serving.join().unwrap())
    });
    let [up, down] = passed.map(|frames| std::mem::take(&mut *frames.lock().unwrap()));
    Met {
        client,
        server,
        up,
        down,
    }
}

/// Runs a server against a client that sends these bytes, no matter what it hears.
pub fn replay<B>(up: Vec<u8>, server: impl FnOnce(&mut Channel) -> B) -> (B, Frames) {
    let passed = Arc::default();
    let out = edited(io::sink(), honest, &passed);
    let mut channel = Channel::over(out, Cursor::new(up));
    let server = server(&mut channel);
    drop(channel);
    let down = std::mem::take(&mut *passed.lock().unwrap());
    (server, down)
}

/// Returns messages as they travel.
pub fn bytes(frames: &[Frame]) -> Vec<u8> {
    frames.iter().flat_map(Frame::bytes).collect()
}
