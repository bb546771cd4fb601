//! How the loop works: every sentence is true for its loop, the same in every iteration, and short.

use proptest::prelude::*;
use rstest::rstest;

use super::super::instructions::{LONGEST, how_it_works};
use super::{TAGGED, assemble, finished, iteration, spec, steered};
use crate::event::Exit;
use crate::gate::{Check, GateSpec, GateWhen, ReviewSpec};
use crate::git::{Base, Workflow};
use crate::plan::TaskRef;
use crate::protect::Part;
use crate::session::{Isolation, SessionSpec};
use crate::spec::{Spec, Until};

fn gate(name: &str, check: Check, hard: bool) -> GateSpec {
    let name = name.parse().unwrap();
    GateSpec {
        name,
        check,
        hard,
        timeout: GateSpec::TIMEOUT,
        retries: 0,
        when: GateWhen::Iteration,
        completes: false,
        own_tests: false,
        by_default: false,
    }
}

fn command(name: &str, command: &str, hard: bool) -> GateSpec {
    gate(name, Check::Command(command.into()), hard)
}

fn review(hard: bool) -> GateSpec {
    let agent = crate::spec::AgentSpec { program: "claude".into(), ..spec("").agent };
    gate("spec", Check::Review(Box::new(ReviewSpec { agent, spec: "What is wanted.".into() })), hard)
}

fn tests() -> GateSpec {
    command("tests", "cargo test", true)
}

fn with(change: impl FnOnce(&mut Spec)) -> Spec {
    let mut spec = spec("Mend.");
    change(&mut spec);
    spec
}

fn in_git(spec: &mut Spec) {
    spec.git.before = Some(Box::new(Base::default()));
}

fn session(isolation: Isolation) -> SessionSpec {
    SessionSpec { command: "/refrain:loop".into(), args: String::new(), isolation }
}

fn freeze(spec: &mut Spec) {
    spec.protect.frozen = vec!["ci".into(), "Makefile".into()];
}

fn a_part() -> Part {
    let path = crate::git::RepoPath::from_bytes(b"Cargo.toml");
    Part { path, frozen: vec!["lib".into()], may_gain: vec!["members".into()] }
}

fn first_line(spec: &Spec, in_session: bool) -> String {
    how_it_works(spec, in_session).lines().nth(1).unwrap().to_owned()
}

fn a_task() -> TaskRef {
    TaskRef {
        plan: "p".parse().unwrap(),
        tag: "p".into(),
        id: "1".parse().unwrap(),
        title: "x".into(),
        round: 1,
    }
}

#[rstest]
#[case::a_promise(|_: &mut Spec| (), "You are started again for each run, until you claim to be done.")]
#[case::gates(|spec: &mut Spec| spec.gates = vec![tests()], "for each run, until you claim to be done and the gates pass.")]
#[case::advisory_gates(|spec: &mut Spec| spec.gates = vec![command("lint", "x", false)], "for each run, until you claim to be done.")]
#[case::a_person(|spec: &mut Spec| spec.approval = true, "until you claim to be done and a person approves.")]
#[case::gates_and_a_person(
    |spec: &mut Spec| (spec.gates, spec.approval) = (vec![tests()], true),
    "until you claim to be done, the gates pass and a person approves."
)]
#[case::no_promise(|spec: &mut Spec| spec.promise = None, "for each run, until you end without an error.")]
#[case::no_promise_but_gates(
    |spec: &mut Spec| (spec.promise, spec.gates) = (None, vec![tests()]),
    "for each run, until the gates pass."
)]
#[case::a_task_is_heard_without_a_word(
    |spec: &mut Spec| (spec.task, spec.gates) = (Some(a_task()), vec![tests()]),
    "for each run, until the gates pass."
)]
#[case::a_success_command_needs_no_claim(
    |spec: &mut Spec| spec.gates = vec![GateSpec { completes: true, ..tests() }],
    "for each run, until the gates pass."
)]
#[case::a_number(|spec: &mut Spec| spec.until = Until::Count, "You are started again for each run, for a fixed number of runs.")]
#[case::for_ever(|spec: &mut Spec| spec.until = Until::Forever, "for each run, until the loop is stopped.")]
fn the_first_line_says_when_the_loop_ends(#[case] change: fn(&mut Spec), #[case] told: &str) {
    let spec = with(change);
    assert!(first_line(&spec, false).contains(told), "{}", first_line(&spec, false));
    let in_session = first_line(&spec, true);
    assert!(in_session.starts_with("- You continue after each turn, "), "{in_session}");
    assert!(!in_session.contains("started"), "{in_session}");
}

const DIRTY: &str = "are in the working tree (`git status`)";

#[rstest]
#[case::no_repository(|_: &mut Spec| (), "Earlier runs' changes are in the files.".to_owned())]
#[case::nothing_is_committed(in_git, format!("{DIRTY}, not committed for you."))]
#[case::gates_and_nothing_is_committed(
    |spec: &mut Spec| (spec.git.candidates, spec.gates) = (true, vec![tests()]),
    format!("{DIRTY}, not committed for you.")
)]
#[case::each_run(
    |spec: &mut Spec| spec.git.workflow = Workflow::Commit,
    "are in the working tree, committed for you after each run (`git log`).".to_owned()
)]
#[case::each_run_is_pushed(
    |spec: &mut Spec| spec.git.workflow = Workflow::Push,
    "are in the working tree, committed and pushed for you after each run (`git log`).".to_owned()
)]
#[case::when_gates_pass(
    |spec: &mut Spec| (spec.git.workflow, spec.gates) = (Workflow::Commit, vec![tests()]),
    format!("{DIRTY}, committed for you after the gates pass.")
)]
#[case::advisory_gates_hold_up_nothing(
    |spec: &mut Spec| (spec.git.workflow, spec.gates) = (Workflow::Commit, vec![command("lint", "x", false)]),
    "committed for you after each run (`git log`).".to_owned()
)]
#[case::protection_is_told_elsewhere(
    |spec: &mut Spec| { spec.git.workflow = Workflow::Commit; freeze(spec) },
    "are in the working tree, committed for you after each run (`git log`).".to_owned()
)]
#[case::gates_and_protection(
    |spec: &mut Spec| { (spec.git.workflow, spec.gates) = (Workflow::Pr, vec![tests()]); freeze(spec) },
    format!("{DIRTY}, committed and pushed for you after the gates pass.")
)]
#[case::a_person(
    |spec: &mut Spec| (spec.git.workflow, spec.approval) = (Workflow::Commit, true),
    format!("are in the working tree, committed for you after each run, a claim after a person approves.")
)]
#[case::gates_and_a_person(
    |spec: &mut Spec| (spec.git.workflow, spec.gates, spec.approval) = (Workflow::Commit, vec![tests()], true),
    format!("{DIRTY}, committed for you after the gates pass.")
)]
#[case::started_elsewhere(
    |spec: &mut Spec| { in_git(spec); spec.working_dir = "/elsewhere".into() },
    "Earlier runs' changes are in the files.".to_owned()
)]
#[case::started_elsewhere_and_committed(
    |spec: &mut Spec| (spec.git.workflow, spec.working_dir) = (Workflow::Commit, "/elsewhere".into()),
    "are in the working tree `/project`, committed for you after each run (`git log`).".to_owned()
)]
fn the_first_line_says_where_work_is_and_when_it_is_committed(
    #[case] change: fn(&mut Spec),
    #[case] told: String,
) {
    let spec = with(change);
    for in_session in [true, false] {
        let line = first_line(&spec, in_session);
        assert!(line.ends_with(&told), "{line}");
    }
}

#[test]
fn gates_are_named_in_full_with_who_can_run_them() {
    let long = format!("test {}", "x".repeat(900));
    let gates = vec![
        tests(),
        command("lint", "cargo clippy -- `cat flags`", false),
        command("all", &long, true),
        command("lines", "make a\nmake b\n", true),
        review(true),
    ];
    let text = how_it_works(&with(|spec| (spec.gates, spec.clean_checkout) = (gates, true)), false);
    let told = format!(
        "- Run these gates before you finish (Refrain: in a clean checkout):\n  - tests: `cargo test`\n  \
         - all: `{long}`\n  \
         - lines:\n    ```\n    make a\n    make b\n    ```\n- Advisory:\n  - lint: `` cargo clippy -- `cat flags` ``\n- Reviewed after you by claude (spec).\n"
    );
    assert!(text.contains(&told), "{text}");
    let only = how_it_works(&with(|spec| spec.gates = vec![review(false)]), false);
    assert!(only.contains("- Reviewed after you by claude (spec, advisory).\n"), "{only}");
    let advisory = how_it_works(&with(|spec| spec.gates = vec![command("lint", "x", false)]), false);
    assert!(
        advisory
            .contains("- Run these gates yourself before you finish; they are advisory:\n  - lint: `x`\n"),
        "{advisory}"
    );
    assert!(!only.contains("Run these gates") && !only.contains("`review"), "{only}");
}

#[rstest]
#[case::unproven(|_: &mut Spec| (), "- When everything is done, end with <promise>COMPLETE</promise> alone on its line.\n")]
#[case::checked(
    |spec: &mut Spec| spec.gates = vec![tests()],
    "- When everything is done, end with <promise>COMPLETE</promise> alone on its line.\n"
)]
#[case::a_number(
    |spec: &mut Spec| spec.until = Until::Count,
    "- When everything is done, end with <promise>COMPLETE</promise> alone on its line. It counts in the last run.\n"
)]
#[case::for_ever(
    |spec: &mut Spec| spec.until = Until::Forever,
    "- When there is nothing to do now, end with <promise>COMPLETE</promise> alone on its line. The loop then waits.\n"
)]
#[case::no_promise_for_ever(
    |spec: &mut Spec| (spec.promise, spec.until) = (None, Until::Forever),
    "- When there is nothing to do now, set `status: done` in your notes. The loop then waits.\n"
)]
fn the_fixed_part_says_how_to_claim(#[case] change: fn(&mut Spec), #[case] told: &str) {
    let text = how_it_works(&with(change), false);
    assert!(text.contains(told), "{text}");
    assert!(
        !text.lines().any(|line| line.trim() == "<promise>COMPLETE</promise>"),
        "an echo is no claim: {text}"
    );
    let tagged = how_it_works(&Spec { prompt: TAGGED.into(), ..with(change) }, false);
    let is_left_out = told.contains("<promise>");
    let without: String =
        text.lines().filter(|line| !line.contains("<promise>")).collect::<Vec<_>>().join("\n");
    assert_eq!(tagged, if is_left_out { without } else { text }, "that line alone is omitted");
}

#[test]
fn the_fixed_part_names_protected_paths_and_the_use_of_subagents() {
    let spec = with(|spec| {
        freeze(spec);
        spec.protect.existing = vec!["tests/**".into()];
        spec.protect.parts = vec![a_part()];
        spec.session = Some(session(Isolation::Subagent));
    });
    let protected = "- Claims fail with changes or new files in ci, Makefile; changes to existing tests/**, Cargo.toml (lib, members).\n";
    let subagent = "- Have a fresh subagent do each run, with task and notes; only you can claim.\n";
    let text = how_it_works(&spec, true);
    assert!(text.contains(protected) && text.contains(subagent), "{text}");
    // A runner drives it now: it has no turns, and is no session that could have subagents.
    let text = how_it_works(&spec, false);
    assert!(text.contains(protected) && !text.contains("subagent") && !text.contains("turn"), "{text}");
}

/// Any loop, with how long the user's own strings in its fixed part are.
fn any_loop() -> impl Strategy<Value = (Spec, bool)> {
    let workflow =
        prop::sample::select(vec![Workflow::None, Workflow::Commit, Workflow::Push, Workflow::PrMerge]);
    let until = prop::sample::select(vec![Until::Complete, Until::Count, Until::Forever]);
    let gates = prop::collection::vec(
        prop::sample::select(vec![
            tests(),
            command("lint", "cargo clippy -- -D warnings", false),
            review(true),
        ]),
        0..30,
    );
    let prompt =
        prop::sample::select(vec!["Mend.", "Mend.\n", "Mend.\n\n", "", "Ende \u{e4}\u{1f600}", TAGGED]);
    let isolation =
        prop::sample::select(vec![None, Some(Isolation::SharedContext), Some(Isolation::Subagent)]);
    let flags = prop::array::uniform8(any::<bool>());
    (workflow, until, gates, prompt, isolation, flags).prop_map(
        |(workflow, until, gates, prompt, isolation, flags)| {
            let [promise, git, clean, approval, frozen, existing, elsewhere, in_session] = flags;
            let mut spec = spec(prompt);
            spec.git.workflow = workflow;
            (spec.until, spec.gates, spec.clean_checkout, spec.approval) = (until, gates, clean, approval);
            spec.session = isolation.map(session);
            if git {
                in_git(&mut spec);
            }
            if !promise {
                spec.promise = None;
            }
            if frozen {
                freeze(&mut spec);
            }
            if existing {
                spec.protect.existing = vec!["tests/**".into()];
                spec.protect.parts = vec![a_part()];
            }
            if elsewhere {
                spec.working_dir = "/elsewhere".into();
            }
            (spec, in_session)
        },
    )
}

/// The size of the user's part of the text: paths, a line for each gate, globs, the promise.
fn users_own(spec: &Spec) -> usize {
    let of_gate = |gate: &GateSpec| match &gate.check {
        Check::Command(command) => format!("  - {}: `{command}`\n", gate.name).len(),
        Check::Review(review) => format!("{} ({}), ", review.agent.program, gate.name).len(),
    };
    let keys = spec.protect.parts.iter().flat_map(|part| part.frozen.iter().chain(&part.may_gain));
    let globs = spec.protect.frozen.iter().chain(&spec.protect.existing).chain(keys).map(String::len);
    let globs = globs.sum::<usize>() + spec.protect.parts.len() * "Cargo.toml".len();
    let promise = spec.promise.as_ref().map_or(0, |promise| promise.tag().len());
    let elsewhere = if spec.working_dir == spec.worktree { 0 } else { spec.worktree.as_str().len() };
    let notes = super::super::state_file_path(spec).as_str().len();
    spec.gates.iter().map(of_gate).sum::<usize>() + globs + promise + elsewhere + notes
}

proptest! {
    #[test]
    fn the_fixed_part_is_short((spec, in_session) in any_loop()) {
        let text = how_it_works(&spec, in_session);
        let own = text.len() - users_own(&spec).min(text.len());
        prop_assert!(own <= LONGEST, "{own} bytes:\n{text}");
    }

    #[test]
    fn every_sentence_is_true((spec, in_session) in any_loop()) {
        let text = how_it_works(&spec, in_session);
        let has_commands = spec.gates.iter().any(|gate| !gate.is_review());
        for (words, is_true) in [
            ("working tree", spec.is_in_repository() && (spec.working_dir == spec.worktree || spec.git.workflow.commits())),
            ("committed for you", spec.is_in_repository() && !spec.git.workflow.publishes() && (spec.working_dir == spec.worktree || spec.git.workflow.commits())),
            ("not committed for you", spec.is_in_repository() && !spec.git.workflow.commits() && spec.working_dir == spec.worktree),
            ("pushed", spec.git.workflow.publishes()),
            ("after each turn", in_session),
            ("started again", !in_session),
            ("<promise>", spec.promise.as_ref().is_some_and(|promise| !promise.is_tagged_in(&spec.prompt))),
            ("Run these gates", has_commands),
            ("in a clean checkout", has_commands && spec.clean_checkout),
            ("Claims fail with", !spec.protect.is_empty() && !spec.git.workflow.commits()),
            ("Claims and commits fail with", !spec.protect.is_empty() && spec.git.workflow.commits()),
            ("Reviewed after you by", spec.gates.iter().any(GateSpec::is_review)),
        ] {
            prop_assert_eq!(text.contains(words), is_true, "{}:\n{}", words, text);
        }
        prop_assert!(spec.has_hard_gates() || !text.contains("the gates pass"), "{text}");
        prop_assert!(spec.approval || !text.contains("person approves"), "{text}");
        prop_assert!(text.contains("state.md") && text.contains("`status: blocked`"), "{text}");
    }

    #[test]
    fn the_fixed_part_is_the_same_in_every_iteration((spec, _) in any_loop(), words in "[a-z\n]{0,40}") {
        let begin = |prompt: &str| prompt.split("\n## Run ").next().unwrap_or_default().to_owned();
        let first = assemble(&iteration_without_gates(1, &spec), None);
        prop_assert!(first.starts_with(&spec.prompt));
        prop_assert!(first.contains("## Run 1 of 20"));
        for n in 2..6 {
            let state = steered(iteration_without_gates(n, &spec), &[&words]);
            let later = assemble(&state, Some(&words.repeat(n)));
            prop_assert_eq!(begin(&later), begin(&first), "iteration {}", n);
        }
    }
}

/// The loop in its n-th iteration: its gates are not asked, and its events omit what it does with git.
fn iteration_without_gates(n: usize, wanted: &Spec) -> crate::r#loop::LoopState {
    let plain = spec(&wanted.prompt);
    let mut state = if n == 1 {
        iteration(1, plain)
    } else {
        super::after(plain, vec![(None, finished(Exit::Code(0))); n - 1])
    };
    state.spec = wanted.clone();
    state
}
