//! The sandbox: its folders, its environment, and its cleanup.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Once};

use serde_json::Value;
use tempfile::TempDir;

use crate::processes::{Survivor, signal_process, survivors};
use crate::wait::eventually;
use crate::{Gate, Invocation, Run, Session, Signal, redact};

/// The memory that the folders of a test run may need.
const SCRATCH_BYTES: u64 = 2 << 30;

/// Where tests make their folders: `TMPDIR`; else memory, where programs can be run in it and there is enough, as nothing of a
/// test is to survive and each sync of a disk takes milliseconds; else the system's temporary folder.
#[must_use]
pub fn scratch_folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let is_fit = || {
        let found = rustix::fs::statvfs(memory).ok()?;
        let runs_programs = !found.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC);
        (runs_programs && found.f_bavail.saturating_mul(found.f_frsize) >= SCRATCH_BYTES).then_some(())
    };
    match crate::npm::variable("TMPDIR") {
        None if is_fit().is_some() => memory.to_owned(),
        _ => std::env::temp_dir(),
    }
}

/// A temporary folder with a home, a project, agents, their notes, and gates at which they wait. Processes still
/// running in it when it is dropped are killed.
#[derive(Debug)]
pub struct Sandbox {
    dir: TempDir,
    root: String,
    program: PathBuf,
    sessions: AtomicU32,
}

impl Sandbox {
    /// A sandbox for `program`, whose project is a git repository with one commit on `main`.
    #[must_use]
    pub fn new(program: &str) -> Self {
        Self::without_git(program).with_git()
    }

    /// The same in a folder of the caller's, for programs that do not see `/tmp`.
    #[must_use]
    pub fn new_in(program: &str, parent: &Path) -> Self {
        Self::make(program, parent).with_git()
    }

    fn with_git(self) -> Self {
        let sandbox = self;
        sandbox.git(&["init", "--quiet", "--initial-branch", "main"]);
        write(&sandbox.project().join("README.md"), "# A project\n");
        sandbox.git(&["add", "README.md"]);
        sandbox.git(&["commit", "--quiet", "--message", "Begin"]);
        sandbox
    }

    /// A sandbox whose project is a plain folder.
    #[must_use]
    pub fn without_git(program: &str) -> Self {
        Self::make(program, &scratch_folder())
    }

    fn make(program: &str, parent: &Path) -> Self {
        heed_signals();
        let dir = tempfile::Builder::new().prefix("refrain-it-").tempdir_in(parent);
        let dir = dir.expect("a temporary folder can be made");
        let root =
            dir.path().canonicalize().expect("it was just made").to_str().expect("it is UTF-8").to_owned();
        for name in ["home", "project", "agents", "notes", "gates", "tmp", "sessions"] {
            fs::create_dir(dir.path().join(name)).expect("a folder can be made");
        }
        write(
            &dir.path().join("home/.gitconfig"),
            "[user]\nname = Test\nemail = test@localhost\n[init]\ndefaultBranch = main\n[gc]\nauto = 0\n[maintenance]\nauto = false\n",
        );
        Self { dir, root, program: program.into(), sessions: AtomicU32::new(0) }
    }

    /// Keeps the folder; the owner of the temporary folder removes it.
    pub fn keep(&mut self) {
        self.dir.disable_cleanup(true);
    }

    /// The folder of all of it. Its path is the marker by which its processes are found.
    #[must_use]
    pub fn root(&self) -> &Path {
        Path::new(&self.root)
    }

    /// The project's folder.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// The folder of one loop, in the repository or, without one, in the project.
    #[must_use]
    pub fn loop_dir(&self, id: &str) -> PathBuf {
        let git = self.project().join(".git");
        let data = if git.is_dir() { git.join("refrain") } else { self.project().join(".refrain/data") };
        data.join("loops").join(id)
    }

    /// Writes an agent: a POSIX shell script, outside the project. Returns its path, as `--command` takes it. It finds
    /// `$NOTES` and `$GATES` in its environment.
    #[must_use]
    pub fn agent(&self, name: &str, script: &str) -> String {
        let path = self.root().join("agents").join(name);
        write(&path, format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
        path.to_str().expect("it is UTF-8").to_owned()
    }

    /// A gate that agents find as `$GATES/<name>`.
    #[must_use]
    pub fn gate(&self, name: &str) -> Gate {
        Gate::new(self.root().join("gates").join(name))
    }

    /// The content of `$NOTES/<name>`; empty if there is none.
    #[must_use]
    pub fn note(&self, name: &str) -> String {
        fs::read_to_string(self.root().join("notes").join(name)).unwrap_or_default()
    }

    /// Waits until an agent has written a whole line to `$NOTES/<name>`.
    #[track_caller]
    pub fn wait_for_note(&self, name: &str) -> String {
        eventually(&format!("an agent writes $NOTES/{name}"), || {
            Some(self.note(name)).filter(|text| text.ends_with('\n'))
        })
    }

    /// Runs the program in the project to its end.
    #[track_caller]
    pub fn refrain(&self, args: &[&str]) -> Run {
        self.command(args).run()
    }

    /// Trusts all that `trust --show` prints for the project: its hash replaces a person at a terminal.
    #[track_caller]
    pub fn trust(&self) -> Run {
        let shown = self.refrain(&["trust", "--show"]).with_code(0);
        let hash = shown.stdout.lines().find_map(|line| line.strip_prefix("hash "));
        match hash.map(str::to_owned) {
            Some(hash) => self.refrain(&["trust", "--hash", &hash]).with_code(0),
            None => shown,
        }
    }

    /// The tree that the loop waits for approval with, as `approve --tree` takes it.
    #[track_caller]
    #[must_use]
    pub fn waiting_tree(&self, id: &str) -> String {
        self.status(id)["approval"]["tree"].as_str().unwrap_or("none").to_owned()
    }

    /// Approves the tree that the loop waits with: its name replaces a person at a terminal.
    #[track_caller]
    pub fn approve(&self, id: &str, more: &[&str]) -> Run {
        let tree = self.waiting_tree(id);
        self.refrain(&[&["approve", id, "--tree", &tree], more].concat())
    }

    /// Starts the program in the project.
    #[track_caller]
    pub fn spawn(&self, args: &[&str]) -> Session {
        self.command(args).spawn()
    }

    /// The program with these words, to be run or spawned.
    pub fn command(&self, args: &[&str]) -> Invocation {
        let program = self.program.to_str().expect("it is UTF-8");
        self.tool(program, args)
    }

    /// Any program in the project, in the sandbox's environment.
    pub fn tool(&self, program: &str, args: &[&str]) -> Invocation {
        let mut command = self.bare(program);
        command.args(args);
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        let files = ["out", "err"].map(|name| self.root().join(format!("sessions/{number}.{name}")));
        Invocation::new(command, format!("{program} {}", args.join(" ")), files)
    }

    /// The variables that everything in the sandbox sees, and no others.
    #[must_use]
    pub fn env(&self) -> Vec<(&'static str, String)> {
        let at = |name: &str| format!("{}/{name}", self.root);
        let mut env = vec![
            ("PATH", path()),
            ("HOME", at("home")),
            ("XDG_DATA_HOME", at("home/data")),
            ("XDG_STATE_HOME", at("home/state")),
            ("XDG_CONFIG_HOME", at("home/config")),
            ("XDG_CACHE_HOME", at("home/cache")),
            ("TMPDIR", at("tmp")),
            ("TZ", "UTC".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("NOTES", at("notes")),
            ("GATES", at("gates")),
        ];
        // Where a program that measures its coverage writes (`.ci/nightly coverage`); else it would be the project.
        let file = std::env::vars().find(|(name, _)| name == "LLVM_PROFILE_FILE");
        env.extend(file.map(|(_, file)| ("LLVM_PROFILE_FILE", file)));
        env
    }

    #[expect(clippy::disallowed_methods, reason = "the one place where the tests start processes")]
    fn bare(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.env()).current_dir(self.project());
        command
    }

    /// Runs git in the project and returns its output.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        self.tool("git", args).run().with_code(0).stdout
    }

    /// The loop's status object, as the program prints it.
    #[track_caller]
    #[must_use]
    pub fn status(&self, id: &str) -> Value {
        self.refrain(&["status", id, "--json"]).with_code(0).json()
    }

    /// Waits until the loop's status is this word.
    #[track_caller]
    pub fn wait_for_status(&self, id: &str, word: &str) -> Value {
        eventually(&format!("loop {id} is {word}"), || {
            let run = self.refrain(&["status", id, "--json"]);
            let status = serde_json::from_str::<Value>(&run.stdout).ok()?;
            (status["status"] == word).then_some(status)
        })
    }

    /// Deletes the note of each loop's last signed record, as a user could who puts an older journal back.
    pub fn forget_signed_records(&self) {
        let _ = fs::remove_dir_all(self.root().join("home/state/refrain/signing/last"));
    }

    /// The events of the loop's journal, whole lines only.
    #[must_use]
    pub fn journal(&self, id: &str) -> Vec<Value> {
        let bytes = fs::read(self.loop_dir(id).join("journal.jsonl")).unwrap_or_default();
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// The names of the events of the loop's journal.
    #[must_use]
    pub fn event_names(&self, id: &str) -> Vec<String> {
        let name = |record: &Value| record["event"]["type"].as_str().unwrap_or_default().to_owned();
        self.journal(id).iter().map(name).collect()
    }

    /// Waits until the journal has an event of this name.
    #[track_caller]
    pub fn wait_for_event(&self, id: &str, name: &str) {
        eventually(&format!("loop {id} records {name}"), || {
            self.event_names(id).iter().any(|found| found == name).then_some(())
        });
    }

    /// A stored file of one attempt: `output.log`, `stderr.log`, `prompt.md`.
    #[must_use]
    pub fn kept(&self, id: &str, attempt: &str, file: &str) -> Vec<u8> {
        fs::read(self.loop_dir(id).join("iterations").join(attempt).join(file)).unwrap_or_default()
    }

    /// The same as text.
    #[must_use]
    pub fn kept_text(&self, id: &str, attempt: &str, file: &str) -> String {
        String::from_utf8_lossy(&self.kept(id, attempt, file)).into_owned()
    }

    /// Waits until no process of the sandbox is left, and fails the test naming those that are.
    #[track_caller]
    pub fn no_process_is_left(&self) {
        let gone = crate::wait::poll(std::time::Duration::from_secs(10), || {
            self.survivors().is_empty().then_some(())
        });
        assert!(gone.is_some(), "a process is left: {:#?}", self.survivors());
    }

    /// The processes running in the sandbox now.
    #[must_use]
    pub fn survivors(&self) -> Vec<Survivor> {
        survivors(&self.root)
    }

    /// The processes whose first word is this.
    #[must_use]
    pub fn processes_named(&self, name: &str) -> Vec<i32> {
        let named = |found: &Survivor| found.command.split(' ').next() == Some(name);
        self.survivors().into_iter().filter(named).map(|found| found.pid).collect()
    }

    /// Every path below the sandbox except its own records, with the files' contents: to check that nothing was
    /// changed.
    #[must_use]
    pub fn snapshot(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        for name in ["home", "project", "tmp"] {
            collect(&self.root().join(name), &mut found);
        }
        found.sort();
        found
    }

    /// The text with this sandbox's paths, and times and process numbers, replaced.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        redact::redact(text, &[(&self.root, "[root]")])
    }
}

/// How often a dropped sandbox looks for remaining processes.
const DROP_ROUNDS: u32 = 100;

impl Drop for Sandbox {
    fn drop(&mut self) {
        // Repeat until no process is found: a runner that is killed late may have started one more.
        for _ in 0..DROP_ROUNDS {
            let found = self.survivors();
            if found.is_empty() {
                break;
            }
            found.iter().for_each(|found| signal_process(found.pid, Signal::KILL));
        }
        let _ = &self.dir;
    }
}

fn collect(dir: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => {
                found.push((path.clone(), Vec::new()));
                collect(&path, found);
            }
            Ok(kind) if kind.is_file() => found.push((path.clone(), fs::read(&path).unwrap_or_default())),
            _ => found.push((path, Vec::new())),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the tests' programs are found where the person's are")]
fn path() -> String {
    std::env::var("PATH").expect("there is a PATH")
}

/// Writes a file, replacing its content.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "files of tests need no crash promise")]
pub fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Tests run from a background job inherit ignored signals, and then nothing that a test starts could be interrupted. A
/// handler, unlike an ignored signal, does not outlive exec; this one has the default effect.
fn heed_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [Signal::INT, Signal::HUP, Signal::TERM, Signal::QUIT] {
            let as_usual = Arc::new(AtomicBool::new(true));
            signal_hook::flag::register_conditional_default(signal.as_raw(), as_usual)
                .expect("a signal can be heeded");
        }
    });
}
