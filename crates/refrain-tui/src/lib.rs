//! The terminal user interface: `refrain top`.
//!
//! The state is a value, the `model`; `update` takes a message and returns the effects to run; `view` draws the model.
//! All three are pure. Messages come from `terminal` (keys, mouse, signals) and `feed` (the engine), each on threads of
//! their own, through one bounded channel. Nothing runs while nothing happens, except a clock once a second while a
//! running loop is on the screen.

mod feed;
mod input;
mod model;
mod new_loop;
mod order;
mod palette;
mod pane;
mod program;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod update;
mod view;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use refrain_engine::{Service, now};

use feed::{Feed, GAP};
pub use model::Art;
use model::{Model, Places};
pub use program::{Act, Narrator, NewLoop, Objection, Program};
use terminal::Screen;
use update::{Effect, Message, update};

/// The most messages that wait; a sender waits when there are more.
const WAITING: usize = 256;
/// How often a clock on the screen moves.
const TICK: Duration = Duration::from_secs(1);

/// Shows the loops and plans of the project, or of all projects, until the user quits.
///
/// # Errors
/// If the terminal cannot be used.
pub fn run(service: &Service, everywhere: bool, art: Art, program: Arc<dyn Program>) -> io::Result<()> {
    let project = (!everywhere).then(|| service.project().root.to_string());
    let mut model = Model::new(art, Arc::clone(&program), project, now());
    let (to, messages) = sync_channel(WAITING);
    let mut screen = Screen::enter()?;
    let (handled, waiting) = sync_channel(1);
    terminal::listen(&screen, &to, waiting)?;
    let mut keys = Keys { handled, is_waiting: false };
    let mut feed = Feed::begin(service, everywhere, &program, &to);
    loop {
        model.now = now();
        let mut places = Places::default();
        screen.draw(|frame| places = view::view(&model, frame))?;
        model.drawn(places);
        if !wait(&mut model, (&messages, &mut keys), &mut feed, &mut screen)? {
            return Ok(());
        }
    }
}

/// The way to the thread that reads keys.
struct Keys {
    handled: SyncSender<()>,
    /// The thread waits until its last key is handled.
    is_waiting: bool,
}

impl Keys {
    /// Lets the thread read the next key.
    fn go_on(&mut self) {
        if std::mem::take(&mut self.is_waiting) {
            // A thread that has ended reads none.
            let _ = self.handled.send(());
        }
    }
}

/// Waits for a message and applies it with all that follow soon after; false at the end.
fn wait(
    model: &mut Model,
    (messages, keys): (&Receiver<Message>, &mut Keys),
    feed: &mut Feed,
    screen: &mut Screen,
) -> io::Result<bool> {
    let drawn = Instant::now();
    let mut next = match model.ticks() {
        true => messages.recv_timeout(TICK),
        false => messages.recv().map_err(RecvTimeoutError::from),
    };
    if let Err(RecvTimeoutError::Timeout) = next {
        next = Ok(Message::Tick);
    }
    // A key is answered at once.
    let mut is_urgent = false;
    while let Ok(message) = next {
        is_urgent |= matches!(message, Message::Input(_) | Message::Done(..) | Message::Offered(..));
        keys.is_waiting |= matches!(message, Message::Input(_));
        let mut effects = VecDeque::from(update(model, message));
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Watch(what) => feed.watch(what, Duration::ZERO),
                Effect::Preview(what) => feed.watch(what, GAP),
                Effect::Act(key, act) => feed.act(key, act),
                Effect::Read(key, what) => feed.read(key, what),
                Effect::Page { text, at_end } => {
                    let program = Arc::clone(&model.program);
                    if screen.lend(|| program.page(&text, at_end))? {
                        effects.extend(update(model, Message::Paged));
                    }
                }
                Effect::Offer(project) => feed.offer(project),
                Effect::Start(project, new) => feed.start(project, new),
                Effect::Redraw => screen.forget()?,
                Effect::Quit => return Ok(false),
            }
        }
        if !model.is_to_page() {
            keys.go_on();
        }
        let left = if is_urgent { Duration::ZERO } else { GAP.saturating_sub(drawn.elapsed()) };
        next = messages.recv_timeout(left);
    }
    Ok(!matches!(next, Err(RecvTimeoutError::Disconnected)))
}
