//! Caps that loops share: concurrent loops, caps that change, runners that die, days that pass. The agents are scripts
//! that print OpenCode's output, which has the cost of every model call.

use refrain_core::agent::Usd;
use refrain_core::budget::Caps;
use refrain_core::gate::{Check, GateSpec, GateWhen, ReviewSpec};
use refrain_core::spec::{AgentKind, AgentSpec};
use refrain_engine::{Service, Signals};
use serde_json::{Value, json};
use testkit::{Sandbox, write};

use crate::sandbox;

use crate::commits::hosted;

/// Shell functions for scripts: `spends USD` is one more model call, `says TEXT` the last one.
const SPENDS: &str = r#"line() { printf '{"type":"%s","sessionID":"s%s","part":%s}\n' "$1" "$REFRAIN_ATTEMPT" "$2"; }
spends() { line step_finish '{"reason":"tool-calls","cost":'"$1"',"tokens":{"input":100,"output":10}}'; }
says() { line text '{"text":"'"$1"'"}'; line step_finish '{"reason":"stop","cost":'"${2:-0.25}"',"tokens":{"input":100,"output":10}}'; }
cat > /dev/null
"#;

fn opencode(sandbox: &Sandbox, script: &str) -> String {
    sandbox.agent("opencode", &format!("{SPENDS}{script}"))
}

/// Writes the user's own configuration.
fn configure(sandbox: &Sandbox, text: &str) {
    std::fs::create_dir_all(sandbox.root().join("home/config/refrain")).unwrap();
    write(&sandbox.root().join("home/config/refrain/config.toml"), text);
}

/// The first cap as `usage` shows it: spent, reserved.
fn cap(sandbox: &Sandbox) -> (Value, Value) {
    let report = sandbox.refrain(&["usage", "--json"]).with_code(0).json();
    let cap = &report["caps"][0];
    (cap["spent"].clone(), cap["reserved"].clone())
}

#[track_caller]
fn wait_for_cap(sandbox: &Sandbox, spent: f64, reserved: f64) {
    let expected = (json!(spent), json!(reserved));
    testkit::eventually(&format!("{spent} is spent and {reserved} reserved"), || {
        (cap(sandbox) == expected).then_some(())
    });
}

/// A variable that gives the machine another day than UTC, the zone of the other sessions.
fn another_day() -> &'static str {
    // Fourteen hours ahead it is tomorrow from ten o'clock on; twelve hours back, yesterday before twelve.
    let hour = refrain_engine::now().to_zoned(jiff::tz::TimeZone::UTC).hour();
    if hour >= 10 { "<ahead>-14" } else { "<behind>12" }
}

#[test]
fn two_loops_at_once_never_spend_the_same_money_and_the_next_day_there_is_more() {
    let sandbox = sandbox();
    configure(&sandbox, "[budget]\nmax-cost-per-day = 3\n");
    let agent = opencode(
        &sandbox,
        "test -e $NOTES/over && { says '<promise>COMPLETE</promise>'; exit; }\n\
         while read -r _ < $GATES/$REFRAIN_LOOP_ID; do spends 0.5; done",
    );
    let (first_gate, second_gate) = (sandbox.gate("first"), sandbox.gate("second"));
    let start = |id: &'static str| {
        ["start", "--command", &agent, "--name", id, "--share-worktree", "p"].map(str::to_owned)
    };
    let spawn = |id| sandbox.spawn(&start(id).each_ref().map(String::as_str));
    let first = spawn("first");
    wait_for_cap(&sandbox, 0.0, 1.0);
    let second = spawn("second");
    wait_for_cap(&sandbox, 0.0, 2.0);
    first_gate.let_one_pass();
    first_gate.let_one_pass();
    // Before the first is overdrawn, it has reserved the rest.
    wait_for_cap(&sandbox, 0.0, 3.0);
    second_gate.let_one_pass();
    second_gate.let_one_pass();
    let ended = second.wait().with_code(11);
    assert!(ended.stdout.contains("the budget is used up"), "{}", ended.stdout);
    let status = sandbox.status("second");
    assert_eq!(status["iterations"][0]["outcome"], "budget");
    assert_eq!(status["usage"]["cost_usd"], 1.0, "nothing beyond what it had reserved");
    let reason = status["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("$1.00 of the $3.00 a day for all loops (max-cost-per-day) spent on")
            && reason.contains("and $2.00 reserved for loops at work; there is more from midnight on"),
        "{reason}"
    );
    assert!(status["needs"].as_str().unwrap().starts_with("refrain resume second from midnight on"));

    first_gate.let_one_pass();
    first_gate.let_one_pass();
    first.wait().with_code(11);
    assert_eq!(cap(&sandbox), (json!(3.0), json!(0.0)));
    let shown = sandbox.refrain(&["status", "first"]).with_code(0).stdout;
    assert!(
        shown.contains("$3.00 of the $3.00 a day for all loops spent, $0.00 reserved, $0.00 left"),
        "{shown}"
    );

    // A third is not even begun, and resuming changes nothing today.
    let third = spawn("third").wait().with_code(11);
    assert!(third.stdout.contains("$3.00 of the $3.00 a day"), "{}", third.stdout);
    assert_eq!(sandbox.status("third")["started"], 0);
    sandbox.refrain(&["resume", "first"]).with_code(11);

    write(&sandbox.root().join("notes/over"), "x");
    sandbox.command(&["resume", "first"]).env("TZ", another_day()).run().with_code(0);
    assert_eq!(cap(&sandbox).0, json!(3.0), "another day's money");
}

#[test]
fn a_plan_lands_what_is_verified_before_it_ends_at_a_cap_and_resume_reads_what_is_left() {
    let sandbox = sandbox();
    configure(&sandbox, "[budget]\nmax-cost-per-day = 2\n");
    write(&sandbox.project().join("PLAN.md"), "## Task 1: One\n\n## Task 2: Two\n");
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Begin"]);
    let agent = opencode(
        &sandbox,
        "task=$(git branch --show-current); task=${task##*/}\n\
         test $task = 2 && { echo x > $NOTES/two; read -r _ < $GATES/two; }\n\
         test $task = 1 && ! test -e $NOTES/over && { read -r _ < $GATES/one; spends 1; read -r _ < $GATES/never; }\n\
         echo x > $task.txt; says TASK_COMPLETE",
    );
    let (first, second, _never) = (sandbox.gate("one"), sandbox.gate("two"), sandbox.gate("never"));
    let run = ["plan", "run", "--plan", "PLAN.md", "--command", &agent, "--verify", "true", "--name", "p"];
    let session = sandbox.spawn(&[&run[..], &["--jobs", "2"]].concat());
    // Both have reserved money before the first spends it.
    sandbox.wait_for_note("two");
    first.let_one_pass();
    sandbox.wait_for_status("p-1-3b8f118c", "budget-exceeded");
    second.let_one_pass();
    // What the second did not use lets the first begin once more.
    first.let_one_pass();
    let ended = session.wait().with_code(11);
    assert!(ended.stdout.contains("task 1 waits for money: $1.00 of the $2.00"), "{}", ended.stdout);
    let reads = |run: &testkit::Run| {
        for part in
            ["$2.25 of the $2.00 a day for all loops", "1 task not done", "refrain plan resume p from"]
        {
            assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
        }
        assert!(!run.stdout.contains("refrain resume"), "{}", run.stdout);
    };
    reads(&ended);
    let status = sandbox.refrain(&["plan", "status", "p", "--json"]).with_code(0).json();
    assert_eq!(
        (&status["status"], &status["tasks"][1]["status"]),
        (&json!("budget-exceeded"), &json!("done"))
    );

    reads(&sandbox.refrain(&["plan", "resume", "p"]).with_code(11));
    configure(&sandbox, "[budget]\nmax-cost-per-day = 10\n");
    write(&sandbox.root().join("notes/over"), "x");
    sandbox.refrain(&["plan", "resume", "p"]).with_code(0);
}

#[test]
fn a_cap_that_is_lowered_meanwhile_holds_from_the_next_attempt_on() {
    let sandbox = sandbox();
    configure(&sandbox, "[budget]\nmax-cost-per-day = 10\n");
    let agent = opencode(&sandbox, "read -r _ < $GATES/go; says 'not yet' 0.5");
    let gate = sandbox.gate("go");
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    wait_for_cap(&sandbox, 0.0, 1.0);
    gate.let_one_pass();
    // A quarter more than the last one cost.
    wait_for_cap(&sandbox, 0.5, 0.625);
    configure(&sandbox, "[budget]\nmax-cost-per-day = 0.75\n");
    gate.let_one_pass();
    session.wait().with_code(11);
    assert_eq!(sandbox.status("job")["charged"], 2);
    assert_eq!(cap(&sandbox), (json!(1.0), json!(0.0)));
    configure(&sandbox, "[budget]\nmax-cost-per-day = 10\n");
    let session = sandbox.spawn(&["resume", "job"]);
    wait_for_cap(&sandbox, 1.0, 0.625);
    sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    session.wait().with_code(15);
}

#[test]
fn the_reservation_of_a_killed_runner_is_returned_and_its_cost_counts_once() {
    let sandbox = sandbox();
    configure(&sandbox, "[budget]\nmax-cost-per-day = 10\n");
    let agent = opencode(
        &sandbox,
        "test -e $NOTES/over && { says '<promise>COMPLETE</promise>'; exit; }\n\
         spends 0.75\necho x > $NOTES/spent\nread -r _ < $GATES/never",
    );
    let _never = sandbox.gate("never");
    let killed = sandbox.spawn(&["start", "--command", &agent, "--name", "killed", "p"]);
    sandbox.wait_for_note("spent");
    // It has taken the change: the reservation grew.
    wait_for_cap(&sandbox, 0.0, 1.75);
    killed.kill();
    let doctor = sandbox.refrain(&["doctor"]).stdout;
    assert!(doctor.contains("$1.75 reserved by a runner that died"), "{doctor}");

    write(&sandbox.root().join("notes/over"), "x");
    let other = ["start", "--command", &agent, "--name", "other", "--share-worktree", "p"];
    sandbox.refrain(&other).with_code(0);
    assert_eq!(cap(&sandbox), (json!(1.0), json!(0.0)), "0.75 of the killed one, 0.25 of this one");
    sandbox.refrain(&["resume", "killed"]).with_code(0);
    assert_eq!(cap(&sandbox), (json!(1.25), json!(0.0)));
    let all = sandbox.refrain(&["usage", "--json"]).with_code(0).json();
    assert_eq!(all["total"]["usage"]["cost_usd"], 1.25, "the journals say the same");
    assert!(sandbox.refrain(&["doctor"]).stdout.contains("no dead runner holds money"));
}

#[test]
fn a_result_that_the_next_runner_adopts_settles_what_was_reserved_for_it() {
    let sandbox = sandbox();
    configure(&sandbox, "[budget]\nmax-cost-per-day = 10\n");
    let last = r#"echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"session_id":"s","result":"<promise>COMPLETE</promise>","total_cost_usd":0.25,"usage":{"input_tokens":9,"output_tokens":5},"terminal_reason":"completed"}'"#;
    let agent = sandbox
        .agent("claude", &format!("cat > /dev/null\n{last}\necho x > $NOTES/said\nread -r _ < $GATES/never"));
    let _never = sandbox.gate("never");
    let killed = sandbox.spawn(&["start", "--command", &agent, "--name", "killed", "p"]);
    sandbox.wait_for_note("said");
    wait_for_cap(&sandbox, 0.0, 5.0);
    killed.kill();
    sandbox.refrain(&["resume", "killed"]).with_code(0);
    assert_eq!(sandbox.status("killed")["started"], 1);
    assert_eq!(cap(&sandbox), (json!(0.25), json!(0.0)));
}

#[test]
fn a_damaged_ledger_keeps_loops_under_a_cap_from_spending_and_is_left_as_it_is() {
    let sandbox = sandbox();
    let agent = opencode(&sandbox, "says '<promise>COMPLETE</promise>'");
    let ledger = sandbox.root().join("home/state/refrain/limits/budget.json");
    sandbox.refrain(&["start", "--command", &agent, "--name", "before", "p"]).with_code(0);
    write(&ledger, "{\"version\":1");
    sandbox.refrain(&["start", "--command", &agent, "--name", "uncapped", "p"]).with_code(0);

    configure(&sandbox, "[budget]\nproject-max-cost = 10\n");
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "capped", "p"]).with_code(1);
    assert!(run.stderr.contains("limits/budget.json does not say what loops spent"), "{}", run.stderr);
    assert!(run.stderr.contains("remove it to count from nothing"), "{}", run.stderr);
    assert_eq!(sandbox.status("capped")["started"], 0);
    assert_eq!(std::fs::read_to_string(&ledger).unwrap(), "{\"version\":1");
    assert!(sandbox.refrain(&["doctor"]).with_code(1).stdout.contains("budget"));

    std::fs::remove_file(&ledger).unwrap();
    sandbox.refrain(&["resume", "capped"]).with_code(0);
    assert_eq!(cap(&sandbox), (json!(0.25), json!(0.0)));
}

#[test]
fn the_error_of_a_detached_runner_is_what_status_and_report_say() {
    let sandbox = sandbox();
    let agent = opencode(&sandbox, "says '<promise>COMPLETE</promise>'");
    let ledger = sandbox.root().join("home/state/refrain/limits/budget.json");
    std::fs::create_dir_all(ledger.parent().unwrap()).unwrap();
    write(&ledger, "{\"version\":1");
    configure(&sandbox, "[budget]\nproject-max-cost = 10\n");
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "--detach", "p"]).with_code(0);
    sandbox.wait_for_status("job", "crashed");
    let status = sandbox.status("job");
    let reason = status["reason"].as_str().unwrap();
    let said =
        format!("its runner stopped by an error: {} does not say what loops spent: ", ledger.display());
    assert!(reason.starts_with(&said) && reason.contains("; nothing is lost"), "{reason}");
    assert_eq!(status["needs"], "remove the cause, then refrain resume job");
    let listed = sandbox.refrain(&["list", "--json"]).with_code(0).json();
    assert_eq!(listed[0]["reason"], status["reason"]);
    let report = sandbox.refrain(&["report", "job", "--json"]).with_code(0);
    assert_eq!(report.json()["reason"], status["reason"]);
    write(&sandbox.root().join("report.json"), &report.stdout);
    let given = sandbox.root().join("report.json");
    sandbox.refrain(&["verify", "job", "--report", given.to_str().unwrap()]).with_code(0);

    std::fs::remove_file(&ledger).unwrap();
    sandbox.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(sandbox.status("job")["needs"], Value::Null);
}

#[test]
fn an_agent_that_reports_no_cost_is_not_started_under_a_cap() {
    let sandbox = sandbox();
    configure(&sandbox, "[start]\nmodel = \"m\"\n\n[budget]\nmax-cost-per-day = 10\n");
    let command = sandbox.agent("work.sh", "echo '<promise>COMPLETE</promise>'");
    let before = sandbox.snapshot();
    let refused = sandbox.refrain(&["start", "--command", &command, "p"]).with_code(2);
    assert!(
        refused.stderr.contains("config.toml:5: budget.max-cost-per-day: generic does not say what it costs"),
        "{}",
        refused.stderr
    );
    let cure = "refrain config set budget.max-cost-per-day none takes the cap back";
    assert!(refused.stderr.contains(cure) && refused.stderr.contains("accepted: claude"), "{refused:?}");
    for (words, fault) in [
        (&["start", "--command", &command][..], "nothing says what it is to do"),
        (&["start", "--agent", "nosuch", "p"], "there is no agent \"nosuch\""),
    ] {
        let refused = sandbox.refrain(words).with_code(2);
        assert!(refused.stderr.contains(fault) && !refused.stderr.contains("budget."), "{refused:?}");
    }
    assert_eq!(sandbox.snapshot(), before);
    sandbox.refrain(&["config", "set", "budget.max-cost-per-day", "none"]).with_code(0);
    sandbox.refrain(&["start", "--command", &command, "p"]).with_code(0);
    sandbox.refrain(&["config", "set", "budget.max-cost-per-day", "10"]).with_code(0);

    // An agent that should report its cost, and does not.
    let silent = opencode(&sandbox, "says 'not yet' 0");
    sandbox.refrain(&["start", "--command", &silent, "--name", "silent", "p"]).with_code(14);
    let status = sandbox.status("silent");
    assert_eq!((&status["charged"], &status["status"]), (&json!(1), &json!("blocked")));
    assert!(status["reason"].as_str().unwrap().contains("caps of [budget] cannot be kept"), "{status}");

    // A loop that was started before there was a cap.
    configure(&sandbox, "");
    let gate = sandbox.gate("go");
    let waits = sandbox.agent("waits.sh", "read -r _ < $GATES/go; echo not yet");
    let session = sandbox.spawn(&["start", "--command", &waits, "--name", "early", "p"]);
    sandbox.wait_for_event("early", "attempt.spawned");
    configure(&sandbox, "[budget]\nmax-cost-per-day = 10\n");
    gate.let_one_pass();
    session.wait().with_code(14);
}

#[test]
fn a_projects_file_can_only_lower_and_what_it_said_at_the_start_stays() {
    let sandbox = sandbox();
    configure(&sandbox, "[budget]\nmax-cost-per-day = 10\nproject-max-cost = 5\n");
    let file = sandbox.project().join("refrain.toml");
    write(&file, "[budget]\nmax-cost-per-day = 20\nproject-max-cost = 1.0\n");
    sandbox.trust();
    let shown = sandbox.refrain(&["config", "show", "--origin"]).with_code(0).stdout;
    let line = |key: &str| shown.lines().find(|line| line.contains(key)).unwrap_or_default().to_owned();
    assert!(
        line("budget.max-cost-per-day").contains("10")
            && line("budget.max-cost-per-day").contains("config.toml:2")
    );
    assert!(
        line("budget.project-max-cost ").contains("1.0")
            && line("budget.project-max-cost ").contains("refrain.toml:3")
    );

    // The agent takes the file away: that changes nothing for the loop.
    let agent = opencode(&sandbox, "rm -f refrain.toml; says 'not yet' 0.75");
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(11);
    let status = sandbox.status("job");
    assert_eq!((&status["charged"], &status["usage"]["cost_usd"]), (&json!(2), &json!(1.5)));
    assert_eq!(status["needs"], "raise project-max-cost in refrain.toml, then start a new loop");
    let reason = status["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("$1.50 of the $1.00 for loops of this project (project-max-cost)"),
        "{reason}"
    );
}

#[test]
fn an_agent_with_its_own_budget_option_gets_the_reserved_amount() {
    let sandbox = sandbox();
    configure(&sandbox, "[budget]\nmax-cost-per-day = 2\n");
    let last = r#"printf '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"session_id":"s%s","result":"no","total_cost_usd":0.5,"usage":{"input_tokens":9,"output_tokens":5},"terminal_reason":"completed"}\n' $REFRAIN_ITERATION"#;
    let agent = sandbox.agent("claude", &format!("cat > /dev/null; echo \"$*\" >> $NOTES/words\n{last}"));
    let start = ["start", "--command", &agent, "--name", "job", "--max-iterations", "2", "p"];
    sandbox.refrain(&start).with_code(10);
    let budgets: Vec<String> = sandbox
        .note("words")
        .lines()
        .filter_map(|line| Some(line.split_once("--max-budget-usd ")?.1.split(' ').next()?.to_owned()))
        .collect();
    assert_eq!(budgets, ["2", "1.5"], "all that is left, as it can ask for no more");
    let start =
        ["start", "--command", &agent, "--name", "own", "--max-iterations", "1", "--max-cost", "0.3", "p"];
    sandbox.refrain(&start).with_code(11);
    assert!(sandbox.note("words").lines().last().unwrap().contains("--max-budget-usd 0.3"));
}

#[test]
fn reviewers_spend_the_money_that_loops_share_too() {
    let sandbox = sandbox();
    let host = hosted::host(&sandbox);
    let work = opencode(&sandbox, "echo x > work; says '<promise>COMPLETE</promise>' 0.5");
    let reviewer = sandbox.agent("reviewer", &format!("{SPENDS}says SPEC_PASS 0.3"));
    let mut spec = hosted::spec(&sandbox, "job", work);
    spec.agent.kind = AgentKind::Opencode;
    let agent = AgentSpec { program: reviewer, ..spec.agent.clone() };
    spec.gates = vec![GateSpec {
        name: "spec".parse().unwrap(),
        check: Check::Review(Box::new(ReviewSpec { agent, spec: "There is work.".into() })),
        hard: true,
        timeout: GateSpec::TIMEOUT,
        retries: 0,
        when: GateWhen::Claim,
        completes: false,
        own_tests: false,
        by_default: false,
    }];
    std::fs::create_dir_all(&host.config_home).unwrap();
    write(host.config_home.join("config.toml").as_std_path(), "[budget]\nmax-cost-per-day = 10\n");
    let project = camino::Utf8PathBuf::from_path_buf(sandbox.project()).unwrap();
    let service = Service::open(&project, host.clone()).unwrap();
    let runner = service.start(spec, Some("job".parse().unwrap())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let state = runtime.block_on(runner.drive(&host, Signals::None, || {})).unwrap();
    assert!(state.is_proven(), "{:?}", state.ended);
    assert_eq!(state.costs, [Some(Usd(500_000_000)), Some(Usd(300_000_000))]);
    let cap = service.shared_caps(Caps::default()).unwrap()[0];
    assert_eq!((cap.spent, cap.reserved), (Usd(800_000_000), Usd(0)));
}
