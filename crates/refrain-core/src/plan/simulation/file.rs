//! The task file: its first content, and the edits of people.

use crate::plan::{Card, Priority, TaskId, TaskStatus};
use crate::simulation::random::Random;

/// A task as its file has it. Its id is a number, and it depends on smaller ones only.
#[derive(Clone, Debug)]
struct Row {
    card: Card,
    number: u64,
    /// A person wrote its status, and no runner has read that yet.
    is_touched: bool,
}

#[derive(Clone, Debug)]
pub(super) struct TaskFile {
    rows: Vec<Row>,
    next: u64,
    pub(super) is_valid: bool,
    /// Another writer than the plan changed it since it was read.
    pub(super) is_changed: bool,
}

fn id(number: u64) -> TaskId {
    number.to_string().parse().expect("a number is an id")
}

fn index(random: &mut Random, of: usize) -> usize {
    usize::try_from(random.below(of as u64)).expect("a place in a list")
}

impl TaskFile {
    /// Layers, chains, stars, wide ones and empty ones.
    pub(super) fn sample(random: &mut Random) -> Self {
        let count = match random.below(20) {
            0 => 0,
            1 => random.between(30, 60),
            2..=6 => random.between(10, 25),
            _ => random.between(1, 9),
        };
        let shape = random.below(6);
        let width = random.between(1, 6);
        let used = random.once_in(3);
        let mut file = Self { rows: Vec::new(), next: 1, is_valid: true, is_changed: false };
        for number in 1..=count {
            let before = number - 1;
            let dependencies: Vec<u64> = match shape {
                // A chain, a star, its reverse, and no dependency at all.
                0 if number > 1 => vec![before],
                1 if number > 1 => vec![1],
                2 if number == count => (1..count).collect(),
                0..=3 => Vec::new(),
                // Layers: each on some of the one before it.
                4 => {
                    let (from, to) = ((before / width).saturating_sub(1) * width + 1, before / width * width);
                    (from..=to).filter(|_| random.once_in(2)).collect()
                }
                _ => (1..number).filter(|_| random.once_in(4)).collect(),
            };
            let status =
                if used && random.once_in(4) { random.pick(&TaskStatus::ALL) } else { TaskStatus::Pending };
            file.push(random, dependencies, status);
        }
        file
    }

    fn push(&mut self, random: &mut Random, dependencies: Vec<u64>, status: TaskStatus) {
        let card = Card {
            id: id(self.next),
            title: String::new(),
            status,
            complexity: u32::try_from(random.pick(&[0, 1, 2, 3, 5, 8])).expect("a small number"),
            priority: Priority::Medium,
            dependencies: dependencies.into_iter().map(id).collect(),
            parent: None,
        };
        let row = Row { card, number: self.next, is_touched: false };
        let place = if random.once_in(3) { index(random, self.rows.len() + 1) } else { self.rows.len() };
        self.rows.insert(place, row);
        self.next += 1;
    }

    pub(super) fn read(&mut self) -> Option<Vec<Card>> {
        self.is_changed = false;
        self.is_valid.then(|| {
            self.rows.iter_mut().for_each(|row| row.is_touched = false);
            self.rows.iter().map(|row| row.card.clone()).collect()
        })
    }

    /// The plan writes the status of a task, but never over what a person wrote.
    pub(super) fn write(&mut self, id: &TaskId, status: TaskStatus) {
        let row = self.rows.iter_mut().find(|row| row.card.id == *id && !row.is_touched);
        if let Some(row) = row.filter(|_| self.is_valid) {
            row.card.status = status;
        }
    }

    /// The file has the plan's own status, unless another writer changed it.
    pub(super) fn assert_says(&self, id: &TaskId, status: TaskStatus) {
        let row = self.rows.iter().find(|row| row.card.id == *id && !row.is_touched);
        if let Some(row) = row.filter(|_| self.is_valid && !self.is_changed) {
            assert_eq!(row.card.status, status, "the file of {id}");
        }
    }

    /// A person edits it; answers what they did.
    pub(super) fn edit(&mut self, random: &mut Random) -> &'static str {
        self.is_changed = true;
        if !self.is_valid || random.once_in(10) {
            self.is_valid = !self.is_valid;
            return if self.is_valid { "mended" } else { "broken" };
        }
        let some: Vec<u64> = self.rows.iter().map(|row| row.number).filter(|_| random.once_in(3)).collect();
        if self.rows.is_empty() || random.once_in(4) {
            self.push(random, some, TaskStatus::Pending);
            return "a task added";
        }
        let place = index(random, self.rows.len());
        let number = self.rows[place].number;
        match random.below(6) {
            0 => {
                let gone = self.rows.remove(place).card.id;
                for row in &mut self.rows {
                    row.card.dependencies.retain(|id| *id != gone);
                }
                "a task removed"
            }
            1 | 2 => {
                let others = some.into_iter().filter(|other| *other < number);
                self.rows[place].card.dependencies = others.map(id).collect();
                "dependencies changed"
            }
            3 => {
                // A person who sorts a file moves a task to another place.
                let row = self.rows.remove(place);
                self.rows.push(row);
                "a task moved"
            }
            _ => {
                let row = &mut self.rows[place];
                row.card.status = random.pick(&TaskStatus::ALL);
                row.is_touched = true;
                "a status set"
            }
        }
    }
}
