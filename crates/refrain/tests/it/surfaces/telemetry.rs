//! Traces and metrics: what a collector receives of loops, plans and sessions; a collector that is down or hostile
//! cannot affect them; and sums for machines and as a picture.

use std::fs;

use serde_json::{Value, json};
use testkit::{CannedResponse, ReceivedRequest, Receiver, Sandbox, write};

use crate::{CLAIM, sandbox};

/// Runs a loop of at most three iterations to its end, with a gate.
fn run(sandbox: &Sandbox, env: &[(&str, &str)]) -> testkit::Run {
    let script = format!("echo \"$TRACEPARENT\" >> $NOTES/parents; test $REFRAIN_ITERATION = 1 || {CLAIM}");
    let agent = sandbox.agent("agent", &script);
    let words = ["start", "--command", &agent, "--name", "job", "-q", "-m", "3", "--gate", "test=true", "p"];
    env.iter().fold(sandbox.command(&words), |command, (name, value)| command.env(name, value)).run()
}

/// Claude Code as it speaks: it used 900 tokens and half a dollar, and claims in its second iteration.
const CLAUDE: &str = r#"cat > /dev/null; test $REFRAIN_ITERATION = 1 && said=later || said='<promise>COMPLETE</promise>'
printf '{"type":"system","subtype":"init","session_id":"s%s","model":"claude-x"}\n' "$REFRAIN_ITERATION"
printf '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"session_id":"s%s","result":"%s","total_cost_usd":0.5,"usage":{"input_tokens":900,"output_tokens":50},"terminal_reason":"completed"}\n' "$REFRAIN_ITERATION" "$said""#;

/// Runs a loop of two iterations, with an agent that reports its usage.
fn run_claude(sandbox: &Sandbox, env: &[(&str, &str)]) -> testkit::Run {
    let agent = sandbox.agent("claude", CLAUDE);
    let words = ["start", "--command", &agent, "--name", "job", "-q", "--gate", "test=true", "p"];
    env.iter().fold(sandbox.command(&words), |command, (name, value)| command.env(name, value)).run()
}

/// Everything that was posted to this path, each held against the shape of OTLP in JSON.
fn sent(received: &[ReceivedRequest], path: &str) -> Vec<Value> {
    let bodies: Vec<Value> = received.iter().filter(|it| it.path == path).map(|it| it.json.clone()).collect();
    bodies.iter().for_each(is_otlp);
    bodies
}

fn is_otlp(body: &Value) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let nanos =
        |value: &Value| value.as_str().and_then(|text| text.parse::<u64>().ok()).expect("nanoseconds");
    let attributes = |of: &Value| {
        for attribute in list(&of["attributes"]) {
            let (kind, value) = attribute["value"].as_object().unwrap().iter().next().unwrap();
            let is_well = match kind.as_str() {
                "stringValue" => value.is_string(),
                "intValue" => value.as_str().is_some_and(|text| text.parse::<i64>().is_ok()),
                "doubleValue" => value.is_number(),
                "boolValue" => value.is_boolean(),
                _ => false,
            };
            assert!(is_well && attribute["key"].is_string(), "{attribute}");
        }
    };
    for resource in list(&body["resourceSpans"]).iter().chain(&list(&body["resourceMetrics"])) {
        attributes(&resource["resource"]);
    }
    for span in spans(body) {
        let is_hex = |id: &Value, length| {
            id.as_str().is_some_and(|id| id.len() == length && id.bytes().all(|b| b.is_ascii_hexdigit()))
        };
        assert!(is_hex(&span["traceId"], 32) && is_hex(&span["spanId"], 16), "{span}");
        assert!(span.get("parentSpanId").is_none_or(|id| is_hex(id, 16)), "{span}");
        assert!(nanos(&span["startTimeUnixNano"]) <= nanos(&span["endTimeUnixNano"]), "{span}");
        attributes(&span);
    }
    for metric in metrics(body) {
        let (is_sum, data) = match (metric.get("sum"), metric.get("histogram")) {
            (Some(data), None) => (true, data),
            (None, Some(data)) => (false, data),
            _ => panic!("it is neither a sum nor a histogram: {metric}"),
        };
        assert_eq!((&data["aggregationTemporality"], is_sum), (&json!(1), data["isMonotonic"] == true));
        for point in list(&data["dataPoints"]) {
            assert!(nanos(&point["startTimeUnixNano"]) <= nanos(&point["timeUnixNano"]), "{point}");
            attributes(&point);
            let counts = list(&point["bucketCounts"]);
            assert_eq!(counts.is_empty(), is_sum, "{point}");
            assert!(is_sum || counts.len() == list(&point["explicitBounds"]).len() + 1, "{point}");
        }
    }
}

fn metrics(sent: &Value) -> Vec<Value> {
    sent["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().cloned().unwrap_or_default()
}

/// The sum of a metric over all series, or over those with this text among their attributes.
fn sum(bodies: &[Value], name: &str, with: &str) -> f64 {
    let named = bodies.iter().flat_map(metrics).filter(|metric| metric["name"] == name);
    let points = named.flat_map(|metric| {
        let data = metric.get("sum").or(metric.get("histogram")).unwrap();
        data["dataPoints"].as_array().unwrap().clone()
    });
    let number = |point: Value| {
        let count = point["asInt"].as_str().map(|text| text.parse::<f64>().unwrap());
        count.or(point["asDouble"].as_f64()).or(point["sum"].as_f64()).unwrap()
    };
    points.filter(|point| point["attributes"].to_string().contains(with)).map(number).sum()
}

fn named<'a>(all: &'a [Value], name: &str) -> Vec<&'a Value> {
    all.iter().filter(|span| span["name"] == name).collect()
}

fn spans(sent: &Value) -> Vec<Value> {
    sent["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default()
}

#[test]
fn spans_are_sent_after_each_iteration_and_agents_get_their_parent() {
    let receiver = Receiver::start([]);
    let sandbox = sandbox();
    let url = receiver.url();
    let run = run(&sandbox, &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &url)]).with_code(0);
    assert_eq!(run.stderr, "");
    let received = receiver.wait_for(2);
    let all: Vec<Value> = received.iter().flat_map(|it| spans(&it.json)).collect();
    let named = |name: &str| named(&all, name);
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
    let receiver = Receiver::start([
        CannedResponse::Status(500),
        CannedResponse::Status(500),
        CannedResponse::Status(500),
        CannedResponse::HangUp,
    ]);
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
    assert!(shown.contains("verified by their gates: 1 loop"), "{shown}");
    assert!(fs::read_to_string(sandbox.project().join("spent.svg")).unwrap().starts_with("<svg "));
    sandbox.refrain(&["usage", "--svg", "spent.svg"]).with_code(0);
    write(&sandbox.project().join("mine.svg"), "<svg/>");
    let refused = sandbox.refrain(&["usage", "--svg", "mine.svg"]).with_code(17);
    assert!(refused.stderr.contains("--svg mine.svg: it is not Refrain's"), "{refused:?}");
    assert_eq!(fs::read_to_string(sandbox.project().join("mine.svg")).unwrap(), "<svg/>");
    sandbox.refrain(&["usage", "--json", "--format", "prometheus"]).with_code(2);
    let shrinks = sandbox.refrain(&["usage", "--format", "prometheus", "--since", "7d"]).with_code(2);
    assert!(shrinks.stderr.contains("accepted: --format table or json"), "{shrinks:?}");
    let refused = sandbox.refrain(&["usage", "--format", "yaml"]).with_code(2);
    assert!(refused.stderr.contains("prometheus"), "{refused:?}");
}

#[test]
fn metrics_are_sent_as_increments_that_add_up() {
    let receiver = Receiver::start([]);
    let sandbox = sandbox();
    let env = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.base()),
        ("OTEL_SERVICE_NAME", "nightly".to_owned()),
        ("OTEL_RESOURCE_ATTRIBUTES", "team=a".to_owned()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc".to_owned()),
        ("ANTHROPIC_API_KEY", "sk-not-to-be-told".to_owned()),
    ];
    let env = env.each_ref().map(|(name, value)| (*name, value.as_str()));
    let run = run_claude(&sandbox, &env).with_code(0);
    assert!(run.stderr.contains("says \"grpc\"; what is sent is http/json all the same"), "{run:?}");
    let received = receiver.wait_for(4);
    let (metrics, traces) = (sent(&received, "/v1/metrics"), sent(&received, "/v1/traces"));
    assert_eq!((metrics.len(), traces.len()), (2, 2), "after each iteration one of each");
    assert_eq!(sum(&metrics, "gen_ai.client.token.usage", "\"input\""), 1800.0);
    assert_eq!(sum(&metrics, "gen_ai.client.token.usage", "\"output\""), 100.0);
    assert_eq!(sum(&metrics, "refrain.cost", "anthropic"), 1.0);
    assert_eq!(sum(&metrics, "refrain.iterations", ""), 2.0);
    assert_eq!(sum(&metrics, "refrain.loops", "completed"), 1.0);
    assert!(sum(&metrics, "gen_ai.client.operation.duration", "invoke_agent") > 0.0);
    assert!(sum(&metrics, "refrain.gate.duration", "\"test\"") > 0.0);
    let first = spans(&traces[0]).into_iter().map(|span| span["startTimeUnixNano"].clone());
    let first = first.min_by_key(|nanos| nanos.as_str().map(str::to_owned));
    let begins = self::metrics(&metrics[0])
        .iter()
        .find_map(|metric| metric.pointer("/sum/dataPoints/0/startTimeUnixNano").cloned());
    assert_eq!(begins, first, "the first sums begin with their first span");
    let resource = &metrics[0]["resourceMetrics"][0]["resource"];
    assert!(
        resource.to_string().contains("\"nightly\"") && resource.to_string().contains("\"team\""),
        "{resource}"
    );
    assert!(!received.iter().any(|it| it.json.to_string().contains("sk-not")), "no login is told");

    let usage = sandbox.refrain(&["usage", "--by", "pool", "--json"]).with_code(0);
    assert!(!usage.stdout.contains("sk-not"), "{usage:?}");
    let key = usage.json()["groups"][0]["key"].as_str().unwrap().to_owned();
    assert!(key.starts_with("claude api-key ") && key.len() == "claude api-key 123456".len(), "{key}");
    let shown = sandbox.refrain(&["usage", "--by", "pool"]).with_code(0).stdout;
    assert!(shown.contains("POOL ") && shown.contains(&key), "{shown}");
    let scraped = sandbox.refrain(&["usage", "--format", "prometheus"]).with_code(0).stdout;
    assert!(scraped.contains(&format!("pool=\"{key}\"}} 1\n")), "{scraped}");
}

#[test]
fn refused_telemetry_is_sent_later_and_only_once() {
    let receiver = Receiver::start([CannedResponse::Status(503), CannedResponse::Status(503)]);
    let sandbox = sandbox();
    run_claude(&sandbox, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.base())]).with_code(0);
    let received = receiver.wait_for(4);
    let taken = sent(&received[2..], "/v1/metrics");
    assert_eq!((taken.len(), sum(&taken, "refrain.iterations", "")), (1, 2.0));
    let spans: Vec<Value> = sent(&received[2..], "/v1/traces").iter().flat_map(spans).collect();
    assert_eq!((named(&spans, "iteration 1").len(), named(&spans, "iteration 2").len()), (1, 1));
}

#[test]
fn permanently_refused_telemetry_is_reported_and_not_sent_again() {
    for status in [400, 401, 404, 500] {
        let receiver = Receiver::start([CannedResponse::Status(status), CannedResponse::Status(status)]);
        let sandbox = sandbox();
        let run = run_claude(&sandbox, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.base())]).with_code(0);
        let received = receiver.wait_for(4);
        assert!(run.stderr.contains(&format!("it answered {status}")), "{run:?}");
        assert_eq!(sum(&sent(&received[2..], "/v1/metrics"), "refrain.iterations", ""), 1.0, "{status}");
        let spans: Vec<Value> = sent(&received[2..], "/v1/traces").iter().flat_map(spans).collect();
        assert_eq!((named(&spans, "iteration 1").len(), named(&spans, "iteration 2").len()), (0, 1));
    }
}

#[test]
fn telemetry_that_is_too_large_is_sent_in_pieces() {
    let receiver = Receiver::start([CannedResponse::Status(413)]);
    let sandbox = sandbox();
    let env = [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", format!("{}/v1/traces", receiver.base()))];
    let run = run(&sandbox, &env.each_ref().map(|(name, url)| (*name, url.as_str()))).with_code(0);
    assert_eq!(run.stderr, "");
    let received = receiver.wait_for(4);
    let whole = spans(&received[0].json);
    let all: Vec<Value> = sent(&received[1..], "/v1/traces").iter().flat_map(spans).collect();
    assert_eq!(all[..whole.len()], whole, "each of them once, and in order");
    assert!(whole.len() > 1 && spans(&received[1].json).len() == whole.len() / 2);
    assert_eq!((named(&all, "iteration 1").len(), named(&all, "loop").len()), (1, 1));
}

#[test]
fn a_silent_collector_delays_no_loop_and_sums_are_not_sent_twice() {
    let receiver = Receiver::start([CannedResponse::Hang, CannedResponse::Hang]);
    let sandbox = sandbox();
    let agent = sandbox.agent("claude", CLAUDE);
    let words = ["start", "--command", &agent, "--name", "job", "-q", "--gate", "test=true", "p"];
    let run = sandbox.command(&words).env("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.base()).spawn();
    receiver.wait_for(2);
    sandbox.wait_for_event("job", "loop.ended");
    let run = run.wait().with_code(0);
    assert!(run.stderr.contains("note: the collector was not told all"), "{run:?}");
    let received = receiver.wait_for(4);
    assert_eq!(sum(&sent(&received[2..], "/v1/metrics"), "refrain.iterations", ""), 1.0);
    let spans: Vec<Value> = sent(&received[2..], "/v1/traces").iter().flat_map(spans).collect();
    assert_eq!(named(&spans, "iteration 1").len(), 1, "a span is known by its id");
}

#[test]
fn a_loop_started_in_a_trace_is_a_part_of_it() {
    let receiver = Receiver::start([]);
    let sandbox = sandbox();
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let parent = format!("00-{trace}-{span}-01");
    let base = receiver.base();
    let env = [("OTEL_EXPORTER_OTLP_ENDPOINT", base.as_str()), ("TRACEPARENT", &parent)];
    run(&sandbox, &[env.as_slice(), &[("OTEL_METRICS_EXPORTER", "none")]].concat()).with_code(0);
    let received = receiver.wait_for(2);
    assert!(received.iter().all(|it| it.path == "/v1/traces"), "metrics are not wanted");
    let all: Vec<Value> = sent(&received, "/v1/traces").iter().flat_map(spans).collect();
    assert!(all.iter().all(|span| span["traceId"] == trace), "{all:#?}");
    assert_eq!(named(&all, "loop")[0]["parentSpanId"], span);
    assert!(sandbox.note("parents").starts_with(&format!("00-{trace}-")));
}

#[test]
fn a_plan_holds_its_tasks_and_they_their_loops() {
    let receiver = Receiver::start([]);
    let sandbox = sandbox();
    fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    let task = |id: u32, after: &[u32]| json!({"id": id, "title": format!("Task {id}"), "status": "pending", "depends_on": after});
    let tasks = json!({"tag": "x", "tasks": [task(1, &[]), task(2, &[1])]});
    testkit::write(&sandbox.project().join(".scud/tasks/x.json"), tasks.to_string());
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Plan"]);
    let agent = sandbox.agent("worker", "git branch --show-current > made-$$.txt; echo TASK_COMPLETE");
    let words = ["plan", "run", "--tag", "x", "--command", &agent, "--name", "x", "--verify", "true", "-q"];
    let run = sandbox.command(&words).env("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.base()).run().with_code(0);
    assert_eq!(run.stderr, "");
    let all: Vec<Value> = sent(&receiver.received(), "/v1/traces").iter().flat_map(spans).collect();
    let plan = named(&all, "plan");
    assert_eq!((plan.len(), &plan[0]["status"]), (1, &json!({"code": 1})), "{all:#?}");
    let loops = named(&all, "loop");
    assert_eq!(loops.len(), 2);
    for (id, wave) in [("1", "1"), ("2", "2")] {
        let task = named(&all, &format!("task {id}"));
        assert_eq!((task.len(), &task[0]["parentSpanId"]), (1, &plan[0]["spanId"]), "{all:#?}");
        let wave = json!({"key": "refrain.plan.wave", "value": {"intValue": wave}});
        assert!(task[0]["attributes"].as_array().unwrap().contains(&wave), "{}", task[0]);
        assert_eq!(loops.iter().filter(|it| it["parentSpanId"] == task[0]["spanId"]).count(), 1);
    }
    assert!(all.iter().all(|span| span["traceId"] == plan[0]["traceId"]), "it is one trace");
    assert_eq!(sum(&sent(&receiver.received(), "/v1/metrics"), "refrain.loops", "completed"), 2.0);
}

#[test]
fn telemetry_of_a_session_is_sent_at_its_end_without_delaying_its_hook() {
    let receiver = Receiver::start([CannedResponse::Hang, CannedResponse::Hang]);
    let sandbox = sandbox();
    let words = ["tick", "begin", "/refrain:loop", "--agent", "claude", "--session-id", "s", "--name", "job"];
    sandbox.refrain(&[&words[..], &["--args", "Mend it.", "--max", "5"]].concat()).with_code(0);
    sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    for message in ["well", "<promise>COMPLETE</promise>", "more"] {
        let input = json!({"session_id": "s", "cwd": sandbox.project(), "hook_event_name": "Stop", "last_assistant_message": message})
        .to_string();
        let hook = sandbox.command(&["hook", "stop", "--agent", "claude"]).stdin(&input);
        hook.env("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.base()).run().with_code(0);
    }
    assert_eq!(sandbox.status("job")["status"], "completed");
    let received = receiver.wait_for(2);
    let all: Vec<Value> = sent(&received, "/v1/traces").iter().flat_map(spans).collect();
    for once in ["loop", "iteration 1", "iteration 2"] {
        assert_eq!(named(&all, once).len(), 1, "{all:#?}");
    }
    assert_eq!(named(&all, "invoke_agent claude").len(), 2);
    assert_eq!(sum(&sent(&received, "/v1/metrics"), "refrain.iterations", ""), 2.0);
}

#[test]
fn invalid_telemetry_and_judge_settings_are_reported_by_doctor() {
    let sandbox = sandbox();
    let config = sandbox.root().join("home/config/refrain");
    fs::create_dir_all(&config).unwrap();
    let configure = |text: &str| testkit::write(&config.join("config.toml"), text);
    configure("[evolution]\nagent = \"no-such-agent -x\"\n[memory]\njudge = \"nobody\"\n");
    let doctor = sandbox.command(&["doctor", "--json"]);
    let found = doctor.env("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "collector").run().json();
    let about = |about: &str| {
        let all = found["findings"].as_array().unwrap();
        let of = all.iter().find(|it| it["about"] == about && it["grade"] == "warning");
        of.unwrap_or_else(|| panic!("{about}: {found:#}"))["found"].as_str().unwrap().to_owned()
    };
    assert!(about("telemetry").contains("METRICS_ENDPOINT is no URL"));
    assert!(about("evolution").contains("no-such-agent") && about("memory.judge").contains("nobody"));

    configure("[evolution]\nagnet = \"claude\"\n");
    for verb in [&["memory", "list"][..], &["memory", "search", "x"]] {
        let looked = sandbox.refrain(verb).with_code(0);
        assert!(looked.stderr.contains("config.toml:2: ") && looked.stderr.contains("agnet"), "{looked:?}");
    }
}
