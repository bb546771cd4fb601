//! More loops than are watched: nothing that happens to any of them is lost.

use refrain_core::Event;
use refrain_core::event::{Ask, Urgency};
use refrain_store::journal::{Durability, Journal as Writer};

use super::*;
use crate::now;
use crate::session::tests::TestProject;

/// Loops, and a watcher over them that may watch at most `bound`.
fn outlook(loops: usize, bound: usize) -> (TestProject, Vec<LoopId>, JournalWatcher) {
    let place = TestProject::new();
    let ids = (0..loops).map(|number| place.begin(number)).collect();
    let service = place.service.clone();
    let lookout = JournalWatcher::bounded(Box::new(move || vec![service.clone()]), true, bound).unwrap();
    (place, ids, lookout)
}

fn writer(place: &TestProject, id: &LoopId) -> Writer {
    Writer::open(place.service.project().loop_dir(id), now()).unwrap()
}

fn record(writer: &mut Writer) {
    writer
        .push(
            Event::Asked { request: None, ask: Ask::Pause(Urgency::AfterIteration), by: Default::default() },
            now(),
        )
        .unwrap();
    writer.commit(Durability::Written).unwrap();
}

/// The news, as text; the limit is only there for a test that fails.
fn heard(lookout: &mut JournalWatcher) -> Vec<String> {
    let word = |news: News| match news {
        News::Recorded(whose, mark) => format!("{} {}", whose.id, mark.name),
        News::Printed(whose, _) => format!("{} prints", whose.id),
        News::Listed => "listed".to_owned(),
    };
    let mut looks = std::iter::repeat_with(|| lookout.wait(Some(Duration::from_secs(1)))).take(10);
    let mut heard: Vec<_> = looks.find(|news| !news.is_empty()).unwrap_or_default();
    // One look may find only half of it.
    heard.extend(lookout.wait(Some(Duration::ZERO)));
    heard.into_iter().map(word).collect()
}

fn watched(lookout: &JournalWatcher) -> usize {
    lookout.journals.values().filter(|journal| journal.is_watched).count()
}

#[test]
fn an_unwatched_journal_is_noticed_when_it_grows_again() {
    let (place, ids, mut lookout) = outlook(5, 2);
    assert_eq!(watched(&lookout), 2);
    for round in 0..2 {
        for id in &ids {
            record(&mut writer(&place, id));
            assert_eq!(heard(&mut lookout), [format!("{id} asked")], "round {round}");
            assert!(watched(&lookout) <= 2, "{} are watched", watched(&lookout));
        }
    }
    assert!(lookout.wait(Some(Duration::ZERO)).is_empty());
}

#[test]
fn a_journal_with_a_runner_stays_watched_among_many() {
    let (place, ids, mut lookout) = outlook(5, 2);
    let lock = RunnerLock::try_take(&place.service.project().loop_dir(&ids[0])).unwrap();
    let mut driven = writer(&place, &ids[0]);
    for id in &ids[1..] {
        record(&mut driven);
        assert_eq!(heard(&mut lookout), [format!("{} asked", ids[0])]);
        record(&mut writer(&place, id));
        assert_eq!(heard(&mut lookout), [format!("{id} asked")]);
    }
    drop(lock);
}

/// As where the system had no watch left for it, the last time that was looked.
fn is_short_of(lookout: &mut JournalWatcher, path: &Utf8Path) {
    lookout.unwatch(path);
    lookout.without.insert(path.to_owned());
    lookout.journals.entry(path.to_owned()).and_modify(|journal| journal.is_watched = false);
    lookout.looked = Instant::now().checked_sub(WITHOUT).unwrap();
}

#[test]
fn journals_without_a_watch_are_read_while_others_are_busy() {
    let (place, ids, mut lookout) = outlook(2, 2);
    let journal = place.service.project().loop_dir(&ids[0]).journal();
    let (mut quiet, mut busy) = (writer(&place, &ids[0]), writer(&place, &ids[1]));
    is_short_of(&mut lookout, &journal);
    record(&mut quiet);
    record(&mut busy);
    let mut heard = heard(&mut lookout);
    heard.sort();
    assert_eq!(heard, [format!("{} asked", ids[0]), format!("{} asked", ids[1])]);
    assert!(lookout.without.is_empty() && watched(&lookout) == 2, "there are watches again");
}

#[test]
fn a_folder_that_there_is_no_watch_for_is_looked_at() {
    let (place, _ids, mut lookout) = outlook(1, 2);
    is_short_of(&mut lookout, &place.service.project().loops());
    let new = place.begin(7);
    let came = heard(&mut lookout);
    assert_eq!(came.first(), Some(&format!("{new} loop.started")), "{came:?}");
    assert!(lookout.without.is_empty(), "there is a watch again");
}

#[test]
fn added_archived_and_deleted_loops_are_reported() {
    let (place, ids, mut lookout) = outlook(3, 2);
    let new = place.begin(7);
    let came = heard(&mut lookout);
    assert_eq!(came.first(), Some(&format!("{new} loop.started")), "{came:?}");
    for id in [&ids[0], &new] {
        refrain_store::project::archive::put_aside(place.service.project(), id, now()).unwrap();
        assert_eq!(heard(&mut lookout), ["listed"], "{id} was put aside");
    }
    fs::remove_dir_all(&place.service.project().loop_dir(&ids[2]).0).unwrap();
    assert_eq!(heard(&mut lookout), ["listed"], "it was deleted");
    assert_eq!(lookout.journals.len(), 1);
}

#[test]
fn records_since_a_time_are_read_without_watching() {
    let (place, ids, _lookout) = outlook(3, 2);
    let names = |most| {
        let then = now();
        record(&mut writer(&place, &ids[1]));
        let found = recorded_since(vec![place.service.clone()], then, most)?;
        let is_asked = |news: &&News| matches!(news, News::Recorded(_, mark) if mark.name == "asked");
        Some(found.iter().filter(is_asked).count())
    };
    assert_eq!(names(1000), Some(1));
    assert_eq!(names(2), None, "it would be too much");
}
