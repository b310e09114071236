//! The port: connections in, connections out, with a limit to everything a caller can hold.

use crate::error::GatewayError;
use crate::routes::Routes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// Connections at once; one more waits in the system's queue.
const CONNECTIONS: usize = 256;
/// From one request to the next, and the longest that its head may take.
const HEAD: Duration = Duration::from_secs(30);
/// The longest head of a request.
const HEAD_BYTES: usize = 32 << 10;
/// A pause when the system has no connection to give.
const BREATH: Duration = Duration::from_millis(50);

/// Whether everything under way was answered before the end.
pub(crate) enum Drained {
    /// It was.
    Yes,
    /// It took longer than it was given.
    No,
}

/// Answers until told to stop, then waits for what is under way.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: &Arc<Routes>,
    mut stopped: watch::Receiver<bool>,
    drain: Duration,
) -> Result<Drained, GatewayError> {
    let listener = tokio::net::TcpListener::from_std(listener).map_err(GatewayError::System)?;
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let place = Arc::clone(&places).acquire_owned();
        let place = tokio::select! {
            place = place => place.expect("never closed"),
            _ = stopped.wait_for(|stop| *stop) => break,
        };
        let (socket, _) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, say: others have to leave first.
                    tracing::warn!("accepting a connection failed: {error}");
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            },
            _ = stopped.wait_for(|stop| *stop) => break,
        };
        let _ = socket.set_nodelay(true);
        let routes = Arc::clone(routes);
        let service = service_fn(move |request| {
            let routes = Arc::clone(&routes);
            async move { Ok::<_, std::convert::Infallible>(routes.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(socket), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // Callers that hang up are no news.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    routes.stop();
    match tokio::time::timeout(drain, graceful.shutdown()).await {
        Ok(()) => Ok(Drained::Yes),
        Err(_) => {
            tracing::warn!("stopped before all answers were given");
            Ok(Drained::No)
        }
    }
}
