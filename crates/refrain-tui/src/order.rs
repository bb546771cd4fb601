//! The orders of the list.

use std::cmp::Ordering;

use jiff::Timestamp;
use refrain_core::view::Group;
use refrain_engine::{Entry, ListRow};

/// The order of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// Those that need you, those that run, and the others, the last touched first.
    #[default]
    Need,
    Touched,
    Cost,
    Name,
    /// By project; within one as for need.
    Project,
}

impl Order {
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Need => Self::Touched,
            Self::Touched => Self::Cost,
            Self::Cost => Self::Name,
            Self::Name => Self::Project,
            Self::Project => Self::Need,
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Need => "what needs you first",
            Self::Touched => "the last touched first",
            Self::Cost => "the dearest first",
            Self::Name => "by name",
            Self::Project => "by project",
        }
    }

    pub(crate) fn compare(self, one: &Entry, other: &Entry) -> Ordering {
        let (one, other) = match (one, other) {
            (Entry::Seen(one), Entry::Seen(other)) => (one, other),
            (Entry::Seen(_), Entry::Damaged(..)) => return Ordering::Less,
            (Entry::Damaged(..), Entry::Seen(_)) => return Ordering::Greater,
            (Entry::Damaged(..), Entry::Damaged(..)) => return Ordering::Equal,
        };
        let touched = || other.brief.updated_at.cmp(&one.brief.updated_at);
        let need = || {
            let [(group, at), (of, than)] = [one, other].map(|it| place_by_need(it));
            group.cmp(&of).then_with(|| than.cmp(&at))
        };
        match self {
            Self::Need => need(),
            Self::Touched => touched(),
            Self::Cost => {
                let cost = |it: &ListRow| it.facts.usage.cost_usd.unwrap_or(-1.0);
                cost(other).total_cmp(&cost(one)).then_with(touched)
            }
            Self::Name => one.brief.id.as_str().cmp(other.brief.id.as_str()),
            Self::Project => one.brief.project.cmp(&other.brief.project).then_with(need),
        }
    }
}

/// Whether it needs you, runs, or what it came to.
pub(crate) fn group_of(seen: &ListRow) -> Group {
    Group::of(seen.brief.status, seen.brief.verified, seen.facts.waits_for.as_deref() == Some("answer"))
}

/// The group of a loop by what has to happen with it, and the time that decides within it: a running loop keeps its
/// place.
fn place_by_need(seen: &ListRow) -> (u8, Timestamp) {
    match group_of(seen) {
        Group::NeedsYou => (0, seen.brief.updated_at),
        Group::Running => (1, seen.facts.started_at),
        Group::Verified | Group::Unverified | Group::Stopped => (2, seen.brief.updated_at),
    }
}
