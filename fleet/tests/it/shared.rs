//! What the loops of a fleet share: money, the limits of an account, and a list that can be filtered.

use std::fs;

use serde_json::{Value, json};
use testkit::{Sandbox, Session, Signal, within, write};

use crate::lab::{LONG, Lab, contains, hold, script, temporal};

/// What a loop may do in these tests, and no loop of a test needs more.
const ITERATIONS: &str = "40";

/// Speaks the dialect of Claude Code as far as the money goes: each answer costs half a dollar, and none is the last. Its first
/// attempt waits where the gate `first` of its machine is; it hangs where the file `hold` of its machine's notes is.
const SPENDS: &str = r#"cat > /dev/null
echo "$REFRAIN_LOOP_ID $REFRAIN_ITERATION.$REFRAIN_ATTEMPT" >> $NOTES/attempts
if [ -e $NOTES/hold ]; then echo held > $NOTES/held; exec sleep 1000; fi
if [ $REFRAIN_ITERATION = 1 ] && [ -e $GATES/first ]; then echo held > $NOTES/held; read -r _ < $GATES/first; fi
if [ $REFRAIN_ITERATION = 2 ] && [ -e $GATES/second ]; then echo held > $NOTES/held; read -r _ < $GATES/second; fi
echo x > line$REFRAIN_ITERATION
printf '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"session_id":"s%s","result":"more","total_cost_usd":0.5,"usage":{"input_tokens":900,"output_tokens":50},"terminal_reason":"completed"}\n' "$REFRAIN_ITERATION""#;

/// A limit that is over in a day, as Gemini CLI says it.
const LIMITED: &str = r#"cat > /dev/null
echo "$REFRAIN_LOOP_ID" >> $NOTES/asked
printf '{"type":"init","session_id":"s","model":"auto"}\n{"type":"message","role":"user","content":"p"}\n'
echo 'Attempt 1 failed: You have exhausted your capacity on this model. Your quota will reset after 18h31m10s.. Retrying after 69015309ms...' >&2
exec sleep 1000"#;

/// A machine that takes loops of this kind of agent.
fn machine(lab: &Lab, name: &str, agent: &str) -> Sandbox {
    let machine = lab.machine(name);
    let config = machine.root().join("home/config/refrain/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    write(&config, text.replace(r#"agents = ["generic"]"#, &format!("agents = [\"{agent}\"]")));
    machine
}

fn start(lab: &Lab, id: &str, agent: &str) {
    let words = ["start", "--on", "fleet", "--name", id, "--command", agent, "--max-iterations", ITERATIONS];
    lab.person.command(&[&words[..], &["Write lines."]].concat()).run().with_code(0);
}

/// All loops of the person together may cost so much in a day.
fn cap(lab: &Lab, usd: u32) {
    let config = lab.person.root().join("home/config/refrain/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    write(&config, format!("{text}[budget]\nmax-cost-per-day = {usd}\n"));
}

fn cost(status: &Value) -> f64 {
    status["usage"]["cost_usd"].as_f64().unwrap_or_default()
}

fn wait_until_ready(worker: &Session) {
    within(LONG, "the worker is ready", || worker.stderr().contains("loops at a time").then_some(()));
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn two_workers_spend_what_one_cap_allows_and_no_more() {
    let lab = Lab::new();
    cap(&lab, 6);
    let agent = lab.person.agent("claude", SPENDS);
    let (one, two) = (machine(&lab, "w1", "claude"), machine(&lab, "w2", "claude"));
    let gates = (one.gate("first"), two.gate("first"));
    let _workers = (lab.work(&one, &["--slots", "1"]), lab.work(&two, &["--slots", "1"]));
    start(&lab, "a", &agent);
    start(&lab, "b", &agent);
    // Both have money reserved at the same time.
    one.wait_for_note("held");
    two.wait_for_note("held");
    gates.0.let_one_pass();
    gates.1.let_one_pass();
    let ends = ["a", "b"].map(|id| lab.wait_for_status(id, "budget-exceeded"));
    let costs = ends.each_ref().map(cost);
    assert!(costs[0] >= 0.5 && costs[1] >= 0.5, "each worked: {costs:?}");
    assert_eq!(costs[0] + costs[1], 6.0, "{costs:?}");
    start(&lab, "c", &agent);
    assert_eq!(cost(&lab.wait_for_status("c", "budget-exceeded")), 0.0, "nothing is left");
    let attempts = format!("{}{}", one.note("attempts"), two.note("attempts"));
    assert_eq!(attempts.lines().count(), 12, "{attempts}");
    // The person's machine adds it up from what it has seen of the loops; its own ledger has none of it.
    let caps = &lab.status("c")["caps"][0];
    assert_eq!((&caps["cap"], &caps["spent"]), (&json!(6.0), &json!(6.0)), "{caps}");
    let usage: Value = lab.person.refrain(&["usage", "--json"]).with_code(0).json();
    assert_eq!(usage["elsewhere"]["used"]["usage"]["cost_usd"], json!(6.0), "{usage:#}");
    assert_eq!(usage["elsewhere"]["caps"][0]["spent"], json!(6.0), "{usage:#}");
    assert_eq!(
        (&usage["caps"][0]["spent"], &usage["total"]["usage"]["cost_usd"]),
        (&json!(0.0), &json!(6.0))
    );
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn what_a_lost_worker_may_have_spent_is_not_spent_again() {
    let lab = Lab::new();
    cap(&lab, 6);
    let agent = lab.person.agent("claude", SPENDS);
    let (one, two) = (machine(&lab, "w1", "claude"), machine(&lab, "w2", "claude"));
    hold(&one);
    let first = lab.work(&one, &[]);
    start(&lab, "a", &agent);
    one.wait_for_note("held");
    first.kill();
    let _second = lab.work(&two, &[]);
    start(&lab, "b", &agent);
    let of_b = cost(&lab.wait_for_status("b", "budget-exceeded"));
    assert_eq!(of_b, 1.0, "five of six dollars were reserved for the attempt that was lost");
    let of_a = lab.wait_for_status("a", "budget-exceeded");
    assert_eq!(of_a["iterations"][0]["attempts"], json!(null), "{of_a:#}");
    assert_eq!(two.note("attempts"), "b 1.1\nb 2.1\n", "a has nothing left to try again with");
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn under_a_cap_nothing_is_begun_while_the_server_is_away() {
    let mut lab = Lab::new();
    cap(&lab, 2);
    let agent = lab.person.agent("claude", SPENDS);
    let one = machine(&lab, "w1", "claude");
    let gate = one.gate("second");
    let worker = lab.work(&one, &[]);
    start(&lab, "a", &agent);
    one.wait_for_note("held");
    lab.kill_server();
    gate.let_one_pass();
    within(LONG, "the lease ends", || worker.stderr().contains("was not renewed in time").then_some(()));
    assert_eq!(one.note("attempts").lines().count(), 2, "{}", one.note("attempts"));
    lab.start_server();
    let spent = cost(&lab.wait_for_status("a", "budget-exceeded"));
    assert!((1.5..=2.0).contains(&spent), "the attempt that the lease ended may be charged: {spent}");
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn what_could_not_be_settled_is_released_once_the_server_is_back() {
    let mut lab = Lab::new();
    cap(&lab, 6);
    let config = lab.person.root().join("home/config/refrain/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    // The lease holds longer than the server is away.
    write(&config, text.replace("lease = \"6s\"", "lease = \"90s\""));
    let agent = lab.person.agent("claude", SPENDS);
    let one = machine(&lab, "w1", "claude");
    let gate = one.gate("first");
    let worker = lab.work(&one, &[]);
    let words =
        ["start", "--on", "fleet", "--name", "a", "--command", &agent, "--max-iterations", "1", "Go."];
    lab.person.refrain(&words).with_code(0);
    one.wait_for_note("held");
    lab.kill_server();
    gate.let_one_pass();
    let spent = cost(&lab.wait_for_status("a", "iteration-cap"));
    assert_eq!(spent, 0.5, "it has ended, and the server knows nothing of that");
    lab.start_server();
    within(LONG, "the drive ends", || worker.stderr().contains("a: ended").then_some(()));
    fs::remove_file(one.root().join("gates/first")).unwrap();
    start(&lab, "b", &agent);
    let left = cost(&lab.wait_for_status("b", "budget-exceeded"));
    assert_eq!(left, 5.5, "nothing stays reserved for the first loop");
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_limit_that_one_worker_met_holds_the_loops_of_the_others() {
    const KEY: &str = "planted-key-of-gemini";
    let lab = Lab::new();
    let agent = lab.person.agent("gemini", LIMITED);
    let (one, two) = (machine(&lab, "w1", "gemini"), machine(&lab, "w2", "gemini"));
    let with_key = |machine: &Sandbox, key: &str| {
        let worker = machine.command(&["worker"]).env("GEMINI_API_KEY", key).spawn();
        wait_until_ready(&worker);
        worker
    };
    let first = with_key(&one, KEY);
    start(&lab, "a", &agent);
    let waiting = lab.wait_for_status("a", "waiting");
    assert_eq!(waiting["wait"]["kind"], "limit");
    first.signal(Signal::TERM);
    first.wait_at_most(LONG).with_code(0);

    let second = with_key(&two, KEY);
    start(&lab, "b", &agent);
    let held = lab.wait_for_status("b", "waiting");
    assert_eq!((&held["wait"], &held["started"]), (&waiting["wait"], &json!(0)), "{held:#}");
    assert_eq!(two.note("asked"), "", "it does not even ask");
    second.signal(Signal::TERM);
    second.wait_at_most(LONG).with_code(0);

    // Another key is another account.
    let _third = with_key(&two, "another-key");
    start(&lab, "c", &agent);
    assert_eq!(lab.wait_for_status("c", "waiting")["started"], json!(1));
    for file in [lab.database(), lab.database().with_extension("db-wal")] {
        assert!(!contains(&file, KEY), "{}", file.display());
    }
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn loops_are_listed_by_where_they_are() {
    let lab = Lab::new();
    let config = lab.person.root().join("home/config/refrain/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    write(&config, text.replace("[fleet]\n", "[fleet]\nteam = \"web\"\n"));
    let one = lab.machine("w1");
    hold(&one);
    let _worker = lab.work(&one, &["--slots", "1"]);
    lab.start("a", &script(2, 1), &[]);
    one.wait_for_note("held");
    lab.start("b", &script(1, 0), &[]);
    let list = |more: &[&str]| -> Vec<(String, String)> {
        let words = [&["fleet", "list", "--json"], more].concat();
        let rows: Value = lab.person.refrain(&words).with_code(0).json();
        let row = |row: &Value| {
            assert_eq!(
                (&row["team"], &row["pool"], &row["agent"]),
                (&json!("web"), &json!("default"), &json!("generic"))
            );
            (row["id"].as_str().unwrap().to_owned(), row["state"].as_str().unwrap().to_owned())
        };
        rows.as_array().unwrap().iter().map(row).collect()
    };
    let is = |id: &str, state: &str| {
        within(LONG, &format!("{id} is {state}"), || {
            (list(&["--state", state]) == [(id.to_owned(), state.to_owned())]).then_some(())
        });
    };
    is("a", "driven");
    is("b", "waiting");
    lab.person.refrain(&["pause", "a", "--now"]).with_code(0);
    is("a", "parked");
    is("b", "ended");
    assert_eq!(list(&["--project", "another"]), []);
    let project = lab.person.project().file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(list(&["--project", &project, "--team", "web"]).len(), 2);
    let text = lab.person.refrain(&["fleet", "list", "--state", "parked"]).with_code(0).stdout;
    assert_eq!(text, format!("a  parked, project {project}, agent generic, pool default, team web\n"));
    // The server's own program filters by the same names.
    let (address, query) =
        (lab.address(), format!("RefrainProject = \"{project}\" AND RefrainState = \"parked\""));
    let words = ["--address", &address, "workflow", "list", "--query", &query, "--output", "json"];
    let found: Value = lab.person.tool(&temporal(), &words).run().with_code(0).json();
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found:#}");
    let refused = lab.person.refrain(&["fleet", "list", "--project", "a\" OR \"\" = \""]).with_code(2);
    assert!(refused.stderr.contains("without quotes"), "{}", refused.stderr);
}

#[test]
#[ignore = "needs a server: cargo xtask e2e fleet"]
fn a_server_that_lost_everything_gets_its_loops_again_and_counts_their_money_from_nothing() {
    let mut lab = Lab::new();
    cap(&lab, 2);
    let agent = lab.person.agent("claude", SPENDS);
    let machine = machine(&lab, "w1", "claude");
    let gate = machine.gate("second");
    let worker = lab.work(&machine, &[]);
    start(&lab, "a", &agent);
    machine.wait_for_note("held");
    lab.kill_server();
    for end in ["db", "db-shm", "db-wal"] {
        let _ = fs::remove_file(lab.database().with_extension(end));
    }
    lab.start_server();
    within(LONG, "its worker learns that the server does not know the loop", || {
        worker.stderr().contains("a: the lease was not renewed in time").then_some(())
    });
    fs::remove_file(gate.path()).unwrap();
    assert_eq!(cost(&lab.status("a")), 0.5);
    lab.person.refrain(&["resume", "a"]).with_code(0);
    let ended = lab.wait_for_status("a", "budget-exceeded");
    // The half dollar of the first attempt is in the journal, and not in the new ledger.
    assert_eq!(cost(&ended), 2.5, "{ended:#}");
}
