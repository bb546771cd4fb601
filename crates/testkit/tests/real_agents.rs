//! The real programs against the scripted model, without Refrain between them: that the model speaks to each as its own
//! does, and that each still behaves as the adapters expect. One module for each program; what is named `main_job` is the
//! smoke test.

use serde_json::Value;
use testkit::{Agent, ConnectionEnd, Model, Real, Run, Sandbox, Script, Signal, Turn};

/// A sandbox, a model, and the program in the one asking the other.
struct Bench {
    sandbox: Sandbox,
    model: Model,
    real: Real,
}

impl Bench {
    fn new(agent: Agent, script: impl IntoIterator<Item = Turn>) -> Self {
        let sandbox = Sandbox::new("no program of ours");
        let model = Model::start(Script::new(script));
        let real = Real::new(agent, &model.url(), &sandbox.root().join("home"));
        Self { sandbox, model, real }
    }

    fn run(&self) -> Run {
        let limit = std::time::Duration::from_secs(60);
        self.real.told("Do what is to be done.\n", &self.sandbox).spawn().wait_at_most(limit)
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.real = self.real.with(name, value);
        self
    }
}

const FULL: &str =
    "The work is done, and all that was asked for is there, in more words than one piece holds.";

/// Everything that an agent prints, from its own events.
fn said(agent: Agent, run: &Run) -> String {
    let events = run.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let text = events.filter_map(|event| {
        let text = match agent {
            Agent::Claude if event["type"] == "result" => &event["result"],
            Agent::Codex => &event["item"]["text"],
            Agent::OpenCode => &event["part"]["text"],
            Agent::Gemini if event["role"] == "assistant" => &event["content"],
            Agent::Claude | Agent::Gemini => &Value::Null,
        };
        text.as_str().map(str::to_owned)
    });
    text.collect()
}

/// A turn with tools, a turn with text: the command was run, the file is there, and the model received each thing
/// once.
#[track_caller]
fn does_the_main_job(agent: Agent) {
    let script = [
        Turn::bash("printf 'seen by the %s' model && touch ran.txt").and_say("First a command."),
        Turn::write("written.txt", "by the agent\n"),
        Turn::say(FULL),
    ];
    let bench = Bench::new(agent, script);
    let run = bench.run().with_code(0);
    assert!(said(agent, &run).contains(FULL), "{}", run.stdout);
    let project = bench.sandbox.project();
    assert!(project.join("ran.txt").is_file());
    let written = std::fs::read_to_string(project.join("written.txt"));
    assert_eq!(written.ok().as_deref(), Some("by the agent\n"));
    let turns = bench.model.turns();
    assert_eq!(turns.len(), 3, "{turns:#?}");
    for turn in &turns {
        assert_eq!(turn.prompts, ["Do what is to be done.\n"], "{turn:#?}");
        assert!(turn.has_key);
    }
    assert_eq!(turns.iter().map(|turn| turn.tool_results.len()).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(turns[1].tool_results[0].contains("seen by the model"), "{turns:#?}");
}

/// Asked once, refused once, answered once: the program tries again by itself.
#[track_caller]
fn gets_over(agent: Agent, fault: Turn) -> Run {
    let bench = Bench::new(agent, [fault, Turn::say(FULL)]);
    let run = bench.run().with_code(0);
    assert!(said(agent, &run).contains(FULL), "{}", run.stdout);
    assert_eq!(bench.model.prompts().len(), 2);
    run
}

/// Fails with this code, after so many requests, and prints this.
#[track_caller]
fn fails(bench: &Bench, code: i32, asked: usize, words: &str) {
    let run = bench.run().with_code(code);
    let seen = format!("{}\n{}", run.stdout, run.stderr);
    assert!(seen.contains(words), "{seen}");
    assert_eq!(bench.model.turns().len(), asked, "{seen}");
}

/// Waits for a silent model until it is killed; then no process is left.
#[track_caller]
fn hangs_until_killed(agent: Agent, script: Turn) {
    let bench = Bench::new(agent, [script]);
    let mut session = bench.real.told("Wait.\n", &bench.sandbox).spawn();
    bench.model.wait_for(1);
    assert!(session.is_running());
    session.signal_group(Signal::KILL);
    assert_eq!(session.wait().code, 128 + 9);
    bench.model.wait_until("the program to be gone", |all| {
        all.iter().filter(|request| request.is_main()).all(|request| request.ending == ConnectionEnd::Left)
    });
    bench.sandbox.no_process_is_left();
}

/// Each by a lane of its own, and neither answered before both have asked.
#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_and_codex_at_once() {
    let sandbox = Sandbox::new("no program of ours");
    let model = Model::start(Script::new([]));
    let agents = [Agent::Claude, Agent::Codex];
    let sessions = agents.map(|agent| {
        let script = Script::new([Turn::say(format!("{FULL} {agent:?}")).held()]);
        let url = model.lane(agent.name(), script);
        let real = Real::new(agent, &url, &sandbox.root().join("home").join(agent.name()));
        real.told(&format!("For {agent:?} – “alone”.\n\n  Two lines.\n"), &sandbox).spawn()
    });
    model.wait_for(2);
    model.let_one_pass();
    model.let_one_pass();
    for (agent, session) in agents.into_iter().zip(sessions) {
        let run = session.wait().with_code(0);
        assert!(said(agent, &run).contains(&format!("{FULL} {agent:?}")), "{}", run.stdout);
        let turns: Vec<_> = model.turns().into_iter().filter(|turn| turn.lane == agent.name()).collect();
        assert_eq!(turns.len(), 1);
        let prompt = format!("For {agent:?} – “alone”.\n\n  Two lines.\n");
        assert_eq!(turns[0].prompts, [prompt], "{turns:#?}");
    }
}

mod claude {
    use super::*;

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn main_job() {
        does_the_main_job(Agent::Claude);
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn a_usage_limit_ends_it_at_once() {
        let mut bench = Bench::new(Agent::Claude, [Turn::usage_limit(3600).times(9)]);
        bench.real = bench.real.with_subscription();
        fails(&bench, 1, 1, "rate_limit_event");
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn an_overload_is_retried_and_then_reported() {
        assert!(gets_over(Agent::Claude, Turn::overloaded()).stdout.contains("api_retry"));
        let bench =
            Bench::new(Agent::Claude, [Turn::overloaded().times(9)]).with("CLAUDE_CODE_MAX_RETRIES", "1");
        fails(&bench, 1, 2, "\"api_error_status\":529");
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn a_reset_is_tried_again() {
        gets_over(Agent::Claude, Turn::reset());
        gets_over(Agent::Claude, Turn::say(FULL).then_reset());
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn a_silent_model_is_waited_for() {
        hangs_until_killed(Agent::Claude, Turn::hang());
        hangs_until_killed(Agent::Claude, Turn::say(FULL).then_hang());
    }
}

mod codex {
    use super::*;

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn main_job() {
        does_the_main_job(Agent::Codex);
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn a_usage_limit_ends_it_at_once() {
        let bench = Bench::new(Agent::Codex, [Turn::usage_limit(3600).times(9)]);
        fails(&bench, 1, 1, "hit your usage limit");
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn an_overload_is_retried_and_then_reported() {
        gets_over(Agent::Codex, Turn::overloaded());
        let bench = Bench::new(Agent::Codex, [Turn::overloaded().times(usize::MAX)]);
        fails(&bench, 1, 3, "at capacity");
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn a_reset_is_tried_again() {
        gets_over(Agent::Codex, Turn::reset());
        gets_over(Agent::Codex, Turn::say(FULL).then_reset());
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn a_silent_model_is_waited_for() {
        hangs_until_killed(Agent::Codex, Turn::hang());
        hangs_until_killed(Agent::Codex, Turn::say(FULL).then_hang());
    }
}

mod opencode {
    use super::*;

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn main_job() {
        does_the_main_job(Agent::OpenCode);
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn a_usage_limit_is_tried_again_in_silence() {
        gets_over(Agent::OpenCode, Turn::usage_limit(3600));
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn an_overload_is_tried_again_in_silence() {
        gets_over(Agent::OpenCode, Turn::overloaded());
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn a_reset_is_tried_again() {
        gets_over(Agent::OpenCode, Turn::say(FULL).then_reset());
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn a_silent_model_is_waited_for() {
        hangs_until_killed(Agent::OpenCode, Turn::hang());
    }
}

mod gemini {
    use super::*;

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn main_job() {
        does_the_main_job(Agent::Gemini);
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn a_usage_limit_ends_it_at_once() {
        let bench = Bench::new(Agent::Gemini, [Turn::usage_limit(3600).times(9)]);
        fails(&bench, 173, 1, "daily quota");
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn an_overload_is_tried_again_after_a_while() {
        gets_over(Agent::Gemini, Turn::overloaded());
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn a_reset_in_the_stream_ends_it() {
        let bench = Bench::new(Agent::Gemini, [Turn::say(FULL.repeat(3)).then_reset()]);
        fails(&bench, 1, 1, "terminated");
    }

    #[test]
    #[ignore = "needs the real programs: cargo xtask e2e agents"]
    fn a_silent_model_is_waited_for() {
        hangs_until_killed(Agent::Gemini, Turn::hang());
    }
}
