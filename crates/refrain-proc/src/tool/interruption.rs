//! Signals that end this process while a tool runs. The tool has a group of its own, which Ctrl-C at the terminal does not
//! reach, and would live on: it is ended first, with the time to remove its locks, and this process then as by the signal.
//! A program that has the terminal, like a pager, gets Ctrl-C itself: it decides what that means.

use std::io::{self, PipeReader};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

use super::pid_of;
use crate::system;

const ALL: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

static TOOLS: Mutex<Tools> = Mutex::new(Tools { heeds: false, signals: None, groups: Vec::new(), count: 0 });

struct Tools {
    heeds: bool,
    /// None before the first tool.
    signals: Option<Signals>,
    /// Those of the tools that run.
    groups: Vec<Pid>,
    count: usize,
}

/// The signals that are heeded.
struct Signals {
    ids: Vec<SigId>,
    /// Becomes readable with a signal, and is never read.
    said: Arc<PipeReader>,
    last: Arc<AtomicUsize>,
    /// No tool runs: a signal ends this process at once.
    is_idle: Arc<AtomicBool>,
}

fn tools() -> MutexGuard<'static, Tools> {
    TOOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on SIGINT, SIGTERM and SIGHUP end the tools that run, and only then this process.
pub fn heed_signals() {
    tools().heeds = true;
}

/// The signals are no longer heeded here: the caller handles them from now on.
pub fn leave_signals() {
    let mut tools = tools();
    tools.heeds = false;
    tools.heed_instead(None);
}

/// Runs a program that has the terminal to its end. Ctrl-C is meant for that program alone; if it fails of it, this process
/// ends with it.
pub(super) fn with_terminal(run: impl FnOnce() -> io::Result<ExitStatus>) -> io::Result<ExitStatus> {
    let is_meant = tools().heeds && !system::is_ignored(SIGINT);
    if !is_meant {
        return run();
    }
    let is_interrupted = Arc::new(AtomicBool::new(false));
    let id = flag::register(SIGINT, Arc::clone(&is_interrupted))?;
    tools().heed_instead(Signals::new(&[SIGTERM, SIGHUP]).ok());
    let ended = run();
    tools().heed_instead(Signals::new(&ALL).ok());
    low_level::unregister(id);
    if is_interrupted.load(Ordering::SeqCst) && !ended.as_ref().is_ok_and(ExitStatus::success) {
        let _ = low_level::emulate_default_handler(SIGINT);
    }
    ended
}

/// Whether this process was started with SIGHUP ignored, as `nohup` does: then it outlives its terminal.
pub fn is_hangup_ignored() -> bool {
    system::is_ignored(SIGHUP)
}

/// Asks every tool that still runs to end: this process is about to.
pub fn end_tools() {
    for group in std::mem::take(&mut tools().groups) {
        let _ = kill_process_group(group, Signal::TERM);
    }
}

impl Tools {
    fn heed_instead(&mut self, signals: Option<Signals>) {
        let before = std::mem::replace(&mut self.signals, signals);
        for id in before.into_iter().flat_map(|signals| signals.ids) {
            low_level::unregister(id);
        }
    }
}

impl Signals {
    fn new(heeded: &[i32]) -> io::Result<Self> {
        let (said, say) = io::pipe()?;
        let (last, is_idle) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(true)));
        let mut ids = Vec::new();
        // One that is ignored stays ignored, as under nohup.
        for signal in heeded.iter().copied().filter(|signal| !system::is_ignored(*signal)) {
            ids.push(flag::register_usize(signal, Arc::clone(&last), signal.unsigned_abs() as usize)?);
            ids.push(low_level::pipe::register(signal, say.try_clone()?)?);
            ids.push(flag::register_conditional_default(signal, Arc::clone(&is_idle))?);
        }
        Ok(Self { ids, said: Arc::new(said), last, is_idle })
    }
}

/// What this process has to remove, like a lock, before a signal ends it: until this is dropped. Tools are ended at once.
#[derive(Debug)]
pub struct SignalHold {
    _running: Running,
}

impl SignalHold {
    pub fn begin() -> Self {
        Self { _running: Running::begin(true) }
    }
}

/// Becomes readable with a signal that does not end this process yet, and is never read.
pub(super) fn held_signal() -> Option<Arc<PipeReader>> {
    let tools = tools();
    tools.signals.as_ref().filter(|_| tools.count > 0).map(|signals| Arc::clone(&signals.said))
}

/// A tool that runs, until it is dropped. If a signal arrived meanwhile, this process ends with the last of them.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) interrupt: Option<Arc<PipeReader>>,
    group: Option<Pid>,
    outlasts_signals: bool,
}

impl Running {
    pub(super) fn begin(outlasts_signals: bool) -> Self {
        let mut tools = tools();
        if tools.heeds && tools.signals.is_none() {
            // Without them the signals have their usual effect.
            tools.signals = Signals::new(&ALL).ok();
        }
        tools.count += 1;
        let interrupt = tools.signals.as_ref().map(|signals| {
            signals.is_idle.store(false, Ordering::SeqCst);
            Arc::clone(&signals.said)
        });
        let interrupt = interrupt.filter(|_| !outlasts_signals);
        Self { interrupt, group: None, outlasts_signals }
    }

    pub(super) fn started(&mut self, child: &Child) {
        self.group = pid_of(child).filter(|_| !self.outlasts_signals);
        tools().groups.extend(self.group);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut tools = tools();
        tools.groups.retain(|group| Some(*group) != self.group);
        tools.count -= 1;
        if tools.count == 0
            && let Some(signals) = &tools.signals
        {
            signals.is_idle.store(true, Ordering::SeqCst);
            if let Ok(signal @ 1..) = i32::try_from(signals.last.load(Ordering::SeqCst)) {
                let _ = low_level::emulate_default_handler(signal);
            }
        }
    }
}
