//! How a gate is run: as a shell command, under the same keeper as agents, with all that it prints in one log; and what is
//! heard of it.

use std::sync::Arc;
use std::time::Instant;

use camino::Utf8PathBuf;
use refrain_agents::environment;
use refrain_core::event::{Exit, GateFinished};
use refrain_core::fingerprint;
use refrain_core::gate::{GateSpec, cannot_run, found_no_test};
use refrain_core::text::{clip, printable};
use refrain_core::{AttemptId, LoopState};
use refrain_proc::{Job, Meter, output};
use refrain_store::LoopDir;

use crate::hearing::{Hearing, MOST_READ};
use crate::seal;

/// By its path: what stands first in `PATH` may be the agent's work.
const SHELL: &str = "/bin/sh";
/// Both streams are one, in the order in which they come, whatever the command is.
const TOGETHER: &str = "exec /bin/sh -c \"$0\" 2>&1";
/// The longest last line that is kept, in bytes.
const PREVIEW: usize = 200;

/// What is listened for while a gate runs: nothing, as its log is read when it has ended.
pub(crate) struct GateHearing {
    gate: GateSpec,
    log: Utf8PathBuf,
    began: Instant,
}

impl GateHearing {
    /// The gate is over: what it left behind.
    pub(crate) fn conclude(self, exit: Exit, bytes: u64) -> GateFinished {
        let end = output::read_end(&self.log, MOST_READ as u64).unwrap_or_default();
        let end = printable(&String::from_utf8_lossy(&end)).into_owned();
        let last = end.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let no_test = proved_nothing(&end, exit);
        GateFinished {
            gate: self.gate.name.clone(),
            exit,
            duration: self.began.elapsed().into(),
            bytes,
            fingerprint: (exit != Exit::Code(0) || no_test.is_some())
                .then(|| fingerprint::of(self.gate.name.as_str(), &format!("{end}\n{exit:?}"))),
            no_test,
            log: seal::of(&self.log).ok(),
            review: None,
            preview: clip(last, PREVIEW).into_owned(),
            left: false,
            output_error: None,
        }
    }
}

/// Why the gate proved nothing, whatever its exit code is: it could not run, or its runners found no test.
fn proved_nothing(said: &str, exit: Exit) -> Option<String> {
    let Exit::Code(code) = exit else { return None };
    cannot_run(said, code).or_else(|| found_no_test(said, code))
}

/// The job of a gate, behind the attempt `of` or, of iteration 0, before the first.
pub(crate) fn job(
    state: &LoopState,
    (gate, command): (&GateSpec, &str),
    (of, run): (AttemptId, u32),
    dir: &LoopDir,
    meter: Arc<Meter>,
) -> Job<Hearing> {
    let log = dir.attempt(of).gate(&gate.name, run);
    Job {
        argv: [SHELL, "-c", TOGETHER, command].map(str::to_owned).into(),
        dir: state.spec.working_dir.clone(),
        env: environment::of_attempt(state, of),
        stdin: None,
        // Only what the shell says that cannot do that much comes separately.
        stderr_log: log.with_extension("stderr.log"),
        stdout_log: log.clone(),
        cap: state.spec.output_cap,
        listener: Hearing::Gate(GateHearing { gate: gate.clone(), log, began: Instant::now() }),
        meter,
    }
}
