//! Health, readiness and metrics while something is wrong.

use primer_testkit::server::Server;
use std::net::TcpStream;

#[test]
fn connections_that_say_nothing_keep_no_scraper_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"));
    let connect = |_| TcpStream::connect(&server.metrics.address).unwrap();
    // Within the bound of connections, and far beyond it.
    for silent in [64, 300] {
        let silent: Vec<_> = (0..silent).map(connect).collect();
        for (path, words) in [
            ("/healthz", "ok"),
            ("/readyz", "ready"),
            ("/metrics", "primer_store_ready 1"),
        ] {
            let page = server.metrics.prompt_page(path);
            assert!(
                page.starts_with("HTTP/1.1 200") && page.contains(words),
                "{page}"
            );
        }
        drop(silent);
    }
    let page = server.metrics.prompt_page("/nothing");
    assert!(page.starts_with("HTTP/1.1 404"));
    server.stop();
}
