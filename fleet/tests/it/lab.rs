//! A fleet on this machine: a server, a state repository, the person's machine and workers.

pub(crate) mod bucket;
pub(crate) mod link;

use std::cell::{Cell, RefCell};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::{Sandbox, Session, within, write};

/// An agent that waits in iteration 2 as long as its machine has the gate `second`.
pub(crate) const HELD_IN_SECOND: &str = r#"if [ $REFRAIN_ITERATION = 2 ] && [ -e $GATES/second ]; then echo held > $NOTES/held; read -r _ < $GATES/second; fi"#;

/// How long a loop may take: these tests share their machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// T: after that long without a sign of its worker a loop is given to another.
pub(crate) const LEASE: Duration = Duration::from_secs(6);

/// How long something may take that takes `least` on a machine that does nothing else. `begins` is how long this machine took
/// in the same test from `refrain start` to the first attempt: the same programs, server and git are behind it.
pub(crate) fn bound(least: Duration, begins: Duration) -> Duration {
    least.max(2 * begins)
}

#[expect(clippy::disallowed_methods, reason = "the tests' programs are found where the person's are")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A variable that the runner of these tests sets.
fn given(name: &str) -> String {
    variable(name).unwrap_or_else(|| panic!("{name} is not set: cargo xtask e2e fleet runs these tests"))
}

/// A port that nothing listens at.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The server's program.
pub(crate) fn temporal() -> String {
    given("REFRAIN_TEMPORAL")
}

pub(crate) struct Lab {
    pub(crate) person: Sandbox,
    pub(crate) state: String,
    port: u16,
    programs: PathBuf,
    of_server: Vec<&'static str>,
    numbers: Cell<u32>,
    /// Tests that kill the server start it again.
    pub(crate) server: Option<Session>,
    _programs: Sandbox,
    /// The folders of all machines, for what their programs said.
    machines: RefCell<Vec<PathBuf>>,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with_server(&[])
    }

    /// With a server that has these words, too.
    pub(crate) fn with_server(words: &[&'static str]) -> Self {
        let (refrain, programs) = programs();
        let person = Sandbox::new(&refrain);
        let state = format!("{}/state.git", person.root().display());
        person.git(&["init", "--quiet", "--bare", &state]);
        let mut lab = Self {
            port: free_port(),
            programs: PathBuf::from(&refrain).parent().unwrap().to_owned(),
            state,
            person,
            server: None,
            _programs: programs,
            of_server: words.to_vec(),
            numbers: Cell::default(),
            machines: RefCell::default(),
        };
        lab.configure(&lab.person, "");
        // The first loop makes the person's key.
        lab.person.refrain(&["start", "--command", "true", "--no-promise", "Begin."]).with_code(0);
        lab.start_server();
        lab
    }

    pub(crate) fn start_server(&mut self) {
        let (port, data) = (self.port.to_string(), self.database().to_string_lossy().into_owned());
        let words = [
            "server",
            "start-dev",
            "--ip",
            "127.0.0.1",
            "--port",
            &port,
            "--headless",
            "--log-level",
            "error",
        ];
        let words = [&words[..], &["--db-filename", &data], &self.of_server].concat();
        self.server = Some(self.person.tool(&temporal(), &words).spawn());
        within(LONG, "the server answers", || TcpStream::connect(("127.0.0.1", self.port)).ok());
    }

    pub(crate) fn kill_server(&mut self) {
        self.server.take().map(Session::kill);
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.person.root().join("temporal.db")
    }

    fn configure(&self, machine: &Sandbox, more: &str) {
        let fleet = format!(
            "[fleet]\naddress = \"127.0.0.1:{}\"\nstate = \"{}\"\nlease = \"{}s\"\nbeat = \"1s\"\nreplicate = \"5s\"\n",
            self.port,
            self.state,
            LEASE.as_secs(),
        );
        let folder = machine.root().join("home/config/refrain");
        fs::create_dir_all(&folder).unwrap();
        write(&folder.join("config.toml"), format!("{fleet}{more}"));
    }

    /// A machine with a home of its own, whose user is the person: it has their key.
    pub(crate) fn machine(&self, name: &str) -> Sandbox {
        let machine = Sandbox::without_git(&self.programs.join("refrain").to_string_lossy());
        let more =
            format!("[worker]\nname = \"{name}\"\nremotes = [\"{}\"]\nagents = [\"generic\"]\n", self.state);
        self.configure(&machine, &more);
        let key = "home/state/refrain/signing";
        fs::create_dir_all(machine.root().join(key)).unwrap();
        fs::copy(self.person.root().join(key).join("key"), machine.root().join(key).join("key")).unwrap();
        self.machines.borrow_mut().push(machine.root().to_owned());
        machine
    }

    pub(crate) fn work(&self, machine: &Sandbox, more: &[&str]) -> Session {
        let session = machine.command(&[&["worker"], more].concat()).spawn();
        wait_until_ready(&session);
        session
    }

    /// A worker of another installation.
    pub(crate) fn work_with(&self, program: &str, machine: &Sandbox) -> Session {
        let session = machine.tool(program, &["worker"]).spawn();
        wait_until_ready(&session);
        session
    }

    /// Gives a loop to the fleet: an agent with this script.
    pub(crate) fn start(&self, id: &str, script: &str, more: &[&str]) {
        let agent = self.person.agent(id, script);
        let usual: &[&str] =
            if more.contains(&"--max-iterations") { &[] } else { &["--max-iterations", "8"] };
        let words = [&["start", "--on", "fleet", "--name", id, "--command", &agent], usual].concat();
        self.person.command(&[&words[..], more, &["Write lines."]].concat()).run().with_code(0);
    }

    /// The same; returns how long it takes until the machine has begun the first attempt.
    pub(crate) fn start_and_time(&self, id: &str, script: &str, machine: &Sandbox) -> Duration {
        let since = Instant::now();
        self.start(id, script, &[]);
        machine.wait_for_note("attempts");
        since.elapsed()
    }

    /// A worker whose data folder is a small file system of its own, in memory.
    pub(crate) fn work_on_small_disk(&self, machine: &Sandbox) -> Session {
        fs::create_dir_all(machine.root().join("home/data")).unwrap();
        let mounts = r#"mount -t tmpfs -o size=8m tmpfs "$XDG_DATA_HOME" && exec "$0" worker"#;
        let refrain = self.program();
        let words = ["--user", "--map-root-user", "--mount", "sh", "-c", mounts, &refrain];
        let session = machine.tool("unshare", &words).spawn();
        wait_until_ready(&session);
        session
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The program `refrain`.
    pub(crate) fn program(&self) -> String {
        self.programs.join("refrain").to_string_lossy().into_owned()
    }

    /// The program `refrain` of an installation whose worker does not know an event: in a copy of the program, the event has
    /// another name. An older version would need an hour to be built.
    pub(crate) fn program_without(&self, event: &str) -> String {
        let folder = self.person.root().join("older");
        fs::create_dir_all(&folder).unwrap();
        fs::copy(self.programs.join("refrain"), folder.join("refrain")).unwrap();
        let mut bytes = fs::read(self.programs.join("refrain-fleet")).unwrap();
        let places: Vec<usize> = places_of(&bytes, event.as_bytes());
        assert!(!places.is_empty(), "the program knows {event}");
        for place in places {
            bytes[place + event.len() - 1].make_ascii_uppercase();
        }
        let program = folder.join("refrain-fleet");
        write(&program, bytes);
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        folder.join("refrain").to_string_lossy().into_owned()
    }

    /// A number that it gave to no caller before.
    pub(crate) fn number(&self) -> u32 {
        self.numbers.set(self.numbers.get() + 1);
        self.numbers.get()
    }

    /// The address of the server.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// How the loop stands, as the person's machine knows it.
    pub(crate) fn status(&self, id: &str) -> Value {
        self.person.status(id)
    }

    pub(crate) fn wait_for_status(&self, id: &str, word: &str) -> Value {
        self.wait_for_status_within(LONG, id, word)
    }

    pub(crate) fn wait_for_status_within(&self, limit: Duration, id: &str, word: &str) -> Value {
        let mut last = Value::Null;
        let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            within(limit, &format!("loop {id} is {word}"), || {
                last = self.status(id);
                (last["status"] == word).then(|| last.clone())
            })
        }));
        looked.unwrap_or_else(|_| panic!("loop {id} is not {word}: {last:#}\n{}", self.said()))
    }

    /// What the server did for a loop, and when.
    pub(crate) fn events(&self, id: &str) -> String {
        let address = self.address();
        let name = format!("refrain/{}/{id}", self.state);
        let words = ["--address", &address, "workflow", "show", "--workflow-id", &name, "--output", "json"];
        let shown: Value = self.person.tool(&temporal(), &words).run().with_code(0).json();
        let line = |event: &Value| {
            format!("{} {}", event["eventTime"].as_str().unwrap(), event["eventType"].as_str().unwrap())
        };
        shown["events"].as_array().unwrap().iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Keeps what the server recorded, for `replay.rs`, where a folder for it is named.
    fn record(&self, id: &str) {
        let Some(folder) = variable("REFRAIN_HISTORIES") else { return };
        let fleet = self.programs.join("refrain-fleet").to_string_lossy().into_owned();
        let said = self.person.tool(&fleet, &["history", id, &self.state]).run().with_code(0).stdout;
        let test = std::thread::current().name().unwrap_or("test").replace("::", "-");
        fs::create_dir_all(&folder).unwrap();
        write(&PathBuf::from(folder).join(format!("{test}-{id}.json")), said);
    }

    /// What the programs of all machines said.
    fn said(&self) -> String {
        let folders = self.machines.borrow().clone().into_iter().map(|root| root.join("sessions"));
        let files =
            folders.flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
        files.map(|path| format!("{}:\n{}", path.display(), fs::read_to_string(&path).unwrap())).collect()
    }

    /// The files that the commits of the loop's branch added at the remote, the first first.
    pub(crate) fn lines(&self, id: &str) -> Vec<String> {
        let branches = self.person.git(&[
            "-C",
            &self.state,
            "branch",
            "--list",
            &format!("*{id}*"),
            "--format=%(refname)",
        ]);
        let branch = branches.lines().next().unwrap_or_default().to_owned();
        let log = ["-C", &self.state, "log", "--reverse", "--format=", "--name-only", &branch];
        let added = self.person.git(&log);
        added.lines().filter(|name| name.starts_with("line")).map(str::to_owned).collect()
    }

    /// Each iteration is on the branch once, and the journal is as it was written.
    pub(crate) fn assert_whole(&self, id: &str, iterations: u32) {
        let expected: Vec<_> = (1..=iterations).map(|iteration| format!("line{iteration}")).collect();
        assert_eq!(self.lines(id), expected);
        let verdict: Value = self.person.refrain(&["verify", id, "--json"]).with_code(0).json();
        self.record(id);
        assert!(verdict["intact"] == true && verdict["agrees"] == true, "{verdict:#}");
    }
}

pub(crate) fn wait_until_ready(worker: &Session) {
    let is_ready = || worker.stderr().contains("loops at a time").then_some(());
    let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        within(LONG, "the worker is ready", is_ready)
    }));
    waited.unwrap_or_else(|_| panic!("the worker is not ready, and said: {}", worker.stderr()));
}

/// The programs beside each other, as an installation has them.
fn programs() -> (String, Sandbox) {
    let place = Sandbox::without_git("true");
    let own = [
        (given("REFRAIN_PROGRAM"), "refrain"),
        (env!("CARGO_BIN_EXE_refrain-fleet").to_owned(), "refrain-fleet"),
    ];
    for (from, name) in own {
        let to = place.root().join(name);
        fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop)).unwrap();
    }
    (place.root().join("refrain").to_string_lossy().into_owned(), place)
}

/// Writes a line each iteration, and claims in iteration `last`; in iteration `held` it says so, and hangs where the file
/// `hold` of its notes is.
pub(crate) fn script(last: u32, held: u32) -> String {
    format!(
        r#"echo "$REFRAIN_ITERATION.$REFRAIN_ATTEMPT" >> $NOTES/attempts
if [ $REFRAIN_ITERATION = {held} ] && [ -e $NOTES/hold ]; then echo half > half; echo held > $NOTES/held; exec sleep 1000; fi
echo x > line$REFRAIN_ITERATION
if [ $REFRAIN_ITERATION -ge {last} ]; then echo '<promise>COMPLETE</promise>'; fi"#
    )
}

pub(crate) fn hold(machine: &Sandbox) {
    write(&machine.root().join("notes/hold"), "");
}

fn places_of(bytes: &[u8], words: &[u8]) -> Vec<usize> {
    let found = bytes.windows(words.len()).enumerate().filter(|(_, window)| *window == words);
    found.map(|(place, _)| place).collect()
}

pub(crate) fn contains(path: &Path, words: &str) -> bool {
    let bytes = fs::read(path).unwrap_or_default();
    bytes.windows(words.len()).any(|window| window == words.as_bytes())
}
