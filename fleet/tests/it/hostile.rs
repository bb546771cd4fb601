//! Those who reach the server, or can write into the git remote, and mean no good. They know neither a trusted key nor the
//! machines of the fleet.

use std::fs;

use serde_json::{Value, json};
use testkit::{Run, Sandbox, Signal, within, write};

use crate::lab::{HELD_IN_SECOND, LONG, Lab, hold, script, temporal};

/// The order of a loop, as the workflow gives it to a worker.
pub(crate) fn order(lab: &Lab, id: &str, fence: u64) -> Value {
    json!({
        "id": id, "remote": lab.state, "pool": "default", "agent": "generic", "fence": fence,
        "terms": {"lease_ms": 6_000, "beat_ms": 1_000, "replicate_ms": 5_000},
    })
}

/// The same with another value.
fn with(order: &Value, key: &str, value: Value) -> Value {
    let mut changed = order.clone();
    changed[key] = value;
    changed
}

/// Has the server give a task to a worker, and waits for what becomes of it.
pub(crate) fn give(lab: &Lab, queue: &str, kind: &str, input: &Value) -> Run {
    let file = lab.person.root().join("input.json");
    write(&file, input.to_string());
    let (address, file) = (lab.address(), file.to_string_lossy().into_owned());
    let id = format!("hostile-{}", lab.number());
    let words = ["activity", "execute", "--address", &address, "--activity-id", &id, "--type", kind];
    let place = ["--task-queue", queue, "--input-file", &file, "--retry-maximum-attempts", "1"];
    let limits = ["--start-to-close-timeout", "20s", "--output", "json"];
    lab.person.tool(&temporal(), &[&words[..], &place, &limits].concat()).run()
}

fn clones(machine: &Sandbox) -> usize {
    let folder = machine.root().join("home/data/refrain/fleet/clones");
    fs::read_dir(folder).map_or(0, |entries| entries.count())
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn an_order_in_a_workers_own_queue_gets_nothing_that_a_claim_would_not_get() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    let _worker = lab.work(&machine, &[]);
    let fit = order(&lab, "job", 2);
    let other = lab.person.root().join("other.git").to_string_lossy().into_owned();
    lab.person.git(&["init", "--quiet", "--bare", &other]);
    let terms = |key: &str, value: u64| with(&fit, "terms", with(&fit["terms"], key, value.into()));
    let too_long = "x".repeat(1_500_000);
    for (input, said) in [
        (with(&fit, "remote", other.clone().into()), "remote not allowed"),
        (with(&fit, "remote", format!("ext::sh -c touch% {}/pwned", other).into()), "remote not allowed"),
        (with(&fit, "remote", format!("--upload-pack=touch {other}/pwned").into()), "remote not allowed"),
        (with(&fit, "agent", "claude".into()), "agent not allowed"),
        (with(&fit, "id", "../../../home/x".into()), "invalid loop id"),
        (with(&fit, "id", "a\u{0}b\u{1b}[31m".into()), "invalid loop id"),
        (with(&fit, "id", too_long.into()), "invalid loop id"),
        (terms("beat_ms", 0), "lease terms out of range"),
        (terms("beat_ms", 1), "lease terms out of range"),
        (terms("lease_ms", u64::MAX), "lease terms out of range"),
        (terms("lease_ms", 10), "lease terms out of range"),
    ] {
        for (kind, queue) in
            [("Host::drive", "refrain.host.w1"), ("Host::claim", "refrain.pool.default.generic")]
        {
            let run = give(&lab, queue, kind, &input);
            assert!(format!("{}{}", run.stdout, run.stderr).contains(said), "{said}: {run:?}");
        }
    }
    for (of, said) in [
        (json!([other, "job"]), "remote not allowed"),
        (json!([lab.state, "../job"]), "invalid loop id"),
        (json!([lab.state, "job"]), "not driven here"),
    ] {
        let request = json!([of, {"id": "1", "what": {"cancel": {"now": true}}}]);
        let run = give(&lab, "refrain.host.w1", "Host::deliver", &request);
        assert!(format!("{}{}", run.stdout, run.stderr).contains(said), "{said}: {run:?}");
    }
    assert_eq!(clones(&machine), 0, "nothing was fetched");
    assert!(!std::path::Path::new(&format!("{other}/pwned")).exists());
    // It serves the others all the same.
    lab.start("job", &script(2, 0), &[]);
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 2);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_loop_with_another_agent_than_its_order_says_is_not_driven() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    let config = machine.root().join("home/config/refrain/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    write(&config, text.replace(r#"agents = ["generic"]"#, r#"agents = ["claude"]"#));
    let worker = lab.work(&machine, &[]);
    // It waits for a worker that takes any command.
    lab.start("job", &script(2, 0), &[]);
    let run =
        give(&lab, "refrain.host.w1", "Host::drive", &with(&order(&lab, "job", 2), "agent", "claude".into()));
    assert!(run.stdout.contains("Unable"), "{run:?}");
    assert!(worker.stderr().contains("[worker] agents does not have generic"), "{}", worker.stderr());
    assert_eq!(machine.note("attempts"), "");
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_loop_of_a_person_that_is_not_trusted_is_not_driven() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    let worker = lab.work(&machine, &[]);
    // They can push, and reach the server; their key is their own.
    let signing = lab.person.root().join("home/state/refrain/signing");
    fs::remove_dir_all(signing).unwrap();
    lab.start("job", &script(2, 0), &[]);
    within(LONG, "it is declined", || worker.stderr().contains("cannot be continued here").then_some(()));
    assert!(worker.stderr().contains("[trust] signers"), "{}", worker.stderr());
    assert_eq!(machine.note("attempts"), "");
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_git_remote_that_holds_garbage_costs_its_own_loops_only() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    let git = |words: &[&str]| lab.person.git(&[&["-C", &lab.state][..], words].concat()).trim().to_owned();
    let names = ["blob", "empty", "changed", "huge", "path"];
    names.iter().for_each(|name| lab.start(name, &script(2, 0), &[]));
    let reference = |name: &str| format!("refs/refrain/{name}/journal");
    // The files of a commit of the reference, one of them with another content.
    let replaced = |name: &str, path: &str, content: &[u8]| {
        let file = lab.person.root().join("content");
        write(&file, content);
        let blob = git(&["hash-object", "-w", &file.to_string_lossy()]);
        let index = lab.person.root().join("index").to_string_lossy().into_owned();
        let _ = fs::remove_file(&index);
        let within_index = |words: &[&str]| {
            let words = [&["-C", &lab.state][..], words].concat();
            lab.person
                .tool("git", &words)
                .env("GIT_INDEX_FILE", &index)
                .run()
                .with_code(0)
                .stdout
                .trim()
                .to_owned()
        };
        let head = git(&["rev-parse", &reference(name)]);
        within_index(&["read-tree", &head]);
        within_index(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{path}")]);
        let tree = within_index(&["write-tree"]);
        let message = git(&["log", "-1", "--format=%B", &head]);
        let commit = git(&["commit-tree", &tree, "-p", &head, "-m", &message]);
        git(&["update-ref", &reference(name), &commit]);
    };
    let journal = git(&["cat-file", "blob", &format!("{}:files/journal.jsonl", reference("changed"))]);
    replaced(
        "changed",
        "files/journal.jsonl",
        format!("{}\n", journal.replacen("generic", "generik", 1)).as_bytes(),
    );
    replaced("huge", "files/journal.jsonl", &vec![b'x'; 80 << 20]);
    replaced("path", "files/iterations/0001/%0aevil\u{1b}.log", b"x");
    let blob = git(&["rev-parse", &format!("{}:files/journal.jsonl", reference("blob"))]);
    git(&["update-ref", &reference("blob"), &blob]);
    let nothing = git(&["hash-object", "-t", "tree", "-w", "--stdin"]);
    let commit = git(&["commit-tree", &nothing, "-m", "Nothing"]);
    git(&["update-ref", &reference("empty"), &commit]);
    let worker = lab.work(&machine, &[]);
    for name in names {
        within(LONG, &format!("{name} is declined"), || {
            worker.stderr().contains(&format!("{name}: cannot be continued here")).then_some(())
        });
    }
    assert!(!worker.stderr().contains('\u{1b}'), "{}", worker.stderr());
    assert_eq!(machine.note("attempts"), "");
    lab.start("job", &script(2, 0), &[]);
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 2);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_git_remote_that_forgets_takes_nothing_from_a_machine_that_had_the_loop() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    let gate = machine.gate("third");
    let waits = r#"if [ $REFRAIN_ITERATION = 3 ] && [ -e $GATES/third ]; then echo held > $NOTES/held; read -r _ < $GATES/third; fi"#;
    let worker = lab.work(&machine, &[]);
    lab.start("job", &format!("{waits}\n{}", script(5, 0)), &[]);
    machine.wait_for_note("held");
    let git = |words: &[&str]| lab.person.git(&[&["-C", &lab.state][..], words].concat()).trim().to_owned();
    let older = git(&["rev-parse", "refs/refrain/job/journal"]);
    worker.signal(Signal::TERM);
    within(LONG, "it drains", || worker.stderr().contains("drains").then_some(()));
    gate.let_one_pass();
    worker.wait().with_code(0);
    fs::remove_file(machine.root().join("gates/third")).unwrap();
    git(&["update-ref", "refs/refrain/job/journal", &older]);
    let _again = lab.work(&machine, &[]);
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 5);
    assert_eq!(machine.note("attempts"), "1.1\n2.1\n3.1\n4.1\n5.1\n", "iteration 3 was not done again");
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_server_that_gives_a_lease_twice_or_an_old_one_makes_no_second_agent() {
    let lab = Lab::new();
    let (one, two) = (lab.machine("w1"), lab.machine("w2"));
    let gate = one.gate("second");
    let first = lab.work(&one, &[]);
    lab.start("job", &format!("{HELD_IN_SECOND}\n{}", script(4, 0)), &[]);
    one.wait_for_note("held");
    let _second = lab.work(&two, &[]);
    let drive = |host: &str, fence| {
        give(&lab, &format!("refrain.host.{host}"), "Host::drive", &order(&lab, "job", fence)).stdout
    };
    // The workflow gave fence 2 to the first.
    assert!(drive("w2", 2).contains("Fenced"), "another worker");
    let again = drive("w1", 2);
    assert!(again.contains("Unable") || again.contains("Fenced"), "the same worker: {again}");
    assert!(drive("w2", 1).contains("Fenced"), "an older lease");
    assert_eq!((one.note("attempts").as_str(), two.note("attempts").as_str()), ("1.1\n", ""));
    gate.let_one_pass();
    lab.wait_for_status("job", "completed");
    lab.assert_whole("job", 4);
    // What is over stays so.
    assert!(drive("w2", 2).contains("Fenced"), "after its end");
    let later = drive("w2", 7);
    assert!(later.contains("Ended"), "{later}");
    assert_eq!((one.note("attempts").as_str(), two.note("attempts").as_str()), ("1.1\n2.1\n3.1\n4.1\n", ""));
    first.signal(Signal::TERM);
    first.wait().with_code(0);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_server_that_repeats_requests_changes_nothing() {
    let lab = Lab::new();
    let machine = lab.machine("w1");
    hold(&machine);
    let _worker = lab.work(&machine, &[]);
    lab.start("job", &script(2, 1), &[]);
    machine.wait_for_note("held");
    lab.person.refrain(&["steer", "job", "Use tabs."]).with_code(0);
    let texts = || {
        lab.person.git(&[
            "-C",
            &lab.state,
            "for-each-ref",
            "--format=%(refname)",
            "refs/refrain/job/requests",
        ])
    };
    within(LONG, "the journal has the text", || texts().is_empty().then_some(()));
    let asked = || lab.person.refrain(&["show", "job"]).stdout.matches(" asked ").count();
    assert_eq!(asked(), 1, "the text is removed after that");
    for id in ["0123456789abcdef", "../journal", "x y", ""] {
        let request = json!([[lab.state, "job"], {"id": id, "what": {"steer": {"text": ""}}}]);
        give(&lab, "refrain.host.w1", "Host::deliver", &request);
        assert_eq!(asked(), 1, "{id}: there is no such text at the git remote");
    }
    lab.person.refrain(&["cancel", "job", "--now"]).with_code(0);
    lab.wait_for_status("job", "cancelled");
}
