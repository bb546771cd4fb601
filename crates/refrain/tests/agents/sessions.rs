//! A loop that the program's own session drives: our plugin is loaded, its command starts the loop, its hook continues
//! it.

use rstest::rstest;
use serde_json::{Value, json};
use testkit::{Agent, Real, Script, Session, Turn, write};

use crate::bench::{Bench, CLAIM, LONG, attempts};

/// A bench whose program finds `refrain`, with our plugin installed, in a project with a gate.
fn bench(agent: Agent, script: Vec<Turn>) -> Bench {
    let mut bench = Bench::new(agent, script);
    bench.real = at_home(bench.real);
    write(&bench.sandbox.project().join("refrain.toml"), "[gates.made]\ncommand = \"test -e made\"\n");
    bench.sandbox.trust();
    if agent == Agent::Codex {
        // Its tools run in a shell that logs in.
        let profile = format!("export PATH={}:$PATH\n", folder().display());
        write(&bench.sandbox.root().join("home/.profile"), profile);
    }
    if agent != Agent::Claude {
        bench.refrain(&["plugin", "install", agent.name()]).run().with_code(0);
    }
    bench
}

fn folder() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_BIN_EXE_refrain")).parent().expect("it lies in a folder")
}

/// The program as it finds `refrain`.
fn at_home(real: Real) -> Real {
    let path = real.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    let path = format!("{}:{}", folder().display(), path.expect("every program has a PATH"));
    real.with("PATH", &path)
}

/// The program in a session of a person's, with our plugin.
fn session(bench: &Bench, prompt: &str) -> Session {
    session_of(&bench.real, bench, prompt)
}

fn session_of(real: &Real, bench: &Bench, prompt: &str) -> Session {
    let plugin =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("it lies in a workspace");
    let mut words = real.headless();
    match real.agent {
        Agent::Claude => {
            words.extend(["--plugin-dir".into(), plugin.join("plugins/claude").display().to_string()]);
        }
        // A user trusts these hooks once in a terminal.
        Agent::Codex => words.insert(1, "--dangerously-bypass-hook-trust".into()),
        Agent::Gemini | Agent::OpenCode => {}
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let program = real.program.to_str().expect("it is UTF-8");
    bench.sandbox.tool(program, &words).envs(&real.env).stdin(prompt).spawn()
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_drives_a_loop_in_its_session() {
    let script = vec![
        Turn::bash("refrain tick advance job"),
        Turn::say("[loop job iteration 1/5]\nI see where things are."),
        Turn::bash("ls"),
        Turn::say(CLAIM),
        Turn::write("made", "yes\n"),
        Turn::say(CLAIM),
    ];
    let bench = bench(Agent::Claude, script);
    let told = "/refrain:loop Make \"made\" (all of it). --max-iterations 5 --name job";
    let run = session(&bench, told).wait_at_most(LONG).with_code(0);
    let status = bench.status();
    assert_eq!((&status["kind"], &status["status"]), (&json!("session"), &json!("completed")), "{status:#}");
    assert_eq!(status["verified"], true, "{}", run.stdout);
    assert_eq!(
        attempts(&status),
        [json!([1, 1, true, "ended"]), json!([2, 1, true, "claimed"]), json!([3, 1, true, "claimed"])]
    );
    let turns = bench.asked_exactly(6);
    let last = turns[5].prompts.join("\n");
    assert!(last.contains("[loop job iteration 2/5]") && last.contains("[loop job iteration 3/5]"), "{last}");
    assert!(last.contains("CLAIM REFUSED: gate made failed"), "{last}");
    let begun = &bench.sandbox.journal("job")[0]["event"]["data"]["spec"]["prompt"];
    assert_eq!(begun, "Make \"made\" (all of it).");
    let bound: Vec<Value> = bench
        .sandbox
        .journal("job")
        .into_iter()
        .filter(|line| line["event"]["type"] == "session.bound")
        .collect();
    assert!(bound[0]["event"]["data"]["process"]["pid"].is_i64(), "its process is known: {bound:#?}");
    bench.refrain(&["verify", "job"]).run().with_code(0);
    bench.sandbox.no_process_is_left();
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_is_killed_in_its_session_and_a_session_and_a_process_continue() {
    let script = vec![
        Turn::bash("refrain tick advance job"),
        Turn::say("I see where things are."),
        Turn::say("Nobody hears this.").held(),
        // Another session.
        Turn::bash("refrain tick advance job"),
        Turn::say("It is not made yet."),
        Turn::say("Nobody hears this either.").held(),
        // A process.
        Turn::say(CLAIM),
    ];
    let bench = bench(Agent::Claude, script);
    let first = session(&bench, "/refrain:loop Make it. --name job");
    bench.model.wait_for(3);
    assert_eq!(bench.status()["runner"]["alive"], true);
    bench.refrain(&["resume", "job"]).run().with_code(17);
    first.kill();
    assert_eq!(bench.status()["status"], "crashed", "its session is gone");

    let second = session(&bench, "/refrain:loop --resume job");
    bench.model.wait_for(6);
    assert_eq!(bench.status()["status"], "running");
    second.kill();
    write(&bench.sandbox.project().join("made"), "yes\n");
    let status = bench.completed(bench.refrain(&["resume", "job"]).spawn());
    assert_eq!((&status["kind"], &status["verified"]), (&json!("process"), &json!(true)));
    assert_eq!(
        attempts(&status),
        [
            json!([1, 1, true, "ended"]),
            json!([2, 1, false, "lost"]),
            json!([2, 2, true, "ended"]),
            json!([3, 1, false, "lost"]),
            json!([3, 2, true, "claimed"])
        ]
    );
    bench.asked_exactly(7);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn two_sessions_of_claude_in_one_project_do_not_meet() {
    let bench = bench(Agent::Claude, vec![]);
    let pair = [("one", "two"), ("two", "one")];
    let sessions = pair.map(|(own, other)| {
        // Neither continues before the other is in its second iteration too.
        let meet = format!(
            "touch {own}.here; until test -e {other}.here; do sleep 0.05; done; touch made; \
             refrain tick advance {other} && touch taken; refrain tick finish {other} completed && touch taken"
        );
        let script = Script::new(vec![
            Turn::bash(format!("refrain tick advance {own}")),
            Turn::say(format!("I am {own}.")),
            Turn::bash(meet),
            Turn::say(format!("<promise>ALL OF {other}</promise>")),
            Turn::say(format!("<promise>ALL OF {own}</promise>")),
        ]);
        let real =
            Real::new(Agent::Claude, &bench.model.lane(own, script), &bench.sandbox.root().join("home"));
        let told = format!("/refrain:loop Make it. --name {own} --completion-promise \"ALL OF {own}\"");
        session_of(&at_home(real), &bench, &told)
    });
    for session in sessions {
        session.wait_at_most(LONG).with_code(0);
    }
    assert!(!bench.sandbox.project().join("taken").exists(), "none acts for the other");
    for (own, other) in pair {
        let status = bench.sandbox.status(own);
        assert_eq!(
            (&status["status"], &status["verified"]),
            (&json!("completed"), &json!(true)),
            "{status:#}"
        );
        assert_eq!(
            attempts(&status),
            [json!([1, 1, true, "ended"]), json!([2, 1, true, "ended"]), json!([3, 1, true, "claimed"])]
        );
        let asked: Vec<_> = bench.model.turns().into_iter().filter(|turn| turn.lane == own).collect();
        assert_eq!(asked.len(), 5, "{asked:#?}");
        assert!(!asked[4].prompts.join("\n").contains(&format!("[loop {other}")), "{:#?}", asked[4]);
    }
}

/// A loop that the agent starts by itself, as a program without our commands is instructed to, and that its hook
/// drives: three iterations, a claim refused by the gate, and one that is verified.
#[rstest]
#[case::codex(Agent::Codex)]
#[case::gemini(Agent::Gemini)]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn another_program_drives_a_loop_in_its_session(#[case] agent: Agent) {
    let name = agent.name();
    let script = vec![
        Turn::bash(format!(
            "refrain tick begin /refrain:loop --agent {name} --name job --max 5 --args 'Make it.'"
        )),
        Turn::bash("refrain tick advance job"),
        Turn::say("I see where things are."),
        Turn::bash("ls"),
        Turn::say(CLAIM),
        Turn::write("made", "yes\n"),
        Turn::say(CLAIM),
    ];
    let bench = bench(agent, script);
    let run = session(&bench, "Loop until it is made.").wait_at_most(LONG).with_code(0);
    let status = bench.status();
    assert_eq!((&status["kind"], &status["status"]), (&json!("session"), &json!("completed")), "{status:#}");
    assert_eq!(status["verified"], true, "{}", run.stdout);
    assert_eq!(
        attempts(&status),
        [json!([1, 1, true, "ended"]), json!([2, 1, true, "claimed"]), json!([3, 1, true, "claimed"])]
    );
    let last = bench.asked_exactly(7)[6].prompts.join("\n");
    assert!(last.contains("[loop job iteration 2/5]") && last.contains("[loop job iteration 3/5]"), "{last}");
    assert!(last.contains("CLAIM REFUSED: gate made failed"), "{last}");
    bench.refrain(&["verify", "job"]).run().with_code(0);
    bench.sandbox.no_process_is_left();
}
