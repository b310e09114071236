//! A port that speaks HTTP, with a limit on everything a caller can hold.
//!
//! The server reports its health on one and the gateway answers questions on another. Both are
//! hyper on one thread; they define what each path means. What is here is what any port needs:
//!
//! * a bounded number of connections. When all places are taken, the connection whose caller has
//!   been silent longest makes room (`limit`), so that callers who hold connections and ask
//!   nothing do not keep others out;
//! * a bounded time and size for the head of a request, which also ends a connection that stays
//!   open and asks no more, and, if desired, a bounded life of a connection, which ends one whose
//!   caller asks and does not read;
//! * a stop that accepts nothing new and lets what is under way be answered.
//!
//! ```no_run
//! # async fn example(listener: std::net::TcpListener) -> std::io::Result<()> {
//! use primer_http::{Limits, Port, page};
//! use std::time::Duration;
//!
//! let (stop, stopped) = tokio::sync::watch::channel(false);
//! let port = Port::open(listener, Limits::default())?;
//! port.answer(stopped, |_| async { page("hello\n".into(), "text/plain") }).await;
//! let all_were_answered = port.drain(Duration::from_secs(1)).await;
//! # drop(stop);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod limit;
mod port;

pub use port::{Limits, Port};

use http_body_util::Full;
use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};

/// An answer: a body that is in memory.
pub type Page = Response<Full<Bytes>>;

/// Makes a page of a content type, which no cache on the way may keep.
pub fn page(body: String, kind: &'static str) -> Page {
    let mut page = Response::new(Full::new(Bytes::from(body)));
    let headers = page.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    page
}

/// Tells whether a `Host` header has a name or address that no other machine can have. A page
/// elsewhere whose name was made to lead here has another one.
pub fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let address = name.parse::<std::net::IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}
