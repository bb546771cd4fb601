//! Commits without a checkout are those that git would make, also after the committer changes.

use refrain_core::git::Oid;
use refrain_git::{GitError, Repository};
use rstest::rstest;

use crate::place::TestRepository;

/// Adds a commit for each message, each on the one before it.
fn chain(repository: &Repository, begin: &Oid, messages: &[&str]) -> Vec<Oid> {
    let tree = repository.tree_of(begin).unwrap();
    let mut made = vec![begin.clone()];
    for message in messages {
        let trailers = [("Refrain-Task", "1")];
        let commit = repository.conflict_commit(made.last().unwrap(), &tree, message, &trailers, None);
        made.push(commit.unwrap());
    }
    made.split_off(1)
}

/// The content of a commit without its times.
fn says(place: &TestRepository, commit: &Oid) -> String {
    let text = place.git(&["cat-file", "commit", commit.as_str()]);
    let is_time = |word: &str| word.len() == 10 && word.bytes().all(|byte| byte.is_ascii_digit());
    text.split(' ').filter(|word| !is_time(word)).collect::<Vec<_>>().join(" ")
}

#[test]
fn written_commits_equal_those_of_git_and_pass_fsck() {
    let place = TestRepository::new();
    let repository = place.repository();
    let made = chain(&repository, &place.head(), &["First", "Second", "Third\n\nWith ü and a list:\n\n- a"]);
    place.git(&["update-ref", "refs/heads/made", made[2].as_str()]);
    place.git(&["fsck", "--strict", "--no-dangling"]);
    let (first, third) = (says(&place, &made[0]), says(&place, &made[2]));
    let head = |text: &str| {
        let who = text.lines().filter(|line| line.starts_with("author ") || line.starts_with("committer "));
        who.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(head(&first), ["author Test <test@localhost> +0000", "committer Test <test@localhost> +0000"]);
    assert_eq!(head(&first), head(&third));
    let by_git = ["commit-tree", &format!("{}^{{tree}}", made[2]), "-p", made[1].as_str(), "-m"];
    let message = place.git(&["log", "-1", "--format=%B", made[2].as_str()]);
    let again = place.git(&[&by_git[..], &[message.trim()]].concat());
    assert_eq!(says(&place, &again.trim().parse().unwrap()), third);
    assert_eq!(repository.tree_of(&made[2]).unwrap(), repository.tree_of(&place.head()).unwrap());
}

#[rstest]
#[case::another_name(&["config", "user.name", "Another"], "author Another <test@localhost>")]
#[case::another_encoding(&["config", "i18n.commitEncoding", "latin1"], "encoding latin1")]
fn a_configuration_changed_meanwhile_applies_to_the_next_commit(#[case] how: &[&str], #[case] says_so: &str) {
    let place = TestRepository::new();
    let repository = place.repository();
    let made = chain(&repository, &place.head(), &["First", "Second", "Third"]);
    assert!(!says(&place, &made[2]).contains(says_so));
    place.git(how);
    for commit in chain(&repository, &made[2], &["Fourth", "Fifth", "Sixth"]) {
        assert!(says(&place, &commit).contains(says_so), "{}", says(&place, &commit));
    }
}

#[test]
fn the_identity_of_a_commit_is_that_of_git() {
    let mut place = TestRepository::new();
    place.env.push(("GIT_AUTHOR_NAME".into(), "Author, A. <".into()));
    let made = chain(&place.repository(), &place.head(), &["First"]).remove(0);
    // An older git drops the full stop, too.
    assert!(says(&place, &made).contains("author Author, A"));

    place.git(&["config", "user.useConfigOnly", "true"]);
    place.git(&["config", "--global", "--unset", "user.email"]);
    let tree = place.repository().tree_of(&place.head()).unwrap();
    let made = place.repository().conflict_commit(&place.head(), &tree, "Second", &[], None);
    assert!(matches!(made, Err(GitError::NoIdentity)), "git does not know");
}

#[test]
fn a_configured_commit_date_is_used() {
    let mut place = TestRepository::new();
    place.env.push(("GIT_COMMITTER_DATE".into(), "1700000000 +0200".into()));
    let repository = place.repository();
    for commit in chain(&repository, &place.head(), &["First", "Second", "Third"]) {
        let text = place.git(&["cat-file", "commit", commit.as_str()]);
        assert!(text.contains("committer Test <test@localhost> 1700000000 +0200"), "{text}");
    }
}

#[rstest]
#[case::a_file_that_was_not_there(&["config", "--file", ".git/later", "user.name", "Another"])]
#[case::on_another_branch(&["symbolic-ref", "HEAD", "refs/heads/topic"])]
fn a_conditional_include_applies_once_its_condition_holds(#[case] how: &[&str]) {
    let place = TestRepository::new();
    place.git(&["config", "include.path", "later"]);
    place.git(&["config", "includeIf.onbranch:topic.path", "of-topic"]);
    place.git(&["config", "--file", ".git/of-topic", "user.name", "Another"]);
    place.git(&["branch", "topic"]);
    let repository = place.repository();
    let made = chain(&repository, &place.head(), &["First", "Second", "Third"]);
    place.git(how);
    for commit in chain(&repository, &made[2], &["Fourth", "Fifth", "Sixth"]) {
        assert!(says(&place, &commit).contains("author Another"), "{}", says(&place, &commit));
    }
}
