//! A request's body, within bounds.
//!
//! A body that is too long is refused. Many callers send all of it before they look for an answer,
//! and if we just closed the connection they would find it broken instead of being told why. So the
//! rest is read and thrown away, up to a bound, unless the caller asks first whether it may send
//! (`Expect: 100-continue`, as curl does).

use crate::error::Failure;
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use hyper::header::EXPECT;
use hyper::{Request, StatusCode};
use std::time::Duration;

/// The longest body: far more than any model reads.
const LONGEST: u64 = 1 << 20;
/// How much of a longer one is thrown away before the connection is closed.
const DISCARDED: u64 = 64 << 20;
/// The longest that it may take to arrive.
const TIME: Duration = Duration::from_secs(30);

/// Takes the body of a request.
pub(crate) async fn take<B>(request: Request<B>) -> Result<Vec<u8>, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    let announced = request.body().size_hint().lower();
    let may_refuse = request.headers().contains_key(EXPECT) || announced > DISCARDED;
    if announced > LONGEST && may_refuse {
        return Err(too_long());
    }
    let taken = collect(request.into_body(), announced);
    match tokio::time::timeout(TIME, taken).await {
        Ok(body) => body,
        Err(_) => {
            let why = "the body took too long";
            Err(Failure::new(StatusCode::REQUEST_TIMEOUT, why))
        }
    }
}

async fn collect<B>(mut body: B, announced: u64) -> Result<Vec<u8>, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut kept = Vec::with_capacity(announced.min(LONGEST) as usize);
    let mut passed = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Failure::bad("the body did not arrive whole"))?;
        let Ok(data) = frame.into_data() else {
            continue; // Trailers say nothing here.
        };
        passed += data.len() as u64;
        if passed <= LONGEST {
            kept.extend_from_slice(&data);
        } else if passed > DISCARDED {
            break;
        }
    }
    match passed <= LONGEST {
        true => Ok(kept),
        false => Err(too_long()),
    }
}

fn too_long() -> Failure {
    let why = format!("a body has at most {LONGEST} bytes");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;
    use hyper::body::Frame;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    fn status<B: Body<Data = Bytes> + Unpin>(request: Request<B>) -> Result<usize, u16> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let taken = runtime.block_on(take(request));
        taken.map(|body| body.len()).map_err(|f| f.status.as_u16())
    }

    fn of(length: usize) -> Request<Full<Bytes>> {
        Request::new(Full::new(Bytes::from(vec![b' '; length])))
    }

    /// A body without an end and of unknown length.
    struct Endless(u64);

    impl Body for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0 += 1;
            assert!(self.0 << 20 <= 2 * DISCARDED, "it goes on reading");
            let megabyte = Bytes::from_static(&[0; 1 << 20]);
            Poll::Ready(Some(Ok(Frame::data(megabyte))))
        }
    }

    #[test]
    fn a_body_is_taken_up_to_its_bound() {
        assert_eq!(status(of(0)), Ok(0));
        assert_eq!(status(of(LONGEST as usize)), Ok(1 << 20));
        assert_eq!(status(of(LONGEST as usize + 1)), Err(413));
        assert_eq!(status(Request::new(Endless(0))), Err(413));
    }
}
