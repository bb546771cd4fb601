//! The money that all loops of a user share: the [`Caps`] of the configuration, and the [`Ledger`] of what is spent and
//! reserved. A runner reserves before it spends and settles the real cost afterwards, so two loops never spend the same
//! money. A loop's own limit is in `Limits::max_cost`; the ledger's file is in refrain-store. Machines of a fleet share a
//! [`SharedLedger`].
//!
//! What an attempt uses counts for the day on which it began, so that it can only use what was left of that day.

mod demand;
mod ledger;
mod shared;

pub use demand::to_grow;
pub use ledger::{Ledger, Reservation, VERSION};
pub use shared::{LastCosts, MoneyAnswer, MoneyChange, MoneyRequest, SharedLedger};

use std::fmt;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::Usd;

/// How much money loops may cost together; none is no cap.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Caps {
    /// All loops of the user, in one day.
    pub day: Option<Usd>,
    /// All loops of one project, in one day.
    pub project_day: Option<Usd>,
    /// All loops of one project, in all.
    pub project: Option<Usd>,
}

impl Caps {
    /// Whether there is no cap at all.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub fn of(&self, which: CapKind) -> Option<Usd> {
        match which {
            CapKind::Day => self.day,
            CapKind::ProjectDay => self.project_day,
            CapKind::Project => self.project,
        }
    }

    /// The lower one of each: what a project's file says can only lower what the user allows.
    #[must_use]
    pub fn lower(self, other: Self) -> Self {
        let lower = |which| [self.of(which), other.of(which)].into_iter().flatten().min();
        Self {
            day: lower(CapKind::Day),
            project_day: lower(CapKind::ProjectDay),
            project: lower(CapKind::Project),
        }
    }
}

/// Which of the shared caps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapKind {
    /// Of all loops of the user, in one day.
    Day,
    /// Of all loops of one project, in one day.
    ProjectDay,
    /// Of all loops of one project, in all.
    Project,
}

impl CapKind {
    /// Every one; of two that leave the same the first is named.
    pub const ALL: [Self; 3] = [Self::Day, Self::ProjectDay, Self::Project];

    /// Its key in `[budget]` of the configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::Day => "max-cost-per-day",
            Self::ProjectDay => "project-max-cost-per-day",
            Self::Project => "project-max-cost",
        }
    }
}

/// A shared cap, and how it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapUsage {
    /// Which.
    pub which: CapKind,
    /// The day that it is about, in the user's own time zone; where it is about days.
    pub day: Date,
    /// The cap, in US dollars.
    pub cap: Usd,
    /// What is spent.
    pub spent: Usd,
    /// What is reserved for what runs.
    pub reserved: Usd,
}

impl CapUsage {
    /// The amount that is neither spent nor reserved.
    pub fn left(&self) -> Usd {
        Usd(self.cap.0.saturating_sub(self.spent.0).saturating_sub(self.reserved.0))
    }

    /// How it is used up, and when there is more.
    pub fn sentence(&self) -> String {
        let reserved = match self.reserved {
            Usd(0) => String::new(),
            reserved => format!(" and {reserved} reserved for loops at work"),
        };
        let more = match self.which {
            CapKind::Day | CapKind::ProjectDay => {
                format!("on {}{reserved}; there is more from midnight on", self.day)
            }
            CapKind::Project => format!("so far{reserved}"),
        };
        format!("{} of {self} ({}) spent {more}", self.spent, self.which.key())
    }
}

impl fmt::Display for CapUsage {
    /// In words that follow "of": `the $20.00 a day for all loops`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cap, .. } = self;
        match self.which {
            CapKind::Day => write!(f, "the {cap} a day for all loops"),
            CapKind::ProjectDay => write!(f, "the {cap} a day for loops of this project"),
            CapKind::Project => write!(f, "the {cap} for loops of this project"),
        }
    }
}

/// What the shared caps allow an attempt in total; before it is started, what they leave to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    pub amount: Usd,
    /// By which cap: the one that leaves the least.
    pub by: CapUsage,
}

#[cfg(test)]
mod tests;
