//! Loops that an agent's own session drives: `tick` for any agent that can run a command, `hook` for those that have hooks.

use serde_json::{Value, json};
use testkit::{Run, Sandbox, Session};

use crate::{plain_folder, sandbox};

const COMMAND: &str = "/refrain:loop";

/// Begins a loop in a session of this name.
fn begin(sandbox: &Sandbox, session: &str, id: &str, more: &[&str]) {
    let words = ["tick", "begin", COMMAND, "--agent", "claude", "--session-id", session, "--name", id];
    let begun = sandbox.refrain(&[&words, more].concat()).with_code(0);
    assert_eq!(begun.stdout.lines().next(), Some(id));
}

fn input(sandbox: &Sandbox, session: &str, event: &str, more: Value) -> String {
    let mut input = json!({ "session_id": session, "cwd": sandbox.project(), "hook_event_name": event });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    input.to_string()
}

/// Ends a session's turn with this message; returns the hook's answer.
fn stops(sandbox: &Sandbox, session: &str, message: &str) -> Option<String> {
    reason(&hook(sandbox, &input(sandbox, session, "Stop", json!({ "last_assistant_message": message }))))
}

fn hook(sandbox: &Sandbox, input: &str) -> Run {
    sandbox.command(&["hook", "stop", "--agent", "claude"]).stdin(input).run().with_code(0)
}

/// Why the session must continue; none if it may stop.
fn reason(run: &Run) -> Option<String> {
    if run.stdout.is_empty() {
        return None;
    }
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    // How its loop ended, for its user.
    if answer["systemMessage"].is_string() && answer.as_object().unwrap().len() == 1 {
        return None;
    }
    assert_eq!((&answer["decision"], answer.as_object().unwrap().len()), (&json!("block"), 2));
    Some(answer["reason"].as_str().unwrap().to_owned())
}

#[test]
fn a_session_continues_until_it_makes_its_promise() {
    let sandbox = sandbox();
    begin(&sandbox, "s", "job", &["--args", "Mend it.", "--max", "5"]);
    let first = sandbox.refrain(&["tick", "advance", "job"]).with_code(0).stdout;
    assert!(first.starts_with("[loop job iteration 1/5]\nMend it.\n"), "{first}");
    let status = sandbox.status("job");
    assert_eq!((&status["kind"], &status["status"]), (&json!("session"), &json!("running")));
    assert_eq!(status["runner"]["alive"], json!(null), "its process is unknown");

    assert_eq!(stops(&sandbox, "another", "<promise>COMPLETE</promise>"), None, "not its loop");
    let second = stops(&sandbox, "s", "I will print <promise>COMPLETE</promise> when it is done.").unwrap();
    assert!(second.starts_with("[loop job iteration 2/5]\n\nMend it.\n"), "{second}");
    assert!(second.contains("\n## Run 2 of 5\n"), "{second}");
    assert_eq!(stops(&sandbox, "s", "Well.\n<promise>COMPLETE</promise>"), None);
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["charged"]), (&json!("completed"), &json!(2)));
    assert_eq!(stops(&sandbox, "s", "more"), None, "it is over");
    sandbox.refrain(&["tick", "advance", "job"]).with_code(3);
}

#[test]
fn a_claim_is_proven_before_the_session_may_stop() {
    let sandbox = sandbox();
    begin(&sandbox, "s", "job", &["--args", "Make it.", "--gate", "test -e made"]);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    let refused = stops(&sandbox, "s", "<promise>COMPLETE</promise>").unwrap();
    assert!(refused.contains("CLAIM REFUSED: gate test failed (`test -e made`): exit code 1"), "{refused}");
    assert!(refused.starts_with("[loop job iteration 2/20]"), "{refused}");
    testkit::write(&sandbox.project().join("made"), "");
    assert_eq!(stops(&sandbox, "s", "<promise>COMPLETE</promise>"), None);
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["verified"]), (&json!("completed"), &json!(true)));
    sandbox.no_process_is_left();
}

#[test]
fn a_proof_that_takes_long_is_held_for() {
    let sandbox = sandbox();
    let gate = sandbox.gate("slow");
    let check = format!("test ! -e claimed || read -r _ < {}", gate.path().display());
    begin(&sandbox, "s", "job", &["--args", "Make it.", "--gate", &format!("slow={check}")]);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    testkit::write(&sandbox.project().join("claimed"), "");
    let input =
        input(&sandbox, "s", "Stop", json!({ "last_assistant_message": "<promise>COMPLETE</promise>" }));
    let asked: Session = sandbox.command(&["hook", "stop", "--agent", "claude"]).stdin(&input).spawn();
    sandbox.wait_for_event("job", "attempt.finished");
    let held = sandbox.spawn(&["tick", "hold", "job"]);
    gate.let_one_pass();
    let held = held.wait();
    assert!(held.with_code(0).stdout.starts_with("completed: "), "it is over, and proven");
    assert_eq!(reason(&asked.wait().with_code(0)), None);
    sandbox.refrain(&["tick", "hold", "job"]).with_code(3);
    let logs = sandbox.refrain(&["logs", "job"]).with_code(0).stdout;
    assert!(logs.contains("== iteration 1\n<promise>COMPLETE</promise>\n"), "{logs}");
}

#[test]
fn two_sessions_of_one_project_have_nothing_to_do_with_each_other() {
    let sandbox = sandbox();
    for (session, id) in [("s", "one"), ("t", "two")] {
        begin(&sandbox, session, id, &["--args", id]);
        sandbox.refrain(&["tick", "advance", id]).with_code(0);
    }
    let goes_on = stops(&sandbox, "t", "well").unwrap();
    assert!(goes_on.starts_with("[loop two iteration 2/20]"), "{goes_on}");
    assert_eq!(stops(&sandbox, "s", "<promise>COMPLETE</promise>"), None);
    assert_eq!(sandbox.status("one")["status"], "completed");
    assert_eq!(
        (&sandbox.status("two")["status"], &sandbox.status("two")["iteration"]),
        (&json!("running"), &json!(2))
    );
}

#[test]
fn a_loop_that_is_begun_within_a_turn_of_another_ends_alone() {
    let sandbox = sandbox();
    for id in ["outer", "inner"] {
        begin(&sandbox, "s", id, &["--args", id]);
        sandbox.refrain(&["tick", "advance", id]).with_code(0);
    }
    let inner = stops(&sandbox, "s", "well").unwrap();
    assert!(inner.starts_with("[loop inner iteration 2/20]"), "{inner}");
    let outer = stops(&sandbox, "s", "<promise>COMPLETE</promise>").unwrap();
    assert!(outer.starts_with("[loop outer iteration 1/20] This turn of the loop is not over."), "{outer}");
    assert_eq!(sandbox.status("inner")["status"], "completed");
    assert_eq!(sandbox.status("outer")["charged"], 0, "nothing was said of it");
    assert_eq!(stops(&sandbox, "s", "<promise>COMPLETE</promise>"), None);
    assert_eq!(sandbox.status("outer")["status"], "completed");
}

#[test]
fn a_call_starts_no_thread_and_so_no_runtime() {
    let sandbox = sandbox();
    let gate = sandbox.gate("slow");
    let check = format!("test ! -e claimed || read -r _ < {}", gate.path().display());
    begin(&sandbox, "s", "job", &["--args", "Make it.", "--gate", &format!("slow={check}")]);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    testkit::write(&sandbox.project().join("claimed"), "");
    let input =
        input(&sandbox, "s", "Stop", json!({ "last_assistant_message": "<promise>COMPLETE</promise>" }));
    let asked: Session = sandbox.command(&["hook", "stop", "--agent", "claude"]).stdin(&input).spawn();
    // The hook itself records that, without another process.
    sandbox.wait_for_event("job", "attempt.finished");
    let threads = std::fs::read_dir(format!("/proc/{}/task", asked.pid())).unwrap().count();
    gate.let_one_pass();
    assert_eq!((threads, reason(&asked.wait().with_code(0))), (1, None));
}

#[test]
fn a_session_loop_obeys_steer_pause_and_cancel() {
    let sandbox = sandbox();
    begin(&sandbox, "s", "job", &["--args", "Mend it."]);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    sandbox.refrain(&["steer", "job", "Leave the parser alone."]).with_code(0);
    let told = stops(&sandbox, "s", "well").unwrap();
    assert!(told.contains("Leave the parser alone."), "{told}");
    sandbox.refrain(&["pause", "job"]).with_code(0);
    assert_eq!(sandbox.status("job")["status"], "running", "its turn is not over");
    assert_eq!(stops(&sandbox, "s", "well"), None);
    assert_eq!(sandbox.status("job")["status"], "paused");

    let again = sandbox.refrain(&[
        "tick",
        "begin",
        COMMAND,
        "--agent",
        "claude",
        "--session-id",
        "t",
        "--resume",
        "job",
    ]);
    assert_eq!(again.with_code(0).stdout, "job\nCOMPLETE\n");
    let words =
        ["tick", "begin", COMMAND, "--session-id", "t", "--resume", "job", "--completion-promise", "NEW"];
    let fixed = sandbox.refrain(&words).with_code(1);
    assert!(
        fixed.stderr.contains("--completion-promise: it has no effect on a loop that continues"),
        "{}",
        fixed.stderr
    );
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    assert_eq!(stops(&sandbox, "s", "well"), None, "it is another session's now");
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    assert_eq!(sandbox.status("job")["status"], "cancelled", "at once");
    assert_eq!(stops(&sandbox, "t", "well"), None);
}

#[test]
fn a_session_loop_continues_without_its_session() {
    let sandbox = sandbox();
    begin(&sandbox, "s", "job", &["--args", "Mend it."]);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    sandbox.refrain(&["tick", "finish", "job", "crashed"]).with_code(0);
    assert_eq!(sandbox.status("job")["status"], "crashed");
    let claude = "cat > /dev/null; echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"<promise>COMPLETE</promise>\",\"session_id\":\"x\",\"num_turns\":1}'";
    let agent = sandbox.agent("claude", claude);
    let bin = std::path::Path::new(&agent).parent().unwrap();
    let usual = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    let path = format!("{}:{usual}", bin.display());
    let run = sandbox.command(&["resume", "job"]).env("PATH", &path).run().with_code(0);
    assert!(run.has_line("· attempt 1.2"), "its turn was refunded: {}", run.stdout);
    assert_eq!(sandbox.status("job")["kind"], "process");
    let [turn, process] = ["0001", "0001.2"].map(|of| sandbox.kept_text("job", of, "prompt.md"));
    assert!(turn.contains("\n- You continue after each turn, until you claim to be done."), "{turn}");
    assert!(
        process.contains("\n- You are started again for each run, until you claim to be done."),
        "{process}"
    );
    assert!(process.contains("\nThe previous run of this iteration was cut off; "), "{process}");
}

#[test]
fn invalid_hook_input_does_not_disturb_a_session() {
    let sandbox = sandbox();
    begin(&sandbox, "s", "job", &["--args", "Mend it."]);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    let before = sandbox.journal("job").len();
    let odd = [
        String::new(),
        "no json".to_owned(),
        json!({ "session_id": 7 }).to_string(),
        input(
            &sandbox,
            "s",
            "SubagentStop",
            json!({ "last_assistant_message": "<promise>COMPLETE</promise>" }),
        ),
        input(
            &sandbox,
            "s",
            "Stop",
            json!({ "background_tasks": [{ "id": "b" }], "last_assistant_message": "x" }),
        ),
        input(&sandbox, "s", "Stop", json!({})),
        input(&sandbox, "s", "Stop", json!({ "last_assistant_message": ["x"] })),
    ];
    for text in &odd {
        let run = hook(&sandbox, text);
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""), "{text}");
    }
    for words in [
        ["hook", "stop"].as_slice(),
        &["hook", "nonsense", "--agent", "claude"],
        &["hook", "stop", "--agent", "x"],
    ] {
        let run = sandbox.command(words).stdin("{}").run().with_code(0);
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""), "{words:?}");
    }
    assert_eq!(sandbox.journal("job").len(), before, "nothing was counted");
    let damaged = sandbox.loop_dir("job").join("journal.jsonl");
    testkit::write(&damaged, "nonsense\n");
    assert_eq!(stops(&sandbox, "s", "well"), None);
    assert_eq!(std::fs::read_to_string(&damaged).unwrap(), "nonsense\n", "nothing is deleted");
}

#[test]
fn a_loop_that_a_runner_drove_has_no_turn_that_tick_could_end() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", "echo x > $NOTES/up\nread -r _ < $GATES/go");
    let runner = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("up");
    let told = || ["advance", "hold"].map(|verb| sandbox.refrain(&["tick", verb, "job"]).code);
    assert_eq!(told(), [3, 3], "it is a runner's");
    runner.kill();
    sandbox.wait_for_status("job", "crashed");
    assert_eq!(told(), [3, 3], "and stands still");
    sandbox.refrain(&["tick", "finish", "job", "completed"]).with_code(3);
    assert_eq!(sandbox.status("job")["charged"], 0, "nothing was counted");
    drop(gate);
}

#[test]
fn a_session_that_went_into_another_repository_is_still_heard() {
    let sandbox = sandbox();
    begin(&sandbox, "s", "job", &["--args", "Mend it."]);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    let inner = sandbox.project().join("inner");
    sandbox.git(&["init", "--quiet", inner.to_str().unwrap()]);
    let input = input(&sandbox, "s", "Stop", json!({ "cwd": inner, "last_assistant_message": "well" }));
    let project = sandbox.project().to_str().unwrap().to_owned();
    let stop = |variables: &[(&str, &str)]| {
        let words = ["-C", inner.to_str().unwrap(), "hook", "stop", "--agent", "claude"];
        let variables: Vec<_> = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        reason(&sandbox.command(&words).envs(&variables).stdin(&input).run().with_code(0))
    };
    assert_eq!(stop(&[]), None, "its origin is unknown");
    let told = stop(&[("CLAUDE_PROJECT_DIR", &project)]).unwrap();
    assert!(told.starts_with("[loop job iteration 2/20]"), "{told}");
}

#[test]
fn a_turn_without_text_is_continued() {
    let sandbox = sandbox();
    begin(&sandbox, "s", "job", &["--args", "Mend it."]);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    let transcript = sandbox.root().join("t.jsonl");
    let lines = [
        json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": "<promise>COMPLETE</promise>" }] } }),
        json!({ "type": "user", "message": { "content": "Go on." } }),
        json!({ "type": "assistant", "message": { "content": [{ "type": "tool_use", "id": "t", "name": "Bash" }] } }),
    ];
    testkit::write(&transcript, lines.map(|line| line.to_string()).join("\n"));
    let told =
        reason(&hook(&sandbox, &input(&sandbox, "s", "Stop", json!({ "transcript_path": transcript }))));
    assert!(
        told.unwrap().starts_with("[loop job iteration 2/20]"),
        "and what was said before it is not heard again"
    );
}

#[test]
fn tick_has_codes_of_its_own() {
    let sandbox = sandbox();
    let code = |words: &[&str], code| sandbox.refrain(&[&["tick"], words].concat()).with_code(code);
    code(&["begin", "loop"], 1);
    code(&["begin", COMMAND, "--args", "p", "--max", "201"], 1);
    code(&["begin", COMMAND, "--resume", "nobody"], 2);
    code(&["nonsense"], 1);
    for words in [["advance", "nobody"].as_slice(), &["hold", "nobody"], &["finish", "nobody", "completed"]] {
        code(words, 2);
    }
    code(&["check-writable"], 0);
    let place = sandbox.root().join("blocked");
    testkit::write(&place, "");
    code(&["check-writable", place.to_str().unwrap()], 5);
    let data = sandbox.project().join(".git/refrain");
    let aside = sandbox.root().join("data");
    std::fs::rename(&data, &aside).unwrap();
    testkit::write(&data, "");
    code(&["begin", COMMAND, "--args", "p"], 5);
    std::fs::remove_file(&data).unwrap();
    std::fs::rename(aside, &data).unwrap();

    begin(&sandbox, "s", "job", &["--args", "p", "--max", "1"]);
    code(&["finish", "job", "nonsense"], 1);
    code(&["advance", "job"], 0);
    let capped = code(&["advance", "job"], 4);
    assert!(capped.stdout.starts_with("iteration-cap: "), "{}", capped.stdout);
    code(&["hold", "job"], 4);
    code(&["finish", "job", "completed"], 0);
    begin(&sandbox, "s", "other", &["--args", "p"]);
    code(&["advance", "other"], 0);
    code(&["finish", "other", "completed", "all is done"], 0);
    assert_eq!(sandbox.status("other")["status"], "completed");
}

#[test]
fn each_of_two_calls_at_once_gets_an_answer() {
    let sandbox = sandbox();
    begin(&sandbox, "s", "job", &["--args", "Make it.", "--max", "60", "--stuck-threshold", "50"]);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    let mut counted = 1;
    for _ in 0..5 {
        let calls: Vec<_> = (0..4).map(|_| sandbox.spawn(&["tick", "advance", "job"])).collect();
        for call in calls {
            let run = call.wait();
            match run.code {
                0 => {
                    counted += 1;
                    assert!(run.stdout.starts_with("[loop job iteration "), "{run:?}");
                }
                _ => {
                    let refused = run.with_code(1);
                    assert_eq!(refused.stdout, "");
                    let told = "another call ended this turn of job first; its next is under way: [loop job";
                    assert!(refused.stderr.contains(told), "{refused:?}");
                }
            }
        }
    }
    assert_eq!(sandbox.status("job")["iteration"], counted);
    sandbox.refrain(&["tick", "finish", "job", "cancelled"]).with_code(0);
}

#[test]
fn a_claim_right_after_begin_counts_for_the_first_turn() {
    let sandbox = sandbox();
    begin(&sandbox, "s", "job", &["--args", "p"]);
    sandbox.refrain(&["tick", "finish", "job", "completed", "all is done"]).with_code(0);
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["charged"]), (&"completed".into(), &1.into()));

    begin(&sandbox, "s", "gated", &["--args", "p", "--gate", "test -f missing"]);
    let refused = sandbox.refrain(&["tick", "finish", "gated", "completed"]).with_code(1);
    assert!(refused.stdout.contains("CLAIM REFUSED: gate test failed"), "{}", refused.stdout);
    assert_eq!(sandbox.status("gated")["status"], "running");
}

#[test]
fn text_typed_after_the_command_is_read_as_options_and_prompt() {
    let sandbox = plain_folder();
    let typed = |id: &str, text: &str| {
        let words =
            ["tick", "begin", COMMAND, "--agent", "claude", "--session-id", "s", "--name", id, "--args", "-"];
        sandbox.command(&words).stdin(text).run()
    };
    let prompt =
        |id: &str| sandbox.journal(id)[0]["event"]["data"]["spec"]["prompt"].as_str().unwrap().to_owned();
    let hostile = "Say \"it's $(touch never) `touch never` * (all)\n---\niteration: 7";
    typed("a", &format!("--max-iterations 3 --completion-promise 'ALL DONE' {hostile}")).with_code(0);
    assert_eq!(prompt("a"), hostile);
    assert_eq!(sandbox.status("a")["max_iterations"], 3);
    assert_eq!(sandbox.status("a")["completion_promise"], "ALL DONE");
    typed("b", &format!("{hostile} --max-iterations 4\n")).with_code(0);
    assert_eq!((prompt("b").as_str(), &sandbox.status("b")["max_iterations"]), (hostile, &json!(4)));
    typed("c", "--loop-isolated -- /project:review --deep").with_code(0);
    assert_eq!(prompt("c"), "/project:review --deep");
    assert_eq!(sandbox.journal("c")[0]["event"]["data"]["spec"]["session"]["isolation"], "subagent");
    assert!(!sandbox.project().join("never").exists());
    typed("d", "--max-iterations 201 p").with_code(1);
    typed("d", "--prompt-file nowhere.md").with_code(1);
    assert!(!sandbox.loop_dir("d").exists(), "nothing was begun");
}

#[test]
fn a_loop_that_begins_in_the_middle_of_a_turn_of_gemini_hears_no_old_claim() {
    let sandbox = sandbox();
    let words = ["tick", "begin", COMMAND, "--agent", "gemini", "--session-id", "g", "--name", "job"];
    sandbox.refrain(&[&words[..], &["--args", "Mend it."]].concat()).with_code(0);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    let stops = |answers: &str| {
        let more = json!({ "prompt": "Say hello.", "prompt_response": answers, "stop_hook_active": false });
        let input = input(&sandbox, "g", "AfterAgent", more);
        reason(&sandbox.command(&["hook", "stop", "--agent", "gemini"]).stdin(&input).run().with_code(0))
    };
    let first = "The other loop is done.\n<promise>COMPLETE</promise>\nI begin the next.";
    assert!(stops(first).unwrap().starts_with("[loop job iteration 2/20]"));
    let second = format!("{first}\nIt is done.");
    assert!(stops(&second).unwrap().starts_with("[loop job iteration 3/20]"));
    assert_eq!(stops(&format!("{second}\n<promise>COMPLETE</promise>\n")), None, "that is new");
    assert_eq!(sandbox.status("job")["status"], "completed");
}

#[test]
fn only_the_leads_own_word_is_a_claim() {
    let sandbox = sandbox();
    begin(&sandbox, "s", "job", &["--args", "Mend it.", "--loop-isolated"]);
    let told = sandbox.refrain(&["tick", "advance", "job"]).with_code(0).stdout;
    assert!(
        told.contains("- Have a fresh subagent do each run, with task and notes; only you can claim.\n"),
        "{told}"
    );
    // Claude Code's message about a sub-agent, which has the session's id.
    let below = json!({
        "agent_id": "a7c7db168be0a8b3d", "agent_type": "general-purpose", "stop_hook_active": false,
        "agent_transcript_path": "/nowhere/subagents/agent-a7c7db168be0a8b3d.jsonl",
        "last_assistant_message": "<promise>COMPLETE</promise>", "background_tasks": [],
    });
    let below = input(&sandbox, "s", "SubagentStop", below);
    for event in ["stop", "subagent-stop"] {
        let run = sandbox.command(&["hook", event, "--agent", "claude"]).stdin(&below).run().with_code(0);
        assert_eq!(run.stdout, "", "{event}");
    }
    assert_eq!(sandbox.status("job")["charged"], 0, "nothing was counted");

    let transcript = sandbox.root().join("transcript.jsonl");
    let line = |aside: bool, text: &str| {
        let content = json!([{ "type": "text", "text": text }]);
        json!({ "type": "assistant", "isSidechain": aside, "message": { "role": "assistant", "content": content } })
            .to_string()
    };
    let lines = [
        json!({ "type": "user", "message": { "role": "user", "content": "Mend it." } }).to_string(),
        line(false, "My agents are not done."),
        line(true, "<promise>COMPLETE</promise>"),
    ];
    testkit::write(&transcript, lines.join("\n"));
    let more = json!({ "transcript_path": transcript });
    let goes_on = reason(&hook(&sandbox, &input(&sandbox, "s", "Stop", more))).unwrap();
    assert!(goes_on.starts_with("[loop job iteration 2/20]"), "{goes_on}");
    assert_eq!(stops(&sandbox, "s", "All reports say so.\n<promise>COMPLETE</promise>"), None);
    assert_eq!(sandbox.status("job")["status"], "completed");
}

#[test]
fn a_session_continues_without_end_on_request() {
    let sandbox = sandbox();
    begin(&sandbox, "s", "job", &["--lead", "Find out:", "--args", "--infinite What is it?"]);
    let first = sandbox.refrain(&["tick", "advance", "job"]).with_code(0).stdout;
    assert!(first.starts_with("[loop job iteration 1/∞]\nFind out: What is it?\n"), "{first}");
    assert!(
        first.contains(
            "- When there is nothing to do now, end with <promise>COMPLETE</promise> alone on its line."
        ),
        "{first}"
    );
    let held = stops(&sandbox, "s", "<promise>COMPLETE</promise>").unwrap();
    assert!(
        held.contains("Run this command now; it waits, then says what to do: refrain tick hold job"),
        "{held}"
    );
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["wait"]["kind"]), (&json!("waiting"), &json!("pace")));
    assert_eq!(status["reason"], "found nothing to do, and looks again later");
    let next = sandbox.refrain(&["tick", "hold", "job"]).with_code(0).stdout;
    assert!(next.starts_with("[loop job iteration 2/∞]"), "it has waited: {next}");
    sandbox.refrain(&["cancel", "job"]).with_code(0);
}

#[test]
fn a_session_does_exactly_so_many_iterations() {
    let sandbox = sandbox();
    begin(&sandbox, "s", "job", &["--args", "Build it. --exact 2"]);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    let second = stops(&sandbox, "s", "<promise>COMPLETE</promise>").unwrap();
    assert!(second.starts_with("[loop job iteration 2/2]"), "{second}");
    assert_eq!(stops(&sandbox, "s", "well"), None);
    assert_eq!(sandbox.status("job")["status"], "completed");
    // The same, counted by hand.
    begin(&sandbox, "t", "other", &["--args", "Build it. --exact 1"]);
    sandbox.refrain(&["tick", "advance", "other"]).with_code(0);
    sandbox.refrain(&["tick", "advance", "other"]).with_code(4);
    assert_eq!(sandbox.status("other")["status"], "completed");
    begin(&sandbox, "u", "third", &["--args", "Build it. --exact 1"]);
    sandbox.refrain(&["tick", "advance", "third"]).with_code(0);
    sandbox.refrain(&["tick", "finish", "third", "max-iterations-reached"]).with_code(0);
    assert_eq!(sandbox.status("third")["status"], "completed");
    // A maximum is none: a claim ends it.
    begin(&sandbox, "v", "fourth", &["--args", "Build it. --iterations 3"]);
    sandbox.refrain(&["tick", "advance", "fourth"]).with_code(0);
    assert_eq!(stops(&sandbox, "v", "<promise>COMPLETE</promise>"), None);
    assert_eq!(sandbox.status("fourth")["charged"], 1);
}

#[test]
fn gates_are_typed_in_a_session_too() {
    let sandbox = sandbox();
    begin(
        &sandbox,
        "s",
        "job",
        &["--args", "--gate 'made=test -e made' Explain '--loop' and `--name` to me."],
    );
    let spec = &sandbox.journal("job")[0]["event"]["data"]["spec"];
    assert_eq!(spec["prompt"], "Explain '--loop' and `--name` to me.", "a quotation is text");
    assert_eq!(spec["gates"][0]["name"], "made");
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    let refused = stops(&sandbox, "s", "<promise>COMPLETE</promise>").unwrap();
    assert!(refused.contains("CLAIM REFUSED: gate made failed"), "{refused}");
    for text in ["--exact 3 --max-iterations 4 p", "--infinite --max-iterations 4 p", "--loop --infinite p"] {
        let words = ["tick", "begin", COMMAND, "--agent", "claude", "--name", "other", "--args", text];
        sandbox.refrain(&words).with_code(1);
    }
    assert!(!sandbox.loop_dir("other").exists(), "nothing was begun");
}

#[test]
fn a_compacted_session_is_reminded_of_its_loop() {
    let sandbox = sandbox();
    begin(&sandbox, "s", "job", &["--args", "Mend it."]);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    let text = input(&sandbox, "s", "SessionStart", json!({ "source": "compact" }));
    let run =
        sandbox.command(&["hook", "session-start", "--agent", "claude"]).stdin(&text).run().with_code(0);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    let told = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(told.starts_with("[loop job iteration 1/20]") && told.contains("state.md"), "{told}");
    let last = ["tick", "begin", COMMAND, "--agent", "claude", "--session-id", "s", "--resume-last"];
    assert_eq!(sandbox.refrain(&last).with_code(0).stdout.lines().next(), Some("job"));
    begin(&sandbox, "t", "other", &["--args", "p"]);
    let agent = sandbox.agent("silent", "echo nothing");
    let process = ["start", "--command", &agent, "--name", "process", "-m", "1", "p"];
    sandbox.refrain(&process).with_code(10);
    assert_eq!(sandbox.refrain(&last).with_code(0).stdout.lines().next(), Some("job"), "its own comes first");
    let more = ["tick", "begin", "/refrain:plan", "--agent", "claude", "--session-id", "u", "--resume-last"];
    let more = [&more[..], &["--max-iterations", "9"]].concat();
    let resumed = sandbox.refrain(&more).with_code(0).stdout;
    assert_eq!(resumed.lines().next(), Some("job"), "else the one that was touched last");
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    let resumed = sandbox.refrain(&more).with_code(0).stdout;
    assert_eq!(resumed.lines().next(), Some("process"), "whatever began it");
}

/// What a person types after a session's command.
fn types(sandbox: &Sandbox, command: &str, id: &str, text: &str, more: &[&str]) -> Run {
    let words =
        ["tick", "begin", command, "--agent", "claude", "--session-id", id, "--name", id, "--args", "-"];
    sandbox.command(&[&words, more].concat()).stdin(text).run()
}

#[test]
fn the_lines_of_the_seed_work_as_they_are_printed() {
    let sandbox = sandbox();
    let lead = ["--lead", "Work through the plan."];
    let text = "--loop \\\n  --completion-promise \"ALLDONE\" \\\n  --max-iterations 30\n";
    let begun = types(&sandbox, "/refrain:next-priority", "release-1", text, &lead).with_code(0);
    assert_eq!(begun.stdout, "release-1\nALLDONE\n");
    let marker = sandbox.refrain(&["tick", "advance", "release-1"]).with_code(0).stdout;
    assert!(marker.starts_with("[loop release-1 iteration 1/30]\nWork through the plan.\n"), "{marker}");
    types(&sandbox, "/refrain:implement", "twenty", "20", &["--mode", "implement"]).with_code(0);
    assert_eq!(sandbox.status("twenty")["max_iterations"], 20);
    types(&sandbox, "/refrain:team-review", "five", "5", &lead).with_code(0);
    assert_eq!(sandbox.status("five")["max_iterations"], 5);
    for (text, says) in [
        ("Fix it. --max-iteration 5", "--max-iteration: unknown option; did you mean --max-iterations?"),
        ("Fix it. --jobs 4", "--jobs: not in a session; refrain start takes it"),
        ("Fix it. --detach", "--detach: not in a session; refrain start takes it"),
        ("--sandbox Fix it.", "--sandbox: "),
        ("Fix it. --timeout 5m", "--timeout: not in a session, which ends its own turns"),
        ("--agent codex Fix it.", "--agent: this session's own agent works"),
        ("--worktree Fix it.", "--worktree: not in a session, which works where it is"),
        ("--max-cost 5 Fix it.", "--max-cost: a session says its tokens"),
        ("--gate 'Fix it.", "a quotation has no end"),
        ("5 Fix it.", "5: accepted: a number alone, or a task"),
    ] {
        let run = types(&sandbox, COMMAND, "none", text, &["--mode", "implement"]).with_code(1);
        assert!(run.stderr.contains(says), "{text}: {}", run.stderr);
    }
    assert!(!sandbox.loop_dir("none").exists());
}

#[test]
fn options_of_start_count_in_a_session_too() {
    let sandbox = sandbox();
    let text = "--git-workflow commit --commit-template 'step {iteration}' --directions 'Use tabs.' --max-tokens 100 Make it.";
    types(&sandbox, COMMAND, "job", text, &[]).with_code(0);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    let prompt = sandbox.kept_text("job", "0001", "prompt.md");
    assert!(prompt.starts_with("Make it.") && prompt.contains("Use tabs."), "{prompt}");
    testkit::write(&sandbox.project().join("made"), "x");
    let transcript = sandbox.root().join("t.jsonl");
    let line = |id: &str, input: u64, output: u64| {
        let usage = json!({ "input_tokens": input, "cache_read_input_tokens": 10, "output_tokens": output });
        let content = json!([{ "type": "tool_use", "id": "t", "name": "Bash" }]);
        json!({ "type": "assistant", "message": { "id": id, "model": "claude-x", "content": content, "usage": usage } })
    };
    let prompt = json!({ "type": "user", "message": { "content": "Make it." } });
    let lines = [line("m0", 900, 900), prompt, line("m1", 5, 1), line("m1", 5, 20), line("m2", 30, 2)];
    testkit::write(&transcript, lines.map(|line| line.to_string()).join("\n"));
    let more = json!({ "transcript_path": transcript, "last_assistant_message": "well" });
    assert!(reason(&hook(&sandbox, &input(&sandbox, "job", "Stop", more.clone()))).is_some());
    let status = sandbox.status("job");
    let usage = &status["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(55), &json!(22)));
    assert_eq!(usage["cached_input_tokens"], 20);
    assert_eq!(status["commits"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "step 1\n");
    // The hook shows how it ends.
    let run = hook(&sandbox, &input(&sandbox, "job", "Stop", more));
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    let text = answer["systemMessage"].as_str().unwrap();
    assert!(text.starts_with("Loop job: budget-exceeded: "), "{text}");
}

#[test]
fn a_session_without_a_readable_transcript_is_released_after_seven_turns() {
    let sandbox = sandbox();
    begin(&sandbox, "s", "job", &["--args", "Mend it. --stuck-threshold 50"]);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    let more = json!({ "transcript_path": "/nowhere/t.jsonl", "last_assistant_message": "well" });
    let stop = || hook(&sandbox, &input(&sandbox, "s", "Stop", more.clone()));
    let went_on = (0..9).take_while(|_| reason(&stop()).is_some()).count();
    let status = sandbox.status("job");
    assert_eq!((went_on, &status["status"]), (6, &json!("blocked")), "{status}");
    assert!(status["reason"].as_str().unwrap().contains("7 turns in a row"), "{status}");
}

#[test]
fn loops_that_share_a_worktree_or_a_session_are_noted() {
    let sandbox = sandbox();
    begin(&sandbox, "s-0123456789", "one", &["--args", "p", "--gate", "true"]);
    sandbox.refrain(&["tick", "advance", "one"]).with_code(0);
    let second = types(&sandbox, COMMAND, "two", "--gate true p", &[]).with_code(0);
    assert!(second.stderr.contains("note: one has gates in this worktree too"), "{}", second.stderr);
    let third = types(&sandbox, COMMAND, "three", "p", &[]).with_code(0);
    assert_eq!(third.stderr, "", "it has no gates");
    let list = sandbox.refrain(&["list"]).with_code(0).stdout;
    assert!(list.contains("session s-012345 works on attempt 1"), "{list}");
    assert_eq!(sandbox.status("one")["runner"]["session"], "s-0123456789");
    let status = sandbox.refrain(&["status", "one"]).with_code(0).stdout;
    assert!(status.contains("session s-0123456789"), "{status}");
}
