//! The server's own TLS: a certificate and its key from files, and the names that it is valid for.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ServerConfig};
use webpki::EndEntityCert;

/// A certificate that this server shows, and its key.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
    /// The names in it, less those with a wildcard.
    names: Vec<String>,
    exposed: bool,
}

/// Files that no TLS can be made of.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// One cannot be read.
    #[error("{0}: it cannot be read; accepted: a file in PEM")]
    Unread(Utf8PathBuf, #[source] io::Error),
    /// There is no certificate.
    #[error(
        "{0}: there is no certificate in it that can be used; accepted: PEM (BEGIN CERTIFICATE), the server's own first, \
         then those that vouch for it"
    )]
    NoCertificate(Utf8PathBuf),
    /// There is no key.
    #[error(
        "{0}: there is no key in it that can be used; accepted: PEM without a passphrase (BEGIN PRIVATE KEY, BEGIN EC \
         PRIVATE KEY or BEGIN RSA PRIVATE KEY)"
    )]
    NoKey(Utf8PathBuf),
    /// They do not belong together, or are of a kind that is not known.
    #[error("{certificate} and {key} cannot be used together; accepted: a certificate with its own key")]
    Apart {
        /// The one file.
        certificate: Utf8PathBuf,
        key: Utf8PathBuf,
        source: rustls::Error,
    },
}

impl Tls {
    /// Reads both files.
    pub fn read(certificate: &Utf8Path, key: &Utf8Path) -> Result<Self, TlsError> {
        let read = |path: &Utf8Path| fs::read(path).map_err(|error| TlsError::Unread(path.into(), error));
        let bad = || TlsError::NoCertificate(certificate.to_owned());
        let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&read(certificate)?).collect();
        let chain = chain.map_err(|_| bad())?;
        let own = chain.first().ok_or_else(bad)?.clone();
        let names = names(&own).ok_or_else(bad)?;
        let found = PrivateKeyDer::from_pem_slice(&read(key)?);
        let found = found.map_err(|_| TlsError::NoKey(key.to_owned()))?;
        let apart = |source| TlsError::Apart { certificate: certificate.into(), key: key.into(), source };
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().map_err(apart)?;
        let mut config = config.with_no_client_auth().with_single_cert(chain, found).map_err(apart)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let exposed = fs::metadata(key).is_ok_and(|meta| meta.mode() & 0o077 != 0);
        Ok(Self { config: Arc::new(config), certificate: own, names, exposed })
    }

    /// Whether others on this machine may read the key.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        self.exposed
    }

    /// The host for the server's URL: the certificate's first name, or the address if the certificate is valid for
    /// it.
    pub(crate) fn host(&self, address: IpAddr) -> Option<String> {
        let written = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let address = Some(written).filter(|_| self.is_good_for(&address.to_string()));
        self.names.first().cloned().or(address)
    }

    /// Whether the certificate is good for a host, as a client would see it.
    pub(crate) fn is_good_for(&self, host: &str) -> bool {
        let certificate = EndEntityCert::try_from(&self.certificate).ok();
        let name = ServerName::try_from(host.trim_matches(['[', ']'])).ok();
        let good = certificate.zip(name).map(|(it, name)| it.verify_is_valid_for_subject_name(&name));
        good.is_some_and(|good| good.is_ok())
    }

    /// The names in the certificate, less those with a wildcard.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

/// Omits the key and the certificate.
impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("names", &self.names).finish_non_exhaustive()
    }
}

fn names(certificate: &CertificateDer<'_>) -> Option<Vec<String>> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let whole = certificate.valid_dns_names().filter(|name| !name.contains('*'));
    Some(whole.map(str::to_ascii_lowercase).collect())
}
