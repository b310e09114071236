//! The half that sends, and what it shares with the half that answers pings.

use primer_wire::transport::PIECE;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

/// The connection's sending half, one frame at a time; none after it was closed.
pub(super) struct Output<S> {
    sender: Option<S>,
    frame: Vec<u8>,
}

impl<S: Write> Output<S> {
    pub(super) fn new(sender: S) -> Self {
        Self {
            sender: Some(sender),
            frame: Vec::new(),
        }
    }

    /// Sends one frame, unmasked as a server's are.
    fn send(&mut self, opcode: OpCode, payload: &[u8]) -> io::Result<()> {
        let sender = self.sender.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let header = FrameHeader {
            opcode,
            ..FrameHeader::default()
        };
        self.frame.clear();
        let length = payload.len() as u64;
        let written = header.format(length, &mut self.frame);
        written.map_err(io::Error::other)?;
        self.frame.extend_from_slice(payload);
        sender.write_all(&self.frame)
    }

    /// Answers a ping.
    pub(super) fn pong(&mut self, payload: &[u8]) -> io::Result<()> {
        self.send(OpCode::Control(Control::Pong), payload)?;
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sender.as_mut().map_or(Ok(()), Write::flush)
    }

    /// Says that this side has ended, once, and hangs up.
    pub(super) fn close(&mut self) {
        if self.sender.is_some() {
            // A peer that does not listen need not be waited for.
            let _ = self.send(OpCode::Control(Control::Close), &[]);
            let _ = self.flush();
            self.sender = None;
        }
    }
}

/// The half that sends: each write is one binary frame.
pub struct Writer<S: Write>(Arc<Mutex<Output<S>>>);

impl<S: Write> Writer<S> {
    pub(super) fn new(output: Arc<Mutex<Output<S>>>) -> Self {
        Self(output)
    }
}

impl<S: Write> Write for Writer<S> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let piece = &data[..data.len().min(PIECE)];
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        output.send(OpCode::Data(Data::Binary), piece)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        output.flush()
    }
}

impl<S: Write> Drop for Writer<S> {
    fn drop(&mut self) {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        output.close();
    }
}
