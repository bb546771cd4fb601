use serde_json::{Value as Json, json};

use super::*;
use crate::ids::AttemptId;
use crate::r#loop::LoopState;
use crate::plan::PlanEvent;
use crate::{Record, plan};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn spec() -> Json {
    json!({
        "id": "job", "prompt": "p", "iteration_context": true, "limits": {"max_iterations": 5}, "project": "/p",
        "worktree": "/p", "working_dir": "/p", "depth": 0, "output_cap": 1024,
        "promise": {"text": "COMPLETE", "match": "tag"},
        "agent": {
            "kind": "claude", "program": "claude", "args": [], "prompt_mode": "auto", "clean_env": false, "env": {},
            "permissions": "auto", "output_format": "auto", "model": "opus"
        }
    })
}

fn records(events: &[Json]) -> Vec<Record> {
    records_of(spec(), events)
}

fn records_of(spec: Json, events: &[Json]) -> Vec<Record> {
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

fn resource() -> Resource {
    Resource { version: "1.2.3".into(), attributes: vec![("service.name".into(), "nightly".into())] }
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

/// A loop of two iterations, which is paused and resumed.
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
    assert_eq!(ids.len(), spans.len(), "none is exported twice");
    assert!(spans.iter().all(|span| span.trace == spans[0].trace));
    assert_eq!(spans[3].error.as_deref(), Some("failed"));
}

#[test]
fn an_agent_gets_the_span_that_is_sent_later() {
    let records = paused_between();
    let mut state = LoopState::begin(&records[0]).unwrap();
    records[1..4].iter().for_each(|record| state.apply(record).unwrap());
    let span = &spans(&records)[0];
    let parent = traceparent(&state, AttemptId { iteration: 1, attempt: 1 });
    assert_eq!(parent, format!("00-{}-{}-01", span.trace, span.id));
    assert_eq!(parent.len(), 55);
    assert_eq!(spans(&records), spans(&records), "another reading finds the same");
}

#[test]
fn traces_are_otlp_with_genai_names_and_without_texts() {
    let text = otlp(&spans(&paused_between()), &resource());
    let sent: Json = serde_json::from_str(&text).unwrap();
    let spans = sent["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(sent["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"], "nightly");
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

fn text<'a>(span: &'a Span, name: &str) -> Option<&'a str> {
    match span.attribute(name) {
        Some(Value::Text(text)) => Some(text),
        Some(_) | None => None,
    }
}

#[test]
fn a_loop_started_within_a_span_is_a_part_of_it() {
    let mut within = spec();
    within["trace"] = json!(PARENT);
    let events: Vec<_> = iteration(1, 0)
        .into_iter()
        .chain([
            json!({"type": "asked", "data": {"ask": {"cancel": "now"}}}),
            json!({"type": "loop.ended", "data": {"status": "cancelled"}}),
        ])
        .collect();
    let (alone, within) = (records(&events), records_of(within, &events));
    let parent: Parent = PARENT.parse().unwrap();
    let (alone, spans) = (spans(&alone), spans(&within));
    assert!(spans.iter().all(|span| span.trace == parent.trace));
    assert_eq!((spans[2].name.as_str(), spans[2].parent), ("loop", Some(parent.span)));
    let ids = |spans: &[Span]| spans.iter().map(|span| span.id).collect::<Vec<_>>();
    assert_eq!(ids(&alone), ids(&spans), "its own spans are named by itself");
    let state = LoopState::fold(&within[..4]).unwrap();
    let told = traceparent(&state, AttemptId { iteration: 1, attempt: 1 });
    assert_eq!(told, format!("00-{}-{}-01", parent.trace, spans[0].id));
}

/// A loop with a reviewer and a critic, until a person stops it.
fn judged() -> Vec<Record> {
    let mut spec = spec();
    let mut reviewer = spec["agent"].clone();
    reviewer["kind"] = json!("codex");
    reviewer["model"] = json!("gpt");
    let critic = reviewer.clone();
    spec["gates"] = json!([
        {"name": "test", "command": "true", "hard": true, "timeout_ms": 1000},
        {"name": "review", "review": {"agent": reviewer, "spec": "s"}, "hard": true, "timeout_ms": 1000},
    ]);
    spec["critique"] = json!({"every": 1, "critic": critic, "timeout_ms": 1000});
    let report = |cost: f64| {
        json!({"session": {"id": "r", "model": "gpt-5"}, "is_final": true, "pool": "codex api-key 00aa11",
            "cost": ["attempt", cost], "tokens": ["attempt", {"input": 70, "output": 7}]})
    };
    let asked = |gate: &str, code: i32, review: Option<Json>| {
        let mut finished =
            json!({"gate": gate, "exit": {"code": code}, "duration_ms": 10, "bytes": 3, "preview": "no"});
        if let Some(review) = review {
            finished["review"] = review;
        }
        [
            json!({"type": "gate.started", "data": {"gate": gate, "run": 1}}),
            json!({"type": "gate.finished", "data": finished}),
        ]
    };
    let candidate = |tree: &str| json!({"type": "candidate.taken", "data": {"tree": tree.repeat(40)}});
    let passes = json!({"verdict": "pass", "report": report(0.5)});
    let mut events = vec![candidate("a")];
    events.extend(asked("test", 1, None));
    events.extend(iteration(1, 0));
    events.push(candidate("b"));
    events.extend(asked("test", 0, None));
    events.extend(asked("review", 0, Some(passes)));
    events.push(json!({"type": "critique.started", "data": {"iteration": 1}}));
    events.push(json!({"type": "critique.finished", "data": {
        "exit": {"code": 0}, "feedback": "f", "report": report(0.125)
    }}));
    events.push(json!({"type": "asked", "data": {"ask": {"cancel": "now"}}}));
    events.push(json!({"type": "loop.ended", "data": {"status": "cancelled"}}));
    records_of(spec, &events)
}

#[test]
fn reviewers_and_critics_are_agents_and_a_reviewer_is_a_part_of_its_gate() {
    let spans = spans(&judged());
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "gate test",
            "invoke_agent claude",
            "gate test",
            "invoke_agent codex",
            "gate review",
            "invoke_agent codex",
            "iteration 1",
            "loop"
        ]
    );
    let role = |span: &Span| text(span, "refrain.agent.role").map(str::to_owned);
    let [worker, reviewer, gate, critic, iteration] = [1, 3, 4, 5, 6].map(|place| &spans[place]);
    assert_eq!(role(worker).as_deref(), Some("worker"));
    assert_eq!((role(reviewer).as_deref(), reviewer.parent), (Some("reviewer"), Some(gate.id)));
    assert_eq!((role(critic).as_deref(), critic.parent), (Some("critic"), Some(iteration.id)));
    assert_eq!(text(critic, "gen_ai.provider.name"), Some("openai"));
    assert_eq!(text(critic, "gen_ai.response.model"), Some("gpt-5"));
    assert_eq!(text(critic, "refrain.pool"), Some("codex api-key 00aa11"));
    assert_eq!(critic.attribute("refrain.cost_usd"), Some(&Value::Number(0.125)));
    let passed: Vec<_> = spans.iter().filter_map(|span| span.attribute("refrain.gate.passed")).collect();
    assert_eq!(passed, [&Value::Flag(false), &Value::Flag(true), &Value::Flag(true)]);
    assert!(spans.iter().all(|span| span.start <= span.end));
}

#[test]
fn metrics_equal_the_sums_of_the_spans() {
    let spans = spans(&judged());
    let since = spans[0].start;
    let sent: Json = serde_json::from_str(&otlp_metrics(&spans, since, &resource()).unwrap()).unwrap();
    let metrics = sent["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let points = |name: &str, shape: &str| {
        let metric = metrics.iter().find(|metric| metric["name"] == name).unwrap();
        assert_eq!(metric[shape]["aggregationTemporality"], 1, "{metric}");
        metric[shape]["dataPoints"].as_array().unwrap().clone()
    };
    let tokens = points("gen_ai.client.token.usage", "histogram");
    let of = |point: &Json, key: &str| {
        let all = point["attributes"].as_array().unwrap();
        let value = all.iter().find(|it| it["key"] == key).map(|it| it["value"].clone());
        value.and_then(|value| value.as_object()?.values().next().cloned()).unwrap_or_default()
    };
    let series: Vec<_> = tokens
        .iter()
        .map(|point| {
            (of(point, "gen_ai.provider.name"), of(point, "gen_ai.token.type"), point["sum"].clone())
        })
        .collect();
    let row = |provider: &str, kind: &str, sum: f64| (json!(provider), json!(kind), json!(sum));
    assert_eq!(
        series,
        [
            row("anthropic", "input", 1200.0),
            row("anthropic", "output", 34.0),
            row("openai", "input", 140.0),
            row("openai", "output", 14.0)
        ]
    );
    assert_eq!((&tokens[2]["count"], &tokens[2]["max"]), (&json!("2"), &json!(70.0)));
    for point in &tokens {
        let counts = point["bucketCounts"].as_array().unwrap();
        assert_eq!(counts.len(), point["explicitBounds"].as_array().unwrap().len() + 1);
        let all: u64 = counts.iter().map(|count| count.as_str().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(json!(all.to_string()), point["count"]);
        assert_eq!(point["startTimeUnixNano"], since.as_nanosecond().to_string());
    }
    let cost: f64 = points("refrain.cost", "sum").iter().map(|it| it["asDouble"].as_f64().unwrap()).sum();
    assert_eq!(cost, 0.25 + 0.5 + 0.125);
    let gates = points("refrain.gate.duration", "histogram");
    let gates: Vec<_> =
        gates.iter().map(|it| (of(it, "refrain.gate.name"), of(it, "refrain.gate.passed"))).collect();
    assert_eq!(
        gates,
        [("test", false), ("test", true), ("review", true)]
            .map(|(name, passed)| (json!(name), json!(passed)))
    );
    let loops = points("refrain.loops", "sum");
    assert_eq!((&loops[0]["asInt"], of(&loops[0], "refrain.loop.status")), (&json!("1"), json!("cancelled")));
    assert_eq!(points("refrain.iterations", "sum")[0]["asInt"], "1");
    assert_eq!(points("gen_ai.client.operation.duration", "histogram").len(), 2);
    assert_eq!(otlp_metrics(&[], since, &resource()), None);
}

/// A plan of two tasks in two waves, which is paused in the second.
fn plan_records() -> Vec<Record<PlanEvent>> {
    let oid = |digit: &str| digit.repeat(40);
    let card = |id: &str, needs: &[&str]| json!({"id": id, "title": id, "status": "pending", "dependencies": needs, "priority": "medium"});
    let spec = json!({
        "id": "big", "tag": "t", "tasks": "/p/tasks.json", "each": spec(), "jobs": 1,
        "limits": {"per_task": 3, "total": 100}
    });
    let runner = json!({"type": "runner.started", "data": {
        "runner": {"process": {"pid": 1, "start": 1}, "boot": "b", "host": "h"}
    }});
    let started = |task: &str, round: u32| {
        json!({"type": "task.started", "data": {
            "task": task, "round": round, "id": format!("big-{task}-{round}"), "slot": 1, "onto": oid("a"), "granted": 3
        }})
    };
    let ended = |task: &str, end: Json| json!({"type": "task.ended", "data": {"task": task, "end": end, "head": oid("b"), "iterations": 1}});
    let proven = || json!({"proven": {"tree": oid("c")}});
    let events = [
        json!({"type": "plan.started", "data": {"format": 1, "refrain": "0", "spec": spec}}),
        runner.clone(),
        json!({"type": "tasks.taken", "data": {"tasks": [card("1", &[]), card("2", &["1"])]}}),
        json!({"type": "base.taken", "data": {"head": oid("a"), "branch": "main"}}),
        started("1", 1),
        json!({"type": "asked", "data": {"ask": {"pause": "now"}}}),
        ended("1", json!("rests")),
        json!({"type": "plan.ended", "data": "paused"}),
        json!({"type": "plan.resumed", "data": {"limits": {"per_task": 3, "total": 100}}}),
        runner,
        ended("1", proven()),
        json!({"type": "asked", "data": {"ask": {"cancel": "now"}}}),
        json!({"type": "plan.ended", "data": "cancelled"}),
    ];
    let record = |(seq, event)| Record {
        seq,
        at: Timestamp::from_second(1_800_000_000 + 10 * i64::try_from(seq).unwrap()).unwrap(),
        event: serde_json::from_value(event).unwrap(),
    };
    (1..).zip(events).map(record).collect()
}

#[test]
fn a_plan_holds_its_tasks_and_each_of_them_its_loop() {
    let records = plan_records();
    let mut tracer = PlanTracer::begin(&records[0]).unwrap();
    let spans: Vec<_> = records[1..].iter().flat_map(|record| tracer.see(record).unwrap()).collect();
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["plan", "task 1", "plan"], "one that only rests is not over");
    let [paused, task, over] = [0, 1, 2].map(|place| &spans[place]);
    assert_eq!(task.parent, Some(paused.id), "it belongs to where it began");
    assert_ne!(paused.id, over.id);
    assert_eq!(task.attribute("refrain.plan.wave"), Some(&Value::Count(1)));
    assert_eq!(text(task, "refrain.task.outcome"), Some("proven"));
    assert_eq!(text(over, "refrain.plan.status"), Some("cancelled"));

    let PlanEvent::Started(started) = &records[0].event else { panic!("it begins") };
    let parent = of_task(&started.spec, records[0].at, &"1".parse::<plan::TaskId>().unwrap(), 1);
    assert_eq!((parent.trace, parent.span), (task.trace, task.id));
}
