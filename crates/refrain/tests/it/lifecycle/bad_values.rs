//! Each verb with a bad value, in a project with a loop that has ended: exit code 2, a line that names the value and what
//! is accepted, and nothing is touched. `tick` and `hook` have exit codes of their own.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use testkit::write;

use crate::{CLAIM, sandbox};

/// A command line, and the words of its message: the value, and what is accepted.
const CASES: &[(&[&str], &[&str])] = &[
    (&["start", "--command", "true", "--exact", "0", "p"], &["'0'", "1 to 200"]),
    (&["research", "--iterations", "0"], &["'0'", "1 to 200"]),
    (&["implement", "0"], &["0", "1 to 200", "--infinite has no maximum"]),
    (&["run", "task", "README.md", "-n", "0"], &["'0'", "1 to 200"]),
    (&["run", "!!", "README.md"], &["'!!'", "a-z"]),
    (&["run", "task", "missing.md"], &["missing.md"]),
    (&["run", "task", "/dev/stdin"], &["/dev/stdin is no regular file", "write it into a file first"]),
    (&["status", "--at", "origin"], &["status --at origin needs the ID", "refrain list --at origin"]),
    (&["verify", "--at", "origin"], &["verify --at origin needs the ID", "refrain list --at origin"]),
    (&["run", "task", "long.md", "-n", "1"], &["long.md cannot be read as a specification", "65536 bytes"]),
    (
        &["start", "--command", "true", "--max-cost", "5", "p"],
        &["generic does not say what it costs", "accepted: --max-iterations"],
    ),
    (
        &["start", "--command", "true", "--max-tokens", "5", "p"],
        &["generic does not say what it uses", "accepted: --max-iterations"],
    ),
    (&["start", "--colour", "blue", "p"], &["'--colour'", "accepted: what refrain start --help lists"]),
    (&["answer", "job"], &["TEXT is missing", "refrain answer ID TEXT"]),
    (&["start", "--yes", "--yes", "p"], &["'--yes'", "accepted: once"]),
    (&["start", "--yes=3", "p"], &["'--yes'", "accepted: the option alone"]),
    (&["start", "--model", "", "p"], &["'--model <NAME>'", "accepted: a value that is not empty"]),
    (&["start", "--commit-template", "", "p"], &["--commit-template", "accepted: text"]),
    (&["plan", "check", "--plan", "."], &["is no regular file", "accepted: a plan in Markdown"]),
    (&["plan", "add", "--after", "a/b", "x"], &["\"a/b\" is no task id", "accepted: 1 to 100"]),
    (&["cancel", "job", "--all"], &["'[ID]'", "'--all'", "accepted: one of them"]),
    (&["resume", "job", "--max-cost", "free"], &["'free'", "--max-cost"]),
    (&["resume", "--from", "missing.json"], &["missing.json"]),
    (&["resume", "--state-file", "missing.json"], &["missing.json"]),
    (&["approve", "job", "--max-duration", "soon"], &["'soon'", "90s"]),
    (&["answer", "job", " "], &["TEXT"]),
    (&["status", "--state-file", "missing.json"], &["missing.json"]),
    (&["list", "--plan", "Bad"], &["'Bad'", "a-z"]),
    (&["usage", "--since", "lately"], &["'lately'", "--since"]),
    (&["usage", "--by", "colour"], &["'colour'", "project", "model"]),
    (&["watch", "Bad"], &["'Bad'", "a-z"]),
    (&["logs", "job", "--iteration", "99"], &["iteration 99", "1 to 1"]),
    (&["show", "Bad"], &["'Bad'", "a-z"]),
    (&["pause", "Bad"], &["'Bad'", "a-z"]),
    (&["cancel", "Bad"], &["'Bad'", "a-z"]),
    (&["steer", "job", " "], &["TEXT"]),
    (&["steer", "Hello there"], &["which loop? accepted: the ID of a loop, then TEXT"]),
    (&["report", "ID"], &["put the name of a loop or plan in place of ID", "refrain list"]),
    (&["archive", "Bad"], &["'Bad'", "a-z"]),
    (&["verify", "Bad"], &["'Bad'", "a-z"]),
    (&["diff", "job", "--iteration", "99"], &["iteration 99", "1 to 1"]),
    (&["merge", "Bad"], &["'Bad'", "a-z"]),
    (&["discard", "Bad"], &["'Bad'", "a-z"]),
    (&["open", "Bad"], &["'Bad'", "a-z"]),
    (&["report", "Bad"], &["'Bad'", "a-z"]),
    (&["export", "job", "--as", "yaml"], &["'yaml'", "synthex", "json"]),
    (&["plan", "run", "--jobs", "0"], &["'0'", "1 to 64"]),
    (&["plan", "check", "--plan", "missing.md"], &["missing.md"]),
    (&["plan", "waves", "--jobs", "many"], &["'many'", "1 to 64"]),
    (&["plan", "show", "1", "--max-spec-tokens", "x"], &["'x'", "--max-spec-tokens"]),
    (&["plan", "status", "Bad"], &["'Bad'", "a-z"]),
    (&["plan", "resume", "-n", "0"], &["'0'", "from 1 on"]),
    (&["plan", "pause", "Bad"], &["'Bad'", "a-z"]),
    (&["plan", "cancel", "Bad"], &["'Bad'", "a-z"]),
    (&["plan", "tune", "--name", "Bad", "1"], &["'Bad'", "a-z"]),
    (&["plugin", "install", "cursor"], &["'cursor'", "claude"]),
    (&["mcp", "--root", "nowhere"], &["--root", "nowhere"]),
    (&["serve", "--port", "99999"], &["'99999'", "0 to 65535"]),
    (&["serve", "--port", "x"], &["'x'", "0 to 65535"]),
    (&["serve", "--host", "somewhere"], &["somewhere", "127.0.0.1"]),
    (&["list", "--limit", "x"], &["'x'", "whole numbers"]),
    (&["list", "--limit", "0"], &["'0'", "from 1 on"]),
    (&["serve", "--root", ""], &["--root", "a path that is not empty"]),
    (&["report", "job", "--output", ""], &["--output", "a path that is not empty"]),
    (&["steer", "job"], &["TEXT is missing", "refrain steer ID TEXT"]),
    (&["usage", "--since", "-5d"], &["--since", "-5d"]),
    (
        &["start", "--command", "true", "--notify-command", "no-such-prog", "p"],
        &["no-such-prog", "not found"],
    ),
    (&["start", "--command", "true", "--gate", "if", "p"], &["a shell cannot read it", "yntax"]),
    (&["config", "set", "slack.channels", "C1"], &["C1 is no list", "'[\"C1\"]'"]),
    (&["trust", "--plan", "missing.md"], &["missing.md", "accepted: a plan in Markdown"]),
    (&["diff", "job", "--iteration", "x"], &["'x'", "from 1 on"]),
    (&["start", "--command", "true", "--worktree", "--no-worktree", "p"], &["--worktree", "--no-worktree"]),
    (&["start", "--command", "true", "--gate", "unit/tests=true", "p"], &["unit/tests", "a-z, 0-9 and '-'"]),
    (&["start", "--command", "true", "--gate", "a\u{1}b=true", "p"], &["a-z, 0-9 and '-'"]),
    (&["start", "--command", "true", "--gate-retries", "101", "p"], &["'101'", "0 to 100"]),
    (&["start", "--command", "true", "--stuck-threshold", "x", "p"], &["'x'", "1 to 100"]),
    (&["start", "--command", "true", "--sandbox-localhost", "0", "p"], &["'0'", "1 to 65535"]),
    (&["memory", "forget", "--all"], &["--all", "for good", "accepted: --all --yes"]),
    (
        &["memory", "add", concat!("The token is ghp", "_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8.")],
        &["looks like a secret", "accepted: the text without the secret"],
    ),
    (&["memory", "list", "--kind", "rumour"], &["'rumour'", "fact"]),
    (&["memory", "add", "--importance", "11", "x"], &["'11'"]),
    (&["memory", "forget", "--loop", "Bad"], &["'Bad'", "a-z"]),
    (&["config", "show", "--colour"], &["--colour"]),
    (&["config", "get", "start.nonsense"], &["nonsense", "max-iterations"]),
    (&["config", "set", "start.max-iterations", "201"], &["201", "1 to 200"]),
    (&["config", "set", "start.agent", "cluade"], &["cluade", "acp", "did you mean claude?"]),
    (&["config", "set", "start.on-stuck", "agent=nosuch"], &["nosuch", "claude", "agents.NAME.command"]),
    (&["config", "set", "start.agnt", "claude"], &["agnt", "did you mean agent?"]),
    (&["gc", "--colour"], &["--colour"]),
    (&["docs", "nonsense"], &["nonsense", "first-loop", "glossary"]),
    (&["docs", "init"], &["unknown topic 'init'", "refrain init --help"]),
    (&["docs", "plan"], &["refrain plan --help", "refrain docs lists all topics"]),
    (&["docs", "claims"], &["did you mean refrain docs claims-and-gates?"]),
    (&["start", "--command", "true", "--sandbox", "--no-sandbox", "p"], &["--sandbox", "--no-sandbox"]),
    (&["start", "--command", "true", "--no-sandbox", "--sandbox=files", "p"], &["--sandbox", "--no-sandbox"]),
    (&["start", "--command", "true", "--prompt-file", "."], &["it is a folder", "a readable file"]),
    (&["start", "--command", "true", "--prompt-file", "/dev/zero"], &["more than 10485760 bytes"]),
    (&["run", "task", "-"], &["PROMPT_FILE -", "accepted: a file"]),
    (&["docs", "cli"], &["cli", "refrain VERB --help"]),
    (&["docs", "architecture"], &["architecture", "docs/architecture.md"]),
    (&["docs", "contributing"], &["contributing", "CONTRIBUTING.md"]),
    (&["plan", "new", " "], &["the idea is empty", "accepted"]),
    (&["init", "--colour"], &["--colour"]),
    (&["trust", "--hash", "xyz"], &["refrain.toml"]),
    (&["promise", "--promise-match", "loose"], &["'loose'", "tag", "substring"]),
    (&["demo", "--colour"], &["--colour"]),
    (&["doctor", "--autostart", "maybe"], &["'maybe'", "on", "off"]),
    (&["completions", "tcsh"], &["'tcsh'", "bash"]),
    (&["top", "Bad"], &["Bad"]),
];

#[test]
fn each_verb_refuses_a_bad_value_and_touches_nothing() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    write(&sandbox.project().join("long.md"), "It works.\n".repeat(7000));
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    let before = sandbox.snapshot();
    let mut wrong = Vec::new();
    for (words, names) in CASES {
        let run = sandbox.refrain(words);
        let mut say = |what: String| wrong.push(format!("{words:?}: {what}\n    {}", run.stderr.trim_end()));
        if run.code != 2 {
            say(format!("exit code {}", run.code));
        }
        if run.stderr.lines().count() != 1 {
            say("it is not one line".to_owned());
        }
        // Words of Rust's own parsers.
        let rust = ["..=", "in string", "address syntax", "literal"];
        rust.iter()
            .filter(|word| run.stderr.contains(*word))
            .for_each(|word| say(format!("{word:?} is no plain word")));
        names
            .iter()
            .filter(|name| !run.stderr.contains(*name))
            .for_each(|name| say(format!("{name} is not named")));
        if sandbox.snapshot() != before {
            say("something was touched".to_owned());
            break;
        }
    }
    assert!(wrong.is_empty(), "{} refusals are not as they should be:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_value_that_looks_like_an_option_gets_no_misleading_tip() {
    let sandbox = sandbox();
    for words in [["start", "--pause", "-1s"], ["start", "--name", "-x"], ["list", "--frobnicate", "p"]] {
        let refused = sandbox.refrain(&words).with_code(2).stderr;
        assert!(!refused.contains("tip"), "{words:?}: {refused}");
    }
}

#[test]
fn without_a_home_nothing_is_written_where_all_users_can_write() {
    let sandbox = sandbox();
    let homeless = |words: &[&str]| {
        let names = ["HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];
        names.into_iter().fold(sandbox.command(words), |command, name| command.env(name, "")).run()
    };
    let before = sandbox.snapshot();
    let refused = homeless(&["start", "--command", "true", "p"]).with_code(2).stderr;
    assert!(refused.contains("HOME is not set; accepted: "), "{refused}");
    assert_eq!(sandbox.snapshot(), before);
    homeless(&["completions", "bash"]).with_code(0);
    homeless(&["hook", "stop", "--agent", "claude"]).with_code(0);
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_at_the_start() {
    let sandbox = sandbox();
    let project = sandbox.project();
    let allow = |mode| fs::set_permissions(&project, fs::Permissions::from_mode(mode)).unwrap();
    allow(0o555);
    // Root writes all the same.
    if fs::create_dir(project.join("probe")).is_err() {
        let refused =
            sandbox.refrain(&["start", "--command", "true", "--name", "job", "p"]).with_code(1).stderr;
        assert!(refused.contains("Permission denied") && refused.contains("--worktree"), "{refused}");
        assert!(!sandbox.loop_dir("job").exists());
    }
    allow(0o755);
}

/// A script takes what it gets for the whole. Whether a change was made does not depend on its message.
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo more > work.txt; {CLAIM}"));
    let start = ["start", "--command", &agent, "--name", "job", "--git-workflow", "commit", "p"];
    sandbox.refrain(&start).with_code(0);
    let program = env!("CARGO_BIN_EXE_refrain");
    let full =
        |words: &str| sandbox.tool("sh", &["-c", &format!("exec {program} {words} > /dev/full")]).run();
    for words in [
        "diff job",
        "list",
        "status job",
        "logs job",
        "show job",
        "report job",
        "verify job",
        "doctor",
        "config show",
        "completions bash",
        "man",
        "--help",
        "list --json",
    ] {
        let run = full(words).with_code(1);
        assert!(
            run.stderr.contains("the result cannot be written: No space left on device"),
            "{words}: {}",
            run.stderr
        );
    }
    full("archive job").with_code(0);
}

#[test]
fn verbs_with_codes_of_their_own_refuse_bad_values_too() {
    let sandbox = sandbox();
    let before = sandbox.snapshot();
    for (words, code, says) in [
        (["tick"].as_slice(), 1, "a verb is missing; accepted: what refrain tick --help lists"),
        (&["tick", "finish", "job", "perhaps"], 1, "'perhaps'"),
        (&["tick", "begin", "/refrain:loop", "--args", "p", "--max", "0"], 1, "'0'"),
        (&["-C", "nowhere", "tick", "advance", "job"], 1, "nowhere"),
        (&["tick", "advance", "job", "-Cnowhere"], 1, "nowhere"),
        (&["-C", ".", "tick", "advance", "--frob"], 1, "'--frob'"),
        (&["-C.", "tick", "advance", "job"], 2, "no loop job"),
        (&["hook", "dance", "--agent", "claude"], 0, ""),
        (&["-C", ".", "hook", "dance", "--agent", "claude"], 0, ""),
        (&["-C", "nowhere", "hook", "stop", "--agent", "claude"], 0, ""),
    ] {
        let run = sandbox.refrain(words).with_code(code);
        assert!(run.stderr.contains(says), "{words:?}: {}", run.stderr);
        assert!(sandbox.snapshot() == before, "{words:?} touched something");
    }
}

#[test]
fn an_argument_that_is_not_utf8_is_refused() {
    let sandbox = sandbox();
    let before = sandbox.snapshot();
    let word = OsStr::from_bytes(b"a\xff");
    for (words, code) in [
        (["steer", "job"].as_slice(), 2),
        (&["start", "--command", "true"], 2),
        (&["-C"], 2),
        (&["plan", "run"], 2),
        (&["hook"], 0),
    ] {
        let run = sandbox.command(words).arg(word).run().with_code(code);
        let says =
            if code == 2 { "refrain: \"a\\xFF\" is not UTF-8; accepted: arguments in UTF-8\n" } else { "" };
        assert_eq!(run.stderr, says, "{words:?}");
    }
    assert!(sandbox.snapshot() == before, "something was touched");
}

#[test]
fn a_worktree_that_is_gone_is_not_opened() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo work > work.txt\n{CLAIM}"));
    let start =
        ["start", "--command", &agent, "--name", "job", "--worktree", "--git-workflow", "commit", "p"];
    sandbox.refrain(&start).with_code(0);
    let worktree = sandbox.status("job")["worktree"].as_str().unwrap().to_owned();
    assert!(!std::path::Path::new(&worktree).exists(), "a completed loop gives it back");
    let run = sandbox.refrain(&["open", "job"]).with_code(17);
    assert!(run.stderr.contains(&worktree) && run.stderr.contains("is not there any more"), "{}", run.stderr);
}
