//! Search by meaning, through an endpoint of the user's own, and without one by words.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;

use rstest::rstest;
use serde_json::{Value, json};
use testkit::{CannedResponse, Receiver, Sandbox};

use super::*;

/// Makes vectors with two dimensions: baking and parsing.
fn meanings(asked: &Value) -> Value {
    let about = |text: &str, words: &[&str]| {
        let lower = text.to_lowercase();
        words.iter().filter(|word| lower.contains(*word)).count() as f64
    };
    let texts = asked["input"].as_array().cloned().unwrap_or_default();
    let vectors: Vec<Value> = texts
        .iter()
        .map(|text| text.as_str().unwrap_or_default())
        .map(|text| {
            json!([about(text, &["cake", "oven", "gateau"]), about(text, &["parse", "grammar"]), 0.1])
        })
        .collect();
    json!({ "model": asked["model"], "embeddings": vectors })
}

fn embedding(sandbox: &Sandbox, receiver: &Receiver, model: &str) {
    let url = format!("http://{}/api/embed", receiver.address());
    configure(sandbox, &format!("[memory]\nembeddings = {{ url = \"{url}\", model = \"{model}\" }}\n"));
}

#[test]
fn with_an_embeddings_endpoint_a_paraphrase_is_found() {
    let sandbox = sandbox();
    add(&sandbox, "Gateaux want an oven of 180 degrees");
    add(&sandbox, "The grammar is ambiguous");
    run(&sandbox, "without", CLAIM, "Bake cakes.").with_code(0);
    assert!(!prompt(&sandbox, "without", "0001").contains(SECTION));
    sandbox.refrain(&["memory", "forget", "--loop", "without"]).with_code(0);

    let receiver = Receiver::start_with_body(meanings, []);
    embedding(&sandbox, &receiver, "one");
    let path = sandbox.root().join("home/config/refrain/embeddings-key");
    testkit::write(&path, "sesame\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let with = run(&sandbox, "with", CLAIM, "Bake cakes.").with_code(0);
    assert_eq!(with.stderr, "");
    let prompt = prompt(&sandbox, "with", "0001");
    assert_eq!(told(&prompt).len(), 1, "{prompt}");
    assert!(prompt.contains("> Gateaux want an oven of 180 degrees ("), "{prompt}");
    let asked = receiver.received();
    assert_eq!(asked.len(), 1, "one question a loop");
    assert_eq!((&asked[0].json["model"], asked[0].authorization.as_str()), (&json!("one"), "Bearer sesame"));
    assert_eq!(asked[0].json["input"].as_array().unwrap().len(), 3, "the goal, and what has no vector yet");

    let found = sandbox.refrain(&["memory", "search", "cakes", "--json"]).with_code(0).json();
    assert!(found.to_string().contains("Gateaux want an oven of 180 degrees"), "{found}");
    assert!(!found.to_string().contains("ambiguous"), "{found}");
    assert_eq!(
        receiver.received()[1].json["input"].as_array().unwrap().len(),
        2,
        "the rest is known; the episode is new"
    );
    embedding(&sandbox, &receiver, "two");
    sandbox.refrain(&["memory", "search", "cakes"]).with_code(0);
    assert_eq!(
        receiver.received()[2].json["input"].as_array().unwrap().len(),
        4,
        "another model's are made anew"
    );
}

#[rstest]
#[case::refused(CannedResponse::Status(500), "answered 500")]
#[case::gone(CannedResponse::HangUp, "did not answer")]
#[case::elsewhere(CannedResponse::Redirect("http://127.0.0.1:1/".into()), "answered 307")]
fn without_an_answer_words_are_enough(#[case] answer: CannedResponse, #[case] says: &str) {
    let sandbox = sandbox();
    add(&sandbox, "The parser needs a newline");
    let receiver = Receiver::start_with_body(meanings, [answer]);
    embedding(&sandbox, &receiver, "one");
    let agent = sandbox.agent("a", CLAIM);
    let words = ["start", "--command", &agent, "--name", "x", "--memory", "on", "Mend the parser."];
    let run = sandbox.refrain(&words).with_code(0);
    assert!(run.stderr.contains(says) && run.stderr.contains("found by their words alone"), "{}", run.stderr);
    assert!(prompt(&sandbox, "x", "0001").contains("> The parser needs a newline ("));
}

#[test]
fn an_endpoint_that_is_down_or_talks_nonsense_changes_nothing_else() {
    let sandbox = sandbox();
    add(&sandbox, "The parser needs a newline");
    let nowhere = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    configure(
        &sandbox,
        &format!("[memory]\nembeddings = {{ url = \"http://{nowhere}/v1/embeddings\", model = \"m\" }}\n"),
    );
    let down = sandbox.refrain(&["memory", "search", "parser"]).with_code(0);
    assert!(down.stderr.contains("did not answer") && down.stdout.contains("newline"), "{}", down.stderr);
    let receiver = Receiver::start_with_body(|_| json!({"data": [{"embedding": ["x"]}]}), []);
    embedding(&sandbox, &receiver, "m");
    let nonsense = sandbox.refrain(&["memory", "search", "parser"]).with_code(0);
    assert!(nonsense.stderr.contains("answered with something else"), "{}", nonsense.stderr);
}

#[test]
fn nothing_is_sent_where_a_project_says_or_nothing_is_remembered() {
    let sandbox = sandbox();
    let receiver = Receiver::start_with_body(meanings, []);
    let url = format!("http://{}/api/embed", receiver.address());
    let config = format!("[memory]\nembeddings = {{ url = \"{url}\", model = \"m\" }}\n");
    testkit::write(&sandbox.project().join("refrain.toml"), &config);
    sandbox.trust();
    let agent = sandbox.agent("a", CLAIM);
    let refused = sandbox.refrain(&["start", "--command", &agent, "--memory", "on", "p"]).with_code(2);
    assert!(refused.stderr.contains("accepted only in your own /"), "{}", refused.stderr);
    fs::remove_file(sandbox.project().join("refrain.toml")).unwrap();
    configure(&sandbox, &config);
    run(&sandbox, "first", CLAIM, "Mend the parser.").with_code(0);
    assert!(receiver.received().is_empty(), "there was nothing to compare with");
    configure(&sandbox, "[memory]\nembeddings = { url = \"ftp://x\", model = \"m\" }\n");
    let refused = sandbox.refrain(&["start", "--command", &agent, "p"]).with_code(2);
    assert!(
        refused.stderr.contains("config.toml:2") && refused.stderr.contains("/api/embed"),
        "{}",
        refused.stderr
    );
}
