//! What is spent, and what is reserved. All sums are exact; none wraps.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::ToSpan;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::{Allowance, CapKind, CapUsage, Caps};
use crate::agent::Usd;
use crate::event::Identity;

/// The version of the ledger's format. A reader refuses any other.
pub const VERSION: u32 = 1;

/// For how many days before the last one it is known what was spent: no clock is more wrong than that, and no time
/// zone.
const DAYS: i64 = 7;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    version: u32,
    days: BTreeMap<Date, BTreeMap<String, Usd>>,
    /// Spent money, by project, since the ledger exists.
    projects: BTreeMap<String, Usd>,
    open: Vec<Reservation>,
}

/// Money set aside for one run of an agent; no other run can use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    /// The folder of the loop that holds it.
    pub of: Utf8PathBuf,
    /// The number of the agent's run in this loop, from 0 ([`LoopState::costs`](crate::LoopState::costs)).
    pub run: u64,
    pub project: String,
    /// The day on which it was made, and for which it counts.
    pub day: Date,
    /// The process that will settle it. If that process is gone, any other may settle it.
    pub runner: Identity,
    pub amount: Usd,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { version: VERSION, days: BTreeMap::new(), projects: BTreeMap::new(), open: Vec::new() }
    }
}

impl Ledger {
    /// Its version: of one that was read it may be another than [`VERSION`].
    pub fn version(&self) -> u32 {
        self.version
    }

    pub fn open(&self) -> &[Reservation] {
        &self.open
    }

    /// What runs spent, each with its project and with the day on which it began, as the journals of their loops have it.
    pub fn of_runs(runs: impl IntoIterator<Item = (String, Date, Usd)>) -> Self {
        let mut ledger = Self::default();
        for (project, day, cost) in runs {
            ledger.spend(project, day, cost);
        }
        ledger
    }

    fn spend(&mut self, project: String, day: Date, cost: Usd) {
        if cost > Usd(0) {
            add(self.projects.entry(project.clone()).or_default(), cost);
            add(self.days.entry(day).or_default().entry(project).or_default(), cost);
        }
    }

    pub fn standings(&self, caps: &Caps, project: &str, day: Date) -> Vec<CapUsage> {
        let standing = |which| {
            let (spent, reserved) = (self.spent(which, project, day), self.reserved(which, project, day));
            Some(CapUsage { which, day, cap: caps.of(which)?, spent, reserved })
        };
        CapKind::ALL.into_iter().filter_map(standing).collect()
    }

    /// What is left under every cap; none if there is no cap.
    pub fn left(&self, caps: &Caps, project: &str, day: Date) -> Option<Allowance> {
        let by = self.standings(caps, project, day).into_iter().min_by_key(CapUsage::left)?;
        Some(Allowance { amount: by.left(), by })
    }

    fn spent(&self, which: CapKind, project: &str, day: Date) -> Usd {
        let of_day = self.days.get(&day);
        let of = |all: &BTreeMap<String, Usd>| all.get(project).copied().unwrap_or_default();
        match which {
            CapKind::Day => sum(of_day.iter().flat_map(|day| day.values())),
            CapKind::ProjectDay => of_day.map(of).unwrap_or_default(),
            CapKind::Project => of(&self.projects),
        }
    }

    fn reserved(&self, which: CapKind, project: &str, day: Date) -> Usd {
        let counts = |it: &&Reservation| match which {
            CapKind::Day => it.day == day,
            CapKind::ProjectDay => it.day == day && it.project == project,
            CapKind::Project => it.project == project,
        };
        sum(self.open.iter().filter(counts).map(|it| &it.amount))
    }

    /// Reserves as much of `wish.amount` as every cap leaves and returns the result; reserves nothing if nothing is
    /// left. Without a cap nothing has to be reserved, but the spending is recorded all the same.
    ///
    /// An earlier reservation for the same run is dropped: the caller has settled it.
    pub fn reserve(&mut self, wish: Reservation, caps: &Caps) -> Option<Allowance> {
        self.open.retain(|it| !it.is(&wish.of, wish.run));
        self.forget(wish.day);
        let left = self.left(caps, &wish.project, wish.day);
        let amount = left.map_or(Usd(0), |left| left.amount.min(wish.amount));
        if left.is_none() || amount > Usd(0) {
            self.open.push(Reservation { amount, ..wish });
        }
        Some(Allowance { amount, ..left? })
    }

    /// Lets a reservation grow up to `to`, as far as every cap leaves room, and returns what it allows then. It never
    /// shrinks. None if there is no cap, or no such reservation.
    pub fn grow(&mut self, of: &Utf8Path, run: u64, to: Usd, caps: &Caps) -> Option<Allowance> {
        let at = self.open.iter().position(|it| it.is(of, run))?;
        let Reservation { project, day, amount, .. } = &self.open[at];
        let left = self.left(caps, project, *day)?;
        let more = to.0.saturating_sub(amount.0).min(left.amount.0);
        let amount = Usd(amount.0.saturating_add(more));
        self.open[at].amount = amount;
        Some(Allowance { amount, ..left })
    }

    /// Settles a reservation: what was really used is spent, or the whole reservation if the usage is unknown. A
    /// settled one stays as it is. Returns whether anything changed.
    pub fn settle(&mut self, of: &Utf8Path, run: u64, used: Option<Usd>) -> bool {
        let Some(at) = self.open.iter().position(|it| it.is(of, run)) else { return false };
        let Reservation { project, day, amount, .. } = self.open.swap_remove(at);
        self.spend(project, day, used.unwrap_or(amount));
        true
    }

    /// Drops the days that nothing asks for any more.
    fn forget(&mut self, today: Date) {
        let first = today.saturating_sub(DAYS.days());
        let needed: Vec<Date> = self.open.iter().map(|it| it.day).collect();
        self.days.retain(|day, _| *day >= first || needed.contains(day));
    }
}

impl Reservation {
    pub fn is(&self, of: &Utf8Path, run: u64) -> bool {
        self.of == of && self.run == run
    }
}

fn sum<'a>(all: impl Iterator<Item = &'a Usd>) -> Usd {
    all.fold(Usd(0), |sum, Usd(more)| Usd(sum.0.saturating_add(*more)))
}

fn add(to: &mut Usd, Usd(more): Usd) {
    to.0 = to.0.saturating_add(more);
}
