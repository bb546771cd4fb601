//! A server that speaks S3 as far as a bucket of logs needs it: objects are put and read by requests that are signed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

pub(crate) struct Bucket {
    port: u16,
    pub(crate) objects: Objects,
}

impl Bucket {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let objects = Objects::default();
        let shared = Arc::clone(&objects);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let objects = Arc::clone(&shared);
                thread::spawn(move || answer(stream, &objects));
            }
        });
        Self { port, objects }
    }

    /// The variables that say where it is, and who may use it.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let named = [
            ("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "nowhere".to_owned()),
            ("AWS_ACCESS_KEY_ID", "planted-id".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "planted-key".to_owned()),
        ];
        named.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }
}

/// Answers one request, and closes the connection.
fn answer(stream: TcpStream, objects: &Objects) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut words = lines.first()?.split(' ');
    let (method, path) = (words.next()?, words.next()?.to_owned());
    let header = |name: &str| {
        let fields = lines.iter().skip(1).filter_map(|line| line.split_once(':'));
        fields.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    };
    let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let is_signed = header("authorization").is_some_and(|it| {
        it.starts_with("AWS4-HMAC-SHA256 Credential=planted-id/") && it.contains("Signature=")
    });
    let mut objects = objects.lock().unwrap();
    let (status, found) = match (method, is_signed) {
        (_, false) => ("403 Forbidden", None),
        ("PUT", true) => {
            objects.insert(path, body);
            ("200 OK", Some(Vec::new()))
        }
        (_, true) => match objects.get(&path) {
            Some(found) => ("200 OK", Some(found.clone())),
            None => ("404 Not Found", None),
        },
    };
    let found = found.unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"1\"\r\nLast-Modified: Fri, 27 Nov 2026 10:00:00 GMT\r\nConnection: close\r\n\r\n",
        found.len()
    );
    let mut stream = stream;
    stream.write_all(head.as_bytes()).ok()?;
    if method != "HEAD" {
        stream.write_all(&found).ok()?;
    }
    Some(())
}
