//! Agents that print too much, read too little, leave child processes, or will not end; runners, keepers and wrappers
//! that are killed. After each: no process survives, and what was printed is kept.

use rstest::rstest;
use serde_json::json;
use testkit::{Sandbox, Session, Signal, signal_process};

use crate::{CLAIM, sandbox};

/// Runs a loop of one iteration over `script`, to its end.
fn run(sandbox: &Sandbox, script: &str, options: &[&str], code: i32) {
    let agent = sandbox.agent("agent", script);
    let start = [&["start", "--command", &agent, "--name", "job", "-m", "1", "p"], options].concat();
    sandbox.refrain(&start).with_code(code);
    sandbox.no_process_is_left();
}

#[test]
fn a_line_of_64_mib_is_kept_whole() {
    let sandbox = sandbox();
    run(&sandbox, &format!("head -c 67108864 /dev/zero | tr '\\0' x; echo\n{CLAIM}"), &["--quiet"], 0);
    let kept = sandbox.kept("job", "0001", "output.log");
    let end = b"\n<promise>COMPLETE</promise>\n";
    assert_eq!(kept.len(), (64 << 20) + end.len());
    assert!(kept.ends_with(end) && kept[..64 << 20].iter().all(|byte| *byte == b'x'));
}

#[test]
fn invalid_utf_8_is_kept_byte_by_byte() {
    let sandbox = sandbox();
    run(&sandbox, &format!("printf '\\377\\376 \\303( \\000 \\355\\240\\200\\n'\n{CLAIM}"), &[], 0);
    assert_eq!(
        sandbox.kept("job", "0001", "output.log"),
        b"\xff\xfe \xc3( \x00 \xed\xa0\x80\n<promise>COMPLETE</promise>\n"
    );
    assert!(sandbox.refrain(&["logs", "job"]).with_code(0).stdout.contains("<promise>COMPLETE</promise>"));
}

#[test]
fn a_flood_on_stderr_is_drained_and_kept() {
    let sandbox = sandbox();
    run(&sandbox, &format!("head -c 20000000 /dev/zero | tr '\\0' e >&2\n{CLAIM}"), &["--quiet"], 0);
    assert_eq!(sandbox.kept("job", "0001", "stderr.log").len(), 20_000_000);
    assert_eq!(sandbox.kept_text("job", "0001", "output.log"), "<promise>COMPLETE</promise>\n");
}

#[test]
fn a_promise_on_stderr_is_no_claim() {
    run(&sandbox(), &format!("{CLAIM} >&2"), &[], 10);
}

#[test]
fn an_agent_that_never_reads_its_prompt_is_no_trouble() {
    let sandbox = sandbox();
    testkit::write(&sandbox.project().join("long.md"), "long ".repeat(400_000));
    let agent = sandbox.agent("agent", CLAIM);
    let start =
        ["start", "--command", &agent, "--name", "job", "--prompt-mode", "stdin", "--prompt-file", "long.md"];
    sandbox.refrain(&start).with_code(0);
    sandbox.no_process_is_left();
}

/// Starts something, waits until it is up, and ends with a claim while it still runs.
fn leaving(child: &str) -> String {
    format!(
        "case $1 in */stay) echo up > \"$1\"; while :; do sleep 1; done ;; esac\n{child}\nuntil test -s $NOTES/stay; do sleep 0.01; done\n{CLAIM}"
    )
}

#[test]
fn processes_left_by_an_agent_are_ended_and_do_not_delay_the_result() {
    for (what, child) in [
        ("a child", "sh $0 $NOTES/stay &"),
        ("in its own session", "setsid sh $0 $NOTES/stay &"),
        ("a double fork", "( ( setsid sh $0 $NOTES/stay > /dev/null 2>&1 & ) & )"),
        ("deaf to signals", "( trap '' INT TERM HUP QUIT; sh $0 $NOTES/stay & )"),
        ("without an environment", "env -i PATH=\"$PATH\" setsid sh $0 $NOTES/stay &"),
        ("stopped", "sh $0 $NOTES/stay & until test -s $NOTES/stay; do sleep 0.01; done; kill -STOP $!"),
    ] {
        let sandbox = sandbox();
        run(&sandbox, &leaving(child), &[], 0);
        let names = sandbox.event_names("job");
        let place = |name: &str| names.iter().position(|found| found == name);
        assert!(place("attempt.finished") < place("attempt.swept"), "{what}: {names:?}");
        assert!(place("attempt.swept").is_some(), "{what}: {names:?}");
        assert_eq!(sandbox.kept_text("job", "0001", "output.log"), "<promise>COMPLETE</promise>\n", "{what}");
    }
}

#[test]
fn the_next_attempt_waits_until_the_last_one_is_swept() {
    let sandbox = sandbox();
    let script = format!(
        "case $1 in */stay) trap '' TERM; echo up > $1; while :; do echo alive >> $1; sleep 0.01; done ;; esac\n\
         test $REFRAIN_ITERATION = 2 && {{ wc -l < $NOTES/stay > $NOTES/a; sleep 0.1; wc -l < $NOTES/stay > $NOTES/b; {CLAIM}; exit; }}\n\
         setsid sh $0 $NOTES/stay & until test -s $NOTES/stay; do sleep 0.01; done"
    );
    let agent = sandbox.agent("agent", &script);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    assert_eq!(sandbox.note("a"), sandbox.note("b"), "the first attempt's child still ran in the second");
}

#[test]
fn an_attempt_over_its_time_limit_is_stopped_kept_and_charged() {
    let sandbox = sandbox();
    run(&sandbox, "echo before the end; exec sleep 1000", &["--timeout", "300ms"], 10);
    let status = sandbox.status("job");
    assert_eq!((&status["charged"], &status["iterations"][0]["outcome"]), (&json!(1), &json!("time-limit")));
    assert_eq!(sandbox.kept_text("job", "0001", "output.log"), "before the end\n");
}

#[test]
fn an_attempt_over_its_silence_limit_is_stopped_but_not_one_that_speaks() {
    let sandbox = sandbox();
    run(
        &sandbox,
        "for n in 1 2 3 4 5 6; do echo $n; sleep 0.2; done; exec sleep 1000",
        &["--idle-timeout", "600ms"],
        10,
    );
    assert_eq!(sandbox.status("job")["iterations"][0]["outcome"], "silence");
    assert_eq!(sandbox.kept_text("job", "0001", "output.log"), "1\n2\n3\n4\n5\n6\n");
}

#[test]
fn an_agent_that_is_deaf_to_signals_is_ended_all_the_same() {
    let sandbox = sandbox();
    let script = "trap '' INT TERM HUP; echo I stay; while :; do sleep 1; done";
    run(&sandbox, script, &["--timeout", "200ms"], 10);
    assert_eq!(sandbox.status("job")["iterations"][0]["signal"], 9);
    assert_eq!(sandbox.kept_text("job", "0001", "output.log"), "I stay\n");
}

#[test]
fn the_agent_may_end_in_its_own_way_when_it_is_asked_to() {
    let sandbox = sandbox();
    let script = format!(
        "leave() {{ echo saved my work; {CLAIM}; exit 0; }}
trap leave INT; echo ready > $NOTES/ready; while :; do sleep 0.05; done"
    );
    let agent = sandbox.agent("agent", &script);
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("ready");
    sandbox.refrain(&["pause", "job", "--now"]).with_code(0);
    session.wait().with_code(16);
    assert!(sandbox.kept_text("job", "0001", "output.log").starts_with("saved my work\n"));
    let status = sandbox.status("job");
    assert_eq!(
        (&status["charged"], &status["status"]),
        (&json!(0), &json!("paused")),
        "an attempt that was stopped claims nothing"
    );
}

/// Starts children of every kind, reports that, and stays; a second attempt claims.
fn zoo(sandbox: &Sandbox) -> Session {
    let script = format!(
        r#"case $1 in "$0".*) echo up > "$1"; while :; do sleep 1; done ;; esac
test "$REFRAIN_ATTEMPT" = 1 || {{ {CLAIM}; exit; }}
sh "$0" "$0.child" &
setsid sh "$0" "$0.session" &
( ( setsid sh "$0" "$0.double" > /dev/null 2>&1 & ) & )
( trap '' INT TERM HUP QUIT; sh "$0" "$0.deaf" & )
env -i PATH="$PATH" setsid sh "$0" "$0.bare" &
for kind in child session double deaf bare; do until test -s "$0.$kind"; do sleep 0.01; done; done
echo words before the end
echo up > "$NOTES/zoo"
wait"#
    );
    let agent = sandbox.agent("zoo", &script);
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("zoo");
    session.wait_for_output("words before the end");
    assert!(sandbox.survivors().len() > 7, "{:#?}", sandbox.survivors());
    session
}

fn everything_is_kept_and_gone(sandbox: &Sandbox, outcome: &str) {
    sandbox.no_process_is_left();
    assert_eq!(sandbox.kept_text("job", "0001", "output.log"), "words before the end\n");
    let mut status = sandbox.status("job");
    if status["status"] != "completed" {
        sandbox.refrain(&["resume", "job"]).with_code(0);
        status = sandbox.status("job");
    }
    assert_eq!(
        (&status["charged"], &status["started"]),
        (&json!(1), &json!(2)),
        "the first attempt is refunded"
    );
    assert_eq!(status["iterations"][0]["outcome"], outcome);
    sandbox.no_process_is_left();
}

#[test]
fn no_process_survives_a_killed_runner() {
    let sandbox = sandbox();
    zoo(&sandbox).kill();
    everything_is_kept_and_gone(&sandbox, "lost");
}

#[test]
fn no_process_survives_a_killed_runner_group() {
    let sandbox = sandbox();
    let session = zoo(&sandbox);
    session.signal_group(Signal::KILL);
    session.wait().with_code(128 + 9);
    everything_is_kept_and_gone(&sandbox, "lost");
}

#[test]
fn a_killed_keeper_costs_the_attempt_and_nothing_else() {
    let sandbox = sandbox();
    let session = zoo(&sandbox);
    let keepers = sandbox.processes_named("refrain-keeper");
    assert_eq!(keepers.len(), 1, "one keeper a loop: {:#?}", sandbox.survivors());
    signal_process(keepers[0], Signal::KILL);
    session.wait().with_code(0);
    everything_is_kept_and_gone(&sandbox, "lost");
}

#[test]
fn a_resume_first_sweeps_what_a_killed_runner_and_supervisor_left() {
    let sandbox = sandbox();
    let session = zoo(&sandbox);
    let keepers = sandbox.processes_named("refrain-keeper");
    // Both stopped, then killed: neither can end other processes. The keeper first: it continues when its runner
    // ends.
    let pids = [keepers[0], session.pid()];
    pids.iter().for_each(|pid| signal_process(*pid, Signal::STOP));
    pids.iter().for_each(|pid| signal_process(*pid, Signal::KILL));
    session.wait();
    assert!(
        sandbox.survivors().len() >= 5,
        "the children have lost their parents: {:#?}",
        sandbox.survivors()
    );
    sandbox.refrain(&["resume", "job"]).with_code(0);
    let marked: Vec<_> =
        sandbox.survivors().into_iter().filter(|found| !found.command.contains(".bare")).collect();
    assert!(marked.is_empty(), "{marked:#?}");
}

#[test]
fn a_resume_sweeps_gate_processes_known_only_by_their_mark() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let gate = "held=[ -e $NOTES/seen ] && exit 0; \
                setsid sh -c 'echo $$ > $NOTES/seen; exec sleep 1000' > /dev/null 2>&1 & wait";
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "--gate", gate, "p"]);
    sandbox.wait_for_note("seen");
    let pids = [sandbox.processes_named("refrain-keeper")[0], session.pid()];
    pids.iter().for_each(|pid| signal_process(*pid, Signal::STOP));
    pids.iter().for_each(|pid| signal_process(*pid, Signal::KILL));
    session.wait();
    assert!(!sandbox.survivors().is_empty(), "the gate has lost its runner and its keeper");
    sandbox.refrain(&["resume", "job"]).with_code(0);
    sandbox.no_process_is_left();
}

#[test]
fn sigterm_ends_the_agent_refunds_and_pauses() {
    let sandbox = sandbox();
    let session = zoo(&sandbox);
    session.signal(Signal::TERM);
    session.wait().with_code(16);
    everything_is_kept_and_gone(&sandbox, "interrupted");
}

#[test]
fn sighup_ends_the_agent_refunds_and_pauses() {
    let sandbox = sandbox();
    let session = zoo(&sandbox);
    session.signal_group(Signal::HUP);
    session.wait().with_code(16);
    everything_is_kept_and_gone(&sandbox, "interrupted");
}

#[test]
fn a_loop_under_nohup_outlives_its_terminal() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", &format!("echo x > $NOTES/up; read -r _ < $GATES/go; {CLAIM}"));
    let program = env!("CARGO_BIN_EXE_refrain");
    let words = [program, "start", "--command", &agent, "--name", "job", "p"];
    let session = sandbox.tool("nohup", &words).spawn();
    sandbox.wait_for_note("up");
    session.signal_group(Signal::HUP);
    gate.let_one_pass();
    session.wait().with_code(0);
}

#[test]
fn ctrl_c_twice_ends_the_agent_refunds_and_pauses() {
    let sandbox = sandbox();
    let session = zoo(&sandbox);
    session.signal_group(Signal::INT);
    sandbox.wait_for_event("job", "asked");
    session.signal_group(Signal::INT);
    session.wait().with_code(16);
    everything_is_kept_and_gone(&sandbox, "interrupted");
}

#[test]
fn ctrl_c_once_lets_the_iteration_end_and_does_not_reach_the_agent() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", "echo x > $NOTES/up; read -r _ < $GATES/go; echo ended in peace");
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("up");
    session.signal_group(Signal::INT);
    session.wait_for_output("Ctrl-C again");
    gate.let_one_pass();
    session.wait().with_code(16);
    assert_eq!(sandbox.kept_text("job", "0001", "output.log"), "ended in peace\n");
    assert_eq!(sandbox.status("job")["charged"], 1);
}

#[test]
fn a_detached_runner_ignores_sighup_and_heeds_sigterm() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo x > $NOTES/up; exec sleep 1000");
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "--detach", "p"]).with_code(0);
    sandbox.wait_for_note("up");
    let pid = i32::try_from(sandbox.status("job")["runner"]["pid"].as_i64().unwrap()).unwrap();
    signal_process(pid, Signal::HUP);
    sandbox.refrain(&["steer", "job", "still there?"]).with_code(0);
    assert_eq!(sandbox.status("job")["status"], "running");
    signal_process(pid, Signal::TERM);
    sandbox.wait_for_status("job", "paused");
    sandbox.no_process_is_left();
}

#[test]
fn a_wrapper_that_passes_no_signals_keeps_no_process_alive() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "trap '' INT TERM; echo x > $NOTES/up; while :; do sleep 1; done");
    let wrapper = sandbox.agent("wrapper", &format!("trap '' INT TERM HUP; {agent} & wait; wait"));
    let session = sandbox.spawn(&["start", "--command", &wrapper, "--name", "job", "p"]);
    sandbox.wait_for_note("up");
    sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    session.wait().with_code(15);
    sandbox.no_process_is_left();
}

#[rstest]
#[case::ctrl_c(Signal::INT)]
#[case::kill(Signal::TERM)]
#[case::closed_terminal(Signal::HUP)]
fn a_verb_that_a_signal_ends_leaves_no_git_and_no_lock(
    #[case] signal: Signal,
    #[values(
        (&["diff", "job"][..], "true"),
        (&["merge", "job"][..], "true"),
        (&["merge", "job", "--unverified"][..], "test -e .git/index.lock && echo x > .git/up")
    )]
    (words, slow): (&[&str], &str),
) {
    let sandbox = sandbox();
    // From then on such a git does not end. One that is held to its folders cannot write a note.
    let git = r#"if [ -e $NOTES/slow ] && . $NOTES/slow; then echo x > $NOTES/up; exec sleep 1000; fi
PATH=${PATH#*:}; exec git "$@""#;
    let git = sandbox.agent("git", git);
    let usual = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    let path = format!("{}:{usual}", git.strip_suffix("/git").unwrap());
    let refrain = |words: &[&str]| sandbox.command(words).env("PATH", &path);
    let agent = sandbox.agent("agent", &format!("echo x > made\n{CLAIM}"));
    refrain(&["start", "--command", &agent, "--name", "job", "--worktree", "--auto-commit", "p"])
        .run()
        .with_code(0);
    testkit::write(&sandbox.root().join("notes/slow"), slow);
    let session = refrain(words).spawn();
    let up = [sandbox.root().join("notes/up"), sandbox.project().join(".git/up")];
    testkit::eventually("a git hangs", || up.iter().any(|up| up.exists()).then_some(()));
    session.signal(signal);
    session.wait().with_code(128 + signal.as_raw());
    sandbox.no_process_is_left();
    assert!(!sandbox.project().join(".git/index.lock").exists());
}

#[test]
fn agents_start_with_default_signals_under_nohup() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("grep SigIgn /proc/self/status > $NOTES/ignored\n{CLAIM}"));
    let words = [
        "-c",
        "trap '' HUP INT QUIT PIPE; exec \"$0\" start --command \"$1\" p",
        env!("CARGO_BIN_EXE_refrain"),
        &agent,
    ];
    sandbox.tool("sh", &words).run().with_code(0);
    let note = sandbox.note("ignored");
    let mask = note.split_whitespace().last().and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap();
    // The standard signals: 32 and 33 are glibc's own, and its posix_spawn leaves them ignored.
    assert_eq!(mask & 0x7fff_ffff, 0, "{note}");
}

#[test]
fn two_loops_side_by_side_do_not_touch_each_others_processes() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo x > $NOTES/$REFRAIN_LOOP_ID; exec sleep 1000");
    let start =
        |id: &str| sandbox.spawn(&["start", "--command", &agent, "--name", id, "--share-worktree", "p"]);
    let (first, mut second) = (start("first"), start("second"));
    sandbox.wait_for_note("first");
    sandbox.wait_for_note("second");
    sandbox.refrain(&["cancel", "first", "--now"]).with_code(0);
    first.wait().with_code(15);
    assert!(second.is_running());
    assert_eq!(sandbox.status("second")["status"], "running");
    sandbox.refrain(&["cancel", "second", "--now"]).with_code(0);
    second.wait().with_code(15);
    sandbox.no_process_is_left();
}
