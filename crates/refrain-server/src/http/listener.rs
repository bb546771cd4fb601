//! How connections come in: address, TLS, accepted connections, slow readers, and the end of the server.

pub(crate) mod address;
pub(crate) mod paced;
pub(crate) mod server;
pub(crate) mod stop;
pub(crate) mod tls;
