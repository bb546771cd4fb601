//! The state of the user interface: nothing here reads or writes anything. [`crate::update`] changes it,
//! [`crate::view`] draws it.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use ratatui::layout::Rect;
use refrain_core::view::plan::{PlanStatus, TaskView};
use refrain_core::view::{Charset, Iteration, Kind, Status};
use refrain_core::{AttemptId, LoopId};
use refrain_engine::{Entry, ListRow};

use crate::input::Input;
use crate::new_loop::LoopForm;
use crate::order::{Order, group_of};
use crate::pane::Pane;
use crate::program::Program;

/// What the terminal can show.
#[derive(Clone, Copy, Debug)]
pub struct Art {
    pub colour: bool,
    /// More than ASCII.
    pub blocks: bool,
    /// Its background is light.
    pub light: bool,
}

impl Art {
    pub(crate) fn charset(self) -> Charset {
        if self.blocks { Charset::Unicode } else { Charset::Ascii }
    }
}

/// Which loop or plan: its project, and its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) project: Arc<str>,
    pub(crate) id: LoopId,
}

/// The state of the whole screen.
pub(crate) struct Model {
    pub(crate) art: Art,
    pub(crate) program: Arc<dyn Program>,
    /// The project's folder; none if all projects are shown.
    pub(crate) project: Option<String>,
    pub(crate) now: Timestamp,
    pub(crate) list: List,
    /// The opened views, the last on top.
    pub(crate) opened: Vec<OpenView>,
    /// The entry under the cursor, as it is shown beside the list.
    pub(crate) beside: Option<OpenView>,
    pub(crate) asking: Option<Dialog>,
    /// The loop whose approval is asked about as soon as its status is there.
    pub(crate) approving: Option<Key>,
    /// The result of the last action, and whether it was refused.
    pub(crate) said: Option<(String, bool)>,
    /// The places of widgets at the last draw.
    pub(crate) places: Places,
}

/// All loops and plans.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) entries: Vec<Entry>,
    /// Something was listed.
    pub(crate) is_read: bool,
    /// Why nothing can be listed any more.
    pub(crate) trouble: Option<String>,
    pub(crate) filter: String,
    pub(crate) order: Order,
    pub(crate) cursor: Option<EntryKey>,
    /// The entries that the next action is for; none is the one under the cursor.
    pub(crate) marked: Vec<EntryKey>,
    pub(crate) top: usize,
}

/// Which entry of the list: its project and its name.
pub(crate) type EntryKey = (Arc<str>, String);

/// A loop or a plan that is looked at.
#[derive(Debug)]
pub(crate) enum OpenView {
    Loop(Box<OneLoop>),
    Plan(Box<OnePlan>),
    Log(Box<OneLog>),
}

/// A text of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopText {
    /// What an attempt printed.
    Output(AttemptId),
    /// The same of the latest one; of a plan its status.
    LatestOutput,
    /// What the loop has changed.
    Changes,
}

impl LoopText {
    /// Whether the user's pager shows it.
    pub(crate) fn is_paged(self) -> bool {
        !matches!(self, Self::Output(_))
    }
}

#[derive(Debug)]
pub(crate) struct OneLog {
    /// Its loop.
    pub(crate) key: Key,
    pub(crate) what: LoopText,
    /// Its text; none while it is read.
    pub(crate) text: Option<Pane>,
}

#[derive(Debug)]
pub(crate) struct OneLoop {
    pub(crate) key: Key,
    pub(crate) status: Option<Box<Status>>,
    pub(crate) goal: String,
    pub(crate) activity: Pane,
    /// How far its cursor is from the last attempt.
    pub(crate) back: usize,
    /// The first attempt that is shown.
    pub(crate) top: usize,
    /// The attempts have the keys, and not the activity.
    pub(crate) at_attempts: bool,
    /// Updates have ended; the reason if it is known.
    pub(crate) over: Option<Option<String>>,
}

#[derive(Debug)]
pub(crate) struct OnePlan {
    pub(crate) key: Key,
    pub(crate) status: Option<Box<PlanStatus>>,
    pub(crate) cursor: usize,
    pub(crate) top: usize,
    /// The first line of its waves that is shown.
    pub(crate) board_top: usize,
    /// The waves have the keys, and not the tasks.
    pub(crate) at_board: bool,
    pub(crate) over: Option<Option<String>>,
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dialog {
    /// Which keys there are, from this row on.
    Help(usize),
    /// Whether these are to be cancelled.
    Cancel(Vec<Key>),
    /// Whether this is to be merged.
    Merge(Key),
    /// Whether these are to be archived.
    Archive(Vec<Key>),
    /// Whether to approve: the tree that is shown, if there is one.
    Approve(Key, Option<String>),
    Line(InputPurpose, Input),
    /// What a new loop is to be like.
    New(LoopForm),
    /// A command or a loop, by its name, and which of those that are found.
    Palette(Input, usize),
}

/// The purpose of an input line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InputPurpose {
    Filter,
    Search,
    Steer(Key),
    Answer(Key),
    /// The text for the agent that continues with rejected work.
    SendBack(Key),
    /// Limits that are used up, to be raised.
    Grant(Key, String),
}

/// The places of widgets on the screen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    /// Rows that have a cursor: entries or tasks.
    pub(crate) rows: Rect,
    /// A text that scrolls: activity or waves.
    pub(crate) text: Rect,
    pub(crate) attempts: Rect,
    /// The first of the rows, or of the attempts, that is shown.
    pub(crate) top: usize,
    /// How long the text of a plan's waves is.
    pub(crate) board: usize,
    /// There is room for an entry beside the list.
    pub(crate) beside: bool,
    /// How many rows of the help do not fit.
    pub(crate) help: usize,
}

impl Model {
    pub(crate) fn new(art: Art, program: Arc<dyn Program>, project: Option<String>, now: Timestamp) -> Self {
        let (list, opened, places) = (List::default(), Vec::new(), Places::default());
        Self {
            art,
            program,
            project,
            now,
            list,
            opened,
            beside: None,
            asking: None,
            approving: None,
            said: None,
            places,
        }
    }

    /// Whether something on the screen changes with time.
    pub(crate) fn ticks(&self) -> bool {
        match self.opened.last() {
            Some(OpenView::Loop(one)) => one.status.as_ref().is_some_and(|status| !status.has_stopped()),
            Some(OpenView::Plan(one)) => one.status.as_ref().is_some_and(|plan| !plan.status.has_stopped()),
            Some(OpenView::Log(_)) => false,
            None => {
                let (rows, top) = (self.places.rows.height.into(), self.list.top);
                let shown = self.list.shown().into_iter().skip(top).take(rows);
                shown.filter_map(seen).any(|seen| !seen.brief.has_stopped())
            }
        }
    }

    /// Whether a text is read that the user's pager is to show: no key may be taken from that.
    pub(crate) fn is_to_page(&self) -> bool {
        matches!(self.opened.last(), Some(OpenView::Log(one)) if one.text.is_none() && one.what.is_paged())
    }

    pub(crate) fn drawn(&mut self, places: Places) {
        self.places = places;
        match self.opened.last_mut() {
            None => self.list.top = places.top,
            Some(OpenView::Plan(one)) => one.top = places.top,
            Some(OpenView::Loop(one)) => one.top = places.top,
            Some(OpenView::Log(_)) => {}
        }
    }

    /// The view that the engine feeds: the opened one, or the one beside the list.
    pub(crate) fn fed(&self) -> Option<&OpenView> {
        self.opened.last().or(self.beside.as_ref())
    }

    pub(crate) fn fed_mut(&mut self) -> Option<&mut OpenView> {
        self.opened.last_mut().or(self.beside.as_mut())
    }

    /// The loop that a key acts on: the opened one, or the one under the cursor.
    pub(crate) fn meant(&self) -> Option<Key> {
        match self.opened.last() {
            Some(OpenView::Loop(one)) => Some(one.key.clone()),
            Some(OpenView::Plan(one)) => Some(one.key.clone()),
            Some(OpenView::Log(one)) => Some(one.key.clone()),
            None => seen(self.list.current()?).map(Key::of),
        }
    }

    /// The loops that a key acts on: those that are marked, or the one that is meant.
    pub(crate) fn all_meant(&self) -> Vec<Key> {
        let is_marked = |seen: &&ListRow| {
            let mut marked = self.list.marked.iter();
            marked.any(|(project, id)| *project == seen.brief.project && id == seen.brief.id.as_str())
        };
        let marked: Vec<_> = match self.opened.is_empty() {
            true => self.list.entries.iter().filter_map(seen).filter(is_marked).map(Key::of).collect(),
            false => Vec::new(),
        };
        if marked.is_empty() { self.meant().into_iter().collect() } else { marked }
    }

    /// The same as the list has it.
    pub(crate) fn glimpse(&self, key: &Key) -> Option<&ListRow> {
        self.list
            .entries
            .iter()
            .filter_map(seen)
            .find(|seen| seen.brief.id == key.id && seen.brief.project == key.project)
    }
}

impl Key {
    pub(crate) fn of(seen: &ListRow) -> Self {
        Self { project: Arc::clone(&seen.brief.project), id: seen.brief.id.clone() }
    }
}

/// The loop or plan of an entry; none if it is damaged.
pub(crate) fn seen(entry: &Entry) -> Option<&ListRow> {
    match entry {
        Entry::Seen(seen) => Some(seen),
        Entry::Damaged(..) => None,
    }
}

pub(crate) fn place(entry: &Entry) -> EntryKey {
    match entry {
        Entry::Seen(seen) => (Arc::clone(&seen.brief.project), seen.brief.id.to_string()),
        Entry::Damaged(name, _) => ("".into(), name.clone()),
    }
}

impl List {
    /// The entries that the filter lets through.
    pub(crate) fn shown(&self) -> Vec<&Entry> {
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let has = |entry: &&Entry| words.iter().all(|word| text_of(entry).contains(word.as_str()));
        self.entries.iter().filter(has).collect()
    }

    /// The row of the cursor; the first if its entry is gone.
    pub(crate) fn at(&self) -> usize {
        let found = self.shown().iter().position(|entry| Some(place(entry)) == self.cursor);
        found.unwrap_or_default()
    }

    /// Marks the entry under the cursor, or takes its mark away, and moves on.
    pub(crate) fn mark(&mut self) {
        let at = self.at();
        let Some(entry) = self.current().map(place) else { return };
        match self.marked.iter().position(|marked| *marked == entry) {
            Some(found) => drop(self.marked.remove(found)),
            None => self.marked.push(entry),
        }
        self.go(at + 1);
    }

    pub(crate) fn current(&self) -> Option<&Entry> {
        self.shown().get(self.at()).copied()
    }

    /// Moves the cursor to a shown row, or the nearest one.
    pub(crate) fn go(&mut self, at: usize) {
        let shown = self.shown();
        let entry = shown.get(at.min(shown.len().saturating_sub(1)));
        self.cursor = entry.map(|entry| place(entry));
    }

    pub(crate) fn sort(&mut self) {
        let order = self.order;
        self.entries.sort_by(|one, other| order.compare(one, other));
    }

    pub(crate) fn take(&mut self, entries: Vec<Entry>) {
        (self.is_read, self.trouble) = (true, None);
        let row = |(at, entry): (usize, &Entry)| (place(entry), (at, seen(entry).map(group_of)));
        let known: HashMap<_, _> = self.entries.iter().enumerate().map(row).collect();
        let by_group = matches!(self.order, Order::Need | Order::Project);
        let stays = |entry: &Entry| {
            let known = known.get(&place(entry));
            known.is_some_and(|(_, group)| !by_group || *group == seen(entry).map(group_of))
        };
        let is_sorted = known.len() == entries.len() && entries.iter().all(stays);
        self.entries = entries;
        // Rows keep their places until a loop comes or goes, or needs something else.
        match is_sorted {
            true => self.entries.sort_by_key(|entry| known.get(&place(entry)).map(|(at, _)| *at)),
            false => self.sort(),
        }
    }
}

/// The text that a filter matches.
fn text_of(entry: &Entry) -> String {
    match entry {
        Entry::Seen(seen) => {
            let kind = if seen.brief.kind == Kind::Plan { "plan" } else { "" };
            let said = seen.said.as_deref().unwrap_or_default();
            format!(
                "{} {} {} {kind} {} {said} {}",
                seen.brief.id,
                seen.brief.status.as_str(),
                seen.brief.project,
                seen.brief.reason,
                seen.goal
            )
            .to_lowercase()
        }
        Entry::Damaged(name, why) => format!("{name} damaged {why}").to_lowercase(),
    }
}

impl OpenView {
    pub(crate) fn key(&self) -> &Key {
        match self {
            Self::Loop(one) => &one.key,
            Self::Plan(one) => &one.key,
            Self::Log(one) => &one.key,
        }
    }

    /// Whether rows have the keys, and no text.
    pub(crate) fn has_rows(&self) -> bool {
        match self {
            Self::Loop(one) => one.at_attempts,
            Self::Plan(one) => !one.at_board,
            Self::Log(_) => false,
        }
    }

    /// The searchable text pane, which follows new output.
    pub(crate) fn text(&self) -> Option<&Pane> {
        match self {
            Self::Loop(one) => Some(&one.activity),
            Self::Log(one) => one.text.as_ref(),
            Self::Plan(_) => None,
        }
    }

    pub(crate) fn text_mut(&mut self) -> Option<&mut Pane> {
        match self {
            Self::Loop(one) => Some(&mut one.activity),
            Self::Log(one) => one.text.as_mut(),
            Self::Plan(_) => None,
        }
    }

    /// Whether its status was ever received.
    pub(crate) fn is_told(&self) -> bool {
        match self {
            Self::Loop(one) => one.status.is_some(),
            Self::Plan(one) => one.status.is_some(),
            Self::Log(_) => false,
        }
    }

    pub(crate) fn is_plan(&self) -> bool {
        matches!(self, Self::Plan(_))
    }

    pub(crate) fn new(key: Key, is_plan: bool) -> Self {
        if is_plan {
            let (cursor, top, board_top) = (0, 0, 0);
            return Self::Plan(Box::new(OnePlan {
                key,
                status: None,
                cursor,
                top,
                board_top,
                at_board: false,
                over: None,
            }));
        }
        Self::Loop(Box::new(OneLoop {
            key,
            status: None,
            goal: String::new(),
            activity: Pane::default(),
            back: 0,
            top: 0,
            at_attempts: false,
            over: None,
        }))
    }
}

impl OneLoop {
    pub(crate) fn attempts(&self) -> Vec<&Iteration> {
        self.status.iter().flat_map(|status| &status.iterations).flatten().collect()
    }

    /// Which attempt its cursor is on.
    pub(crate) fn at(&self) -> usize {
        self.attempts().len().saturating_sub(1 + self.back)
    }

    pub(crate) fn go(&mut self, at: usize) {
        self.back = self.attempts().len().saturating_sub(1).saturating_sub(at);
    }
}

impl OnePlan {
    /// The tasks that are its to do.
    pub(crate) fn tasks(&self) -> Vec<&TaskView> {
        self.status.iter().flat_map(|status| &status.tasks).filter(|task| task.wave.is_some()).collect()
    }
}
