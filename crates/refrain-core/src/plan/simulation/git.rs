//! A repository in which a commit is the set of its pieces of work.

use std::collections::{BTreeSet, HashMap};

use crate::git::Oid;
use crate::plan::{MergedTask, TaskId};

/// Pieces of work, by their numbers. What a person commits meanwhile has large ones.
pub(super) type Content = BTreeSet<u64>;

const FOREIGN: u64 = 1_000_000;

/// The work of one round of a task.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) task: TaskId,
    pub(super) base: Content,
    pub(super) is_empty: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Git {
    salt: u64,
    /// One in so many pairs of pieces conflict, fail only together; one in so many pieces cannot be merged, may not
    /// land.
    rates: [u64; 4],
    pub(super) works: Vec<Work>,
    objects: HashMap<Oid, Content>,
    next: u64,
    /// The commit that a person has checked out.
    pub(super) branch: Oid,
    foreign: u64,
    /// Earlier results, by the tip of the line and the commits to put onto it.
    landed: HashMap<(Oid, Vec<Oid>), LandingRecord>,
}

#[derive(Clone, Debug)]
pub(super) struct LandingRecord {
    pub(super) commits: Vec<Option<Oid>>,
    pub(super) refused: Option<String>,
    pub(super) tip: Oid,
}

fn mixed(numbers: [u64; 4]) -> u64 {
    let mix = |hash: u64, number: u64| (hash ^ number).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(31);
    let hash = numbers.into_iter().fold(0x9e37_79b9_7f4a_7c15, mix);
    hash ^ (hash >> 29)
}

impl Git {
    pub(super) fn new(salt: u64, rates: [u64; 4]) -> Self {
        let branch = tree_of(&Content::new());
        let mut git = Self {
            salt,
            rates,
            works: Vec::new(),
            objects: HashMap::new(),
            next: 0,
            branch,
            foreign: FOREIGN,
            landed: HashMap::new(),
        };
        git.branch = git.commit(Content::new());
        git
    }

    pub(super) fn commit(&mut self, content: Content) -> Oid {
        self.next += 1;
        let oid: Oid = format!("c{:039x}", self.next).parse().expect("a name of an object");
        self.objects.insert(oid.clone(), content);
        oid
    }

    pub(super) fn tree(&mut self, content: Content) -> Oid {
        let oid = tree_of(&content);
        self.objects.insert(oid.clone(), content);
        oid
    }

    pub(super) fn content(&self, oid: &Oid) -> &Content {
        &self.objects[oid]
    }

    /// A task's work, and the tree that its gates saw.
    pub(super) fn work(&mut self, work: Work) -> (u64, Oid) {
        let number = self.works.len() as u64;
        let mut content = work.base.clone();
        content.extend((!work.is_empty).then_some(number));
        self.works.push(work);
        (number, self.tree(content))
    }

    fn hits(&self, what: usize, one: u64, other: u64) -> bool {
        let rate = self.rates[what];
        rate > 0 && mixed([self.salt, what as u64, one, other]).is_multiple_of(rate)
    }

    /// Whether neither of two pieces was made on top of the other. What a person commits gets on with everything.
    fn strangers(&self, one: u64, other: u64) -> bool {
        let knows = |one: u64, other| {
            usize::try_from(one)
                .ok()
                .and_then(|n| self.works.get(n))
                .is_some_and(|work| work.base.contains(&other))
        };
        one != other && one.max(other) < FOREIGN && !knows(one, other) && !knows(other, one)
    }

    /// Whether a piece and the existing content changed the same.
    pub(super) fn conflicts(&self, piece: u64, with: &Content) -> bool {
        let work = &self.works[usize::try_from(piece).expect("a work")];
        !work.is_empty
            && with.iter().any(|other| {
                self.strangers(piece, *other) && self.hits(0, piece.min(*other), piece.max(*other))
            })
    }

    pub(super) fn fails(&self, content: &Content) -> bool {
        let mut rest = content.iter();
        while let Some(one) = rest.next() {
            if rest.clone().any(|other| self.strangers(*one, *other) && self.hits(1, *one, *other)) {
                return true;
            }
        }
        false
    }

    pub(super) fn cannot_merge(&self, piece: u64) -> bool {
        self.hits(2, piece, 0)
    }

    /// Puts this many of a batch onto the line. Earlier results are found.
    pub(super) fn land(
        &mut self,
        tip: &Oid,
        merged: &[MergedTask],
        upto: usize,
        works: &[u64],
    ) -> (LandingRecord, bool) {
        let key = (tip.clone(), merged[..upto].iter().map(|one| one.tree.clone()).collect());
        if let Some(done) = self.landed.get(&key) {
            return (done.clone(), true);
        }
        let mut landed = LandingRecord { commits: Vec::new(), refused: None, tip: tip.clone() };
        for piece in &works[..upto] {
            if self.hits(3, *piece, 0) {
                landed.refused = Some("it looks like a secret".into());
                break;
            }
            if self.works[usize::try_from(*piece).expect("a work")].is_empty {
                landed.commits.push(None);
                continue;
            }
            let mut content = self.content(&landed.tip).clone();
            content.insert(*piece);
            landed.tip = self.commit(content);
            landed.commits.push(Some(landed.tip.clone()));
        }
        self.landed.insert(key, landed.clone());
        (landed, false)
    }

    /// A person commits something of their own.
    pub(super) fn meddle(&mut self) {
        self.foreign += 1;
        let mut content = self.content(&self.branch).clone();
        content.insert(self.foreign);
        self.branch = self.commit(content);
    }

    /// Brings a person's checkout to a commit; returns its content then.
    pub(super) fn hand_over(&mut self, commit: &Oid) -> Oid {
        let (mine, theirs) = (self.content(commit).clone(), self.content(&self.branch).clone());
        if theirs.is_subset(&mine) {
            self.branch = commit.clone();
        } else if !mine.is_subset(&theirs) {
            self.branch = self.commit(mine.union(&theirs).copied().collect());
        }
        self.branch.clone()
    }
}

fn tree_of(content: &Content) -> Oid {
    let hash = content.iter().fold(7, |hash, piece| mixed([hash, *piece, 11, 13]));
    format!("{hash:040x}").parse().expect("a name of an object")
}
