//! One table of what can be done with loops and plans, and by which surface; every row of it is done, by each that has it, and
//! comes to the same. Where a surface does not have it, it is for the reason that stands there.

use std::fs;

use serde_json::{Value, json};
use testkit::{Sandbox, eventually};

use super::client::Served;
use crate::{CLAIM, sandbox};

/// What can be done.
struct Row {
    /// The command line's words.
    verb: &'static str,
    /// The route of the API.
    route: &'static str,
    /// The tool for agents.
    tool: Result<&'static str, &'static str>,
    /// Where it is on a page.
    page: Result<&'static str, &'static str>,
    /// What the help of `top` says of it.
    top: Result<&'static str, &'static str>,
    /// Whether something is different afterwards.
    acts: bool,
    does: fn(&World, &Row),
}

const A_READER: &str = "a page, or a file, is read better than a screen of it";
const A_PERSON: &str = "a person decides it";
const A_PLAN: &str = "a plan is chosen by its file, on the command line";
const COSTS: &str = "what a model reads costs whoever asks";

const TABLE: &[Row] = &[
    Row {
        verb: "list",
        route: "GET /loops",
        tool: Ok("loop_list"),
        page: Ok("/"),
        top: Ok("filter the list"),
        acts: false,
        does: list,
    },
    Row {
        verb: "status",
        route: "GET /projects/{project}/loops/{id}",
        tool: Ok("loop_status"),
        page: Ok("/p/{project}/{id}"),
        top: Ok("open a loop, a plan"),
        acts: false,
        does: status,
    },
    Row {
        verb: "show",
        route: "GET /projects/{project}/loops/{id}/journal",
        tool: Err("a resource: refrain://PROJECT/loops/ID/journal"),
        page: Err("a page shows what the events come to"),
        top: Err(A_READER),
        acts: false,
        does: show,
    },
    Row {
        verb: "logs",
        route: "GET /projects/{project}/loops/{id}/attempts/{attempt}/logs/{log}",
        tool: Err(COSTS),
        page: Ok("/p/{project}/{id}/attempts/1/logs/output"),
        top: Err(A_READER),
        acts: false,
        does: logs,
    },
    Row {
        verb: "report",
        route: "GET /projects/{project}/loops/{id}/report",
        tool: Ok("loop_report"),
        page: Err("it is a document of its own"),
        top: Err(A_READER),
        acts: false,
        does: report,
    },
    Row {
        verb: "export",
        route: "GET /projects/{project}/loops/{id}/export",
        tool: Err("it is for other systems"),
        page: Err("it is for other systems"),
        top: Err("it is for other systems"),
        acts: false,
        does: export,
    },
    Row {
        verb: "verify",
        route: "POST /projects/{project}/loops/{id}/verify",
        tool: Err("who is checked does not say what came of it"),
        page: Err("it reads all that was kept, and is asked for by name"),
        top: Err("it reads all that was kept, and is asked for by name"),
        acts: false,
        does: verify,
    },
    Row {
        verb: "usage",
        route: "GET /usage",
        tool: Err(COSTS),
        page: Err("it is drawn by usage --svg, and by what scrapes the metrics"),
        top: Err(A_READER),
        acts: false,
        does: usage,
    },
    Row {
        verb: "usage --format prometheus",
        route: "GET /metrics",
        tool: Err("it is for a scraper"),
        page: Err("it is for a scraper"),
        top: Err("it is for a scraper"),
        acts: false,
        does: metrics,
    },
    Row {
        verb: "watch",
        route: "GET /events",
        tool: Err("a resource, which says when it changes"),
        page: Ok("/p/{project}/{id}"),
        top: Ok("follow what happens"),
        acts: false,
        does: watch,
    },
    Row {
        verb: "list --plan x",
        route: "GET /projects/{project}/loops/{id}/rounds",
        tool: Err("loop_status has those that go on"),
        page: Ok("/p/{project}/x"),
        top: Ok("or the loop of a task"),
        acts: false,
        does: rounds,
    },
    Row {
        verb: "start",
        route: "POST /loops",
        tool: Ok("loop_start"),
        page: Ok("/start"),
        top: Err("a goal is written in an editor, not in a line"),
        acts: true,
        does: start,
    },
    Row {
        verb: "plan run",
        route: "POST /plans",
        tool: Ok("plan_run"),
        page: Err(A_PLAN),
        top: Err(A_PLAN),
        acts: true,
        does: plan_run,
    },
    Row {
        verb: "pause",
        route: "POST /projects/{project}/loops/{id}/pause",
        tool: Err("an agent has no reason to"),
        page: Ok("/p/{project}/{id}/pause"),
        top: Ok("pause after the iteration, or at once"),
        acts: true,
        does: pause_and_resume,
    },
    Row {
        verb: "resume",
        route: "POST /projects/{project}/loops/{id}/resume",
        tool: Err("it may grant more, which a person decides"),
        page: Ok("/p/{project}/{id}/resume"),
        top: Ok("resume, in a process of its own"),
        acts: true,
        // With the row above.
        does: |_, _| (),
    },
    Row {
        verb: "approve",
        route: "POST /projects/{project}/loops/{id}/approve",
        tool: Err("an agent that approves its own work proves nothing"),
        page: Ok("/p/{project}/{id}/approve"),
        top: Ok("approve, or send back, after asking"),
        acts: true,
        does: approve,
    },
    Row {
        verb: "steer",
        route: "POST /projects/{project}/loops/{id}/steer",
        tool: Ok("loop_steer"),
        page: Ok("/p/{project}/{id}/steer"),
        top: Ok("steer: tell the agent something"),
        acts: true,
        does: steer,
    },
    Row {
        verb: "cancel",
        route: "POST /projects/{project}/loops/{id}/cancel",
        tool: Ok("loop_stop"),
        page: Ok("/p/{project}/{id}/cancel"),
        top: Ok("cancel, after asking"),
        acts: true,
        does: cancel,
    },
    Row {
        verb: "archive",
        route: "POST /projects/{project}/loops/{id}/archive",
        tool: Err("a name is a person's to free"),
        page: Ok("/p/{project}/{id}/archive"),
        top: Err(A_PERSON),
        acts: true,
        does: archive,
    },
    Row {
        verb: "plan tune",
        route: "POST /projects/{project}/loops/{id}/tune",
        tool: Err("it is a person that is asked"),
        page: Ok("/p/{project}/{id}/tune"),
        top: Err("what its task is told is written in an editor"),
        acts: true,
        does: tune,
    },
];

/// Routes that stand for no verb, and why there is none.
const ROUTES_ALONE: &[(&str, &str)] = &[
    ("GET /openapi.json", "it describes the routes"),
    ("GET /projects", "list --all-projects names the folders"),
    ("POST /loops/preview", "whoever types a command line sees it"),
    ("GET /projects/{project}/loops/{id}/notes", "state.md lies in the worktree"),
    ("GET /projects/{project}/loops/{id}/diff", "git shows it in the worktree"),
    ("GET /projects/{project}/loops/{id}/attempts/{attempt}/prompt", "it lies beside the logs"),
    ("GET /projects/{project}/loops/{id}/attempts/{attempt}/activity", "logs, and watch, show it"),
];

/// Verbs that look and have no route, and why there is none.
const VERBS_ALONE: &[(&str, &str)] = &[
    ("plan status", "status has the same object of a plan"),
    ("plan waves", "it is of a file that nobody has started; the object of a plan that runs has its waves"),
    ("plan show", "it is of a file that nobody has started; what was told then is the prompt of a round"),
    ("plan check", "it is of a file that nobody has started; POST /plans says what is wrong with it"),
];

/// Where all of that is done.
struct World {
    sandbox: Sandbox,
    served: Served,
    project: String,
    /// Works until it is let go on.
    waiting: String,
    /// Writes a file for its task; where it is called with `pine`, or told so.
    worker: String,
}

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const VERIFY: &str = "test -e README.md";

impl World {
    fn new(tags: &[&str]) -> Self {
        let sandbox = sandbox();
        let _ = sandbox.gate("go");
        fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
        for tag in tags {
            let task =
                r#"{"id": 1, "title": "Mend it", "status": "pending", "complexity": 1, "depends_on": []}"#;
            let file = sandbox.project().join(format!(".scud/tasks/{tag}.json"));
            testkit::write(&file, format!(r#"{{"tag": "{tag}", "tasks": [{task}]}}"#));
        }
        testkit::write(&sandbox.project().join("README.md"), "A project.\n");
        sandbox.git(&["add", "-A"]);
        sandbox.git(&["commit", "-qm", "Begin"]);
        let waiting = sandbox.agent("waiting", &format!("read -r _ < $GATES/go\n{CLAIM}"));
        let worker = sandbox.agent(
            "worker",
            "case $* in *pine*) ;; *) echo 'Which wood?'; exit 0;; esac\n\
             task=$(git branch --show-current); echo x > \"${task##*/}.txt\"\necho TASK_COMPLETE",
        );
        let served = Served::begin(&sandbox, &[]);
        let projects = served.gets("/api/v1/projects").with_status(200).json();
        let project = projects[0]["name"].as_str().unwrap().to_owned();
        Self { sandbox, served, project, waiting, worker }
    }

    fn cli(&self, words: &[&str]) -> Value {
        self.sandbox.refrain(&[words, &["--json"]].concat()).with_code(0).json()
    }

    /// The address of a row, for a loop or a plan.
    fn at(&self, route: &str, id: &str) -> String {
        let path = route.split_once(' ').map_or(route, |(_, path)| path);
        let path = path.replace("{project}", &self.project).replace("{id}", id).replace("{attempt}", "1");
        let base = if route.contains(' ') { "/api/v1" } else { "" };
        format!("{base}{}", path.replace("{log}", "output"))
    }

    fn gets(&self, row: &Row, id: &str) -> Value {
        self.served.gets(&self.at(row.route, id)).with_status(200).json()
    }

    fn posts(&self, row: &Row, id: &str, body: Value) -> Value {
        self.served.posts(&self.at(row.route, id), body).with_status(200).json()
    }

    /// Sends a form of a page, which leads on.
    fn forms(&self, row: &Row, id: &str, form: &str) {
        self.served.posts_with(&self.at(row.page.unwrap(), id), FORM, form).with_status(303);
    }

    fn shows(&self, row: &Row, id: &str, part: &str) {
        self.served.gets(&self.at(row.page.unwrap(), id)).with_status(200).says(part);
    }

    fn tool(&self, row: &Row, asked: Value) -> Value {
        crate::mcp::does(&self.sandbox, row.tool.unwrap(), asked)
    }

    /// A loop whose agent is at work.
    fn at_work(&self, id: &str) {
        let words = ["start", "Mend it.", "--command", &self.waiting, "--name", id, "--detach", "--quiet"];
        self.sandbox.refrain(&words).with_code(0);
        self.works(id);
    }

    fn works(&self, id: &str) {
        self.sandbox.wait_for_status(id, "running");
        self.sandbox.wait_for_event(id, "attempt.spawned");
    }

    fn ends(&self, id: &str) {
        self.sandbox.refrain(&["cancel", id, "--now"]).with_code(0);
        self.sandbox.wait_for_status(id, "cancelled");
    }

    /// A plan that ran as far as it could.
    fn plan(&self, tag: &str, worker: &str, code: i32) {
        let words = ["plan", "run", "--tag", tag, "--name", tag, "--command", worker, "--verify", VERIFY];
        let words = [&words[..], &["--max-iterations-per-task", "1", "--quiet"]].concat();
        self.sandbox.refrain(&words).with_code(code);
    }
}

#[test]
fn every_surface_can_do_what_the_others_can() {
    let sandbox = sandbox();
    let served = Served::begin(&sandbox, &[]);
    let described = served.gets("/api/v1/openapi.json").with_status(200).json();
    let mut described: Vec<_> = described["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, it)| {
            let path = path.strip_prefix("/api/v1").unwrap();
            it.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    let alone = ROUTES_ALONE.iter().map(|(route, _)| *route);
    let mut routes: Vec<_> = TABLE.iter().map(|row| row.route).chain(alone).collect();
    described.sort_unstable();
    routes.sort_unstable();
    assert_eq!(described, routes);
    for verb in TABLE.iter().map(|row| row.verb).chain(VERBS_ALONE.iter().map(|(verb, _)| *verb)) {
        let words: Vec<_> = verb.split(' ').chain(["--help"]).collect();
        sandbox.refrain(&words).with_code(0);
    }
    let mut tools: Vec<_> = TABLE.iter().filter_map(|row| row.tool.ok()).collect();
    tools.sort_unstable();
    assert_eq!(crate::mcp::tools_of(&sandbox), tools);
    let keys: Vec<_> = TABLE.iter().filter_map(|row| row.top.ok()).collect();
    crate::top::help_says(&sandbox, &keys);
    served.ends();
}

#[test]
fn what_can_be_looked_at_is_the_same_wherever_it_is_looked_at() {
    let world = World::new(&["x"]);
    let says = format!("echo 'at work'\n{CLAIM}");
    let agent = world.sandbox.agent("agent", &says);
    let words = ["start", "Mend it.", "--command", &agent, "--name", "job", "--gate", "made=true", "--quiet"];
    world.sandbox.refrain(&words).with_code(0);
    world.plan("x", &format!("{} pine", world.worker), 0);
    TABLE.iter().filter(|row| !row.acts).for_each(|row| (row.does)(&world, row));
    world.served.ends();
}

#[test]
fn what_can_be_done_is_done_wherever_it_is_asked_for() {
    let world = World::new(&["cli", "api", "tool", "tune-cli", "tune-api", "tune-page"]);
    TABLE.iter().filter(|row| row.acts).for_each(|row| (row.does)(&world, row));
    world.served.ends();
    world.sandbox.nobody_survives();
}

fn ids(rows: &Value, of: impl Fn(&Value) -> &Value) -> Vec<String> {
    let mut ids: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| of(row)["id"].as_str().unwrap().to_owned()).collect();
    ids.sort_unstable();
    ids
}

fn list(world: &World, row: &Row) {
    let told = ids(&world.cli(&["list"]), |row| row);
    assert_eq!(told, ["job", "x"]);
    assert_eq!(ids(&world.gets(row, "")["loops"], |row| &row["loop"]), told);
    let tool = world.tool(row, json!({"include_finished": true}));
    assert_eq!(ids(&tool["loops"], |row| row), told);
    world.shows(row, "", "/job");
}

fn status(world: &World, row: &Row) {
    for (id, words) in [("job", &["status", "job"][..]), ("x", &["status", "x"]), ("x", &["plan", "status"])]
    {
        let told = world.cli(words);
        assert_eq!((&told["id"], &told["status"]), (&json!(id), &json!("completed")));
        assert_eq!(world.gets(row, id), told);
        assert_eq!(world.tool(row, json!({"loop_id": id}))["loop"]["status"], "completed");
        world.shows(row, id, "completed");
    }
}

fn show(world: &World, row: &Row) {
    for id in ["job", "x"] {
        let told = world.cli(&["show", id]);
        let page = world.served.gets(&(world.at(row.route, id) + "?from=1&limit=1000")).with_status(200);
        let lines: Vec<Value> = page.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(Value::Array(lines), told);
    }
}

fn logs(world: &World, row: &Row) {
    let told = world.sandbox.refrain(&["logs", "job"]).with_code(0).stdout;
    let log = world.gets(row, "job")["text"].as_str().unwrap().to_owned();
    assert!(log.contains("at work") && told.contains(&log), "{log:?} of {told:?}");
    world.shows(row, "job", "at work");
}

fn report(world: &World, row: &Row) {
    let told = world.cli(&["report", "job"]);
    assert_eq!(world.gets(row, "job"), told);
    assert_eq!(world.tool(row, json!({"loop_id": "job"}))["report"], told);
}

fn export(world: &World, row: &Row) {
    for format in ["json", "synthex", "descartes", "ralph", "randroid"] {
        let told = world.sandbox.refrain(&["export", "job", "--as", format]).with_code(0).stdout;
        let path = world.at(row.route, "job") + "?format=" + format;
        assert_eq!(world.served.gets(&path).with_status(200).body, told, "{format}");
    }
    let bad = world.at(row.route, "job") + "?format=toml";
    world.served.gets(&bad).with_status(400).says("format toml: accepted are json, synthex");
    world.served.gets(&world.at(row.route, "x")).with_status(400).says("x is a plan");
}

fn verify(world: &World, row: &Row) {
    for id in ["job", "x"] {
        let told = world.cli(&["verify", id]);
        assert_eq!(world.posts(row, id, json!({})), told);
        assert!(told.to_string().contains(r#""agrees":true"#), "{told:#}");
    }
}

fn usage(world: &World, row: &Row) {
    assert_eq!(world.gets(row, ""), world.cli(&["usage", "--all-projects"]));
    for by in ["day", "project", "agent", "model"] {
        let told = world.cli(&["usage", "--by", by, "--since", "2026-01-01"]);
        assert!(told["total"]["loops"].as_u64() >= Some(1), "{told:#}");
        let query = format!("?by={by}&since=2026-01-01&project={}", world.project);
        assert_eq!(world.served.gets(&(world.at(row.route, "") + &query)).with_status(200).json(), told);
    }
    for (query, says) in [
        ("by=hour", "by hour: accepted are day, project, agent and model"),
        ("since=yesterday", "since yesterday: accepted are a date like 2026-11-01"),
        ("project=nowhere", "there is no project nowhere"),
        ("until=now", "until: there is no such parameter; accepted are by, project, since"),
    ] {
        let refused = world.served.gets(&(world.at(row.route, "") + "?" + query));
        assert!(matches!(refused.status, 400 | 404) && refused.body.contains(says), "{refused:#?}");
    }
}

fn metrics(world: &World, row: &Row) {
    let told = world.sandbox.refrain(&["usage", "--format", "prometheus", "--all-projects"]).with_code(0);
    let line = "refrain_loops{status=\"completed\"}";
    let of = |text: &str| text.lines().find(|it| it.starts_with(line)).map(str::to_owned);
    assert_eq!(of(&world.served.gets(&world.at(row.route, "")).body), of(&told.stdout));
}

fn watch(world: &World, row: &Row) {
    assert_eq!(world.served.listens(None).next().event, "hello");
    world.shows(row, "job", "data-after=");
}

fn rounds(world: &World, row: &Row) {
    let told = ids(&world.cli(&["list", "--plan", "x"]), |row| row);
    let rounds = world.gets(row, "x");
    assert_eq!((rounds[0]["task"].as_str(), rounds[0]["round"].as_u64()), (Some("1"), Some(1)));
    assert_eq!(told, [rounds[0]["loop"].as_str().unwrap()]);
    world.shows(row, "x", rounds[0]["loop"].as_str().unwrap());
}

fn start(world: &World, row: &Row) {
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

fn plan_run(world: &World, row: &Row) {
    let worker = format!("{} pine", world.worker);
    world.plan("cli", &worker, 0);
    let asked = |tag: &str| json!({"tag": tag, "name": tag, "command": worker, "verify": VERIFY});
    world.posts(row, "", asked("api"));
    world.sandbox.wait_for_status("api", "completed");
    world.tool(row, asked("tool"));
    world.sandbox.wait_for_status("tool", "completed");
}

fn pause_and_resume(world: &World, row: &Row) {
    let resume = TABLE.iter().find(|row| row.verb == "resume").unwrap();
    world.at_work("paused");
    let is_paused = || drop(world.sandbox.wait_for_status("paused", "paused"));
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

fn approve(world: &World, row: &Row) {
    let agent = world.sandbox.agent("claims", CLAIM);
    for id in ["approved-cli", "approved-api", "approved-page"] {
        let words = ["start", "Mend it.", "--command", &agent, "--name", id, "--require-approval", "--quiet"];
        world.sandbox.refrain(&words).with_code(14);
        match id {
            "approved-cli" => drop(world.sandbox.refrain(&["approve", id, "--quiet"]).with_code(0)),
            "approved-api" => drop(world.posts(row, id, json!({}))),
            _ => world.forms(row, id, ""),
        }
        world.sandbox.wait_for_status(id, "completed");
    }
}

fn steer(world: &World, row: &Row) {
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

fn cancel(world: &World, row: &Row) {
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

/// Those that were cancelled above.
fn archive(world: &World, row: &Row) {
    world.sandbox.refrain(&["archive", "c-cli"]).with_code(0);
    world.posts(row, "c-api", json!({}));
    world.forms(row, "c-page", "");
    let left = ids(&world.cli(&["list"]), |row| row);
    assert!(left.contains(&"c-tool".to_owned()), "{left:?}");
    assert!(!["c-cli", "c-api", "c-page"].iter().any(|id| left.contains(&(*id).to_owned())), "{left:?}");
}

fn tune(world: &World, row: &Row) {
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
        world.sandbox.refrain(&["plan", "resume", id, "--quiet"]).with_code(0);
        assert_eq!(world.sandbox.status(id)["status"], "completed");
    }
}
