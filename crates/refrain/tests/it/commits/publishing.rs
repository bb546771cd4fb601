//! From commit to merge: a loop that pushes, opens a pull request, waits for its checks and merges, with a real bare
//! repository and a forge on loopback; and its behaviour on errors.

mod planted;
mod token;

use serde_json::Value;
use testkit::{Fault, Forge, Invocation, Limit, Run, Sandbox, write};

use crate::{CLAIM, sandbox};

const GREEN: &[(&str, &str)] = &[("build", "success")];
const RED: &[(&str, &str)] = &[("build", "failure")];
const RUNNING: &[(&str, &str)] = &[("build", "in_progress")];

/// A project whose `origin` is a forge that has all of it.
struct ForgeProject {
    forge: Forge,
    sandbox: Sandbox,
    own: Vec<(&'static str, String)>,
}

/// The user's token for the forge when `gh` has no login.
const TOKEN: &str = "ghp_0123456789abcdef";

impl ForgeProject {
    fn new() -> Self {
        let sandbox = sandbox();
        let forge = Forge::github(sandbox.root());
        sandbox.git(&["remote", "add", "origin", &forge.url()]);
        let place = Self { forge, sandbox, own: Vec::new() };
        place.git(&["push", "--quiet", "origin", "main"]).with_code(0);
        place
    }

    /// The same when `gh` has no login, and only the token is accepted.
    fn by_token() -> Self {
        let place = Self::new();
        place.forge.rule("logged-out", Some(""));
        place.forge.change(|world| world.token = Some(TOKEN.to_owned()));
        let own = vec![("GITHUB_API_URL", place.forge.api_url())];
        Self { own, ..place }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.own.push((name, value.to_owned()));
        self
    }

    fn in_it(&self, command: Invocation) -> Invocation {
        let env = self.forge.env().into_iter().chain(self.own.clone());
        env.fold(command, |command, (name, value)| command.env(name, &value))
    }

    fn refrain(&self, args: &[&str]) -> Run {
        self.in_it(self.sandbox.command(args)).run()
    }

    fn git(&self, args: &[&str]) -> Run {
        self.in_it(self.sandbox.tool("git", args)).run()
    }

    /// A loop of this agent's, with this workflow.
    fn start(&self, agent: &str, workflow: &str, more: &[&str]) -> Run {
        let mut words = vec!["start", "Do all parts.", "--command", agent, "--name", "job", "-m", "4"];
        words.extend(["--git-workflow", workflow]);
        words.extend(more);
        self.refrain(&words)
    }

    /// Writes one file an iteration; claims in its second.
    fn writer(&self) -> String {
        self.sandbox.agent(
            "writer",
            &format!(
                r#"echo "part $REFRAIN_ITERATION" > "part-$REFRAIN_ITERATION.txt"
printf '%s' "$*" > "$NOTES/prompt-$REFRAIN_ITERATION"
[ "$REFRAIN_ITERATION" = 1 ] || {CLAIM}"#
            ),
        )
    }

    fn status(&self) -> Value {
        self.sandbox.status("job")
    }

    fn effects(&self) -> Vec<String> {
        let of = |record: &Value| {
            let data = &record["event"]["data"];
            let result = data["result"].as_object().map_or("", |it| it.keys().next().unwrap().as_str());
            format!("{} {result}", data["effect"].as_str().unwrap())
        };
        let settled = |record: &&Value| record["event"]["type"] == "publish.settled";
        self.sandbox.journal("job").iter().filter(settled).map(of).collect()
    }

    fn local(&self, revision: &str) -> String {
        self.sandbox.git(&["rev-parse", revision]).trim().to_owned()
    }
}

#[test]
fn each_commit_is_pushed_and_nothing_is_forced() {
    let place = ForgeProject::new();
    let agent = place.writer();
    let run = place.start(&agent, "push", &[]).with_code(0);
    assert!(run.stdout.contains("git    commits what each iteration changed, and pushes it"), "{run:?}");
    assert_eq!(place.effects(), ["push pushed"; 2]);
    assert_eq!(place.forge.head("main"), Some(place.local("HEAD")));
    let status = place.status();
    assert_eq!(status["publication"]["pushed"], place.local("HEAD").as_str());
    assert!(status["reason"].as_str().unwrap().ends_with("; pushed to origin/main"), "{status}");
}

#[test]
fn pushed_work_of_others_is_rebased_onto_and_proven_with_the_work() {
    let place = ForgeProject::new();
    let agent = place.writer();
    let theirs = std::cell::Cell::new(String::new());
    place.forge.change(|world| theirs.set(world.commit("main", "other.txt", "theirs\n")));
    let gate = format!("ls >> {}", place.sandbox.root().join("notes/seen").display());
    place.start(&agent, "push", &["--gate", &format!("seen={gate}")]).with_code(0);
    assert_eq!(place.effects(), ["push rebased", "push pushed", "push pushed"]);
    assert_eq!(place.local("HEAD~2"), theirs.take());
    let seen = place.sandbox.note("seen");
    assert!(seen.contains("other.txt\npart-1.txt"), "the gates saw both: {seen}");
    assert_eq!(place.status()["commits"].as_array().unwrap().len(), 2);
    let log = place.sandbox.git(&["log", "--format=%H", "HEAD~2..HEAD"]);
    let commits: Vec<_> = log.lines().rev().collect();
    assert_eq!(place.status()["commits"], serde_json::json!(commits), "those that are in the history");
}

#[test]
fn a_gate_failure_after_a_rebase_names_the_commits_of_others() {
    let place = ForgeProject::new();
    place.forge.change(|world| drop(world.commit("main", "other.txt", "theirs\n")));
    let agent = place.writer();
    place.start(&agent, "push", &["--gate", "alone=test ! -e other.txt", "--on-stuck", "stop"]);
    let told = place.sandbox.note("prompt-2");
    assert!(told.contains("OTHERS' COMMITS CAME IN: others pushed"), "{told}");
    assert!(told.contains("GATE FAILED: alone"), "{told}");
}

#[test]
fn a_foreign_branch_of_the_same_name_is_not_built_upon() {
    let place = ForgeProject::new();
    place.forge.change(|world| {
        world.commit("mine", "theirs.txt", "theirs\n");
    });
    let theirs = place.forge.head("mine");
    let agent = place.writer();
    let run = place.start(&agent, "pr", &["--branch-template", "mine"]).with_code(14);
    assert!(run.stdout.contains("origin has a branch mine already"), "{run:?}");
    assert_eq!((place.forge.head("mine"), place.forge.done("open")), (theirs, 0));
    assert!(!place.sandbox.git(&["log", "--format=%s", "mine"]).contains("Somebody else's"));
}

#[test]
fn a_conflict_is_given_to_the_agent() {
    let place = ForgeProject::new();
    place.forge.change(|world| drop(world.commit("main", "part-1.txt", "theirs\n")));
    let agent = place.sandbox.agent(
        "merger",
        &format!(
            r#"printf '%s' "$*" > "$NOTES/prompt-$REFRAIN_ITERATION"
if [ "$REFRAIN_ITERATION" = 1 ]; then echo ours > part-1.txt; {CLAIM}; exit; fi
theirs=$(sed -n 's/.*Their newest commit is \([0-9a-f]*\):.*/\1/p' "$NOTES/prompt-2")
git merge -q "$theirs" >/dev/null 2>&1
printf 'theirs\nours\n' > part-1.txt
git commit -qam 'Keep both' && {CLAIM}"#
        ),
    );
    place.start(&agent, "push", &[]).with_code(0);
    assert_eq!(place.effects(), ["push conflict", "push pushed"]);
    let told = place.sandbox.note("prompt-2");
    assert!(
        told.contains("CONFLICT: others pushed") && told.contains("part-1.txt: changed on both sides"),
        "{told}"
    );
    assert!(told.contains("What this loop did:") && told.contains("+theirs"), "both sides: {told}");
    assert_eq!(place.forge.head("main"), Some(place.local("HEAD")));
}

#[test]
fn a_pull_request_is_a_draft_until_it_is_proven_and_its_checks_decide() {
    let place = ForgeProject::new();
    place.forge.change(|world| {
        world.workflows.push("ci".to_owned());
        world.add_checks(&[&[], RUNNING, RED]);
        world.add_checks(&[GREEN]);
        world.log = "assertion failed: two is not one\n".to_owned();
    });
    let agent = place.writer();
    let run = place.start(&agent, "pr", &["--gate", "all=test -f part-1.txt"]).with_code(0);
    assert_eq!(
        place.effects(),
        [
            "push pushed",
            "open requested",
            "push pushed",
            "ready requested",
            "look checked",
            "look checked",
            "look checked",
            "push pushed",
            "ready requested",
            "look checked"
        ]
    );
    assert!(run.stdout.contains("opened https://github.com/owner/project/pull/1 as a draft"), "{run:?}");
    let told = place.sandbox.note("prompt-3");
    assert!(told.contains("CLAIM REFUSED: your work was pushed, but these checks"), "{told}");
    assert!(told.contains("assertion failed: two is not one"), "{told}");
    let (title, body) = place.forge.said(1);
    assert_eq!(title, "Do all parts.");
    assert!(body.contains("The agent claimed it done by its promise after 3 iterations."), "{body}");
    assert!(body.contains("| all | passed | yes |") && body.contains("Refrain-Loop: job"), "{body}");
    assert_eq!(
        (place.forge.done("open"), place.forge.done("draft")),
        (1, 1),
        "a draft again while checks fail"
    );
    assert!(place.sandbox.git(&["branch", "--show-current"]).starts_with("loop/"));
    assert_eq!(place.forge.head("main"), Some(place.local("main")), "nothing is merged");
}

#[test]
fn a_persons_pull_request_text_and_branch_are_kept() {
    let place = ForgeProject::new();
    place.forge.change(|world| world.workflows.push("ci".to_owned()));
    place.forge.change(|world| {
        world.add_checks(&[RED]);
        world.add_checks(&[GREEN]);
    });
    place.sandbox.git(&["switch", "-q", "-c", "mine"]);
    place.sandbox.git(&["commit", "-q", "--allow-empty", "-m", "Begin"]);
    place.git(&["push", "--quiet", "origin", "mine"]).with_code(0);
    let words = ["api", "--hostname", "github.com", "--method", "POST", "--input", "-", "--"];
    let opening =
        r#"{"head": "mine", "base": "main", "title": "Mine", "body": "My own words.", "draft": true}"#;
    let open = place.sandbox.tool("gh", &[&words[..], &["repos/owner/project/pulls"]].concat());
    place.in_it(open).stdin(opening).run().with_code(0);
    let agent = place.writer();
    let run = place.start(&agent, "pr-merge", &["--no-create-branch"]).with_code(0);
    assert!(run.stdout.contains("its branch is kept: it was there before the loop was"), "{run:?}");
    assert_eq!(place.sandbox.git(&["branch", "--show-current"]).trim(), "mine");
    let (title, body) = place.forge.said(1);
    assert_eq!((title.as_str(), place.forge.done("open"), place.forge.done("draft")), ("Mine", 1, 0));
    assert!(body.starts_with("My own words.\n\n<!-- refrain: job -->\nTask:"), "{body}");
    assert_eq!(body.matches("Refrain-Loop: job").count(), 1, "it was told twice: {body}");
}

#[test]
fn a_green_pull_request_is_merged_and_the_base_is_checked_out_again() {
    let place = ForgeProject::new();
    place.forge.change(|world| {
        world.workflows.push("ci".to_owned());
        world.add_checks(&[RUNNING, GREEN]);
    });
    write(&place.sandbox.project().join("mine.txt"), "not the loop's\n");
    let agent = place.writer();
    let run = place.start(&agent, "pr-merge", &[]).with_code(0);
    let effects = place.effects();
    assert_eq!(
        effects[effects.len() - 3..],
        ["look checked", "merge merged", "return returned"],
        "{effects:?}"
    );
    assert_eq!(place.forge.done("merge"), 1);
    assert_eq!(place.sandbox.git(&["branch", "--list", "--format=%(refname:short)"]).trim(), "main");
    assert_eq!(place.forge.head("main"), Some(place.local("HEAD")), "squashed, and here already");
    assert_eq!(place.sandbox.git(&["log", "--format=%s", "main"]).lines().count(), 2, "one commit of it");
    assert!(place.sandbox.project().join("part-2.txt").exists());
    assert!(place.sandbox.project().join("mine.txt").exists(), "what was the person's stays theirs");
    assert!(run.stdout.contains("back on the base; its branch is gone"), "{run:?}");
    assert!(place.status()["publication"]["merged"].as_bool().unwrap());
}

#[test]
fn a_worktree_of_its_own_goes_when_its_work_is_merged() {
    let place = ForgeProject::new();
    let agent = place.writer();
    let run = place.start(&agent, "pr-merge", &["--worktree", "--gate", "true"]).with_code(0);
    assert!(run.stdout.contains("no checks are configured"), "{run:?}");
    assert_eq!(place.forge.done("merge"), 1);
    assert_eq!(place.sandbox.git(&["worktree", "list"]).lines().count(), 1, "{run:?}");
    assert_eq!(place.sandbox.git(&["branch", "--list", "--format=%(refname:short)"]).trim(), "main");
    assert_eq!(place.forge.head("main").map(|_| ()), Some(()));
}

#[test]
fn each_effect_happens_once_whenever_its_answer_is_lost() {
    for fault in [Fault::Before, Fault::During, Fault::After] {
        for effect in ["open", "merge"] {
            let place = ForgeProject::new();
            place.forge.dies(effect, fault);
            let agent = place.writer();
            let run = place.start(&agent, "pr-merge", &["--gate", "true"]);
            assert_eq!(run.code, 0, "{effect} {fault:?}: {run:?}");
            assert_eq!((place.forge.done("open"), place.forge.done("merge")), (1, 1), "{effect} {fault:?}");
        }
    }
}

#[test]
fn a_runner_that_dies_over_an_effect_is_followed_by_one_that_looks() {
    for (effect, fault) in
        [("open", Fault::Before), ("open", Fault::After), ("merge", Fault::Before), ("merge", Fault::After)]
    {
        let place = ForgeProject::new();
        let agent = place.writer();
        let held = place.forge.holds(effect, fault);
        let mut words = vec!["start", "Do all parts.", "--command", &agent, "--name", "job", "-m", "4"];
        words.extend(["--git-workflow", "pr-merge", "--gate", "true"]);
        let session = place.in_it(place.sandbox.command(&words)).spawn();
        held.wait();
        session.kill();
        held.release();
        place.refrain(&["resume", "job"]).with_code(0);
        assert_eq!((place.forge.done("open"), place.forge.done("merge")), (1, 1), "{effect} {fault:?}");
    }
}

#[test]
fn a_push_that_is_cut_off_is_looked_for_at_the_other_end() {
    for rule in ["cut-off-before", "cut-off-after"] {
        let place = ForgeProject::new();
        place.forge.rule(rule, Some(""));
        let agent = place.writer();
        place.start(&agent, "push", &[]).with_code(0);
        assert_eq!(place.forge.head("main"), Some(place.local("HEAD")), "{rule}");
    }
}

#[test]
fn a_loop_that_needs_a_person_to_publish_blocks_and_continues_from_there() {
    let cases: &[(&str, &str, &str, &str)] = &[
        ("read-only", "push", "does not let us in", "ask an owner of the repository for the right to push"),
        ("declines", "push", "a hook declined the push", "correct what the hook objects to"),
        ("logged-out", "pr", "gh auth login", "log in to the forge"),
    ];
    for (rule, workflow, why, cure) in cases {
        let place = ForgeProject::new();
        // It holds from the claim on: the loop continues without one.
        let agent = place.writer();
        let agent = if *rule == "logged-out" {
            let rule = place.sandbox.root().join("forge/rules/logged-out");
            place.sandbox.agent(
                "late",
                &format!("{agent} \"$@\"; [ \"$REFRAIN_ITERATION\" = 1 ] || touch {}", rule.display()),
            )
        } else {
            place.forge.rule(rule, Some("no, by rule"));
            agent
        };
        let run = place.start(&agent, workflow, &[]).with_code(14);
        let status = place.status();
        let (reason, needs) = (status["reason"].as_str().unwrap(), status["needs"].as_str().unwrap());
        assert!(
            reason.contains("it is done, but cannot be published: ") && reason.contains(why),
            "{rule}: {reason}"
        );
        assert!(needs.contains(cure) && needs.ends_with("then refrain resume job"), "{rule}: {needs}");
        assert!(run.stdout.contains("could not"), "{run:?}");
        place.forge.rule(rule, None);
        place.refrain(&["resume", "job"]).with_code(0);
        assert_eq!(place.status()["iteration"], 2, "nothing was done twice");
    }
}

#[test]
fn reviews_that_are_required_and_branches_that_are_gone_park_it() {
    let place = ForgeProject::new();
    place.forge.change(|world| world.review = Some("REVIEW_REQUIRED"));
    let agent = place.writer();
    place.start(&agent, "pr-merge", &["--gate", "true"]).with_code(14);
    let status = place.status();
    assert!(status["reason"].as_str().unwrap().contains("a person has to approve it"), "{status}");
    place.forge.change(|world| world.review = Some("APPROVED"));
    place.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(place.forge.done("merge"), 1);

    let place = ForgeProject::new();
    let script =
        format!("{} \"$@\"; [ $REFRAIN_ITERATION = 1 ] || git push -q origin :branch-of-it", place.writer());
    let agent = place.sandbox.agent("deleter", &script);
    place.start(&agent, "pr", &["--branch-template", "branch-of-it"]).with_code(14);
    let status = place.status();
    assert!(status["reason"].as_str().unwrap().contains("the branch was deleted at the remote"), "{status}");
}

#[test]
fn a_base_that_moved_is_merged_by_the_agent() {
    let place = ForgeProject::new();
    place.forge.at_question("merge", 1, |world| drop(world.commit("main", "part-2.txt", "theirs\n")));
    let agent = place.sandbox.agent(
        "merger",
        &format!(
            r#"printf '%s' "$*" > "$NOTES/prompt-$REFRAIN_ITERATION"
theirs=$(sed -n 's/.*Their newest commit is \([0-9a-f]*\):.*/\1/p' "$NOTES/prompt-$REFRAIN_ITERATION")
if [ -n "$theirs" ]; then git merge -q -X ours "$theirs" -m 'Keep both' >/dev/null 2>&1; else echo ours > part-2.txt; fi
{CLAIM}"#
        ),
    );
    place.start(&agent, "pr-merge", &["--gate", "true"]).with_code(0);
    assert_eq!(place.forge.done("merge"), 1);
    assert!(place.effects().contains(&"merge conflict".to_owned()), "{:?}", place.effects());
}

#[test]
fn a_rate_limit_of_the_forge_is_waited_for() {
    let place = ForgeProject::new();
    let agent = place.writer();
    place.forge.change(|world| world.add_checks(&[GREEN]));
    place.forge.limits(&[Limit::Secondary(1)]);
    // It runs into it at its start, which does not keep it from being started.
    place.start(&agent, "pr", &[]).with_code(0);
    assert_eq!(place.forge.done("open"), 1);
}

#[test]
fn missing_publishing_requirements_are_reported_before_a_loop_begins() {
    let sandbox = sandbox();
    let agent = sandbox.agent("never", "touch \"$NOTES/ran\"");
    let start = |more: &[&str]| {
        let mut words = vec!["start", "x", "--command", &agent];
        words.extend(more);
        sandbox.refrain(&words)
    };
    let run = start(&["--git-workflow", "push"]).with_code(1);
    assert!(run.stderr.contains("there is no remote to push to"), "{run:?}");
    sandbox.git(&["remote", "add", "origin", "https://example.invalid/a/b.git"]);
    let run = start(&["--open-pr"]).with_code(1);
    assert!(run.stderr.contains("none of them is for https://example.invalid/a/b.git"), "{run:?}");
    let run = start(&["--git-workflow", "publish"]).with_code(2);
    assert!(run.stderr.contains("accepted: none, commit, push, pr, pr-merge"), "{run:?}");
    start(&["--git-workflow", "pr", "--pr-and-merge"]).with_code(2);
    assert!(!sandbox.root().join("notes/ran").exists());

    let place = ForgeProject::new();
    place.forge.rule("logged-out", Some(""));
    let run = place.start(&agent, "pr", &[]).with_code(1);
    assert!(run.stderr.contains("gh auth login"), "{run:?}");
    place.forge.rule("logged-out", None);
    let run = place.start(&agent, "pr", &["--no-create-branch"]).with_code(1);
    assert!(run.stderr.contains("main is what pull requests are for"), "{run:?}");
}

#[test]
fn unproven_work_is_merged_only_after_a_resume_by_a_person() {
    let place = ForgeProject::new();
    let agent = place.writer();
    let run = place.start(&agent, "pr-merge", &[]).with_code(14);
    assert!(run.stdout.contains("says that no gate checks it"), "{run:?}");
    let status = place.status();
    assert!(
        status["reason"].as_str().unwrap().contains("no gate here and no check there has proven it"),
        "{status}"
    );
    assert_eq!(status["needs"], "look it through: going on merges it, then refrain resume job");
    assert_eq!(place.forge.done("merge"), 0);
    place.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(place.forge.done("merge"), 1);
}

#[test]
fn a_secret_of_the_persons_own_is_not_pushed_with_the_work() {
    let place = ForgeProject::new();
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    write(&place.sandbox.project().join("conf.txt"), format!("token = {token}\n"));
    place.git(&["add", "conf.txt"]).with_code(0);
    place.git(&["commit", "--quiet", "-m", "mine"]).with_code(0);
    let agent = place.writer();
    place.start(&agent, "push", &[]).with_code(14);
    assert!(place.status()["reason"].as_str().unwrap().contains("conf.txt"), "{}", place.status());
    assert_ne!(place.forge.head("main"), Some(place.local("HEAD")));
}
