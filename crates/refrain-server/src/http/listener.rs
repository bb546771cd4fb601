//! How connections come in: address, TLS, accepted connections, slow readers, and the end of the server.

pub(crate) mod address;
pub(crate) mod server;
pub(crate) mod stop;
pub(crate) mod tls;
pub(crate) mod write_timeout;
