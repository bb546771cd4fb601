//! Traces: what a collector is told of a loop, and that one which is down or hostile can do nothing to it; and sums for
//! machines and as a picture.

use std::fs;

use serde_json::{Value, json};
use testkit::{Answer, Receiver, Sandbox};

use crate::{CLAIM, sandbox};

/// Runs a loop of at most three iterations to its end, with a gate.
fn run(sandbox: &Sandbox, env: &[(&str, &str)]) -> testkit::Run {
    let script = format!("echo \"$TRACEPARENT\" >> $NOTES/parents; test $REFRAIN_ITERATION = 1 || {CLAIM}");
    let agent = sandbox.agent("agent", &script);
    let words = ["start", "--command", &agent, "--name", "job", "-q", "-m", "3", "--gate", "test=true", "p"];
    env.iter().fold(sandbox.command(&words), |command, (name, value)| command.env(name, value)).run()
}

fn spans(sent: &Value) -> Vec<Value> {
    sent["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_collector_is_told_behind_each_iteration_and_agents_of_their_spans() {
    let receiver = Receiver::start([]);
    let sandbox = sandbox();
    let url = receiver.url();
    let run = run(&sandbox, &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &url)]).with_code(0);
    assert_eq!(run.stderr, "");
    let received = receiver.wait_for(2);
    let all: Vec<Value> = received.iter().flat_map(|it| spans(&it.json)).collect();
    let named = |name: &str| all.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();
    assert_eq!((named("loop").len(), named("gate test").is_empty()), (1, false), "{all:#?}");
    assert_eq!((named("iteration 1").len(), named("iteration 2").len()), (1, 1));
    let agents = named("invoke_agent generic");
    let parents = sandbox.note("parents");
    for (agent, parent) in agents.iter().zip(parents.lines()) {
        let (trace, span) = (agent["traceId"].as_str().unwrap(), agent["spanId"].as_str().unwrap());
        assert_eq!(parent, format!("00-{trace}-{span}-01"));
    }
    assert_eq!((agents.len(), parents.lines().count()), (2, 2));
    assert_eq!(named("loop")[0]["status"], json!({"code": 1}));
}

#[test]
fn a_collector_that_is_down_or_refuses_is_a_note_and_nothing_else() {
    let receiver =
        Receiver::start([Answer::Status(500), Answer::Status(500), Answer::Status(500), Answer::HangUp]);
    let base = receiver.url();
    for url in ["http://127.0.0.1:1", base.as_str()] {
        let sandbox = sandbox();
        let config = sandbox.root().join("home/config/refrain");
        fs::create_dir_all(&config).unwrap();
        testkit::write(&config.join("config.toml"), format!("[telemetry]\nendpoint = \"{url}\"\n"));
        let run = run(&sandbox, &[]).with_code(0);
        assert!(run.stderr.contains("note: the collector was not told all"), "{run:?}");
        assert_eq!(sandbox.note("parents").trim(), "", "no variable names a collector to agents");
    }
    let sandbox = sandbox();
    let run = run(&sandbox, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "no url")]).with_code(0);
    assert!(run.stderr.contains("OTEL_EXPORTER_OTLP_ENDPOINT is no URL"), "{run:?}");
}

#[test]
fn sums_are_there_for_scrapers_and_as_a_picture() {
    let sandbox = sandbox();
    run(&sandbox, &[]).with_code(0);
    let usage = sandbox.refrain(&["usage", "--json"]).with_code(0).json();
    assert_eq!((&usage["first_pass"], &usage["verified_loops"]), (&json!({"loops": 0, "of": 1}), &json!(1)));
    let text = sandbox.refrain(&["usage", "--format", "prometheus"]).with_code(0).stdout;
    for line in
        ["refrain_loops{status=\"completed\"} 1", "refrain_loops_verified 1", "refrain_first_pass_ratio 0"]
    {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let shown = sandbox.refrain(&["usage", "--svg", "spent.svg"]).with_code(0).stdout;
    assert!(shown.contains("proven by their gates: 1 loop"), "{shown}");
    assert!(fs::read_to_string(sandbox.project().join("spent.svg")).unwrap().starts_with("<svg "));
    sandbox.refrain(&["usage", "--json", "--format", "prometheus"]).with_code(2);
    let refused = sandbox.refrain(&["usage", "--format", "yaml"]).with_code(2);
    assert!(refused.stderr.contains("prometheus"), "{refused:?}");
}
