use std::io::{self, Write};

use serde_json::{Value, json};

/// The content type of almost all responses.
const JSON: &str = "application/json; charset=utf-8";

#[derive(Debug)]
pub(super) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    kind: String,
}

impl Reply {
    pub(super) fn json(body: &Value) -> Self {
        Self::with_status(200, body)
    }

    pub(super) fn with_status(status: u16, body: &Value) -> Self {
        Self { status, headers: Vec::new(), body: body.to_string().into_bytes(), kind: JSON.to_owned() }
    }

    /// No, with the words that both forges have in the same place.
    pub(super) fn no(status: u16, message: &str) -> Self {
        Self::with_status(status, &json!({ "message": message }))
    }

    pub(super) fn text(text: &str) -> Self {
        Self::bytes(200, "text/plain".to_owned(), text.as_bytes().to_vec())
    }

    pub(super) fn bytes(status: u16, kind: String, body: Vec<u8>) -> Self {
        Self { status, headers: Vec::new(), body, kind }
    }

    pub(super) fn nothing() -> Self {
        Self::bytes(204, "text/plain".to_owned(), Vec::new())
    }

    pub(super) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    pub(super) fn is_good(&self) -> bool {
        self.status < 300
    }

    /// Writes it; cut off in the middle of its body if the server dies then.
    pub(super) fn write(&self, to: &mut impl Write, is_cut_off: bool) -> io::Result<()> {
        let kind = &self.kind;
        let mut text = format!("HTTP/1.1 {} Scripted\r\nContent-Type: {kind}\r\n", self.status);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("Content-Length: {}\r\n\r\n", self.body.len()));
        let body = if is_cut_off { &self.body[..self.body.len() / 2] } else { &self.body };
        to.write_all(&[text.as_bytes(), body].concat())?;
        to.flush()
    }
}
