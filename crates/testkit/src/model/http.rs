//! As much of HTTP/1.1 as the programs use: requests and responses with a length or in chunks, and connections that are
//! reused.

use std::io::{self, BufRead, Read, Write};

use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Incoming {
    /// Reads the next request; `None` if the other side has closed.
    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let Some(first) = line(from)? else { return Ok(None) };
        let mut words = first.split(' ');
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(io::Error::other(format!("not a request: {first}")));
        };
        let mut headers = Vec::new();
        while let Some(text) = line(from)?.filter(|text| !text.is_empty()) {
            if let Some((name, value)) = text.split_once(':') {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
            body: Vec::new(),
        };
        request.body = request.read_body(from)?;
        Ok(Some(request))
    }

    fn read_body(&self, from: &mut impl BufRead) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if !self.header("transfer-encoding").eq_ignore_ascii_case("chunked") {
            let length = self.header("content-length").parse().unwrap_or(0);
            from.take(length).read_to_end(&mut body)?;
            return Ok(body);
        }
        loop {
            let size = line(from)?.unwrap_or_default();
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
            from.by_ref().take(size).read_to_end(&mut body)?;
            line(from)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// The value of a header, by its lower-case name; empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    /// Whether the connection is to be closed after it.
    pub(crate) fn wants_close(&self) -> bool {
        self.header("connection").eq_ignore_ascii_case("close")
    }

    /// The body as JSON; an empty object if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| Value::Object(serde_json::Map::new()))
    }
}

fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut text = String::new();
    if from.read_line(&mut text)? == 0 {
        return Ok(None);
    }
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
}

impl Whole {
    pub(crate) const fn ok(body: Value) -> Self {
        Self { status: 200, headers: Vec::new(), body }
    }

    /// Writes it; a `HEAD` gets no body.
    pub(crate) fn write(&self, to: &mut impl Write, with_body: bool) -> io::Result<()> {
        let body = self.body.to_string();
        let mut text = format!("HTTP/1.1 {} Scripted\r\ncontent-type: application/json\r\n", self.status);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        if with_body {
            text.push_str(&body);
        }
        to.write_all(text.as_bytes())?;
        to.flush()
    }
}

/// Begins an answer whose parts come one by one.
pub(crate) fn begin_stream(to: &mut impl Write) -> io::Result<()> {
    to.write_all(
        b"HTTP/1.1 200 Scripted\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    to.flush()
}

pub(crate) fn write_part(to: &mut impl Write, text: &str) -> io::Result<()> {
    write!(to, "{:x}\r\n{text}\r\n", text.len())?;
    to.flush()
}

pub(crate) fn end_stream(to: &mut impl Write) -> io::Result<()> {
    to.write_all(b"0\r\n\r\n")?;
    to.flush()
}
