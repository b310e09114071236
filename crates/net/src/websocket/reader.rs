//! The half that receives: binary frames as one stream of bytes.

use super::writer::Output;
use primer_wire::Receive;
use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

/// The longest header of a frame.
const HEADER: usize = 14;
/// The longest payload of a ping, a pong or a close.
const CONTROL: u64 = 125;
/// Bytes that are taken from the connection at once, unless a payload has more.
const INTAKE: usize = 16 << 10;

/// The half that receives.
pub struct Reader<S: Write, R> {
    input: R,
    output: Arc<Mutex<Output<S>>>,
    /// What was read and not yet used, from `start` on: at first what stood behind the request.
    intake: Vec<u8>,
    start: usize,
    /// What is left of the payload of a binary frame.
    left: u64,
    mask: [u8; 4],
    /// How far the mask has been turned.
    turned: usize,
    /// Whether the peer has said that it ends.
    closed: bool,
}

impl<S: Write + Send, R: Receive> Reader<S, R> {
    pub(super) fn new(input: R, output: Arc<Mutex<Output<S>>>, behind: Vec<u8>) -> Self {
        Self {
            input,
            output,
            intake: behind,
            start: 0,
            left: 0,
            mask: [0; 4],
            turned: 0,
            closed: false,
        }
    }

    /// Reads some bytes of the connection.
    fn take(&mut self, out: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        if self.start == self.intake.len() {
            if out.len() >= INTAKE {
                return more(&mut self.input, out, deadline);
            }
            self.start = 0;
            self.intake.resize(INTAKE, 0);
            let read = more(&mut self.input, &mut self.intake, deadline);
            self.intake.truncate(*read.as_ref().unwrap_or(&0));
            read?;
        }
        let there = &self.intake[self.start..];
        let count = out.len().min(there.len());
        out[..count].copy_from_slice(&there[..count]);
        self.start += count;
        Ok(count)
    }

    fn take_exact(&mut self, mut out: &mut [u8], deadline: Option<Instant>) -> io::Result<()> {
        while !out.is_empty() {
            let count = self.take(out, deadline)?;
            out = &mut out[count..];
        }
        Ok(())
    }

    /// Reads headers, and answers what is not data, until there is data or the end.
    fn next_frame(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        while self.left == 0 && !self.closed {
            if deadline.is_some_and(|end| Instant::now() > end) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let (header, length) = self.header(deadline)?;
            // A browser masks every frame, so that nothing between it and the server takes what a
            // page sends for something else.
            self.mask = header
                .mask
                .ok_or_else(|| invalid("a frame without a mask"))?;
            self.turned = 0;
            if header.rsv1 || header.rsv2 || header.rsv3 {
                return Err(invalid("a frame of an extension that was not agreed on"));
            }
            match header.opcode {
                OpCode::Data(Data::Binary | Data::Continue) => self.left = length,
                OpCode::Control(control) => {
                    if length > CONTROL || !header.is_final {
                        return Err(invalid("a control frame that is too long"));
                    }
                    let mut payload = vec![0; length as usize];
                    self.take_exact(&mut payload, deadline)?;
                    self.unmask(&mut payload);
                    self.control(control, &payload)?;
                }
                OpCode::Data(_) => return Err(invalid("a frame of text")),
            }
        }
        Ok(())
    }

    fn header(&mut self, deadline: Option<Instant>) -> io::Result<(FrameHeader, u64)> {
        let mut bytes = [0; HEADER];
        let mut count = 0;
        loop {
            // A byte at a time past the first two: the header says itself how long it is.
            let more = if count == 0 { 2 } else { count + 1 };
            if more > HEADER {
                return Err(invalid("a header that does not end"));
            }
            self.take_exact(&mut bytes[count..more], deadline)?;
            count = more;
            let parsed = FrameHeader::parse(&mut Cursor::new(&bytes[..count]));
            match parsed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))? {
                Some(header) => return Ok(header),
                None => continue,
            }
        }
    }

    fn control(&mut self, control: Control, payload: &[u8]) -> io::Result<()> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        match control {
            Control::Ping => output.pong(payload),
            Control::Pong => Ok(()),
            Control::Close => {
                output.close();
                self.closed = true;
                Ok(())
            }
            Control::Reserved(_) => Err(invalid("a frame of an unknown kind")),
        }
    }

    fn unmask(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte ^= self.mask[self.turned % 4];
            self.turned = (self.turned + 1) % 4;
        }
    }
}

impl<S: Write + Send, R: Receive> Receive for Reader<S, R> {
    fn receive(&mut self, out: &mut [u8], patience: Option<Duration>) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        let deadline = patience.map(|time| Instant::now() + time);
        self.next_frame(deadline)?;
        if self.closed {
            return Ok(0);
        }
        let most = usize::try_from(self.left).map_or(out.len(), |left| left.min(out.len()));
        let count = self.take(&mut out[..most], deadline)?;
        self.unmask(&mut out[..count]);
        self.left -= count as u64;
        Ok(count)
    }
}

/// Reads what there is, which is not the end.
fn more(input: &mut impl Receive, out: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
    let patience = deadline.map(|end| end.saturating_duration_since(Instant::now()));
    match input.receive(out, patience)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => Ok(count),
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
