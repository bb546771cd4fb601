//! The response of a forge to a request, for every transport.

use reqwest::header::HeaderMap;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ForgeResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}
