//! Telling systemd that a service is ready.
//!
//! A unit of `Type=notify` counts as started when its process says so, on a socket that the
//! variable `NOTIFY_SOCKET` names. Elsewhere there is no such variable and nothing happens.

use std::io;
use std::os::unix::net::UnixDatagram;

/// Tells the service manager, if it listens, that the service answers from now on.
pub(crate) fn ready() {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = tell(&name, b"READY=1") {
        tracing::warn!(%error, "notifying the service manager");
    }
}

/// Sends a state to the manager's socket. A name that begins with `@` is one without a file.
fn tell(name: &std::ffi::OsStr, state: &[u8]) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::net::SocketAddr;
        if let Some(name) = name.as_bytes().strip_prefix(b"@") {
            let address = SocketAddr::from_abstract_name(name)?;
            return socket.send_to_addr(state, &address).map(drop);
        }
    }
    socket.send_to(state, name).map(drop)
}
