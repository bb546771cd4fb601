//! `refrain plugin install`, and then the program itself: its session starts a loop, and continues by the installed
//! hook.

use serde_json::{Value, json};
use testkit::{Agent, Session, Turn, write};

use crate::bench::{Bench, CLAIM, LONG, attempts};

/// The words by which the agent of a session begins a loop.
fn begin(agent: Agent) -> Turn {
    let name = agent.name();
    Turn::bash(format!(
        "refrain tick begin /refrain:loop --agent {name} --args 'Make it. --name job --max 5'"
    ))
}

fn advance() -> Turn {
    Turn::bash("refrain tick advance job")
}

/// A bench whose program has our plugin, and finds `refrain`.
fn bench(agent: Agent, script: Vec<Turn>) -> Bench {
    let mut bench = Bench::new(agent, script);
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_refrain")).parent().expect("it lies in a folder");
    let path = bench.real.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    let path = format!("{}:{}", folder.display(), path.expect("every program has a PATH"));
    // Codex runs its tools in a login shell, which has the PATH of the person's profile.
    write(&bench.sandbox.root().join("home/.profile"), format!("PATH={path}\n"));
    bench.real = bench.real.with("PATH", &path);
    bench.refrain(&["plugin", "install", agent.name()]).run().with_code(0);
    bench
}

/// A session with this prompt continues by its hook until it is done.
#[track_caller]
fn loops(mut bench: Bench, prompt: &str, turns: usize) {
    if bench.real.agent == Agent::Codex {
        // A person trusts its hooks in a terminal.
        bench.real.extra.push("--dangerously-bypass-hook-trust".to_owned());
    }
    bench.real.told(prompt, &bench.sandbox).spawn().wait_at_most(LONG).with_code(0);
    finished(&bench, turns);
    bench.sandbox.no_process_is_left();
}

/// There were three iterations, of which the last claims; then the plugin is taken back.
#[track_caller]
fn finished(bench: &Bench, turns: usize) {
    let status = bench.status();
    assert_eq!((&status["kind"], &status["status"]), (&json!("session"), &json!("completed")), "{status:#}");
    assert_eq!(
        attempts(&status),
        [json!([1, 1, true, "ended"]), json!([2, 1, true, "ended"]), json!([3, 1, true, "claimed"])]
    );
    let turns = bench.asked_exactly(turns);
    let last = turns.last().expect("there are some").prompts.join("\n");
    assert!(last.contains("[loop job iteration 2/5]") && last.contains("[loop job iteration 3/5]"), "{last}");
    let bound =
        bench.sandbox.journal("job").into_iter().filter(|line| line["event"]["type"] == "session.bound");
    let bound: Vec<Value> = bound.map(|line| line["event"]["data"].clone()).collect();
    assert!(
        bound.iter().any(|bound| bound["id"].is_string() && bound["process"]["pid"].is_i64()),
        "{bound:#?}"
    );
    let name = bench.real.agent.name();
    bench.refrain(&["plugin", "remove", name]).run().with_code(0);
    let left = bench.refrain(&["plugin", "status", name, "--json"]).run().with_code(0).json();
    assert_eq!(left[0]["standing"], "not-installed", "{left:#}");
}

fn three() -> [Turn; 3] {
    [Turn::say("I see where things are."), Turn::say("It is half made."), Turn::say(CLAIM)]
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_loads_its_installed_plugin() {
    let script = [advance()].into_iter().chain(three()).collect();
    loops(bench(Agent::Claude, script), "/refrain:loop Make it. --name job --max-iterations 5", 4);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_loads_its_installed_plugin() {
    let script = [begin(Agent::Codex), advance()].into_iter().chain(three()).collect();
    let bench = bench(Agent::Codex, script);
    loops(bench, "$refrain-loop Make it. --name job --max 5", 5);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_loads_its_installed_plugin() {
    let script = [advance()].into_iter().chain(three()).collect();
    loops(bench(Agent::Gemini, script), "/refrain:loop Make \"it\". --name job --max 5", 4);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_loads_its_installed_plugin() {
    let script = [begin(Agent::OpenCode), advance()].into_iter().chain(three()).collect();
    let bench = bench(Agent::OpenCode, script);
    let (server, url) = serve(&bench);
    let words = ["--command", "refrain-loop", "Make it. --name job --max 5"];
    attached(&bench, &url, &words).wait_at_most(LONG).with_code(0);
    bench.sandbox.wait_for_status("job", "completed");
    finished(&bench, 5);
    server.kill();
    bench.sandbox.no_process_is_left();
}

/// Only a server, or a terminal, lives on when a session is idle; returns its URL.
fn serve(bench: &Bench) -> (Session, String) {
    let program = bench.real.program.to_str().expect("it is UTF-8");
    let words = ["serve", "--hostname", "127.0.0.1", "--port", "0"];
    let server = bench.sandbox.tool(program, &words).envs(&bench.real.env).spawn();
    server.wait_for_output("listening on http");
    let said = server.stdout();
    let url = said.split("listening on ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let url = url.expect("it says where").to_owned();
    (server, url)
}

/// Sends a prompt to a server's session; the client ends after the first turn.
fn attached(bench: &Bench, url: &str, words: &[&str]) -> Session {
    let program = bench.real.program.to_str().expect("it is UTF-8");
    let words: Vec<&str> =
        ["run", "--attach", url, "--format", "json"].iter().chain(words).copied().collect();
    bench.sandbox.tool(program, &words).envs(&bench.real.env).spawn()
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_rests_where_a_person_interrupts_it() {
    let mut script = vec![begin(Agent::OpenCode), advance(), Turn::say("Nobody hears this.").held()];
    script.extend(three().into_iter().skip(1));
    let bench = bench(Agent::OpenCode, script);
    let (server, url) = serve(&bench);
    let first = attached(&bench, &url, &["--command", "refrain-loop", "Make it. --name job --max 5"]);
    bench.model.wait_for(3);
    let bound =
        bench.sandbox.journal("job").into_iter().find(|line| line["event"]["type"] == "session.bound");
    let session = bound.expect("it is bound from the begin")["event"]["data"]["id"].clone();
    let session = session.as_str().expect("its name is known");
    let ask = |what: &str, body: &str| {
        let url = format!("{url}/session/{session}/{what}");
        let json = "content-type: application/json";
        let words = ["--silent", "--fail", "--request", "POST", "--header", json, "--data", body, &url];
        bench.sandbox.tool("curl", &words).run().with_code(0);
    };
    ask("abort", "{}");
    first.wait_at_most(LONG);
    // The compaction hook reminds it of its loop; that is no turn.
    ask("summarize", r#"{"providerID": "scripted", "modelID": "main"}"#);
    // It continues if the user resumes it.
    attached(&bench, &url, &["--session", session, "Go on."]).wait_at_most(LONG).with_code(0);
    let status = bench.sandbox.wait_for_status("job", "completed");
    assert_eq!(attempts(&status), [json!([1, 1, true, "ended"]), json!([2, 1, true, "claimed"])]);
    bench.asked_exactly(5);
    let told = "[loop job iteration 1/5] This session drives this loop.";
    let is_told = |request: &testkit::Request| request.prompts.join("\n").contains(told);
    assert!(bench.model.requests().iter().any(is_told), "{:#?}", bench.model.requests());
    server.kill();
    bench.sandbox.no_process_is_left();
}
