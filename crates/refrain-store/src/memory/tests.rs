use std::fs;
use std::os::unix::fs::PermissionsExt;

use camino::Utf8Path;
use jiff::Timestamp;
use refrain_core::memory::{Kind, Memory, Origin, rank, select};
use rusqlite::Connection;

use super::*;

fn at(day: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + day * 86_400).unwrap()
}

fn fact(text: &str, project: &str, day: i64) -> Memory {
    Memory::new(Kind::Fact, text.to_owned(), project, Origin::Loop, 0.7, at(day))
}

fn home(folder: &tempfile::TempDir) -> &Utf8Path {
    Utf8Path::from_path(folder.path()).unwrap()
}

#[test]
fn looking_makes_no_file_and_keeping_makes_one_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(&folder);
    assert!(look(home, |file| file.list(&MemoryFilter::default())).unwrap().is_none());
    assert_eq!(fs::read_dir(home).unwrap().count(), 0);
    make(home, |file| file.remember(vec![fact("The parser is strict", "/p", 0)])).unwrap();
    for entry in fs::read_dir(home).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
    }
}

#[test]
fn a_repeated_memory_is_stored_once_and_gains_importance() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(&folder);
    let say = |text: &str, day| make(home, |file| file.remember(vec![fact(text, "/p", day)])).unwrap();
    say("Use pnpm instead of npm.", 0);
    say("use  PNPM instead of npm", 1);
    say("Use pnpm instead of npm.", 2);
    let all = look(home, |file| file.list(&MemoryFilter::default())).unwrap().unwrap();
    assert_eq!(all.len(), 1, "{all:#?}");
    assert!(all[0].importance > 0.8, "{all:#?}");
    assert_eq!(all[0].created_at, at(0));
    let elsewhere =
        make(home, |file| file.remember(vec![fact("Use pnpm instead of npm.", "/q", 3)])).unwrap();
    assert_ne!(elsewhere[0].id, all[0].id, "another project's is another");
}

#[test]
fn an_episode_replaces_the_earlier_one_of_the_same_loop() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(&folder);
    let episode = |text: &str, id: &str| {
        let new = Memory::new(Kind::Episode, text.to_owned(), "/p", Origin::Loop, 0.5, at(0));
        new.of_loop(&id.parse().unwrap(), at(0), true)
    };
    for (text, id) in
        [("stuck on parsing", "mend"), ("parsing is done", "mend"), ("stuck on parsing", "other")]
    {
        make(home, |file| file.remember(vec![episode(text, id)])).unwrap();
    }
    let all =
        look(home, |file| file.list(&MemoryFilter { kind: Some(Kind::Episode), ..MemoryFilter::default() }));
    let texts: Vec<_> = all.unwrap().unwrap().into_iter().map(|it| it.text).collect();
    assert_eq!(texts, ["stuck on parsing", "parsing is done"]);
    let found = |goal: &str| look(home, |file| file.find(goal, "/p", true, None)).unwrap().unwrap().len();
    assert_eq!((found("done"), found("parsed"), found("stuck")), (0, 2, 1), "the words are those of now");
}

#[test]
fn a_forgotten_memory_is_gone_from_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(&folder);
    let kept = make(home, |file| file.remember(vec![fact("The unmistakable word is xylophone", "/p", 0)]));
    let kept = kept.unwrap();
    look(home, |file| file.forget(kept.iter().map(|it| &it.id))).unwrap();
    for entry in fs::read_dir(home).unwrap().flatten() {
        let bytes = fs::read(entry.path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("xylophone"), "{entry:?}");
    }
}

#[test]
fn a_damaged_file_is_put_aside_and_the_next_one_is_begun() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(&folder);
    for number in 1..=2 {
        crate::write_atomic(&home.join("memory.sqlite"), &[b'x'; 9000]).unwrap();
        let refused = make(home, |file| file.remember(vec![fact("The parser is strict", "/p", 0)]));
        let MemoryError::Damaged(place) = refused.unwrap_err() else { panic!("it is damaged") };
        assert!(place.as_str().ends_with(&format!("memory.sqlite.damaged-{number}")), "{place}");
        assert_eq!(fs::read(&place).unwrap(), [b'x'; 9000]);
        make(home, |file| file.remember(vec![fact("The parser is strict", "/p", 0)])).unwrap();
    }
    assert_eq!(aside(home).len(), 2);
    // A word that no version wrote is damage too.
    let db = Connection::open(home.join("memory.sqlite")).unwrap();
    db.execute("UPDATE memories SET kind = 'rumour'", []).unwrap();
    drop(db);
    assert!(matches!(look(home, |file| file.list(&MemoryFilter::default())), Err(MemoryError::Damaged(_))));
}

#[test]
fn a_file_of_a_newer_version_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(&folder);
    make(home, |file| file.remember(vec![fact("The parser is strict", "/p", 0)])).unwrap();
    Connection::open(home.join("memory.sqlite")).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(look(home, |file| file.list(&MemoryFilter::default())), Err(MemoryError::Newer)));
    assert!(home.join("memory.sqlite").exists() && aside(home).is_empty());
}

#[test]
fn a_memory_file_locked_by_another_writer_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(&folder);
    make(home, |file| file.remember(vec![fact("The parser is strict", "/p", 0)])).unwrap();
    let db = Connection::open(home.join("memory.sqlite")).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = make(home, |file| file.remember(vec![fact("The lexer is lax", "/p", 0)]));
    assert!(matches!(refused, Err(MemoryError::Unreachable(_))), "{refused:?}");
    // Reading continues beside it.
    assert_eq!(look(home, |file| file.find("parser", "/p", true, None)).unwrap().unwrap().len(), 1);
}

#[test]
fn of_ten_thousand_memories_those_of_the_project_come_first() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(&folder);
    let topics =
        ["parser", "lexer", "router", "cache", "login", "invoice", "queue", "index", "schema", "theme"];
    let many = (0..10_000).map(|n| {
        let text = format!("Note {n}: the {} of module {} needs care {}", topics[n % 10], n % 97, n % 89);
        fact(&text, &format!("/p{}", n % 50), 0)
    });
    make(home, |file| file.remember(many.collect())).unwrap();
    let goal = "Mend the parser and the cache of module 7";
    let hits = look(home, |file| file.find(goal, "/p0", true, None)).unwrap().unwrap();
    assert!(hits.len() <= 130, "{}", hits.len());
    let told = select(&rank(hits, goal, "/p0", at(1)), 4_000, "/p0");
    assert!(!told.is_empty() && told.len() <= 20 && told[0].elsewhere.is_none(), "{told:#?}");
}

#[test]
fn vectors_count_only_where_the_same_model_made_them() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(&folder);
    let kept = make(home, |file| {
        file.remember(vec![
            fact("Cats purr", "/p", 0),
            fact("Dogs bark", "/p", 1),
            fact("Fish swim", "/p", 2),
        ])
    });
    let kept = kept.unwrap();
    let vectors = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]];
    look(home, |file| {
        let mut both = kept.iter().zip(&vectors);
        both.try_for_each(|(it, vector)| file.keep_vector(it, Vector { model: "one", of: vector }))
    })
    .unwrap();
    let likest = |model: &str, of: &[f32]| {
        let hits = look(home, |file| file.find("felines", "/p", true, Some(Vector { model, of })));
        let mut hits = hits.unwrap().unwrap();
        hits.sort_by(|a, b| b.likeness.unwrap().total_cmp(&a.likeness.unwrap()));
        hits.into_iter().map(|hit| hit.memory.text).collect::<Vec<_>>()
    };
    assert_eq!(likest("one", &[1.0, 0.0]), ["Cats purr", "Fish swim", "Dogs bark"]);
    assert!(likest("two", &[1.0, 0.0]).is_empty() && likest("one", &[1.0, 0.0, 0.0]).is_empty());
    let missing = look(home, |file| file.without_vector("two", 2)).unwrap().unwrap();
    assert_eq!(missing.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(), ["Fish swim", "Dogs bark"]);
}
