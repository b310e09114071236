//! The model's hint, as a client asks for it.

use super::{Connection, Step};
use crate::gate::Stage;
use primer_hint::published::Published;
use primer_service::message::{
    MAX_CHUNKS, Refusal, Reply, printable, send_hint_chunk, send_hint_index,
};

/// What an operator can do about a hint that cannot be read.
const ANEW: &str = "the hint cannot be read; a server that starts again builds it anew";

impl Connection<'_> {
    /// Sends the hashes of all chunks.
    pub(super) fn hint_index(&mut self) -> Step<()> {
        let hint: &Published = &self.shared.hint;
        Reply::Hint.send(&mut self.channel)?;
        send_hint_index(&mut self.channel, hint.index())?;
        self.shared
            .metrics
            .hint_bytes
            .add(hint.identity().index_bytes());
        Ok(())
    }

    /// Sends some chunks, one after the other.
    ///
    /// Fetching a hint is work as preparing is, so that a slow client is not cut for being idle;
    /// fetching it a second time is not.
    pub(super) fn hint_chunks(&mut self, first: u32, count: u32) -> Step<()> {
        self.slot.stage(Stage::Preparing)?;
        let hint: &Published = &self.shared.hint;
        let end = u64::from(first) + u64::from(count);
        if count == 0 || count > MAX_CHUNKS || end > hint.index().chunks() as u64 {
            return Err(Refusal::Hint.into());
        }
        // Read before it is promised: in the middle nothing could be said.
        let mut bytes = hint.chunk(first as usize).map_err(|error| {
            tracing::error!(%error, "{ANEW}");
            Refusal::Failed(printable("its hint"))
        })?;
        Reply::Hint.send(&mut self.channel)?;
        for next in first as usize + 1..=end as usize {
            send_hint_chunk(&mut self.channel, &bytes)?;
            self.shared.metrics.hint_bytes.add(bytes.len() as u64);
            self.hint_fetched += bytes.len() as u64;
            if next < end as usize {
                bytes = hint
                    .chunk(next)
                    .inspect_err(|_| tracing::error!("{ANEW}"))?;
            }
        }
        self.channel.flush()?;
        if self.hint_fetched <= hint.identity().bytes {
            self.slot.worked();
        }
        Ok(())
    }
}
