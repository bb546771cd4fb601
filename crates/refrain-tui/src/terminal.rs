//! The user's terminal: set up at the start, restored on every exit, and the source of input.

use std::io::{self, Read, Stdout, Write, stdout};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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

/// The terminal is back from another program. No signal writes this byte.
const RETURNED: [u8; 1] = [0];

/// The terminal, while it is ours.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// How often it is lent to another program, which Ctrl-C is meant for. The thread that reads interrupts counts its
    /// return, after all interrupts before that.
    lent: Arc<AtomicUsize>,
    /// The reading and the writing end of a pipe of interrupts.
    interrupts: (UnixStream, UnixStream),
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
        let interrupts = UnixStream::pair().inspect_err(|_| leave())?;
        Ok(Self { terminal, lent: Arc::default(), interrupts })
    }

    /// Lends the terminal to another program.
    pub(crate) fn lend<T>(&mut self, run: impl FnOnce() -> T) -> io::Result<T> {
        self.terminal.show_cursor()?;
        self.lent.fetch_add(1, Ordering::Relaxed);
        leave();
        let result = run();
        self.interrupts.1.write_all(&RETURNED)?;
        enter()?;
        self.forget()?;
        Ok(result)
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
    let (mut asked, signal) = UnixStream::pair()?;
    for number in [SIGTERM, SIGHUP, SIGQUIT] {
        pipe::register(number, signal.try_clone()?)?;
    }
    let sink = to.clone();
    spawn(move || {
        let _signal = signal;
        let _ = asked.read(&mut [0]);
        // Without a listener it ends already.
        let _ = sink.send(Message::Quit);
    });
    let (mut interrupts, lent) = (screen.interrupts.0.try_clone()?, Arc::clone(&screen.lent));
    pipe::register(SIGINT, screen.interrupts.1.try_clone()?)?;
    let sink = to.clone();
    spawn(move || {
        let mut byte = [0];
        while interrupts.read(&mut byte).is_ok_and(|count| count > 0) {
            if byte == RETURNED {
                lent.fetch_sub(1, Ordering::Relaxed);
            } else if lent.load(Ordering::Relaxed) == 0 {
                let _ = sink.send(Message::Quit);
            }
        }
    });
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
