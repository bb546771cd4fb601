//! A push goes to the address that was configured when the loop started, and runs nothing that the agent configured since.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rstest::rstest;
use testkit::{Sandbox, write};

use super::{ForgeProject, TOKEN};
use crate::{CLAIM, sandbox};

/// A program that leaves a trace, and an agent that plants it and claims.
fn agent(sandbox: &Sandbox, plant: &str) -> String {
    let evil = sandbox.root().join("evil");
    write(&evil, format!("#!/bin/sh\necho \"$*\" >> '{}'\nexit 1\n", sandbox.root().join("fired").display()));
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    let theirs = sandbox.root().join("theirs.git");
    sandbox.agent(
        "planter",
        &format!(
            "EVIL='{}'; THEIRS='{}'; ORIGIN=$(git remote get-url origin)\ngit init -q --bare $THEIRS\necho x > work.txt\n{plant}\n{CLAIM}",
            evil.display(),
            theirs.display()
        ),
    )
}

#[track_caller]
fn nothing_went_elsewhere(sandbox: &Sandbox) {
    assert_eq!(
        fs::read_to_string(sandbox.root().join("fired")).unwrap_or_default(),
        "",
        "a program of the agent's was run"
    );
    let theirs = sandbox.root().join("theirs.git");
    assert_eq!(sandbox.git(&["-C", theirs.to_str().unwrap(), "for-each-ref"]), "");
}

#[rstest]
#[case::an_address_to_push_to("git config remote.origin.pushurl $THEIRS", "remote.origin.pushurl")]
#[case::an_address("git config remote.origin.url $THEIRS", "remote.origin.url")]
#[case::a_rule_for_pushes("git config url.$THEIRS.pushInsteadOf $ORIGIN", "url.")]
#[case::a_rule("git config url.$THEIRS.insteadOf $ORIGIN", "url.")]
#[case::a_rule_for_all("git config --global url.$THEIRS.insteadOf ''", "url.")]
#[case::another_remote(
    "git remote add theirs $THEIRS; git config remote.pushDefault theirs",
    "remote.theirs.url"
)]
#[case::a_remote_of_the_branch(
    "git remote add theirs $THEIRS; git config branch.main.pushRemote theirs",
    "remote.theirs.url"
)]
#[case::a_program_at_the_other_end("git config remote.origin.receivepack $EVIL", "remote.origin.receivepack")]
#[case::a_program_that_reads("git config remote.origin.uploadpack $EVIL", "remote.origin.uploadpack")]
#[case::another_protocol("cp $EVIL git-remote-evil; git config remote.origin.vcs evil", "remote.origin.vcs")]
#[case::a_remote_that_is_named_like_the_address(
    "git config remote.$ORIGIN.pushurl $THEIRS; git config remote.$ORIGIN.receivepack $EVIL",
    "remote."
)]
#[case::an_ssh("git config core.sshCommand $EVIL", "core.sshcommand")]
#[case::a_hook("cp $EVIL .git/hooks/pre-push", "hooks/pre-push")]
fn a_push_goes_where_it_went_when_the_loop_started(#[case] plant: &str, #[case] named: &str) {
    let place = ForgeProject::new();
    let agent = agent(&place.sandbox, plant);
    let run = place.start(&agent, "push", &[]).with_code(0);
    nothing_went_elsewhere(&place.sandbox);
    assert_eq!(place.forge.head("main"), Some(place.local("HEAD")), "{run:?}");
    let line = run.stdout.lines().find(|line| line.contains("changed since the start"));
    assert!(line.is_some_and(|line| line.contains(named)), "{}", run.stdout);
}

#[test]
fn a_tool_in_a_folder_of_the_project_is_not_run() {
    let place = ForgeProject::new();
    let folder = place.sandbox.project().join(".venv/bin");
    let (_, path) = place.forge.env().into_iter().find(|(name, _)| *name == "PATH").unwrap();
    let place = place.with("PATH", &format!("{}:.venv/bin:{path}", folder.display()));
    let plant = "mkdir -p .venv/bin; echo .venv > .gitignore; \
                 for name in gh glab notify-send osascript sh; do cp $EVIL .venv/bin/$name; done";
    let agent = agent(&place.sandbox, plant);
    let own = ["--create-branch", "--notify=desktop"];
    place.start(&agent, "pr", &own).with_code(0);
    assert!(place.effects().iter().any(|effect| effect.starts_with("open ")), "{:?}", place.effects());
    // Another start has a look at its gates with a shell.
    place.start("/bin/true", "none", &["--name", "other", "--gate", "test -d .venv && true", "-m", "1"]);
    nothing_went_elsewhere(&place.sandbox);
}

#[test]
fn no_helper_of_an_agent_is_asked_for_a_password() {
    let place = ForgeProject::by_token();
    place.sandbox.git(&["remote", "set-url", "origin", &place.forge.http_url()]);
    let api = place.forge.api_url();
    let place = place.with("GITHUB_SERVER_URL", &api).with("GH_ENTERPRISE_TOKEN", TOKEN);
    let plant = "git config credential.helper $EVIL; git config credential.$(dirname $(dirname $ORIGIN)).helper $EVIL; git config core.askPass $EVIL";
    let agent = agent(&place.sandbox, plant);
    place.start(&agent, "push", &[]).with_code(0);
    nothing_went_elsewhere(&place.sandbox);
    assert_eq!(place.forge.head("main"), Some(place.local("HEAD")));
}

#[test]
fn a_hook_of_a_remote_on_this_machine_is_inside_and_is_ended() {
    let sandbox = sandbox();
    let origin = sandbox.root().join("origin.git");
    sandbox.git(&["init", "-q", "--bare", origin.to_str().unwrap()]);
    sandbox.git(&["remote", "add", "origin", &format!("file://{}", origin.display())]);
    sandbox.git(&["push", "-q", "origin", "main"]);
    let (said, hook) = (sandbox.root().join("said"), origin.join("hooks/pre-receive"));
    let refrain = env!("CARGO_BIN_EXE_refrain");
    let script = format!(
        "#!/bin/sh\ncd '{}'; exec > '{}' 2>&1\nenv -u GIT_DIR -u REFRAIN_LOOP_ID {refrain} serve token\necho $?\n\
         setsid tail -f /dev/null < /dev/null &\n",
        sandbox.project().display(),
        said.display()
    );
    // No hook is there when the loop starts, so nothing is pinned.
    let planted = sandbox.root().join("hook");
    write(&planted, script);
    fs::set_permissions(&planted, fs::Permissions::from_mode(0o755)).unwrap();
    let plant = format!("cp '{}' '{}'", planted.display(), hook.display());
    let agent = agent(&sandbox, &plant);
    let words = ["start", "--command", &agent, "--name", "job", "-p", "Work.", "--git-workflow", "push"];
    let run = sandbox.refrain(&words).with_code(0);
    let said = fs::read_to_string(said).unwrap_or_default();
    assert!(said.contains("loop job cannot open a server from inside an attempt"), "{said}: {run:?}");
    assert!(said.ends_with("17\n"), "{said}");
    sandbox.no_process_is_left();
}

#[test]
fn the_failure_branch_is_pushed_to_the_original_remote() {
    let sandbox = sandbox();
    let origin = sandbox.root().join("origin.git");
    sandbox.git(&["init", "-q", "--bare", origin.to_str().unwrap()]);
    sandbox.git(&["remote", "add", "origin", origin.to_str().unwrap()]);
    let agent = agent(
        &sandbox,
        "git config remote.origin.pushurl $THEIRS; cp $EVIL .git/hooks/pre-push; echo $REFRAIN_ITERATION > n",
    );
    let words = [
        "start",
        "--command",
        &agent,
        "--name",
        "job",
        "-p",
        "Work.",
        "--gate",
        "false",
        "--stuck-threshold",
        "1",
    ];
    sandbox.refrain(&words).with_code(13);
    nothing_went_elsewhere(&sandbox);
    let refs = sandbox.git(&["-C", origin.to_str().unwrap(), "for-each-ref", "--format=%(refname)"]);
    assert!(refs.starts_with("refs/heads/wip/ralph-fail-job-"), "{refs}");
}
