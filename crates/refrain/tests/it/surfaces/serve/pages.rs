//! What the pages and their API show of a loop's work: what it has changed so far, what its agent did, its logs.

use std::fs;

use serde_json::{Value, json};
use testkit::{Sandbox, write};

use super::client::TestServer;
use crate::setup::sandbox as in_sandbox;
use crate::{CLAIM, plain_folder, sandbox};

/// Starts a loop of this agent in the sandbox, and waits until it is at the gate `go`.
fn at_work(sandbox: &Sandbox, does: &str, more: &[&str]) {
    let _ = sandbox.gate("go");
    let agent =
        sandbox.agent("agent", &format!("{does}\necho x > $NOTES/did\nread -r _ < $GATES/go\n{CLAIM}"));
    let words =
        [&["start", "--command", &agent, "--name", "job", "--detach", "--quiet"], more, &["Mend it."]];
    sandbox.refrain(&words.concat()).with_code(0);
    sandbox.wait_for_note("did");
}

fn project(served: &TestServer) -> String {
    served.gets("/api/v1/projects").json()[0]["name"].as_str().unwrap().to_owned()
}

fn changes(served: &TestServer) -> Value {
    served.gets(&format!("/api/v1/projects/{}/loops/job/diff", project(served))).with_status(200).json()
}

/// Changes by a person and by the loop of these tests.
const CHANGES: &str = "echo new >> README.md
echo 'fn main() {}' > made.rs
printf 'a\\0b' > picture.bin
echo \"key = ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8\" > token.txt";

#[test]
fn changes_of_a_running_loop_are_shown_before_they_are_proven() {
    let sandbox = sandbox();
    at_work(&sandbox, CHANGES, &[]);
    let served = TestServer::begin(&sandbox, &[]);
    let found = changes(&served);
    let (note, stat, diff) = ["note", "stat", "diff"].map(|part| found[part].as_str().unwrap()).into();
    assert!(note.contains("as it is now, against commit") && note.contains("before it began"), "{note}");
    assert!(note.contains("Not shown: token.txt"), "{note}");
    assert!(stat.contains("made.rs") && stat.contains("picture.bin"), "{stat}");
    assert!(diff.contains("+fn main() {}") && diff.contains("Binary files"), "{diff}");
    assert!(!found.to_string().contains("ghp_"), "{found}");
    let left: Vec<_> = fs::read_dir(sandbox.loop_dir("job")).unwrap().flatten().collect();
    assert!(!left.iter().any(|it| it.file_name().to_string_lossy().contains("seen")), "{left:?}");
    let page = format!("/p/{}/job/diff", project(&served));
    served.gets(&page).with_status(200).says("fn main() {}");

    // A commit of the agent is a change too.
    sandbox.git(&["add", "made.rs"]);
    sandbox.git(&["commit", "-qm", "Make it"]);
    assert!(changes(&served)["diff"].as_str().unwrap().contains("+fn main() {}"));
    sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    assert!(changes(&served)["diff"].as_str().unwrap().contains("+fn main() {}"));
    served.ends();
}

#[test]
fn a_loop_at_rest_says_on_its_tab_how_much_it_changed_and_names_each_folder_once() {
    let sandbox = sandbox();
    let does = "mkdir -p src; echo x > src/a.rs; echo x > src/b.rs; echo x > top.txt";
    let agent = sandbox.agent("agent", &format!("{does}\n{CLAIM}"));
    let words = ["start", "--command", &agent, "--name", "job", "--gate", "true", "--quiet", "Mend it."];
    sandbox.refrain(&words).with_code(0);
    let served = TestServer::begin(&sandbox, &[]);
    let at = format!("/p/{}/job", project(&served));
    let size =
        "Changes <span class=\"num\"><span class=\"add\">+3</span> <span class=\"del\">−0</span></span></a>";
    for tab in ["", "/diff", "/gates", "/prompt", "/report"] {
        let page = served.gets(&format!("{at}{tab}")).with_status(200).body;
        assert!(page.contains(size), "{tab}: {page}");
    }
    let page = served.gets(&format!("{at}/diff")).with_status(200).body;
    let places =
        ["title=\"top.txt\"", "<li class=\"folder\">src</li>", "title=\"src/a.rs\"", "title=\"src/b.rs\""];
    let places = places.map(|part| page.find(part).unwrap_or_else(|| panic!("{part}: {page}")));
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(page.matches("class=\"folder\"").count(), 1);
    served.ends();
}

#[test]
fn changes_from_before_a_loop_are_not_shown_as_its_own() {
    let sandbox = sandbox();
    write(&sandbox.project().join("mine.txt"), "mine\n");
    at_work(&sandbox, CHANGES, &["--gate", "true"]);
    let served = TestServer::begin(&sandbox, &[]);
    let found = changes(&served);
    let diff = found["diff"].as_str().unwrap();
    assert!(diff.contains("+fn main() {}") && !diff.contains("mine"), "{found}");
    assert!(!found["note"].as_str().unwrap().contains("before it began is shown"), "{found}");
    sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    served.ends();
}

#[test]
fn without_git_the_page_says_that_changes_are_unknown() {
    let sandbox = plain_folder();
    at_work(&sandbox, "echo made > made", &[]);
    let served = TestServer::begin(&sandbox, &[]);
    assert!(changes(&served)["note"].as_str().unwrap().contains("without git"), "{}", changes(&served));
    served.gets(&format!("/p/{}/job/diff", project(&served))).with_status(200).says("without git");
    sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    served.ends();
}

#[test]
fn a_merge_is_offered_only_of_a_branch_with_work() {
    let sandbox = sandbox();
    for (name, does) in [("idle", ""), ("work", "echo x > made.txt")] {
        let agent = sandbox.agent(name, &format!("{does}\n{CLAIM}"));
        let own = ["--worktree", "--git-workflow", "commit", "--gate", "test -f made.txt"];
        let words = ["start", "--command", &agent, "--name", name, "-m", "1", "--quiet", "Make it."];
        sandbox.refrain(&[&words[..], &own].concat());
    }
    let served = TestServer::begin(&sandbox, &[]);
    let at = format!("/p/{}", project(&served));
    let offers = |name| served.gets(&format!("{at}/{name}")).with_status(200).body.contains("/merge\"");
    assert_eq!((offers("idle"), offers("work")), (false, true));
    sandbox.refrain(&["merge", "work"]).with_code(0);
    assert!(!offers("work"));
    served.ends();
}

#[test]
fn the_report_says_in_which_sandbox_a_loop_ran() {
    let Some(sandbox) = in_sandbox::sandbox() else { return };
    in_sandbox::start(&sandbox, CLAIM, &["--sandbox=files", "--worktree"]).with_code(0);
    let served = TestServer::begin(&sandbox, &[]);
    let page = served.gets(&format!("/p/{}/job/report", project(&served))).with_status(200);
    page.says("<dt>Sandbox</dt><dd>a sandbox of Landlock and seccomp; writes its worktree, ");
    served.ends();
}

#[test]
fn all_logs_of_an_agent_are_searched() {
    let sandbox = sandbox();
    let does = "echo 'the first Needle <b>'\nyes hay | head -n 200000\necho needle again\n\
                echo 'token ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8 of the needle'";
    at_work(&sandbox, does, &[]);
    let served = TestServer::begin(&sandbox, &[]);
    let api = format!("/api/v1/projects/{}/loops/job/attempts/1/activity", project(&served));
    let found = served.gets(&format!("{api}?find=NEEDLE")).with_status(200).json();
    let texts: Vec<_> = found["lines"].as_array().unwrap().iter().map(|line| line["text"].clone()).collect();
    assert_eq!(texts, [json!("the first Needle <b>"), json!("needle again")], "secrets are not found");
    assert_eq!((&found["lines"][0]["at"], &found["next"]), (&json!(0), &found["total"]));

    // A longer result is continued from there.
    let some = served.gets(&format!("{api}?find=hay")).json();
    assert_eq!(some["lines"].as_array().unwrap().len(), 200);
    let next = some["next"].as_u64().unwrap();
    assert!(next < some["total"].as_u64().unwrap());
    let more = served.gets(&format!("{api}?find=hay&from={next}")).json();
    assert_eq!(more["lines"][0]["at"], json!(next));
    served.gets(&format!("{api}?find=")).with_status(400).says("find of 0 characters");
    served.gets(&format!("{api}?find=x&limit=3")).with_status(400).says("limit");
    let none = served.gets(&format!("{api}?find=nowhere")).json();
    assert_eq!((&none["lines"], &none["next"]), (&json!([]), &none["total"]));

    let page = format!("/p/{}/job/attempts/1/activity", project(&served));
    let page = served.gets(&format!("{page}?find=needle")).with_status(200);
    page.says("the first Needle &#60;b&#62;");
    page.says("logs/output?from=0");
    sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    served.ends();
}

#[test]
fn each_gate_result_links_to_its_log() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let gate = "tests=echo seen by the gate; echo x >> $NOTES/gates; test $(wc -l < $NOTES/gates) -gt 2";
    let words = ["start", "--command", &agent, "--name", "job", "--quiet", "--gate", gate, "Mend it."];
    sandbox.refrain(&words).with_code(0);
    let served = TestServer::begin(&sandbox, &[]);
    let place = format!("/p/{}/job/gates", project(&served));
    let page = served.gets(&place).with_status(200);
    page.says("tests after iteration 1: failed");
    // The activity of an iteration ends with how it ended and its gates.
    let ending = format!("<b>claimed</b><a href=\"{place}?at=1&amp;gate=tests#failure\">");
    served.gets(&format!("/p/{}/job?at=1", project(&served))).with_status(200).says(&ending);
    let links = page.body.split("href=\"").filter_map(|part| part.split_once('"').map(|(link, _)| link));
    let cells: Vec<_> = links.filter(|link| link.contains("gates?at=")).collect();
    assert!(!cells.is_empty(), "{page:#?}");
    for cell in cells {
        let cell = cell.replace("&#38;", "&");
        let shown = served.gets(cell.trim_end_matches("#failure")).with_status(200);
        shown.says("seen by the gate");
        let (before, _) = shown.body.split_once("\">All that it printed").unwrap();
        let (_, log) = before.rsplit_once("href=\"").unwrap();
        served.gets(log).with_status(200).says("seen by the gate");
    }
    served.ends();
}

#[test]
fn all_iterations_of_a_long_loop_are_in_its_table_of_gates() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo x >> work.txt");
    let words =
        ["start", "--command", &agent, "--name", "job", "-q", "-m", "42", "--gate", "tests=false", "p"];
    sandbox.refrain(&words).with_code(10);
    let served = TestServer::begin(&sandbox, &[]);
    let place = format!("/p/{}/job/gates", project(&served));
    let page = served.gets(&place).with_status(200);
    page.says("tests after iteration 1: failed");
    page.says("tests after iteration 42: failed");
    page.says("<small>+2</small>");
    served.ends();
}

#[test]
fn the_question_of_a_task_is_answered_on_the_list_and_its_plan_continues() {
    let sandbox = sandbox();
    let tasks = r#"{"tag": "x", "tasks": [{"id": 1, "title": "Build the door", "status": "pending", "depends_on": []}]}"#;
    fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    write(&sandbox.project().join(".scud/tasks/x.json"), tasks);
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Tasks"]);
    let asks = "sed -i '/^question:/d; s/^status:.*/status: blocked\\nquestion: Which <wood>?/' \"$REFRAIN_STATE_FILE\"";
    let script =
        format!("case \"$*\" in *'Use pine.'*) echo x > door.txt; echo TASK_COMPLETE;; *) {asks};; esac");
    let agent = sandbox.agent("worker", &script);
    let run = ["plan", "run", "--tag", "x", "--command", &agent, "--name", "x", "--verify", "true", "-q"];
    sandbox.refrain(&run).with_code(14);
    let served = TestServer::begin(&sandbox, &[]);
    let plan = format!("/p/{}/x", project(&served));
    for page in ["/", &plan] {
        let shown = served.gets(page).with_status(200);
        shown.says("Which &#60;wood&#62;?");
        shown.says("aria-label=\"Answer to task 1\"");
    }
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    served.posts_with(&format!("{plan}/tune"), form, "back=/&task=1&text=Use+pine.").with_status(303);
    sandbox.wait_for_status("x", "completed");
    served.ends();
}

#[test]
fn a_text_for_refused_work_is_queued_only_if_the_loop_continues() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let words = ["start", "--command", &agent, "--name", "job", "-q", "--require-approval", "Mend it."];
    sandbox.refrain(&words).with_code(14);
    let served = TestServer::begin(&sandbox, &[]);
    let (at, form) =
        (format!("/p/{}/job", project(&served)), "Content-Type: application/x-www-form-urlencoded\r\n");
    let sends =
        |more: &str| served.posts_with(&format!("{at}/resume"), form, &format!("text=Use+oak.{more}"));
    sends("&max_cost_usd=0").with_status(400);
    assert_eq!(sandbox.status("job")["queued"], Value::Null);
    sends("").with_status(303);
    sandbox.wait_for_status("job", "blocked");
    served.ends();
}

#[test]
fn the_documentation_is_shown_with_links_between_its_pages() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let first = served.gets("/docs").with_status(200);
    first.says("href=\"/docs/first-loop\"");
    let page = served.gets("/docs/loops").with_status(200);
    page.says("<h1 id=");
    page.says("href=\"/docs/configuration");
    page.says("aria-current=\"page\"");
    assert_eq!(page.header("content-security-policy"), served.gets("/").header("content-security-policy"));
    served.gets("/docs/reference/loops.md").with_status(404);
    served.gets("/docs/%3Cb%3E").with_status(404).says("has no page &#60;b&#62;; /docs lists them");
    served.ends();
}

#[test]
fn an_invalid_start_form_shows_the_reason_at_its_field() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let page = served.posts_with("/start", form, "goal=Mend+it&command=true&max_iterations=900&do=start");
    let page = page.with_status(400);
    page.says("id=\"max_iterations-wrong\" class=\"bad\" role=\"alert\">Iterations 900: accepted:");
    page.says("aria-invalid=\"true\" aria-describedby=\"max_iterations-wrong\" autofocus");
    page.says("value=\"true\"");
    let refused = |more: &str| {
        served
            .posts_with("/start", form, &format!("goal=Mend+it&command=true&do=start{more}"))
            .with_status(400)
    };
    for (more, field, error) in [
        ("&max_iterations=x", "max_iterations", "Iterations x: accepted: numbers"),
        ("&max_minutes=61", "max_minutes", "&#34;Minutes of one iteration&#34; 61: accepted: whole numbers"),
        ("&name=A", "name", "Name A: "),
        ("&place=roof", "place", "&#34;Where it works&#34; roof: accepted: worktree, branch and folder"),
        ("&max_cost_usd=3", "max_cost_usd", "Dollars 3: generic does not say what it costs"),
    ] {
        refused(more).says(&format!("id=\"{field}-wrong\" class=\"bad\" role=\"alert\">{error}"));
    }
    let missing = refused("&gates=tests%3Dnothing-there");
    missing.says("&#34;Start although the program of a gate is missing&#34; starts anyway");
    assert!(!missing.body.contains("allow_missing_gates starts"), "{missing:#?}");
    let shown = served.posts_with("/start", form, "goal=Mend+it&command=true&do=preview").with_status(200);
    assert!(shown.body.find("What will run") < shown.body.find("value=\"start\""), "{shown:#?}");
    shown.says("true works in the folder as it is, without commits.");
    served.ends();
}

#[test]
fn pages_about_all_loops_sum_search_and_compare_them() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "agent",
        &format!("echo \"needle $REFRAIN_ITERATION\"; echo $REFRAIN_ITERATION > made\n[ $REFRAIN_ITERATION = 1 ] && echo no || {CLAIM}"),
    );
    let gate = "tests=echo 'FAILED t.py::a - b'; echo '1 failed in 1s'; exit 1";
    for name in ["one", "two", "three"] {
        let words =
            ["start", "--command", &agent, "--name", name, "--quiet", "--max-iterations", "2", "--gate"];
        sandbox.refrain(&[&words[..], &[gate, "Mend the <b>clock</b>."]].concat());
    }
    sandbox.refrain(&["memory", "add", "The clock is <i>late</i>."]).with_code(0);
    sandbox.refrain(&["config", "set", "notify.ntfy", "https://ntfy.example.org/hidden-topic"]).with_code(0);
    let served = TestServer::begin(&sandbox, &[]);
    let project = project(&served);
    let shows = |path: &str, parts: &[&str]| {
        let page = served.gets(path).with_status(200).body;
        let missing: Vec<_> = parts.iter().filter(|part| !page.contains(**part)).collect();
        assert!(missing.is_empty(), "{path} lacks {missing:?}: {page}");
        assert!(
            !page.contains(" style=") && !page.contains("<b>clock") && !page.contains("<i>late"),
            "{page}"
        );
        page
    };
    shows("/usage", &["Attempts by day", "<svg", "Verified loops", "iteration-cap"]);
    shows("/usage?by=agent&since=all&x=1", &["By agent", "generic"]);
    shows("/memory", &["The clock is", "fact"]);
    shows("/memory?kind=fact&text=clock", &["The clock is"]);
    shows("/doctor", &["file-system"]);
    let settings = shows("/settings", &["start.max-iterations", "https://ntfy.example.org/…"]);
    assert!(!settings.contains("hidden-topic"), "{settings}");
    shows("/search?text=needle", &["one, iteration 2", "needle 2"]);
    shows("/search?text=clock", &["two", "three"]);
    shows("/search", &["Search all loops"]);
    shows(&format!("/compare?a={project}/one&b={project}/two"), &["2/2", "Changes", ">command</td>"]);
    shows("/compare", &["Choose two loops"]);
    shows(&format!("/p/{project}/one/gates"), &["Failing tests", "<title>Iteration 1: 1</title>", "t.py::a"]);
    shows(&format!("/p/{project}/one/report"), &["Time", "by iteration"]);
    served.gets("/usage?project=nothing").with_status(404);
    // What similar loops took is said before another one is started.
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let preview = served.posts_with("/start", form, "goal=Mend+it.&command=true&do=preview").with_status(200);
    preview.says("Similar loops took: 2 iterations");
    served.ends();
}

#[test]
fn a_comment_on_a_line_steers_and_a_long_list_has_pages() {
    let sandbox = sandbox();
    at_work(&sandbox, CHANGES, &[]);
    let served = TestServer::begin(&sandbox, &[]);
    let (at, form) =
        (format!("/p/{}/job", project(&served)), "Content-Type: application/x-www-form-urlencoded\r\n");
    served.gets(&format!("{at}/diff")).with_status(200).says("Comment on made.rs");
    let sent = served
        .posts_with(&format!("{at}/comment"), form, "path=made.rs&line=1&text=Name+it.")
        .with_status(303);
    assert_eq!(sent.header("location"), Some(format!("{at}/diff?did=comment").as_str()));
    assert!(
        sandbox.journal("job").iter().any(|event| event.to_string().contains("About made.rs:1: Name it."))
    );
    served
        .posts_with(&format!("{at}/comment"), form, "path=made.rs&line=x&text=No.")
        .with_status(400)
        .says("line x");
    let second = served.gets("/?page=2").with_status(200).body;
    assert!(!second.contains("/p/") && second.contains("Previous"), "{second}");
    served.ends();
}

#[test]
fn the_list_is_filtered_by_project_and_each_chip_keeps_the_other_filters() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let barn_folder = sandbox.root().join("barn");
    fs::create_dir_all(&barn_folder).unwrap();
    sandbox.tool("git", &["init", "--quiet"]).dir(&barn_folder).run().with_code(0);
    let start = |name| ["start", "--command", &agent, "--name", name, "--quiet", "Mend it."];
    sandbox.refrain(&start("here")).with_code(0);
    let served = TestServer::begin(&sandbox, &[]);
    assert!(
        !served.gets("/").with_status(200).body.contains("All projects"),
        "of one project nothing is chosen"
    );
    sandbox.command(&start("there")).dir(&barn_folder).run().with_code(0);
    let all = served.gets("/?show=unverified").with_status(200).body;
    assert!(all.contains(">here</a>") && all.contains(">there</a>") && all.contains("All projects"), "{all}");
    let projects = served.gets("/api/v1/projects").json();
    let is_barn = |it: &&Value| it["folder"].as_str().unwrap().ends_with("/barn");
    let barn = projects.as_array().unwrap().iter().find(is_barn).unwrap()["name"].as_str().unwrap();
    let chip = format!("/?show=unverified&amp;project={barn}").replace("&amp;", "&#38;");
    assert!(all.contains(&chip), "{chip}: {all}");
    let one = served.gets(&format!("/?show=unverified&project={barn}")).with_status(200).body;
    assert!(one.contains(">there</a>") && !one.contains(">here</a>"), "{one}");
    assert!(one.contains(&format!("name=\"project\" value=\"{barn}\"")), "{one}");
    let none = served.gets("/?project=nowhere").with_status(200).body;
    assert!(none.contains("Nothing matches"), "{none}");
    served.ends();
    // Named folders are summed as all projects are.
    let folders = [sandbox.project(), barn_folder];
    let roots = folders.each_ref().map(|folder| folder.to_str().unwrap());
    let served = TestServer::begin(&sandbox, &["--root", roots[0], "--root", roots[1]]);
    served.gets("/usage").with_status(200).says("2 attempts of 2 loops");
    served.ends();
}

#[test]
fn the_log_of_a_gate_that_printed_nothing_before_the_first_iteration_is_empty() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let words = ["start", "--command", &agent, "--name", "job", "--gate", "exit 127", "--quiet", "p"];
    sandbox.refrain(&words).with_code(14);
    let served = TestServer::begin(&sandbox, &[]);
    let page = format!("/p/{}/job", project(&served));
    let shown = served.gets(&page).with_status(200).body;
    let log = format!("{page}/attempts/0/logs/gate:exit:1");
    assert!(shown.contains(&log), "{shown}");
    served.gets(&log).with_status(200);
    served.ends();
}

#[test]
fn the_page_of_a_discarded_loop_offers_what_is_possible() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo made > made.txt\n{CLAIM}"));
    let place = ["--worktree", "--git-workflow", "commit", "--gate", "true", "--quiet", "p"];
    sandbox.refrain(&[&["start", "--command", &agent, "--name", "job"][..], &place].concat()).with_code(0);
    let served = TestServer::begin(&sandbox, &[]);
    let page = format!("/p/{}/job", project(&served));
    let before = served.gets(&page).with_status(200).body;
    assert!(before.contains("Merge…") && before.contains(">Archive<"), "{before}");
    sandbox.refrain(&["discard", "job"]).with_code(0);
    let after = served.gets(&page).with_status(200).body;
    assert!(!after.contains("Merge…") && !after.contains(">Archive<"), "{after}");
    assert!(after.contains("-job, discarded") && after.contains("Archived"), "{after}");
    served.ends();
}
