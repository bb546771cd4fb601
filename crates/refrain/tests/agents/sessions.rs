//! A loop that the program's own session drives: our plugin loaded, the loop begun by its command, gone on with by its hook.

use serde_json::{Value, json};
use testkit::{Agent, Session, Turn, write};

use crate::bench::{Bench, CLAIM, LONG, attempts};

/// The program in a session of a person's, with our plugin.
fn session(bench: &Bench, prompt: &str) -> Session {
    let plugin =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("it lies in a workspace");
    let plugin = plugin.join("plugins/claude");
    let words =
        bench.real.headless().into_iter().chain(["--plugin-dir".into(), plugin.display().to_string()]);
    let words: Vec<String> = words.collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let program = bench.real.program.to_str().expect("it is UTF-8");
    bench.sandbox.tool(program, &words).envs(&bench.real.env).stdin(prompt).spawn()
}

/// A bench whose program finds `refrain`, in a project that a gate proves.
fn bench(script: Vec<Turn>) -> Bench {
    let mut bench = Bench::new(Agent::Claude, script);
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_refrain")).parent().expect("it lies in a folder");
    let path = bench.real.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    let path = format!("{}:{}", folder.display(), path.expect("every program has a PATH"));
    bench.real = bench.real.with("PATH", &path);
    write(&bench.sandbox.project().join("refrain.toml"), "[gates.made]\ncommand = \"test -e made\"\n");
    bench.refrain(&["trust"]).run().with_code(0);
    bench
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
    let bench = bench(script);
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
    assert!(last.contains("CLAIM REFUSED: you said done, but gate made says otherwise"), "{last}");
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
    bench.sandbox.nobody_survives();
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_is_killed_in_its_session_and_another_goes_on_and_then_a_process() {
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
    let bench = bench(script);
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
