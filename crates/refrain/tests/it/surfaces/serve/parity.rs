//! One table of all actions on loops and plans, and the surfaces that have each; every row is executed on each of its
//! surfaces, with the same result. If a surface lacks an action, the row has the reason.

mod does;

use std::fs;

use serde_json::Value;
use testkit::Sandbox;

use super::client::TestServer;
use crate::{CLAIM, sandbox};

/// An action.
struct Row {
    /// The command line's words.
    verb: &'static str,
    /// The route of the API.
    route: &'static str,
    /// The tool for agents.
    tool: Result<&'static str, &'static str>,
    /// Its place on a page.
    page: Result<&'static str, &'static str>,
    /// Its text in the help of `top`.
    top: Result<&'static str, &'static str>,
    /// Whether something is different afterwards.
    acts: bool,
    does: fn(&World, &Row),
}

const A_READER: &str = "a page, or a file, is read better than a screen of it";
const A_PERSON: &str = "a person decides it";
const A_PLAN: &str = "a plan is chosen by its file, on the command line";
const A_FILE: &str = "the task file is edited";
const COSTS: &str = "what a model reads costs the caller";

const TABLE: &[Row] = &[
    Row {
        verb: "list",
        route: "GET /loops",
        tool: Ok("loop_list"),
        page: Ok("/"),
        top: Ok("filter the list"),
        acts: false,
        does: does::list,
    },
    Row {
        verb: "status",
        route: "GET /projects/{project}/loops/{id}",
        tool: Ok("loop_status"),
        page: Ok("/p/{project}/{id}"),
        top: Ok("open a loop, a plan"),
        acts: false,
        does: does::status,
    },
    Row {
        verb: "show",
        route: "GET /projects/{project}/loops/{id}/journal",
        tool: Err("a resource: refrain://PROJECT/loops/ID/journal"),
        page: Err("a page shows what the events come to"),
        top: Err(A_READER),
        acts: false,
        does: does::show,
    },
    Row {
        verb: "logs",
        route: "GET /projects/{project}/loops/{id}/attempts/{attempt}/logs/{log}",
        tool: Err(COSTS),
        page: Ok("/p/{project}/{id}/attempts/1/logs/output"),
        top: Err(A_READER),
        acts: false,
        does: does::logs,
    },
    Row {
        verb: "report",
        route: "GET /projects/{project}/loops/{id}/report",
        tool: Ok("loop_report"),
        page: Err("it is a document of its own"),
        top: Err(A_READER),
        acts: false,
        does: does::report,
    },
    Row {
        verb: "diff",
        route: "GET /projects/{project}/loops/{id}/diff",
        tool: Ok("loop_diff"),
        page: Ok("/p/{project}/{id}/diff"),
        top: Err(A_READER),
        acts: false,
        does: does::diff,
    },
    Row {
        verb: "export",
        route: "GET /projects/{project}/loops/{id}/export",
        tool: Err("it is for other systems"),
        page: Err("it is for other systems"),
        top: Err("it is for other systems"),
        acts: false,
        does: does::export,
    },
    Row {
        verb: "verify",
        route: "POST /projects/{project}/loops/{id}/verify",
        tool: Err("who is checked does not say what came of it"),
        page: Err("it reads all that was kept, and is asked for by name"),
        top: Err("it reads all that was kept, and is asked for by name"),
        acts: false,
        does: does::verify,
    },
    Row {
        verb: "usage",
        route: "GET /usage",
        tool: Err(COSTS),
        page: Err("it is drawn by usage --svg, and by what scrapes the metrics"),
        top: Err(A_READER),
        acts: false,
        does: does::usage,
    },
    Row {
        verb: "usage --format prometheus",
        route: "GET /metrics",
        tool: Err("it is for a scraper"),
        page: Err("it is for a scraper"),
        top: Err("it is for a scraper"),
        acts: false,
        does: does::metrics,
    },
    Row {
        verb: "watch",
        route: "GET /events",
        tool: Err("a resource, which says when it changes"),
        page: Ok("/p/{project}/{id}"),
        top: Ok("follow what happens"),
        acts: false,
        does: does::watch,
    },
    Row {
        verb: "list --plan x",
        route: "GET /projects/{project}/loops/{id}/rounds",
        tool: Err("loop_status has those that go on"),
        page: Ok("/p/{project}/x"),
        top: Ok("a task, a log"),
        acts: false,
        does: does::rounds,
    },
    Row {
        verb: "start",
        route: "POST /loops",
        tool: Ok("loop_start"),
        page: Ok("/start"),
        top: Err("a goal is written in an editor, not in a line"),
        acts: true,
        does: does::start,
    },
    Row {
        verb: "plan run",
        route: "POST /plans",
        tool: Ok("plan_run"),
        page: Err(A_PLAN),
        top: Err(A_PLAN),
        acts: true,
        does: does::plan_run,
    },
    Row {
        verb: "pause",
        route: "POST /projects/{project}/loops/{id}/pause",
        tool: Err("an agent has no reason to"),
        page: Ok("/p/{project}/{id}/pause"),
        top: Ok("pause after the iteration, or at once"),
        acts: true,
        does: does::pause_and_resume,
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
        top: Ok("approve, send back, or answer"),
        acts: true,
        does: does::approve,
    },
    Row {
        verb: "steer",
        route: "POST /projects/{project}/loops/{id}/steer",
        tool: Ok("loop_steer"),
        page: Ok("/p/{project}/{id}/steer"),
        top: Ok("steer: tell the agent something"),
        acts: true,
        does: does::steer,
    },
    Row {
        verb: "take-back",
        route: "POST /projects/{project}/loops/{id}/take-back",
        tool: Err("an agent sends another text"),
        page: Ok("/p/{project}/{id}/take-back"),
        top: Err("the list and the pages show what is queued"),
        acts: true,
        does: does::take_back,
    },
    Row {
        verb: "answer",
        route: "POST /projects/{project}/loops/{id}/answer",
        tool: Ok("loop_answer"),
        page: Ok("/p/{project}/{id}/answer"),
        top: Ok("approve, send back, or answer"),
        acts: true,
        does: does::answer,
    },
    Row {
        verb: "cancel",
        route: "POST /projects/{project}/loops/{id}/cancel",
        tool: Ok("loop_stop"),
        page: Ok("/p/{project}/{id}/cancel"),
        top: Ok("cancel, after asking"),
        acts: true,
        does: does::cancel,
    },
    Row {
        verb: "archive",
        route: "POST /projects/{project}/loops/{id}/archive",
        tool: Err("a name is a person's to free"),
        page: Ok("/p/{project}/{id}/archive"),
        top: Err(A_PERSON),
        acts: true,
        does: does::archive,
    },
    Row {
        verb: "merge",
        route: "POST /projects/{project}/loops/{id}/merge",
        tool: Ok("loop_merge"),
        page: Ok("/p/{project}/{id}/merge"),
        top: Err(A_PERSON),
        acts: true,
        does: does::merge,
    },
    Row {
        verb: "discard",
        route: "POST /projects/{project}/loops/{id}/discard",
        tool: Ok("loop_discard"),
        page: Ok("/p/{project}/{id}/discard"),
        top: Err(A_PERSON),
        acts: true,
        does: does::discard,
    },
    Row {
        verb: "plan tune",
        route: "POST /projects/{project}/loops/{id}/tune",
        tool: Err("it is a person that is asked"),
        page: Ok("/p/{project}/{id}/tune"),
        top: Err("what its task is told is written in an editor"),
        acts: true,
        does: does::tune,
    },
    Row {
        verb: "plan add",
        route: "POST /projects/{project}/loops/{id}/tasks",
        tool: Err(A_FILE),
        page: Ok("/p/{project}/{id}/add"),
        top: Err(A_FILE),
        acts: true,
        does: does::edit_tasks,
    },
    Row {
        verb: "plan retry",
        route: "POST /projects/{project}/loops/{id}/retry",
        tool: Err(A_FILE),
        page: Ok("/p/{project}/{id}/retry"),
        top: Err(A_FILE),
        acts: true,
        does: |_, _| (),
    },
    Row {
        verb: "plan block",
        route: "POST /projects/{project}/loops/{id}/block",
        tool: Err(A_FILE),
        page: Ok("/p/{project}/{id}/block"),
        top: Err(A_FILE),
        acts: true,
        does: |_, _| (),
    },
];

/// Routes without a verb, and the reason.
const ROUTES_ALONE: &[(&str, &str)] = &[
    ("GET /openapi.json", "it describes the routes"),
    ("GET /projects", "list --all-projects names the folders"),
    ("POST /loops/preview", "the user of a command line sees it"),
    ("GET /projects/{project}/loops/{id}/notes", "state.md lies in the worktree"),
    ("GET /projects/{project}/loops/{id}/attempts/{attempt}/prompt", "it lies beside the logs"),
    ("GET /projects/{project}/loops/{id}/attempts/{attempt}/activity", "logs, and watch, show it"),
];

/// Verbs that look and have no route, and why there is none.
const VERBS_ALONE: &[(&str, &str)] = &[
    ("plan status", "status has the same object of a plan"),
    ("plan waves", "it is of a file that was not started; the object of a plan that runs has its waves"),
    ("plan show", "it is of a file that was not started; what was told then is the prompt of a round"),
    ("plan check", "it is of a file that was not started; POST /plans says what is wrong with it"),
];

/// The place of all actions.
struct World {
    sandbox: Sandbox,
    served: TestServer,
    project: String,
    /// Works until its gate opens.
    waiting: String,
    /// Writes a file for its task, if it is called with `pine`, or told so.
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
        let served = TestServer::begin(&sandbox, &[]);
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
        crate::surfaces::mcp::does(&self.sandbox, row.tool.unwrap(), asked)
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
    let served = TestServer::begin(&sandbox, &[]);
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
    assert_eq!(crate::surfaces::mcp::tools_of(&sandbox), tools);
    let keys: Vec<_> = TABLE.iter().filter_map(|row| row.top.ok()).collect();
    crate::surfaces::top::help_says(&sandbox, &keys);
    served.ends();
}

#[test]
fn every_surface_shows_the_same_values() {
    let world = World::new(&["x"]);
    let says = format!("echo 'at work'; echo x > made.txt\n{CLAIM}");
    let agent = world.sandbox.agent("agent", &says);
    let words = ["start", "Mend it.", "--command", &agent, "--name", "job", "--gate", "made=true", "--quiet"];
    world.sandbox.refrain(&words).with_code(0);
    world.plan("x", &format!("{} pine", world.worker), 0);
    TABLE.iter().filter(|row| !row.acts).for_each(|row| (row.does)(&world, row));
    world.served.ends();
}

#[test]
fn every_action_works_on_every_surface() {
    let world = World::new(&[
        "cli",
        "api",
        "tool",
        "tune-cli",
        "tune-api",
        "tune-page",
        "edit-cli",
        "edit-api",
        "edit-page",
    ]);
    TABLE.iter().filter(|row| row.acts).for_each(|row| (row.does)(&world, row));
    world.served.ends();
    world.sandbox.no_process_is_left();
}
