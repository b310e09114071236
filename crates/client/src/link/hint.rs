//! The server's hint, on this connection.

use super::Link;
use primer_hint::published::{Identity, Index};
use primer_service::ServiceError;
use primer_service::message::{MAX_CHUNKS, Reply, Request, receive_hint_chunk, receive_hint_index};

impl Link {
    /// Asks for the hashes of a hint's chunks.
    pub(crate) fn hint_index(&mut self, identity: &Identity) -> Result<Index, ServiceError> {
        match self.request(&Request::HintIndex)? {
            Reply::Hint => receive_hint_index(&mut self.channel, identity),
            other => other.out_of_place(),
        }
    }

    /// Fetches all chunks from one on, each compared with its hash; they are taken in their order.
    pub(crate) fn hint_chunks(
        &mut self,
        index: &Index,
        first: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), ServiceError>,
    ) -> Result<(), ServiceError> {
        let chunks: Vec<usize> = (first..index.chunks()).collect();
        for some in chunks.chunks(MAX_CHUNKS as usize) {
            let request = Request::HintChunks {
                first: some[0] as u32,
                count: some.len() as u32,
            };
            match self.request(&request)? {
                Reply::Hint => {}
                other => return other.out_of_place(),
            }
            for chunk in some {
                take(&receive_hint_chunk(&mut self.channel, index, *chunk)?)?;
            }
        }
        Ok(())
    }
}
