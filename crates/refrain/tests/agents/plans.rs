//! A whole plan with each program: thirteen tasks with conflicts among them, sequentially and in parallel, with the
//! runner killed by -9 twice; and the resulting history.

mod slugs;

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use testkit::{Agent, Project, Script, Session, Signal, within, write};

use self::slugs::{TAG, TASKS, Task, VERIFY, file, told, work};
use crate::bench::Bench;

/// How long a plan may take: some twenty runs of a real program, on a machine that does much else.
const LONG: Duration = Duration::from_secs(900);

/// In the prompt of the second task that changed the same lines.
const CONFLICT: &str = "CONFLICT:";

/// A bench with the package in it, its plan, and files that a person has changed. None without Python, with a note.
fn bench(agent: Agent) -> Option<Bench> {
    let mut bench = Bench::new(agent, []);
    bench.model.rewrite(Script::by_request(work));
    let laid = Project::PYTHON.lay(&bench.sandbox)?;
    let path = bench.real.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| laid.path(path));
    bench.real = bench.real.with("PATH", &path.expect("every program has a PATH"));
    let project = bench.sandbox.project();
    for (path, text) in laid.project.mends {
        write(&project.join(path), text);
    }
    fs::create_dir_all(project.join(".scud/tasks")).expect("a folder can be made");
    write(&project.join(".scud/tasks/slugs.json"), file());
    bench.sandbox.git(&["add", "--all"]);
    bench.sandbox.git(&["commit", "--quiet", "--message", "Plan what is to come"]);
    write(&project.join("README.md"), "# slugs, said better\n");
    write(&project.join("ideas.txt"), "Mine.\n");
    Some(bench)
}

/// Kills the runner as soon as an agent receives this; then no process is left.
#[track_caller]
fn killed(bench: &Bench, session: Session, told: &str) {
    let is_told = |prompt: &String| prompt.contains(told);
    // A whole wave may come before, so this may take longer than one thing may.
    within(LONG, &format!("an agent that is told {told:?}"), || {
        bench.model.prompts().iter().any(is_told).then_some(())
    });
    session.signal_group(Signal::KILL);
    session.wait().with_code(128 + 9);
    bench.sandbox.no_process_is_left();
    let status = bench.refrain(&["plan", "status", TAG, "--json"]).run().with_code(0).json();
    assert_eq!(status["status"], "crashed", "{status:#}");
}

/// Run, killed as soon as agents receive these, resumed, completed.
#[track_caller]
fn lands_a_plan(agent: Agent, jobs: &str, kills: [&str; 2]) -> Option<Bench> {
    let bench = bench(agent)?;
    let began = bench.sandbox.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let words = ["plan", "run", "--tag", TAG, "--name", TAG, "--agent", agent.name(), "--jobs", jobs];
    let words = words.into_iter().map(str::to_owned);
    let more = ["--verify", VERIFY, "--permissions", "full"].map(str::to_owned);
    let extra = bench.real.extra.iter().map(|word| format!("--agent-arg={word}"));
    let words: Vec<String> = words.chain(more).chain(extra).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    killed(&bench, bench.refrain(&words).spawn(), kills[0]);
    let resume = ["plan", "resume", TAG];
    killed(&bench, bench.refrain(&resume).spawn(), kills[1]);
    let done = bench.refrain(&resume).spawn().wait_at_most(LONG).with_code(0);
    bench.sandbox.no_process_is_left();
    assert!(done.stdout.contains("complete wave 5"), "{}", done.stdout);

    let status = bench.refrain(&["plan", "status", TAG, "--json"]).run().with_code(0).json();
    assert_eq!((&status["status"], &status["verified"]), (&"completed".into(), &true.into()), "{status:#}");
    has_a_history(&bench, &began);
    leaves_nothing_behind(&bench);
    Some(bench)
}

/// A commit a wave on the first-parent line, with its files only; on its second parent a commit a task; each of them
/// passes.
#[track_caller]
fn has_a_history(bench: &Bench, began: &str) {
    let git = |words: &[&str]| bench.sandbox.git(words);
    let lines = |words: &[&str]| git(words).lines().map(str::to_owned).collect::<Vec<_>>();
    let since = format!("{began}..HEAD");
    let waves = lines(&["rev-list", "--reverse", "--first-parent", &since]);
    assert_eq!(waves.len(), 5, "{}", git(&["log", "--graph", "--oneline", &since]));
    for (n, wave) in (1..).zip(&waves) {
        let subject = git(&["log", "-1", "--format=%s", wave]);
        assert_eq!(subject.trim(), format!("feat({TAG}): complete wave {n}"));
        let its = || TASKS.iter().filter(|task| task.wave == n);
        let before = format!("{wave}^1");
        let changed = lines(&["diff", "--name-only", &before, wave]);
        let changed: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
        assert_eq!(changed, its().flat_map(|task| task.files).copied().collect(), "wave {n}");

        let chain = format!("{wave}^1..{wave}^2");
        assert_eq!(git(&["rev-list", "--merges", &chain]), "", "wave {n} is a chain");
        let behind = lines(&["rev-list", &chain]);
        let message = |commit: &String| git(&["log", "-1", "--format=%B", commit]);
        let messages: BTreeSet<String> = behind.iter().map(message).collect();
        assert_eq!(behind.len(), its().count(), "one commit a task: {messages:#?}");
        for Task { id, title, .. } in its() {
            // Later commits are the round's.
            let begin =
                format!("{title}\n\nRefrain-Plan: {TAG}\nRefrain-Task: {id}\nRefrain-Loop: {TAG}-{id}-");
            assert!(messages.iter().any(|message| message.starts_with(&begin)), "{begin} {messages:#?}");
        }
    }
    let whose = "--format=%an <%ae> %cn <%ce>";
    let person = git(&["log", "-1", whose, began]);
    let others = lines(&["log", whose, &since]).into_iter().filter(|name| name != person.trim());
    assert_eq!(others.collect::<Vec<_>>(), Vec::<String>::new(), "in the name of the person");
    let marks = git(&["log", "--oneline", "--diff-merges=first-parent", "-G", "^(<<<<<<<|>>>>>>>) ", &since]);
    assert_eq!(marks, "", "marks of a conflict");
    // Every commit works by itself, so that a bisection finds the one that broke something.
    let all = lines(&["rev-list", &since]);
    assert_eq!(all.len(), TASKS.len() + waves.len(), "{all:?}");
    for commit in &all {
        let folder = bench.sandbox.root().join("tmp").join(commit);
        fs::create_dir(&folder).expect("a folder can be made");
        let script =
            format!("git archive {commit} | tar -x -C '{0}' && cd '{0}' && {VERIFY}", folder.display());
        bench.sandbox.tool("sh", &["-c", &script]).envs(&bench.real.env).run().with_code(0);
    }
}

/// The person's own files are as they were, all tasks are done, and nothing of the plan lies about.
#[track_caller]
fn leaves_nothing_behind(bench: &Bench) {
    let git = |words: &[&str]| bench.sandbox.git(words);
    assert_eq!(git(&["symbolic-ref", "HEAD"]), "refs/heads/main\n");
    assert_eq!(
        git(&["status", "--porcelain"]),
        " M .scud/tasks/slugs.json\n M README.md\n?? ideas.txt\n",
        "only what the person has changed, and the statuses"
    );
    assert_eq!(bench.file("README.md") + &bench.file("ideas.txt"), "# slugs, said better\nMine.\n");
    let tasks = bench.file(".scud/tasks/slugs.json");
    assert_eq!(tasks, file().replace("\"pending\"", "\"done\""), "nothing but the statuses");
    assert_eq!(git(&["for-each-ref", "refs/heads", "--format=%(refname)"]), "refs/heads/main\n");
    let worktrees = git(&["worktree", "list", "--porcelain"]);
    let worktrees = worktrees.lines().filter_map(|line| line.strip_prefix("worktree ")).skip(1);
    let worktrees: Vec<&str> = worktrees.collect();
    assert!(!worktrees.is_empty(), "the pool stays");
    for worktree in worktrees {
        assert_eq!(git(&["-C", worktree, "status", "--porcelain"]), "", "{worktree}");
    }
}

/// In the order of the file, one loop at a time.
#[track_caller]
fn lands_a_plan_in_turn(agent: Agent) {
    let Some(bench) = lands_a_plan(agent, "1", ["You work on task 2 ", "You work on task 8 "]) else {
        return;
    };
    let mut order: Vec<usize> = Vec::new();
    for task in bench.model.prompts().iter().filter_map(|prompt| told(prompt)) {
        if !order.contains(&task.id) {
            order.push(task.id);
        }
    }
    assert_eq!(order, TASKS.iter().map(|task| task.id).collect::<Vec<_>>());
}

/// A conflict goes back with both sides; so does one of two tasks that fail only together.
#[track_caller]
fn lands_a_plan_side_by_side(agent: Agent) {
    let Some(bench) = lands_a_plan(agent, "4", ["You work on task 2 ", CONFLICT]) else { return };
    let prompts = bench.model.prompts();
    for (path, sides) in [
        ("src/slugs/__init__.py", ["+from .words import words", "+from .limits import LONGEST"]),
        ("CHANGES.md", ["+- `LONGEST` is how long a name may be.", "+- `initials` is new."]),
    ] {
        let named = |prompt: &&String| {
            prompt.contains(CONFLICT)
                && prompt.contains(&format!("\n- {path}\n"))
                && sides.iter().all(|side| prompt.contains(side))
        };
        assert!(prompts.iter().any(|prompt| named(&prompt)), "{path}: {prompts:#?}");
    }
    let refused = prompts.iter().find(|prompt| prompt.contains("NOT LANDED:"));
    let refused = refused.unwrap_or_else(|| panic!("7 or 8 goes back: {prompts:#?}"));
    assert!(
        refused.contains(VERIFY) && refused.contains("missing 1 required positional argument"),
        "{refused}"
    );
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_lands_a_plan_in_turn() {
    lands_a_plan_in_turn(Agent::Claude);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_lands_a_plan_in_turn() {
    lands_a_plan_in_turn(Agent::Codex);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_lands_a_plan_in_turn() {
    lands_a_plan_in_turn(Agent::OpenCode);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_lands_a_plan_in_turn() {
    lands_a_plan_in_turn(Agent::Gemini);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_lands_a_plan_side_by_side() {
    lands_a_plan_side_by_side(Agent::Claude);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_lands_a_plan_side_by_side() {
    lands_a_plan_side_by_side(Agent::Codex);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_lands_a_plan_side_by_side() {
    lands_a_plan_side_by_side(Agent::OpenCode);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_lands_a_plan_side_by_side() {
    lands_a_plan_side_by_side(Agent::Gemini);
}
