//! Keys in the form of a new loop and in the palette.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use refrain_engine::StartOffer;

use super::{Effect, ask, press};
use crate::input::{Input, InputOutcome};
use crate::model::{Dialog, Key, Model, OpenView};
use crate::new_loop::LoopForm;
use crate::palette::{PaletteEntry, entries};

/// Asks what a new loop could be like: in the project under the cursor, else in that of the whole list. The empty name
/// is the project that the program was started in.
pub(super) fn new_loop(model: &mut Model) -> Vec<Effect> {
    let project = model.meant().map(|key| key.project);
    let project = project.or_else(|| model.project.as_deref().map(Arc::from)).unwrap_or_else(|| "".into());
    model.said = Some(("looking for agents and gates …".to_owned(), false));
    vec![Effect::Offer(project)]
}

pub(super) fn offered(model: &mut Model, project: Arc<str>, offer: StartOffer) {
    // The person may have asked for something else meanwhile.
    if model.asking.is_none() {
        model.said = None;
        model.asking = Some(Dialog::New(LoopForm::new(project, offer)));
    }
}

pub(super) fn started(model: &mut Model, key: Key) {
    model.said = Some((format!("{} runs in a process of its own", key.id), false));
    model.list.cursor = Some((key.project, key.id.to_string()));
}

pub(super) fn press_in_form(model: &mut Model, mut form: LoopForm, key: KeyEvent) -> Vec<Effect> {
    match form.key(key) {
        InputOutcome::Continue => ask(model, Dialog::New(form)),
        InputOutcome::Cancel => Vec::new(),
        InputOutcome::Submit => match form.request() {
            Ok(new) => {
                model.said = Some(("starting …".to_owned(), false));
                vec![Effect::Start(form.project, new)]
            }
            Err(why) => {
                model.said = Some((why, true));
                ask(model, Dialog::New(form))
            }
        },
    }
}

pub(super) fn press_in_palette(
    model: &mut Model,
    (mut line, at): (Input, usize),
    key: KeyEvent,
) -> Vec<Effect> {
    let found = entries(model, &line.text());
    let last = found.len().saturating_sub(1);
    match key.code {
        KeyCode::Down | KeyCode::Tab => return ask(model, Dialog::Palette(line, (at + 1).min(last))),
        KeyCode::Up | KeyCode::BackTab => return ask(model, Dialog::Palette(line, at.saturating_sub(1))),
        _ => {}
    }
    match line.key(key) {
        InputOutcome::Continue => ask(model, Dialog::Palette(line, 0)),
        InputOutcome::Cancel => Vec::new(),
        InputOutcome::Submit => match found.get(at) {
            Some(PaletteEntry::Command(_, 'n')) => new_loop(model),
            Some(PaletteEntry::Command(_, key)) => {
                press(model, KeyEvent::new(KeyCode::Char(*key), KeyModifiers::NONE))
            }
            Some(PaletteEntry::Open(key, is_plan)) => {
                model.opened.push(OpenView::new(key.clone(), *is_plan));
                vec![Effect::Watch(Some((key.clone(), *is_plan)))]
            }
            None => Vec::new(),
        },
    }
}
