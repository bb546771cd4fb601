//! The user's terminal: set up at the start, restored on every exit, and the source of input.

use std::io::{self, Read, Stdout, stdout};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
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
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// Another program has it for now.
    is_lent: Arc<AtomicBool>,
}

impl Screen {
    /// Takes over the terminal. A panic restores it before its message is printed.
    pub(crate) fn enter() -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            leave();
            before(panic);
        }));
        let terminal = enter().and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        // Restore what was set up so far.
        let terminal = terminal.inspect_err(|_| leave())?;
        Ok(Self { terminal, is_lent: Arc::default() })
    }

    /// Lends the terminal to another program.
    pub(crate) fn lend<T>(&mut self, run: impl FnOnce() -> T) -> io::Result<T> {
        self.terminal.show_cursor()?;
        self.is_lent.store(true, Ordering::Relaxed);
        leave();
        let came_of_it = run();
        self.is_lent.store(false, Ordering::Relaxed);
        enter()?;
        self.forget()?;
        Ok(came_of_it)
    }

    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// Another program drew on it: the next draw repaints everything.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        // ratatui's own clear asks for the cursor position, and another reader would receive the answer.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect { x: 0, y: 0, width: size.width, height: size.height })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.terminal.show_cursor();
        leave();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste)
}

/// Gives it back, as far as it is still there.
fn leave() {
    let _ = execute!(stdout(), DisableBracketedPaste, DisableMouseCapture, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

/// Listens to keys, the mouse, the terminal's size, and the signals that end this program. After each key it waits for
/// `handled`: until then another program may read the next one.
pub(crate) fn listen(screen: &Screen, to: &SyncSender<Message>, handled: Receiver<()>) -> io::Result<()> {
    for numbers in [&[SIGTERM, SIGHUP, SIGQUIT][..], &[SIGINT]] {
        let (mut asked, signal) = UnixStream::pair()?;
        for number in numbers {
            pipe::register(*number, signal.try_clone()?)?;
        }
        let (sink, is_lent, is_interrupt) = (to.clone(), Arc::clone(&screen.is_lent), numbers == [SIGINT]);
        spawn(move || {
            let _signal = signal;
            while asked.read(&mut [0]).is_ok_and(|count| count > 0) {
                // Ctrl-C in another program is meant for that. Without a listener it ends already.
                if !(is_interrupt && is_lent.load(Ordering::Relaxed)) {
                    let _ = sink.send(Message::Quit);
                }
            }
        });
    }
    let sink = to.clone();
    spawn(move || {
        // A terminal that is gone asks for nothing more.
        while let Ok(event) = crossterm::event::read() {
            if sink.send(Message::Input(event)).is_err() || handled.recv().is_err() {
                return;
            }
        }
        let _ = sink.send(Message::Quit);
    });
    Ok(())
}
