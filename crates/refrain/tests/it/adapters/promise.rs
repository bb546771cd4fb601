//! `refrain promise`: a message on stdin, 0 if it is a claim, 1 if not. The table of messages stands in the core's tests.

use serde_json::json;

use crate::sandbox;

const TAG: &str = "<promise>COMPLETE</promise>";

/// Last lines that end with the tag and claim nothing, as the audit found them in real messages. Without a full stop a gate
/// may decide about them.
fn mentions() -> [(String, bool); 7] {
    [
        (format!("I have not yet earned {TAG}"), true),
        (format!("When done I will print {TAG}"), true),
        (format!("I must not say {TAG}"), true),
        (format!("Remaining: 3 tasks. Once they pass: {TAG}"), true),
        (format!("All done. {TAG}"), true),
        (format!("Next time I will output {TAG}."), false),
        (format!("Two tests still fail. When all tests pass I will print {TAG}."), false),
    ]
}

#[test]
fn a_tag_after_other_words_is_a_claim_only_with_a_gate() {
    let sandbox = sandbox();
    for mode in ["tag", "plain"] {
        for (message, claims) in mentions() {
            let words = ["promise", "--promise-match", mode];
            let strict = sandbox.command(&words).stdin(&message).run().with_code(1);
            assert!(
                strict.stdout.contains("no claim: the promise counts only alone on its line"),
                "{message}"
            );
            let gated = sandbox.command(&[&words[..], &["--gated"]].concat()).stdin(&message).run();
            assert_eq!(gated.code, i32::from(!claims), "{mode}: {message}: {}", gated.stdout);
        }
    }
    let words = ["promise", "--gated", "--promise-match", "substring"];
    let refused = sandbox.command(&words).stdin(TAG).run().with_code(2).stderr;
    assert!(refused.contains("--gated: it has no effect with --promise-match substring"), "{refused}");
}

#[test]
fn a_loop_without_a_gate_does_not_end_by_a_mention() {
    for (message, _) in mentions() {
        let sandbox = sandbox();
        let agent = sandbox.agent("agent", &format!("echo $REFRAIN_ITERATION > work.txt\necho '{message}'"));
        let words =
            ["start", "--command", &agent, "-p", "Mend it.", "--name", "job", "--max-iterations", "2"];
        sandbox.refrain(&words).with_code(10);
        let status = sandbox.status("job");
        assert_eq!((&status["claim"], &status["iteration"]), (&json!(null), &json!(2)), "{message}");
        let prompt = sandbox.kept_text("job", "0002", "prompt.md");
        assert!(prompt.contains("CLAIM NOT HEARD: the promise counts only alone on its line"), "{prompt}");
    }
}

#[test]
fn a_loop_with_a_gate_takes_a_tag_at_the_end_of_the_last_line() {
    for (message, claims) in mentions() {
        let sandbox = sandbox();
        let agent = sandbox.agent("agent", &format!("echo $REFRAIN_ITERATION > work.txt\necho '{message}'"));
        let words =
            ["start", "--command", &agent, "-p", "Mend it.", "--name", "job", "--max-iterations", "2"];
        let run = sandbox.refrain(&[&words[..], &["--gate", "test -s work.txt"]].concat());
        assert_eq!(run.code, if claims { 0 } else { 10 }, "{message}");
        let soft = [&words[..6], &["two", "--max-iterations", "1", "--soft-gate", "true"]].concat();
        sandbox.refrain(&soft).with_code(10);
    }
}

#[test]
fn a_claim_is_0_and_no_claim_is_1() {
    let sandbox = sandbox();
    let tag = TAG;
    let cases: [(&[&str], String, i32); 15] = [
        (&[], format!("All done.\n\n{tag}\n"), 0),
        (&[], format!("- **{tag}**.\nGood bye.\n"), 0),
        (&[], "<promise>  COMPLETE  </promise>\n".into(), 0),
        (&[], format!("I will print {tag} when I am done.\n"), 1),
        (&[], format!("```\n{tag}\n```\n"), 1),
        (&[], format!("> {tag}\n"), 1),
        (&[], format!("`{tag}`\n"), 1),
        (&[], format!("    {tag}\n"), 1),
        (&[], "<promise>complete</promise>\n".into(), 1),
        (&[], "COMPLETE\n".into(), 1),
        (&["--promise-match", "plain"], "Well.\n\n**complete**\n".into(), 0),
        (&["--promise-match", "plain"], "It is not complete\n".into(), 1),
        (&["--promise-match", "substring"], "it is COMPLETE, I think".into(), 0),
        (&["--completion-promise", "ALL TESTS PASS"], "<promise>ALL TESTS PASS</promise>".into(), 0),
        (&["--completion-promise", "ALL TESTS PASS"], String::new(), 1),
    ];
    for (options, message, code) in cases {
        let words = [&["promise"], options].concat();
        let run = sandbox.command(&words).stdin(&message).run();
        assert_eq!(run.code, code, "{options:?} {message:?}: {}", run.stdout);
    }
}

#[test]
fn a_message_may_be_anything() {
    let sandbox = sandbox();
    let escapes = b"\x1b[31m<promise>COMPLETE</promise>\x1b[0m\n";
    sandbox.command(&["promise"]).stdin(escapes).run().with_code(0);
    sandbox.command(&["promise"]).stdin(b"\xff\xfe\n<promise>COMPLETE</promise>\n").run().with_code(0);
    let long = format!("{}\n<promise>COMPLETE</promise>\n", "x".repeat(4 << 20));
    sandbox.command(&["promise"]).stdin(long).run().with_code(0);
}

#[test]
fn a_known_agent_without_a_promise_needs_a_required_gate() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo ran >> $NOTES/ran; exit 1");
    let words = |kind: &'static str| {
        vec![
            "start",
            "--agent",
            kind,
            "--command",
            &agent,
            "-p",
            "x",
            "--name",
            "job",
            "--max-iterations",
            "1",
        ]
    };
    for (more, who) in [
        (&["--no-promise"][..], "--no-promise"),
        (&["--no-promise", "--soft-gate", "true"], "--no-promise"),
        (&["--no-promise", "--mode", "research"], "--no-promise"),
        (&[], "REFRAIN_PROMISE: start.promise = false"),
    ] {
        let words = [&words("claude")[..], more].concat();
        let mut command = sandbox.command(&words);
        if more.is_empty() {
            command = command.env("REFRAIN_PROMISE", "false");
        }
        let refused = command.run().with_code(2).stderr;
        assert!(refused.contains(who), "{more:?}: {refused}");
        for says in ["exits with 0 whatever it did", "--gate CMD", "--success-command CMD"] {
            assert!(refused.contains(says), "{more:?}: {refused}");
        }
        assert!(!sandbox.loop_dir("job").exists() && sandbox.note("ran").is_empty());
    }
    for more in [&["--gate", "true"][..], &["--success-command", "test -e no-such-file"]] {
        sandbox.refrain(&[&words("claude")[..], &["--no-promise"], more].concat()).with_code(10);
        sandbox.refrain(&["archive", "job"]).with_code(0);
    }
    // A command has nothing else to say.
    let quiet = sandbox.agent("quiet", "true");
    let words = ["start", "--command", &quiet, "-p", "x", "--name", "job", "--no-promise"];
    sandbox.refrain(&words).with_code(0);
    let status = sandbox.status("job");
    assert_eq!((&status["claim"]["source"], &status["verified"]), (&json!("exit-code"), &json!(null)));
}
