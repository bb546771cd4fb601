//! HTTP as the benchmark of the dashboard needs it: a request a connection, a stream of events, and a browser that is led by
//! its driver, Chromium's.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench::measure::sandbox::Sandbox;
use crate::bench::surfaces::running::PATIENCE;
use crate::failure::{Doing, Result, fail};
use crate::process::tail;

/// How often it is looked whether a browser has seen something; the page itself notes when.
pub(crate) const LOOK: Duration = Duration::from_millis(400);

#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) port: u16,
    pub(crate) token: String,
}

impl Site {
    /// Reads a page to its last byte; returns the time in seconds, and the body.
    pub(crate) fn read(&self, path: &str) -> Result<(f64, String)> {
        let began = Instant::now();
        let mut stream = self.ask(path)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).doing(format!("read {path}"))?;
        let took = began.elapsed().as_secs_f64();
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.0 200") => Ok((took, body.to_owned())),
            _ => fail(format!("{path}: {}", tail(answer.as_bytes()))),
        }
    }

    /// The names of events recorded from now on, each with its loop's.
    pub(crate) fn listen(&self) -> Result<impl Iterator<Item = (String, String)> + use<>> {
        let mut lines =
            BufReader::new(self.ask("/api/v1/events")?).lines().map_while(std::result::Result::ok);
        if !lines.any(|line| line == "event: hello") {
            return fail("the server tells nothing");
        }
        let mut event = String::new();
        Ok(lines.filter_map(move |line| {
            let (field, value) = line.split_once(": ")?;
            match field {
                "event" => value.clone_into(&mut event),
                "data" => {
                    let data: Value = serde_json::from_str(value).unwrap_or_default();
                    let name = data["name"].as_str().unwrap_or(&event).to_owned();
                    return Some((data["loop"].as_str().unwrap_or_default().to_owned(), name));
                }
                _ => {}
            }
            None
        }))
    }

    fn ask(&self, path: &str) -> Result<TcpStream> {
        let mut stream = connect(self.port)?;
        // The older version of the protocol: no chunks, and the end is the end.
        let head = format!(
            "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n\r\n",
            self.port, self.token
        );
        stream.write_all(head.as_bytes()).doing(format!("ask for {path}"))?;
        Ok(stream)
    }
}

fn connect(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).doing(format!("connect to port {port}"))?;
    stream.set_read_timeout(Some(PATIENCE)).doing("set a limit")?;
    Ok(stream)
}

/// Chromium, headless, without a window; it ends when this is dropped.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    pub(crate) fn open(sandbox: &Sandbox) -> Result<Self> {
        let mut command = sandbox.command("chromedriver");
        let command =
            command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = command.spawn().doing("start chromedriver")?;
        let said = driver.stdout.take().map(|out| BufReader::new(out).lines());
        let mut browser = Self { driver, port: 0, session: String::new() };
        let port = said.into_iter().flatten().map_while(std::result::Result::ok).find_map(|line| {
            line.split_once("started successfully on port ")?.1.trim_end_matches('.').parse().ok()
        });
        let Some(port) = port else { return fail("chromedriver does not say its port") };
        browser.port = port;
        let profile = format!("--user-data-dir={}", sandbox.note("chromium").display());
        let options =
            ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"];
        let args: Vec<&str> = options.into_iter().chain([profile.as_str()]).collect();
        let wishes = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": args}}}});
        let opened = browser.post("/session", &wishes)?;
        opened["sessionId"].as_str().unwrap_or_default().clone_into(&mut browser.session);
        Ok(browser)
    }

    pub(crate) fn is_installed() -> bool {
        ["/usr/bin", "/usr/local/bin"].iter().any(|dir| Path::new(dir).join("chromedriver").is_file())
    }

    pub(crate) fn go(&self, url: &str) -> Result<()> {
        self.post(&format!("/session/{}/url", self.session), &json!({ "url": url })).map(drop)
    }

    pub(crate) fn run(&self, script: &str) -> Result<Value> {
        let path = format!("/session/{}/execute/sync", self.session);
        self.post(&path, &json!({"script": script, "args": []}))
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask("POST", path, &body.to_string())
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let mut stream = connect(self.port)?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).doing("ask chromedriver")?;
        let (mut reader, mut length) = (BufReader::new(stream), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).doing("hear chromedriver")?;
            match line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().doing("read the answer of chromedriver")?;
                }
                None if line.trim().is_empty() => break,
                _ => {}
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).doing("hear chromedriver")?;
        let mut answer: Value = serde_json::from_slice(&answer).doing("read the answer of chromedriver")?;
        match answer["value"].get("error") {
            Some(error) => fail(format!("chromedriver: {error}: {}", answer["value"]["message"])),
            None => Ok(answer["value"].take()),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its browser goes with the window.
        let _ = self.ask("DELETE", &format!("/session/{}", self.session), "");
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
