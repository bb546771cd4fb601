//! Every invalid input: its exit code, one line that names the value and what is accepted, and no side effect.

use testkit::Sandbox;

use crate::{CLAIM, sandbox};

/// A command line, its exit code, and the words of its message: the value, and what is accepted.
type Case = (&'static [&'static str], i32, &'static [&'static str]);

/// The errors of `start`. `AGENT` is replaced by an existing agent.
const STARTS: &[Case] = &[
    (&["start"], 2, &["--command"]),
    (&["start", "do it"], 2, &["--command"]),
    (&["start", "--command", "AGENT"], 2, &["PROMPT"]),
    (&["start", "--command", "", "p"], 2, &["--command", "program"]),
    (&["start", "--command", "  ", "p"], 2, &["--command", "program"]),
    (&["start", "--command", "AGENT 'x", "p"], 2, &["--command", "'x", "quotation"]),
    (&["start", "--command", "AGENT", "--prompt", ""], 2, &["prompt", "accepted"]),
    (&["start", "--command", "AGENT", "--prompt", " \n\t "], 2, &["prompt", "accepted"]),
    (&["start", "--command", "AGENT", "-"], 2, &["prompt", "accepted"]),
    (&["start", "--command", "AGENT", "--prompt-file", "missing.md"], 2, &["--prompt-file", "missing.md"]),
    (&["start", "--command", "AGENT", "--prompt-file", "."], 2, &["--prompt-file", "."]),
    (&["start", "--command", "AGENT", "--prompt-file", "latin1.md"], 2, &["latin1.md", "UTF-8"]),
    (&["start", "--command", "AGENT", "--prompt", "a", "b"], 2, &["--prompt", "PROMPT"]),
    (
        &["start", "--command", "AGENT", "--prompt", "a", "--prompt-file", "README.md"],
        2,
        &["--prompt", "--prompt-file"],
    ),
    (&["start", "--command", "AGENT", "p", "--max-iterations", "0"], 2, &["'0'", "1 to 200"]),
    (&["start", "--command", "AGENT", "p", "--iterations", "201"], 2, &["'201'", "1 to 200"]),
    (
        &["start", "--command", "AGENT", "p", "--exact", "3", "--max-iterations", "4"],
        2,
        &["--max-iterations: not with --exact"],
    ),
    (
        &["start", "--command", "AGENT", "p", "--infinite", "--max-iterations", "4"],
        2,
        &["--max-iterations: not with --infinite", "--max-cost"],
    ),
    (&["start", "--command", "AGENT", "p", "--infinite", "--loop"], 2, &["'--infinite'", "'--loop'"]),
    (&["start", "--command", "AGENT", "p", "--max-iterations", "201"], 2, &["'201'", "1 to 200"]),
    (&["start", "--command", "AGENT", "p", "--max-iterations=-1"], 2, &["'-1'", "1 to 200"]),
    (
        &["start", "--command", "AGENT", "p", "--max-iterations", "many"],
        2,
        &["'many'", "--max-iterations", "1 to 200"],
    ),
    (
        &["start", "--command", "AGENT", "p", "--max-iterations", "1.5"],
        2,
        &["'1.5'", "--max-iterations", "1 to 200"],
    ),
    // A shell takes `Tests=` for a variable, is content, and has run nothing: no gate.
    (&["start", "--command", "AGENT", "p", "--gate", "Tests=./test.sh"], 2, &["Tests", "nothing", "a-z"]),
    (&["start", "--command", "AGENT", "p", "--gate", "A=1 B='2 3'"], 2, &["nothing", "a-z"]),
    (&["start", "--command", "AGENT", "p", "--soft-gate", "Unit-Tests=./test.sh"], 2, &["Unit-Tests", "a-z"]),
    (&["start", "--command", "AGENT", "p", "--gate", "=./test.sh"], 2, &["--gate", "a-z"]),
    (&["start", "--command", "AGENT", "p", "--protect", "!x"], 2, &["--protect", "!x", "no exceptions"]),
    (
        &["start", "--command", "AGENT", "p", "--critique-every", "0"],
        2,
        &["'0'", "--critique-every", "above 0"],
    ),
    (&["start", "--command", "AGENT", "p", "--critique-every", "x"], 2, &["'x'", "above 0"]),
    (&["start", "--command", "AGENT", "p", "--name", "Bad"], 2, &["Bad", "a-z"]),
    (&["start", "--command", "AGENT", "p", "--name", ""], 2, &["--name", "accepted"]),
    (&["start", "--command", "AGENT", "p", "--name=-x"], 2, &["-x", "a-z"]),
    (&["start", "--command", "AGENT", "p", "--name", "../up"], 2, &["../up", "a-z"]),
    (
        &[
            "start",
            "--command",
            "AGENT",
            "p",
            "--name",
            "a23456789012345678901234567890123456789012345678901234567890abcde",
        ],
        2,
        &["65", "64"],
    ),
    (&["start", "--command", "AGENT", "p", "--agent", "hal9000"], 2, &["hal9000", "generic"]),
    (&["start", "--command", "AGENT", "p", "--backend", "hal9000"], 2, &["hal9000", "generic"]),
    (
        &["start", "--command", "AGENT", "p", "--prompt-mode", "telepathy"],
        2,
        &["telepathy", "auto", "arg", "stdin", "env", "file"],
    ),
    (&["start", "--command", "AGENT", "p", "--output-format", "yaml"], 2, &["yaml", "text"]),
    // A stream format that is not parsed: every attempt would end as if it had been cut off.
    (
        &["start", "--command", "opencode run --format default", "p"],
        2,
        &["--format default", "opencode", "--format json"],
    ),
    (
        &["start", "--agent", "opencode", "--agent-arg=--format=text", "p"],
        2,
        &["--format text", "opencode", "--format json"],
    ),
    (
        &["start", "--command", "gemini -o json", "p"],
        2,
        &["--output-format json", "gemini", "--output-format stream-json"],
    ),
    (
        &[
            "start",
            "--command",
            "AGENT",
            "--agent",
            "gemini",
            "--agent-arg=--output-format",
            "--agent-arg=text",
            "p",
        ],
        2,
        &["--output-format text", "gemini", "--output-format stream-json"],
    ),
    (
        &["start", "--command", "AGENT", "p", "--promise-match", "loose"],
        2,
        &["loose", "tag", "plain", "substring"],
    ),
    (
        &["start", "--command", "AGENT", "p", "--completion-promise", ""],
        2,
        &["--completion-promise", "accepted"],
    ),
    (
        &["start", "--command", "AGENT", "p", "--completion-promise", "  "],
        2,
        &["--completion-promise", "accepted"],
    ),
    (
        &["start", "--command", "AGENT", "p", "--no-promise", "--completion-promise", "X"],
        2,
        &["--no-promise", "--completion-promise"],
    ),
    (&["start", "--command", "AGENT", "p", "--timeout", "soon"], 2, &["soon", "--timeout", "90s"]),
    (&["start", "--command", "AGENT", "p", "--timeout", "0"], 2, &["'0'", "--timeout", "90s"]),
    (&["start", "--command", "AGENT", "p", "--timeout="], 2, &["--timeout", "90s"]),
    (&["start", "--command", "AGENT", "p", "--idle-timeout=-5"], 2, &["-5", "--idle-timeout", "90s"]),
    (
        &["start", "--command", "AGENT", "p", "--max-duration", "never"],
        2,
        &["never", "--max-duration", "90s"],
    ),
    (&["start", "--command", "AGENT", "p", "--pause", "a while"], 2, &["a while", "--pause", "90s"]),
    (&["start", "--command", "AGENT", "p", "--env", "NOEQUALS"], 2, &["NOEQUALS", "NAME=VALUE"]),
    (&["start", "--command", "AGENT", "p", "--env", "=v"], 2, &["=v", "NAME=VALUE"]),
    (&["start", "--command", "AGENT", "p", "--env", "A B=c"], 2, &["A B=c", "NAME=VALUE"]),
    (&["start", "--command", "AGENT", "p", "-w", ""], 2, &["--working-dir", "folder"]),
    (&["start", "--command", "AGENT", "p", "--timeout", "99999999999"], 2, &["99999999999", "366d"]),
    (&["start", "--agent", "claude", "p", "--max-cost", "1e300"], 2, &["1e300", "1000000"]),
    (
        &["start", "--agent", "claude", "p", "--max-tokens", "99999999999999999999"],
        2,
        &["999", "500k", "18446"],
    ),
    (&["start", "--command", "AGENT", "p", "--env", "REFRAIN_DEPTH=0"], 2, &["REFRAIN_"]),
    (&["start", "--command", "AGENT", "p", "--working-dir", "nowhere"], 2, &["--working-dir", "nowhere"]),
    (&["start", "--command", "AGENT", "p", "--working-dir", "README.md"], 2, &["--working-dir", "README.md"]),
    (
        &["start", "--command", "AGENT", "--prompt-mode", "arg", "--prompt-file", "long.md"],
        2,
        &["200000", "stdin"],
    ),
    (
        &["start", "--command", "AGENT", "--prompt-mode", "env", "--prompt-file", "long.md"],
        2,
        &["200000", "stdin"],
    ),
    (&["start", "--command", "AGENT", "p", "--colour", "blue"], 2, &["--colour"]),
    (&["start", "--command", "AGENT", "p", "--notify=loudly"], 2, &["loudly", "terminal", "desktop"]),
    (&["start", "--command", "AGENT", "p", "--notify-command", ""], 2, &["--notify-command", "program"]),
    (
        &["start", "--command", "AGENT", "p", "--notify-command", "say 'x"],
        2,
        &["--notify-command", "quotation"],
    ),
    (&["loop", "start", "--command", "AGENT", "p", "-m", "0"], 2, &["'0'", "1 to 200"]),
    (&["-C", "nowhere", "start", "--command", "AGENT", "p"], 2, &["-C", "nowhere"]),
    (&["start", "--command", "no-such-program-anywhere", "p"], 1, &["no-such-program-anywhere"]),
    (&["start", "--command", "./README.md", "p"], 1, &["./README.md"]),
    (&["start", "--command", "./missing.sh --flag", "p"], 1, &["./missing.sh"]),
];

/// The errors of the other verbs, in a project without loops.
const OTHERS: &[Case] = &[
    (&["dance"], 2, &["unknown verb 'dance'"]),
    (&["config"], 2, &["a verb is missing", "refrain config --help"]),
    (&["-C", "."], 2, &["a verb is missing", "refrain --help"]),
    (&["loop", "dance"], 2, &["dance"]),
    (&["--loud"], 2, &["--loud"]),
    (&["status", "Ghost"], 2, &["Ghost", "a-z"]),
    (&["status", "../etc"], 2, &["../etc", "a-z"]),
    (&["status", "ghost"], 3, &["ghost"]),
    (&["show", "ghost"], 3, &["ghost"]),
    (&["logs", "ghost"], 3, &["ghost"]),
    (&["logs", "-f", "ghost"], 3, &["ghost"]),
    (&["watch", "ghost"], 3, &["ghost"]),
    (&["pause", "ghost"], 3, &["ghost"]),
    (&["cancel", "ghost"], 3, &["ghost"]),
    (&["cancel", "ghost", "--now"], 3, &["ghost"]),
    (&["steer", "ghost", "left"], 3, &["ghost"]),
    (&["archive", "ghost"], 3, &["ghost"]),
    (&["verify", "ghost"], 3, &["ghost"]),
    (&["resume", "ghost"], 3, &["ghost"]),
    (&["status"], 2, &["status", "ID"]),
    (&["watch"], 2, &["watch", "ID"]),
    (&["pause"], 2, &["pause", "ID"]),
    (&["cancel"], 2, &["cancel", "ID"]),
    (&["resume"], 2, &["resume", "ID"]),
    (&["verify"], 2, &["verify", "ID"]),
    (&["steer"], 2, &["steer", "ID"]),
    (&["run", "x", "nope.md"], 2, &["PROMPT_FILE nope.md"]),
    (&["resume", "--last"], 2, &["--last"]),
    (&["resume", "--last", "--all"], 2, &["--last", "--all"]),
    (&["resume", "ghost", "--all"], 2, &["--all"]),
    (&["resume", "ghost", "--max-iterations", "0"], 2, &["'0'", "--max-iterations", "from 1 on"]),
    (&["resume", "ghost", "--max-duration", "x"], 2, &["'x'", "90s"]),
    (&["cancel", "ghost", "--all"], 2, &["--all"]),
    (&["logs", "ghost", "--iteration", "0"], 2, &["'0'", "--iteration"]),
    (&["logs", "ghost", "-f", "--iteration", "1"], 2, &["--iteration"]),
    (&["steer", "ghost"], 2, &["TEXT"]),
    (&["steer", "ghost", " "], 2, &["TEXT"]),
    (&["completions", "tcsh"], 2, &["tcsh", "bash", "zsh"]),
    (&["promise", "--promise-match", "loose"], 2, &["loose", "tag", "plain", "substring"]),
    (&["promise", "--completion-promise", ""], 2, &["--completion-promise", "accepted"]),
];

fn prepared() -> (Sandbox, String) {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    testkit::write(&sandbox.project().join("latin1.md"), b"caf\xe9");
    testkit::write(&sandbox.project().join("long.md"), "x".repeat(200_000));
    (sandbox, agent)
}

/// Runs every case, and reports all failures.
fn check(cases: &[Case]) {
    let (sandbox, agent) = prepared();
    let before = sandbox.snapshot();
    let mut wrong = Vec::new();
    for (words, code, names) in cases {
        let words: Vec<String> = words.iter().map(|word| word.replace("AGENT", &agent)).collect();
        let run = sandbox.refrain(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let line = run.stderr.lines().next().unwrap_or_default();
        let mut say =
            |what: String| wrong.push(format!("{}: {what}\n    {}", words.join(" "), run.stderr.trim_end()));
        if run.code != *code {
            say(format!("exit code {}, not {code}", run.code));
        }
        // Hints may follow, indented; the message itself is one line.
        if run.stderr.lines().skip(1).any(|hint| !hint.starts_with("  ")) || line.is_empty() {
            say("not one line".to_owned());
        }
        names
            .iter()
            .filter(|name| !line.contains(*name))
            .for_each(|name| say(format!("{name} is not named")));
        if !run.stdout.is_empty() {
            say(format!("it prints {:?}", run.stdout));
        }
        if sandbox.snapshot() != before {
            say("something was touched".to_owned());
            break;
        }
    }
    assert!(wrong.is_empty(), "{} refusals are not as they should be:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn start_refuses_invalid_arguments_and_touches_nothing() {
    check(STARTS);
}

#[test]
fn every_other_verb_refuses_invalid_arguments_and_touches_nothing() {
    check(OTHERS);
}

#[test]
fn an_unknown_verb_gets_suggestions() {
    let (sandbox, _) = prepared();
    for (words, meant) in [
        (["stop"].as_slice(), "did you mean refrain pause or refrain cancel?"),
        (&["strat"], "did you mean refrain start?"),
        (&["ps"], "did you mean refrain list?"),
        (&["loop", "continue"], "did you mean refrain loop resume?"),
        (&["plan", "stop"], "did you mean refrain plan pause or refrain plan cancel?"),
        (&["plan", "chek"], "did you mean refrain plan check?"),
        (&["memory", "serch"], "did you mean refrain memory search?"),
    ] {
        let run = sandbox.refrain(words).with_code(2);
        assert!(run.stderr.contains(meant), "{words:?}: {}", run.stderr);
    }
    for hidden in ["drve", "generat", "acp-bridg"] {
        let run = sandbox.refrain(&[hidden]).with_code(2);
        assert!(!run.stderr.contains("did you mean"), "{hidden}: {}", run.stderr);
    }
}

#[test]
fn an_id_that_does_not_exist_is_answered_with_the_nearest() {
    let (sandbox, agent) = prepared();
    sandbox.refrain(&["start", "--command", &agent, "--name", "mend-it", "p"]).with_code(0);
    for verb in ["status", "logs", "archive", "cancel", "resume"] {
        let run = sandbox.refrain(&[verb, "mendit"]).with_code(3);
        assert!(run.stderr.contains("did you mean mend-it?"), "{verb}: {}", run.stderr);
    }
    assert!(!sandbox.refrain(&["status", "other"]).with_code(3).stderr.contains("did you mean"));
    sandbox.refrain(&["start", "--command", &agent, "--name", "kk", "p"]).with_code(0);
    let run = sandbox.refrain(&["status", "kj"]).with_code(3);
    assert!(run.stderr.contains("did you mean kk?"), "{}", run.stderr);
}

#[test]
fn looking_touches_nothing() {
    let (sandbox, _) = prepared();
    let before = sandbox.snapshot();
    for words in [
        ["list"].as_slice(),
        &["list", "--json"],
        &["list", "--all-projects"],
        &["cancel", "--all"],
        &["resume", "--all"],
        &["--help"],
        &["--version"],
    ] {
        sandbox.refrain(words).with_code(0);
        assert!(sandbox.snapshot() == before, "{words:?} touched something");
    }
    assert_eq!(sandbox.refrain(&["list", "--json"]).json(), serde_json::json!([]));
}

#[test]
fn a_loop_in_a_loop_in_a_loop_is_refused() {
    let (sandbox, agent) = prepared();
    let before = sandbox.snapshot();
    for depth in ["2", "3", "nonsense"] {
        let run = sandbox
            .command(&["start", "--command", &agent, "p"])
            .env("REFRAIN_DEPTH", depth)
            .run()
            .with_code(17);
        assert_eq!(run.stderr.lines().filter(|line| !line.starts_with("  ")).count(), 1, "{}", run.stderr);
        assert!(sandbox.snapshot() == before, "something was touched");
    }
}

/// What an agent leaves running is ended with its attempt, so a runner of its own would be too, without a message.
#[test]
fn from_inside_an_attempt_nothing_is_handed_to_a_process_of_its_own() {
    let (sandbox, agent) = prepared();
    let capped = ["start", "--command", "false", "--name", "other", "-m", "1", "p"];
    sandbox.refrain(&capped).with_code(10);
    let script = format!(
        "try() {{ \"$REFRAIN\" \"$@\" > $NOTES/said 2>&1; echo \"$? $(cat $NOTES/said | tr '\\n' ' ')\" >> $NOTES/tried; }}
try start --command {agent} --name inner --detach p
try resume other --detach
try resume --all
try start --command {agent} --name inner p
{CLAIM}"
    );
    let outer = sandbox.agent("outer", &script);
    let program = format!("REFRAIN={}", env!("CARGO_BIN_EXE_refrain"));
    sandbox.refrain(&["start", "--command", &outer, "--name", "outer", "--env", &program, "p"]).with_code(0);
    let tried = sandbox.note("tried");
    let lines: Vec<_> = tried.lines().collect();
    for (line, says) in
        lines.iter().zip(["in the background", "from inside an attempt", "from inside an attempt"])
    {
        assert!(line.starts_with("17 ") && line.contains("outer") && line.contains(says), "{tried}");
        assert!(line.contains("outside"), "what to do: {tried}");
    }
    assert!(lines[0].contains("foreground") && lines[3].starts_with("0 "), "{tried}");
}

#[test]
fn what_the_user_has_in_the_place_of_the_notes_stays() {
    let (sandbox, agent) = prepared();
    let place = sandbox.project().join(".refrain");
    std::os::unix::fs::symlink("README.md", &place).unwrap();
    sandbox.refrain(&["start", "--command", &agent, "p"]).with_code(17);
    std::fs::remove_file(&place).unwrap();
    testkit::write(&place, "precious\n");
    let before = sandbox.snapshot();
    let refused = sandbox.refrain(&["start", "--command", &agent, "p"]).with_code(17).stderr;
    assert!(refused.contains(".refrain is no folder") && refused.contains("--worktree"), "{refused}");
    assert!(sandbox.snapshot() == before, "something was touched");
}
