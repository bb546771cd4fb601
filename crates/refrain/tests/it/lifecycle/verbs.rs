//! Starting under names, resuming after every kind of end, archiving, and the default loop of a verb.

use serde_json::json;
use testkit::Sandbox;

use crate::{CLAIM, plain_folder, sandbox};

/// Starts a loop that stops at its cap after one iteration.
fn capped(sandbox: &Sandbox, id: &str) {
    let agent = sandbox.agent("silent", "echo nothing yet");
    sandbox.refrain(&["start", "--command", &agent, "--name", id, "-m", "1", "p"]).with_code(10);
}

#[test]
fn a_capped_loop_continues_only_after_a_grant() {
    let sandbox = sandbox();
    capped(&sandbox, "job");
    assert_eq!(sandbox.status("job")["status"], "iteration-cap");
    let before = sandbox.snapshot();
    for words in [["resume", "job"].as_slice(), &["resume", "job", "-m", "1"]] {
        let refused = sandbox.refrain(words).with_code(17);
        assert!(refused.stderr.contains("refrain resume job --max-iterations 3"), "{}", refused.stderr);
    }
    let refused = sandbox.refrain(&["resume", "job", "--max-iterations", "202"]).with_code(2);
    assert!(refused.stderr.contains("202") && refused.stderr.contains("201"), "{}", refused.stderr);
    assert!(sandbox.snapshot() == before, "a refusal touches nothing");
    let run = sandbox.refrain(&["resume", "job", "--max-iterations", "2"]).with_code(10);
    assert!(run.has_line("[loop job iteration 2/2]"), "a total, no addition: {}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["max_iterations"], &status["charged"]), (&json!(2), &json!(2)));
}

#[test]
fn a_loop_over_its_time_continues_after_a_grant() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "agent",
        &format!("test $REFRAIN_ATTEMPT$REFRAIN_ITERATION != 11 && {CLAIM} || exec sleep 1000"),
    );
    sandbox
        .refrain(&["start", "--command", &agent, "--name", "job", "--max-duration", "200ms", "p"])
        .with_code(12);
    sandbox.no_process_is_left();
    assert_eq!(sandbox.status("job")["status"], "timed-out");
    let refused = sandbox.refrain(&["resume", "job"]).with_code(17);
    assert!(refused.stderr.contains("refrain resume job --max-duration"), "{}", refused.stderr);
    sandbox.refrain(&["resume", "job", "--max-duration", "10m"]).with_code(0);
}

#[test]
fn a_blocked_loop_continues_once_the_person_has_acted() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("test -e fixed || {{ echo no key >&2; exit 1; }}\n{CLAIM}"));
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(14);
    assert!(run.stdout.contains("no key"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!(
        (&status["status"], &status["charged"]),
        (&json!("blocked"), &json!(3)),
        "churn: three instant failures"
    );
    assert!(status["needs"].is_string());
    testkit::write(&sandbox.project().join("fixed"), "");
    sandbox.refrain(&["resume", "job"]).with_code(0);
}

#[test]
fn an_agent_that_exits_0_without_a_claim_is_no_churn() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo still at it");
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "-m", "5", "p"]).with_code(10);
    assert_eq!(sandbox.status("job")["charged"], 5);
}

#[test]
fn an_agent_that_vanishes_later_blocks_the_loop() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "rm -f \"$0\"");
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(14);
    assert!(run.stdout.contains(&agent), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["charged"]), (&json!("blocked"), &json!(1)));
    let agent = sandbox.agent("agent", CLAIM);
    assert!(!agent.is_empty());
    sandbox.refrain(&["resume", "job"]).with_code(0);
}

#[test]
fn completed_loops_stay_so() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    for words in [
        ["resume", "job"].as_slice(),
        &["resume", "job", "-m", "50"],
        &["pause", "job"],
        &["steer", "job", "x"],
    ] {
        let refused = sandbox.refrain(words).with_code(17);
        assert!(
            refused.stderr.contains("job") && refused.stderr.contains("completed"),
            "{words:?}: {}",
            refused.stderr
        );
    }
    let run = sandbox.refrain(&["cancel", "job"]).with_code(0);
    assert!(run.stdout.contains("already completed"), "{}", run.stdout);
    assert_eq!(sandbox.status("job")["status"], "completed");
}

#[test]
fn three_lost_attempts_in_a_row_block_the_loop() {
    let sandbox = sandbox();
    let agent =
        sandbox.agent("agent", "echo \"$REFRAIN_ATTEMPT\" > $NOTES/at.$REFRAIN_ATTEMPT\nexec sleep 1000");
    let mut session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    for k in 1..=3 {
        sandbox.wait_for_note(&format!("at.{k}"));
        session.kill();
        session = sandbox.spawn(&["resume", "job"]);
    }
    let run = session.wait().with_code(14);
    assert!(run.stdout.contains("blocked"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!(
        (&status["charged"], &status["started"], &status["status"]),
        (&json!(0), &json!(3), &json!("blocked"))
    );
    sandbox.no_process_is_left();
}

#[test]
fn resume_last_takes_the_one_that_was_touched_last_and_all_takes_every_paused_or_crashed_one() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "agent",
        &format!("echo x > $NOTES/$REFRAIN_LOOP_ID.$REFRAIN_ATTEMPT\ntest $REFRAIN_ATTEMPT = 1 || {{ {CLAIM}; exit; }}\nexec sleep 1000"),
    );
    let start = |id: &str| {
        let session = sandbox.spawn(&["start", "--command", &agent, "--name", id, "--share-worktree", "p"]);
        sandbox.wait_for_note(&format!("{id}.1"));
        session
    };
    for id in ["one", "two", "three"] {
        start(id).kill();
    }
    let session = start("four");
    session.signal(testkit::Signal::TERM);
    session.wait().with_code(16);
    capped(&sandbox, "five");
    sandbox.refrain(&["cancel", "one"]).with_code(0);
    // `five` was touched after `four`, but needs a grant.
    sandbox.refrain(&["steer", "four", "go on"]).with_code(0);
    let run = sandbox.refrain(&["resume", "--last"]).with_code(0);
    assert!(run.stderr.contains("four"), "{}", run.stderr);
    sandbox.refrain(&["resume", "--all"]).with_code(0);
    for id in ["two", "three"] {
        sandbox.wait_for_status(id, "completed");
    }
    let words = ["one", "four", "five"].map(|id| sandbox.status(id)["status"].clone());
    assert_eq!(words, [json!("cancelled"), json!("completed"), json!("iteration-cap")]);
}

#[test]
fn without_an_id_a_verb_that_reads_takes_the_last_touched_loop_and_others_the_only_one() {
    let sandbox = sandbox();
    capped(&sandbox, "alpha");
    for words in [["status"].as_slice(), &["logs"], &["show"]] {
        sandbox.refrain(words).with_code(0);
    }
    sandbox.refrain(&["pause"]).with_code(2);
    capped(&sandbox, "beta");
    for verb in ["status", "show", "report", "verify"] {
        let run = sandbox.refrain(&[verb]).with_code(0);
        assert!(run.stdout.contains("beta") && !run.stdout.contains("alpha"), "{verb}: {}", run.stdout);
    }
    sandbox.refrain(&["logs"]).with_code(0);
    assert!(sandbox.refrain(&["watch"]).with_code(0).stdout.contains("iteration-cap"), "it shows the end");
    sandbox.refrain(&["cancel", "alpha"]).with_code(0);
    assert!(sandbox.refrain(&["loop", "status"]).with_code(0).stdout.contains("alpha"), "touched last");
    capped(&sandbox, "delta");
    for verb in ["resume", "archive"] {
        let run = sandbox.refrain(&[verb]).with_code(2);
        assert!(run.stderr.contains("delta") && run.stderr.contains("beta"), "{verb}: {}", run.stderr);
    }
    let agent = sandbox.agent("running", "echo here > $NOTES/running\nexec sleep 1000");
    let _session = sandbox.spawn(&["start", "--command", &agent, "--name", "gamma", "p"]);
    sandbox.wait_for_note("running");
    assert!(sandbox.refrain(&["status"]).with_code(0).stdout.contains("gamma"), "it runs");
    assert!(sandbox.refrain(&["pause", "--now"]).with_code(0).stdout.contains("gamma"));
}

#[test]
fn a_taken_name_is_refused_and_a_made_up_one_says_what_runs() {
    let sandbox = sandbox();
    capped(&sandbox, "job");
    let before = sandbox.snapshot();
    let refused = sandbox.refrain(&["start", "--command", "true", "--name", "job", "p"]).with_code(17);
    assert!(refused.stderr.contains("job") && refused.stderr.contains("--name"), "{}", refused.stderr);
    assert!(sandbox.snapshot() == before, "something was touched");
    let agent = sandbox.agent("My_Agent.sh", CLAIM);
    let id =
        sandbox.refrain(&["loop", "start", "--command", &agent, "--json", "p"]).with_code(0).json()["id"]
            .clone();
    let hex = id.as_str().unwrap().strip_prefix("my-agent-").unwrap_or_default();
    assert!(hex.len() == 4 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()), "<command>-<4 hex>: {id}");
}

#[test]
fn an_archived_loop_is_out_of_the_list_its_name_is_free_and_resume_brings_it_back() {
    let sandbox = sandbox();
    capped(&sandbox, "job");
    let path = sandbox.refrain(&["archive", "job"]).with_code(0).stdout;
    assert!(std::path::Path::new(path.trim()).join("journal.jsonl").is_file(), "{path}");
    assert_eq!(sandbox.refrain(&["list", "--json"]).json(), json!([]));
    assert_eq!(sandbox.status("job")["status"], "iteration-cap", "it can still be read");
    let again = sandbox.refrain(&["archive", "job"]).with_code(3).stderr;
    assert!(again.contains("job is archived already") && again.contains("its name is free"), "{again}");
    let archived =
        |text: &str| text.lines().any(|line| line.starts_with("archived ") && line.ends_with(path.trim()));
    let text = sandbox.refrain(&["status", "job"]).with_code(0).stdout;
    assert!(archived(&text), "it says that it is put aside, and where: {text}");
    assert!(sandbox.refrain(&["logs", "job"]).with_code(0).stdout.contains("nothing yet"));
    sandbox.refrain(&["verify", "job"]).with_code(0);
    sandbox.refrain(&["resume", "job", "-m", "2"]).with_code(10);
    assert!(!archived(&sandbox.refrain(&["status", "job"]).with_code(0).stdout));
    assert_eq!(sandbox.refrain(&["list", "--json"]).json()[0]["id"], "job");

    sandbox.refrain(&["archive"]).with_code(0);
    let agent = sandbox.agent("agent", CLAIM);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    assert_eq!(sandbox.status("job")["charged"], 1, "another loop under the same name");
    let refused = sandbox.refrain(&["resume", "job"]).with_code(17).stderr;
    assert!(refused.contains("start another; refrain archive job frees its name"), "{refused}");
    sandbox.refrain(&["archive", "job"]).with_code(0);
    let refused = sandbox.refrain(&["resume", "job"]).with_code(17).stderr;
    assert!(refused.contains("start another; job is archived, so its name is free"), "{refused}");
}

#[test]
fn dash_c_and_the_working_dir_say_where() {
    let sandbox = sandbox();
    let sub = sandbox.project().join("sub");
    std::fs::create_dir(&sub).unwrap();
    let agent = sandbox.agent("agent", &format!("pwd > $NOTES/$REFRAIN_LOOP_ID\n{CLAIM}"));
    let outside = |words: &[&str]| sandbox.command(words).dir(sandbox.root()).run().with_code(0);
    outside(&["-C", "project", "start", "--command", &agent, "--name", "a", "p"]);
    outside(&["-C", "project/sub", "start", "--command", &agent, "--name", "b", "p"]);
    outside(&["start", "-C", "project", "--command", &agent, "--name", "c", "--working-dir", "sub", "p"]);
    assert_eq!(sandbox.note("a").trim(), sandbox.project().to_str().unwrap());
    assert_eq!(sandbox.note("b").trim(), sub.to_str().unwrap());
    assert_eq!(sandbox.note("c").trim(), sub.to_str().unwrap());
    let shown = outside(&["-C", "project", "status", "c"]).stdout;
    assert!(shown.lines().any(|line| line.starts_with("in ") && line.ends_with("/project/sub")), "{shown}");
    let ids = outside(&["-C", "project/sub", "list", "--json"]).json();
    assert_eq!(ids.as_array().unwrap().len(), 3, "one project: the repository");
    assert_eq!(ids[0]["project"], sandbox.project().to_str().unwrap());
}

#[test]
fn all_worktrees_of_a_repository_are_one_project() {
    let sandbox = sandbox();
    let side = sandbox.root().join("side");
    sandbox.git(&["worktree", "add", "--quiet", side.to_str().unwrap()]);
    let agent = sandbox.agent("agent", &format!("pwd > $NOTES/cwd\n{CLAIM}"));
    sandbox.command(&["start", "--command", &agent, "--name", "job", "p"]).dir(&side).run().with_code(0);
    let status = sandbox.status("job");
    assert_eq!(status["worktree"], side.to_str().unwrap());
    assert_eq!(status["project"], sandbox.project().to_str().unwrap());
    assert_eq!(sandbox.note("cwd").trim(), side.to_str().unwrap());
    assert!(side.join(".refrain/job/state.md").is_file());
    assert_eq!(
        sandbox.tool("git", &["status", "--porcelain"]).dir(&side).run().stdout,
        "",
        "git does not see .refrain"
    );
}

#[test]
fn outside_git_the_folder_is_the_project() {
    let sandbox = plain_folder();
    let agent = sandbox.agent("agent", CLAIM);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    assert!(sandbox.project().join(".refrain/data/loops/job/journal.jsonl").is_file());
    assert_eq!(sandbox.status("job")["status"], "completed");
}

#[test]
fn of_two_starts_with_one_name_the_other_hears_that_it_is_taken() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let start = ["start", "--command", &agent, "--name", "same", "--worktree", "--gate", "true", "p"];
    let both = [sandbox.spawn(&start), sandbox.spawn(&start)].map(|session| session.wait());
    let (won, lost): (Vec<_>, Vec<_>) = both.iter().partition(|run| run.code == 0);
    assert_eq!((won.len(), lost.len()), (1, 1), "{both:?}");
    assert!(lost[0].code == 17 && lost[0].stderr.contains("same exists already"), "{both:?}");
}

#[test]
fn detach_returns_once_the_runner_has_taken_over() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", &format!("read -r _ < $GATES/go\n{CLAIM}"));
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "--detach", "p"]).with_code(0);
    assert_eq!(run.stdout, "job\n");
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["runner"]["alive"]), (&json!("running"), &json!(true)));
    gate.let_one_pass();
    sandbox.wait_for_status("job", "completed");
    sandbox.no_process_is_left();
}

/// The errors that a formatter finds in the manual pages, without style warnings.
fn lint(sandbox: &Sandbox) -> String {
    sandbox.tool("sh", &["-c", "mandoc -T lint -W error ../man/*.1"]).run().stdout
}

#[test]
fn completions_and_manuals_know_every_verb_but_the_hidden_ones() {
    let sandbox = sandbox();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox.refrain(&["completions", shell]).with_code(0).stdout;
        assert!(script.contains("_REFRAIN_COMPLETES"), "{shell}: it asks the program: {script}");
        let ask = sandbox.command(&["--", "refrain", ""]).env("_REFRAIN_COMPLETES", shell);
        let answer = ask.env("_CLAP_COMPLETE_INDEX", "1").run().with_code(0).stdout;
        let verbs: Vec<_> = answer.lines().filter_map(|line| line.split([':', '\t']).next()).collect();
        assert!(["archive", "loop", "promise"].iter().all(|verb| verbs.contains(verb)), "{shell}: {answer}");
        assert!(!verbs.contains(&"drive") && !verbs.contains(&"generate"), "{shell}: {answer}");
    }
    let man = sandbox.root().join("man");
    sandbox.refrain(&["man", man.to_str().unwrap()]).with_code(0);
    let pages =
        std::fs::read_dir(&man).unwrap().flatten().map(|page| page.file_name().into_string().unwrap());
    let pages: Vec<_> = pages.collect();
    assert!(pages.contains(&"refrain-start.1".to_owned()), "{pages:?}");
    assert!(!pages.iter().any(|page| page.contains("drive") || page.contains("generate")), "{pages:?}");
    let steer = std::fs::read_to_string(man.join("refrain-steer.1")).unwrap();
    assert!(steer.contains("\\fBrefrain steer\\fR [OPTIONS] [ID] [TEXT]..."), "{steer}");
    assert!(sandbox.tool("sh", &["-c", "command -v mandoc"]).run().code != 0 || lint(&sandbox).is_empty());
    let page = sandbox.refrain(&["man"]).with_code(0).stdout;
    assert!(page.contains("Exit codes"), "{page}");
    assert!(page.contains("refrain\\-start") && !page.contains("refrain\\-drive"), "{page}");
}
