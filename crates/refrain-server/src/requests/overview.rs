//! All loops and plans by what has to happen with them, those that need you first; and their metrics for a scraper.

mod whole_project;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use refrain_core::text::squeeze;
use refrain_core::view::usage::GroupBy;
use refrain_core::view::{Group, Iteration, Kind, metrics};
use refrain_engine::{Brief, ByKind, CostedList, Detail, Facts, ListEntry, Service, UsageScope, now};

pub(crate) use self::whole_project::ProjectSettings;
use super::status::name;
use super::{ProjectView, Refusal, RequestHandler};

/// How many of the loops that need you, or run, are shown with their iterations.
const MOST_DETAILED: usize = 40;
/// How many entries a page of the list has.
pub(crate) const LIST_PAGE: usize = 100;
/// How much of a goal is shown, in bytes.
const SHORT_GOAL: usize = 300;

#[derive(Clone, Debug, Default)]
pub(crate) struct OverviewFilter {
    pub(crate) group: Option<Group>,
    /// Only those of this project, by its name in addresses.
    pub(crate) project: Option<String>,
    /// Only those whose id, project, goal or reason contains this.
    pub(crate) text: String,
    /// Which part of them, from 0.
    pub(crate) page: usize,
}

pub(crate) struct Overview {
    /// How many loops each group has, in the order of [`Group::ALL`].
    pub(crate) counts: [usize; 5],
    /// What all loops of these projects cost today, and whether it was more; none if nothing is known.
    pub(crate) today: Option<(f64, bool)>,
    pub(crate) entries: Vec<Entry>,
    /// How many more there are; with a text, how many were not compared with it.
    pub(crate) more: usize,
    /// What could not be read, and why.
    pub(crate) unread: Vec<String>,
    /// All that are open, whichever are shown.
    pub(crate) projects: Vec<ProjectView>,
}

pub(crate) struct Entry {
    pub(crate) group: Group,
    /// The project's name in addresses, and its folder's name.
    pub(crate) project: String,
    pub(crate) folder: String,
    /// In one line, cut; empty for a plan.
    pub(crate) goal: String,
    pub(crate) brief: Box<Brief>,
    pub(crate) facts: Facts,
    /// Of a loop that needs you or runs.
    pub(crate) iterations: Vec<Iteration>,
}

impl Entry {
    /// Its goal; of a plan, whose tasks it does.
    pub(crate) fn shown_goal(&self) -> String {
        self.facts.tag.as_ref().map_or_else(|| self.goal.clone(), |tag| format!("the tasks of {tag}"))
    }
}

impl RequestHandler {
    /// Everything that is open here, the last touched first within each group.
    pub(crate) fn overview(&self, shown: &OverviewFilter) -> Result<Overview, Refusal> {
        let wanted = shown.text.to_lowercase();
        let (mut found, mut unread, mut counts, mut today) = (Vec::new(), Vec::new(), [0; 5], None);
        let mut listed = self.services();
        let projects = listed.iter().map(ProjectView::of).collect();
        listed.retain(|service| shown.project.as_ref().is_none_or(|it| *it == name(service)));
        let each = Service::list_each_with_cost(&listed, midnight())?;
        for (service, CostedList { rows, cost }) in listed.iter().zip(each) {
            let is_whole = self.is_whole(service);
            if let Some((cost, more)) = cost.filter(|_| is_whole) {
                let (known, at_least) = today.unwrap_or_default();
                today = Some((known + f64::from(cost), at_least || more));
            }
            for row in rows {
                match row {
                    ListEntry::Loop(brief) if is_whole || self.sees(service, &brief.id) => {
                        let facts = (!brief.has_stopped()).then(|| brief.facts().unwrap_or_default());
                        let group = group(&brief, facts.as_ref());
                        counts[group as usize] += 1;
                        if shown.group.is_none_or(|wanted| wanted == group) {
                            found.push((group, service, brief, facts));
                        }
                    }
                    ListEntry::Loop(_) => {}
                    ListEntry::Damaged(damaged) => unread.push(format!("{}: {}", damaged.id, damaged.reason)),
                }
            }
        }
        found.sort_by_key(|(group, _, brief, _)| (order(*group), std::cmp::Reverse(brief.updated_at)));
        let (mut entries, mut more, mut detailed, mut matching) = (Vec::new(), 0, 0, 0);
        let first = shown.page.saturating_mul(LIST_PAGE);
        for (group, service, brief, facts) in found {
            // A goal is read from disk: no further than the page goes.
            if entries.len() >= LIST_PAGE {
                more += 1;
                continue;
            }
            matching += 1;
            if wanted.is_empty() && matching <= first {
                continue;
            }
            let goal = service.goal(&brief.id).map(|goal| short(&goal)).unwrap_or_default();
            let text = format!("{} {} {goal} {}", brief.id, brief.project, brief.reason);
            if !wanted.is_empty() && !text.to_lowercase().contains(&wanted) {
                matching -= 1;
                continue;
            }
            if matching <= first {
                continue;
            }
            let is_detailed = order(group) < order(Group::Verified) && detailed < MOST_DETAILED;
            detailed += usize::from(is_detailed);
            entries.push((service, group, brief, (goal, facts, is_detailed)));
        }
        let mut rows: Vec<_> =
            entries.iter_mut().map(|(service, _, brief, _)| (*service, &mut **brief)).collect();
        Service::add_objects(&mut rows)?;
        let entry = |(service, group, brief, rest)| entry(service, group, brief, rest);
        let entries = entries.into_iter().map(entry).collect();
        Ok(Overview { counts, today, entries, more, unread, projects })
    }

    /// Usage and status of all loops in the text format of Prometheus: of all projects if all are open, else of the
    /// first. An unreadable project is omitted.
    pub(crate) fn metrics(&self) -> Result<String, Refusal> {
        let service = self.whole()?;
        let scope = if self.everywhere { UsageScope::All } else { UsageScope::Project };
        let used = service.used(scope, None, GroupBy::Agent, &TimeZone::UTC, true)?;
        let listed = service.list_with(self.everywhere, Detail::Line)?;
        let words = listed.iter().filter_map(|row| match row {
            ListEntry::Loop(brief) => Some(brief.status),
            ListEntry::Damaged(_) => None,
        });
        Ok(metrics::prometheus(&used.report, &used.series, words))
    }
}

/// The beginning of the day of this machine's clock.
fn midnight() -> Timestamp {
    let now = Zoned::new(now(), TimeZone::system());
    now.start_of_day().map_or(now.timestamp(), |day| day.timestamp())
}

/// The group of a loop; of one that runs, its facts say whether it asks.
fn group(brief: &Brief, facts: Option<&Facts>) -> Group {
    let is_asking = facts.is_some_and(|facts| facts.waits_for.as_deref() == Some("answer"));
    Group::of(brief.status, brief.verified, is_asking)
}

/// What has stopped is one list, whatever it came to.
fn order(group: Group) -> u8 {
    match group {
        Group::NeedsYou => 0,
        Group::Running => 1,
        Group::Verified | Group::Unverified | Group::Stopped => 2,
    }
}

fn entry(
    service: &Service,
    group: Group,
    mut brief: Box<Brief>,
    (goal, known, is_detailed): (String, Option<Facts>, bool),
) -> Entry {
    let facts = known.or_else(|| brief.facts()).unwrap_or_default();
    // An open loop was read for the list.
    let is_unread = is_detailed && brief.has_stopped() && brief.kind != Kind::Plan;
    let iterations = match is_unread.then(|| service.standing(&brief.id)) {
        Some(Ok(ByKind::Loop(status))) => status.iterations.unwrap_or_default(),
        _ if is_detailed => std::mem::take(&mut brief.iterations),
        _ => Vec::new(),
    };
    let folder = service.project().root.file_name().unwrap_or_default().to_owned();
    Entry { group, project: name(service), folder, goal, brief, facts, iterations }
}

fn short(goal: &str) -> String {
    let goal = goal.trim_start().trim_start_matches('#');
    refrain_core::text::clip(&squeeze(goal), SHORT_GOAL).into_owned()
}
