//! The load of the dashboard's benchmark: loops, the server, and clients with open pages.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use serde_json::Value;

use crate::bench::measure::proc_fs::{cpu, proportional};
use crate::bench::measure::sandbox::Sandbox;
use crate::bench::surfaces::subject::Bench;
use crate::bench::surfaces::web::Site;
use crate::failure::{Doing, Result, fail};
use crate::process::{capture, wall_clock_ns};

/// The system's notices of these files, by their place, as they come.
pub(crate) fn notices(files: &[PathBuf]) -> Result<Receiver<(usize, u128)>> {
    let watch = inotify::init(CreateFlags::CLOEXEC).doing("ask for notices")?;
    let mut places = HashMap::new();
    for (place, file) in files.iter().enumerate() {
        let number =
            inotify::add_watch(&watch, file, WatchFlags::MODIFY).doing(file.display().to_string())?;
        places.insert(number, place);
    }
    let (to, from) = channel();
    spawn(move || {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&watch, &mut buffer);
        while let Ok(event) = reader.next() {
            let now = wall_clock_ns();
            if places.get(&event.wd()).is_some_and(|place| to.send((*place, now)).is_err()) {
                return;
            }
        }
    });
    Ok(from)
}

/// Loops that appear to run; they end when this is dropped.
pub(crate) struct Driven {
    example: Child,
    says: Lines<BufReader<ChildStdout>>,
    pub(crate) names: Vec<String>,
    project: PathBuf,
}

impl Driven {
    pub(crate) fn begin(sandbox: &Sandbox, program: PathBuf, others: usize, running: usize) -> Result<Self> {
        let mut command = sandbox.command(program);
        command.arg(sandbox.note("")).args([others.to_string(), running.to_string()]);
        let mut example =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().doing("start the loops")?;
        let Some(says) = example.stdout.take() else { return fail("nothing is heard of the loops") };
        let names = (others..others + running).map(|number| format!("claude-{number:05}")).collect();
        let project = sandbox.note("projects/project-00");
        let mut driven = Self { example, says: BufReader::new(says).lines(), names, project };
        match driven.said()?.as_str() {
            "they run" => Ok(driven),
            other => fail(format!("the loops do not run: {other}")),
        }
    }

    /// Has one of them record one more event; when that was.
    pub(crate) fn go_on(&mut self, number: usize) -> Result<u128> {
        let Some(stdin) = &mut self.example.stdin else { return fail("the loops hear nothing") };
        writeln!(stdin, "{number}").doing("tell a loop to go on")?;
        self.said()?.parse().doing("read when a loop went on")
    }

    fn said(&mut self) -> Result<String> {
        match self.says.next() {
            Some(said) => said.doing("hear the loops"),
            None => fail("the loops have ended"),
        }
    }

    pub(crate) fn journals(&self) -> Vec<PathBuf> {
        let loops = self.project.join(".git/refrain/loops");
        self.names.iter().map(|name| loops.join(name).join("journal.jsonl")).collect()
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        drop(self.example.stdin.take());
        let _ = self.example.wait();
    }
}

/// The server; it ends when this is dropped.
pub(crate) struct Served {
    server: Child,
    pub(crate) site: Site,
    pub(crate) open: String,
}

impl Served {
    pub(crate) fn begin(bench: &Bench, sandbox: &Sandbox) -> Result<Self> {
        let here = sandbox.note("projects/project-00");
        let refrain = |words: &[&str]| {
            let mut command = sandbox.command(&bench.tools.refrain);
            command.arg("-C").arg(&here).args(words);
            command
        };
        let token = capture(&mut refrain(&["serve", "token"]))?.trim().to_owned();
        let mut command = refrain(&["serve", "--port", "0", "--json"]);
        let mut server =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().doing("start refrain serve")?;
        let line = server.stdout.take().and_then(|said| BufReader::new(said).lines().next());
        let mut served = Self { server, site: Site { port: 0, token }, open: String::new() };
        let Some(Ok(line)) = line else { return fail("refrain serve does not say where it is") };
        let said: Value = serde_json::from_str(&line).doing("read where refrain serve is")?;
        said["open"].as_str().unwrap_or_default().clone_into(&mut served.open);
        let port = said["url"].as_str().and_then(|url| url.rsplit(':').next()?.parse().ok());
        served.site.port = port.unwrap_or_default();
        Ok(served)
    }

    pub(crate) fn pid(&self) -> i32 {
        self.server.id() as i32
    }

    pub(crate) fn cpu(&self) -> Result<f64> {
        cpu(self.pid()).map_or_else(|| fail("refrain serve has ended"), Ok)
    }

    pub(crate) fn memory(&self) -> Result<f64> {
        proportional(self.pid()).map_or_else(|| fail("refrain serve has ended"), |kib| Ok(kib as f64))
    }

    /// The name of the project whose loops run.
    pub(crate) fn project(&self) -> Result<String> {
        let projects = self.site.read("/api/v1/projects")?.1;
        let projects: Value = serde_json::from_str(&projects).doing("read the projects")?;
        let of = |it: &Value| it["folder"].as_str()?.ends_with("project-00").then(|| it["name"].clone());
        let name = projects.as_array().and_then(|all| all.iter().find_map(of));
        name.and_then(|name| Some(name.as_str()?.to_owned())).map_or_else(|| fail("no project is open"), Ok)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// An open page: it reloads at each event, as its script does.
pub(crate) struct Reader {
    is_over: Arc<AtomicBool>,
    reading: JoinHandle<Vec<f64>>,
}

impl Reader {
    pub(crate) fn open(site: &Site, project: &str, name: &str) -> Result<Self> {
        let (events, site) = (site.listen()?, site.clone());
        let (page, name) = (format!("/p/{project}/{name}"), name.to_owned());
        let is_over = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&is_over);
        let reading = spawn(move || {
            let (mut took, mut read) = (Vec::new(), Instant::now());
            for (of, _) in events {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                if of == name && read.elapsed() >= Duration::from_millis(300) {
                    read = Instant::now();
                    took.extend(site.read(&page).map(|(took, _)| took));
                }
            }
            took
        });
        Ok(Self { is_over, reading })
    }

    /// It ends with the next news.
    pub(crate) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// How long each reading took, in seconds.
    pub(crate) fn took(self) -> Vec<f64> {
        self.reading.join().unwrap_or_default()
    }
}
