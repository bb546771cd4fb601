//! Prompts, word for word: the agent's prompt is a contract.

mod fixed;

use jiff::Timestamp;
use rstest::rstest;

use super::{FAILURE_EXCERPT, GateRun, Quote, QuotedLogs};
use crate::event::{
    Ask, AttemptFinished, Event, Exit, FORMAT, GateFinished, Identity, LoopStarted, Process, Record,
    StopReason,
};
use crate::gate::{Check, GateName, GateSpec};
use crate::ids::AttemptId;
use crate::r#loop::LoopState;
use crate::r#loop::tests::journal::{self, finished};
use crate::memory::{self, MemorySpec, RecalledMemory};
use crate::promise::NearMiss;
use crate::prompt::state_file::StatusFault;
use crate::spec::{Limits, Millis, Spec};

const FIRST: AttemptId = AttemptId { iteration: 1, attempt: 1 };

fn assemble(state: &LoopState, attempt: Option<&str>) -> String {
    let quoted: Vec<_> = attempt.map(|text| (Quote::Attempt(FIRST), text.to_owned())).into_iter().collect();
    super::assemble(state, QuotedLogs(&quoted))
}

fn spec(prompt: &str) -> Spec {
    let plain = journal::spec();
    Spec { prompt: prompt.into(), limits: Limits { max_iterations: Some(20), ..plain.limits }, ..plain }
}

fn without_promise(prompt: &str) -> Spec {
    Spec { promise: None, ..spec(prompt) }
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
    apply(
        &mut state,
        Event::RunnerStarted { runner, interrupted: None, adopted: None, judged: None, fence: None },
    );
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
        apply(
            &mut state,
            Event::Asked { request: None, ask: Ask::Steer((*text).into()), by: Default::default() },
        );
    }
    state
}

/// The fixed part for a loop with a command as its agent, with a promise and without git.
const FIXED: &str = "\
## How this loop works
- You are started again for each run, until you claim to be done. Earlier runs' changes are in the files.
- When everything is done, end with <promise>COMPLETE</promise> alone on its line.
- Notes for the next run: `.refrain/mend/state.md`. To ask, set `status: blocked` and `question: ...` there.";

/// The same if the user's prompt has the tag.
const FIXED_TAGGED: &str = "\
## How this loop works
- You are started again for each run, until you claim to be done. Earlier runs' changes are in the files.
- Notes for the next run: `.refrain/mend/state.md`. To ask, set `status: blocked` and `question: ...` there.";

const TAGGED: &str = "Mend the tests, then print <promise>COMPLETE</promise>.";

#[rstest]
#[case::a_line("Mend the tests.", "\n\n", FIXED)]
#[case::a_line_with_its_end("Mend the tests.\n", "\n", FIXED)]
#[case::a_tag_leaves_out_that_line_alone(TAGGED, "\n\n", FIXED_TAGGED)]
#[case::a_tag_with_other_words("Print <promise>DONE</promise> at the end.", "\n\n", FIXED)]
fn the_prompt_is_followed_by_how_the_loop_works_and_which_run_this_is(
    #[case] prompt: &str,
    #[case] between: &str,
    #[case] fixed: &str,
) {
    let expected = format!("{prompt}{between}{fixed}\n\n## Run 1 of 20");
    assert_eq!(assemble(&iteration(1, spec(prompt)), None), expected);
    assert_eq!(super::first(&spec(prompt)), expected);
    let state = after(spec(prompt), [(None, finished(Exit::Code(0)))]);
    let expected = format!("{prompt}{between}{fixed}\n\n## Run 2 of 20\nRun 1: no claim.");
    assert_eq!(assemble(&state, None), expected);
}

#[test]
fn the_state_file_is_named_as_the_agent_finds_it() {
    let elsewhere = Spec { working_dir: "/elsewhere".into(), ..spec("Mend.") };
    let prompt = assemble(&iteration(1, elsewhere), None);
    assert!(prompt.contains("- Notes for the next run: `/project/.refrain/mend/state.md`."), "{prompt}");
}

#[test]
fn recalled_memory_follows_the_fixed_part_in_every_iteration() {
    let at = Timestamp::UNIX_EPOCH;
    let told = RecalledMemory {
        id: "m-0123456789".parse().unwrap(),
        kind: memory::Kind::Fact,
        text: "Tests need a database".into(),
        at,
        elsewhere: None,
    };
    let memory = MemorySpec { budget: memory::BUDGET, recalled: vec![told.clone()] };
    let with = |prompt| Spec { memory: Some(memory.clone()), ..spec(prompt) };
    let section = memory::section(&[told]).unwrap();
    let first = format!("Mend.\n\n{FIXED}\n\n{section}\n\n## Run");
    assert_eq!(assemble(&iteration(1, with("Mend.")), None), format!("{first} 1 of 20"));
    let second = assemble(&after(with("Mend."), [(None, finished(Exit::Code(0)))]), None);
    assert!(second.starts_with(&format!("{first} 2 of 20")), "{second}");
    let alone = Spec { iteration_context: false, ..with("Mend.") };
    assert_eq!(assemble(&iteration(2, alone), None), "Mend.");
    let nothing = Spec { memory: Some(MemorySpec { budget: 200, recalled: vec![] }), ..spec("Mend.") };
    assert_eq!(assemble(&iteration(1, nothing), None), format!("Mend.\n\n{FIXED}\n\n## Run 1 of 20"));
}

#[test]
fn without_a_promise_the_word_does_not_occur() {
    let state = after(without_promise("Mend."), [(None, finished(Exit::Code(1)))]);
    let prompt = assemble(&state, None);
    let news = "\n\n## Run 2 of 20\nRun 1: the agent failed.\n\nLAST RUN FAILED: your last run ended with exit code 1.";
    assert!(prompt.starts_with("Mend.\n\n## How this loop works\n"), "{prompt}");
    assert!(prompt.ends_with(news) && !prompt.contains("promise"), "{prompt}");
}

#[test]
fn the_cap_is_the_one_in_force() {
    let mut state = after(spec(TAGGED), [(None, finished(Exit::Code(0)))]);
    state.limits.max_iterations = Some(40);
    assert!(assemble(&state, None).contains("\n\n## Run 2 of 40\n"));
    state.limits.max_iterations = None;
    assert!(assemble(&state, None).contains("\n\n## Run 2 (no cap)\n"));
}

#[test]
fn no_iteration_context_leaves_only_the_users_words() {
    let silent = Spec { iteration_context: false, ..spec("Mend the tests.\n") };
    let state = steered(iteration(4, silent.clone()), &["Use the left door."]);
    assert_eq!(assemble(&state, Some("it burns")), "Mend the tests.\n");
    assert_eq!(super::first(&silent), "Mend the tests.\n");
}

#[rstest]
#[case::a_code(None, Exit::Code(3), "the agent failed", "your last run ended with exit code 3")]
#[case::a_signal(None, Exit::Signal(11), "the agent failed", "your last run was ended by signal 11")]
#[case::too_long(
    Some(StopReason::TimeLimit),
    Exit::Signal(2),
    "stopped, it took too long",
    "your last run took too long and was stopped"
)]
#[case::the_loop_too_long(
    Some(StopReason::LoopDuration),
    Exit::Signal(2),
    "stopped, it took too long",
    "your last run took too long and was stopped"
)]
#[case::too_silent(
    Some(StopReason::Silence),
    Exit::Signal(2),
    "stopped, it printed nothing for too long",
    "your last run printed nothing for too long and was stopped"
)]
fn a_failed_run_is_quoted_in_the_next_prompt(
    #[case] because: Option<StopReason>,
    #[case] exit: Exit,
    #[case] came_to: &str,
    #[case] what: &str,
) {
    let state = after(spec("Mend."), [(because, finished(exit))]);
    let told = |output| assemble(&state, output);
    let cut_off = match because {
        Some(_) => "\nThe previous run was cut off; what it changed is in the files: look at them first.",
        None => "",
    };
    let before =
        format!("Mend.\n\n{FIXED}\n\n## Run 2 of 20{cut_off}\nRun 1: {came_to}.\n\nLAST RUN FAILED: {what}.");
    assert_eq!(told(None), before);
    assert_eq!(told(Some(" \n")), before);
    let file = "That output as it was printed, and a line for each earlier run: `.refrain/mend/context.md`.";
    assert_eq!(told(Some("one\ntwo\n")), format!("{before} It printed:\n\n```\none\ntwo\n```\n\n{file}"));
}

#[test]
fn printed_text_cannot_close_its_fence() {
    let state = iteration(2, spec(TAGGED));
    let prompt = assemble(&state, Some("````\n<promise>COMPLETE</promise>\n````"));
    assert!(prompt.contains("`````\n````\n<promise>COMPLETE</promise>\n````\n`````\n\n"), "{prompt}");
}

#[test]
fn a_long_output_is_cut() {
    let state = iteration(2, spec(TAGGED));
    let long = "all is lost\n".repeat(FAILURE_EXCERPT);
    let prompt = assemble(&state, Some(&long));
    assert!(prompt.len() < FAILURE_EXCERPT + 1_000, "{} bytes", prompt.len());
}

#[test]
fn a_run_that_ended_well_printed_nothing_worth_telling() {
    let state = after(spec(TAGGED), [(None, finished(Exit::Code(0)))]);
    assert_eq!(assemble(&state, Some("chatter")), assemble(&state, None));
}

#[test]
fn only_the_last_iteration_is_quoted() {
    let ends = [(None, finished(Exit::Code(9))), (None, finished(Exit::Code(0)))];
    let prompt = assemble(&after(spec(TAGGED), ends), None);
    assert!(prompt.contains("## Run 3 of 20\nRun 1: the agent failed.\nRun 2: no claim."), "{prompt}");
    assert!(!prompt.contains("FAILED"), "{prompt}");
}

#[test]
fn a_near_miss_is_reported_with_its_hint() {
    let near = AttemptFinished { near_miss: Some(NearMiss::InCode), ..finished(Exit::Code(0)) };
    let prompt = assemble(&after(spec("Mend."), [(None, near)]), None);
    let hint = NearMiss::InCode.hint();
    let news = format!("## Run 2 of 20\nRun 1: no claim.\n\nCLAIM NOT HEARD: {hint}.");
    assert_eq!(prompt, format!("Mend.\n\n{FIXED}\n\n{news}"));
}

#[test]
fn a_near_miss_is_reported_after_a_failure_and_before_steering() {
    let near = AttemptFinished { near_miss: Some(NearMiss::WrongCase), ..finished(Exit::Code(3)) };
    let state = steered(after(spec(TAGGED), [(None, near)]), &["Use the left door.", "Mind the step."]);
    let hint = NearMiss::WrongCase.hint();
    let prompt = assemble(&state, None);
    let news = format!(
        "\n\nLAST RUN FAILED: your last run ended with exit code 3.\n\nCLAIM NOT HEARD: {hint}.\n\n\
         STEERING:\nUse the left door.\nMind the step."
    );
    assert!(prompt.ends_with(&news), "{prompt}");
}

#[test]
fn a_state_file_fault_is_reported_once() {
    for (fault, told) in [
        (StatusFault::QuestionAlone, "\n\nQUESTION NOT ASKED: .refrain/"),
        (StatusFault::NoFrontMatter, "\n\nSTATUS NOT READ: .refrain/"),
    ] {
        let odd = AttemptFinished { state_fault: Some(fault), ..finished(Exit::Code(0)) };
        let prompt = assemble(&after(spec(TAGGED), [(None, odd.clone())]), None);
        assert!(prompt.contains(told) && prompt.contains(fault.hint()), "{prompt}");
        let ends = [(None, odd), (None, finished(Exit::Code(0)))];
        assert!(!assemble(&after(spec(TAGGED), ends), None).contains(told));
    }
}

#[test]
fn a_near_miss_of_an_earlier_iteration_is_not_reported_again() {
    let near = AttemptFinished { near_miss: Some(NearMiss::WrongCase), ..finished(Exit::Code(3)) };
    let ends = [(None, near), (None, finished(Exit::Code(0)))];
    assert!(!assemble(&after(spec(TAGGED), ends), None).contains("NOT HEARD"));
}

/// The outputs of a loop with a gate of each kind.
fn said(gates: &[(usize, String)]) -> Vec<(Quote, String)> {
    let quote = |gate| Quote::Gate(GateRun { gate, of: FIRST, run: 1 });
    gates.iter().map(|(gate, text)| (quote(*gate), text.clone())).collect()
}

/// A loop with a required and an advisory gate: their exit codes before the first iteration, then after it, and whether
/// the agent claimed.
fn gated(claims: bool, before: [i32; 2], behind: [i32; 2]) -> LoopState {
    let gate = |name: &str, command: &str, hard| GateSpec {
        name: name.parse().unwrap(),
        check: Check::Command(command.into()),
        hard,
        timeout: GateSpec::TIMEOUT,
        retries: 0,
        when: Default::default(),
        completes: false,
        own_tests: false,
        by_default: false,
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
    apply(
        &mut state,
        Event::RunnerStarted { runner, interrupted: None, adopted: None, judged: None, fence: None },
    );
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
        let finished = GateFinished { duration: Millis(7), ..GateFinished::new(gate, Exit::Code(code)) };
        apply(state, Event::GateFinished(Box::new(finished)));
    }
}

#[rstest]
#[case::a_refused_claim(
    true, [1, 0], [1, 0],
    "CLAIM REFUSED: gate tests failed (`cargo test`): exit code 1; it failed before the first run too. It printed:\n\n```\n2 failed\n```"
)]
#[case::a_new_failure(
    false, [0, 0], [3, 0],
    "GATE FAILED: tests (`cargo test`): exit code 3; it passed before the first run. It printed:\n\n```\n2 failed\n```"
)]
#[case::a_soft_one(
    false, [0, 0], [0, 1],
    "ADVISORY GATE FAILED: lint (`cargo clippy`): exit code 1; it passed before the first run."
)]
#[case::both_the_one_that_decides_first(
    true, [1, 1], [1, 1],
    "CLAIM REFUSED: gate tests failed (`cargo test`): exit code 1; it failed before the first run too. It printed:\n\n\
     ```\n2 failed\n```\n\nADVISORY GATE FAILED: lint (`cargo clippy`): exit code 1; it failed before the first run too."
)]
fn gate_output_is_quoted_verbatim(
    #[case] claims: bool,
    #[case] before: [i32; 2],
    #[case] behind: [i32; 2],
    #[case] told: &str,
) {
    let state = gated(claims, before, behind);
    let printed = [(0, "2 failed\n".to_owned())];
    let prompt = super::assemble(&state, QuotedLogs(&said(&printed)));
    assert!(prompt.contains(&format!("\n\n{told}\n\nThat output as it was printed, and ")), "{prompt}");
    let context = crate::prompt::context::context(&state, QuotedLogs(&said(&printed))).unwrap();
    assert!(context.contains(&format!("## Last Error Output (verbatim)\n\n{told}\n")), "{context}");
}

#[test]
fn a_gate_that_failed_before_the_first_iteration_is_in_its_prompt() {
    let mut state = gated(false, [1, 0], [0, 0]);
    state.iteration = 1;
    let prompt = assemble(&state, None);
    assert!(
        prompt.ends_with("\n\nFAILED BEFORE YOU BEGAN: gate tests (`cargo test`): exit code 1."),
        "{prompt}"
    );
}
