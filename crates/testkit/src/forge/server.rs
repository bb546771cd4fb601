//! The test's handle to a forge, and its server: a thread and one request for each connection.

use std::io::BufReader;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};

use super::reply::Reply;
use super::repository::Repository;
use super::world::{Fault, Limit, World};
use super::{github, gitlab, programs, real, smart_http};
use crate::model::http::Incoming;

/// How long the test waits for a held request.
const DEADLINE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    GitHub,
    GitLab,
}

/// A forge with one project, `owner/project`. It is gone when it is dropped.
#[derive(Debug)]
pub struct Forge {
    kind: Kind,
    host: &'static str,
    root: PathBuf,
    port: u16,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    kind: Kind,
    world: Mutex<World>,
    holds: Mutex<Vec<Hold>>,
    changed: Condvar,
    is_stopped: AtomicBool,
}

#[derive(Debug)]
struct Hold {
    name: String,
    fault: Fault,
    stands: Stands,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    Waiting,
    Reached,
    Released,
}

/// A question that waits, to be asked or to be answered, until the test lets it go.
#[derive(Debug)]
pub struct HeldRequest {
    shared: Arc<Shared>,
    number: usize,
}

impl Forge {
    /// GitHub, at `github.com`, whose files lie in a folder below this one. Its repository has nothing yet.
    pub fn github(root: &Path) -> Self {
        Self::start(root, Kind::GitHub, "github.com")
    }

    /// GitHub at a host that the real `gh` asks without encryption, and by a socket of this forge's: no name is looked up.
    pub fn for_real_gh(root: &Path) -> Self {
        let forge = Self::start(root, Kind::GitHub, "github.localhost");
        real::settle(&forge.root, forge.host, forge.port);
        forge
    }

    /// GitLab, at `gitlab.com`.
    pub fn gitlab(root: &Path) -> Self {
        Self::start(root, Kind::GitLab, "gitlab.com")
    }

    fn start(root: &Path, kind: Kind, host: &'static str) -> Self {
        let root = root.join("forge");
        std::fs::create_dir_all(root.join("bin")).expect("a folder can be made");
        programs::install(&root.join("bin"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a loopback");
        let port = listener.local_addr().expect("it was just bound").port();
        let shared = Arc::new(Shared {
            kind,
            world: Mutex::new(World::new(Repository::new(&root))),
            holds: Mutex::default(),
            changed: Condvar::new(),
            is_stopped: AtomicBool::new(false),
        });
        let serving = Arc::clone(&shared);
        let listener = spawn(move || {
            for stream in listener.incoming().flatten() {
                if serving.is_stopped.load(Ordering::SeqCst) {
                    break;
                }
                let shared = Arc::clone(&serving);
                spawn(move || shared.serve(&stream));
            }
        });
        Self { kind, host, root, port, shared, listener: Some(listener) }
    }

    /// The address by which a remote knows the project. Git gets there with [`Self::env`].
    pub fn url(&self) -> String {
        format!("git@{}:owner/project.git", self.host)
    }

    /// The variables through which a child process finds the forge: a `PATH` with its programs first, and their
    /// configuration.
    #[expect(clippy::disallowed_methods, reason = "other programs are found where the person's are")]
    pub fn env(&self) -> Vec<(&'static str, String)> {
        let at = |name: &str| self.root.join(name).to_str().expect("it is UTF-8").to_owned();
        let path = std::env::var("PATH").expect("there is a PATH");
        let program = match self.kind {
            Kind::GitHub => "gh",
            Kind::GitLab => "glab",
        };
        vec![
            ("PATH", format!("{}:{path}", at("bin"))),
            ("FORGE_HOST", self.host.to_owned()),
            ("FORGE_PROGRAM", program.to_owned()),
            ("FORGE_PORT", self.port.to_string()),
            ("FORGE_REPOS", at("repos")),
            ("FORGE_RULES", at("rules")),
            ("GH_CONFIG_DIR", at("gh")),
        ]
    }

    /// The address of its API, if the remote is at [`Self::http_url`].
    pub fn api_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The address by which git gets to the project over HTTP.
    pub fn http_url(&self) -> String {
        format!("{}/owner/project.git", self.api_url())
    }

    pub fn repository(&self) -> PathBuf {
        self.world().repository.dir().to_owned()
    }

    pub fn change(&self, change: impl FnOnce(&mut World)) {
        change(&mut self.world());
    }

    /// Changes it at the nth question of this name, before that is answered.
    pub fn at_question(&self, name: &str, nth: usize, change: impl FnOnce(&mut World) + Send + 'static) {
        self.world().at_question(name, nth, Box::new(change));
    }

    /// Has the server die over the next question of this name.
    pub fn dies(&self, name: &str, fault: Fault) {
        self.world().faults.push((name.to_owned(), fault));
    }

    /// Has the next questions run into these limits, one each.
    pub fn limits(&self, limits: &[Limit]) {
        self.world().limits.extend(limits);
    }

    /// Has the next question of this name wait: before it is done, or after that and before it is answered.
    pub fn holds(&self, name: &str, fault: Fault) -> HeldRequest {
        let mut holds = self.shared.holds();
        holds.push(Hold { name: name.to_owned(), fault, stands: Stands::Waiting });
        HeldRequest { shared: Arc::clone(&self.shared), number: holds.len() - 1 }
    }

    pub fn asked(&self, name: &str) -> usize {
        self.world().counted(name)
    }

    pub fn done(&self, name: &str) -> usize {
        self.world().done.get(name).copied().unwrap_or_default()
    }

    /// The pushes that arrived: `from to reference`.
    pub fn pushes(&self) -> Vec<String> {
        self.world().repository.pushes()
    }

    pub fn head(&self, branch: &str) -> Option<String> {
        self.world().repository.head(branch)
    }

    /// The title and body of a pull request.
    pub fn said(&self, number: u64) -> (String, String) {
        self.world().pull(number).map(|pull| (pull.title, pull.body)).unwrap_or_default()
    }

    pub fn protect(&self, branch: &str) {
        self.rule("protected", Some(branch));
    }

    /// Has a rule of pushes hold, or no longer: `read-only`, `declines`, `offline`, `unknown-key`; once each `cut-off-before` and
    /// `cut-off-after`; and of the programs `logged-out`.
    pub fn rule(&self, name: &str, text: Option<&str>) {
        self.world().repository.rule(name, text);
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world()
    }
}

impl Drop for Forge {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        self.shared.changed.notify_all();
        // Wakes the listener, so that it looks.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

impl HeldRequest {
    /// Waits until the question is there.
    #[track_caller]
    pub fn wait(&self) {
        let is_there = self.shared.wait(self.number, Stands::Reached);
        assert!(is_there, "waited {DEADLINE:?} in vain for a question to be held");
    }

    pub fn release(&self) {
        self.shared.stand(self.number, Stands::Released);
    }
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        // A test that panicked elsewhere must still be able to look.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holds(&self) -> MutexGuard<'_, Vec<Hold>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stand(&self, number: usize, stands: Stands) {
        self.holds()[number].stands = stands;
        self.changed.notify_all();
    }

    fn wait(&self, number: usize, wanted: Stands) -> bool {
        let is_not_yet =
            |holds: &mut Vec<Hold>| holds[number].stands != wanted && !self.is_stopped.load(Ordering::SeqCst);
        let waited = self.changed.wait_timeout_while(self.holds(), DEADLINE, is_not_yet);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Waits if the test holds requests of this name.
    fn pass(&self, name: &str, fault: Fault) {
        let is_it =
            |hold: &Hold| (hold.name.as_str(), hold.fault, hold.stands) == (name, fault, Stands::Waiting);
        let number = self.holds().iter().position(is_it);
        if let Some(number) = number {
            self.stand(number, Stands::Reached);
            self.wait(number, Stands::Released);
        }
    }

    /// Serves git to clients with the token.
    fn git(&self, incoming: &Incoming) -> Reply {
        let (repos, token) = {
            let world = self.world();
            (world.repository.dir().ancestors().nth(2).map(Path::to_owned), world.token.clone())
        };
        match token.is_some_and(|token| incoming.header("authorization") != basic(&token)) {
            true => Reply::no(401, "who are you?").with("WWW-Authenticate", "Basic realm=\"forge\""),
            false => smart_http::reply(&repos.expect("two folders above the repository"), incoming),
        }
    }

    /// Answers one request. Without an answer the client finds the connection closed.
    fn serve(&self, stream: &TcpStream) {
        let Ok(Some(incoming)) = Incoming::read(&mut BufReader::new(stream)) else { return };
        if smart_http::is_git(&incoming) {
            // The client may be gone.
            let _ = self.git(&incoming).write(&mut &*stream, false);
            return;
        }
        let name = match self.kind {
            Kind::GitHub => github::name(&incoming),
            Kind::GitLab => gitlab::name(&incoming),
        };
        self.pass(name, Fault::Before);
        let (reply, fault) = {
            let mut world = self.world();
            world.count(name);
            let at = world.faults.iter().position(|(at, _)| at == name);
            let fault = at.map(|at| world.faults.remove(at).1);
            if world.is_offline || fault == Some(Fault::Before) {
                return;
            }
            let reply = match world.limits.pop_front() {
                Some(limit) => limited(self.kind, limit),
                None if world
                    .token
                    .as_ref()
                    .is_some_and(|it| incoming.header("authorization") != format!("Bearer {it}")) =>
                {
                    Reply::no(401, "Bad credentials")
                }
                None if self.kind == Kind::GitHub => github::reply(&mut world, name, &incoming),
                None => gitlab::reply(&mut world, name, &incoming),
            };
            if reply.is_good() {
                *world.done.entry(name.to_owned()).or_default() += 1;
            }
            (reply, fault)
        };
        self.pass(name, Fault::After);
        if fault != Some(Fault::After) {
            // The client may be gone.
            let _ = reply.write(&mut &*stream, fault == Some(Fault::During));
        }
    }
}

/// The user and token as git sends them.
fn basic(token: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("x-access-token:{token}")))
}

fn limited(kind: Kind, limit: Limit) -> Reply {
    match (kind, limit) {
        (Kind::GitHub, Limit::Primary(reset)) => Reply::no(403, "API rate limit exceeded for user ID 1.")
            .with("X-Ratelimit-Remaining", 0)
            .with("X-Ratelimit-Reset", reset),
        (Kind::GitHub, Limit::Secondary(seconds)) => {
            Reply::no(403, "You have exceeded a secondary rate limit.")
                .with("X-Ratelimit-Remaining", 4000)
                .with("Retry-After", seconds)
        }
        (Kind::GitLab, Limit::Primary(reset)) => {
            Reply::no(429, "Too Many Requests").with("RateLimit-Reset", reset)
        }
        (Kind::GitLab, Limit::Secondary(seconds)) => {
            Reply::no(429, "Retry later").with("Retry-After", seconds)
        }
    }
}

pub(crate) fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        let byte = digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(super) fn queried(incoming: &Incoming, name: &str) -> Option<String> {
    let mut pairs = incoming.query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| decoded(value))
}

pub(super) fn page<T: Clone>(incoming: &Incoming, list: &[T]) -> Vec<T> {
    let number = |name, unless| queried(incoming, name).and_then(|text| text.parse().ok()).unwrap_or(unless);
    let (size, page) = (number("per_page", 30).min(100), number("page", 1));
    list.iter().skip((page - 1) * size).take(size).cloned().collect()
}
