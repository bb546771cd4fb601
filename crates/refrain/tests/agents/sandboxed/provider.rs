//! The hosts of providers, whose names are fixed in the programs, as a proxy of the user's leads to them: it answers in their
//! names with a certificate of its own, and passes on to the scripted model what they are asked.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use testkit::write;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Starts a proxy to these hosts, for the rest of the test. Writes the certificate into a file, and returns the proxy's URL.
pub(super) fn proxy_to(names: &[&str], model: SocketAddr, certificate: &Path) -> String {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names.clone()).unwrap();
    write(certificate, cert.pem());
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((client, _)) = listener.accept().await {
                let (names, acceptor) = (names.clone(), acceptor.clone());
                // What goes wrong with a connection is its program's to see.
                tokio::spawn(async move { serve(client, &names, model, acceptor).await.ok() });
            }
        });
    });
    url
}

async fn serve(
    mut client: TcpStream,
    names: &[String],
    model: SocketAddr,
    acceptor: TlsAcceptor,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head);
    if !names.iter().any(|name| head.starts_with(&format!("CONNECT {name}:443 "))) {
        return client.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await;
    }
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    let mut client = acceptor.accept(client).await?;
    let mut model = TcpStream::connect(model).await?;
    copy_bidirectional(&mut client, &mut model).await.map(drop)
}
