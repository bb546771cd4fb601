//! The same by a token, if `gh` has no login.

use testkit::{Limit, write};

use super::{ForgeProject, GREEN, RUNNING, TOKEN};

#[test]
fn a_token_is_all_that_it_needs_and_is_found_nowhere_afterwards() {
    let place = ForgeProject::by_token();
    // Git authenticates by it too: this remote has no ssh.
    place.sandbox.git(&["remote", "set-url", "origin", &place.forge.http_url()]);
    let api = place.forge.api_url();
    let place = place.with("GITHUB_SERVER_URL", &api).with("GH_ENTERPRISE_TOKEN", TOKEN);
    place.forge.change(|world| {
        world.workflows.push("ci".to_owned());
        world.add_checks(&[RUNNING, GREEN]);
    });
    let agent = place.writer();
    let run = place.start(&agent, "pr-merge", &["--gate", "all=test -f part-1.txt"]).with_code(0);
    let effects = place.effects();
    assert_eq!(effects[effects.len() - 2..], ["merge merged", "return returned"], "{effects:?}");
    assert_eq!((place.forge.done("open"), place.forge.done("merge")), (1, 1));
    assert!(!format!("{run:?}{}", place.status()).contains(TOKEN), "{run:?}");
    let found = place.sandbox.tool("grep", &["-rl", TOKEN, ".."]).run();
    assert_eq!(found.stdout, "", "a token on disk");
}

#[test]
fn a_token_that_is_revoked_parks_the_loop_until_there_is_another() {
    let place = ForgeProject::by_token().with("GH_TOKEN", "ghp_nobodys");
    let agent = place.writer();
    let run = place.start(&agent, "pr", &[]).with_code(1);
    assert!(run.stderr.contains("github.com does not take the token of GH_TOKEN"), "{run:?}");
    assert!(!run.stderr.contains("ghp_nobodys"), "{run:?}");
    let place = place.with("GH_TOKEN", TOKEN);
    place.forge.limits(&[Limit::Secondary(1)]);
    place.forge.at_question("open", 1, |world| world.token = Some("ghp_new".to_owned()));
    let run = place.start(&agent, "pr", &[]).with_code(14);
    assert!(run.stdout.contains("does not take the token of GH_TOKEN"), "{run:?}");
    let place = place.with("GH_TOKEN", "ghp_new");
    place.refrain(&["resume", "job"]).with_code(0);
    assert_eq!(place.forge.done("open"), 1);
}

#[test]
fn a_file_with_a_token_is_its_owners_alone() {
    let place = ForgeProject::by_token();
    let file = place.sandbox.root().join("home/config/refrain/github-token");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    write(&file, format!("{TOKEN}\n"));
    let agent = place.writer();
    let mode =
        |mode| std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    mode(0o644);
    let run = place.start(&agent, "pr", &[]).with_code(1);
    assert!(run.stderr.contains("github-token can be read by others: chmod 600"), "{run:?}");
    mode(0o600);
    place.start(&agent, "pr", &[]).with_code(0);
    assert_eq!(place.forge.done("open"), 1);
    assert!(!place.sandbox.note("prompt-1").contains(TOKEN));
}
