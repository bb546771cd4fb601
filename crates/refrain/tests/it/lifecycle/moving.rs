//! Loops that move between two machines: two clones of a project at other paths, with homes and signing keys of their own,
//! and a bare repository between them.

mod copies;
mod hostile;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use rstest::rstest;
use serde_json::{Value, json};
use testkit::{Run, Sandbox, write};

use crate::proof::forged::chained;
use crate::{CLAIM, plain_folder, sandbox};

const GATE: &str = "tests=test -f README.md";

/// Two machines, and the remote between them.
pub(super) struct Machines {
    pub(super) one: Sandbox,
    pub(super) two: Sandbox,
    pub(super) remote: String,
}

impl Machines {
    fn new() -> Self {
        let (one, two) = (sandbox(), plain_folder());
        let remote = one.root().join("state.git").to_str().unwrap().to_owned();
        one.git(&["init", "--quiet", "--bare", &remote]);
        let project = one.project().to_str().unwrap().to_owned();
        two.git(&["clone", "--quiet", &project, "."]);
        Self { one, two, remote }
    }

    /// A loop on machine one that was paused in iteration 2, with a file that no commit has.
    pub(super) fn paused() -> Self {
        Self::paused_in(&["--worktree", "--branch-template", "work"])
    }

    fn paused_in(place: &[&str]) -> Self {
        let machines = Self::new();
        let one = &machines.one;
        let path = wrapped(one);
        let agent = one.agent("worker", WORKER);
        let start =
            ["start", "--command", &agent, "--name", "job", "--auto-commit", "--gate", GATE, "-m", "6"];
        let words = [&start[..], place, &["-q", "Write lines."]].concat();
        let session = one.command(&words).env("PATH", &path).spawn();
        one.wait_for_note("two");
        one.refrain(&["pause", "job", "--now"]).with_code(0);
        session.wait().with_code(16);
        machines
    }

    pub(super) fn leave(&self, more: &[&str]) -> Run {
        leave(&self.one, &self.remote, more)
    }

    pub(super) fn take(&self, machine: &Sandbox, more: &[&str]) -> Run {
        machine.refrain(&[&["move", "job", "--from", &self.remote], more].concat())
    }

    /// Machine two takes the loop over, and accepts the key of machine one.
    pub(super) fn take_accepted(&self) -> Run {
        self.take(&self.two, &["--signer", &key(&self.one)])
    }
}

/// Writes a line each iteration. Iteration 2 begins with a file, and hangs in its first attempt. The last one claims.
const WORKER: &str = r#"echo "$REFRAIN_ITERATION.$REFRAIN_ATTEMPT" >> $NOTES/attempts
if [ "$REFRAIN_ITERATION.$REFRAIN_ATTEMPT" = 2.1 ]; then
    echo half > half; echo "note of one" >> $REFRAIN_STATE_FILE; echo two > $NOTES/two
    exec sleep 1000
fi
echo x > line$REFRAIN_ITERATION
if [ $REFRAIN_ITERATION -ge 4 ]; then echo '<promise>COMPLETE</promise>'; fi"#;

pub(super) fn leave(machine: &Sandbox, remote: &str, more: &[&str]) -> Run {
    machine.refrain(&[&["move", "job", "--to", remote], more].concat())
}

/// The public key that signed the loop on this machine last.
fn key_of(machine: &Sandbox, id: &str) -> String {
    let signed = machine
        .journal(id)
        .into_iter()
        .rev()
        .find_map(|record| record["signature"]["key"].as_str().map(str::to_owned));
    signed.expect("something is signed")
}

pub(super) fn key(machine: &Sandbox) -> String {
    key_of(machine, "job")
}

/// The worktree of the loop there.
pub(super) fn worktree(machine: &Sandbox) -> PathBuf {
    machine.status("job")["worktree"].as_str().unwrap().into()
}

/// A `PATH` with a `git` before the real one that runs what [`arm`] says around it.
fn wrapped(machine: &Sandbox) -> String {
    let folder = machine.root().join("wrapped");
    fs::create_dir_all(&folder).unwrap();
    let armed = machine.root().join("armed").display().to_string();
    let path = folder.join("git");
    write(
        &path,
        format!("#!/bin/sh\nPATH=${{PATH#*:}}\nif test -e {armed}; then . {armed}; fi\nexec git \"$@\"\n"),
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let usual = machine.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    format!("{}:{usual}", folder.display())
}

/// From here on the first such git kills its parent, before or after it does its work.
fn arm(machine: &Sandbox, when: &str, command: &str) {
    let armed = machine.root().join("armed");
    let work = if when == "before" { "" } else { "git \"$@\"; " };
    let kill = format!("rm {}; {work}kill -9 $PPID; exit 1", armed.display());
    write(&armed, format!("case \" $* \" in *\" {command} \"*) {kill};; esac\n"));
}

#[test]
fn a_loop_continues_on_another_machine_and_comes_back() {
    let machines = Machines::paused();
    let Machines { one, two, remote } = &machines;
    let refused = machines.leave(&[]).with_code(17).stderr;
    assert!(refused.contains("1 file that no commit has") && refused.contains("--with-changes"), "{refused}");
    let left = machines.leave(&["--with-changes"]).with_code(0);
    let command = format!("refrain move job --from {remote} --signer {}", key(one));
    assert!(left.stderr.contains(&command), "{}", left.stderr);
    // Typed again, it is done already.
    machines.leave(&[]).with_code(0);
    let status = one.status("job");
    assert_eq!(status["status"], "moved", "{status}");
    for verb in [
        &["resume", "job"][..],
        &["steer", "job", "x"],
        &["answer", "job", "x"],
        &["cancel", "job"],
        &["merge", "job", "--unverified"],
        &["discard", "job"],
    ] {
        let refused = one.refrain(verb).with_code(17).stderr;
        assert!(
            refused.contains(&format!("refrain move job --from {remote} takes it back")),
            "{verb:?}: {refused}"
        );
    }
    for verb in ["show", "logs", "report", "verify", "diff"] {
        one.refrain(&[verb, "job"]).with_code(0);
    }

    // The agent lies elsewhere there.
    let elsewhere = two.agent("worker", WORKER);
    fs::remove_file(one.root().join("agents/worker")).unwrap();
    let folder = PathBuf::from(&elsewhere).parent().unwrap().display().to_string();
    let usual = two.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    let path = format!("{folder}:{usual}");
    let there = |args: &[&str]| two.command(args).env("PATH", &path).run();
    let unknown = there(&["move", "job", "--from", remote]).with_code(17).stderr;
    assert!(unknown.contains(&key(one)) && unknown.contains("--signer"), "{unknown}");
    assert!(!two.loop_dir("job").exists());
    there(&["move", "job", "--from", remote, "--signer", &key(one)]).with_code(0);
    assert_eq!(fs::read_to_string(worktree(two).join("half")).unwrap(), "half\n");
    let notes = fs::read_to_string(worktree(two).join(".refrain/job/state.md")).unwrap();
    assert!(notes.contains("note of one"), "{notes}");
    assert_eq!(two.status("job")["status"], "paused");
    there(&["resume", "job", "-q"]).with_code(0);
    let status = two.status("job");
    assert_eq!((&status["status"], &status["verified"]), (&json!("completed"), &json!(true)), "{status}");
    assert_eq!((&status["charged"], &status["iteration"]), (&json!(4), &json!(4)), "{status}");
    let verified = two.refrain(&["verify", "job", "--json"]).with_code(0).json();
    assert!(
        verified["checks"].as_array().unwrap().iter().all(|check| check["outcome"] == "agrees"),
        "{verified}"
    );
    assert_eq!(verified["signed"], true, "{verified}");
    // Each iteration is on the branch once.
    let commits = two.git(&[
        "log",
        "--reverse",
        "--format=%(trailers:key=Refrain-Iteration,valueonly,separator=)",
        "main..work",
    ]);
    assert_eq!(commits, "1\n2\n3\n4\n");
    assert_eq!((one.note("attempts"), two.note("attempts")), ("1.1\n2.1\n".into(), "2.2\n3.1\n4.1\n".into()));
    // It is over there, and cannot be taken back.
    let gone = machines.take(one, &[]).with_code(17).stderr;
    assert!(gone.contains("has taken it over"), "{gone}");
    // Its copy here is put away by the command that is shown.
    let needs = one.status("job")["needs"].as_str().unwrap_or_default().to_owned();
    assert!(needs.contains("refrain archive job removes it from the list here"), "{needs}");
    one.refrain(&["archive", "job"]).with_code(0);
    assert_eq!(one.refrain(&["list"]).with_code(0).stdout, "No loops in this project.\n");
    two.refrain(&["move", "job", "--to", remote]).with_code(17);
    one.no_process_is_left();
    two.no_process_is_left();
}

#[test]
fn a_returned_loop_includes_the_work_of_the_other_machine() {
    let machines = Machines::paused();
    let Machines { one, two, remote } = &machines;
    let own = worktree(one);
    machines.leave(&["--with-changes"]).with_code(0);
    machines.take_accepted().with_code(0);
    two.refrain(&["resume", "job", "-q", "--max-iterations", "3"]).with_code(10);
    write(&worktree(two).join("draft"), "draft\n");
    leave(two, remote, &["--with-changes"]).with_code(0);
    let card = two.refrain(&["watch", "job"]);
    assert!(!card.stderr.contains("refrain cancel") && !card.stdout.contains("refrain cancel"), "{card:?}");
    // Nothing that was added here meanwhile is lost, and it comes back to where it was, from the archive too.
    one.refrain(&["archive", "job"]).with_code(0);
    write(&own.join("mine"), "mine\n");
    let refused = machines.take(one, &["--signer", &key(two)]).with_code(17).stderr;
    assert!(refused.contains("has changes that the loop did not take along"), "{refused}");
    assert!(one.refrain(&["list", "--archived"]).with_code(0).stdout.starts_with("job "));
    fs::remove_file(own.join("mine")).unwrap();
    let taken = machines.take(one, &["--signer", &key(two)]).with_code(0).stderr;
    assert!(taken.contains("refrain resume job --max-iterations 6 continues it"), "{taken}");
    assert_eq!(worktree(one), own);
    assert_eq!(fs::read_to_string(worktree(one).join("draft")).unwrap(), "draft\n");
    one.refrain(&["resume", "job", "-q", "--max-iterations", "6"]).with_code(0);
    one.refrain(&["verify", "job"]).with_code(0);
    assert_eq!(one.git(&["rev-list", "--count", "main..work"]), "4\n");
    assert_eq!(one.note("attempts"), "1.1\n2.1\n4.1\n");
}

#[test]
fn a_loop_that_asks_is_to_be_answered_where_it_arrives() {
    let machines = Machines::new();
    let asks = r"sed -i '/^question:/d; s/^status:.*/status: blocked\nquestion: Which?/' $REFRAIN_STATE_FILE";
    let agent = machines.one.agent("asker", asks);
    let start = ["start", "--command", &agent, "--name", "job", "--worktree", "-q", "Ask."];
    machines.one.refrain(&start).with_code(14);
    machines.leave(&[]).with_code(0);
    let taken = machines.take_accepted().with_code(0);
    assert!(taken.stderr.contains("refrain answer job TEXT"), "{}", taken.stderr);
}

#[rstest]
#[case::on_the_other_machine(true)]
#[case::taken_back(false)]
fn a_loop_of_a_checkout_continues_in_a_worktree_of_its_own(#[case] is_elsewhere: bool) {
    let machines = Machines::paused_in(&[]);
    let Machines { one, two, .. } = &machines;
    machines.leave(&[]).with_code(17);
    machines.leave(&["--with-changes"]).with_code(0);
    let there = if is_elsewhere { two } else { one };
    let tip = one.git(&["rev-parse", "main"]);
    machines.take(there, &["--signer", &key(one)]).with_code(0);
    assert_ne!(worktree(there), there.project());
    assert_eq!(fs::read_to_string(worktree(there).join("half")).unwrap(), "half\n");
    there.refrain(&["resume", "job", "-q"]).with_code(0);
    there.refrain(&["verify", "job"]).with_code(0);
    let status = there.status("job");
    let branch = status["branch"].as_str().unwrap();
    assert_eq!(branch, "loop/job");
    let began = one.git(&["rev-list", "--max-parents=0", "main"]);
    let made = there.git(&["rev-list", "--count", &format!("{}..{branch}", began.trim())]);
    assert_eq!(made, "4\n");
    // The checkout of its user stays as the loop left it.
    assert_eq!(one.git(&["rev-parse", "main"]), tip);
    assert!(one.project().join("half").exists());
    one.no_process_is_left();
    two.no_process_is_left();
}

#[test]
fn a_loop_that_cannot_move_stays_as_it_is() {
    let machines = Machines::new();
    let Machines { one, two, remote } = &machines;
    let agent = one.agent("agent", &format!("echo x >> work.txt; {CLAIM}"));
    let make = |id: &str, more: &[&str], code: i32| {
        let words =
            ["start", "--command", &agent, "--name", id, "-q", "-m", "1", "--no-promise", "-p", "Work."];
        one.refrain(&[&words[..], more].concat()).with_code(code);
    };
    make("here", &["--gate", "false"], 10);
    let silent = one.agent("silent", "exit 0");
    let bare =
        ["start", "--command", &silent, "--name", "bare", "-q", "-m", "1", "--share-worktree", "-p", "Work."];
    one.refrain(&bare).with_code(10);
    make("secret", &["--gate", "false", "--worktree", "--env", "KEY=word"], 10);
    make("done", &["--gate", "true", "--worktree"], 0);
    make("fits", &["--gate", "false", "--worktree", "--auto-commit", "--commit-when", "each"], 10);
    let missing = one.root().join("missing.git").display().to_string();
    for (id, to, code, part) in [
        ("here", remote.as_str(), 17, "1 file that no commit has"),
        ("bare", remote, 2, "started with --worktree can be moved"),
        ("secret", remote, 2, "the value of KEY"),
        ("done", remote, 17, "it is completed"),
        ("none", remote, 3, "no loop none"),
        ("fits", "https://me:word@host/a.git", 2, "it has a password in it"),
        ("fits", &missing, 1, "there is no repository at the remote"),
    ] {
        let before = (one.event_names(id), one.git(&["for-each-ref"]));
        let refused = one.refrain(&["move", id, "--to", to]).with_code(code).stderr;
        assert!(refused.contains(part), "{id}: {refused}");
        assert_eq!((one.event_names(id), one.git(&["for-each-ref"])), before, "{id}");
    }
    // A remote that refuses leaves the loop where it is.
    let hook = PathBuf::from(remote).join("hooks/pre-receive");
    write(&hook, "#!/bin/sh\nexit 1\n");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let refused = one.refrain(&["move", "fits", "--to", remote]).with_code(1).stderr;
    assert!(refused.contains("declined"), "{refused}");
    one.refrain(&["resume", "fits", "-q", "--max-iterations", "2"]).with_code(10);
    fs::remove_file(&hook).unwrap();
    one.refrain(&["move", "fits", "--to", remote]).with_code(0);
    // Another loop of that name, a loop that is here, and one that is nowhere.
    let name =
        ["--name", "fits", "-q", "-m", "1", "--gate", "false", "--no-promise", "--worktree", "-p", "Work."];
    two.refrain(&[&["start", "--command", &agent], &name[..]].concat()).with_code(10);
    let other = two.refrain(&["move", "fits", "--to", remote, "--with-changes"]).with_code(17).stderr;
    assert!(other.contains("has a loop of this name already"), "{other}");
    let here = two
        .refrain(&["move", "fits", "--from", remote, "--signer", &key_of(one, "fits")])
        .with_code(17)
        .stderr;
    assert!(here.contains("it is here already"), "{here}");
    two.refrain(&["move", "nowhere", "--from", remote]).with_code(3);
    assert!(!two.project().join(".git/refrain/moving").exists());
    let running = one.agent("waits", "echo x > $NOTES/runs; exec sleep 1000");
    let session =
        one.spawn(&["start", "--command", &running, "--name", "busy", "--worktree", "-q", "-p", "Work."]);
    one.wait_for_note("runs");
    let busy = one.refrain(&["move", "busy", "--to", remote]).with_code(17).stderr;
    assert!(busy.contains("has not stopped") && busy.contains("refrain pause busy"), "{busy}");
    one.refrain(&["cancel", "busy", "--now"]).with_code(0);
    session.wait().with_code(15);
}

#[test]
fn a_journal_that_was_changed_at_the_remote_is_not_taken() {
    let machines = Machines::paused();
    let Machines { one, two, remote } = &machines;
    machines.leave(&["--with-changes"]).with_code(0);
    let name = "refs/refrain/job/journal";
    let at = |args: &[&str]| one.git(&[&["-C", remote], args].concat()).trim().to_owned();
    let honest = at(&["rev-parse", name]);
    let journal = at(&["show", &format!("{name}:files/journal.jsonl")]) + "\n";
    let last: Value = serde_json::from_str(journal.lines().last().unwrap()).unwrap();
    let later = format!(
        "{{\"seq\":{},\"at\":{},\"event\":{{\"type\":\"loop.split\",\"data\":{{}}}}",
        last["seq"].as_u64().unwrap() + 1,
        last["at"]
    );
    let newer = journal.clone() + &chained(last["hash"].as_str().unwrap(), &later).0;
    let commands = journal.replacen("test -f README.md", "rm README.md", 1);
    let unsigned: String = journal
        .lines()
        .rev()
        .skip(1)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .map(|line| format!("{line}\n"))
        .collect();
    for (text, part) in [
        (newer, "a later one may have gone on"),
        (commands, "line 1"),
        (unsigned, "its last record is not the departure of the loop"),
    ] {
        let index = one.root().join("index").display().to_string();
        let git = |args: &[&str], input: &str| {
            let run = one
                .tool("git", &[&["-C", remote], args].concat())
                .env("GIT_INDEX_FILE", &index)
                .stdin(input)
                .run();
            run.with_code(0).stdout.trim().to_owned()
        };
        let blob = git(&["hash-object", "-w", "--stdin"], &text);
        git(&["read-tree", &honest], "");
        git(&["update-index", "--cacheinfo", &format!("100644,{blob},files/journal.jsonl")], "");
        let tree = git(&["write-tree"], "");
        let message = git(&["show", "--no-patch", "--format=%B", &honest], "");
        let forged = git(&["commit-tree", &tree, "-p", &honest, "-m", &message], "");
        git(&["update-ref", name, &forged], "");
        let refused = machines.take_accepted().with_code(1).stderr;
        assert!(refused.contains(part), "{refused}");
        assert!(!two.loop_dir("job").exists());
    }
    at(&["update-ref", name, &honest]);
    machines.take_accepted().with_code(0);
}

#[rstest]
#[case::before_the_push("before")]
#[case::after_the_push("after")]
fn a_departure_that_is_killed_is_finished_or_taken_back(#[case] when: &str) {
    let machines = Machines::paused();
    let Machines { one, two, .. } = &machines;
    arm(one, when, "push");
    let killed = machines.leave(&["--with-changes"]);
    assert_ne!(killed.code, 0);
    assert_eq!(one.status("job")["status"], "moved");
    one.refrain(&["resume", "job"]).with_code(17);
    if when == "before" {
        machines.take_accepted().with_code(3);
        // It is taken back as it was.
        machines.take(one, &[]).with_code(0);
        assert_eq!(one.status("job")["status"], "paused");
        assert!(worktree(one).join("half").exists());
        machines.take_accepted().with_code(17);
        machines.leave(&["--with-changes"]).with_code(0);
    }
    machines.take_accepted().with_code(0);
    two.refrain(&["resume", "job", "-q"]).with_code(0);
    two.refrain(&["verify", "job"]).with_code(0);
}

#[rstest]
#[case::before_the_push("before", "push")]
#[case::after_the_push("after", "push")]
#[case::before_the_branch("before", "update-ref")]
#[case::after_the_worktree("after", "worktree")]
#[case::before_the_files("before", "read-tree")]
fn an_arrival_that_is_killed_is_finished_by_the_same_command(#[case] when: &str, #[case] command: &str) {
    let machines = Machines::paused();
    let Machines { one, two, remote } = &machines;
    machines.leave(&["--with-changes"]).with_code(0);
    let path = wrapped(two);
    arm(two, when, command);
    let signer = key(one);
    let words = ["move", "job", "--from", remote, "--signer", &signer];
    let killed = two.command(&words).env("PATH", &path).run();
    assert_ne!(killed.code, 0);
    assert_ne!(two.refrain(&["resume", "job"]).code, 0);
    two.refrain(&words).with_code(0);
    machines.take(one, &[]).with_code(17);
    assert_eq!(fs::read_to_string(worktree(two).join("half")).unwrap(), "half\n");
    two.refrain(&["resume", "job", "-q"]).with_code(0);
    two.refrain(&["verify", "job"]).with_code(0);
    assert_eq!(two.git(&["rev-list", "--count", "main..work"]), "4\n");
}

/// An archived loop of the same name may have its worktree still.
#[rstest]
#[case::at_once(false)]
#[case::after_a_kill(true)]
fn an_arrival_leaves_the_worktree_of_another_loop_of_its_name(#[case] is_killed: bool) {
    let machines = Machines::paused();
    let Machines { one, two, remote } = &machines;
    machines.leave(&["--with-changes"]).with_code(0);
    let agent = two.agent("other", "echo x > kept");
    let start = ["start", "--command", &agent, "--name", "job", "-m", "1", "--worktree", "-q", "p"];
    two.refrain(&start).with_code(10);
    let other = worktree(two);
    two.refrain(&["archive", "job"]).with_code(0);
    let signer = key(one);
    let words = ["move", "job", "--from", remote, "--signer", &signer];
    if is_killed {
        let path = wrapped(two);
        arm(two, "after", "worktree");
        assert_ne!(two.command(&words).env("PATH", &path).run().code, 0);
    }
    two.refrain(&words).with_code(0);
    assert_eq!(worktree(two), other.with_file_name("job-2"));
    assert!(other.join("kept").is_file());
    assert_eq!(fs::read_to_string(worktree(two).join("half")).unwrap(), "half\n");
    two.refrain(&["resume", "job", "-q"]).with_code(0);
    assert_eq!(worktree(two), other.with_file_name("job-2"));
}

#[test]
fn a_link_in_the_place_of_a_log_does_not_leave_the_machine() {
    let machines = Machines::paused();
    let Machines { one, remote, .. } = &machines;
    let secret = one.root().join("secret");
    write(&secret, "hidden words\n");
    symlink(&secret, one.loop_dir("job").join("iterations/0001/more.log")).unwrap();
    machines.leave(&["--with-changes"]).with_code(0);
    let files =
        one.git(&["-C", remote, "ls-tree", "-r", "--name-only", "refs/refrain/job/journal", "files/"]);
    assert!(files.contains("files/iterations/0001/prompt.md") && !files.contains("more.log"), "{files}");
}
