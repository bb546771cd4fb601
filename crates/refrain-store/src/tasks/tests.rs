//! Task files on a real disk: which is found, and how it is changed beside others.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use camino::Utf8Path;
use refrain_core::plan::file::{Change, Shape};
use refrain_core::plan::{Note, TaskId, TaskStatus};
use rstest::rstest;

use super::*;
use crate::Project;

const ONE: &str = r#"{"tasks": [{"id": 1, "status": "pending"}]}"#;

struct TestProject {
    _dir: tempfile::TempDir,
    project: Project,
}

impl TestProject {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
        let project = Project { data: root.join("data"), worktree: root.clone(), root };
        let place = Self { _dir: dir, project };
        files.iter().for_each(|(name, text)| place.write(name, text));
        place
    }

    fn at(&self, name: &str) -> Utf8PathBuf {
        self.project.root.join(name)
    }

    #[expect(clippy::disallowed_methods, reason = "files of tests need no crash promise")]
    fn write(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    fn find(&self, tag: Option<&str>, plan: Option<&str>) -> Result<TaskFile, TasksError> {
        find(&self.project, tag, plan.map(|plan| self.at(plan)).as_deref())
    }

    /// The file's path and the tag, or what is wrong.
    fn found(&self, tag: Option<&str>, plan: Option<&str>) -> String {
        match self.find(tag, plan) {
            Ok(file) => {
                format!(
                    "{} {} {:?}",
                    file.path.strip_prefix(&self.project.root).unwrap(),
                    file.tag,
                    file.shape
                )
            }
            Err(error) => format!("{error:?}").replace(self.project.root.as_str(), ""),
        }
    }
}

fn id(text: &str) -> TaskId {
    text.parse().unwrap()
}

fn done(task: &str) -> Change {
    Change { task: id(task), from: TaskStatus::Pending, status: TaskStatus::Done, note: None }
}

#[test]
fn a_tag_has_a_file_of_its_own_or_is_in_one_of_all_tags() {
    let place = TestProject::new(&[
        (".scud/tasks/own.json", ONE),
        (".scud/tasks/tasks.json", r#"{"own": {"tasks": []}, "json": {"tasks": []}, "both": {"tasks": []}}"#),
        (".scud/tasks/tasks.scg", "# SCUD Graph v1\n# Phase: both\n---\n# Phase: scg\n"),
        (".scud/tasks/alone.scg", "# SCUD Graph v1\n# Phase: alone\n"),
    ]);
    assert_eq!(place.found(Some("own"), None), ".scud/tasks/own.json own TagJson");
    assert_eq!(place.found(Some("json"), None), ".scud/tasks/tasks.json json TagsJson");
    assert_eq!(place.found(Some("both"), None), ".scud/tasks/tasks.json both TagsJson");
    assert_eq!(place.found(Some("scg"), None), ".scud/tasks/tasks.scg scg Scg");
    assert_eq!(place.found(Some("alone"), None), ".scud/tasks/alone.scg alone Scg");
    for tag in ["tasks", "../tasks/own", "", "aloen"] {
        let Err(TasksError::NoTag { nearest, known, .. }) = place.find(Some(tag), None) else {
            panic!("{tag}")
        };
        assert_eq!(known, ["alone", "both", "json", "own", "scg"]);
        assert_eq!(nearest.as_deref(), (tag == "aloen").then_some("alone"));
    }
}

#[test]
fn without_a_tag_it_is_the_active_one_or_the_only_one() {
    let place = TestProject::new(&[(".scud/tasks/a.json", ONE)]);
    assert_eq!(place.found(None, None), ".scud/tasks/a.json a TagJson");
    place.write(".scud/tasks/b.json", ONE);
    assert!(matches!(place.find(None, None), Err(TasksError::Which { known, .. }) if known == ["a", "b"]));
    place.write(".scud/workflow-state.json", r#"{"active_group": "b"}"#);
    assert_eq!(place.found(None, None), ".scud/tasks/b.json b TagJson");
    place.write(".scud/active-tag", "a\n");
    assert_eq!(place.found(None, None), ".scud/tasks/a.json a TagJson");
    place.write(".scud/active-tag", "gone");
    assert!(matches!(place.find(None, None), Err(TasksError::NoTag { tag, .. }) if tag == "gone"));
    assert!(matches!(TestProject::new(&[]).find(None, None), Err(TasksError::Nothing(_))));
}

#[test]
fn a_malformed_task_file_hides_only_its_own_tags() {
    let place = TestProject::new(&[(".scud/tasks/a.json", ONE), (".scud/tasks/tasks.scg", "no graph")]);
    assert_eq!(place.found(Some("a"), None), ".scud/tasks/a.json a TagJson");
    assert!(
        matches!(place.find(Some("b"), None), Err(TasksError::Malformed { path, .. }) if path.ends_with("tasks.scg"))
    );
}

#[test]
fn a_plan_is_the_task_file_where_it_has_tasks_and_no_tag_says_otherwise() {
    let files = [
        ("plan.md", "## Task 1: a\n"),
        ("todo.md", "- [ ] a\n"),
        ("prose.md", "# Words\n"),
        ("all.json", r#"{"x": {"tasks": []}, "y": {"tasks": []}}"#),
        ("one.json", ONE),
        ("plan.txt", "## Task 1: a\n"),
    ];
    let place = TestProject::new(&files);
    assert_eq!(place.found(None, Some("plan.md")), "plan.md plan Markdown");
    assert_eq!(place.found(None, Some("todo.md")), "todo.md todo Markdown");
    assert_eq!(place.found(None, Some("one.json")), "one.json one TagJson");
    assert_eq!(place.found(Some("x"), Some("all.json")), "all.json x TagsJson");
    assert!(matches!(place.find(None, Some("all.json")), Err(TasksError::Which { .. })));
    assert!(matches!(place.find(Some("z"), Some("all.json")), Err(TasksError::NoTag { .. })));
    assert!(matches!(place.find(None, Some("plan.txt")), Err(TasksError::Unfit { .. })));
    assert!(matches!(place.find(None, Some("missing.md")), Err(TasksError::Disk(_))));
    place.write(".scud/tasks/a.json", ONE);
    assert_eq!(place.found(None, Some("plan.md")), "plan.md plan Markdown");
    assert_eq!(place.found(None, Some("todo.md")), ".scud/tasks/a.json a TagJson", "boxes may be anything");
    assert_eq!(place.found(Some("a"), Some("plan.md")), ".scud/tasks/a.json a TagJson");
}

#[test]
fn a_change_keeps_mode_and_link_and_all_that_others_wrote() {
    let place = TestProject::new(&[("shared/real.json", ONE)]);
    fs::set_permissions(place.at("shared/real.json"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir_all(place.at(".scud/tasks")).unwrap();
    std::os::unix::fs::symlink("../../shared/real.json", place.at(".scud/tasks/a.json")).unwrap();
    let file = place.find(Some("a"), None).unwrap();
    let read = file.read().unwrap();
    // Another program adds a task after it was read.
    place.write("shared/real.json", r#"{"tasks": [{"id": 1, "status": "pending"}, {"id": 2}]}"#);
    assert_ne!(file.stamp().unwrap(), read.stamp);
    let written = file.set(&[done("1"), done("7")]).unwrap();
    assert_eq!(place.text("shared/real.json"), r#"{"tasks": [{"id": 1, "status": "done"}, {"id": 2}]}"#);
    assert_eq!((written.missing, written.left), (vec![id("7")], Vec::new()));
    assert_eq!(file.stamp().unwrap(), written.stamp);
    assert!(place.at(".scud/tasks/a.json").is_symlink());
    assert_eq!(fs::metadata(place.at("shared/real.json")).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(
        file.set(&[done("1")]).unwrap().stamp,
        written.stamp,
        "what is so already is not written again"
    );
}

#[test]
fn the_word_of_a_person_is_not_written_over() {
    let place = TestProject::new(&[("todo.md", "- [ ] 1. A\n- [ ] 2. B\n")]);
    let file = place.find(None, Some("todo.md")).unwrap();
    // The cancellation in the file has not been read yet.
    place.write("todo.md", "- [ ] 1. A (cancelled)\n- [ ] 2. B\n");
    let written = file.set(&[done("1"), done("2")]).unwrap();
    assert_eq!(written.left, [id("1")]);
    assert_eq!(place.text("todo.md"), "- [ ] 1. A (cancelled)\n- [x] 2. B\n");
}

#[test]
fn temporary_files_of_a_killed_writer_are_removed() {
    let place =
        TestProject::new(&[("todo.md", "- [ ] 1. A\n"), (".todo.md.refrain-a1", ""), (".todo.md.swp", "")]);
    let file = place.find(None, Some("todo.md")).unwrap();
    file.set(&[done("1")]).unwrap();
    assert!(!place.at(".todo.md.refrain-a1").exists());
    assert!(place.at(".todo.md.swp").exists(), "another program's stays");
}

#[test]
fn many_writers_at_once_lose_nothing() {
    const COUNT: usize = 40;
    let rows: String = (0..COUNT).map(|at| format!("- [ ] {at}. task\n")).collect();
    let place = TestProject::new(&[("todo.md", &rows)]);
    let file = place.find(None, Some("todo.md")).unwrap();
    std::thread::scope(|scope| {
        for part in 0..4 {
            let file = &file;
            scope.spawn(move || {
                for at in (0..COUNT).filter(|at| at % 4 == part) {
                    let note = Some(Note { reason: format!("r{at}"), attempts: 1 });
                    let (task, from) = (id(&at.to_string()), TaskStatus::Pending);
                    let change = Change { task, from, status: TaskStatus::Blocked, note };
                    file.set(&[change]).unwrap();
                }
            });
        }
    });
    for (at, line) in place.text("todo.md").lines().enumerate() {
        assert_eq!(line, format!("- [ ] {at}. task (blocked after 1 attempt: r{at})"));
    }
}

#[rstest]
#[case::folder(|place: &TestProject| fs::create_dir(place.at("a.json")).unwrap(), "is no regular file")]
#[case::bytes(|place: &TestProject| place.write("a.json", "\u{feff}"), "")]
#[case::pipe(|place: &TestProject| {
    rustix::fs::mknodat(rustix::fs::CWD, place.at("a.json").as_str(), rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0).unwrap();
}, "is no regular file")]
#[case::large(|place: &TestProject| {
    fs::File::create(place.at("a.json")).unwrap().set_len((64 << 20) + 1).unwrap();
}, "is larger than 64 MiB")]
#[case::malformed(|place: &TestProject| place.write("a.json", "{\"tasks\": ["), "")]
fn a_file_that_is_no_task_file_is_refused_and_not_changed(#[case] make: fn(&TestProject), #[case] why: &str) {
    let place = TestProject::new(&[]);
    make(&place);
    let path = place.at("a.json");
    let before = fs::metadata(&path).unwrap().len();
    let error = place.find(None, Some("a.json")).unwrap_err();
    match error {
        TasksError::Unfit { why: said, .. } => assert_eq!(said, why),
        TasksError::Malformed { .. } => assert_eq!(why, ""),
        other => panic!("{other}"),
    }
    let file = TaskFile::new(&place.project, path.clone(), Shape::TagJson, "a".to_owned());
    assert!(file.set(&[done("1")]).is_err());
    assert_eq!(fs::metadata(&path).unwrap().len(), before);
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let place = TestProject::new(&[("a.json", "")]);
    fs::File::options()
        .write(true)
        .open(place.at("a.json"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"caf\xe9"))
        .unwrap();
    let error = place.find(None, Some("a.json")).unwrap_err();
    assert!(error.to_string().ends_with("a.json is not UTF-8 text"), "{error}");
}

#[test]
fn a_link_that_an_agent_made_is_not_followed() {
    let other = "- [ ] 1. Buy milk\n";
    let place = TestProject::new(&[("docs/todo.md", "- [ ] 1. A\n"), ("elsewhere/todo.md", other)]);
    let found = place.find(None, Some("docs/todo.md")).unwrap();
    let is_refused = || {
        let again = TaskFile::at(&place.project, found.path.clone(), found.tag.clone());
        let all = [found.read().map(drop), found.set(&[done("1")]).map(drop), again.map(drop)];
        all.into_iter().all(|result| matches!(result, Err(TasksError::Disk(_))))
    };
    assert!(!is_refused());
    fs::remove_file(place.at("docs/todo.md")).unwrap();
    std::os::unix::fs::symlink("../elsewhere/todo.md", place.at("docs/todo.md")).unwrap();
    assert!(is_refused());
    fs::remove_dir_all(place.at("docs")).unwrap();
    std::os::unix::fs::symlink("elsewhere", place.at("docs")).unwrap();
    assert!(is_refused());
    assert_eq!(place.text("elsewhere/todo.md"), other);
    // One of the user's own was there before.
    let of_user = place.find(None, Some("docs/todo.md")).unwrap();
    of_user.set(&[done("1")]).unwrap();
    assert_eq!(place.text("elsewhere/todo.md"), "- [x] 1. Buy milk\n");
}
