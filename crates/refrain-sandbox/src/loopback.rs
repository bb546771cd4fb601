//! The loopback interface of a new network namespace is down. One netlink message brings it up.

use std::io;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST_ACK: u16 = 1 | 4;
const NLMSG_ERROR: u16 = 2;
/// The loopback interface has this number in every network namespace.
const LOOPBACK: i32 = 1;
const IFF_UP: u32 = 1;

pub(crate) fn bring_up() -> io::Result<()> {
    // Protocol 0 is that of routes and interfaces.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    // struct nlmsghdr, then struct ifinfomsg.
    let mut message = Vec::with_capacity(32);
    message.extend(32_u32.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(NLM_F_REQUEST_ACK.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([0; 4]);
    message.extend(LOOPBACK.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0_u8; 256];
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    let answer = answer.get(..length).unwrap_or_default();
    let kind = answer.get(4..6).and_then(|bytes| Some(u16::from_ne_bytes(bytes.try_into().ok()?)));
    let error = answer.get(16..20).and_then(|bytes| Some(i32::from_ne_bytes(bytes.try_into().ok()?)));
    match (kind, error) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(error)) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        _ => Err(io::Error::other("the system does not answer about the loopback interface")),
    }
}
