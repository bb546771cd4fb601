//! The steps that made the tables of a database file, counted by its `user_version`.

use rusqlite::{Connection, TransactionBehavior};

/// Takes the steps that the file has not been through. Returns false, and changes nothing, where it has been through
/// more than there are: a newer version made it.
pub(crate) fn migrate(db: &mut Connection, steps: &[&str]) -> rusqlite::Result<bool> {
    let last = steps.len() as i64;
    if version(db)? == last {
        return Ok(true);
    }
    // Others may be at it too: each waits for the one before, and reads again how far that came.
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let taken = version(&transaction)?;
    for step in steps.iter().skip(usize::try_from(taken).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    if taken < last {
        transaction.pragma_update(None, "user_version", last)?;
    }
    transaction.commit()?;
    Ok(taken <= last)
}

fn version(db: &Connection) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [&str; 2] =
        ["CREATE TABLE a (b INTEGER); INSERT INTO a VALUES (1)", "UPDATE a SET b = b + 1"];

    fn b(db: &Connection) -> i64 {
        db.query_row("SELECT b FROM a", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn each_step_is_taken_once_and_in_order() {
        let mut db = Connection::open_in_memory().unwrap();
        assert!(migrate(&mut db, &STEPS[..1]).unwrap());
        assert_eq!(b(&db), 1);
        assert!(migrate(&mut db, &STEPS).unwrap() && migrate(&mut db, &STEPS).unwrap());
        assert_eq!(b(&db), 2);
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let mut db = Connection::open_in_memory().unwrap();
        assert!(migrate(&mut db, &STEPS[..1]).unwrap());
        migrate(&mut db, &[STEPS[0], STEPS[1], "UPDATE a SET c = 1"]).unwrap_err();
        assert_eq!((b(&db), version(&db).unwrap()), (1, 1));
    }

    #[test]
    fn a_file_of_a_newer_version_is_not_touched() {
        let mut db = Connection::open_in_memory().unwrap();
        assert!(migrate(&mut db, &STEPS).unwrap());
        assert!(!migrate(&mut db, &STEPS[..1]).unwrap());
        assert_eq!((b(&db), version(&db).unwrap()), (2, 2));
    }
}
