//! What is written, against the schemas of the seeds in words of our own; what is read, case by case; and round trips.

use jiff::Timestamp;
use proptest::prelude::*;
use refrain_core::event::{
    Ask, AttemptFinished, ClaimSource, End, Event, Exit, FORMAT, Identity, LoopStarted, Process, Record,
    Urgency,
};
use refrain_core::git::Workflow;
use refrain_core::ids::AttemptId;
use refrain_core::mirror::CarriedCounter;
use refrain_core::promise::{MatchMode, Promise, PromiseText};
use refrain_core::spec::{AgentKind, AgentSpec, Limits, Until};
use rstest::rstest;
use serde_json::{Value, json};

use super::command_line::line;
use super::foreign_loop::System;
use super::*;

fn time(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(1_800_000_000_000 + ms).unwrap()
}

/// A specification with a promise and without any limit.
fn spec() -> Spec {
    let text = "COMPLETE".parse::<PromiseText>().unwrap();
    Spec {
        promise: Some(Promise { text, mode: MatchMode::Plain }),
        limits: Limits::default(),
        ..Spec::new(
            "mend".parse().unwrap(),
            AgentSpec::new(AgentKind::Generic, "agent"),
            "Mend the tests.",
            "/project",
        )
    }
}

fn runner(pid: i32) -> Identity {
    Identity { process: Process { pid, start: 1 }, boot: "boot".into(), host: "host".into() }
}

/// A loop after these events, a second apart.
fn after(spec: Spec, events: Vec<Event>) -> LoopState {
    let start = LoopStarted { format: FORMAT, refrain: "0.1.0".into(), spec };
    let events = [Event::LoopStarted(Box::new(start))].into_iter().chain(events).zip(1..);
    let records: Vec<_> = events
        .map(|(event, seq)| Record { seq, at: time(1000 * i64::try_from(seq).unwrap()), event })
        .collect();
    LoopState::fold(&records).unwrap()
}

fn driven() -> Event {
    Event::RunnerStarted { runner: runner(1), interrupted: None, adopted: None, judged: None, fence: None }
}

fn iteration(number: u32, promised: bool) -> Vec<Event> {
    let finished =
        AttemptFinished { promised, preview: "it \"goes\" on".into(), ..AttemptFinished::new(Exit::Code(0)) };
    vec![
        Event::IterationBegun { iteration: number, work: None },
        Event::AttemptStarted(AttemptId { iteration: number, attempt: 1 }),
        Event::AttemptSpawned { process: runner(7).process },
        Event::AttemptFinished(Box::new(finished)),
    ]
}

fn capped(most: u32) -> Spec {
    let mut spec = spec();
    spec.limits.max_iterations = Some(most);
    spec
}

/// A loop in its second iteration of 5, and one after each of its ends.
fn states() -> Vec<(LoopState, LoopPhase)> {
    let under_way = || [vec![driven()], iteration(1, false), iteration(2, false)[..2].to_vec()].concat();
    let ended = |last: Vec<Event>, end| {
        [vec![driven()], iteration(1, false), last, vec![Event::LoopEnded(end)]].concat()
    };
    let cancel = vec![Event::Asked { request: None, ask: Ask::Cancel(Urgency::Now), by: Default::default() }];
    let claim = ClaimSource::Promise;
    let counted = End::Completed { claim: ClaimSource::Count };
    let of = |events| after(capped(5), events);
    vec![
        (of(Vec::new()), LoopPhase::Running),
        (of(under_way()), LoopPhase::Running),
        (of(under_way()), LoopPhase::Crashed),
        (of(ended(Vec::new(), End::Paused)), LoopPhase::Running),
        (of(ended(cancel, End::Cancelled)), LoopPhase::Cancelled),
        (of(ended(iteration(2, true), End::Completed { claim })), LoopPhase::Completed),
        (after(capped(1), ended(Vec::new(), End::IterationCap)), LoopPhase::MaxIterationsReached),
        (
            after(Spec { until: Until::Count, ..capped(1) }, ended(Vec::new(), counted)),
            LoopPhase::MaxIterationsReached,
        ),
        (of(ended(Vec::new(), End::Stuck)), LoopPhase::Crashed),
        (of(ended(Vec::new(), End::TimedOut)), LoopPhase::Crashed),
    ]
}

/// A key, and whether a value is valid there.
type Check<'a> = (&'a str, &'a dyn Fn(&Value) -> bool);

/// Seed 000's schema, key by key, in the words of its own validator.
fn synthex_schema(state: &Value) -> Result<(), String> {
    let is_slug = |text: &str| {
        let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        (1..=64).contains(&text.len()) && text.chars().all(rest) && !text.starts_with('-')
    };
    let is_time =
        |value: &Value| value.as_str().is_some_and(|text| text.contains('T') && text.ends_with('Z'));
    let is_over = state["status"] != "running";
    let statuses = ["running", "completed", "cancelled", "max-iterations-reached", "crashed"];
    let checks: [Check<'_>; 15] = [
        ("schema_version", &|it| *it == 1),
        ("loop_id", &|it| it.as_str().is_some_and(is_slug)),
        ("session_id", &|it| it.is_null() || it.is_string()),
        ("command", &|it| it.as_str().is_some_and(|text| text.starts_with('/'))),
        ("args", &Value::is_string),
        ("prompt_file", &|it| it.is_null() || it.is_string()),
        ("completion_promise", &|it| it.as_str().is_some_and(|text| !text.is_empty())),
        ("max_iterations", &|it| it.as_u64().is_some_and(|n| (1..=200).contains(&n))),
        ("iteration", &Value::is_u64),
        ("isolation", &|it| *it == "shared-context" || *it == "subagent"),
        ("status", &|it| statuses.iter().any(|status| it == status)),
        ("started_at", &is_time),
        ("last_updated", &is_time),
        ("exited_at", &|it| if is_over { is_time(it) } else { it.is_null() }),
        ("exit_reason", &|it| if is_over { it.is_string() } else { it.is_null() }),
    ];
    let object = state.as_object().ok_or("no object")?;
    for (key, is_valid) in checks {
        let found = object.get(key).ok_or(format!("{key} is missing"))?;
        is_valid(found).then_some(()).ok_or(format!("{key}: {found}"))?;
    }
    Ok(())
}

/// Seed 001's shape: every key, and the one word for an end.
fn descartes_schema(state: &Value) -> Result<(), String> {
    let keys = |of: &Value, keys: &[&str]| {
        let missing = keys.iter().find(|key| of.get(**key).is_none());
        missing.map_or(Ok(()), |key| Err(format!("{key} is missing")))
    };
    keys(state, &["iteration", "started_at", "last_iteration_at", "completed", "completion_detected_at"])?;
    keys(state, &["completion_text", "exit_reason", "iteration_summaries", "error", "config"])?;
    let config = &state["config"];
    keys(
        config,
        &["command", "args", "prompt", "completion_promise", "max_iterations", "working_directory"],
    )?;
    keys(config, &["state_file", "include_iteration_context", "iteration_timeout_secs", "backend", "git"])?;
    keys(&config["backend"], &["backend_type", "prompt_mode", "environment", "output_format"])?;
    keys(&config["git"], &["auto_commit", "commit_template", "create_branch", "branch_template"])?;
    let reasons =
        ["running", "completion_promise_detected", "max_iterations_reached", "user_cancelled", "error"];
    let reason = &state["exit_reason"]["type"];
    if state["version"] != "1.0" || !reasons.iter().any(|word| reason == word) {
        return Err(format!("{reason}"));
    }
    (state["completed"] == (reason != "running")).then_some(()).ok_or("completed".to_owned())?;
    let is_summary = |summary: &Value| {
        keys(
            summary,
            &["iteration", "started_at", "completed_at", "exit_code", "output_preview", "promise_checked"],
        )
    };
    state["iteration_summaries"].as_array().ok_or("no list")?.iter().try_for_each(is_summary)
}

#[test]
fn every_mirror_matches_the_schema_of_its_seed() {
    for (state, standing) in states() {
        let is_driven = standing != LoopPhase::Crashed;
        assert_eq!(LoopPhase::of(&state, is_driven), standing, "{:?}", state.ended);
        let document = |mirror: Mirror| document(mirror, &state, standing);
        let json = |mirror| serde_json::from_str::<Value>(&document(mirror)).unwrap();
        synthex_schema(&json(Mirror::Synthex)).unwrap();
        descartes_schema(&json(Mirror::Descartes)).unwrap();
        let ralph = json(Mirror::Ralph);
        assert_eq!(
            (&ralph["task_id"], &ralph["iteration"]),
            (&json!("mend"), &json!(state.iteration.max(1)))
        );
        assert!(document(Mirror::Randroid).starts_with("---\nmode: implement\n"));
    }
}

#[rstest]
#[case(Workflow::None, "none")]
#[case(Workflow::Commit, "commit")]
#[case(Workflow::Push, "push")]
#[case(Workflow::Pr, "pr")]
#[case(Workflow::PrMerge, "pr-merge")]
fn the_randroid_mirror_names_the_git_workflow(#[case] workflow: Workflow, #[case] said: &str) {
    let mut spec = capped(5);
    spec.git.workflow = workflow;
    let text = document(Mirror::Randroid, &after(spec, Vec::new()), LoopPhase::Running);
    assert!(text.contains(&format!("\ngit_workflow: {said}\n")), "{text}");
}

#[test]
fn ends_have_the_words_of_the_seeds() {
    let reasons: Vec<_> = states()
        .iter()
        .map(|(state, standing)| {
            let of =
                |mirror: Mirror| serde_json::from_str::<Value>(&document(mirror, state, *standing)).unwrap();
            (of(Mirror::Synthex)["exit_reason"].clone(), of(Mirror::Descartes)["exit_reason"].clone())
        })
        .collect();
    let crashed = |how: &str| {
        let message = format!("the loop is {how}");
        (json!("Marked crashed"), json!({ "type": "error", "message": message }))
    };
    let running = || (json!(null), json!({ "type": "running" }));
    assert_eq!(
        reasons,
        [
            running(),
            running(),
            crashed("crashed"),
            running(),
            (json!("Cancelled by /synthex:cancel-loop"), json!({ "type": "user_cancelled" })),
            (json!("completion-promise-emitted"), json!({ "type": "completion_promise_detected" })),
            (
                json!("Reached max_iterations=1 without completion promise"),
                json!({ "type": "max_iterations_reached" })
            ),
            (
                json!("Reached max_iterations=1 without completion promise"),
                json!({ "type": "max_iterations_reached" })
            ),
            crashed("stuck"),
            crashed("timed-out"),
        ]
    );
}

/// Seed 000's own example of a state.
fn synthex() -> Value {
    json!({
        "schema_version": 1, "loop_id": "release-1", "session_id": null, "command": "/synthex:next-priority",
        "args": "--loop --completion-promise \"ALLDONE\" --max-iterations 30 --name release-1", "prompt_file": null,
        "completion_promise": "ALLDONE", "max_iterations": 30, "iteration": 6, "isolation": "shared-context",
        "status": "running", "started_at": "2026-05-27T10:00:00Z", "last_updated": "2026-05-27T11:00:00Z",
        "exited_at": null, "exit_reason": null
    })
}

fn with(mut state: Value, changes: &Value) -> Value {
    state.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    state
}

#[test]
fn a_loop_of_synthex_is_read() {
    let found = read(&synthex().to_string()).unwrap();
    assert_eq!(
        found,
        ForeignLoop {
            system: System::Synthex,
            id: Some("release-1".parse().unwrap()),
            began: None,
            prompt: Prompt::Text("/synthex:next-priority".into()),
            command: None,
            promised: PromiseWords::Words("ALLDONE".parse::<PromiseText>().unwrap()),
            cap: Some(30),
            iteration: 6,
            standing: LoopPhase::Running,
            check: None,
        }
    );
    assert_eq!(found.total(None), Ok(30));
}

#[test]
fn every_key_must_be_there() {
    for key in synthex().as_object().unwrap().keys() {
        let mut state = synthex();
        state.as_object_mut().unwrap().remove(key);
        let error = read(&state.to_string()).unwrap_err().to_string();
        assert!(error.contains(key), "{key}: {error}");
    }
}

#[rstest]
#[case::another_session(json!({ "session_id": "s" }), true)]
#[case::subagent(json!({ "isolation": "subagent" }), true)]
#[case::prompt_file(json!({ "prompt_file": "task.md" }), true)]
#[case::fraction(json!({ "started_at": "2026-05-27T10:00:00.123Z" }), true)]
#[case::most(json!({ "max_iterations": 200 }), true)]
#[case::fresh(json!({ "iteration": 0 }), true)]
#[case::one_character(json!({ "loop_id": "a" }), true)]
#[case::longest(json!({ "loop_id": "a".repeat(64) }), true)]
#[case::more_keys(json!({ "runId": "x-i3", "idle_streak": 2 }), true)]
#[case::version_two(json!({ "schema_version": 2 }), false)]
#[case::version_text(json!({ "schema_version": "1" }), false)]
#[case::upper_case(json!({ "loop_id": "Release" }), false)]
#[case::leading_hyphen(json!({ "loop_id": "-a" }), false)]
#[case::underscore(json!({ "loop_id": "a_b" }), false)]
#[case::too_long(json!({ "loop_id": "a".repeat(65) }), false)]
#[case::path(json!({ "loop_id": "../up" }), false)]
#[case::status(json!({ "status": "paused" }), false)]
#[case::isolation(json!({ "isolation": "container" }), false)]
#[case::none(json!({ "max_iterations": 0 }), false)]
#[case::too_many(json!({ "max_iterations": 201 }), false)]
#[case::half(json!({ "max_iterations": 20.5 }), false)]
#[case::unlimited(json!({ "max_iterations": null }), false)]
#[case::negative(json!({ "iteration": -1 }), false)]
#[case::overflowing(json!({ "iteration": u32::MAX }), false)]
#[case::no_t(json!({ "started_at": "2026-05-27 10:00:00Z" }), false)]
#[case::no_z(json!({ "last_updated": "2026-05-27T10:00:00+02:00" }), false)]
#[case::no_time(json!({ "started_at": "TZ" }), false)]
#[case::over_without_time(json!({ "status": "completed", "exit_reason": "x" }), false)]
#[case::over_without_reason(json!({ "status": "crashed", "exited_at": "2026-05-27T10:00:00Z" }), false)]
#[case::running_and_over(json!({ "exited_at": "2026-05-27T10:00:00Z" }), false)]
#[case::no_slash(json!({ "command": "loop" }), false)]
#[case::no_command(json!({ "command": 7 }), false)]
#[case::empty_promise(json!({ "completion_promise": "" }), false)]
#[case::promise_with_a_tag(json!({ "completion_promise": "</promise>" }), false)]
#[case::escape(json!({ "args": "--prompt '\u{1b}]0;x\u{7}'" }), false)]
#[case::option(json!({ "command": "/synthex:loop", "args": "--prompt '--dangerously-skip-permissions'" }), false)]
fn states_of_synthex_are_taken_or_refused(#[case] changes: Value, #[case] is_taken: bool) {
    let found = read(&with(synthex(), &changes).to_string());
    assert_eq!(found.is_ok(), is_taken, "{found:?}");
}

#[rstest]
#[case::null("null")]
#[case::list("[]")]
#[case::text("\"x\"")]
#[case::empty("")]
#[case::cut("{\"schema_version\": 1, \"loop_id\": \"a\"")]
#[case::another_format("{\"version\": 3}")]
#[case::prose("# Notes\n\nNothing.\n")]
#[case::open_front_matter("---\nactive: true\n")]
fn an_invalid_state_file_is_refused(#[case] text: &str) {
    assert!(read(text).is_err());
}

#[rstest]
#[case::running(LoopPhase::Running, None, Ok(30))]
#[case::more(LoopPhase::Running, Some(206), Ok(206))]
#[case::crashed(LoopPhase::Crashed, None, Ok(30))]
#[case::at_its_cap(LoopPhase::MaxIterationsReached, Some(50), Ok(50))]
#[case::completed(LoopPhase::Completed, Some(50), Err("it is completed there"))]
#[case::cancelled(LoopPhase::Cancelled, Some(50), Err("it is cancelled there"))]
#[case::at_its_cap_still(
    LoopPhase::MaxIterationsReached,
    None,
    Err("6 of 30; accepted: --max-iterations 7 to 206")
)]
#[case::no_more(LoopPhase::Running, Some(6), Err("6 of 6; accepted: --max-iterations 7 to 206"))]
#[case::too_many(
    LoopPhase::Running,
    Some(207),
    Err("at most 200 more at a time; accepted: --max-iterations 7 to 206")
)]
fn a_foreign_loop_continues_while_iterations_are_left(
    #[case] standing: LoopPhase,
    #[case] asked: Option<u32>,
    #[case] total: Result<u32, &str>,
) {
    let found = ForeignLoop { standing, ..read(&synthex().to_string()).unwrap() };
    match (found.total(asked), total) {
        (Ok(found), Ok(total)) => assert_eq!(found, total),
        (Err(error), Err(said)) => assert!(error.to_string().contains(said), "{error}"),
        (found, total) => panic!("{found:?} is not {total:?}"),
    }
}

#[rstest]
#[case("/synthex:loop", "--prompt 'mend it' --max-iterations 3", "mend it")]
#[case("/synthex:loop", "--completion-promise \"ALL DONE\" --prompt=\"it's \\\"x\\\"\"", "it's \"x\"")]
#[case("/refrain:loop", "Don't stop.\n\n --loop-isolated  --max 5", "Don't stop.")]
#[case("/refrain:loop", "--name a Leave --names alone", "Leave --names alone")]
#[case("/synthex:next-priority", "--loop --config x --name r", "/synthex:next-priority --config x")]
#[case("/synthex:review-code", "", "/synthex:review-code")]
#[case("/synthex:loop", "--prompt 'no end", "no end")]
#[case("/synthex:loop", "--prompt", "")]
fn a_typed_prompt_is_distinguished_from_options(
    #[case] command: &str,
    #[case] args: &str,
    #[case] prompt: &str,
) {
    assert_eq!(line(command, args).prompt, prompt);
}

#[rstest]
#[case::seed("{\"type\": \"running\"}", false, LoopPhase::Running)]
#[case::done("{\"type\": \"completion_promise_detected\"}", true, LoopPhase::Completed)]
#[case::process("{\"type\": \"process_success\"}", true, LoopPhase::Completed)]
#[case::cap("{\"type\": \"max_iterations_reached\"}", true, LoopPhase::MaxIterationsReached)]
#[case::cancelled("{\"type\": \"user_cancelled\"}", true, LoopPhase::Cancelled)]
#[case::error("{\"type\": \"error\", \"message\": \"x\"}", true, LoopPhase::Crashed)]
#[case::unsaid("null", false, LoopPhase::Running)]
fn a_loop_of_descartes_is_read(#[case] reason: &str, #[case] completed: bool, #[case] standing: LoopPhase) {
    let text = format!(
        r#"{{"version": "1.0", "iteration": 3, "completed": {completed}, "exit_reason": {reason}, "started_at": "x",
        "config": {{"command": "claude", "args": ["-p", "a b"], "prompt": "Do it.", "completion_promise": null}}}}"#
    );
    let found = read(&text).unwrap();
    assert_eq!((found.standing, found.iteration, found.cap), (standing, 3, None));
    assert_eq!(found.command.as_deref(), Some("claude -p 'a b'"));
    assert_eq!((found.promised, found.prompt), (PromiseWords::Never, Prompt::Text("Do it.".into())));
    for (from, to) in
        [("1.0", "2.0"), ("\"type\"", "\"kind\""), ("\"Do it.\"", "7"), ("3", "-3"), ("command", "cmd")]
    {
        let other = text.replacen(from, to, 1);
        assert!(other == text || read(&other).is_err(), "{other}");
    }
}

#[test]
fn loops_of_the_others_are_read() {
    let ralph = read("---\nactive: true\niteration: 4\nsession_id: s\nmax_iterations: 0\ncompletion_promise: null\nstarted_at: \"x\"\n---\n\nMend it.\n---\nAll of it.\n").unwrap();
    assert_eq!((ralph.iteration, ralph.cap, ralph.promised), (4, None, PromiseWords::Unsaid));
    assert_eq!(ralph.prompt, Prompt::Text("Mend it.\n---\nAll of it.".into()));
    let quoted = "---\nactive: false\niteration: 4\nmax_iterations: 9\ncompletion_promise: \"ALL DONE\"\n---\nMend it.\n";
    assert_eq!(read(quoted).unwrap().total(None), Err(CannotContinue::Over("cancelled")));

    let randroid = "---\nmode: research\niteration: 3\niterations: 10\ngit_workflow: push\ncompletion_promise: RANDROID_LOOP_COMPLETE\nstarted_at: 2026-01-16T15:00:00Z\n---\n";
    let found = read(randroid).unwrap();
    assert_eq!((found.iteration, found.cap, found.prompt.clone()), (3, Some(10), Prompt::Unsaid));
    for (from, to) in [
        ("research", "chat"),
        ("iterations: 10", "iterations: x"),
        ("push", "force"),
        ("iteration: 3", "turn: 3"),
    ] {
        assert!(read(&randroid.replacen(from, to, 1)).is_err(), "{to}");
    }
    for (cap, limit) in [("-1", None), ("0", None), ("7", Some(7))] {
        let text = randroid.replacen("iterations: 10", &format!("max_iterations: {cap}"), 1);
        assert_eq!(read(&text).unwrap().cap, limit);
    }

    let conclave = json!({ "task_id": "add-auth", "iteration": 3, "max_iterations": 5, "stuck_count": 0, "attempts": [] });
    let found = read(&conclave.to_string()).unwrap();
    assert_eq!((found.iteration, found.total(None), found.prompt), (3, Ok(5), Prompt::Unsaid));
    let over = with(conclave, &json!({ "iteration": 6 }));
    assert_eq!(read(&over.to_string()).unwrap().standing, LoopPhase::MaxIterationsReached);

    let scud = json!({ "config": { "tag": "a; b", "plan_path": "p.md", "verification_command": "make test" }, "current_wave": 2 });
    let Err(Unread::Plan { words, .. }) = read(&scud.to_string()) else { panic!("it is a plan") };
    assert_eq!(shlex::split(&words).unwrap(), ["--tag=a; b", "--plan=p.md"]);
}

#[rstest]
#[case::on("---\nactive: true\niteration: 1\n---\nx", true)]
#[case::off("---\nactive: false\n---\nx", false)]
#[case::prose("active: true", false)]
#[case::damaged("---\nactive: [true\n---\n", false)]
fn a_loop_of_the_plugin_is_on_or_not(#[case] text: &str, #[case] is_on: bool) {
    assert_eq!(is_ralph_loop_active(text), is_on);
}

#[test]
fn a_file_that_there_is_once_belongs_to_the_loop_that_began_last() {
    let named = |id: &str, ms: i64| {
        let start = LoopStarted {
            format: FORMAT,
            refrain: "1".into(),
            spec: Spec { id: id.parse().unwrap(), ..spec() },
        };
        let record = Record { seq: 1, at: time(ms), event: Event::LoopStarted(Box::new(start)) };
        LoopState::begin(&record).unwrap()
    };
    let (first, second) = (named("first", 0), named("second", 1));
    for mirror in Mirror::ALL {
        let of = |state| document(mirror, state, LoopPhase::Running);
        let keeps = |state| files(mirror, state, LoopPhase::Running, None);
        assert_eq!(keeps(&first).owner(&of(&first)), Owner::Own);
        assert_eq!(keeps(&second).owner(&of(&first)), Owner::Own);
        assert_eq!(keeps(&first).owner(&of(&second)), Owner::Later);
        assert_eq!(shown_by(&of(&first)), Some("first".parse().unwrap()));
    }
    let own = files(Mirror::Descartes, &first, LoopPhase::Running, None);
    assert_eq!(own.owner(""), Owner::Own);
    for foreign in [" ", "{}", "{\"refrain_loop\": 1}", "---\nmode: research\n---\n", &synthex().to_string()]
    {
        assert_eq!(own.owner(foreign), Owner::Foreign, "{foreign}");
    }
}

#[rstest]
#[case(".synthex/loops/a.json", true)]
#[case(".synthex/loops", true)]
#[case(".synthex/loops/.archive/a.json", true)]
#[case(".synthex/config.yaml", false)]
#[case(".synthex/loopsy", false)]
#[case(".descartes/loop-state.json", true)]
#[case(".descartes/notes.md", false)]
#[case("loop.local.md", true)]
#[case("docs/loop.local.md", false)]
#[case("sub/.ralph_state.json", true)]
#[case(".claude/ralph-loop.local.md", false)]
fn mirrors_are_known_by_their_paths(#[case] path: &str, #[case] is_one: bool) {
    assert_eq!(is_mirror(path.as_bytes()), is_one);
}

proptest! {
    #[test]
    fn a_written_mirror_reads_back_unchanged(
        prompt in "[A-Za-z/][^\\p{C}]{0,60}(\n[^\\p{C}]{0,20}){0,2}[a-z.]",
        promise in "[A-Za-z0-9 _:#'\"{-]{0,20}[A-Z]",
        (cap, iteration) in (1u32..=200).prop_flat_map(|cap| (Just(cap), 0..=cap)),
    ) {
        let mut spec = Spec { prompt: prompt.clone(), ..capped(cap) };
        let text = promise.parse::<PromiseText>().unwrap();
        spec.promise.as_mut().unwrap().text = text.clone();
        spec.carried = Some(CarriedCounter { from: "x".into(), iteration });
        let state = after(spec, Vec::new());
        for mirror in Mirror::ALL {
            let found = read(&document(mirror, &state, LoopPhase::Running)).unwrap();
            prop_assert_eq!(found.cap, Some(cap));
            prop_assert_eq!(found.began, Some(state.started_at));
            prop_assert_eq!(found.id, Some(state.spec.id.clone()));
            // Conclave counts from 1, and knows neither prompt nor promise.
            if mirror == Mirror::Ralph {
                prop_assert_eq!(found.iteration, iteration.max(1));
                continue;
            }
            prop_assert_eq!(found.iteration, iteration);
            prop_assert_eq!(&found.prompt, &Prompt::Text(prompt.clone()));
            prop_assert_eq!(&found.promised, &PromiseWords::Words(text.clone()));
        }
    }

    #[test]
    fn nothing_that_is_read_panics(text in "(---\n)?(active|mode|iteration|iterations|config|\\{|\\}|\"|:|,|\n|[0-9]|true|null| ){0,40}(---\n)?.{0,20}") {
        let _ = read(&text);
        let _ = line("/synthex:loop", &text);
    }
}
