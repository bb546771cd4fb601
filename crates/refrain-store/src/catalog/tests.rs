//! What the catalog promises: it says what the journals say, even after its file was damaged or deleted.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::tz::TimeZone;
use refrain_core::agent::{AgentReport, Scope, Session, Tokens, Usd};
use refrain_core::event::{Ask, AttemptFinished, End, Event, Exit, Identity, Process, Urgency};
use refrain_core::promise::{MatchMode, Promise, PromiseText};
use refrain_core::view::usage::{GroupBy, Report, Tally};
use refrain_core::{AttemptId, LoopId};
use rstest::rstest;

use super::{Catalog, CatalogEntry, CatalogError, Detail, KnownJournals, LoopFolder, note, with, with_known};
use crate::access::signing::Signing;
use crate::journal::tests::{at, started};
use crate::journal::{Durability, Journal};
use crate::project::archive;
use crate::project::layout::{LoopDir, Project};

struct TestProject {
    _dir: tempfile::TempDir,
    home: Utf8PathBuf,
    project: Project,
}

fn signing(place: &TestProject) -> Signing {
    Signing::new(&place.home, &place.home)
}

fn place() -> TestProject {
    let dir = tempfile::tempdir().unwrap();
    let root = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
    fs::create_dir(root.join("project")).unwrap();
    let project = Project::find(&root.join("project")).unwrap();
    TestProject { _dir: dir, home: root.join("home"), project }
}

fn id(name: &str) -> LoopId {
    name.parse().unwrap()
}

/// A loop of two attempts; its agent reports the cost of the first. It has stopped if an end is given.
fn make(project: &Project, name: &str, end: Option<End>) -> LoopDir {
    let dir = project.loop_dir(&id(name));
    let Event::LoopStarted(mut begin) = started() else { panic!("not a start") };
    begin.spec.id = id(name);
    begin.spec.project = project.root.clone();
    let text = "COMPLETE".parse::<PromiseText>().unwrap();
    begin.spec.promise = Some(Promise { text, mode: MatchMode::Tag });
    let home = project.root.with_file_name("home");
    let start = Event::LoopStarted(begin);
    let mut journal: Journal =
        Journal::create_signed(dir.clone(), start, at(0), Signing::new(&home, &home)).unwrap();
    let process = Process { pid: 1, start: 1 };
    let recover = journal.state().recover(Identity { process, boot: "boot".into(), host: "host".into() });
    journal.push(recover, at(1)).unwrap();
    for iteration in 1..=2 {
        journal.push(Event::IterationBegun { iteration, work: None }, at(2)).unwrap();
        journal.push(Event::AttemptStarted(AttemptId { iteration, attempt: 1 }), at(2)).unwrap();
        journal.push(Event::AttemptSpawned { process }, at(2)).unwrap();
        journal.push(Event::AttemptFinished(Box::new(finished(iteration == 1))), at(3)).unwrap();
    }
    let urgency = Urgency::AfterIteration;
    let asked = end.and_then(|end| match end {
        End::Cancelled => Some(Ask::Cancel(urgency)),
        End::Paused => Some(Ask::Pause(urgency)),
        _ => None,
    });
    if let Some(ask) = asked {
        journal.push(Event::Asked { request: None, ask, by: Default::default() }, at(9)).unwrap();
    }
    if let Some(end) = end {
        journal.push(Event::LoopEnded(end), at(9)).unwrap();
    }
    journal.commit(Durability::Written).unwrap();
    dir
}

fn finished(tells: bool) -> AttemptFinished {
    let report = AgentReport {
        session: Session { id: None, model: Some("opus".into()), version: None },
        tokens: Some((Scope::Attempt, Tokens { input: Some(1000), cached_input: None, output: Some(10) })),
        cost: Some((Scope::Attempt, Usd(1_250_000_000))),
        is_final: true,
        ..AgentReport::default()
    };
    AttemptFinished {
        stdout_bytes: 10,
        report: tells.then(|| Box::new(report)),
        preview: "not yet".into(),
        ..AttemptFinished::new(Exit::Code(0))
    }
}

/// What is found, as text, in order.
fn seen(place: &TestProject) -> Vec<String> {
    let found = with(&place.home, |catalog| {
        catalog.update(&place.project, LoopFolder::Loops, Detail::Object, &signing(place))
    })
    .unwrap();
    words(&found)
}

fn word(found: &CatalogEntry) -> String {
    match found {
        CatalogEntry::Stopped(brief) => {
            let status = format!("\"status\":\"{}\"", brief.status.as_str());
            assert!(brief.object.as_ref().is_none_or(|object| object.contains(&status)));
            format!("{} {}", brief.id, brief.status.as_str())
        }
        CatalogEntry::Open { dir, .. } => format!("{} open", dir.0.file_name().unwrap()),
        CatalogEntry::Damaged { name, .. } => format!("{name} damaged"),
    }
}

fn words(found: &[CatalogEntry]) -> Vec<String> {
    let mut words: Vec<_> = found.iter().map(word).collect();
    words.sort();
    words
}

fn sums(place: &TestProject, since: Option<i64>) -> Report {
    let tally = with(&place.home, |catalog| {
        let mut tally = Tally::new(GroupBy::Agent, TimeZone::UTC);
        let mut found = catalog.update(&place.project, LoopFolder::Loops, Detail::Object, &signing(place))?;
        found.extend(catalog.update(&place.project, LoopFolder::Archive, Detail::Line, &signing(place))?);
        catalog.add_up(&place.project, &found, since.map(at), &mut tally)?;
        Ok(tally)
    });
    tally.unwrap().report(None, "UTC".into(), None)
}

fn file(place: &TestProject) -> Utf8PathBuf {
    place.home.join("catalog.sqlite")
}

/// Writes other bytes, so that only the content differs.
#[expect(clippy::disallowed_methods, reason = "damage needs no crash promise")]
fn overwrite(path: &Utf8Path, bytes: &[u8]) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    fs::write(path, bytes).unwrap();
    let times = FileTimes::new().set_modified(modified);
    File::options().write(true).open(path).unwrap().set_times(times).unwrap();
}

#[test]
fn the_catalog_agrees_with_the_journals_as_they_change() {
    let place = place();
    assert_eq!(seen(&place), [""; 0]);
    assert!(!file(&place).exists(), "looking at nothing leaves nothing");

    make(&place.project, "a", Some(End::Cancelled));
    make(&place.project, "b", None);
    let c = make(&place.project, "c", Some(End::Paused));
    assert_eq!(seen(&place), ["a cancelled", "b open", "c paused"]);
    assert_eq!(fs::metadata(file(&place)).unwrap().permissions().mode() & 0o777, 0o600);

    let mut journal: Journal = Journal::open(c.clone(), at(10)).unwrap();
    let limits = journal.state().limits.clone();
    journal.push(Event::LoopResumed { limits, approved: None, no_sandbox: false }, at(10)).unwrap();
    journal.commit(Durability::Written).unwrap();
    assert_eq!(seen(&place), ["a cancelled", "b open", "c open"]);

    fs::remove_dir_all(&c.0).unwrap();
    archive::put_aside(&place.project, &id("a"), at(9)).unwrap();
    assert_eq!(seen(&place), ["b open"]);
}

#[test]
fn a_journal_that_was_not_written_since_is_not_opened() {
    let place = place();
    let journal = make(&place.project, "a", Some(End::Cancelled)).journal();
    assert_eq!(seen(&place), ["a cancelled"]);
    let bytes = fs::read(&journal).unwrap();
    overwrite(&journal, &vec![b'x'; bytes.len()]);
    assert_eq!(seen(&place), ["a cancelled"], "it was opened");
    overwrite(&journal, b"damage\n");
    assert_eq!(seen(&place), ["a damaged"]);
    overwrite(&journal, &bytes);
    assert_eq!(seen(&place), ["a cancelled"]);
}

#[test]
fn an_open_loop_that_a_server_knows_is_read_again_once_anything_it_follows_from_changed() {
    let place = place();
    let (dir, known) = (make(&place.project, "a", None), KnownJournals::default());
    let look = || {
        let found = with_known(&place.home, Some(&known), |catalog| {
            catalog.update(&place.project, LoopFolder::Loops, Detail::Line, &signing(&place))
        });
        match found.unwrap().pop() {
            Some(CatalogEntry::Open { state, .. }) => Some(state),
            Some(CatalogEntry::Stopped(_) | CatalogEntry::Damaged { .. }) | None => None,
        }
    };
    let first = look().unwrap();
    assert!(Arc::ptr_eq(&first, &look().unwrap()), "nothing changed");

    let mut journal: Journal = Journal::open(dir.clone(), at(10)).unwrap();
    journal.push(Event::IterationBegun { iteration: 3, work: None }, at(10)).unwrap();
    journal.commit(Durability::Written).unwrap();
    let second = look().unwrap();
    assert_eq!((first.iteration, second.iteration), (2, 3), "its journal has grown");

    // What its signatures are judged by: the key, and what the user trusts.
    let own = signing(&place).place(&dir);
    for path in signing(&place).judges().into_iter().chain([own]) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let before = look().unwrap();
        crate::write_atomic(&path, &std::fs::read(&path).unwrap_or_default()).unwrap();
        let after = look();
        assert!(after.is_none_or(|after| !Arc::ptr_eq(&before, &after)), "{path} was written");
    }

    let bytes = fs::read(dir.journal()).unwrap();
    overwrite(&dir.journal(), &bytes[..bytes.len() - 1]);
    assert!(
        !look().is_some_and(|now| Arc::ptr_eq(&now, &second)),
        "it was cut by a byte, and has the same time"
    );
    fs::remove_dir_all(&dir.0).unwrap();
    assert!(look().is_none(), "it is gone");
    assert!(known.is_empty(), "and nothing is kept of it");
}

#[test]
fn what_a_server_knows_of_stopped_loops_is_never_older_than_their_journals_and_never_keeps_them_from_the_catalog()
 {
    let (place, known) = (place(), KnownJournals::default());
    let look = || {
        let mut found = with_known(&place.home, Some(&known), |catalog| {
            let on = |shelf, catalog: &mut Catalog| {
                catalog.update(&place.project, shelf, Detail::Line, &signing(&place))
            };
            let mut found = on(LoopFolder::Loops, catalog)?;
            found.extend(on(LoopFolder::Archive, catalog)?);
            let cost = catalog.cost(&place.project, &found, at(0))?;
            Ok((found, cost.map(|(cost, _)| f64::from(cost))))
        });
        let (found, cost) = found.as_mut().unwrap();
        let mut words: Vec<_> = found.iter().map(word).collect();
        words.sort();
        (words.join(", "), *cost)
    };
    let kept = || {
        let db = rusqlite::Connection::open(file(&place)).unwrap();
        db.query_row("SELECT count(*) FROM loops", [], |row| row.get::<_, u32>(0)).unwrap()
    };
    let shows = |words: &str, cost: f64, rows: u32| {
        for _ in 0..3 {
            assert_eq!(look(), (words.to_owned(), Some(cost)));
        }
        assert_eq!(kept(), rows);
    };
    make(&place.project, "a", Some(End::Cancelled));
    let b = make(&place.project, "b", Some(End::Paused));
    fs::create_dir_all(place.project.loops().join("no journal yet")).unwrap();
    shows("a cancelled, b paused", 2.5, 2);

    // Another process resumes one, and starts one.
    let mut journal: Journal = Journal::open(b.clone(), at(10)).unwrap();
    let limits = journal.state().limits.clone();
    journal.push(Event::LoopResumed { limits, approved: None, no_sandbox: false }, at(10)).unwrap();
    journal.commit(Durability::Written).unwrap();
    shows("a cancelled, b open", 2.5, 1);
    let c = make(&place.project, "c", None);
    shows("a cancelled, b open, c open", 3.75, 1);
    let mut journal: Journal = Journal::open_signed(c, at(11), signing(&place)).unwrap();
    let ask = Ask::Cancel(Urgency::AfterIteration);
    journal.push(Event::Asked { request: None, ask, by: Default::default() }, at(11)).unwrap();
    journal.push(Event::LoopEnded(End::Cancelled), at(11)).unwrap();
    journal.commit(Durability::Written).unwrap();
    shows("a cancelled, b open, c cancelled", 3.75, 2);

    // Another process damages one, archives one, and deletes one.
    let bytes = fs::read(b.journal()).unwrap();
    overwrite(&b.journal(), b"damage\n");
    shows("a cancelled, b damaged, c cancelled", 2.5, 2);
    overwrite(&b.journal(), &bytes);
    shows("a cancelled, b open, c cancelled", 3.75, 2);
    archive::put_aside(&place.project, &id("a"), at(9)).unwrap();
    shows("a cancelled, b open, c cancelled", 3.75, 2);
    fs::remove_dir_all(place.project.loop_dir(&id("c")).0).unwrap();
    shows("a cancelled, b open", 2.5, 1);

    // Another process empties the catalog, or its file is deleted.
    let other = rusqlite::Connection::open(file(&place)).unwrap();
    other.execute_batch("DELETE FROM loops").unwrap();
    shows("a cancelled, b open", 2.5, 1);
    fs::remove_file(file(&place)).unwrap();
    shows("a cancelled, b open", 2.5, 1);
    spoil(&file(&place), "text");
    shows("a cancelled, b open", 2.5, 1);
}

#[test]
fn an_entry_noted_by_a_runner_is_used_without_a_scan() {
    let place = place();
    let dirs = [("a", Some(End::Cancelled)), ("b", None)].map(|(name, end)| make(&place.project, name, end));
    for dir in &dirs {
        note(&place.home, dir, &signing(&place)).unwrap();
    }
    overwrite(&dirs[0].journal(), &vec![b'x'; fs::read(dirs[0].journal()).unwrap().len()]);
    assert_eq!(seen(&place), ["a cancelled", "b open"]);
}

#[expect(clippy::disallowed_methods, reason = "damage needs no crash promise")]
fn spoil(path: &Utf8Path, how: &str) {
    let length = fs::metadata(path).unwrap().len();
    let mut bytes = fs::read(path).unwrap();
    match how {
        "empty" => bytes.clear(),
        "text" => bytes = b"this is no database".repeat(1000),
        "truncated" => bytes.truncate(usize::try_from(length).unwrap() / 2),
        "garbage" => bytes[4096..].fill(0xa5),
        "a newer version" => {
            let db = rusqlite::Connection::open(path).unwrap();
            return db.pragma_update(None, "user_version", 99).unwrap();
        }
        "another program's" => {
            let db = rusqlite::Connection::open(path).unwrap();
            return db.execute_batch("DROP TABLE attempts; DROP TABLE objects; DROP TABLE loops").unwrap();
        }
        "a folder" => {
            fs::remove_file(path).unwrap();
            return fs::create_dir(path).unwrap();
        }
        other => panic!("{other}"),
    }
    fs::write(path, bytes).unwrap();
}

#[rstest]
fn an_unusable_catalog_is_put_aside_and_rebuilt(
    #[values("empty", "text", "truncated", "garbage", "a newer version", "another program's", "a folder")]
    how: &str,
) {
    let place = place();
    for name in ["a", "b", "c"] {
        make(&place.project, name, Some(End::Cancelled));
    }
    let (before, summed) = (seen(&place), sums(&place, None));
    spoil(&file(&place), how);
    assert_eq!((seen(&place), sums(&place, None)), (before.clone(), summed.clone()));
    if how != "a folder" {
        assert_eq!((seen(&place), sums(&place, None)), (before, summed));
        let db = rusqlite::Connection::open(file(&place)).unwrap();
        let kept: u32 = db.query_row("SELECT count(*) FROM loops", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, 3, "it is kept again");
    }
    let has_aside = place.home.join("catalog.sqlite.aside").exists();
    assert_eq!(has_aside, !matches!(how, "empty" | "a folder"), "{how}");
}

#[test]
fn a_catalog_locked_by_another_writer_is_bypassed() {
    let place = place();
    make(&place.project, "a", Some(End::Cancelled));
    assert_eq!(seen(&place), ["a cancelled"]);
    let other = rusqlite::Connection::open(file(&place)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; DELETE FROM loops").unwrap();
    let b = make(&place.project, "b", Some(End::Cancelled));
    assert!(matches!(note(&place.home, &b, &signing(&place)), Err(CatalogError::Unreachable(_))));
    assert_eq!(seen(&place), ["a cancelled", "b cancelled"]);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(seen(&place), ["a cancelled", "b cancelled"]);
}

#[test]
fn many_at_once_do_not_harm_each_other() {
    let place = place();
    let names: Vec<String> = (0..40).map(|k| format!("loop-{k:02}")).collect();
    for name in &names {
        make(&place.project, name, Some(End::IterationCap));
    }
    let expected: Vec<String> = names.iter().map(|name| format!("{name} iteration-cap")).collect();
    std::thread::scope(|scope| {
        for k in 0..8 {
            let (place, names, expected) = (&place, &names, &expected);
            scope.spawn(move || {
                for round in 0..5 {
                    assert_eq!(&seen(place), expected);
                    let dir = place.project.loop_dir(&id(&names[k * 5 + round]));
                    // It may be too busy for a runner to wait; no other error is in order.
                    if let Err(error) = note(&place.home, &dir, &signing(place)) {
                        assert!(matches!(error, CatalogError::Unreachable(_)), "{error}");
                    }
                }
            });
        }
    });
    assert_eq!(seen(&place), expected);
    assert_eq!(sums(&place, None).total.attempts, 80);
}

#[test]
fn usage_is_summed_for_open_stopped_and_archived_loops() {
    let place = place();
    make(&place.project, "stopped", Some(End::IterationCap));
    make(&place.project, "open", None);
    make(&place.project, "aside", Some(End::Cancelled));
    archive::put_aside(&place.project, &id("aside"), at(9)).unwrap();
    for _ in 0..2 {
        let report = sums(&place, None);
        let sum = &report.total;
        assert_eq!((sum.loops, sum.attempts, sum.without_cost), (3, 6, 3));
        assert_eq!((sum.usage.cost_usd, sum.usage.input_tokens), (Some(3.75), Some(3000)));
        assert_eq!(report.stops.iter().map(|stop| stop.loops).sum::<u64>(), 2);
    }
    assert_eq!(sums(&place, Some(4)).total.attempts, 0, "they ended before");
    assert_eq!(sums(&place, Some(3)).total.attempts, 6);
}

#[test]
fn projects_that_are_off_the_list_are_forgotten() {
    let place = place();
    make(&place.project, "a", Some(End::Cancelled));
    assert_eq!(sums(&place, None).total.attempts, 2);
    let known = |roots: &[&str]| {
        with(&place.home, |catalog| {
            catalog.keep_projects(roots)?;
            let mut tally = Tally::new(GroupBy::Day, TimeZone::UTC);
            catalog.add_up(&place.project, &[], None, &mut tally)?;
            Ok(tally.report(None, "UTC".into(), None).total.attempts)
        })
    };
    assert_eq!(known(&["/elsewhere", place.project.root.as_str()]).unwrap(), 2);
    assert_eq!(known(&["/elsewhere"]).unwrap(), 0);
}
