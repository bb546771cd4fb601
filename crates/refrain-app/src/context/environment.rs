//! The only reader of the environment and the current folder: everything else gets a [`Context`].

use camino::Utf8PathBuf;
use refrain_core::Spec;
use refrain_engine::Host;

use crate::caller::{Attempt, Caller};
use crate::effects::TypedOptions;
use crate::{Code, Context, RequestError};

/// The surroundings of this process, which is of this version of Refrain.
#[expect(clippy::disallowed_methods, reason = "this is the home of reading the environment")]
pub fn read(dir: Option<Utf8PathBuf>, version: &str) -> Result<Context, RequestError> {
    let failed =
        |what: &str, error: std::io::Error| RequestError::new(Code::Failed, format!("{what}: {error}"));
    let here = std::env::current_dir().map_err(|error| failed("the current folder is gone", error))?;
    let here = Utf8PathBuf::from_path_buf(here)
        .map_err(|path| RequestError::usage(format!("{}: only UTF-8 paths are accepted", path.display())))?;
    let dir = dir.map_or(here.clone(), |dir| here.join(dir));
    if !dir.is_dir() {
        return Err(RequestError::usage(format!(
            "-C {dir}: there is no such folder; accepted: a folder that exists"
        )));
    }
    let path = |name| std::env::var(name).ok().map(Utf8PathBuf::from).filter(|path| path.is_absolute());
    let home = |name, below| {
        let home = path(name).or_else(|| path("HOME").map(|home| home.join(below)));
        home.unwrap_or_else(|| Utf8PathBuf::from("/var/tmp")).join("refrain")
    };
    // The environment is a second sign only: an agent can clear it, and cannot leave its supervisor's tree.
    let supervisors = refrain_engine::keeper::enclosing();
    let named = std::env::var("REFRAIN_LOOP_ID").ok();
    let depth = std::env::var("REFRAIN_DEPTH").ok();
    let depth = depth.map_or(0, |depth| depth.parse().unwrap_or(Spec::MAX_DEPTH));
    Ok(Context {
        dir,
        host: Host {
            // Not its path: the file may be replaced while a loop runs, and runner and keeper are one binary.
            program: refrain_engine::OWN_PROGRAM.into(),
            env: std::env::vars_os().collect(),
            data_home: home("XDG_DATA_HOME", ".local/share"),
            state_home: home("XDG_STATE_HOME", ".local/state"),
            config_home: home("XDG_CONFIG_HOME", ".config"),
            version: version.to_owned(),
        },
        depth: depth.max(u32::try_from(supervisors.len()).unwrap_or(Spec::MAX_DEPTH)),
        caller: match (supervisors.into_iter().next(), named) {
            (None, None) => Caller::Person,
            (supervisor, named) => Caller::Attempt(Attempt { named, supervisor }),
        },
        typed: TypedOptions::default(),
    })
}
