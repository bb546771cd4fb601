//! Applies keys, the mouse and engine messages to the model, and returns the effects to run.

mod answers;
mod forms;
mod mouse;

use std::sync::Arc;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use refrain_core::r#loop::Grant;
use refrain_core::view::plan::PlanStatus;
use refrain_core::view::{ApprovalWord, Kind, Status};
use refrain_engine::{Entry, StartOffer};

use crate::input::Input;
use crate::model::{Dialog, InputPurpose, Key, LoopText, Model, OneLog, OnePlan, OpenView, seen};
use crate::pane::Pane;
use crate::program::{Act, NewLoop, Objection};

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Message {
    /// A key, the mouse, the size of the terminal.
    Input(Event),
    /// Loops and plans.
    News(Vec<Entry>),
    /// They cannot be listed any more.
    Unlisted(String),
    Told(Box<LoopUpdate>),
    /// The status of a plan.
    Plan(Key, Box<PlanStatus>),
    /// The updates of the opened view have ended; the reason if it is known.
    Over(Key, Option<String>),
    /// A text of a loop, or the error.
    Printed(Key, LoopText, Result<String, String>),
    /// The result of an action.
    Done(Key, Act, Result<String, Objection>),
    /// What a new loop in a project can be like, or the error.
    Offered(Arc<str>, Result<StartOffer, String>),
    /// The loop that was started, or why it was not.
    Started(Result<Key, String>),
    /// A second has passed.
    Tick,
    /// The pager that showed the text of the opened view has ended.
    Paged,
    /// The program is to end.
    Quit,
}

/// An update of a loop.
#[derive(Debug)]
pub(crate) struct LoopUpdate {
    pub(crate) key: Key,
    /// The text starts at the loop's first event.
    pub(crate) begins: bool,
    pub(crate) text: String,
    pub(crate) goal: String,
    pub(crate) status: Option<Status>,
}

/// Something to be done outside.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The view to feed from now on, and whether it is a plan.
    Watch(Option<(Key, bool)>),
    /// The same of a view beside the list, once the cursor rests.
    Preview(Option<(Key, bool)>),
    /// Something to be asked of a loop or a plan.
    Act(Key, Act),
    /// Read a text of a loop.
    Read(Key, LoopText),
    /// Show a text in the user's pager, from its end or its beginning.
    Page {
        text: String,
        at_end: bool,
    },
    /// Look what a new loop in a project can be like.
    Offer(Arc<str>),
    /// Start a loop in a project.
    Start(Arc<str>, NewLoop),
    /// The screen is to be drawn from nothing.
    Redraw,
    Quit,
}

/// Takes it in.
pub(crate) fn update(model: &mut Model, message: Message) -> Vec<Effect> {
    let mut effects = take(model, message);
    effects.extend(show_beside(model));
    effects
}

/// Keeps the entry under the cursor beside the list, if there is room and nothing is opened.
fn show_beside(model: &mut Model) -> Option<Effect> {
    let entry =
        model.list.current().and_then(seen).filter(|_| model.opened.is_empty() && model.places.beside);
    let wanted = entry.map(|seen| (Key::of(seen), seen.brief.kind == Kind::Plan));
    let shown = model.beside.as_ref().map(OpenView::key);
    if shown == wanted.as_ref().map(|(key, _)| key) {
        return None;
    }
    model.beside = wanted.clone().map(|(key, is_plan)| OpenView::new(key, is_plan));
    // What is opened is fed already.
    model.opened.is_empty().then_some(Effect::Preview(wanted))
}

fn take(model: &mut Model, message: Message) -> Vec<Effect> {
    match message {
        Message::Input(Event::Key(key)) if key.kind != KeyEventKind::Release => press(model, key),
        Message::Input(Event::Mouse(mouse)) => mouse::point(model, mouse),
        Message::Input(Event::Paste(text)) => {
            match &mut model.asking {
                Some(Dialog::Line(_, line) | Dialog::Palette(line, _)) => line.paste(&text),
                Some(Dialog::New(form)) => form.goal.paste(&text),
                Some(_) | None => {}
            }
            Vec::new()
        }
        Message::Input(_) | Message::Tick => Vec::new(),
        Message::Quit => vec![Effect::Quit],
        Message::Paged => leave(model),
        Message::News(news) => {
            model.list.take(news);
            again(model)
        }
        Message::Unlisted(why) => {
            (model.list.trouble, model.list.is_read) = (Some(why), true);
            Vec::new()
        }
        Message::Told(told) => {
            tell(model, *told);
            Vec::new()
        }
        Message::Plan(key, status) => {
            if let Some(OpenView::Plan(one)) = model.fed_mut().filter(|opened| *opened.key() == key) {
                (one.status, one.over) = (Some(status), None);
            }
            Vec::new()
        }
        Message::Over(key, why) => {
            match model.fed_mut().filter(|opened| *opened.key() == key) {
                Some(OpenView::Loop(one)) => one.over = Some(why),
                Some(OpenView::Plan(one)) => one.over = Some(why),
                Some(OpenView::Log(_)) | None => {}
            }
            // A view that was never fed is followed again once the list has its loop.
            if model.fed().is_some_and(OpenView::is_told) { again(model) } else { Vec::new() }
        }
        Message::Printed(key, what, printed) => {
            let is_it = |one: &&mut Box<OneLog>| one.key == key && one.what == what;
            if let Some(OpenView::Log(one)) = model.opened.last_mut()
                && let Some(one) = Some(one).filter(is_it)
            {
                let page = printed.as_ref().ok().filter(|_| what.is_paged());
                // A log is read from its end, what changed from its beginning.
                let at_end = what != LoopText::Changes;
                let page = page.map(|text| Effect::Page { text: text.clone(), at_end });
                let mut text = Pane::default();
                text.push(&printed.unwrap_or_else(|why| why));
                if !at_end {
                    text.show_beginning();
                }
                one.text = Some(text);
                return page.into_iter().collect();
            }
            Vec::new()
        }
        Message::Offered(project, Ok(offer)) => {
            forms::offered(model, project, offer);
            Vec::new()
        }
        Message::Started(Ok(key)) => {
            forms::started(model, key);
            Vec::new()
        }
        Message::Offered(_, Err(why)) | Message::Started(Err(why)) => {
            model.said = Some((why, true));
            Vec::new()
        }
        Message::Done(key, act, became) => {
            match became {
                // Of many, the refusal is what matters.
                Ok(_) if model.said.as_ref().is_some_and(|(_, is_refused)| *is_refused) => {}
                Ok(words) => model.said = Some((words, false)),
                Err(Objection::Refused(why)) => model.said = Some((why, true)),
                // Asked for once: more of it is the person's to say.
                Err(Objection::Lacks(used, flags)) => match act {
                    Act::Resume { .. } if model.asking.is_none() => {
                        model.asking = Some(Dialog::Line(InputPurpose::Grant(key, used), Input::of(&flags)));
                    }
                    _ => model.said = Some((format!("{used}; {flags}"), true)),
                },
            }
            vec![Effect::Redraw]
        }
    }
}

/// Follows the opened view again if its feed has ended and the list has seen the loop continue.
fn again(model: &mut Model) -> Vec<Effect> {
    let Some(opened) = model.fed() else { return Vec::new() };
    let (key, is_plan) = (opened.key().clone(), opened.is_plan());
    let (is_over, told) = match opened {
        OpenView::Loop(one) => (one.over.is_some(), one.status.as_ref().map(|status| status.updated_at)),
        OpenView::Plan(one) => (one.over.is_some(), one.status.as_ref().map(|plan| plan.updated_at)),
        OpenView::Log(_) => return Vec::new(),
    };
    // It may have stopped again by now.
    let went_on =
        model.glimpse(&key).is_some_and(|seen| told.is_none_or(|told| seen.brief.updated_at > told));
    if !(is_over && went_on) {
        return Vec::new();
    }
    match model.fed_mut() {
        Some(OpenView::Loop(one)) => one.over = None,
        Some(OpenView::Plan(one)) => one.over = None,
        Some(OpenView::Log(_)) | None => {}
    }
    vec![Effect::Watch(Some((key, is_plan)))]
}

fn tell(model: &mut Model, told: LoopUpdate) {
    let Some(OpenView::Loop(one)) = model.fed_mut() else { return };
    if one.key != told.key {
        return;
    }
    if told.begins {
        one.activity.clear();
    }
    one.activity.push(&told.text);
    one.goal = told.goal;
    one.over = None;
    if let Some(status) = told.status {
        one.status = Some(Box::new(status));
    }
    if model.approving.take_if(|key| *key == told.key).is_some() && model.asking.is_none() {
        meet_need(model);
    }
}

fn press(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    model.said = None;
    model.approving = None;
    if let Some(asking) = model.asking.take() {
        return answers::answer(model, asking, key);
    }
    let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if with_control => vec![Effect::Quit],
        KeyCode::Char('l') if with_control => vec![Effect::Redraw],
        KeyCode::Char('k') if with_control => ask(model, Dialog::Palette(Input::default(), 0)),
        KeyCode::Char(':') => ask(model, Dialog::Palette(Input::default(), 0)),
        KeyCode::Char('n') if model.opened.is_empty() => forms::new_loop(model),
        KeyCode::Char(' ') if model.opened.is_empty() => {
            model.list.mark();
            Vec::new()
        }
        KeyCode::Char('q') => vec![Effect::Quit],
        KeyCode::Char('?') => ask(model, Dialog::Help(0)),
        KeyCode::Char('/') => {
            let line = match model.opened.last() {
                None => (InputPurpose::Filter, Input::of(&model.list.filter)),
                Some(opened) => match opened.text() {
                    Some(text) => (InputPurpose::Search, Input::of(&text.search)),
                    None => return Vec::new(),
                },
            };
            ask(model, Dialog::Line(line.0, line.1))
        }
        KeyCode::Char('p') => act(model, Act::Pause { now: false }),
        KeyCode::Char('P') => act(model, Act::Pause { now: true }),
        KeyCode::Char('r') => act(model, Act::Resume { grant: Grant::default(), now: false }),
        KeyCode::Char('c') => match model.all_meant() {
            keys if keys.is_empty() => Vec::new(),
            keys => ask(model, Dialog::Cancel(keys)),
        },
        KeyCode::Char('s') => match model.meant() {
            Some(key) => ask(model, Dialog::Line(InputPurpose::Steer(key), Input::default())),
            None => Vec::new(),
        },
        KeyCode::Char('a' | 'A') => meet_need(model),
        KeyCode::Char('d') => read(model, LoopText::Changes),
        KeyCode::Char('l') => read(model, LoopText::LatestOutput),
        KeyCode::Char('m') => match model.meant() {
            Some(key) => ask(model, Dialog::Merge(key)),
            None => Vec::new(),
        },
        KeyCode::Char('x') => match model.all_meant() {
            keys if keys.is_empty() => Vec::new(),
            keys => ask(model, Dialog::Archive(keys)),
        },
        KeyCode::Char('o') if model.opened.is_empty() => {
            model.list.order = model.list.order.next();
            model.list.sort();
            model.said = Some((format!("order: {}", model.list.order.words()), false));
            Vec::new()
        }
        KeyCode::Enter | KeyCode::Right => open(model),
        KeyCode::Esc | KeyCode::Left | KeyCode::Backspace | KeyCode::Char('h') => leave(model),
        _ => {
            move_by(model, key);
            Vec::new()
        }
    }
}

fn ask(model: &mut Model, asking: Dialog) -> Vec<Effect> {
    model.asking = Some(asking);
    Vec::new()
}

/// Asks for what the loop waits for: an approval or an answer. A plan waits for neither.
fn meet_need(model: &mut Model) -> Vec<Effect> {
    let Some(key) = model.meant() else { return Vec::new() };
    let row = model.glimpse(&key);
    let is_plan = match model.opened.last() {
        Some(opened) => opened.is_plan(),
        None => row.is_some_and(|row| row.brief.kind == Kind::Plan),
    };
    if is_plan {
        let why = format!("plan {} asks nothing; s sends a text to its agents, r resumes it", key.id);
        model.said = Some((why, true));
        return Vec::new();
    }
    let waits_in_list = row.is_some_and(|row| row.facts.waits_for.as_deref() == Some("approval"));
    // The list has no questions: of a loop that runs, its own view says whether it asks.
    let answers_in_list = row.is_none_or(|row| row.brief.status.takes_answer());
    let takes_answer = match model.opened.last() {
        // The user must see what they approve: the loop is opened, and asked about once its status is there.
        None if waits_in_list => {
            let effects = open(model);
            model.approving = Some(key);
            return effects;
        }
        Some(OpenView::Loop(one)) => match &one.status {
            None => {
                model.approving = Some(key);
                return Vec::new();
            }
            Some(status) => {
                let awaited = status.approval.as_ref().filter(|it| it.state == ApprovalWord::Awaited);
                if let Some(approval) = awaited {
                    let asking = Dialog::Approve(key, approval.tree.clone());
                    return ask(model, asking);
                }
                status.question.is_some() || status.status.takes_answer()
            }
        },
        Some(OpenView::Log(_)) if waits_in_list => {
            model.said = Some((format!("{} waits for approval: esc shows it, then a", key.id), true));
            return Vec::new();
        }
        Some(OpenView::Plan(_) | OpenView::Log(_)) | None => answers_in_list,
    };
    if takes_answer {
        return ask(model, Dialog::Line(InputPurpose::Answer(key), Input::default()));
    }
    let id = &key.id;
    let why =
        format!("{id} asks nothing and waits for no approval; s sends a text to its agent, Enter opens it");
    model.said = Some((why, true));
    Vec::new()
}

/// Asks it of all that are meant; the marks are used up.
fn act(model: &mut Model, act: Act) -> Vec<Effect> {
    let keys = model.all_meant();
    if keys.is_empty() {
        return Vec::new();
    }
    let doing = match &act {
        Act::Pause { .. } => "pausing",
        Act::Resume { .. } => "resuming",
        Act::Approve { .. } => "approving",
        Act::SendBack { .. } => "sending back",
        Act::Cancel { .. } => "cancelling",
        Act::Steer { .. } => "telling",
        Act::Answer { .. } => "answering",
        Act::Merge { .. } => "merging",
        Act::Archive => "archiving",
    };
    all_done(model, doing, keys, &act)
}

fn all_done(model: &mut Model, doing: &str, keys: Vec<Key>, act: &Act) -> Vec<Effect> {
    model.said = Some((format!("{doing} {} …", named(&keys)), false));
    model.list.marked.clear();
    keys.into_iter().map(|key| Effect::Act(key, act.clone())).collect()
}

/// One loop by its name, more by their number.
pub(crate) fn named(keys: &[Key]) -> String {
    match keys {
        [key] => key.id.to_string(),
        keys => format!("{} loops", keys.len()),
    }
}

fn search(model: &mut Model, text: &str) {
    let rows = model.places.text.height.into();
    if let Some(pane) = model.opened.last_mut().and_then(OpenView::text_mut) {
        text.clone_into(&mut pane.search);
        if !text.is_empty() && !pane.find(false, rows) {
            model.said = Some((format!("{text} does not occur"), true));
        }
    }
}

/// Opens the selected entry.
fn open(model: &mut Model) -> Vec<Effect> {
    let (key, is_plan) = match model.opened.last() {
        None => match model.list.current().and_then(seen) {
            Some(seen) => (Key::of(seen), seen.brief.kind == Kind::Plan),
            None => return Vec::new(),
        },
        Some(OpenView::Plan(one)) => {
            let tasks = one.tasks();
            let Some(task) = tasks.get(one.cursor) else { return Vec::new() };
            let Some(id) = task.id_of_loop.clone() else {
                model.said = Some((format!("task {} was not begun yet", task.id), true));
                return Vec::new();
            };
            (Key { project: one.key.project.clone(), id }, false)
        }
        Some(OpenView::Loop(_)) => return open_log(model),
        Some(OpenView::Log(_)) => return Vec::new(),
    };
    model.opened.push(OpenView::new(key.clone(), is_plan));
    vec![Effect::Watch(Some((key, is_plan)))]
}

/// Opens the output of the selected attempt; the activity view already follows the running one.
fn open_log(model: &mut Model) -> Vec<Effect> {
    let Some(OpenView::Loop(one)) = model.opened.last_mut().filter(|opened| opened.has_rows()) else {
        return Vec::new();
    };
    let Some(attempt) = one.attempts().get(one.at()).map(|it| (it.id(), it.ended_at.is_some())) else {
        return Vec::new();
    };
    if let (_, false) = attempt {
        one.at_attempts = false;
        one.activity.follow(true, 0);
        return Vec::new();
    }
    let (key, attempt) = (one.key.clone(), attempt.0);
    show_text(model, key, LoopText::Output(attempt))
}

/// Opens a text of the loop that is meant. A plan has no changes of its own, and a text that is open has none.
fn read(model: &mut Model, what: LoopText) -> Vec<Effect> {
    let is_plan = match model.opened.last() {
        None => model.list.current().and_then(seen).is_some_and(|seen| seen.brief.kind == Kind::Plan),
        Some(OpenView::Loop(_)) => false,
        Some(OpenView::Plan(_)) => true,
        Some(OpenView::Log(_)) => return Vec::new(),
    };
    match model.meant().filter(|_| !is_plan || what == LoopText::LatestOutput) {
        Some(key) => show_text(model, key, what),
        None => Vec::new(),
    }
}

fn show_text(model: &mut Model, key: Key, what: LoopText) -> Vec<Effect> {
    model.opened.push(OpenView::Log(Box::new(OneLog { key: key.clone(), what, text: None })));
    vec![Effect::Watch(None), Effect::Read(key, what)]
}

/// Returns to the previous view.
fn leave(model: &mut Model) -> Vec<Effect> {
    if model.opened.pop().is_none() {
        model.list.filter.clear();
        model.list.marked.clear();
        return Vec::new();
    }
    let back = model.opened.last().map(|opened| (opened.key().clone(), opened.is_plan()));
    vec![Effect::Watch(back)]
}

fn move_by(model: &mut Model, key: KeyEvent) {
    let places = model.places;
    let page = |place: Rect| isize::try_from(place.height.saturating_sub(1).max(1)).unwrap_or(1);
    let text_has_keys = model.opened.last().is_some_and(|opened| !opened.has_rows());
    let page = page(if text_has_keys { places.text } else { places.rows.union(places.attempts) });
    match key.code {
        KeyCode::Up | KeyCode::Char('k') => scroll(model, -1, text_has_keys),
        KeyCode::Down | KeyCode::Char('j') => scroll(model, 1, text_has_keys),
        KeyCode::PageUp => scroll(model, -page, text_has_keys),
        KeyCode::PageDown | KeyCode::Char(' ') => scroll(model, page, text_has_keys),
        KeyCode::Home | KeyCode::Char('g') => scroll(model, isize::MIN / 2, text_has_keys),
        KeyCode::End | KeyCode::Char('G') => scroll(model, isize::MAX / 2, text_has_keys),
        KeyCode::Tab | KeyCode::BackTab => match model.opened.last_mut() {
            Some(OpenView::Loop(one)) => one.at_attempts = !one.at_attempts,
            Some(OpenView::Plan(one)) => one.at_board = !one.at_board,
            Some(OpenView::Log(_)) | None => {}
        },
        KeyCode::Char('f') => {
            if let Some(pane) = model.opened.last_mut().and_then(OpenView::text_mut) {
                let follows = !pane.follows();
                pane.follow(follows, places.text.height.into());
            }
        }
        KeyCode::Char(way @ ('n' | 'N')) => {
            if let Some(pane) = model.opened.last_mut().and_then(OpenView::text_mut)
                && !pane.search.is_empty()
            {
                pane.find(way == 'N', places.text.height.into());
            }
        }
        _ => {}
    }
}

/// Moves the cursor, or the text.
fn scroll(model: &mut Model, by: isize, text: bool) {
    let (rows, places) = (usize::from(model.places.text.height), model.places);
    match model.opened.last_mut() {
        None => model.list.go(model.list.at().saturating_add_signed(by)),
        Some(OpenView::Loop(one)) if text => one.activity.scroll(by, rows),
        Some(OpenView::Loop(one)) => one.go(one.at().saturating_add_signed(by)),
        Some(OpenView::Log(one)) => {
            if let Some(text) = &mut one.text {
                text.scroll(by, rows);
            }
        }
        Some(OpenView::Plan(one)) if text => {
            let last = places.board.saturating_sub(rows);
            one.board_top = one.board_top.saturating_add_signed(by).min(last);
        }
        Some(OpenView::Plan(one)) => one.go(one.cursor.saturating_add_signed(by)),
    }
}

impl OnePlan {
    fn go(&mut self, at: usize) {
        self.cursor = at.min(self.tasks().len().saturating_sub(1));
    }
}
