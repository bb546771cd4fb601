//! `--sandbox`, end to end: real loops in real namespaces. What single attempts come to is in
//! `refrain-sandbox/tests/attempts.rs`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use testkit::{Run, Sandbox};

use crate::CLAIM;
use crate::surfaces::terminal::Terminal;

/// Outside of `/tmp`, which programs in a sandbox do not see. Agents may write their notes. None, which is printed, if this
/// machine has no namespaces to give, or the build is below such a folder.
#[expect(clippy::disallowed_methods, reason = "asked before there is a sandbox of the test")]
pub(crate) fn sandbox() -> Option<Sandbox> {
    let words = ["--user", "--map-root-user", "--mount", "--pid", "--net", "--fork", "true"];
    if !Command::new("unshare").args(words).output().is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: no namespaces can be made here");
        return None;
    }
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    if ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|folder| place.starts_with(folder)) {
        eprintln!("skipped: a sandbox hides {}; build elsewhere", place.display());
        return None;
    }
    let sandbox = Sandbox::new_in(env!("CARGO_BIN_EXE_refrain"), place);
    configure(&sandbox, "");
    Some(sandbox)
}

/// Writes a file, with its folders.
pub(super) fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    testkit::write(path, text);
}

pub(super) fn configure(sandbox: &Sandbox, more: &str) {
    let notes = sandbox.root().join("notes");
    let text = format!("[start]\nenv = {{ NOTES = {notes:?} }}\n[sandbox]\nwrite = [{notes:?}]\n{more}");
    write(&sandbox.root().join("home/config/refrain/config.toml"), text);
}

pub(crate) fn start(sandbox: &Sandbox, script: &str, more: &[&str]) -> Run {
    let agent = sandbox.agent("agent", script);
    let words = ["start", "--command", &agent, "--name", "job", "-p", "Mend it.", "--max-iterations", "1"];
    let usual = if more.iter().any(|word| word.starts_with("--sandbox=")) { &[][..] } else { &["--sandbox"] };
    sandbox.refrain(&[&words[..], usual, more].concat())
}

#[test]
fn a_loop_commits_and_is_proven_in_its_sandbox() {
    let Some(sandbox) = sandbox() else { return };
    let script = format!(
        "echo work > work\ngit status --short >> $NOTES/status\ncat $REFRAIN_CONTEXT_FILE > /dev/null\n{CLAIM}"
    );
    let gate = "tests=grep -q work work && test -z \"$(ls $HOME/state/refrain)\"";
    let run = start(&sandbox, &script, &["--gate", gate, "--git-workflow", "commit"]).with_code(0);
    assert!(run.stdout.contains("a sandbox of namespaces, Landlock and seccomp"), "{}", run.stdout);
    assert_eq!(sandbox.note("status"), "?? work\n");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-only", "HEAD"]).trim(), "work");
    assert_eq!(sandbox.status("job")["verified"], true);
    assert_eq!(sandbox.git(&["status", "--short"]).trim(), "", "the sandbox leaves nothing");
    let prompt = sandbox.kept_text("job", "0001", "prompt.md");
    assert!(prompt.contains("You run in a sandbox"), "{prompt}");
    sandbox.no_process_is_left();
}

#[test]
fn an_agent_accesses_only_paths_of_its_policy() {
    let Some(sandbox) = sandbox() else { return };
    let home = sandbox.root().join("home");
    write(&home.join(".ssh/id"), "key");
    write(&home.join(".netrc"), "login");
    write(&home.join(".bashrc"), "# mine\n");
    write(&sandbox.root().join("other/file"), "other");
    let script = r#"
    try() { if sh -c "$2" 2> /dev/null; then echo "$1 open"; else echo "$1 refused"; fi >> $NOTES/said; }
    try bashrc 'echo x >> $HOME/.bashrc'
    try other 'echo x >> ../other/file'
    try etc 'echo x > /etc/refrain-test'
    try ssh 'cat $HOME/.ssh/id'
    try netrc 'cat $HOME/.netrc'
    try hook 'echo x > .git/hooks/pre-commit'
    try config 'git config core.fsmonitor ./x'
    try own 'ls .git/refrain/loops'
    try token 'test -n "$MY_TOKEN"'
    try key 'test -n "$MY_KEY"'
    try approve "env -i PATH=$PATH HOME=$HOME $REFRAIN approve job"
    try worktree 'echo x > file'
    try branch 'git branch other'
    try processes 'test $(ls -d /proc/[0-9]* | wc -l) -gt 9'
    "#;
    let agent = sandbox.agent("agent", &format!("{script}\n{CLAIM}"));
    let program = format!("REFRAIN={}", env!("CARGO_BIN_EXE_refrain"));
    let words =
        ["start", "--sandbox", "--command", &agent, "--name", "job", "-p", "Mend it.", "--env", "MY_KEY=1"];
    sandbox.command(&[&words[..], &["--env", &program]].concat()).env("MY_TOKEN", "1").run().with_code(0);
    let expected = "bashrc refused\nother refused\netc refused\nssh refused\nnetrc refused\nhook refused\nconfig refused\n\
        own refused\ntoken refused\nkey open\napprove refused\nworktree open\nbranch open\nprocesses refused\n";
    assert_eq!(sandbox.note("said"), expected);
    assert_eq!(fs::read_to_string(home.join(".bashrc")).unwrap(), "# mine\n");
}

/// The prompt comes on standard input, which is no file of Refrain that could be opened once more for writing.
#[test]
fn an_agent_does_not_reach_the_record_of_its_prompt_by_its_standard_input() {
    let Some(sandbox) = sandbox() else { return };
    let script = r#"
    cat > $NOTES/read
    readlink /proc/self/fd/0 > $NOTES/file
    for forge in 'echo forged > /proc/self/fd/0' 'echo forged >> /proc/self/fd/0' 'truncate -s 0 /proc/self/fd/0'; do
        sh -c "$forge" 2> /dev/null && echo "$forge" >> $NOTES/forged
    done
    cat /proc/self/fd/0 > $NOTES/read-again
    "#;
    start(&sandbox, &format!("{script}\n{CLAIM}"), &["--prompt-mode", "stdin"]).with_code(0);
    let prompt = sandbox.kept_text("job", "0001", "prompt.md");
    assert!(prompt.starts_with("Mend it."), "{prompt}");
    assert_eq!(sandbox.note("read"), prompt);
    assert_eq!(sandbox.note("read-again"), prompt);
    assert_eq!(sandbox.note("forged"), "");
    assert!(!sandbox.note("file").contains("prompt.md"), "{}", sandbox.note("file"));
}

#[test]
fn memory_is_bounded_or_the_header_says_that_it_is_not() {
    let Some(sandbox) = sandbox() else { return };
    let run = start(&sandbox, CLAIM, &[]).with_code(0);
    let is_bounded = run.stdout.contains("memory bounded to ");
    let says_not = run.stdout.contains("memory and CPU are not bounded");
    assert!(is_bounded != says_not, "{}", run.stdout);
    sandbox.refrain(&["archive", "job"]).with_code(0);
    configure(&sandbox, "memory = \"64MiB\"\n");
    let run = start(&sandbox, &format!("head -c 300M /dev/zero | tail | wc -c >> $NOTES/said\n{CLAIM}"), &[]);
    if is_bounded {
        assert!(run.with_code(0).stdout.contains("memory bounded to 64.0 MiB"));
        assert_eq!(sandbox.note("said"), "0\n");
    } else {
        let said = run.with_code(1).stderr;
        assert!(
            said.contains("memory and CPU cannot be bounded here") && said.contains("systemd-run"),
            "{said}"
        );
    }
}

#[test]
fn an_agent_that_stops_all_processes_it_can_name_is_ended_in_time() {
    let Some(sandbox) = sandbox() else { return };
    for (script, name) in [
        ("kill -STOP -1; kill -KILL -1; sleep 600", "stopped"),
        ("trap '' INT TERM\nsleep 600 & sleep 600 & wait; wait", "deaf"),
    ] {
        let agent = sandbox.agent(name, script);
        let words = [
            "start",
            "--sandbox",
            "--command",
            &agent,
            "--name",
            name,
            "-p",
            "Mend it.",
            "--max-iterations",
            "1",
        ];
        sandbox.refrain(&[&words[..], &["--timeout", "1s", "--timeout-grace", "1s"]].concat()).with_code(10);
        sandbox.no_process_is_left();
    }
}

#[test]
fn processes_left_by_an_agent_end_with_its_sandbox() {
    let Some(sandbox) = sandbox() else { return };
    let script = format!("for i in 1 2 3 4; do (setsid sh -c 'sleep 600 & sleep 600' &) ; done\n{CLAIM}");
    start(&sandbox, &script, &[]).with_code(0);
    sandbox.no_process_is_left();
}

#[test]
fn a_signal_and_an_exit_code_are_those_of_the_agent() {
    let Some(sandbox) = sandbox() else { return };
    for (name, script, exit) in
        [("code", "exit 7", "\"code\":7"), ("signal", "kill -SEGV $$", "\"signal\":11")]
    {
        let agent = sandbox.agent(name, script);
        sandbox.refrain(&[
            "start",
            "--sandbox",
            "--command",
            &agent,
            "--name",
            name,
            "-p",
            "x",
            "--max-iterations",
            "1",
        ]);
        let journal = sandbox.journal(name);
        let finished = journal.iter().find(|event| event["event"]["type"] == "attempt.finished").unwrap();
        assert!(finished.to_string().contains(exit), "{finished}");
    }
}

#[test]
fn a_port_of_the_machine_is_forwarded_if_it_is_named() {
    let Some(sandbox) = sandbox() else { return };
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    let answer = std::thread::spawn(move || {
        let (mut client, _) = server.accept().unwrap();
        let mut said = [0; 5];
        client.read_exact(&mut said).unwrap();
        client.write_all(b"world\n").unwrap();
        said
    });
    let ask =
        r#"bash -c 'exec 3<>/dev/tcp/127.0.0.1/'$PORT' && printf hello >&3 && read line <&3 && echo $line'"#;
    let script = format!("{ask} >> $NOTES/said 2>/dev/null || echo refused >> $NOTES/said\n{CLAIM}");
    let variable = format!("PORT={port}");
    start(&sandbox, &script, &["--env", &variable]).with_code(0);
    assert_eq!(sandbox.note("said"), "refused\n");
    sandbox.refrain(&["archive", "job"]).with_code(0);
    start(&sandbox, &script, &["--env", &variable, "--sandbox-localhost", &port]).with_code(0);
    assert_eq!(sandbox.note("said"), "refused\nworld\n");
    assert_eq!(&answer.join().unwrap(), b"hello");
}

#[test]
fn a_refused_host_is_recorded_and_reported() {
    let Some(sandbox) = sandbox() else { return };
    let ask = r#"bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; printf "CONNECT evil.example:443 HTTP/1.1\r\n\r\n" >&3; read line <&3; echo $line >> $NOTES/said'"#;
    let agent = sandbox.agent("agent", ask);
    let words =
        ["start", "--sandbox", "--command", &agent, "--name", "job", "-p", "x", "--max-iterations", "2"];
    let run = sandbox.refrain(&words).with_code(10);
    assert!(sandbox.note("said").starts_with("HTTP/1.1 403 Forbidden"), "{}", sandbox.note("said"));
    assert!(run.stdout.contains("the sandbox refused evil.example:443 (1 time)"), "{}", run.stdout);
    let journal = sandbox.journal("job");
    let finished = journal.iter().find(|event| event["event"]["type"] == "attempt.finished").unwrap();
    assert_eq!(finished["event"]["data"]["refused"][0]["host"], "evil.example:443");
    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    assert!(prompt.contains("It refused these hosts to the last run: evil.example:443"), "{prompt}");

    assert!(run.stdout.contains("refrain sandbox allow job evil.example:443 allows it"), "{}", run.stdout);
    let allow = ["sandbox", "allow", "job", "evil.example=127.0.0.1"];
    sandbox.refrain(&allow).with_code(0);
    assert!(sandbox.refrain(&["show", "job"]).stdout.contains("evil.example:443=127.0.0.1"));
    sandbox.refrain(&["resume", "job", "--max-iterations", "3"]).with_code(10);
    let said = sandbox.note("said");
    assert!(said.lines().last().unwrap().starts_with("HTTP/1.1 50"), "it is dialled now: {said}");
    sandbox.refrain(&["sandbox", "allow", "job", "127.0.0.1"]).with_code(2);
    sandbox.refrain(&["sandbox", "allow", "ghost", "evil.example"]).with_code(3);
}

#[test]
fn registries_of_the_lock_file_are_allowed_and_shown() {
    let Some(sandbox) = sandbox() else { return };
    let lock = r#"{"packages": {"a": {
        "resolved": "https://packages.example/a/-/a-1.tgz"
    }}}"#;
    write(&sandbox.project().join("package-lock.json"), lock);
    let run = start(&sandbox, CLAIM, &[]).with_code(0);
    assert!(run.stdout.contains("packages.example:443"), "{}", run.stdout);
    let warning =
        "the sandbox reaches packages.example:443: package-lock.json names it, and your own tools do not";
    assert!(run.stderr.contains(warning), "{}", run.stderr);
    configure(&sandbox, "registries = false\n");
    sandbox.refrain(&["archive", "job"]).with_code(0);
    let shown = start(&sandbox, CLAIM, &[]).with_code(0).stdout;
    assert!(!shown.contains("packages.example"), "{shown}");
}

#[test]
fn a_gate_that_the_sandbox_would_break_is_named_at_the_start() {
    let Some(sandbox) = sandbox() else { return };
    let other = Sandbox::new(env!("CARGO_BIN_EXE_refrain"));
    let program = other.agent("check", "true");
    let refused = start(&sandbox, CLAIM, &["--gate", &format!("tests={program} --all")]).with_code(2).stderr;
    assert!(refused.contains(&format!("the sandbox hides the program {program} of gate tests")), "{refused}");
    assert!(!sandbox.loop_dir("job").exists());
    let gate = format!("tests=sh {program} || true");
    let noted = start(&sandbox, CLAIM, &["--gate", &gate]).with_code(0).stderr;
    assert!(noted.contains(&format!("gate tests names {program}, which the sandbox hides")), "{noted}");
}

#[test]
fn a_loop_leaves_its_sandbox_only_by_an_option() {
    let Some(sandbox) = sandbox() else { return };
    let look = "if test -n \"$(ls $HOME/state/refrain 2> /dev/null)\"; then echo open; else echo hidden; fi >> $NOTES/said";
    start(&sandbox, look, &[]).with_code(10);
    sandbox.refrain(&["resume", "job", "--max-iterations", "2"]).with_code(10);
    let words = ["tick", "begin", "/refrain:loop", "--args", "--resume job --max-iterations 3"];
    let session = sandbox.refrain(&words).with_code(1).stderr;
    assert!(session.contains("job runs in a sandbox, and a session runs its agent itself"), "{session}");
    let run = sandbox.refrain(&["resume", "job", "--no-sandbox", "--max-iterations", "3"]).with_code(10);
    assert!(run.stdout.contains("resumed without its sandbox"), "{}", run.stdout);
    assert!(!run.stderr.contains("has no effect"), "{}", run.stderr);
    assert_eq!(sandbox.note("said"), "hidden\nhidden\nopen\n");
    let journal = sandbox.journal("job");
    let left: Vec<_> = journal.iter().filter(|event| event["event"]["data"]["no_sandbox"] == true).collect();
    assert_eq!(left.len(), 1);
    let refused = sandbox.refrain(&["sandbox", "allow", "job", "evil.example"]).with_code(17).stderr;
    assert!(refused.contains("it has no sandbox"), "{refused}");
}

#[test]
fn a_program_that_the_sandbox_hides_is_refused_at_the_start() {
    let Some(sandbox) = sandbox() else { return };
    let other = Sandbox::new(env!("CARGO_BIN_EXE_refrain"));
    let agent = other.agent("agent", CLAIM);
    let words = ["start", "--command", &agent, "--name", "job", "-p", "x"];
    let refused = sandbox.refrain(&[&words[..], &["--sandbox"]].concat()).with_code(2).stderr;
    assert!(refused.contains("the sandbox hides the program") && refused.contains(&agent), "{refused}");
    assert!(!sandbox.loop_dir("job").exists());
    let noted = sandbox.refrain(&[&words[..], &["--sandbox=auto"]].concat()).with_code(0).stderr;
    assert!(noted.contains("the loop runs without a sandbox"), "{noted}");
}

/// A worktree of the loop's own does not show what lies in the project and is hidden there.
#[test]
fn a_program_of_the_project_is_not_seen_from_a_worktree_in_another_folder() {
    let Some(sandbox) = sandbox() else { return };
    let agent = sandbox.project().join("agent");
    fs::copy(sandbox.agent("agent", CLAIM), &agent).unwrap();
    configure(&sandbox, &format!("hide = [{:?}]", sandbox.project()));
    let words = ["start", "--command", "./agent", "--name", "job", "-p", "x", "--worktree"];
    let refused = sandbox.refrain(&[&words[..], &["--sandbox"]].concat()).with_code(2).stderr;
    assert!(refused.contains("the sandbox hides the program"), "{refused}");
}

#[test]
fn the_header_says_that_there_could_be_a_sandbox() {
    let Some(sandbox) = sandbox() else { return };
    let agent = sandbox.agent("agent", CLAIM);
    for (name, more, expected) in [("one", &[][..], true), ("two", &["--no-sandbox"], false)] {
        let words = [&["start", "--command", &agent, "--name", name, "-p", "x"], more].concat();
        let (_, shown) = Terminal::open(&sandbox, &words, &[]).wait();
        assert_eq!(shown.contains("sandbox: available, add --sandbox"), expected, "{shown}");
    }
    let script = format!("{} start --command {agent} -p x 2>&1", env!("CARGO_BIN_EXE_refrain"));
    let run = sandbox.tool("sh", &["-c", &script]).run().with_code(0);
    assert!(run.stdout.contains("sandbox: available, add --sandbox\n"), "{}", run.stdout);
}

#[test]
fn a_machine_without_namespaces_refuses_the_start_and_says_why() {
    let Some(sandbox) = sandbox() else { return };
    let agent = sandbox.agent("agent", &format!("echo ran >> $NOTES/ran\n{CLAIM}"));
    let refrain = env!("CARGO_BIN_EXE_refrain");
    let none = |words: &str| {
        let script = format!("echo 0 > /proc/sys/user/max_user_namespaces && exec {refrain} {words}");
        sandbox.tool("unshare", &["-Ur", "sh", "-c", &script]).run()
    };
    let words = format!("start --sandbox --command {agent} --name job -p x");
    let refused = none(&words).with_code(1).stderr;
    for words in ["user.max_user_namespaces = 0", "sudo sysctl user.max_user_namespaces", "--no-sandbox"] {
        assert!(refused.contains(words), "{words:?} is not in {refused}");
    }
    assert!(!sandbox.loop_dir("job").exists());
    assert_eq!(sandbox.note("ran"), "");
    assert!(refused.contains("--sandbox=files --worktree"), "{refused}");
    let auto = none(&words.replace("--sandbox", "--sandbox=auto")).with_code(0);
    assert!(auto.stderr.contains("the loop runs without a sandbox"), "{}", auto.stderr);
    let doctor = none("doctor --json");
    assert!(doctor.stdout.contains("user.max_user_namespaces = 0"), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("--sandbox=files can be made"), "{}", doctor.stdout);
    let files = words.replace("--sandbox", "--sandbox=files --worktree").replace("job", "files");
    assert!(none(&files).with_code(0).stdout.contains("a sandbox of Landlock and seccomp"));
}

#[test]
fn without_namespaces_an_agent_accesses_only_paths_of_its_policy() {
    let Some(sandbox) = sandbox() else { return };
    let home = sandbox.root().join("home");
    write(&home.join(".ssh/id"), "key");
    write(&home.join(".bashrc"), "# mine\n");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("PORT={}", server.local_addr().unwrap().port());
    let project = format!("PROJECT={}", sandbox.project().display());
    let script = r#"
    try() { if bash -c "$2" 2> /dev/null; then echo "$1 open"; else echo "$1 refused"; fi >> $NOTES/said; }
    try worktree 'echo work > work && git add work && git commit -qm Work'
    try temporary 'f=$(mktemp) && echo x > $f && grep -q x $f'
    try tmp 'echo x > /tmp/refrain-test-$PORT'
    try bashrc 'echo x >> $HOME/.bashrc'
    try project 'echo x >> $PROJECT/file'
    try ssh 'cat $HOME/.ssh/id'
    try hook 'echo x > $PROJECT/.git/hooks/pre-commit'
    try config 'git config core.fsmonitor ./x'
    try own 'cat $PROJECT/.git/refrain/loops/job/journal.jsonl'
    try network 'exec 3<>/dev/tcp/127.0.0.1/$PORT'
    try environment 'cat /proc/$PPID/environ > /dev/null && cat /proc/1/environ'
    try link 'echo "gitdir: /nowhere" > .git'
    (setsid sleep 600 &)
    "#;
    let gate = "tests=grep -q work work && ! (echo x >> $HOME/.bashrc) && ! cat $HOME/.ssh/id";
    let more = ["--sandbox=files", "--worktree", "--gate", gate, "--env", &port, "--env", &project];
    let run = start(&sandbox, &format!("{script}\n{CLAIM}"), &more).with_code(0);
    let notes = sandbox.root().join("notes");
    let policy = "a sandbox of Landlock and seccomp; writes its worktree, NOTES; reaches every host";
    let policy = policy.replace("NOTES", notes.to_str().unwrap());
    for (shown, label) in [
        (run, "sandbox "),
        (sandbox.refrain(&["status", "job"]), "sandbox "),
        (sandbox.refrain(&["show", "job"]), ""),
        (sandbox.refrain(&["report", "job"]), "sandbox "),
        (sandbox.refrain(&["report", "job", "--html"]), "<dt>sandbox</dt><dd class=\"plain\">"),
    ] {
        let text = shown.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&format!("{label}{policy}")), "{text}");
    }
    let expected = "worktree open\ntemporary open\ntmp refused\nbashrc refused\nproject refused\nssh refused\n\
        hook refused\nconfig refused\nown refused\nnetwork open\nenvironment refused\nlink open\n";
    assert_eq!(sandbox.note("said"), expected);
    assert_eq!(fs::read_to_string(home.join(".bashrc")).unwrap(), "# mine\n");
    assert_eq!(sandbox.status("job")["verified"], true);
    let prompt = sandbox.kept_text("job", "0001", "prompt.md");
    assert!(prompt.contains("the folder in TMPDIR"), "{prompt}");
    let worktree = sandbox.status("job")["worktree"].as_str().unwrap().to_owned();
    let log = ["-C", &worktree, "log", "-1", "--format=%s"];
    assert_eq!(sandbox.git(&log).trim(), "Work", "the link to the git folder is as it was");
    assert_eq!(fs::read_dir(sandbox.loop_dir("job").join("tmp")).unwrap().count(), 0);
    sandbox.no_process_is_left();
}

#[test]
fn a_repository_in_tmp_is_refused_by_the_sandbox_that_hides_it() {
    let sandbox = Sandbox::new_in(env!("CARGO_BIN_EXE_refrain"), Path::new("/tmp"));
    let words = ["start", "--sandbox=files", "--worktree", "--command", "true", "--name", "job", "-p", "x"];
    let refused = sandbox.refrain(&words).with_code(2).stderr;
    assert!(refused.contains("--sandbox=files hides /tmp"), "{refused}");
    assert!(!sandbox.loop_dir("job").exists());
}

#[test]
fn a_sandbox_without_namespaces_needs_a_worktree_and_limits_no_network() {
    let Some(sandbox) = sandbox() else { return };
    let files = ["start", "--sandbox=files", "--command", "true", "--name", "job", "-p", "x"];
    let refused = sandbox.refrain(&files).with_code(2).stderr;
    assert!(
        refused.contains("needs a worktree of the loop's own") && refused.contains("--worktree"),
        "{refused}"
    );
    let words = [&files[..], &["--worktree", "--sandbox-host", "evil.example"]].concat();
    let refused = sandbox.refrain(&words).with_code(2).stderr;
    assert!(refused.contains("no effect with --sandbox=files"), "{refused}");
    configure(&sandbox, &format!("hide = [{:?}]\n", sandbox.root().join("notes/secret")));
    write(&sandbox.root().join("notes/secret"), "key");
    let refused = sandbox.refrain(&[&files[..], &["--worktree"]].concat()).with_code(1).stderr;
    assert!(refused.contains("cannot be hidden in"), "{refused}");
    assert!(!sandbox.loop_dir("job").exists());
}

#[test]
fn the_configuration_asks_for_a_sandbox_and_an_option_takes_it_back() {
    let Some(sandbox) = sandbox() else { return };
    configure(&sandbox, "mode = \"on\"\n");
    let agent = sandbox
        .agent("agent", &format!("ls $HOME/state > /dev/null 2>&1 && echo open >> $NOTES/said\n{CLAIM}"));
    fs::create_dir_all(sandbox.root().join("home/state/refrain")).unwrap();
    let start = |name: &str, more: &[&str]| {
        let words = ["start", "--command", &agent, "--name", name, "-p", "x"];
        sandbox.refrain(&[&words[..], more].concat()).with_code(0)
    };
    assert!(start("inside", &[]).stdout.contains("a sandbox of"));
    assert!(!start("outside", &["--no-sandbox"]).stdout.contains("a sandbox of"));
    assert!(!start("off", &["--sandbox=off"]).stdout.contains("a sandbox of"));
}

#[test]
fn a_project_cannot_widen_a_sandbox() {
    let Some(sandbox) = sandbox() else { return };
    configure(&sandbox, "mode = \"on\"\n");
    let agent = sandbox.agent("agent", CLAIM);
    let start =
        |name: &str| sandbox.refrain(&["start", "--yes", "--command", &agent, "--name", name, "-p", "x"]);
    write(&sandbox.project().join("refrain.toml"), "[sandbox]\nmode = \"off\"\n");
    assert!(start("less").with_code(0).stdout.contains("a sandbox of"));
    for key in
        ["hosts = [\"evil.example\"]", "localhost = [1]", "write = [\"/\"]", "hide = []", "processes = 5000"]
    {
        write(&sandbox.project().join("refrain.toml"), format!("[sandbox]\n{key}\n"));
        let refused = start("more").with_code(2).stderr;
        assert!(refused.contains("sandbox"), "{refused}");
    }
}

#[test]
fn the_same_policy_holds_after_the_runner_was_killed() {
    let Some(sandbox) = sandbox() else { return };
    let agent = sandbox.agent(
        "agent",
        &format!("echo x >> $HOME/.bashrc 2>/dev/null && echo open >> $NOTES/said\necho ready >> $NOTES/ready\ntest -e $NOTES/second && {{ {CLAIM}; exit; }}\nsleep 600"),
    );
    let session = sandbox.spawn(&["start", "--sandbox", "--command", &agent, "--name", "job", "-p", "x"]);
    sandbox.wait_for_note("ready");
    session.kill();
    write(&sandbox.root().join("notes/second"), "");
    sandbox.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(sandbox.note("said"), "");
    sandbox.no_process_is_left();
    assert_eq!(sandbox.git(&["status", "--short"]).trim(), "");
}
