//! Combining works without a checkout: merged, landed on a line, removed from it, and joined into waves.

use std::os::unix::fs::PermissionsExt;

use camino::Utf8PathBuf;
use refrain_core::git::{Conflict, ConflictKind, Oid, RepoPath};
use refrain_git::{
    Bounds, GitError, LandRequest, LandingOutcome, LinearBranch, MergeRequest, MergeResult, RemakeRequest,
    Wave, WaveRequest, Work,
};
use rstest::rstest;

use crate::place::TestRepository;

const LINE: &str = "refs/refrain/plans/plan";
const WAVES: &str = "refs/refrain/waves/plan";
const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\n-----END OPENSSH PRIVATE KEY-----\n";

/// A plan's line in a repository, and works that begin at its first commit.
struct Line<'a> {
    place: &'a TestRepository,
    begin: Oid,
}

impl<'a> Line<'a> {
    fn new(place: &'a TestRepository) -> Self {
        let begin = place.head();
        assert!(place.repository().move_reference(LINE, None, &begin, "begin").unwrap());
        Self { place, begin }
    }

    /// Work done on a commit, in a branch that is not kept: files and their content; no file is removed.
    fn work_on(&self, begin: &Oid, files: &[(&str, Option<&str>)]) -> Oid {
        self.place.git(&["checkout", "-q", "--detach", begin.as_str()]);
        for (path, text) in files {
            match text {
                Some(text) => self.place.write(path, text),
                None => std::fs::remove_file(self.place.path(path)).unwrap(),
            }
        }
        self.place.git(&["add", "-A"]);
        self.place.git(&["commit", "-qm", "Work"]);
        let work = self.place.head();
        self.place.git(&["checkout", "-q", "main"]);
        work
    }

    fn work(&self, files: &[(&str, Option<&str>)]) -> Oid {
        self.work_on(&self.begin, files)
    }

    fn index(&self) -> Utf8PathBuf {
        self.place.top().join("loop/index")
    }

    #[track_caller]
    fn merge(&self, base: &Oid, tip: &Oid, work: &Oid, except: &[RepoPath]) -> MergeResult {
        let index = self.index();
        let request = MergeRequest { base, tip, work, except, index: &index, cancel: None };
        self.place.repository().merge(request).unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_land(&self, tip: &Oid, tree: &Oid, task: &str) -> Result<LandingOutcome, GitError> {
        self.try_land_all(tip, &[(tree, task)])
    }

    fn try_land_all(&self, tip: &Oid, all: &[(&Oid, &str)]) -> Result<LandingOutcome, GitError> {
        let said = all.iter().map(|(tree, task)| {
            (*tree, format!("Do {task}"), [("Refrain-Plan", "plan"), ("Refrain-Task", *task)])
        });
        let said: Vec<_> = said.collect();
        let works = said.iter().map(|(tree, message, trailers)| Work { tree, message, trailers });
        self.place.repository().land(LandRequest {
            reference: LINE,
            tip,
            works: &works.collect::<Vec<_>>(),
            bounds: Bounds { largest_file: 1 << 20, allow_secrets: &[], cancel: None },
        })
    }

    /// Merges a work onto the line, and lands it.
    #[track_caller]
    fn land(&self, work: &Oid, task: &str) -> Oid {
        let tip = self.tip();
        let MergeResult::Clean { tree } = self.merge(&self.begin, &tip, work, &[]) else {
            panic!("a conflict")
        };
        only(self.try_land(&tip, &tree, task).unwrap())
    }

    fn tip(&self) -> Oid {
        self.place.repository().reference(LINE).unwrap().unwrap()
    }

    fn remake(&self, onto: &Oid, commits: &[Oid]) -> LinearBranch {
        let request = RemakeRequest { reference: LINE, onto, commits, cancel: None };
        self.place.repository().remake_line(request).unwrap()
    }

    fn wave(&self, first_parent: &Oid, commits: &[Oid], number: &str) -> Wave {
        let wave = self.place.repository().wave_commit(WaveRequest {
            reference: WAVES,
            first_parent,
            commits,
            message: &format!("feat(app): complete wave {number}\n\n- 1: One\n- 2: Two"),
            trailers: &[("Refrain-Plan", "plan"), ("Refrain-Wave", number)],
            cancel: None,
        });
        wave.unwrap_or_else(|error| panic!("{error}"))
    }

    fn show(&self, name: &str) -> String {
        self.place.git(&["show", name])
    }

    fn files(&self, tree: &Oid) -> String {
        self.place.git(&["ls-tree", "-r", "--name-only", tree.as_str()]).replace('\n', " ")
    }
}

fn path(path: &str) -> RepoPath {
    RepoPath::from_bytes(path.as_bytes())
}

#[track_caller]
fn only(landed: LandingOutcome) -> Oid {
    match landed {
        LandingOutcome::Done { mut commits, .. } if commits.len() == 1 => commits.remove(0),
        other => panic!("{other:?}"),
    }
}

/// The commit of a wave, and its changes compared with its first parent.
#[track_caller]
fn made(line: &Line<'_>, wave: Wave) -> (Oid, Vec<String>) {
    match wave {
        Wave::Made { commit, .. } => {
            let paths = line.place.git(&["diff", "--name-only", &format!("{commit}^1"), commit.as_str()]);
            (commit, paths.lines().map(str::to_owned).collect())
        }
        Wave::Conflict { at, conflicts } => panic!("{at}: {conflicts:?}"),
    }
}

fn everything(place: &TestRepository) -> impl PartialEq + std::fmt::Debug + use<> {
    (place.snapshot(&["README.md"]), place.status(), place.git(&["rev-parse", "main"]))
}

#[test]
fn works_land_one_behind_the_other_and_no_checkout_is_touched() {
    let place = TestRepository::new();
    let line = Line::new(&place);
    let one = line.work(&[("src/a.rs", Some("fn a() { one() }\n"))]);
    let two = line.work(&[("src/c.rs", Some("two\n")), ("src/b.rs", None)]);
    place.write("README.md", "# Mine\n");
    let before = everything(&place);
    let first = line.land(&one, "1");
    let second = line.land(&two, "2");
    assert_eq!(everything(&place), before);
    assert_eq!(line.tip(), second);
    assert_eq!(place.git(&["rev-parse", &format!("{second}^")]), first.as_str());
    assert_eq!(place.committed(second.as_str()), ["D src/b.rs", "A src/c.rs"]);
    assert_eq!(
        place.git(&["log", "-1", "--format=%an <%ae>%n%B", second.as_str()]),
        "Test <test@localhost>\nDo 2\n\nRefrain-Plan: plan\nRefrain-Task: 2"
    );
}

#[test]
fn a_landing_is_found_again_and_a_moved_line_is_taken_back() {
    let place = TestRepository::new();
    let line = Line::new(&place);
    let work = line.work(&[("one", Some("1\n"))]);
    let begin = line.tip();
    let first = line.land(&work, "1");
    let tree: Oid = place.git(&["rev-parse", &format!("{first}^{{tree}}")]).parse().unwrap();
    assert_eq!(only(line.try_land(&begin, &tree, "1").unwrap()), first);
    // An agent moves it, or takes it away, or makes it lead to a branch of the user.
    let moves: [&[&str]; 3] = [
        &["update-ref", LINE, first.as_str()],
        &["update-ref", "-d", LINE],
        &["symbolic-ref", LINE, "refs/heads/main"],
    ];
    for (how, was) in moves.into_iter().zip([Some(&first), None, None]) {
        place.git(how);
        let LandingOutcome::Done { commits, was: told } = line.try_land(&begin, &tree, "2").unwrap() else {
            panic!("a secret")
        };
        let [second] = commits.as_slice() else { panic!("{commits:?}") };
        assert_eq!((&line.tip(), told.as_ref()), (second, was), "{how:?}");
        assert_eq!(place.git(&["rev-parse", &format!("{second}^"), "main"]), format!("{begin}\n{begin}"));
        place.git(&["update-ref", LINE, begin.as_str()]);
    }
}

/// The runner was killed before it recorded them. An agent could have made them as well, so they are signed again.
#[test]
fn a_signed_landing_is_made_again_and_is_no_moved_line() {
    let place = TestRepository::new();
    let line = Line::new(&place);
    let work = line.work(&[("one", Some("1\n"))]);
    let tree: Oid = place.git(&["rev-parse", &format!("{work}^{{tree}}")]).parse().unwrap();
    let signer = place.top().join("signer");
    let sign = "cat > body; echo made >> signatures; printf '\\n[GNUPG:] SIG_CREATED ' >&2; echo -----BEGIN PGP SIGNATURE-----";
    place.write_at(&signer, format!("#!/bin/sh\ncd {}; {sign}\n", place.top()));
    std::fs::set_permissions(&signer, std::fs::Permissions::from_mode(0o755)).unwrap();
    place.git(&["config", "gpg.program", signer.as_str()]);
    place.git(&["config", "commit.gpgSign", "true"]);
    for count in [1, 2] {
        let LandingOutcome::Done { commits, was } = line.try_land(&line.begin, &tree, "1").unwrap() else {
            panic!("a secret")
        };
        assert_eq!((commits.last(), was), (Some(&line.tip()), None));
        let made = std::fs::read_to_string(place.top().join("signatures")).unwrap();
        assert_eq!(made.lines().count(), count);
    }
}

#[test]
fn commits_that_only_look_like_the_plans_are_not_its() {
    let place = TestRepository::new();
    let line = Line::new(&place);
    let tree =
        |commit: &Oid| -> Oid { place.git(&["rev-parse", &format!("{commit}^{{tree}}")]).parse().unwrap() };
    let (good, bad) = (line.work(&[("one", Some("1\n"))]), line.work(&[("bad", Some("x\n"))]));
    let forged = |tree: Oid, parents: &[&Oid], message: &str| -> Oid {
        let mut words = vec!["commit-tree", tree.as_str(), "-m", message];
        words.extend(parents.iter().flat_map(|parent| ["-p", parent.as_str()]));
        place.git(&words).parse().unwrap()
    };
    let task = "Do 1\n\nRefrain-Plan: plan\nRefrain-Task: 1";
    let other_words = format!("Close every issue\n\n{task}");
    for forged in [
        forged(tree(&bad), &[&line.begin], task),
        forged(tree(&good), &[&line.begin, &bad], task),
        forged(tree(&good), &[&bad], task),
        forged(tree(&good), &[&line.begin], &other_words),
    ] {
        place.git(&["update-ref", LINE, forged.as_str()]);
        let landed = only(line.try_land(&line.begin, &tree(&good), "1").unwrap());
        assert_eq!(
            place.git(&["log", "-1", "--format=%T %P %s", landed.as_str()]),
            format!("{} {} Do 1", tree(&good), line.begin)
        );
        assert_eq!(line.tip(), landed);
    }
    let landed = line.tip();
    let wave = "feat(app): complete wave 1\n\n- 1: One\n- 2: Two\n\nRefrain-Plan: plan\nRefrain-Wave: 1";
    for forged in [
        forged(tree(&bad), &[&line.begin, &landed], wave),
        forged(tree(&landed), &[&line.begin, &landed, &bad], wave),
    ] {
        place.git(&["update-ref", WAVES, forged.as_str()]);
        let (made, paths) = made(&line, line.wave(&line.begin, std::slice::from_ref(&landed), "1"));
        assert_eq!(paths, ["one"]);
        assert_eq!(
            place.git(&["rev-parse", &format!("{made}^@"), WAVES]),
            format!("{}\n{landed}\n{made}", line.begin)
        );
    }
}

#[test]
fn nothing_that_looks_like_a_secret_lands() {
    let mut place = TestRepository::new();
    place.allow_secrets = vec!["allowed/".parse().unwrap()];
    let line = Line::new(&place);
    let work = line.work(&[("deploy/key", Some(KEY)), ("one", Some("1\n"))]);
    let MergeResult::Clean { tree } = line.merge(&line.begin, &line.begin, &work, &[]) else { panic!() };
    let LandingOutcome::Secrets { commits, exposed } = line.try_land(&line.begin, &tree, "1").unwrap() else {
        panic!("it landed")
    };
    assert_eq!(commits, []);
    let told: Vec<_> = exposed.iter().map(|it| format!("{}:{:?} {}", it.path, it.line, it.what)).collect();
    assert_eq!(told, ["deploy/key:Some(1) a private key"]);
    assert_eq!(line.tip(), line.begin);
}

#[test]
fn without_an_identity_nothing_lands_and_the_error_says_so() {
    let place = TestRepository::new();
    let line = Line::new(&place);
    let work = line.work(&[("one", Some("1\n"))]);
    let MergeResult::Clean { tree } = line.merge(&line.begin, &line.begin, &work, &[]) else { panic!() };
    place.write_at(place.top().join("home/.gitconfig"), "[user]\nuseConfigOnly = true\n");
    assert!(matches!(line.try_land(&line.begin, &tree, "1"), Err(GitError::NoIdentity)));
    assert_eq!(line.tip(), line.begin);
}

/// The line's files, the work's changes, and the conflicts.
#[rstest]
#[case::content(&[("f", Some("ours\n"))], &[("f", Some("theirs\n"))], &[("f", ConflictKind::Content)])]
#[case::added(&[("new", Some("1\n"))], &[("new", Some("2\n"))], &[("new", ConflictKind::Content)])]
#[case::deleted(&[("f", None)], &[("f", Some("theirs\n"))], &[("f", ConflictKind::Deleted)])]
#[case::deleted_by_us(&[("f", Some("ours\n"))], &[("f", None)], &[("f", ConflictKind::Deleted)])]
#[case::binary(&[("bin", Some("\0 1"))], &[("bin", Some("\0 2"))], &[("bin", ConflictKind::Binary)])]
#[case::folder(&[("x", Some("file\n"))], &[("x/y", Some("in a folder\n"))], &[("x~", ConflictKind::Folder)])]
fn each_conflict_is_reported_with_its_kind(
    #[case] ours: &[(&str, Option<&str>)],
    #[case] theirs: &[(&str, Option<&str>)],
    #[case] expected: &[(&str, ConflictKind)],
) {
    let place = TestRepository::new();
    for (path, text) in
        [("f", "base\n".to_owned()), ("bin", "\0 0".to_owned()), ("long", "line\n".repeat(30))]
    {
        place.write(path, text);
    }
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "Files"]);
    let line = Line::new(&place);
    let (ours, theirs) = (line.work(ours), line.work(theirs));
    let MergeResult::Conflict { tree, conflicts } = line.merge(&line.begin, &ours, &theirs, &[]) else {
        panic!("clean")
    };
    let found: Vec<_> = conflicts.iter().map(|Conflict { path, kind }| (path.as_str(), *kind)).collect();
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.0.starts_with(expected.0) && found.1 == expected.1, "{found:?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:?}");
    assert!(line.files(&tree).contains("README.md"));
}

#[test]
fn a_rename_is_followed_and_one_against_a_deletion_is_a_conflict() {
    let place = TestRepository::new();
    let text = (0..30).map(|n| format!("line {n}\n")).collect::<String>();
    place.write("long", &text);
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "Files"]);
    let line = Line::new(&place);
    let renamed = line.work(&[("long", None), ("renamed", Some(&text))]);
    let changed = line.work(&[("long", Some(&text.replace("line 7\n", "seven\n")))]);
    let gone = line.work(&[("long", None)]);
    let MergeResult::Clean { tree } = line.merge(&line.begin, &renamed, &changed, &[]) else {
        panic!("a conflict")
    };
    assert!(line.show(&format!("{tree}:renamed")).contains("seven"));
    let MergeResult::Conflict { conflicts, .. } = line.merge(&line.begin, &gone, &renamed, &[]) else {
        panic!("clean")
    };
    assert_eq!(conflicts, [Conflict { path: path("renamed"), kind: ConflictKind::Renamed }]);
}

#[test]
fn two_commits_of_a_submodule_are_a_conflict_and_a_link_against_a_file_is_too() {
    let place = TestRepository::new();
    let library = TestRepository::new();
    place.git(&["submodule", "add", "-q", library.root().as_str(), "library"]);
    place.git(&["commit", "-qm", "Library"]);
    let line = Line::new(&place);
    let commits = ["a", "b"].map(|digit| {
        place.git(&["checkout", "-q", "--detach", line.begin.as_str()]);
        place.git(&["update-index", "--cacheinfo", &format!("160000,{},library", digit.repeat(40))]);
        place.git(&["commit", "-qm", "Move"]);
        let commit = place.head();
        place.git(&["checkout", "-qf", "main"]);
        commit
    });
    let MergeResult::Conflict { conflicts, .. } = line.merge(&line.begin, &commits[0], &commits[1], &[])
    else {
        panic!("clean")
    };
    assert_eq!(conflicts, [Conflict { path: path("library"), kind: ConflictKind::Submodule }]);
    let link = |to: &str| {
        place.git(&["checkout", "-q", "--detach", line.begin.as_str()]);
        std::os::unix::fs::symlink(to, place.path("new")).unwrap();
        place.git(&["add", "new"]);
        place.git(&["commit", "-qm", "Link"]);
        let commit = place.head();
        place.git(&["checkout", "-q", "main"]);
        commit
    };
    let (link, file) = (link("README.md"), line.work(&[("new", Some("a file\n"))]));
    let MergeResult::Conflict { conflicts, .. } = line.merge(&line.begin, &link, &file, &[]) else {
        panic!("clean")
    };
    assert!(conflicts.iter().all(|conflict| conflict.kind == ConflictKind::Type), "{conflicts:?}");
}

#[test]
fn paths_that_are_no_part_of_a_work_are_as_the_tip_has_them() {
    let place = TestRepository::new();
    place.write("tasks.json", "{}\n");
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "Tasks"]);
    let line = Line::new(&place);
    let tip = line.work(&[("tasks.json", Some("{\"1\": \"done\"}\n"))]);
    let work = line.work(&[("tasks.json", Some("mine\n")), ("tasks.new", Some("x\n")), ("one", Some("1\n"))]);
    let except = [path("tasks.json"), path("tasks.new")];
    let MergeResult::Clean { tree } = line.merge(&line.begin, &tip, &work, &except) else {
        panic!("a conflict")
    };
    assert_eq!(line.show(&format!("{tree}:tasks.json")), "{\"1\": \"done\"}");
    assert_eq!(line.files(&tree), "README.md one src/a.rs src/b.rs tasks.json");
    assert!(matches!(line.merge(&line.begin, &tip, &work, &[]), MergeResult::Conflict { .. }));
}

#[test]
fn a_conflict_is_checked_out_with_markers_and_both_sides_are_reported() {
    let place = TestRepository::new();
    let line = Line::new(&place);
    let ours = line.work(&[("src/a.rs", Some("fn a() { ours() }\n"))]);
    let theirs = line.work(&[("src/a.rs", Some("fn a() { theirs() }\n")), ("src/c.rs", Some("c\n"))]);
    let tip = line.land(&ours, "1");
    let MergeResult::Conflict { tree, conflicts } = line.merge(&line.begin, &tip, &theirs, &[]) else {
        panic!()
    };
    let paths: Vec<RepoPath> = conflicts.into_iter().map(|conflict| conflict.path).collect();
    let repository = place.repository();
    let trailers = [("Refrain-Task", "2")];
    let commit = repository.conflict_commit(&tip, &tree, "Conflict of 2", &trailers, None).unwrap();
    let marked = |tip: &Oid, tree: &Oid| repository.with_markers(tip, tree, None).unwrap();
    assert_eq!(marked(&tip, &commit), paths);
    assert_eq!(marked(&line.begin, &tip), []);
    assert_eq!(marked(&commit, &commit), [], "the tip has them, too");
    let moved = line.show(&format!("{commit}:src/a.rs"));
    let moved = line.work_on(&commit, &[("src/a.rs", None), ("b.rs", Some(&moved))]);
    assert_eq!(marked(&tip, &moved), [path("b.rs")]);
    let whole = line.show(&format!("{commit}:src/a.rs"));
    for sign in ["<<<<<<< ", "||||||| ", ">>>>>>> "] {
        let alone = whole.lines().find(|line| line.starts_with(sign)).unwrap();
        let alone = line.work_on(&commit, &[("src/a.rs", Some(&format!("fn a() {{}}\n{alone}\n")))]);
        assert_eq!(marked(&tip, &alone), [path("src/a.rs")], "{sign}");
    }
    let other = "1".repeat(40);
    let own = format!("<<<<<<< {other}\n=======\n>>>>>>> {other}\n<<<<<<< HEAD\n=======\n>>>>>>> topic\n");
    let own = line.work_on(&tip, &[("merging.md", Some(&own))]);
    assert_eq!(marked(&tip, &own), [], "they name no commits of it");
    let (landed, work) = repository.both_sides(&line.begin, (&tip, &theirs), &paths, 4000).unwrap();
    let told = format!("{landed}{work}");
    for part in ["+fn a() { ours() }", "+fn a() { theirs() }"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(!told.contains("src/c.rs"), "{told}");
    let (ours, work) = repository.both_sides(&line.begin, (&tip, &theirs), &paths, 300).unwrap();
    assert!(ours.len() + work.len() < 700);
    // Once resolved, it is merged with its start, and squashed.
    let resolved = line.work_on(&commit, &[("src/a.rs", Some("fn a() { both() }\n"))]);
    assert_eq!(marked(&tip, &resolved), []);
    let MergeResult::Clean { tree } = line.merge(&tip, &tip, &resolved, &[]) else { panic!("a conflict") };
    let commit = only(line.try_land(&tip, &tree, "2").unwrap());
    assert_eq!(place.committed(commit.as_str()), ["M src/a.rs", "A src/c.rs"]);
}

#[test]
fn several_land_together_up_to_the_one_that_may_not() {
    let place = TestRepository::new();
    let line = Line::new(&place);
    let tree = |name: &str, text: &str, on: &Oid| {
        let commit = line.work_on(on, &[(name, Some(text))]);
        (commit.clone(), place.git(&["rev-parse", &format!("{commit}^{{tree}}")]).parse::<Oid>().unwrap())
    };
    let (one, first) = tree("one", "1\n", &line.begin);
    let (two, second) = tree("two", "2\n", &one);
    let (_, third) = tree("key", KEY, &two);
    let all = [(&first, "1"), (&second, "2"), (&third, "3")];
    let LandingOutcome::Secrets { commits, exposed } = line.try_land_all(&line.begin, &all).unwrap() else {
        panic!("all landed")
    };
    assert_eq!((commits.len(), exposed.len(), line.tip()), (2, 1, commits[1].clone()));
    let subjects = place.git(&["log", "--format=%s", &format!("{}..{}", line.begin, commits[1])]);
    assert_eq!(subjects, "Do 2\nDo 1");
    // A runner that was killed before it recorded this asks again, and nothing is made twice.
    let LandingOutcome::Secrets { commits: again, .. } = line.try_land_all(&line.begin, &all).unwrap() else {
        panic!("all landed")
    };
    assert_eq!(again, commits);
    assert_eq!(
        line.try_land_all(&line.begin, &all[..2]).unwrap(),
        LandingOutcome::Done { commits, was: None }
    );
}

#[test]
fn one_task_is_taken_out_and_the_others_stay() {
    let place = TestRepository::new();
    let line = Line::new(&place);
    let works = ["one", "two", "three"].map(|name| line.work(&[(name, Some("x\n"))]));
    let [one, two, three] = &works;
    let commits = [line.land(one, "1"), line.land(two, "2"), line.land(three, "3")];
    let rest = [commits[0].clone(), commits[2].clone()];
    let remade = line.remake(&line.begin, &rest);
    let LinearBranch { tip: now, picked, conflicts } = remade.clone();
    assert_eq!((line.tip(), conflicts), (now.clone(), vec![]));
    assert_eq!(picked, [(commits[0].clone(), commits[0].clone()), (commits[2].clone(), now.clone())]);
    assert_eq!(line.files(&now), "README.md one src/a.rs src/b.rs three");
    let say = |commit: &Oid| place.git(&["log", "-1", "--format=%an %ad%n%B", commit.as_str()]);
    assert_eq!(say(&now), say(&commits[2]), "the same words, author and date");
    // A runner that was killed before it recorded this asks again.
    assert_eq!(line.remake(&line.begin, &rest), remade);
    // Work that began on the line before the removal does not bring the removed commit back.
    let later = line.work_on(&commits[2], &[("later", Some("x\n"))]);
    let MergeResult::Clean { tree } = line.merge(&commits[2], &line.tip(), &later, &[]) else { panic!() };
    assert_eq!(line.files(&tree), "README.md later one src/a.rs src/b.rs three");
}

#[test]
fn a_dependent_of_the_task_that_is_taken_out_goes_with_it() {
    let place = TestRepository::new();
    let line = Line::new(&place);
    let one = line.land(&line.work(&[("shared", Some("1\n"))]), "1");
    let two = line.work_on(&one, &[("shared", Some("1\n2\n"))]);
    let MergeResult::Clean { tree } = line.merge(&one, &one, &two, &[]) else { panic!() };
    let two = only(line.try_land(&one, &tree, "2").unwrap());
    let three = line.land(&line.work(&[("three", Some("3\n"))]), "3");
    let LinearBranch { tip, picked, conflicts } = line.remake(&line.begin, &[two.clone(), three.clone()]);
    let at = Conflict { path: path("shared"), kind: ConflictKind::Deleted };
    assert_eq!(conflicts, [(two, vec![at])]);
    assert_eq!(picked, [(three, tip.clone())]);
    assert_eq!(line.files(&tip), "README.md src/a.rs src/b.rs three");
}

#[test]
fn a_wave_is_one_commit_of_the_first_parents_history() {
    let place = TestRepository::new();
    let line = Line::new(&place);
    let works = ["one", "two"].map(|name| line.work(&[(name, Some("x\n"))]));
    let commits = [line.land(&works[0], "1"), line.land(&works[1], "2")];
    let (wave, paths) = made(&line, line.wave(&line.begin, &commits, "1"));
    assert_eq!(paths, ["one", "two"]);
    assert_eq!(
        place.git(&["rev-parse", &format!("{wave}^1"), &format!("{wave}^2")]),
        format!("{}\n{}", line.begin, commits[1])
    );
    assert_eq!(
        place.git(&["log", "-1", "--format=%B", wave.as_str()]),
        "feat(app): complete wave 1\n\n- 1: One\n- 2: Two\n\nRefrain-Plan: plan\nRefrain-Wave: 1"
    );
    assert_eq!(made(&line, line.wave(&line.begin, &commits, "1")).0, wave, "found again");
    let (second, paths) = made(&line, line.wave(&wave, &[], "2"));
    assert_eq!((paths.len(), place.git(&["rev-parse", &format!("{second}^@")])), (0, wave.to_string()));
    assert_ne!(made(&line, line.wave(&line.begin, &commits, "1")).0, second);
}

#[test]
fn a_wave_that_lacks_later_tasks_is_rebuilt() {
    let place = TestRepository::new();
    let line = Line::new(&place);
    let works = ["one", "two", "three"].map(|name| line.work(&[(name, Some("x\n"))]));
    let first = line.land(&works[0], "1");
    let (short, _) = made(&line, line.wave(&line.begin, std::slice::from_ref(&first), "1"));
    // The wave was not recorded, and another task of it landed after all.
    let second = line.land(&works[1], "2");
    let both = [first, second.clone()];
    let (whole, paths) = made(&line, line.wave(&line.begin, &both, "1"));
    assert_eq!(paths, ["one", "two"]);
    assert_ne!(whole, short);
    assert_eq!(made(&line, line.wave(&line.begin, &both, "1")).0, whole, "found again");
    // That one was not recorded either, although the line was already on it: the next task lands where it would have.
    assert_eq!(line.remake(&whole, &[]).tip, whole);
    let MergeResult::Clean { tree } = line.merge(&line.begin, &second, &works[2], &[]) else {
        panic!("a conflict")
    };
    let third = only(line.try_land(&second, &tree, "3").unwrap());
    assert_eq!(place.git(&["rev-parse", &format!("{third}^")]), second.as_str());
    assert_eq!(line.tip(), third);
    let all = [both.as_slice(), &[third]].concat();
    assert_eq!(made(&line, line.wave(&line.begin, &all, "1")).1, ["one", "three", "two"]);
}

#[test]
fn in_a_pipeline_the_commits_of_a_wave_are_rebuilt() {
    let place = TestRepository::new();
    let line = Line::new(&place);
    let works = ["a1", "b1", "a2"].map(|name| line.work(&[(name, Some("x\n"))]));
    let [a1, b1, a2] = [line.land(&works[0], "a1"), line.land(&works[1], "b1"), line.land(&works[2], "a2")];
    let (first, paths) = made(&line, line.wave(&line.begin, &[a1.clone(), a2.clone()], "1"));
    assert_eq!(paths, ["a1", "a2"]);
    let chain = place.git(&["log", "--format=%s", &format!("{}..{first}^2", line.begin)]);
    assert_eq!(chain, "Do a2\nDo a1");
    let (second, paths) = made(&line, line.wave(&first, std::slice::from_ref(&b1), "2"));
    assert_eq!(paths, ["b1"]);
    assert_eq!(place.git(&["diff", second.as_str(), a2.as_str()]), "", "all of the line");
    assert_eq!(
        place.git(&["log", "--first-parent", "--format=%s", "-2", second.as_str()]),
        "feat(app): complete wave 2\nfeat(app): complete wave 1"
    );
    // One that depends on a commit outside the wave.
    let needs = line.work_on(&b1, &[("b1", Some("x\ny\n"))]);
    let wave = line.wave(&line.begin, &[a1, needs.clone()], "3");
    let conflicts = vec![Conflict { path: path("b1"), kind: ConflictKind::Deleted }];
    assert_eq!(wave, Wave::Conflict { at: needs, conflicts });
}

#[test]
fn paths_with_special_characters_are_merged_and_reported() {
    let place = TestRepository::new();
    let line = Line::new(&place);
    let odd = "a \"b\"\n\tc 'd' ü";
    let (ours, theirs) =
        (line.work(&[(odd, Some("1\n"))]), line.work(&[(odd, Some("2\n")), (":(top)x", Some("x\n"))]));
    let MergeResult::Conflict { conflicts, .. } = line.merge(&line.begin, &ours, &theirs, &[path(":(top)x")])
    else {
        panic!()
    };
    assert_eq!(conflicts, [Conflict { path: path(odd), kind: ConflictKind::Content }]);
    let (landed, work) =
        place.repository().both_sides(&line.begin, (&ours, &theirs), &[path(odd)], 4000).unwrap();
    let told = format!("{landed}{work}");
    assert!(told.contains("+1") && told.contains("+2"), "{told}");
}
