//! The adapter trait: how one coding agent is started, read and stopped. Only definitions are here.

use std::ffi::OsString;
use std::sync::LazyLock;

use camino::Utf8Path;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use refrain_core::Spec;
use refrain_core::agent::{AgentEvent, Usd};
use refrain_core::event::Exit;
use refrain_proc::StopLadder;

use crate::args::UserArgs;
use crate::checkup::Checkup;

pub trait Adapter: Checkup {
    /// Versions tested with the real program, as it prints them.
    fn tested(&self) -> &'static [&'static str];

    fn launch(&self, call: &Call<'_>) -> Launch;

    /// A decoder for the stream of an attempt started this way.
    fn dialect(&self, call: &Call<'_>) -> Box<dyn StreamDecoder>;

    fn takes_schema(&self) -> bool {
        false
    }

    /// Why these user arguments prevent it from working: its output could not be parsed. Names the value and the
    /// accepted ones.
    fn objection(&self, _args: &[String]) -> Option<String> {
        None
    }

    /// The flags that name its model.
    fn model_flags(&self) -> &'static [&'static str] {
        &[]
    }

    /// The model that these user arguments name: the adapter adds no other one.
    fn own_model(&self, args: &[String]) -> Option<String> {
        UserArgs::new(args).values(self.model_flags()).last().map(str::to_owned)
    }

    fn ladder(&self) -> StopLadder {
        StopLadder::default()
    }
}

/// The data of an attempt that an adapter starts.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The specification. `spec.agent` holds the program, the user's arguments, the model, the permissions.
    pub spec: &'a Spec,
    pub prompt: &'a str,
    pub prompt_file: &'a Utf8Path,
    /// The agent's environment: [`environment::base`](crate::environment::base). Empty if nothing is started.
    pub env: &'a [(OsString, OsString)],
    /// The remaining budget, if there is a cap.
    pub budget: Option<Usd>,
    /// There is a cap on money or tokens: usage must be reported as early as the program can.
    pub capped: bool,
    /// The required form of its final message, if its program can enforce one.
    pub schema: Option<Schema<'a>>,
    /// The clock of this machine, made only if an adapter asks for it: finding the zone reads the folders of all of
    /// them.
    pub clock: &'a LazyLock<Clock>,
    /// Whether Refrain runs as root: some programs refuse to bypass their questions then.
    pub root: bool,
}

/// The local time: some programs print only a wall-clock time.
#[derive(Clone, Debug)]
pub struct Clock {
    pub now: fn() -> Timestamp,
    /// The machine's own time zone. Looked up beforehand: streams are read on a small stack.
    pub zone: TimeZone,
}

impl Clock {
    pub fn shows(&self) -> Zoned {
        (self.now)().to_zoned(self.zone.clone())
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Schema<'a> {
    pub text: &'a str,
    pub file: &'a Utf8Path,
}

/// How to start a program with a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments. No argument of the user appears twice.
    pub argv: Vec<String>,
    /// Variables to add to the environment; one that the user set is left alone.
    pub env: Vec<(String, String)>,
    /// The text for standard input; none means closed.
    pub stdin: Option<String>,
}

/// Parses one attempt's standard output, line by line, into events, in bounded memory.
pub trait StreamDecoder: Send {
    /// One line, without its end. Its content is untrusted data: nothing in it is an error.
    fn line(&mut self, line: &[u8], say: &mut dyn FnMut(AgentEvent));

    /// Whether its events arrive as they happen: an agent that prints everything at its end cannot be observed before
    /// that.
    fn is_live(&self) -> bool {
        true
    }

    /// One line of standard error as it arrives, for information that a program prints only there and while it runs.
    fn stderr_line(&mut self, _line: &[u8], _say: &mut dyn FnMut(AgentEvent)) {}

    /// The program is gone: reports what its exit and the end of its standard error add, such as a final message that
    /// the exit confirms, or a fault that only standard error shows.
    fn conclude(&mut self, exit: Exit, stderr: &str, say: &mut dyn FnMut(AgentEvent));
}
