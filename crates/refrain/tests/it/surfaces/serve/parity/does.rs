//! The test of each row of the table.

use std::fs;

use serde_json::{Value, json};
use testkit::eventually;

use crate::CLAIM;

use super::{Row, TABLE, VERIFY, World};

fn ids(rows: &Value, of: impl Fn(&Value) -> &Value) -> Vec<String> {
    let mut ids: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| of(row)["id"].as_str().unwrap().to_owned()).collect();
    ids.sort_unstable();
    ids
}

pub(super) fn list(world: &World, row: &Row) {
    let told = ids(&world.cli(&["list"]), |row| row);
    assert_eq!(told, ["job", "x"]);
    assert_eq!(ids(&world.gets(row, "")["loops"], |row| &row["loop"]), told);
    let tool = world.tool(row, json!({"include_finished": true}));
    assert_eq!(ids(&tool["loops"], |row| row), told);
    world.shows(row, "", "/job");
}

pub(super) fn status(world: &World, row: &Row) {
    for (id, words) in [("job", &["status", "job"][..]), ("x", &["status", "x"]), ("x", &["plan", "status"])]
    {
        let told = world.cli(words);
        assert_eq!((&told["id"], &told["status"]), (&json!(id), &json!("completed")));
        assert_eq!(world.gets(row, id), told);
        assert_eq!(world.tool(row, json!({"loop_id": id}))["loop"]["status"], "completed");
        world.shows(row, id, "verified");
    }
}

pub(super) fn show(world: &World, row: &Row) {
    for id in ["job", "x"] {
        let told = world.cli(&["show", id]);
        let page = world.served.gets(&(world.at(row.route, id) + "?from=1&limit=1000")).with_status(200);
        let lines: Vec<Value> = page.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(Value::Array(lines), told);
    }
}

pub(super) fn logs(world: &World, row: &Row) {
    let told = world.sandbox.refrain(&["logs", "job"]).with_code(0).stdout;
    let log = world.gets(row, "job")["text"].as_str().unwrap().to_owned();
    assert!(log.contains("at work") && told.contains(&log), "{log:?} of {told:?}");
    world.shows(row, "job", "at work");
}

pub(super) fn report(world: &World, row: &Row) {
    let told = world.cli(&["report", "job"]);
    assert_eq!(world.gets(row, "job"), told);
    assert_eq!(world.tool(row, json!({"loop_id": "job"}))["report"], told);
}

pub(super) fn diff(world: &World, row: &Row) {
    for asked in [json!({"loop_id": "job"}), json!({"loop_id": "job", "iteration": 1})] {
        let n = asked["iteration"].as_u64().map(|n| n.to_string());
        let words = n.iter().flat_map(|n| ["--iteration", n]);
        let words: Vec<_> = ["diff", "job"].into_iter().chain(words).collect();
        let told = world.sandbox.refrain(&words).with_code(0).stdout;
        let query = n.as_ref().map(|n| format!("?iteration={n}")).unwrap_or_default();
        let found = world.served.gets(&(world.at(row.route, "job") + &query)).with_status(200).json();
        // What is no terminal gets the names of objects whole, for `git apply`.
        let shown = |diff: &str| {
            diff.lines().filter(|line| !line.starts_with("index ")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(shown(found["diff"].as_str().unwrap()), shown(&told));
        assert_eq!(world.tool(row, asked), found);
    }
    let stat = world.tool(row, json!({"loop_id": "job", "stat": true}));
    assert!(stat["stat"].as_str().unwrap().contains("made.txt") && stat["diff"] == "", "{stat:#}");
    let none = "iteration 9: loop job has no such iteration; accepted: 1 to 1";
    world.served.gets(&(world.at(row.route, "job") + "?iteration=9")).with_status(400).says(none);
    let asked = json!({"loop_id": "job", "iteration": 9});
    assert_eq!(crate::surfaces::mcp::refuses(&world.sandbox, row.tool.unwrap(), asked), none);
    world.shows(row, "job", "made.txt");
}

pub(super) fn export(world: &World, row: &Row) {
    for format in ["json", "synthex", "descartes", "ralph", "randroid"] {
        let told = world.sandbox.refrain(&["export", "job", "--as", format]).with_code(0).stdout;
        let path = world.at(row.route, "job") + "?format=" + format;
        assert_eq!(world.served.gets(&path).with_status(200).body, told, "{format}");
    }
    let bad = world.at(row.route, "job") + "?format=toml";
    world.served.gets(&bad).with_status(400).says("format toml: accepted: json, synthex");
    world.served.gets(&world.at(row.route, "x")).with_status(400).says("x is a plan");
    let route = |verb: &str| TABLE.iter().find(|row| row.verb == verb).unwrap().route;
    world.served.posts(&world.at(route("take-back"), "x"), json!({})).with_status(400).says("x is a plan");
    let tune = world.served.posts(&world.at(route("plan tune"), "job"), json!({"task": "1", "text": "Go."}));
    tune.with_status(400).says("job is a loop; accepted: plans");
}

pub(super) fn verify(world: &World, row: &Row) {
    for id in ["job", "x"] {
        let told = world.cli(&["verify", id]);
        assert_eq!(world.posts(row, id, json!({})), told);
        assert!(told.to_string().contains(r#""agrees":true"#), "{told:#}");
    }
}

pub(super) fn usage(world: &World, row: &Row) {
    assert_eq!(world.gets(row, ""), world.cli(&["usage", "--all-projects"]));
    for by in ["day", "project", "agent", "model", "pool"] {
        let told = world.cli(&["usage", "--by", by, "--since", "2026-01-01"]);
        assert!(told["total"]["loops"].as_u64() >= Some(1), "{told:#}");
        let query = format!("?by={by}&since=2026-01-01&project={}", world.project);
        assert_eq!(world.served.gets(&(world.at(row.route, "") + &query)).with_status(200).json(), told);
    }
    for (query, says) in [
        ("by=hour", "by hour: accepted: day, project, agent, model, pool"),
        ("since=yesterday", "since yesterday: accepted: a date like 2026-11-01"),
        ("project=nowhere", "there is no project nowhere"),
        ("until=now", "until: there is no such parameter; accepted: by, project, since"),
    ] {
        let refused = world.served.gets(&(world.at(row.route, "") + "?" + query));
        assert!(matches!(refused.status, 400 | 404) && refused.body.contains(says), "{refused:#?}");
    }
}

pub(super) fn metrics(world: &World, row: &Row) {
    let told = world.sandbox.refrain(&["usage", "--format", "prometheus", "--all-projects"]).with_code(0);
    let line = "refrain_loops{status=\"completed\"}";
    let of = |text: &str| text.lines().find(|it| it.starts_with(line)).map(str::to_owned);
    assert_eq!(of(&world.served.gets(&world.at(row.route, "")).body), of(&told.stdout));
}

pub(super) fn watch(world: &World, row: &Row) {
    assert_eq!(world.served.listens(None).next().event, "hello");
    world.shows(row, "job", "data-after=");
}

pub(super) fn rounds(world: &World, row: &Row) {
    let told = ids(&world.cli(&["list", "--plan", "x"]), |row| row);
    let rounds = world.gets(row, "x");
    assert_eq!((rounds[0]["task"].as_str(), rounds[0]["round"].as_u64()), (Some("1"), Some(1)));
    assert_eq!(told, [rounds[0]["loop"].as_str().unwrap()]);
    world.shows(row, "x", rounds[0]["loop"].as_str().unwrap());
}

pub(super) fn start(world: &World, row: &Row) {
    let asked =
        |name: &str| json!({"goal": "Mend it.", "command": world.waiting, "name": name, "max_iterations": 3});
    world.at_work("by-cli");
    world.ends("by-cli");
    world.posts(row, "", asked("by-api"));
    world.works("by-api");
    world.ends("by-api");
    world.tool(row, asked("by-tool"));
    world.works("by-tool");
    world.ends("by-tool");
    let form = format!("goal=Mend+it.&command={}&name=by-page&do=start", world.waiting);
    world.forms(row, "", &form);
    world.works("by-page");
    world.ends("by-page");
}

pub(super) fn plan_run(world: &World, row: &Row) {
    let worker = format!("{} pine", world.worker);
    world.plan("cli", &worker, 0);
    let asked = |tag: &str| json!({"tag": tag, "name": tag, "command": worker, "verify": VERIFY});
    world.posts(row, "", asked("api"));
    world.sandbox.wait_for_status("api", "completed");
    world.tool(row, asked("tool"));
    world.sandbox.wait_for_status("tool", "completed");
}

pub(super) fn pause_and_resume(world: &World, row: &Row) {
    let resume = TABLE.iter().find(|row| row.verb == "resume").unwrap();
    world.at_work("paused");
    // Its runner ends right after the event; until then a resumption is refused.
    let is_paused = || {
        world.sandbox.wait_for_status("paused", "paused");
        let has_no_runner = || (world.sandbox.status("paused")["runner"]["alive"] == false).then_some(());
        eventually("the runner has ended", has_no_runner);
    };
    world.sandbox.refrain(&["pause", "paused", "--now"]).with_code(0);
    is_paused();
    world.sandbox.refrain(&["resume", "paused", "--detach", "--quiet"]).with_code(0);
    world.works("paused");
    world.posts(row, "paused", json!({"now": true}));
    is_paused();
    world.posts(resume, "paused", json!({}));
    world.works("paused");
    world.forms(row, "paused", "now=true");
    is_paused();
    world.forms(resume, "paused", "max_iterations=30");
    assert_eq!(world.sandbox.wait_for_status("paused", "running")["max_iterations"], 30);
    world.ends("paused");
}

pub(super) fn approve(world: &World, row: &Row) {
    let agent = world.sandbox.agent("claims", CLAIM);
    for id in ["approved-cli", "approved-api", "approved-page"] {
        let words = ["start", "Mend it.", "--command", &agent, "--name", id, "--require-approval", "--quiet"];
        world.sandbox.refrain(&words).with_code(14);
        match id {
            "approved-cli" => drop(world.sandbox.approve(id, &["--quiet"]).with_code(0)),
            "approved-api" => drop(world.posts(row, id, json!({}))),
            _ => world.forms(row, id, ""),
        }
        world.sandbox.wait_for_status(id, "completed");
        // Its runner ends right after the event; until then it works in the project.
        let has_no_runner = || (world.sandbox.status(id)["runner"]["alive"] == false).then_some(());
        eventually("the runner has ended", has_no_runner);
    }
}

pub(super) fn steer(world: &World, row: &Row) {
    world.at_work("steered");
    world.sandbox.refrain(&["steer", "steered", "Mind the oak."]).with_code(0);
    world.posts(row, "steered", json!({"text": "Mind the elm."}));
    world.tool(row, json!({"loop_id": "steered", "text": "Mind the ash."}));
    world.forms(row, "steered", "text=Mind+the+fir.");
    let asked = eventually("all were heard", || {
        let journal = world.sandbox.journal("steered");
        let asked: Vec<_> = journal.iter().filter(|it| it["event"]["type"] == "asked").cloned().collect();
        (asked.len() == 4).then(|| serde_json::to_string(&asked).unwrap())
    });
    assert!(["oak", "elm", "ash", "fir"].iter().all(|wood| asked.contains(wood)), "{asked}");
    world.ends("steered");
}

pub(super) fn take_back(world: &World, row: &Row) {
    world.at_work("queued");
    let queued = || world.sandbox.status("queued")["queued"].clone();
    for by in ["cli", "api", "page"] {
        world.sandbox.refrain(&["steer", "queued", "Mind the oak."]).with_code(0);
        world.sandbox.refrain(&["pause", "queued"]).with_code(0);
        let effects: Vec<_> =
            queued().as_array().unwrap().iter().map(|it| it["effect"].as_str().unwrap().to_owned()).collect();
        assert_eq!(effects, ["steer", "pause"]);
        let text = queued()[0]["request"].as_str().unwrap().to_owned();
        let shown = world.served.gets(&format!("/p/{}/queued", world.project)).with_status(200);
        shown.says("the next prompt will say: Mind the oak.");
        match by {
            "cli" => {
                let taken = world.sandbox.refrain(&["take-back", "queued"]).with_code(0);
                assert_eq!(
                    taken.stdout,
                    "queued does not pause after this iteration: the pause is taken back\n"
                );
                let unknown = world.sandbox.refrain(&["take-back", "queued", "other"]).with_code(17);
                assert!(unknown.stderr.contains(&format!("queued: {text}")), "{}", unknown.stderr);
                world.sandbox.refrain(&["take-back", "queued", &text]).with_code(0);
            }
            "api" => {
                world.posts(row, "queued", json!({}));
                world.posts(row, "queued", json!({"request": text}));
            }
            _ => {
                let pause = queued()[1]["request"].as_str().unwrap().to_owned();
                world.forms(row, "queued", &format!("request={pause}"));
                world.forms(row, "queued", &format!("request={text}"));
            }
        }
        assert_eq!(queued(), Value::Null);
        let refused = world.sandbox.refrain(&["take-back", "queued", &text]).with_code(17);
        assert!(refused.stderr.contains("all requests have had their effect"), "{}", refused.stderr);
    }
    let bad = world.sandbox.refrain(&["take-back", "queued", "a b"]).with_code(2);
    assert!(bad.stderr.contains("is no request id"), "{}", bad.stderr);
    world.ends("queued");
}

pub(super) fn answer(world: &World, row: &Row) {
    let script = format!(
        "case \"$*\" in *'Take B.'*) {CLAIM}; exit;; esac\n\
         sed -i '/^question:/d; s/^status:.*/status: blocked\\nquestion: A or B?/' \"$REFRAIN_STATE_FILE\""
    );
    let agent = world.sandbox.agent("asks", &script);
    for id in ["answer-cli", "answer-api", "answer-tool", "answer-page"] {
        let words = ["start", "Mend it.", "--command", &agent, "--name", id, "--quiet"];
        world.sandbox.refrain(&words).with_code(14);
        match id {
            "answer-cli" => drop(world.sandbox.refrain(&["answer", id, "Take B."]).with_code(0)),
            "answer-api" => drop(world.posts(row, id, json!({"text": "Take B."}))),
            "answer-tool" => drop(world.tool(row, json!({"loop_id": id, "text": "Take B."}))),
            _ => {
                world.served.gets(&format!("/p/{}/{id}", world.project)).with_status(200).says("/answer");
                world.forms(row, id, "text=Take+B.");
            }
        }
        world.sandbox.wait_for_status(id, "completed");
    }
}

pub(super) fn cancel(world: &World, row: &Row) {
    for id in ["c-cli", "c-api", "c-tool", "c-page"] {
        world.at_work(id);
        match id {
            "c-cli" => drop(world.sandbox.refrain(&["cancel", id, "--now"]).with_code(0)),
            "c-api" => drop(world.posts(row, id, json!({"now": true}))),
            "c-tool" => drop(world.tool(row, json!({"loop_id": id, "now": true}))),
            _ => world.forms(row, id, "now=true"),
        }
        world.sandbox.wait_for_status(id, "cancelled");
    }
}

/// The loops that were cancelled above.
pub(super) fn archive(world: &World, row: &Row) {
    world.sandbox.refrain(&["archive", "c-cli"]).with_code(0);
    world.posts(row, "c-api", json!({}));
    world.forms(row, "c-page", "");
    let left = ids(&world.cli(&["list"]), |row| row);
    assert!(left.contains(&"c-tool".to_owned()), "{left:?}");
    assert!(!["c-cli", "c-api", "c-page"].iter().any(|id| left.contains(&(*id).to_owned())), "{left:?}");
}

/// Loops with work in a worktree of their own; `TAG-bare` has no gate.
fn branches(world: &World, tag: &str) {
    let script = format!("echo x > $REFRAIN_LOOP_ID.txt\n{CLAIM}");
    let agent = world.sandbox.agent("makes", &script);
    for id in ["cli", "api", "tool", "page", "bare"].map(|surface| format!("{tag}-{surface}")) {
        let words = ["start", "Mend it.", "--command", &agent, "--name", &id, "--worktree", "--quiet"];
        let gate = if id.ends_with("bare") { &[][..] } else { &["--gate", "true"] };
        world.sandbox.refrain(&[&words[..], &["--git-workflow", "commit"], gate].concat()).with_code(0);
    }
}

pub(super) fn merge(world: &World, row: &Row) {
    branches(world, "m");
    world.sandbox.refrain(&["merge", "m-cli"]).with_code(0);
    let merged = world.posts(row, "m-api", json!({"squash": true}));
    assert_eq!((&merged["loop_id"], &merged["how"]), (&json!("m-api"), &json!("squash")));
    let merged = world.tool(row, json!({"loop_id": "m-tool"}));
    assert_eq!(merged["how"], "merge");
    assert_eq!(world.sandbox.git(&["rev-parse", "HEAD"]).trim(), merged["commit"].as_str().unwrap());
    world.forms(row, "m-page", "");
    for file in ["m-cli.txt", "m-api.txt", "m-tool.txt", "m-page.txt"] {
        assert!(world.sandbox.project().join(file).exists(), "{file}");
    }
    // A tool merges only what is verified.
    let bare = world.at(row.route, "m-bare");
    world.served.posts(&bare, json!({})).with_status(409).says("m-bare is unverified");
    let tool = row.tool.unwrap();
    let refused = crate::surfaces::mcp::refuses(&world.sandbox, tool, json!({"loop_id": "m-bare"}));
    assert!(refused.contains("m-bare is unverified"), "{refused}");
    let asked = json!({"loop_id": "m-bare", "unverified": true});
    let refused = crate::surfaces::mcp::refuses(&world.sandbox, tool, asked);
    assert!(refused.contains("unverified"), "{refused}");
    assert!(!world.sandbox.project().join("m-bare.txt").exists());
    world.posts(row, "m-bare", json!({"unverified": true}));
    assert!(world.sandbox.project().join("m-bare.txt").exists());
}

pub(super) fn discard(world: &World, row: &Row) {
    branches(world, "d");
    world.sandbox.refrain(&["discard", "d-cli"]).with_code(0);
    let discarded = world.posts(row, "d-api", json!({}));
    assert_eq!(discarded["kept"][0]["reference"], "refs/refrain/discarded/d-api");
    let discarded = world.tool(row, json!({"loop_id": "d-tool"}));
    assert_eq!(discarded["kept"][0]["reference"], "refs/refrain/discarded/d-tool");
    world.forms(row, "d-page", "");
    let left = ids(&world.cli(&["list"]), |row| row);
    assert!(left.iter().all(|id| !id.starts_with("d-") || id == "d-bare"), "{left:?}");
    let kept = world.sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/refrain/discarded"]);
    assert_eq!(kept.lines().count(), 4, "{kept}");
}

pub(super) fn tune(world: &World, row: &Row) {
    for id in ["tune-cli", "tune-api", "tune-page"] {
        world.plan(id, &world.worker, 14);
        match id {
            "tune-cli" => {
                let words = ["plan", "tune", "1", "--name", id, "--words", "Use pine."];
                drop(world.sandbox.refrain(&words).with_code(0));
            }
            "tune-api" => drop(world.posts(row, id, json!({"task": "1", "text": "Use pine."}))),
            _ => world.forms(row, id, "task=1&text=Use+pine."),
        }
        // The page resumes the plan once no task needs an answer.
        if id != "tune-page" {
            world.sandbox.refrain(&["plan", "resume", id, "--quiet"]).with_code(0);
        }
        world.sandbox.wait_for_status(id, "completed");
    }
}

/// Adds, blocks and retries tasks of a stopped plan, which then completes with all of them.
pub(super) fn edit_tasks(world: &World, row: &Row) {
    let of = |verb: &str| TABLE.iter().find(|row| row.verb == verb).unwrap();
    let (retry, block) = (of("plan retry"), of("plan block"));
    for id in ["edit-cli", "edit-api", "edit-page"] {
        world.plan(id, &world.worker, 14);
        let cli = |words: &[&str]| {
            let ran = world.sandbox.refrain(&[&["plan"], words, &["--name", id]].concat());
            ran.with_code(0).stdout
        };
        match id {
            "edit-cli" => {
                let said = cli(&["add", "Paint it", "--text", "With pine.", "--after", "1"]);
                assert_eq!(said, format!("task 2 was added; refrain plan resume {id} continues\n"));
                cli(&["block", "2"]);
                cli(&["retry", "2"]);
                cli(&["retry", "1"]);
            }
            "edit-api" => {
                world.posts(row, id, json!({"title": "Paint it", "text": "With pine.", "after": ["1"]}));
                let blocked = world.posts(block, id, json!({"task": "2"}));
                assert_eq!(blocked["tasks"][1]["status"], "blocked");
                let pending = world.posts(retry, id, json!({"task": "2"}));
                assert_eq!(pending["tasks"][1]["status"], "waiting-on-blocked", "as it comes after task 1");
                world.posts(retry, id, json!({"task": "1"}));
            }
            _ => {
                world.forms(row, id, "title=Paint+it&text=With+pine.&after=1");
                world.forms(block, id, "task=2");
                world.forms(retry, id, "task=2");
                world.forms(retry, id, "task=1");
            }
        }
        let file =
            fs::read_to_string(world.sandbox.project().join(format!(".scud/tasks/{id}.json"))).unwrap();
        let tasks: Value = serde_json::from_str(&file).unwrap();
        assert_eq!(
            tasks["tasks"][1],
            json!({"id": 2, "title": "Paint it", "description": "With pine.",
            "status": "pending", "depends_on": [1]})
        );
        assert_eq!(tasks["tasks"][0]["status"], "pending");
    }
    let refused = |words: &[&str], code, says: &str| {
        let ran =
            world.sandbox.refrain(&[&["plan"], words, &["--name", "edit-cli"]].concat()).with_code(code);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    };
    refused(&["retry", "2"], 17, "task 2 is pending already");
    refused(&["block", "9"], 3, "there is no task 9 in edit-cli; there are: 1, 2");
    refused(&["add", " "], 2, "accepted: 1 to 200 characters in one line");
    refused(&["add", "x", "--after", "7"], 2, "there is no task 7");
}
