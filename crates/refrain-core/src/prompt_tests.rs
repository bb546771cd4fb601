//! Prompts, word for word: what the agent is told is a contract.

use jiff::Timestamp;
use rstest::rstest;

use super::{FAILURE_EXCERPT, Printed};
use crate::event::{
    Ask, AttemptFinished, Event, Exit, FORMAT, GateFinished, Identity, LoopStarted, Process, Record,
    StopReason,
};
use crate::gate::{Check, GateName, GateSpec};
use crate::ids::AttemptId;
use crate::r#loop::LoopState;
use crate::memory::{self, MemorySpec, Recalled};
use crate::promise::{MatchMode, NearMiss, Promise, PromiseText};
use crate::spec::{AgentKind, AgentSpec, Limits, Millis, PromptMode, Spec};

fn assemble(state: &LoopState, attempt: Option<&str>) -> String {
    super::assemble(state, Printed { attempt, gates: &[], earlier: &[], touched: None, outside: None })
}

fn spec(prompt: &str) -> Spec {
    let text = PromiseText::try_new("COMPLETE").unwrap();
    Spec {
        id: "mend".parse().unwrap(),
        agent: AgentSpec {
            kind: AgentKind::Generic,
            program: "agent".into(),
            args: Vec::new(),
            prompt_mode: PromptMode::Auto,
            env: Default::default(),
            clean_env: false,
            model: None,
            permissions: Default::default(),
            output_format: Default::default(),
            price: None,
        },
        prompt: prompt.into(),
        iteration_context: true,
        promise: Some(Promise { text, mode: MatchMode::Plain }),
        limits: Limits {
            max_iterations: Some(20),
            max_duration: None,
            timeout: None,
            idle_timeout: None,
            pause: None,
            max_cost: None,
            max_tokens: None,
            retry_for: None,
            timeout_grace: None,
        },
        project: "/project".into(),
        worktree: "/project".into(),
        working_dir: "/project".into(),
        git: Default::default(),
        gates: Vec::new(),
        protect: Default::default(),
        until: Default::default(),
        clean_checkout: false,
        approval: false,
        stuck: Default::default(),
        critique: None,
        caps: Default::default(),
        keep_failed: false,
        mirrors: Vec::new(),
        memory: None,
        carried: None,
        mode: None,
        trace: None,
        task: None,
        session: None,
        depth: 0,
        output_cap: Spec::OUTPUT_CAP,
    }
}

fn without_promise(prompt: &str) -> Spec {
    Spec { promise: None, ..spec(prompt) }
}

fn finished(exit: Exit) -> AttemptFinished {
    AttemptFinished {
        exit,
        promised: false,
        near_miss: None,
        gave_up: None,
        work: None,
        needs: None,
        state: None,
        idle: false,
        stdout_bytes: 0,
        stderr_bytes: 0,
        preview: String::new(),
        summary: None,
        left: false,
        output_error: None,
        report: None,
        fingerprint: None,
        sealed: Default::default(),
    }
}

fn apply(state: &mut LoopState, event: Event) {
    let record = Record { seq: state.seq + 1, at: Timestamp::UNIX_EPOCH, event };
    state.apply(&record).unwrap();
}

/// The state of a loop whose iterations ended like this, and whose next one has begun.
fn after(spec: Spec, ends: impl IntoIterator<Item = (Option<StopReason>, AttemptFinished)>) -> LoopState {
    let start = LoopStarted { format: FORMAT, refrain: "0.1.0".into(), spec };
    let event = Event::LoopStarted(Box::new(start));
    let mut state = LoopState::begin(&Record { seq: 1, at: Timestamp::UNIX_EPOCH, event }).unwrap();
    let process = Process { pid: 7, start: 7 };
    let runner = Identity { process, boot: "boot".into(), host: "host".into() };
    apply(&mut state, Event::RunnerStarted { runner, interrupted: None, adopted: None, judged: None });
    apply(&mut state, Event::IterationBegun { iteration: 1, work: None });
    for (because, finished) in ends {
        let id = AttemptId { iteration: state.iteration, attempt: 1 };
        apply(&mut state, Event::AttemptStarted(id));
        apply(&mut state, Event::AttemptSpawned { process });
        if let Some(because) = because {
            apply(&mut state, Event::AttemptStopRequested { because });
        }
        apply(&mut state, Event::AttemptFinished(Box::new(finished)));
        let iteration = state.iteration + 1;
        apply(&mut state, Event::IterationBegun { iteration, work: None });
    }
    state
}

fn iteration(n: usize, spec: Spec) -> LoopState {
    after(spec, vec![(None, finished(Exit::Code(3))); n - 1])
}

fn steered(mut state: LoopState, words: &[&str]) -> LoopState {
    for text in words {
        apply(&mut state, Event::Asked { request: None, ask: Ask::Steer((*text).into()) });
    }
    state
}

const LOOP: &str = "\
---
LOOP:
- You are run again and again until the work is done; each run starts afresh
- Only when the task is completely finished, print <promise>COMPLETE</promise> alone on a line of your final message
- Keep notes for the next run in .refrain/mend/state.md; `status: done` there claims the same, `status: blocked` asks for a person
---";

const SECOND: &str = "\
---
ITERATION CONTEXT:
- This is iteration 2 of 20
- Your previous work persists in files and git history
- Review what you've done and continue improving
- Output <promise>COMPLETE</promise> when the task is completely finished
---";

const TAGGED: &str = "Mend the tests, then print <promise>COMPLETE</promise>.";

#[test]
fn a_prompt_that_holds_the_tag_is_unchanged_in_the_first_iteration() {
    assert_eq!(assemble(&iteration(1, spec(TAGGED)), None), TAGGED);
}

#[test]
fn the_state_file_is_named_as_the_agent_finds_it() {
    let elsewhere = Spec { working_dir: "/elsewhere".into(), ..spec("Mend.") };
    let prompt = assemble(&iteration(1, elsewhere), None);
    assert!(prompt.contains("in /project/.refrain/mend/state.md;"), "{prompt}");
}

#[rstest]
#[case::a_line("Mend the tests.", "\n\n")]
#[case::a_line_with_its_end("Mend the tests.\n", "\n")]
fn a_prompt_without_the_tag_is_followed_by_how_to_claim(#[case] prompt: &str, #[case] between: &str) {
    assert_eq!(assemble(&iteration(1, spec(prompt)), None), format!("{prompt}{between}{LOOP}"));
}

#[test]
fn what_was_recalled_stands_behind_the_persons_words_in_every_iteration() {
    let at = Timestamp::UNIX_EPOCH;
    let told = Recalled {
        id: "m-0123456789".parse().unwrap(),
        kind: memory::Kind::Fact,
        text: "Tests need a database".into(),
        at,
        elsewhere: None,
    };
    let memory = MemorySpec { budget: memory::BUDGET, recalled: vec![told.clone()] };
    let with = |prompt| Spec { memory: Some(memory.clone()), ..spec(prompt) };
    let section = memory::section(&[told]).unwrap();
    assert_eq!(assemble(&iteration(1, with("Mend.")), None), format!("Mend.\n\n{section}\n\n{LOOP}"));
    let third = assemble(&after(with(TAGGED), [(None, finished(Exit::Code(0)))]), None);
    assert_eq!(third, format!("{TAGGED}\n\n{section}\n\n{SECOND}"));
    let alone = Spec { iteration_context: false, ..with("Mend.") };
    assert_eq!(assemble(&iteration(2, alone), None), "Mend.");
    let nothing = Spec { memory: Some(MemorySpec { budget: 200, recalled: vec![] }), ..spec("Mend.") };
    assert_eq!(assemble(&iteration(1, nothing), None), format!("Mend.\n\n{LOOP}"));
}

#[test]
fn a_tag_with_other_words_is_not_the_tag() {
    let prompt = "Print <promise>DONE</promise> at the end.";
    assert_eq!(assemble(&iteration(1, spec(prompt)), None), format!("{prompt}\n\n{LOOP}"));
}

#[test]
fn from_the_second_iteration_the_context_follows() {
    let state = after(spec(TAGGED), [(None, finished(Exit::Code(0)))]);
    assert_eq!(assemble(&state, None), format!("{TAGGED}\n\n{SECOND}"));
    let state = after(spec("Mend."), [(None, finished(Exit::Code(0)))]);
    assert_eq!(assemble(&state, None), format!("Mend.\n\n{LOOP}\n\n{SECOND}"));
}

#[test]
fn without_a_promise_nobody_is_told_of_one() {
    let prompt = assemble(&after(without_promise("Mend."), [(None, finished(Exit::Code(1)))]), None);
    let context = "\
---
ITERATION CONTEXT:
- This is iteration 2 of 20
- Your previous work persists in files and git history
- Review what you've done and continue improving
---

LAST RUN FAILED: your last run ended with exit code 1.";
    assert!(prompt.starts_with("Mend.\n\n---\nLOOP:\n"), "{prompt}");
    assert!(prompt.ends_with(context), "{prompt}");
    assert!(!prompt.contains("<promise>"), "{prompt}");
}

#[test]
fn without_a_promise_the_word_does_not_occur() {
    let prompt = assemble(&iteration(1, without_promise("Mend.")), None);
    assert!(!prompt.contains("promise"), "{prompt}");
}

#[test]
fn without_a_cap_the_iteration_is_one_of_unlimited() {
    let mut spec = spec(TAGGED);
    spec.limits.max_iterations = None;
    assert!(assemble(&iteration(3, spec), None).contains("- This is iteration 3 of unlimited\n"));
}

#[test]
fn the_cap_is_the_one_in_force() {
    let mut state = after(spec(TAGGED), [(None, finished(Exit::Code(0)))]);
    state.limits.max_iterations = Some(40);
    assert!(assemble(&state, None).contains("- This is iteration 2 of 40\n"));
}

#[test]
fn no_iteration_context_leaves_only_the_persons_words() {
    let silent = Spec { iteration_context: false, ..spec("Mend the tests.\n") };
    let state = steered(iteration(4, silent), &["Use the left door."]);
    assert_eq!(assemble(&state, Some("it burns")), "Mend the tests.\n");
}

#[rstest]
#[case::a_code(None, Exit::Code(3), "your last run ended with exit code 3")]
#[case::a_signal(None, Exit::Signal(11), "your last run was ended by signal 11")]
#[case::too_long(Some(StopReason::TimeLimit), Exit::Signal(2), "your last run took too long and was stopped")]
#[case::the_loop_too_long(
    Some(StopReason::LoopDuration),
    Exit::Signal(2),
    "your last run took too long and was stopped"
)]
#[case::too_silent(
    Some(StopReason::Silence),
    Exit::Signal(2),
    "your last run printed nothing for too long and was stopped"
)]
fn what_failed_is_told_with_what_it_printed(
    #[case] because: Option<StopReason>,
    #[case] exit: Exit,
    #[case] what: &str,
) {
    let state = after(spec(TAGGED), [(because, finished(exit))]);
    let told = |output| assemble(&state, output);
    let before = format!("{TAGGED}\n\n{SECOND}\n\nLAST RUN FAILED: {what}.");
    assert_eq!(told(None), before);
    assert_eq!(told(Some(" \n")), before);
    assert_eq!(told(Some("one\ntwo\n")), format!("{before} It printed:\n\n```\none\ntwo\n```"));
}

#[test]
fn what_was_printed_cannot_close_its_fence() {
    let state = iteration(2, spec(TAGGED));
    let prompt = assemble(&state, Some("````\n<promise>COMPLETE</promise>\n````"));
    assert!(prompt.ends_with("`````\n````\n<promise>COMPLETE</promise>\n````\n`````"), "{prompt}");
}

#[test]
fn a_long_output_is_cut() {
    let state = iteration(2, spec(TAGGED));
    let long = "all is lost\n".repeat(FAILURE_EXCERPT);
    let prompt = assemble(&state, Some(&long));
    assert!(prompt.len() < FAILURE_EXCERPT + 1_000, "{} bytes", prompt.len());
}

#[test]
fn a_run_that_ended_well_leaves_nothing_to_tell() {
    let state = after(spec(TAGGED), [(None, finished(Exit::Code(0)))]);
    assert_eq!(assemble(&state, Some("chatter")), format!("{TAGGED}\n\n{SECOND}"));
}

#[test]
fn only_the_last_iteration_is_told_of() {
    let ends = [(None, finished(Exit::Code(9))), (None, finished(Exit::Code(0)))];
    let prompt = assemble(&after(spec(TAGGED), ends), None);
    assert!(prompt.contains("iteration 3 of 20") && !prompt.contains("FAILED"), "{prompt}");
}

#[test]
fn a_refunded_attempt_changes_nothing_in_the_prompt() {
    let before = iteration(2, spec("Mend."));
    let mut after = before.clone();
    let id = AttemptId { iteration: 2, attempt: 1 };
    apply(&mut after, Event::AttemptStarted(id));
    apply(&mut after, Event::AttemptFinished(Box::new(finished(Exit::Lost))));
    assert_eq!(assemble(&after, Some("one")), assemble(&before, Some("one")));
}

#[test]
fn a_near_miss_is_told_with_its_hint() {
    let near = AttemptFinished { near_miss: Some(NearMiss::InCode), ..finished(Exit::Code(0)) };
    let prompt = assemble(&after(spec(TAGGED), [(None, near)]), None);
    assert_eq!(prompt, format!("{TAGGED}\n\n{SECOND}\n\nCLAIM NOT HEARD: {}.", NearMiss::InCode.hint()));
    assert!(prompt.ends_with("print it as plain text, alone on its line."), "{prompt}");
}

#[rstest]
#[case::a_failure(None, Exit::Code(3), "your last run ended with exit code 3")]
#[case::a_stop(Some(StopReason::TimeLimit), Exit::Signal(2), "your last run took too long and was stopped")]
fn a_near_miss_is_told_beside(#[case] because: Option<StopReason>, #[case] exit: Exit, #[case] what: &str) {
    let near = AttemptFinished { near_miss: Some(NearMiss::WrongCase), ..finished(exit) };
    let state = steered(after(spec(TAGGED), [(because, near)]), &["Use the left door."]);
    let hint = NearMiss::WrongCase.hint();
    assert_eq!(
        assemble(&state, Some("it burns")),
        format!(
            "{TAGGED}\n\n{SECOND}\n\nLAST RUN FAILED: {what}. It printed:\n\n```\nit burns\n```\n\n\
             CLAIM NOT HEARD: {hint}.\n\nSTEERING:\nUse the left door."
        )
    );
}

#[test]
fn a_near_miss_of_an_earlier_iteration_is_not_told_again() {
    let near = AttemptFinished { near_miss: Some(NearMiss::WrongCase), ..finished(Exit::Code(3)) };
    let ends = [(None, near), (None, finished(Exit::Code(0)))];
    assert!(!assemble(&after(spec(TAGGED), ends), None).contains("NOT HEARD"));
}

#[test]
fn steering_comes_last_in_the_order_in_which_it_was_said() {
    let state = steered(iteration(1, spec(TAGGED)), &["Use the left door.", "Mind the step."]);
    assert_eq!(assemble(&state, None), format!("{TAGGED}\n\nSTEERING:\nUse the left door.\nMind the step."));
    let state = steered(iteration(2, spec("Mend.")), &["Use the left door."]);
    assert_eq!(
        assemble(&state, Some("it burns")),
        format!(
            "Mend.\n\n{LOOP}\n\n{SECOND}\n\nLAST RUN FAILED: your last run ended with exit code 3. It printed:\n\n\
             ```\nit burns\n```\n\nSTEERING:\nUse the left door."
        )
    );
}

#[rstest]
fn every_iteration_begins_with_the_same_words(
    #[values("Mend.", "Mend.\n", "Mend.\n\n", "", "Ende ä\u{1f600}", TAGGED)] prompt: &str,
    #[values(true, false)] promise: bool,
) {
    let spec = if promise { spec(prompt) } else { without_promise(prompt) };
    let first = assemble(&iteration(1, spec.clone()), None);
    assert!(first.starts_with(prompt));
    for n in 2..12 {
        let state = steered(iteration(n, spec.clone()), &["Use the left door."]);
        let later = assemble(&state, Some(&"it burns\n".repeat(n)));
        assert!(later.starts_with(&first), "iteration {n}:\n{later}");
        // What is new begins on a line of its own.
        assert!(later[first.len()..].trim_start_matches('\n').starts_with("---\nITERATION CONTEXT:\n"));
    }
}

/// A loop with a gate that decides and one that informs: what they ended with before the first iteration, then behind
/// it, where the agent claimed or not.
fn gated(claims: bool, before: [i32; 2], behind: [i32; 2]) -> LoopState {
    let gate = |name: &str, command: &str, hard| GateSpec {
        name: name.parse().unwrap(),
        check: Check::Command(command.into()),
        hard,
        timeout: GateSpec::TIMEOUT,
        retries: 0,
        when: Default::default(),
    };
    let gates = vec![gate("tests", "cargo test", true), gate("lint", "cargo clippy", false)];
    let start = LoopStarted {
        format: FORMAT,
        refrain: "0.1.0".into(),
        spec: Spec { gates, ..spec("Mend the tests.") },
    };
    let event = Event::LoopStarted(Box::new(start));
    let mut state = LoopState::begin(&Record { seq: 1, at: Timestamp::UNIX_EPOCH, event }).unwrap();
    let process = Process { pid: 7, start: 7 };
    let runner = Identity { process, boot: "boot".into(), host: "host".into() };
    apply(&mut state, Event::RunnerStarted { runner, interrupted: None, adopted: None, judged: None });
    gate_ends(&mut state, before);
    apply(&mut state, Event::IterationBegun { iteration: 1, work: None });
    apply(&mut state, Event::AttemptStarted(AttemptId { iteration: 1, attempt: 1 }));
    apply(&mut state, Event::AttemptSpawned { process });
    let end = AttemptFinished { promised: claims, ..finished(Exit::Code(0)) };
    apply(&mut state, Event::AttemptFinished(Box::new(end)));
    gate_ends(&mut state, behind);
    apply(&mut state, Event::IterationBegun { iteration: 2, work: None });
    state
}

fn gate_ends(state: &mut LoopState, codes: [i32; 2]) {
    apply(
        state,
        Event::CandidateTaken { tree: None, partial: false, touched: Vec::new(), changed: Vec::new() },
    );
    for (gate, code) in ["tests", "lint"].into_iter().zip(codes) {
        let gate: GateName = gate.parse().unwrap();
        apply(state, Event::GateStarted { gate: gate.clone(), run: 1 });
        let finished = GateFinished {
            gate,
            exit: Exit::Code(code),
            duration: Millis(7),
            bytes: 0,
            no_test: None,
            preview: String::new(),
            left: false,
            output_error: None,
            fingerprint: None,
            log: None,
            review: None,
        };
        apply(state, Event::GateFinished(Box::new(finished)));
    }
}

const GATED: &str = "
- Done is proven by gates that are run after you, not by you:
  - tests: `cargo test`
  - lint: `cargo clippy` (it only informs)
---";

#[rstest]
#[case::a_refused_claim(
    true, [1, 0], [1, 0],
    "CLAIM REFUSED: you said done, but gate tests says otherwise (`cargo test`): exit code 1; it failed before the first \
     iteration too. It printed:\n\n```\n2 failed\n```"
)]
#[case::a_new_failure(
    false, [0, 0], [3, 0],
    "GATE FAILED: tests (`cargo test`): exit code 3; it passed before the first iteration. It printed:\n\n```\n2 failed\n```"
)]
#[case::a_soft_one(
    false, [0, 0], [0, 1],
    "SOFT GATE FAILED, WHICH DECIDES NOTHING: lint (`cargo clippy`): exit code 1; it passed before the first iteration."
)]
#[case::both_the_one_that_decides_first(
    true, [1, 1], [1, 1],
    "CLAIM REFUSED: you said done, but gate tests says otherwise (`cargo test`): exit code 1; it failed before the first \
     iteration too. It printed:\n\n```\n2 failed\n```\n\nSOFT GATE FAILED, WHICH DECIDES NOTHING: lint (`cargo clippy`): \
     exit code 1; it failed before the first iteration too."
)]
fn what_a_gate_says_is_told_verbatim(
    #[case] claims: bool,
    #[case] before: [i32; 2],
    #[case] behind: [i32; 2],
    #[case] told: &str,
) {
    let state = gated(claims, before, behind);
    let said = Printed {
        attempt: None,
        gates: &[(0, "2 failed\n".to_owned())],
        earlier: &[],
        touched: None,
        outside: None,
    };
    let prompt = super::assemble(&state, said);
    let gated = LOOP.trim_end_matches("\n---").to_owned() + GATED;
    assert_eq!(prompt, format!("Mend the tests.\n\n{gated}\n\n{SECOND}\n\n{told}"));
    let context = crate::context::context(&state, said).unwrap();
    assert!(context.contains(&format!("## Last Error Output (verbatim)\n\n{told}\n")), "{context}");
}

#[test]
fn what_failed_before_the_first_iteration_is_told_to_it() {
    let mut state = gated(false, [1, 0], [0, 0]);
    state.iteration = 1;
    let prompt = assemble(&state, None);
    assert!(
        prompt.ends_with("\n\nFAILED BEFORE YOU BEGAN: gate tests (`cargo test`): exit code 1."),
        "{prompt}"
    );
}
