//! Keys while a question is open.

use crossterm::event::{KeyCode, KeyEvent};

use super::{Effect, all_done, ask, forms, search};
use crate::input::{Input, InputOutcome};
use crate::model::{Dialog, InputPurpose, Key, Model};
use crate::program::Act;

/// Handles a key while a question is open.
pub(super) fn answer(model: &mut Model, asking: Dialog, key: KeyEvent) -> Vec<Effect> {
    match asking {
        Dialog::Help(top) => {
            let last = model.places.help;
            let to = match key.code {
                KeyCode::Down | KeyCode::Char('j') => top + 1,
                KeyCode::PageDown | KeyCode::Char(' ') => top + last.max(1),
                KeyCode::Up | KeyCode::Char('k') => top.saturating_sub(1),
                KeyCode::PageUp => 0,
                _ => return Vec::new(),
            };
            if last > 0 { ask(model, Dialog::Help(to.min(last))) } else { Vec::new() }
        }
        Dialog::Cancel(keys) => match key.code {
            KeyCode::Char('y') => all_done(model, "asking", keys, &Act::Cancel { now: false }),
            KeyCode::Char('a') => all_done(model, "asking", keys, &Act::Cancel { now: true }),
            _ => Vec::new(),
        },
        Dialog::Merge(loop_key) => match key.code {
            KeyCode::Char('y') => done(model, loop_key, Act::Merge { squash: false }),
            KeyCode::Char('s') => done(model, loop_key, Act::Merge { squash: true }),
            _ => Vec::new(),
        },
        Dialog::New(form) => forms::press_in_form(model, form, key),
        Dialog::Palette(line, at) => forms::press_in_palette(model, (line, at), key),
        Dialog::Archive(keys) => match key.code {
            KeyCode::Char('y') => all_done(model, "asking", keys, &Act::Archive),
            _ => Vec::new(),
        },
        Dialog::Approve(loop_key, tree) => match key.code {
            KeyCode::Char('y') => done(model, loop_key, Act::Approve { tree }),
            KeyCode::Char('b') => {
                ask(model, Dialog::Line(InputPurpose::SendBack(loop_key), Input::default()))
            }
            _ => Vec::new(),
        },
        Dialog::Line(wanted, mut line) => match line.key(key) {
            InputOutcome::Continue => {
                let text = line.text();
                // A filter is seen at work while it is typed.
                if wanted == InputPurpose::Filter {
                    model.list.filter = text;
                }
                ask(model, Dialog::Line(wanted, line))
            }
            InputOutcome::Cancel => {
                match wanted {
                    InputPurpose::Filter => model.list.filter.clear(),
                    InputPurpose::Search => search(model, ""),
                    InputPurpose::Steer(_)
                    | InputPurpose::Answer(_)
                    | InputPurpose::SendBack(_)
                    | InputPurpose::Grant(..) => {}
                }
                Vec::new()
            }
            InputOutcome::Submit => entered(model, wanted, &line.text()),
        },
    }
}

fn entered(model: &mut Model, wanted: InputPurpose, text: &str) -> Vec<Effect> {
    match wanted {
        InputPurpose::Filter => text.clone_into(&mut model.list.filter),
        InputPurpose::Search => search(model, text),
        InputPurpose::Steer(_) | InputPurpose::Answer(_) | InputPurpose::Grant(..)
            if text.trim().is_empty() => {}
        InputPurpose::Steer(key) => return done(model, key, Act::Steer { words: text.to_owned() }),
        InputPurpose::Answer(key) => return done(model, key, Act::Answer { words: text.to_owned() }),
        InputPurpose::SendBack(key) => {
            return done(model, key, Act::SendBack { words: text.trim().to_owned() });
        }
        InputPurpose::Grant(key, _) => match model.program.grant(text) {
            Ok((grant, now)) => return done(model, key, Act::Resume { grant, now }),
            Err(why) => model.said = Some((why, true)),
        },
    }
    Vec::new()
}

fn done(model: &mut Model, key: Key, act: Act) -> Vec<Effect> {
    model.said = Some((format!("asking {} …", key.id), false));
    vec![Effect::Act(key, act)]
}
