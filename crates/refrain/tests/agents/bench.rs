//! Shared by all cases: a sandbox, a scripted model, a real program that asks it, and the loop over that program.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Agent, Invocation, Model, Real, Request, Run, Sandbox, Script, Session, Turn};

/// The user's prompt: more than ASCII, a mark that some programs expand, an end that must not be trimmed.
pub(crate) const PROMPT: &str =
    "Make `sh test.sh` pass – “all” of it.\n\n  - Keep $HOME and the like as they are.\n";

/// The only words that claim.
pub(crate) const CLAIM: &str = "The test passes.\n\n<promise>COMPLETE</promise>";

/// How long a loop over a real program may take. They start slowly, and the machine may be busy.
pub(crate) const LONG: Duration = Duration::from_secs(240);

/// A loop with a real program, and all that it needs.
pub(crate) struct Bench {
    pub(crate) sandbox: Sandbox,
    pub(crate) model: Model,
    pub(crate) real: Real,
}

impl Bench {
    pub(crate) fn new(agent: Agent, script: impl IntoIterator<Item = Turn>) -> Self {
        Self::over(Sandbox::new(env!("CARGO_BIN_EXE_refrain")), agent, script)
    }

    /// Outside of `/tmp`, which programs in a sandbox do not see.
    pub(crate) fn outside_of_tmp(agent: Agent, script: impl IntoIterator<Item = Turn>) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        Self::over(Sandbox::new_in(env!("CARGO_BIN_EXE_refrain"), folder), agent, script)
    }

    fn over(sandbox: Sandbox, agent: Agent, script: impl IntoIterator<Item = Turn>) -> Self {
        let model = Model::start(Script::new(script).then(Turn::say(CLAIM)));
        let real = Real::new(agent, &model.url(), &sandbox.root().join("home"));
        Self { sandbox, model, real }
    }

    /// With a subscription, for agents whose usage limits only a subscription has.
    pub(crate) fn with_plan(mut self) -> Self {
        if self.real.agent == Agent::Claude {
            self.real = self.real.with_subscription();
        }
        self
    }

    /// Runs Refrain with these words, in the environment of the program.
    pub(crate) fn refrain(&self, words: &[&str]) -> Invocation {
        self.sandbox.command(words).envs(&self.real.env)
    }

    /// `refrain start` of the loop `job` with all permissions, and these words besides.
    pub(crate) fn start(&self, words: &[&str]) -> Invocation {
        self.start_with("full", words)
    }

    /// The same with these permissions.
    pub(crate) fn start_with(&self, permissions: &str, words: &[&str]) -> Invocation {
        let extra = self.real.extra.iter().map(|word| format!("--agent-arg={word}"));
        let extra: Vec<String> = extra.collect();
        let name = self.real.agent.name();
        let start = ["start", "--agent", name, "--name", "job", "--prompt", PROMPT];
        let start = start.into_iter().chain(["--permissions", permissions]);
        let words: Vec<&str> =
            start.chain(words.iter().copied()).chain(extra.iter().map(String::as_str)).collect();
        self.refrain(&words)
    }

    /// Starts the loop and sees it through to its completion.
    #[track_caller]
    pub(crate) fn completes(&self, words: &[&str]) -> Value {
        self.completed(self.start(words).spawn())
    }

    /// The session completes the loop; the journal verifies and no process is left.
    #[track_caller]
    pub(crate) fn completed(&self, session: Session) -> Value {
        self.ended(session, 0);
        let status = self.status();
        assert_eq!(status["status"], "completed", "{status:#}");
        assert_eq!(status["claim"]["source"], "promise");
        status
    }

    /// The session ends with this code, its journal whole, and no process is left.
    #[track_caller]
    pub(crate) fn ended(&self, session: Session, code: i32) -> Run {
        let run = session.wait_at_most(LONG).with_code(code);
        self.sandbox.no_process_is_left();
        self.refrain(&["verify", "job"]).run().with_code(0);
        run
    }

    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        self.sandbox.status("job")
    }

    /// A file in the project; empty if there is none.
    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.sandbox.project().join(name)).unwrap_or_default()
    }

    /// Checks the prompts of all conversations: each begins with the user's own, unchanged, and explains the loop and
    /// the run. `iterations` is the iteration of each.
    #[track_caller]
    pub(crate) fn prompts_are_of(&self, iterations: &[usize]) {
        let prompts = self.model.prompts();
        assert_eq!(prompts.len(), iterations.len(), "{prompts:#?}");
        for (prompt, n) in prompts.iter().zip(iterations) {
            let rest = prompt.strip_prefix(PROMPT);
            let rest = rest.unwrap_or_else(|| panic!("the person's prompt comes first: {prompt}"));
            assert_eq!(rest.matches("## How this loop works\n").count(), 1, "{prompt}");
            assert!(rest.contains(&format!("\n## Run {n} of ")), "{prompt}");
            assert_eq!(prompt.matches("Make `sh test.sh` pass").count(), 1, "said once: {prompt}");
        }
        let turns = self.model.turns();
        assert!(turns.iter().all(|turn| turn.has_key && turn.prompts.len() == 1), "{turns:#?}");
    }

    /// Every turn of the script was taken in its order, each once, and nothing was asked past its end.
    #[track_caller]
    pub(crate) fn asked_exactly(&self, turns: usize) -> Vec<Request> {
        let all = self.model.turns();
        assert_eq!(all.len(), turns, "{all:#?}");
        all
    }
}

/// Iteration, attempt, whether it is charged, and outcome of every attempt.
pub(crate) fn attempts(status: &Value) -> Vec<Value> {
    let row = |row: &Value| json!([row["n"], row["attempt"], row["charged"], row["outcome"]]);
    status["iterations"].as_array().expect("a status has its attempts").iter().map(row).collect()
}

/// Asserts the usage of all attempts: so many answers of the model, at 1,000 tokens in and 50 out each, and not "at
/// least". Claude Code knows the list price of its model, `OpenCode` has one in its configuration, the others report
/// none.
#[track_caller]
pub(crate) fn used(status: &Value, agent: Agent, answers: u32) {
    used_or_more(status, agent, answers, &Value::Null);
}

/// The same; `at_least` says whether an attempt told nothing of what it used.
#[track_caller]
pub(crate) fn used_or_more(status: &Value, agent: Agent, answers: u32, at_least: &Value) {
    let usage = &status["usage"];
    let dollars = |each: f64| json!((f64::from(answers) * each * 1e9).round() / 1e9);
    let cost = match agent {
        Agent::Claude => dollars(0.005),
        Agent::OpenCode => dollars(0.00375),
        Agent::Codex | Agent::Gemini => Value::Null,
    };
    let expected = json!([1000 * answers, 50 * answers, cost, at_least]);
    let found = json!([usage["input_tokens"], usage["output_tokens"], usage["cost_usd"], usage["at_least"]]);
    assert_eq!(found, expected, "{usage:#}");
}
