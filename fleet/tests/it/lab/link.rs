//! A connection to the server that can be cut: nothing is refused, nothing arrives.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// What arrives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passes {
    All,
    /// What the worker says, and no answer.
    Requests,
    Nothing,
}

type State = Arc<(Mutex<Passes>, Condvar)>;

/// Listens on a port of its own, and passes what it gets on to another.
pub(crate) struct Link {
    pub(crate) port: u16,
    state: State,
}

impl Link {
    pub(crate) fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state: State = Arc::new((Mutex::new(Passes::All), Condvar::new()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                let pairs = [(near.try_clone().unwrap(), far.try_clone().unwrap(), true), (far, near, false)];
                for (from, to, is_request) in pairs {
                    let state = Arc::clone(&shared);
                    thread::spawn(move || pass(from, to, is_request, &state));
                }
            }
        });
        Self { port, state }
    }

    /// What is on its way waits until it may pass.
    pub(crate) fn let_pass(&self, passes: Passes) {
        *self.state.0.lock().unwrap() = passes;
        self.state.1.notify_all();
    }
}

fn pass(
    mut from: TcpStream,
    mut to: TcpStream,
    is_request: bool,
    (passes, changed): &(Mutex<Passes>, Condvar),
) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        let waits = |passes: &mut Passes| match passes {
            Passes::All => false,
            Passes::Requests => !is_request,
            Passes::Nothing => true,
        };
        drop(changed.wait_while(passes.lock().unwrap(), waits).unwrap());
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
