//! Configures the real `gh` for a test forge: a login without a key, and a socket that leads to the server.

use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread::spawn;

use crate::write;

/// Removes the substitute program and configures the real one. The socket is served until the test's process ends; it
/// is unreachable once the folder is gone.
pub(super) fn settle(root: &Path, host: &str, port: u16) {
    fs::remove_file(root.join("bin/gh")).expect("it was just put there");
    let (config, socket) = (root.join("gh"), root.join("gh.socket"));
    fs::create_dir_all(&config).expect("a folder can be made");
    write(&config.join("config.yml"), format!("http_unix_socket: {}\n", socket.display()));
    let login = format!("{host}:\n  oauth_token: dummy\n  user: somebody\n  git_protocol: ssh\n");
    write(&config.join("hosts.yml"), login);
    let listener = UnixListener::bind(&socket).expect("a socket can be made");
    spawn(move || {
        for near in listener.incoming().flatten() {
            // If the forge is gone, the client sees the connection closed.
            if let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                let _ = join(near, far);
            }
        }
    });
}

/// Copies both directions until both sides are done.
fn join(near: UnixStream, far: TcpStream) -> io::Result<()> {
    let (mut from_near, mut to_far) = (near.try_clone()?, far.try_clone()?);
    spawn(move || {
        let _ = io::copy(&mut from_near, &mut to_far);
        let _ = to_far.shutdown(Shutdown::Write);
    });
    let (mut from_far, mut to_near) = (far, near);
    spawn(move || {
        let _ = io::copy(&mut from_far, &mut to_near);
        let _ = to_near.flush();
        let _ = to_near.shutdown(Shutdown::Both);
    });
    Ok(())
}
