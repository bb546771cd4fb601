//! Spans of a whole loop.

use serde_json::{Value as Json, json};

use super::*;

fn records(events: &[Json]) -> Vec<Record> {
    let spec = json!({
        "id": "job", "prompt": "p", "iteration_context": true, "limits": {"max_iterations": 5}, "project": "/p",
        "worktree": "/p", "working_dir": "/p", "depth": 0, "output_cap": 1024,
        "promise": {"text": "COMPLETE", "match": "tag"},
        "agent": {
            "kind": "claude", "program": "claude", "args": [], "prompt_mode": "auto", "clean_env": false, "env": {},
            "permissions": "auto", "output_format": "auto", "model": "opus"
        }
    });
    let start = json!({"type": "loop.started", "data": {"format": 1, "refrain": "0", "spec": spec}});
    let runner = json!({"type": "runner.started", "data": {
        "runner": {"process": {"pid": 1, "start": 1}, "boot": "b", "host": "h"}
    }});
    let all = [start, runner].into_iter().chain(events.iter().cloned());
    let record = |(seq, event)| Record {
        seq,
        at: Timestamp::from_second(1_800_000_000 + 10 * i64::try_from(seq).unwrap()).unwrap(),
        event: serde_json::from_value(event).unwrap(),
    };
    (1..).zip(all).map(record).collect()
}

fn iteration(n: u32, code: i32) -> Vec<Json> {
    vec![
        json!({"type": "iteration.begun", "data": {"iteration": n}}),
        json!({"type": "attempt.started", "data": {"iteration": n, "attempt": 1}}),
        json!({"type": "attempt.spawned", "data": {"process": {"pid": 2, "start": 2}}}),
        json!({"type": "attempt.finished", "data": {
            "exit": {"code": code}, "stdout_bytes": 9, "stderr_bytes": 0, "preview": "secret words",
            "report": {
                "session": {"id": "s-1", "model": "opus-4"}, "is_final": true,
                "cost": ["attempt", 0.25], "tokens": ["attempt", {"input": 1200, "output": 34}]
            }
        }}),
    ]
}

fn spans(records: &[Record]) -> Vec<Span> {
    let mut tracer = Tracer::begin(&records[0]).unwrap();
    records[1..].iter().flat_map(|record| tracer.see(record).unwrap()).collect()
}

/// A loop of two iterations, which is paused and goes on.
fn paused_between() -> Vec<Record> {
    let mut events = iteration(1, 0);
    events.push(json!({"type": "asked", "data": {"ask": {"pause": "now"}}}));
    events.push(json!({"type": "loop.ended", "data": {"status": "paused"}}));
    events.push(json!({"type": "loop.resumed", "data": {"limits": {"max_iterations": 5}}}));
    events.push(json!({"type": "runner.started", "data": {
        "runner": {"process": {"pid": 3, "start": 3}, "boot": "b", "host": "h"}
    }}));
    events.extend(iteration(2, 1));
    events.push(json!({"type": "asked", "data": {"ask": {"cancel": "now"}}}));
    events.push(json!({"type": "loop.ended", "data": {"status": "cancelled"}}));
    records(&events)
}

#[test]
fn a_loop_holds_its_iterations_and_they_their_agents() {
    let spans = spans(&paused_between());
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    let once = ["invoke_agent claude", "iteration 1", "loop"];
    assert_eq!(names, [once, ["invoke_agent claude", "iteration 2", "loop"]].concat());
    for run in spans.chunks(3) {
        assert_eq!(run[0].parent, Some(run[1].id), "an agent works in an iteration");
        assert_eq!((run[1].parent, run[2].parent), (Some(run[2].id), None));
        assert!(run[1].start <= run[0].start && run[2].start <= run[1].start && run[0].end <= run[2].end);
    }
    let mut ids: Vec<_> = spans.iter().map(|span| span.id.to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), spans.len(), "none is told twice");
    assert!(spans.iter().all(|span| span.trace == spans[0].trace));
    assert_eq!(spans[3].error.as_deref(), Some("failed"));
}

#[test]
fn an_agent_is_told_of_the_span_that_is_sent_later() {
    let records = paused_between();
    let mut state = LoopState::begin(&records[0]).unwrap();
    records[1..4].iter().for_each(|record| state.apply(record).unwrap());
    let span = &spans(&records)[0];
    let parent = traceparent(&state, AttemptId { iteration: 1, attempt: 1 });
    assert_eq!(parent, format!("00-{}-{}-01", span.trace, span.id));
    assert_eq!(parent.len(), 55);
    assert_eq!(spans(&records), spans(&records), "whoever reads it again finds the same");
}

#[test]
fn what_is_sent_is_otlp_with_the_names_of_genai_and_nothing_that_was_said() {
    let text = otlp(&spans(&paused_between()), "1.2.3");
    let sent: Json = serde_json::from_str(&text).unwrap();
    let spans = sent["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(sent["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"], "refrain");
    let agent = &spans[0];
    let of = |key: &str| {
        let attributes = agent["attributes"].as_array().unwrap();
        attributes.iter().find(|it| it["key"] == key).map(|it| it["value"].clone()).unwrap_or_default()
    };
    assert_eq!((&agent["kind"], &agent["status"]["code"]), (&json!(3), &json!(1)));
    assert_eq!(agent["startTimeUnixNano"], "1800000040000000000");
    assert_eq!(of("gen_ai.operation.name"), json!({"stringValue": "invoke_agent"}));
    assert_eq!(of("gen_ai.request.model"), json!({"stringValue": "opus"}));
    assert_eq!(of("gen_ai.response.model"), json!({"stringValue": "opus-4"}));
    assert_eq!(of("gen_ai.usage.input_tokens"), json!({"intValue": "1200"}));
    assert_eq!(of("refrain.cost_usd"), json!({"doubleValue": 0.25}));
    assert_eq!(spans[5]["name"], "loop");
    assert!(spans[5].get("parentSpanId").is_none() && spans[4]["parentSpanId"] == spans[5]["spanId"]);
    assert!(!text.contains("secret words"), "{text}");
}
