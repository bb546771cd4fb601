//! The user's terminal: set up at the start, restored on every exit, and the source of input.

use std::io::{self, Read, Stdout, stdout};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::SyncSender;
use std::thread::spawn;

use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::update::Message;

/// The terminal, while it is ours.
pub(crate) struct Screen(Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    /// Takes over the terminal. A panic restores it before its message is printed.
    pub(crate) fn enter() -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            leave();
            before(panic);
        }));
        enable_raw_mode()?;
        let entered = execute!(stdout(), EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste);
        let terminal = entered.and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        // Restore what was set up so far.
        terminal.map(Self).inspect_err(|_| leave())
    }

    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.0.draw(draw).map(drop)
    }

    /// Another program drew on it: the next draw repaints everything.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        // ratatui's own clear asks for the cursor position, and another reader would receive the answer.
        let size = self.0.size()?;
        self.0.resize(Rect { x: 0, y: 0, width: size.width, height: size.height })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.0.show_cursor();
        leave();
    }
}

/// Gives it back, as far as it is still there.
fn leave() {
    let _ = execute!(stdout(), DisableBracketedPaste, DisableMouseCapture, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

/// Listens to keys, the mouse, the terminal's size, and the signals that end this program.
pub(crate) fn listen(to: &SyncSender<Message>) -> io::Result<()> {
    let (mut asked, signal) = UnixStream::pair()?;
    for number in [SIGTERM, SIGHUP, SIGINT, SIGQUIT] {
        pipe::register(number, signal.try_clone()?)?;
    }
    let sink = to.clone();
    spawn(move || {
        let _signal = signal;
        let mut byte = [0];
        let _ = asked.read(&mut byte);
        // Without a listener it ends already.
        let _ = sink.send(Message::Quit);
    });
    let sink = to.clone();
    spawn(move || {
        // A terminal that is gone asks for nothing more.
        while let Ok(event) = crossterm::event::read() {
            if sink.send(Message::Input(event)).is_err() {
                return;
            }
        }
        let _ = sink.send(Message::Quit);
    });
    Ok(())
}
