//! The port: connections in, connections out.

use crate::Page;
use crate::limit::ConnectionLimit;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The pause when the system has no connection to give.
const BREATH: Duration = Duration::from_millis(50);

/// What callers can hold.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// From one request to the next, and the longest that its head may take.
    pub head: Duration,
    /// The longest head of a request.
    pub head_bytes: usize,
    /// The longest that a connection may last, if that is bounded.
    pub life: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            head: Duration::from_secs(30),
            head_bytes: 32 << 10,
            life: None,
        }
    }
}

/// A port that listens.
pub struct Port {
    listener: TcpListener,
    limits: Limits,
    connections: Arc<ConnectionLimit>,
    graceful: GracefulShutdown,
}

impl Port {
    /// Takes over a listener, within a runtime of tokio.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub fn open(listener: std::net::TcpListener, limits: Limits) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener: TcpListener::from_std(listener)?,
            limits,
            connections: ConnectionLimit::new(limits.connections),
            graceful: GracefulShutdown::new(),
        })
    }

    /// Answers requests until it is told to stop.
    pub async fn answer<A, F>(&self, mut stopped: watch::Receiver<bool>, answer: A)
    where
        A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Page> + Send + 'static,
    {
        // Also ends when the sender is gone.
        tokio::select! {
            () = self.accept(answer) => {}
            _ = stopped.wait_for(|stop| *stop) => {}
        }
    }

    async fn accept<A, F>(&self, answer: A)
    where
        A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Page> + Send + 'static,
    {
        loop {
            let socket = match self.listener.accept().await {
                Ok((socket, _)) => socket,
                Err(error) => {
                    // Out of file descriptors, say: others have to leave first.
                    tracing::warn!("accepting a connection failed: {error}");
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            };
            // Later ones wait in the system's queue.
            let permit = Arc::new(self.connections.enter().await);
            let _ = socket.set_nodelay(true);
            let (answer, working) = (answer.clone(), Arc::clone(&permit));
            let service = service_fn(move |request| {
                let work = working.busy();
                let page = answer(request);
                async move {
                    let page = page.await;
                    drop(work);
                    Ok::<_, Infallible>(page)
                }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(self.limits.head)
                .max_buf_size(self.limits.head_bytes)
                .serve_connection(TokioIo::new(socket), service);
            let connection = self.graceful.watch(connection);
            let life = self.limits.life;
            tokio::spawn(async move {
                tokio::select! {
                    // Callers that hang up are not worth a line.
                    _ = connection => {}
                    () = permit.asked_to_leave() => {}
                    () = end_of(life) => {}
                }
            });
        }
    }

    /// Stops accepting connections, and waits until what is under way is answered. Tells whether
    /// that happened within `time`.
    pub async fn drain(self, time: Duration) -> bool {
        drop(self.listener);
        let drained = tokio::time::timeout(time, self.graceful.shutdown()).await;
        drained.is_ok()
    }
}

async fn end_of(life: Option<Duration>) {
    match life {
        Some(life) => tokio::time::sleep(life).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page;
    use std::io::{ErrorKind, Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::mpsc;
    use std::time::Instant;

    /// Runs a port while some work goes on, and tells whether everything was answered. The work
    /// hears of every slow answer that begins.
    fn with_port(limits: Limits, work: impl FnOnce(SocketAddr, &mpsc::Receiver<()>)) -> bool {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let (begin, begun) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            runtime.block_on(async {
                let port = Port::open(listener, limits).unwrap();
                let answer = move |request: Request<Incoming>| {
                    let slow = request.uri().path() == "/slow";
                    if slow {
                        let _ = begin.send(());
                    }
                    let body = match request.uri().path() {
                        "/large" => "x".repeat(1 << 20),
                        _ => "hello\n".to_owned(),
                    };
                    async move {
                        if slow {
                            tokio::time::sleep(Duration::from_secs(2)).await;
                        }
                        page(body, "text/plain")
                    }
                };
                port.answer(stopped, answer).await;
                port.drain(Duration::from_secs(5)).await
            })
        });
        work(address, &begun);
        stop.send_replace(true);
        thread.join().unwrap()
    }

    fn ask(address: SocketAddr, path: &str) -> TcpStream {
        let mut socket = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).unwrap();
        socket
    }

    fn read(mut socket: TcpStream) -> String {
        let mut answer = String::new();
        let _ = socket.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn silent_connections_make_room_and_questions_under_way_do_not() {
        let limits = Limits {
            connections: 8,
            ..Limits::default()
        };
        let all = with_port(limits, |address, begun| {
            let slow = ask(address, "/slow");
            begun.recv().unwrap();
            let silent: Vec<_> = (0..64)
                .map(|_| TcpStream::connect(address).unwrap())
                .collect();
            let started = Instant::now();
            assert!(read(ask(address, "/")).ends_with("hello\n"));
            let took = started.elapsed();
            assert!(took < Duration::from_secs(1), "{took:?}");
            assert!(read(slow).ends_with("hello\n"), "it was being answered");
            drop(silent);
        });
        assert!(all);
    }

    #[test]
    fn callers_have_a_time_for_a_head_and_for_all() {
        let limits = Limits {
            head: Duration::from_millis(300),
            head_bytes: 8192,
            life: Some(Duration::from_secs(1)),
            ..Limits::default()
        };
        with_port(limits, |address, _| {
            let started = Instant::now();
            let mut half = TcpStream::connect(address).unwrap();
            half.write_all(b"GET / HTTP/1.1\r\nHost").unwrap();
            assert!(!read(half).contains("hello"));
            assert!(started.elapsed() < Duration::from_secs(5));
            let mut long = TcpStream::connect(address).unwrap();
            let head = format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(16 << 10));
            let _ = long.write_all(head.as_bytes());
            assert!(!read(long).contains("hello"));
            // A caller that asks again and again and reads nothing is cut off: its socket fails.
            let mut deaf = TcpStream::connect(address).unwrap();
            let request = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
            deaf.set_write_timeout(Some(Duration::from_secs(30)))
                .unwrap();
            let cut = std::iter::repeat_with(|| deaf.write_all(request)).find_map(Result::err);
            let kind = cut.map(|error| error.kind());
            assert!(kind != Some(ErrorKind::WouldBlock), "never cut");
        });
    }

    #[test]
    fn a_stop_waits_for_answers() {
        let mut slow = None;
        let all = with_port(Limits::default(), |address, begun| {
            slow = Some(ask(address, "/slow"));
            begun.recv().unwrap();
        });
        assert!(all && read(slow.unwrap()).ends_with("hello\n"));
    }
}
