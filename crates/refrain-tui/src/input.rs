//! A text input line.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The line and its cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Input {
    before: String,
    after: String,
}

/// The effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputOutcome {
    /// It may be another now.
    Continue,
    /// It is done.
    Submit,
    /// It is not wanted any more.
    Cancel,
}

impl Input {
    pub(crate) fn of(text: &str) -> Self {
        Self { before: text.to_owned(), after: String::new() }
    }

    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.before, self.after)
    }

    /// The text before and after the cursor.
    pub(crate) fn parts(&self) -> (&str, &str) {
        (&self.before, &self.after)
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.before.extend(text.chars().filter(|c| !c.is_control()));
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> InputOutcome {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return InputOutcome::Submit,
            KeyCode::Esc => return InputOutcome::Cancel,
            KeyCode::Char('c') if with_control => return InputOutcome::Cancel,
            KeyCode::Char('u') if with_control => self.before.clear(),
            KeyCode::Char('w') if with_control => {
                let kept = self.before.trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.before.truncate(kept);
            }
            KeyCode::Char('a') if with_control => self.home(),
            KeyCode::Char('e') if with_control => self.end(),
            KeyCode::Char(c) if !with_control => self.before.push(c),
            KeyCode::Backspace => drop(self.before.pop()),
            KeyCode::Delete => drop((!self.after.is_empty()).then(|| self.after.remove(0))),
            KeyCode::Left => {
                if let Some(c) = self.before.pop() {
                    self.after.insert(0, c);
                }
            }
            KeyCode::Right if !self.after.is_empty() => {
                let c = self.after.remove(0);
                self.before.push(c);
            }
            KeyCode::Home => self.home(),
            KeyCode::End => self.end(),
            _ => {}
        }
        InputOutcome::Continue
    }

    fn home(&mut self) {
        self.after = self.text();
        self.before.clear();
    }

    fn end(&mut self) {
        self.before = self.text();
        self.after.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_as_in_a_shell() {
        let mut line = Input::of("one two");
        let mut press = |code, modifiers| line.key(KeyEvent::new(code, modifiers));
        press(KeyCode::Char('w'), KeyModifiers::CONTROL);
        for c in "ü!".chars() {
            press(KeyCode::Char(c), KeyModifiers::NONE);
        }
        press(KeyCode::Left, KeyModifiers::NONE);
        press(KeyCode::Backspace, KeyModifiers::NONE);
        press(KeyCode::Home, KeyModifiers::NONE);
        press(KeyCode::Delete, KeyModifiers::NONE);
        assert_eq!(press(KeyCode::Char('O'), KeyModifiers::SHIFT), InputOutcome::Continue);
        assert_eq!(press(KeyCode::Enter, KeyModifiers::NONE), InputOutcome::Submit);
        assert_eq!((line.text(), line.parts()), ("One !".to_owned(), ("O", "ne !")));
        line.paste("a\nb\u{1b}[2J");
        assert_eq!(line.text(), "Oab[2Jne !");
    }
}
